/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_forecast.c - what a run is said to need, by the formulas of tinygpt.h and by what it takes.
 */
#include "engine_util.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "training/train.h"

/* 2 layers, width 32. */
static const tg_model_config small = { 2, 32, 2, 16, 256, 128 };

static tg_text *text_of(tg_context *ctx, size_t n_bytes) {
    char *bytes = malloc(n_bytes);
    tg_text *text;
    for (size_t i = 0; i < n_bytes; i++) bytes[i] = (char)('a' + i * i % 25);
    OK(ctx, tg_text_from_memory(ctx, bytes, n_bytes, &text));
    free(bytes);
    return text;
}

static tg_forecast forecast(tg_context *ctx, const tg_model_config *c, tg_text *text,
                            const tg_train_options *o) {
    tg_forecast f;
    OK(ctx, tg_forecast_run(ctx, c, text, o, &f));
    return f;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

/* Four bytes a parameter, and a few between tensors, which begin on cache lines. */
static uint64_t flat_bytes(const tg_forecast *f) {
    assert_true(f->weights_bytes >= 4 * f->params);
    assert_true(f->weights_bytes < 4 * f->params + 64 * 64);
    return f->weights_bytes;
}

/* 6 N (12 L C^2 + V C) + 6 L N T C, where N are the tokens of a step: with twice the context the
 * attention of a token costs twice as much, and all else the same. */
static void operations_by_the_formula(void **state) {
    (void)state;
    for (int32_t ctx_tokens = 16; ctx_tokens <= 1024; ctx_tokens *= 8)
        for (int32_t accum = 1; accum <= 3; accum += 2) {
            const tg_model_config c = { 3, 48, 4, ctx_tokens, 256, 192 };
            tg_train_options o = tg_train_options_default();
            o.batch = 5;
            o.accum = accum;
            const double n = 5.0 * accum * ctx_tokens, t = ctx_tokens;
            const double want = 6 * n * (12.0 * 3 * 48 * 48 + 256.0 * 48) + 6 * 3 * n * t * 48;
            if (!near(tg_train_flop(&c, &o), want))
                fail_msg("context %d: want %.17g operations, have %.17g", (int)ctx_tokens, want,
                         tg_train_flop(&c, &o));
        }
}

/* Gemma 4: a model's inputs of all layers are made of each token by one product, and each layer has
 * two for its own; of six layers the sixth sees all, and has larger heads. */
static void operations_of_unlike_layers(void **state) {
    (void)state;
    enum { L = 6, C = 24, H = 4, D = 6, WINDOWED = 2, P = 8, T = 32 };
    tg_model_config c = { .layers = L, .width = C, .heads = H, .ctx = T, .vocab = 256 };
    tg_train_options o = tg_train_options_default();
    c.family = "gemma4";
    c.kv_heads = 2;
    c.head_size = D;
    c.window_head_size = WINDOWED;
    c.window_every = L;
    c.layer_inputs = P;
    o.batch = 4;
    const double n = 4 * T, t = T, narrow = tg_train_flop(&c, &o);
    c.layer_inputs = 2 * P;
    const double inputs = tg_train_flop(&c, &o) - narrow, all = 3 * L * P * C;
    if (!near(inputs, 6 * n * all)) fail_msg("want %g operations, have %g", 6 * n * all, inputs);
    c.layer_inputs = P;
    c.ctx = 2 * T;
    o.batch = 2;
    const double heads = tg_train_flop(&c, &o) - narrow, lanes = H * (5 * WINDOWED + D);
    if (!near(heads, 6 * n * t * lanes)) fail_msg("want %g, have %g", 6 * n * t * lanes, heads);
}

/* The copy of the best weights is there with a validation, and if it was asked for. */
static void memory_with_the_best_copy(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text = text_of(ctx, 20000);
    tg_train_options o = tg_train_options_default();
    o.batch = 2;
    o.val_fraction = 0.1;
    o.keep_best = true;
    const tg_forecast with = forecast(ctx, &small, text, &o);
    o.keep_best = false;
    const tg_forecast without = forecast(ctx, &small, text, &o);
    assert_int_equal(with.params, tg_param_count(&small));
    assert_int_equal(with.best_bytes, flat_bytes(&with));
    assert_int_equal(without.best_bytes, 0);
    assert_int_equal(with.memory_bytes - without.memory_bytes, flat_bytes(&with));
    /* The best weights, the best before them, and a temporary file. */
    assert_int_equal(with.disk_bytes - without.disk_bytes, 3 * 4 * with.params);
    o.keep_best = true;
    o.val_fraction = 0;
    assert_int_equal(forecast(ctx, &small, text, &o).best_bytes, 0);
    tg_text_free(text);
    tg_context_free(ctx);
}

static uint64_t parts_of(const tg_forecast *f) {
    return f->weights_bytes + f->gradients_bytes + f->moments_bytes + f->best_bytes +
           f->workspace_bytes;
}

static void memory_is_the_sum_of_its_parts(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_train_options o = tg_train_options_default();
    o.batch = 2;
    const tg_forecast f = forecast(ctx, &small, NULL, &o);
    assert_int_equal(f.weights_bytes, flat_bytes(&f));
    assert_int_equal(f.gradients_bytes, flat_bytes(&f));
    assert_int_equal(f.moments_bytes, 2 * flat_bytes(&f));
    /* The program itself is left over, the same beside a model of another size. */
    const tg_model_config wide = { 2, 64, 2, 16, 256, 256 };
    const tg_forecast w = forecast(ctx, &wide, NULL, &o);
    const uint64_t program = f.memory_bytes - parts_of(&f);
    assert_true(program > 0 && program < (uint64_t)16 << 20);
    assert_int_equal(w.memory_bytes - parts_of(&w), program);
    o.batch = 32;
    const tg_forecast larger = forecast(ctx, &small, NULL, &o);
    assert_true(larger.workspace_bytes > 2 * f.workspace_bytes);
    assert_int_equal(larger.memory_bytes - f.memory_bytes,
                     larger.workspace_bytes - f.workspace_bytes);
    tg_context_free(ctx);
}

/* Against a save that is there. */
static void saves_are_as_large_as_said(void **state) {
    (void)state;
    const tg_model_config configs[] = { { 1, 16, 1, 8, 256, 64 }, { 3, 96, 3, 32, 256, 384 } };
    char folder[] = "/tmp/tinygpt-forecast-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run.tinygpt", folder);
    for (size_t i = 0; i < 2; i++) {
        tg_train_options o = tg_train_options_default();
        o.batch = 1;
        o.steps = 10;
        o.val_fraction = 0;
        tg_context *ctx = open_context(1, NULL, NULL);
        run_of r = start_run_on(ctx, text_of(ctx, 5000), &configs[i], &o);
        steps_until(&r, 2);
        OK(ctx, tg_trainer_save(r.trainer, path));
        tg_forecast f;
        OK(ctx, tg_trainer_forecast(r.trainer, &f));
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        const uint64_t have = (uint64_t)st.st_size;
        if (have > f.save_bytes || have + 65536 < f.save_bytes)
            fail_msg("a save of %llu bytes was said to have %llu", (unsigned long long)have,
                     (unsigned long long)f.save_bytes);
        assert_true(f.disk_bytes >= 3 * f.save_bytes);
        end_run(&r);
        unlink(path);
    }
    rmdir(folder);
}

