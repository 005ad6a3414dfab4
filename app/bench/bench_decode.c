/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_decode.c - tinygpt bench decode and bench prefill: a model that writes and one that reads.
 *
 * Decoding is bound by memory: every token reads all weights once (the position table only a row)
 * and the keys and values so far. The bytes a token times the tokens a second, over what the memory
 * gives (the host's by tg_measure_read, a GPU's by tg_measure_gpu), says how close decoding comes
 * to that. A small model stays in the caches and may pass 100 %.
 */
#include "bench/bench.h"
#include "print/format.h"
#include "print/stats.h"

#include <stdlib.h>
#include <string.h>

enum {
    WARMUP = 4,
    GPU_WARMUP_MS = 1000
}; /* tokens untimed: first touch of the caches' pages, and a
      card's clock, which takes its time to rise */

/* times is prefill's alone; preset and model exclude each other in both. */
typedef struct values {
    const char *preset, *model;
    int64_t tokens, times, after;
    int kv;
} values;

static const tg_option decode_options[] = {
    TG_TEXT("--preset", values, preset, "NAME", "size of a fresh model"),
    TG_PATH("--model", values, model, "FILE", "a model from a file instead"),
    TG_INT("--tokens", values, tokens, 8, 1000000, "N", "timed tokens"),
    TG_INT("--after", values, after, 0, 1000000, "N", "tokens that the cache holds before them"),
    TG_CHOICE("--kv", values, kv, "f32|f16|int8", "how keys and values are kept"),
};

static const tg_option prefill_options[] = {
    TG_TEXT("--preset", values, preset, "NAME", "size of a fresh model"),
    TG_PATH("--model", values, model, "FILE", "a model from a file instead"),
    TG_INT("--tokens", values, tokens, 1, 1000000, "N",
           "length of the prompt (default: the window)", .hide_default = true),
    TG_INT("--times", values, times, 1, 100000, "N", "how often it is read"),
};

static const tg_command_spec decode_spec = {
    .name = "bench decode",
    .uses = TG_USES_ALL,
    .usage = "[--preset NAME | --model FILE] [options]",
    .about = "Times a model that writes one token after the other, and compares the bytes it reads "
             "a second with what the memory gives.",
};

static const tg_command_spec prefill_spec = {
    .name = "bench prefill",
    .uses = TG_USES_ALL,
    .usage = "[--preset NAME | --model FILE] [options]",
    .about = "Times a model that reads a prompt, as long as its window unless --tokens says so.",
};

/* A model, a session on it, and the times of n tokens (decode) or windows (prefill). */
typedef struct bench {
    tg_model *model;
    tg_session *session;
    tg_model_info info;
    const char *name; /* of the preset or file */
    double *ms;
    size_t n, prompt; /* tokens of prefill's prompt */
    size_t after;     /* tokens in the cache where decoding begins, and begins anew */
    double warmup_ms; /* at least, of tokens untimed */
} bench;

/* Takes a bench at any stage of its making, since all of it begins as zeros. */
static void close_bench(bench *b) {
    tg_session_free(b->session);
    tg_model_free(b->model);
    free(b->ms);
}

/* Fresh weights do as well as trained ones: the time of a dense model does not depend on them.
 * Except for denormals: a fresh model has none. */
static tg_status open_bench(tg_app *app, const values *v, const tg_preset *p, size_t n, bench *b) {
    *b = (bench) { .name = p ? p->name : v->model, .n = n, .after = (size_t)v->after };
    b->ms = malloc(n * sizeof *b->ms);
    if (!b->ms) return TG_E_MEMORY;
    tg_status status = p ? tg_model_new(app->ctx, &p->config, 42, &b->model)
                         : tg_model_open(app->ctx, v->model, &b->model);
    if (status == TG_OK) status = tg_model_get_info(b->model, &b->info);
    /* The usual context may be shorter than what is asked for, and the model's own much longer. */
    int64_t ctx = v->after > 0 ? v->after + v->tokens + WARMUP : 0;
    if (ctx > b->info.config.ctx) ctx = b->info.config.ctx;
    if (status == TG_OK)
        status =
            tg_session_new_kv(app->ctx, b->model, (int32_t)ctx, (tg_kv_type)v->kv, &b->session);
    if (status != TG_OK) return status;
    const size_t window = tg_session_capacity(b->session);
    b->prompt = v->tokens > 0 && (size_t)v->tokens < window ? (size_t)v->tokens : window;
    return status;
}

/* What the tokens are does not matter for the time; they only have to be valid. */
static tg_status read_letters(bench *b, size_t n) {
    int32_t *tokens = malloc((n + 1) * sizeof *tokens);
    if (!tokens) return TG_E_MEMORY;
    for (size_t i = 0; i < n; i++) tokens[i] = (int32_t)('a' + i * 7 % 26);
    const tg_status status = tg_session_eval(b->session, tokens, n, NULL);
    free(tokens);
    return status;
}

/* The token behind this one. Rewinding to 0 forgets the whole window, which costs nothing; sliding
 * would evaluate half of it. */
