/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.h - types of tensors: names, sizes, and the reference conversions between those of floats.
 * types.def lists them: elements, and blocks of elements that share a scale (blocks.h). Elements:
 *
 *   f32   IEEE binary32                    sign 1  exponent 8  fraction 23
 *   f16   IEEE binary16                    sign 1  exponent 5  fraction 10
 *   bf16  the upper half of an f32         sign 1  exponent 8  fraction 7
 *   i32   two's complement                 token ids, positions
 *   u8    bytes
 *   f64   IEEE binary64, for oracles only: no kernel and no file has it
 *
 * All of them are little-endian in files. Conversions to a smaller float round to nearest, ties to
 * even, keep infinities, make what is too large infinite, keep subnormals, and turn every NaN into
 * a quiet NaN with the same sign and the leading bits of its payload.
 */
#ifndef TG_DTYPE_DTYPE_H
#define TG_DTYPE_DTYPE_H

#include "base/libc.h"

typedef enum tg_dtype {
#define TG_DTYPE(suffix, name, number, cols, bytes, packing) TG_##suffix,
#define TG_BLOCK(suffix, name, number, cols, bytes, packing) TG_##suffix,
#include "dtype/types.def"
    TG_DTYPE_COUNT
} tg_dtype;

/*
 * How the rows of a matrix lie in memory: its layout. NONE is one behind the other, as in files; in
 * the others sixteen lie side by side (packed.h draws them).
 *
 * name, text of dumps, columns of a unit, bytes of a unit of 16 rows, zero, number in session files
 */
#define TG_PACKING_LIST(X)                                                                         \
    X(NONE, "", 1, 0, 0, 0)                                                                        \
    X(F32, "f32x16", 1, 64, 0, 0)                                                                  \
    X(F16, "f16x16", 1, 32, 0, 1)                                                                  \
    X(BF16, "bf16x16", 1, 32, 0, 2)                                                                \
    X(Q4X16, "q4x16", 32, 288, 8, 6)                                                               \
    X(Q4MX16, "q4mx16", 32, 320, 0, 7)                                                             \
    X(Q5X16, "q5x16", 32, 352, 16, 8)                                                              \
    X(Q5MX16, "q5mx16", 32, 384, 0, 9)                                                             \
    X(Q8X16, "q8x16", 32, 544, 128, 10)                                                            \
    X(Q4KX16, "q4kx16", 256, 2368, 0, 11)                                                          \
    X(Q8MX16, "q8mx16", 32, 768, 128, 12)

typedef enum tg_packing {
#define TG_PACKING_ENUM(name, text, cols, bytes, zero, number) TG_PACK_##name,
    TG_PACKING_LIST(TG_PACKING_ENUM)
#undef TG_PACKING_ENUM
        TG_PACKING_COUNT
} tg_packing;

#define TG_NOT_IN_GGUF UINT32_MAX

/* A line of types.def. */
typedef struct tg_dtype_desc {
    const char *name, *label; /* "q4_1", "Q4_1" */
    uint32_t number;          /* in GGUF files, or TG_NOT_IN_GGUF */
    uint32_t cols, bytes;     /* of a block; an element is one */
    tg_packing packing;       /* in which kernels read matrices of it */
} tg_dtype_desc;

extern const tg_dtype_desc tg_dtype_table[TG_DTYPE_COUNT];

/* "f32" ...; "?" beyond the list. */
const char *tg_dtype_name(tg_dtype dtype);
/* Bytes of one block, which is one element of types that have none; 0 beyond the list. */
size_t tg_dtype_bytes(tg_dtype dtype);
/* False if there is no type of this name; of this number in GGUF files. */
bool tg_dtype_find(const char *name, tg_dtype *out);
bool tg_dtype_of_number(uint32_t number, tg_dtype *out);

/* One element. The 16-bit types travel as their bits. */
float tg_f16_to_f32(uint16_t bits);
uint16_t tg_f16_from_f32(float x);
float tg_bf16_to_f32(uint16_t bits);
uint16_t tg_bf16_from_f32(float x);

/* n elements; source and destination do not overlap. */
void tg_f16_to_f32_n(float *out, const uint16_t *in, size_t n);
void tg_f16_from_f32_n(uint16_t *out, const float *in, size_t n);
void tg_bf16_to_f32_n(float *out, const uint16_t *in, size_t n);
void tg_bf16_from_f32_n(uint16_t *out, const float *in, size_t n);

#endif
