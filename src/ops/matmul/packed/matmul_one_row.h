/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_one_row.h - products of one row with weights of four bits, for matmul and for norm_matmul:
 * the main text, the two that have the row as floats or in 8 bits for it, and the shaders of both.
 * Whoever includes it says what it can take (fits_nibbles), and which texts come before these, from
 * where f(a) is read to packed.wgsl (ONE_ROW_TEXTS).
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

/*
 * Groups of `rows` rows that a workgroup has one after the other, since it rounds a once for all of
 * them: so many that there are two workgroups for each core of a large card. Only a row that a
 * workgroup has whole is kept for the next group (COLS of matmul_one_row_int8.wgsl). The word of
 * int8 shaders has the number above the layouts. No bit of y depends on it.
 */
enum { ONE_ROW_COLS = 4096, ONE_ROW_GROUPS = 264, ONE_ROW_TURNS_AT = 24, ONE_ROW_MOST_TURNS = 255 };
static size_t one_row_turns(const tg_args *a, size_t rows) {
    const size_t turns = tg_packed_across(a, rows) / ONE_ROW_GROUPS;
    if (a->in_type[MATMUL_B].dim[1] > ONE_ROW_COLS || turns < 1) return 1;
    return turns < ONE_ROW_MOST_TURNS ? turns : ONE_ROW_MOST_TURNS;
}
static size_t one_row_int8_groups(const tg_args *a, size_t rows) {
    return tg_shader_parts(tg_packed_across(a, rows), one_row_turns(a, rows)) *
           tg_type_rows(&a->in_type[MATMUL_A]);
}
static uint32_t one_row_int8_word(const tg_args *a, size_t rows) {
    return tg_packed_word(a) | (uint32_t)one_row_turns(a, rows) << ONE_ROW_TURNS_AT;
}
static uint32_t int8_8_word(const tg_args *a) { return one_row_int8_word(a, 8); }
static uint32_t int8_16_word(const tg_args *a) { return one_row_int8_word(a, 16); }
static size_t int8_8_groups(const tg_args *a) { return one_row_int8_groups(a, 8); }
static size_t int8_16_groups(const tg_args *a) { return one_row_int8_groups(a, 16); }
static uint32_t floats_8_word(const tg_args *a) { return tg_packed_word(a); }
static uint32_t floats_16_word(const tg_args *a) { return tg_packed_word(a); }
static size_t floats_8_groups(const tg_args *a) {
    return tg_packed_across(a, 8) * tg_type_rows(&a->in_type[MATMUL_A]);
}
static size_t floats_16_groups(const tg_args *a) {
    return tg_packed_across(a, 16) * tg_type_rows(&a->in_type[MATMUL_A]);
}

/* 16 rows of b a workgroup, or 8, which the constants say. Both fit the same arguments, so the
 * first is taken where it is preferred. x is what f(a) is there: floats, or int8. */
#define NIBBLES(x, rows, kind, fits_, constants_)                                                  \
    .name = "four bits, one row, " #rows kind, .fits = fits_, .word = x##_##rows##_word,           \
    .pass = { { .entry = "main",                                                                   \
                .constants = constants_,                                                           \
                .wgsl = { ONE_ROW_TEXTS, one_row_##x, one_row },                                   \
                .fours = true,                                                                     \
                .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),              \
                          TG_BIND_IN(4), TG_BIND_IN(5), TG_BIND_OUT(0) },                          \
                .groups = x##_##rows##_groups } }
#define NIBBLES_FLOATS                                                                             \
    { .prefers = tg_packed_is_wide,                                                                \
      NIBBLES(floats, 16, "", fits_nibbles, TG_ONE_ROW_WIDE TG_ONE_ROW_ANY) },                     \
    {                                                                                              \
        NIBBLES(floats, 8, "", fits_nibbles, TG_ONE_ROW_NARROW TG_ONE_ROW_ANY)                     \
    }
#define NIBBLES_INT8(kind, fits_, constants_)                                                      \
    { .needs = TG_LEVER_BIT(int8_activations),                                                     \
      .prefers = tg_packed_is_wide_int8,                                                           \
      NIBBLES(int8, 16, kind, fits_, TG_ONE_ROW_WIDE_INT8 constants_) },                           \
    {                                                                                              \
        .needs = TG_LEVER_BIT(int8_activations),                                                   \
        NIBBLES(int8, 8, kind, fits_, TG_ONE_ROW_NARROW_INT8 constants_)                           \
    }
#define NIBBLES_ROUNDED                                                                            \
    NIBBLES_INT8(", rounded, one q4x16", fits_lone_q4, TG_ONE_ROW_LONE_Q4),                        \
        NIBBLES_INT8(", rounded, q4x16", fits_q4, TG_ONE_ROW_Q4),                                  \
        NIBBLES_INT8(", rounded", fits_nibbles, TG_ONE_ROW_ANY)

#endif
