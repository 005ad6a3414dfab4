/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - feeding tokens through the cached plans.
 */
#include "engine/session.h"

#include "engine/all_rows.h"

#include "base/math.h"
#include "base/time.h"
#include "ops/attention/cache/kv_row.h"
#include "ops/build.h"

/* The classes of session.h. The rows of a plan are dynamic, so a short piece in a long class costs
 * no more arithmetic; but variants of kernels are chosen, and the workspace is laid out, for the
 * most rows that may come. */
static const int32_t class_rows[TG_SESSION_CLASSES] = { 1, 32, TG_SESSION_ROWS_MAX };

/* Weights and caches are states, so that all classes bind the same memory and see what another one
 * has appended. built is set before anything can fail: close() then frees whatever there is of the
 * graph. The plan lies in the graph's arena and goes with it. */
static tg_status build_class(tg_decoder *d, tg_session_class *k) {
    k->built = true;
    TG_TRY(tg_graph_init(&k->graph, &d->ctx->err, d->ctx->levers));
    tg_graph *g = &k->graph;
    tg_net net;
    tg_weights_net(d->model, g, &net);
    net.cache = tg_cache_net(&d->cache, g, (size_t)k->rows, &k->rows_in);
    if (!net.cache) return tg_fail_memory(&d->ctx->err, "list of caches", sizeof *net.cache);
    if (k->every_row) net.answers = TG_ANSWER_ROWS;
    k->tokens = tg_input_rows(g, "tokens", tg_type_1d(TG_I32, (size_t)k->rows));
    k->logits = tg_net_logits(&net, k->tokens);
    if (g->status == TG_OK) tg_output(g, k->logits, "logits");
    /* A GPU is asked once a token, not twice. */
    if (k->rows == 1 && !k->every_row && d->ctx->backend != d->ctx->cpu) {
        k->recent = tg_input(g, "recent", tg_type_1d(TG_I32, TG_RECENT_MAX));
        k->drawn = tg_sample(g, k->logits, k->recent);
    }
    if (k->drawn && g->status == TG_OK) tg_output(g, k->drawn, "token");
    TG_TRY(tg_graph_finish(g));
    const char *const name = k->every_row    ? "verify"
                             : k->rows == 1  ? "decode"
                             : k->rows <= 32 ? "chunk"
                                             : "prompt";
    tg_plan_options o = tg_runtime_plan_options(d->ctx, name);
    o.rows_alone = k->every_row;
    TG_TRY(tg_plan_build(&k->plan, g, &o));
    k->plan.carry_in = k->drawn ? k->tokens : NULL;
    k->plan.carry_out = k->drawn;
    return TG_OK;
}

/* All classes take the same workspace, one after the other. Nothing in it is kept from call to
 * call: what lasts, the caches, is bound from a block of its own. */
static tg_status bind_class(tg_decoder *d, tg_session_class *k, void *memory) {
    tg_plan_place(&k->plan, memory);
    TG_TRY(tg_weights_bind(d->model, &k->plan));
    return tg_cache_bind(&d->cache, &k->plan);
}

static void free_class(tg_session_class *k) {
    if (k->built) tg_graph_deinit(&k->graph);
    k->built = false;
    k->recent = k->drawn = NULL;
}

/* Its memory is its own: the rows' logits are read while other plans run. */
tg_status tg_decoder_want_rows(tg_decoder *d) {
    tg_session_class *k = &d->rows;
    if (k->memory.data) return TG_OK;
    const int32_t most = d->cache.n_sequences > TG_AHEAD_MAX ? d->cache.n_sequences : TG_AHEAD_MAX;
    k->every_row = true;
    k->rows = d->cache.n_sequences == 1 && d->capacity < most ? d->capacity : most;
    free_class(k); /* of a call that failed */
    TG_TRY(build_class(d, k));
    TG_TRY(tg_runtime_block(d->ctx, tg_plan_memory_bytes(&k->plan), &k->memory));
    const tg_status status = bind_class(d, k, k->memory.data);
    if (status != TG_OK) tg_runtime_block_free(d->ctx, &k->memory);
    return status;
}

