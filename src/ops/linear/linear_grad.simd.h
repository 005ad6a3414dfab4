/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_grad.simd.h - df = dy W by columns of W, whose rows are turned into floats sixteen at a
 * time.
 *
 * A unit is 64 columns of df for all rows. Sixteen rows of W in these columns become a panel of
 * floats, once for all rows of dy; each row then adds the panel's sum to df:
 *
 *     dy [rows, N]    ..|16|..     panel [16][64]     df [rows, 64 of K] += 16 of dy times panel
 *
 * An element is a sum of the sums of sixteen, in rising n: neither the units nor the register tile
 * are seen in the bits.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "ops/linear/linear_parts.h"
#include "simd/vec.h"

enum { COLS = 64, PANEL_ROWS = TG_PACK_ROWS };
/* The register tile: rows of dy, vectors of columns. */
enum { TILE_ROWS = TG_MR == 1 ? 1 : 4, VECS = 2 };

static size_t units(const tg_args *a) { return tg_units(tg_type_cols(&a->out_type[0]), COLS); }
static size_t local_bytes(const tg_args *a) {
    (void)a;
    return PANEL_ROWS * COLS * sizeof(float);
}

/* n <= 16 rows of W from `row` on, columns [k, k + cols); zeros beyond them. */
static void fill_panel(float *panel, const part *p, size_t depth, size_t row, size_t n, size_t k,
                       size_t cols) {
    if (n < PANEL_ROWS || cols < COLS) memset(panel, 0, PANEL_ROWS * COLS * sizeof *panel);
    for (size_t i = 0; i < n; i++)
        tg_matrix_to_f32_n(p->dtype, p->packing, depth, p->packed, row + i, k, cols,
                           panel + i * COLS);
}

/* rows rows of df, n columns of each, from their sums so far (none: first). rows is a constant. */
TG_UNLESS_LONG void add_tile(float *df, size_t step, const float *dy, size_t dy_step,
                             const float *panel, size_t n_panel, size_t n, int rows, bool first) {
    tg_v sum[TILE_ROWS][VECS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECS; v++) sum[r][v] = tg_vzero();
    for (size_t i = 0; i < n_panel; i++) {
        const tg_v w[VECS] = { tg_vload(panel + i * COLS), tg_vload(panel + i * COLS + 16) };
        for (int r = 0; r < rows; r++) {
            const tg_v d = tg_vset(dy[(size_t)r * dy_step + i]);
            for (int v = 0; v < VECS; v++) sum[r][v] = tg_vfma(d, w[v], sum[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (size_t v = 0; v < VECS && 16 * v < n; v++) {
            float *at = df + (size_t)r * step + 16 * v;
            const size_t here = tg_min_size(16, n - 16 * v);
            tg_vstore_n(at, first ? sum[r][v] : tg_vadd(tg_vload_n(at, here), sum[r][v]), here);
        }
    }
}

/* The panel, of n rows of W that begin at column `col` of dy, for all rows. */
static void add_panel(const tg_args *a, const float *panel, size_t n, size_t col, size_t k,
                      size_t cols, bool first) {
    const size_t rows = tg_type_rows(&a->in_type[0]), step = tg_type_cols(&a->out_type[0]);
    const size_t dy_step = tg_type_cols(&a->in_type[0]);
    for (size_t c = 0; c < cols; c += 16 * VECS) {
        const float *dy = (const float *)a->in[0] + col;
        float *df = (float *)a->out[0] + k + c;
        size_t r = 0;
        for (; r + TILE_ROWS <= rows; r += TILE_ROWS)
            add_tile(df + r * step, step, dy + r * dy_step, dy_step, panel + c, n, cols - c,
                     TILE_ROWS, first);
        for (; r < rows; r++)
            add_tile(df + r * step, step, dy + r * dy_step, dy_step, panel + c, n, cols - c, 1,
                     first);
    }
}

static void run(const tg_args *a, size_t begin, size_t end) {
    part parts[LINEAR_PARTS];
    const size_t n_parts = linear_parts(a, parts), depth = tg_type_cols(&a->out_type[0]);
    for (size_t k = begin * COLS; k < tg_min_size(end * COLS, depth); k += COLS) {
        const size_t cols = tg_min_size(COLS, depth - k);
        for (size_t i = 0; i < n_parts; i++) {
            for (size_t row = 0; row < parts[i].rows; row += PANEL_ROWS) {
                const size_t n = tg_min_size(PANEL_ROWS, parts[i].rows - row);
                fill_panel(a->local, &parts[i], depth, row, n, k, cols);
                add_panel(a, a->local, n, parts[i].col + row, k, cols, i == 0 && row == 0);
            }
        }
    }
}

static const tg_variant variants[] = {
    { .name = "panels", .phase = { { units, run } }, .local_bytes = local_bytes },
};
TG_KERNELS(linear_grad, variants);
