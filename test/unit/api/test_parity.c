/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_parity.c - our numbers against PyTorch's (test/golden/gpt, made by tools/oracle/golden.py):
 * initial weights, batches, logits, 300 losses, and mutants that must not pass for the original.
 */
#include "mutants.h"

#include "base/math.h"
#include "engine/session.h"

static const tg_model_config custom = { 2, 40, 5, 24, 256, 160 };

static void same_initial_weights(void **state) {
    (void)state;
    size_t n;
    double *want = read_golden("test/golden/gpt/init_custom.txt", &n);
    tg_context *ctx = open_context(2, NULL, NULL);
    tg_model *m;
    OK(ctx, tg_model_new(ctx, &custom, 42, &m));
    assert_int_equal(n, 4 * m->layout.n_tensors);
    for (size_t i = 0; i < m->layout.n_tensors; i++) {
        const tg_tensor_spec *t = &m->layout.tensors[i];
        const size_t elems = t->rows * t->cols;
        float *x = malloc(elems * sizeof *x);
        OK(ctx, tg_model_tensor(m, t->name, x, elems));
        double sum = 0;
        for (size_t e = 0; e < elems; e++) sum += (double)x[e];
        const double have[4] = { (double)x[0], (double)x[1], (double)x[elems - 1], sum };
        for (int k = 0; k < 4; k++) {
            /* Values to their last bit or so; the last of the four is a sum over all elements. */
            const double w = want[4 * i + (size_t)k], allowed = 1e-8 + 1e-7 * tg_fabs(w);
            if (tg_fabs(have[k] - w) > allowed)
                fail_msg("%s value %d: want %.9g, have %.9g", t->name, k, w, have[k]);
        }
        free(x);
    }
    free(want);
    tg_model_free(m);
    tg_context_free(ctx);
}

static void same_batches(void **state) {
    (void)state;
    size_t n;
    double *want = read_golden("test/golden/gpt/starts_small.txt", &n);
    assert_int_equal(n, 64);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(tg_batch_start(42, i, 1003855, 64), (uint64_t)want[i]);
    free(want);
}

/* Last four positions of a prompt of ctx bytes, token by token through the session. */
static void check_logits(const tg_model_config *config, const char *golden, const char *levers) {
    size_t n;
    double *want = read_golden(golden, &n);
    assert_int_equal(n, 4 * 256);
    tg_context *ctx = open_context(2, NULL, levers);
    tg_model *m;
    tg_session *s;
    tg_text *text;
    OK(ctx, tg_model_new(ctx, config, 42, &m));
    OK(ctx, tg_session_new(ctx, m, 0, &s));
    OK(ctx, tg_text_open(ctx, STORIES, &text));
    uint8_t bytes[1024];
    int32_t ids[1024];
    assert_int_equal(tg_text_read(text, 0, bytes, (size_t)config->ctx), TG_OK);
    for (int i = 0; i < config->ctx; i++) ids[i] = bytes[i];
    const float *logits;
    OK(ctx, tg_session_eval(s, ids, (size_t)config->ctx - 4, NULL));
    for (int p = 0; p < 4; p++) {
        OK(ctx, tg_session_eval(s, ids + config->ctx - 4 + p, 1, &logits));
        for (int v = 0; v < 256; v++) {
            const double w = want[p * 256 + v];
            if (tg_fabs((double)logits[v] - w) > 1e-5)
                fail_msg("%s position %d logit %d: want %.9g, have %.9g", golden, p, v, w,
                         (double)logits[v]);
        }
    }
    free(want);
    tg_text_free(text);
    tg_session_free(s);
    tg_model_free(m);
    tg_context_free(ctx);
}

static void same_logits(void **state) {
    (void)state;
    check_logits(&tg_preset_find("small")->config, "test/golden/gpt/logits_small.txt", NULL);
    check_logits(&custom, "test/golden/gpt/logits_custom.txt", NULL);
    check_logits(&custom, "test/golden/gpt/logits_custom.txt", "-simd");
}

static tg_train_options parity_options(void) {
    tg_train_options o = tg_train_options_default();
    o.steps = 300;
    o.batch = 16;
    o.eval_every = 0;
    return o;
}

/* Largest relative difference of the losses; the first step over 1e-5 goes to *first (-1: none). */
static double losses_differ(run_of *r, const double *want, int n, int *first) {
    double worst = 0;
    *first = -1;
    for (int i = 0; i < n; i++) {
        tg_step_report report;
        OK(r->ctx, tg_trainer_step(r->trainer, &report));
        const double d = tg_fabs(report.loss - want[i]) / want[i];
        if (d > worst) worst = d;
        if (d > 1e-5 && *first < 0) *first = i;
    }
    return worst;
}

