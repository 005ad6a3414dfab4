/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - picks the body of an op: by ISA, levers and shape; the reference where there is none.
 */
#include "ops/kernels.h"

#define TG_ISA_ROW(isa, fused, needs)                                                              \
    extern const tg_kernel_set *const tg_kernel_table__##isa[TG_OP_COUNT];
#include "simd/isa.def"
#undef TG_ISA_ROW

static const tg_kernel_set *const *const tables[] = {
#define TG_ISA_ROW(isa, fused, needs) tg_kernel_table__##isa,
#include "simd/isa.def"
#undef TG_ISA_ROW
};

const tg_variant *tg_kernels_at(size_t isa, tg_op_id op, size_t i) {
    const tg_kernel_set *set = tables[isa][op];
    for (; set && i >= set->n_variants; set = set->also) i -= set->n_variants;
    return set ? &set->variant[i] : NULL;
}

static size_t one_unit(const tg_args *a) {
    (void)a;
    return 1;
}

/* A kernel does not know its op, so that each gets a small function around its reference. */
#define TG_OP(op)                                                                                  \
    static void run_##op(const tg_args *a, size_t begin, size_t end) {                             \
        (void)begin;                                                                               \
        (void)end;                                                                                 \
        tg_op_table[TG_OP_##op]->ref(a);                                                           \
    }
#include "ir/ops.def"
#undef TG_OP

static const tg_variant reference[TG_OP_COUNT] = {
#define TG_OP(op) [TG_OP_##op] = { .name = "reference", .phase = { { one_unit, run_##op } } },
#include "ir/ops.def"
#undef TG_OP
};

const tg_variant *tg_reference_variant(tg_op_id op) { return &reference[op]; }

const tg_variant *tg_kernels_choose(size_t isa, tg_op_id op, uint32_t levers, const tg_args *args) {
    const tg_variant *v;
    for (size_t i = 0; (levers & TG_LEVER_BIT(simd)) && (v = tg_kernels_at(isa, op, i)); i++)
        if ((v->needs & ~levers) == 0 && (!v->fits || v->fits(args))) return v;
    return tg_reference_variant(op);
}
