/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - what the benchmarks share: a trainer on built-in text, timed blocks, the JSON head.
 *
 * A rig is a context's own text, model and trainer, the same for everybody: stories of seed 1, a
 * model of seed 42, no validation, a constant rate. So losses can be compared between rigs.
 */
#ifndef TG_APP_BENCH_H
#define TG_APP_BENCH_H

#include "app.h"

int tg_bench_train(int argc, char **argv);
int tg_bench_decode(int argc, char **argv);
int tg_bench_prefill(int argc, char **argv);
int tg_bench_matmul_shapes(int argc, char **argv);
int tg_bench_levers(int argc, char **argv);
int tg_bench_tiles(int argc, char **argv);
int tg_bench_profile(int argc, char **argv);
int tg_bench_fusion(int argc, char **argv);

typedef struct tg_rig {
    tg_text *text;
    tg_model *model;
    tg_trainer *trainer;
    double flop_per_step;
    int64_t tokens_per_step;
    tg_step_report last;
    double loss_sum; /* of all steps: tells whether two rigs compute the same, roughly */
} tg_rig;

/* On failure everything is given back, and the context has the message. */
tg_status tg_rig_open(tg_rig *rig, tg_context *ctx, const tg_model_config *config, int32_t batch);
void tg_rig_close(tg_rig *rig);

/* n_steps training steps; ms[n_steps] takes the wall time of each, or is NULL. */
tg_status tg_rig_steps(tg_rig *rig, int64_t n_steps, double *ms);

/* The preset with this name, or NULL after a usage message. */
const tg_preset *tg_bench_preset(const tg_args *args, const char *name);

/* TG_ARGS_GO_ON if `copies` trainers of this size fit into memory, else 2 after a message. */
int tg_bench_room(tg_app *app, const tg_preset *preset, int32_t batch, int copies);

/* The machine's peak, measured now, since a shared machine's changes from hour to hour; 0 where a
 * GPU computes, whose peak nobody measures. E_UNSUPPORTED for a GPU in software: its times would be
 * taken for a GPU's. */
tg_status tg_bench_peak(const tg_app *app, double *gflops);
/* E_UNSUPPORTED where the context computes on a GPU in software, as above; else OK. */
tg_status tg_bench_real_gpu(const tg_app *app);
void tg_bench_print_peak(double gflops);
/* What this machine, or its GPU, was just seen to reach: arithmetic, and memory in GB/s. Errors as
 * for tg_bench_peak. */
tg_status tg_bench_roofs(const tg_app *app, double *gflops, double *gbytes_per_s);

/* Opens the JSON object of a benchmark, with the machine, and its list of rows; the peak is left
 * out when 0. */
void tg_bench_json_open(const tg_app *app, tg_jout *j, const char *bench, double peak_gflops);

/* Closes list and object, and ends the line. */
void tg_bench_json_close(tg_jout *j);

/* An array of milliseconds. */
void tg_bench_json_ms(tg_jout *j, const char *key, const double *ms, size_t n);

#endif
