/*
 * tinygpt.c - the public calls: arguments are checked, the last error is cleared, run/ and io/ do
 * the work. Nothing else happens here.
 */
#include "tinygpt.h"

#include "backend/cpu/check.h"
#include "base/math.h"
#include "io/tools.h"
#include "run/inspect.h"
#include "run/session.h"
#include "run/stories.h"
#include "run/train.h"
#include "simd/cpu.h"

/* Forgets the last error and refuses a missing argument by name. */
#define ENTER(ctx)                                                                                 \
    do {                                                                                           \
        if (!(ctx)) return TG_E_ARG;                                                               \
        tg_ctx_clear(&(ctx)->err);                                                                 \
    } while (0)
#define WANT(ctx, argument)                                                                        \
    do {                                                                                           \
        if (!(argument))                                                                           \
            return tg_fail(&(ctx)->err, TG_E_ARG, "%s: want a value for " #argument ", have NULL", \
                           __func__);                                                              \
    } while (0)

/* A constant of the library's is a context of the object's own. */
static tg_context *context_of(const tg_model *m) { return m ? m->ctx : NULL; }

const char *tg_version(void) { return TG_VERSION_TEXT; }

/* ---------------------------------------------------------------------------------------- context
 */

tg_context_options tg_context_options_default(void) {
    return (tg_context_options) { .threads = 0 };
}

tg_status tg_context_new(const tg_context_options *options, tg_context **out) {
    const tg_context_options defaults = tg_context_options_default();
    if (!out) return TG_E_ARG;
    return tg_runtime_new(options ? options : &defaults, out);
}

void tg_context_free(tg_context *ctx) { tg_runtime_free(ctx); }

const char *tg_context_error(const tg_context *ctx) {
    return ctx ? ctx->err.message : "no context: there was no memory for one";
}
const char *tg_context_banner(const tg_context *ctx) { return ctx->banner; }
unsigned tg_context_threads(const tg_context *ctx) { return ctx->threads; }

const char *tg_context_isa(const tg_context *ctx) {
    size_t n;
    return tg_isa_list(&n)[ctx->isa].name;
}

/* ------------------------------------------------------------------------------------------ model
 */

uint64_t tg_param_count(const tg_gpt_config *config) { return tg_manifest_elems(config); }

tg_status tg_model_new(tg_context *ctx, const tg_gpt_config *config, uint64_t seed,
                       tg_model **out) {
    ENTER(ctx);
    WANT(ctx, config);
    WANT(ctx, out);
    TG_TRY(tg_weights_alloc(ctx, config, out));
    tg_weights_init(*out, seed);
    return TG_OK;
}

tg_status tg_model_open(tg_context *ctx, const char *path, tg_model **out) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, out);
    return tg_weights_open(ctx, path, out);
}

void tg_model_free(tg_model *model) { tg_weights_free(model); }

tg_status tg_model_get_info(const tg_model *m, tg_model_info *out) {
    if (!m || !out) return TG_E_ARG;
    *out = (tg_model_info) {
        .family = m->family->name,
        .config = m->layout.config,
        .params = tg_manifest_elems(&m->layout.config),
        .weight_bytes = (uint64_t)m->layout.n_elems * sizeof(float),
        .format = m->format,
        .dtype = m->dtype,
        .step = m->step,
        .loss = m->loss,
        .val_loss = m->val_loss,
        .has_moments = m->has_moments,
    };
    return TG_OK;
}

tg_status tg_model_save(tg_model *model, const char *path, tg_file_kind kind) {
    tg_context *ctx = context_of(model);
    ENTER(ctx);
    WANT(ctx, path);
    return tg_weights_save(model, path, kind);
}

tg_status tg_model_tensor(const tg_model *model, const char *name, float *out, size_t n_elems) {
    tg_context *ctx = context_of(model);
    ENTER(ctx);
    WANT(ctx, name);
    WANT(ctx, out);
    const tg_tensor_spec *t = tg_weights_find(model, name);
    if (!t) return tg_fail(&ctx->err, TG_E_ARG, "tensor: there is none of the name %s", name);
    if (n_elems != t->rows * t->cols)
        return tg_fail(&ctx->err, TG_E_ARG, "tensor %s: want room for %zu elements, have %zu", name,
                       t->rows * t->cols, n_elems);
    tg_weights_copy_out(t, model->weights, 0, n_elems, out);
    return TG_OK;
}

