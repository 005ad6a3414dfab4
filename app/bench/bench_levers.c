/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_levers.c - tinygpt bench levers: what each speed idea is worth on this machine.
 *
 * For each lever two trainers live side by side, one with it and one without, all else equal. They
 * run short blocks of steps in turn, the order swapped from pair to pair, so that both meet the
 * same clock rates and neighbours. A pair gives one ratio
 *
 *     gain = time without / time with - 1
 *
 * and the median of the pairs with its order-statistic interval is what is reported. Parity: after
 * the same number of steps the hashes of all losses are equal (the lever keeps the bits) or the
 * mean losses differ by so much. A lever that promises to keep bits and does not is a failure.
 */
#include "bench/bench.h"
#include "print/format.h"
#include "print/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With fewer than 15 pairs the interval would be nearly all of the range. The warm-up touches the
 * pages and starts the threads. */
enum { PAIRS_MIN = 15, PAIRS_MAX = 1000, WARMUP = 2 };

/* lever NULL: all of them; steps and batch 0: chosen. */
typedef struct values {
    const char *preset, *lever;
    int64_t pairs, batch, steps;
} values;

static const tg_option options[] = {
    TG_TEXT("--preset", values, preset, "NAME", "size of the model"),
    TG_TEXT("--lever", values, lever, "NAME", "only this one"),
    TG_INT("--pairs", values, pairs, PAIRS_MIN, PAIRS_MAX, "N", "pairs of blocks"),
    TG_INT("--steps", values, steps, 1, 10000, "K", "steps a block (default: about 30 ms)",
           .hide_default = true),
    TG_INT("--batch", values, batch, 1, 65536, "B", "rows a step (default: the preset's)",
           .hide_default = true),
};

static const tg_command_spec spec = {
    .name = "bench levers",
    .uses = TG_USES_CPU | TG_USES_DEVICE,
    .usage = "[options]",
    .about = "Measures every lever in training: what switching it on gains, with a 95 % interval, "
             "and whether it changes a bit of the losses.",
    .examples = "  tinygpt bench levers --preset medium --lever flash_attention\n",
};

/* One side of a comparison: a context of its own, since levers belong to one, with all threads.
 * Only one side works at a time; the other's threads wait. */
typedef struct side {
    tg_context *ctx;
    tg_rig rig;
} side;

/* Takes a side at any stage, also a context that only carries its error. */
static void close_side(side *s) {
    tg_rig_close(&s->rig);
    tg_context_free(s->ctx);
    memset(s, 0, sizeof *s);
}

/* The lever is named on both sides, so that its state does not hang on its default. */
static tg_status open_side(tg_app *app, const values *v, const tg_preset *p, const char *lever,
                           bool on, side *s) {
    char levers[128];
    snprintf(levers, sizeof levers, "%c%s", on ? '+' : '-', lever);
    tg_status status = tg_app_context(app, 0, levers, &s->ctx);
    if (status != TG_OK) return status;
    const int32_t batch = v->batch ? (int32_t)v->batch : p->batch;
    status = tg_rig_open(&s->rig, s->ctx, &p->config, batch);
    if (status == TG_OK) status = tg_rig_steps(&s->rig, WARMUP, NULL);
    return status;
}

/* What one lever came to. Unmeasured, only why_not is set. */
typedef struct result {
    bool measured;
    char why_not[256];
    double gain;                /* of the median pair: 0.2 is 20 % faster with the lever */
    tg_interval interval;       /* of the gain */
    double with_ms, without_ms; /* medians, a step */
    bool same_bits;
    double difference; /* relative, of the mean losses */
} result;

/* Milliseconds a step of a block; the clock is read twice a block, not twice a step. What a GPU has
 * been given ahead is awaited, or the other side would pay for it. */
static tg_status time_block(side *s, int64_t steps, double *ms) {
    const double before = tg_app_now_ms();
    tg_status status = tg_rig_steps(&s->rig, steps, NULL);
    if (status == TG_OK) status = tg_context_wait(s->ctx);
    *ms = (tg_app_now_ms() - before) / (double)steps;
    return status;
}

