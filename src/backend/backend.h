/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - what runs a plan: open, run, and nothing that an op would have to know.
 *
 * A run may be taken in slices: when its budget is used up or the caller asks it to stop, it ends
 * between two units of a phase of a step, and goes on from there, to the same bits. In between the
 * plan's memory must be left as it is.
 */
#ifndef TG_BACKEND_BACKEND_H
#define TG_BACKEND_BACKEND_H

#include "plan/plan.h"

/* How far a run may go, and what it leaves. Zero-initialised: everything, without a stop. */
typedef struct tg_run {
    size_t next;         /* in and out: the step to go on with */
    unsigned phase;      /* in and out: the phase in it */
    size_t unit;         /* in and out: the unit in that */
    size_t end;          /* 0: all steps; else stop before this one */
    double deadline_ms;  /* on tg_time_ms's clock; 0: none */
    tg_cancel_fn cancel; /* asked every few milliseconds, on the caller's thread; NULL: never */
    void *cancel_user;
    double *step_ms; /* [n_steps] gets the time of each step; NULL: not measured */
    bool often;      /* a device may run each step again and again for a better time */
    bool unbroken; /* submits of a device follow each other without a wait: nobody else may compute
                      in between, since the plan adds to states in place and cannot begin again */
    bool later;    /* a device is not waited for: PENDING, and begun, when all is submitted; becomes
                      false where the CPU computes after all */
    bool carries;  /* the plan's carry_in is what its run before this one left in carry_out, on a
                      device. PENDING, and not begun, where that is not there any more, or where
                      slices are waited for */
} tg_run;

/* Has a run that was ended by a stop anything behind it? */
static inline bool tg_run_begun(const tg_run *r) { return r->next || r->phase || r->unit; }

/* Back to the beginning of the plan. */
static inline void tg_run_restart(tg_run *r) {
    r->next = r->unit = 0;
    r->phase = 0;
}

/*
 * A backend is these slots; its own data follow them in memory. A backend may keep copies of its
 * own of the blocks that plans are bound to. Then its copy of a state is the right one after a run,
 * and whoever looks at a state on the host fetches it first, and whoever writes one says so after.
 * Inputs and outputs of a plan are carried by the run itself.
 */
typedef struct tg_backend tg_backend;
struct tg_backend {
    tg_status (*run)(tg_backend *b, tg_plan *plan, const tg_scalars *rt, tg_run *run);
    /* NULL, all three: there is no copy. */
    tg_status (*fetch)(tg_backend *b, void *p, size_t bytes);
    tg_status (*touched)(tg_backend *b, const void *p, size_t bytes);
    void (*forget)(tg_backend *b, const void *p, size_t bytes);
    /* Gives the device's memory back until the next run; states come down before. NULL: it has
     * none. */
    tg_status (*rest)(tg_backend *b);
    /* Whether the device is gone, and the copies with it. NULL: it cannot be. */
    bool (*lost)(const tg_backend *b);
    void (*free)(tg_backend *b);
    /* What it wants of plans: see tg_plan_options. */
    size_t align_bytes, segment_bytes;
    bool apart;
    uint32_t unwanted_levers; /* bits of levers that cost it more than they give */
    uint32_t levers_off;      /* of those asked for, that don't hold on the device */
    const char *note;         /* for the banner: clauses, each with a comma behind; NULL: none */
    /* For profiles: what ran a step of a plan that has run, and as part of which step, where
     * several run as one. NULL, also the slot: the step's own variant. */
    const char *(*kernel_name)(const tg_backend *b, const tg_plan *plan, size_t step,
                               size_t *leader);
};

/* TG_OK: all done. TG_PENDING: the deadline has passed, or a device is awaited. TG_STOPPED: cancel
 * said so. */
static inline tg_status tg_backend_run(tg_backend *b, tg_plan *plan, const tg_scalars *rt,
                                       tg_run *run) {
    return b->run(b, plan, rt, run);
}

/* Makes the host's bytes right: before they are read, saved or shown. TG_PENDING: call again. */
static inline tg_status tg_backend_fetch(tg_backend *b, void *p, size_t bytes) {
    return b->fetch ? b->fetch(b, p, bytes) : TG_OK;
}
/* The host has written these bytes, and nobody has run since. */
static inline tg_status tg_backend_touched(tg_backend *b, const void *p, size_t bytes) {
    return b->touched ? b->touched(b, p, bytes) : TG_OK;
}
/* The block is about to be freed. b may be NULL. */
static inline void tg_backend_forget(tg_backend *b, const void *p, size_t bytes) {
    if (b && b->forget) b->forget(b, p, bytes);
}
/* TG_PENDING: call again. No run may be in the middle of its plan. */
static inline tg_status tg_backend_rest(tg_backend *b) { return b->rest ? b->rest(b) : TG_OK; }
static inline bool tg_backend_lost(const tg_backend *b) { return b->lost && b->lost(b); }
static inline void tg_backend_free(tg_backend *b) {
    if (b) b->free(b);
}

#endif
