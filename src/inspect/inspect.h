/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.h - looking inside: plans as text, time by op, one product alone, gradients of a whole
 * model.
 */
#ifndef TG_INSPECT_INSPECT_H
#define TG_INSPECT_INSPECT_H

#include "engine/session.h"
#include "training/train.h"

tg_status tg_inspect_dump(tg_context *ctx, const tg_model_config *config, const char *which,
                          int32_t batch, tg_text_fn write, void *user);
/* The same of a model that is open; packed weights have plans of sessions alone. */
tg_status tg_inspect_dump_model(tg_context *ctx, tg_model *model, const char *which, int32_t batch,
                                tg_text_fn write, void *user);
/* each: a row for every step of the plans, in their order; else for every kind of step. */
tg_status tg_inspect_profile(tg_trainer *t, int n_steps, bool each, tg_profile_fn report,
                             void *user);
/* Of the plan that takes n_rows tokens; the session is empty afterwards. */
tg_status tg_inspect_profile_session(tg_session *s, size_t n_rows, int n_times, bool each,
                                     tg_profile_fn report, void *user);
tg_status tg_inspect_matmul(tg_context *ctx, int32_t m, int32_t n, int32_t k, int trans,
                            size_t n_times, double *ms);
/* The whole model's gradient graph against finite differences, in double. */
tg_status tg_inspect_model_gradients(tg_context *ctx, tg_check_fn report, void *user,
                                     size_t *n_failed);

/* file_info.c: what a file is, by its head alone. */
tg_status tg_inspect_file_info(tg_ctx *ctx, const char *path, bool json, tg_text_fn write,
                               void *user);
/* Of a path that tg_gguf_takes: a model follows from its head, its checksums agree, and every
 * weight is a finite number. */
tg_status tg_inspect_file_weights(tg_ctx *ctx, const char *path);

#endif
