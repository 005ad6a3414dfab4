/*
 * tuning.c - the public call that finds tiles for a GPU. Not in WebAssembly, where no page has a
 * file to keep them in.
 */
#include "api/want.h"
#include "run/train.h"
#include "run/tune.h"

tg_status tg_trainer_tune(tg_trainer *trainer, int rounds, tg_tile_fn report, void *user) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    WANT(trainer->ctx, report);
    TG_TRY(tg_train_want_free(trainer));
    return tg_train_tune(trainer, false, rounds > 0 ? rounds : 1, report, user);
}
