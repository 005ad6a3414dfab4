/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_masked.c - encoders that learn to find masked tokens: the losses of the oracle
 * (tools/oracle/masked.py), which tokens are hidden, and that what is saved is what was trained.
 */
#include "engine_util.h"

#include <math.h>

#include "training/data/masked.h"
#include "training/train.h"

enum { STEPS = 50, TEXT_BYTES = 12000, ROW = 24, BATCH = 4, HIDDEN = 4, NONE = TG_NO_TARGET };

#define RUN "build/test/masked.tinygpt"

static const char *const families[] = { "bert", "modernbert", "nomic", "embeddinggemma" };
enum { N_FAMILIES = sizeof families / sizeof families[0] };

static tg_text *first_bytes(tg_context *ctx) {
    char bytes[TEXT_BYTES];
    tg_text *text;
    FILE *f = fopen(STORIES, "rb");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, sizeof bytes, f), sizeof bytes);
    fclose(f);
    OK(ctx, tg_text_from_memory(ctx, bytes, sizeof bytes, &text));
    return text;
}

static tg_train_options options(void) {
    tg_train_options o = tg_train_options_default();
    o.steps = STEPS;
    o.batch = BATCH;
    o.row_tokens = ROW;
    o.lr = 1e-3;
    o.eval_every = 0;
    o.eval_windows = 0;
    return o;
}

static run_of start(unsigned threads, const char *family) {
    char path[64];
    const tg_train_options o = options();
    run_of r = { .ctx = open_context(threads, NULL, NULL) };
    r.text = first_bytes(r.ctx);
    snprintf(path, sizeof path, "test/golden/lm/masked_%s.zip", family);
    OK(r.ctx, tg_model_open_floats(r.ctx, path, &r.model));
    OK(r.ctx, tg_trainer_new(r.ctx, r.model, r.text, &o, &r.trainer));
    return r;
}

static void test_oracle(void **state) {
    (void)state;
    for (int k = 0; k < N_FAMILIES; k++) {
        char path[64];
        tg_step_report report;
        snprintf(path, sizeof path, "test/golden/lm/masked_%s.txt", families[k]);
        run_of r = start(2, families[k]);
        const double worst = off_golden(&r, path, STEPS, &report);
        if (!(worst < 1e-5)) fail_msg("%s: losses differ by %g", families[k], worst);
        assert_true(isnan(report.bits_per_byte));
        end_run(&r);
    }
}

static void embed(tg_context *ctx, tg_model *m, float out[16]) {
    static const tg_embed_text text = { "the bear sat", 12 };
    tg_embedder *e;
    OK(ctx, tg_embedder_new(ctx, m, NULL, &e));
    OK(ctx, tg_embedder_run(e, &text, 1, out));
    tg_embedder_free(e);
}

/* Threads change no bit; a run that was saved and resumed goes on to the same ones, and its file is
 * an encoder with the vectors of what was trained. */
static void test_saved(void **state) {
    (void)state;
    for (int k = 0; k < N_FAMILIES; k++) {
        float want[16], have[16];
        tg_model *saved;
        run_of whole = start(1, families[k]), half = start(3, families[k]);
        const uint64_t hash = steps_until(&whole, STEPS).loss_hash;
        steps_until(&half, STEPS / 2);
        OK(half.ctx, tg_trainer_save(half.trainer, RUN));
        run_of rest = { .ctx = open_context(2, NULL, NULL) };
        rest.text = first_bytes(rest.ctx);
        OK(rest.ctx, tg_trainer_open(rest.ctx, RUN, rest.text, 0, &rest.trainer));
        if (steps_until(&rest, STEPS).loss_hash != hash) fail_msg("%s: other bits", families[k]);
        OK(rest.ctx, tg_trainer_save(rest.trainer, RUN));
        OK(rest.ctx, tg_model_open(rest.ctx, RUN, &saved));
        embed(rest.ctx, saved, have);
        embed(whole.ctx, whole.model, want);
        assert_memory_equal(have, want, sizeof want);
        tg_model_free(saved);
        end_run(&rest);
        end_run(&half);
        end_run(&whole);
    }
}

/* Shares of 15, and of 80, 10 and 10 of these, and that what is not chosen stays; rows are what
 * their numbers say. */
