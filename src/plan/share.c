/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.c - which steps of a plan are worth sharing out among the workers, and which are not.
 *
 * A step that is shared begins with a barrier for each of its phases, and so does the first step
 * that is not, behind one that is. Between two steps that worker 0 does alone there is none:
 *
 *     cost   shared  work / workers + phases * BARRIER
 *            alone   work + (BARRIER if the step before was shared)
 *
 * So a small step between two large ones is shared, and several small ones in a row are not. The
 * cheapest choice for the whole list is found from the front to the back: for both ways to do a
 * step, the cheaper way to have come there is kept. A plan of which nothing is worth sharing (one
 * token of a small model) wakes nobody.
 *
 * Work is estimated from shapes and for two workers, so that a plan is the same on every machine.
 * No result depends on it: units are independent of who does them.
 */
#include "plan/plan.h"

/* In multiply-adds' and additions' worth of time. A byte costs what 2.5 operations do, and a
 * barrier what 100,000 do: 5 us at 20 GFLOP/s, as in a browser, 1 us at five times that. */
#define BYTE_WORK    2.5
#define BARRIER_WORK 1e5
#define NEVER        1e300
#define WORKERS      2

enum { ALONE, SHARED, WAYS };

/* The cheapest way to have done all steps up to one, if that one is done alone, or shared. */
typedef struct costs {
    double of[WAYS];
} costs;

static double work_of(const tg_step *s, const tg_args *a) {
    const tg_op_desc *d = tg_op_table[s->node->op];
    size_t bytes = 0;
    for (int k = 0; k < s->node->n_in; k++)
        if (s->node->in[k]) bytes += tg_type_bytes(&a->in_type[k]);
    for (int k = 0; k < s->node->n_out; k++) bytes += tg_type_bytes(&a->out_type[k]);
    return (d->flop ? d->flop(a) : 0) + BYTE_WORK * (double)bytes;
}

/* The most units of a phase, and how many phases there are. */
static size_t most_units(const tg_step *s, const tg_args *a, int *phases) {
    size_t most = 0;
    const tg_phase *phase = s->variant->phase;
    for (*phases = 0; *phases < TG_MAX_PHASES && phase[*phases].run; ++*phases) {
        const size_t units = phase[*phases].units(a);
        if (units > most) most = units;
    }
    return most;
}

/* One step further. from[w]: how the step before was done if this one is done in way w. A step of
 * one unit cannot be shared, and a barrier before it would be for nothing. */
static costs advance(const tg_step *s, const tg_scalars *rt, costs before, uint8_t from[WAYS],
                     double *all_alone) {
    tg_args a = s->args;
    a.rt = rt;
    a.workers = WORKERS;
    int phases;
    const double work = work_of(s, &a);
    const bool many = most_units(s, &a, &phases) > 1;
    const double left = before.of[ALONE], met = before.of[SHARED];
    from[ALONE] = (uint8_t)(left <= met + BARRIER_WORK ? ALONE : SHARED);
    from[SHARED] = (uint8_t)(left <= met ? ALONE : SHARED);
    *all_alone += work;
    costs c;
    c.of[ALONE] = work + (from[ALONE] == ALONE ? left : met + BARRIER_WORK);
    c.of[SHARED] =
        many ? work / WORKERS + phases * BARRIER_WORK + (from[SHARED] == ALONE ? left : met)
             : NEVER;
    return c;
}

/* The choices are kept in the steps on the way forwards, and read backwards: bit w of came_from is
 * how the step before was done. The caller did what came before the first step. To share anything
 * costs two more barriers, where the others wake up and where they are waited for. */
void tg_plan_share(tg_plan *plan, const tg_scalars *rt) {
    costs c = { { 0, NEVER } };
    double all_alone = 0;
    for (size_t i = 0; i < plan->n_steps; i++) {
        uint8_t from[WAYS];
        c = advance(&plan->steps[i], rt, c, from, &all_alone);
        plan->steps[i].came_from = (uint8_t)(from[ALONE] | from[SHARED] << 1);
    }
    const bool may = plan->levers & TG_LEVER_BIT(alone);
    int way = may && c.of[ALONE] <= c.of[SHARED] ? ALONE : SHARED;
    plan->alone = may && all_alone <= c.of[way] + 2 * BARRIER_WORK;
    for (size_t i = plan->n_steps; i-- > 0;) {
        tg_step *s = &plan->steps[i];
        s->alone = plan->alone || (may && way == ALONE);
        way = s->came_from >> way & 1;
    }
}
