/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checkpoint.c - files of whole runs with one value of their JSON changed, under checksums
 * that are right; and runs that are saved and resumed while memory or a call of the system fails.
 */
#include "engine_util.h"

#include "training/train.h"

#include "fail_alloc.h"
#include "io_util.h"

#include <errno.h>

static const tg_model_config nano = { 1, 8, 2, 8, 256, 32 };
static const char *const SAVE = "build/test_checkpoint.tinygpt";
static const char text_bytes[] = "A line of text to learn from, and the same line once more. "
                                 "A line of text to learn from, and the same line once more.\n";
static char json[8192]; /* of the good run */
static size_t n_json;

static tg_train_options options(void) {
    tg_train_options o = tg_train_options_default();
    o.steps = 4;
    o.batch = 2;
    o.eval_every = 2;
    o.eval_windows = 2;
    return o;
}

static tg_text *text_of(tg_context *ctx) {
    tg_text *t;
    OK(ctx, tg_text_from_memory(ctx, text_bytes, sizeof text_bytes - 1, &t));
    return t;
}

/* A run, saved while a validation is due, so that all members are there; and its JSON. */
static int save_run(void **state) {
    (void)state;
    const tg_train_options o = options();
    tg_context *ctx = open_context(1, NULL, NULL);
    run_of r = start_run_on(ctx, text_of(ctx), &nano, &o);
    tg_step_report report;
    steps_until(&r, 1);
    while (!r.trainer->eval_pending) tg_trainer_poll(r.trainer, 1e-6, &report);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    end_run(&r);
    file_bytes b = bytes_read(SAVE);
    n_json = (size_t)tg_get_u64(b.data + 64 + 16) - 4;
    assert_true(n_json < sizeof json);
    memcpy(json, b.data + tg_get_u64(b.data + 64 + 8), n_json);
    bytes_free(&b);
    return 0;
}

static int remove_run(void **state) {
    (void)state;
    remove("build/test_checkpoint.tinygpt.prev");
    return remove(SAVE);
}

/* ------------------------------------------------------------------------------- damaged values */

/* The member `key`, of which there is one, gets another value; NULL: it goes. */
static void change(const char *key, const char *value, char out[8192]) {
    char name[64];
    snprintf(name, sizeof name, "\"%s\":", key);
    const char *at = strstr(json, name);
    if (!at) fail_msg("no %s in %s", key, json);
    const char *end = at + strlen(name);
    for (int depth = 0; depth > 0 || (*end != ',' && *end != '}'); end++)
        depth += (*end == '{') - (*end == '}');
    if (!value && *end == ',') end++;
    snprintf(out, 8192, "%.*s%s%s%s", (int)(at - json), json, value ? name : "", value ? value : "",
             end);
    if (!value && end[0] == '}') {
        char *comma = out + (at - json) - 1;
        if (*comma == ',') memmove(comma, comma + 1, strlen(comma));
    }
}

static void damaged_runs(void **state) {
    (void)state;
    static const struct {
        const char *key, *value;
        tg_status status;
        const char *says;
    } cases[] = {
        { "updates", "2", TG_OK, "" },
        { "updates", "-1", TG_E_RANGE, "run.updates: want at least 0, have -1" },
        { "updates", "1.5", TG_E_FORMAT, "updates" },
        { "updates", NULL, TG_E_FORMAT, "updates" },
        { "stale", "4294967296", TG_OK, "" },
        { "stale", "\"x\"", TG_E_FORMAT, "stale" },
        { "historyStride", "0", TG_E_RANGE, "run.historyStride: want at least 1, have 0" },
        { "lastValStep", "-2", TG_E_RANGE, "run.lastValStep: want at least -1, have -2" },
        { "lastLoss", "null", TG_OK, "" },
        { "lastLoss", NULL, TG_OK, "" },
        { "lastLoss", "\"x\"", TG_E_FORMAT, "lastLoss" },
        { "lastVal", "true", TG_E_FORMAT, "lastVal" },
        { "lossHash", NULL, TG_E_FORMAT, "lossHash" },
        { "lossHash", "-1", TG_E_FORMAT, "lossHash" },
        { "evalPending", NULL, TG_E_FORMAT, "evalPending" },
        { "evalPending", "1", TG_E_FORMAT, "evalPending" },
        { "gradNorm", "[]", TG_E_FORMAT, "gradNorm" },
        { "gradNorm", NULL, TG_OK, "" },
        { "device", "7", TG_OK, "" },
        { "class", NULL, TG_OK, "" },
        { "bytes", NULL, TG_E_FORMAT, "bytes" },
        { "bytes", "1.5", TG_E_FORMAT, "bytes" },
        { "bytes", "5", TG_E_DATA, "want 5 bytes with mark" },
        { "mark", "5", TG_E_DATA, "with mark 00000005, have 118 with" },
        { "mark", NULL, TG_E_FORMAT, "mark" },
        { "mark", "-1", TG_E_FORMAT, "mark" },
        { "crc", "\"x\"", TG_E_FORMAT, "crc" },
        { "crc", "5", TG_E_DATA, "of the same length: want checksum 00000005" },
        { "crc", NULL, TG_OK, "" },
        { "text", "7", TG_OK, "" },
        { "text", NULL, TG_OK, "" },
        { "text", "{\"bytes\":118,\"mark\":MARK,\"trainBytes\":\"x\"}", TG_E_FORMAT, "trainBytes" },
        { "text", "{\"bytes\":118,\"mark\":MARK,\"trainBytes\":9}", TG_E_DATA,
          "want its own to begin at byte 9 (0: a fraction of the text), have 0" },
        { "run", NULL, TG_OK, "" },
    };
    const char *const damaged = "build/test_checkpoint_damaged.tinygpt";
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text = text_of(ctx);
    const tg_weights weights = { .read = model_read, .has_moments = true };
    uint32_t mark;
    OK(ctx, tg_text_mark(text, &mark));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char changed[8192], value[128] = "";
        tg_trainer *t;
        const char *from = cases[i].value, *at = from ? strstr(from, "MARK") : NULL;
        if (at) snprintf(value, sizeof value, "%.*s%u%s", (int)(at - from), from, mark, at + 4);
        change(cases[i].key, at ? value : from, changed);
        OK(ctx, tg_tgpt3_save(&ctx->err, damaged, changed, strlen(changed), &weights, false));
        const tg_status s = tg_trainer_open(ctx, damaged, text, 0, &t);
        if (s != cases[i].status || (s != TG_OK && !strstr(tg_context_error(ctx), cases[i].says)))
            fail_msg("%s as %s: want %d \"%s\", have %d \"%s\"", cases[i].key, cases[i].value,
                     (int)cases[i].status, cases[i].says, (int)s, tg_context_error(ctx));
        if (s == TG_OK) tg_trainer_free(t);
    }
    remove(damaged);
    tg_text_free(text);
    tg_context_free(ctx);
}

