/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jobs.c - what tinygpt.h promises of jobs: in slices a call does to the bit what it does in
 * one go; abandoned after any slice it has done nothing; what would disturb it is refused.
 *
 * Each kind of job is an entry of a table: how to begin it on a stage, and what to look at when it
 * is done. The generic tests walk the table.
 */
#include "engine_util.h"
#include "fail_alloc.h"
#include "nan.h"

#include "base/math.h"
#include "engine/session.h"
#include "training/train.h"

#include <dirent.h>

static const tg_model_config nano = { 2, 24, 3, 16, 256, 96 };
#define FOLDER "build/test_jobs"
static const char *const SAVE = FOLDER "/run.tinygpt";
static const char *const OTHER = FOLDER "/other.tinygpt";
static const char *const FOREIGN = FOLDER "/other.gguf";

/* A budget that is over at once: every slice does the least that it can. */
#define LEAST 1e-6

static int make_folder(void **state) {
    (void)state;
    return system("mkdir -p " FOLDER " && rm -f " FOLDER "/*");
}

/* Files in the folder: temporary ones that were left behind would count. */
static int files(void) {
    int n = 0;
    DIR *d = opendir(FOLDER);
    for (const struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* FNV-1a, so that results of any size are one number. */
static uint64_t mix(uint64_t h, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)bytes)[i]) * UINT64_C(1099511628211);
    return h;
}
#define MIX_START UINT64_C(14695981039346656037)

static uint64_t mix_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s: cannot be opened", path);
    uint64_t h = MIX_START;
    uint8_t piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) h = mix(h, piece, n);
    fclose(f);
    return h;
}

/* ---------------------------------------------------------------------------------------- stages
 */

/* A run of a few steps with a session and a probe on its model, and room for results. */
typedef struct stage {
    tg_context *ctx;
    tg_text *text;
    tg_model *model, *other;
    tg_trainer *trainer, *opened;
    tg_session *session;
    tg_probe *probe;
    double number;
    size_t count;
    uint8_t digest[32];
    int32_t ids[64];
    tg_step_report report;
    tg_forecast forecast;
    uint64_t heard; /* what callbacks were told */
} stage;

static tg_train_options options(void) {
    tg_train_options o = tg_train_options_default();
    o.steps = 8;
    o.batch = 3;
    o.accum = 2;
    o.lr = 1e-3;
    o.eval_every = 2;
    o.eval_windows = 7;
    return o;
}

static const int32_t prompt[] = { 'T', 'o', ' ', 'b', 'e', ',', ' ', 'o', 'r', ' ', 'n' };
enum { PROMPT = sizeof prompt / sizeof prompt[0] };

/* Three steps are done and saved, five tokens are in the session. */
static stage set(unsigned threads) {
    const tg_train_options o = options();
    stage s = { .ctx = open_context(threads, NULL, NULL), .heard = MIX_START };
    OK(s.ctx, tg_text_open(s.ctx, STORIES, &s.text));
    OK(s.ctx, tg_model_new(s.ctx, &nano, 42, &s.model));
    OK(s.ctx, tg_trainer_new(s.ctx, s.model, s.text, &o, &s.trainer));
    for (int i = 0; i < 3; i++) OK(s.ctx, tg_trainer_step(s.trainer, NULL));
    OK(s.ctx, tg_trainer_save(s.trainer, SAVE));
    OK(s.ctx, tg_session_new(s.ctx, s.model, 0, &s.session));
    OK(s.ctx, tg_session_eval(s.session, prompt, 5, NULL));
    OK(s.ctx, tg_probe_new(s.ctx, s.model, PROMPT, &s.probe));
    return s;
}

static void strike(stage *s) {
    tg_model_free(s->other);
    tg_trainer_free(s->opened);
    tg_probe_free(s->probe);
    tg_session_free(s->session);
    tg_trainer_free(s->trainer);
    tg_model_free(s->model);
    tg_text_free(s->text);
    tg_context_free(s->ctx);
}

static int hear_text(void *user, const char *bytes, size_t n) {
    stage *s = user;
    s->heard = mix(s->heard, bytes, n);
    return 0;
}

static void hear_lint(void *user, const tg_lint *l) {
    stage *s = user;
    s->heard = mix(s->heard, l->text, strlen(l->text));
}

static void hear_check(void *user, const tg_check *c) {
    stage *s = user;
    s->heard = mix(s->heard, c->what, strlen(c->what));
}

/* All that the rest of a run depends on. */
static uint64_t mix_run(const tg_trainer *t) {
    const size_t bytes = t->model->layout.n_elems * sizeof(float);
    uint64_t h = mix(MIX_START, t->model->weights, bytes);
    h = mix(h, t->adam_m.data, bytes);
    h = mix(h, t->adam_v.data, bytes);
    h = mix(h, &t->loss_hash, sizeof t->loss_hash);
    return mix(h, &t->step, sizeof t->step);
}

static uint64_t mix_logits(const stage *s) {
    const float *logits = tg_session_logits(s->session);
    return logits ? mix(MIX_START, logits, 256 * sizeof *logits) : 0;
}

/* The rest of the run and what the session says next: what an abandoned job must not have changed.
 */
static uint64_t future(stage *s) {
    double loss;
    tg_status status;
    while ((status = tg_trainer_step(s->trainer, &s->report)) == TG_OK) {
    }
    assert_int_equal(status, TG_STOPPED);
    OK(s->ctx, tg_trainer_eval(s->trainer, &loss));
    return mix(mix_run(s->trainer), &loss, sizeof loss);
}

