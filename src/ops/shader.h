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

/* A workgroup for each row of input 0. */
static inline size_t tg_shader_groups_rows(const tg_args *a) {
    return tg_type_rows(&a->in_type[0]);
}

#endif
