/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuning.c - public calls that are not in WebAssembly: those around measuring a GPU, which need a
 * file, which no page has, or a wait, which C cannot do there; and finite differences in double,
 * for which every reference would be in each module twice.
 */
#include "api/want.h"
#include "backend/cpu/check.h"
#include "backend/webgpu/webgpu.h"
#include "inspect/inspect.h"
#include "inspect/tune.h"
#include "training/train.h"

tg_status tg_trainer_tune(tg_trainer *trainer, int rounds, tg_tile_fn report, void *user) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    WANT(trainer->ctx, report);
    TG_TRY(tg_train_want_free(trainer));
    return tg_train_tune(trainer, false, rounds > 0 ? rounds : 1, report, user);
}

tg_status tg_context_wait(tg_context *ctx) {
    ENTER(ctx);
    return ctx->backend == ctx->cpu ? TG_OK : tg_gpu_wait(tg_webgpu_gpu(ctx->backend));
}

tg_status tg_check_gradients(tg_context *ctx, const char *filter, tg_check_fn report, void *user,
                             size_t *n_failed) {
    ENTER(ctx);
    WANT(ctx, n_failed);
    tg_check_options o;
    TG_TRY(tg_runtime_check_options(ctx, filter, report, user, &o));
    size_t n_run;
    TG_TRY(tg_check_op_gradients(&ctx->err, &o, &n_run, n_failed));
    return filter ? TG_OK : tg_inspect_model_gradients(ctx, report, user, n_failed);
}
