/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ema.c - training with an average of the weights: what it is, that it changes nothing of what
 * is trained, what reads it, and that saves hold both.
 */
#include "engine_util.h"
#include "nan.h"

#include "inspect/inspect.h"
#include "io/run/file.h"
#include "io/run/tools.h"

static const tg_model_config nano = { 2, 24, 3, 16, 256, 96 };
static const char *const SAVE = "build/test_ema.tinygpt", *const BEST = "build/test_ema.best";

static run_of fresh(unsigned threads, double ema, tg_optimizer optimizer) {
    tg_train_options o = tg_train_options_default();
    o.steps = 8;
    o.batch = 5;
    o.lr = 3e-3;
    o.eval_every = 4;
    o.eval_windows = 9;
    o.optimizer = optimizer;
    o.skip_bad_steps = true;
    o.ema = ema;
    return start_run(open_context(threads, NULL, NULL), &nano, &o);
}

/* Step by step by a loop of its own, in double; what is trained is what it is without. */
static void it_is_an_average_of_what_is_trained(void **state) {
    (void)state;
    for (int optimizer = TG_ADAMW; optimizer <= TG_MUON; optimizer++) {
        run_of plain = fresh(1, 0, (tg_optimizer)optimizer),
               run = fresh(3, 0.6, (tg_optimizer)optimizer);
        const size_t n = run.model->layout.n_elems;
        const float *const average = run.model->weights, *const raw = run.trainer->raw.data;
        double *want = malloc(n * sizeof *want);
        for (size_t i = 0; i < n; i++) want[i] = (double)average[i];
        assert_memory_equal(average, raw, n * sizeof(float));
        for (int step = 1; step <= 8; step++) {
            const tg_step_report a = steps_until(&plain, step), b = steps_until(&run, step);
            const double early = (1.0 + step) / (10.0 + step), keep = early < 0.6 ? early : 0.6;
            assert_int_equal(a.loss_hash, b.loss_hash);
            assert_memory_equal(raw, plain.model->weights, n * sizeof(float));
            for (size_t i = 0; i < n; i++) {
                want[i] = keep * want[i] + (1 - keep) * (double)raw[i];
                if (!(tg_fabs((double)average[i] - want[i]) <= 1e-6 * (1 + tg_fabs(want[i]))))
                    fail_msg("step %d, element %zu: want %.9g, have %.9g", step, i, want[i],
                             (double)average[i]);
            }
        }
        free(want);
        end_run(&plain);
        end_run(&run);
    }
}

/* Validation, the best weights and the model are of the average. */
static void it_is_what_is_read(void **state) {
    (void)state;
    run_of r = fresh(1, 0.9, TG_ADAMW), plain = fresh(1, 0, TG_ADAMW);
    const tg_step_report report = steps_until(&r, 8), other = steps_until(&plain, 8);
    double loss;
    tg_model *best;
    OK(r.ctx, tg_model_eval(r.ctx, r.model, r.text, 0.1, 9, &loss));
    assert_true(loss == report.val_loss && loss != other.val_loss);
    assert_true(report.val_is_best);
    OK(r.ctx, tg_trainer_save_best(r.trainer, BEST));
    OK(r.ctx, tg_model_open(r.ctx, BEST, &best));
    assert_false(best->has_moments);
    assert_memory_equal(best->weights, r.model->weights, r.model->block.bytes);
    tg_model_free(best);
    end_run(&r);
    end_run(&plain);
}