static tg_status build_plans(tg_decoder *d) {
    size_t bytes = 0;
    for (int i = 0; i < TG_SESSION_CLASSES; i++) {
        tg_session_class *k = &d->by_rows[i];
        k->rows = class_rows[i] < d->capacity ? class_rows[i] : d->capacity;
        TG_TRY(build_class(d, k));
        if (tg_plan_memory_bytes(&k->plan) > bytes) bytes = tg_plan_memory_bytes(&k->plan);
    }
    TG_TRY(tg_runtime_block(d->ctx, bytes, &d->memory));
    for (int i = 0; i < TG_SESSION_CLASSES; i++)
        TG_TRY(bind_class(d, &d->by_rows[i], d->memory.data));
    return TG_OK;
}

static void free_plans(tg_decoder *d) {
    for (int i = 0; i < TG_SESSION_CLASSES; i++) free_class(&d->by_rows[i]);
    free_class(&d->rows);
    tg_runtime_block_free(d->ctx, &d->rows.memory);
    tg_runtime_block_free(d->ctx, &d->memory);
}

tg_status tg_decoder_want_plans(tg_decoder *d) {
    if (d->memory.data && !(d->by_rows[0].plan.levers & d->ctx->backend->unwanted_levers))
        return TG_OK;
    free_plans(d);
    const tg_status status = build_plans(d);
    if (status != TG_OK) free_plans(d);
    return status;
}

static tg_status build(tg_decoder *d, int32_t n_sessions) {
    TG_TRY(tg_cache_init(&d->cache, d->ctx, &d->arena, &d->model->layout.config, d->kv, d->capacity,
                         TG_SESSION_ROWS_MAX, n_sessions));
    tg_cache_pages_begin(d);
    return build_plans(d);
}

tg_status tg_decoder_open(tg_context *ctx, tg_model *model, int32_t ctx_tokens, tg_kv_type kv,
                          int32_t n_sessions, tg_decoder **out) {
    static const tg_dtype dtypes[] = { TG_F32, TG_F16, TG_U8 };
    *out = NULL;
    if ((unsigned)kv > TG_KV_INT8)
        return tg_fail(&ctx->err, TG_E_ARG, "session: kv: want 0..%d, have %d", TG_KV_INT8,
                       (int)kv);
    const int32_t T = model->layout.config.ctx;
    if (ctx_tokens < 0 || ctx_tokens > T)
        return tg_fail(&ctx->err, TG_E_ARG, "session: ctx: want 0 (the model's) or 1..%d, have %d",
                       (int)T, (int)ctx_tokens);
    TG_TRY(tg_all_rows_want_writer(ctx, model, "session"));
    tg_decoder *d = tg_alloc(&ctx->err.mem, sizeof *d);
    if (!d) return tg_fail_memory(&ctx->err, "session", sizeof *d);
    d->ctx = ctx;
    d->model = model;
    d->kv = dtypes[kv];
    /* Windows that a file states are as long as they could be, and would take gigabytes. */
    const int32_t usual = model->metadata && T > TG_SESSION_USUAL_CTX ? TG_SESSION_USUAL_CTX : T;
    d->capacity = ctx_tokens ? ctx_tokens : usual;
    tg_arena_init(&d->arena, &ctx->err.mem);
    const tg_status status = build(d, n_sessions);
    if (status == TG_OK)
        *out = d;
    else
        tg_decoder_close(d);
    return status;
}

void tg_decoder_close(tg_decoder *d) {
    if (!d) return;
    const tg_mem mem = d->ctx->err.mem;
    free_plans(d);
    tg_cache_deinit(&d->cache);
    tg_runtime_block_free(d->ctx, &d->copies.block);
    tg_arena_deinit(&d->arena);
    tg_free(&mem, d, sizeof *d);
}

/* The same for every model but for the vocabulary. `recent` is an input of fixed size, of which the
 * run-time scalar n_recent says how much counts: a plan does not change its shapes from token to
 * token. */
