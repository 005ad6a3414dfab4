/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h - the driver of the fuzz targets, promises that end a run when broken, a heap with a
 * limit, and files that are bytes in memory.
 *
 * A target is one file, test/fuzz/fuzz_<name>.c, which includes this one and defines
 *
 *     static void fuzz_one(const uint8_t *data, size_t n)
 *
 * The Makefile finds it and builds it twice:
 *
 *     build/fuzz/fuzz_<name>       libFuzzer, sanitizers (make fuzz)
 *     build/test/test_fuzz_<name>  TG_REPLAY: a main that feeds the files of
 *                                  test/fuzz/corpus/<name>, or those that are named as arguments
 *
 * so that what was found once stays a test of every run. Seeds and findings lie in that folder, as
 * small as they can be; words of the format, if it has some, in test/fuzz/dict/<name>.dict.
 */
#ifndef TG_TEST_FUZZ_H
#define TG_TEST_FUZZ_H

#include "base/err.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROMISE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);        \
            fflush(stderr);                                                                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void fuzz_one(const uint8_t *data, size_t n);

/* For what a target does a great many times and nobody wants to know the ways through. */
#if defined(__clang__)
#define FUZZ_PLAIN __attribute__((no_sanitize("coverage", "address", "undefined")))
#else
#define FUZZ_PLAIN
#endif

/* ----------------------------------------------------------------------------------- the heap */

/* The heap, with what is in use, and a limit beyond which nothing may ever be. */
typedef struct meter {
    size_t live_bytes, peak_bytes, limit_bytes;
} meter;

/* The limit is looked at here, so that the trace of a finding shows who asks for too much. */
static inline void *metered(void *user, void *ptr, size_t old_bytes, size_t new_bytes) {
    meter *m = user;
    m->live_bytes += new_bytes - old_bytes;
    m->peak_bytes = m->live_bytes > m->peak_bytes ? m->live_bytes : m->peak_bytes;
    PROMISE(m->live_bytes <= m->limit_bytes);
    if (new_bytes == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_bytes);
}

/* A context over the meter: at most factor * n + more bytes for an input of n. */
static inline void fuzz_begin(tg_ctx *ctx, meter *m, size_t n, size_t factor, size_t more) {
    *m = (meter) { .limit_bytes = factor * n + more };
    const tg_mem mem = { metered, m };
    tg_ctx_init(ctx, &mem, NULL, NULL);
}

/* A failure has a code and a sentence. */
static inline bool fuzz_ok(tg_ctx *ctx, tg_status status) {
    PROMISE(status == TG_OK || (ctx->code == status && ctx->message[0]));
    if (status != TG_OK) tg_ctx_clear(ctx);
    return status == TG_OK;
}

/* A copy that is exactly as long as it claims, so that a step too far is seen. */
static inline uint8_t *fuzz_copy(const uint8_t *data, size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    PROMISE(copy);
    if (n) memcpy(copy, data, n);
    return copy;
}

/* ---------------------------------------------------------------------------------------- files */

/* Parts of an input are divided by two bytes 0xff, which no text has. Takes the next part off. */
static inline const uint8_t *fuzz_part(const uint8_t **at, size_t *left, size_t *n) {
    const uint8_t *part = *at;
    size_t i = 0;
    while (i + 1 < *left && !(part[i] == 0xff && part[i + 1] == 0xff)) {
        const uint8_t *next = memchr(part + i + 1, 0xff, *left - i - 1);
        i = next ? (size_t)(next - part) : *left;
    }
    const bool marked = i + 1 < *left;
    *n = marked ? i : *left;
    const size_t taken = marked ? i + 2 : *left;
    *at += taken;
    *left -= taken;
    return part;
}

/* A folder of memory that this process alone uses, taken away when it ends. */
static char fuzz_folder[64];

static inline void fuzz_remove_folder(void) {
    char path[512];
    DIR *d = opendir(fuzz_folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", fuzz_folder, e->d_name);
        remove(path);
    }
    if (d) closedir(d);
    rmdir(fuzz_folder);
}

enum { FUZZ_PATH_BYTES = 256 };
static inline const char *fuzz_path(char out[FUZZ_PATH_BYTES], const char *name) {
    if (!fuzz_folder[0]) {
        const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(fuzz_folder, sizeof fuzz_folder, "%s/tg_fuzz_XXXXXX", parent);
        PROMISE(mkdtemp(fuzz_folder));
        atexit(fuzz_remove_folder);
    }
    snprintf(out, FUZZ_PATH_BYTES, "%s/%s", fuzz_folder, name);
    return out;
}

/* One file of that folder, written anew in place. */
static inline void fuzz_file(const char *path, const uint8_t *data, size_t n) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    PROMISE(fd >= 0 && (n == 0 || write(fd, data, n) == (ssize_t)n));
    close(fd);
}

/* --------------------------------------------------------------------------------------- drivers
 */

#ifdef TG_REPLAY

static inline bool replay_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) return false;
    const long n = ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(n > 0 ? (size_t)n : 1);
    const bool read = bytes && n >= 0 && fread(bytes, 1, (size_t)n, f) == (size_t)n;
    fclose(f);
    if (read) fuzz_one(bytes, (size_t)n);
    free(bytes);
    return read;
}

/* A corpus that is missing or empty is a failure: a test that tests nothing must not pass. */
int main(int argc, char **argv) {
    static const char folder[] = "test/fuzz/corpus/" TG_REPLAY;
    char path[512];
    int passed = 0, failed = 0;
    const int out = dup(STDOUT_FILENO); /* a target may silence what it tests */
    fuzz_one((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) *(replay_file(argv[i]) ? &passed : &failed) += 1;
    DIR *d = argc > 1 ? NULL : opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        *(replay_file(path) ? &passed : &failed) += 1;
    }
    if (d) closedir(d);
    if (passed == 0) failed++;
    dprintf(out, "%d passed, %d failed\n", passed, failed);
    return failed != 0;
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    fuzz_one(data, n);
    return 0;
}

#endif
#endif
