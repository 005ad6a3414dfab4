/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_resume.c - what a run is bound to and what it is not: the bytes of its text, wherever they
 * lie; its validation part; its schedule; and a validation that was due when it was saved.
 */
#include "engine_util.h"

#include "base/math.h"
#include "ops/dropout/mask.h"
#include "training/train.h"

static const tg_model_config nano = { 2, 24, 3, 16, 256, 96 };
static const char *const SAVE = "build/test_resume.tinygpt";

enum { BYTES = 600000 };
static char bytes[BYTES];

static int read_text(void **state) {
    (void)state;
    FILE *f = fopen(STORIES, "rb");
    if (!f || fread(bytes, 1, BYTES, f) != BYTES) return 1;
    return fclose(f);
}

static tg_train_options options(int64_t steps) {
    tg_train_options o = tg_train_options_default();
    o.steps = steps;
    o.batch = 5;
    o.lr = 1e-3;
    o.schedule = TG_COSINE;
    o.eval_every = 6;
    o.eval_windows = 9;
    return o;
}

static tg_text *memory(tg_context *ctx, const char *from, size_t n) {
    tg_text *t;
    OK(ctx, tg_text_from_memory(ctx, from, n, &t));
    return t;
}

static tg_text *file(tg_context *ctx, const char *path, const char *from, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(from, 1, n, f), n);
    fclose(f);
    tg_text *t;
    OK(ctx, tg_text_open(ctx, path, &t));
    return t;
}

static run_of fresh(tg_text *(*text)(tg_context *ctx), const tg_train_options *o) {
    tg_context *ctx = open_context(1, NULL, NULL);
    return start_run_on(ctx, text(ctx), &nano, o);
}

static tg_text *whole(tg_context *ctx) { return memory(ctx, bytes, BYTES); }

/* -------------------------------------------------------------------------------------- the text
 */

/* None of the changed bytes is among the samples that files of before know a text by. */
static void sees_every_byte(void **state) {
    (void)state;
    enum { AT = 4200, CHANGED = 2000 };
    const tg_train_options o = options(4);
    run_of r = fresh(whole, &o);
    steps_until(&r, 2);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    static char other_bytes[BYTES];
    memcpy(other_bytes, bytes, BYTES);
    memset(other_bytes + AT, 'x', CHANGED);
    tg_text *other = memory(r.ctx, other_bytes, BYTES);
    uint32_t a, b;
    OK(r.ctx, tg_text_mark(r.text, &a));
    OK(r.ctx, tg_text_mark(other, &b));
    assert_int_equal(a, b);
    tg_trainer *t;
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, other, 0, &t), TG_E_DATA);
    assert_non_null(strstr(tg_context_error(r.ctx), "another text of the same length"));
    tg_text_free(other);
    end_run(&r);
}

/* Empty ones, short ones, one in memory; more files than may be open at once. */
static tg_text *in_pieces(tg_context *ctx) {
    enum { FILES = 150 };
    tg_text *all = NULL;
    size_t at = 0;
    for (int i = 0; i < FILES; i++) {
        const size_t n = i == FILES - 1 ? BYTES - at
                         : i % 7 == 0   ? 0
                                        : (size_t)(977 * i % 6000 + 1);
        char path[64];
        snprintf(path, sizeof path, "build/test_resume.%d.txt", i);
        tg_text *next = i == 50 ? memory(ctx, bytes + at, n) : file(ctx, path, bytes + at, n);
        at += n;
        if (all)
            OK(ctx, tg_text_join(all, next));
        else
            all = next;
    }
    assert_int_equal(tg_text_bytes(all), BYTES);
    return all;
}

/* Wherever its bytes lie, a text is the same: same hash, same losses; a run goes on with either. */
static void joined_texts_are_one(void **state) {
    (void)state;
    const tg_train_options o = options(12);
    run_of one = fresh(whole, &o), many = fresh(in_pieces, &o);
    uint8_t a[32], b[32];
    OK(one.ctx, tg_text_sha256(one.text, a));
    OK(many.ctx, tg_text_sha256(many.text, b));
    assert_memory_equal(a, b, sizeof a);
    assert_true(many.text->n_open <= TG_TEXT_FILES_MAX);
    const tg_step_report want = steps_until(&one, 12), have = steps_until(&many, 12);
    assert_int_equal(want.loss_hash, have.loss_hash);
    assert_true(want.val_loss == have.val_loss);
    OK(many.ctx, tg_trainer_save(many.trainer, SAVE));
    tg_trainer *t;
    OK(one.ctx, tg_trainer_open(one.ctx, SAVE, one.text, 14, &t));
    tg_trainer_free(t);
    /* A file that changes while it is closed is told by its name. */
    tg_text *changed = file(many.ctx, "build/test_resume.1.txt", bytes, 3);
    tg_text_free(changed);
    tg_status s = TG_OK;
    for (int i = 0; s == TG_OK && i < 3; i++) s = tg_text_sha256(many.text, b);
    assert_int_equal(s, TG_E_IO);
    assert_non_null(strstr(tg_context_error(many.ctx), "test_resume.1.txt"));
    end_run(&one);
    end_run(&many);
}

