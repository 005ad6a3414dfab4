/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_net.simd.h - delta_net and delta_net_cached.
 *
 * One description serves whole sequences and rows behind a cache, which so have the same bits:
 * rows go on from a state one by one, however they are cut. delta_net.c has the formula,
 * delta_net_rules.h how rows lie, delta_net_row.h the step of sixteen columns.
 *
 *     phase     a unit is                  reads                     writes
 *     columns   16 columns of K            z, taps                   u [rows][K], in scratch
 *     rows      a row                      u, ba, heads              u: unit q and k; numbers
 *     heads     a head of a sequence       u, numbers, z's gates     y [rows][I], the state
 *
 * Phases end in a barrier, and units of one phase write apart from each other, so nothing is
 * shared but what an earlier phase has finished. Rows are a phase of their own because several
 * heads of values read one head of keys: its length is taken once, not by each.
 *
 * A column of a state [P,N] needs no other column of P. So sixteen columns, 64 N bytes, stay in
 * the first cache while all rows go by, and only then come the next sixteen. The cost of a head is
 * O(TPN).
 */
#include "ops/delta_net/delta_net_row.h"
#include "ops/rms_norm/rms_row.h"

/* Rows of a sequence at a head. z, u and numbers are those of the first row; gains are the
 * norm's. */
typedef struct head_rows {
    const mamba *m;
    const tg_attr *attr;
    const float *z, *u, *numbers, *gains;
    size_t h, n;
} head_rows;

/* Columns [p, p + n) of the state over all rows. The first row goes from `from`, all others go
 * on from what was just written: from and to may be two slots of a cache, or the same. */
static inline __attribute__((always_inline)) void rows_block(const head_rows *r, size_t p,
                                                             const float *from, float *to, float *y,
                                                             size_t n) {
    const mamba *m = r->m;
    for (size_t i = 0; i < r->n; i++) {
        const delta_at k =
            delta_at_head(m, r->attr, r->h, r->u + i * m->K, r->numbers + 2 * i * m->H);
        delta_block(&k, m->N, i ? to : from, to, p, y + i * m->I + p, n);
    }
}

/* Sixteen columns after sixteen, from a state [P,N] to another one; y [n][I], at the head: what
 * is read, before norm and gate. The call with a constant 16 lets the compiler drop masks; the
 * other is for a rest of P. */
TG_OUT_OF_LINE void head_states(const head_rows *r, const float *from, float *to, float *y) {
    const mamba *m = r->m;
    for (size_t p = 0; p < m->P; p += 16) {
        const size_t n = tg_min_size(16, m->P - p), at = p * m->N;
        if (n == 16)
            rows_block(r, p, from + at, to + at, y, 16);
        else
            rows_block(r, p, from + at, to + at, y, n);
    }
}

/* Norm and gate of a head, in place. It waits for all columns of the head, since the norm is
 * over P. */
TG_OUT_OF_LINE void head_gates(const head_rows *r, float *y) {
    const mamba *m = r->m;
    for (size_t i = 0; i < r->n; i++) {
        const float *gate = r->z + i * m->Z + r->h * m->P;
        float *to = y + i * m->I;
        const tg_v scale = tg_vset(rms_scale(to, m->P, r->attr->f[0]));
        for (size_t p = 0; p < m->P; p += 16) {
            const size_t n = tg_min_size(16, m->P - p);
            const tg_v normed =
                tg_vmul(tg_vmul(tg_vload_n(to + p, n), scale), tg_vload_n(r->gains + p, n));
            tg_vstore_n(to + p, tg_vmul(normed, tg_vsilu(tg_vload_n(gate + p, n))), n);
        }
    }
}

/* Scratch: u [rows][K], and behind it the numbers [rows][2H]. */
static size_t work_bytes_of(const tg_args *a, const mamba *m) {
    return tg_type_rows(&a->in_type[0]) * (m->K + 2 * m->H) * sizeof(float);
}
static float *numbers_of(const tg_args *a, const mamba *m) {
    return (float *)a->scratch + tg_type_rows(&a->in_type[0]) * m->K;
}
/* Of one head, [P,N]; a sequence without a cache has it in the worker's own memory. */
static size_t state_bytes(const tg_args *a) {
    return (size_t)a->attr.i[1] * (size_t)a->attr.i[3] * sizeof(float);
}
static size_t row_units(const tg_args *a) { return tg_type_rows(&a->in_type[0]); }
static void begin_rows(const tg_args *a, const mamba *m, const float *ba, const float *heads,
                       size_t begin, size_t end) {
    for (size_t r = begin; r < end; r++)
        row_begin(m, ba + r * 2 * m->H, heads, (float *)a->scratch + r * m->K,
                  numbers_of(a, m) + r * 2 * m->H, NULL);
}