static tg_status build_sample(tg_session *s) {
    s->sample_built = true;
    TG_TRY(tg_graph_init(&s->sample_graph, &s->ctx->err, s->ctx->levers));
    tg_graph *g = &s->sample_graph;
    s->sample_logits =
        tg_input(g, "logits", tg_type_2d(TG_F32, 1, (size_t)s->model->layout.config.vocab));
    s->recent = tg_input(g, "recent", tg_type_1d(TG_I32, TG_RECENT_MAX));
    s->token = tg_sample(g, s->sample_logits, s->recent);
    if (g->status == TG_OK) tg_output(g, s->token, "token");
    TG_TRY(tg_graph_finish(g));
    const tg_plan_options o = tg_runtime_plan_options(s->ctx, "sample");
    return tg_plan_build(&s->sample, g, &o);
}

/* s->logits points at the sampling plan's input, so that logits can go straight in. It outlives the
 * plan that computed them, and it is what is handed out until the next feed has ended. */
static tg_status make_session(tg_session *s) {
    TG_TRY(build_sample(s));
    TG_TRY(tg_runtime_block(s->ctx, tg_plan_memory_bytes(&s->sample), &s->sample_memory));
    tg_plan_place(&s->sample, s->sample_memory.data);
    s->logits = tg_plan_data(&s->sample, s->sample_logits);
    s->fed = tg_arena_array(&s->arena, (size_t)s->capacity, sizeof *s->fed);
    return s->fed ? TG_OK
                  : tg_fail_memory(&s->ctx->err, "tokens of a session", (size_t)s->capacity * 4);
}

/* The one place that allocates: feeding and drawing later only write into what is made here. (The
 * backend grows its counters at the first run of a longer plan than it has seen.) */
tg_status tg_session_open_in(tg_decoder *d, int32_t sequence, tg_session **out) {
    *out = NULL;
    tg_session *s = tg_alloc(&d->ctx->err.mem, sizeof *s);
    if (!s) return tg_fail_memory(&d->ctx->err, "session", sizeof *s);
    s->ctx = d->ctx;
    s->generation = d->ctx->generation;
    s->model = d->model;
    s->d = d;
    s->of_batch = true;
    s->sequence = sequence;
    s->capacity = d->capacity;
    s->on.position = -1;
    s->drawn = -1;
    s->expected = tg_draw_greedy();
    tg_arena_init(&s->arena, &d->ctx->err.mem);
    const tg_status status = make_session(s);
    if (status == TG_OK)
        *out = s;
    else
        tg_session_close(s);
    return status;
}

tg_status tg_session_open(tg_context *ctx, tg_model *model, int32_t ctx_tokens, tg_kv_type kv,
                          tg_session **out) {
    tg_decoder *d;
    *out = NULL;
    TG_TRY(tg_decoder_open(ctx, model, ctx_tokens, kv, 1, &d));
    const tg_status status = tg_session_open_in(d, 0, out);
    if (status == TG_OK)
        (*out)->of_batch = false;
    else
        tg_decoder_close(d);
    return status;
}

void tg_session_close(tg_session *s) {
    if (!s) return;
    const tg_mem mem = s->ctx->err.mem;
    if (s->sample_built) tg_graph_deinit(&s->sample_graph);
    tg_runtime_block_free(s->ctx, &s->sample_memory);
    tg_block_free(&s->logit_work);
    tg_free(&mem, s->bias, s->n_bias * sizeof *s->bias);
    tg_free(&mem, s->banned, sizeof *s->banned);
    tg_free(&mem, s->stops, sizeof *s->stops);
    tg_arena_deinit(&s->arena);
    if (!s->of_batch) tg_decoder_close(s->d);
    tg_free(&mem, s, sizeof *s);
}

/* The smallest class that takes n rows, or the largest. */
tg_session_class *tg_decoder_class_for(tg_decoder *d, size_t n) {
    for (int i = 0; i < TG_SESSION_CLASSES - 1; i++)
        if (n <= (size_t)d->by_rows[i].rows) return &d->by_rows[i];
    return &d->by_rows[TG_SESSION_CLASSES - 1];
}

/* ---------------------------------------------------------------------------------------- feeding
 */

/* Everything is checked before the first plan runs, so a refused call leaves the session as it
 * was. */