static void same_losses(void **state) {
    (void)state;
    size_t n;
    double *want = read_golden("test/golden/gpt/losses_small.txt", &n);
    assert_int_equal(n, 300);
    const tg_train_options o = parity_options();
    run_of r = start_run(open_context(0, NULL, NULL), &tg_preset_find("small")->config, &o);
    int first;
    const double worst = losses_differ(&r, want, 300, &first);
    if (first >= 0)
        fail_msg("step %d: the losses leave PyTorch's; largest difference %.3g", first, worst);
    print_message("largest relative difference from PyTorch in 300 steps: %.3g\n", worst);
    end_run(&r);
    free(want);
}

/* ------------------------------------------------------------------------------------- mutants */

static void mutants_are_noticed(void **state) {
    (void)state;
    size_t n;
    double *want = read_golden("test/golden/gpt/losses_small.txt", &n);
    for (size_t i = 0; i < sizeof mutants / sizeof mutants[0]; i++) {
        const tg_train_options o = parity_options();
        run_of r = start_run(open_context(0, NULL, NULL), &tg_preset_find("small")->config, &o);
        mutants[i].mutate(&r);
        int first;
        const double worst = losses_differ(&r, want, 120, &first);
        if (first < 0)
            fail_msg("%s passes for the original: largest difference %.3g", mutants[i].name, worst);
        print_message("mutant '%s' noticed at step %d\n", mutants[i].name, first);
        end_run(&r);
    }
    free(want);
}

/* --------------------------------------------------------------------------------- overfitting */

enum { OVERFIT_UPDATES = 150, STORIES_BYTES = 4000000 };

static int append(void *user, const char *bytes, size_t n_bytes) {
    char **end = user;
    memcpy(*end, bytes, n_bytes);
    *end += n_bytes;
    return 0;
}

/* Learns one batch of 4 by heart; losses [OVERFIT_UPDATES + 1] are those before each update. Takes
 * the text. */
static void overfit(tg_context *ctx, tg_text *text, double *losses) {
    tg_train_options o = parity_options();
    o.steps = 400;
    o.batch = 4;
    o.lr = 1e-3;
    run_of r = start_run_on(ctx, text, &tg_preset_find("small")->config, &o);
    for (int i = 0; i <= OVERFIT_UPDATES; i++) {
        r.trainer->step = 0; /* the batch depends on the step alone: it stays the same one */
        tg_step_report report;
        OK(r.ctx, tg_trainer_step(r.trainer, &report));
        losses[i] = report.loss;
    }
    end_run(&r);
}

/* On Shakespeare as fast as PyTorch, which comes down to 0.01175 at these settings (in float64; the
 * last losses are noisy: a few percent either way). */
static void overfits_as_pytorch(void **state) {
    (void)state;
    size_t n;
    double *want = read_golden("test/golden/gpt/overfit_small.txt", &n);
    assert_int_equal(n, OVERFIT_UPDATES + 1);
    tg_context *ctx = open_context(0, NULL, NULL);
    tg_text *text;
    OK(ctx, tg_text_open(ctx, STORIES, &text));
    double have[OVERFIT_UPDATES + 1];
    overfit(ctx, text, have);
    for (int i = 0; i <= 25; i++) {
        if (tg_fabs(have[i] - want[i]) > 1e-5 * want[i])
            fail_msg("after %d updates: want %.9g, have %.9g", i, want[i], have[i]);
    }
    if (!(have[OVERFIT_UPDATES] < 1.1 * want[OVERFIT_UPDATES]))
        fail_msg("after %d updates: want PyTorch's %g, have %g", OVERFIT_UPDATES,
                 want[OVERFIT_UPDATES], have[OVERFIT_UPDATES]);
    free(want);
}

/* And the text that comes with the program, from a blind guess to almost nothing. */
static void overfits_a_batch(void **state) {
    (void)state;
    char *stories = malloc(STORIES_BYTES);
    assert_non_null(stories);
    char *end = stories;
    assert_int_equal(tg_stories(1, STORIES_BYTES, append, &end), TG_OK);
    assert_ptr_equal(end, stories + STORIES_BYTES);
    tg_context *ctx = open_context(0, NULL, NULL);
    tg_text *text;
    OK(ctx, tg_text_from_memory(ctx, stories, STORIES_BYTES, &text));
    free(stories);
    double have[OVERFIT_UPDATES + 1];
    overfit(ctx, text, have);
    if (!(tg_fabs(have[0] - 5.55) < 0.7)) fail_msg("untrained: want 5.55 +- 0.7, have %g", have[0]);
    if (!(have[OVERFIT_UPDATES] < 0.01))
        fail_msg("after %d updates: want under 0.01, have %g", OVERFIT_UPDATES,
                 have[OVERFIT_UPDATES]);
    print_message("overfit: %.5f after %d updates\n", have[OVERFIT_UPDATES], OVERFIT_UPDATES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_initial_weights), cmocka_unit_test(same_batches),
        cmocka_unit_test(same_logits),          cmocka_unit_test(same_losses),
        cmocka_unit_test(mutants_are_noticed),  cmocka_unit_test(overfits_as_pytorch),
        cmocka_unit_test(overfits_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
