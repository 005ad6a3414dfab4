/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_bench.c - tinygpt bench: which benchmark, and what they share (see bench.h).
 */
#include "bench/bench.h"
#include "print/format.h"

#include <string.h>

/* The conditions of every rig, and so of every number that was ever reported: to change one of them
 * is to begin a new series. */
enum { TEXT_BYTES = 1000000, WEIGHT_SEED = 42, TEXT_SEED = 1 };

/* No validation and no copy of the best weights: a timed step is a training step and nothing else.
 * The number of steps is out of reach, so the run never ends by itself. */
tg_status tg_rig_open(tg_rig *rig, tg_context *ctx, const tg_model_config *config, int32_t batch) {
    tg_app_buffer text = { 0 };
    tg_forecast forecast;
    tg_train_options o = tg_train_options_default();
    memset(rig, 0, sizeof *rig);
    o.steps = 1000000000;
    o.batch = batch;
    o.val_fraction = 0;
    o.eval_every = 0;
    o.keep_best = false;
    tg_status status = tg_stories(TEXT_SEED, TEXT_BYTES, tg_app_buffer_add, &text);
    if (status == TG_OK) status = tg_text_from_memory(ctx, text.bytes, text.n, &rig->text);
    tg_app_buffer_free(&text);
    if (status == TG_OK) status = tg_model_new(ctx, config, WEIGHT_SEED, &rig->model);
    if (status == TG_OK) status = tg_trainer_new(ctx, rig->model, rig->text, &o, &rig->trainer);
    if (status == TG_OK) status = tg_trainer_forecast(rig->trainer, &forecast);
    if (status != TG_OK) {
        tg_rig_close(rig);
        return status;
    }
    tg_trainer_options(rig->trainer, &o);
    /* Options as the library completed them: a batch of 0 has become the preset's by now. */
    rig->flop_per_step = forecast.flop_per_step;
    rig->tokens_per_step = (int64_t)o.batch * o.accum * config->ctx;
    return TG_OK;
}

/* The trainer borrows the other two, so it goes first. A zeroed rig may be closed, and closed
 * again. */
void tg_rig_close(tg_rig *rig) {
    tg_trainer_free(rig->trainer);
    tg_model_free(rig->model);
    tg_text_free(rig->text);
    memset(rig, 0, sizeof *rig);
}

/* The wall clock of the caller, not the report's: what is compared with other programs must hold
 * everything that a step costs. */
tg_status tg_rig_steps(tg_rig *rig, int64_t n_steps, double *ms) {
    for (int64_t i = 0; i < n_steps; i++) {
        const double before = tg_app_now_ms();
        const tg_status status = tg_trainer_step(rig->trainer, &rig->last);
        if (status != TG_OK) return status;
        rig->loss_sum += rig->last.loss;
        if (ms) ms[i] = tg_app_now_ms() - before;
    }
    return TG_OK;
}

const tg_preset *tg_bench_preset(const tg_args *args, const char *name) {
    char shown[64];
    const tg_preset *preset = tg_preset_find(name);
    if (!preset) {
        tg_args_refuse(args, "--preset: no preset \"%s\"; train --help lists them",
                       tg_fmt_safe(shown, sizeof shown, name));
    }
    return preset;
}

/* Asked before anything is made: the big presets would otherwise push the machine into its swap. */
int tg_bench_room(tg_app *app, const tg_preset *preset, int32_t batch, int copies) {
    tg_forecast f;
    tg_train_options o = tg_train_options_default();
    o.batch = batch ? batch : preset->batch;
    o.keep_best = false;
    const tg_status status = tg_forecast_run(app->ctx, &preset->config, NULL, &o, &f);
    if (status != TG_OK) return tg_app_failed(app, app->ctx, status, TG_WORKING);
    /* 0 available means that the system did not say; then the user decides. */
    const uint64_t need = f.memory_bytes * (uint64_t)copies;
    if (f.memory_available_bytes == 0 || need <= f.memory_available_bytes) return TG_ARGS_GO_ON;
    tg_app_error(app, "%s: want %s of memory, have %s free", preset->name, TG_BYTES(need),
                 TG_BYTES(f.memory_available_bytes));
    return TG_EXIT_USAGE;
}