static tg_status write_token(bench *b, int32_t *token, size_t index, double *ms) {
    tg_sample_options greedy = tg_sample_options_default();
    greedy.temperature = 0;
    if (tg_session_tokens(b->session) == tg_session_capacity(b->session)) {
        const tg_status status = tg_session_rewind(b->session, b->after);
        if (status != TG_OK) return status;
    }
    const double before = tg_app_now_ms();
    tg_status status = tg_session_eval(b->session, token, 1, NULL);
    if (status == TG_OK) status = tg_session_sample(b->session, &greedy, index, token);
    *ms = tg_app_now_ms() - before;
    return status;
}

/* Greedy decoding, one timed token after the other; a full window begins anew. So the times hold
 * all lengths of the cache alike, if n is a multiple of the window, and bytes_per_token is their
 * mean. Rewinding is not timed. Drawing is: nobody decodes without it. */
static tg_status time_decode(bench *b) {
    if (b->after > 0) {
        const tg_status status = read_letters(b, b->after);
        if (status != TG_OK) return status;
    }
    int32_t token = '\n';
    double ms, spent_ms = 0;
    for (size_t i = 0; i < WARMUP || spent_ms < b->warmup_ms; i++) {
        const tg_status status = write_token(b, &token, i, &ms);
        if (status != TG_OK) return status;
        spent_ms += ms;
    }
    tg_status status = tg_session_rewind(b->session, b->after);
    for (size_t i = 0; status == TG_OK && i < b->n; i++)
        status = write_token(b, &token, i, &b->ms[i]);
    return status;
}

/* Each pass begins with an empty cache, as a prompt does. */
static tg_status time_prefill(bench *b) {
    /* One untimed pass makes the pages of cache and workspace exist. */
    const size_t warmup = 1;
    tg_status status = TG_OK;
    for (size_t i = 0; status == TG_OK && i < b->n + warmup; i++) {
        status = tg_session_rewind(b->session, 0);
        const double before = tg_app_now_ms();
        if (status == TG_OK) status = read_letters(b, b->prompt);
        if (i >= warmup) b->ms[i - warmup] = tg_app_now_ms() - before;
    }
    return status;
}

/* Weights but for the position table, one row of it, and the mean of the cache over a window: keys
 * and values of all layers, half full. The embedding counts whole: it is the head, too. 4 bytes
 * each, whatever the file had. Of a GGUF file, which keeps its types: the weights alone. */
static double bytes_per_token(const bench *b) {
    const tg_model_config *c = &b->info.config;
    if (strcmp(b->info.format, "gguf") == 0) return (double)b->info.weight_bytes;
    const double weights = (double)b->info.params - (double)c->ctx * c->width + (double)c->width;
    const double cache = 2.0 * c->layers * c->width * c->ctx / 2;
    return 4 * (weights + cache);
}

/* What the memory that holds the weights gives. */
typedef struct memory_speed {
    double bytes_per_s;
    bool of_gpu;
} memory_speed;

/* 256 MiB is beyond the caches of nearly all processors. */
static tg_status measure_memory(tg_context *ctx, memory_speed *m) {
    tg_gpu_facts gpu;
    double gflops;
    m->of_gpu = tg_context_gpu(ctx, &gpu) == TG_OK;
    if (m->of_gpu) return tg_measure_gpu(ctx, &m->bytes_per_s, &gflops);
    return tg_measure_read(ctx, (size_t)256 << 20, &m->bytes_per_s);
}

/* Sorts the times: their order is not reported, only their middle. */
static void print_decode(const tg_app *app, const bench *b, const memory_speed *memory) {
    const double read = memory->bytes_per_s;
    double *sorted = b->ms;
    tg_stats_sort(sorted, b->n);
    const double median = tg_stats_median(sorted, b->n);
    const tg_interval in = tg_stats_interval(sorted, b->n);
    const double per_s = 1000 / median, moved = per_s * bytes_per_token(b);
    if (app->globals.json) {
        tg_jout j;
        tg_bench_json_open(app, &j, "decode", 0);
        tg_jout_open(&j, NULL, '{');
        tg_jout_text(&j, "model", b->name);
        tg_jout_uint(&j, "params", b->info.params);
        tg_jout_uint(&j, "tokens", b->n);
        tg_jout_uint(&j, "after", b->after);
        tg_jout_rounded(&j, "median_ms", median, 5);
        tg_jout_rounded(&j, "low_ms", in.low, 5);
        tg_jout_rounded(&j, "high_ms", in.high, 5);
        tg_jout_rounded(&j, "tok_per_s", per_s, 1);
        tg_jout_rounded(&j, "bytes_per_token", bytes_per_token(b), 0);
        tg_jout_rounded(&j, "gbytes_per_s", moved * 1e-9, 3);
        tg_jout_rounded(&j, "read_gbytes_per_s", read * 1e-9, 3);
        tg_jout_rounded(&j, "share_of_read", read > 0 ? moved / read : 0, 4);
        tg_jout_close(&j);
        tg_bench_json_close(&j);
        return;
    }
    char interval[48];
    printf("%s\n\n", tg_context_banner(app->ctx));
    printf("model        %s, %s parameters\n", b->name, TG_COUNT(b->info.params));
    printf("a token      %.4f ms in the median (95 %%: %s), %s tokens a second\n", median,
           tg_stats_interval_text(&in, 1, 4, false, interval, sizeof interval), TG_SHORT(per_s));
    printf("it reads     %s, so %.1f GB/s\n", TG_BYTES((uint64_t)bytes_per_token(b)), moved * 1e-9);
    printf("the memory   gives %.1f GB/s (%s): %s of it\n", read * 1e-9,
           memory->of_gpu ? "the GPU's, by an addition that streams" : "256 MiB in huge pages",
           TG_PERCENT(read > 0 ? moved / read : 0));
}

