/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_matmul.c - tinygpt bench matmul: GFLOP/s of matrix products, in cubes or in the shapes that
 * a training step of a preset has.
 *
 * A linear layer with weights W [in, out] takes part in three products, of N = batch * T rows:
 *
 *     forward    y[N, out]   = x[N, in] W            trans 0
 *     backward   dx[N, in]   = dy[N, out] W^T        trans 2: W is [columns, inner]
 *     backward   dW[in, out] = x^T dy                trans 1: x is [inner, rows]
 */
#include "bench/bench.h"
#include "print/format.h"
#include "print/stats.h"

#include <stdlib.h>
#include <string.h>

/* m, n and k are 0 unless all three are given; times 0 is chosen by choose_times. */
typedef struct values {
    const char *preset;
    int64_t times, m, n, k;
    int trans;
} values;

static const tg_option options[] = {
    TG_TEXT("--preset", values, preset, "NAME", "the products of a training step of this preset"),
    TG_INT("--m", values, m, 1, 65536, "M", "one shape instead: rows of the result",
           .hide_default = true),
    TG_INT("--n", values, n, 1, 65536, "N", "columns of the result", .hide_default = true),
    TG_INT("--k", values, k, 1, 65536, "K", "inner size", .hide_default = true),
    TG_CHOICE("--trans", values, trans, "none|a|b", "which operand lies transposed"),
    TG_INT("--times", values, times, 1, 100000, "N", "repetitions (default: about half a second)",
           .hide_default = true),
};

/* What is printed as the peak is that of f32; a lever that multiplies in bf16 may pass 100 %. */
static const tg_command_spec spec = {
    .name = "bench matmul",
    .uses = TG_USES_CPU | TG_USES_DEVICE,
    .usage = "[--preset NAME | --m M --n N --k K] [options]",
    .about = "Times matrix products C[M,N] = A B: cubes of 256 to 2048, the shapes of a preset, or "
             "one shape.",
};

/* C[m, n] is a sum over k; the operands' layouts follow from trans as in the table above. */
typedef struct shape {
    const char *what;
    int32_t m, n, k;
    int trans;
} shape;

/* A preset gives 15 shapes, the cubes are 4. */
enum { SHAPES_MAX = 32 };

/* The three products of a layer with weights [in, out], as drawn above. */
static size_t add_layer(shape *s, size_t n, const char *const names[3], int32_t rows, int32_t in,
                        int32_t out) {
    s[n++] = (shape) { names[0], rows, out, in, 0 };
    s[n++] = (shape) { names[1], rows, in, out, 2 };
    s[n++] = (shape) { names[2], in, out, rows, 1 };
    return n;
}

/* The head's weights are the embedding E [V, C], the other way round than a layer's. */
static size_t preset_shapes(const tg_preset *p, shape *s) {
    static const char *const proj[] = { "projection", "projection dx", "projection dW" };
    static const char *const qkv[] = { "qkv", "qkv dx", "qkv dW" };
    static const char *const up[] = { "mlp in", "mlp in dx", "mlp in dW" };
    static const char *const down[] = { "mlp out", "mlp out dx", "mlp out dW" };
    const int32_t rows = p->batch * p->config.ctx, c = p->config.width, v = p->config.vocab;
    size_t n = add_layer(s, 0, qkv, rows, c, 3 * c);
    n = add_layer(s, n, proj, rows, c, c);
    n = add_layer(s, n, up, rows, c, p->config.mlp);
    n = add_layer(s, n, down, rows, p->config.mlp, c);
    s[n++] = (shape) { "head", rows, v, c, 2 };
    s[n++] = (shape) { "head dx", rows, c, v, 0 };
    s[n++] = (shape) { "head dE", v, c, rows, 1 };
    return n;
}

/* Cubes stay in the caches (256), leave them (1024), or fill the memory's pages (2048). */
static size_t choose_shapes(const values *v, const tg_preset *p, shape *s) {
    if (p) return preset_shapes(p, s);
    if (v->m) {
        s[0] = (shape) { "given", (int32_t)v->m, (int32_t)v->n, (int32_t)v->k, v->trans };
        return 1;
    }
    size_t n = 0;
    for (int32_t size = 256; size <= 2048; size *= 2) {
        s[n++] = (shape) { "cube", size, size, size, v->trans };
    }
    return n;
}

