/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_test.c - whole paths on a GPU against the CPU: training, validation, saving, sampling, a NaN,
 * a lost device. test/op_test --device webgpu has shown the ops; here it is what carries them.
 *
 * Runs on whatever adapter is found; the tests run it on two that compute on the CPU. An
 * argument is a pattern: only tests whose names it fits run.
 */
#include "../unit/mutants.h"
#include "../unit/nan.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/jobs.h"
#include "backend/webgpu/webgpu.h"
#include "base/math.h"
#include "base/time.h"
#include "engine/session.h"
#include "load/vocabulary.h"

/* Widths, heads and a context that are no multiple of a tile; and another model, a smaller one. */
static const tg_model_config odd = { 2, 40, 5, 24, 256, 160 };
static const tg_model_config small = { 1, 24, 3, 16, 256, 96 };

/* SwiftShader takes a barrier of 256 threads hard: a step of tiny lasts some seconds. There fewer
 * and smaller steps go the same ways through the same shaders; the long curve is the other
 * adapter's. */
static bool is_slow;

/* What has been compiled for one context of this program need not be for the next. */
#define CACHE "build/gpu_test_cache"

static tg_context *open_gpu(void) {
    tg_context_options o = tg_context_options_default();
    o.threads = 1;
    o.device = "webgpu";
    tg_context *ctx;
    if (tg_context_new(&o, &ctx) != TG_OK) fail_msg("context: %s", tg_context_error(ctx));
    return ctx;
}

/* One device for all tests that don't ask for one of their own: what an adapter compiles for a step
 * of training takes SwiftShader some twenty seconds, and it keeps that for the device alone. Who
 * has lost the device three times leaves it on the CPU. */
static tg_context *common;

static tg_context *common_gpu(void) {
    if (common && common->backend == common->cpu) {
        tg_context_free(common);
        common = NULL;
    }
    if (!common) common = open_gpu();
    common->losses = 0;
    common->copy_every = TG_COPY_EVERY;
    return common;
}

/* Of one of several runs in a context. */
static void end_run_only(run_of *r) {
    tg_trainer_free(r->trainer);
    tg_model_free(r->model);
    tg_text_free(r->text);
}

