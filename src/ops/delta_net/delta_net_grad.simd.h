/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_net_grad.simd.h - the gradients of delta_net: once forwards through a head, whose norm is
 * gone back through at once, then backwards from one kept state to the one before. The formulas
 * are in delta_net_grad.c.
 *
 *     phase          a unit is                       writes
 *     columns        16 columns of K                 u
 *     rows           a row                           u: unit q and k; numbers; scales
 *     back           a head of keys in a sequence    dz of all but the convolution; dba; sums
 *     back columns   16 columns of K; the last       dz through the convolution, dw; dheads
 *                    unit: sums of heads
 *
 * States are not kept for all rows, which would take T of them. Every sixteenth is, and the
 * fifteen in between are computed again, stretch by stretch from the end: a row costs two steps
 * forwards and one back, and memory T/16 + 18 states of P N floats for each worker.
 *
 *     rows      0 ....... 15 | 16 ...... 31 | 32 ...... 47 |
 *     kept      ^              ^              ^
 *     state     .. of the stretch that is gone back through, 17 of them: before and after each row
 *
 * dz has other things meanwhile: the gradient of o lies where that of the values comes, and
 * columns of the convolution hold gradients of u until the last phase. Sums over rows are doubles
 * where many rows or heads add up (gains, decays, biases), and their order is fixed by the units:
 * bits do not depend on threads.
 */
#include "ops/delta_net/delta_net_row.h"
#include "ops/rms_norm/rms_row.h"

/* States are computed again from every sixteenth one, which is kept. */
enum { STRIDE = 16 };

static size_t rows_of(const tg_args *a) { return tg_type_rows(&a->in_type[0]); }

/*
 * Scratch, all heads and rows together, in this order:
 *
 *     u         [rows][K]       as in delta_net_row.h
 *     numbers   [rows][2H]      as there
 *     scales    [rows][2G]      what queries and keys were multiplied with to be unit vectors
 *     sums      [B][H][P+1]     of each sequence at a head, P of gains and one of its decay
 */
typedef struct work {
    float *u, *numbers, *scales, *sums;
} work;
static work work_of(const tg_args *a, const mamba *m) {
    const size_t n = rows_of(a);
    work w = { .u = a->scratch };
    w.numbers = w.u + n * m->K;
    w.scales = w.numbers + n * 2 * m->H;
    w.sums = w.scales + n * 2 * m->G;
    return w;
}
static size_t work_bytes(const tg_args *a) {
    const mamba m = delta_sizes(a, 2);
    return (rows_of(a) * (m.K + 2 * m.H + 2 * m.G) + a->in_type[0].dim[0] * m.H * (m.P + 1)) *
           sizeof(float);
}

/* As forwards, on u that was made again: it is not kept between the two ops, since it is cheap
 * beside the states. */
static void run_rows(const tg_args *a, size_t begin, size_t end) {
    const mamba m = delta_sizes(a, 2);
    const work w = work_of(a, &m);
    for (size_t r = begin; r < end; r++)
        row_begin(&m, (const float *)a->in[1] + r * 2 * m.H, a->in[3], w.u + r * m.K,
                  w.numbers + r * 2 * m.H, w.scales + r * 2 * m.G);
}

/*
 * The worker's own memory: [P,N] each, but for rows [P]. gains stand first, as doubles want the
 * alignment.
 *
 *     gains [P] | d | state [STRIDE + 1] | kept [T / STRIDE, rounded up]
 *               | errors [STRIDE][P] | o [P]
 */
typedef struct back_memory {
    double *gains;           /* [P] */
    float *d, *state, *kept; /* of the state's gradient; [STRIDE + 1]; [T / STRIDE] */
    float *errors, *o;       /* [STRIDE][P]; [P] */
} back_memory;

static size_t state_elems(const tg_args *a) { return (size_t)a->attr.i[1] * (size_t)a->attr.i[3]; }
static size_t back_bytes(const tg_args *a) {
    const size_t T = a->in_type[0].dim[1], P = (size_t)a->attr.i[1];
    return P * sizeof(double) +
           (state_elems(a) * (STRIDE + 2 + tg_units(T, STRIDE)) + P * (STRIDE + 1)) * sizeof(float);
}
static back_memory back_memory_of(const tg_args *a) {
    const size_t each = state_elems(a), P = (size_t)a->attr.i[1];
    back_memory w = { .gains = a->local };
    w.d = (float *)(w.gains + P);
    w.state = w.d + each;
    w.kept = w.state + (STRIDE + 1) * each;
    w.errors = w.kept + tg_units(a->in_type[0].dim[1], STRIDE) * each;
    w.o = w.errors + STRIDE * P;
    return w;
}

