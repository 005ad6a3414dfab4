/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.c - heapsort over an array of numbers.
 *
 * Here the children of place i are 2i+1 and 2i+2, and no parent belongs before its children, except
 * perhaps `root` in sift_down, which sinks to where it belongs.
 */
#include "base/sort.h"

static void sift_down(uint32_t *order, size_t root, size_t n, tg_before_fn before,
                      const void *user) {
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= n) {
            return;
        }
        if (child + 1 < n && before(user, order[child], order[child + 1])) {
            child++;
        }
        if (!before(user, order[root], order[child])) {
            return;
        }
        const uint32_t swap = order[root];
        order[root] = order[child];
        order[child] = swap;
        root = child;
    }
}

/* Builds the heap from its last parent upwards; then the last one goes behind the rest, n times. */
void tg_sort_numbers(uint32_t *order, size_t n, tg_before_fn before, const void *user) {
    for (size_t i = 0; i < n; i++) {
        order[i] = (uint32_t)i;
    }
    for (size_t i = n / 2; i > 0; i--) {
        sift_down(order, i - 1, n, before, user);
    }
    for (size_t left = n; left > 1; left--) {
        const uint32_t last = order[0];
        order[0] = order[left - 1];
        order[left - 1] = last;
        sift_down(order, 0, left - 1, before, user);
    }
}