/* As end_run, which the device in common outlives. */
static void leave_run(run_of *r) {
    end_run_only(r);
    if (r->ctx != common) tg_context_free(r->ctx);
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
static void train_both(const tg_model_config *config, tg_train_options o) {
    run_of cpu = start_run(open_context(1, NULL, NULL), config, &o);
    run_of gpu = start_run(common_gpu(), config, &o);
    uint64_t made = 0;
    for (int64_t i = 0; i < o.steps; i++) {
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
    leave_run(&cpu);
    leave_run(&gpu);
}

/* Of tiny, the whole curve in the long tests: the mutants below are noticed by the first steps. */
static tg_train_options curve(void) {
    return is_slow ? options(3, 4) : getenv("TG_TEST_LONG") ? options(50, 16) : options(12, 4);
}

static void same_losses(void **state) {
    (void)state;
    train_both(&tg_preset_find("tiny")->config, curve());
}

static void same_losses_of_odd_sizes(void **state) {
    (void)state;
    tg_train_options o = options(4, 3);
    o.accum = 2;
    train_both(&odd, o);
    o.ema = 0.9;
    train_both(&odd, o);
}

/* Rotary positions, gated MLPs, shared key heads: every op of theirs has a shader, so no plan falls
 * to the CPU. */
static void same_losses_of_another_family(void **state) {
    (void)state;
    const tg_model_config c = { 1, 24, 4, 16, 256, 0, "qwen3", .kv_heads = 2, .head_size = 6 };
    train_both(&c, options(3, 3));
    assert_null(strstr(tg_context_banner(common_gpu()), "rope"));
}

/* Of pairs, whose first margins are 0 on some models, which is no result of a GPU that is broken.
 * The margins are those of the step that is told, though the next one could be on its way. */
static void same_losses_on_pairs(void **state) {
    (void)state;
    static const char lines[] =
        "{\"prompt\":\"Say 1: \",\"chosen\":\"It is 1.\",\"rejected\":\"No\"}\n"
        "{\"prompt\":\"Say 2: \",\"chosen\":\"2\",\"rejected\":\"Why? No\"}\n"
        "{\"prompt\":\"a\",\"chosen\":\"3\",\"rejected\":\"3\"}\n";
    const tg_model_config c = { 1, 24, 4, 32, 256, 0, "qwen3", .kv_heads = 2, .head_size = 6 };
    tg_train_options o = options(is_slow ? 2 : 5, 4);
    o.val_fraction = 0.34;
    o.lr = 1e-2;
    run_of run[2];
    for (int k = 0; k < 2; k++) {
        tg_tokenizer *bytes;
        tg_text *text;
        tg_context *ctx = k ? common_gpu() : open_context(1, NULL, NULL);
        OK(ctx, tg_vocabulary_bytes(ctx, &bytes));
        OK(ctx,
           tg_text_of_pairs(ctx, bytes, NULL, "pairs", lines, strlen(lines), 0, 0.5, NULL, &text));
        tg_tokenizer_free(bytes);
        run[k] = start_run_on(ctx, text, &c, &o);
    }
    for (int64_t i = 0; i < o.steps; i++) {
        tg_step_report report[2];
        tg_preferences p[2];
        for (int k = 0; k < 2; k++) {
            OK(run[k].ctx, tg_trainer_step(run[k].trainer, &report[k]));
            OK(run[k].ctx, tg_trainer_preferences(run[k].trainer, &p[k]));
        }
        if (!(apart(report[1].loss, report[0].loss) < 1e-5) ||
            !(fabs(p[1].margin - p[0].margin) < 1e-5) ||
            !(i == 0 || p[1].accuracy == p[0].accuracy))
            fail_msg("step %d: want %.9g, %.9g, have %.9g, %.9g", (int)i, report[0].loss,
                     p[0].margin, report[1].loss, p[1].margin);
        if (i + 1 == o.steps) assert_true(fabs(p[1].val_margin - p[0].val_margin) < 1e-5);
    }
    for (int k = 0; k < 2; k++) leave_run(&run[k]);
}

/* Where the losses of the two runs part by more than parity allows; -1: nowhere. */
static int first_apart(run_of *cpu, run_of *gpu, int n) {
    tg_step_report want, have;
    for (int i = 0; i < n; i++) {
        OK(cpu->ctx, tg_trainer_step(cpu->trainer, &want));
        OK(gpu->ctx, tg_trainer_step(gpu->trainer, &have));
        if (!(apart(have.loss, want.loss) < 1e-5)) return i;
    }
    return -1;
}

/* What same_losses would say of runs that are wrong. A step that the GPU has merged into another
 * one cannot be dropped there: then it is the CPU's run that goes wrong. */
static void mutants_are_noticed(void **state) {
    (void)state;
    const tg_model_config *config = &tg_preset_find("tiny")->config;
    const tg_train_options o = curve();
    for (size_t i = 0; i < sizeof mutants / sizeof *mutants && !is_slow; i++) {
        run_of cpu = start_run(open_context(1, NULL, NULL), config, &o);
        run_of gpu = start_run(common_gpu(), config, &o);
        mutants[i].mutate(mutants[i].of_cpu ? &cpu : &gpu);
        const int first = first_apart(&cpu, &gpu, (int)o.steps);
        if (first < 0) fail_msg("%s passes for the original", mutants[i].name);
        print_message("mutant '%s' noticed at step %d\n", mutants[i].name, first);
        leave_run(&cpu);
        leave_run(&gpu);
    }
}

enum { OVERFIT_UPDATES = 150, ALIKE_UPDATES = 25 };
#define BY_HEART 0.05

/* Learns one batch of 2 until it knows it by heart; losses [OVERFIT_UPDATES + 1] are those before
 * each update. The last one of them. */
static double overfit(tg_context *ctx, double *losses) {
    tg_train_options o = options(400, 2);
    o.lr = 4e-3;
    run_of r = start_run(ctx, &small, &o);
    int i = 0;
    for (;; i++) {
        tg_step_report report;
        r.trainer->step = 0; /* the batch depends on the step alone: it stays the same one */
        OK(r.ctx, tg_trainer_step(r.trainer, &report));
        losses[i] = report.loss;
        if (i == OVERFIT_UPDATES || (i > ALIKE_UPDATES && report.loss < BY_HEART)) break;
    }
    leave_run(&r);
    print_message("overfit: %.5f after %d updates\n", losses[i], i);
    return losses[i];
}

/* By heart, both of them; step by step alike only at first. Where a run ends says nothing: of 87 on
 * the CPU that began with one weight moved by some 1e-6, 33 had a loss several times larger for a
 * while behind update 100, as AdamW at such a rate has. */
static void overfits_a_batch(void **state) {
    (void)state;
    double want[OVERFIT_UPDATES + 1], have[OVERFIT_UPDATES + 1];
    if (is_slow) return;
    assert_true(overfit(open_context(1, NULL, NULL), want) < BY_HEART);
    assert_true(overfit(common_gpu(), have) < BY_HEART);
    for (int i = 0; i <= ALIKE_UPDATES; i++)
        if (!(apart(have[i], want[i]) < 1e-5))
            fail_msg("after %d updates: want %.9g, have %.9g", i, want[i], have[i]);
}

/* Dispatches of a gradient, and of an update, of so many layers. */
static size_t dispatches_of(tg_context *ctx, tg_model_config config, int32_t layers,
                            size_t *update) {
    const tg_train_options o = options(2, 2);
    config.layers = layers;
    run_of r = start_run(ctx, &config, &o);
    tg_step_report report;
    OK(r.ctx, tg_trainer_step(r.trainer, &report));
    const size_t n = tg_webgpu_dispatches(r.ctx->backend, &r.trainer->plans.grad);
    *update = tg_webgpu_dispatches(r.ctx->backend, &r.trainer->plans.update);
    end_run_only(&r);
    return n;
}

/* Forward and backward together. What they cost is some microseconds each, which small models feel
 * and large ones don't; a step that falls out of a merge shows here. */
static void few_dispatches_a_layer(void **state) {
    (void)state;
    static const char *const presets[] = { "tiny", "small", "medium" };
    if (is_slow) return; /* shapes alone decide, whatever the adapter */
    tg_context *ctx = open_gpu();
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        const tg_model_config config = tg_preset_find(presets[i])->config;
        size_t update;
        const size_t one = dispatches_of(ctx, config, 1, &update);
        const size_t layer = dispatches_of(ctx, config, 2, &update) - one;
        print_message("%s: %zu dispatches a layer, %zu around them, %zu an update\n", presets[i],
                      layer, one - layer, update);
        assert_in_range(layer, 1, 22);
        assert_in_range(update, 1, 3);
    }
    tg_context_free(ctx);
}

/* What is bound as a whole, weights and gradients, is beyond what a binding may reach: the update
 * then takes them in pieces, on the GPU. Weights that decay end in the first one. */
static void splits_what_a_binding_cannot_reach(void **state) {
    (void)state;
    const tg_model_config *config = &tg_preset_find("tiny")->config;
    const tg_train_options o = options(4, 2);
    setenv("TG_GPU_LIMITS", "262144", 1);
    run_of cpu = start_run(open_context(1, NULL, NULL), config, &o);
    run_of gpu = start_run(open_gpu(), config, &o);
    unsetenv("TG_GPU_LIMITS");
    for (int i = 0; i < o.steps; i++) {
        tg_step_report want, have;
        OK(cpu.ctx, tg_trainer_step(cpu.trainer, &want));
        OK(gpu.ctx, tg_trainer_step(gpu.trainer, &have));
        assert_true(apart(have.loss, want.loss) < 1e-5);
        assert_true(apart(have.grad_norm, want.grad_norm) < 1e-4);
    }
    assert_int_equal(tg_webgpu_dispatches(gpu.ctx->backend, &gpu.trainer->plans.update), 3 + 2);
    assert_true(weights_apart(&gpu, &cpu) < 0.02 * o.lr * (double)o.steps);
    end_run(&cpu);
    end_run(&gpu);
}

/* ----------------------------------------------------------------------------- the device's own
 */

static size_t address_space_bytes(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1) fail_msg("/proc/self/statm: cannot be read");
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The driver is refused the memory, so that it is its own error that comes through. */
static void says_what_memory_was_wanted(void **state) {
    (void)state;
    tg_context *ctx = open_gpu();
    tg_gpu *gpu = tg_webgpu_gpu(ctx->backend);
    if (!tg_gpu_get_info(gpu)->software) {
        print_message(
            "skipped: says_what_memory_was_wanted: a card has memory of its own, which no "
            "limit of a process holds back\n");
        tg_context_free(ctx);
        skip();
    }
    const size_t most = (size_t)tg_gpu_get_info(gpu)->max_buffer_bytes, half = (size_t)1 << 29;
    const size_t bytes = most < 2 * half ? most : 2 * half;
    struct rlimit was, low;
    uint32_t buffer;
    getrlimit(RLIMIT_AS, &was);
    low = was;
    low.rlim_cur = address_space_bytes() + bytes / 2;
    setrlimit(RLIMIT_AS, &low);
    const tg_status status = tg_gpu_buffer_new(gpu, "workspace", bytes, false, &buffer);
    setrlimit(RLIMIT_AS, &was);
    char want[64];
    snprintf(want, sizeof want, "workspace of %zu bytes", bytes);
    assert_int_equal(status, TG_E_MEMORY);
    assert_non_null(strstr(tg_context_error(ctx), want));
    assert_non_null(strstr(tg_context_error(ctx), "lower the batch"));
    tg_ctx_clear(&ctx->err);
    OK(ctx, tg_gpu_buffer_new(gpu, "a small one", 4096, false, &buffer));
    OK(ctx, tg_gpu_settle(gpu));
    tg_context_free(ctx);
}

/* Memory for all weights comes before the first of them is uploaded; a smaller wish is met. */
static void says_what_fits_before_it_uploads(void **state) {
    (void)state;
    const tg_preset *preset = tg_preset_find("tiny");
    const uint64_t binding = 65536;
    tg_model *model;
    tg_session *s;
    const float *logits;
    const int32_t token = 'J';
    setenv("TG_GPU_LIMITS", "65536", 1);
    tg_context *ctx = open_gpu();
    unsetenv("TG_GPU_LIMITS");
    OK(ctx, tg_model_new(ctx, &preset->config, 42, &model));
    OK(ctx, tg_session_new(ctx, model, 0, &s));
    for (int buffers = 0; buffers < 3; buffers += 2) {
        tg_gpu_memory_bytes = (uint64_t)buffers * binding;
        tg_gpu_written_bytes = 0;
        assert_int_equal(tg_session_eval(s, &token, 1, &logits), TG_E_MEMORY);
        if (!strstr(tg_context_error(ctx), "bits each, have room for") ||
            !strstr(tg_context_error(ctx), "uploaded none"))
            fail_msg("%s", tg_context_error(ctx));
        assert_true(tg_gpu_written_bytes < 4096);
    }
    /* All weights, and little more. */
    const uint64_t weights = (uint64_t)model->layout.n_elems * sizeof(float);
    tg_gpu_memory_bytes = weights + 2048;
    tg_ctx_clear(&ctx->err);
    assert_int_equal(tg_session_eval(s, &token, 1, &logits), TG_E_MEMORY);
    if (!strstr(tg_context_error(ctx), "lower the context")) fail_msg("%s", tg_context_error(ctx));
    tg_gpu_memory_bytes = UINT64_MAX;
    tg_ctx_clear(&ctx->err);
    OK(ctx, tg_session_eval(s, &token, 1, &logits));
    assert_true(tg_gpu_written_bytes > 3 * binding);
    tg_session_free(s);
    tg_model_free(model);
    tg_context_free(ctx);
}

static const char *const shader = "@group(0) @binding(0) var<uniform> a: vec4<u32>;"
                                  "@group(0) @binding(1) var<uniform> b: vec4<u32>;"
                                  "@group(0) @binding(2) var<storage, read_write> x: array<u32>;"
                                  "@compute @workgroup_size(64)"
                                  "fn main(@builtin(global_invocation_id) id: vec3<u32>) {"
                                  "    x[id.x] = a.x + b.x;"
                                  "}";

/* Pipelines that could not be made are named, early or when they are waited for. */
static void names_a_bad_pipeline(void **state) {
    (void)state;
    tg_context *ctx = open_gpu();
    tg_gpu *gpu = tg_webgpu_gpu(ctx->backend);
    uint32_t pipeline;
    tg_status status = tg_gpu_pipeline_new(gpu, "the good one", shader, "main", 1, &pipeline);
    if (status == TG_OK) status = tg_gpu_settle(gpu);
    assert_int_equal(status, TG_OK);
    status = tg_gpu_pipeline_new(gpu, "the bad one", shader, "nowhere", 1, &pipeline);
    if (status == TG_OK) status = tg_gpu_settle(gpu);
    assert_int_equal(status, TG_E_DEVICE);
    assert_non_null(strstr(tg_context_error(ctx), "the bad one"));
    tg_context_free(ctx);
}

/* wgpu-native ends the process instead. */
static bool survives_errors(tg_gpu *gpu) {
    return !strstr(tg_gpu_get_info(gpu)->library, "wgpu_native");
}

/* An error that nobody was asking for: a write beyond the end of a buffer. */
static void make_an_error(tg_context *ctx, uint32_t buffer) {
    const uint32_t word = 1;
    OK(ctx, tg_gpu_write(tg_webgpu_gpu(ctx->backend), buffer, 1 << 20, &word, sizeof word));
}

/* What comes after the error is refused or has no result; then all is well again. */
static void errors_leave_no_result(void **state) {
    (void)state;
    tg_context *ctx = open_gpu();
    tg_gpu *gpu = tg_webgpu_gpu(ctx->backend);
    uint32_t words[4] = { 3 }, uniform, x, reading;
    tg_gpu_dispatch d = { .x = 1, .y = 1, .z = 1 };
    OK(ctx, tg_gpu_buffer_new(gpu, "uniforms", 512, true, &uniform));
    OK(ctx, tg_gpu_buffer_new(gpu, "x", 256, false, &x));
    OK(ctx, tg_gpu_pipeline_new(gpu, "sums", shader, "main", 1, &d.pipeline));
    const tg_gpu_range ranges[] = { { uniform, 0, 16 }, { uniform, 256, 16 }, { x, 0, 256 } };
    OK(ctx, tg_gpu_group_new(gpu, d.pipeline, ranges, &d.group));
    OK(ctx, tg_gpu_settle(gpu));
    OK(ctx, tg_gpu_write(gpu, uniform, 0, words, sizeof words));
    const tg_gpu_piece piece = { x, 0, sizeof words, words };
    for (int fault = 0; fault < 4 && survives_errors(gpu); fault++) {
        d.x = fault == 1 ? TG_GPU_MAX_GROUPS + 1 : 1;
        if (fault == 2) make_an_error(ctx, x);
        tg_status status = tg_gpu_submit(gpu, &d, 1);
        if (status == TG_OK) status = tg_gpu_read_begin(gpu, &piece, 1, &reading);
        if (status == TG_OK && fault == 3) make_an_error(ctx, x);
        if (status == TG_OK) status = tg_gpu_read_end(gpu, reading, &piece, 1);
        assert_int_equal(status, fault ? TG_E_DEVICE : TG_OK);
        assert_false(tg_gpu_lost(gpu));
        assert_true(words[0] == 3);
        tg_ctx_clear(&ctx->err);
    }
    tg_context_free(ctx);
}

/* Neither does a step of training, nor a token. */
static void errors_fail_the_step(void **state) {
    (void)state;
    const tg_train_options o = options(3, 2);
    run_of r = start_run(common_gpu(), &small, &o);
    tg_step_report report;
    tg_session *s;
    uint32_t buffer;
    OK(r.ctx, tg_trainer_step(r.trainer, &report));
    OK(r.ctx, tg_session_new(r.ctx, r.model, 0, &s));
    OK(r.ctx, tg_gpu_buffer_new(gpu_of(&r), "a small one", 256, false, &buffer));
    if (survives_errors(gpu_of(&r))) {
        const float *logits;
        const int32_t token = 'J';
        make_an_error(r.ctx, buffer);
        assert_int_equal(tg_session_eval(s, &token, 1, &logits), TG_E_DEVICE);
        OK(r.ctx, tg_session_eval(s, &token, 1, &logits));
        make_an_error(r.ctx, buffer);
        assert_int_equal(tg_trainer_step(r.trainer, &report), TG_E_DEVICE);
        assert_non_null(strstr(tg_context_error(r.ctx), "1048576"));
        assert_int_equal(tg_trainer_steps_done(r.trainer), 1);
        assert_ptr_not_equal(r.ctx->backend, r.ctx->cpu);
    }
    tg_session_free(s);
    leave_run(&r);
}

/* Nobody waits for ever, and nothing is written into memory that was given back. */
static void is_lost_while_it_compiles(void **state) {
    (void)state;
    tg_context *ctx = open_gpu();
    tg_gpu *gpu = tg_webgpu_gpu(ctx->backend);
    uint32_t pipeline;
    OK(ctx, tg_gpu_pipeline_new(gpu, "a pipeline", shader, "main", 1, &pipeline));
    tg_gpu_lose(gpu);
    assert_int_equal(tg_gpu_settle(gpu), TG_E_DEVICE);
    tg_context_free(ctx);
}

static off_t cache_bytes(void) {
    struct stat s;
    return stat(CACHE "/webgpu.cache", &s) == 0 ? s.st_size : 0;
}

/* Of a device of its own, which compiles for a token what is not kept. */
static void logits_of_a_token(float logits[256]) {
    tg_context *ctx = open_gpu();
    tg_model *model;
    tg_session *session;
    const int32_t token = 'J';
    const float *have;
    OK(ctx, tg_model_new(ctx, &small, 42, &model));
    OK(ctx, tg_session_new(ctx, model, 0, &session));
    OK(ctx, tg_session_eval(session, &token, 1, &have));
    memcpy(logits, have, 256 * sizeof *logits);
    tg_session_free(session);
    tg_model_free(model);
    tg_context_free(ctx);
}

/* The file that Dawn's blobs are kept in comes, serves the next context, and is made anew when it
 * has rotted. */
static void keeps_what_was_compiled(void **state) {
    (void)state;
    tg_context *ctx = open_gpu();
    const bool keeps =
        !strstr(tg_gpu_get_info(tg_webgpu_gpu(ctx->backend))->library, "wgpu_native");
    tg_context_free(ctx);
    if (!keeps) return;
    remove(CACHE "/webgpu.cache");
    float want[256], have[256];
    logits_of_a_token(want);
    const off_t bytes = cache_bytes();
    assert_true(bytes > 10000);
    logits_of_a_token(have);
    assert_memory_equal(have, want, sizeof want);
    assert_int_equal(cache_bytes(), bytes);
    FILE *f = fopen(CACHE "/webgpu.cache", "r+b");
    fseek(f, 200, SEEK_SET);
    const int byte = fgetc(f);
    fseek(f, 200, SEEK_SET);
    fputc(byte ^ 1, f);
    fclose(f);
    logits_of_a_token(have);
    assert_memory_equal(have, want, sizeof want);
    assert_int_equal(cache_bytes(), bytes);
}

typedef struct profile_sum {
    size_t n, count;
    double ms;
    bool named;
} profile_sum;

static void add_row(void *user, const tg_profile_row *row) {
    profile_sum *sum = user;
    assert_true(row->ms >= 0);
    sum->n++;
    sum->count += row->count;
    sum->ms += row->ms;
    sum->named = row->step != NULL;
}

/* Adapters here are software, which are measured for nobody; that the measurement ends, and finds
 * something, is seen all the same. */
static void measures_its_speed(void **state) {
    (void)state;
    tg_context *ctx = open_gpu();
    double bytes_per_s = 0, gflops = 0;
    tg_job *job;
    OK(ctx, tg_job_measure_gpu(ctx, true, &bytes_per_s, &gflops, &job));
    OK(ctx, tg_job_finish(job));
    assert_true(bytes_per_s > 1e6 && bytes_per_s < 1e14);
    assert_true(gflops > 1e-3 && gflops < 1e6);
    if (tg_gpu_get_info(tg_webgpu_gpu(ctx->backend))->software) {
        assert_int_equal(tg_measure_gpu(ctx, &bytes_per_s, &gflops), TG_E_UNSUPPORTED);
        assert_non_null(strstr(tg_context_error(ctx), "not timed"));
    }
    tg_context_free(ctx);
}

/* By kinds and by steps: the same dispatches. By the GPU's clock they don't last longer than the
 * call; and what is measured once leaves the moments as one step does. */
static void profiles_every_step(void **state) {
    (void)state;
    const tg_train_options o = options(2, 2);
    run_of r = start_run(common_gpu(), &odd, &o);
    profile_sum kinds = { .n = 0 }, steps = { .n = 0 };
    OK(r.ctx, tg_trainer_profile(r.trainer, 1, 0, add_row, &kinds));
    const double start = tg_time_ms();
    OK(r.ctx, tg_trainer_profile(r.trainer, 1, 1, add_row, &steps));
    const double all = tg_time_ms() - start;
    assert_true(!kinds.named && steps.named);
    assert_true(kinds.n < steps.n && steps.n == steps.count && kinds.count == steps.count);
    assert_true(kinds.ms > 0 && steps.ms > 0);
    if (tg_gpu_get_info(gpu_of(&r))->timestamps) assert_true(steps.ms < all);
    leave_run(&r);
}

/* A run that is saved and resumed ends with the bits of one that went through: states come down
 * whole, and go up whole. */
static void saves_and_resumes(void **state) {
    (void)state;
    const char *path = "build/gpu_test.tinygpt";
    tg_train_options o = options(4, 2);
    o.ema = 0.9;
    run_of whole = start_run(common_gpu(), &odd, &o);
    const tg_step_report want = steps_until(&whole, 4);
    leave_run(&whole);

    run_of first = start_run(common_gpu(), &odd, &o);
    steps_until(&first, 2);
    OK(first.ctx, tg_trainer_save(first.trainer, path));
    leave_run(&first);
    run_of second = { .ctx = common_gpu() };
    OK(second.ctx, tg_text_open(second.ctx, STORIES, &second.text));
    OK(second.ctx, tg_trainer_open(second.ctx, path, second.text, 4, &second.trainer));
    const tg_step_report have = steps_until(&second, 4);
    assert_int_equal(have.loss_hash, want.loss_hash);
    assert_true(have.val_loss == want.val_loss);
    leave_run(&second);
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
    const tg_model_config *config = &tg_preset_find("tiny")->config;
    const tg_train_options o = options(2, 2);
    run_of cpu = start_run(open_context(1, NULL, NULL), config, &o);
    run_of gpu = start_run(common_gpu(), config, &o);
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
    leave_run(&cpu);
    leave_run(&gpu);
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
            run_of r = start_run(on_gpu ? common_gpu() : open_context(1, NULL, NULL), &odd, &o);
            tg_step_report report;
            OK(r.ctx, tg_trainer_step(r.trainer, &report));
            assert_true(poison(r.trainer, where[i], (float)TG_NAN));
            assert_int_equal(tg_trainer_step(r.trainer, &report), TG_E_NUMBER);
            const char *message = strstr(tg_context_error(r.ctx), "the first tensor");
            assert_non_null(message);
            if (on_gpu) assert_string_equal(message, want);
            snprintf(want, sizeof want, "%s", message);
            OK(r.ctx, tg_trainer_step(r.trainer, &report));
            assert_true(tg_isfinite(report.loss));
            leave_run(&r);
        }
    }
}

