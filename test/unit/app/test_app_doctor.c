/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_app_doctor.c - what doctor finds where something is wrong: each promise that it looks at is
 * broken once, between it and the library, and it must say so, under FAIL, and end with 1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/bench.h"

/* What is broken. */
typedef enum fault {
    NOTHING,
    BLIND_CHECK,      /* a file is called whole, whatever is in it */
    SAVE_NOT_WHOLE,   /* no file is */
    TWO_THREADS,      /* another result with two threads */
    THREE_THREADS,    /* ... with three */
    OTHER_RESUME,     /* a resumed run goes another way */
    NO_LEARNING,      /* the loss stays */
    KNOWING_MODEL,    /* a fresh model does not guess blindly */
    WRONG_KERNEL,     /* a case of an op fails */
    UNSEEN_KERNEL,    /* ... is counted, and not reported */
    NO_KERNELS,       /* nothing is checked at all */
    BROKEN_GRADIENTS, /* the check of gradients ends in an error */
    NO_SAVE,          /* saving ends in an error */
    NO_TRAINING,      /* no training run can be made */
    BROKEN_STEPS,     /* it cannot be stepped */
    NO_MEASURE,       /* measuring ends in an error */
    TWO_THREADS_BREAK /* a run with two threads ends in an error */
} fault;
static fault broken;
enum { LEARN_STEPS_LEFT = 59, STEPS_OF_THREADS = 8 };
static unsigned threads_now; /* of the context that was made last */

static tg_status fake_file_check(tg_context *ctx, const char *path) {
    if (broken == SAVE_NOT_WHOLE) return TG_E_FORMAT;
    return broken == BLIND_CHECK ? TG_OK : tg_file_check(ctx, path);
}

/* A tiny model and text, which are there at once: what the smallest preset learns, test_levers.py
 * sees. */
static tg_status fake_rig_open(tg_rig *rig, tg_context *ctx, const tg_model_config *c, int32_t b) {
    static const tg_model_config tiny = { 1, 16, 1, 8, 256, 64 };
    static char text[1000];
    tg_train_options o = tg_train_options_default();
    (void)c;
    (void)b;
    if (broken == NO_TRAINING) return TG_E_MEMORY;
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i * i % 23);
    *rig = (tg_rig) { .text = NULL };
    o.batch = 2;
    o.val_fraction = 0;
    o.eval_every = 0;
    o.keep_best = false;
    tg_status status = tg_text_from_memory(ctx, text, sizeof text, &rig->text);
    if (status == TG_OK) status = tg_model_new(ctx, &tiny, 42, &rig->model);
    if (status == TG_OK) status = tg_trainer_new(ctx, rig->model, rig->text, &o, &rig->trainer);
    return status;
}

/* The first loss, then that after sixty steps, are those of a model that learns. */
static tg_status fake_rig_steps(tg_rig *rig, int64_t n_steps, double *ms) {
    if (broken == BROKEN_STEPS) return TG_E_NUMBER;
    const tg_status status = tg_rig_steps(rig, n_steps, ms);
    if (n_steps == 1) rig->last.loss = broken == KNOWING_MODEL ? 5.2 : 5.56;
    if (n_steps == LEARN_STEPS_LEFT) rig->last.loss = broken == NO_LEARNING ? 5.08 : 4.6;
    if (n_steps == STEPS_OF_THREADS && ((broken == TWO_THREADS && threads_now == 2) ||
                                        (broken == THREE_THREADS && threads_now == 3)))
        rig->last.loss_hash ^= 1;
    return status;
}

static tg_status fake_context(tg_app *app, unsigned threads, const char *levers, tg_context **out) {
    const tg_status status = tg_app_context(app, threads, levers, out);
    threads_now = threads;
    return broken == TWO_THREADS_BREAK && threads == 2 ? TG_E_MEMORY : status;
}

static tg_status fake_trainer_step(tg_trainer *t, tg_step_report *report) {
    const tg_status status = tg_trainer_step(t, report);
    if (broken == OTHER_RESUME) report->loss_hash ^= 1;
    return status;
}

static tg_status fake_trainer_save(tg_trainer *t, const char *path) {
    return broken == NO_SAVE ? TG_E_IO : tg_trainer_save(t, path);
}

