/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mamba2_grad - the gradients of mamba2.
 *
 *   in 0  z [B,T,2I+2GN+H]   in 1  w [K,L]   in 2  bias [K]   in 3  heads [3H]   in 4  dy [B,T,I]
 *   out 0 dz                 out 1 dw        out 2 dbias      out 3 dheads: all but dz accumulate
 *
 * With g = dy silu(gate), and D the gradient of the state, which goes backwards through the rows:
 *
 *   D += g C^T      dC = S^T g      dB = s D^T x      dx = s D B + d g      ds = x . D B + k q
 *   D *= exp(k s)   q = exp(k s) D . S of the row before      k = -exp(a)   da = sum of k s q
 *
 * The reference is the dual form again: pairs of rows, and no state. dz has meanwhile the gradients
 * of what the convolution gave.
 */
#include "ops/mamba2/mamba2_rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    mamba m;
    if (!mamba_want(g, n, 1, 3, &m) || !tg_want_type(g, n, 4, mamba_y(&n->in[0]->type, &m))) return;
    for (int k = 0; k < 4; k++) n->out[k].type = n->in[k]->type;
}

static void add(TG_REAL *to, double x) { *to = (TG_REAL)((double)*to + x); }

/* What SiLU makes of column c. */
static double ref_u(const tg_args *a, const mamba *m, size_t r, size_t c) {
    const size_t t = r % a->in_type[0].dim[1];
    return act_silu(mamba_conv(m, (const TG_REAL *)a->in[0] + r * m->Z, t, a->in[1], a->in[2], c));
}

/* The part of row `from` in the gradient of row r, which is not before it, at head h. kept: what is
 * left of it there. Returns the sum that the logs of what was kept in between multiply. */
static double ref_pair(const tg_args *a, const mamba *m, size_t r, size_t from, size_t h,
                       double kept) {
    const TG_REAL *z = a->in[0], *dy = (const TG_REAL *)a->in[4] + r * m->I, *heads = a->in[3];
    TG_REAL *dz = a->out[0], *now = dz + r * m->Z + m->I, *then = dz + from * m->Z + m->I;
    const size_t b = mamba_b(m, h), c = b + m->G * m->N;
    const double step = mamba_step(m, z + from * m->Z, heads, h);
    double both = 0, across = 0;
    for (size_t n = 0; n < m->N; n++) both += ref_u(a, m, from, b + n) * ref_u(a, m, r, c + n);
    for (size_t p = h * m->P; p < (h + 1) * m->P; p++) {
        const double gate = (double)z[r * m->Z + p], x = ref_u(a, m, from, p);
        const double g = (double)dy[p] * act_silu(gate);
        across += x * g;
        add(&then[p], kept * step * both * g);
        add(&dz[r * m->Z + p], (double)dy[p] * act_silu_d(gate) * kept * step * both * x);
    }
    for (size_t n = 0; n < m->N; n++) {
        add(&then[b + n], kept * step * across * ref_u(a, m, r, c + n));
        add(&now[c + n], kept * step * across * ref_u(a, m, from, b + n));
    }
    add(&then[m->K + h], kept * both * across);
    return kept * step * both * across;
}

/* Row r, t of its sequence, at head h: what it reads, and x on its way past the state. */
static void ref_head(const tg_args *a, const mamba *m, size_t r, size_t t, size_t h) {
    const TG_REAL *z = a->in[0], *dy = (const TG_REAL *)a->in[4] + r * m->I, *heads = a->in[3];
    TG_REAL *dz = (TG_REAL *)a->out[0], *dheads = a->out[3];
    const double k = mamba_decay(m, heads, h);
    double kept = 1, all = 0;
    for (size_t p = h * m->P; p < (h + 1) * m->P; p++) {
        const double gate = (double)z[r * m->Z + p], x = ref_u(a, m, r, p);
        const double d = (double)heads[2 * m->H + h], g = (double)dy[p] * act_silu(gate);
        add(&dz[r * m->Z + p], (double)dy[p] * act_silu_d(gate) * d * x);
        add(&dz[r * m->Z + m->I + p], d * g);
        add(&dheads[2 * m->H + h], g * x);
    }
    /* The parts of rows before `from` are kept by its step, too: their sum is told from the last.
     */
    for (size_t back = 0; back <= t; back++) {
        all += ref_pair(a, m, r, r - back, h, kept);
        kept *= tg_exp(mamba_step(m, z + (r - back) * m->Z, heads, h) * k);
    }
    kept = 1;
    for (size_t back = 0; back <= t; back++) {
        const size_t from = r - back;
        const double step = mamba_step(m, z + from * m->Z, heads, h);
        double both = 0, across = 0;
        for (size_t n = 0; n < m->N; n++)
            both += ref_u(a, m, from, mamba_b(m, h) + n) *
                    ref_u(a, m, r, mamba_b(m, h) + m->G * m->N + n);
        for (size_t p = h * m->P; p < (h + 1) * m->P; p++)
            across += ref_u(a, m, from, p) * (double)dy[p] * act_silu((double)z[r * m->Z + p]);
        all -= kept * step * both * across;
        add(&dz[from * m->Z + m->I + m->K + h], k * all);
        add(&dheads[m->H + h], k * step * all);
        kept *= tg_exp(step * k);
    }
}