/* ------------------------------------------------------------------------------------- the table
 */

typedef struct kind {
    const char *name;
    tg_status (*begin)(stage *s, tg_job **job);
    tg_status (*whole)(stage *s); /* the blocking call */
    uint64_t (*look)(stage *s);   /* when it is done */
    bool moves;                   /* done, it changes the future of the run */
    bool empties;                 /* abandoned, it leaves the session with other tokens */
} kind;

static tg_status begin_new(stage *s, tg_job **job) {
    return tg_model_new_job(s->ctx, &nano, 7, &s->other, job);
}
static tg_status whole_new(stage *s) { return tg_model_new(s->ctx, &nano, 7, &s->other); }
static tg_status begin_open(stage *s, tg_job **job) {
    return tg_model_open_job(s->ctx, SAVE, &s->other, job);
}
static tg_status whole_open(stage *s) { return tg_model_open(s->ctx, SAVE, &s->other); }
static uint64_t look_other(stage *s) {
    return mix(MIX_START, s->other->weights, s->other->layout.n_elems * sizeof(float));
}

#define SAVE_KIND(name, file_kind)                                                                 \
    static tg_status begin_##name(stage *s, tg_job **job) {                                        \
        return tg_model_save_job(s->model, OTHER, file_kind, job);                                 \
    }                                                                                              \
    static tg_status whole_##name(stage *s) { return tg_model_save(s->model, OTHER, file_kind); }
SAVE_KIND(v1, TG_FILE_V1_F32)
SAVE_KIND(v2, TG_FILE_V2_F32)
SAVE_KIND(f16, TG_FILE_V2_F16)
SAVE_KIND(int4, TG_FILE_V2_INT4)
SAVE_KIND(v3, TG_FILE_V3)
SAVE_KIND(safetensors, TG_FILE_SAFETENSORS)
static uint64_t look_file(stage *s) {
    (void)s;
    return mix_file(OTHER);
}

static tg_status begin_run(stage *s, tg_job **job) {
    return tg_trainer_save_job(s->trainer, OTHER, job);
}
static tg_status whole_run(stage *s) { return tg_trainer_save(s->trainer, OTHER); }
static tg_status begin_best(stage *s, tg_job **job) {
    return tg_trainer_save_best_job(s->trainer, OTHER, job);
}
static tg_status whole_best(stage *s) { return tg_trainer_save_best(s->trainer, OTHER); }

static tg_status begin_resume(stage *s, tg_job **job) {
    return tg_trainer_open_job(s->ctx, SAVE, s->text, 0, &s->opened, job);
}
static tg_status whole_resume(stage *s) {
    return tg_trainer_open(s->ctx, SAVE, s->text, 0, &s->opened);
}
static uint64_t look_opened(stage *s) { return mix_run(s->opened); }

static tg_status begin_step(stage *s, tg_job **job) {
    return tg_trainer_step_job(s->trainer, &s->report, job);
}
static tg_status whole_step(stage *s) { return tg_trainer_step(s->trainer, &s->report); }
static uint64_t look_step(stage *s) {
    uint64_t h = mix(mix_run(s->trainer), &s->report.loss, sizeof s->report.loss);
    return mix(h, &s->report.val_loss, sizeof s->report.val_loss);
}

static tg_status begin_eval(stage *s, tg_job **job) {
    return tg_trainer_eval_job(s->trainer, &s->number, job);
}
static tg_status whole_eval(stage *s) { return tg_trainer_eval(s->trainer, &s->number); }
static uint64_t look_number(stage *s) { return mix(MIX_START, &s->number, sizeof s->number); }

static tg_status begin_feed(stage *s, tg_job **job) {
    return tg_session_eval_job(s->session, prompt, PROMPT, job);
}
static tg_status whole_feed(stage *s) { return tg_session_eval(s->session, prompt, PROMPT, NULL); }
static tg_status begin_slide(stage *s, tg_job **job) {
    return tg_session_slide_job(s->session, job);
}
static tg_status whole_slide(stage *s) { return tg_session_slide(s->session); }
static uint64_t look_logits(stage *s) {
    const size_t n = tg_session_tokens(s->session);
    return mix(mix_logits(s), &n, sizeof n);
}

/* Longer than the window, so that the prompt is cut and the window slides. */
static const char LONG[] = "Now is the winter of our discontent";
static tg_generation heard_text(stage *s, size_t n_bytes, size_t n_tokens) {
    tg_generation what = behind_text(LONG, n_bytes, n_tokens);
    what.write = hear_text;
    what.user = s;
    what.new_ids = s->ids;
    return what;
}
static tg_status begin_generate(stage *s, tg_job **job) {
    const tg_generation what = heard_text(s, sizeof LONG - 1, 40);
    return tg_session_continue_job(s->session, &what, NULL, job);
}
static tg_status whole_generate(stage *s) {
    const tg_generation what = heard_text(s, sizeof LONG - 1, 40);
    return tg_session_continue(s->session, &what, NULL);
}
static uint64_t look_generate(stage *s) {
    const uint64_t h = mix(MIX_START, s->ids, sizeof s->ids);
    return mix(h, &s->heard, sizeof s->heard) ^ look_logits(s);
}

