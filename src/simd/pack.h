/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - tg_pack_group (dtype/packed.h) by vectors: the same bytes, sooner.
 */
#ifndef TG_SIMD_PACK_H
#define TG_SIMD_PACK_H

#include "dtype/packed.h"

/* Arguments and results are those of tg_pack_group. */
typedef void (*tg_pack_fn)(tg_dtype type, size_t cols, const uint8_t *const row[TG_PACK_ROWS],
                           uint8_t *out);

/* isa: the row of simd/isa.def. In WebAssembly, where a module's size counts for more, it is
 * tg_pack_group itself. */
tg_pack_fn tg_pack_find(size_t isa);

#endif