tg_status tg_model_tokenize(const tg_model *model, const char *text, size_t n_bytes, int32_t *ids,
                            size_t cap, size_t *n) {
    tg_context *ctx = context_of(model);
    ENTER(ctx);
    WANT(ctx, n);
    if (n_bytes) WANT(ctx, text);
    *n = n_bytes;
    if (!ids) return TG_OK;
    if (cap < n_bytes)
        return tg_fail(&ctx->err, TG_E_FULL, "tokenize: want room for %zu ids, have %zu", n_bytes,
                       cap);
    for (size_t i = 0; i < n_bytes; i++) ids[i] = (uint8_t)text[i];
    return TG_OK;
}

/* Every byte, each a piece of its own. */
#define BYTES4(i)  (char)(i), (char)((i) + 1), (char)((i) + 2), (char)((i) + 3)
#define BYTES16(i) BYTES4(i), BYTES4((i) + 4), BYTES4((i) + 8), BYTES4((i) + 12)
#define BYTES64(i) BYTES16(i), BYTES16((i) + 16), BYTES16((i) + 32), BYTES16((i) + 48)
static const char all_bytes[256] = { BYTES64(0), BYTES64(64), BYTES64(128), BYTES64(192) };

const char *tg_model_piece(const tg_model *model, int32_t id, size_t *n_bytes) {
    if (!model || id < 0 || id >= model->layout.config.vocab || id > 255) return NULL;
    if (n_bytes) *n_bytes = 1;
    return &all_bytes[id];
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

void tg_text_free(tg_text *text) { tg_text_delete(text); }
uint64_t tg_text_bytes(const tg_text *text) { return text->n_bytes; }

tg_status tg_text_lint(tg_text *text, int32_t ctx_tokens, double val_fraction, tg_lint_fn report,
                       void *user) {
    tg_context *ctx = text ? text->ctx : NULL;
    ENTER(ctx);
    WANT(ctx, report);
    return tg_text_find_faults(text, ctx_tokens, val_fraction, report, user);
}

/* The stories' sink has a status, the public one an int. */
typedef struct story_sink {
    tg_text_fn write;
    void *user;
} story_sink;

static tg_status pass_story(void *user, const char *bytes, size_t n) {
    const story_sink *s = user;
    return s->write(s->user, bytes, n) == 0 ? TG_OK : TG_STOPPED;
}

tg_status tg_stories(uint64_t seed, uint64_t n_bytes, tg_text_fn write, void *user) {
    if (!write) return TG_E_ARG;
    story_sink sink = { write, user };
    return tg_stories_generate(seed, n_bytes, pass_story, &sink);
}

/* --------------------------------------------------------------------------------------- training
 */

tg_train_options tg_train_options_default(void) {
    return (tg_train_options) {
        .steps = 1000,
        .accum = 1,
        .lr = 3e-4,
        .min_lr_ratio = 0.1,
        .schedule = TG_CONSTANT,
        .decay_fraction = 0.2,
        .weight_decay = 0.1,
        .beta1 = 0.9,
        .beta2 = 0.95,
        .eps = 1e-8,
        .clip = 1,
        .seed = 42,
        .val_fraction = 0.1,
        .eval_every = 100,
        .eval_windows = 64,
        .keep_best = true,
    };
}

tg_status tg_trainer_new(tg_context *ctx, tg_model *model, tg_text *text,
                         const tg_train_options *options, tg_trainer **out) {
    ENTER(ctx);
    WANT(ctx, model);
    WANT(ctx, text);
    WANT(ctx, out);
    const tg_train_options defaults = tg_train_options_default();
    return tg_train_new(ctx, model, text, options ? options : &defaults, out);
}

tg_status tg_trainer_open(tg_context *ctx, const char *path, tg_text *text, int64_t steps,
                          tg_trainer **out) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, text);
    WANT(ctx, out);
    return tg_train_open(ctx, path, text, steps, out);
}

void tg_trainer_free(tg_trainer *trainer) { tg_train_free(trainer); }
tg_model *tg_trainer_model(tg_trainer *trainer) { return trainer->model; }
int64_t tg_trainer_steps_done(const tg_trainer *trainer) { return trainer->step; }
void tg_trainer_options(const tg_trainer *trainer, tg_train_options *out) { *out = trainer->o; }

tg_status tg_trainer_forecast(tg_trainer *trainer, tg_forecast *out) {
    if (!trainer || !out) return TG_E_ARG;
    tg_ctx_clear(&trainer->ctx->err);
    return tg_train_forecast(trainer->ctx, &trainer->model->layout.config, trainer->text,
                             &trainer->o, &trainer->plans, out);
}

tg_status tg_forecast_run(tg_context *ctx, const tg_gpt_config *config, tg_text *text,
                          const tg_train_options *options, tg_forecast *out) {
    ENTER(ctx);
    WANT(ctx, config);
    WANT(ctx, options);
    WANT(ctx, out);
    return tg_train_forecast(ctx, config, text, options, NULL, out);
}