static void time_and_text(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text = text_of(ctx, 20000);
    tg_train_options o = tg_train_options_default();
    o.batch = 2;
    o.accum = 3;
    o.steps = 500;
    o.val_fraction = 0.1;
    const tg_forecast f = forecast(ctx, &small, text, &o);
    assert_int_equal(f.train_bytes + f.val_bytes, 20000);
    assert_true(f.val_bytes >= 1990 && f.val_bytes <= 2010);
    assert_true(near(f.bytes_per_param, (double)f.train_bytes / (double)f.params));
    assert_true(near(f.epochs, 2.0 * 3 * 16 * 500 / (double)f.train_bytes));
    assert_true(f.peak_gflops > 0);
    assert_true(near(f.ms_per_step, f.flop_per_step / (f.peak_gflops * 0.6) / 1e6));
    assert_true(near(f.seconds, f.ms_per_step * 0.5));
    /* A part for validation that is shorter than a window is none; one of a window's length and the
     * byte behind it is one. */
    tg_text *short_text = text_of(ctx, 160), *enough = text_of(ctx, 170);
    assert_int_equal(forecast(ctx, &small, short_text, &o).val_bytes, 0);
    assert_int_equal(forecast(ctx, &small, short_text, &o).best_bytes, 0);
    assert_int_equal(forecast(ctx, &small, enough, &o).val_bytes, 17);
    tg_text_free(short_text);
    tg_text_free(enough);
    tg_text_free(text);
    tg_context_free(ctx);
}

/* Each advice where it is due, and none where nothing is to be said. */
static void advice(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_train_options o = tg_train_options_default();
    o.batch = 2;
    o.steps = 100;
    o.lr = 1e-3;
    o.val_fraction = 0.1;
    tg_text *fit = text_of(ctx, 40000), *little = text_of(ctx, 3000), *much = text_of(ctx, 8000000);
    assert_string_equal(forecast(ctx, &small, fit, &o).advice, "");
    assert_non_null(strstr(forecast(ctx, &small, little, &o).advice, "learn it by heart"));
    assert_non_null(strstr(forecast(ctx, &small, much, &o).advice, "text: the run will see"));
    o.lr = 6e-3;
    assert_non_null(strstr(forecast(ctx, &small, fit, &o).advice, "rate: 0.006 is high"));
    o.lr = 5e-3;
    assert_string_equal(forecast(ctx, &small, fit, &o).advice, "");
    o.steps = 100000;
    assert_non_null(strstr(forecast(ctx, &small, fit, &o).advice, "steps: every byte"));
    o.steps = 100;
    tg_text *tiny = text_of(ctx, 160);
    assert_non_null(strstr(forecast(ctx, &small, tiny, &o).advice, "validation: its part"));
    o.val_fraction = 0;
    assert_null(strstr(forecast(ctx, &small, tiny, &o).advice, "validation"));
    const tg_model_config huge = { 200, 16384, 16, 65536, 256, 65536 };
    tg_forecast f;
    if (tg_forecast_run(ctx, &huge, NULL, &o, &f) == TG_OK)
        assert_non_null(strstr(f.advice, "memory: "));
    tg_text_free(tiny);
    tg_text_free(fit);
    tg_text_free(little);
    tg_text_free(much);
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_by_the_formula),
        cmocka_unit_test(operations_of_unlike_layers),
        cmocka_unit_test(memory_with_the_best_copy),
        cmocka_unit_test(memory_is_the_sum_of_its_parts),
        cmocka_unit_test(saves_are_as_large_as_said),
        cmocka_unit_test(time_and_text),
        cmocka_unit_test(advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