enum { TRAIN = 500000 };
static tg_text *with_validation(tg_context *ctx) {
    tg_text *t = memory(ctx, bytes, TRAIN);
    OK(ctx, tg_text_join(t, memory(ctx, bytes + TRAIN, BYTES - TRAIN)));
    OK(ctx, tg_text_hold_back(t, TRAIN));
    return t;
}
static tg_text *train_alone(tg_context *ctx) { return memory(ctx, bytes, TRAIN); }

/* The training part is all of the first text, and the loss is that of the other one alone. */
static void a_validation_part_of_its_own(void **state) {
    (void)state;
    tg_train_options o = options(6);
    run_of r = fresh(with_validation, &o);
    o.val_fraction = 0;
    run_of alone = fresh(train_alone, &o);
    const tg_step_report have = steps_until(&r, 6), want = steps_until(&alone, 6);
    assert_int_equal(have.loss_hash, want.loss_hash);
    tg_text *val = memory(r.ctx, bytes + TRAIN, BYTES - TRAIN);
    double loss;
    OK(r.ctx, tg_model_eval(r.ctx, r.model, val, 0, o.eval_windows, &loss));
    assert_true(loss == have.val_loss);
    /* It belongs to the run. */
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    tg_trainer *t;
    tg_text *plain = whole(r.ctx);
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, plain, 0, &t), TG_E_DATA);
    assert_non_null(strstr(tg_context_error(r.ctx), "another validation part"));
    OK(r.ctx, tg_trainer_open(r.ctx, SAVE, r.text, 9, &t));
    tg_trainer_free(t);
    /* One without a window in it is refused, since it was asked for by name. */
    OK(r.ctx, tg_text_hold_back(plain, BYTES - 16));
    assert_int_equal(tg_trainer_new(r.ctx, r.model, plain, &o, &t), TG_E_DATA);
    assert_int_equal(tg_text_hold_back(plain, 0), TG_E_ARG);
    assert_int_equal(tg_text_hold_back(plain, BYTES + 1), TG_E_ARG);
    tg_text_free(plain);
    tg_text_free(val);
    end_run(&alone);
    end_run(&r);
}

/* ----------------------------------------------------------------------------------- what is due
 */

/* A save between a step and its validation: the resumed run validates first, and reports the step
 * as the unbroken run does, but for its times. */
static void a_due_validation_is_not_forgotten(void **state) {
    (void)state;
    const tg_train_options o = options(12);
    run_of r = fresh(whole, &o);
    tg_step_report want, have;
    steps_until(&r, 5);
    while (!r.trainer->eval_pending) tg_trainer_poll(r.trainer, 1e-6, &want);
    assert_int_equal(tg_trainer_steps_done(r.trainer), 6);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    OK(r.ctx, tg_trainer_step(r.trainer, &want));
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text = whole(ctx);
    tg_trainer *t;
    OK(ctx, tg_trainer_open(ctx, SAVE, text, 0, &t));
    OK(ctx, tg_trainer_step(t, &have));
    assert_int_equal(have.step, 6);
    assert_true(have.val_loss == want.val_loss && have.loss == want.loss);
    assert_true(have.lr == want.lr && have.grad_norm == want.grad_norm);
    assert_int_equal(have.loss_hash, want.loss_hash);
    assert_int_equal(have.val_is_best, want.val_is_best);
    size_t n, m;
    const tg_history_point *a = tg_trainer_history(t, &n), *b = tg_trainer_history(r.trainer, &m);
    assert_int_equal(n, m);
    assert_true(a[n - 1].val_loss == b[n - 1].val_loss);
    while (have.step < 12) OK(ctx, tg_trainer_step(t, &have));
    const tg_step_report end = steps_until(&r, 12);
    assert_int_equal(have.loss_hash, end.loss_hash);
    assert_true(have.val_loss == end.val_loss);
    tg_trainer_free(t);
    tg_text_free(text);
    tg_context_free(ctx);
    end_run(&r);
}