static tg_status fake_check(tg_check_fn report, void *user, size_t *n_failed) {
    tg_check check = { "matmul", "17x3", 0.5e-6, 1e-6, true };
    if (broken == NO_KERNELS) return TG_OK;
    report(user, &check);
    check = (tg_check) { "gelu", "131", broken == WRONG_KERNEL ? 2e-6 : 8e-7, 1e-6,
                         broken != WRONG_KERNEL };
    report(user, &check);
    *n_failed = broken == WRONG_KERNEL || broken == UNSEEN_KERNEL;
    return TG_OK;
}
static tg_status fake_check_kernels(tg_context *ctx, const char *filter, tg_check_fn report,
                                    void *user, size_t *n_failed) {
    (void)ctx;
    (void)filter;
    return fake_check(report, user, n_failed);
}
static size_t gradients_checked;
static tg_status fake_check_gradients(tg_context *ctx, const char *filter, tg_check_fn report,
                                      void *user, size_t *n_failed) {
    (void)ctx;
    (void)filter;
    gradients_checked++;
    const tg_status status = fake_check(report, user, n_failed);
    return broken == BROKEN_GRADIENTS ? TG_E_MEMORY : status;
}

static tg_status fake_measure_peak(tg_context *ctx, double *gflops) {
    (void)ctx;
    *gflops = 10;
    return broken == NO_MEASURE ? TG_E_MEMORY : TG_OK;
}
static tg_status fake_measure_read(tg_context *ctx, size_t n_bytes, double *bytes_per_s) {
    (void)ctx;
    (void)n_bytes;
    *bytes_per_s = 1e9;
    return TG_OK;
}

/* The command once more, under other names, and with the library as it is above. */
#define tg_cmd_doctor      tested_doctor
#define tg_doctor_section  tested_section
#define tg_doctor_find     tested_find
#define tg_doctor_failed   tested_failed
#define tg_doctor_training tested_training
#define tg_doctor_files    tested_files
#define tg_file_check      fake_file_check
#define tg_rig_open        fake_rig_open
#define tg_rig_steps       fake_rig_steps
#define tg_app_context     fake_context
#define tg_trainer_step    fake_trainer_step
#define tg_trainer_save    fake_trainer_save
#define tg_check_kernels   fake_check_kernels
#define tg_check_gradients fake_check_gradients
#define tg_measure_peak    fake_measure_peak
#define tg_measure_read    fake_measure_read
int tested_doctor(int argc, char **argv);
#include "commands/cmd_doctor.c"
#include "doctor_run.c"

/* --------------------------------------------------------------------------------------- findings
 */

static char output[65536];
static char folder[64];

/* Runs doctor with these options behind the usual ones; what it printed is in output. */
static int doctor(fault f, const char *more, const char *value) {
    char *argv[] = { "--json",
                     "--dir",
                     folder,
                     "--threads",
                     "1",
                     "--quick",
                     (char *)(uintptr_t)more,
                     (char *)(uintptr_t)value };
    broken = f;
    fflush(stdout);
    FILE *file = tmpfile();
    const int kept = dup(1);
    dup2(fileno(file), 1);
    const int code = tested_doctor(value ? 8 : more ? 7 : 6, argv);
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    rewind(file);
    output[fread(output, 1, sizeof output - 1, file)] = 0;
    fclose(file);
    broken = NOTHING;
    return code;
}

static size_t count(const char *part) {
    size_t n = 0;
    for (const char *at = output; (at = strstr(at, part)) != NULL; at++) n++;
    return n;
}

