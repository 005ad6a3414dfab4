/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedding_packed - y[n,:] = scale * row ids[n] of a packed table (dtype/packed.h).
 *
 *   in 0  ids [..] i32 in [0,V)     in 1  table u8 [groups, bytes of a group]
 *   out 0  y [..,C]
 *   i[0] 16 * V + packing   i[1] C   f[0] scale: Gemma multiplies by sqrt(C)
 *
 * An id outside [0,V) takes the nearest row. A few rows a call: the slow way out of the layout
 * does.
 */
#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/linear/linear_parts.h"
#include "ops/rules.h"

static void infer(tg_graph *g, tg_node *n) {
    const tg_packing p = tg_packed_attr_packing(n->attr.i[0]);
    const size_t rows = tg_packed_attr_rows(n->attr.i[0]), cols = (size_t)n->attr.i[1];
    if (!tg_want_dims(g, n, 0, TG_I32, 0, TG_MAX_DIMS - 1)) return;
    if (p >= TG_PACKING_COUNT || rows == 0 || n->attr.i[1] < 1 ||
        cols % tg_packing_table[p].cols != 0) {
        tg_graph_fail(g, n, TG_E_SHAPE, "table: want a packed matrix, have code %d and %d columns",
                      (int)n->attr.i[0], (int)n->attr.i[1]);
        return;
    }
    if (!tg_want_type(g, n, 1,
                      tg_type_2d(TG_U8, tg_pack_pieces(p, rows), tg_pack_piece_bytes(p, cols))))
        return;
    tg_type y = n->in[0]->type;
    y.dtype = TG_F32;
    y.dim[y.n_dims++] = cols;
    n->out[0].type = y;
}

static void ref(const tg_args *a) {
    const tg_packing p = tg_packed_attr_packing(a->attr.i[0]);
    const size_t vocab = tg_packed_attr_rows(a->attr.i[0]), cols = (size_t)a->attr.i[1];
    const size_t rows = tg_type_elems(&a->in_type[0]);
    TG_REAL *y = a->out[0];
    float w[64];
    for (size_t r = 0; r < rows; r++) {
        const size_t id = tg_clamp_id(((const int32_t *)a->in[0])[r], vocab);
        for (size_t c = 0; c < cols; c += 64) {
            const size_t n = tg_min_size(64, cols - c);
            tg_packed_to_f32_n(p, cols, a->in[1], id, c, n, w);
            for (size_t i = 0; i < n; i++) y[r * cols + c + i] = (TG_REAL)(w[i] * a->attr.f[0]);
        }
    }
}

/* Any bytes are a table of C8 but for its scales, whose exponents are held down. */
static void prepare(const tg_args *a) {
    uint8_t *table = (uint8_t *)(uintptr_t)a->in[1];
    for (size_t i = 0; i < tg_type_elems(&a->in_type[1]); i++) {
        table[i] = (uint8_t)(i * 37 + i / 256);
        if (i % 544 >= 512 && i % 2) table[i] = 0x24;
    }
}

#define CASE(tokens, v, c)                                                                         \
    { .in = { TG_T1(I32, tokens), TG_T2(U8, ((v) + 15) / 16, 544 * (c) / 32) },                    \
      .attr = { .i = { 16 * (v) + TG_PACK_C8, c }, .f = { 1.5f } },                                \
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
    .cpu_only = true,
    .infer = infer,
    TG_REFS(embedding_packed, ref),
    TG_CASES(cases),
};
