/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mamba2.simd.h - mamba2, mamba2_cached and mamba2_grad, sixteen columns at a time.
 *
 * One description serves whole sequences and rows behind a cache, which so have the same bits:
 * rows go on from a state one by one, however they are cut. Units are columns of the convolution,
 * then heads; a head's state stays in the first two caches while rows go by. mamba2.c has the
 * formula, mamba2_grad.c those of the gradient, mamba2_rules.h how rows and states lie, columns.h
 * the convolution.
 *
 *     phase          a unit is                        writes
 *     columns        16 columns of K                  u [rows][K], in scratch
 *     heads          a head of a sequence             y [rows][I], the state
 *     back           a group of heads in a sequence   dz of all but the convolution; sums
 *     back columns   16 columns of K; the last unit:  dz through the convolution, dw, dbias;
 *                    sums of heads                    dheads
 *
 * Phases end in a barrier, and units of one phase write apart from each other.
 *
 * A state [P,N] lies in blocks of sixteen columns of P, [N][16], so that a step reads and writes
 * whole vectors whatever N is; what is left of P is a narrower block. The reference is another
 * algorithm, the dual form without a state: agreement of the two is no accident of shared code.
 */
#include "ops/mamba2/columns.h"

/* ------------------------------------------------------------------------------------------ heads
 */

/* A row at a head: its columns of the convolution, and its numbers. */
typedef struct at_head {
    const float *x, *b, *c;
    float step, kept, skip;
} at_head;

/* decay: mamba_decay of the head, the log of what is kept in a step of 1. The step is rounded to
 * f32 before the power is taken of it, so that step and kept belong to the same number, here and
 * in the gradient. */
static at_head head_at(const mamba *m, size_t h, const float *z, const float *u, const float *heads,
                       double decay) {
    const double step = mamba_step(m, z, heads, h);
    return (at_head) {
        .x = u + h * m->P,
        .b = u + mamba_b(m, h),
        .c = u + mamba_b(m, h) + m->G * m->N,
        .step = (float)step,
        .kept = (float)tg_exp((double)(float)step * decay),
        .skip = heads[2 * m->H + h],
    };
}

/* Sixteen columns, or n of them, go on by a row: [N][n] of a state. y is what the new state
 * gives, and d x. n is a constant where it is 16, and the compiler drops the masks. */
static inline __attribute__((always_inline)) void advance_block(const at_head *k, size_t N,
                                                                const float *from, float *to,
                                                                const float *x, float *y,
                                                                size_t n) {
    const tg_v v = tg_vload_n(x, n), kept = tg_vset(k->kept);
    const tg_v more = tg_vmul(tg_vset(k->step), v);
    tg_v sum = tg_vmul(tg_vset(k->skip), v);
    for (size_t i = 0; i < N; i++) {
        const tg_v s = tg_vfma(tg_vset(k->b[i]), more, tg_vmul(kept, tg_vload_n(from + i * n, n)));
        tg_vstore_n(to + i * n, s, n);
        sum = tg_vfma(tg_vset(k->c[i]), s, sum);
    }
    tg_vstore_n(y, sum, n);
}

/* The whole head goes on by a row. y [P] before the gate; from and to may be the same. */
TG_OUT_OF_LINE void advance(const mamba *m, const at_head *k, const float *from, float *to,
                            float *y) {
    for (size_t p = 0; p < m->P; p += 16) {
        const size_t n = tg_min_size(16, m->P - p);
        if (n == 16)
            advance_block(k, m->N, from + p * m->N, to + p * m->N, k->x + p, y + p, 16);
        else
            advance_block(k, m->N, from + p * m->N, to + p * m->N, k->x + p, y + p, n);
    }
}

/* Rows at head h, on a state [P,N] of its own, which is left as it is behind the last row. y
 * [n][I]. O(P N) a row. */