/* ---------------------------------------------------------------------------------- lost devices
 */

enum { COPY_EVERY = 4, LOSE_EVERY = 7 };

/* Loses the device in the middle of a step: it is asked before each micro-step. */
typedef struct loser {
    tg_context *ctx;
    int asked, at; /* lose at this question; 0: never */
} loser;

static int lose_when_asked(void *user) {
    loser *l = user;
    if (++l->asked == l->at && l->ctx->backend != l->ctx->cpu)
        tg_gpu_lose(tg_webgpu_gpu(l->ctx->backend));
    return 0;
}

/* One step; the device may be lost in its second half. Answers how many steps were repeated. */
static int64_t step_and_lose(run_of *r, bool lose, const double *want, double tolerance) {
    tg_step_report report;
    loser l = { .ctx = r->ctx, .at = lose ? 2 : 0 };
    const int64_t before = tg_trainer_steps_done(r->trainer);
    r->trainer->cancel = lose_when_asked;
    r->trainer->cancel_user = &l;
    OK(r->ctx, tg_trainer_step(r->trainer, &report));
    r->trainer->cancel = NULL;
    const double d = apart(report.loss, want[report.step]);
    if (!(d <= tolerance))
        fail_msg("step %d: want loss %.9g, have %.9g", (int)report.step, want[report.step],
                 report.loss);
    return before + 1 - report.step;
}

