/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.h - looking inside: plans as text, time by op, one product alone, gradients of a whole
 * model.
 */
#ifndef TG_INSPECT_INSPECT_H
#define TG_INSPECT_INSPECT_H

#include "engine/session.h"
#include "io/hf/hf.h"
#include "io/tgpt/tgpt_v3_gguf.h"
#include "load/model_file.h"
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

/*
 * weights_check.c: is a file with a model in it whole, whatever its kind? In slices: TG_PENDING,
 * call again. Zero-initialised it has not begun; path is borrowed until deinit, which may come at
 * any time, and the struct stays where it is. Errors: of a head that makes no model; of a run's
 * header; TG_E_CHECKSUM; TG_E_NUMBER names tensor and element.
 */
typedef struct tg_weights_checking {
    tg_model_file file;
    bool open;
    tg_checking run; /* of a run; else: */
    tg_tgpt3_checking chunks;
    tg_folder_checking members;
    bool summed;     /* chunks agree */
    size_t tensor;   /* whose numbers are looked at, */
    uint64_t row;    /* from this row on */
    uint8_t *buffer; /* [buffer_bytes] of one chunk, or for some rows of the tensor */
    size_t buffer_bytes;
} tg_weights_checking;
tg_status tg_weights_checking_go_on(tg_weights_checking *c, tg_ctx *ctx, const char *path,
                                    double deadline_ms);
void tg_weights_checking_deinit(tg_weights_checking *c);

#endif