/* ------------------------------------------------------------------------------------- dropout */

static run_of dropping(unsigned threads, double rate, int32_t batch, int32_t accum) {
    tg_train_options o = options(8);
    o.dropout = rate;
    o.batch = batch;
    o.accum = accum;
    tg_context *ctx = open_context(threads, NULL, NULL);
    return start_run_on(ctx, whole(ctx), &nano, &o);
}

/* The rate is the share that falls, and the mean stays what it was. */
static void masks_have_their_rate(void **state) {
    (void)state;
    enum { BLOCKS = 20000 };
    const tg_scalars rt = { .seed_lo = 3 };
    const tg_mask m = tg_mask_of(&(tg_args) { .rt = &rt }, 0.3f, 1, 2);
    double sum = 0, fallen = 0;
    for (uint32_t i = 0; i < 4 * BLOCKS; i++) {
        const double x = tg_mask_at(&m, i / 4, i % 4);
        sum += x;
        fallen += x == 0;
    }
    assert_true(tg_fabs(fallen / (4 * BLOCKS) - 0.3) < 0.005);
    assert_true(tg_fabs(sum / (4 * BLOCKS) - 1) < 0.01);
}

/* What falls follows from seed, row and place: the same on any number of threads, behind a save,
 * and however a step is cut into micro-steps; and nothing falls in a validation. */
static void dropout_is_the_runs_own(void **state) {
    (void)state;
    run_of none = dropping(1, 0, 6, 1), one = dropping(1, 0.3, 6, 1),
           three = dropping(3, 0.3, 6, 1);
    run_of cut = dropping(1, 0.3, 2, 3);
    double want, have;
    OK(none.ctx, tg_trainer_eval(none.trainer, &want));
    OK(one.ctx, tg_trainer_eval(one.trainer, &have));
    assert_true(want == have);
    tg_step_report a = steps_until(&one, 1), b = steps_until(&cut, 1), c = steps_until(&none, 1);
    assert_true(tg_fabs(a.loss - b.loss) < 1e-6 && tg_fabs(a.loss - c.loss) > 1e-4);
    assert_true(tg_fabs(a.grad_norm - b.grad_norm) < 1e-5 * a.grad_norm);
    steps_until(&one, 4);
    OK(one.ctx, tg_trainer_save(one.trainer, SAVE));
    a = steps_until(&one, 8);
    b = steps_until(&three, 8);
    assert_int_equal(a.loss_hash, b.loss_hash);
    tg_trainer *t;
    OK(one.ctx, tg_trainer_open(one.ctx, SAVE, one.text, 0, &t));
    for (c.step = 0; c.step < 8;) OK(one.ctx, tg_trainer_step(t, &c));
    assert_int_equal(a.loss_hash, c.loss_hash);
    tg_trainer_free(t);
    end_run(&none);
    end_run(&one);
    end_run(&three);
    end_run(&cut);
}

/* ------------------------------------------------------------------------------------ the schedule
 */

/* More steps make a cosine or a wsd rise again, unless its end is held; the hold is saved. */
static void a_held_rate_stays(void **state) {
    (void)state;
    static const tg_schedule schedules[] = { TG_COSINE, TG_WSD };
    for (int i = 0; i < 2; i++) {
        tg_train_options o = options(10);
        o.schedule = schedules[i];
        run_of r = fresh(whole, &o);
        const tg_step_report last = steps_until(&r, 10);
        assert_true(last.lr == tg_trainer_lr(r.trainer, 10));
        OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
        tg_trainer *t;
        OK(r.ctx, tg_trainer_open(r.ctx, SAVE, r.text, 40, &t));
        assert_true(tg_trainer_lr(t, 11) > 2 * last.lr);
        tg_trainer_free(t);
        OK(r.ctx, tg_trainer_open(r.ctx, SAVE, r.text, 0, &t));
        OK(r.ctx, tg_trainer_hold_lr(t));
        OK(r.ctx, tg_trainer_set_steps(t, 40));
        tg_step_report report;
        OK(r.ctx, tg_trainer_step(t, &report));
        assert_true(report.lr <= last.lr && report.lr == tg_trainer_lr(t, 11));
        assert_true(tg_trainer_lr(t, 40) == o.lr * o.min_lr_ratio);
        OK(r.ctx, tg_trainer_save(t, SAVE));
        tg_trainer_free(t);
        OK(r.ctx, tg_trainer_open(r.ctx, SAVE, r.text, 80, &t));
        assert_true(tg_trainer_lr(t, 12) == o.lr * o.min_lr_ratio);
        tg_trainer_free(t);
        end_run(&r);
    }
}

