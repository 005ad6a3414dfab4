/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_dx.h - y = a b by columns of b, whose rows are turned into floats sixteen at a time: the
 * gradient of a product with packed weights.
 *
 * A unit is 64 columns of y for all rows. Sixteen rows of b in these columns become a panel of
 * floats, once for all rows of a; each row then adds the panel's sum to y:
 *
 *     a [rows, N]    ..|16|..     panel [16][64]     y [rows, 64 of K] += 16 of a times panel
 *
 * An element is a sum of the sums of sixteen, in rising n: neither the units nor the register tile
 * are seen in the bits. Weights are as exact here as in files.
 */
#ifndef TG_OPS_PACKED_DX_H
#define TG_OPS_PACKED_DX_H

#include "ops/kernel.h"
#include "ops/matmul/matmul_operands.h"
#include "simd/vec.h"

enum { DX_COLS = 64, DX_PANEL_ROWS = TG_PACK_ROWS };
/* The register tile: rows of a, vectors of columns. */
enum { DX_ROWS = TG_MR == 1 ? 1 : 4, DX_VECS = 2 };

static inline bool dx_fits(const tg_args *a) {
    return !matmul_b_is_floats(a) && a->attr.i[MATMUL_TRANS] == 0;
}
static inline size_t dx_units(const tg_args *a) {
    return tg_units(tg_type_cols(&a->out_type[0]), DX_COLS);
}
static size_t dx_local_bytes(const tg_args *a) {
    (void)a;
    return DX_PANEL_ROWS * DX_COLS * sizeof(float);
}

/* n <= 16 rows of b from `row` on, columns [k, k + cols); zeros beyond them. */
static void fill_panel(float *panel, const b_part *p, size_t depth, size_t row, size_t n, size_t k,
                       size_t cols) {
    if (n < DX_PANEL_ROWS || cols < DX_COLS)
        memset(panel, 0, DX_PANEL_ROWS * DX_COLS * sizeof *panel);
    for (size_t i = 0; i < n; i++)
        tg_matrix_to_f32_n(p->dtype, p->packing, depth, p->packed, row + i, k, cols,
                           panel + i * DX_COLS);
}

/* rows rows of y, n columns of each, from their sums so far (none: first). rows is a constant. */
TG_UNLESS_LONG void add_tile(float *y, size_t step, const float *x, size_t a_step,
                             const float *panel, size_t n_panel, size_t n, int rows, bool first) {
    tg_v sum[DX_ROWS][DX_VECS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < DX_VECS; v++) sum[r][v] = tg_vzero();
    for (size_t i = 0; i < n_panel; i++) {
        const tg_v w[DX_VECS] = { tg_vload(panel + i * DX_COLS),
                                  tg_vload(panel + i * DX_COLS + 16) };
        for (int r = 0; r < rows; r++) {
            const tg_v d = tg_vset(x[(size_t)r * a_step + i]);
            for (int v = 0; v < DX_VECS; v++) sum[r][v] = tg_vfma(d, w[v], sum[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (size_t v = 0; v < DX_VECS && 16 * v < n; v++) {
            float *at = y + (size_t)r * step + 16 * v;
            const size_t here = tg_min_size(16, n - 16 * v);
            tg_vstore_n(at, first ? sum[r][v] : tg_vadd(tg_vload_n(at, here), sum[r][v]), here);
        }
    }
}

/* The panel, of n rows of b that meet columns [col, col + n) of a, for all rows. */
static void add_panel(const tg_args *a, const float *panel, size_t n, size_t col, size_t k,
                      size_t cols, bool first) {
    const size_t rows = tg_type_rows(&a->in_type[0]), step = tg_type_cols(&a->out_type[0]);
    const size_t a_step = tg_type_cols(&a->in_type[0]);
    for (size_t c = 0; c < cols; c += 16 * DX_VECS) {
        const float *x = (const float *)a->in[0] + col;
        float *y = (float *)a->out[0] + k + c;
        size_t r = 0;
        for (; r + DX_ROWS <= rows; r += DX_ROWS)
            add_tile(y + r * step, step, x + r * a_step, a_step, panel + c, n, cols - c, DX_ROWS,
                     first);
        for (; r < rows; r++)
            add_tile(y + r * step, step, x + r * a_step, a_step, panel + c, n, cols - c, 1, first);
    }
}

static inline void dx_run(const tg_args *a, size_t begin, size_t end) {
    const bool fresh = !(a->acc & 1);
    b_part parts[MATMUL_PARTS];
    const size_t n_parts = matmul_parts(a, parts), depth = tg_type_cols(&a->out_type[0]);
    for (size_t k = begin * DX_COLS; k < tg_min_size(end * DX_COLS, depth); k += DX_COLS) {
        const size_t cols = tg_min_size(DX_COLS, depth - k);
        for (size_t i = 0; i < n_parts; i++) {
            for (size_t row = 0; row < parts[i].rows; row += DX_PANEL_ROWS) {
                const size_t n = tg_min_size(DX_PANEL_ROWS, parts[i].rows - row);
                fill_panel(a->local, &parts[i], depth, row, n, k, cols);
                add_panel(a, a->local, n, parts[i].begin + row, k, cols,
                          fresh && i == 0 && row == 0);
            }
        }
    }
}

#endif