/* ------------------------------------------------------------------------------------- sequences
 */

static void run_rows(const tg_args *a, size_t begin, size_t end) {
    const mamba m = delta_sizes(a, 2);
    begin_rows(a, &m, a->in[1], a->in[3], begin, end);
}
/* A head of a sequence is the smallest part that has a state of its own: B H units. */
static size_t head_units(const tg_args *a) { return a->in_type[0].dim[0] * (size_t)a->attr.i[0]; }
/* Each sequence begins with a state of zeros. */
static void run_heads(const tg_args *a, size_t begin, size_t end) {
    const mamba m = delta_sizes(a, 2);
    for (size_t unit = begin; unit < end; unit++) {
        const size_t h = unit % m.H;
        const rows s = sequence(a, &m, unit / m.H);
        const size_t first = unit / m.H * s.n;
        const head_rows r = { &m,
                              &a->attr,
                              s.z,
                              (const float *)a->scratch + first * m.K,
                              numbers_of(a, &m) + first * 2 * m.H,
                              (const float *)a->in[3] + 2 * m.H,
                              h,
                              s.n };
        float *y = (float *)a->out[0] + first * m.I + h * m.P;
        memset(a->local, 0, state_bytes(a));
        head_states(&r, a->local, a->local, y);
        head_gates(&r, y);
    }
}
static size_t work_bytes(const tg_args *a) {
    const mamba m = delta_sizes(a, 2);
    return work_bytes_of(a, &m);
}

static const tg_variant sequences[] = {
    { .name = "heads",
      .phase = { { delta_columns, delta_columns_run },
                 { row_units, run_rows },
                 { head_units, run_heads } },
      .scratch_bytes = work_bytes,
      .local_bytes = state_bytes },
};
TG_KERNELS(delta_net, sequences);

/* ---------------------------------------------------------------------------------- behind a cache
 */

/* Input 4 has the taps here, input 2 over whole sequences: sizes follow from their number. */
static size_t cached_column_units(const tg_args *a) {
    const mamba m = delta_sizes(a, 4);
    return tg_units(m.K, 16);
}
/* A call may hold rows of several sequences, one run behind the other (part_at). keep() stores
 * the newest rows of what the convolution saw after this unit has read the old ones; units touch
 * their own columns alone. */
static void run_cached_columns(const tg_args *a, size_t begin, size_t end) {
    const mamba m = delta_sizes(a, 4);
    for (size_t unit = begin; unit < end; unit++) {
        columns k;
        columns_begin(&k, &m, unit, a->in[4], NULL);
        for (size_t r = 0; r < a->in_type[0].dim[0];) {
            const part p = part_at(a, &m, r);
            columns_run(&k, &p.rows, (float *)a->scratch + r * m.K);
            keep(&k, &p.rows, p.to);
            r += p.rows.n;
        }
    }
}
static void run_cached_rows(const tg_args *a, size_t begin, size_t end) {
    const mamba m = delta_sizes(a, 4);
    begin_rows(a, &m, a->in[6], a->in[5], begin, end);
}
static size_t cached_head_units(const tg_args *a) { return (size_t)a->attr.i[0]; }
/* A unit is a head in all sequences of the call. A sequence that begins has no state to go on
 * from: its own slot is set to zeros first, since slots are used again. */
static void run_cached_heads(const tg_args *a, size_t begin, size_t end) {
    const mamba m = delta_sizes(a, 4);
    for (size_t h = begin; h < end; h++)
        for (size_t first = 0; first < a->in_type[0].dim[0];) {
            const part p = part_at(a, &m, first);
            const size_t at = mamba_at(&m, h, 0, 0);
            const head_rows r = { &m,
                                  &a->attr,
                                  p.rows.z,
                                  (const float *)a->scratch + first * m.K,
                                  numbers_of(a, &m) + first * 2 * m.H,
                                  (const float *)a->in[5] + 2 * m.H,
                                  h,
                                  p.rows.n };
            float *y = (float *)a->out[0] + first * m.I + h * m.P;
            if (!p.from) memset(p.to + at, 0, state_bytes(a));
            head_states(&r, (p.from ? p.from : p.to) + at, p.to + at, y);
            head_gates(&r, y);
            first += p.rows.n;
        }
}
static size_t cached_work_bytes(const tg_args *a) {
    const mamba m = delta_sizes(a, 4);
    return work_bytes_of(a, &m);
}

static const tg_variant cached[] = {
    { .name = "heads",
      .phase = { { cached_column_units, run_cached_columns },
                 { row_units, run_cached_rows },
                 { cached_head_units, run_cached_heads } },
      .scratch_bytes = cached_work_bytes },
};
TG_KERNELS(delta_net_cached, cached);
