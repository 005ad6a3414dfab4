/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_quantize.c - floats to blocks: errors are held against those of llama.cpp's own quantizer on
 * the same numbers (tools/oracle/llama_quants.c), and blocks of odd content stand for what they
 * can.
 */
#include "dtype/quantize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 256 * 512, COLS = 1024, BYTES_MAX = N * 4 };
static float x[N], y[N], importance[COLS];
static uint8_t blocks[BYTES_MAX], others[BYTES_MAX];

/* Root of the mean square of what 131,072 numbers lose (llama.cpp of llama-cpp-python 0.3.36). */
static const struct {
    tg_dtype type;
    double llama;
} types[] = {
    { TG_Q4_0, 3.603117e-03 }, { TG_Q5_0, 1.786081e-03 },   { TG_Q5_1, 1.592379e-03 },
    { TG_Q8_0, 2.232199e-04 }, { TG_IQ4_NL, 3.318158e-03 }, { TG_Q4_K, 2.998705e-03 },
    { TG_Q5_K, 1.518590e-03 }, { TG_Q6_K, 7.439040e-04 },
};
enum { N_TYPES = sizeof types / sizeof types[0] };

/* The same by an importance of columns: of errors as they are, and as it weighs them. */
static const struct {
    tg_dtype type;
    double llama, weighed;
} by_importance[] = {
    { TG_Q4_0, 3.583605e-03, 3.169624e-03 }, { TG_Q5_0, 1.778203e-03, 1.570411e-03 },
    { TG_Q5_1, 1.542831e-03, 1.255303e-03 }, { TG_IQ4_NL, 3.323765e-03, 2.886787e-03 },
    { TG_Q4_K, 3.193137e-03, 2.626947e-03 }, { TG_Q5_K, 1.572852e-03, 1.346507e-03 },
    { TG_Q6_K, 7.919940e-04, 6.523475e-04 },
};
enum { N_WEIGHED = sizeof by_importance / sizeof by_importance[0] };

static uint64_t state;

/* splitmix64 */
static double uniform(void) {
    uint64_t z = (state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* As the oracle's: nearly normal, and each block of 256 has one of five spreads. */
static void fill(void) {
    state = 1;
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int k = 0; k < 12; k++) sum += uniform();
        x[i] = (float)((sum - 6) * 0.02 * (1 + 0.5 * (i / 256 % 5)));
    }
}

/* As the oracle's, behind its numbers. */
static void fill_importance(void) {
    for (int i = 0; i < COLS; i++) {
        const double u = uniform();
        importance[i] = i % 61 == 60 ? 0 : (float)(0.01 + u * u * u * u);
    }
}

static double loss_of(tg_dtype type, size_t n) {
    double sum = 0;
    tg_block_from_f32_n(type, blocks, x, n, NULL);
    tg_block_to_f32_n(type, y, blocks, n);
    for (size_t i = 0; i < n; i++) sum += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
    return sqrt(sum / (double)n);
}

static void no_worse_than_llama_cpp(void **unused) {
    (void)unused;
    fill();
    for (size_t i = 0; i < N_TYPES; i++) {
        const double have = loss_of(types[i].type, N);
        if (!(have <= 1.02 * types[i].llama))
            fail_msg("%s: want at most %g, have %g", tg_dtype_name(types[i].type),
                     1.02 * types[i].llama, have);
    }
}

/* Rows of COLS by their importance: *weighed is the loss that it weighs. */
static double loss_by_importance(tg_dtype type, const float *by, double *weighed) {
    const tg_dtype_desc *d = &tg_dtype_table[type];
    double sum = 0, sum_weighed = 0, all = 0;
    for (size_t row = 0; row < N / COLS; row++)
        tg_block_from_f32_n(type, blocks + row * (COLS / d->cols * d->bytes), x + row * COLS, COLS,
                            by);
    tg_block_to_f32_n(type, y, blocks, N);
    for (size_t i = 0; i < N; i++) {
        const double e = (double)x[i] - y[i], h = (double)importance[i % COLS];
        sum += e * e;
        sum_weighed += h * e * e;
        all += h;
    }
    *weighed = sqrt(sum_weighed / all);
    return sqrt(sum / (double)N);
}

