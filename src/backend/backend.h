/*
 * backend.h - what runs a plan: open, run, and nothing that an op would have to know.
 *
 * A run may be taken in slices: it stops at a step's boundary when its budget is used up or the
 * caller asks it to stop, and goes on from there.
 */
#ifndef TG_BACKEND_BACKEND_H
#define TG_BACKEND_BACKEND_H

#include "plan/plan.h"

typedef struct tg_backend tg_backend;

/* How far a run may go, and what it leaves. Zero-initialised: everything, without a stop. */
typedef struct tg_run {
    size_t next;         /* in and out: the step to go on with */
    size_t end;          /* 0: all steps; else stop before this one */
    double deadline_ms;  /* on tg_time_ms's clock; 0: none */
    tg_cancel_fn cancel; /* asked at boundaries; NULL: never */
    void *cancel_user;
    double *step_ms; /* [n_steps] gets the time of each step; NULL: not measured */
} tg_run;

/* TG_OK: all done. TG_PENDING: the deadline has passed. TG_STOPPED: cancel said so. */
tg_status tg_backend_run(tg_backend *b, tg_plan *plan, const tg_scalars *rt, tg_run *run);

#endif
