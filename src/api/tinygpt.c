/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tinygpt.c - the public calls: arguments are checked, the last error is cleared, the rooms below
 * do the work. Nothing else happens here.
 *
 * Invariant: whatever the caller passes, a call ends in a status and a message. Below this file
 * pointers are trusted; so every pointer that can be refused is refused here, by the name that it
 * has in tinygpt.h. Two kinds of calls refuse nothing: *_free, which take NULL as free() does, and
 * those that only look something up in an object, which have no status to refuse with: of NULL
 * there are zeros and empty strings.
 *
 * Calls are of four forms here:
 *
 *     tg_X_job, then tg_job_finish    long ones: jobs.c checks, and the job runs in a single slice
 *     ENTER, WANT .., a call below    short ones, and those that a page has no job for
 *     ENTER of the object's context   calls on an object: NULL is TG_E_ARG without a message
 *     no ENTER                        questions: the last message stays, so that a program may ask
 *                                     while it reports a failure; free, which cannot fail
 *
 * What computes without ENTER sets the floating-point environment itself (TG_OS_FP_SCOPE). A page
 * cannot wait for its GPU, so a blocking call that would have to is an error (runtime/job.c).
 */
#include "api/jobs.h"
#include "api/options.h"
#include "api/tokens.h"
#include "api/want.h"
#include "backend/cpu/check.h"
#include "base/math.h"
#include "engine/session.h"
#include "inspect/inspect.h"
#include "inspect/probe.h"
#include "io/detect.h"
#include "io/run/tools.h"
#include "load/model_file.h"
#include "simd/cpu.h"
#include "tok/learn/learn.h"
#include "training/data/stories.h"
#include "training/schedule.h"
#include "training/train.h"

/* Models know the context that they came from, so calls on a model take no context; NULL goes on as
 * NULL, for ENTER to refuse. */
static tg_context *context_of(const tg_model *m) { return m ? m->ctx : NULL; }

const char *tg_version(void) { return TG_VERSION_TEXT; }

/* ---------------------------------------------------------------------------------------- context
 */

/* No ENTER: there is no context yet. On failure *out may still be one, which holds the message. */
tg_status tg_context_new(const tg_context_options *options, tg_context **out) {
    tg_context_options own = tg_context_options_default();
    if (!out) return TG_E_ARG;
    TG_OS_FP_SCOPE;
    /* Options that cannot be read say nothing of where the message goes either. */
    const bool readable = tg_options_take(NULL, "tg_context_options", options, &own) == TG_OK;
    TG_TRY(tg_runtime_new(&own, out));
    return readable ? tg_runtime_open(*out, &own)
                    : tg_options_take(&(*out)->err, "tg_context_options", options, &own);
}

/* Models, texts and sessions have pointers to it, so it goes last. */
void tg_context_free(tg_context *ctx) { tg_runtime_free(ctx); }

/* Only memory can be the reason that there is no context to ask. */
const char *tg_context_error(const tg_context *ctx) {
    return ctx ? ctx->err.message : "no context: there was no memory for one";
}
const char *tg_context_banner(const tg_context *ctx) { return ctx ? ctx->banner : ""; }
tg_status tg_context_gpu(tg_context *ctx, tg_gpu_facts *out) {
    ENTER(ctx);
    WANT(ctx, out);
    return tg_runtime_gpu(ctx, out);
}

/* The pattern of all blocking calls: a job of its own, in one slice without a deadline, then freed.
 * If the job is refused there is none, and the message is there. */
tg_status tg_context_rest(tg_context *ctx) {
    tg_job *job;
    TG_TRY(tg_context_rest_job(ctx, &job));
    return tg_job_finish(job);
}

unsigned tg_context_threads(const tg_context *ctx) { return ctx ? ctx->threads : 0; }

/* A constant of the library, as all names of tables are. */
const char *tg_context_isa(const tg_context *ctx) {
    size_t n;
    return ctx ? tg_isa_list(&n)[ctx->isa].name : "";
}

/* ------------------------------------------------------------------------------------------ model
 */

/* Before there is a context, so that a program can choose a size: the errors of a configuration
 * have no place to go, and the answer is 0. */
uint64_t tg_param_count(const tg_model_config *config) {
    tg_model_config whole = config ? *config : (tg_model_config) { 0 };
    return tg_config_complete(NULL, "", &whole) == TG_OK ? tg_config_params(&whole) : 0;
}

