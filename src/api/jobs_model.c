/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs_model.c - jobs on models, texts, files and the machine. See runtime/job.h and jobs.h.
 *
 * Each is a struct that begins with a tg_job, and its work and end. What a struct holds is what the
 * job needs between two slices, and what end gives back.
 *
 *     tg_job_X      checks what jobs.c does not, and copies what the caller may free
 *     work_X        the go_on function of the room that does the work, once a slice
 *     end_X         once, from whatever stage: done, failed, or abandoned before the first slice
 *
 * A job is pending from tg_job_make on, and all of its struct is zeros. So a tg_job_X that fails
 * half-way calls tg_job_end, which runs end_X: end_X takes zeros for what is not there yet. A model
 * goes to the caller's place in the last slice; before that it is the job's, so that abandoning the
 * job frees it.
 *
 * Texts and models are borrowed until the job ends; jobs.c says which arguments are. Jobs of
 * trainers, sessions and probes, which must have one job at a time, are in jobs_run.c.
 */
#include "api/jobs.h"
#include "base/time.h"
#include "convert/convert.h"
#include "inspect/inspect.h"
#include "tok/learn/learn.h"
#include "training/data/stories.h"

/* Of jobs that hold nothing. */
static void end_nothing(tg_job *job) { (void)job; }

/* ---------------------------------------------------------------------------------------- models
 */

typedef struct new_job {
    tg_job job;
    tg_model_config config;
    tg_keys *keys; /* until they are the model's; NULL: tokens are bytes */
    uint64_t seed;
    tg_model *model, **out;
    tg_filling filling;
} new_job;

/* In three steps, the last two of which end at a deadline: memory, zeros, numbers. Opening a file
 * needs the first alone, so it is a call of its own. tg_weights_take has the keys also where it
 * fails, so they are given up before. */
static tg_status work_new(tg_job *job, double deadline_ms) {
    new_job *j = (new_job *)job;
    if (!j->model) {
        tg_keys *keys = j->keys;
        j->keys = NULL;
        TG_TRY(tg_weights_take(job->ctx, &j->config, keys, &j->model));
    }
    TG_TRY(tg_block_clear(&j->model->block, deadline_ms));
    TG_TRY(tg_filling_go_on(&j->filling, j->model, j->seed, deadline_ms));
    *j->out = j->model;
    j->model = NULL;
    return TG_OK;
}

/* What was handed over is NULL by now: keys that are the model's, a model that is the caller's. */
static void end_new(tg_job *job) {
    new_job *j = (new_job *)job;
    tg_keys_free(&job->ctx->err, j->keys);
    tg_weights_free(j->model);
}

tg_status tg_job_model_new(tg_context *ctx, const tg_model_config *config, uint64_t seed,
                           tg_model **out, tg_job **job) {
    return tg_job_model_new_vocabulary(ctx, config, NULL, seed, out, job);
}

/* vocab 0 means as many as the tokenizer has. More of them are fine, as of a model whose matrix is
 * padded; fewer would leave tokens without a row. */
static tg_status take_vocabulary(tg_context *ctx, const tg_tokenizer *t, tg_model_config *c) {
    const size_t n = tg_tok_count(t->tok);
    if (c->vocab == 0 && n <= INT32_MAX) c->vocab = (int32_t)n;
    if ((size_t)c->vocab >= n) return TG_OK;
    return tg_fail(&ctx->err, TG_E_RANGE, "model: vocab: want %zu, as the tokenizer has, have %d",
                   n, (int)c->vocab);
}

/* A tokenizer of a model has its keys there; one of bytes has none. Keys are copied, so that model
 * and tokenizer may be freed in any order. A family whose tokens are bytes takes no other
 * vocabulary. */
