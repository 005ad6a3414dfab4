/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carry.h - a run of a plan that takes a word over on the device from the plan's run before it, and
 * the readings of both, which are on their way at once. For webgpu.c.
 */
#ifndef TG_BACKEND_WEBGPU_CARRY_H
#define TG_BACKEND_WEBGPU_CARRY_H

#include "backend/webgpu/device/self_test/submit_check.h"
#include "ir/op.h"
#include "plan/plan.h"

static const char *const carry_text[] = {
#include "backend/webgpu/carry.wgsl.h"
};
static const tg_shader carry = { .name = "carry",
                                 .pass = { { .entry = "main",
                                             .wgsl = { carry_text },
                                             .bind = { TG_BIND_IN(0), TG_BIND_OUT(0) } } } };

/* A dispatch is in the way only of what does not lie in one place. */
static inline bool has_carry(const tg_plan *plan) {
    return plan->carry_in && tg_plan_place_of(plan, plan->carry_in)->offset_bytes !=
                                 tg_plan_place_of(plan, plan->carry_out)->offset_bytes;
}

typedef struct reading {
    uint32_t number; /* 0: none */
    tg_submit_check_mark mark;
} reading;

/* NULL: it is not on its way, as the plan has been compiled anew since. */
static inline reading *find_reading(reading list[2], uint32_t number) {
    for (size_t i = 0; i < 2; i++)
        if (list[i].number == number) return &list[i];
    return NULL;
}

/* In place of the older one. */
static inline tg_status begin_reading(reading list[2], tg_submit_check *submits, tg_gpu_piece *down,
                                      size_t n, uint32_t *number) {
    reading *older = &list[list[0].number > list[1].number];
    TG_TRY(tg_submit_check_read_begin(submits, down, n, &older->mark, number));
    older->number = *number;
    return TG_OK;
}

#endif