/* A sequence at a head. */
typedef struct head {
    const tg_args *a;
    const mamba *m;
    size_t first, n, h; /* its rows of all */
    const float *z, *u, *numbers;
    float *dz;
} head;

static delta_at row_at(const head *k, size_t t) {
    return delta_at_head(k->m, &k->a->attr, k->h, k->u + t * k->m->K, k->numbers + t * 2 * k->m->H);
}

/* The whole head goes on by a row. errors [P] are kept for back_block, which needs them and
 * would have to compute them from the state before; out [P] is what is read, before the norm. */
static void advance(const head *k, size_t t, const float *from, float *to, float *errors,
                    float *out) {
    const mamba *m = k->m;
    const delta_at row = row_at(k, t);
    for (size_t p = 0; p < m->P; p += 16) {
        const size_t n = tg_min_size(16, m->P - p), at = p * m->N;
        const tg_v e = n == 16 ? delta_block(&row, m->N, from + at, to + at, p, out + p, 16)
                               : delta_block(&row, m->N, from + at, to + at, p, out + p, n);
        tg_vstore_n(errors + p, e, n);
    }
}

/*
 * From dy of row t back to o: the gradients of gates, and those of o where values come. With s
 * the norm's scale, o' = s o and d = dy silu(gate) gain:
 *
 *     do = s (d - o' mean(d o'))      dgate = dy o' gain silu'(gate)
 *     dgain += dy silu(gate) o'
 *
 * The mean is over the head, hence the second loop.
 */
static void back_norm(const head *k, size_t t, const back_memory *w) {
    const mamba *m = k->m;
    const float *gain = (const float *)k->a->in[3] + 2 * m->H,
                *gate = k->z + t * m->Z + k->h * m->P;
    const float *dy = (const float *)k->a->in[4] + (k->first + t) * m->I + k->h * m->P;
    float *dgate = k->dz + t * m->Z + k->h * m->P,
          *out = k->dz + t * m->Z + m->I + delta_v(m, k->h);
    const float scale = rms_scale(w->o, m->P, k->a->attr.f[0]);
    const tg_v by = tg_vset(scale);
    double both = 0;
    for (size_t p = 0; p < m->P; p += 16) {
        const size_t n = tg_min_size(16, m->P - p);
        const tg_v z = tg_vload_n(gate + p, n), d = tg_vload_n(dy + p, n);
        const tg_v o = tg_vmul(tg_vload_n(w->o + p, n), by), g = tg_vload_n(gain + p, n);
        const tg_v open = tg_vmul(d, tg_vsilu(z));
        float of_gain[16];
        tg_vstore(of_gain, tg_vmul(open, o));
        for (size_t i = 0; i < n; i++) w->gains[p + i] += (double)of_gain[i];
        tg_vstore_n(dgate + p, tg_vmul(tg_vmul(tg_vmul(d, o), g), tg_vsilu_d(z)), n);
        tg_vstore_n(out + p, tg_vmul(open, g), n);
        both += (double)tg_vsum(tg_vmul(tg_vmul(open, g), o));
    }
    const tg_v mean = tg_vset((float)(both / (double)m->P));
    for (size_t p = 0; p < m->P; p += 16) {
        const size_t n = tg_min_size(16, m->P - p);
        const tg_v o = tg_vmul(tg_vload_n(w->o + p, n), by);
        tg_vstore_n(out + p, tg_vmul(by, tg_vfnma(mean, o, tg_vload_n(out + p, n))), n);
    }
}

/* The gradients of a row's two numbers. */
typedef struct of_numbers {
    double write, kept;
} of_numbers;

/* Sixteen columns, or n of them, of row t: before and after are the state's, D its gradient,
 * both [N][n]. own holds do on entry and the values' gradient on return. Two loops, since the
 * second needs g = k^T D of all N. dq and dk are added to: by the other columns of the head, and
 * by the heads of values that share them. */
