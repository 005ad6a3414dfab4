/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glu.simd.h - y = act(gates) * values by rows; each function is a variant.
 */
#include "ops/glu/gate.h"
#include "ops/kernel.h"

/* Half of TG_UNIT_ELEMS, as an element costs an exp and a division. */
static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->out_type[0]), TG_UNIT_ELEMS / 2);
}
static size_t units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->out_type[0]), unit_rows(a));
}

/* how is a constant where this is called. */
static inline __attribute__((always_inline)) void run_with(const tg_args *a, size_t begin,
                                                           size_t end, int how) {
    const size_t m = tg_type_cols(&a->out_type[0]);
    const size_t stop = tg_min_size(end * unit_rows(a), tg_type_rows(&a->out_type[0]));
    for (size_t r = begin * unit_rows(a); r < stop; r++) {
        const float *x = (const float *)a->in[0] + 2 * r * m;
        float *y = (float *)a->out[0] + r * m;
        size_t k = 0;
        for (; k + 16 <= m; k += 16)
            tg_vstore(y + k, gated(how, tg_vload(x + k), tg_vload(x + m + k)));
        if (k == m) continue;
        const size_t n = m - k;
        tg_vstore_n(y + k, gated(how, tg_vload_n(x + k, n), tg_vload_n(x + m + k, n)), n);
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
TG_KERNELS(glu, variants);