tg_status tg_bench_real_gpu(const tg_app *app) {
    tg_gpu_facts gpu;
    double bytes_per_s, gflops;
    if (tg_context_gpu(app->ctx, &gpu) != TG_OK || !gpu.software) return TG_OK;
    return tg_measure_gpu(app->ctx, &bytes_per_s, &gflops); /* which says so */
}

tg_status tg_bench_peak(const tg_app *app, double *gflops) {
    tg_gpu_facts gpu;
    *gflops = 0;
    if (tg_context_gpu(app->ctx, &gpu) != TG_OK) return tg_measure_peak(app->ctx, gflops);
    return tg_bench_real_gpu(app);
}

/* 256 MiB are beyond the caches of a usual machine. */
tg_status tg_bench_roofs(const tg_app *app, double *gflops, double *gbytes_per_s) {
    tg_gpu_facts gpu;
    double bytes_per_s = 0;
    tg_status status = TG_OK;
    if (tg_context_gpu(app->ctx, &gpu) == TG_OK) {
        status = tg_measure_gpu(app->ctx, &bytes_per_s, gflops);
    } else {
        status = tg_measure_peak(app->ctx, gflops);
        if (status == TG_OK) status = tg_measure_read(app->ctx, (size_t)256 << 20, &bytes_per_s);
    }
    *gbytes_per_s = bytes_per_s * 1e-9;
    return status;
}

void tg_bench_print_peak(double gflops) {
    if (gflops > 0) printf("\npeak is %.1f GFLOP/s, measured in registers just now\n", gflops);
}

/* Whoever compares two files of numbers needs to know that they come from one machine. */
void tg_bench_json_open(const tg_app *app, tg_jout *j, const char *bench, double peak_gflops) {
    tg_machine_info machine;
    *j = tg_jout_to(stdout);
    tg_jout_open(j, NULL, '{');
    tg_jout_text(j, "bench", bench);
    tg_jout_text(j, "version", tg_version());
    if (tg_machine(app->ctx, &machine) == TG_OK) tg_jout_text(j, "cpu", machine.cpu_name);
    tg_jout_text(j, "isa", tg_context_isa(app->ctx));
    tg_jout_uint(j, "threads", tg_context_threads(app->ctx));
    if (peak_gflops > 0) tg_jout_rounded(j, "peak_gflops", peak_gflops, 2);
    tg_jout_open(j, "rows", '[');
}

void tg_bench_json_close(tg_jout *j) {
    tg_jout_close(j);
    tg_jout_close(j);
    tg_jout_line(j);
}

/* Four digits are a tenth of a microsecond, below what the clock can tell apart. */
void tg_bench_json_ms(tg_jout *j, const char *key, const double *ms, size_t n) {
    tg_jout_open(j, key, '[');
    for (size_t i = 0; i < n; i++) tg_jout_rounded(j, NULL, ms[i], 4);
    tg_jout_close(j);
}

/* Each benchmark parses its own options: argv begins behind its name. The order is that of the
 * help. */
int tg_cmd_bench(int argc, char **argv) {
    static const tg_subcommand list[] = {
        { "train", tg_bench_train, "milliseconds of a training step" },
        { "decode", tg_bench_decode, "tokens a second, one after the other" },
        { "prefill", tg_bench_prefill, "tokens a second of a prompt" },
        { "matmul", tg_bench_matmul_shapes, "GFLOP/s of matrix products" },
        { "levers", tg_bench_levers, "what each speed idea is worth on this machine" },
        { "tiles", tg_bench_tiles, "the fastest tiles of products on a GPU, kept for later" },
        { "profile", tg_bench_profile,
          "where the time of a training step, a token or a prompt goes" },
        { "fusion", tg_bench_fusion, "a token on a GPU by how much of it is fused" },
    };
    return tg_app_subcommand("bench", "Measures speed on this machine, on text made on the spot.",
                             list, sizeof list / sizeof list[0], argc, argv);
}