tg_status tg_model_new(tg_context *ctx, const tg_model_config *config, uint64_t seed,
                       tg_model **out) {
    tg_job *job;
    TG_TRY(tg_model_new_job(ctx, config, seed, out, &job));
    return tg_job_finish(job);
}

/* What fails for lack of memory does so far below, where nobody knows of a path; so it is named
 * here. */
tg_status tg_model_open(tg_context *ctx, const char *path, tg_model **out) {
    tg_job *job;
    tg_status s = tg_model_open_job(ctx, path, out, &job);
    if (s == TG_OK) s = tg_job_finish(job);
    return s == TG_E_MEMORY ? tg_fail_named(&ctx->err, path, s) : s;
}

tg_status tg_model_open_floats(tg_context *ctx, const char *path, tg_model **out) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, out);
    *out = NULL;
    tg_job *job;
    tg_status s = tg_job_model_open(ctx, path, true, out, &job);
    if (s == TG_OK) s = tg_job_finish(job);
    return s == TG_E_MEMORY ? tg_fail_named(&ctx->err, path, s) : s;
}

tg_status tg_model_new_vocabulary(tg_context *ctx, const tg_model_config *config,
                                  const tg_tokenizer *tokenizer, uint64_t seed, tg_model **out) {
    tg_job *job;
    TG_TRY(tg_model_new_vocabulary_job(ctx, config, tokenizer, seed, out, &job));
    return tg_job_finish(job);
}

void tg_model_free(tg_model *model) { tg_weights_free(model); }

/* A snapshot by value, strings excepted: those are constants of the library. Asking leaves the last
 * error alone, so a program may look at a model while it reports a failure. */
tg_status tg_model_get_info(const tg_model *m, tg_model_info *out) {
    if (!m || !out) return TG_E_ARG;
    *out = (tg_model_info) {
        .family = m->layout.config.family,
        .config = m->layout.config,
        .params = m->n_params,
        .weight_bytes = m->weight_bytes,
        .format = m->format,
        .dtype = m->dtype,
        .step = m->step,
        .loss = m->loss,
        .val_loss = m->val_loss,
        .has_moments = m->has_moments,
        .used_prev = m->used_prev,
    };
    return TG_OK;
}

tg_status tg_model_save(tg_model *model, const char *path, tg_file_kind kind) {
    tg_job *job;
    TG_TRY(tg_model_save_job(model, path, kind, &job));
    return tg_job_finish(job);
}

/* A name that was mistyped shares its beginning and its end with the right one. The nearest one is
 * told if it shares more than half of what was asked for; else it would only mislead. */
static tg_status no_such_tensor(const tg_model *m, const char *name) {
    const size_t n = strlen(name);
    size_t best = 0;
    const char *nearest = "";
    for (size_t i = 0; i < m->layout.n_tensors; i++) {
        const char *other = m->layout.tensors[i].name;
        const size_t k = strlen(other), room = n < k ? n : k;
        size_t same = 0, tail = 0;
        while (same < room && name[same] == other[same]) same++;
        while (tail < room - same && name[n - 1 - tail] == other[k - 1 - tail]) tail++;
        if (same + tail > best) best = same + tail, nearest = other;
    }
    return tg_fail(&m->ctx->err, TG_E_ARG,
                   "tensor: want one of the %zu of tg_model_tensor_at, have %s%s%s",
                   m->layout.n_tensors, name, 2 * best > n ? "; the nearest is " : "",
                   2 * best > n ? nearest : "");
}

/* Third-party models have no tensors here: their weights are no flat array of floats. */
const char *tg_model_tensor_at(const tg_model *model, size_t i, uint64_t *n_elems) {
    if (!model || i >= model->layout.n_tensors) return NULL;
    const tg_tensor_spec *t = &model->layout.tensors[i];
    if (n_elems) *n_elems = (uint64_t)t->rows * t->cols;
    return t->name;
}

/* The exact size is wanted rather than room enough: a caller who counts otherwise has another shape
 * in mind, and would read the elements in the wrong places. Where a GPU has the newer weights they
 * come down first; in the middle of an update there are none that belong together. */