/* A save opens as the average, and goes on as the run. */
static void a_resumed_run_is_the_run(void **state) {
    (void)state;
    run_of r = fresh(2, 0.9, TG_ADAMW);
    tg_model *model;
    tg_trainer *t;
    tg_file *f;
    const size_t bytes = r.model->layout.n_elems * sizeof(float);
    steps_until(&r, 5);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    OK(r.ctx, tg_model_open(r.ctx, SAVE, &model));
    assert_memory_equal(model->weights, r.model->weights, bytes);
    tg_model_free(model);
    OK(r.ctx, tg_file_open(&r.ctx->err, SAVE, &f));
    assert_true(f->has_raw && f->n_tensors == 4 * f->manifest.n);
    tg_file_close(f);
    const tg_step_report a = steps_until(&r, 8);
    tg_step_report b = { .step = 0 };
    OK(r.ctx, tg_trainer_open(r.ctx, SAVE, r.text, 0, &t));
    assert_true(t->o.ema == 0.9);
    while (b.step < 8) OK(r.ctx, tg_trainer_step(t, &b));
    assert_int_equal(a.loss_hash, b.loss_hash);
    assert_true(a.val_loss == b.val_loss);
    assert_memory_equal(t->model->weights, r.model->weights, bytes);
    assert_memory_equal(t->raw.data, r.trainer->raw.data, bytes);
    tg_trainer_free(t);
    end_run(&r);
}

static int keep_text(void *user, const char *text, size_t n) {
    snprintf(user, 4096, "%.*s", (int)n, text);
    return 0;
}

/* A run does not become one that goes on from the average; weights alone are the average. */
static void older_formats_hold_no_run_of_it(void **state) {
    (void)state;
    run_of r = fresh(1, 0.9, TG_ADAMW);
    const char *const v2 = "build/test_ema_v2.tinygpt";
    tg_model *model;
    tg_trainer *t;
    char info[4096];
    steps_until(&r, 3);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    OK(r.ctx, tg_inspect_file_info(&r.ctx->err, SAVE, false, keep_text, info));
    assert_non_null(strstr(info, "moments; the weights are an average, kept with what is"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(tg_io_convert(&r.ctx->err, SAVE, v2, i ? TG_FILE_V1_F32 : TG_FILE_V2_F32),
                         TG_E_UNSUPPORTED);
    OK(r.ctx, tg_io_convert(&r.ctx->err, SAVE, v2, TG_FILE_V2_F16));
    OK(r.ctx, tg_model_open(r.ctx, v2, &model));
    assert_false(model->has_moments);
    assert_true(tg_fabs((double)(model->weights[9] - r.model->weights[9])) < 1e-3);
    tg_model_free(model);
    assert_int_equal(tg_trainer_open(r.ctx, v2, r.text, 0, &t), TG_E_ARG);
    end_run(&r);
}

/* A file that says one thing and holds another is not half used. */
static void a_save_without_what_is_trained_is_refused(void **state) {
    (void)state;
    run_of r = fresh(1, 0, TG_ADAMW);
    tg_trainer *t;
    steps_until(&r, 1);
    r.trainer->o.ema = 0.5;
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, r.text, 0, &t), TG_E_FORMAT);
    assert_non_null(strstr(tg_context_error(r.ctx), "raw.*"));
    end_run(&r);
}

static void a_refused_update_leaves_it(void **state) {
    (void)state;
    run_of r = fresh(1, 0.9, TG_ADAMW);
    steps_until(&r, 2);
    const size_t bytes = r.model->layout.n_elems * sizeof(float);
    float *before = malloc(bytes);
    memcpy(before, r.model->weights, bytes);
    assert_true(poison(r.trainer, "grad.blocks.0.ln1.weight", (float)TG_NAN));
    assert_true(steps_until(&r, 3).skipped);
    assert_memory_equal(before, r.model->weights, bytes);
    steps_until(&r, 4);
    assert_memory_not_equal(before, r.model->weights, bytes);
    free(before);
    end_run(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_an_average_of_what_is_trained),
        cmocka_unit_test(it_is_what_is_read),
        cmocka_unit_test(a_resumed_run_is_the_run),
        cmocka_unit_test(older_formats_hold_no_run_of_it),
        cmocka_unit_test(a_save_without_what_is_trained_is_refused),
        cmocka_unit_test(a_refused_update_leaves_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
