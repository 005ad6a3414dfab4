/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nan.h - a number that is not finite, put into a step of a run: that one survives it cannot be
 * shown by waiting for it.
 *
 * poison(trainer, "blocks.0.ln1.weight" or "grad.blocks.0.ln1.weight", value) sets the first
 * element of a weight before the next gradient, or of a gradient before the next update. The
 * refusal brings a weight back as it was; a gradient is written anew by every step.
 */
#ifndef TG_TEST_NAN_H
#define TG_TEST_NAN_H

#include <string.h>

#include "backend/backend.h"
#include "base/math.h"
#include "load/weights.h"
#include "training/train.h"

static struct {
    tg_trainer *trainer; /* NULL: none waits */
    bool in_gradient;
    size_t elem; /* of the flat array */
    float value;
} poisoned;

static inline tg_status poison_step(tg_trainer *t, tg_fault_at at) {
    if (t != poisoned.trainer) return TG_OK;
    if (at == TG_FAULT_END) {
        poisoned.trainer = NULL;
        tg_train_fault = NULL;
    }
    if (at == TG_FAULT_END || poisoned.in_gradient != (at == TG_FAULT_GRADIENT)) return TG_OK;
    float *flat = poisoned.in_gradient ? (float *)t->grads.data : t->model->weights;
    float *x = flat + poisoned.elem;
    TG_TRY(tg_backend_fetch(t->ctx->backend, x, sizeof *x));
    const float keep = *x;
    *x = poisoned.value;
    t->model->version++;
    if (!poisoned.in_gradient) poisoned.value = keep;
    return tg_backend_touched(t->ctx->backend, x, sizeof *x);
}

/* False: there is no such tensor. */
static inline bool poison(tg_trainer *t, const char *tensor, float value) {
    const bool in_gradient = strncmp(tensor, "grad.", 5) == 0;
    const tg_tensor_spec *spec = tg_weights_find(t->model, tensor + (in_gradient ? 5 : 0));
    if (!spec) return false;
    poisoned.trainer = t;
    poisoned.in_gradient = in_gradient;
    poisoned.elem = spec->offset_elems;
    poisoned.value = value;
    tg_train_fault = poison_step;
    return true;
}

#endif
