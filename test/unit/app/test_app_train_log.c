/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_app_train_log.c - a log that is continued after a stop is that of a run without one.
 */
#include "train/train_log.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/codec/crc.h"

static const char *path = "test_app_train_log.jsonl";
static const char *previous = "test_app_train_log.jsonl.prev";
static char text[65536];
static size_t n_text;

static void write_steps(FILE *file, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; step++) {
        const tg_step_report r = { .step = step,
                                   .loss = 5.0 / (double)step,
                                   .val_loss = 1,
                                   .loss_hash = (uint64_t)step * 77 };
        tg_trainlog_step(file, tg_trainlog_form(path), &r, NULL);
    }
}

static void read_log(void) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    n_text = fread(text, 1, sizeof text - 1, file);
    text[n_text] = '\0';
    fclose(file);
}

static tg_context *ctx;

/* A log as the program opens, writes and closes it. */
static void log_steps(int64_t done, int64_t first, int64_t last, const char *torn) {
    tg_outfile f;
    assert_int_equal(tg_trainlog_begin(ctx, path, done, false, &f), TG_OK);
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
    assert_int_equal(tg_trainlog_begin(ctx, "no/such/folder/log", 0, false, &f), TG_E_IO);
    assert_non_null(strstr(tg_context_error(ctx), "No such file or directory"));
    tg_outfile_abort(&f);
}

/* Lines are in the file as soon as they are written: a crash loses one at most. A second run's log
 * keeps that of the first, and no log takes the place of somebody's notes. */
static void a_log_grows_under_its_name(void **state) {
    (void)state;
    tg_outfile f;
    assert_int_equal(tg_trainlog_begin(ctx, path, 0, false, &f), TG_OK);
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
    assert_int_equal(tg_trainlog_begin(ctx, path, 0, false, &f), TG_E_ARG);
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
    tg_trainlog_open_step(&j, &bad, NULL);
    tg_jout_close(&j);
    tg_jout_line(&j);
    fclose(file);
    assert_string_equal(text,
                        "{\"step\":3,\"loss\":0,\"val\":0,\"lr\":0,\"grad_norm\":0,\"ms\":0.000,"
                        "\"tok_per_s\":0.0,\"mfu\":0.0000,\"hash\":\"0000000000000000\","
                        "\"skipped\":true,\"bad_tensor\":\"w\\\"1\"}\n");
    const size_t n = strlen(text);
    assert_int_equal(tg_trainlog_keep(TG_LOG_JSON, text, n, 3), n);
    assert_int_equal(tg_trainlog_keep(TG_LOG_JSON, text, n, 2), 0);
    assert_int_equal(tg_trainlog_keep(TG_LOG_JSON, text, n - 1, 3), 0);
    assert_int_equal(tg_trainlog_keep(TG_LOG_JSON, "", 0, 3), 0);
}

/* ------------------------------------------------------------------------------------------- CSV
 */

static const char csv_header[] =
    "step,loss,val,lr,grad_norm,ms,tok_per_s,mfu,hash,skipped,bad_tensor\n";

