/*
 * gpu_test.c - whole paths on a GPU against the CPU: training, validation, saving, sampling, a NaN,
 * a lost device. test/op_test --device webgpu has shown the ops; here it is what carries them.
 *
 * Runs on whatever adapter is found; tools/run_tests.sh runs it on two that compute on the CPU.
 */
#include "../unit/engine_util.h"

#include "backend/webgpu/webgpu.h"
#include "base/math.h"
#include "run/session.h"
#include "run/train.h"

/* Widths, heads and a context that are no multiple of a tile. */
static const tg_gpt_config odd = { 2, 40, 5, 24, 256, 160 };

static tg_context *open_gpu(void) {
    tg_context_options o = tg_context_options_default();
    o.threads = 1;
    o.device = "webgpu";
    tg_context *ctx;
    if (tg_context_new(&o, &ctx) != TG_OK) fail_msg("context: %s", tg_context_error(ctx));
    return ctx;
}

static tg_gpu *gpu_of(const run_of *r) { return tg_webgpu_gpu(r->ctx->backend); }

static tg_train_options options(int64_t steps, int32_t batch) {
    tg_train_options o = tg_train_options_default();
    o.steps = steps;
    o.batch = batch;
    o.eval_every = 0;
    o.eval_windows = 4;
    return o;
}

/* SwiftShader takes a barrier of 256 threads hard, and some seconds for a step. */
static int64_t steps_for(const run_of *r) {
    return strstr(tg_gpu_get_info(gpu_of(r))->adapter, "SwiftShader") ? 6 : 50;
}

static double apart(double have, double want) { return tg_fabs(have - want) / (tg_fabs(want)); }

/* The largest difference of a weight. */
static double weights_apart(run_of *a, run_of *b) {
    double worst = 0;
    const tg_layout *l = &a->model->layout;
    for (size_t i = 0; i < l->n_tensors; i++) {
        const size_t n = l->tensors[i].rows * l->tensors[i].cols;
        float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
        OK(a->ctx, tg_model_tensor(a->model, l->tensors[i].name, x, n));
        OK(b->ctx, tg_model_tensor(b->model, l->tensors[i].name, y, n));
        for (size_t e = 0; e < n; e++) {
            const double d = tg_fabs((double)x[e] - (double)y[e]);
            if (!(d <= worst)) worst = d;
        }
        free(x);
        free(y);
    }
    return worst;
}

/* Losses within 1e-5; weights within two hundredths of what a run of steps may move one: AdamW
 * moves a weight by up to lr a step however small its gradient is. */
static void train_both(const tg_gpt_config *config, tg_train_options o, bool all_steps) {
    run_of cpu = start_run(open_context(1, NULL, NULL), config, &o);
    run_of gpu = start_run(open_gpu(), config, &o);
    const int64_t steps = all_steps && steps_for(&gpu) > o.steps ? o.steps : steps_for(&gpu);
    uint64_t made = 0;
    for (int64_t i = 0; i < (steps < o.steps ? steps : o.steps); i++) {
        tg_step_report want, have;
        OK(cpu.ctx, tg_trainer_step(cpu.trainer, &want));
        OK(gpu.ctx, tg_trainer_step(gpu.trainer, &have));
        if (!(apart(have.loss, want.loss) < 1e-5) ||
            !(apart(have.grad_norm, want.grad_norm) < 1e-4))
            fail_msg("step %d: want loss %.9g, norm %.9g, have %.9g and %.9g", (int)i, want.loss,
                     want.grad_norm, have.loss, have.grad_norm);
        /* All objects are made in the first step; the last one validates, by a plan of its own. */
        if (i == 0) made = tg_gpu_objects_made(gpu_of(&gpu));
        if (i + 1 < o.steps) assert_int_equal(tg_gpu_objects_made(gpu_of(&gpu)), made);
        if (!tg_isnan(want.val_loss) && !(apart(have.val_loss, want.val_loss) < 1e-5))
            fail_msg("validation: want %.9g, have %.9g", want.val_loss, have.val_loss);
    }
    const double d = weights_apart(&gpu, &cpu);
    if (!(d < 0.02 * o.lr * (double)o.steps)) fail_msg("weights: apart by %.3g", d);
    end_run(&cpu);
    end_run(&gpu);
}

static void same_losses(void **state) {
    (void)state;
    train_both(&tg_preset_find("tiny")->config, options(50, 16), false);
}

static void same_losses_of_odd_sizes(void **state) {
    (void)state;
    tg_train_options o = options(4, 3);
    o.accum = 2;
    train_both(&odd, o, true);
}

/* A run that is saved and resumed ends with the bits of one that went through: states come down
 * whole, and go up whole. */
