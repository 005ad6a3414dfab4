/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail_alloc.h - an allocator for tests: fails on demand, and checks that sizes match.
 *
 *     test_alloc a = { .fail_at = 3 };                the third request fails, once
 *     test_alloc a = { .fail_at = 3, .sticky = true } it and all later ones fail
 *     tg_mem mem = test_alloc_mem(&a);
 *     ... work ...
 *     assert_int_equal(a.live_pieces, 0);
 *
 * Every piece carries its size in front of it:   [ size, 16 bytes | piece ]
 * so that a free or resize with another size than was allocated fails the test.
 */
#ifndef TG_TEST_FAIL_ALLOC_H
#define TG_TEST_FAIL_ALLOC_H

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

/* Compiled with AddressSanitizer? gcc says it by a macro, clang by a feature. */
#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ASAN 1
#endif
#endif
#ifndef TEST_ASAN
#define TEST_ASAN 0
#endif

typedef struct test_alloc {
    size_t fail_at; /* number of the request that fails, from 1; 0: none */
    bool sticky;
    size_t requests;
    size_t live_pieces, live_bytes, peak_bytes;
} test_alloc;

#define TEST_ALLOC_HEAD 16u

static inline void *test_alloc_fn(void *user, void *ptr, size_t old_bytes, size_t new_bytes) {
    test_alloc *a = user;
    char *head = ptr ? (char *)ptr - TEST_ALLOC_HEAD : NULL;
    size_t known = 0;
    if (head) memcpy(&known, head, sizeof known);
    if (known != old_bytes) {
        fprintf(stderr, "allocator: piece of %zu bytes given back as %zu\n", known, old_bytes);
        abort();
    }
    if (new_bytes == 0) {
        a->live_pieces -= head != NULL;
        a->live_bytes -= old_bytes;
        free(head);
        return NULL;
    }
    a->requests++;
    if (a->fail_at && (a->requests == a->fail_at || (a->sticky && a->requests > a->fail_at)))
        return NULL;
    if (new_bytes > SIZE_MAX / 2) return NULL;
    char *moved = malloc(new_bytes + TEST_ALLOC_HEAD);
    if (!moved) return NULL;
    memset(moved, 0xa5, new_bytes + TEST_ALLOC_HEAD); /* nobody may rely on zeros from here */
    memcpy(moved, &new_bytes, sizeof new_bytes);
    if (head) {
        memcpy(moved + TEST_ALLOC_HEAD, ptr, old_bytes < new_bytes ? old_bytes : new_bytes);
        free(head);
    }
    a->live_pieces += head == NULL;
    a->live_bytes += new_bytes - old_bytes;
    if (a->live_bytes > a->peak_bytes) a->peak_bytes = a->live_bytes;
    return moved + TEST_ALLOC_HEAD;
}

static inline tg_mem test_alloc_mem(test_alloc *a) { return (tg_mem) { test_alloc_fn, a }; }

#endif