tg_status tg_model_tensor(const tg_model *model, const char *name, float *out, size_t n_elems) {
    tg_context *ctx = context_of(model);
    ENTER(ctx);
    WANT(ctx, name);
    WANT(ctx, out);
    TG_TRY(tg_weights_want_floats(model, "tensor"));
    TG_TRY(tg_weights_want_steady(model));
    const tg_tensor_spec *t = tg_weights_find(model, name);
    if (!t) return no_such_tensor(model, name);
    if (n_elems != t->rows * t->cols)
        return tg_fail(&ctx->err, TG_E_ARG, "tensor %s: want room for %zu elements, have %zu", name,
                       t->rows * t->cols, n_elems);
    TG_TRY(tg_weights_fetch(model));
    tg_weights_copy_out(t, model->weights, 0, n_elems, out);
    return TG_OK;
}

/* ------------------------------------------------------------------------------------------ texts
 */

tg_status tg_text_open(tg_context *ctx, const char *path, tg_text **out) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, out);
    return tg_text_new_file(ctx, path, out);
}

tg_status tg_text_from_memory(tg_context *ctx, const char *bytes, size_t n_bytes, tg_text **out) {
    ENTER(ctx);
    WANT(ctx, out);
    if (n_bytes) WANT(ctx, bytes);
    return tg_text_new_memory(ctx, bytes, n_bytes, out);
}

/* more is taken over, and freed with text. Rows of a program cannot be joined: they have no bytes.
 */
tg_status tg_text_join(tg_text *text, tg_text *more) {
    if (!text) return TG_E_ARG;
    ENTER(text->ctx);
    WANT(text->ctx, more);
    if (more == text || more->train_row || text->train_row || more->n_mix || text->n_mix)
        return tg_fail(&text->ctx->err, TG_E_ARG,
                       "text: want another text to join, and none that is mixed or of rows");
    return tg_text_append(text, more);
}

/* From here on the validation part is what is behind, whatever val_fraction a run has. */
tg_status tg_text_hold_back(tg_text *text, uint64_t train_bytes) {
    if (!text) return TG_E_ARG;
    ENTER(text->ctx);
    if (train_bytes < 1 || train_bytes > text->n_bytes)
        return tg_fail(&text->ctx->err, TG_E_ARG,
                       "text: want a training part of 1..%" PRIu64 " bytes, have %" PRIu64,
                       text->n_bytes, train_bytes);
    text->held_from = train_bytes;
    return TG_OK;
}

void tg_text_free(tg_text *text) { tg_text_delete(text); }
uint64_t tg_text_bytes(const tg_text *text) { return text ? text->n_bytes : 0; }

tg_status tg_text_lint(tg_text *text, int32_t ctx_tokens, double val_fraction, tg_lint_fn report,
                       void *user) {
    tg_job *job;
    TG_TRY(tg_text_lint_job(text, ctx_tokens, val_fraction, report, user, &job));
    return tg_job_finish(job);
}

/* A tokenizer of bytes is kept as NULL, so that bytes are counted without asking one. Borrowed. */
tg_status tg_text_set_tokenizer(tg_text *text, const tg_tokenizer *tokenizer) {
    if (!text) return TG_E_ARG;
    ENTER(text->ctx);
    text->tok =
        tokenizer && tg_tok_model_of(tokenizer->tok) != TG_TOK_RAW_BYTES ? tokenizer->tok : NULL;
    return TG_OK;
}

tg_status tg_tokenizer_train(tg_text *text, const char *kind, size_t n_tokens, tg_text_fn write,
                             void *user) {
    tg_job *job;
    TG_TRY(tg_tokenizer_train_job(text, kind, n_tokens, write, user, &job));
    return tg_job_finish(job);
}

const char *tg_tokenizer_kind_at(size_t i) { return tg_learn_kind_at(i); }

tg_status tg_text_sha256(tg_text *text, uint8_t digest[32]) {
    tg_job *job;
    TG_TRY(tg_text_sha256_job(text, digest, &job));
    return tg_job_finish(job);
}

/* Without a context and without memory of the heap, so no message: the code says it all. */
tg_status tg_stories(uint64_t seed, uint64_t n_bytes, tg_text_fn write, void *user) {
    if (!write) return TG_E_ARG;
    TG_OS_FP_SCOPE;
    tg_stories_sink sink = { write, user };
    return tg_stories_generate(seed, n_bytes, tg_stories_pass, &sink);
}

/* --------------------------------------------------------------------------------------- training
 */

