/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nan_program.c - the program with a number that is not finite in one of its steps, for
 * test_signals.py: linked to all of it but this file, which sets the fault before main begins.
 *
 *     TG_TEST_NAN=blocks.0.ln1.weight@8     the tensor, or grad. and the tensor; the step, from 1
 */
#include <stdio.h>
#include <stdlib.h>

#include "../unit/nan.h"

static char tensor[200];
static long step;

static tg_status when_it_is_due(tg_trainer *t, tg_fault_at at) {
    if (at != TG_FAULT_BEGIN || t->step + 1 != step) return TG_OK;
    if (!poison(t, tensor, (float)TG_NAN)) {
        fprintf(stderr, "TG_TEST_NAN: there is no tensor %s\n", tensor);
        exit(99);
    }
    return poison_step(t, at);
}

__attribute__((constructor)) static void set_it(void) {
    const char *text = getenv("TG_TEST_NAN");
    if (text && sscanf(text, "%199[^@]@%ld", tensor, &step) == 2) tg_train_fault = when_it_is_due;
}