static const tg_edit edit = { 1, 2, -1, TG_PART_HEAD, TG_EDIT_ZERO };
static tg_status begin_probe(stage *s, tg_job **job) {
    return tg_probe_run_job(s->probe, prompt, &edit, 1, NULL, job);
}
static tg_status whole_probe(stage *s) { return tg_probe_run(s->probe, prompt, &edit, 1, NULL); }
static uint64_t look_probe(stage *s) {
    return mix(MIX_START, tg_probe_lens(s->probe, 2), PROMPT * 256 * sizeof(float));
}

static tg_status begin_lint(stage *s, tg_job **job) {
    return tg_text_lint_job(s->text, 16, 0.1, hear_lint, s, job);
}
static tg_status whole_lint(stage *s) { return tg_text_lint(s->text, 16, 0.1, hear_lint, s); }
static tg_status begin_kernels(stage *s, tg_job **job) {
    return tg_check_kernels_job(s->ctx, "layer_norm", hear_check, s, &s->count, job);
}
static tg_status whole_kernels(stage *s) {
    return tg_check_kernels(s->ctx, "layer_norm", hear_check, s, &s->count);
}
static uint64_t look_heard(stage *s) { return mix(s->heard, &s->count, sizeof s->count); }

static tg_status begin_stories(stage *s, tg_job **job) {
    return tg_stories_job(s->ctx, 5, 20000, hear_text, s, job);
}
static tg_status whole_stories(stage *s) { return tg_stories(5, 20000, hear_text, s); }

static tg_status begin_sha256(stage *s, tg_job **job) {
    return tg_text_sha256_job(s->text, s->digest, job);
}
static tg_status whole_sha256(stage *s) { return tg_text_sha256(s->text, s->digest); }
static uint64_t look_digest(stage *s) { return mix(MIX_START, s->digest, sizeof s->digest); }

static tg_status begin_check(stage *s, tg_job **job) {
    return tg_file_check_job(s->ctx, SAVE, job);
}
static tg_status whole_check(stage *s) { return tg_file_check(s->ctx, SAVE); }
static tg_status begin_convert(stage *s, tg_job **job) {
    return tg_model_convert_job(s->ctx, SAVE, OTHER, TG_FILE_V2_F32, job);
}
static tg_status whole_convert(stage *s) {
    return tg_model_convert(s->ctx, SAVE, OTHER, TG_FILE_V2_F32, TG_WEIGHT_F32, NULL);
}

static tg_status begin_export(stage *s, tg_job **job) {
    return tg_model_convert_job(s->ctx, SAVE, FOREIGN, TG_FILE_GGUF, job);
}
static tg_status whole_export(stage *s) {
    return tg_model_convert(s->ctx, SAVE, FOREIGN, TG_FILE_GGUF, TG_WEIGHT_F32, NULL);
}
static uint64_t look_foreign(stage *s) {
    (void)s;
    return mix_file(FOREIGN);
}

static tg_status begin_trainer(stage *s, tg_job **job) {
    const tg_train_options o = options();
    return tg_trainer_new_job(s->ctx, s->model, s->text, &o, &s->opened, job);
}
static tg_status whole_trainer(stage *s) {
    const tg_train_options o = options();
    return tg_trainer_new(s->ctx, s->model, s->text, &o, &s->opened);
}

static tg_status begin_model_eval(stage *s, tg_job **job) {
    return tg_model_eval_job(s->ctx, s->model, s->text, 0.1, 7, &s->number, job);
}
static tg_status whole_model_eval(stage *s) {
    return tg_model_eval(s->ctx, s->model, s->text, 0.1, 7, &s->number);
}

/* What depends neither on the moment nor on the threads, who have workspace of their own. */
static tg_status begin_forecast(stage *s, tg_job **job) {
    const tg_train_options o = options();
    return tg_forecast_run_job(s->ctx, &nano, s->text, &o, &s->forecast, job);
}
static tg_status whole_forecast(stage *s) {
    const tg_train_options o = options();
    return tg_forecast_run(s->ctx, &nano, s->text, &o, &s->forecast);
}
static uint64_t look_forecast(stage *s) {
    assert_true(s->forecast.peak_gflops > 0 && s->forecast.ms_per_step > 0);
    const uint64_t h = mix(MIX_START, &s->forecast.disk_bytes, sizeof(uint64_t));
    return mix(h, s->forecast.advice, strlen(s->forecast.advice));
}

static uint64_t look_nothing(stage *s) {
    (void)s;
    return 0;
}

