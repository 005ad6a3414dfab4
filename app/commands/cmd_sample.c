/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_sample.c - tinygpt sample: a model continues a prompt.
 *
 * Standard output gets the new text alone, byte for byte, so that it can be piped; on a terminal
 * the prompt stands in front of it. What happened on the way (a prompt that was cut, a window that
 * slid, --stats) is told on standard error.
 */
#include "app.h"
#include "print/format.h"
#include "print/pieces.h"
#include "sampling.h"
#include "signals.h"

#include <stdlib.h>
#include <string.h>

/* Far beyond any window: a longer prompt is cut to its end, but it has to be read for that. */
enum { PROMPT_LIMIT = 64 << 20 };

/* Sampling options start with the library's defaults; ctx 0 is the model's own window. */
typedef struct values {
    const char *prompt, *file;
    int64_t tokens, n, ctx, best;
    tg_sampling sampling;
    tg_logit_options logits;
    tg_draft_options draft;
    uint64_t seed;
    int kv, full;
    bool stats, echo;
} values;

static const tg_option options[] = {
    TG_TEXT("--prompt", values, prompt, "TEXT", "what to continue"),
    TG_PATH("--file", values, file, "F", "the prompt is in this file; - is standard input"),
    TG_INT("--tokens", values, tokens, 0, 1000000000, "N", "how many to write"),
    TG_INT("--n", values, n, 1, TG_BATCH_MAX, "K",
           "K texts that go on from the prompt, written together: those of seeds S .. S+K-1"),
    TG_SAMPLING_OPTIONS(values),
    TG_LOGIT_OPTIONS(values),
    TG_DRAFT_OPTIONS(values),
    TG_INT("--best", values, best, 0, 1000, "N",
           "print the N likeliest next tokens, with the logarithms of their probabilities, and no "
           "text"),
    TG_SEED("--seed", values, seed, "S", "same seed, same text"),
    TG_INT("--ctx", values, ctx, 1, 1048576, "T",
           "tokens it may look back (default: the model's; of a third-party model at most 4096)",
           .hide_default = true),
    TG_CHOICE("--full", values, full, "slide|stop|refuse",
              "what a full window does: forget the older half, end the text, or be an error "
              "beforehand"),
    TG_CHOICE("--kv", values, kv, "f32|f16|int8",
              "what keys and values are kept in: less memory, a little less exact"),
    TG_FLAG("--stats", values, stats, "print speed and times on standard error"),
    TG_FLAG("--echo", values, echo, "print the prompt in front of the text"),
};

/* The seed alone decides the text: same model, options and class of ISA give the same bytes. */
static const tg_command_spec spec = {
    .name = "sample",
    .uses = TG_USES_ALL,
    .usage = "MODEL [options]",
    .about = "Lets a model continue a prompt. The text streams to standard output; --json prints "
             "one object at the end instead.",
    .pos = { "MODEL" },
    .pos_min = 1,
    .pos_max = 1,
    .examples = "  tinygpt sample run.tinygpt --prompt \"Once upon\" --tokens 300\n"
                "  tinygpt sample run.tinygpt --temp 0 --json\n"
                "  tinygpt sample run.tinygpt --prompt \"Once upon\" --n 4\n",
};

/* What is made for one call, given back together. prompt_bytes counts, as a prompt may hold
 * zeros. */
typedef struct job {
    tg_model *model;
    tg_batch *batch;     /* of --n */
    tg_session *session; /* the batch's first, or its own */
    tg_draft draft;
    char *prompt; /* owned: from --prompt or --file */
    size_t prompt_bytes;
    int32_t *prompt_ids, *ids;
    size_t n_prompt_ids;
    tg_app_buffer text; /* of --json */
} job;

/* The session borrows the model, so it goes first. Takes a job at any stage. */
static void free_job(job *j) {
    tg_draft_free(&j->draft);
    tg_session_free(j->session);
    tg_batch_free(j->batch);
    tg_model_free(j->model);
    free(j->prompt);
    free(j->prompt_ids);
    free(j->ids);
    tg_app_buffer_free(&j->text);
}

