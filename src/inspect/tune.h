/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.h - which tiles of products are the fastest on a GPU: measured, and kept for later runs.
 */
#ifndef TG_INSPECT_TUNE_H
#define TG_INSPECT_TUNE_H

#include "tinygpt.h"

/* See tg_trainer_tune. software: one is measured as well, which tests do. */
tg_status tg_train_tune(tg_trainer *t, bool software, int rounds, tg_tile_fn report, void *user);

#endif
