/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio.h - the part of C's <stdio.h> that base/libc.h lists, for builds without a C library: text
 * into memory, no streams. libc_wasm.c defines the functions.
 */
#ifndef TG_BASE_WASM_STDIO_H
#define TG_BASE_WASM_STDIO_H

#include <stdarg.h>
#include <stddef.h>

__attribute__((format(printf, 3, 4))) int snprintf(char *restrict out, size_t out_bytes,
                                                   const char *restrict format, ...);
__attribute__((format(printf, 3, 0))) int vsnprintf(char *restrict out, size_t out_bytes,
                                                    const char *restrict format, va_list args);

#endif
