/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_grad - the gradients of rope: heads turned back by their positions, then the gradient of
 * their norm where there is one.
 *
 *   dz = dy turned by minus the angle:
 *     (dz[i], dz[i + R/2]) = (dy[i] cos + dy[i + R/2] sin,  dy[i + R/2] cos - dy[i] sin)
 *   without a norm  dx = dz;  with one, s = 1 / sqrt(mean(x^2) + eps), h = x * s, e = dz * norm:
 *   dx = s * (e - h * sum(e * h) / D)      dnorm = sum of dz * h over rows and heads; a norm of all
 *   heads together (i[3]) has H*D or K*D elements in the place of D, and no heads to sum over
 *
 *   in 0  dy, qkv's gradient [B,T,(H+2K)*D] or [T,..]    in 1  table [T,R]
 *   in 2  qkv as it went into rope, absent where there are no norms
 *   in 3  q_norm optional    in 4  k_norm optional, [D]; or as rope tells
 *   out 0  dqkv, may be the same memory as dy; value heads pass through
 *   out 1  dq_norm    out 2  dk_norm, zeros where the norm is absent; 1 and 2 accumulate
 *   i, f as rope
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rope/rope_rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!rope_want(g, n, 0, 1, 3) || !tg_want_type(g, n, 2, n->in[0]->type)) return;
    if (!n->in[2] && (n->in[3] || n->in[4])) {
        tg_graph_fail(g, n, TG_E_SHAPE, "want qkv where there are norms");
        return;
    }
    n->out[0].type = n->in[0]->type;
    for (int k = 0; k < 2; k++)
        n->out[1 + k].type = tg_type_1d(TG_F32, tg_normed_of(&n->attr, k).size);
}

/* dx may be dy: both elements of a pair are read before either is written. */
static void turn_back(const TG_REAL *dy, TG_REAL *dx, const TG_REAL *table, size_t turned,
                      size_t d) {
    for (size_t i = turned; i < d; i++) dx[i] = dy[i];
    for (size_t i = 0; i < turned / 2; i++) {
        const size_t j = i + turned / 2;
        const double p = (double)dy[i], q = (double)dy[j];
        const double c = (double)table[i], s = (double)table[j];
        dx[i] = (TG_REAL)(p * c + q * s);
        dx[j] = (TG_REAL)(q * c - p * s);
    }
}

/* dx holds dz. */
static void norm_back(const TG_REAL *x, TG_REAL *dx, const TG_REAL *norm, TG_REAL *dnorm, size_t d,
                      double eps) {
    double square = 0, sum = 0;
    for (size_t i = 0; i < d; i++) square += (double)x[i] * (double)x[i];
    const double s = 1 / tg_sqrt(square / (double)d + eps);
    for (size_t i = 0; i < d; i++) {
        const double h = (double)x[i] * s, dz = (double)dx[i];
        sum += dz * (double)norm[i] * h;
        dnorm[i] = (TG_REAL)((double)dnorm[i] + dz * h);
    }
    sum /= (double)d;
    for (size_t i = 0; i < d; i++)
        dx[i] = (TG_REAL)(s * ((double)dx[i] * (double)norm[i] - (double)x[i] * s * sum));
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t tokens = a->in_type[1].dim[0], turned = a->in_type[1].dim[1];
    for (int k = 1; k <= 2; k++)
        for (size_t i = 0; i < a->out_type[k].dim[0] && !(a->acc >> k & 1); i++)
            ((TG_REAL *)a->out[k])[i] = 0;
    for (size_t r = 0; r < tg_type_rows(&a->in_type[0]); r++) {
        const TG_REAL *dy = (const TG_REAL *)a->in[0] + r * s.row;
        const TG_REAL *table = (const TG_REAL *)a->in[1] + r % tokens * turned;
        TG_REAL *dx = (TG_REAL *)a->out[0] + r * s.row;
        for (size_t h = 0; h < s.n_q + s.n_kv; h++)
            turn_back(dy + h * s.size, dx + h * s.size, table, turned, s.size);
        for (int k = 0; k < 2; k++) {
            const tg_normed p = tg_normed_of(&a->attr, k);
            for (size_t i = 0, at = p.at; a->in[3 + k] && i < p.n; i++, at += p.size)
                norm_back((const TG_REAL *)a->in[2] + r * s.row + at, dx + at, a->in[3 + k],
                          a->out[1 + k], p.size, (double)a->attr.f[0]);
        }
        for (size_t i = tg_heads_v(&s, 0); i < s.row; i++) dx[i] = dy[i];
    }
}

#define CASE(type, qkv, t, h, k, d, turned, q_norm, k_norm, add)                                   \
    { .in = { type, TG_T2(F32, t, turned), qkv, q_norm, k_norm }, HEADS(h, k, d, 0, add) }
#define TOGETHER(b, t, h, k, d, turned, q_norm, k_norm, add)                                       \
    { .in = { WHOLE(b, t, h, k, d), TG_T2(F32, t, turned), WHOLE(b, t, h, k, d), q_norm, k_norm }, \
      HEADS(h, k, d, 1, add) }