tg_status tg_trainer_new(tg_context *ctx, tg_model *model, tg_text *text,
                         const tg_train_options *options, tg_trainer **out) {
    tg_job *job;
    TG_TRY(tg_trainer_new_job(ctx, model, text, options, out, &job));
    return tg_job_finish(job);
}

tg_status tg_trainer_open(tg_context *ctx, const char *path, tg_text *text, int64_t steps,
                          tg_trainer **out) {
    tg_job *job;
    TG_TRY(tg_trainer_open_job(ctx, path, text, steps, out, &job));
    return tg_job_finish(job);
}

/* An update that is under way is finished, which computes. */
void tg_trainer_free(tg_trainer *trainer) {
    TG_OS_FP_SCOPE;
    tg_train_free(trainer);
}

tg_model *tg_trainer_model(tg_trainer *trainer) { return trainer ? trainer->model : NULL; }
int64_t tg_trainer_steps_done(const tg_trainer *trainer) { return trainer ? trainer->step : 0; }
tg_status tg_trainer_options(const tg_trainer *trainer, tg_train_options *out) {
    if (!trainer || !out) return TG_E_ARG;
    return tg_options_give(&trainer->ctx->err, "tg_train_options", &trainer->o, out);
}

/* A trainer's own plans are used; without one they are made for the occasion and thrown away. */
tg_status tg_trainer_forecast(tg_trainer *trainer, tg_forecast *out) {
    if (!trainer || !out) return TG_E_ARG;
    ENTER(trainer->ctx);
    tg_job *job;
    TG_TRY(tg_job_forecast(trainer->ctx, &trainer->model->layout.config, trainer->text, &trainer->o,
                           trainer, out, &job));
    return tg_job_finish(job);
}

tg_status tg_forecast_run(tg_context *ctx, const tg_model_config *config, tg_text *text,
                          const tg_train_options *options, tg_forecast *out) {
    tg_job *job;
    TG_TRY(tg_forecast_run_job(ctx, config, text, options, out, &job));
    return tg_job_finish(job);
}

/* A step lives in the trainer, so it is polled without a job; tg_trainer_step_job is for programs
 * that have all work in jobs. */
tg_status tg_trainer_poll(tg_trainer *trainer, double budget_ms, tg_step_report *out) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    return tg_train_poll(trainer, budget_ms, out);
}

/* Budget 0 is no deadline, so a step is a poll that never comes back pending. */
tg_status tg_trainer_step(tg_trainer *trainer, tg_step_report *out) {
    return tg_trainer_poll(trainer, 0, out);
}

/* Whether the weights are those of a whole step: only in the middle of an update they are not. */
bool tg_trainer_steady(const tg_trainer *trainer) { return !trainer || tg_train_steady(trainer); }

tg_status tg_trainer_set_steps(tg_trainer *trainer, int64_t steps) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    return tg_train_set_steps(trainer, steps);
}

/* The schedule ends with the steps that are planned now, so that tg_trainer_set_steps does not let
 * the rate rise again. A second call changes nothing. */
tg_status tg_trainer_hold_lr(tg_trainer *trainer) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    TG_TRY(tg_train_want_free(trainer));
    if (!trainer->o.hold_lr_after) trainer->o.hold_lr_after = trainer->o.steps;
    return TG_OK;
}

/* Steps count from 1 for callers, and from 0 inside. */
double tg_trainer_lr(const tg_trainer *trainer, int64_t step) {
    TG_OS_FP_SCOPE;
    return trainer && step >= 1 ? tg_train_rate(trainer, step - 1) : 0;
}

tg_status tg_trainer_set_rate(tg_trainer *trainer, tg_rate_fn rate, void *user) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    tg_train_set_rate(trainer, rate, user);
    return TG_OK;
}

tg_status tg_trainer_set_rates(tg_trainer *trainer, const int64_t *steps, const double *rates,
                               size_t n) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    if (n > TG_RATES_MAX || (n && (!steps || !rates)))
        return tg_fail(&trainer->ctx->err, TG_E_ARG, "rates: want a table of up to %d, have %zu",
                       TG_RATES_MAX, n);
    tg_rates table = { .n = n };
    for (size_t i = 0; i < n; i++) {
        table.step[i] = steps[i];
        table.rate[i] = rates[i];
    }
    return tg_train_set_rates(trainer, &table);
}