tg_status tg_feeding_begin(tg_session *s, const int32_t *tokens, size_t n, tg_feeding *f) {
    const int32_t V = s->model->layout.config.vocab;
    if (n > (size_t)(s->capacity - s->n_tokens))
        return tg_fail(&s->ctx->err, TG_E_FULL,
                       "session: want room for %zu tokens, have %d of %d left: slide or rewind", n,
                       (int)(s->capacity - s->n_tokens), (int)s->capacity);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= V)
            return tg_fail(&s->ctx->err, TG_E_RANGE,
                           "session: token %zu: want an id in [0,%d), have %d", i, (int)V,
                           (int)tokens[i]);
    *f = (tg_feeding) { .tokens = tokens, .n = n, .before = s->n_tokens };
    s->drawing = (tg_run) { .next = 0 };
    s->ahead.n = 0;
    return TG_OK;
}

/* The tokens are fed from where they lie: feeding writes them in front of what it still reads.
 * n_tokens is 0 before, so that positions are counted anew, and there is room for all. */
void tg_feeding_begin_slide(tg_session *s, tg_feeding *f) {
    const int32_t keep = s->n_tokens / 2;
    const bool begun = s->n_tokens > 0 && s->fed[0] == tg_tok_bos(s->model->tok);
    const int32_t first = begun && keep > 1 ? 1 : 0;
    memmove(s->fed + first, s->fed + s->n_tokens - keep + first,
            (size_t)(keep - first) * sizeof *s->fed);
    tg_session_go_back(s, 0);
    *f = (tg_feeding) { .tokens = s->fed, .n = (size_t)keep };
}

/* Whether the layers' windows before position n lie in their rings still. */
static bool holds(const tg_session *s, int32_t n) {
    return s->n_lost == 0 || n - tg_cache_window(&s->d->cache) + 1 >= s->n_lost;
}

/* What is in the cache beyond n is not looked at, and is overwritten by what is fed next. */
void tg_session_go_back(tg_session *s, int32_t n) {
    s->ahead.n = 0;
    s->on.position = -1;
    if (n < s->n_tokens) s->drawn = -1; /* penalties looked at tokens that are gone */
    s->n_tokens = n;
    if (n < s->n_held) s->n_held = holds(s, n) ? n : 0;
    s->n_held = tg_cache_reach(&s->d->cache, s->sequence, s->n_held);
    if (s->n_held == 0) s->n_lost = 0;
}

/* Nothing of a cache that other weights or a lost device computed. */
size_t tg_session_keep_common(tg_session *s, const int32_t *tokens, size_t n) {
    const bool good = s->version == s->model->version && s->generation == s->ctx->generation;
    size_t same = 0;
    while (good && same + 1 < n && same < (size_t)s->n_tokens && s->fed[same] == tokens[same])
        same++;
    tg_session_go_back(s, (int32_t)same);
    return same;
}

/* Before a run that brings the cache to n positions: one that is broken off has written, too. */
void tg_session_note_run(tg_session *s, int32_t n) {
    if (s->n_held == 0) s->version = s->model->version;
    const tg_cache *c = &s->d->cache;
    for (int32_t i = 0; i < c->n_layers; i++) {
        if (c->layers[i].keeps == TG_KEEPS_STATES) continue;
        const int32_t room = (int32_t)tg_layer_state_room(&c->layers[i]);
        if (n - room > s->n_lost) s->n_lost = n - room;
    }
}

void tg_session_take_rows(tg_session *s, size_t rows) {
    s->n_held += (int32_t)rows;
    if (rows > 0) tg_cache_take_rows(&s->d->cache, s->sequence, rows, s->n_held);
}

/* The logits are taken over at the end alone, so that those of the last whole feed stay until then.
 * memmove, because a slide feeds from s->fed itself. */
