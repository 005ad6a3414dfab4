/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fusion.c - tinygpt bench fusion: what a token costs on a GPU by how much of it is one step.
 *
 * The points of the spectrum are levers. Each has a context, a model and a session of its own; they
 * write a few tokens in turn, so that all meet the same clock rates and neighbours.
 */
#include "bench/bench.h"
#include "print/format.h"
#include "print/stats.h"

#include <stdlib.h>
#include <string.h>

enum { WARMUP = 8, TURN = 16 }; /* tokens: untimed, and of a point at a time */

/* The fewest steps come last. */
static const struct {
    const char *name, *levers;
} points[] = { { "none", "-epilogue_fusion,-fused_decode" },
               { "epilogues", "+epilogue_fusion,-fused_decode" },
               { "fused", "+epilogue_fusion,+fused_decode" },
               { "single", "+epilogue_fusion,+fused_decode,+single_dispatch" } };
enum { N_POINTS = sizeof points / sizeof *points };

/* What others say of theirs: dispatches a token, of models of their own choice. */
static const struct {
    const char *name;
    int dispatches;
} references[] = { { "zero-tvm", 228 }, { "Gerbil", 200 } };

typedef struct values {
    const char *model;
    int64_t turns, after;
    int kv;
} values;

static const tg_option options[] = {
    TG_PATH("--model", values, model, "FILE", "the model that writes"),
    TG_INT("--turns", values, turns, 1, 10000, "N", "turns of 16 timed tokens for each point"),
    TG_INT("--after", values, after, 0, 1000000, "N", "tokens that the cache holds before them"),
    TG_CHOICE("--kv", values, kv, "f32|f16|int8", "how keys and values are kept"),
};

static const tg_command_spec spec = {
    .name = "bench fusion",
    .uses = TG_USES_CPU | TG_USES_DEVICE,
    .usage = "--model FILE --device webgpu [options]",
    .about =
        "Times a token on a GPU by how many of its ops are fused: none, those behind products "
        "(lever epilogue_fusion), all that a token of its own can have (fused_decode), and one "
        "dispatch for all (single_dispatch), where workgroups meet.",
    .examples = "  tinygpt bench fusion --model smollm2.gguf --device webgpu\n",
};

typedef struct side {
    tg_context *ctx;
    tg_model *model;
    tg_session *session;
    double *ms; /* [turns * TURN] */
    size_t n, steps;
    int32_t token; /* the newest */
} side;

/* Takes a side at any stage of its making. */
static void close_side(side *s) {
    tg_session_free(s->session);
    tg_model_free(s->model);
    tg_context_free(s->ctx);
    free(s->ms);
}

static void count_steps(void *user, const tg_profile_row *row) { *(size_t *)user += row->count; }

/* n tokens, one after the other; greedy, so that all points write the same. */
static tg_status write_tokens(side *s, size_t n, double *ms) {
    tg_sample_options greedy = tg_sample_options_default();
    greedy.temperature = 0;
    for (size_t i = 0; i < n; i++) {
        const double before = tg_app_now_ms();
        tg_status status = tg_session_eval(s->session, &s->token, 1, NULL);
        if (status == TG_OK) status = tg_session_sample(s->session, &greedy, i, &s->token);
        if (status != TG_OK) return status;
        if (ms) ms[i] = tg_app_now_ms() - before;
    }
    return TG_OK;
}

/* The steps are counted first, since that leaves an empty session. Tokens before are any. */
static tg_status open_side(tg_app *app, const values *v, const char *levers, side *s) {
    const size_t after = (size_t)v->after, timed = (size_t)v->turns * TURN;
    int32_t *tokens = calloc(after + 1, sizeof *tokens);
    s->ms = malloc(timed * sizeof *s->ms);
    s->token = '\n';
    tg_status status = tokens && s->ms ? tg_app_context(app, 0, levers, &s->ctx) : TG_E_MEMORY;
    if (status == TG_OK) status = tg_model_open(s->ctx, v->model, &s->model);
    if (status == TG_OK)
        status = tg_session_new_kv(s->ctx, s->model, (int32_t)(after + timed + WARMUP),
                                   (tg_kv_type)v->kv, &s->session);
    if (status == TG_OK)
        status = tg_session_profile(s->session, 1, 1, false, count_steps, &s->steps);
    if (status == TG_OK && after > 0) status = tg_session_eval(s->session, tokens, after, NULL);
    if (status == TG_OK) status = write_tokens(s, WARMUP, NULL);
    free(tokens);
    return status;
}