size_t tg_trainer_rates(const tg_trainer *trainer, const int64_t **steps, const double **rates) {
    if (steps) *steps = trainer ? trainer->rates.step : NULL;
    if (rates) *rates = trainer ? trainer->rates.rate : NULL;
    return trainer ? trainer->rates.n : 0;
}

tg_status tg_trainer_set_validation(tg_trainer *trainer, int64_t eval_every, int32_t patience) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    return tg_train_set_validation(trainer, eval_every, patience);
}

tg_status tg_trainer_eval(tg_trainer *trainer, double *loss) {
    tg_job *job;
    TG_TRY(tg_trainer_eval_job(trainer, loss, &job));
    return tg_job_finish(job);
}

tg_status tg_model_eval(tg_context *ctx, tg_model *model, tg_text *text, double val_fraction,
                        int32_t eval_windows, double *loss) {
    tg_job *job;
    TG_TRY(tg_model_eval_job(ctx, model, text, val_fraction, eval_windows, loss, &job));
    return tg_job_finish(job);
}

tg_status tg_trainer_save(tg_trainer *trainer, const char *path) {
    tg_job *job;
    TG_TRY(tg_trainer_save_job(trainer, path, &job));
    return tg_job_finish(job);
}

tg_status tg_trainer_save_best(tg_trainer *trainer, const char *path) {
    tg_job *job;
    TG_TRY(tg_trainer_save_best_job(trainer, path, &job));
    return tg_job_finish(job);
}

const tg_history_point *tg_trainer_history(const tg_trainer *trainer, size_t *n) {
    if (n) *n = trainer ? trainer->n_history : 0;
    return trainer ? trainer->history : NULL;
}

/*
 * TG_STOPPED of a poll means both "cancelled" and "no step left", and only the second is TG_OK
 * here: a run that reached its end, or stopped early as it was told to. Either way it is saved, so
 * that cancelling loses nothing. After an error it is not: the newest save on the disk is the
 * better one. cancel is taken back, as it was borrowed for this call alone.
 */
tg_status tg_trainer_run(tg_trainer *trainer, const tg_callbacks *callbacks,
                         const char *save_path) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    const tg_callbacks none = { .user = NULL };
    const tg_callbacks *c = callbacks ? callbacks : &none;
    trainer->cancel = c->cancel;
    trainer->cancel_user = c->user;
    tg_status s;
    tg_step_report report;
    while ((s = tg_train_poll(trainer, 0, &report)) == TG_OK)
        if (c->progress) c->progress(c->user, &report);
    trainer->cancel = NULL;
    if (s != TG_STOPPED) return s;
    if (save_path) TG_TRY(tg_trainer_save(trainer, save_path));
    return trainer->step >= trainer->o.steps || report.early_stop ? TG_OK : TG_STOPPED;
}

/* --------------------------------------------------------------------------------------- sampling
 */

/* ctx_tokens 0: as many as the model sees; the engine checks it. The model is borrowed. */
tg_status tg_session_new(tg_context *ctx, tg_model *model, int32_t ctx_tokens, tg_session **out) {
    return tg_session_new_kv(ctx, model, ctx_tokens, TG_KV_F32, out);
}

tg_status tg_session_new_kv(tg_context *ctx, tg_model *model, int32_t ctx_tokens, tg_kv_type kv,
                            tg_session **out) {
    ENTER(ctx);
    WANT(ctx, model);
    WANT(ctx, out);
    return tg_session_open(ctx, model, ctx_tokens, kv, out);
}

/* A batch's sessions go with the batch: here they are left alone. */
void tg_session_free(tg_session *session) {
    if (session && !session->of_batch) tg_session_close(session);
}
size_t tg_session_tokens(const tg_session *session) {
    return session ? (size_t)session->n_tokens : 0;
}
size_t tg_session_capacity(const tg_session *session) {
    return session ? (size_t)session->capacity : 0;
}

/* For calls that run the model on a session: no job is on it, and no trainer is amid an update.
 * Calls that only draw or set something ask for the first alone. */
static tg_status want_session(const tg_session *s) {
    TG_TRY(tg_session_want_idle(s));
    return tg_weights_want_steady(s->model);
}

/* Not by way of a job, as most blocking calls are: a token is fed without an allocation. */
tg_status tg_session_eval(tg_session *session, const int32_t *tokens, size_t n,
                          const float **logits) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    if (n) WANT(session->ctx, tokens);
    TG_TRY(want_session(session));
    TG_TRY(tg_session_feed(session, tokens, n));
    if (logits) *logits = session->logits;
    return TG_OK;
}

