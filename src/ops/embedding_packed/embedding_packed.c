/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedding_packed - y[n,:] = scale * row ids[n] of a packed table (dtype/packed.h).
 *
 *   in 0  ids [..] i32 in [0,V)     in 1  table [V,C], in blocks or a layout of its own
 *   out 0  y [..,C]
 *   f[0] scale: Gemma multiplies by sqrt(C)
 *
 * An id outside [0,V) takes the nearest row. A few rows a call: the slow way out of the layout
 * does.
 */
#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/rules.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_I32, 0, TG_MAX_DIMS - 1)) return;
    const tg_type *table = &n->in[1]->type;
    if (table->n_dims != 2 || !tg_dtype_table[table->dtype].packing) {
        char text[TG_TYPE_TEXT_BYTES];
        tg_graph_fail(g, n, TG_E_SHAPE, "table: want a matrix of weights, have %s",
                      tg_type_text(table, text));
        return;
    }
    tg_type y = n->in[0]->type;
    y.dtype = TG_F32;
    y.dim[y.n_dims++] = table->dim[1];
    n->out[0].type = y;
}

static void ref(const tg_args *a) {
    const tg_type *t = &a->in_type[1];
    const size_t vocab = t->dim[0], cols = t->dim[1];
    const size_t rows = tg_type_elems(&a->in_type[0]);
    TG_REAL *y = a->out[0];
    float w[64];
    for (size_t r = 0; r < rows; r++) {
        const size_t id = tg_clamp_id(((const int32_t *)a->in[0])[r], vocab);
        for (size_t c = 0; c < cols; c += 64) {
            const size_t n = tg_min_size(64, cols - c);
            tg_matrix_to_f32_n(t->dtype, t->layout, cols, a->in[1], id, c, n, w);
            for (size_t i = 0; i < n; i++) y[r * cols + c + i] = (TG_REAL)(w[i] * a->attr.f[0]);
        }
    }
}

/* Any bytes are a table of C8 but for its scales, whose exponents are held down. */
static void prepare(const tg_args *a) {
    uint8_t *table = (uint8_t *)(uintptr_t)a->in[1];
    for (size_t i = 0; i < tg_type_bytes(&a->in_type[1]); i++) {
        table[i] = (uint8_t)(i * 37 + i / 256);
        if (i % 544 >= 512 && i % 2) table[i] = 0x24;
    }
}

#define CASE(tokens, v, c)                                                                         \
    { .in = { TG_T1(I32, tokens), TG_PACKED(Q8_0, C8, v, c) },                                     \
      .attr = { .f = { 1.5f } },                                                                   \
      .i32_below = (v) + 1,                                                                        \
      .prepare = prepare,                                                                          \
      .tol = 1e-6 }
static const tg_case cases[] = { CASE(1, 1, 32), CASE(7, 33, 64), CASE(40, 16, 576) };

TG_OP_DESC(embedding_packed) = {
    .name = "embedding_packed",
    .doc = "rows of a packed table that ids name",
    .in_names = { "ids", "table" },
    .out_names = { "y" },
    .n_in = 2,
    .n_out = 1,
    .reads_packed = 1 << 1,
    .cpu_only = true,
    .infer = infer,
    TG_REFS(embedding_packed, ref),
    TG_CASES(cases),
};
