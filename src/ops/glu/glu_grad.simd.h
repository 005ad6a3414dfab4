/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glu_grad.simd.h - gradients of gates and values by rows; each function is a variant.
 */
#include "ops/glu/gate.h"
#include "ops/kernel.h"

/* Half of TG_UNIT_ELEMS, as an element costs two exps and two divisions. */
static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(2 * tg_type_cols(&a->in_type[1]), TG_UNIT_ELEMS / 2);
}
static size_t units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[1]), unit_rows(a));
}

/* n columns from dx on, of m. In place is fine: all is read before any is stored. */
static inline __attribute__((always_inline)) void columns(float *dx, const float *x,
                                                          const float *dy, size_t m, size_t n,
                                                          int how) {
    const tg_v gate = tg_vload_n(x, n), value = tg_vload_n(x + m, n), d = tg_vload_n(dy, n);
    const tg_v slope = how == TG_READ_SILU        ? tg_vsilu_d(gate)
                       : how == TG_READ_GELU_TANH ? tg_vgelu_tanh_d(gate)
                                                  : tg_vgelu_erf_d(gate);
    tg_vstore_n(dx, tg_vmul(tg_vmul(d, value), slope), n);
    tg_vstore_n(dx + m, gated(how, gate, d), n);
}

/* how is a constant where this is called. */
static inline __attribute__((always_inline)) void run_with(const tg_args *a, size_t begin,
                                                           size_t end, int how) {
    const size_t m = tg_type_cols(&a->in_type[1]);
    const size_t stop = tg_min_size(end * unit_rows(a), tg_type_rows(&a->in_type[1]));
    for (size_t r = begin * unit_rows(a); r < stop; r++) {
        const float *x = (const float *)a->in[0] + 2 * r * m;
        const float *dy = (const float *)a->in[1] + r * m;
        float *dx = (float *)a->out[0] + 2 * r * m;
        for (size_t k = 0; k < m; k += 16)
            columns(dx + k, x + k, dy + k, m, tg_min_size(16, m - k), how);
    }
}

static bool is_silu(const tg_args *a) { return a->attr.i[0] == TG_READ_SILU; }
static bool is_gelu(const tg_args *a) { return a->attr.i[0] == TG_READ_GELU_TANH; }
static bool is_erf(const tg_args *a) { return a->attr.i[0] == TG_READ_GELU_ERF; }
static void run_silu(const tg_args *a, size_t begin, size_t end) {
    run_with(a, begin, end, TG_READ_SILU);
}
static void run_gelu(const tg_args *a, size_t begin, size_t end) {
    run_with(a, begin, end, TG_READ_GELU_TANH);
}
static void run_erf(const tg_args *a, size_t begin, size_t end) {
    run_with(a, begin, end, TG_READ_GELU_ERF);
}

static const tg_variant variants[] = {
    { .name = "silu", .fits = is_silu, .phase = { { units, run_silu } } },
    { .name = "gelu", .fits = is_gelu, .phase = { { units, run_gelu } } },
    { .name = "erf", .fits = is_erf, .phase = { { units, run_erf } } },
};
TG_KERNELS(glu_grad, variants);