/* No share of the memory's speed here: a prompt is many rows at once, so arithmetic bounds it. */
static void print_prefill(const tg_app *app, const bench *b) {
    tg_stats_sort(b->ms, b->n);
    const double median = tg_stats_median(b->ms, b->n);
    const tg_interval in = tg_stats_interval(b->ms, b->n);
    const double per_s = (double)b->prompt * 1000 / median;
    if (app->globals.json) {
        tg_jout j;
        tg_bench_json_open(app, &j, "prefill", 0);
        tg_jout_open(&j, NULL, '{');
        tg_jout_text(&j, "model", b->name);
        tg_jout_uint(&j, "params", b->info.params);
        tg_jout_uint(&j, "tokens", b->prompt);
        tg_jout_rounded(&j, "median_ms", median, 5);
        tg_jout_rounded(&j, "low_ms", in.low, 5);
        tg_jout_rounded(&j, "high_ms", in.high, 5);
        tg_jout_rounded(&j, "tok_per_s", per_s, 1);
        tg_jout_close(&j);
        tg_bench_json_close(&j);
        return;
    }
    char interval[48];
    printf("%s\n\n", tg_context_banner(app->ctx));
    printf("model        %s, %s parameters\n", b->name, TG_COUNT(b->info.params));
    printf("a prompt     of %zu tokens takes %.3f ms in the median (95 %%: %s)\n", b->prompt,
           median, tg_stats_interval_text(&in, 1, 3, false, interval, sizeof interval));
    printf("that is      %s tokens a second\n", TG_SHORT(per_s));
}

/* Decides about options, timing and printing; defaults of both are in one struct. */
typedef enum which { DECODE, PREFILL } which;

/* Both commands differ in what they time and print; opening and closing is one. */
static int bench_session(int argc, char **argv, which what) {
    values v = { .tokens = what == DECODE ? 256 : 0, .times = 20 };
    const tg_option_group decode = TG_GROUP("Options", decode_options, &v);
    const tg_option_group prefill = TG_GROUP("Options", prefill_options, &v);
    tg_app app;
    bench b = { 0 };
    memory_speed memory = { 0 };
    int code = tg_app_parse(&app, what == DECODE ? &decode_spec : &prefill_spec,
                            what == DECODE ? &decode : &prefill, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    /* Refused before the context is opened, as everything is that the command line alone can
     * tell. */
    if (v.preset && v.model) {
        return tg_args_refuse(&app.args, "want --preset or --model, have both");
    }
    const tg_preset *p = NULL;
    if (!v.model) {
        p = tg_bench_preset(&app.args, v.preset ? v.preset : "small");
        if (!p) return TG_EXIT_USAGE;
    }
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    tg_status status = open_bench(&app, &v, p, (size_t)(what == DECODE ? v.tokens : v.times), &b);
    if (status == TG_OK && b.after >= tg_session_capacity(b.session)) {
        code = tg_args_refuse(&app.args, "--after: want fewer than %zu tokens, have %zu",
                              tg_session_capacity(b.session), b.after);
        close_bench(&b);
        return tg_app_end(&app, code);
    }
    if (status == TG_OK) status = tg_bench_real_gpu(&app);
    if (status == TG_OK && what == DECODE) {
        /* Before the decoding and not after it, since the block would push the model out of the
         * caches. */
        status = measure_memory(app.ctx, &memory);
        b.warmup_ms = memory.of_gpu ? GPU_WARMUP_MS : 0;
    }
    if (status == TG_OK) status = what == DECODE ? time_decode(&b) : time_prefill(&b);
    if (status != TG_OK) {
        code = tg_app_failed(&app, app.ctx, status, TG_READING);
    } else if (what == DECODE) {
        print_decode(&app, &b, &memory);
        code = TG_EXIT_DONE;
    } else {
        print_prefill(&app, &b);
        code = TG_EXIT_DONE;
    }
    close_bench(&b);
    return tg_app_end(&app, code);
}

int tg_bench_decode(int argc, char **argv) { return bench_session(argc, argv, DECODE); }

int tg_bench_prefill(int argc, char **argv) { return bench_session(argc, argv, PREFILL); }
