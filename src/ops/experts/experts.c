/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experts - products of each token with the matrices of the experts that it goes through:
 *
 *   y[t, choice j] = x[t] w_e^T, of two matrices both,      e = ids[t,j]
 *
 *   in 0  x [..,K], or (own) [..,k*K], of each choice its own      in 1  ids [..,k] i32
 *   in 2  w [E*N,K]      in 3  w1 [E*N,K], may be absent            out 0  y [..,k*N], or
 * [..,2*k*N] i[0]  E      i[1]  own
 *
 * experts_rules.h draws the rows of y. Weights are floats of training or as files have them;
 * kernels of packed ones may round x to 8 bits as those of matmul do (lever int8_activations). A
 * choice is a row of its own: its bits do not depend on what else is in the call.
 */
#include "ops/build.h"
#include "ops/experts/experts_cases.h"
#include "ops/experts/experts_shader.h"

static const tg_type none = { .n_dims = 0 };
static experts_sizes sizes_of(const tg_node *n) {
    return experts_sizes_of(&n->in[EXPERTS_IDS]->type, &n->in[EXPERTS_W]->type,
                            n->in[EXPERTS_W1] ? &n->in[EXPERTS_W1]->type : &none, &n->attr);
}

static void infer(tg_graph *g, tg_node *n) {
    if (!experts_want_weights(g, n)) return;
    experts_sizes s = sizes_of(n);
    if (!experts_want_choices(g, n, EXPERTS_IDS, experts_x_cols(&s))) return;
    n->out[0].type = n->in[EXPERTS_X]->type;
    n->out[0].type.dim[n->out[0].type.n_dims - 1] = experts_y_cols(&s);
}

static void ref(const tg_args *a) {
    const experts_sizes s = experts_sizes_of_args(a);
    const int32_t *ids = a->in[EXPERTS_IDS];
    for (size_t i = 0; i < s.tokens * s.k * s.parts; i++) {
        const size_t part = i % s.parts, t = i / s.parts / s.k, j = i / s.parts % s.k;
        const size_t e = tg_clamp_id(ids[t * s.k + j], s.experts);
        const TG_REAL *x = (const TG_REAL *)a->in[EXPERTS_X] + experts_x_at(&s, t, j);
        TG_REAL *y = (TG_REAL *)a->out[0] + experts_y_at(&s, t, j, part);
        for (size_t n = 0; n < s.N; n++) {
            double sum = 0;
            for (size_t c = 0; c < s.K; c++)
                sum += (double)x[c] * experts_weight(a, EXPERTS_W + (int)part, e * s.N + n, c);
            y[n] = (TG_REAL)sum;
        }
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    tg_value *const ids = n->in[EXPERTS_IDS], *const w[2] = { n->in[EXPERTS_W], n->in[EXPERTS_W1] };
    tg_attr a = n->attr;
    din[EXPERTS_X] = tg_experts_x_grad(g, dy[0], ids, w, &a);
    a.i[EXPERTS_ROWS] = (int32_t)sizes_of(n).N;
    for (int part = 0; part < EXPERTS_PARTS && w[part] && experts_is_floats(&w[0]->type); part++) {
        a.i[EXPERTS_PART] = part;
        din[EXPERTS_W + part] = tg_experts_w_grad(g, dy[0], ids, n->in[EXPERTS_X], &a);
    }
}

/* One matrix or two, by their types; of each choice its own columns, or not. Ids go beyond E. */
#define CASE(rows, k, E, own, x_cols, tol_, ...)                                                   \
    { .in = { TG_T2(F32, rows, x_cols), TG_T2(I32, rows, k), __VA_ARGS__ },                        \
      .attr = { .i = { E, own } },                                                                 \
      .i32_below = (E) + 1,                                                                        \
      .prepare = experts_prepare,                                                                  \
      .tol = (tol_) }
#define ONE(type, rows, k, E, n, K, tol_)                                                          \
    CASE(rows, k, E, 1, (k) * (K), tol_, TG_CASE_MATRIX(type, (E) * (n), K))
#define TWO(type, type1, rows, k, E, n, K, tol_)                                                   \
    CASE(rows, k, E, 0, K, tol_, TG_CASE_MATRIX(type, (E) * (n), K),                               \
         TG_CASE_MATRIX(type1, (E) * (n), K))
#define ROWS(type, rows, k, E, n, K, tol_)                                                         \
    CASE(rows, k, E, 0, K, tol_, TG_T2(type, (E) * (n), K), TG_T2(type, (E) * (n), K))
TG_CASE_TABLE cases[] = {
    ROWS(F32, 1, 1, 1, 1, 1, 1e-5),
    ROWS(F32, 5, 2, 3, 7, 13, 1e-5),
    ROWS(F32, 19, 3, 4, 33, 67, 2e-5),
    CASE(6, 2, 5, 1, 2 * 17, 1e-5, TG_T2(F32, 5 * 16, 17)),
    { .in = { TG_T3(F32, 2, 3, 5), TG_T3(I32, 2, 3, 2), TG_T2(F32, 12, 5) },
      .attr = { .i = { 4 } },
      .i32_below = 4,
      .tol = 1e-5 },
    ROWS(F16, 3, 2, 3, 24, 40, 1e-5),
    ROWS(BF16, 40, 2, 3, 16, 33, 1e-5),
    TWO(F32, F32, 5, 2, 3, 7, 13, 1e-5),
    TWO(F16, F16, 9, 2, 4, 16, 64, 1e-5),
    ONE(BF16, 31, 3, 4, 20, 48, 1e-5),
    TWO(Q4X16, Q4X16, 1, 2, 5, 16, 32, 1e-5),
    TWO(Q4X16, Q8X16, 5, 2, 3, 24, 96, 2e-5),
    TWO(Q4MX16, Q4MX16, 1, 8, 16, 48, 64, 2e-5),
    ONE(Q4MX16, 4, 3, 5, 40, 64, 2e-5),
    ONE(Q5X16, 67, 2, 3, 33, 32, 2e-5),
    TWO(Q5MX16, Q5MX16, 7, 1, 2, 16, 96, 2e-5),
    ONE(Q8X16, 1, 2, 7, 1, 32, 2e-5),
    TWO(Q8X16, F16, 131, 2, 3, 18, 64, 5e-5),
    ONE(Q4KX16, 13, 2, 3, 33, 256, 5e-5),
    TWO(Q8MX16, Q8MX16, 25, 4, 6, 19, 96, 2e-4), /* terms up to 3,000, which cancel */
};

static const char *const text[] = {
#include "ops/experts/experts.wgsl.h"
};
/* A thread has an element. */
static size_t groups(const tg_args *a) {
    return tg_shader_parts(tg_type_elems(&a->out_type[0]), TG_SHADER_COLS);
}
static const tg_shader shaders[] = { EXPERTS_SHADERS(text, groups) };

TG_OP_DESC(experts) = {
    .name = "experts",
    TG_DOC "products of rows with the matrices of the experts that they go through",
    .in_names = { "x", "ids", "w", "w1" },
    .out_names = { "y" },
    .n_in = 4,
    .n_in_optional = 1,
    .n_out = 1,
    .reads_packed = 1 << EXPERTS_W | 1 << EXPERTS_W1,
    .infer = infer,
    TG_REFS(experts, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    .flop = experts_flop,
    TG_CASES(cases),
};