/* Where the pieces go: to the terminal or pipe at once, or into the buffer for --json. */
typedef struct sink {
    const tg_term *out; /* NULL: into the buffer */
    tg_app_buffer *buffer;
    char last; /* byte that went out last: does the line still want an end? */
} sink;

/* Flushed at every piece, since somebody watches the text grow. A reader that has gone stops the
 * text: a pipe's error is an answer here, as SIGPIPE is ignored (main.c). */
static int write_piece(void *user, const char *bytes, size_t n_bytes) {
    sink *s = user;
    if (!s->out) return tg_app_buffer_add(s->buffer, bytes, n_bytes);
    if (n_bytes == 0) return 0;
    tg_term_text(s->out, bytes, n_bytes);
    s->last = bytes[n_bytes - 1];
    return fflush(s->out->file) != 0;
}

/* Copied, so that both sources are freed alike. An empty --prompt is fine: the library then begins
 * at a newline. */
static int get_prompt(tg_app *app, const values *v, job *j) {
    if (v->file) return tg_app_read_file(app, v->file, PROMPT_LIMIT, &j->prompt, &j->prompt_bytes);
    tg_app_buffer copy = { 0 };
    if (tg_app_buffer_add(&copy, v->prompt, strlen(v->prompt)) != 0) {
        tg_app_error(app, "not enough memory for the prompt");
        return TG_EXIT_FAILED;
    }
    j->prompt = copy.bytes;
    j->prompt_bytes = copy.n;
    return TG_ARGS_GO_ON;
}

/* The ids that --json prints; an empty prompt has none. The room for new ones is allocated for all
 * tokens that were asked for, so that nothing can fail in the middle of the text. */
static int get_ids(tg_app *app, const values *v, job *j) {
    tg_status status = TG_OK;
    size_t n = 0;
    if (j->prompt_bytes > 0) {
        status = tg_tokenizer_encode(app->ctx, tg_model_tokenizer(j->model), j->prompt,
                                     j->prompt_bytes, TG_ENCODE_ENDS, NULL, 0, &n);
    }
    if (status != TG_OK && status != TG_E_FULL) {
        return tg_app_failed(app, app->ctx, status, TG_WORKING);
    }
    j->prompt_ids = malloc((n + 1) * sizeof *j->prompt_ids);
    j->ids = malloc(((size_t)v->tokens + 1) * (size_t)v->n * sizeof *j->ids);
    if (!j->prompt_ids || !j->ids) {
        tg_app_error(app, "not enough memory for %s tokens", TG_COUNT((uint64_t)v->tokens + n));
        return TG_EXIT_FAILED;
    }
    if (n > 0) {
        status = tg_tokenizer_encode(app->ctx, tg_model_tokenizer(j->model), j->prompt,
                                     j->prompt_bytes, TG_ENCODE_ENDS, j->prompt_ids, n, &n);
        if (status != TG_OK) return tg_app_failed(app, app->ctx, status, TG_WORKING);
    }
    j->n_prompt_ids = n;
    return TG_ARGS_GO_ON;
}

/* One object at the end: a reader gets all of it or nothing. Of a text that was stopped there are
 * as many ids as tokens were drawn; text and ids can differ in a character that was not whole
 * yet. */