static void print_references(void) {
    printf("\nof others, by their own count:");
    for (size_t i = 0; i < sizeof references / sizeof *references; i++)
        printf("%s %s %d dispatches a token", i ? "," : "", references[i].name,
               references[i].dispatches);
    printf("\n");
}

/* Sorts the times. bytes: of the weights, which a token reads once. */
static void print(const tg_app *app, side *sides, double bytes, double roof_gbytes) {
    tg_jout j;
    const bool json = app->globals.json;
    if (json)
        tg_bench_json_open(app, &j, "fusion", 0);
    else
        printf("%s\n\n%-10s %6s %10s %22s %9s %7s %7s\n", tg_context_banner(app->ctx), "point",
               "steps", "us a token", "95 %", "tokens/s", "GB/s", "of roof");
    for (size_t i = 0; i < N_POINTS; i++) {
        side *s = &sides[i];
        tg_stats_sort(s->ms, s->n);
        const double median = tg_stats_median(s->ms, s->n), gbytes = bytes / median * 1e-6;
        const tg_interval in = tg_stats_interval(s->ms, s->n);
        char interval[48];
        if (!json) {
            printf("%-10s %6zu %10.1f %22s %9.1f %7.1f %6.1f%%\n", points[i].name, s->steps,
                   1000 * median,
                   tg_stats_interval_text(&in, 1000, 1, false, interval, sizeof interval),
                   1000 / median, gbytes, 100 * gbytes / roof_gbytes);
            continue;
        }
        tg_jout_open(&j, NULL, '{');
        tg_jout_text(&j, "point", points[i].name);
        tg_jout_uint(&j, "steps", s->steps);
        tg_jout_rounded(&j, "median_ms", median, 5);
        tg_jout_rounded(&j, "low_ms", in.low, 5);
        tg_jout_rounded(&j, "high_ms", in.high, 5);
        tg_jout_rounded(&j, "tok_per_s", 1000 / median, 1);
        tg_jout_rounded(&j, "gbytes_per_s", gbytes, 3);
        tg_jout_rounded(&j, "of_gbytes_per_s", gbytes / roof_gbytes, 4);
        tg_jout_close(&j);
    }
    if (json)
        tg_bench_json_close(&j);
    else
        print_references();
}

/* The exit code. A message stands in the context that failed. */
static int measure(tg_app *app, const values *v) {
    side sides[N_POINTS] = { 0 };
    tg_context *failed = app->ctx;
    double gflops, gbytes = 0;
    tg_gpu_facts gpu;
    tg_model_info info;
    tg_status status = tg_context_gpu(app->ctx, &gpu);
    if (status == TG_OK) status = tg_bench_real_gpu(app);
    if (status == TG_OK) status = tg_bench_roofs(app, &gflops, &gbytes);
    for (size_t i = 0; i < N_POINTS && status == TG_OK; i++) {
        status = open_side(app, v, points[i].levers, &sides[i]);
        if (status != TG_OK && sides[i].ctx) failed = sides[i].ctx;
    }
    for (size_t turn = 0; turn < (size_t)v->turns && status == TG_OK; turn++) {
        for (size_t k = 0; k < N_POINTS && status == TG_OK; k++) {
            side *s = &sides[(k + turn) % N_POINTS];
            status = write_tokens(s, TURN, s->ms + s->n);
            s->n += TURN;
            if (status != TG_OK) failed = s->ctx;
        }
    }
    if (status == TG_OK) status = tg_model_get_info(sides[0].model, &info);
    if (status == TG_OK) print(app, sides, (double)info.weight_bytes, gbytes);
    const int code =
        status == TG_OK ? TG_EXIT_DONE : tg_app_failed(app, failed, status, TG_READING);
    for (size_t i = 0; i < N_POINTS; i++) close_side(&sides[i]);
    return code;
}

int tg_bench_fusion(int argc, char **argv) {
    values v = { .turns = 16 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    if (!v.model) return tg_args_refuse(&app.args, "want --model FILE");
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    code = measure(&app, &v);
    return tg_app_end(&app, code);
}