static void steps_and_validation_of_a_resumed_run(void **state) {
    (void)state;
    tg_train_options o = options(10), now = tg_train_options_default();
    run_of r = fresh(whole, &o);
    steps_until(&r, 10);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    tg_trainer *t;
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, r.text, 9, &t), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(r.ctx), "want at least the 10 that are done"));
    OK(r.ctx, tg_trainer_open(r.ctx, SAVE, r.text, 12, &t));
    OK(r.ctx, tg_trainer_set_validation(t, 1, 5));
    OK(r.ctx, tg_trainer_options(t, &now));
    assert_int_equal(now.eval_every, 1);
    assert_int_equal(now.patience, 5);
    tg_step_report report;
    OK(r.ctx, tg_trainer_step(t, &report));
    assert_false(tg_isnan(report.val_loss));
    OK(r.ctx, tg_trainer_set_validation(t, -1, -1));
    OK(r.ctx, tg_trainer_options(t, &now));
    assert_int_equal(now.eval_every, 1);
    assert_int_equal(now.patience, 5);
    tg_trainer_free(t);
    end_run(&r);
}

typedef struct rates {
    const tg_trainer *like; /* the rates of its schedule */
    int64_t first, last;    /* steps that were asked for */
    double wrong;           /* instead, from the fourth step on, unless 0 */
} rates;

static double rate_of(void *user, int64_t step) {
    rates *r = user;
    if (r->first == 0) r->first = step;
    r->last = step;
    if (r->wrong != 0 && step >= 4) return r->wrong;
    return tg_trainer_lr(r->like, step);
}

static int warnings;
static void count_warnings(void *user, int level, const char *text) {
    (void)user;
    warnings += level == 1 && strstr(text, "learning rates of its program's own") != NULL;
}

/* Rates of the caller's that are those of a schedule make the same run to the bit, also when it is
 * resumed and they are given again; that there were any is said. */
static void rates_of_the_caller(void **state) {
    (void)state;
    const tg_train_options o = options(12);
    tg_train_options constant = o;
    constant.schedule = TG_CONSTANT;
    tg_context_options with = tg_context_options_default();
    with.threads = 1;
    with.log = count_warnings;
    run_of like = fresh(whole, &o);
    tg_context *ctx;
    assert_int_equal(tg_context_new(&with, &ctx), TG_OK);
    run_of own = start_run_on(ctx, whole(ctx), &nano, &constant);
    rates r = { .like = like.trainer };
    OK(ctx, tg_trainer_set_rate(own.trainer, rate_of, &r));
    const tg_step_report want = steps_until(&like, 12), half = steps_until(&own, 6);
    assert_int_equal(r.first, 1);
    assert_int_equal(r.last, 6);
    assert_true(half.lr == tg_trainer_lr(like.trainer, 6));
    OK(ctx, tg_trainer_save(own.trainer, SAVE));
    for (int given = 0; given < 2; given++) {
        tg_trainer *t;
        tg_step_report report = { .step = 0 };
        warnings = 0;
        OK(ctx, tg_trainer_open(ctx, SAVE, own.text, 0, &t));
        assert_int_equal(warnings, 1);
        if (given) OK(ctx, tg_trainer_set_rate(t, rate_of, &r));
        while (report.step < 12) OK(ctx, tg_trainer_step(t, &report));
        assert_int_equal(report.loss_hash == want.loss_hash, given);
        tg_trainer_free(t);
    }
    /* Of a rate that is none the step says so, and the weights stay. */
    const double none[] = { -1e-3, TG_NAN, TG_INF };
    for (int i = 0; i < 3; i++) {
        tg_trainer *t;
        tg_step_report report;
        rates wrong = { .like = like.trainer, .wrong = none[i] };
        OK(ctx, tg_trainer_new(ctx, own.model, own.text, &constant, &t));
        OK(ctx, tg_trainer_set_rate(t, rate_of, &wrong));
        for (int k = 0; k < 3; k++) OK(ctx, tg_trainer_step(t, &report));
        assert_int_equal(tg_trainer_step(t, &report), TG_E_ARG);
        assert_non_null(strstr(tg_context_error(ctx), "rate of step 4"));
        assert_int_equal(tg_trainer_steps_done(t), 3);
        OK(ctx, tg_trainer_set_rate(t, NULL, NULL));
        OK(ctx, tg_trainer_step(t, &report));
        assert_true(report.lr == constant.lr);
        tg_trainer_free(t);
    }
    end_run(&own);
    end_run(&like);
}