static void back_block(const delta_at *k, size_t N, const float *before, const float *after,
                       float *D, const float *error, float *own, float *dq, float *dk, size_t n,
                       of_numbers *sums) {
    const tg_v out = tg_vload_n(own, n), e = tg_vload_n(error, n), kept = tg_vset(k->kept);
    const tg_v written = tg_vmul(tg_vset(k->write), e);
    tg_v of_kept = tg_vzero();
    for (size_t i = 0; i < N; i++) {
        const tg_v d = tg_vfma(tg_vset(k->q[i]), out, tg_vload_n(D + i * n, n));
        tg_vstore_n(D + i * n, d, n);
        dq[i] += tg_vsum(tg_vmul(tg_vload_n(after + i * n, n), out));
    }
    const tg_v g = rows_sum(k->k, D, N, n), back = tg_vmul(tg_vset(k->write), g);
    for (size_t i = 0; i < N; i++) {
        const tg_v s = tg_vload_n(before + i * n, n), d = tg_vload_n(D + i * n, n);
        dk[i] += tg_vsum(tg_vfnma(tg_vmul(kept, s), back, tg_vmul(d, written)));
        const tg_v rest = tg_vfnma(tg_vset(k->k[i]), back, d);
        of_kept = tg_vfma(rest, s, of_kept);
        tg_vstore_n(D + i * n, tg_vmul(kept, rest), n);
    }
    tg_vstore_n(own, back, n);
    sums->write += (double)tg_vsum(tg_vmul(g, e));
    sums->kept += (double)tg_vsum(of_kept);
}

/* Row t; returns what it adds to the gradient of the decay's log. kept = exp(step * decay), so
 * the gradient of the step is that of kept times kept times decay, and through the softplus a
 * sigmoid. */
static double back_row(const head *k, size_t t, const float *before, const float *after,
                       const float *errors, float *D) {
    const mamba *m = k->m;
    const float *heads = k->a->in[3];
    float *dz = k->dz + t * m->Z + m->I, *dba = (float *)k->a->out[1] + (k->first + t) * 2 * m->H;
    float *dq = dz + delta_q(m, &k->a->attr, k->h), *own = dz + delta_v(m, k->h);
    const delta_at row = row_at(k, t);
    of_numbers sums = { 0, 0 };
    for (size_t p = 0; p < m->P; p += 16) {
        const size_t n = tg_min_size(16, m->P - p), at = p * m->N;
        back_block(&row, m->N, before + at, after + at, D + at, errors + p, own + p, dq,
                   dq + m->G * m->N, n, &sums);
    }
    const double raw =
        (double)((const float *)k->a->in[1])[(k->first + t) * 2 * m->H + m->H + k->h] +
        (double)heads[k->h];
    const double write = (double)row.write;
    const double by = sums.kept * (double)row.kept * mamba_decay(m, heads, k->h);
    dba[k->h] = (float)(sums.write * write * (1 - write));
    dba[m->H + k->h] = (float)(by * act_sigmoid(raw));
    return by * mamba_softplus(raw);
}

/* A sequence at a head. The first pass leaves do in dz, and gains; the second goes stretch by
 * stretch from the end, D with it. Both passes make the same states, bit by bit, as they run the
 * same code on the same numbers. */
static void back_head(const head *k, float *sums) {
    const size_t each = state_elems(k->a), P = k->m->P;
    const back_memory w = back_memory_of(k->a);
    double decay = 0;
    memset(w.gains, 0, P * sizeof *w.gains);
    memset(w.d, 0, 2 * each * sizeof(float));
    for (size_t t = 0; t < k->n; t++) {
        if (t % STRIDE == 0) memcpy(w.kept + t / STRIDE * each, w.state, each * sizeof(float));
        advance(k, t, w.state, w.state, w.errors, w.o);
        back_norm(k, t, &w);
    }
    for (size_t end = k->n; end > 0;) {
        const size_t first = (end - 1) / STRIDE * STRIDE;
        memcpy(w.state, w.kept + first / STRIDE * each, each * sizeof(float));
        for (size_t t = first; t < end; t++) {
            float *from = w.state + (t - first) * each;
            advance(k, t, from, from + each, w.errors + (t - first) * P, w.o);
        }
        for (size_t t = end; t-- > first;) {
            const float *before = w.state + (t - first) * each;
            decay += back_row(k, t, before, before + each, w.errors + (t - first) * P, w.d);
        }
        end = first;
    }
    for (size_t p = 0; p < P; p++) sums[p] = (float)w.gains[p];
    sums[P] = (float)decay;
}

/* From unit vectors of a length back to what they were made of: the part of d along the vector
 * changes its length alone, which is fixed, so it goes; the rest is scaled as the vector was. */