static void rows_of_csv(void **state) {
    (void)state;
    path = "test_app_train_log.csv";
    previous = "test_app_train_log.csv.prev";
    tg_outfile f;
    assert_int_equal(tg_trainlog_begin(ctx, path, 0, false, &f), TG_OK);
    const tg_step_report plain = {
        .step = 1, .loss = 0.1, .val_loss = NAN, .lr = 3e-4, .ms = 1.23456, .loss_hash = 255
    };
    const tg_step_report bad = {
        .step = 2, .loss = INFINITY, .val_loss = 2, .skipped = true, .bad_tensor = "w\"1"
    };
    tg_trainlog_step(f.file, TG_LOG_CSV, &plain, NULL);
    tg_trainlog_step(f.file, TG_LOG_CSV, &bad, NULL);
    assert_int_equal(tg_outfile_commit(&f), TG_OK);
    read_log();
    assert_memory_equal(text, csv_header, sizeof csv_header - 1);
    assert_string_equal(text + sizeof csv_header - 1,
                        "1,0.1,,0.0003,0,1.235,0.0,0.0000,00000000000000ff,,\n"
                        "2,,2,0,0,0.000,0.0,0.0000,0000000000000000,true,\"w\"\"1\"\n");
    unlink(path);
    const tg_preferences pairs = { 0.5, -0.25, NAN, 3 };
    assert_int_equal(tg_trainlog_begin(ctx, path, 0, true, &f), TG_OK);
    tg_trainlog_step(f.file, TG_LOG_CSV, &plain, &pairs);
    assert_int_equal(tg_outfile_commit(&f), TG_OK);
    assert_int_equal(tg_trainlog_begin(ctx, path, 1, true, &f), TG_OK);
    assert_int_equal(tg_outfile_commit(&f), TG_OK);
    read_log();
    assert_non_null(strstr(text, ",0.0000,0.5,-0.25,,3,00000000000000ff,,\n"));
    assert_int_equal(tg_trainlog_begin(ctx, path, 1, false, &f), TG_E_ARG); /* of a run on a text */
    tg_outfile_abort(&f);
    unlink(path);
    unlink(previous);
    broken_run(12, 12, "");
    broken_run(12, 10, "");
    broken_run(12, 12, "13,0.3");
    broken_run(12, 10, "1");
    broken_run(12, 12, "something else\n");
    broken_run(12, 12, "7,0.3\n");
    /* A log without a past has its header all the same; one of other columns stays as it is. */
    log_steps(10, 11, 11, "");
    read_log();
    assert_memory_equal(text, csv_header, sizeof csv_header - 1);
    assert_int_equal(strncmp(text + sizeof csv_header - 1, "11,", 3), 0);
    FILE *older = fopen(path, "wb");
    fputs("step,loss,val,\n1,2,3,\n", older);
    fclose(older);
    assert_int_not_equal(tg_trainlog_begin(ctx, path, 1, false, &f), TG_OK);
    assert_non_null(strstr(tg_context_error(ctx), path));
    tg_outfile_abort(&f);
    read_log();
    assert_string_equal(text, "step,loss,val,\n1,2,3,\n");
    unlink(path);
    unlink(previous);
}

/* ------------------------------------------------------------------------------------ TensorBoard
 */

/* By the library's own CRC-32C, so that the program's small one is held against it. */
static uint32_t want_masked(const char *bytes, size_t n) {
    const uint32_t crc = tg_crc32c(0, bytes, n);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* Fields of a message as protobuf has them: varints, 8 bytes, bytes, 4 bytes. */
typedef struct field {
    unsigned id, kind;
    uint64_t value;
    const char *bytes;
    size_t n;
} field;

static uint64_t varint(const char **at) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const unsigned char c = (unsigned char)*(*at)++;
        value |= (uint64_t)(c & 0x7F) << shift;
        if (c < 0x80) return value;
    }
}

static field next_field(const char **at) {
    const uint64_t key = varint(at);
    field f = { .id = (unsigned)(key >> 3), .kind = key & 7 };
    if (f.kind == 0) f.value = varint(at);
    if (f.kind == 2) f.n = (size_t)varint(at);
    if (f.kind == 1 || f.kind == 5) f.n = f.kind == 1 ? 8 : 4;
    f.bytes = *at;
    *at += f.n;
    if (f.kind != 0 && f.n <= 8) memcpy(&f.value, f.bytes, f.n);
    return f;
}

/* What was read of an event. */
typedef struct event {
    int64_t step;
    double wall_time;
    char version[32], tags[256]; /* " loss=2.5 lr=0" */
} event;

static void add_value(event *e, const char *at, const char *end) {
    char tag[32] = "";
    float value = NAN;
    while (at < end) {
        const field f = next_field(&at);
        if (f.id == 1) snprintf(tag, sizeof tag, "%.*s", (int)f.n, f.bytes);
        if (f.id == 2 && f.kind == 5) memcpy(&value, f.bytes, 4);
    }
    const size_t n = strlen(e->tags);
    snprintf(e->tags + n, sizeof e->tags - n, " %s=%g", tag, (double)value);
}

/* Checks length and both checksums of the record at text + at. */
static size_t read_event(size_t at, event *e) {
    uint64_t n;
    uint32_t crc;
    *e = (event) { 0 };
    assert_true(at + 12 <= n_text);
    memcpy(&n, text + at, 8);
    memcpy(&crc, text + at + 8, 4);
    assert_int_equal(crc, want_masked(text + at, 8));
    assert_true(at + 12 + n + 4 <= n_text);
    const char *data = text + at + 12, *p = data, *end = data + n;
    memcpy(&crc, end, 4);
    assert_int_equal(crc, want_masked(data, (size_t)n));
    while (p < end) {
        const field f = next_field(&p);
        if (f.id == 1) memcpy(&e->wall_time, &f.value, 8);
        if (f.id == 2) e->step = (int64_t)f.value;
        if (f.id == 3) snprintf(e->version, sizeof e->version, "%.*s", (int)f.n, f.bytes);
        for (const char *v = f.bytes; f.id == 5 && v < f.bytes + f.n;) {
            const field value = next_field(&v);
            assert_int_equal(value.id, 1);
            add_value(e, value.bytes, value.bytes + value.n);
        }
    }
    assert_ptr_equal(p, end);
    return at + 12 + (size_t)n + 4;
}