TG_OUT_OF_LINE void head_run(const mamba *m, size_t h, const rows *r, const float *u,
                             const float *heads, float *state, float *y) {
    const double decay = mamba_decay(m, heads, h);
    for (size_t i = 0; i < r->n; i++) {
        const float *gate = r->z + i * m->Z + h * m->P;
        float *to = y + i * m->I + h * m->P;
        const at_head k = head_at(m, h, r->z + i * m->Z, u + i * m->K, heads, decay);
        advance(m, &k, state, state, to);
        for (size_t p = 0; p < m->P; p += 16) {
            const size_t n = tg_min_size(16, m->P - p);
            tg_vstore_n(to + p, tg_vmul(tg_vload_n(to + p, n), tg_vsilu(tg_vload_n(gate + p, n))),
                        n);
        }
    }
}

/* ------------------------------------------------------------------------------------- sequences
 */

/* Input 1 has the taps here, input 4 behind a cache: sizes follow from their number. */
static size_t column_units(const tg_args *a) {
    const mamba m = mamba_sizes(a, 1);
    return tg_units(m.K, 16);
}
static size_t head_units(const tg_args *a) { return a->in_type[0].dim[0] * (size_t)a->attr.i[0]; }
static size_t u_elems(const tg_args *a) {
    const mamba m = mamba_sizes(a, 1);
    return tg_type_rows(&a->in_type[0]) * m.K;
}
static size_t u_bytes(const tg_args *a) { return u_elems(a) * sizeof(float); }
static size_t state_bytes(const tg_args *a) {
    return (size_t)a->attr.i[1] * (size_t)a->attr.i[3] * sizeof(float);
}

static void run_columns(const tg_args *a, size_t begin, size_t end) {
    const mamba m = mamba_sizes(a, 1);
    for (size_t unit = begin; unit < end; unit++) {
        columns k;
        columns_begin(&k, &m, unit, a->in[1], a->in[2]);
        for (size_t b = 0; b < a->in_type[0].dim[0]; b++) {
            const rows r = sequence(a, &m, b);
            columns_run(&k, &r, (float *)a->scratch + b * r.n * m.K);
        }
    }
}

/* Each sequence begins with zeros, in the worker's own memory: nobody wants the last state. */
static void run_heads(const tg_args *a, size_t begin, size_t end) {
    const mamba m = mamba_sizes(a, 1);
    for (size_t unit = begin; unit < end; unit++) {
        const size_t b = unit / m.H;
        const rows r = sequence(a, &m, b);
        memset(a->local, 0, state_bytes(a));
        head_run(&m, unit % m.H, &r, (const float *)a->scratch + b * r.n * m.K, a->in[3], a->local,
                 (float *)a->out[0] + b * r.n * m.I);
    }
}

static const tg_variant sequences[] = {
    { .name = "heads",
      .phase = { { column_units, run_columns }, { head_units, run_heads } },
      .scratch_bytes = u_bytes,
      .local_bytes = state_bytes },
};
TG_KERNELS(mamba2, sequences);

/* ---------------------------------------------------------------------------------- behind a cache
 */

static size_t cached_column_units(const tg_args *a) {
    const mamba m = mamba_sizes(a, 4);
    return tg_units(m.K, 16);
}

/* A call may hold rows of several sequences, one run behind the other (part_at). keep() stores
 * the newest L-1 rows of what this unit's columns saw, after the old ones were read. */
static void run_cached_columns(const tg_args *a, size_t begin, size_t end) {
    const mamba m = mamba_sizes(a, 4);
    for (size_t unit = begin; unit < end; unit++) {
        columns k;
        columns_begin(&k, &m, unit, a->in[4], a->in[5]);
        for (size_t r = 0; r < a->in_type[0].dim[0];) {
            const part p = part_at(a, &m, r);
            columns_run(&k, &p.rows, (float *)a->scratch + r * m.K);
            keep(&k, &p.rows, p.to);
            r += p.rows.n;
        }
    }
}

