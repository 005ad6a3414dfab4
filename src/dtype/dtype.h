/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.h - element types: names, sizes, and the reference conversions between them.
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

/* suffix, name, bytes of an element */
#define TG_DTYPE_LIST(X)                                                                           \
    X(F32, "f32", 4)                                                                               \
    X(F16, "f16", 2)                                                                               \
    X(BF16, "bf16", 2)                                                                             \
    X(I32, "i32", 4)                                                                               \
    X(U8, "u8", 1)                                                                                 \
    X(F64, "f64", 8)

typedef enum tg_dtype {
#define TG_DTYPE_ENUM(suffix, name, bytes) TG_##suffix,
    TG_DTYPE_LIST(TG_DTYPE_ENUM)
#undef TG_DTYPE_ENUM
        TG_DTYPE_COUNT
} tg_dtype;

/* "f32" ...; "?" beyond the list. */
const char *tg_dtype_name(tg_dtype dtype);
/* Bytes of one element; 0 beyond the list. */
size_t tg_dtype_bytes(tg_dtype dtype);
/* False if there is no type of this name. */
bool tg_dtype_find(const char *name, tg_dtype *out);

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
