/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu_cache.c - blobs that outlive a process: found again, replaced, and not believed when the
 * file has rotted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "backend/webgpu/device/gpu_cache.h"

#define FOLDER     "build/test_gpu_cache"
#define FILE_OF_IT FOLDER "/webgpu.cache"

enum { BLOBS = 300, MOST = 1000 };

static size_t bytes_of(int i) { return (size_t)(i * 37 % MOST) + 1; }

static void fill(int i, char value[MOST]) {
    for (size_t k = 0; k < bytes_of(i); k++) value[k] = (char)(i + (int)k);
}

static size_t key_of(int i, char key[32]) { return (size_t)snprintf(key, 32, "key of %d", i); }

static void store(tg_gpu_cache *c, int i) {
    char key[32], value[MOST];
    fill(i, value);
    tg_gpu_cache_store(key, key_of(i, key), value, bytes_of(i), c);
}

/* As the library asks: for the size first. */
static bool is_there(tg_gpu_cache *c, int i) {
    char key[32], want[MOST], have[MOST] = "";
    const size_t key_bytes = key_of(i, key), n = tg_gpu_cache_load(key, key_bytes, NULL, 0, c);
    if (n == 0) return false;
    fill(i, want);
    assert_int_equal(n, bytes_of(i));
    assert_int_equal(tg_gpu_cache_load(key, key_bytes, have, n, c), n);
    assert_memory_equal(have, want, n);
    return true;
}

static tg_gpu_cache *fresh(void) {
    remove(FILE_OF_IT);
    tg_gpu_cache *c = tg_gpu_cache_open("webgpu.cache");
    assert_non_null(c);
    return c;
}

static void finds_again(void **state) {
    (void)state;
    tg_gpu_cache *c = fresh();
    for (int i = 0; i < BLOBS; i++) assert_false(is_there(c, i));
    for (int i = 0; i < BLOBS; i++) store(c, i);
    for (int i = 0; i < BLOBS; i++) assert_true(is_there(c, i));
    tg_gpu_cache_close(c);
    c = tg_gpu_cache_open("webgpu.cache");
    for (int i = 0; i < BLOBS; i++) assert_true(is_there(c, i));
    assert_false(is_there(c, BLOBS));
    tg_gpu_cache_close(c);
}

/* The newest value counts, also in the file; and who was told the size of the older one gets that
 * one. */
static void replaces(void **state) {
    (void)state;
    tg_gpu_cache *c = fresh();
    char value[8] = "";
    tg_gpu_cache_store("k", 1, "older", 5, c);
    tg_gpu_cache_store("k", 1, "new", 3, c);
    assert_int_equal(tg_gpu_cache_load("k", 1, NULL, 0, c), 3);
    assert_int_equal(tg_gpu_cache_load("k", 1, value, 5, c), 5);
    assert_string_equal(value, "older");
    tg_gpu_cache_close(c);
    c = tg_gpu_cache_open("webgpu.cache");
    memset(value, 0, sizeof value);
    assert_int_equal(tg_gpu_cache_load("k", 1, value, 3, c), 3);
    assert_string_equal(value, "new");
    assert_int_equal(tg_gpu_cache_load("k", 1, value, 5, c), 0);
    tg_gpu_cache_close(c);
}

/* A bit is flipped, or the end is missing: blobs before that place are good, and those behind it
 * are not believed. */
static void does_not_believe_a_rotten_file(void **state) {
    (void)state;
    tg_gpu_cache *c = fresh();
    for (int i = 0; i < BLOBS; i++) store(c, i);
    tg_gpu_cache_close(c);
    struct stat s;
    assert_int_equal(stat(FILE_OF_IT, &s), 0);
    char *bytes = malloc((size_t)s.st_size);
    FILE *f = fopen(FILE_OF_IT, "rb");
    assert_int_equal(fread(bytes, 1, (size_t)s.st_size, f), s.st_size);
    fclose(f);
    for (int cut = 0; cut < 2; cut++)
        for (off_t at = 0; at < s.st_size; at += s.st_size / 7) {
            f = fopen(FILE_OF_IT, "wb");
            bytes[at] ^= 4;
            fwrite(bytes, 1, (size_t)(cut ? at : s.st_size), f);
            bytes[at] ^= 4;
            fclose(f);
            c = tg_gpu_cache_open("webgpu.cache");
            int n = 0;
            for (int i = 0; i < BLOBS; i++) n += is_there(c, i);
            assert_true(n < BLOBS);
            assert_true(at < s.st_size / 2 || n > 0);
            tg_gpu_cache_close(c);
        }
    free(bytes);
}

/* Nothing is kept, and nothing goes wrong, where nothing can be written or nobody wants it. */
static void does_without(void **state) {
    (void)state;
    setenv("TG_GPU_CACHE", "off", 1);
    assert_null(tg_gpu_cache_open("webgpu.cache"));
    setenv("TG_GPU_CACHE", "/dev/null/nowhere", 1);
    assert_null(tg_gpu_cache_open("webgpu.cache"));
    tg_gpu_cache_close(NULL);
    tg_gpu_cache_save(NULL);
    setenv("TG_GPU_CACHE", FOLDER, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_again),
        cmocka_unit_test(replaces),
        cmocka_unit_test(does_not_believe_a_rotten_file),
        cmocka_unit_test(does_without),
    };
    mkdir("build", 0777);
    setenv("TG_GPU_CACHE", FOLDER, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