static size_t cached_head_units(const tg_args *a) { return (size_t)a->attr.i[0]; }
static size_t cached_u_bytes(const tg_args *a) {
    const mamba m = mamba_sizes(a, 4);
    return a->in_type[0].dim[0] * m.K * sizeof(float);
}

/* A sequence may go on from one slot to another: its state is copied first, and then goes on in
 * its own. */
static void run_cached_heads(const tg_args *a, size_t begin, size_t end) {
    const mamba m = mamba_sizes(a, 4);
    for (size_t h = begin; h < end; h++)
        for (size_t r = 0; r < a->in_type[0].dim[0];) {
            const part p = part_at(a, &m, r);
            const size_t first = mamba_at(&m, h, 0, 0);
            float *state = p.to + first;
            if (!p.from)
                memset(state, 0, state_bytes(a));
            else if (p.from != p.to)
                memcpy(state, p.from + first, state_bytes(a));
            head_run(&m, h, &p.rows, (const float *)a->scratch + r * m.K, a->in[6], state,
                     (float *)a->out[0] + r * m.I);
            r += p.rows.n;
        }
}

static const tg_variant cached[] = {
    { .name = "heads",
      .phase = { { cached_column_units, run_cached_columns },
                 { cached_head_units, run_cached_heads } },
      .scratch_bytes = cached_u_bytes },
};
TG_KERNELS(mamba2_cached, cached);

/* -------------------------------------------------------------------------------------- gradient
 */

/* States are computed again from every sixteenth one, which is kept. */
enum { STRIDE = 16 };

/*
 * The worker's own memory: [P,N] each, but for rows [P].
 *
 *     d | state [STRIDE + 1] | kept [T / STRIDE, rounded up] | g [P] | y [P]
 *
 * d is the gradient of the state, which goes backwards through the rows.
 */
typedef struct back_memory {
    float *d, *state, *kept; /* of the state's gradient; [STRIDE + 1]; [T / STRIDE] */
    float *g, *y;
} back_memory;

static size_t back_bytes(const tg_args *a) {
    const size_t T = a->in_type[0].dim[1];
    return state_bytes(a) * (STRIDE + 2 + tg_units(T, STRIDE)) +
           2 * sizeof(float) * (size_t)a->attr.i[1];
}
static back_memory back_memory_of(const tg_args *a) {
    const size_t each = (size_t)a->attr.i[1] * (size_t)a->attr.i[3];
    float *d = a->local, *kept = d + (STRIDE + 2) * each;
    float *g = kept + tg_units(a->in_type[0].dim[1], STRIDE) * each;
    return (back_memory) { d, d + each, kept, g, g + a->attr.i[1] };
}

/* One row backwards, by the formulas of mamba2_grad.c. du: where the row's gradients of the
 * convolution go, those of B and C added, and behind them the step's; slope: of the step's
 * softplus; before and state: the state before the row and behind it; sums: of a and d. On entry
 * w->d is the gradient that later rows gave the state, on return that of the state before. */
static void back_row(const mamba *m, size_t h, const at_head *k, double decay, double slope,
                     const float *before, const float *state, const back_memory *w, float *du,
                     double sums[2]) {
    float *db = du + mamba_b(m, h), *dc = db + m->G * m->N;
    double step = 0, kept = 0;
    for (size_t p = 0; p < m->P; p += 16) {
        const size_t n = tg_min_size(16, m->P - p);
        const tg_v g = tg_vload_n(w->g + p, n), x = tg_vload_n(k->x + p, n);
        const tg_v more = tg_vmul(tg_vset(k->step), x);
        tg_v dx = tg_vzero(), q = tg_vzero();
        for (size_t i = 0; i < m->N; i++) {
            const size_t at = p * m->N + i * n;
            const tg_v d = tg_vfma(tg_vset(k->c[i]), g, tg_vload_n(w->d + at, n));
            dc[i] += tg_vsum(tg_vmul(tg_vload_n(state + at, n), g));
            db[i] += tg_vsum(tg_vmul(d, more));
            dx = tg_vfma(tg_vset(k->b[i]), d, dx);
            q = tg_vfma(d, tg_vload_n(before + at, n), q);
            tg_vstore_n(w->d + at, tg_vmul(tg_vset(k->kept), d), n);
        }
        step += (double)tg_vsum(tg_vmul(x, dx));
        kept += (double)tg_vsum(q);
        sums[1] += (double)tg_vsum(tg_vmul(g, x));
        dx = tg_vfma(tg_vset(k->step), dx, tg_vmul(tg_vset(k->skip), g));
        tg_vstore_n(du + h * m->P + p, dx, n);
    }
    kept *= (double)k->kept * decay;
    sums[0] += kept * (double)k->step;
    du[m->K + h] = (float)((step + kept) * slope);
}

