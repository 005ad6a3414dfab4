/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.c - the public calls that make a job. The blocking ones in tinygpt.c are these and a loop,
 * so arguments are checked here for both; engine/, training/ and load/ do the work.
 *
 * Every call has the same order: an object that is NULL has no context that could keep a message,
 * so TG_E_ARG is all there is to say; then ENTER sets the floating point environment and clears the
 * last message; then each pointer is wanted; then what the caller reads is made NULL, so that a
 * call that fails leaves no old handle in it. Objects are borrowed until the job is freed; strings,
 * tokens and options are copied. *job is the caller's to free, also when it has ended.
 */
#include "api/jobs.h"

#include "api/options.h"
#include "api/want.h"
#include "chat/chat.h"

/* The message of a job that has ended stays until another call has one, so there is no ENTER here,
 * which would clear it; a slice sets the floating point environment itself. */
tg_status tg_job_poll(tg_job *job, double budget_ms) {
    if (!job) return TG_E_ARG;
    if (job->status == TG_PENDING) tg_ctx_clear(&job->ctx->err);
    return tg_job_slice(job, budget_ms);
}

void tg_job_free(tg_job *job) {
    TG_OS_FP_SCOPE;
    tg_job_end(job);
}

/* There is a place for the job, and none in it as long as a check may refuse. */
#define WANT_JOB(ctx)                                                                              \
    do {                                                                                           \
        WANT(ctx, job);                                                                            \
        *job = NULL;                                                                               \
    } while (0)

/* ----------------------------------------------------------------- models, texts, files, machine
 */

tg_status tg_model_new_job(tg_context *ctx, const tg_model_config *config, uint64_t seed,
                           tg_model **out, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, config);
    WANT(ctx, out);
    WANT_JOB(ctx);
    *out = NULL;
    return tg_job_model_new(ctx, config, seed, out, job);
}

tg_status tg_model_new_vocabulary_job(tg_context *ctx, const tg_model_config *config,
                                      const tg_tokenizer *tokenizer, uint64_t seed, tg_model **out,
                                      tg_job **job) {
    ENTER(ctx);
    WANT(ctx, config);
    WANT(ctx, tokenizer);
    WANT(ctx, out);
    WANT_JOB(ctx);
    *out = NULL;
    return tg_job_model_new_vocabulary(ctx, config, tokenizer, seed, out, job);
}

/* A third-party file's weights keep their types, so the model writes and is not trained; or they
 * become floats. */
tg_status tg_model_open_job(tg_context *ctx, const char *path, tg_model **out, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, out);
    WANT_JOB(ctx);
    *out = NULL;
    return tg_job_model_open(ctx, path, false, out, job);
}

tg_status tg_model_open_floats_job(tg_context *ctx, const char *path, tg_model **out,
                                   tg_job **job) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, out);
    WANT_JOB(ctx);
    *out = NULL;
    return tg_job_model_open(ctx, path, true, out, job);
}

tg_status tg_model_save_job(tg_model *model, const char *path, tg_file_kind kind, tg_job **job) {
    if (!model) return TG_E_ARG;
    ENTER(model->ctx);
    WANT(model->ctx, path);
    WANT_JOB(model->ctx);
    return tg_job_model_save(model, path, kind, job);
}

tg_status tg_text_lint_job(tg_text *text, int32_t ctx_tokens, double val_fraction,
                           tg_lint_fn report, void *user, tg_job **job) {
    if (!text) return TG_E_ARG;
    ENTER(text->ctx);
    WANT(text->ctx, report);
    WANT_JOB(text->ctx);
    return tg_job_text_lint(text, ctx_tokens, val_fraction, report, user, job);
}

/* The vocabulary goes to write() in the last slice, as one text: a tokenizer.json. */
tg_status tg_tokenizer_train_job(tg_text *text, const char *kind, size_t n_tokens, tg_text_fn write,
                                 void *user, tg_job **job) {
    if (!text) return TG_E_ARG;
    ENTER(text->ctx);
    WANT(text->ctx, kind);
    WANT(text->ctx, write);
    WANT_JOB(text->ctx);
    return tg_job_tokenizer_train(text, kind, n_tokens, write, user, job);
}

tg_status tg_text_sha256_job(tg_text *text, uint8_t digest[32], tg_job **job) {
    if (!text) return TG_E_ARG;
    ENTER(text->ctx);
    WANT(text->ctx, digest);
    WANT_JOB(text->ctx);
    return tg_job_text_sha256(text, digest, job);
}

tg_status tg_stories_job(tg_context *ctx, uint64_t seed, uint64_t n_bytes, tg_text_fn write,
                         void *user, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, write);
    WANT_JOB(ctx);
    return tg_job_stories(ctx, seed, n_bytes, write, user, job);
}

