/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - the fast bodies of every op on every ISA that this build has.
 *
 * The Makefile compiles each ops/<folder>/<op>.simd.h once per ISA, which may have the bodies of
 * several ops, and lists their names in a generated simd_ops.h; kernel_table.c, compiled once per
 * ISA too, gathers them in a table. An op may have further bodies in <op>_<what>.simd.h, which its
 * own file names (TG_KERNELS_AND). An op without a body on an ISA is a NULL: its reference runs
 * then, and dump and banner say so.
 */
#ifndef TG_OPS_KERNELS_H
#define TG_OPS_KERNELS_H

#include "ir/op.h"

/* Body number i; NULL: the op has no more on this ISA, or none at all. isa: the row of
 * simd/isa.def, as in tg_isa_list. */
const tg_variant *tg_kernels_at(size_t isa, tg_op_id op, size_t i);

/* The reference as a variant of one phase with one unit: what runs when there is no fast body. */
const tg_variant *tg_reference_variant(tg_op_id op);

/* The first variant that the levers and the shapes allow. */
const tg_variant *tg_kernels_choose(size_t isa, tg_op_id op, uint32_t levers, const tg_args *args);

#endif
