/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_halves.h - products on a GPU with operands in f16 and sums in f32, by matrices of a
 * subgroup. A pass rounds the operands into scratch, the next one multiplies what lies there:
 *
 *     a [M,K], b  ->  scratch: left, right, sides padded to 128 and k to 32  ->  y
 *
 * Scratch rather than tiles that are rounded as they are loaded: a tile of floats is twice the
 * bytes, and it is the caches that limit such a product; weights of files are unpacked once, not
 * once for each 128 rows of a. f(a) of weights of files goes that way, too.
 *
 * Floats of training are rounded where f16_storage is on. Gradients are small: a mean over rows
 * leaves each about 1 / rows, below what f16 can say of some. So attr.f[0] and f[1], which scale a
 * and b before they are rounded, are 64 times a power of two near the rows for an operand that is a
 * gradient (matmul.c, grad), times what loss_scale says, and sums are scaled back in f32. What is
 * larger than 65504 then, a thousand times what an element of a row's gradient is (where few rows
 * have a target, each of theirs is more), becomes infinite, which loss_scale answers. Activations
 * beyond it become 65504; infinities and NaNs stay.
 */
#ifndef TG_OPS_MATMUL_HALVES_H
#define TG_OPS_MATMUL_HALVES_H

enum { HALVES_TILE = 128, HALVES_K = 32 };

static size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

static const char *const padded[] = {
#include "ops/matmul/shaders/matmul_padded.wgsl.h"
};
static const char *const halves[] = {
#include "ops/matmul/shaders/matmul_halves.wgsl.h"
};
static const char *const float_halves[] = {
#include "ops/matmul/shaders/matmul_float_halves.wgsl.h"
};
static const char *const packed_halves[] = {
#include "ops/matmul/shaders/packed/matmul_packed_halves.wgsl.h"
};
static const char *const by_matrices[] = {
#include "ops/matmul/shaders/matmul_matrices.wgsl.h"
};

static size_t halves_elems(const tg_args *a) {
    const sizes s = args_sizes(a);
    return (up(s.m, HALVES_TILE) + up(s.n, HALVES_TILE)) * up(s.k, HALVES_K);
}
static size_t halves_bytes(const tg_args *a) { return 2 * halves_elems(a); }
static size_t halves_groups(const tg_args *a) {
    const sizes s = args_sizes(a);
    const size_t of_a = up(s.m, HALVES_TILE) * up(s.k, HALVES_K);
    /* Weights go by groups of sixteen rows of each matrix. */
    const size_t of_b = matmul_b_is_floats(a)
                            ? up(s.n, HALVES_TILE) * up(s.k, HALVES_K)
                            : tg_packed_across(a, TG_PACK_ROWS) * TG_PACK_ROWS * up(s.k, HALVES_K);
    return tg_shader_parts((of_a + of_b) / 8, 256);
}
static size_t halves_tiles(const tg_args *a) {
    const sizes s = args_sizes(a);
    return tg_matmul_tiles(s.m, s.n, HALVES_TILE);
}

/* Below that, steps in f32 are faster, whose products of a layer's backward pass are one dispatch:
 * on an H200 huge takes 7.30 ms so and 8.39 in f16, mega 9.44 and 9.84, behemoth of 4 x 1024 tokens
 * 328 and 139. */
static bool prefers_halves(const tg_args *a) {
    const sizes s = args_sizes(a);
    return halves_tiles(a) >= 32 && (double)s.m * (double)s.n * (double)s.k >= 2e9;
}
/* As few as a prompt's rows, since weights need no sums back. */
static bool prefers_packed_halves(const tg_args *a) {
    const sizes s = args_sizes(a);
    return s.m >= 128 && s.n >= 256 && s.k >= 256;
}
static bool fits_packed_halves(const tg_args *a) {
    return fits_packed_tiles(a) && args_sizes(a).n % 4 == 0 && !a->rows_alone;
}

#define BY_K(left, right)                                                                          \
    "const LEFT_BY_K = " #left " == 1; const RIGHT_BY_K = " #right " == 1;\n"                      \
    "const LEFT_PITCH = select(136u, 40u, LEFT_BY_K);\n"                                           \
    "const RIGHT_PITCH = select(136u, 40u, RIGHT_BY_K);\n"                                         \
    "const LEFT_SIZE = select(32u * 136u, 128u * 40u, LEFT_BY_K);\n"                               \
    "const RIGHT_SIZE = select(32u * 136u, 128u * 40u, RIGHT_BY_K);\n"
#define PRODUCTS(left, right)                                                                      \
    { .entry = "products",                                                                         \
      .constants = BY_K(left, right),                                                              \
      .wgsl = { padded, finish, by_matrices },                                                     \
      .matrices = true,                                                                            \
      .bind = { TG_BIND_SCRATCH, TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_OUT(0), TG_BIND_OUT(1),     \
                TG_BIND_IN(MATMUL_SCALING) },                                                      \
      .groups = halves_tiles }
#define HALVES(trans, left, right)                                                                 \
    {                                                                                              \
        .name = "f16, 128x128", .needs = HALVES_NEED, .f16_inputs = true, .fits = fits_##trans,    \
        .prefers = prefers_halves, .scratch_bytes = halves_bytes, .pass = {                        \
            { .entry = "round_halves",                                                             \
              .constants = BY_K(left, right),                                                      \
              .wgsl = { padded, float_halves, halves },                                            \
              .fours = true,                                                                       \
              .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_SCRATCH,                             \
                        TG_BIND_IN(MATMUL_SCALING) },                                              \
              .groups = halves_groups },                                                           \
            PRODUCTS(left, right)                                                                  \
        }                                                                                          \
    }
#define HALVES_NEED (TG_LEVER_BIT(subgroup_matrices) | TG_LEVER_BIT(f16_storage))
/* Numbers times scales have more than the eleven bits of f16: a weight loses up to 2^-12 of itself.
 * Of the test cases that makes most where gates let 8,128 through and the sum is near 0. */
#define PACKED_HALVES                                                                              \
    {                                                                                              \
        .name = "packed, f16, 128x128", .needs = TG_LEVER_BIT(subgroup_matrices),                  \
        .f16_inputs = true, .tol = 0.5, .fits = fits_packed_halves,                                \
        .prefers = prefers_packed_halves, .word = tg_packed_word, .scratch_bytes = halves_bytes,   \
        .pass = {                                                                                  \
            { .entry = "round_halves",                                                             \
              .constants = BY_K(1, 1),                                                             \
              .wgsl = { padded, words, weights, packed_text, packed_halves, halves },              \
              .fours = true,                                                                       \
              .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_NONE, TG_BIND_NONE, TG_BIND_IN(4),   \
                        TG_BIND_IN(5), TG_BIND_NONE, TG_BIND_SCRATCH },                            \
              .groups = halves_groups },                                                           \
            PRODUCTS(1, 1)                                                                         \
        }                                                                                          \
    }

#endif