static void end_piece(tg_session *s, tg_feeding *f, const tg_session_class *k, size_t rows) {
    const bool again = s->n_held < s->n_tokens;
    tg_run_restart(&f->run);
    tg_session_take_rows(s, rows);
    if (again) return;
    s->follows = f->n == 1 && f->tokens[0] == s->drawn;
    memmove(s->fed + s->n_tokens, f->tokens + f->done, rows * sizeof *s->fed);
    s->n_tokens += (int32_t)rows;
    f->done += rows;
    if (f->done < f->n) return;
    memcpy(s->logits, tg_plan_data(&k->plan, k->logits),
           (size_t)s->model->layout.config.vocab * sizeof(float));
    s->drawn = k->drawn ? *(const int32_t *)tg_plan_data(&k->plan, k->drawn) : -1;
    s->drawn_by = f->rt;
    if (f->ahead) tg_ahead_end(s, f->n);
}

/* x times 0 is 0 for all numbers but those that are none, and infinities. In sixteen sums, so that
 * they become a vector. */
static bool all_finite(const float *x, size_t n) {
    float sums[16] = { 0 }, sum = 0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t j = 0; j < 16; j++) sums[j] += x[i + j] * 0.0F;
    for (; i < n; i++) sum += x[i] * 0.0F;
    for (size_t j = 0; j < 16; j++) sum += sums[j];
    return sum == 0;
}

/* The first layer whose keys or values at a position are not all numbers; the number of layers if
 * there is none: then it is what comes behind the last layer's keys. */
static int32_t first_bad_layer(const tg_session *s, size_t position) {
    const tg_model_config *config = &s->model->layout.config;
    for (int32_t i = 0; i < s->d->cache.n_layers; i++) {
        const tg_layer_state *l = &s->d->cache.layers[i];
        const size_t size = l->dtype == TG_F32
                                ? l->row_elems
                                : (size_t)tg_layer_head_size(config, tg_state_layer(config, i));
        for (size_t h = 0; h < l->heads; h++) {
            const uint8_t *row = l->keeps == TG_KEEPS_STATES
                                     ? tg_cache_state(&s->d->cache, i, s->sequence, 0)
                                     : tg_cache_row(&s->d->cache, i, s->sequence, h, position);
            for (size_t c = 0; c < size; c++) {
                float x;
                if (l->dtype == TG_F32)
                    memcpy(&x, row + c * sizeof x, sizeof x);
                else
                    x = tg_kv_at(l->dtype, row, size, c);
                if (!all_finite(&x, 1)) return tg_state_layer(config, i);
            }
        }
    }
    return config->layers;
}

/* Of the piece that was run last. A token out of what is no number would be nonsense that looks
 * like an answer; this error leaves the session as it was. Where a GPU has the cache, the layer is
 * not told. */
tg_status tg_session_want_finite(const tg_session *s, const float *logits) {
    if (all_finite(logits, (size_t)s->model->layout.config.vocab)) return TG_OK;
    return tg_fail(&s->ctx->err, TG_E_NUMBER, "session: want logits that are finite numbers");
}

tg_status tg_session_want_numbers(const tg_session *s, const float *logits, size_t position) {
    if (all_finite(logits, (size_t)s->model->layout.config.vocab)) return TG_OK;
    if (s->ctx->backend != s->ctx->cpu) return tg_session_want_finite(s, logits);
    const int32_t layers = s->model->layout.config.layers, bad = first_bad_layer(s, position);
    char where[64] = "the embedding or layer 0";
    if (bad > 0)
        snprintf(where, sizeof where, "layer %d%s", (int)bad - 1,
                 bad == layers ? " or behind the last layer" : "");
    return tg_fail(&s->ctx->err, TG_E_NUMBER,
                   "session: token %zu: want logits that are finite numbers, have others, from %s",
                   position, where);
}

static tg_status want_numbers(const tg_session *s, const tg_session_class *k, size_t rows) {
    const float *logits = tg_plan_data(&k->plan, k->logits);
    if (k->every_row) return tg_session_want_finite(s, logits);
    return tg_session_want_numbers(s, logits, (size_t)s->n_tokens + rows - 1);
}

/* Where nothing copies what is shared of a page, the session's rows in it are computed again, into
 * a page of its own. */
static void leave_shared_page(tg_session *s) {
    const size_t R = tg_cache_page_rows(&s->d->cache), n = (size_t)s->n_held;
    if (s->ctx->backend != s->ctx->cpu && n % R > 0 &&
        tg_cache_is_shared(&s->d->cache, s->sequence, n))
        s->n_held = (int32_t)(n - n % R);
}

