/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedding - y[n,:] = scale * table[ids[n],:], one row of the table for every token.
 *
 *   in 0  ids [..] i32 in [0,V)     out 0  y [..,C]
 *   in 1  table [V,C], plain f32, or weights of files, packed (dtype/packed.h) or not
 *   f[0]  scale, of which 0 is 1: rows are copied as they are (Gemma multiplies by sqrt(C))
 *
 * Backward needs the ids alone; plain f32 alone has a gradient. An id outside [0,V) takes the
 * nearest row (tg_clamp_id).
 */
#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/packed_case.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_I32, 0, TG_MAX_DIMS - 1)) return;
    const tg_type *table = &n->in[1]->type;
    if (table->n_dims != 2 || tg_type_elems(table) == 0 || !tg_dtype_table[table->dtype].packing) {
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

static bool is_floats(const tg_type *table) {
    return table->dtype == TG_F32 && tg_type_is_plain(table);
}
static bool fits(const tg_args *a) { return is_floats(&a->in_type[1]); }

static void ref(const tg_args *a) {
    const int32_t *ids = a->in[0];
    const tg_type *t = &a->in_type[1];
    const TG_REAL *floats = is_floats(t) ? a->in[1] : NULL;
    TG_REAL *y = a->out[0];
    const size_t rows = tg_type_elems(&a->in_type[0]);
    const size_t vocab = a->in_type[1].dim[0], cols = a->in_type[1].dim[1];
    const double scale = a->attr.f[0] == 0 ? 1 : (double)a->attr.f[0];
    for (size_t r = 0; r < rows; r++) {
        const size_t id = tg_clamp_id(ids[r], vocab);
        float w[TG_PACK_COLS]; /* a unit of any type but those of 256 columns, which have 32, too */
        for (size_t c = 0; c < cols; c++) {
            if (!floats && c % TG_PACK_COLS == 0)
                tg_matrix_to_f32_n(t->dtype, t->layout, cols, a->in[1], id, c,
                                   tg_min_size(TG_PACK_COLS, cols - c), w);
            const double x = floats ? (double)floats[id * cols + c] : (double)w[c % TG_PACK_COLS];
            y[r * cols + c] = (TG_REAL)(scale * x);
        }
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    if (is_floats(&n->in[1]->type))
        din[1] =
            tg_embedding_grad(g, n->in[0], dy[0], (int32_t)n->in[1]->type.dim[0], n->attr.f[0]);
}

#define CASE(tokens, v, c) { .in = { TG_T1(I32, tokens), TG_T2(F32, v, c) }, .i32_below = (v) }
#define SCALED(tokens, v, c, s)                                                                    \
    { .in = { TG_T1(I32, tokens), TG_T2(F32, v, c) },                                              \
      .attr = { .f = { s } },                                                                      \
      .i32_below = (v),                                                                            \
      .tol = 1e-6 }
static void prepare(const tg_args *a) { tg_case_fill_packed(a, 1, 0); }
#define TABLE(tokens, v, s, ...)                                                                   \
    { .in = { TG_T1(I32, tokens), __VA_ARGS__ },                                                   \
      .attr = { .f = { s } },                                                                      \
      .i32_below = (v) + 1,                                                                        \
      .prepare = prepare,                                                                          \
      .tol = 1e-6 }
#define PACKED(p, tokens, v, c, s) TABLE(tokens, v, s, TG_CASE_MATRIX(p, v, c))
#define ROWS(p, tokens, v, c, s)   TABLE(tokens, v, s, TG_T2(p, v, c))
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1),
    CASE(7, 3, 15),
    CASE(5, 16, 16),
    CASE(31, 11, 17),
    { .in = { TG_T2(I32, 4, 67), TG_T2(F32, 256, 131) }, .i32_below = 256 },
    { .in = { TG_T1(I32, 9), TG_T2(F32, 5, 33) }, .i32_below = 8 }, /* ids beyond the table */
    SCALED(7, 3, 15, 1),
    SCALED(5, 16, 33, 22.627417f),
    SCALED(67, 11, 48, 0.3f),
    /* weights of files */
    PACKED(F32, 3, 17, 5, 0),
    PACKED(F16, 5, 16, 33, 1.5f),
    PACKED(BF16, 1, 15, 16, 1),
    PACKED(Q4X16, 9, 33, 64, 22.627417f),
    PACKED(Q4MX16, 7, 16, 32, 1),
    PACKED(Q5X16, 3, 18, 96, 0.3f),
    PACKED(Q5MX16, 5, 31, 64, 0),
    PACKED(Q8X16, 1, 1, 32, 1.5f),
    PACKED(Q8X16, 40, 16, 576, 1.5f),
    PACKED(Q4KX16, 2, 17, 256, 1),
    PACKED(Q8MX16, 11, 16, 96, 2),
    ROWS(F16, 7, 5, 19, 1),
    ROWS(BF16, 9, 33, 48, 0.3f),
};

static const char *const wgsl[] = {
#include "ops/embedding/embedding.wgsl.h"
};
static const char *const packed_text[] = {
#include "ops/packed.wgsl.h"
};
static const char *const packed_rows[] = {
#include "ops/packed_rows.wgsl.h"
};
static const char *const packed[] = {
#include "ops/embedding/embedding_packed.wgsl.h"
};
static uint32_t packed_word(const tg_args *a) { return tg_shader_layout(a, 1, 0); }
static bool fits_packed(const tg_args *a) { return !fits(a); }
/* A thread has 32 columns. */
static size_t packed_groups(const tg_args *a) {
    const size_t blocks = tg_shader_parts(a->in_type[1].dim[1], TG_PACK_COLS);
    return tg_shader_parts(tg_type_elems(&a->in_type[0]) * blocks, 256);
}

static const tg_shader shaders[] = {
    { .name = "elements",
      .fits = fits,
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
    { .name = "packed",
      .fits = fits_packed,
      .word = packed_word,
      .pass = { { .entry = "main",
                  .wgsl = { packed_text, packed_rows, packed },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = packed_groups } } },
};

static const char *const phase_blocks[] = {
#include "ops/phase_blocks.wgsl.h"
};
static const char *const phase[] = {
#include "ops/embedding/embedding_phase.wgsl.h"
};
static const tg_grid grid = { .fits = fits_packed,
                              .word = packed_word,
                              .phase = {
                                  { .call = "embedding",
                                    .wgsl = { packed_text, packed_rows, phase_blocks, phase },
                                    .states = 1 << 1,
                                    .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) } } } };

TG_OP_DESC(embedding) = {
    .name = "embedding",
    TG_DOC "y[n,:] = scale * table[ids[n],:]",
    .in_names = { "ids", "table" },
    .out_names = { "y" },
    .n_in = 2,
    .n_out = 1,
    .reads_packed = 1 << 1,
    .infer = infer,
    TG_REFS(embedding, ref),
    TG_SHADERS(shaders),
    TG_GRID(grid),
    .grad = grad,
    TG_CASES(cases),
};
