/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceiling.c - how fast a WebAssembly engine multiplies and adds: register tiles of many shapes.
 *
 * A tile is ROWS rows of VECS vectors of four sums, which stay in locals while k runs. Its operands
 * are packed and lie in the first cache, so that nothing but the engine's code and the CPU's units
 * decide; a shape whose sums do not fit into the registers shows what spilling costs.
 *
 *     export tile_<rows>x<columns>(turns)    2 * rows * columns * STEPS * turns operations
 *
 * Compiled twice: with -mrelaxed-simd the step is one madd, without it a product and a sum.
 */
#include <stddef.h>
#include <wasm_simd128.h>

#define STEPS    256
#define ROWS_MAX 12
#define VECS_MAX 4

static float a[STEPS * ROWS_MAX], b[STEPS * VECS_MAX * 4], sums[ROWS_MAX * VECS_MAX * 4];

#if defined(__wasm_relaxed_simd__)
#define MADD(x, y, z) wasm_f32x4_relaxed_madd((x), (y), (z))
#else
#define MADD(x, y, z) wasm_f32x4_add(wasm_f32x4_mul((x), (y)), (z))
#endif

#define UNROLL _Pragma("clang loop unroll(full)")

__attribute__((export_name("steps"))) int steps(void);
int steps(void) { return STEPS; }

#define TILE(rows, columns, vecs)                                                                  \
    __attribute__((export_name("tile_" #rows "x" #columns))) void tile_##rows##x##columns(         \
        int turns);                                                                                \
    void tile_##rows##x##columns(int turns) {                                                      \
        for (; turns > 0; turns--) {                                                               \
            v128_t c[rows][vecs];                                                                  \
            UNROLL                                                                                 \
            for (int i = 0; i < rows; i++) {                                                       \
                UNROLL                                                                             \
                for (int j = 0; j < vecs; j++)                                                     \
                    c[i][j] = wasm_v128_load(sums + (i * vecs + j) * 4);                           \
            }                                                                                      \
            const float *p = a, *q = b;                                                            \
            for (int k = 0; k < STEPS; k++, p += rows, q += vecs * 4) {                            \
                v128_t y[vecs];                                                                    \
                UNROLL                                                                             \
                for (int j = 0; j < vecs; j++) y[j] = wasm_v128_load(q + j * 4);                   \
                UNROLL                                                                             \
                for (int i = 0; i < rows; i++) {                                                   \
                    const v128_t x = wasm_v128_load32_splat(p + i);                                \
                    UNROLL                                                                         \
                    for (int j = 0; j < vecs; j++) c[i][j] = MADD(x, y[j], c[i][j]);               \
                }                                                                                  \
            }                                                                                      \
            UNROLL                                                                                 \
            for (int i = 0; i < rows; i++) {                                                       \
                UNROLL                                                                             \
                for (int j = 0; j < vecs; j++)                                                     \
                    wasm_v128_store(sums + (i * vecs + j) * 4, c[i][j]);                           \
            }                                                                                      \
        }                                                                                          \
    }

TILE(1, 16, 4)
TILE(2, 8, 2)
TILE(2, 12, 3)
TILE(2, 16, 4)
TILE(3, 8, 2)
TILE(3, 12, 3)
TILE(3, 16, 4)
TILE(4, 8, 2)
TILE(4, 12, 3)
TILE(5, 8, 2)
TILE(6, 8, 2)
TILE(8, 4, 1)
TILE(12, 4, 1)
