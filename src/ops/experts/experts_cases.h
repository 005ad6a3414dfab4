/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experts_cases.h - what the test cases of experts and experts_x_grad share: their weights' bytes.
 */
#ifndef TG_OPS_EXPERTS_CASES_H
#define TG_OPS_EXPERTS_CASES_H

#include "base/math.h"
#include "ops/experts/experts_rules.h"
#include "ops/packed_case.h"

/* x is what 8 bits can say without loss, where weights are whole numbers: whole numbers with a 127
 * in each block, so that kernels that round x are held to the tolerance of the others. */
static inline void experts_prepare(const tg_args *a) {
    for (int k = EXPERTS_W; k <= EXPERTS_W1 && a->in[k]; k++)
        if (!experts_is_floats(&a->in_type[k])) tg_case_fill_packed(a, k, (uint32_t)k);
    if (!tg_packing_is_integer(a->in_type[EXPERTS_W].layout)) return;
    TG_REAL *x = (TG_REAL *)(uintptr_t)a->in[EXPERTS_X];
    for (size_t i = 0; i < tg_type_elems(&a->in_type[EXPERTS_X]); i++) {
        const double v = (double)x[i] * 40;
        x[i] = (TG_REAL)tg_floor(v > 127 ? 127 : v < -127 ? -127 : v);
        if (i % 32 == 5) x[i] = 127;
    }
}

#endif
