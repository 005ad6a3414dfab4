/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd_probe.simd.h - the wrappers of simd_probe.h, for one ISA.
 */
#include "simd_probe.h"

#include "simd/vec.h"
#include "simd/vmath.h"

#define UNARY(name)                                                                                \
    static void name(float *y, const float *a, size_t n) {                                         \
        for (size_t i = 0; i < n; i += 16) tg_vstore(y + i, tg_##name(tg_vload(a + i)));           \
    }
PROBE_UNARY(UNARY)

#define BINARY(name)                                                                               \
    static void name(float *y, const float *a, const float *b, size_t n) {                         \
        for (size_t i = 0; i < n; i += 16)                                                         \
            tg_vstore(y + i, tg_##name(tg_vload(a + i), tg_vload(b + i)));                         \
    }
PROBE_BINARY(BINARY)

#define TERNARY(name)                                                                              \
    static void name(float *y, const float *a, const float *b, const float *c, size_t n) {         \
        for (size_t i = 0; i < n; i += 16)                                                         \
            tg_vstore(y + i, tg_##name(tg_vload(a + i), tg_vload(b + i), tg_vload(c + i)));        \
    }
PROBE_TERNARY(TERNARY)

#define COMPARE(name)                                                                              \
    static void name(float *y, const float *a, const float *b, size_t n) {                         \
        for (size_t i = 0; i < n; i += 16)                                                         \
            tg_vstore(y + i, tg_vselect(tg_##name(tg_vload(a + i), tg_vload(b + i)), tg_vset(1),   \
                                        tg_vset(2)));                                              \
    }
PROBE_COMPARE(COMPARE)

#define INT_BINARY(name)                                                                           \
    static void name(int32_t *y, const int32_t *a, const int32_t *b, size_t n) {                   \
        for (size_t i = 0; i < n; i += 16)                                                         \
            tg_vistore(y + i, tg_##name(tg_viload(a + i), tg_viload(b + i)));                      \
    }
PROBE_INT_BINARY(INT_BINARY)

/* Counts are constants, as in all code that shifts. */
#define SHIFT(name)                                                                                \
    static void name(int32_t *y, const int32_t *a, size_t n) {                                     \
        for (size_t i = 0; i < n; i += 64) {                                                       \
            tg_vistore(y + i, tg_##name(tg_viload(a + i), 1));                                     \
            tg_vistore(y + i + 16, tg_##name(tg_viload(a + i + 16), 13));                          \
            tg_vistore(y + i + 32, tg_##name(tg_viload(a + i + 32), 23));                          \
            tg_vistore(y + i + 48, tg_##name(tg_viload(a + i + 48), 31));                          \
        }                                                                                          \
    }
PROBE_SHIFT(SHIFT)

static void vround(int32_t *y, const float *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) tg_vistore(y + i, tg_vround(tg_vload(a + i)));
}
static void vfloat(float *y, const int32_t *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) tg_vstore(y + i, tg_vfloat(tg_viload(a + i)));
}
static void bits(int32_t *y, const float *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) tg_vistore(y + i, tg_vbits(tg_vload(a + i)));
}
static void frombits(float *y, const int32_t *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) tg_vstore(y + i, tg_vfrombits(tg_viload(a + i)));
}
static float vsum(const float *a) { return tg_vsum(tg_vload(a)); }
static float vmaxlane(const float *a) { return tg_vmaxlane(tg_vload(a)); }
static void load_n(float *y, const float *a, size_t n) { tg_vstore(y, tg_vload_n(a, n)); }
static void store_n(float *y, const float *a, size_t n) { tg_vstore_n(y, tg_vload(a), n); }
static void first(float *y, size_t n) {
    tg_vstore(y, tg_vselect(tg_vfirst(n), tg_vset(1), tg_vset(2)));
}
static void fill(float *y, float x) {
    tg_vstore(y, tg_vset(x));
    tg_vstore(y + 16, tg_vzero());
}
static void ifill(int32_t *y, int32_t x) { tg_vistore(y, tg_viset(x)); }

static void load_f16(float *y, const uint16_t *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) tg_vstore(y + i, tg_vload_f16(a + i));
}
static void store_f16(uint16_t *y, const float *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) tg_vstore_f16(y + i, tg_vload(a + i));
}
static void load_bf16(float *y, const uint16_t *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) tg_vstore(y + i, tg_vload_bf16(a + i));
}
static void store_bf16(uint16_t *y, const float *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) tg_vstore_bf16(y + i, tg_vload(a + i));
}
static void copy_u16(uint16_t *y, int32_t *wide, const uint16_t *a, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        const tg_vi x = tg_viload_u16(a + i);
        tg_vistore(wide + i, x);
        tg_vistore_u16(y + i, x);
    }
}

extern const probe TG_CAT(probe_of__, TG_ISA);
const probe TG_CAT(probe_of__, TG_ISA) = {
#define ENTRY(name) .name = (name),
    PROBE_UNARY(ENTRY) PROBE_BINARY(ENTRY) PROBE_TERNARY(ENTRY) PROBE_COMPARE(ENTRY)
        PROBE_INT_BINARY(ENTRY) PROBE_SHIFT(ENTRY)
#undef ENTRY
            .vround = vround,
    .vfloat = vfloat,
    .bits = bits,
    .frombits = frombits,
    .vsum = vsum,
    .vmaxlane = vmaxlane,
    .load_n = load_n,
    .store_n = store_n,
    .first = first,
    .fill = fill,
    .ifill = ifill,
    .load_f16 = load_f16,
    .store_f16 = store_f16,
    .load_bf16 = load_bf16,
    .store_bf16 = store_bf16,
    .copy_u16 = copy_u16,
    .turn = tg_vturn,
};
