/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_fp.h - the floating-point environment: how the processor rounds, and what it flushes to zero.
 *
 * A host may have changed it for its own arithmetic (fesetround, a compiler's -ffast-math start-up
 * code, an audio library's flush flag), and each thread has its own. Results must not depend on it,
 * so every public call that computes sets the default while it runs, and workers set it when they
 * start:
 *
 *   x86-64  MXCSR  all exceptions masked, to nearest, no flush (FTZ) and no zero inputs (DAZ);
 *           x87's control word, whose rounding printf and strtod of the C library look at
 *   arm64   FPCR   zero, the same; FPSR, its flags of exceptions
 *   wasm    nothing: there is one way to round, and no flag
 *
 * On leaving, all of it is as it was, the flags of exceptions included.
 */
#ifndef TG_BASE_OS_FP_H
#define TG_BASE_OS_FP_H

#include "base/libc.h"

#if defined(__x86_64__)

typedef struct tg_os_fp {
    uint32_t mxcsr;
    uint16_t x87;
} tg_os_fp;

static inline tg_os_fp tg_os_fp_now(void) {
    tg_os_fp fp;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(fp.mxcsr), "=m"(fp.x87) : : "memory");
    return fp;
}

/* x87 is only written where it differs: that takes longer than all the rest. */
static inline void tg_os_fp_set(const tg_os_fp *fp) {
    const tg_os_fp now = tg_os_fp_now();
    if (now.mxcsr != fp->mxcsr) __asm__ volatile("ldmxcsr %0" : : "m"(fp->mxcsr) : "memory");
    if (now.x87 != fp->x87) __asm__ volatile("fldcw %0" : : "m"(fp->x87) : "memory");
}

#define TG_OS_FP_DEFAULT ((tg_os_fp) { .mxcsr = 0x1f80, .x87 = 0x037f })

#elif defined(__aarch64__)

typedef struct tg_os_fp {
    uint64_t fpcr, fpsr;
} tg_os_fp;

static inline tg_os_fp tg_os_fp_now(void) {
    tg_os_fp fp;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(fp.fpcr), "=r"(fp.fpsr) : : "memory");
    return fp;
}

static inline void tg_os_fp_set(const tg_os_fp *fp) {
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(fp->fpcr), "r"(fp->fpsr) : "memory");
}

#define TG_OS_FP_DEFAULT ((tg_os_fp) { .fpcr = 0 })

#endif

#if defined(TG_OS_FP_DEFAULT)

/* Sets the default and returns what it found. */
static inline tg_os_fp tg_os_fp_enter(void) {
    const tg_os_fp found = tg_os_fp_now(), wanted = TG_OS_FP_DEFAULT;
    tg_os_fp_set(&wanted);
    return found;
}

/* From here to the end of the block, whichever way it is left, the environment is the default. */
#define TG_OS_FP_SCOPE                                                                             \
    const tg_os_fp tg_os_fp_found __attribute__((cleanup(tg_os_fp_set))) = tg_os_fp_enter()

/* For a thread's whole life. */
static inline void tg_os_fp_begin(void) { (void)tg_os_fp_enter(); }

#else

#define TG_OS_FP_SCOPE ((void)0)
static inline void tg_os_fp_begin(void) {}

#endif

#endif
