/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose - y takes each piece of a row from x, from a, from b, or from nobody.
 *
 *   in 0  mode [rows,G] i32     in 1  x, in 2  a, in 3  b   [.., C], all of one shape; any of them
 *   out 0  y [.., C]                                        may be absent, and is then zeros
 *
 *   y[r, piece g] = x[r, piece g]  where mode[r,g] is 0, a where it is 1, b where it is 2, else 0
 *
 * A piece is C/G neighbouring columns: with G = H the heads of attention, with G = 1 a whole row.
 * Bits are copied, so where mode is 0 the graph computes what it would compute without the op. That
 * makes one plan serve every experiment on a model (inspect/probe.c): what is changed is data.
 *
 * The gradient of each source is dy where it was chosen and zeros elsewhere: the op itself, with dy
 * in that source's place and nobody in the others'.
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

enum { FIRST_SOURCE = 1, N_SOURCES = 3 };

/* The first source that is there gives the shape; the others must have it, too. */
static void infer(tg_graph *g, tg_node *n) {
    const tg_type *type = NULL;
    for (int k = FIRST_SOURCE; k < FIRST_SOURCE + N_SOURCES; k++) {
        if (!n->in[k]) continue;
        if (!type) {
            if (!tg_want_dims(g, n, k, TG_F32, 1, TG_MAX_DIMS)) return;
            type = &n->in[k]->type;
        }
        if (!tg_want_type(g, n, k, *type)) return;
    }
    if (!type) {
        tg_graph_fail(g, n, TG_E_SHAPE, "want one of x, a and b, have none");
        return;
    }
    if (!tg_want_dims(g, n, 0, TG_I32, 2, 2)) return;
    const size_t rows = tg_type_rows(type), cols = tg_type_cols(type), *mode = n->in[0]->type.dim;
    if (mode[0] != rows || cols % mode[1] != 0) {
        tg_graph_fail(g, n, TG_E_SHAPE,
                      "mode: want [%zu, G] with a G that divides %zu, have [%zu, %zu]", rows, cols,
                      mode[0], mode[1]);
        return;
    }
    n->out[0].type = *type;
}

static void ref(const tg_args *a) {
    const int32_t *mode = a->in[0];
    TG_REAL *y = a->out[0];
    const size_t rows = tg_type_rows(&a->out_type[0]), cols = tg_type_cols(&a->out_type[0]);
    const size_t piece = cols / a->in_type[0].dim[1];
    for (size_t i = 0; i < rows * cols; i++) {
        const int32_t m = mode[i / piece];
        const TG_REAL *from = m >= 0 && m < N_SOURCES ? a->in[FIRST_SOURCE + m] : NULL;
        y[i] = from ? from[i] : 0;
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    for (int k = FIRST_SOURCE; k < FIRST_SOURCE + N_SOURCES; k++) {
        if (!n->in[k]) continue;
        tg_value *in[FIRST_SOURCE + N_SOURCES] = { n->in[0] };
        in[k] = dy[0];
        din[k] = tg_apply(g, TG_OP_choose, NULL, in, FIRST_SOURCE + N_SOURCES);
    }
}

/* Modes run to 3, which stands for all that is no source. */
#define CASE(rows, groups, c, x, a, b)                                                             \
    { .in = { TG_T2(I32, rows, groups), x(rows, c), a(rows, c), b(rows, c) }, .i32_below = 4 }
#define HERE(rows, c) TG_T2(F32, rows, c)
#define NONE(rows, c) TG_ABSENT
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, HERE, HERE, HERE),
    CASE(3, 1, 17, HERE, NONE, NONE),
    CASE(7, 3, 48, HERE, HERE, HERE),
    CASE(16, 4, 64, HERE, NONE, HERE),
    CASE(33, 13, 13, NONE, HERE, NONE),
    CASE(5, 2, 30, NONE, NONE, HERE),
    CASE(131, 8, 256, HERE, HERE, HERE),
    { .in = { TG_T2(I32, 6, 5), TG_T3(F32, 2, 3, 20), TG_ABSENT, TG_T3(F32, 2, 3, 20) },
      .i32_below = 3 },
};

static const char *const wgsl[] = {
#include "ops/choose/choose.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),
                            TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(choose) = {
    .name = "choose",
    TG_DOC "each piece of a row from x, a, b or zeros, as mode says",
    .in_names = { "mode", "x", "a", "b" },
    .out_names = { "y" },
    .n_in = FIRST_SOURCE + N_SOURCES,
    .n_in_optional = N_SOURCES,
    .n_out = 1,
    .in_place = { FIRST_SOURCE + 1 },
    .infer = infer,
    TG_REFS(choose, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
