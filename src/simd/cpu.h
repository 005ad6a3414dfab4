/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.h - which of the compiled instruction sets this CPU and its operating system can run.
 *
 * The list is isa.def: the worst first, the best last. A row is usable when the CPU has every
 * feature that the row's objects are compiled for, and the system saves the registers they use.
 *
 *     const tg_isa_desc *isa = tg_isa_best();        the ISA to run on, unless --isa names one
 *     tg_isa_find("avx2")                            NULL: not compiled into this program
 */
#ifndef TG_SIMD_CPU_H
#define TG_SIMD_CPU_H

#include "base/libc.h"

/* Indices of the rows, for tables that have an entry per ISA: TG_ISA_ID_scalar is 0. */
typedef enum tg_isa_id {
#define TG_ISA_ROW(name, fused, needs) TG_ISA_ID_##name,
#include "simd/isa.def"
#undef TG_ISA_ROW
    TG_ISA_COUNT
} tg_isa_id;

typedef struct tg_isa_desc {
    const char *name;  /* "scalar", "avx2" ... */
    tg_isa_id id;      /* its place in the list */
    bool fused;        /* its sums use fused multiply-add: the class of its bits */
    const char *needs; /* features, blank-separated, for messages */
} tg_isa_desc;

/* All rows, *n of them: constant memory, valid for ever. */
const tg_isa_desc *tg_isa_list(size_t *n);
/* Whether this CPU and system can run the row's objects. */
bool tg_isa_usable(const tg_isa_desc *isa);
/* The last usable row. */
const tg_isa_desc *tg_isa_best(void);
/* NULL if no row has this name. It may be one that is not usable. */
const tg_isa_desc *tg_isa_find(const char *name);

/* bf16 dot products next to the best ISA (AVX512_BF16), with the wide registers usable. */
bool tg_cpu_has_bf16(void);
/* Dot products of bytes next to the best ISA (AVX512_VNNI), likewise. */
bool tg_cpu_has_vnni(void);

#endif