static void saves_and_resumes(void **state) {
    (void)state;
    const char *path = "build/gpu_test.tinygpt";
    const tg_train_options o = options(4, 2);
    run_of whole = start_run(open_gpu(), &odd, &o);
    const uint64_t want = steps_until(&whole, 4).loss_hash;
    end_run(&whole);

    run_of first = start_run(open_gpu(), &odd, &o);
    steps_until(&first, 2);
    OK(first.ctx, tg_trainer_save(first.trainer, path));
    end_run(&first);
    run_of second = { .ctx = open_gpu() };
    OK(second.ctx, tg_text_open(second.ctx, SHAKESPEARE, &second.text));
    OK(second.ctx, tg_trainer_open(second.ctx, path, second.text, 4, &second.trainer));
    assert_int_equal(steps_until(&second, 4).loss_hash, want);
    end_run(&second);
    remove(path);
}

static void feed(tg_context *ctx, tg_session *s, const uint8_t *bytes, size_t n,
                 const float **logits) {
    int32_t ids[64];
    for (size_t i = 0; i < n; i++) ids[i] = bytes[i];
    OK(ctx, tg_session_eval(s, ids, n, logits));
}

/* A prompt, a chunk and single tokens, with weights that a trainer on the GPU has just made; then a
 * token drawn with every filter on. */
static void same_logits(void **state) {
    (void)state;
    const tg_gpt_config *config = &tg_preset_find("tiny")->config;
    const tg_train_options o = options(2, 2);
    run_of cpu = start_run(open_context(1, NULL, NULL), config, &o);
    run_of gpu = start_run(open_gpu(), config, &o);
    steps_until(&cpu, 2);
    steps_until(&gpu, 2);
    tg_session *a, *b;
    OK(cpu.ctx, tg_session_new(cpu.ctx, cpu.model, 0, &a));
    OK(gpu.ctx, tg_session_new(gpu.ctx, gpu.model, 0, &b));
    uint8_t bytes[32];
    OK(cpu.ctx, tg_text_read(cpu.text, 100, bytes, sizeof bytes));
    for (size_t at = 0, n = 19; at < sizeof bytes; at += n, n = at < 27 ? 8 : 1) {
        const float *want, *have;
        feed(cpu.ctx, a, bytes + at, n, &want);
        feed(gpu.ctx, b, bytes + at, n, &have);
        for (int v = 0; v < 256; v++)
            if (!(tg_fabs((double)have[v] - (double)want[v]) < 2e-5))
                fail_msg("logit %d after %zu tokens: want %.9g, have %.9g", v, at + n,
                         (double)want[v], (double)have[v]);
    }
    tg_sample_options so = tg_sample_options_default();
    so.top_k = 40;
    so.top_p = 0.9;
    so.min_p = 0.01;
    for (uint64_t i = 0; i < 8; i++) {
        int32_t want, have;
        OK(cpu.ctx, tg_session_draw(a, &so, i, &want));
        OK(gpu.ctx, tg_session_draw(b, &so, i, &have));
        assert_int_equal(have, want);
    }
    tg_session_free(a);
    tg_session_free(b);
    end_run(&cpu);
    end_run(&gpu);
}

/* The update is refused by the GPU itself, the search goes through values that lie there, and the
 * message is the CPU's. */
static void names_what_is_not_finite(void **state) {
    (void)state;
    static const char *const where[] = { "blocks.1.mlp.fc_in.weight", "grad.ln_final.bias" };
    for (size_t i = 0; i < 2; i++) {
        const tg_train_options o = options(3, 2);
        char want[TG_MESSAGE_BYTES] = "";
        for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
            run_of r = start_run(on_gpu ? open_gpu() : open_context(1, NULL, NULL), &odd, &o);
            tg_step_report report;
            OK(r.ctx, tg_trainer_step(r.trainer, &report));
            OK(r.ctx, tg_trainer_poison(r.trainer, where[i], (float)TG_NAN));
            assert_int_equal(tg_trainer_step(r.trainer, &report), TG_E_NUMBER);
            const char *message = strstr(tg_context_error(r.ctx), "the first tensor");
            assert_non_null(message);
            if (on_gpu) assert_string_equal(message, want);
            snprintf(want, sizeof want, "%s", message);
            OK(r.ctx, tg_trainer_step(r.trainer, &report));
            assert_true(tg_isfinite(report.loss));
            end_run(&r);
        }
    }
}

static void says_that_the_device_is_lost(void **state) {
    (void)state;
    const tg_train_options o = options(3, 2);
    run_of r = start_run(open_gpu(), &odd, &o);
    tg_step_report report;
    OK(r.ctx, tg_trainer_step(r.trainer, &report));
    tg_gpu_lose(gpu_of(&r));
    assert_int_equal(tg_trainer_step(r.trainer, &report), TG_E_DEVICE);
    assert_non_null(strstr(tg_context_error(r.ctx), "GPU"));
    assert_int_equal(tg_trainer_save(r.trainer, "build/gpu_test.tinygpt"), TG_E_DEVICE);
    end_run(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_losses),
        cmocka_unit_test(same_losses_of_odd_sizes),
        cmocka_unit_test(saves_and_resumes),
        cmocka_unit_test(same_logits),
        cmocka_unit_test(names_what_is_not_finite),
        cmocka_unit_test(says_that_the_device_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