/* Twice another device and the same curve, to the bit; the third time the CPU. */
static void survives_lost_devices(void **state) {
    (void)state;
    const int lose_every = is_slow ? 3 : LOSE_EVERY, n_steps = 3 * lose_every + (is_slow ? 2 : 6);
    double want[3 * LOSE_EVERY + 6 + 1], val = 0;
    tg_train_options o = options(n_steps, 2);
    o.accum = 2;
    o.eval_every = 7;
    o.ema = 0.9;
    run_of whole = start_run(common_gpu(), &odd, &o);
    for (int i = 1; i <= n_steps; i++) {
        tg_step_report report;
        OK(whole.ctx, tg_trainer_step(whole.trainer, &report));
        want[i] = report.loss;
        val = report.val_loss;
    }
    leave_run(&whole);

    run_of r = start_run(common_gpu(), &odd, &o);
    r.ctx->copy_every = COPY_EVERY;
    int losses = is_slow; /* what counts is the last one, and one before it */
    r.ctx->losses = (unsigned)losses;
    while (tg_trainer_steps_done(r.trainer) < n_steps) {
        const int64_t next = tg_trainer_steps_done(r.trainer) + 1;
        const bool lose = losses < 3 && next == (losses + 1) * lose_every;
        const int64_t repeated = step_and_lose(&r, lose, want, losses < 3 && !lose ? 0 : 1e-5);
        losses += lose;
        assert_int_equal(r.ctx->losses, losses);
        if (lose) assert_in_range(repeated, 0, COPY_EVERY);
        if (!lose) assert_int_equal(repeated, 0);
        assert_int_equal(r.ctx->backend == r.ctx->cpu, losses == 3);
    }
    assert_int_equal(losses, 3);
    assert_true(apart(r.trainer->last_val, val) < 1e-5);
    assert_null(strstr(tg_context_banner(r.ctx), "webgpu"));
    leave_run(&r);
}