static void print_json(const tg_app *app, const job *j, const tg_generate_stats *stats) {
    tg_jout o = tg_jout_to(stdout);
    tg_jout_open(&o, NULL, '{');
    tg_jout_open(&o, "ids", '[');
    for (size_t i = 0; i < stats->new_tokens; i++) tg_jout_int(&o, NULL, j->ids[i]);
    tg_jout_close(&o);
    tg_jout_text_n(&o, "text", j->text.bytes ? j->text.bytes : "", j->text.n);
    tg_jout_open(&o, "prompt_ids", '[');
    for (size_t i = 0; i < j->n_prompt_ids; i++) tg_jout_int(&o, NULL, j->prompt_ids[i]);
    tg_jout_close(&o);
    tg_jout_rounded(&o, "tok_per_s", stats->tok_per_s, 1);
    tg_jout_uint(&o, "prompt_dropped", stats->prompt_dropped);
    tg_jout_uint(&o, "slides", stats->slides);
    tg_jout_uint(&o, "slid_tokens", stats->slid_tokens);
    tg_jout_text(&o, "end", tg_sampling_end(stats->end));
    tg_jout_uint(&o, "drafted", stats->drafted);
    tg_jout_uint(&o, "accepted", stats->accepted);
    tg_jout_rounded(&o, "prompt_ms", stats->prompt_ms, 3);
    tg_jout_rounded(&o, "first_token_ms", stats->first_token_ms, 3);
    tg_load_times load;
    if (tg_model_load_times(j->model, &load) == TG_OK && load.bytes) {
        tg_jout_rounded(&o, "open_ms", load.open_ms, 3);
        tg_jout_rounded(&o, "tok_ms", load.tok_ms, 3);
        tg_jout_rounded(&o, "pack_ms", load.pack_ms, 3);
        tg_jout_uint(&o, "pack_bytes", load.bytes);
        tg_jout_bool(&o, "pack_mapped", load.mapped);
    }
    tg_app_put_file_read(&o, j->model, app->args.pos[0]);
    tg_jout_close(&o);
    tg_jout_line(&o);
}

/* What the text does not show: that the model has not seen all of the prompt, or has forgotten. */
/* On standard error in every mode: standard output is the text or the JSON, and nothing else. */
static void tell(const values *v, const job *j, const tg_generate_stats *stats) {
    const size_t window = tg_session_capacity(j->session);
    if (stats->prompt_dropped > 0) {
        tg_model_info info;
        const bool known = tg_model_get_info(j->model, &info) == TG_OK;
        const size_t own = known ? (size_t)info.config.ctx : window;
        const size_t wanted = stats->prompt_tokens + (size_t)v->tokens;
        fprintf(stderr,
                "note: the prompt has %zu tokens and the window %zu: %zu were left out, from the "
                "beginning on. ",
                stats->prompt_tokens, window, stats->prompt_dropped);
        if (own > window)
            fprintf(stderr, "--ctx %zu keeps %s\n", wanted < own ? wanted : own,
                    stats->prompt_tokens < own ? "them" : "more, and is all that the model has");
        else
            fputs("The model has no more\n", stderr);
    }
    if (stats->slides > 0) {
        fprintf(stderr,
                "note: the window of %zu tokens was full %zu time%s; each time the older half was "
                "forgotten, %zu tokens in all\n",
                window, stats->slides, stats->slides == 1 ? "" : "s", stats->slid_tokens);
    }
    if (v->stats) {
        fprintf(stderr,
                "%zu tokens, %s tokens/s; prompt of %zu tokens in %s; first token after %s\n",
                stats->new_tokens, TG_SHORT(stats->tok_per_s), stats->prompt_tokens,
                TG_TIME(stats->prompt_ms / 1000), TG_TIME(stats->first_token_ms / 1000));
        if (stats->drafted > 0)
            fprintf(stderr, "%zu tokens guessed, %zu of them right (%.0f %%)\n", stats->drafted,
                    stats->accepted, 100.0 * (double)stats->accepted / (double)stats->drafted);
        tg_load_times load;
        if (tg_model_load_times(j->model, &load) == TG_OK && load.bytes)
            fprintf(stderr, "head in %s, tokenizer in %s; weights of %s %s in %s: %s GB/s\n",
                    TG_TIME(load.open_ms / 1000), TG_TIME(load.tok_ms / 1000), TG_BYTES(load.bytes),
                    load.mapped ? "mapped and checked" : "read and packed",
                    TG_TIME(load.pack_ms / 1000),
                    TG_SHORT((double)load.bytes / 1e6 / load.pack_ms));
    }
}

enum { SLIDE, STOP };

/* A prompt that leaves no place is refused, and with --full refuse what would go beyond. One place
 * is kept for a token that the vocabulary puts first. */
