/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedding_grad - dtable[v,:] = scale * sum over n with ids[n] = v of dy[n,:], the gradient of
 * embedding.
 *
 *   in 0  ids [..] i32     in 1  dy [..,C]     out 0  dtable [V,C], accumulates
 *   i[0]  V                f[0]  scale, of which 0 is 1
 *
 * Every element is a sum of its own over rising n, from 0; what is accumulated into is added last,
 * so that a sum added here and one added by an op of its own have the same bits.
 */
#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/rules.h"
#include "ops/shader.h"

/* The vocabulary cannot be seen in ids or dy, so it is an attribute. */
static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_I32, 0, TG_MAX_DIMS - 1)) return;
    if (!tg_want_dims(g, n, 1, TG_F32, 1, TG_MAX_DIMS)) return;
    tg_type dy = n->in[0]->type;
    const size_t cols = tg_type_cols(&n->in[1]->type);
    dy.dtype = TG_F32;
    dy.dim[dy.n_dims++] = cols;
    if (!tg_want_type(g, n, 1, dy)) return;
    if (n->attr.i[0] < 1) {
        tg_graph_fail(g, n, TG_E_SHAPE, "want a vocabulary of 1 or more, have %" PRId32,
                      n->attr.i[0]);
        return;
    }
    n->out[0].type = tg_type_2d(TG_F32, (size_t)n->attr.i[0], cols);
}

/* The definition, word by word, V times slower than need be: it shares no idea with the kernel,
 * which walks the tokens once. An id beyond the table counts for the row that the forward pass
 * took. */
static void ref(const tg_args *a) {
    const int32_t *ids = a->in[0];
    const TG_REAL *dy = a->in[1];
    TG_REAL *out = a->out[0];
    const size_t rows = tg_type_elems(&a->in_type[0]);
    const size_t vocab = a->out_type[0].dim[0], cols = a->out_type[0].dim[1];
    const bool add = a->acc & 1;
    const double scale = a->attr.f[0] == 0 ? 1 : (double)a->attr.f[0];
    for (size_t v = 0; v < vocab; v++) {
        for (size_t c = 0; c < cols; c++) {
            double sum = 0;
            for (size_t r = 0; r < rows; r++)
                if (tg_clamp_id(ids[r], vocab) == v) sum += (double)dy[r * cols + c];
            sum *= scale;
            out[v * cols + c] = (TG_REAL)(add ? (double)out[v * cols + c] + sum : sum);
        }
    }
}

#define CASE(tokens, v, c, add) SCALED(tokens, v, c, 0, add)
#define SCALED(tokens, v, c, s, add)                                                               \
    { .in = { TG_T1(I32, tokens), TG_T2(F32, tokens, c) },                                         \
      .attr = { .i = { v }, .f = { s } },                                                          \
      .i32_below = (v),                                                                            \
      .tol = 2e-6,                                                                                 \
      .acc = (add) }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 0),
    CASE(7, 3, 15, 0),
    CASE(5, 16, 16, 1),
    CASE(31, 11, 17, 1),
    CASE(41, 2, 64, 0),
    CASE(3, 5, 65, 1),
    SCALED(31, 11, 33, 2.5f, 1),
    SCALED(7, 3, 16, 0.3f, 0),
    CASE(2100, 99, 20, 0), /* more than a workgroup of a GPU lists at once */
    { .in = { TG_T2(I32, 4, 67), TG_T3(F32, 4, 67, 131) },
      .attr = { .i = { 64 } },
      .i32_below = 64,
      .tol = 2e-6 },
    { .in = { TG_T1(I32, 9), TG_T2(F32, 9, 33) },
      .attr = { .i = { 5 } },
      .i32_below = 8,
      .tol = 2e-6 }, /* ids beyond the table */
};

static const char *const wgsl[] = {
#include "ops/embedding/embedding_grad.wgsl.h"
};
static size_t groups(const tg_args *a) {
    return a->out_type[0].dim[0] * tg_shader_parts(a->out_type[0].dim[1], TG_SHADER_COLS);
}

static const tg_shader shaders[] = {
    { .name = "lists",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = groups } } },
};

TG_OP_DESC(embedding_grad) = {
    .name = "embedding_grad",
    TG_DOC "dtable[v,:] = scale * sum over n with ids[n] = v of dy[n,:]",
    .in_names = { "ids", "dy" },
    .out_names = { "dtable" },
    .n_in = 2,
    .n_out = 1,
    .accumulates = 1,
    .infer = infer,
    TG_REFS(embedding_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