/* A device that is lost between two steps, and then a save: the copy is what is saved. */
static void saves_after_a_loss(void **state) {
    (void)state;
    const char *path = "build/gpu_test.tinygpt";
    const tg_train_options o = options(6, 2);
    run_of r = start_run(common_gpu(), &odd, &o);
    r.ctx->copy_every = COPY_EVERY;
    steps_until(&r, 6);
    assert_int_equal(tg_trainer_steps_done(r.trainer), 6);
    tg_gpu_lose(gpu_of(&r));
    OK(r.ctx, tg_trainer_save(r.trainer, path));
    assert_int_equal(tg_trainer_steps_done(r.trainer), COPY_EVERY);
    leave_run(&r);
    run_of second = { .ctx = open_context(1, NULL, NULL) };
    OK(second.ctx, tg_text_open(second.ctx, STORIES, &second.text));
    OK(second.ctx, tg_trainer_open(second.ctx, path, second.text, 0, &second.trainer));
    assert_int_equal(tg_trainer_steps_done(second.trainer), COPY_EVERY);
    leave_run(&second);
    remove(path);
}

/* What a session had on the device is gone, and is computed again from its tokens: it is what a new
 * session is that gets the same ones. */
static void session_goes_on_without_the_device(void **state) {
    (void)state;
    const tg_train_options o = options(2, 2);
    const char *const prompt = "ROMEO:";
    run_of r = start_run(common_gpu(), &odd, &o);
    steps_until(&r, 1);
    tg_session *s;
    OK(r.ctx, tg_session_new(r.ctx, r.model, 0, &s));
    const float *logits;
    feed(r.ctx, s, (const uint8_t *)prompt, 6, &logits);
    tg_gpu_lose(gpu_of(&r));
    const int32_t token = 'J';
    float have[256];
    OK(r.ctx, tg_session_eval(s, &token, 1, &logits));
    memcpy(have, logits, sizeof have);
    assert_int_equal(tg_session_tokens(s), 7);
    tg_session_free(s);
    OK(r.ctx, tg_session_new(r.ctx, r.model, 0, &s));
    feed(r.ctx, s, (const uint8_t *)prompt, 6, &logits);
    OK(r.ctx, tg_session_eval(s, &token, 1, &logits));
    assert_memory_equal(logits, have, sizeof have);
    tg_session_free(s);
    tg_step_report report;
    OK(r.ctx, tg_trainer_step(r.trainer, &report));
    leave_run(&r);
}

