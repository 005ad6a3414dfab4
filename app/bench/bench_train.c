/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_train.c - tinygpt bench train: the training step.
 *
 * Block protocol (--blocks), for a driver that alternates two programs so that both meet the same
 * machine: we print {"ready":true}; for each line "go" on standard input we run --steps-per-block
 * steps and print {"ms":[...]}; "quit" or the end of the input ends us.
 */
#include "bench/bench.h"
#include "print/format.h"
#include "print/stats.h"

#include <stdlib.h>
#include <string.h>

/* A longer name is cut, and then found to be no preset. */
enum { NAME_BYTES = 64 };

/* What the options say. */
typedef struct values {
    const char *preset;
    int64_t steps, batch, ctx, warmup, steps_per_block;
    bool blocks;
} values;

static const tg_option train_options[] = {
    TG_TEXT("--preset", values, preset, "LIST", "presets, such as small,medium"),
    TG_INT("--steps", values, steps, 1, 100000, "N", "timed steps"),
    TG_INT("--warmup", values, warmup, 0, 100000, "N", "steps before them"),
    TG_INT("--batch", values, batch, 1, 65536, "B", "rows a step (default: the preset's)",
           .hide_default = true),
    TG_INT("--ctx", values, ctx, 1, 65536, "N", "context (default: the preset's)",
           .hide_default = true),
    TG_FLAG("--blocks", values, blocks,
            "answer each line \"go\" on standard input with {\"ms\":[...]}; \"quit\" ends"),
    TG_INT("--steps-per-block", values, steps_per_block, 1, 100000, "K", "steps for one \"go\""),
};

/* The interval is of order statistics (stats.h): it assumes no distribution, which times do not
 * have. */
static const tg_command_spec train_spec = {
    .name = "bench train",
    .uses = TG_USES_CPU | TG_USES_DEVICE,
    .usage = "[options]",
    .about = "Times training steps. The interval holds the true median with 95 % confidence; of "
             "fewer than six steps there is none.",
    .examples = "  tinygpt bench train --preset small,medium --steps 50\n",
};

/* The banner belongs to every table: a time without its machine says nothing. */
static void print_head(const tg_app *app) {
    printf("%s\n\n%s%-10s %12s %8s %10s %19s %8s %8s %6s%s\n", tg_context_banner(app->ctx),
           tg_term_style(&app->out, TG_DIM), "preset", "parameters", "tokens", "median ms",
           "95 % interval ms", "tok/s", "GFLOP/s", "peak", tg_term_style(&app->out, TG_PLAIN));
}

/* One row. Statistics are taken of a sorted copy: JSON shows the times in the order of the steps,
 * where a drift or a cold start can be seen. GFLOP/s are those of the median. */
static void print_row(tg_jout *j, const tg_preset *p, const tg_rig *rig, double peak, double *ms,
                      size_t n) {
    double *sorted = malloc(n * sizeof *sorted);
    if (!sorted) return;
    memcpy(sorted, ms, n * sizeof *sorted);
    tg_stats_sort(sorted, n);
    /* Not the mean: one step that a neighbour has interrupted would move it. */
    const double median = tg_stats_median(sorted, n);
    const tg_interval in = tg_stats_interval(sorted, n);
    const double gflops = rig->flop_per_step / median * 1e-6;
    const double share = peak > 0 ? gflops / peak : 0;
    const uint64_t params = tg_param_count(&p->config);
    if (j) {
        tg_jout_open(j, NULL, '{');
        tg_jout_text(j, "preset", p->name);
        /* Rows a step, those of all micro-steps together. */
        tg_jout_int(j, "batch", rig->tokens_per_step / p->config.ctx);
        tg_jout_int(j, "ctx", p->config.ctx);
        tg_jout_uint(j, "params", params);
        tg_bench_json_ms(j, "ms", ms, n);
        tg_jout_rounded(j, "median_ms", median, 4);
        tg_jout_rounded(j, "low_ms", in.low, 4);
        tg_jout_rounded(j, "high_ms", in.high, 4);
        tg_jout_int(j, "tokens_per_step", rig->tokens_per_step);
        tg_jout_rounded(j, "gflops", gflops, 2);
        tg_jout_rounded(j, "share_of_peak", share, 4);
        tg_jout_rounded(j, "peak_gflops", peak, 2);
        tg_jout_double(j, "loss", rig->last.loss);
        tg_jout_close(j);
    } else {
        char interval[48];
        tg_stats_interval_text(&in, 1, 2, false, interval, sizeof interval);
        printf("%-10s %12s %8s %10.2f %19s %8s %8.1f %6s\n", p->name, TG_COUNT(params),
               TG_COUNT((uint64_t)rig->tokens_per_step), median, interval,
               TG_SHORT((double)rig->tokens_per_step / median * 1000), gflops, TG_PERCENT(share));
        fflush(stdout);
    }
    free(sorted);
}

/* A rig of its own for each preset, given back before the next: the memory is that of one. */
static tg_status time_preset(tg_app *app, const values *v, const tg_preset *p, double peak,
                             tg_jout *j, double *ms) {
    tg_rig rig;
    const int32_t batch = v->batch ? (int32_t)v->batch : p->batch;
    /* Warm-up steps touch every page and let the clock rate settle; they train like any other. */
    tg_status status = tg_rig_open(&rig, app->ctx, &p->config, batch);
    if (status != TG_OK) return status;
    status = tg_rig_steps(&rig, v->warmup, NULL);
    if (status == TG_OK) status = tg_rig_steps(&rig, v->steps, ms);
    if (status == TG_OK) print_row(j, p, &rig, peak, ms, (size_t)v->steps);
    tg_rig_close(&rig);
    return status;
}

