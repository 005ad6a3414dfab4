/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experts_x_grad - the gradient of experts with respect to x:
 *
 *   dx[t] = sum over choices j, and over both matrices, of dy[t, choice j] w_e,    e = ids[t,j]
 *
 *   in 0  dy [..,k*N], or [..,2*k*N]      in 1  ids [..,k] i32      in 2, 3  w, w1 as experts
 *   out 0 dx [..,K], or (own) [..,k*K], of each choice its own
 *   i     as experts
 */
#include "ops/build.h"
#include "ops/experts/experts_cases.h"
#include "ops/experts/experts_shader.h"

static void infer(tg_graph *g, tg_node *n) {
    static const tg_type none = { .n_dims = 0 };
    if (!experts_want_weights(g, n)) return;
    const experts_sizes s =
        experts_sizes_of(&n->in[EXPERTS_IDS]->type, &n->in[EXPERTS_W]->type,
                         n->in[EXPERTS_W1] ? &n->in[EXPERTS_W1]->type : &none, &n->attr);
    if (!experts_want_choices(g, n, EXPERTS_IDS, experts_y_cols(&s))) return;
    n->out[0].type = n->in[0]->type;
    n->out[0].type.dim[n->out[0].type.n_dims - 1] = experts_x_cols(&s);
}

/* What choice j of token t adds to column c. */
static double ref_at(const tg_args *a, const experts_sizes *s, size_t t, size_t j, size_t c) {
    const size_t e = tg_clamp_id(((const int32_t *)a->in[EXPERTS_IDS])[t * s->k + j], s->experts);
    double sum = 0;
    for (size_t part = 0; part < s->parts; part++) {
        const TG_REAL *dy = (const TG_REAL *)a->in[0] + experts_y_at(s, t, j, part);
        for (size_t n = 0; n < s->N; n++)
            sum += (double)dy[n] * experts_weight(a, EXPERTS_W + (int)part, e * s->N + n, c);
    }
    return sum;
}

static void ref(const tg_args *a) {
    const experts_sizes s = experts_sizes_of_args(a);
    for (size_t t = 0; t < s.tokens; t++)
        for (size_t c = 0; c < s.K; c++) {
            double sum = 0;
            for (size_t j = 0; j < s.k; j++) {
                const double more = ref_at(a, &s, t, j, c);
                sum += more;
                if (s.own) ((TG_REAL *)a->out[0])[experts_x_at(&s, t, j) + c] = (TG_REAL)more;
            }
            if (!s.own) ((TG_REAL *)a->out[0])[t * s.K + c] = (TG_REAL)sum;
        }
}

static void prepare(const tg_args *a) {
    for (int k = EXPERTS_W; k <= EXPERTS_W1 && a->in[k]; k++)
        if (!experts_is_floats(&a->in_type[k])) tg_case_fill_packed(a, k, (uint32_t)k);
}
#define CASE(rows, k, E, own, dy_cols, tol_, ...)                                                  \
    { .in = { TG_T2(F32, rows, dy_cols), TG_T2(I32, rows, k), __VA_ARGS__ },                       \
      .attr = { .i = { E, own } },                                                                 \
      .i32_below = (E) + 1,                                                                        \
      .prepare = prepare,                                                                          \
      .tol = (tol_) }
#define ONE(m, rows, k, E, n, K, tol_) CASE(rows, k, E, 1, (k) * (n), tol_, m((E) * (n), K))
#define TWO(m, rows, k, E, n, K, tol_)                                                             \
    CASE(rows, k, E, 0, 2 * (k) * (n), tol_, m((E) * (n), K), m((E) * (n), K))
#define FLOATS(n, K) TG_T2(F32, n, K)
#define HALVES(n, K) TG_T2(F16, n, K)
TG_CASE_TABLE cases[] = {
    ONE(FLOATS, 1, 1, 1, 1, 1, 1e-5),
    TWO(FLOATS, 5, 2, 3, 7, 13, 2e-5),
    ONE(FLOATS, 19, 3, 4, 33, 67, 4e-5),
    TWO(FLOATS, 33, 2, 5, 16, 130, 4e-5),
    TWO(HALVES, 3, 2, 3, 24, 40, 2e-5),
    ONE(TG_CASE_MATRIX_BF16, 3, 2, 3, 24, 40, 2e-5),
    TWO(TG_CASE_MATRIX_Q4MX16, 5, 3, 4, 24, 96, 5e-5),
    ONE(TG_CASE_MATRIX_Q8X16, 9, 2, 3, 18, 64, 5e-5),
    TWO(TG_CASE_MATRIX_Q4KX16, 2, 2, 3, 17, 256, 5e-5),
};

static const char *const text[] = {
#include "ops/experts/experts_x_grad.wgsl.h"
};
/* A thread has 32 columns. */
static size_t groups(const tg_args *a) {
    const experts_sizes s = experts_sizes_of_args(a);
    const size_t blocks = tg_shader_parts(s.K, TG_PACK_COLS);
    return tg_shader_parts(s.tokens * (s.own ? s.k : 1) * blocks, TG_SHADER_COLS);
}
static const tg_shader shaders[] = { EXPERTS_SHADERS(text, groups) };

TG_OP_DESC(experts_x_grad) = {
    .name = "experts_x_grad",
    TG_DOC "gradient of experts with respect to its rows",
    .in_names = { "dy", "ids", "w", "w1" },
    .out_names = { "dx" },
    .n_in = 4,
    .n_in_optional = 1,
    .n_out = 1,
    .reads_packed = 1 << EXPERTS_W | 1 << EXPERTS_W1,
    .infer = infer,
    TG_REFS(experts_x_grad, ref),
    TG_SHADERS(shaders),
    .flop = experts_flop,
    TG_CASES(cases),
};