/* The device's memory is given back in the middle of a run, which notices nothing. */
static void gives_memory_back(void **state) {
    (void)state;
    const tg_train_options o = options(6, 2);
    run_of whole = start_run(common_gpu(), &odd, &o);
    const uint64_t want = steps_until(&whole, 6).loss_hash;
    leave_run(&whole);
    run_of r = start_run(common_gpu(), &odd, &o);
    OK(r.ctx, tg_context_rest(r.ctx));
    steps_until(&r, 2);
    OK(r.ctx, tg_context_rest(r.ctx));
    OK(r.ctx, tg_context_rest(r.ctx));
    assert_int_equal(steps_until(&r, 6).loss_hash, want);
    leave_run(&r);
}

/* Two runs in one context, step by step in turn, and the device lost under both: a slow adapter,
 * which would compile for both anew, keeps it. */
static void trains_two_at_once(void **state) {
    (void)state;
    const tg_train_options o[2] = { options(8, 2), options(8, 3) };
    uint64_t want[2];
    for (int i = 0; i < 2; i++) {
        run_of alone = start_run(common_gpu(), i ? &small : &odd, &o[i]);
        want[i] = steps_until(&alone, 8).loss_hash;
        leave_run(&alone);
    }
    tg_context *ctx = common_gpu();
    ctx->copy_every = COPY_EVERY;
    run_of both[2];
    tg_step_report last[2] = { { .step = 0 } };
    for (int i = 0; i < 2; i++) both[i] = start_run(ctx, i ? &small : &odd, &o[i]);
    for (bool lost = is_slow; last[0].step < 8 || last[1].step < 8;) {
        for (int i = 0; i < 2; i++)
            if (last[i].step < 8) OK(ctx, tg_trainer_step(both[i].trainer, &last[i]));
        if (!lost && last[0].step == 6) tg_gpu_lose(tg_webgpu_gpu(ctx->backend));
        lost = lost || last[0].step == 6;
    }
    for (int i = 0; i < 2; i++) assert_int_equal(last[i].loss_hash, want[i]);
    for (int i = 0; i < 2; i++) end_run_only(&both[i]);
}