static tg_status time_pairs(const values *v, side *with, side *without, result *r) {
    double ratios[PAIRS_MAX], with_ms[PAIRS_MAX], without_ms[PAIRS_MAX], one = 0;
    const size_t pairs = (size_t)v->pairs;
    int64_t steps = v->steps;
    tg_status status = TG_OK;
    /* Long enough that the clock and the start of a block do not show, short enough that both sides
     * of a pair meet the same machine. Both sides take one step to find out: they stay in step. */
    if (steps == 0) {
        status = time_block(with, 1, &one);
        if (status == TG_OK) status = time_block(without, 1, &one);
        steps = one > 30 ? 1 : one > 0.3 ? (int64_t)(30 / one) + 1 : 100;
    }
    for (size_t i = 0; i < pairs && status == TG_OK; i++) {
        const bool with_first = i % 2 == 0;
        side *first = with_first ? with : without, *second = with_first ? without : with;
        status = time_block(first, steps, with_first ? &with_ms[i] : &without_ms[i]);
        if (status == TG_OK) {
            status = time_block(second, steps, with_first ? &without_ms[i] : &with_ms[i]);
        }
        /* Of the two blocks of a pair, and not of medians: what slows the machine slows both of
         * them. */
        ratios[i] = without_ms[i] / with_ms[i] - 1;
    }
    if (status != TG_OK) return status;
    tg_stats_sort(ratios, pairs);
    tg_stats_sort(with_ms, pairs);
    tg_stats_sort(without_ms, pairs);
    r->gain = tg_stats_median(ratios, pairs);
    r->interval = tg_stats_interval(ratios, pairs);
    r->with_ms = tg_stats_median(with_ms, pairs);
    r->without_ms = tg_stats_median(without_ms, pairs);
    /* Both took the same number of steps, with the same batches: the hashes are of the same
     * losses. */
    r->same_bits = with->rig.last.loss_hash == without->rig.last.loss_hash;
    r->difference = fabs(with->rig.loss_sum - without->rig.loss_sum) / without->rig.loss_sum;
    r->measured = true;
    return TG_OK;
}

#define ELSEWHERE "not of this device"

/* What no machine can switch on, and what this one has nothing for. */
static bool is_withdrawn(const tg_lever_info *lever) {
    return strncmp(lever->state, "withdrawn", strlen("withdrawn")) == 0;
}
static bool is_blocked(const tg_lever_info *lever) {
    return strncmp(lever->state, "blocked", strlen("blocked")) == 0;
}

/* Why there is nothing to measure; NULL: there may be. */
static const char *nothing_in(const tg_app *app, const tg_lever_info *lever) {
    tg_gpu_facts gpu;
    if (is_withdrawn(lever)) return lever->state;
    const bool on_gpu = tg_context_gpu(app->ctx, &gpu) == TG_OK;
    if (on_gpu ? lever->cpu_only : lever->gpu_only) return ELSEWHERE;
    if (is_blocked(lever)) return lever->state;
    if (lever->gpu_only && lever->default_on && !tg_context_lever(app->ctx, lever->name) &&
        !app->globals.levers)
        return "off on this adapter: the banner says why";
    return NULL;
}

/* A lever that this machine cannot switch is not an error: the reason goes into the table. */
static void measure(tg_app *app, const values *v, const tg_preset *p, const tg_lever_info *lever,
                    result *r) {
    side with = { 0 }, without = { 0 };
    *r = (result) { 0 };
    tg_context *failed = NULL;
    if (nothing_in(app, lever)) {
        snprintf(r->why_not, sizeof r->why_not, "%s", nothing_in(app, lever));
        return;
    }
    tg_status status = open_side(app, v, p, lever->name, true, &with);
    if (status != TG_OK) failed = with.ctx;
    if (status == TG_OK) {
        status = open_side(app, v, p, lever->name, false, &without);
        if (status != TG_OK) failed = without.ctx;
    }
    if (status == TG_OK) status = time_pairs(v, &with, &without, r);
    if (status != TG_OK) {
        const char *text = failed ? tg_context_error(failed) : "";
        snprintf(r->why_not, sizeof r->why_not, "%s", *text ? text : tg_status_text(status));
    }
    close_side(&with);
    close_side(&without);
}

/* Broken is a promise that does not hold. A lever that never promised bits may differ. */
static bool is_broken(const tg_lever_info *lever, const result *r) {
    return r->measured && lever->keeps_bits && !r->same_bits;
}

static bool is_elsewhere(const result *r) { return strcmp(r->why_not, ELSEWHERE) == 0; }

/* Green and red only where the interval leaves no doubt about the sign. */
static void print_row(const tg_app *app, const tg_lever_info *lever, const result *r) {
    const tg_term *out = &app->out;
    const char *plain = tg_term_style(out, TG_PLAIN);
    char parity[48], interval[48];
    if (!r->measured) {
        printf("%-19s %-4s %s%s%s%s\n", lever->name, lever->default_on ? "on" : "off",
               tg_term_style(out, TG_DIM),
               is_withdrawn(lever) || is_blocked(lever) || is_elsewhere(r) ? "" : "blocked: ",
               r->why_not, plain);
        return;
    }
    if (r->same_bits) {
        snprintf(parity, sizeof parity, "same bits");
    } else {
        snprintf(parity, sizeof parity, "%s %.1e", is_broken(lever, r) ? "BROKEN" : "differ",
                 r->difference);
    }
    const int digits = r->gain < 1 ? 1 : 0;
    tg_stats_interval_text(&r->interval, 100, digits, true, interval, sizeof interval - 2);
    strcat(interval, " %");
    const tg_style style = r->interval.low > 0    ? TG_GREEN
                           : r->interval.high < 0 ? TG_RED
                                                  : TG_PLAIN;
    printf("%-19s %-4s %10.3f %10.3f  %s%+7.*f %%%s  %-20s %-16s %s\n", lever->name,
           lever->default_on ? "on" : "off", r->with_ms, r->without_ms, tg_term_style(out, style),
           digits, 100 * r->gain, plain, interval, parity, lever->state);
    fflush(stdout);
}

