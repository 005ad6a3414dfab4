/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gelu.simd.h - y = gelu(x) by runs of elements; each form is a variant.
 */
#include "ops/build.h"
#include "ops/kernel.h"
#include "simd/vcap.h"
#include "simd/vec.h"
#include "simd/vmath.h"

/* Half of TG_UNIT_ELEMS, as an element costs an exp and a polynomial or two. */
#define UNIT 4096u

static size_t units(const tg_args *a) { return tg_units(tg_type_elems(&a->in_type[0]), UNIT); }

/* gelu is a constant where this is called, so inlining leaves no call in the loop. The short vector
 * at the end goes through the same function, its unused lanes being gelu(0). */
static inline __attribute__((always_inline)) void run_with(const tg_args *a, size_t begin,
                                                           size_t end, tg_v (*gelu)(tg_v)) {
    const float *x = a->in[0];
    float *y = a->out[0];
    const size_t stop = tg_min_size(end * UNIT, tg_type_elems(&a->in_type[0]));
    size_t i = begin * UNIT;
    for (; i + 16 <= stop; i += 16) tg_vstore(y + i, gelu(tg_vload(x + i)));
    if (i < stop) tg_vstore_n(y + i, gelu(tg_vload_n(x + i, stop - i)), stop - i);
}

/* A NaN stays a NaN: tg_vmax(0, x) is x where the comparison fails. */
static inline tg_v relu2(tg_v x) {
    const tg_v y = tg_vmax(tg_vzero(), x);
    return tg_vmul(y, y);
}
static bool is_erf(const tg_args *a) { return a->attr.i[0] == TG_ACT_GELU_ERF; }
static bool is_tanh(const tg_args *a) { return a->attr.i[0] == TG_ACT_GELU_TANH; }
static bool is_relu2(const tg_args *a) { return a->attr.i[0] == TG_ACT_RELU2; }
static void run_erf(const tg_args *a, size_t begin, size_t end) {
    run_with(a, begin, end, tg_vgelu_erf);
}
static void run_tanh(const tg_args *a, size_t begin, size_t end) {
    run_with(a, begin, end, tg_vgelu_tanh);
}
static void run_relu2(const tg_args *a, size_t begin, size_t end) {
    run_with(a, begin, end, relu2);
}

static bool is_cap(const tg_args *a) { return a->attr.i[0] == TG_ACT_SOFT_CAP; }
static void run_cap(const tg_args *a, size_t begin, size_t end) {
    const size_t from = begin * UNIT, stop = tg_min_size(end * UNIT, tg_type_elems(&a->in_type[0]));
    const float cap = a->attr.f[0];
    tg_vcap_n((float *)a->out[0] + from, (const float *)a->in[0] + from, stop - from, 1 / cap, cap);
}

static const tg_variant variants[] = {
    { .name = "erf", .fits = is_erf, .phase = { { units, run_erf } } },
    { .name = "tanh", .fits = is_tanh, .phase = { { units, run_tanh } } },
    { .name = "relu2", .fits = is_relu2, .phase = { { units, run_relu2 } } },
    { .name = "cap", .fits = is_cap, .phase = { { units, run_cap } } },
};
TG_KERNELS(gelu, variants);
