/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bits.h - what of a context decides the bits of its results: kept in files that are gone on with,
 * and what is said where somebody goes on with other settings.
 *
 *   device  "cpu", "webgpu"
 *   class   "fused", "plain": of the CPU's instruction set, with or without fused multiply-add
 *   levers  "+simd,-bf16": all that do not keep the bits, as they are in effect
 */
#ifndef TG_RUNTIME_BITS_H
#define TG_RUNTIME_BITS_H

#include "runtime/runtime.h"

enum { TG_BITS_BYTES = 160 };
typedef struct tg_bits {
    const char *device, *class;
    char levers[TG_BITS_BYTES];
} tg_bits;

/* Without the levers of `except` (TG_LEVER_BITs), which change nothing of what is computed. */
tg_bits tg_bits_of(const tg_context *ctx, uint32_t except);

/* A warning in the log, with both values of what differs from now; none if nothing does. what:
 * "the run". device, class and levers may be NULL: not known. Names of levers that are not known
 * here are passed over. */
void tg_bits_compare(const tg_context *ctx, const char *what, const char *device, const char *class,
                     const char *levers, uint32_t except);

#endif