tg_status tg_job_model_new_vocabulary(tg_context *ctx, const tg_model_config *config,
                                      const tg_tokenizer *t, uint64_t seed, tg_model **out,
                                      tg_job **job) {
    static const tg_job_kind kind = { "new model", sizeof(new_job), NULL, work_new, end_new };
    tg_model_config whole = *config;
    if (t) TG_TRY(take_vocabulary(ctx, t, &whole));
    TG_TRY(tg_config_complete(&ctx->err, "model", &whole));
    if (t && t->keys && tg_family_of(&whole)->bytes)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "model: want a family with a vocabulary of its own, have %s, whose tokens "
                       "are bytes",
                       whole.family);
    new_job *j = tg_job_make(ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->config = whole;
    if (t && t->keys) {
        const tg_buf *b = &t->keys->bytes;
        const tg_status s = tg_keys_of_bytes(&ctx->err, t->keys->g.path, (const uint8_t *)b->data,
                                             b->length, &j->keys);
        if (s != TG_OK) {
            tg_job_end(&j->job);
            return s;
        }
    }
    j->seed = seed;
    j->out = out;
    *job = &j->job;
    return TG_OK;
}

/* floats is the caller's wish for a third-party file: to have its weights as one flat array that
 * can be trained, in place of packed ones. */
typedef struct open_job {
    tg_job job; /* copy: the path */
    tg_model **out;
    tg_model_opening opening;
} open_job;

static tg_status work_open(tg_job *job, double deadline_ms) {
    open_job *j = (open_job *)job;
    return tg_model_opening_go_on(&j->opening, job->ctx, job->copy, deadline_ms, j->out);
}

static void end_open(tg_job *job) { tg_model_opening_deinit(&((open_job *)job)->opening); }

tg_status tg_job_model_open(tg_context *ctx, const char *path, bool floats, tg_model **out,
                            tg_job **job) {
    static const tg_job_kind kind = { "opening of a model", sizeof(open_job), NULL, work_open,
                                      end_open };
    open_job *j = tg_job_make(ctx, &kind, path, strlen(path) + 1);
    if (!j) return TG_E_MEMORY;
    j->out = out;
    j->opening.wants_floats = floats;
    *job = &j->job;
    return TG_OK;
}

typedef struct save_job {
    tg_job job; /* copy: the path */
    tg_model *model;
    tg_file_kind kind;
    tg_flat_source source;
    tg_saving *saving; /* NULL: not begun */
} save_job;

/* Weights that a GPU has the newer ones of come down first. j->source is read until the end of the
 * save, so it lies in the job and not on the stack. */
static tg_status work_save(tg_job *job, double deadline_ms) {
    save_job *j = (save_job *)job;
    if (!j->saving) {
        TG_TRY(tg_weights_fetch(j->model));
        j->source = (tg_flat_source) { &j->model->layout, { j->model->weights }, j->model->keys };
        const tg_weights weights = tg_flat_weights(&j->source);
        TG_TRY(tg_weights_saving(j->model, job->copy, j->kind, &weights, &j->saving));
    }
    return tg_saving_go_on(j->saving, deadline_ms);
}

static void end_save(tg_job *job) {
    save_job *j = (save_job *)job;
    tg_saving_free(j->saving);
    j->model->n_saves--;
}

/* From here on the trainer waits, so that weights which are steady now stay so: tg_train_want_free
 * refuses steps while n_saves is above 0. It is a count, as several saves may be pending; it rises
 * where nothing can fail any more, and end_save takes it back. */
tg_status tg_job_model_save(tg_model *model, const char *path, tg_file_kind file_kind,
                            tg_job **job) {
    static const tg_job_kind kind = { "save of a model", sizeof(save_job), NULL, work_save,
                                      end_save };
    TG_TRY(tg_weights_want_floats(model, "save"));
    TG_TRY(tg_weights_want_steady(model));
    save_job *j = tg_job_make(model->ctx, &kind, path, strlen(path) + 1);
    if (!j) return TG_E_MEMORY;
    model->n_saves++;
    j->model = model;
    j->kind = file_kind;
    *job = &j->job;
    return TG_OK;
}

/* --------------------------------------------------------------------------------- texts and files
 */

/* report is called from within slices, on the thread that polls. */
typedef struct lint_job {
    tg_job job;
    tg_linting *linting;
} lint_job;