static int keep_inside(tg_app *app, const values *v, const job *j) {
    const size_t window = tg_session_capacity(j->session), n = j->n_prompt_ids + 1;
    const size_t more = v->full == STOP ? 1 : (size_t)v->tokens;
    if (v->full == SLIDE || n + more <= window) return TG_ARGS_GO_ON;
    tg_app_error(app, "--full: want room for %zu tokens and %zu more, have %zu", n, more, window);
    return TG_EXIT_USAGE;
}

static int show_best(tg_app *app, const values *v, const job *j) {
    int32_t *ids = malloc((size_t)v->best * sizeof *ids);
    double *logs = malloc((size_t)v->best * sizeof *logs);
    char piece[TG_PIECE_BYTES];
    size_t have = 0;
    tg_status status = ids && logs ? TG_OK : TG_E_MEMORY;
    /* Generating nothing reads the prompt, by the rules of generating. */
    tg_generation nothing = tg_generation_default();
    nothing.prompt = j->prompt;
    nothing.prompt_bytes = j->prompt_bytes;
    if (status == TG_OK) status = tg_session_continue(j->session, &nothing, NULL);
    if (status == TG_OK) status = tg_session_best(j->session, (size_t)v->best, ids, logs, &have);
    if (status == TG_OK && app->globals.json) {
        tg_jout o = tg_jout_to(stdout);
        tg_jout_open(&o, NULL, '{');
        tg_jout_open(&o, "best", '[');
        for (size_t i = 0; i < have; i++) {
            tg_jout_open(&o, NULL, '{');
            tg_jout_int(&o, "id", ids[i]);
            tg_piece_text(tg_model_tokenizer(j->model), ids[i], piece);
            tg_jout_text(&o, "piece", piece);
            tg_jout_double(&o, "logprob", logs[i]);
            tg_jout_close(&o);
        }
        tg_jout_close(&o);
        tg_jout_close(&o);
        tg_jout_line(&o);
    } else if (status == TG_OK) {
        for (size_t i = 0; i < have; i++) {
            tg_piece_visible(tg_model_tokenizer(j->model), ids[i], piece);
            printf("%8d  %9.4f  |%s|\n", (int)ids[i], logs[i], piece);
        }
    }
    free(ids);
    free(logs);
    return status == TG_OK ? TG_EXIT_DONE : tg_app_failed(app, app->ctx, status, TG_WORKING);
}

/* Ctrl-C ends the text at the next token, with what there is of it. */
static int generate(tg_app *app, const values *v, job *j) {
    tg_generate_stats stats = { 0 };
    const bool json = app->globals.json;
    sink s = { json ? NULL : &app->out, &j->text, '\n' };
    /* The prompt goes out through the same filter as the text, so that it cannot control a terminal
     * either. */
    if (!json && (app->out.tty || v->echo)) {
        fputs(tg_term_style(&app->out, TG_BOLD), stdout);
        write_piece(&s, j->prompt, j->prompt_bytes);
        fputs(tg_term_style(&app->out, TG_PLAIN), stdout);
    }
    tg_generation what = tg_generation_default();
    what.prompt = j->prompt;
    what.prompt_bytes = j->prompt_bytes;
    const tg_sample_options sample = tg_sampling_options(&v->sampling, v->seed);
    what.sample = &sample;
    what.n_tokens = (size_t)v->tokens;
    what.full = v->full == STOP ? TG_FULL_STOP : TG_FULL_SLIDE;
    what.write = write_piece;
    what.cancel = tg_signals_cancel;
    what.user = &s;
    what.new_ids = j->ids;
    tg_draft_set(&v->draft, &j->draft, &what);
    const tg_status status = tg_session_continue(j->session, &what, &stats);
    /* TG_STOPPED has two causes, and only one is a wish: a signal, or a write that failed. */
    const bool stopped = status == TG_STOPPED && tg_signals_caught();
    if (app->out.tty && !json && s.last != '\n') fputc('\n', stdout);
    /* A write that failed stops the text; main finds the failure and tells of it. */
    if (status != TG_OK && !(status == TG_STOPPED && (stopped || ferror(stdout)))) {
        return tg_app_failed(app, app->ctx, status, TG_WORKING);
    }
    fflush(stdout);
    tell(v, j, &stats);
    if (json) print_json(app, j, &stats);
    return stopped ? TG_EXIT_INTERRUPTED : TG_EXIT_DONE;
}