/* From the CPU to the GPU and back. */
static void moves_between_devices(void **state) {
    (void)state;
    const char *path = "build/gpu_test.tinygpt";
    const tg_train_options o = options(6, 2);
    run_of whole = start_run(open_context(1, NULL, NULL), &odd, &o);
    double want[7];
    tg_step_report report;
    for (int i = 1; i <= 6; i++) {
        OK(whole.ctx, tg_trainer_step(whole.trainer, &report));
        want[i] = report.loss;
    }
    leave_run(&whole);
    for (int leg = 0; leg < 3; leg++) {
        run_of r = { .ctx = leg == 1 ? common_gpu() : open_context(1, NULL, NULL) };
        if (leg == 0) {
            tg_context_free(r.ctx);
            r = start_run(open_context(1, NULL, NULL), &odd, &o);
        } else {
            OK(r.ctx, tg_text_open(r.ctx, STORIES, &r.text));
            OK(r.ctx, tg_trainer_open(r.ctx, path, r.text, 0, &r.trainer));
        }
        for (int i = 1; i <= 2; i++) {
            OK(r.ctx, tg_trainer_step(r.trainer, &report));
            assert_int_equal(report.step, leg * 2 + i);
            assert_true(apart(report.loss, want[report.step]) < 1e-5);
        }
        OK(r.ctx, tg_trainer_save(r.trainer, path));
        leave_run(&r);
    }
    remove(path);
}