/* Gains as fractions, where the table has per cent. What is not measured is left out, not zero. */
static void print_json_row(tg_jout *j, const char *preset, const tg_lever_info *lever,
                           const result *r, size_t pairs) {
    tg_jout_open(j, NULL, '{');
    tg_jout_text(j, "lever", lever->name);
    tg_jout_text(j, "preset", preset);
    tg_jout_bool(j, "default_on", lever->default_on);
    tg_jout_bool(j, "keeps_bits", lever->keeps_bits);
    tg_jout_bool(j, "gpu_only", lever->gpu_only);
    tg_jout_text(j, "state", lever->state);
    tg_jout_bool(j, "measured", r->measured);
    if (r->measured) {
        tg_jout_uint(j, "pairs", pairs);
        tg_jout_rounded(j, "with_ms", r->with_ms, 4);
        tg_jout_rounded(j, "without_ms", r->without_ms, 4);
        tg_jout_rounded(j, "gain", r->gain, 5);
        tg_jout_rounded(j, "gain_low", r->interval.low, 5);
        tg_jout_rounded(j, "gain_high", r->interval.high, 5);
        tg_jout_bool(j, "same_bits", r->same_bits);
        tg_jout_double(j, "loss_difference", r->difference);
    } else {
        tg_jout_text(j, "why_not", r->why_not);
    }
    tg_jout_close(j);
}

static bool is_lever(const char *name) {
    for (size_t i = 0; i < tg_lever_count(); i++) {
        if (strcmp(tg_lever_at(i)->name, name) == 0) return true;
    }
    return false;
}

/* One lever after the other, and no two at once: what a lever gains can depend on the others, and
 * here those have the state that --levers gave them. */
static int measure_all(tg_app *app, const values *v, const tg_preset *p) {
    tg_jout j;
    const bool json = app->globals.json;
    size_t broken = 0;
    if (json) tg_bench_json_open(app, &j, "levers", 0);
    if (!json) {
        printf("%s\n%s: training, %d pairs of blocks a lever\n\n%s%-19s %-4s %10s %10s  %9s  %-20s "
               "%-16s %s%s\n",
               tg_context_banner(app->ctx), p->name, (int)v->pairs,
               tg_term_style(&app->out, TG_DIM), "lever", "now", "with ms", "without", "gain",
               "95 % interval", "losses", "state", tg_term_style(&app->out, TG_PLAIN));
    }
    for (size_t i = 0; i < tg_lever_count(); i++) {
        const tg_lever_info *lever = tg_lever_at(i);
        result r;
        if (v->lever && strcmp(v->lever, lever->name) != 0) continue;
        measure(app, v, p, lever, &r);
        broken += is_broken(lever, &r);
        if (json) {
            print_json_row(&j, p->name, lever, &r, (size_t)v->pairs);
        } else {
            print_row(app, lever, &r);
        }
    }
    if (json) tg_bench_json_close(&j);
    if (broken == 0) return TG_EXIT_DONE;
    tg_app_error(app, "%zu lever%s should keep the bits of the losses and did not", broken,
                 broken == 1 ? "" : "s");
    return TG_EXIT_FAILED;
}

/* Two trainers of the preset have to fit into memory at once. */
int tg_bench_levers(int argc, char **argv) {
    values v = { .preset = "small", .pairs = PAIRS_MIN };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    if (v.lever && !is_lever(v.lever)) {
        char shown[64];
        return tg_args_refuse(&app.args,
                              "--lever: no lever \"%s\"; doctor --list-levers names them",
                              tg_fmt_safe(shown, sizeof shown, v.lever));
    }
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    const tg_preset *p = tg_bench_preset(&app.args, v.preset);
    tg_gpu_facts gpu;
    double gflops;
    tg_status status = TG_OK;
    if (tg_context_gpu(app.ctx, &gpu) == TG_OK) status = tg_bench_peak(&app, &gflops);
    if (status != TG_OK) /* a GPU in software */
        return tg_app_end(&app, tg_app_failed(&app, app.ctx, status, TG_WORKING));
    code = p ? tg_bench_room(&app, p, (int32_t)v.batch, 2) : TG_EXIT_USAGE;
    if (code == TG_ARGS_GO_ON) code = measure_all(&app, &v, p);
    return tg_app_end(&app, code);
}
