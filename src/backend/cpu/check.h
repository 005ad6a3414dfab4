/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - the generic tests of ops: they know no op by name, only its descriptor and cases.
 *
 * Kernels: every case x every variant that may run, against the reference in f32, with units handed
 * out one, three and all at a time; outputs lie between guard bands of NaN, scratch starts as NaN,
 * in-place operation is tried where it is allowed. Gradients: central differences of the double
 * reference against the gradient nodes.
 */
#ifndef TG_BACKEND_CPU_CHECK_H
#define TG_BACKEND_CPU_CHECK_H

#include "base/err.h"
#include "ir/op.h"
#include "tinygpt.h"

/* Runs a shader of an op somewhere else, on arrays of the host. Around each output lie guard_bytes
 * that are copied there and back with it. TG_PENDING: to be called again with equal arguments. */
typedef struct tg_check_executor {
    tg_status (*run)(void *user, const tg_op_desc *d, const tg_shader *shader, const tg_args *a,
                     size_t guard_bytes);
    void *user;
    bool (*wants)(void *user, const tg_shader *shader); /* NULL: all */
} tg_check_executor;

typedef struct tg_check_options {
    size_t isa;
    uint32_t levers;
    bool every_variant; /* not only the one that the levers choose */
    const char *filter; /* part of an op's name; NULL: all */
    tg_check_fn report; /* once a case; NULL: none */
    void *user;
    const tg_check_executor *executor; /* NULL: kernels of the CPU, else the shaders of ops */
} tg_check_options;

tg_status tg_check_ops(tg_ctx *ctx, const tg_check_options *o, size_t *n_run, size_t *n_failed);
/* The same in slices: the place, zero-initialised at first, and TG_PENDING until all is done. */
typedef struct tg_check_place {
    int op;
    size_t number; /* of its case */
    size_t shader; /* of those of an executor */
} tg_check_place;
tg_status tg_check_ops_go_on(tg_ctx *ctx, const tg_check_options *o, tg_check_place *at,
                             double deadline_ms, size_t *n_run, size_t *n_failed);
tg_status tg_check_op_gradients(tg_ctx *ctx, const tg_check_options *o, size_t *n_run,
                                size_t *n_failed);

/* Fills an array as the cases ask for: f32 normals * scale of (case number, input), i32 uniform. */
void tg_check_fill_f32(float *out, size_t n, uint64_t seed, uint32_t stream, float scale);
void tg_check_fill_i32(int32_t *out, size_t n, uint64_t seed, uint32_t stream, int32_t below);
/* i32 input number i of a case, by all that the case says of it. */
void tg_check_fill_ints(const tg_case *c, int i, int32_t *out, size_t n, uint64_t seed);

#endif