tg_status tg_trainer_poll(tg_trainer *trainer, double budget_ms, tg_step_report *out) {
    if (!trainer) return TG_E_ARG;
    tg_ctx_clear(&trainer->ctx->err);
    return tg_train_poll(trainer, budget_ms, out);
}

tg_status tg_trainer_step(tg_trainer *trainer, tg_step_report *out) {
    return tg_trainer_poll(trainer, 0, out);
}

tg_status tg_trainer_eval(tg_trainer *trainer, double *loss) {
    if (!trainer || !loss) return TG_E_ARG;
    tg_ctx_clear(&trainer->ctx->err);
    if (trainer->o.val_fraction > 0 && trainer->split.val_bytes == 0)
        return tg_fail(&trainer->ctx->err, TG_E_DATA,
                       "evaluation: the validation part is shorter than a window of %d tokens",
                       (int)trainer->model->layout.config.ctx + 1);
    const tg_split whole = { 0, trainer->text->n_bytes };
    const tg_split *split = trainer->split.val_bytes > 0 ? &trainer->split : &whole;
    tg_eval_state e;
    TG_TRY(tg_eval_begin(trainer, split, trainer->o.eval_windows, &e));
    return tg_eval_go_on(trainer, split, &e, 0, loss);
}

tg_status tg_trainer_save(tg_trainer *trainer, const char *path) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    WANT(trainer->ctx, path);
    return tg_train_save(trainer, path);
}

tg_status tg_trainer_save_best(tg_trainer *trainer, const char *path) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    WANT(trainer->ctx, path);
    return tg_train_save_best(trainer, path);
}

const tg_history_point *tg_trainer_history(const tg_trainer *trainer, size_t *n) {
    *n = trainer->n_history;
    return trainer->history;
}

tg_status tg_trainer_run(tg_trainer *trainer, const tg_callbacks *callbacks,
                         const char *save_path) {
    if (!trainer) return TG_E_ARG;
    tg_ctx_clear(&trainer->ctx->err);
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
    if (save_path) TG_TRY(tg_train_save(trainer, save_path));
    return trainer->step >= trainer->o.steps || report.early_stop ? TG_OK : TG_STOPPED;
}

/* --------------------------------------------------------------------------------------- sampling
 */

tg_sample_options tg_sample_options_default(void) {
    return (tg_sample_options) {
        .temperature = 0.8, .top_p = 1, .repeat_penalty = 1, .repeat_last = 64, .seed = 42
    };
}

tg_status tg_session_new(tg_context *ctx, tg_model *model, int32_t ctx_tokens, tg_session **out) {
    ENTER(ctx);
    WANT(ctx, model);
    WANT(ctx, out);
    return tg_session_open(ctx, model, ctx_tokens, out);
}

void tg_session_free(tg_session *session) { tg_session_close(session); }
size_t tg_session_tokens(const tg_session *session) { return (size_t)session->n_tokens; }
size_t tg_session_capacity(const tg_session *session) { return (size_t)session->capacity; }

tg_status tg_session_eval(tg_session *session, const int32_t *tokens, size_t n,
                          const float **logits) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    if (n) WANT(session->ctx, tokens);
    return tg_session_feed(session, tokens, n, logits);
}

tg_status tg_session_sample(tg_session *session, const tg_sample_options *options, uint64_t index,
                            int32_t *token) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    WANT(session->ctx, token);
    const tg_sample_options defaults = tg_sample_options_default();
    return tg_session_draw(session, options ? options : &defaults, index, token);
}

tg_status tg_session_rewind(tg_session *session, size_t n) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    if (n > (size_t)session->n_tokens)
        return tg_fail(&session->ctx->err, TG_E_RANGE, "rewind: want 0..%d tokens, have %zu",
                       (int)session->n_tokens, n);
    session->n_tokens = (int32_t)n;
    return TG_OK;
}

tg_status tg_session_slide(tg_session *session) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    return tg_session_make_room(session);
}

tg_status tg_session_generate(tg_session *session, const char *prompt, size_t prompt_bytes,
                              const tg_sample_options *options, size_t n_tokens, tg_text_fn write,
                              tg_cancel_fn cancel, void *user, int32_t *ids,
                              tg_generate_stats *stats) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    if (prompt_bytes) WANT(session->ctx, prompt);
    const tg_sample_options defaults = tg_sample_options_default();
    return tg_session_write(session, prompt, prompt_bytes, options ? options : &defaults, n_tokens,
                            write, cancel, user, ids, stats);
}