static void test_rows(void **state) {
    (void)state;
    enum { T = 64, N = 2000, V = 500 };
    const tg_masking m = { .begins = 2, .ends = 3, .mask = HIDDEN, .vocab = V };
    int chosen = 0, hidden = 0, kept = 0;
    int32_t inputs[T], targets[T], again[T], others[T];
    assert_int_equal(tg_masking_room(&m, T), T - 2);
    for (uint64_t row = 0; row < N; row++) {
        for (int i = 0; i < T; i++) inputs[i] = again[i] = 5 + i;
        tg_masking_row(&m, 7, row, T, inputs, targets);
        tg_masking_row(&m, 7, row, T, again, others);
        assert_memory_equal(inputs, again, sizeof inputs);
        assert_int_equal(inputs[0], 2);
        assert_int_equal(inputs[T - 1], 3);
        assert_int_equal(targets[0], NONE);
        assert_int_equal(targets[T - 1], NONE);
        for (int i = 1; i < T - 1; i++) {
            if (targets[i] == NONE) {
                assert_int_equal(inputs[i], 4 + i);
                continue;
            }
            assert_int_equal(targets[i], 4 + i);
            assert_true(inputs[i] >= 0 && inputs[i] < V);
            chosen++;
            hidden += inputs[i] == HIDDEN;
            kept += inputs[i] == targets[i];
        }
    }
    assert_true(fabs(chosen / (double)(N * (T - 2)) - 0.15) < 0.005);
    assert_true(fabs(hidden / (double)chosen - 0.8) < 0.02);
    assert_true(fabs(kept / (double)chosen - 0.1) < 0.01);
}

/* A row in which no draw chose a token has one all the same. */
static void test_short_rows(void **state) {
    (void)state;
    const tg_masking m = { .begins = 2, .ends = 3, .mask = HIDDEN, .vocab = 9 };
    for (uint64_t row = 0; row < 100; row++) {
        int32_t inputs[3] = { 7, 0, 0 }, targets[3];
        tg_masking_row(&m, 1, row, 3, inputs, targets);
        assert_int_equal(targets[1], 7);
    }
    assert_int_equal(tg_masking_room(&m, 2), 0);
}

static void refused(run_of *r, const char *path, int32_t row, tg_status want, const char *message) {
    tg_model *m;
    tg_trainer *t;
    tg_train_options o = options();
    o.row_tokens = row;
    OK(r->ctx, tg_model_open_floats(r->ctx, path, &m));
    assert_int_equal(tg_trainer_new(r->ctx, m, r->text, &o, &t), want);
    if (!strstr(tg_context_error(r->ctx), message)) fail_msg("%s", tg_context_error(r->ctx));
    tg_model_free(m);
}

/* A vocabulary without a mask, rows without room, and what wants a model that writes. */
static void test_refusals(void **state) {
    (void)state;
    run_of r = start(1, "bert");
    tg_probe *probe;
    double loss;
    refused(&r, "test/golden/lm/bert.zip", ROW, TG_E_UNSUPPORTED, "with [MASK] or <mask>");
    refused(&r, "test/golden/lm/masked_bert.zip", 2, TG_E_RANGE, "between those around a text");
    assert_false(tg_model_can(r.model, TG_CAN_WRITE));
    assert_int_equal(tg_probe_new(r.ctx, r.model, 4, &probe), TG_E_UNSUPPORTED);
    assert_int_equal(tg_model_eval(r.ctx, r.model, r.text, 0, 0, &loss), TG_E_UNSUPPORTED);
    OK(r.ctx, tg_trainer_eval(r.trainer, &loss));
    assert_true(loss > 3 && loss < 6);
    end_run(&r);
}

/* Sizes that are complete, as those of a file, make a model without a file's metadata. */
static void test_without_metadata(void **state) {
    (void)state;
    const tg_model_config c = { 2, 24, 4, 32, 256, 0, "bert", .rope_factor = 1 };
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_model *m;
    tg_session *s;
    OK(ctx, tg_model_new(ctx, &c, 1, &m));
    assert_false(tg_model_can(m, TG_CAN_WRITE));
    assert_int_equal(tg_session_new(ctx, m, 16, &s), TG_E_UNSUPPORTED);
    tg_model_free(m);
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle),   cmocka_unit_test(test_saved),
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_short_rows),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_without_metadata),
    };
    return cmocka_run_group_tests_name("masked", tests, NULL, NULL);
}