static const kind kinds[] = {
    { "model_new", begin_new, whole_new, look_other, false, false },
    { "model_open", begin_open, whole_open, look_other, false, false },
    { "model_save v1", begin_v1, whole_v1, look_file, false, false },
    { "model_save v2", begin_v2, whole_v2, look_file, false, false },
    { "model_save f16", begin_f16, whole_f16, look_file, false, false },
    { "model_save int4", begin_int4, whole_int4, look_file, false, false },
    { "model_save v3", begin_v3, whole_v3, look_file, false, false },
    { "model_save safetensors", begin_safetensors, whole_safetensors, look_file, false, false },
    { "trainer_save", begin_run, whole_run, look_file, false, false },
    { "trainer_save_best", begin_best, whole_best, look_file, false, false },
    { "trainer_open", begin_resume, whole_resume, look_opened, false, false },
    { "trainer_step", begin_step, whole_step, look_step, true, false },
    { "trainer_eval", begin_eval, whole_eval, look_number, false, false },
    { "session_eval", begin_feed, whole_feed, look_logits, false, false },
    { "session_slide", begin_slide, whole_slide, look_logits, false, true },
    { "session_generate", begin_generate, whole_generate, look_generate, false, true },
    { "probe_run", begin_probe, whole_probe, look_probe, false, false },
    { "text_lint", begin_lint, whole_lint, look_heard, false, false },
    { "stories", begin_stories, whole_stories, look_heard, false, false },
    { "text_sha256", begin_sha256, whole_sha256, look_digest, false, false },
    { "check_kernels", begin_kernels, whole_kernels, look_heard, false, false },
    { "file_convert", begin_convert, whole_convert, look_file, false, false },
    { "file_export", begin_export, whole_export, look_foreign, false, false },
    { "trainer_new", begin_trainer, whole_trainer, look_opened, false, false },
    { "model_eval", begin_model_eval, whole_model_eval, look_number, false, false },
    { "forecast", begin_forecast, whole_forecast, look_forecast, false, false },
    { "file_check", begin_check, whole_check, look_nothing, false, false },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---------------------------------------------------------------------------------------- slices
 */

/* Polls to the end; how many slices it took. */
static int poll_out(stage *s, tg_job *job, double budget_ms, const char *name) {
    int slices = 1;
    tg_status status;
    while ((status = tg_job_poll(job, budget_ms)) == TG_PENDING) slices++;
    if (status != TG_OK) fail_msg("%s: status %d: %s", name, (int)status, tg_context_error(s->ctx));
    assert_int_equal(tg_job_poll(job, budget_ms), TG_OK); /* it stays so */
    tg_job_free(job);
    return slices;
}

/* Every kind, by every budget and number of threads, against the blocking call; and then the rest
 * of the run, which must not have noticed. */
static void slices_do_not_matter(void **state) {
    (void)state;
    static const double budgets[] = { LEAST, 0.5, 0 };
    for (size_t k = 0; k < KINDS; k++) {
        stage whole = set(1);
        OK(whole.ctx, kinds[k].whole(&whole));
        const uint64_t want = kinds[k].look(&whole), then = future(&whole);
        strike(&whole);
        for (unsigned threads = 1; threads <= 3; threads += 2)
            for (size_t b = 0; b < 3; b++) {
                stage s = set(threads);
                tg_job *job;
                OK(s.ctx, kinds[k].begin(&s, &job));
                const int slices = poll_out(&s, job, budgets[b], kinds[k].name);
                if (budgets[b] == LEAST && slices < 2)
                    fail_msg("%s was not cut at all", kinds[k].name);
                if (budgets[b] == 0) assert_int_equal(slices, 1);
                if (kinds[k].look(&s) != want)
                    fail_msg("%s: %u threads, budget %g: another result", kinds[k].name, threads,
                             budgets[b]);
                if (future(&s) != then)
                    fail_msg("%s: %u threads, budget %g: the run goes on otherwise", kinds[k].name,
                             threads, budgets[b]);
                strike(&s);
            }
    }
}

/* Abandoned after k slices: the job, done afterwards, gives what it gives, and so does the run.
 * Some k are left out where there are hundreds. */
static void abandoned_is_not_begun(void **state) {
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        const kind *k = &kinds[i];
        stage whole = set(2);
        OK(whole.ctx, k->whole(&whole));
        const uint64_t want = k->look(&whole), then = future(&whole);
        strike(&whole);
        bool ended = false;
        for (int slices = 0; !ended; slices += 1 + slices / 3) {
            make_folder(state);
            stage s = set(2);
            const uint64_t before = look_logits(&s);
            tg_job *job;
            OK(s.ctx, k->begin(&s, &job));
            for (int n = 0; n < slices && !ended; n++)
                ended = tg_job_poll(job, LEAST) != TG_PENDING;
            tg_job_free(job);
            if (!ended) {
                assert_int_equal(files(), 1); /* SAVE alone: nothing was begun, nothing is left */
                if (!k->empties) assert_true(look_logits(&s) == before);
                s.heard = MIX_START;
                if (strcmp(k->name, "session_slide") == 0) {
                    assert_int_equal(tg_session_tokens(s.session), 0);
                    OK(s.ctx, tg_session_eval(s.session, prompt, 5, NULL));
                }
                OK(s.ctx, k->whole(&s));
                if (k->look(&s) != want) fail_msg("%s: abandoned after %d", k->name, slices);
                if (future(&s) != then)
                    fail_msg("%s: abandoned after %d: the run goes on otherwise", k->name, slices);
            }
            strike(&s);
        }
    }
}

/* Slices end inside of operations, not only between them. */
static void slices_end_inside_a_step(void **state) {
    (void)state;
    tg_train_options o = tg_train_options_default();
    o.eval_every = 0;
    for (unsigned threads = 1; threads <= 3; threads++) {
        run_of r =
            start_run(open_context(threads, NULL, NULL), &tg_preset_find("small")->config, &o);
        int inside = 0, unsteady = 0;
        tg_step_report report;
        tg_status status;
        while ((status = tg_trainer_poll(r.trainer, LEAST, &report)) == TG_PENDING) {
            inside += r.trainer->run.unit > 0;
            unsteady += !tg_trainer_steady(r.trainer);
        }
        OK(r.ctx, status);
        /* With several workers, the others may have taken what is left of a phase. */
        assert_true(threads > 1 || inside > 100);
        assert_true(unsteady > 0);
        end_run(&r);
    }
}

