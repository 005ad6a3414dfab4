/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs_run.c - jobs on trainers, sessions, embedders and probes. See runtime/job.h and jobs.h;
 * jobs_model.c says how a job is made, ended and abandoned.
 *
 * While one is pending, its object has a pointer to it, and whoever would disturb it is refused.
 * Weights are read slice by slice, so a job that reads them is not ready while they change.
 *
 *     object      the pointer          an abandoned job leaves
 *     trainer     t->job; none of      eval: no loss; save: what path held before;
 *                 a step               step: what is unfinished, to the next step
 *     session     s->d->job, the       feed: the session as before; slide: an empty one;
 *                 decoder's: a batch   generation: what was fed so far
 *                 has one for all
 *     embedder    e->job               out, which is not to be read
 *     probe       p->job               nothing to look at
 *
 * The pointer is set when nothing can fail any more, or before what may fail calls tg_job_end: end
 * takes it away, so that an object is never left with the pointer to a job that was freed.
 */
#include "api/jobs.h"

static tg_status busy(tg_context *ctx, const char *object, const tg_job *job) {
    return tg_fail(&ctx->err, TG_E_ARG, "%s: a job is pending on it: %s", object, job->kind->name);
}

tg_status tg_trainer_want_idle(const tg_trainer *t) {
    return t->job ? busy(t->ctx, "trainer", t->job) : TG_OK;
}

tg_status tg_embedder_want_idle(const tg_embedder *e) {
    return e->job ? busy(e->ctx, "embedder", e->job) : TG_OK;
}

tg_status tg_session_want_idle(const tg_session *s) {
    return s->d->job ? busy(s->ctx, "session", s->d->job) : TG_OK;
}

tg_status tg_probe_want_idle(const tg_probe *p) {
    return p->job ? busy(p->ctx, "probe", p->job) : TG_OK;
}

/* --------------------------------------------------------------------------------------- trainers
 */

typedef struct new_job {
    tg_job job;
    tg_model *model;
    tg_text *text;
    tg_train_options options;
    tg_trainer **out;
    tg_train_making making;
} new_job;

static tg_status work_new(tg_job *job, double deadline_ms) {
    new_job *j = (new_job *)job;
    return tg_train_making_go_on(&j->making, job->ctx, j->model, j->text, &j->options, deadline_ms,
                                 j->out);
}

static void end_new(tg_job *job) { tg_train_making_deinit(&((new_job *)job)->making); }

/* Options are completed and checked here, and not in the first slice, so that a wrong one is an
 * error of the call that has it. Model and text are borrowed. */
