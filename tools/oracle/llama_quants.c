/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama_quants.c - what llama.cpp's own quantizer loses, for test/unit/test_quantize.c: prints a
 * type and the root of the mean square of its errors on numbers that the test makes, too; then the
 * same by an importance matrix, of errors as they are and as it weighs them.
 *
 *     cc -O2 -Iggml/include -Iggml/src -D_GNU_SOURCE llama_quants.c ggml/src/ggml-quants.c -lm
 *
 * in a tree of llama.cpp. ggml's base library, which names and aborts, is not needed: both are
 * here.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ggml-quants.h"

enum { N = 256 * 512, COLS = 1024 };
static float x[N], y[N], importance[COLS];
static uint8_t blocks[N * 4];

void ggml_abort(const char *file, int line, const char *format, ...) {
    (void)file, (void)line, (void)format;
    abort();
}
size_t ggml_row_size(enum ggml_type type, int64_t n) {
    switch (type) {
    case GGML_TYPE_Q4_0: return (size_t)n / 32 * sizeof(block_q4_0);
    case GGML_TYPE_Q5_0: return (size_t)n / 32 * sizeof(block_q5_0);
    case GGML_TYPE_Q5_1: return (size_t)n / 32 * sizeof(block_q5_1);
    case GGML_TYPE_Q4_K: return (size_t)n / 256 * sizeof(block_q4_K);
    case GGML_TYPE_Q5_K: return (size_t)n / 256 * sizeof(block_q5_K);
    default: return (size_t)n / 256 * sizeof(block_q6_K);
    }
}
size_t ggml_type_size(enum ggml_type type) { return (size_t)type; }
const char *ggml_type_name(enum ggml_type type) { return (void)type, ""; }

static double uniform(void) {
    static uint64_t state = 1;
    uint64_t z = (state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

#define TELL(name, out_of, in_to)                                                                  \
    do {                                                                                           \
        double sum = 0;                                                                            \
        out_of(x, (void *)blocks, N);                                                              \
        in_to((void *)blocks, y, N);                                                               \
        for (int i = 0; i < N; i++) sum += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);          \
        printf("%s %.6e\n", name, sqrt(sum / N));                                                  \
    } while (0)

#define WEIGHED(name, out_of, in_to)                                                               \
    do {                                                                                           \
        double plain = 0, weighed = 0, all = 0;                                                    \
        out_of(x, blocks, N / COLS, COLS, importance);                                             \
        in_to((void *)blocks, y, N);                                                               \
        for (int i = 0; i < N; i++) {                                                              \
            const double d = (double)x[i] - y[i], h = (double)importance[i % COLS];                \
            plain += d * d;                                                                        \
            weighed += h * d * d;                                                                  \
            all += h;                                                                              \
        }                                                                                          \
        printf("%s %.6e %.6e\n", name, sqrt(plain / N), sqrt(weighed / all));                      \
    } while (0)

int main(void) {
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int k = 0; k < 12; k++) sum += uniform();
        x[i] = (float)((sum - 6) * 0.02 * (1 + 0.5 * (i / 256 % 5)));
    }
    TELL("q4_0", quantize_row_q4_0_ref, dequantize_row_q4_0);
    TELL("q5_0", quantize_row_q5_0_ref, dequantize_row_q5_0);
    TELL("q5_1", quantize_row_q5_1_ref, dequantize_row_q5_1);
    TELL("q8_0", quantize_row_q8_0_ref, dequantize_row_q8_0);
    TELL("iq4_nl", quantize_row_iq4_nl_ref, dequantize_row_iq4_nl);
    TELL("q4_k", quantize_row_q4_K_ref, dequantize_row_q4_K);
    TELL("q5_k", quantize_row_q5_K_ref, dequantize_row_q5_K);
    TELL("q6_k", quantize_row_q6_K_ref, dequantize_row_q6_K);
    /* Most columns matter little, some a hundred times as much, and one in 61 has always been 0. */
    for (int i = 0; i < COLS; i++) {
        const double u = uniform();
        importance[i] = i % 61 == 60 ? 0 : (float)(0.01 + u * u * u * u);
    }
    printf("by importance\n");
    WEIGHED("q4_0", quantize_q4_0, dequantize_row_q4_0);
    WEIGHED("q5_0", quantize_q5_0, dequantize_row_q5_0);
    WEIGHED("q5_1", quantize_q5_1, dequantize_row_q5_1);
    WEIGHED("iq4_nl", quantize_iq4_nl, dequantize_row_iq4_nl);
    WEIGHED("q4_k", quantize_q4_K, dequantize_row_q4_K);
    WEIGHED("q5_k", quantize_q5_K, dequantize_row_q5_K);
    WEIGHED("q6_k", quantize_q6_K, dequantize_row_q6_K);
    return 0;
}