#define HEADS(h, k, d, together, add)                                                              \
    .attr = { .i = { h, k, d, together }, .f = { 1e-6f } }, .tol = 1e-5, .acc = (add)
#define NORM(d)              TG_T1(F32, d)
#define ROWS(t, h, k, d)     TG_T2(F32, t, ((h) + 2 * (k)) * (d))
#define WHOLE(b, t, h, k, d) TG_T3(F32, b, t, ((h) + 2 * (k)) * (d))
/* Rows around a chunk of 32, halves of heads around a vector. */
TG_CASE_TABLE cases[] = {
    CASE(ROWS(1, 1, 1, 2), TG_ABSENT, 1, 1, 1, 2, 2, TG_ABSENT, TG_ABSENT, 0),
    CASE(WHOLE(2, 3, 9, 3, 64), TG_ABSENT, 3, 9, 3, 64, 64, TG_ABSENT, TG_ABSENT, 6),
    CASE(WHOLE(1, 1, 1, 1, 2), WHOLE(1, 1, 1, 1, 2), 1, 1, 1, 2, 2, NORM(2), NORM(2), 0),
    CASE(WHOLE(2, 5, 2, 1, 34), WHOLE(2, 5, 2, 1, 34), 5, 2, 1, 34, 34, NORM(34), NORM(34), 6),
    CASE(WHOLE(1, 31, 2, 2, 32), WHOLE(1, 31, 2, 2, 32), 31, 2, 2, 32, 32, NORM(32), NORM(32), 2),
    CASE(WHOLE(2, 16, 2, 1, 30), WHOLE(2, 16, 2, 1, 30), 16, 2, 1, 30, 30, TG_ABSENT, NORM(30), 0),
    CASE(WHOLE(3, 11, 4, 2, 16), WHOLE(3, 11, 4, 2, 16), 11, 4, 2, 16, 16, NORM(16), TG_ABSENT, 4),
    CASE(WHOLE(2, 5, 2, 1, 48), TG_ABSENT, 5, 2, 1, 48, 36, TG_ABSENT, TG_ABSENT, 0),
    CASE(WHOLE(2, 5, 2, 1, 34), WHOLE(2, 5, 2, 1, 34), 5, 2, 1, 34, 10, NORM(34), NORM(34), 6),
    CASE(WHOLE(1, 67, 4, 1, 128), WHOLE(1, 67, 4, 1, 128), 67, 4, 1, 128, 128, NORM(128), NORM(128),
         0),
    TOGETHER(2, 5, 4, 2, 6, 6, NORM(24), NORM(12), 0),
    TOGETHER(1, 67, 3, 1, 34, 20, NORM(102), NORM(34), 6),
    TOGETHER(2, 31, 2, 2, 40, 40, TG_ABSENT, NORM(80), 4),
};

static const char *const wgsl[] = {
#include "ops/rope/rope_grad.wgsl.h"
};
static size_t head_groups(const tg_args *a) {
    return tg_type_rows(&a->in_type[0]) * (size_t)(a->attr.i[0] + 2 * a->attr.i[1]);
}
static size_t row_parts(const tg_args *a) {
    return tg_shader_parts(tg_type_rows(&a->in_type[0]), TG_SHADER_ROWS);
}
/* Of both norms. */
static size_t norm_elems(const tg_args *a) {
    return tg_normed_of(&a->attr, 0).size + tg_normed_of(&a->attr, 1).size;
}
static size_t across(const tg_args *a) { return tg_shader_parts(norm_elems(a), TG_SHADER_COLS); }
static size_t part_groups(const tg_args *a) { return row_parts(a) * across(a); }
static size_t scratch_bytes(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    return (tg_type_rows(&a->in_type[0]) * (s.n_q + s.n_kv) + row_parts(a) * norm_elems(a)) *
           sizeof(float);
}

#define PASS(name, count, ...)                                                                     \
    { .entry = name,                                                                               \
      .wgsl = { wgsl },                                                                            \
      .reduces = true,                                                                             \
      .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_IN(4),         \
                __VA_ARGS__, TG_BIND_SCRATCH },                                                    \
      .groups = count }
static const tg_shader shaders[] = {
    { .name = "heads",
      .pass = { PASS("by_head", head_groups, TG_BIND_OUT(0), TG_BIND_NONE),
                PASS("parts", part_groups, TG_BIND_NONE, TG_BIND_NONE),
                PASS("total", across, TG_BIND_OUT(1), TG_BIND_OUT(2)) },
      .scratch_bytes = scratch_bytes },
};

TG_OP_DESC(rope_grad) = {
    .name = "rope_grad",
    TG_DOC "gradients of rope: heads turned back, and those of their norms",
    .in_names = { "dy", "table", "qkv", "q_norm", "k_norm" },
    .out_names = { "dqkv", "dq_norm", "dk_norm" },
    .n_in = 5,
    .n_in_optional = 3,
    .n_out = 3,
    .accumulates = 2 | 4,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(rope_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