static void back_unit(float *d, const float *unit, size_t N, float scale, double length) {
    tg_v sum = tg_vzero();
    for (size_t i = 0; i < N; i += 16) {
        const size_t n = tg_min_size(16, N - i);
        sum = tg_vfma(tg_vload_n(unit + i, n), tg_vload_n(d + i, n), sum);
    }
    const tg_v both = tg_vset((float)((double)tg_vsum(sum) / (length * length)));
    for (size_t i = 0; i < N; i += 16) {
        const size_t n = tg_min_size(16, N - i);
        const tg_v rest = tg_vfnma(both, tg_vload_n(unit + i, n), tg_vload_n(d + i, n));
        tg_vstore_n(d + i, tg_vmul(tg_vset(scale), rest), n);
    }
}

/* Units are heads of keys in sequences, since heads of values add up in their gradients. */
static size_t back_units(const tg_args *a) { return a->in_type[0].dim[0] * (size_t)a->attr.i[2]; }
/* Gradients of this head's queries and keys are zeros first, 2 T rows of N; then each head of
 * values that reads them adds its own, one after the other. */
static void run_back(const tg_args *a, size_t begin, size_t end) {
    const mamba m = delta_sizes(a, 2);
    const work w = work_of(a, &m);
    const size_t T = a->in_type[0].dim[1];
    for (size_t unit = begin; unit < end; unit++) {
        const size_t b = unit / m.G, at = unit % m.G * m.N, first = b * T;
        head k = { a,
                   &m,
                   first,
                   T,
                   0,
                   (const float *)a->in[0] + first * m.Z,
                   w.u + first * m.K,
                   w.numbers + first * 2 * m.H,
                   (float *)a->out[0] + first * m.Z };
        for (size_t t = 0; t < 2 * T; t++)
            memset(k.dz + t / 2 * m.Z + m.I + at + t % 2 * m.G * m.N, 0, m.N * sizeof(float));
        for (k.h = 0; k.h < m.H; k.h++)
            if (delta_q(&m, &a->attr, k.h) == at)
                back_head(&k, w.sums + (b * m.H + k.h) * (m.P + 1));
        for (size_t t = 0; t < T; t++) {
            float *dq = k.dz + t * m.Z + m.I + at;
            const float *q = k.u + t * m.K + at,
                        *scale = w.scales + (first + t) * 2 * m.G + unit % m.G;
            back_unit(dq, q, m.N, scale[0], 1 / tg_sqrt((double)m.N));
            back_unit(dq + m.G * m.N, q + m.G * m.N, m.N, scale[m.G], 1);
        }
    }
}

/* The sums over sequences, rows and heads. acc has a bit for each output: 8 is output 3, which
 * is added to if the bit is set. */
static void sum_heads(const tg_args *a, const mamba *m) {
    const work w = work_of(a, m);
    const float *dba = a->out[1];
    const size_t B = a->in_type[0].dim[0];
    float *to = a->out[3];
    for (size_t h = 0; h < m->H; h++) {
        double bias = 0, decay = 0;
        for (size_t r = 0; r < rows_of(a); r++) bias += (double)dba[r * 2 * m->H + m->H + h];
        for (size_t b = 0; b < B; b++) decay += (double)w.sums[(b * m->H + h) * (m->P + 1) + m->P];
        put(to + h, bias, a->acc & 8);
        put(to + m->H + h, decay, a->acc & 8);
    }
    for (size_t p = 0; p < m->P; p++) {
        double gain = 0;
        for (size_t i = 0; i < B * m->H; i++) gain += (double)w.sums[i * (m->P + 1) + p];
        put(to + 2 * m->H + p, gain, a->acc & 8);
    }
}

/* The last unit is the heads'. */
static size_t back_column_units(const tg_args *a) { return delta_columns(a) + 1; }
static void run_back_columns(const tg_args *a, size_t begin, size_t end) {
    const mamba m = delta_sizes(a, 2);
    for (size_t unit = begin; unit < end; unit++) {
        if (unit == delta_columns(a)) {
            sum_heads(a, &m);
            continue;
        }
        columns k;
        tap_sums s = { { 0 }, { 0 } };
        columns_begin(&k, &m, unit, a->in[2], NULL);
        for (size_t b = 0; b < a->in_type[0].dim[0]; b++) {
            const rows r = sequence(a, &m, b);
            back_columns(&k, &r, (float *)a->out[0] + b * r.n * m.Z, &s);
        }
        put_taps(&k, &s, a->out[2], a->acc & 4);
    }
}

static const tg_variant gradient[] = {
    { .name = "heads",
      .phase = { { delta_columns, delta_columns_run },
                 { rows_of, run_rows },
                 { back_units, run_back },
                 { back_column_units, run_back_columns } },
      .scratch_bytes = work_bytes,
      .local_bytes = back_bytes },
};
TG_KERNELS(delta_net_grad, gradient);
