/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_profile.c - tinygpt bench profile: which kernels the time of a plan goes to: a training
 * step, a token that is written, or a piece of a prompt that is read.
 */
#include "bench/bench.h"
#include "print/format.h"

#include <stdlib.h>
#include <string.h>

typedef enum plan { TRAIN, DECODE, PREFILL } plan;

/* batch and ctx are a training step's alone, after and tokens those of the other two plans. */
typedef struct values {
    const char *preset, *model;
    int plan, kv; /* plan -1: of a file decode, of a preset train */
    int64_t steps, batch, ctx, after, tokens;
    bool each;
} values;

static const tg_option options[] = {
    TG_TEXT("--preset", values, preset, "NAME", "size of a fresh model"),
    TG_PATH("--model", values, model, "FILE", "a model from a file instead"),
    TG_CHOICE("--plan", values, plan, "train|decode|prefill",
              "a training step, a token, or a piece of a prompt (default: train, of a file decode)",
              .hide_default = true),
    TG_INT("--steps", values, steps, 1, 10000, "N", "how often the plan is run"),
    TG_INT("--batch", values, batch, 1, 65536, "B", "train: rows a step (default: the preset's)",
           .hide_default = true),
    TG_INT("--ctx", values, ctx, 1, 65536, "N", "train: context (default: the preset's)",
           .hide_default = true),
    TG_INT("--after", values, after, 0, 1000000, "N",
           "decode, prefill: tokens that the cache holds before"),
    TG_INT("--tokens", values, tokens, 1, 512, "N", "prefill: tokens of the piece"),
    TG_CHOICE("--kv", values, kv, "f32|f16|int8", "decode, prefill: how keys and values are kept"),
    TG_FLAG("--each", values, each, "a row for every step of the plan, in its order"),
};

static const tg_command_spec spec = {
    .name = "bench profile",
    .uses = TG_USES_ALL,
    .usage = "[--preset NAME | --model FILE] [options]",
    .about = "Shows which kernels the time of a training step, a token or a prompt goes to, "
             "costliest first, and how near each comes to the arithmetic and to the memory speed "
             "that were just measured here.",
    .examples = "  tinygpt bench profile --preset large\n"
                "  tinygpt bench profile --model smollm2.gguf --after 1000\n",
};

/* Rows are pairs of op and kernel, of which a plan has some dozens, or steps, of which the largest
 * presets have a thousand. Beyond the limit a row is not shown, and its time still counts in the
 * total. */
enum { ROWS_MAX = 4096 };

/* The rows are collected before one is printed: a share needs the whole. Roofs are what was
 * measured, in GFLOP/s and GB/s. */
typedef struct rows {
    tg_profile_row row[ROWS_MAX];
    size_t n;
    double total_ms;
    double gflops, gbytes_per_s;
} rows;

/* The library hands them out costliest first; that order is kept. Strings in a row live
 * as long as what was profiled. */
static void on_row(void *user, const tg_profile_row *row) {
    rows *r = user;
    r->total_ms += row->ms;
    if (r->n < ROWS_MAX) r->row[r->n++] = *row;
}

/* gflop and gbytes are of one step and ms is of one step, too, so times 1000 makes them a second's,
 * in units of 1e9. 0 where the op does not count its work: not every one does. */
static double rate(double work, double ms) { return work > 0 && ms > 0 ? work / ms * 1000 : 0; }

/* "31.2", or "-" for 0: rates, and shares of a roof in percent. */
static void print_cell(int width, double x) {
    if (x > 0)
        printf(" %*s", width, TG_SHORT(x));
    else
        printf(" %*s", width, "-");
}

/* Whose clock: a time without it says little. */
static const char *clock_of(const tg_app *app) {
    tg_gpu_facts gpu;
    if (tg_context_gpu(app->ctx, &gpu) != TG_OK) return "the processor's clock, around every step";
    return gpu.timestamps ? "the GPU's timestamps, around every step"
                          : "the processor's clock, each step repeated: no timestamps here";
}

static void print_rows(const tg_app *app, const rows *r) {
    const char *dim = tg_term_style(&app->out, TG_DIM), *plain = tg_term_style(&app->out, TG_PLAIN);
    printf("%s\nroofs: %.0f GFLOP/s, %.0f GB/s, measured just now; times by %s\n\n",
           tg_context_banner(app->ctx), r->gflops, r->gbytes_per_s, clock_of(app));
    printf("%s%-18s %-22s %5s %9s %6s %8s %5s %7s %5s%s\n", dim, "op", "kernel", "times",
           "ms a step", "share", "GFLOP/s", "%", "GB/s", "%", plain);
    for (size_t i = 0; i < r->n; i++) {
        const tg_profile_row *row = &r->row[i];
        const double gflops = rate(row->gflop, row->ms), gbytes = rate(row->gbytes, row->ms);
        printf("%-18s %-22s %5zu %9.3f %5.1f%%", row->op, row->variant, row->count, row->ms,
               r->total_ms > 0 ? 100 * row->ms / r->total_ms : 0);
        print_cell(8, gflops);
        print_cell(5, 100 * gflops / r->gflops);
        print_cell(7, gbytes);
        print_cell(5, 100 * gbytes / r->gbytes_per_s);
        printf("%s%s\n", row->step ? "  " : "", row->step ? row->step : "");
    }
    printf("%-18s %-22s %5s %9.3f\n", "all", "", "", r->total_ms);
}

