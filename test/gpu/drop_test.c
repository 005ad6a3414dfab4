/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drop_test.c - a driver that drops a submit without a word: whichever one it is, of a run that
 * trains, validates, saves and samples, the run ends in an error or in what it would have been.
 *
 * The fault is test/gpu/faulty.c, which is put before the library that TG_WEBGPU_LIB names.
 */
#include "../unit/engine_util.h"

#include <sys/stat.h>

#include "backend/webgpu/webgpu.h"
#include "engine/session.h"
#include "training/train.h"

static const tg_model_config config = { 1, 24, 3, 16, 256, 96 };
/* Behind FIRST only the long tests drop each submit; the others drop every fourth. */
enum { STEPS = 4, TOKENS = 4, DROPS = 40, FIRST = 12 };

/* All that a run shows of itself, in the order in which it does. */
typedef struct results {
    tg_status status;
    double losses[STEPS], norms[STEPS], val_loss;
    uint64_t hash;
    char file[200000];
    size_t file_bytes;
    int32_t tokens[TOKENS];
} results;

#define TRY(call)                                                                                  \
    do {                                                                                           \
        out->status = (call);                                                                      \
        if (out->status != TG_OK) return;                                                          \
    } while (0)

static void train(run_of *r, results *out) {
    tg_step_report report = { .step = 0 };
    for (int i = 0; i < STEPS; i++) {
        TRY(tg_trainer_step(r->trainer, &report));
        out->losses[i] = report.loss;
        out->norms[i] = report.grad_norm;
    }
    out->hash = report.loss_hash;
    TRY(tg_trainer_eval(r->trainer, &out->val_loss));
}

static void save(run_of *r, results *out) {
    const char *path = "build/drop_test.tinygpt";
    TRY(tg_trainer_save(r->trainer, path));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    out->file_bytes = fread(out->file, 1, sizeof out->file, f);
    fclose(f);
    remove(path);
}

static void sample(tg_session *s, results *out) {
    const tg_sample_options o = tg_sample_options_default();
    const float *logits;
    int32_t token = 'A';
    for (int i = 0; i < TOKENS; i++) {
        TRY(tg_session_eval(s, &token, 1, &logits));
        TRY(tg_session_draw(s, &o, (uint64_t)i, &token));
        out->tokens[i] = token;
    }
}

/* The fault sets in when the device is open: what the self-test submits is the self-test's. One
 * says what the adapter is worth. */
static void run(const char *fault, results *out) {
    tg_context_options c = tg_context_options_default();
    tg_train_options o = tg_train_options_default();
    tg_context *ctx;
    tg_session *s = NULL;
    memset(out, 0, sizeof *out);
    c.threads = 1;
    c.device = "webgpu";
    c.levers = "-subgroups";
    unsetenv("TG_FAULT");
    if (tg_context_new(&c, &ctx) != TG_OK) fail_msg("context: %s", tg_context_error(ctx));
    setenv("TG_GPU_TRUSTED", "1", 1);
    o.steps = STEPS;
    o.batch = 2;
    o.eval_every = 0;
    o.eval_windows = 4;
    run_of r = start_run(ctx, &config, &o);
    setenv("TG_FAULT", fault, 1);
    train(&r, out);
    if (out->status == TG_OK) save(&r, out);
    if (out->status == TG_OK) out->status = tg_session_new(ctx, r.model, 0, &s);
    if (out->status == TG_OK) sample(s, out);
    tg_session_free(s);
    end_run(&r);
}

static void an_error_or_the_same(void **state) {
    (void)state;
    static results want, have;
    const bool each = getenv("TG_TEST_LONG") != NULL;
    size_t refused = 0, same = 0, tried = 0;
    run("none", &want);
    assert_int_equal(want.status, TG_OK);
    assert_true(want.file_bytes > 0 && want.file_bytes < sizeof want.file);
    for (int n = 1; n <= DROPS; n++) {
        for (int all = 0; all < 2; all++) {
            char fault[32];
            if (all && n % 5) continue;
            if (!each && n > FIRST && n % 4) continue;
            tried++;
            snprintf(fault, sizeof fault, "%s=%d", all ? "drop" : "skip", n);
            run(fault, &have);
            if (have.status != TG_OK) {
                refused++;
            } else if (memcmp(&have, &want, sizeof want) == 0) {
                same++;
            } else {
                fail_msg("%s: no error, and other results", fault);
            }
        }
    }
    print_message("%zu submits dropped: %zu runs refused, %zu as they would have been\n", tried,
                  refused, same);
    assert_true(refused >= tried / 2);
}

static int begin(void **state) {
    (void)state;
    char command[2048];
    const char *library = getenv("TG_WEBGPU_LIB");
    assert_non_null(library);
    mkdir("build", 0777);
    snprintf(command, sizeof command,
             "gcc -shared -fPIC -isystem .cache/webgpu -o build/drop_test.so test/gpu/faulty.c "
             "-Wl,--no-as-needed '%s'",
             library);
    assert_int_equal(system(command), 0);
    setenv("TG_WEBGPU_LIB", "build/drop_test.so", 1);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(an_error_or_the_same) };
    return cmocka_run_group_tests(tests, begin, NULL);
}
