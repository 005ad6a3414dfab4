/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lm_faults.c - whatever fails while a file is opened is told as what it is: the n-th request
 * for memory, the n-th call that opens, measures or reads a file; for each kind of file, and
 * whatever is asked of it. A file is never another one for it.
 */
#include "tinygpt.h"

#include "base/os/os.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fail_alloc.h"
#include "io_util.h"

#define OWN "build/faults.tinygpt"
#define LM  "build/faults_lm.tinygpt"

static const char *const paths[] = {
    OWN,
    LM,
    "test/golden/lm/llama.gguf",
    "test/golden/lm/qwen2-split-00001-of-00004.gguf",
    "test/golden/lm/llama3",
    "test/golden/lm/mlx4",
    "test/golden/lm/bert.zip",
    "test/golden/transformers/model.safetensors",
};
enum { N_PATHS = sizeof paths / sizeof paths[0] };

static int nothing(void *user, const char *text, size_t n) {
    (void)user;
    (void)text;
    (void)n;
    return 0;
}

static tg_status open_model(tg_context *ctx, const char *path) {
    tg_model *m = NULL;
    const tg_status s = tg_model_open(ctx, path, &m);
    tg_model_free(m);
    return s;
}
static tg_status tell(tg_context *ctx, const char *path) {
    return tg_file_info(ctx, path, true, nothing, NULL);
}
static tg_status has_sums(tg_context *ctx, const char *path) {
    bool has;
    return tg_file_has_checksums(ctx, path, &has);
}
static tg_status compare(tg_context *ctx, const char *path) {
    bool equal;
    return tg_file_compare(ctx, path, path, &equal, nothing, NULL);
}
static tg_status (*const works[])(tg_context *, const char *) = { open_model, tell, tg_file_check,
                                                                  has_sums, compare };
enum { N_WORKS = sizeof works / sizeof works[0] };

/* The n-th call of a kind fails, and if sticky all that follow. */
static struct {
    size_t calls, fail_at;
    bool sticky;
} fault;

static int fail_call(const char *operation, const char *path) {
    (void)path;
    if (strcmp(operation, "open") != 0 && strcmp(operation, "fstat") != 0 &&
        strcmp(operation, "pread") != 0)
        return 0;
    fault.calls++;
    return fault.calls == fault.fail_at || (fault.sticky && fault.calls > fault.fail_at) ? EIO : 0;
}

static void want_told(tg_status s, tg_status failed, tg_context *ctx, int work, const char *path,
                      size_t n) {
    const char *why = ctx ? tg_context_error(ctx) : "";
    const char *name = strrchr(path, '/') + 1;
    if (s == TG_OK) return;
    if (s != failed || (ctx && !strstr(why, name)))
        fail_msg("%s, work %d, call %zu: want %d and its name, have %d \"%s\"", path, work, n,
                 (int)failed, (int)s, why);
}

/* Request n of memory; 0: none. Returns how many there were. */
static size_t with_memory(int work, const char *path, size_t n, bool sticky) {
    test_alloc a = { .fail_at = n, .sticky = sticky };
    tg_context_options o = tg_context_options_default();
    tg_context *ctx = NULL;
    o.threads = 1;
    o.alloc = test_alloc_fn;
    o.alloc_user = &a;
    tg_status s = tg_context_new(&o, &ctx);
    const bool begun = s == TG_OK;
    if (begun) s = works[work](ctx, path);
    want_told(s, TG_E_MEMORY, begun ? ctx : NULL, work, path, n);
    if (n == 0) assert_int_equal(s, TG_OK);
    tg_context_free(ctx);
    assert_int_equal(a.live_pieces, 0);
    return a.requests;
}

/* Later calls are of loops over tensors, which a seventh of them goes through; make test-long takes
 * all of them. */
static size_t next(size_t n) { return n + (n < 60 || getenv("TG_TEST_LONG") ? 1 : 7); }

static void memory(void **state) {
    (void)state;
    for (int w = 0; w < N_WORKS; w++)
        for (int p = 0; p < N_PATHS; p++) {
            const size_t all = with_memory(w, paths[p], 0, false);
            for (size_t n = 1; n <= all; n = next(n)) {
                with_memory(w, paths[p], n, false);
                with_memory(w, paths[p], n, true);
            }
        }
}

static size_t with_calls(int work, const char *path, size_t n, bool sticky) {
    tg_context_options o = tg_context_options_default();
    tg_context *ctx;
    o.threads = 1;
    assert_int_equal(tg_context_new(&o, &ctx), TG_OK);
    fault.calls = 0;
    fault.fail_at = n;
    fault.sticky = sticky;
    tg_os_fault = fail_call;
    const tg_status s = works[work](ctx, path);
    tg_os_fault = NULL;
    want_told(s, TG_E_IO, ctx, work, path, n);
    if (n == 0) assert_int_equal(s, TG_OK);
    if (n > 0 && sticky) assert_int_equal(s, TG_E_IO);
    tg_context_free(ctx);
    return fault.calls;
}

