/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutants.h - runs that are wrong on purpose, which a test of parity must not take for right ones.
 *
 * Each changes the plans of a trainer that has not stepped yet. What is changed in a step's
 * attributes counts on every backend; a variant is the CPU's alone.
 */
#ifndef TG_TEST_MUTANTS_H
#define TG_TEST_MUTANTS_H

#include "engine_util.h"

#include "training/train.h"

/* The update plan's first step is the gradient norm: f[0] is the clip. */
static inline void mutate_no_clip(run_of *r) {
    r->trainer->plans.update.steps[0].args.attr.f[0] = 0;
}

/* The update plan's last step is AdamW: f[3] is the decay, i[0] how many elements decay. */
static inline tg_step *last_step(run_of *r) {
    return &r->trainer->plans.update.steps[r->trainer->plans.update.n_steps - 1];
}
static inline void mutate_no_decay(run_of *r) { last_step(r)->args.attr.f[3] = 0; }
static inline void mutate_decay_everything(run_of *r) {
    last_step(r)->args.attr.i[0] = (int32_t)r->model->layout.n_elems;
}

static inline size_t no_units(const tg_args *a) {
    (void)a;
    return 0;
}
static inline void nothing(const tg_args *a, size_t begin, size_t end) {
    (void)a;
    (void)begin;
    (void)end;
}

/* The first step whose output is the gradient of a bias stops doing anything. */
static inline void mutate_dropped_bias(run_of *r) {
    static const tg_variant idle = { .name = "idle", .phase = { { no_units, nothing } } };
    tg_plan *p = &r->trainer->plans.grad;
    for (size_t i = 0; i < p->n_steps; i++) {
        if (strcmp(tg_op_table[p->steps[i].node->op]->name, "bias_grad") != 0) continue;
        p->steps[i].variant = &idle;
        return;
    }
    fail_msg("there is no step that makes the gradient of a bias alone");
}

static const struct mutant {
    const char *name;
    void (*mutate)(run_of *r);
    bool of_cpu;
} mutants[] = { { "no clip", mutate_no_clip, false },
                { "no decay", mutate_no_decay, false },
                { "decay of everything", mutate_decay_everything, false },
                { "dropped bias gradient", mutate_dropped_bias, true } };

#endif