/* Of a session that was fed nothing there are none. The array is the session's, [vocab]. */
const float *tg_session_logits(const tg_session *session) {
    return session && session->n_tokens > 0 ? session->logits : NULL;
}

tg_status tg_session_sample(tg_session *session, const tg_sample_options *options, uint64_t index,
                            int32_t *token) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    WANT(session->ctx, token);
    TG_TRY(tg_session_want_idle(session));
    TG_OPTIONS_TAKE(&session->ctx->err, tg_sample_options, options, own);
    return tg_session_draw(session, &own, index, token);
}

/* The three settings are copied, and stay until they are set anew. */
tg_status tg_session_set_bias(tg_session *session, const tg_logit_bias *bias, size_t n) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    if (n) WANT(session->ctx, bias);
    TG_TRY(tg_session_want_idle(session));
    return tg_session_keep_bias(session, bias, n);
}

tg_status tg_session_set_banned(tg_session *session, const char *const *texts, size_t n) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    if (n) WANT(session->ctx, texts);
    TG_TRY(tg_session_want_idle(session));
    return tg_session_keep_texts(session, texts, n, &session->banned);
}

tg_status tg_session_set_stops(tg_session *session, const char *const *texts, size_t n) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    if (n) WANT(session->ctx, texts);
    TG_TRY(tg_session_want_idle(session));
    return tg_session_keep_texts(session, texts, n, &session->stops);
}

tg_status tg_session_best(tg_session *session, size_t n, int32_t *ids, double *logprobs,
                          size_t *have) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    WANT(session->ctx, have);
    if (n) WANT(session->ctx, ids);
    if (n) WANT(session->ctx, logprobs);
    TG_TRY(tg_session_want_idle(session));
    if (session->n_tokens == 0)
        return tg_fail(&session->ctx->err, TG_E_ARG, "best: the session was not fed anything yet");
    *have = tg_logits_best(session->logits, (size_t)session->model->layout.config.vocab, n, ids,
                           logprobs);
    return TG_OK;
}

/* Rewinding costs nothing, unless a window has left its ring, and the same tokens again give the
 * same logits. */
tg_status tg_session_rewind(tg_session *session, size_t n) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    TG_TRY(tg_session_want_idle(session));
    if (n > (size_t)session->n_tokens)
        return tg_fail(&session->ctx->err, TG_E_RANGE, "rewind: want 0..%d tokens, have %zu",
                       (int)session->n_tokens, n);
    tg_session_go_back(session, (int32_t)n);
    return TG_OK;
}

tg_status tg_session_slide(tg_session *session) {
    tg_job *job;
    TG_TRY(tg_session_slide_job(session, &job));
    return tg_job_finish(job);
}

tg_status tg_session_continue(tg_session *session, const tg_generation *what,
                              tg_generate_stats *stats) {
    tg_job *job;
    TG_TRY(tg_session_continue_job(session, what, stats, &job));
    return tg_job_finish(job);
}

/* A session for one text. The message of a failure outlives the session, which is why it is the
 * context's. */
tg_status tg_generate(tg_context *ctx, tg_model *model, const char *prompt, size_t prompt_bytes,
                      const tg_sample_options *options, size_t n_tokens, tg_text_fn write,
                      void *user) {
    tg_session *session;
    tg_generation what = tg_generation_default();
    what.prompt = prompt;
    what.prompt_bytes = prompt_bytes;
    what.sample = options;
    what.n_tokens = n_tokens;
    what.write = write;
    what.user = user;
    TG_TRY(tg_session_new(ctx, model, 0, &session));
    const tg_status s = tg_session_continue(session, &what, NULL);
    tg_session_free(session);
    return s;
}

/* The whole conversation is encoded each time; tg_session_continue goes back to what the session
 * has of it, so that only the new turns compute. ids and ends are this call's: they are read before
 * it returns. A full window is a stop for a generation, and an error for an answer that was cut. */
