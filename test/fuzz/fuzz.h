/*
 * fuzz.h - what the fuzz targets share: promises that end the run when broken, and a heap that is
 * watched.
 */
#ifndef TG_TEST_FUZZ_H
#define TG_TEST_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#define PROMISE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "broken promise: %s\n", #condition);                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The heap, with what is in use and the most that ever was. */
typedef struct meter {
    size_t live_bytes, peak_bytes;
} meter;

static void *metered(void *user, void *ptr, size_t old_bytes, size_t new_bytes) {
    meter *m = user;
    m->live_bytes += new_bytes - old_bytes;
    m->peak_bytes = m->live_bytes > m->peak_bytes ? m->live_bytes : m->peak_bytes;
    if (new_bytes == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_bytes);
}

#endif
