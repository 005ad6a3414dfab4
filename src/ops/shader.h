/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shader.h - what the GPU tables of ops share: how many workgroups a pass has.
 *
 * An op with a shader includes its text as lines, which the Makefile makes of <op>.wgsl:
 *
 *     static const char *const wgsl[] = {
 *     #include "ops/add/add.wgsl.h"
 *     };
 *     static const tg_shader shaders[] = { { .name = "elements", .pass = { { ... } } } };
 *
 * and names the table in its descriptor: TG_SHADERS(shaders). Rows may be dynamic, so that counts
 * of workgroups are asked for again at every call; scratch and variants are not.
 */
#ifndef TG_OPS_SHADER_H
#define TG_OPS_SHADER_H

#include "ir/op.h"

enum {
    TG_SHADER_ELEMS = 1024, /* elements of a workgroup that goes element by element */
    TG_SHADER_ROWS = 64,    /* rows of a partial column sum */
    TG_SHADER_COLS = 64     /* columns of a workgroup that sums columns, a thread each */
};

static inline size_t tg_shader_parts(size_t n, size_t each) { return (n + each - 1) / each; }

static inline size_t tg_shader_elem_groups(const tg_type *t) {
    return tg_shader_parts(tg_type_elems(t), TG_SHADER_ELEMS);
}

/* For all that goes over the elements of input 0, or of output 0. */
static inline size_t tg_shader_groups_in0(const tg_args *a) {
    return tg_shader_elem_groups(&a->in_type[0]);
}
static inline size_t tg_shader_groups_out0(const tg_args *a) {
    return tg_shader_elem_groups(&a->out_type[0]);
}

/* op.word of packed.wgsl: what input k is, as its part; the layouts have these numbers there. */
static inline uint32_t tg_shader_layout(const tg_args *a, unsigned k, unsigned part) {
    const tg_type *t = &a->in_type[k];
    _Static_assert(TG_PACK_NONE == 0 && TG_PACK_F32 == 1 && TG_PACK_F16 == 2 && TG_PACK_BF16 == 3 &&
                       TG_PACK_Q4X16 == 4 && TG_PACK_Q4MX16 == 5 && TG_PACK_Q5X16 == 6 &&
                       TG_PACK_Q5MX16 == 7 && TG_PACK_Q8X16 == 8 && TG_PACK_Q4KX16 == 9 &&
                       TG_PACK_Q8MX16 == 10 && TG_PACKING_COUNT == 11,
                   "the layouts of packed.wgsl");
    const uint32_t plain_bf16 = t->layout == TG_PACK_NONE && t->dtype == TG_BF16 ? 16 : 0;
    return ((uint32_t)t->layout | plain_bf16) << 8 * part;
}

/* A workgroup for each row of input 0. */
static inline size_t tg_shader_groups_rows(const tg_args *a) {
    return tg_type_rows(&a->in_type[0]);
}

#endif