/* Not more of either kind than llama.cpp loses; and less of what counts than without. */
static void no_worse_than_llama_cpp_by_importance(void **unused) {
    (void)unused;
    fill();
    fill_importance();
    for (size_t i = 0; i < N_WEIGHED; i++) {
        const tg_dtype type = by_importance[i].type;
        double weighed, without;
        loss_by_importance(type, NULL, &without);
        const double have = loss_by_importance(type, importance, &weighed);
        assert_true(tg_block_weighs(type));
        if (!(have <= 1.02 * by_importance[i].llama && weighed <= 1.02 * by_importance[i].weighed &&
              weighed < 0.99 * without))
            fail_msg("%s: want at most %g, %g weighed and %g, have %g and %g", tg_dtype_name(type),
                     1.02 * by_importance[i].llama, 1.02 * by_importance[i].weighed, without, have,
                     weighed);
    }
}

/* Columns that were always 0 are written as well as others: another text may use them. */
static void columns_that_were_never_used(void **unused) {
    (void)unused;
    fill();
    memset(importance, 0, sizeof importance);
    for (size_t i = 0; i < N_WEIGHED; i++) {
        double weighed;
        const double have = loss_by_importance(by_importance[i].type, importance, &weighed);
        const double most = 1.3 * loss_by_importance(by_importance[i].type, NULL, &weighed);
        if (!(have <= most))
            fail_msg("%s: want at most %g, have %g", tg_dtype_name(by_importance[i].type), most,
                     have);
    }
}

/* Types without a choice of scales are what they are without an importance. */
static void others_do_not_look(void **unused) {
    (void)unused;
    fill();
    fill_importance();
    static const tg_dtype plain[] = { TG_F32, TG_F16, TG_BF16, TG_Q8_0 };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        assert_false(tg_block_weighs(plain[i]));
        tg_block_from_f32_n(plain[i], blocks, x, COLS, NULL);
        tg_block_from_f32_n(plain[i], others, x, COLS, importance);
        assert_memory_equal(blocks, others,
                            COLS / tg_dtype_table[plain[i]].cols * tg_dtype_table[plain[i]].bytes);
    }
}

/* What was in memory before does not go along, and the same floats give the same bytes. */
static void writes_every_bit(void **unused) {
    (void)unused;
    fill();
    for (size_t i = 0; i < N_TYPES; i++) {
        const tg_dtype_desc *d = &tg_dtype_table[types[i].type];
        const size_t n = 2048, bytes = n / d->cols * d->bytes;
        memset(blocks, 0x00, bytes + 1);
        memset(others, 0xff, bytes + 1);
        tg_block_from_f32_n(types[i].type, blocks, x, n, NULL);
        tg_block_from_f32_n(types[i].type, others, x, n, NULL);
        assert_memory_equal(blocks, others, bytes);
        assert_true(blocks[bytes] == 0 && others[bytes] == 0xff);
    }
}

/* Zeros stay zeros; what a block stands for is written again as the same numbers. */
static void zeros_and_second_times(void **unused) {
    (void)unused;
    for (size_t i = 0; i < N_TYPES; i++) {
        memset(x, 0, sizeof x);
        assert_true(loss_of(types[i].type, 512) == 0);
        fill();
        const double once = loss_of(types[i].type, 2048);
        memcpy(x, y, 2048 * sizeof *x);
        assert_true(loss_of(types[i].type, 2048) < 0.6 * once);
    }
}

/* One large weight among small ones, and numbers of one sign. */
static void odd_blocks(void **unused) {
    (void)unused;
    for (size_t i = 0; i < N_TYPES; i++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            for (int k = 0; k < 256; k++)
                x[k] = (float)sign * (k == 77 ? 8.0f : 0.001f * (float)(k % 7));
            tg_block_from_f32_n(types[i].type, blocks, x, 256, NULL);
            tg_block_to_f32_n(types[i].type, y, blocks, 256);
            for (int k = 0; k < 256; k++) {
                /* a step of the block's scale, at most */
                const double most = k / 32 == 77 / 32 ? 0.6 : 0.3;
                if (!(fabs((double)x[k] - (double)y[k]) <= most))
                    fail_msg("%s: element %d: want %g, have %g", tg_dtype_name(types[i].type), k,
                             (double)x[k], (double)y[k]);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_worse_than_llama_cpp),
        cmocka_unit_test(no_worse_than_llama_cpp_by_importance),
        cmocka_unit_test(columns_that_were_never_used),
        cmocka_unit_test(others_do_not_look),
        cmocka_unit_test(writes_every_bit),
        cmocka_unit_test(zeros_and_second_times),
        cmocka_unit_test(odd_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