/* The one line that fails says this, the code is 1, and so says the verdict. */
static void finds(fault f, size_t n, const char *text) {
    char want[32];
    assert_int_equal(doctor(f, NULL, NULL), TG_EXIT_FAILED);
    if (count("\"mark\":\"fail\"") != n || !strstr(output, text))
        fail_msg("want %zu failures and \"%s\", have %s", n, text, output);
    const char *const found = strstr(output, text);
    const char *mark = output;
    for (const char *at = output; (at = strstr(at, "\"mark\":\"")) != NULL && at < found; at++)
        mark = at;
    if (strncmp(mark, "\"mark\":\"fail\"", 13) != 0)
        fail_msg("want \"%s\" to be a failure, have %.40s", text, mark);
    snprintf(want, sizeof want, "\"failures\":%zu,\"ok\":false", n);
    if (!strstr(output, want)) fail_msg("want %s at the end, have %s", want, output);
    /* No file is left, whatever happened. */
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void nothing_is_wrong(void **state) {
    (void)state;
    assert_int_equal(doctor(NOTHING, NULL, NULL), TG_EXIT_DONE);
    if (strstr(output, "\"fail\"")) fail_msg("a healthy machine has a failure: %s", output);
    assert_non_null(strstr(output, "\"failures\":0,\"ok\":true"));
    assert_non_null(strstr(output, "2 cases of 2 ops agree with their references"));
    assert_non_null(strstr(output, "a flipped bit in a file is found"));
    assert_non_null(strstr(output, "losses with 1, 2 and 3 threads are the same to the bit"));
    assert_non_null(strstr(output, "a resumed run is, to the bit, the run"));
    assert_int_equal(gradients_checked, 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void damage_that_is_not_found(void **state) {
    (void)state;
    finds(BLIND_CHECK, 1, "a flipped bit in a file is not found");
}

static void threads_that_differ(void **state) {
    (void)state;
    finds(TWO_THREADS, 1, "losses with 1, 2 and 3 threads differ");
    finds(THREE_THREADS, 1, "losses with 1, 2 and 3 threads differ");
    finds(TWO_THREADS_BREAK, 1, "a run with other threads did not work");
}

static void a_resumed_run_that_differs(void **state) {
    (void)state;
    finds(OTHER_RESUME, 1, "a resumed run is not the run");
}

static void saves_that_fail(void **state) {
    (void)state;
    finds(NO_SAVE, 2, "a save did not work");
    finds(SAVE_NOT_WHOLE, 1, "a save did not work");
}

static void a_model_that_does_not_learn(void **state) {
    (void)state;
    finds(NO_LEARNING, 1, "it learns: loss");
    finds(KNOWING_MODEL, 1, "a fresh model guesses blindly");
}

static void training_that_fails(void **state) {
    (void)state;
    finds(NO_TRAINING, 3, "a training run did not work");
    finds(BROKEN_STEPS, 4, "a training run did not work");
    finds(NO_MEASURE, 1, "measuring did not work");
}

static void kernels_that_are_wrong(void **state) {
    (void)state;
    finds(WRONG_KERNEL, 3, "gelu, 131: error 2e-06, want at most 1e-06");
    finds(UNSEEN_KERNEL, 1, "1 of 2 cases of 2 ops failed");
    finds(NO_KERNELS, 1, "0 of 0 cases of 0 ops failed");
}

/* Without --quick, and as text. */
static void gradients_that_are_wrong(void **state) {
    (void)state;
    char *argv[] = { "--dir", folder, "--threads", "1" };
    fflush(stdout);
    FILE *file = tmpfile();
    const int kept = dup(1);
    dup2(fileno(file), 1);
    broken = BROKEN_GRADIENTS;
    const int code = tested_doctor(4, argv);
    broken = NOTHING;
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    rewind(file);
    output[fread(output, 1, sizeof output - 1, file)] = 0;
    fclose(file);
    assert_int_equal(code, TG_EXIT_FAILED);
    assert_int_equal(gradients_checked, 1);
    assert_non_null(strstr(output, "FAIL  gradients did not work"));
    assert_non_null(strstr(output, "2 findings failed"));
}

static void a_text_that_is_not_there(void **state) {
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/none.txt", folder);
    assert_int_equal(doctor(NOTHING, "--data", path), TG_EXIT_FAILED);
    assert_int_equal(count("\"mark\":\"fail\""), 1);
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 4000; i++) fprintf(f, "line %d of a text\n", i);
    fclose(f);
    assert_int_equal(doctor(NOTHING, "--data", path), TG_EXIT_DONE);
    unlink(path);
}

static void a_folder_that_is_not_there(void **state) {
    (void)state;
    char name[sizeof folder];
    snprintf(name, sizeof name, "%s", folder);
    snprintf(folder, sizeof folder, "%.40s/none", name);
    assert_int_equal(doctor(NOTHING, NULL, NULL), TG_EXIT_FAILED);
    assert_int_equal(count("cannot be written to"), 1);
    snprintf(folder, sizeof folder, "%s", name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_wrong),
        cmocka_unit_test(damage_that_is_not_found),
        cmocka_unit_test(threads_that_differ),
        cmocka_unit_test(a_resumed_run_that_differs),
        cmocka_unit_test(saves_that_fail),
        cmocka_unit_test(a_model_that_does_not_learn),
        cmocka_unit_test(training_that_fails),
        cmocka_unit_test(kernels_that_are_wrong),
        cmocka_unit_test(gradients_that_are_wrong),
        cmocka_unit_test(a_text_that_is_not_there),
        cmocka_unit_test(a_folder_that_is_not_there),
    };
    const char *const temp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tinygpt-doctor-XXXXXX",
             temp && strlen(temp) < 20 ? temp : "/tmp");
    if (!mkdtemp(folder)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
