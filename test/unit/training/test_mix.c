/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_mix.c - texts that are mixed by weights: what is drawn, what validates, and that a resumed
 * run is the run.
 *
 * The text has three parts, of a's, b's and c's, whose ends, which validate, are capitals: a row of
 * more than one letter would have crossed a border.
 */
#include "engine_util.h"

#include "base/math.h"
#include "training/train.h"

static const tg_model_config nano = { 1, 16, 2, 24, 256, 64 };
static const char *const SAVE = "build/test_mix.tinygpt";

enum { T = 24, PARTS = 3, A = 1000, B = 400, C = 2600 };
static const size_t sizes[PARTS] = { A, B, C };
static const tg_mix_part mix_3_1_4[PARTS] = { { A, 3 }, { A + B, 1 }, { A + B + C, 4 } };

static tg_text *letters(tg_context *ctx, const tg_mix_part *mix, size_t n) {
    char *bytes = malloc(A + B + C);
    tg_text *text;
    size_t at = 0;
    for (int k = 0; k < PARTS; k++)
        for (size_t i = 0; i < sizes[k]; i++)
            bytes[at++] = (char)((i < sizes[k] * 8 / 10 ? 'a' : 'A') + k);
    OK(ctx, tg_text_from_memory(ctx, bytes, at, &text));
    free(bytes);
    if (n) OK(ctx, tg_text_mix(text, mix, n));
    return text;
}

static tg_train_options options(void) {
    tg_train_options o = tg_train_options_default();
    o.steps = 8;
    o.batch = 4;
    o.val_fraction = 0.2;
    o.eval_every = 3;
    return o;
}

static run_of mixed(unsigned threads, const tg_mix_part *mix, size_t n) {
    const tg_train_options o = options();
    tg_context *ctx = open_context(threads, NULL, NULL);
    return start_run_on(ctx, letters(ctx, mix, n), &nano, &o);
}

/* The letter that a row is of, targets included. */
static int32_t letter_of(const int32_t *inputs, const int32_t *targets) {
    for (int i = 0; i < T; i++)
        if (inputs[i] != inputs[0] || targets[i] != inputs[0])
            fail_msg("a row crosses a border: %c, then %c and %c", inputs[0], inputs[i],
                     targets[i]);
    return inputs[0];
}

static void rows_follow_the_weights(void **state) {
    (void)state;
    enum { ROWS = 8000 };
    run_of r = mixed(1, mix_3_1_4, PARTS);
    int32_t inputs[T], targets[T];
    size_t n[PARTS] = { 0 };
    for (uint64_t row = 0; row < ROWS; row++) {
        OK(r.ctx, tg_windows_train_row(&r.trainer->windows, 42, row, T, inputs, targets));
        const int32_t k = letter_of(inputs, targets) - 'a';
        assert_in_range(k, 0, PARTS - 1);
        n[k]++;
    }
    for (int k = 0; k < PARTS; k++) {
        const double want = mix_3_1_4[k].weight / 8;
        assert_true(tg_fabs((double)n[k] / (double)ROWS - want) < 0.02);
    }
    end_run(&r);
}

/* All windows of all ends, once each. */
static void each_end_validates(void **state) {
    (void)state;
    run_of r = mixed(1, mix_3_1_4, PARTS);
    const tg_windows *w = &r.trainer->windows;
    const size_t want[PARTS] = { (A / 5 - 1) / T, (B / 5 - 1) / T, (C / 5 - 1) / T };
    int32_t inputs[T], targets[T];
    size_t n[PARTS] = { 0 };
    const uint64_t all = tg_windows_count(w, T, false);
    assert_int_equal(all, want[0] + want[1] + want[2]);
    for (uint64_t i = 0; i < all; i++) {
        OK(r.ctx, tg_windows_row(&r.trainer->windows, i, false, T, inputs, targets));
        const int32_t k = letter_of(inputs, targets) - 'A';
        assert_in_range(k, 0, PARTS - 1);
        n[k]++;
    }
    for (int k = 0; k < PARTS; k++) assert_int_equal(n[k], want[k]);
    assert_int_equal(r.trainer->split.val, (A + B + C) / 5);
    end_run(&r);
}