/* -------------------------------------------------------------------------------- several texts */

/* One of the texts of --n. */
typedef struct one {
    tg_sample_options sample;
    tg_generation what;
    tg_generate_stats stats;
    tg_app_buffer text;
    sink out;
} one;

static void print_many_json(const tg_app *app, const values *v, const job *j, const one *texts,
                            const tg_generate_stats *all) {
    tg_jout o = tg_jout_to(stdout);
    tg_jout_open(&o, NULL, '{');
    tg_jout_open(&o, "texts", '[');
    for (size_t i = 0; i < (size_t)v->n; i++) {
        const one *t = &texts[i];
        tg_jout_open(&o, NULL, '{');
        tg_jout_uint(&o, "seed", t->sample.seed);
        tg_jout_open(&o, "ids", '[');
        for (size_t k = 0; k < t->stats.new_tokens; k++) tg_jout_int(&o, NULL, t->what.new_ids[k]);
        tg_jout_close(&o);
        tg_jout_text_n(&o, "text", t->text.bytes ? t->text.bytes : "", t->text.n);
        tg_jout_uint(&o, "slides", t->stats.slides);
        tg_jout_uint(&o, "slid_tokens", t->stats.slid_tokens);
        tg_jout_text(&o, "end", tg_sampling_end(t->stats.end));
        tg_jout_close(&o);
    }
    tg_jout_close(&o);
    tg_jout_open(&o, "prompt_ids", '[');
    for (size_t i = 0; i < j->n_prompt_ids; i++) tg_jout_int(&o, NULL, j->prompt_ids[i]);
    tg_jout_close(&o);
    tg_jout_rounded(&o, "tok_per_s", all->tok_per_s, 1);
    tg_jout_uint(&o, "prompt_dropped", all->prompt_dropped);
    tg_jout_rounded(&o, "prompt_ms", all->prompt_ms, 3);
    tg_app_put_file_read(&o, j->model, app->args.pos[0]);
    tg_jout_close(&o);
    tg_jout_line(&o);
}

static void print_many(const tg_app *app, const values *v, const one *texts) {
    for (size_t i = 0; i < (size_t)v->n; i++) {
        printf("%s[seed %s]%s\n", tg_term_style(&app->out, TG_BOLD), TG_COUNT(texts[i].sample.seed),
               tg_term_style(&app->out, TG_PLAIN));
        tg_term_text(&app->out, texts[i].text.bytes ? texts[i].text.bytes : "", texts[i].text.n);
        puts(i + 1 < (size_t)v->n ? "\n" : "");
    }
}

/* The prompt is read once, and what it left is copied. */
static tg_status write_together(const values *v, job *j, one *texts, tg_generate_stats *all) {
    const tg_generation *what[TG_BATCH_MAX];
    tg_generate_stats stats[TG_BATCH_MAX] = { { 0 } };
    const size_t n = (size_t)v->n;
    tg_generation nothing = tg_generation_default();
    nothing.prompt = j->prompt;
    nothing.prompt_bytes = j->prompt_bytes;
    nothing.full = v->full == STOP ? TG_FULL_STOP : TG_FULL_SLIDE;
    nothing.cancel = tg_signals_cancel;
    tg_status status = tg_session_continue(j->session, &nothing, all);
    for (size_t i = 0; i < n; i++) {
        one *t = &texts[i];
        t->sample = tg_sampling_options(&v->sampling, v->seed + i);
        t->out = (sink) { NULL, &t->text, '\n' };
        t->what = nothing;
        t->what.sample = &t->sample;
        t->what.n_tokens = (size_t)v->tokens;
        t->what.write = write_piece;
        t->what.user = &t->out;
        t->what.new_ids = j->ids + i * ((size_t)v->tokens + 1);
        what[i] = &t->what;
        if (status == TG_OK && i > 0) status = tg_batch_copy(j->batch, i, 0);
    }
    if (status == TG_OK) status = tg_batch_continue(j->batch, what, n, stats, NULL);
    for (size_t i = 0; i < n; i++) {
        texts[i].stats = stats[i];
        all->new_tokens += stats[i].new_tokens;
        all->tok_per_s += stats[i].tok_per_s;
        all->slides += stats[i].slides;
        all->slid_tokens += stats[i].slid_tokens;
    }
    return status;
}

