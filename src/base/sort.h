/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.h - puts numbers of things into order, without moving the things.
 */
#ifndef TG_BASE_SORT_H
#define TG_BASE_SORT_H

#include "base/libc.h"

/* Does thing a belong before thing b? */
typedef bool (*tg_before_fn)(const void *user, uint32_t a, uint32_t b);

/* order [n] becomes 0 .. n-1 in the order that before says; of equal things any may come first. No
 * extra memory, no recursion, and n log n comparisons whatever somebody has put into a file. */
void tg_sort_numbers(uint32_t *order, size_t n, tg_before_fn before, const void *user);

#endif