/* A cache that was on a lost device is gone with it. Its tokens are here, and are computed again
 * before what is fed next. */
bool tg_session_find_cache(tg_session *s) {
    int32_t held;
    do { /* a state further back may lie in a page that is shared, too */
        held = s->n_held;
        leave_shared_page(s);
        if (s->ahead.n == 0) s->n_held = tg_cache_reach(&s->d->cache, s->sequence, s->n_held);
    } while (s->n_held != held);
    if (s->generation == s->ctx->generation) return false;
    s->generation = s->ctx->generation;
    s->n_held = s->n_lost = 0;
    s->ahead.n = 0;
    s->on.position = -1;
    return true;
}

tg_status tg_session_run_plan(tg_session *s, tg_plan *plan, const tg_scalars *rt, tg_run *run) {
    const tg_status status = tg_runtime_run(s->ctx, "session", plan, rt, run);
    return status == TG_OK ? tg_weights_whole(s->model) : status;
}

bool tg_session_recovered(tg_session *s, tg_run *run, tg_status *status) {
    if (*status != TG_E_DEVICE || !tg_session_find_cache(s)) return false;
    tg_ctx_clear(&s->ctx->err);
    tg_run_restart(run);
    *status = TG_OK;
    return true;
}

/* Tokens, positions, and what a plan that draws looks back on. */
static void place(tg_session *s, const tg_session_class *k, const int32_t *tokens, size_t rows,
                  const tg_scalars *rt) {
    memcpy(tg_plan_data(&k->plan, k->tokens), tokens, rows * sizeof(int32_t));
    tg_cache_place_rows(&s->d->cache, &k->plan, &k->rows_in, 0, rows, s->sequence, s->n_held);
    if (!k->drawn || rt->n_recent == 0) return;
    int32_t *const recent = tg_plan_data(&k->plan, k->recent), before = rt->n_recent - 1;
    memcpy(recent, s->fed + s->n_held - before, (size_t)before * sizeof *recent);
    recent[before] = tokens[0];
}

/* Of a run of some rows, behind which there will be n tokens. */
static tg_scalars scalars_of(const tg_session *s, size_t rows, int32_t n) {
    tg_scalars rt = s->expected;
    rt.rows = (int32_t)rows;
    if (rt.n_recent > n) rt.n_recent = n;
    return rt;
}

/* Is the run of this one token on its way? It was begun while the one before it ran. */
static bool take_running_on(tg_session *s, tg_feeding *f, bool alone) {
    tg_running_on *on = &s->on;
    const bool is_it = alone && on->position == s->n_held && on->version == s->model->version &&
                       memcmp(&on->rt, &f->rt, sizeof on->rt) == 0 && f->tokens[0] == s->drawn;
    if (is_it) {
        f->run.phase = on->run.phase;
        f->run.unit = on->run.unit;
        f->run.next = on->run.next;
    }
    on->position = -1;
    return is_it;
}

/* A text that takes for the second time what was drawn will most often do so again. Penalties look
 * at the token that is on the device alone. */
static bool may_run_on(const tg_session *s, const tg_feeding *f, const tg_session_class *k,
                       bool alone) {
    return alone && k->plan.carry_in && s->ctx->backend != s->ctx->cpu &&
           s->ctx->levers & TG_LEVER_BIT(readback_pipelining) && s->follows &&
           f->tokens[0] == s->drawn && f->rt.n_recent == 0 && s->d->cache.n_sequences == 1 &&
           s->d->cache.n_cols[TG_KEEPS_STATES] == 0 && /* which a run needs to be done */
           s->n_held + 1 < s->capacity;
}

/* TG_PENDING: all is well, whether it has begun or not. */
static tg_status run_on(tg_session *s, tg_session_class *k, const tg_scalars *rt) {
    tg_running_on *on = &s->on;
    on->run = (tg_run) { .later = true, .carries = true };
    on->rt = tg_draw_next(*rt);
    tg_cache_place_rows(&s->d->cache, &k->plan, &k->rows_in, 0, 1, s->sequence, s->n_held + 1);
    const tg_status status = tg_session_run_plan(s, &k->plan, &on->rt, &on->run);
    if (status != TG_PENDING || !tg_run_begun(&on->run)) return status;
    on->position = s->n_held + 1;
    on->version = s->model->version;
    tg_session_note_run(s, s->n_held + 2);
    return TG_PENDING;
}