/* A part that is held back is no part of the mix, and validates alone. */
static void what_is_held_back_is_apart(void **state) {
    (void)state;
    const tg_train_options o = options();
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text = letters(ctx, NULL, 0);
    OK(ctx, tg_text_hold_back(text, A + B));
    OK(ctx, tg_text_mix(text, (tg_mix_part[]) { { A, 1 }, { A + B, 1 } }, 2));
    run_of r = start_run_on(ctx, text, &nano, &o);
    tg_windows *w = &r.trainer->windows;
    int32_t inputs[T], targets[T];
    assert_int_equal(tg_windows_count(w, T, false), (C - 1) / T);
    OK(ctx, tg_windows_row(w, 0, false, T, inputs, targets));
    assert_int_equal(letter_of(inputs, targets), 'c');
    for (uint64_t row = 0; row < 500; row++) {
        OK(ctx, tg_windows_train_row(w, 42, row, T, inputs, targets));
        assert_true((inputs[0] | 32) != 'c');
    }
    end_run(&r);
}

/* A mix of one part is the text; another one draws other rows. */
static void one_part_is_the_text(void **state) {
    (void)state;
    const tg_mix_part whole = { A + B + C, 0.1 };
    run_of plain = mixed(1, NULL, 0), one = mixed(3, &whole, 1), three = mixed(1, mix_3_1_4, PARTS);
    const tg_step_report a = steps_until(&plain, 8), b = steps_until(&one, 8),
                         c = steps_until(&three, 8);
    assert_int_equal(a.loss_hash, b.loss_hash);
    assert_true(a.loss_hash != c.loss_hash);
    end_run(&plain);
    end_run(&one);
    end_run(&three);
}

static void want_refused(tg_context *ctx, const tg_mix_part *mix, size_t n, const char *word) {
    tg_text *text = letters(ctx, mix, n);
    tg_trainer *t;
    assert_int_equal(tg_trainer_open(ctx, SAVE, text, 0, &t), TG_E_DATA);
    assert_non_null(strstr(tg_context_error(ctx), word));
    tg_text_free(text);
}

static void a_resumed_run_is_the_run(void **state) {
    (void)state;
    run_of r = mixed(2, mix_3_1_4, PARTS);
    steps_until(&r, 5);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    const tg_step_report a = steps_until(&r, 8);
    tg_step_report b = { .step = 0 };
    tg_text *text = letters(r.ctx, mix_3_1_4, PARTS);
    tg_trainer *t;
    OK(r.ctx, tg_trainer_open(r.ctx, SAVE, text, 0, &t));
    while (b.step < 8) OK(r.ctx, tg_trainer_step(t, &b));
    assert_int_equal(a.loss_hash, b.loss_hash);
    assert_true(a.val_loss == b.val_loss);
    tg_trainer_free(t);
    tg_text_free(text);
    want_refused(r.ctx, NULL, 0, "want --mix 3,1,4");
    const tg_mix_part weights[] = { { A, 3 }, { A + B, 2 }, { A + B + C, 4 } };
    want_refused(r.ctx, weights, PARTS, "want --mix 3,1,4");
    const tg_mix_part ends[] = { { A + 1, 3 }, { A + B, 1 }, { A + B + C, 4 } };
    want_refused(r.ctx, ends, PARTS, "each --data as it was");
    want_refused(r.ctx, mix_3_1_4, 2, "want --mix 3,1,4");
    end_run(&r);
    run_of plain = mixed(1, NULL, 0);
    OK(plain.ctx, tg_trainer_save(plain.trainer, SAVE));
    want_refused(plain.ctx, mix_3_1_4, PARTS, "want no --mix");
    end_run(&plain);
}

/* A trainer that has the text already draws, and saves, as it did. */
static void a_trainer_stays_without_a_later_mix(void **state) {
    (void)state;
    run_of plain = mixed(1, NULL, 0), r = mixed(1, NULL, 0);
    OK(r.ctx, tg_text_mix(r.text, mix_3_1_4, PARTS));
    assert_true(steps_until(&r, 8).loss_hash == steps_until(&plain, 8).loss_hash);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    want_refused(r.ctx, mix_3_1_4, PARTS, "want no --mix");
    end_run(&plain);
    end_run(&r);
}