tg_status tg_chat(tg_session *session, const tg_turn *turns, size_t n_turns,
                  const tg_sample_options *options, size_t n_tokens, tg_text_fn write, void *user) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    WANT(session->ctx, turns);
    tg_context *ctx = session->ctx;
    const tg_tokenizer *tok = &session->model->tokenizer;
    int32_t ends[TG_ENDS_MAX];
    tg_generation what = tg_generation_default();
    TG_TRY(tg_tokenizer_ends(ctx, tok, NULL, ends, &what.n_ends));
    tg_ids ids;
    tg_ids_init(&ids, &ctx->err.mem);
    tg_status s = tg_turns_encode(ctx, tok, NULL, turns, n_turns, 0, &ids);
    tg_generate_stats stats = { .new_tokens = 0 };
    what.ids = ids.id;
    what.n_ids = ids.n;
    what.ends = ends;
    what.sample = options;
    what.n_tokens = n_tokens;
    what.full = TG_FULL_STOP;
    what.write = write;
    what.user = user;
    if (s == TG_OK) s = tg_session_continue(session, &what, &stats);
    tg_ids_deinit(&ids);
    if (s != TG_OK || stats.end != TG_END_FULL) return s;
    return tg_fail(&ctx->err, TG_E_FULL, "chat: the window of %d tokens is full",
                   (int)session->capacity);
}

/* ----------------------------------------------------------------------------------------- probes
 */

tg_status tg_probe_new(tg_context *ctx, tg_model *model, size_t n_tokens, tg_probe **out) {
    ENTER(ctx);
    WANT(ctx, model);
    WANT(ctx, out);
    return tg_probe_open(ctx, model, n_tokens, out);
}

void tg_probe_free(tg_probe *probe) { tg_probe_close(probe); }

tg_status tg_probe_run(tg_probe *probe, const int32_t *tokens, const tg_edit *edits, size_t n_edits,
                       const tg_probe *donor) {
    tg_job *job;
    TG_TRY(tg_probe_run_job(probe, tokens, edits, n_edits, donor, &job));
    return tg_job_finish(job);
}

/* ------------------------------------------------------------------------------------------ files
 */

/* These need a context for its memory and its message, but neither threads nor kernels. */
tg_status tg_file_info(tg_context *ctx, const char *path, bool json, tg_text_fn write, void *user) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, write);
    return tg_fail_named(&ctx->err, path, tg_inspect_file_info(&ctx->err, path, json, write, user));
}

tg_status tg_file_check(tg_context *ctx, const char *path) {
    tg_job *job;
    tg_status s = tg_file_check_job(ctx, path, &job);
    if (s == TG_OK) s = tg_job_finish(job);
    return s == TG_E_MEMORY ? tg_fail_named(&ctx->err, path, s) : s;
}

/* Sizes are complete, and the family's name is the library's constant; after an error there is
 * none. */
tg_status tg_file_config(tg_context *ctx, const char *path, tg_model_config *out) {
    tg_model_file f;
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, out);
    out->family = NULL;
    TG_TRY(tg_fail_named(&ctx->err, path, tg_model_file_open(&ctx->err, path, &f)));
    *out = f.table.config;
    tg_model_file_close(&f);
    return TG_OK;
}

tg_status tg_transformers_config(tg_context *ctx, const tg_model_config *config, tg_text_fn write,
                                 void *user) {
    ENTER(ctx);
    WANT(ctx, config);
    WANT(ctx, write);
    return tg_io_transformers_config(&ctx->err, config, write, user);
}

/* --------------------------------------------------------------------------------------- unstable
 */

/* Tables of other folders in the types of tinygpt.h. They are filled again at each call, always
 * with the same values, so that pointers into them stay valid without any set-up, and threads that
 * meet here write what is there already. */
size_t tg_isa_count(void) { return TG_ISA_COUNT; }

const tg_isa_info *tg_isa_at(size_t i) {
    static tg_isa_info info[TG_ISA_COUNT];
    size_t n;
    const tg_isa_desc *list = tg_isa_list(&n);
    if (i >= n) return NULL;
    info[i] =
        (tg_isa_info) { list[i].name, list[i].needs, true, tg_isa_usable(&list[i]), list[i].fused };
    return &info[i];
}

size_t tg_lever_count(void) { return TG_LEVER_COUNT; }

const tg_lever_info *tg_lever_at(size_t i) {
    static tg_lever_info info[TG_LEVER_COUNT];
    if (i >= TG_LEVER_COUNT) return NULL;
    const tg_lever_desc *l = &tg_lever_table[i];
    info[i] = (tg_lever_info) { l->name,     l->doc,      l->default_on, l->keeps_bits,
                                l->gpu_only, l->cpu_only, l->state };
    if (i == TG_LEVER_bf16 && !tg_cpu_has_bf16())
        info[i].state = "blocked: this CPU has no bf16 products";
    return &info[i];
}