tg_status tg_file_check_job(tg_context *ctx, const char *path, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT_JOB(ctx);
    return tg_job_file_check(ctx, path, job);
}

tg_status tg_context_rest_job(tg_context *ctx, tg_job **job) {
    ENTER(ctx);
    WANT_JOB(ctx);
    return tg_job_rest(ctx, job);
}

tg_status tg_model_convert_job(tg_context *ctx, const char *path_in, const char *path_out,
                               tg_file_kind kind, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, path_in);
    WANT(ctx, path_out);
    WANT_JOB(ctx);
    /* That goes through many files and a folder that is swapped, which src/convert does at one go.
     */
    if (kind == TG_FILE_FOLDER)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "conversion: want one file, have a folder, which only tg_model_convert "
                       "writes, and not in WebAssembly");
    return tg_job_file_convert(ctx, path_in, path_out, kind, job);
}

tg_status tg_model_eval_job(tg_context *ctx, tg_model *model, tg_text *text, double val_fraction,
                            int32_t eval_windows, double *loss, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, model);
    WANT(ctx, text);
    WANT(ctx, loss);
    WANT_JOB(ctx);
    return tg_job_model_eval(ctx, model, text, val_fraction, eval_windows, loss, job);
}

tg_status tg_check_kernels_job(tg_context *ctx, const char *filter, tg_check_fn report, void *user,
                               size_t *n_failed, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, n_failed);
    WANT_JOB(ctx);
    /* Ops are checked where the context computes, which on a GPU takes a bench of its own. */
    tg_check_options o;
    TG_TRY(tg_runtime_check_options(ctx, filter, report, user, &o));
    return tg_job_check_kernels(ctx, &o, n_failed, job);
}

tg_status tg_measure_peak_job(tg_context *ctx, double *gflops, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, gflops);
    WANT_JOB(ctx);
    return tg_job_measure_peak(ctx, gflops, job);
}

tg_status tg_measure_gpu_job(tg_context *ctx, double *bytes_per_s, double *gflops, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, bytes_per_s);
    WANT(ctx, gflops);
    WANT_JOB(ctx);
    /* false: software is not timed, since its figures would be taken for a card's. */
    return tg_job_measure_gpu(ctx, false, bytes_per_s, gflops, job);
}

/* -------------------------------------------------------------------------------------- trainers
 */

/* The options' ranges are checked in training/, since a resumed run's options come from a file and
 * not through here. */
tg_status tg_trainer_new_job(tg_context *ctx, tg_model *model, tg_text *text,
                             const tg_train_options *options, tg_trainer **out, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, model);
    WANT(ctx, text);
    WANT(ctx, out);
    WANT_JOB(ctx);
    *out = NULL;
    TG_OPTIONS_TAKE(&ctx->err, tg_train_options, options, own);
    return tg_job_trainer_new(ctx, model, text, &own, out, job);
}

/* The text may be NULL: then what depends on its length is 0. */
tg_status tg_forecast_run_job(tg_context *ctx, const tg_model_config *config, tg_text *text,
                              const tg_train_options *options, tg_forecast *out, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, config);
    WANT(ctx, options);
    WANT(ctx, out);
    WANT_JOB(ctx);
    TG_OPTIONS_TAKE(&ctx->err, tg_train_options, options, own);
    return tg_job_forecast(ctx, config, text, &own, NULL, out, job);
}

tg_status tg_trainer_open_job(tg_context *ctx, const char *path, tg_text *text, int64_t steps,
                              tg_trainer **out, tg_job **job) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, text);
    WANT(ctx, out);
    WANT_JOB(ctx);
    *out = NULL;
    tg_os_own(&ctx->err, path); /* the run goes on, and is saved where it was */
    return tg_job_trainer_open(ctx, path, text, steps, out, job);
}

tg_status tg_trainer_step_job(tg_trainer *trainer, tg_step_report *out, tg_job **job) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    WANT_JOB(trainer->ctx);
    return tg_job_trainer_step(trainer, out, job);
}

tg_status tg_trainer_eval_job(tg_trainer *trainer, double *loss, tg_job **job) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    WANT(trainer->ctx, loss);
    WANT_JOB(trainer->ctx);
    return tg_job_trainer_eval(trainer, loss, job);
}

/* best: the weights of the best validation so far, instead of those of now. */
static tg_status save_job(tg_trainer *trainer, const char *path, bool best, tg_job **job) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    WANT(trainer->ctx, path);
    WANT_JOB(trainer->ctx);
    return tg_job_trainer_save(trainer, path, best, job);
}

tg_status tg_trainer_save_job(tg_trainer *trainer, const char *path, tg_job **job) {
    return save_job(trainer, path, false, job);
}