/* A table goes along in saves, so that the run goes on by it to the same bits and without a word.
 */
static void a_table_of_rates(void **state) {
    (void)state;
    const int64_t steps[] = { 2, 4, 12 }, falling[] = { 1, 9, 8 };
    const double table[] = { 1e-4, 1e-2, 0 }, wrong[] = { 1e-4, -1, 0 };
    const tg_train_options o = options(12);
    tg_context_options with = tg_context_options_default();
    with.threads = 1;
    with.log = count_warnings;
    tg_context *ctx;
    assert_int_equal(tg_context_new(&with, &ctx), TG_OK);
    run_of run = start_run_on(ctx, whole(ctx), &nano, &o);
    const int64_t *step;
    const double *rate;
    assert_int_equal(tg_trainer_rates(run.trainer, &step, &rate), 0);
    assert_int_equal(tg_trainer_set_rates(run.trainer, falling, table, 3), TG_E_ARG);
    assert_int_equal(tg_trainer_set_rates(run.trainer, steps, wrong, 3), TG_E_ARG);
    assert_int_equal(tg_trainer_set_rates(run.trainer, steps, table, TG_RATES_MAX + 1), TG_E_ARG);
    OK(ctx, tg_trainer_set_rates(run.trainer, steps, table, 3));
    const struct {
        int64_t step;
        double lr;
    } want[] = { { 1, 1e-4 }, { 2, 1e-4 }, { 3, 5.05e-3 }, { 4, 1e-2 }, { 8, 5e-3 }, { 13, 0 } };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_float_equal(tg_trainer_lr(run.trainer, want[i].step), want[i].lr, 1e-15);
    (void)steps_until(&run, 6);
    OK(ctx, tg_trainer_save(run.trainer, SAVE));
    const tg_step_report end = steps_until(&run, 12);
    tg_trainer *t;
    tg_step_report report = { .step = 0 };
    warnings = 0;
    OK(ctx, tg_trainer_open(ctx, SAVE, run.text, 0, &t));
    assert_int_equal(warnings, 0);
    assert_int_equal(tg_trainer_rates(t, &step, &rate), 3);
    assert_memory_equal(step, steps, sizeof steps);
    assert_memory_equal(rate, table, sizeof table);
    while (report.step < 12) OK(ctx, tg_trainer_step(t, &report));
    assert_true(report.loss_hash == end.loss_hash);
    OK(ctx, tg_trainer_set_rates(t, NULL, NULL, 0));
    assert_int_equal(tg_trainer_rates(t, &step, &rate), 0);
    OK(ctx, tg_trainer_save(t, SAVE));
    tg_trainer_free(t);
    OK(ctx, tg_trainer_open(ctx, SAVE, run.text, 0, &t));
    assert_int_equal(warnings, 0); /* nobody has to give rates that were taken away */
    /* What is set last goes: a function takes the table's place, and none at all both's. */
    run_of like = fresh(whole, &o);
    rates r = { .like = like.trainer };
    for (int given = 0; given < 2; given++) {
        OK(ctx, tg_trainer_set_rates(t, steps, table, 3));
        OK(ctx, tg_trainer_set_rate(t, given ? rate_of : NULL, &r));
        assert_int_equal(tg_trainer_rates(t, &step, &rate), 0);
        assert_true(tg_trainer_lr(t, 4) == tg_trainer_lr(like.trainer, 4));
    }
    tg_trainer_free(t);
    end_run(&like);
    end_run(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_of_rates),
        cmocka_unit_test(sees_every_byte),
        cmocka_unit_test(joined_texts_are_one),
        cmocka_unit_test(a_validation_part_of_its_own),
        cmocka_unit_test(a_due_validation_is_not_forgotten),
        cmocka_unit_test(masks_have_their_rate),
        cmocka_unit_test(dropout_is_the_runs_own),
        cmocka_unit_test(a_held_rate_stays),
        cmocka_unit_test(steps_and_validation_of_a_resumed_run),
        cmocka_unit_test(rates_of_the_caller),
    };
    return cmocka_run_group_tests(tests, read_text, NULL);
}
