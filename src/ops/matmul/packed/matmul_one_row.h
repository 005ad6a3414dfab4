/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_one_row.h - products of one row with weights of four bits, for matmul and for norm_matmul:
 * the main text, the two that have the row as floats or in 8 bits for it, and the shaders of both.
 * Whoever includes it says what it can take (fits_nibbles), which texts come before these, from
 * where f(a) is read to packed.wgsl (ONE_ROW_TEXTS), and whether these read in fours
 * (ONE_ROW_FOURS).
 */
#ifndef TG_OPS_MATMUL_ONE_ROW_H
#define TG_OPS_MATMUL_ONE_ROW_H

#include "ops/matmul/packed/matmul_packed_shader.h"

static const char *const four_words[] = {
#include "ops/matmul/shaders/packed/matmul_four_words.wgsl.h"
};
static const char *const one_row[] = {
#include "ops/matmul/shaders/packed/matmul_one_row.wgsl.h"
};
static const char *const one_row_floats[] = {
#include "ops/matmul/shaders/packed/matmul_one_row_floats.wgsl.h"
};
static const char *const one_row_int8[] = {
#include "ops/matmul/shaders/packed/matmul_one_row_int8.wgsl.h"
};

static bool fits_nibbles(const tg_args *a);
static bool fits_q4(const tg_args *a) { return fits_nibbles(a) && tg_packed_is_q4(a); }
static bool fits_lone_q4(const tg_args *a) { return fits_nibbles(a) && tg_packed_is_lone_q4(a); }
static size_t rows_8_groups(const tg_args *a) {
    return tg_packed_across(a, 8) * tg_type_rows(&a->in_type[MATMUL_A]);
}
static size_t rows_16_groups(const tg_args *a) {
    return tg_packed_across(a, 16) * tg_type_rows(&a->in_type[MATMUL_A]);
}

/* 16 rows of b a workgroup, or 8, which the constants say. Both fit the same arguments, so the
 * first is taken where tg_packed_is_wide prefers it. x is what f(a) is there: floats, or int8. */
#define NIBBLES(x, rows, kind, fits_, constants_)                                                  \
    .name = "four bits, one row, " #rows kind, .fits = fits_, .word = tg_packed_word,              \
    .pass = { { .entry = "main",                                                                   \
                .constants = constants_,                                                           \
                .wgsl = { ONE_ROW_TEXTS, one_row_##x, one_row },                                   \
                .fours = ONE_ROW_FOURS,                                                            \
                .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),              \
                          TG_BIND_IN(4), TG_BIND_IN(5), TG_BIND_OUT(0) },                          \
                .groups = rows_##rows##_groups } }
#define NIBBLES_FLOATS                                                                             \
    { .prefers = tg_packed_is_wide,                                                                \
      NIBBLES(floats, 16, "", fits_nibbles, TG_ONE_ROW_WIDE TG_ONE_ROW_ANY) },                     \
    {                                                                                              \
        NIBBLES(floats, 8, "", fits_nibbles, TG_ONE_ROW_NARROW TG_ONE_ROW_ANY)                     \
    }
#define NIBBLES_INT8(kind, fits_, constants_)                                                      \
    { .needs = TG_LEVER_BIT(int8_activations),                                                     \
      .prefers = tg_packed_is_wide,                                                                \
      NIBBLES(int8, 16, kind, fits_, TG_ONE_ROW_WIDE constants_) },                                \
    {                                                                                              \
        .needs = TG_LEVER_BIT(int8_activations),                                                   \
        NIBBLES(int8, 8, kind, fits_, TG_ONE_ROW_NARROW constants_)                                \
    }
#define NIBBLES_ROUNDED                                                                            \
    NIBBLES_INT8(", rounded, one q4x16", fits_lone_q4, TG_ONE_ROW_LONE_Q4),                        \
        NIBBLES_INT8(", rounded, q4x16", fits_q4, TG_ONE_ROW_Q4),                                  \
        NIBBLES_INT8(", rounded", fits_nibbles, TG_ONE_ROW_ANY)

#endif
