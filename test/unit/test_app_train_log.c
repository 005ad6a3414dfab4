/*
 * test_app_train_log.c - a log that is continued after a stop is that of a run without one.
 */
#include "train_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const path = "test_app_train_log.jsonl";
static const char *const previous = "test_app_train_log.jsonl.prev";
static char text[65536];

static void write_steps(FILE *file, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; step++) {
        const tg_step_report r = { .step = step,
                                   .loss = 5.0 / (double)step,
                                   .val_loss = 1,
                                   .loss_hash = (uint64_t)step * 77 };
        tg_jout j = tg_jout_to(file);
        tg_trainlog_open_step(&j, &r);
        tg_jout_close(&j);
        tg_jout_line(&j);
    }
}

static void read_log(void) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
}

static tg_context *ctx;

/* A log as the program opens, writes and closes it. */
static void log_steps(int64_t done, int64_t first, int64_t last, const char *torn) {
    tg_outfile f;
    assert_int_equal(tg_trainlog_begin(ctx, path, done, &f), TG_OK);
    write_steps(f.file, first, last);
    fputs(torn, f.file);
    assert_int_equal(tg_outfile_commit(&f), TG_OK);
}

/* Runs to step `reached`, loses half a line, is resumed at `saved` and ends at 20. */
static void broken_run(int64_t reached, int64_t saved, const char *torn) {
    char whole[sizeof text];
    log_steps(0, 1, 20, "");
    read_log();
    memcpy(whole, text, sizeof text);

    log_steps(0, 1, reached, torn);
    log_steps(saved, saved + 1, 20, "");
    read_log();
    assert_string_equal(text, whole);
    unlink(path);
    unlink(previous);
}

static void resumed_logs_are_whole(void **state) {
    (void)state;
    broken_run(12, 12, "");
    broken_run(12, 10, "");
    broken_run(12, 1, "");
    broken_run(12, 12, "{\"step\":13,\"loss\":0.3");
    broken_run(12, 10, "{\"step\":1");
    broken_run(12, 12, "\n");
    broken_run(12, 12, "something else\n");
    broken_run(12, 12, "{\"step\":7,\"loss\":0.3\n");
}

static void a_log_without_a_past(void **state) {
    (void)state;
    tg_outfile f;
    unlink(path);
    log_steps(10, 11, 12, "");
    read_log();
    assert_int_equal(strncmp(text, "{\"step\":11,", 11), 0);
    unlink(path);
    assert_int_equal(tg_trainlog_begin(ctx, "no/such/folder/log", 0, &f), TG_E_IO);
    assert_non_null(strstr(tg_context_error(ctx), "No such file or directory"));
    tg_outfile_abort(&f);
}

/* Lines are in the file as soon as they are written: a crash loses one at most. A second run's log
 * keeps that of the first, and no log takes the place of somebody's notes. */
static void a_log_grows_under_its_name(void **state) {
    (void)state;
    tg_outfile f;
    assert_int_equal(tg_trainlog_begin(ctx, path, 0, &f), TG_OK);
    write_steps(f.file, 1, 2);
    read_log();
    assert_non_null(strstr(text, "\n{\"step\":2,"));
    tg_outfile_abort(&f);
    read_log();
    assert_non_null(strstr(text, "{\"step\":2,"));
    log_steps(0, 1, 1, "");
    assert_int_equal(access(previous, F_OK), 0);
    FILE *notes = fopen(path, "wb");
    fputs("notes\n", notes);
    fclose(notes);
    assert_int_equal(tg_trainlog_begin(ctx, path, 0, &f), TG_E_ARG);
    tg_outfile_abort(&f);
    read_log();
    assert_string_equal(text, "notes\n");
    unlink(path);
    unlink(previous);
}

static void lines(void **state) {
    (void)state;
    const tg_step_report bad = { .step = 3, .loss = 0, .skipped = true, .bad_tensor = "w\"1" };
    FILE *file = fmemopen(text, sizeof text, "w");
    tg_jout j = tg_jout_to(file);
    tg_trainlog_open_step(&j, &bad);
    tg_jout_close(&j);
    tg_jout_line(&j);
    fclose(file);
    assert_string_equal(text,
                        "{\"step\":3,\"loss\":0,\"val\":0,\"lr\":0,\"grad_norm\":0,\"ms\":0.000,"
                        "\"tok_per_s\":0.0,\"mfu\":0.0000,\"hash\":\"0000000000000000\","
                        "\"skipped\":true,\"bad_tensor\":\"w\\\"1\"}\n");
    const size_t n = strlen(text);
    assert_int_equal(tg_trainlog_keep(text, n, 3), n);
    assert_int_equal(tg_trainlog_keep(text, n, 2), 0);
    assert_int_equal(tg_trainlog_keep(text, n - 1, 3), 0);
    assert_int_equal(tg_trainlog_keep("", 0, 3), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_logs_are_whole),
        cmocka_unit_test(a_log_without_a_past),
        cmocka_unit_test(a_log_grows_under_its_name),
        cmocka_unit_test(lines),
    };
    if (tg_context_new(NULL, &ctx) != TG_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tg_context_free(ctx);
    return failed;
}