/* --------------------------------------------------------------------------- what has to wait ----
 */

static void refused(stage *s, tg_status status, const char *why) {
    assert_int_equal(status, TG_E_ARG);
    if (!strstr(tg_context_error(s->ctx), why))
        fail_msg("want a message with '%s', have '%s'", why, tg_context_error(s->ctx));
}

static void jobs_keep_others_away(void **state) {
    (void)state;
    stage s = set(2);
    tg_job *job, *second, *step;
    double loss;
    int32_t token;

    /* A save of the run, while a step is on its way. */
    OK(s.ctx, tg_trainer_step_job(s.trainer, NULL, &step));
    assert_int_equal(tg_job_poll(step, LEAST), TG_PENDING);
    OK(s.ctx, tg_trainer_save_job(s.trainer, OTHER, &job));
    assert_int_equal(tg_job_poll(job, LEAST), TG_PENDING);
    refused(&s, tg_trainer_step(s.trainer, NULL), "pending");
    refused(&s, tg_job_poll(step, LEAST), "pending");
    refused(&s, tg_trainer_eval(s.trainer, &loss), "pending");
    refused(&s, tg_trainer_save(s.trainer, SAVE), "pending");
    refused(&s, tg_trainer_eval_job(s.trainer, &loss, &second), "pending");
    assert_null(second);
    refused(&s, tg_trainer_set_steps(s.trainer, 9), "pending");
    tg_job_free(job);
    assert_int_equal(tg_job_poll(step, 0), TG_OK); /* it was only made to wait */
    tg_job_free(step);

    /* A save of the model: its trainer waits, everybody else reads. */
    OK(s.ctx, tg_model_save_job(s.model, OTHER, TG_FILE_V3, &job));
    refused(&s, tg_trainer_step(s.trainer, NULL), "save of its model");
    OK(s.ctx, tg_session_eval(s.session, prompt, 1, NULL));
    OK(s.ctx, tg_trainer_save(s.trainer, SAVE));
    tg_job_free(job);
    OK(s.ctx, tg_trainer_step(s.trainer, NULL));

    /* A session that is being fed. */
    OK(s.ctx, tg_session_eval_job(s.session, prompt, 3, &job));
    refused(&s, tg_session_eval(s.session, prompt, 1, NULL), "pending");
    refused(&s, tg_session_sample(s.session, NULL, 0, &token), "pending");
    refused(&s, tg_session_rewind(s.session, 0), "pending");
    refused(&s, tg_session_slide(s.session), "pending");
    refused(&s, tg_session_slide_job(s.session, &second), "pending");
    const tg_generation one = behind_text("", 0, 1);
    refused(&s, tg_session_continue(s.session, &one, NULL), "pending");
    assert_int_equal(tg_session_tokens(s.session), 6);
    tg_job_free(job);
    OK(s.ctx, tg_session_sample(s.session, NULL, 0, &token));

    OK(s.ctx, tg_probe_run_job(s.probe, prompt, NULL, 0, NULL, &job));
    refused(&s, tg_probe_run(s.probe, prompt, NULL, 0, NULL), "pending");
    tg_job_free(job);
    strike(&s);
}

/* Polls a step until the weights are in the middle of changing. */
static void poll_into_update(stage *s) {
    while (tg_trainer_steady(s->trainer))
        assert_int_equal(tg_trainer_poll(s->trainer, LEAST, &s->report), TG_PENDING);
}

/* While weights change nobody reads them, and a save finishes the update first: its file is that of
 * the whole step, whose report is not lost. */
static void updates_are_not_seen(void **state) {
    (void)state;
    stage whole = set(2);
    OK(whole.ctx, tg_trainer_step(whole.trainer, &whole.report)); /* the 4th: with a validation */
    OK(whole.ctx, tg_trainer_step(whole.trainer, &whole.report));
    OK(whole.ctx, tg_trainer_save(whole.trainer, OTHER));
    const uint64_t file = mix_file(OTHER), then = future(&whole);

    stage s = set(2);
    tg_job *job, *feed;
    OK(s.ctx, tg_trainer_step(s.trainer, NULL));
    OK(s.ctx, tg_session_eval_job(s.session, prompt, 2, &feed));
    poll_into_update(&s);
    refused(&s, tg_session_eval(s.session, prompt, 1, NULL), "pending");
    refused(&s, tg_job_poll(feed, 0), "update");
    refused(&s, tg_probe_run(s.probe, prompt, NULL, 0, NULL), "update");
    refused(&s, tg_model_save(s.model, OTHER, TG_FILE_V3), "update");
    refused(&s, tg_model_tensor(s.model, "ln_final.weight", (float[24]) { 0 }, 24), "update");
    OK(s.ctx, tg_trainer_save_job(s.trainer, OTHER, &job));
    assert_true(poll_out(&s, job, LEAST, "save") > 2);
    assert_true(tg_trainer_steady(s.trainer));
    assert_true(mix_file(OTHER) == file);
    assert_int_equal(tg_job_poll(feed, 0), TG_OK); /* now it may */
    tg_job_free(feed);
    OK(s.ctx, tg_trainer_step(s.trainer, &s.report));
    assert_int_equal(s.report.step, 5);
    assert_true(s.report.loss == whole.report.loss || s.report.loss_hash != whole.report.loss_hash);
    assert_true(future(&s) == then);
    strike(&s);
    strike(&whole);
}