static int generate_many(tg_app *app, const values *v, job *j) {
    tg_generate_stats all = { 0 };
    one *texts = calloc((size_t)v->n, sizeof *texts);
    if (!texts) {
        tg_app_error(app, "not enough memory for %s texts", TG_COUNT((uint64_t)v->n));
        return TG_EXIT_FAILED;
    }
    const tg_status status = write_together(v, j, texts, &all);
    const bool stopped = status == TG_STOPPED && tg_signals_caught();
    int code = stopped ? TG_EXIT_INTERRUPTED : TG_EXIT_DONE;
    if (status != TG_OK && !stopped) {
        code = tg_app_failed(app, app->ctx, status, TG_WORKING);
    } else {
        if (app->globals.json)
            print_many_json(app, v, j, texts, &all);
        else
            print_many(app, v, texts);
        fflush(stdout);
        tell(v, j, &all);
    }
    for (size_t i = 0; i < (size_t)v->n; i++) tg_app_buffer_free(&texts[i].text);
    free(texts);
    return code;
}

/* Options that hold for all texts. */
static int set_logit_options(tg_app *app, const values *v, const job *j) {
    int code = tg_logit_options_set(app, &v->logits, j->session);
    for (size_t i = 1; code == TG_ARGS_GO_ON && i < (size_t)v->n; i++)
        code = tg_logit_options_set(app, &v->logits, tg_batch_session(j->batch, i));
    return code;
}

static tg_status open_sessions(tg_app *app, const values *v, job *j) {
    const tg_kv_type kv = (tg_kv_type)v->kv;
    if (v->n == 1) return tg_session_new_kv(app->ctx, j->model, (int32_t)v->ctx, kv, &j->session);
    const tg_status s =
        tg_batch_new(app->ctx, j->model, (size_t)v->n, (int32_t)v->ctx, kv, &j->batch);
    j->session = tg_batch_session(j->batch, 0);
    return s;
}

/* In the order of what can be told without work: options, then the prompt, then the model. */
int tg_cmd_sample(int argc, char **argv) {
    values v = { .prompt = "",
                 .tokens = 200,
                 .n = 1,
                 .sampling = tg_sampling_default(),
                 .seed = tg_sample_options_default().seed };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    if (v.file && tg_args_given(&app.args, "--prompt")) {
        return tg_args_refuse(&app.args, "want --prompt or --file, have both");
    }
    if (v.n > 1 && (v.draft.n > 0 || v.draft.file))
        return tg_args_refuse(&app.args, "want --n or drafts, have both");
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    job j = { 0 };
    code = get_prompt(&app, &v, &j);
    tg_signals_install(); /* behind the prompt: reading from a terminal must end at one Ctrl-C */
    if (code == TG_ARGS_GO_ON) {
        tg_status status = tg_model_open(app.ctx, app.args.pos[0], &j.model);
        if (status == TG_OK) {
            status = open_sessions(&app, &v, &j);
        }
        if (status == TG_OK) tg_sampling_of_model(&app, j.model, &v.sampling);
        if (status != TG_OK) code = tg_app_failed(&app, app.ctx, status, TG_READING);
    }
    if (code == TG_ARGS_GO_ON) code = tg_draft_open(&app, &v.draft, j.session, &j.draft);
    if (code == TG_ARGS_GO_ON) code = get_ids(&app, &v, &j);
    if (code == TG_ARGS_GO_ON) code = set_logit_options(&app, &v, &j);
    if (code == TG_ARGS_GO_ON && v.best > 0) code = show_best(&app, &v, &j);
    if (code == TG_ARGS_GO_ON) code = keep_inside(&app, &v, &j);
    if (code == TG_ARGS_GO_ON)
        code = v.n > 1 ? generate_many(&app, &v, &j) : generate(&app, &v, &j);
    free_job(&j);
    return tg_app_end(&app, code);
}