/* Repetitions that take about half a second in all at half the peak, at least 5. */
static size_t choose_times(const values *v, double flop, double peak) {
    if (v->times) return (size_t)v->times;
    const double times = peak > 0 ? 0.25 * peak * 1e9 / flop : 5;
    return times < 5 ? 5 : times > 1000 ? 1000 : (size_t)times;
}

/* The share of the peak is the median's: the best of many runs is kinder than a training step. */
static void print_row(tg_jout *j, const shape *s, double flop, double peak, double *ms, size_t n) {
    tg_stats_sort(ms, n);
    const double best = flop / ms[0] * 1e-6, median = flop / tg_stats_median(ms, n) * 1e-6;
    if (j) {
        tg_jout_open(j, NULL, '{');
        tg_jout_text(j, "what", s->what);
        tg_jout_int(j, "m", s->m);
        tg_jout_int(j, "n", s->n);
        tg_jout_int(j, "k", s->k);
        tg_jout_int(j, "trans", s->trans);
        tg_jout_rounded(j, "best_ms", ms[0], 4);
        tg_jout_rounded(j, "median_ms", tg_stats_median(ms, n), 4);
        tg_jout_rounded(j, "gflops", median, 2);
        tg_jout_rounded(j, "best_gflops", best, 2);
        tg_jout_rounded(j, "share_of_peak", peak > 0 ? median / peak : 0, 4);
        tg_jout_close(j);
        return;
    }
    /* An apostrophe is the usual mark of a transposed matrix; indices are the values of trans. */
    static const char *const operands[] = { "A B", "A'B", "A B'" };
    printf("%-14s %6d %6d %6d  %-5s %10.3f %9.1f %9.1f %6s\n", s->what, (int)s->m, (int)s->n,
           (int)s->k, operands[s->trans], tg_stats_median(ms, n), median, best,
           TG_PERCENT(peak > 0 ? median / peak : 0));
    fflush(stdout);
}

/* 2 m n k operations: a multiplication and an addition each. Only this shape's operands exist while
 * it is timed. A run of the plan includes packing and the hand-over to the threads. */
static tg_status time_shape(tg_app *app, const values *v, const shape *s, double peak, tg_jout *j) {
    const double flop = 2.0 * s->m * s->n * s->k;
    const size_t n = choose_times(v, flop, peak);
    double *ms = malloc(n * sizeof *ms);
    if (!ms) return TG_E_MEMORY;
    const tg_status status = tg_bench_matmul(app->ctx, s->m, s->n, s->k, s->trans, n, ms);
    if (status == TG_OK) print_row(j, s, flop, peak, ms, n);
    free(ms);
    return status;
}

int tg_bench_matmul_shapes(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    shape shapes[SHAPES_MAX];
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    const tg_preset *p = v.preset ? tg_bench_preset(&app.args, v.preset) : NULL;
    if (v.preset && !p) return TG_EXIT_USAGE;
    const int given = (v.m > 0) + (v.n > 0) + (v.k > 0);
    /* --trans without a shape applies to the cubes, and is ignored by a preset, whose shapes say
     * it. */
    if (given != 0 && (given != 3 || p)) {
        return tg_args_refuse(&app.args, "want --preset, or all of --m --n --k, or none of them");
    }
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    const size_t n = choose_shapes(&v, p, shapes);
    double peak = 0;
    tg_status status = tg_bench_peak(&app, &peak);
    tg_jout j;
    const bool json = app.globals.json;
    if (status == TG_OK && json) tg_bench_json_open(&app, &j, "matmul", peak);
    if (status == TG_OK && !json) {
        printf("%s\n\n%s%-14s %6s %6s %6s  %-5s %10s %9s %9s %6s%s\n", tg_context_banner(app.ctx),
               tg_term_style(&app.out, TG_DIM), "product", "M", "N", "K", "", "median ms",
               "GFLOP/s", "best", "peak", tg_term_style(&app.out, TG_PLAIN));
    }
    for (size_t i = 0; i < n && status == TG_OK; i++) {
        status = time_shape(&app, &v, &shapes[i], peak, json ? &j : NULL);
    }
    if (status != TG_OK) {
        return tg_app_end(&app, tg_app_failed(&app, app.ctx, status, TG_WORKING));
    }
    if (json) tg_bench_json_close(&j);
    if (!json) tg_bench_print_peak(peak);
    return tg_app_end(&app, TG_EXIT_DONE);
}