/* A trainer that goes away in the middle of an update leaves whole weights behind. */
static void a_freed_trainer_leaves_whole_weights(void **state) {
    (void)state;
    stage whole = set(2), s = set(2);
    OK(whole.ctx, tg_trainer_step(whole.trainer, NULL));
    poll_into_update(&s);
    tg_trainer_free(s.trainer);
    s.trainer = NULL;
    assert_memory_equal(s.model->weights, whole.model->weights,
                        s.model->layout.n_elems * sizeof(float));
    OK(s.ctx, tg_session_eval(s.session, prompt, 1, NULL));
    strike(&s);
    strike(&whole);
}

/* Sampling between the slices of steps changes nothing in the run. */
static void reading_between_slices(void **state) {
    (void)state;
    stage alone = set(2), s = set(2);
    const uint64_t then = future(&alone);
    tg_status status = TG_OK;
    int texts = 0;
    while (status != TG_STOPPED) {
        status = tg_trainer_poll(s.trainer, LEAST, &s.report);
        if (status == TG_PENDING && tg_trainer_steady(s.trainer)) {
            const tg_generation what = behind_text("To", 2, 3);
            OK(s.ctx, tg_session_continue(s.session, &what, NULL));
            texts++;
        }
    }
    assert_true(texts > 5);
    assert_true(future(&s) == then);
    strike(&s);
    strike(&alone);
}

/* --------------------------------------------------------------------------------- steps, errors
 */

static void goes_on_for_more_steps(void **state) {
    (void)state;
    tg_train_options o = options();
    o.schedule = TG_COSINE;
    stage s = set(2);
    tg_trainer *t = s.trainer;
    future(&s);
    assert_int_equal(tg_trainer_steps_done(t), 8);
    refused(&s, tg_trainer_set_steps(t, 7), "steps");
    refused(&s, tg_trainer_set_steps(t, 0), "steps");
    OK(s.ctx, tg_trainer_set_steps(t, 12));
    future(&s);
    assert_int_equal(tg_trainer_steps_done(t), 12);

    /* The same run as one that was meant to be so long from its 9th step on: the rate follows. */
    run_of a = start_run(open_context(1, NULL, NULL), &nano, &o);
    steps_until(&a, 8);
    OK(a.ctx, tg_trainer_set_steps(a.trainer, 20));
    tg_step_report report;
    OK(a.ctx, tg_trainer_step(a.trainer, &report));
    o.steps = 20;
    run_of b = start_run(open_context(1, NULL, NULL), &nano, &o);
    const tg_step_report want = steps_until(&b, 9);
    assert_true(report.lr == want.lr);
    assert_int_equal(tg_trainer_steps_done(a.trainer), 9);
    end_run(&a);
    end_run(&b);
    strike(&s);
}

/* Patience that was used up ends a run; more steps are asked for in spite of it. */
static void goes_on_after_an_early_stop(void **state) {
    (void)state;
    tg_train_options o = options();
    o.steps = 40;
    o.eval_every = 1;
    o.patience = 1;
    o.lr = 10; /* it only gets worse */
    run_of r = start_run(open_context(2, NULL, NULL), &nano, &o);
    tg_step_report report;
    while (tg_trainer_step(r.trainer, &report) == TG_OK) {
    }
    assert_true(report.early_stop);
    const int64_t done = tg_trainer_steps_done(r.trainer);
    assert_int_equal(tg_trainer_step(r.trainer, &report), TG_STOPPED);
    OK(r.ctx, tg_trainer_set_steps(r.trainer, 50));
    OK(r.ctx, tg_trainer_step(r.trainer, &report));
    assert_int_equal(tg_trainer_steps_done(r.trainer), done + 1);
    end_run(&r);
}

/* What is not finite is found in slices, too. */
static void finds_a_bad_number_in_slices(void **state) {
    (void)state;
    static const char *const tensors[] = { "blocks.1.mlp.fc_in.weight", "grad.blocks.0.ln1.bias" };
    for (size_t i = 0; i < 2; i++) {
        stage s = set(2);
        const uint64_t before = mix_run(s.trainer);
        assert_true(poison(s.trainer, tensors[i], (float)TG_NAN));
        tg_job *job;
        tg_status status;
        int searching = 0;
        OK(s.ctx, tg_trainer_step_job(s.trainer, &s.report, &job));
        while ((status = tg_job_poll(job, LEAST)) == TG_PENDING)
            searching += s.trainer->phase == TG_PHASE_FIND;
        assert_int_equal(status, TG_E_NUMBER);
        assert_int_equal(tg_job_poll(job, LEAST), TG_E_NUMBER);
        assert_non_null(strstr(tg_context_error(s.ctx), i == 0 ? tensors[0] : "blocks.0.ln1.bias"));
        assert_true(searching > 10 || i == 0);
        tg_job_free(job);
        assert_true(mix_run(s.trainer) == before);
        future(&s);
        strike(&s);
    }
}

