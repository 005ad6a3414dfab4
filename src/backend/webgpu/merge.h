/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - which steps of a plan may run as one dispatch, by where their values lie.
 */
#ifndef TG_BACKEND_WEBGPU_MERGE_H
#define TG_BACKEND_WEBGPU_MERGE_H

#include "plan/plan.h"

/* Can step t run as one with step s, before all that is between them? The one value that goes from
 * the leader into t is never written. */
bool tg_merge_may_join(const tg_plan *plan, size_t s, size_t t);

#endif