static void calls(void **state) {
    (void)state;
    for (int w = 0; w < N_WORKS; w++)
        for (int p = 0; p < N_PATHS; p++) {
            const size_t all = with_calls(w, paths[p], 0, false);
            for (size_t n = 1; n <= all; n = next(n)) {
                with_calls(w, paths[p], n, false);
                with_calls(w, paths[p], n, true);
            }
        }
}

/* ---------------------------------------------------------------------------------- conversions
 */

#define OUT "build/faults_out"

static const struct {
    const char *from;
    tg_file_kind kind;
    tg_weight_type type;
} ways[] = {
    { "test/golden/lm/llama3", TG_FILE_GGUF, TG_WEIGHT_F32 },
    { "test/golden/lm/llama3.gguf", TG_FILE_FOLDER, TG_WEIGHT_F16 },
    { "test/golden/lm/gemma3.gguf", TG_FILE_V3, TG_WEIGHT_F32 },
    { "test/golden/lm/bert.zip", TG_FILE_FOLDER, TG_WEIGHT_F32 },
    { OWN, TG_FILE_FOLDER, TG_WEIGHT_F32 },
};

/* A conversion while request n of memory, or call n, fails; 0: none. Returns how many there were.
 * What could not be written for want of memory is not there. */
static size_t converted(size_t way, size_t memory, size_t call) {
    test_alloc a = { .fail_at = memory };
    tg_context_options o = tg_context_options_default();
    tg_context *ctx = NULL;
    tg_convert_report r;
    o.threads = 1;
    o.alloc = test_alloc_fn;
    o.alloc_user = &a;
    fault.calls = 0;
    fault.fail_at = call;
    fault.sticky = false;
    tg_status s = tg_context_new(&o, &ctx);
    if (s == TG_OK) {
        tg_os_fault = fail_call;
        s = tg_model_convert(ctx, ways[way].from, OUT, ways[way].kind, ways[way].type, &r);
        tg_os_fault = NULL;
    }
    const tg_status want = memory ? TG_E_MEMORY : TG_E_IO;
    if (s != TG_OK && (s != want || (memory == 0 && call == 0)))
        fail_msg("%s, request %zu, call %zu: %d \"%s\"", ways[way].from, memory, call, (int)s,
                 ctx ? tg_context_error(ctx) : "");
    tg_context_free(ctx);
    assert_int_equal(a.live_pieces, 0);
    /* A folder that cannot be synced after the output has got its name is an error, too. */
    const bool there = tg_os_kind_of(OUT) != TG_OS_NONE;
    if (s == TG_OK ? !there : memory && there)
        fail_msg("%s, request %zu, call %zu: %d, and the output is%s there", ways[way].from, memory,
                 call, (int)s, there ? "" : " not");
    if (there) assert_int_equal(system("rm -r " OUT), 0);
    return a.requests;
}

static void conversions(void **state) {
    (void)state;
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        const size_t requests = converted(w, 0, 0), calls = fault.calls;
        for (size_t n = 1; n <= requests; n = next(n)) converted(w, n, 0);
        for (size_t n = 1; n <= calls; n = next(n)) converted(w, 0, n);
    }
}

/* Whoever takes no text any more is told so, and not nothing. */
static int enough(void *user, const char *text, size_t n) {
    (void)user;
    (void)text;
    (void)n;
    return 1;
}

static void stopped(void **state) {
    (void)state;
    tg_context *ctx;
    assert_int_equal(tg_context_new(NULL, &ctx), TG_OK);
    for (int p = 0; p < N_PATHS; p++) {
        assert_int_equal(tg_file_info(ctx, paths[p], false, enough, NULL), TG_STOPPED);
        assert_non_null(strstr(tg_context_error(ctx), "stopped by the receiver"));
    }
    tg_context_free(ctx);
}

/* A run that was killed leaves files, which the next save keeps as .prev: a file that cannot be
 * opened would be told of as what its .prev is. */
static void remove_leftovers(void) {
    static const char *const files[] = { OWN, LM, OWN ".prev", LM ".prev" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) remove(files[i]);
}

static int make_files(void **state) {
    (void)state;
    remove_leftovers();
    tg_ctx err;
    tg_context *ctx;
    tg_convert_report r;
    const tg_model_config config = config_of(1, 8, 2, 8);
    tg_ctx_init(&err, NULL, NULL, NULL);
    assert_int_equal(model_save_v3(&err, OWN, &config, true, false), TG_OK);
    assert_int_equal(tg_context_new(NULL, &ctx), TG_OK);
    if (tg_model_convert(ctx, "test/golden/lm/qwen2", LM, TG_FILE_V3, TG_WEIGHT_F32, &r) != TG_OK)
        fail_msg("%s", tg_context_error(ctx));
    tg_context_free(ctx);
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    return remove(OWN) | remove(LM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory),
        cmocka_unit_test(calls),
        cmocka_unit_test(conversions),
        cmocka_unit_test(stopped),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
