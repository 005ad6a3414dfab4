/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gelu_grad.simd.h - dx = dy * gelu'(x) by runs of elements; each form is a variant.
 */
#include "ops/build.h"
#include "ops/kernel.h"
#include "simd/vcap.h"
#include "simd/vec.h"
#include "simd/vmath.h"

/* Half of TG_UNIT_ELEMS, as an element costs an exp and a polynomial or two. */
#define UNIT 4096u

static size_t units(const tg_args *a) { return tg_units(tg_type_elems(&a->in_type[0]), UNIT); }

/* slope is a constant where this is called, so inlining leaves no call in the loop. In place is
 * fine: a vector is stored after both were read. */
static inline __attribute__((always_inline)) void run_with(const tg_args *a, size_t begin,
                                                           size_t end, tg_v (*slope)(tg_v)) {
    const float *x = a->in[0], *dy = a->in[1];
    float *dx = a->out[0];
    const size_t stop = tg_min_size(end * UNIT, tg_type_elems(&a->in_type[0]));
    size_t i = begin * UNIT;
    for (; i + 16 <= stop; i += 16)
        tg_vstore(dx + i, tg_vmul(tg_vload(dy + i), slope(tg_vload(x + i))));
    if (i >= stop) return;
    const size_t n = stop - i;
    tg_vstore_n(dx + i, tg_vmul(tg_vload_n(dy + i, n), slope(tg_vload_n(x + i, n))), n);
}

/* A NaN stays a NaN: tg_vmax(0, x) is x where the comparison fails. */
static inline tg_v relu2_d(tg_v x) {
    const tg_v y = tg_vmax(tg_vzero(), x);
    return tg_vadd(y, y);
}
static bool is_erf(const tg_args *a) { return a->attr.i[0] == TG_ACT_GELU_ERF; }
static bool is_tanh(const tg_args *a) { return a->attr.i[0] == TG_ACT_GELU_TANH; }
static bool is_relu2(const tg_args *a) { return a->attr.i[0] == TG_ACT_RELU2; }
static void run_erf(const tg_args *a, size_t begin, size_t end) {
    run_with(a, begin, end, tg_vgelu_erf_d);
}
static void run_tanh(const tg_args *a, size_t begin, size_t end) {
    run_with(a, begin, end, tg_vgelu_tanh_d);
}
static void run_relu2(const tg_args *a, size_t begin, size_t end) {
    run_with(a, begin, end, relu2_d);
}

static bool is_cap(const tg_args *a) { return a->attr.i[0] == TG_ACT_SOFT_CAP; }
/* A vector at a time, since dx may be dy. */
static void run_cap(const tg_args *a, size_t begin, size_t end) {
    const size_t stop = tg_min_size(end * UNIT, tg_type_elems(&a->in_type[0]));
    for (size_t i = begin * UNIT; i < stop; i += 16) {
        const size_t n = tg_min_size(16, stop - i);
        float tanhs[16];
        tg_vcap_n(tanhs, (const float *)a->in[0] + i, n, 1 / a->attr.f[0], 1);
        const tg_v t = tg_vload_n(tanhs, n), dy = tg_vload_n((const float *)a->in[1] + i, n);
        tg_vstore_n((float *)a->out[0] + i, tg_vmul(dy, tg_vfnma(t, t, tg_vset(1))), n);
    }
}

static const tg_variant variants[] = {
    { .name = "erf", .fits = is_erf, .phase = { { units, run_erf } } },
    { .name = "tanh", .fits = is_tanh, .phase = { { units, run_tanh } } },
    { .name = "relu2", .fits = is_relu2, .phase = { { units, run_relu2 } } },
    { .name = "cap", .fits = is_cap, .phase = { { units, run_cap } } },
};
TG_KERNELS(gelu_grad, variants);