/* Steps 1 to last, and nothing else. */
static void want_events(int64_t last) {
    event e;
    read_log();
    size_t at = read_event(0, &e);
    assert_string_equal(e.version, "brain.Event:2");
    assert_true(e.wall_time > 1.6e9);
    for (int64_t step = 1; step <= last; step++) {
        char tags[256];
        at = read_event(at, &e);
        assert_int_equal(e.step, step);
        assert_true(e.wall_time > 1.6e9);
        snprintf(tags, sizeof tags, " loss=%g val_loss=1 lr=0 grad_norm=0 ms=0 tok_per_s=0 mfu=0",
                 (double)(float)(5.0 / (double)step));
        assert_string_equal(e.tags, tags);
    }
    assert_int_equal(at, n_text);
}

static void torn_events(int64_t saved, const char *torn) {
    log_steps(0, 1, 12, torn);
    log_steps(saved, saved + 1, 300, "");
    want_events(300);
    assert_int_not_equal(access(previous, F_OK), 0); /* TensorBoard would read it as well */
    unlink(path);
}

static void events_of_tensorboard(void **state) {
    (void)state;
    path = "events.out.tfevents.1";
    previous = "events.out.tfevents.1.prev";
    assert_int_equal(want_masked("123456789", 9),
                     (0xE3069283u >> 15 | 0xE3069283u << 17) + 0xA282EAD8u);
    torn_events(12, "");
    torn_events(10, "");
    torn_events(1, "half");
    torn_events(12, "something else that is no record");
    tg_outfile f;
    event e;
    assert_int_equal(tg_trainlog_begin(ctx, path, 0, false, &f), TG_OK);
    assert_int_equal(access("events.out.tfevents.1.lock", F_OK), -1); /* which would be a log */
    assert_int_equal(access("events.out.tfevent.1.lock", F_OK), 0);
    const tg_step_report bad = {
        .step = INT64_C(1) << 40, .loss = NAN, .val_loss = NAN, .lr = 0.5, .skipped = true
    };
    tg_trainlog_step(f.file, TG_LOG_EVENTS, &bad, NULL);
    assert_int_equal(tg_outfile_commit(&f), TG_OK);
    read_log();
    assert_int_equal(read_event(read_event(0, &e), &e), n_text);
    assert_int_equal(e.step, INT64_C(1) << 40);
    assert_string_equal(e.tags, " lr=0.5 grad_norm=0 ms=0 tok_per_s=0 mfu=0 skipped=1");
    /* One that somebody else wrote is not replaced. */
    FILE *other = fopen(path, "wb");
    text[34] = 'T';
    fwrite(text, 1, n_text, other);
    fclose(other);
    assert_int_equal(tg_trainlog_begin(ctx, path, 0, false, &f), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(ctx), "TensorBoard"));
    tg_outfile_abort(&f);
    unlink(path);
    unlink(previous);
}

static void forms_by_name(void **state) {
    (void)state;
    assert_int_equal(tg_trainlog_form("a.csv"), TG_LOG_CSV);
    assert_int_equal(tg_trainlog_form("runs.tfevents/A.CSV"), TG_LOG_CSV);
    assert_int_equal(tg_trainlog_form("runs/events.out.tfevents.7"), TG_LOG_EVENTS);
    assert_int_equal(tg_trainlog_form("runs.tfevents/log"), TG_LOG_JSON);
    assert_int_equal(tg_trainlog_form("csv"), TG_LOG_JSON);
    assert_int_equal(tg_trainlog_form("a.csv.jsonl"), TG_LOG_JSON);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_logs_are_whole),
        cmocka_unit_test(a_log_without_a_past),
        cmocka_unit_test(a_log_grows_under_its_name),
        cmocka_unit_test(lines),
        cmocka_unit_test(rows_of_csv),
        cmocka_unit_test(events_of_tensorboard),
        cmocka_unit_test(forms_by_name),
    };
    if (tg_context_new(NULL, &ctx) != TG_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tg_context_free(ctx);
    return failed;
}