/* A damaged file is found, by the same words, in slices and at once; its predecessor is taken. */
static void damage_is_found_in_slices(void **state) {
    (void)state;
    make_folder(state);
    stage s = set(1);
    OK(s.ctx, tg_trainer_step(s.trainer, NULL));
    OK(s.ctx, tg_trainer_save(s.trainer, SAVE)); /* SAVE.prev has three steps */
    FILE *f = fopen(SAVE, "r+b");
    fseek(f, -4000, SEEK_END);
    fputc('x', f);
    fclose(f);
    char words[1024];
    assert_int_equal(tg_file_check(s.ctx, SAVE), TG_E_CHECKSUM);
    snprintf(words, sizeof words, "%s", tg_context_error(s.ctx));
    tg_job *job;
    tg_status status;
    OK(s.ctx, tg_file_check_job(s.ctx, SAVE, &job));
    while ((status = tg_job_poll(job, LEAST)) == TG_PENDING) {
    }
    assert_int_equal(status, TG_E_CHECKSUM);
    assert_string_equal(tg_context_error(s.ctx), words);
    tg_job_free(job);
    OK(s.ctx, tg_trainer_open_job(s.ctx, SAVE, s.text, 0, &s.opened, &job));
    poll_out(&s, job, LEAST, "open");
    assert_int_equal(tg_trainer_steps_done(s.opened), 3);
    strike(&s);
}

/* ------------------------------------------------------------------------- third-party files */

/* How the check of a file ends, and in how many slices. */
static tg_status check_in_slices(tg_context *ctx, const char *path, double budget_ms, int *slices) {
    tg_job *job;
    tg_status status;
    *slices = 1;
    OK(ctx, tg_file_check_job(ctx, path, &job));
    while ((status = tg_job_poll(job, budget_ms)) == TG_PENDING) (*slices)++;
    tg_job_free(job);
    return status;
}

/* A copy of a file in the folder of this test, with a byte of it changed, counted from the end. */
static const char *damaged(const char *path, long from_end, int flip) {
    static char copy[] = FOLDER "/damaged";
    FILE *in = fopen(path, "rb"), *out = fopen(copy, "wb");
    int c;
    assert_true(in && out && fseek(in, 0, SEEK_END) == 0);
    const long n = ftell(in);
    rewind(in);
    for (long i = 0; (c = fgetc(in)) != EOF; i++) fputc(i == n - from_end ? c ^ flip : c, out);
    fclose(in);
    fclose(out);
    return copy;
}

/* Every form of a model that metadata describe: many slices, one, and abandoned after each. */
static void third_party_files_are_checked_in_slices(void **state) {
    static const char *const files[] = { "test/golden/lm/llama.gguf",
                                         "test/golden/lm/qwen2-split-00001-of-00004.gguf",
                                         "test/golden/lm/llama3", "test/golden/lm/tune_llama.zip",
                                         "build/test/jobs_third_party.tgpt" };
    const char *const own = files[4];
    make_folder(state);
    tg_context *ctx = open_context(1, NULL, NULL);
    OK(ctx, tg_model_convert(ctx, files[0], own, TG_FILE_V3, TG_WEIGHT_F32, NULL));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        int slices, one;
        OK(ctx, check_in_slices(ctx, files[i], LEAST, &slices));
        OK(ctx, check_in_slices(ctx, files[i], 0, &one));
        if (slices < 10) fail_msg("%s: %d slices", files[i], slices);
        assert_int_equal(one, 1);
        for (int stop = 0; stop < slices; stop += 1 + stop / 3) {
            tg_job *job;
            OK(ctx, tg_file_check_job(ctx, files[i], &job));
            for (int k = 0; k < stop; k++) assert_int_equal(tg_job_poll(job, LEAST), TG_PENDING);
            tg_job_free(job);
        }
    }
    int slices;
    /* In the data of tensors, in the hash, and in a float's exponent, which GGUF has no sum over.
     */
    assert_int_equal(check_in_slices(ctx, damaged(own, 100, 1), LEAST, &slices), TG_E_CHECKSUM);
    assert_non_null(strstr(tg_context_error(ctx), "chunk"));
    assert_int_equal(check_in_slices(ctx, damaged(own, 1, 1), LEAST, &slices), TG_E_CHECKSUM);
    assert_non_null(strstr(tg_context_error(ctx), "SHA-256"));
    assert_int_equal(tg_file_check(ctx, FOLDER "/absent"), TG_E_IO);
    assert_non_null(strstr(tg_context_error(ctx), FOLDER "/absent"));
    tg_context_free(ctx);
}

/* Floats in slices: the weights of the blocking call; and what is refused is so at once. */
static void floats_are_opened_in_slices(void **state) {
    (void)state;
    tg_context *ctx = open_context(2, NULL, NULL);
    tg_model *whole, *cut = NULL;
    tg_job *job;
    tg_status status;
    int slices = 1;
    OK(ctx, tg_model_open_floats(ctx, "test/golden/lm/tune_qwen3.zip", &whole));
    OK(ctx, tg_model_open_floats_job(ctx, "test/golden/lm/tune_qwen3.zip", &cut, &job));
    while ((status = tg_job_poll(job, LEAST)) == TG_PENDING) slices++;
    OK(ctx, status);
    tg_job_free(job);
    assert_true(slices > 3);
    assert_int_equal(whole->layout.n_elems, cut->layout.n_elems);
    assert_memory_equal(whole->weights, cut->weights, whole->layout.n_elems * sizeof(float));
    tg_model_free(cut);
    tg_model_free(whole);
    cut = NULL;
    OK(ctx, tg_model_open_floats_job(ctx, "test/golden/lm/mlx4", &cut, &job));
    while ((status = tg_job_poll(job, LEAST)) == TG_PENDING) {
    }
    assert_int_equal(status, TG_E_UNSUPPORTED);
    assert_null(cut);
    tg_job_free(job);
    tg_context_free(ctx);
}

