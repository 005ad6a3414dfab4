/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.h - the CPU backend: a pool of workers that walk the flat list together.
 */
#ifndef TG_BACKEND_CPU_CPU_H
#define TG_BACKEND_CPU_CPU_H

#include "backend/backend.h"
#include "base/thread.h"

/* The pool is borrowed. */
tg_status tg_cpu_new(tg_ctx *ctx, tg_pool *pool, tg_backend **out);

/* Runs one step on the calling thread alone, with units handed out in pieces of chunk (0: all at
 * once): what the op test uses to show that pieces do not matter. */
void tg_cpu_run_step_alone(const tg_variant *variant, tg_args *args, size_t chunk);

#endif