static int begin(void **state) {
    (void)state;
    mkdir("build", 0777);
    remove(CACHE "/webgpu.cache");
    setenv("TG_GPU_CACHE", CACHE, 1);
    /* The self-test of this context is that of all others: levers_test.c is about it. */
    unsetenv("TG_GPU_TRUSTED");
    const char *adapter = tg_gpu_get_info(tg_webgpu_gpu(common_gpu()->backend))->adapter;
    is_slow = strstr(adapter, "SwiftShader") != NULL;
    assert_null(strstr(tg_context_banner(common), "self-test: "));
    setenv("TG_GPU_TRUSTED", "1", 1);
    return 0;
}

static int end(void **state) {
    (void)state;
    tg_context_free(common);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    if (argc > 2) cmocka_set_skip_filter(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_losses),
        cmocka_unit_test(same_losses_of_odd_sizes),
        cmocka_unit_test(same_losses_of_another_family),
        cmocka_unit_test(same_losses_on_pairs),
        cmocka_unit_test(mutants_are_noticed),
        cmocka_unit_test(overfits_a_batch),
        cmocka_unit_test(few_dispatches_a_layer),
        cmocka_unit_test(splits_what_a_binding_cannot_reach),
        cmocka_unit_test(says_what_memory_was_wanted),
        cmocka_unit_test(says_what_fits_before_it_uploads),
        cmocka_unit_test(names_a_bad_pipeline),
        cmocka_unit_test(errors_leave_no_result),
        cmocka_unit_test(errors_fail_the_step),
        cmocka_unit_test(is_lost_while_it_compiles),
        cmocka_unit_test(keeps_what_was_compiled),
        cmocka_unit_test(profiles_every_step),
        cmocka_unit_test(measures_its_speed),
        cmocka_unit_test(saves_and_resumes),
        cmocka_unit_test(same_logits),
        cmocka_unit_test(names_what_is_not_finite),
        cmocka_unit_test(gives_memory_back),
        cmocka_unit_test(moves_between_devices),
        cmocka_unit_test(trains_two_at_once),
        cmocka_unit_test(session_goes_on_without_the_device),
        cmocka_unit_test(saves_after_a_loss),
        cmocka_unit_test(survives_lost_devices),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