/* ---------------------------------------------------------------------------------------- memory
 */

static bool poll_all(tg_status made, tg_job *job) {
    tg_status status;
    if (made != TG_OK) {
        assert_null(job);
        return false;
    }
    while ((status = tg_job_poll(job, LEAST)) == TG_PENDING) {
    }
    tg_job_free(job);
    return status == TG_OK;
}

/* Every kind of job, with an allocator that fails at one place. True if all went well. */
static bool whole_program(test_alloc *a) {
    tg_context_options co = tg_context_options_default();
    co.threads = 2;
    co.alloc = test_alloc_fn;
    co.alloc_user = a;
    const tg_model_config small = { 1, 8, 2, 8, 256, 32 };
    tg_train_options o = options();
    stage s = { .heard = MIX_START };
    char bytes[600];
    memset(bytes, 'x', sizeof bytes);
    bool ok = tg_context_new(&co, &s.ctx) == TG_OK;
#define JOB(call)                                                                                  \
    do {                                                                                           \
        tg_job *job = NULL;                                                                        \
        const tg_status made = ok ? (call) : TG_E_MEMORY;                                          \
        ok = poll_all(made, job);                                                                  \
    } while (0)
    ok = ok && tg_text_from_memory(s.ctx, bytes, sizeof bytes, &s.text) == TG_OK;
    JOB(tg_text_lint_job(s.text, 8, 0.1, hear_lint, &s, &job));
    JOB(tg_text_sha256_job(s.text, s.digest, &job));
    JOB(tg_stories_job(s.ctx, 1, 5000, hear_text, &s, &job));
    JOB(tg_model_new_job(s.ctx, &small, 7, &s.model, &job));
    JOB(tg_trainer_new_job(s.ctx, s.model, s.text, &o, &s.trainer, &job));
    for (int i = 0; i < 3; i++) JOB(tg_trainer_step_job(s.trainer, &s.report, &job));
    JOB(tg_trainer_eval_job(s.trainer, &s.number, &job));
    JOB(tg_trainer_save_job(s.trainer, SAVE, &job));
    JOB(tg_trainer_save_best_job(s.trainer, OTHER, &job));
    JOB(tg_file_check_job(s.ctx, SAVE, &job));
    (void)remove(OTHER); /* which a safetensors file would not replace */
    JOB(tg_model_convert_job(s.ctx, SAVE, OTHER, TG_FILE_SAFETENSORS, &job));
    JOB(tg_model_convert_job(s.ctx, SAVE, FOREIGN, TG_FILE_GGUF, &job));
    JOB(tg_model_eval_job(s.ctx, s.model, s.text, 0.1, 0, &s.number, &job));
    JOB(tg_trainer_open_job(s.ctx, SAVE, s.text, 0, &s.opened, &job));
    JOB(tg_model_open_job(s.ctx, OTHER, &s.other, &job));
    JOB(tg_model_save_job(s.model, OTHER, TG_FILE_V2_INT4, &job));
    JOB(tg_model_save_job(s.model, OTHER, TG_FILE_V3, &job));
    ok = ok && tg_session_new(s.ctx, s.model, 0, &s.session) == TG_OK;
    JOB(tg_session_eval_job(s.session, prompt, 5, &job));
    JOB(tg_session_slide_job(s.session, &job));
    const tg_generation what = heard_text(&s, 12, 9);
    JOB(tg_session_continue_job(s.session, &what, NULL, &job));
    ok = ok && tg_probe_new(s.ctx, s.model, 4, &s.probe) == TG_OK;
    JOB(tg_probe_run_job(s.probe, prompt, NULL, 0, NULL, &job));
    JOB(tg_check_kernels_job(s.ctx, "bias_grad", hear_check, &s, &s.count, &job));
#undef JOB
    if (!ok && s.ctx) assert_true(strlen(tg_context_error(s.ctx)) > 0);
    strike(&s);
    return ok;
}

static void every_allocation_may_fail(void **state) {
    make_folder(state);
    test_alloc count = { .fail_at = 0 };
    assert_true(whole_program(&count));
    assert_int_equal(count.live_pieces, 0);
    for (size_t i = 1; i <= count.requests; i++) {
        test_alloc a = { .fail_at = i };
        if (whole_program(&a)) fail_msg("request %zu of %zu failed unnoticed", i, count.requests);
        assert_int_equal(a.live_pieces, 0);
    }
    print_message("%zu allocations failed\n", count.requests);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_do_not_matter),
        cmocka_unit_test(abandoned_is_not_begun),
        cmocka_unit_test(third_party_files_are_checked_in_slices),
        cmocka_unit_test(floats_are_opened_in_slices),
        cmocka_unit_test(slices_end_inside_a_step),
        cmocka_unit_test(jobs_keep_others_away),
        cmocka_unit_test(updates_are_not_seen),
        cmocka_unit_test(a_freed_trainer_leaves_whole_weights),
        cmocka_unit_test(reading_between_slices),
        cmocka_unit_test(goes_on_for_more_steps),
        cmocka_unit_test(goes_on_after_an_early_stop),
        cmocka_unit_test(finds_a_bad_number_in_slices),
        cmocka_unit_test(damage_is_found_in_slices),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