/* The preset with the context that was asked for. */
static tg_preset sized(const tg_preset *p, const values *v) {
    tg_preset sized = *p;
    if (v->ctx) sized.config.ctx = (int32_t)v->ctx;
    return sized;
}

/* All presets of the list are known before the first is timed. */
static int time_list(tg_app *app, const values *v) {
    tg_preset presets[32];
    size_t n = 0;
    /* Cut at commas; an empty name between two of them is unknown, as any other wrong one is. */
    for (const char *list = v->preset;;) {
        char name[NAME_BYTES];
        const size_t length = strcspn(list, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < NAME_BYTES ? length : NAME_BYTES - 1),
                 list);
        /* Far more than there are presets; a name may be there twice, and is then timed twice. */
        if (n == sizeof presets / sizeof presets[0]) {
            return tg_args_refuse(&app->args, "--preset: want at most 32 names");
        }
        /* Name and memory of each are checked here: nobody should wait minutes for the last one's
         * error. */
        const tg_preset *p = tg_bench_preset(&app->args, name);
        if (!p) return TG_EXIT_USAGE;
        presets[n] = sized(p, v);
        const int code = tg_bench_room(app, &presets[n++], (int32_t)v->batch, 1);
        if (code != TG_ARGS_GO_ON) return code;
        if (list[length] == '\0') break;
        list += length + 1;
    }
    double peak = 0;
    double *ms = malloc((size_t)v->steps * sizeof *ms);
    tg_status status = ms ? tg_bench_peak(app, &peak) : TG_E_MEMORY;
    tg_jout j;
    const bool json = app->globals.json;
    if (status == TG_OK && json) tg_bench_json_open(app, &j, "train", peak);
    if (status == TG_OK && !json) print_head(app);
    for (size_t i = 0; i < n && status == TG_OK; i++) {
        status = time_preset(app, v, &presets[i], peak, json ? &j : NULL, ms);
    }
    free(ms);
    if (status != TG_OK) return tg_app_failed(app, app->ctx, status, TG_WORKING);
    if (json) tg_bench_json_close(&j);
    if (!json) tg_bench_print_peak(peak);
    return TG_EXIT_DONE;
}

/* Nothing is printed between the blocks, and each answer is flushed: the driver waits for it. */
static int serve_blocks(tg_app *app, const values *v) {
    const tg_preset *named = tg_bench_preset(&app->args, v->preset);
    if (!named) return TG_EXIT_USAGE;
    const tg_preset preset = sized(named, v), *p = &preset;
    const int room = tg_bench_room(app, p, (int32_t)v->batch, 1);
    if (room != TG_ARGS_GO_ON) return room;
    /* One preset and not a list: the driver decides what it compares. The trainer lives on from
     * block to block, so block k of two programs is the same steps of the same run. */
    const size_t n = (size_t)v->steps_per_block;
    double *ms = malloc(n * sizeof *ms);
    char line[64];
    tg_rig rig = { 0 };
    tg_status status =
        ms ? tg_rig_open(&rig, app->ctx, &p->config, v->batch ? (int32_t)v->batch : p->batch)
           : TG_E_MEMORY;
    if (status == TG_OK) status = tg_rig_steps(&rig, v->warmup, NULL);
    tg_jout j = tg_jout_to(stdout);
    if (status == TG_OK) {
        tg_jout_open(&j, NULL, '{');
        tg_jout_bool(&j, "ready", true);
        tg_jout_close(&j);
        tg_jout_line(&j);
    }
    /* A driver that is gone shows as a failed write or as the end of the input. fgets cuts an
     * overlong line, whose first piece is then no "go". */
    while (status == TG_OK && !ferror(stdout) && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (strcmp(line, "quit") == 0) break;
        /* A driver that speaks another protocol must not get times it would misread. */
        if (strcmp(line, "go") != 0) {
            tg_app_error(app, "want \"go\" or \"quit\" on standard input, have \"%s\"", line);
            status = TG_E_ARG;
            break;
        }
        status = tg_rig_steps(&rig, (int64_t)n, ms);
        if (status != TG_OK) break;
        tg_jout_open(&j, NULL, '{');
        tg_bench_json_ms(&j, "ms", ms, n);
        tg_jout_close(&j);
        tg_jout_line(&j);
    }
    const int code =
        status == TG_OK ? TG_EXIT_DONE : tg_app_failed(app, app->ctx, status, TG_WORKING);
    tg_rig_close(&rig);
    free(ms);
    return code;
}

/* Both ways take --warmup and --batch; --steps counts without --blocks only, as --steps-per-block
 * does with it. */
int tg_bench_train(int argc, char **argv) {
    values v = { .preset = "small", .steps = 20, .warmup = 3, .steps_per_block = 10 };
    const tg_option_group group = TG_GROUP("Options", train_options, &v);
    tg_app app;
    int code = tg_app_start(&app, &train_spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    code = v.blocks ? serve_blocks(&app, &v) : time_list(&app, &v);
    return tg_app_end(&app, code);
}