/* Weights come back to the same bits. */
static void a_weight_is_told_in_full(void **state) {
    (void)state;
    const tg_mix_part mix[] = { { A, 0.1234567890123 }, { A + B + C, 1.0 / 3 } };
    run_of r = mixed(1, mix, 2);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    want_refused(r.ctx, NULL, 0, "want --mix 0.1234567890123,0.3333333333333333");
    end_run(&r);
}

static void on_lint(void *user, const tg_lint *l) {
    char *said = user;
    if (strcmp(l->code, "short_end") == 0) strcat(said, l->text);
}

/* An end of 80 bytes is a window of 64, one of 60 is none. */
static void an_end_that_is_too_short_is_named(void **state) {
    (void)state;
    char said[512] = "";
    const tg_mix_part mix[] = { { 400, 1 }, { 700, 1 }, { A + B + C, 1 } };
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text = letters(ctx, mix, PARTS);
    OK(ctx, tg_text_lint(text, 64, 0.2, on_lint, said));
    assert_non_null(strstr(said, "part 2 of the mix has 60 bytes, fewer than a window of 65"));
    assert_null(strstr(said, "part 1"));
    assert_null(strstr(said, "part 3"));
    tg_text_free(text);
    tg_context_free(ctx);
}

static void bad_mixes_are_named(void **state) {
    (void)state;
    const struct {
        tg_mix_part part[2];
        const char *word;
    } bad[] = {
        { { { 0, 1 }, { A, 1 } }, "part 1" },
        { { { A + B + C, 1 }, { 0, 1 } }, "part 2" },
        { { { A + B + C + 1, 1 }, { 0, 1 } }, "part 1" },
        { { { A, 0 }, { 0, 1 } }, "part 1: want a weight above 0, have 0" },
        { { { A, 1 }, { 0, -1 } }, "part 2: want a weight" },
        { { { A, 1 }, { 0, TG_NAN } }, "part 2: want a weight" },
        { { { A, TG_INF }, { 0, 1 } }, "part 1: want a weight" },
    };
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text = letters(ctx, NULL, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tg_text_mix(text, bad[i].part, 2), TG_E_ARG);
        assert_non_null(strstr(tg_context_error(ctx), bad[i].word));
    }
    assert_int_equal(tg_text_mix(text, bad[0].part, 0), TG_E_ARG);
    OK(ctx, tg_text_mix(text, mix_3_1_4, PARTS));
    assert_int_equal(tg_text_mix(text, mix_3_1_4, PARTS), TG_E_ARG);
    tg_text *more = letters(ctx, NULL, 0);
    assert_int_equal(tg_text_join(text, more), TG_E_ARG);
    assert_int_equal(tg_text_join(more, text), TG_E_ARG);
    tg_text_free(more);
    tg_text_free(text);

    /* Shorter than a window: known when rows are. */
    const tg_mix_part narrow[] = { { A, 1 }, { A + T + 4, 1 }, { A + B + C, 1 } };
    const tg_train_options o = options();
    tg_model *model;
    tg_trainer *t;
    text = letters(ctx, narrow, PARTS);
    OK(ctx, tg_model_new(ctx, &nano, 1, &model));
    assert_int_equal(tg_trainer_new(ctx, model, text, &o, &t), TG_E_DATA);
    assert_non_null(strstr(tg_context_error(ctx), "training part of part 2 of the mix has 23"));
    tg_model_free(model);
    tg_text_free(text);
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow_the_weights),
        cmocka_unit_test(each_end_validates),
        cmocka_unit_test(what_is_held_back_is_apart),
        cmocka_unit_test(one_part_is_the_text),
        cmocka_unit_test(a_resumed_run_is_the_run),
        cmocka_unit_test(a_trainer_stays_without_a_later_mix),
        cmocka_unit_test(a_weight_is_told_in_full),
        cmocka_unit_test(an_end_that_is_too_short_is_named),
        cmocka_unit_test(bad_mixes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
