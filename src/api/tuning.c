/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuning.c - the public calls around measuring a GPU that need a file, which no page has, or a
 * wait, which C cannot do there: not in WebAssembly.
 */
#include "api/want.h"
#include "backend/webgpu/webgpu.h"
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