static tg_status work_lint(tg_job *job, double deadline_ms) {
    return tg_linting_go_on(((lint_job *)job)->linting, deadline_ms);
}

static void end_lint(tg_job *job) { tg_linting_free(((lint_job *)job)->linting); }

tg_status tg_job_text_lint(tg_text *text, int32_t ctx_tokens, double val_fraction,
                           tg_lint_fn report, void *user, tg_job **job) {
    static const tg_job_kind kind = { "lint", sizeof(lint_job), NULL, work_lint, end_lint };
    lint_job *j = tg_job_make(text->ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    const tg_status s = tg_linting_new(text, ctx_tokens, val_fraction, report, user, &j->linting);
    if (s == TG_OK)
        *job = &j->job;
    else
        tg_job_end(&j->job);
    return s;
}

typedef struct learn_job {
    tg_job job;
    tg_text *text;
    tg_text_fn write;
    void *user;
    tg_learning *learning;
    uint64_t done; /* bytes that were fed */
    char *piece;   /* [LEARN_PIECE] */
} learn_job;

/* 256 KiB, at the end of each of which the clock is looked at. */
enum { LEARN_PIECE = 1 << 18 };

/* Once all is fed this is TG_OK at once, so that each slice of the second half comes through here.
 */
static tg_status feed_learning(learn_job *j, double deadline_ms) {
    while (j->done < j->text->n_bytes) {
        const uint64_t left = j->text->n_bytes - j->done;
        const size_t n = left < LEARN_PIECE ? (size_t)left : LEARN_PIECE;
        TG_TRY(tg_text_read(j->text, j->done, j->piece, n));
        TG_TRY(tg_learning_feed(j->learning, j->piece, n, n == left));
        j->done += n;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

/* The text is fed, then a vocabulary is made of it, then that is handed over as one text, a
 * tokenizer.json, in the last slice. */
static tg_status work_learn(tg_job *job, double deadline_ms) {
    learn_job *j = (learn_job *)job;
    TG_TRY(feed_learning(j, deadline_ms));
    TG_TRY(tg_learning_go_on(j->learning, j->text->name, deadline_ms));
    tg_buf file;
    tg_buf_init(&file, &job->ctx->err.mem);
    tg_status s = tg_learning_put_json(j->learning, &file);
    if (s == TG_OK && j->write(j->user, tg_buf_text(&file), file.length))
        s = tg_stopped(&job->ctx->err, "a vocabulary");
    tg_buf_deinit(&file);
    return s;
}

/* The piece is asked for before there is anything to learn, so it may be missing here. */
static void end_learn(tg_job *job) {
    learn_job *j = (learn_job *)job;
    tg_learning_free(j->learning);
    tg_free(&job->ctx->err.mem, j->piece, j->piece ? LEARN_PIECE : 0);
}

tg_status tg_job_tokenizer_train(tg_text *text, const char *name, size_t n_tokens, tg_text_fn write,
                                 void *user, tg_job **job) {
    static const tg_job_kind kind = { "training of a vocabulary", sizeof(learn_job), NULL,
                                      work_learn, end_learn };
    tg_ctx *const err = &text->ctx->err;
    if (text->n_bytes == 0)
        return tg_fail(err, TG_E_DATA, "%s: want a text to train on, have 0 bytes", text->name);
    learn_job *j = tg_job_make(text->ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->text = text;
    j->write = write;
    j->user = user;
    j->piece = tg_alloc(&err->mem, LEARN_PIECE);
    const tg_status s = j->piece ? tg_learning_new(err, name, n_tokens, &j->learning)
                                 : tg_fail_memory(err, "training of a vocabulary", LEARN_PIECE);
    if (s == TG_OK)
        *job = &j->job;
    else
        tg_job_end(&j->job);
    return s;
}

typedef struct sha256_job {
    tg_job job;
    tg_text *text;
    uint8_t *digest; /* [32] */
    tg_text_hashing hashing;
} sha256_job;

static tg_status work_sha256(tg_job *job, double deadline_ms) {
    sha256_job *j = (sha256_job *)job;
    return tg_text_hashing_go_on(&j->hashing, j->text, deadline_ms, j->digest);
}

/* digest is the caller's, written in the last slice; nothing is on the heap but the job. */
tg_status tg_job_text_sha256(tg_text *text, uint8_t digest[TG_SHA256_BYTES], tg_job **job) {
    static const tg_job_kind kind = { "hash of a text", sizeof(sha256_job), NULL, work_sha256,
                                      end_nothing };
    sha256_job *j = tg_job_make(text->ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->text = text;
    j->digest = digest;
    *job = &j->job;
    return TG_OK;
}

typedef struct stories_job {
    tg_job job;
    tg_stories_sink sink;
    tg_storyteller *teller;
} stories_job;

/* tg_stories has the teller on its stack, which takes 100 KiB of it; a job keeps one on the heap,
 * and knows no more of it than its size. */
static tg_status work_stories(tg_job *job, double deadline_ms) {
    return tg_storyteller_go_on(((stories_job *)job)->teller, deadline_ms);
}

static void end_stories(tg_job *job) {
    tg_free(&job->ctx->err.mem, ((stories_job *)job)->teller, tg_storyteller_bytes());
}

/* The grammar is part of the library where it is built in; E_UNSUPPORTED says that it is not. The
 * sink lies in the job, since the teller keeps its address from slice to slice. */
tg_status tg_job_stories(tg_context *ctx, uint64_t seed, uint64_t n_bytes, tg_text_fn write,
                         void *user, tg_job **job) {
    static const tg_job_kind kind = { "stories", sizeof(stories_job), NULL, work_stories,
                                      end_stories };
    stories_job *j = tg_job_make(ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->sink = (tg_stories_sink) { write, user };
    j->teller = tg_alloc(&ctx->err.mem, tg_storyteller_bytes());
    if (!j->teller) {
        tg_job_end(&j->job);
        return tg_fail_memory(&ctx->err, "teller of stories", tg_storyteller_bytes());
    }
    const tg_status status = tg_storyteller_begin(j->teller, tg_stories_grammar(), seed, n_bytes,
                                                  tg_stories_pass, &j->sink);
    if (status != TG_OK) {
        tg_job_end(&j->job);
        return tg_fail(&ctx->err, status, "stories: want the grammar of data/stories.txt, have %s",
                       status == TG_E_UNSUPPORTED ? "none" : "another text");
    }
    *job = &j->job;
    return TG_OK;
}

typedef struct check_job {
    tg_job job; /* copy: the path */
    tg_weights_checking checking;
} check_job;

/* Messages of a check name the path, whatever has found the fault. */
static tg_status work_check(tg_job *job, double deadline_ms) {
    tg_ctx *ctx = &job->ctx->err;
    const tg_status s =
        tg_weights_checking_go_on(&((check_job *)job)->checking, ctx, job->copy, deadline_ms);
    return s == TG_PENDING ? s : tg_fail_named(ctx, job->copy, s);
}

static void end_check(tg_job *job) { tg_weights_checking_deinit(&((check_job *)job)->checking); }

tg_status tg_job_file_check(tg_context *ctx, const char *path, tg_job **job) {
    static const tg_job_kind kind = { "check of a file", sizeof(check_job), NULL, work_check,
                                      end_check };
    check_job *j = tg_job_make(ctx, &kind, path, strlen(path) + 1);
    if (!j) return TG_E_MEMORY;
    *job = &j->job;
    return TG_OK;
}

typedef struct convert_job {
    tg_job job; /* copy: both paths, one behind the other */
    tg_file_kind kind;
    tg_converting converting;
} convert_job;

/* Between forms of the trained models that io/ reads and writes: no model is made of them. */
static tg_status work_convert(tg_job *job, double deadline_ms) {
    convert_job *j = (convert_job *)job;
    const char *in = job->copy, *out = in + strlen(in) + 1;
    return tg_converting_go_on(&j->converting, &job->ctx->err, in, out, j->kind, deadline_ms);
}

static void end_convert(tg_job *job) { tg_converting_deinit(&((convert_job *)job)->converting); }

typedef struct export_job {
    tg_job job; /* copy: both paths, one behind the other */
    tg_exporting exporting;
} export_job;

/* To GGUF, its weights as floats: that form is for convert/, which knows its names and metadata. */
static tg_status work_export(tg_job *job, double deadline_ms) {
    const char *in = job->copy, *out = in + strlen(in) + 1;
    return tg_exporting_go_on(&((export_job *)job)->exporting, job->ctx, in, out, deadline_ms);
}

static void end_export(tg_job *job) { tg_exporting_deinit(&((export_job *)job)->exporting); }

/* A job has one copy of bytes, and this one has two strings: they lie in it one behind the other,
 * each with its zero. Two kinds have one name, as it is one thing to the caller. */
tg_status tg_job_file_convert(tg_context *ctx, const char *path_in, const char *path_out,
                              tg_file_kind file_kind, tg_job **job) {
    static const tg_job_kind plain = { "conversion of a file", sizeof(convert_job), NULL,
                                       work_convert, end_convert };
    static const tg_job_kind to_gguf = { "conversion of a file", sizeof(export_job), NULL,
                                         work_export, end_export };
    const bool gguf = file_kind == TG_FILE_GGUF;
    const size_t n_in = strlen(path_in) + 1, n_out = strlen(path_out) + 1;
    char *paths = tg_alloc(&ctx->err.mem, n_in + n_out);
    if (!paths) return tg_fail_memory(&ctx->err, "paths", n_in + n_out);
    memcpy(paths, path_in, n_in);
    memcpy(paths + n_in, path_out, n_out);
    tg_job *made = tg_job_make(ctx, gguf ? &to_gguf : &plain, paths, n_in + n_out);
    tg_free(&ctx->err.mem, paths, n_in + n_out);
    if (!made) return TG_E_MEMORY;
    if (!gguf) ((convert_job *)made)->kind = file_kind;
    *job = made;
    return TG_OK;
}

/* ------------------------------------------------------------------------- evaluation and forecast
 */

typedef struct eval_job {
    tg_job job;
    double *loss;
    tg_model_evaluating evaluating;
} eval_job;

/* A trainer of the same model may step between two slices. While it is in the middle of an update
 * the job is not ready, and goes on behind it: then the loss is a mean over moments of the run. */
static tg_status ready_eval(tg_job *job) {
    return tg_weights_want_steady(((eval_job *)job)->evaluating.model);
}

static tg_status work_eval(tg_job *job, double deadline_ms) {
    eval_job *j = (eval_job *)job;
    return tg_model_evaluating_go_on(&j->evaluating, deadline_ms, j->loss);
}

static void end_eval(tg_job *job) { tg_model_evaluating_deinit(&((eval_job *)job)->evaluating); }

/* Steady at the call, as a job that could not even begin would only be polled in vain; the same is
 * asked again before each slice. What begin refuses may have memory to give back: hence tg_job_end.
 */
tg_status tg_job_model_eval(tg_context *ctx, tg_model *model, tg_text *text, double val_fraction,
                            int32_t windows, double *loss, tg_job **job) {
    static const tg_job_kind kind = { "evaluation of a model", sizeof(eval_job), ready_eval,
                                      work_eval, end_eval };
    TG_TRY(tg_weights_want_steady(model));
    eval_job *j = tg_job_make(ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->loss = loss;
    const tg_status s =
        tg_model_evaluating_begin(&j->evaluating, ctx, model, text, val_fraction, windows);
    if (s == TG_OK)
        *job = &j->job;
    else
        tg_job_end(&j->job);
    return s;
}

typedef struct forecast_job {
    tg_job job;
    tg_model_config config;
    tg_text *text;
    tg_train_options options;
    const tg_trainer *trainer;
    tg_forecast *out;
    tg_forecasting forecasting;
} forecast_job;

/* Nothing to give back: the place is a few numbers, and what is made of plans goes within a slice.
 */
static tg_status work_forecast(tg_job *job, double deadline_ms) {
    forecast_job *j = (forecast_job *)job;
    return tg_forecasting_go_on(&j->forecasting, job->ctx, &j->config, j->text, &j->options,
                                j->trainer, deadline_ms, j->out);
}

/* Sizes and options are completed in copies, as a trainer would complete them, so that the forecast
 * is of the run that would be made. t is borrowed, and so are its plans. */
tg_status tg_job_forecast(tg_context *ctx, const tg_model_config *config, tg_text *text,
                          const tg_train_options *o, const tg_trainer *t, tg_forecast *out,
                          tg_job **job) {
    static const tg_job_kind kind = { "forecast", sizeof(forecast_job), NULL, work_forecast,
                                      end_nothing };
    tg_model_config whole = *config;
    TG_TRY(tg_config_complete(&ctx->err, "model", &whole));
    const tg_train_options options = tg_train_options_of(o, &whole);
    TG_TRY(tg_train_options_check(&ctx->err, &options));
    forecast_job *j = tg_job_make(ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->config = whole;
    j->text = text;
    j->options = options;
    j->trainer = t;
    j->out = out;
    *job = &j->job;
    return TG_OK;
}

/* ---------------------------------------------------------------------------------------- machine
 */

typedef struct kernels_job {
    tg_job job; /* copy: the filter, if there is one */
    tg_check_options options;
    tg_check_place at;
    size_t n_run, *n_failed;
} kernels_job;

/* at is the place, a case of an op; n_failed counts in the caller's memory as the job goes on. */
static tg_status work_kernels(tg_job *job, double deadline_ms) {
    kernels_job *j = (kernels_job *)job;
    return tg_check_ops_go_on(&job->ctx->err, &j->options, &j->at, deadline_ms, &j->n_run,
                              j->n_failed);
}

/* What is compiled stays with the context, for the next check. */
static void end_kernels(tg_job *job) { tg_runtime_check_end(job->ctx); }

/* Options are copied with their pointers, but the filter is the caller's string: the job has its
 * own. */
tg_status tg_job_check_kernels(tg_context *ctx, const tg_check_options *o, size_t *n_failed,
                               tg_job **job) {
    static const tg_job_kind kind = { "check of kernels", sizeof(kernels_job), NULL, work_kernels,
                                      end_kernels };
    kernels_job *j = tg_job_make(ctx, &kind, o->filter, o->filter ? strlen(o->filter) + 1 : 0);
    if (!j) return TG_E_MEMORY;
    *n_failed = 0;
    j->options = *o;
    j->options.filter = j->job.copy;
    j->n_failed = n_failed;
    *job = &j->job;
    return TG_OK;
}

/* The backend keeps its own place, so the job has nothing but its head. */
static tg_status work_rest(tg_job *job, double deadline_ms) {
    (void)deadline_ms;
    return tg_backend_rest(job->ctx->backend);
}

tg_status tg_job_rest(tg_context *ctx, tg_job **job) {
    static const tg_job_kind kind = { "rest of a GPU", sizeof(tg_job), NULL, work_rest,
                                      end_nothing };
    *job = tg_job_make(ctx, &kind, NULL, 0);
    return *job ? TG_OK : TG_E_MEMORY;
}

/* Needs no backend but the CPU's workers. A slice is a round at least, so the deadline is kept by
 * whole rounds (tg_peak_measuring in runtime.h). */
typedef struct peak_job {
    tg_job job;
    double *gflops;
    tg_peak_measuring measuring;
} peak_job;

static tg_status work_peak(tg_job *job, double deadline_ms) {
    peak_job *j = (peak_job *)job;
    return tg_peak_measuring_go_on(&j->measuring, job->ctx, deadline_ms, j->gflops);
}

tg_status tg_job_measure_peak(tg_context *ctx, double *gflops, tg_job **job) {
    static const tg_job_kind kind = { "measurement of the peak", sizeof(peak_job), NULL, work_peak,
                                      end_nothing };
    peak_job *j = tg_job_make(ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->gflops = gflops;
    *job = &j->job;
    return TG_OK;
}