/* From what SiLU gave back to the columns of z: rows rise, and none reads one before it. */
static void ref_columns(const tg_args *a, const mamba *m) {
    const TG_REAL *z = a->in[0], *w = a->in[1];
    TG_REAL *dz = a->out[0], *dw = a->out[1], *dbias = a->out[2];
    const size_t T = a->in_type[0].dim[1], rows = tg_type_rows(&a->in_type[0]);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < m->K; c++) {
            TG_REAL *d = &dz[r * m->Z + m->I + c];
            *d = (TG_REAL)((double)*d *
                           act_silu_d(mamba_conv(m, z + r * m->Z, r % T, w, a->in[2], c)));
            add(&dbias[c], (double)*d);
            mamba_add_taps(m, z, dz, dw, r, T, c);
        }
    mamba_columns_back(m, w, dz, rows, T);
}

static void ref(const tg_args *a) {
    const mamba m = mamba_sizes(a, 1);
    const size_t T = a->in_type[0].dim[1], rows = tg_type_rows(&a->in_type[0]);
    TG_REAL *dz = a->out[0];
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < tg_type_elems(&a->out_type[k]) && !(a->acc >> k & 1); i++)
            ((TG_REAL *)a->out[k])[i] = 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t h = 0; h < m.H; h++) ref_head(a, &m, r, r % T, h);
    ref_columns(a, &m);
    for (size_t i = 0; i < rows * m.H; i++) {
        const size_t at = i / m.H * m.Z + m.I + m.K + i % m.H;
        const double raw =
            (double)((const TG_REAL *)a->in[0])[at] + (double)((const TG_REAL *)a->in[3])[i % m.H];
        dz[at] = (TG_REAL)((double)dz[at] * act_sigmoid(raw));
        add((TG_REAL *)a->out[3] + i % m.H, (double)dz[at]);
    }
}

/* Tolerances are those of sums of floats over rows and states. */
#define CASE(b, t, h, p, g, n, l, add, bound)                                                      \
    { .in = { TG_T3(F32, b, t, 2 * (h) * (p) + 2 * (g) * (n) + (h)),                               \
              TG_T2(F32, (h) * (p) + 2 * (g) * (n), l), TG_T1(F32, (h) * (p) + 2 * (g) * (n)),     \
              TG_T1(F32, 3 * (h)), TG_T3(F32, b, t, (h) * (p)) },                                  \
      .attr = { .i = { h, p, g, n } },                                                             \
      .acc = (add),                                                                                \
      .tol = (bound) }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 1, 1, 1, 2, 0, 1e-5),
    CASE(2, 3, 2, 3, 1, 2, 4, 14, 1e-5),
    CASE(1, 9, 4, 2, 2, 3, 3, 0, 3e-5),
    CASE(2, 37, 2, 17, 1, 5, 4, 14, 2e-4),
};

static const char *const common[] = {
#include "ops/mamba2/mamba2_common.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/mamba2/mamba2_grad.wgsl.h"
};
static size_t conv_groups(const tg_args *a) {
    const mamba m = mamba_sizes(a, 1);
    return tg_shader_parts(tg_type_rows(&a->in_type[0]) * m.K, TG_SHADER_ELEMS);
}
static size_t back_groups(const tg_args *a) { return a->in_type[0].dim[0] * (size_t)a->attr.i[0]; }
static size_t column_groups(const tg_args *a) {
    const mamba m = mamba_sizes(a, 1);
    return tg_shader_parts(m.K, 64);
}
static size_t head_groups(const tg_args *a) { return tg_shader_parts((size_t)a->attr.i[0], 64); }
/* The text says what is in it; a state is kept of every sixteenth row, and of sixteen in a row. */
static size_t scratch_bytes(const tg_args *a) {
    const mamba m = mamba_sizes(a, 1);
    const size_t T = a->in_type[0].dim[1], states = 18 + tg_shader_parts(T, 16);
    return sizeof(float) * (tg_type_rows(&a->in_type[0]) * m.K +
                            back_groups(a) * (2 * T * m.N + 2 + states * m.P * m.N));
}
#define PASS(name, count, a, b, c)                                                                 \
    { .entry = name,                                                                               \
      .wgsl = { common, wgsl },                                                                    \
      .bind = { TG_BIND_IN(0), a, TG_BIND_IN(2), b, c, TG_BIND_OUT(0), TG_BIND_SCRATCH },          \
      .groups = count }
static const tg_shader shaders[] = {
    { .name = "heads",
      .pass = { PASS("conv", conv_groups, TG_BIND_IN(1), TG_BIND_IN(3), TG_BIND_IN(4)),
                PASS("back", back_groups, TG_BIND_IN(1), TG_BIND_IN(3), TG_BIND_IN(4)),
                PASS("cols", column_groups, TG_BIND_IN(1), TG_BIND_OUT(1), TG_BIND_OUT(2)),
                PASS("numbers", head_groups, TG_BIND_OUT(3), TG_BIND_IN(3), TG_BIND_IN(4)) },
      .scratch_bytes = scratch_bytes },
};

TG_OP_DESC(mamba2_grad) = {
    .name = "mamba2_grad",
    TG_DOC "gradients of mamba2 with respect to its rows, taps, biases and heads",
    .in_names = { "z", "w", "bias", "heads", "dy" },
    .out_names = { "dz", "dw", "dbias", "dheads" },
    .n_in = 5,
    .n_out = 4,
    .accumulates = 14,
    .infer = infer,
    TG_REFS(mamba2_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
