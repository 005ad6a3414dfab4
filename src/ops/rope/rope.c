/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope - query and key heads turned by their positions, after a norm of each head, or of all of a
 * row together, where there is one.
 *
 *   in 0   qkv [B,T,(H+2K)*D] or [T,..]     in 1  table [T,R] of rope_table, R at most D
 *   in 2   q_norm [D] optional              in 3  k_norm [D] optional; [H*D] and [K*D] with i[3]
 *   out 0  qkv, may be the same memory; value heads pass through
 *   i[0] H   i[1] K   i[2] D   i[3] 1: a norm is of all heads together   f[0] eps of the norms
 *
 *   (x[i], x[i + R/2])  <-  (x[i] cos - x[i + R/2] sin,  x[i + R/2] cos + x[i] sin)    i < R/2
 *
 * Files whose rows pair (2i, 2i + 1) instead have their rows put in this order when they are
 * loaded. Backward needs qkv where there are norms, and else the table alone.
 */
#include "ops/build.h"
#include "ops/rope/rope_reference.h"
#include "ops/rope/rope_rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!rope_want(g, n, 0, 1, 2)) return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t tokens = a->in_type[1].dim[0], turned = a->in_type[1].dim[1];
    for (size_t r = 0; r < tg_type_rows(&a->in_type[0]); r++) {
        const TG_REAL *x = (const TG_REAL *)a->in[0] + r * s.row;
        const TG_REAL *table = (const TG_REAL *)a->in[1] + r % tokens * turned;
        TG_REAL *y = (TG_REAL *)a->out[0] + r * s.row;
        for (int k = 0; k < 2; k++) {
            const tg_normed n = tg_normed_of(&a->attr, k);
            for (size_t i = 0; i < n.n; i++) {
                const size_t at = n.at + i * n.size;
                const double scale =
                    a->in[2 + k] ? tg_rope_scale_of(x + at, n.size, (double)a->attr.f[0]) : 1;
                for (size_t h = 0; h < n.size; h += s.size)
                    tg_rope_turn(x + at + h, y + at + h,
                                 a->in[2 + k] ? (const TG_REAL *)a->in[2 + k] + h : NULL, table,
                                 turned, s.size, scale);
            }
        }
        for (size_t i = tg_heads_v(&s, 0); i < s.row; i++) y[i] = x[i];
    }
}

/* Nothing flows into the table: it is made of constants. */
static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    tg_value *const *in = n->in;
    din[0] = tg_rope_grad(g, dy[0], in[1], in[2] || in[3] ? in[0] : NULL, in[2], in[3], &n->attr);
    if (in[2]) din[2] = tg_out(din[0], 1);
    if (in[3]) din[3] = tg_out(din[0], 2);
}

#define HEADS(h, k, d, together) .attr = { .i = { h, k, d, together }, .f = { 1e-6f } }, .tol = 2e-6
#define CASE(type, t, h, k, d, turned, ...)                                                        \
    { .in = { type, TG_T2(F32, t, turned), __VA_ARGS__ }, HEADS(h, k, d, 0) }
#define TOGETHER(type, t, h, k, d, turned, ...)                                                    \
    { .in = { type, TG_T2(F32, t, turned), __VA_ARGS__ }, HEADS(h, k, d, 1) }
#define ROWS(t, h, k, d)     TG_T2(F32, t, ((h) + 2 * (k)) * (d))
#define WHOLE(b, t, h, k, d) TG_T3(F32, b, t, ((h) + 2 * (k)) * (d))
TG_CASE_TABLE cases[] = {
    CASE(ROWS(1, 1, 1, 2), 1, 1, 1, 2, 2, TG_ABSENT),
    CASE(ROWS(3, 9, 3, 64), 3, 9, 3, 64, 64, TG_ABSENT),
    CASE(ROWS(5, 2, 1, 34), 5, 2, 1, 34, 34, TG_T1(F32, 34), TG_T1(F32, 34)),
    CASE(ROWS(1, 4, 1, 256), 1, 4, 1, 256, 256, TG_T1(F32, 256), TG_T1(F32, 256)),
    CASE(ROWS(17, 2, 2, 16), 17, 2, 2, 16, 16, TG_ABSENT, TG_T1(F32, 16)),
    CASE(WHOLE(1, 1, 1, 1, 2), 1, 1, 1, 2, 2, TG_T1(F32, 2), TG_T1(F32, 2)),
    CASE(WHOLE(3, 2, 2, 1, 30), 2, 2, 1, 30, 30, TG_ABSENT),
    CASE(WHOLE(2, 31, 2, 1, 32), 31, 2, 1, 32, 32, TG_T1(F32, 32), TG_T1(F32, 32)),
    CASE(ROWS(5, 3, 1, 32), 5, 3, 1, 32, 24, TG_ABSENT),
    CASE(ROWS(1, 4, 2, 128), 1, 4, 2, 128, 96, TG_ABSENT),
    CASE(WHOLE(2, 7, 2, 1, 38), 7, 2, 1, 38, 2, TG_T1(F32, 38), TG_T1(F32, 38)),
    CASE(WHOLE(3, 11, 4, 2, 34), 11, 4, 2, 34, 34, TG_T1(F32, 34), TG_ABSENT),
    TOGETHER(ROWS(5, 4, 2, 6), 5, 4, 2, 6, 6, TG_T1(F32, 24), TG_T1(F32, 12)),
    TOGETHER(WHOLE(2, 17, 3, 1, 34), 17, 3, 1, 34, 20, TG_T1(F32, 102), TG_T1(F32, 34)),
    TOGETHER(WHOLE(1, 3, 2, 2, 40), 3, 2, 2, 40, 40, TG_ABSENT, TG_T1(F32, 80)),
};

static const char *const wgsl[] = {
#include "ops/rope/rope.wgsl.h"
};
static size_t head_groups(const tg_args *a) {
    return tg_type_rows(&a->in_type[0]) * (size_t)(a->attr.i[0] + 2 * a->attr.i[1]);
}
static const tg_shader shaders[] = {
    { .name = "heads",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),
                            TG_BIND_OUT(0) },
                  .groups = head_groups } } },
};

TG_OP_DESC(rope) = {
    .name = "rope",
    TG_DOC "query and key heads turned by their positions",
    .in_names = { "qkv", "table", "q_norm", "k_norm" },
    .out_names = { "qkv" },
    .n_in = 4,
    .n_in_optional = 2,
    .n_out = 1,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(rope, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