/* ------------------------------------------------------------------------------- what can fail */

static struct {
    const char *operation; /* NULL: any */
    size_t calls, fail_at;
    bool sticky, shortly;
} fault;

static int fail_call(const char *operation, const char *path) {
    (void)path;
    if (fault.operation && strcmp(operation, fault.operation) != 0) return 0;
    fault.calls++;
    const bool now = fault.sticky ? fault.calls >= fault.fail_at : fault.calls == fault.fail_at;
    return !now || fault.fail_at == 0 ? 0 : fault.shortly ? TG_FAULT_SHORT : EIO;
}

/* Resumes the run, saves it and its best weights; what the first of them that failed says. */
static tg_status work(tg_context *ctx, const char *out) {
    tg_trainer *t = NULL;
    tg_text *text = NULL;
    tg_step_report report;
    tg_status s = tg_text_from_memory(ctx, text_bytes, sizeof text_bytes - 1, &text);
    if (s == TG_OK) s = tg_trainer_open(ctx, SAVE, text, 0, &t);
    if (s == TG_OK) s = tg_trainer_step(t, &report);
    if (s == TG_OK) s = tg_trainer_save(t, out);
    if (s == TG_OK) s = tg_trainer_save_best(t, out);
    tg_trainer_free(t);
    tg_text_free(text);
    return s;
}

static void memory(void **state) {
    (void)state;
    const char *const out = "build/test_checkpoint_out.tinygpt";
    size_t all = 1;
    for (size_t n = 0; n <= all; n++)
        for (int sticky = 0; sticky < 2; sticky++) {
            test_alloc a = { .fail_at = n, .sticky = sticky };
            tg_context_options o = tg_context_options_default();
            tg_context *ctx;
            o.threads = 1;
            o.alloc = test_alloc_fn;
            o.alloc_user = &a;
            tg_status s = tg_context_new(&o, &ctx);
            if (s == TG_OK) s = work(ctx, out);
            if (n == 0 ? s != TG_OK : s != TG_OK && s != TG_E_MEMORY)
                fail_msg("request %zu: have %d \"%s\"", n, (int)s, tg_context_error(ctx));
            if (n == 0) all = a.requests;
            tg_context_free(ctx);
            assert_int_equal(a.live_pieces, 0);
        }
    remove(out);
    remove("build/test_checkpoint_out.tinygpt.prev");
}

/* The n-th call of any kind, once and from then on; and reads and writes that do half. */
static void calls(void **state) {
    (void)state;
    static const char *const operations[] = { NULL, "pread", "write" };
    const char *const out = "build/test_checkpoint_out.tinygpt";
    for (size_t op = 0; op < sizeof operations / sizeof operations[0]; op++) {
        size_t all = 1;
        for (size_t n = 0; n <= all; n++)
            for (int sticky = 0; sticky < 2; sticky++) {
                tg_context *ctx = open_context(1, NULL, NULL);
                fault.operation = operations[op];
                fault.shortly = operations[op] != NULL;
                fault.calls = 0;
                fault.fail_at = n;
                fault.sticky = sticky;
                tg_os_fault = fail_call;
                const tg_status s = work(ctx, out);
                tg_os_fault = NULL;
                if (n == 0) all = fault.calls;
                if (s != TG_OK && (n == 0 || s != TG_E_IO || fault.shortly))
                    fail_msg("%s %zu: have %d \"%s\"", fault.operation, n, (int)s,
                             tg_context_error(ctx));
                tg_context_free(ctx);
            }
    }
    remove(out);
    remove("build/test_checkpoint_out.tinygpt.prev");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_runs),
        cmocka_unit_test(memory),
        cmocka_unit_test(calls),
    };
    return cmocka_run_group_tests(tests, save_run, remove_run);
}
