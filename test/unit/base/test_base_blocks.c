/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_blocks.c - every block type of GGUF against the format's own Python package, to the
 * bit: test/golden/blocks/sha256.txt, which tools/oracle/blocks.py has written.
 */
#include "base/codec/sha256.h"
#include "dtype/packed.h"
#include "simd/cpu.h"
#include "simd/pack.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

enum { BLOCKS = 64 };

static uint32_t next(uint32_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    return *x;
}

/* Offsets of the 16-bit floats of a block, ended by -1: their exponents are held down. */
static const struct {
    tg_dtype type;
    int at[3];
} floats[] = {
    { TG_Q4_0, { 0, -1 } },    { TG_Q4_1, { 0, 2, -1 } }, { TG_Q5_0, { 0, -1 } },
    { TG_Q5_1, { 0, 2, -1 } }, { TG_Q8_0, { 0, -1 } },    { TG_Q2_K, { 80, 82, -1 } },
    { TG_Q3_K, { 108, -1 } },  { TG_Q4_K, { 0, 2, -1 } }, { TG_Q5_K, { 0, 2, -1 } },
    { TG_Q6_K, { 208, -1 } },  { TG_IQ4_NL, { 0, -1 } },  { TG_IQ4_XS, { 0, -1 } },
    { TG_MXFP4, { -1 } },      { TG_TQ2_0, { 64, -1 } },  { TG_TQ1_0, { 52, -1 } },
    { TG_Q1_0, { 0, -1 } },    { TG_Q2_0, { 0, -1 } },    { TG_IQ2_XXS, { 0, -1 } },
    { TG_IQ2_XS, { 0, -1 } },  { TG_IQ2_S, { 0, -1 } },   { TG_IQ3_XXS, { 0, -1 } },
    { TG_IQ3_S, { 0, -1 } },   { TG_IQ1_S, { 0, -1 } },   { TG_IQ1_M, { 54, -1 } },
};

static void fill(size_t i, uint8_t bytes[BLOCKS * 256]) {
    const tg_dtype_desc *d = &tg_dtype_table[floats[i].type];
    uint32_t seed = d->number + 1;
    for (size_t b = 0; b < BLOCKS * d->bytes; b++) bytes[b] = (uint8_t)next(&seed);
    for (size_t b = 0; b < BLOCKS; b++) {
        for (const int *at = floats[i].at; *at >= 0; at++)
            bytes[b * d->bytes + (size_t)*at + 1] &= 0xbf;
        if (floats[i].type == TG_MXFP4) bytes[b * d->bytes] &= 0x7f;
    }
}

static void digest_of(size_t i, char hex[65]) {
    static uint8_t bytes[BLOCKS * 256];
    static float x[BLOCKS * TG_BLOCK_MAX];
    const tg_dtype_desc *d = &tg_dtype_table[floats[i].type];
    fill(i, bytes);
    tg_block_to_f32_n(floats[i].type, x, bytes, BLOCKS * d->cols);
    uint8_t digest[32];
    tg_sha256_of(x, BLOCKS * d->cols * sizeof *x, digest);
    tg_sha256_hex(digest, hex);
}

static void all_types(void **state) {
    (void)state;
    FILE *f = fopen("test/golden/blocks/sha256.txt", "r");
    assert_non_null(f);
    char line[256], name[16], want[65];
    size_t n = 0;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%15[A-Z0-9_] %64s", name, want) != 2) continue;
        assert_true(n < sizeof floats / sizeof *floats);
        assert_string_equal(name, tg_dtype_table[floats[n].type].label);
        char have[65];
        digest_of(n, have);
        if (strcmp(have, want) != 0) print_message("%s differs\n", name);
        assert_string_equal(have, want);
        n++;
    }
    fclose(f);
    size_t blocks = 0;
    for (size_t i = 0; i < TG_DTYPE_COUNT; i++)
        blocks += tg_dtype_table[i].cols > 1 && tg_dtype_table[i].number != TG_NOT_IN_GGUF;
    assert_int_equal(n, blocks);
    assert_int_equal(n, sizeof floats / sizeof *floats);
}

/* Packed weights are those of the blocks, of whole groups and of one whose last rows are absent,
 * which are zeros then. */