/* g = dy silu(gate); and dgate by what came out of the state before the gate, where asked. */
static void back_gate(const mamba *m, const float *gate, const float *dy, const back_memory *w,
                      float *dgate) {
    for (size_t p = 0; p < m->P; p += 16) {
        const size_t n = tg_min_size(16, m->P - p);
        const tg_v z = tg_vload_n(gate + p, n), d = tg_vload_n(dy + p, n);
        tg_vstore_n(w->g + p, tg_vmul(d, tg_vsilu(z)), n);
        if (dgate)
            tg_vstore_n(dgate + p, tg_vmul(tg_vmul(d, tg_vload_n(w->y + p, n)), tg_vsilu_d(z)), n);
    }
}

/* A sequence at a head: once forwards, which keeps every sixteenth state, then backwards from
 * one kept state to the one before, whose rows are computed again. Two steps forwards and one
 * back a row, and T/16 + 18 states, in place of T of them. Numbers of a stretch's rows are on
 * the stack. */
static void back_head(const tg_args *a, const mamba *m, size_t b, size_t h, double sums[2]) {
    const size_t each = m->P * m->N;
    const back_memory w = back_memory_of(a);
    const rows r = sequence(a, m, b);
    const float *u = (const float *)a->scratch + b * r.n * m->K;
    const float *dy = (const float *)a->in[4] + b * r.n * m->I + h * m->P;
    float *dz = (float *)a->out[0] + b * r.n * m->Z;
    const float *heads = a->in[3];
    const double decay = mamba_decay(m, heads, h);
    at_head k[STRIDE];
    memset(w.d, 0, 2 * each * sizeof(float));
    for (size_t t = 0; t < r.n; t++) {
        const at_head now = head_at(m, h, r.z + t * m->Z, u + t * m->K, heads, decay);
        if (t % STRIDE == 0) memcpy(w.kept + t / STRIDE * each, w.state, each * sizeof(float));
        advance(m, &now, w.state, w.state, w.y);
        back_gate(m, r.z + t * m->Z + h * m->P, dy + t * m->I, &w, dz + t * m->Z + h * m->P);
    }
    for (size_t end = r.n; end > 0;) {
        const size_t first = (end - 1) / STRIDE * STRIDE;
        memcpy(w.state, w.kept + first / STRIDE * each, each * sizeof(float));
        for (size_t t = first; t < end; t++) {
            float *from = w.state + (t - first) * each;
            k[t - first] = head_at(m, h, r.z + t * m->Z, u + t * m->K, heads, decay);
            advance(m, &k[t - first], from, from + each, w.y);
        }
        for (size_t t = end; t-- > first;) {
            const float *before = w.state + (t - first) * each, *z = r.z + t * m->Z;
            const double slope = act_sigmoid((double)z[m->I + m->K + h] + (double)heads[h]);
            back_gate(m, z + h * m->P, dy + t * m->I, &w, NULL);
            back_row(m, h, &k[t - first], decay, slope, before, before + each, &w,
                     dz + t * m->Z + m->I, sums);
        }
        end = first;
    }
}

