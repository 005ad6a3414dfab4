/* SPDX-License-Identifier: Apache-2.0 */
/*
 * string.h - the part of C's <string.h> that base/libc.h lists, for builds without a C library.
 * libc_wasm.c defines the functions.
 */
#ifndef TG_BASE_WASM_STRING_H
#define TG_BASE_WASM_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n_bytes);
void *memmove(void *to, const void *from, size_t n_bytes);
void *memset(void *to, int byte, size_t n_bytes);
int memcmp(const void *a, const void *b, size_t n_bytes);
void *memchr(const void *bytes, int byte, size_t n_bytes);

size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n_bytes);
char *strchr(const char *text, int c);
char *strrchr(const char *text, int c);
char *strstr(const char *text, const char *part);

#endif