static void packed_groups(void **state) {
    (void)state;
    enum { ROW_BLOCKS = 2, SOME = 5 };
    static uint8_t bytes[BLOCKS * 256], packed[1 << 16];
    static float want[ROW_BLOCKS * TG_BLOCK_MAX], have[ROW_BLOCKS * TG_BLOCK_MAX];
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        const tg_dtype type = floats[i].type;
        const tg_dtype_desc *d = &tg_dtype_table[type];
        const tg_packing p = d->packing;
        const size_t cols = ROW_BLOCKS * d->cols;
        fill(i, bytes);
        assert_true(tg_pack_group_bytes(p, cols) <= sizeof packed);
        for (size_t rows = SOME; rows <= TG_PACK_ROWS; rows += TG_PACK_ROWS - SOME) {
            const uint8_t *row[TG_PACK_ROWS] = { NULL };
            for (size_t r = 0; r < rows; r++) row[r] = bytes + r * ROW_BLOCKS * d->bytes;
            memset(packed, 0xff, sizeof packed);
            tg_pack_group(type, cols, row, packed);
            for (size_t r = 0; r < TG_PACK_ROWS; r++) {
                memset(want, 0, sizeof want);
                if (row[r]) tg_block_to_f32_n(type, want, row[r], cols);
                tg_matrix_to_f32_n(type, p, cols, packed, r, 0, cols, have);
                for (size_t c = 0; c < cols; c++)
                    if (!(have[c] >= want[c] && have[c] <= want[c]))
                        fail_msg("%s row %zu column %zu: want %g, have %g", d->name, r, c,
                                 (double)want[c], (double)have[c]);
            }
        }
    }
}

/* Every instruction set packs as the reference does, to the byte: rows that are longer than what is
 * packed at once, widths that are not whole vectors, and groups that lack rows. */
static void packed_by_vectors(void **state) {
    (void)state;
    enum { COLS_MAX = 5 * 256, ROOM = 1 << 17 };
    static uint8_t bytes[TG_PACK_ROWS * COLS_MAX * 4], want[ROOM], have[ROOM];
    size_t n_isas;
    const tg_isa_desc *isas = tg_isa_list(&n_isas);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t i = 0; i < n_isas * TG_DTYPE_COUNT * 4; i++) {
        const tg_isa_desc *isa = &isas[i / (TG_DTYPE_COUNT * 4)];
        const tg_dtype type = (tg_dtype)(i / 4 % TG_DTYPE_COUNT);
        const tg_dtype_desc *d = &tg_dtype_table[type];
        const size_t most = d->cols == 1 ? 296 : COLS_MAX;
        const size_t cols = i & 1 ? most : d->cols == 1 ? 13 : d->cols;
        const size_t n = tg_pack_group_bytes(d->packing, cols);
        const uint8_t *row[TG_PACK_ROWS] = { NULL };
        if (!tg_isa_usable(isa) || d->packing == TG_PACK_NONE) continue;
        assert_true(n + 64 <= ROOM);
        for (size_t r = 0; r < (i & 2 ? 16 : 7); r++)
            row[r] = bytes + 1 + r * cols / d->cols * d->bytes;
        memset(want, 0xee, sizeof want);
        memset(have, 0xee, sizeof have);
        tg_pack_group(type, cols, row, want);
        tg_pack_find(isa->id)(type, cols, row, have);
        if (memcmp(want, have, n + 64) != 0)
            fail_msg("%s %s, %zu columns differ", isa->name, d->name, cols);
    }
}

static void numbers_of_files(void **state) {
    (void)state;
    tg_dtype type = TG_F32;
    assert_true(tg_dtype_of_number(14, &type) && type == TG_Q6_K);
    assert_true(tg_dtype_of_number(39, &type) && type == TG_MXFP4);
    assert_false(tg_dtype_of_number(4, &type)); /* Q4_2, withdrawn */
    assert_false(tg_dtype_of_number(UINT32_MAX, &type));
    assert_int_equal(type, TG_MXFP4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types),
        cmocka_unit_test(packed_groups),
        cmocka_unit_test(packed_by_vectors),
        cmocka_unit_test(numbers_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