tg_status tg_trainer_save_best_job(tg_trainer *trainer, const char *path, tg_job **job) {
    return save_job(trainer, path, true, job);
}

/* --------------------------------------------------------------------------- sessions and probes
 */

tg_status tg_session_eval_job(tg_session *session, const int32_t *tokens, size_t n, tg_job **job) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    if (n) WANT(session->ctx, tokens);
    WANT_JOB(session->ctx);
    return tg_job_session_eval(session, tokens, n, job);
}

tg_status tg_embedder_run_job(tg_embedder *embedder, const tg_embed_text *texts, size_t n,
                              float *out, tg_job **job) {
    if (!embedder) return TG_E_ARG;
    ENTER(embedder->ctx);
    WANT_JOB(embedder->ctx);
    if (n > 0) {
        WANT(embedder->ctx, texts);
        WANT(embedder->ctx, out);
    }
    for (size_t i = 0; i < n; i++)
        if (texts[i].n_bytes) WANT(embedder->ctx, texts[i].text);
    return tg_job_embedder_run(embedder, texts, n, out, job);
}

tg_status tg_session_slide_job(tg_session *session, tg_job **job) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    WANT_JOB(session->ctx);
    return tg_job_session_slide(session, job);
}

/*
 * Takes the caller's options, of whatever version of the header, into *out, which owns copies of
 * the structures and of ends; prompt, ids and the template's text stay borrowed. Checked is what
 * belongs to the call: tokens are checked by the session, and sampling by the sampler, as they are
 * elsewhere.
 */
tg_status tg_job_generating(tg_session *session, const tg_generation *generation,
                            tg_generating *out) {
    tg_context *ctx = session->ctx;
    WANT(ctx, generation);
    TG_OPTIONS_TAKE(&ctx->err, tg_generation, generation, own);
    TG_OPTIONS_TAKE(&ctx->err, tg_sample_options, own.sample, sample);
    const tg_generation *const what = &own;
    if (what->prompt_bytes && !what->ids) WANT(ctx, what->prompt);
    if (what->n_ends) WANT(ctx, what->ends);
    if ((what->ids && (what->n_ids == 0 || what->n_ids > SIZE_MAX / sizeof *what->ids)) ||
        what->n_ends > TG_ENDS_MAX || (unsigned)what->full > TG_FULL_STOP)
        return tg_fail(&ctx->err, TG_E_ARG,
                       "generation: want ids, at most %d ends, and full of 0..%d, have %zu, %zu "
                       "and %d",
                       TG_ENDS_MAX, TG_FULL_STOP, what->n_ids, what->n_ends, (int)what->full);
    /* A draft guesses ids for the other model to check: the two must mean the same by an id. */
    const tg_session *draft = what->draft_session;
    if (what->draft > TG_DRAFT_MAX ||
        (draft && (draft == session || draft->ctx != ctx ||
                   draft->model->layout.config.vocab != session->model->layout.config.vocab)))
        return tg_fail(&ctx->err, TG_E_ARG,
                       "draft: want at most %d tokens, and another session of the same context "
                       "with the same vocabulary",
                       TG_DRAFT_MAX);
    if (draft) TG_TRY(tg_session_want_idle(draft));
    *out = (tg_generating) { .session = session, .o = *what, .sample = sample };
    for (size_t i = 0; i < what->n_ends; i++) out->ends[i] = what->ends[i];
    /* A text of a template has braces, a name of one has none; without either it is the file's. */
    const char *const name = what->chat_template;
    if (!name)
        out->o.chat_template = session->model->tokenizer.template_text;
    else if (!strchr(name, '{') && !(out->o.chat_template = tg_chat_text_named(name)))
        return tg_fail(&ctx->err, TG_E_ARG,
                       "generation: want the name or text of a template, have \"%.60s\"", name);
    return TG_OK;
}

tg_status tg_session_continue_job(tg_session *session, const tg_generation *generation,
                                  tg_generate_stats *stats, tg_job **job) {
    if (!session) return TG_E_ARG;
    tg_generating g;
    ENTER(session->ctx);
    WANT(session->ctx, generation);
    WANT_JOB(session->ctx);
    TG_TRY(tg_job_generating(session, generation, &g));
    return tg_job_session_generate(&g, stats, job);
}

/* The donor's activations are what edits copy from; it may be NULL if no edit does. */
tg_status tg_probe_run_job(tg_probe *probe, const int32_t *tokens, const tg_edit *edits,
                           size_t n_edits, const tg_probe *donor, tg_job **job) {
    if (!probe) return TG_E_ARG;
    ENTER(probe->ctx);
    WANT(probe->ctx, tokens);
    if (n_edits) WANT(probe->ctx, edits);
    WANT_JOB(probe->ctx);
    return tg_job_probe_run(probe, tokens, edits, n_edits, donor, job);
}
