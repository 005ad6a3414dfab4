/*
 * share.h - which steps of a plan are shared out among the workers.
 */
#ifndef TG_BACKEND_CPU_SHARE_H
#define TG_BACKEND_CPU_SHARE_H

#include "plan/plan.h"

/* Sets `alone` of the plan and of its steps, for the rows that their types have now. Allocates
 * nothing. */
void tg_cpu_share(tg_plan *plan, const tg_scalars *rt, unsigned workers);

#endif
