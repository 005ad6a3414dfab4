/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c - the table of descriptors by op id, out of ops.def.
 */
#include "ir/op.h"

#define TG_OP(op) extern const tg_op_desc tg_op_##op;
#include "ir/ops.def"
#undef TG_OP

const tg_op_desc *const tg_op_table[TG_OP_COUNT] = {
#define TG_OP(op) [TG_OP_##op] = &tg_op_##op,
#include "ir/ops.def"
#undef TG_OP
};

const tg_lever_desc tg_lever_table[TG_LEVER_COUNT] = {
#define TG_LEVER(lever, on, bits, where, text, fate)                                               \
    [TG_LEVER_##lever] = { .name = #lever,                                                         \
                           .doc = text,                                                            \
                           .state = fate,                                                          \
                           .default_on = (on),                                                     \
                           .keeps_bits = (bits),                                                   \
                           .gpu_only = TG_LEVER_OF_##where == TG_LEVER_OF_GPU,                     \
                           .cpu_only = TG_LEVER_OF_##where == TG_LEVER_OF_CPU },
#include "ir/levers.def"
#undef TG_LEVER
};