tg_status tg_generate(tg_context *ctx, tg_model *model, const char *prompt, size_t prompt_bytes,
                      const tg_sample_options *options, size_t n_tokens, tg_text_fn write,
                      void *user) {
    tg_session *session;
    TG_TRY(tg_session_new(ctx, model, 0, &session));
    const tg_status s = tg_session_generate(session, prompt, prompt_bytes, options, n_tokens, write,
                                            NULL, user, NULL, NULL);
    tg_session_free(session);
    return s;
}

/* ------------------------------------------------------------------------------------------ files
 */

tg_status tg_file_info(tg_context *ctx, const char *path, bool json, tg_text_fn write, void *user) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, write);
    return tg_io_info(&ctx->err, path, json, write, user);
}

tg_status tg_file_check(tg_context *ctx, const char *path) {
    ENTER(ctx);
    WANT(ctx, path);
    return tg_io_check(&ctx->err, path);
}

tg_status tg_file_compare(tg_context *ctx, const char *path_a, const char *path_b, bool *equal,
                          tg_text_fn write, void *user) {
    ENTER(ctx);
    WANT(ctx, path_a);
    WANT(ctx, path_b);
    WANT(ctx, equal);
    return tg_io_compare(&ctx->err, path_a, path_b, equal, write, user);
}

tg_status tg_file_convert(tg_context *ctx, const char *path_in, const char *path_out,
                          tg_file_kind kind) {
    ENTER(ctx);
    WANT(ctx, path_in);
    WANT(ctx, path_out);
    return tg_io_convert(&ctx->err, path_in, path_out, kind);
}

/* --------------------------------------------------------------------------------------- unstable
 */

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
    info[i] = (tg_lever_info) { l->name, l->doc, l->default_on, l->keeps_bits, l->state };
    return &info[i];
}

bool tg_context_lever(const tg_context *ctx, const char *name) {
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
    ENTER(ctx);
    WANT(ctx, gflops);
    return tg_runtime_measure_peak(ctx, gflops);
}

tg_status tg_measure_read(tg_context *ctx, size_t n_bytes, double *bytes_per_s) {
    ENTER(ctx);
    WANT(ctx, bytes_per_s);
    if (n_bytes < (size_t)1024 * ctx->threads)
        return tg_fail(&ctx->err, TG_E_ARG, "measure: want at least %zu bytes, have %zu",
                       (size_t)1024 * ctx->threads, n_bytes);
    return tg_runtime_measure_read(ctx, n_bytes, bytes_per_s);
}

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
    ENTER(ctx);
    WANT(ctx, n_failed);
    const tg_check_options o = { ctx->isa, ctx->levers, false, filter, report, user };
    size_t n_run;
    return tg_check_ops(&ctx->err, &o, &n_run, n_failed);
}

tg_status tg_check_gradients(tg_context *ctx, const char *filter, tg_check_fn report, void *user,
                             size_t *n_failed) {
    ENTER(ctx);
    WANT(ctx, n_failed);
    const tg_check_options o = { ctx->isa, ctx->levers, false, filter, report, user };
    size_t n_run;
    TG_TRY(tg_check_op_gradients(&ctx->err, &o, &n_run, n_failed));
    return filter ? TG_OK : tg_inspect_model_gradients(ctx, report, user, n_failed);
}

tg_status tg_dump(tg_context *ctx, const tg_gpt_config *config, const char *which, int32_t batch,
                  tg_text_fn write, void *user) {
    ENTER(ctx);
    WANT(ctx, config);
    WANT(ctx, which);
    WANT(ctx, write);
    return tg_inspect_dump(ctx, config, which, batch, write, user);
}

tg_status tg_trainer_profile(tg_trainer *trainer, int n_steps, tg_profile_fn report, void *user) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    WANT(trainer->ctx, report);
    return tg_inspect_profile(trainer, n_steps > 0 ? n_steps : 1, report, user);
}

tg_status tg_trainer_poison(tg_trainer *trainer, const char *tensor, float value) {
    if (!trainer) return TG_E_ARG;
    ENTER(trainer->ctx);
    WANT(trainer->ctx, tensor);
    const bool gradient = strncmp(tensor, "grad.", 5) == 0;
    const tg_tensor_spec *t = tg_weights_find(trainer->model, tensor + (gradient ? 5 : 0));
    if (!t) return tg_fail(&trainer->ctx->err, TG_E_ARG, "poison: there is no tensor %s", tensor);
    trainer->poison = (tg_poison) { true, gradient, t->offset_elems, value };
    return TG_OK;
}