tg_status tg_job_trainer_new(tg_context *ctx, tg_model *model, tg_text *text,
                             const tg_train_options *o, tg_trainer **out, tg_job **job) {
    static const tg_job_kind kind = { "new trainer", sizeof(new_job), NULL, work_new, end_new };
    const tg_train_options options = tg_train_options_of(o, &model->layout.config);
    TG_TRY(tg_train_options_check(&ctx->err, &options));
    new_job *j = tg_job_make(ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->model = model;
    j->text = text;
    j->options = options;
    j->out = out;
    *job = &j->job;
    return TG_OK;
}

typedef struct open_job {
    tg_job job; /* copy: the path */
    tg_text *text;
    int64_t steps;
    tg_trainer **out;
    tg_train_opening opening;
} open_job;

/* A file tells its own options, which the opening checks; from the caller come the text, and how
 * far the run is to go. */
static tg_status work_open(tg_job *job, double deadline_ms) {
    open_job *j = (open_job *)job;
    return tg_train_opening_go_on(&j->opening, job->ctx, job->copy, j->text, j->steps, deadline_ms,
                                  j->out);
}

static void end_open(tg_job *job) { tg_train_opening_deinit(&((open_job *)job)->opening); }

tg_status tg_job_trainer_open(tg_context *ctx, const char *path, tg_text *text, int64_t steps,
                              tg_trainer **out, tg_job **job) {
    static const tg_job_kind kind = { "opening of a run", sizeof(open_job), NULL, work_open,
                                      end_open };
    open_job *j = tg_job_make(ctx, &kind, path, strlen(path) + 1);
    if (!j) return TG_E_MEMORY;
    j->text = text;
    j->steps = steps;
    j->out = out;
    *job = &j->job;
    return TG_OK;
}

/* A step lives in the trainer, and the job only takes it on: it is not pending on the trainer, and
 * abandoning it leaves the step for the next one. */
typedef struct step_job {
    tg_job job;
    tg_trainer *trainer;
    tg_step_report *out;
} step_job;

static tg_status ready_step(tg_job *job) { return tg_train_want_free(((step_job *)job)->trainer); }

static tg_status work_step(tg_job *job, double deadline_ms) {
    step_job *j = (step_job *)job;
    return tg_train_go_on(j->trainer, deadline_ms, j->out);
}

static void end_step(tg_job *job) { (void)job; }

tg_status tg_job_trainer_step(tg_trainer *t, tg_step_report *out, tg_job **job) {
    static const tg_job_kind kind = { "step", sizeof(step_job), ready_step, work_step, end_step };
    step_job *j = tg_job_make(t->ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->trainer = t;
    j->out = out;
    *job = &j->job;
    return TG_OK;
}

/* An evaluation uses the plans of the trainer, so no step may come between its slices. It needs no
 * `ready`: it settles an update that is under way by itself, as its trainer is the one who changes
 * the weights. */
typedef struct eval_job {
    tg_job job;
    tg_trainer *trainer;
    double *loss;
    tg_trainer_evaluating evaluating;
} eval_job;

static tg_status work_eval(tg_job *job, double deadline_ms) {
    eval_job *j = (eval_job *)job;
    return tg_trainer_evaluating_go_on(&j->evaluating, j->trainer, deadline_ms, j->loss);
}

static void end_eval(tg_job *job) { ((eval_job *)job)->trainer->job = NULL; }

tg_status tg_job_trainer_eval(tg_trainer *t, double *loss, tg_job **job) {
    static const tg_job_kind kind = { "evaluation", sizeof(eval_job), NULL, work_eval, end_eval };
    TG_TRY(tg_trainer_want_idle(t));
    eval_job *j = tg_job_make(t->ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->trainer = t;
    j->loss = loss;
    *job = &j->job;
    t->job = *job;
    return TG_OK;
}

typedef struct save_job {
    tg_job job; /* copy: the path */
    tg_trainer *trainer;
    tg_train_saving saving;
} save_job;

/* The file takes its name at the end of the last slice (io/run/saving.h): until then, and if the
 * job is abandoned, path holds what it held. */
static tg_status work_save(tg_job *job, double deadline_ms) {
    save_job *j = (save_job *)job;
    return tg_train_saving_go_on(&j->saving, j->trainer, job->copy, deadline_ms);
}

static void end_save(tg_job *job) {
    save_job *j = (save_job *)job;
    tg_train_saving_deinit(&j->saving);
    j->trainer->job = NULL;
}

tg_status tg_job_trainer_save(tg_trainer *t, const char *path, bool best, tg_job **job) {
    static const tg_job_kind kind = { "save", sizeof(save_job), NULL, work_save, end_save };
    TG_TRY(tg_trainer_want_idle(t));
    save_job *j = tg_job_make(t->ctx, &kind, path, strlen(path) + 1);
    if (!j) return TG_E_MEMORY;
    j->trainer = t;
    j->saving.best = best;
    *job = &j->job;
    t->job = *job;
    return TG_OK;
}

/* --------------------------------------------------------------------------------------- sessions
 */

/* Eval and slide are both a feed. The logits are the session's, and are there when the job is done.
 */
typedef struct feed_job {
    tg_job job; /* copy: the tokens; a slide has them from the session */
    tg_session *session;
    tg_feeding feed;
} feed_job;

static tg_status ready_feed(tg_job *job) {
    return tg_weights_want_steady(((feed_job *)job)->session->model);
}

static tg_status work_feed(tg_job *job, double deadline_ms) {
    feed_job *j = (feed_job *)job;
    return tg_feeding_go_on(j->session, &j->feed, deadline_ms);
}

/* Also after an error: a feed that did not come to its end is taken back as a whole. */
static void end_feed(tg_job *job) {
    feed_job *j = (feed_job *)job;
    if (j->feed.done < j->feed.n) tg_feeding_abandon(j->session, &j->feed);
    j->session->d->job = NULL;
}

static feed_job *make_feed(tg_session *s, const int32_t *tokens, size_t n) {
    static const tg_job_kind kind = { "feed", sizeof(feed_job), ready_feed, work_feed, end_feed };
    feed_job *j = tg_job_make(s->ctx, &kind, tokens, n * sizeof *tokens);
    if (j) j->session = s;
    return j;
}

/* Tokens are checked before they are copied, and fed from the copy: the caller's may go. */
tg_status tg_job_session_eval(tg_session *s, const int32_t *tokens, size_t n, tg_job **job) {
    tg_feeding feed;
    TG_TRY(tg_session_want_idle(s));
    TG_TRY(tg_weights_want_steady(s->model));
    TG_TRY(tg_feeding_begin(s, tokens, n, &feed));
    feed_job *j = make_feed(s, tokens, n);
    if (!j) return TG_E_MEMORY;
    j->feed = feed;
    j->feed.tokens = j->job.copy;
    s->d->job = *job = &j->job;
    return TG_OK;
}

/* Memory comes first: tg_feeding_begin_slide already moves tokens, which cannot be undone. */
tg_status tg_job_session_slide(tg_session *s, tg_job **job) {
    TG_TRY(tg_session_want_idle(s));
    TG_TRY(tg_weights_want_steady(s->model));
    feed_job *j = make_feed(s, NULL, 0);
    if (!j) return TG_E_MEMORY;
    tg_feeding_begin_slide(s, &j->feed);
    s->d->job = *job = &j->job;
    return TG_OK;
}

typedef struct generate_job {
    tg_job job;
    tg_generating g;
    tg_generate_stats *stats; /* or NULL */
} generate_job;

static tg_status ready_generate(tg_job *job) {
    return tg_weights_want_steady(((generate_job *)job)->g.session->model);
}

/* stats is the caller's, and is brought up to date after every slice, so that it can be shown
 * meanwhile. */
static tg_status work_generate(tg_job *job, double deadline_ms) {
    generate_job *j = (generate_job *)job;
    const tg_status status = tg_generating_go_on(&j->g, deadline_ms);
    if (j->stats) *j->stats = j->g.stats;
    return status;
}

static void end_generate(tg_job *job) {
    generate_job *j = (generate_job *)job;
    tg_generating_abandon(&j->g);
    j->g.session->d->job = NULL;
}

/* The session has its pointer before the generation begins, so that whatever begin refuses, end
 * finds what it is to take away. g is copied; prompt and ids are borrowed no longer than begin. */
tg_status tg_job_session_generate(const tg_generating *g, tg_generate_stats *stats, tg_job **job) {
    static const tg_job_kind kind = { "generation", sizeof(generate_job), ready_generate,
                                      work_generate, end_generate };
    tg_session *s = g->session;
    TG_TRY(tg_session_want_idle(s));
    TG_TRY(tg_weights_want_steady(s->model));
    generate_job *j = tg_job_make(s->ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->g = *g;
    j->stats = stats;
    s->d->job = &j->job;
    const tg_status status = tg_generating_begin(&j->g);
    if (status == TG_OK)
        *job = &j->job;
    else
        tg_job_end(&j->job);
    return status;
}

/* --------------------------------------------------------------------------------- embeddings */

typedef struct embed_job {
    tg_job job;
    tg_embed_work work;
} embed_job;

static tg_status ready_embed(tg_job *job) {
    return tg_weights_want_steady(((embed_job *)job)->work.e->model);
}

static tg_status work_embed(tg_job *job, double deadline_ms) {
    return tg_embed_go_on(&((embed_job *)job)->work, deadline_ms);
}

static void end_embed(tg_job *job) {
    embed_job *j = (embed_job *)job;
    tg_embed_deinit(&j->work);
    j->work.e->job = NULL;
}

/* texts and out are borrowed until the job ends: they may be large, and are not copied. */
tg_status tg_job_embedder_run(tg_embedder *e, const tg_embed_text *texts, size_t n, float *out,
                              tg_job **job) {
    static const tg_job_kind kind = { "embedding", sizeof(embed_job), ready_embed, work_embed,
                                      end_embed };
    TG_TRY(tg_embedder_want_idle(e));
    embed_job *j = tg_job_make(e->ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    tg_embed_begin(e, texts, n, out, &j->work);
    e->job = *job = &j->job;
    return TG_OK;
}

/* ----------------------------------------------------------------------------------------- probes
 */

typedef struct probe_job {
    tg_job job;
    tg_probe *probe;
} probe_job;

/* Only of its own model: a donor's values were computed by a run that is over. */
static tg_status ready_probe(tg_job *job) {
    return tg_weights_want_steady(((probe_job *)job)->probe->model);
}

static tg_status work_probe(tg_job *job, double deadline_ms) {
    return tg_probe_go_on(((probe_job *)job)->probe, deadline_ms);
}

static void end_probe(tg_job *job) { ((probe_job *)job)->probe->job = NULL; }

/* donor is bound into the plan by address, so it is borrowed until the job ends. It is not marked
 * as busy, so nothing refuses a run of it meanwhile, which would change what is copied. */
tg_status tg_job_probe_run(tg_probe *p, const int32_t *tokens, const tg_edit *edits, size_t n_edits,
                           const tg_probe *donor, tg_job **job) {
    static const tg_job_kind kind = { "run of a probe", sizeof(probe_job), ready_probe, work_probe,
                                      end_probe };
    TG_TRY(tg_probe_want_idle(p));
    if (donor) TG_TRY(tg_probe_want_idle(donor));
    TG_TRY(tg_weights_want_steady(p->model));
    probe_job *j = tg_job_make(p->ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->probe = p;
    p->job = &j->job;
    const tg_status status = tg_probe_begin(p, tokens, edits, n_edits, donor);
    if (status == TG_OK)
        *job = &j->job;
    else
        tg_job_end(&j->job);
    return status;
}