/* Runs the piece that was placed. alone: it is one token, by the plan of one row. */
static tg_status run_piece(tg_session *s, tg_feeding *f, tg_session_class *k, bool taken,
                           bool alone) {
    tg_status status = TG_PENDING;
    if (may_run_on(s, f, k, alone) && (taken || !tg_run_begun(&f->run))) {
        f->run.later = !taken;
        if (!taken) status = tg_session_run_plan(s, &k->plan, &f->rt, &f->run);
        const bool is_out = taken || (f->run.later && tg_run_begun(&f->run)); /* all of it */
        f->run.later = false;
        if (status == TG_PENDING && is_out) status = run_on(s, k, &f->rt);
        place(s, k, f->tokens, 1, &f->rt); /* if the run has to begin anew */
    }
    return status == TG_PENDING ? tg_session_run_plan(s, &k->plan, &f->rt, &f->run) : status;
}

/* Of what cannot be taken back, the state before the last token of a feed stays, too: who asks the
 * same again wants its logits alone. */
static size_t rows_of_piece(const tg_session *s, const tg_feeding *f, const tg_session_class *k,
                            size_t left) {
    const bool states = s->d->cache.n_cols[TG_KEEPS_STATES] > 0 && !f->ahead;
    if (left > (size_t)k->rows) return (size_t)k->rows;
    return states && left > TG_STATE_SHORT_ROWS ? left - 1 : left;
}

/* A piece begins with its tokens in the plan's input. The plan's memory is the session's own, so
 * nobody else's run comes between two slices of it; a GPU, whose plans share theirs, begins such a
 * run again. What the cache lacks of the tokens before comes
 * first. */
tg_status tg_feeding_go_on(tg_session *s, tg_feeding *f, double deadline_ms) {
    f->run.deadline_ms = deadline_ms;
    if (tg_session_find_cache(s)) tg_run_restart(&f->run);
    while (f->done < f->n) {
        TG_TRY(tg_decoder_want_plans(s->d));
        const bool again = s->n_held < s->n_tokens;
        const size_t left = again ? (size_t)(s->n_tokens - s->n_held) : f->n - f->done;
        const int32_t *tokens = again ? s->fed + s->n_held : f->tokens + f->done;
        if (f->ahead) TG_TRY(tg_decoder_want_rows(s->d));
        tg_session_class *k = f->ahead && !again ? &s->d->rows : tg_decoder_class_for(s->d, left);
        const size_t rows = rows_of_piece(s, f, k, left);
        const bool alone = k == &s->d->by_rows[0] && f->n == 1 && !again,
                   begun = tg_run_begun(&f->run);
        if (!begun) {
            f->rt = scalars_of(s, rows, s->n_held + (int32_t)rows);
            if (k->rows == 1) tg_copies_use(s->d, deadline_ms);
            place(s, k, tokens, rows, &f->rt);
            tg_session_note_run(s, s->n_held + (int32_t)rows);
        }
        const bool taken = !begun && take_running_on(s, f, alone);
        tg_status status = run_piece(s, f, k, taken, alone);
        if (tg_session_recovered(s, &f->run, &status)) continue;
        TG_TRY(status);
        if (rows == left && !again) TG_TRY(want_numbers(s, k, rows));
        end_piece(s, f, k, rows);
        tg_cache_pages_go_on(s->d, rows, s->n_held);
        if (f->done < f->n && tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

void tg_feeding_abandon(tg_session *s, const tg_feeding *f) { tg_session_go_back(s, f->before); }

tg_status tg_session_feed(tg_session *s, const int32_t *tokens, size_t n) {
    tg_feeding f;
    TG_TRY(tg_feeding_begin(s, tokens, n, &f));
    const tg_status status = tg_feeding_go_on(s, &f, 0);
    if (status != TG_OK) tg_feeding_abandon(s, &f);
    return status;
}
