/*
 * ops_wasm_train.c - what stands for the ops of other people's model files in the modules for
 * training: descriptors without an op, and sets without a kernel.
 *
 * The tables of both kinds of modules are compiled once and so name every op. No graph of such a
 * module has one of these, as only families of model files make them. Structural: without a kernel,
 * so that no check looks for cases. Compiled as kernels are, for the name of the ISA.
 */
#include "ir/op.h"
#include "simd/vec.h"

#define TG_OP(op)                                                                                  \
    extern const tg_op_desc tg_op_##op;                                                            \
    const tg_op_desc tg_op_##op = { .name = #op, .doc = "not here", .structural = true };          \
    extern const tg_kernel_set TG_CAT(tg_k_##op##__, TG_ISA);                                      \
    const tg_kernel_set TG_CAT(tg_k_##op##__, TG_ISA) = { .n_variants = 0 };
#include "ir/ops_lm.def"
#undef TG_OP