/* Bit i of a context's levers is row i of the table. Of a name that nobody knows: false. */
bool tg_context_lever(const tg_context *ctx, const char *name) {
    if (!ctx || !name) return false;
    for (int i = 0; i < TG_LEVER_COUNT; i++)
        if (strcmp(tg_lever_table[i].name, name) == 0) return ctx->levers >> i & 1;
    return false;
}

tg_status tg_machine(tg_context *ctx, tg_machine_info *out) {
    ENTER(ctx);
    WANT(ctx, out);
    return tg_runtime_machine(ctx, out);
}

tg_status tg_measure_peak(tg_context *ctx, double *gflops) {
    tg_job *job;
    TG_TRY(tg_measure_peak_job(ctx, gflops, &job));
    return tg_job_finish(job);
}

/* Each worker gets whole pieces of 1 KiB, and one at least. */
tg_status tg_measure_read(tg_context *ctx, size_t n_bytes, double *bytes_per_s) {
    ENTER(ctx);
    WANT(ctx, bytes_per_s);
    if (n_bytes < (size_t)1024 * ctx->threads)
        return tg_fail(&ctx->err, TG_E_ARG, "measure: want at least %zu bytes, have %zu",
                       (size_t)1024 * ctx->threads, n_bytes);
    return tg_runtime_measure_read(ctx, n_bytes, bytes_per_s);
}

tg_status tg_measure_gpu(tg_context *ctx, double *bytes_per_s, double *gflops) {
    tg_job *job;
    TG_TRY(tg_measure_gpu_job(ctx, bytes_per_s, gflops, &job));
    return tg_job_finish(job);
}

/* The shape rule of matmul would refuse these as well, but in terms of a graph that the caller does
 * not know of. */
tg_status tg_bench_matmul(tg_context *ctx, int32_t m, int32_t n, int32_t k, int trans,
                          size_t n_times, double *ms) {
    ENTER(ctx);
    WANT(ctx, ms);
    if (m < 1 || n < 1 || k < 1 || trans < 0 || trans > 2)
        return tg_fail(&ctx->err, TG_E_ARG,
                       "matmul: want sizes of at least 1 and trans 0..2, have "
                       "%d %d %d %d",
                       (int)m, (int)n, (int)k, trans);
    return tg_inspect_matmul(ctx, m, n, k, trans, n_times, ms);
}

tg_status tg_check_kernels(tg_context *ctx, const char *filter, tg_check_fn report, void *user,
                           size_t *n_failed) {
    tg_job *job;
    TG_TRY(tg_check_kernels_job(ctx, filter, report, user, n_failed, &job));
    return tg_job_finish(job);
}

tg_status tg_dump(tg_context *ctx, const tg_model_config *config, const char *which, int32_t batch,
                  tg_text_fn write, void *user) {
    ENTER(ctx);
    WANT(ctx, config);
    WANT(ctx, which);
    WANT(ctx, write);
    return tg_inspect_dump(ctx, config, which, batch, write, user);
}

tg_status tg_model_dump(tg_model *model, const char *which, int32_t batch, tg_text_fn write,
                        void *user) {
    tg_context *ctx = context_of(model);
    ENTER(ctx);
    WANT(ctx, which);
    WANT(ctx, write);
    return tg_inspect_dump_model(ctx, model, which, batch, write, user);
}

/* In both profiles numbers below 1 mean 1. Neither object is afterwards what it was: tinygpt.h says
 * how. */
tg_status tg_trainer_profile(tg_trainer *trainer, int n_steps, int each, tg_profile_fn report,
                             void *user) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    WANT(trainer->ctx, report);
    return tg_inspect_profile(trainer, n_steps > 0 ? n_steps : 1, each != 0, report, user);
}

tg_status tg_session_profile(tg_session *session, size_t n_rows, int n_times, int each,
                             tg_profile_fn report, void *user) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    WANT(session->ctx, report);
    return tg_inspect_profile_session(session, n_rows > 0 ? n_rows : 1, n_times > 0 ? n_times : 1,
                                      each != 0, report, user);
}
