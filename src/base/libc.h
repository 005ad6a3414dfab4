/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc.h - every function of the C library that src/ may call, on one page.
 *
 * A build without a C library (WebAssembly) supplies this list and nothing more, so a call that is
 * not named here is a bug even where it compiles. Memory comes from base/mem.h, files, time and
 * threads from base/os/os.h and base/thread.h, mathematics from base/math.h, decimal numbers from
 * base/str.h: none of those has a libc function behind it outside os_posix*.c.
 *
 *   string.h   memcpy memmove memset memcmp memchr
 *              strlen strcmp strncmp strchr strrchr strstr
 *   stdio.h    snprintf vsnprintf, with these conversions only:
 *              %s %.*s %c %d %u %x %i %%  with the sizes l ll z (and the PRI macros built of them),
 *              a width, a precision, the flags 0 and -; %g %f %e for messages, never for files
 *   stdarg.h   va_list
 *   limits.h, float.h, stdatomic.h, inttypes.h: macros and types alone
 */
#ifndef TG_BASE_LIBC_H
#define TG_BASE_LIBC_H

#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* snprintf and vsnprintf alone */
#include <string.h>

/* Lets the compiler check a format against its arguments, both counted from 1. */
#if defined(__GNUC__)
#define TG_PRINTF(format_index, first_argument)                                                    \
    __attribute__((format(printf, format_index, first_argument)))
#else
#define TG_PRINTF(format_index, first_argument)
#endif

/* For a function whose unsigned sums, products or shifts wrap on purpose, as those of hashes do;
 * its comment says why. Everywhere else the integer sanitizer (make intsan) takes that for a fault.
 */
#if defined(__clang__)
#define TG_WRAPS __attribute__((no_sanitize("unsigned-integer-overflow", "unsigned-shift-base")))
#else
#define TG_WRAPS
#endif

#endif