/* One list for a program to sort and add up; no row for the total. */
static void print_rows_json(const tg_app *app, const rows *r, const char *preset) {
    tg_jout j;
    tg_bench_json_open(app, &j, "profile", r->gflops);
    for (size_t i = 0; i < r->n; i++) {
        const tg_profile_row *row = &r->row[i];
        tg_jout_open(&j, NULL, '{');
        tg_jout_text(&j, "preset", preset);
        if (row->step) tg_jout_text(&j, "step", row->step);
        tg_jout_text(&j, "op", row->op);
        tg_jout_text(&j, "variant", row->variant);
        tg_jout_uint(&j, "count", row->count);
        tg_jout_rounded(&j, "ms", row->ms, 5);
        tg_jout_rounded(&j, "share", r->total_ms > 0 ? row->ms / r->total_ms : 0, 4);
        tg_jout_double(&j, "gflop", row->gflop);
        tg_jout_double(&j, "gbytes", row->gbytes);
        tg_jout_rounded(&j, "of_gflops", rate(row->gflop, row->ms) / r->gflops, 4);
        tg_jout_rounded(&j, "of_gbytes_per_s", rate(row->gbytes, row->ms) / r->gbytes_per_s, 4);
        tg_jout_close(&j);
    }
    tg_bench_json_close(&j);
}

/* While the rows' strings live. */
static void print(const tg_app *app, const rows *r, const char *name) {
    if (app->globals.json)
        print_rows_json(app, r, name);
    else
        print_rows(app, r);
}

/* The clock is read around every kernel here, so these steps are slower than those of bench train:
 * the shares are what counts, not the sum. */
static tg_status profile_training(tg_app *app, const values *v, const tg_preset *p, rows *r) {
    tg_rig rig = { 0 };
    tg_status status =
        tg_rig_open(&rig, app->ctx, &p->config, v->batch ? (int32_t)v->batch : p->batch);
    if (status == TG_OK)
        status = tg_trainer_profile(rig.trainer, (int)v->steps, v->each, on_row, r);
    if (status == TG_OK) print(app, r, p->name);
    tg_rig_close(&rig);
    return status;
}

/* Which tokens does not matter for the time. */
static tg_status profile_session(tg_app *app, const values *v, const tg_preset *p, rows *r) {
    const size_t n = v->plan == DECODE ? 1 : (size_t)v->tokens, after = (size_t)v->after;
    tg_model *model = NULL;
    tg_session *session = NULL;
    int32_t *tokens = calloc(after + 1, sizeof *tokens);
    tg_status status = !tokens ? TG_E_MEMORY
                       : p     ? tg_model_new(app->ctx, &p->config, 42, &model)
                               : tg_model_open(app->ctx, v->model, &model);
    tg_model_info info = { 0 };
    if (status == TG_OK) status = tg_model_get_info(model, &info);
    const size_t want = after + n, most = (size_t)info.config.ctx;
    if (status == TG_OK)
        status = tg_session_new_kv(app->ctx, model, (int32_t)(want < most ? want : most),
                                   (tg_kv_type)v->kv, &session);
    if (status == TG_OK && after > 0) status = tg_session_eval(session, tokens, after, NULL);
    if (status == TG_OK) status = tg_session_profile(session, n, (int)v->steps, v->each, on_row, r);
    if (status == TG_OK) print(app, r, p ? p->name : v->model);
    tg_session_free(session);
    tg_model_free(model);
    free(tokens);
    return status;
}

int tg_bench_profile(int argc, char **argv) {
    values v = { .plan = -1, .steps = 10, .tokens = 512 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    if (v.preset && v.model)
        return tg_args_refuse(&app.args, "want --preset or --model, have both");
    if (v.plan < 0) v.plan = v.model ? DECODE : TRAIN;
    if (v.model && v.plan == TRAIN)
        return tg_args_refuse(&app.args, "--plan train: want --preset, have --model");
    tg_preset preset = { 0 };
    if (!v.model) {
        const tg_preset *named = tg_bench_preset(&app.args, v.preset ? v.preset : "small");
        if (!named) return TG_EXIT_USAGE;
        preset = *named;
        if (v.ctx) preset.config.ctx = (int32_t)v.ctx;
    }
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    if (v.plan == TRAIN) code = tg_bench_room(&app, &preset, (int32_t)v.batch, 1);
    if (code != TG_ARGS_GO_ON) return tg_app_end(&app, code);
    rows *r = calloc(1, sizeof *r);
    tg_status status = r ? tg_bench_roofs(&app, &r->gflops, &r->gbytes_per_s) : TG_E_MEMORY;
    if (status == TG_OK)
        status = (v.plan == TRAIN ? profile_training
                                  : profile_session)(&app, &v, v.model ? NULL : &preset, r);
    code = status == TG_OK ? TG_EXIT_DONE : tg_app_failed(&app, app.ctx, status, TG_READING);
    free(r);
    return tg_app_end(&app, code);
}
