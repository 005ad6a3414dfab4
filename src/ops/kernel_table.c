/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_table.c - compiled once per ISA: the kernel sets of that ISA by op id.
 */
#include "ir/op.h"
#include "simd/vec.h"

#define TG_SIMD_OP(op) extern const tg_kernel_set TG_CAT(tg_k_##op##__, TG_ISA);
#include "simd_ops.h"
#undef TG_SIMD_OP

extern const tg_kernel_set *const TG_CAT(tg_kernel_table__, TG_ISA)[TG_OP_COUNT];
const tg_kernel_set *const TG_CAT(tg_kernel_table__, TG_ISA)[TG_OP_COUNT] = {
#define TG_SIMD_OP(op) [TG_OP_##op] = &TG_CAT(tg_k_##op##__, TG_ISA),
#include "simd_ops.h"
#undef TG_SIMD_OP
};