/* Units are groups of sequences, since a group's heads add up in the gradients of B and C. */
static size_t back_units(const tg_args *a) { return a->in_type[0].dim[0] * (size_t)a->attr.i[2]; }
static size_t back_scratch_bytes(const tg_args *a) {
    return (u_elems(a) + 2 * head_units(a)) * sizeof(float);
}

/* B and C of the group are zeros first; what a head gives of x, steps and gates is its own.
 * Scratch holds u, and behind it two sums for each head of a sequence. */
static void run_back(const tg_args *a, size_t begin, size_t end) {
    const mamba m = mamba_sizes(a, 1);
    const size_t T = a->in_type[0].dim[1], each = m.H / m.G;
    for (size_t unit = begin; unit < end; unit++) {
        const size_t b = unit / m.G, g = unit % m.G;
        float *dz = (float *)a->out[0] + b * T * m.Z + m.I + m.I + g * m.N;
        for (size_t t = 0; t < T; t++) {
            memset(dz + t * m.Z, 0, m.N * sizeof(float));
            memset(dz + t * m.Z + m.G * m.N, 0, m.N * sizeof(float));
        }
        for (size_t h = g * each; h < (g + 1) * each; h++) {
            float *kept = (float *)a->scratch + u_elems(a) + 2 * (b * m.H + h);
            double sums[2] = { 0, 0 };
            back_head(a, &m, b, h, sums);
            for (int i = 0; i < 2; i++) kept[i] = (float)sums[i];
        }
    }
}

/* The sums over sequences and rows of what heads have, in doubles and in a fixed order. acc has
 * a bit for each output, 8 is output 3: add to what is there. */
static void sum_heads(const tg_args *a, const mamba *m) {
    const float *parts = (const float *)a->scratch + u_elems(a), *dz = a->out[0];
    float *to = a->out[3];
    for (size_t h = 0; h < m->H; h++) {
        double bias = 0, decay = 0, skip = 0;
        for (size_t r = 0; r < tg_type_rows(&a->in_type[0]); r++)
            bias += (double)dz[r * m->Z + m->I + m->K + h];
        for (size_t b = 0; b < a->in_type[0].dim[0]; b++) {
            decay += (double)parts[2 * (b * m->H + h)];
            skip += (double)parts[2 * (b * m->H + h) + 1];
        }
        put(to + h, bias, a->acc & 8);
        put(to + m->H + h, decay, a->acc & 8);
        put(to + 2 * m->H + h, skip, a->acc & 8);
    }
}

/* The last unit is the heads'. */
static size_t back_column_units(const tg_args *a) { return column_units(a) + 1; }
static void run_back_columns(const tg_args *a, size_t begin, size_t end) {
    const mamba m = mamba_sizes(a, 1);
    for (size_t unit = begin; unit < end; unit++) {
        if (unit == column_units(a)) {
            sum_heads(a, &m);
            continue;
        }
        columns k;
        tap_sums s = { { 0 }, { 0 } };
        columns_begin(&k, &m, unit, a->in[1], a->in[2]);
        for (size_t b = 0; b < a->in_type[0].dim[0]; b++) {
            const rows r = sequence(a, &m, b);
            back_columns(&k, &r, (float *)a->out[0] + b * r.n * m.Z, &s);
        }
        put_taps(&k, &s, a->out[1], a->acc & 2);
        for (size_t i = 0; i < k.n; i++)
            put((float *)a->out[2] + k.c + i, (double)s.all[16 * m.L + i], a->acc & 4);
    }
}

static const tg_variant gradient[] = {
    { .name = "heads",
      .phase = { { column_units, run_columns },
                 { back_units, run_back },
                 { back_column_units, run_back_columns } },
      .scratch_bytes = back_scratch_bytes,
      .local_bytes = back_bytes },
};
TG_KERNELS(mamba2_grad, gradient);
