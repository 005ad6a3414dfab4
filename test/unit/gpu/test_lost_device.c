/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lost_device.c - what goes on where a device is lost, without a GPU: a backend runs plans on
 * the CPU until its last run, and then is gone; or somebody else has found it gone, which the
 * context's generation tells. What it had is overwritten by NaNs. gpu_test.c and models_test.c lose
 * devices that are some.
 */
#include "engine/embed.h"
#include "engine/session.h"
#include "engine_util.h"
#include "inspect/probe.h"
#include "training/train.h"

#include <math.h>

enum { V = 256, N = 100 };
static const tg_model_config config = { 2, 32, 2, 128, V, 128 };

typedef struct scene {
    tg_context *ctx;
    tg_model *model;
    int32_t tokens[N];
} scene;

static scene open_scene(void) {
    scene s = { .ctx = open_context(2, NULL, NULL) };
    OK(s.ctx, tg_model_new(s.ctx, &config, 42, &s.model));
    for (int32_t i = 0; i < N; i++) s.tokens[i] = (7 * i * i + i) % V;
    return s;
}

static void close_scene(scene *s) {
    tg_model_free(s->model);
    tg_context_free(s->ctx);
}

static void spoil_cache(const tg_cache *c, int32_t sequence, size_t n) {
    for (int32_t i = 0; i < c->n_layers; i++)
        for (size_t h = 0; h < c->layers[i].heads; h++)
            for (size_t p = 0; p < n; p++)
                memset(tg_cache_row(c, i, sequence, h, p), 0xff,
                       tg_layer_state_row_bytes(&c->layers[i]));
}

/* ------------------------------------------------------------------- a device that ends in a run
 */

typedef struct mortal {
    tg_backend b;
    tg_context *ctx;
    int runs; /* that it has left */
    tg_decoder *d;
} mortal;

static tg_status run_until_lost(tg_backend *b, tg_plan *plan, const tg_scalars *rt, tg_run *run) {
    mortal *m = (mortal *)b;
    if (m->runs-- > 0) return tg_backend_run(m->ctx->cpu, plan, rt, run);
    for (int32_t i = 0; i < TG_BATCH_MAX && i < m->d->cache.n_sequences; i++)
        spoil_cache(&m->d->cache, i, 32);
    return tg_fail(&m->ctx->err, TG_E_DEVICE, "it is gone");
}

static bool is_gone(const tg_backend *b) { return ((const mortal *)b)->runs < 0; }
static void free_nothing(tg_backend *b) { (void)b; }

/* The CPU comes after it. */
static void begin_mortal(mortal *m, tg_context *ctx, tg_decoder *d, int runs) {
    *m = (mortal) { .b = *ctx->cpu, .ctx = ctx, .runs = runs, .d = d };
    m->b.run = run_until_lost;
    m->b.lost = is_gone;
    m->b.free = free_nothing;
    ctx->losses = TG_LOSSES_MAX;
    ctx->backend = &m->b;
}

static void end_mortal(tg_context *ctx) { ctx->backend = ctx->cpu; }

/* Three sessions of a batch: one of them lacks a single token, so it is fed by the joint plan, and
 * the others alone while there is a device. */
static void batch_of(const scene *s, tg_batch **batch, tg_batch_entry *e) {
    static const size_t n[] = { 9, 1, 14 };
    OK(s->ctx, tg_batch_new(s->ctx, s->model, 3, 0, TG_KV_F32, batch));
    for (size_t i = 0; i < 3; i++) {
        e[i] = (tg_batch_entry) { tg_batch_session(*batch, i), s->tokens + i, n[i], TG_E_MEMORY };
        OK(s->ctx, tg_session_eval(e[i].session, s->tokens, 3 + i, NULL));
    }
}

/* The logits of the batch's tokens, and those behind one more: a cache that was lost after its
 * session had been fed is computed again before. */
static void answers_of(const scene *s, const tg_batch_entry *e, float (*logits)[2][V]) {
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(e[i].status, TG_OK);
        assert_int_equal(tg_session_tokens(e[i].session), 3 + i + e[i].n);
        memcpy(logits[i][0], tg_session_logits(e[i].session), sizeof logits[i][0]);
        OK(s->ctx, tg_session_eval(e[i].session, s->tokens, 1, NULL));
        memcpy(logits[i][1], tg_session_logits(e[i].session), sizeof logits[i][1]);
    }
}

/* At each run that there is, in one slice and in the smallest. */
static void batches_go_on(void **state) {
    (void)state;
    scene s = open_scene();
    float want[3][2][V], have[3][2][V];
    tg_batch *batch;
    tg_batch_entry e[3];
    batch_of(&s, &batch, e);
    OK(s.ctx, tg_batch_eval(batch, e, 3));
    answers_of(&s, e, want);
    tg_batch_free(batch);
    for (int turn = 0; turn < 4; turn++) {
        bool lost = true;
        for (int runs = 0; lost; runs += turn < 2 ? 1 : 7) {
            mortal m;
            tg_job *job;
            tg_status status;
            batch_of(&s, &batch, e);
            tg_decoder *const d = e[0].session->d;
            const unsigned generation = s.ctx->generation;
            if (turn % 2 == 0) begin_mortal(&m, s.ctx, d, runs);
            OK(s.ctx, tg_batch_eval_job(batch, e, 3, &job));
            int polls = 0;
            while ((status = tg_job_poll(job, turn < 2 ? 0 : 1e-6)) == TG_PENDING) {
                if (turn % 2 == 0 || polls++ != runs) continue;
                for (int32_t i = 0; i < 3; i++) spoil_cache(&d->cache, i, 32);
                s.ctx->generation++; /* somebody else's call has found it gone */
            }
            OK(s.ctx, status);
            assert_string_equal(tg_context_error(s.ctx), "");
            tg_job_free(job);
            lost = s.ctx->generation != generation;
            end_mortal(s.ctx);
            answers_of(&s, e, have);
            assert_memory_equal(have, want, sizeof want);
            tg_batch_free(batch);
        }
    }
    close_scene(&s);
}

/* Whoever has been fed by then stays so, tokens and logits, and the others are as they were. */
static void abandoned_in_between(void **state) {
    (void)state;
    scene s = open_scene();
    bool between = false;
    for (int polls = 1;; polls++) {
        mortal m;
        tg_batch *batch;
        tg_batch_entry e[3];
        tg_job *job;
        tg_status status = TG_PENDING;
        float before[3][V];
        batch_of(&s, &batch, e);
        for (size_t i = 0; i < 3; i++)
            memcpy(before[i], tg_session_logits(e[i].session), sizeof before[i]);
        begin_mortal(&m, s.ctx, e[0].session->d, 1 << 20);
        OK(s.ctx, tg_batch_eval_job(batch, e, 3, &job));
        for (int k = 0; k < polls && status == TG_PENDING; k++) status = tg_job_poll(job, 1e-6);
        tg_job_free(job);
        end_mortal(s.ctx);
        for (size_t i = 0; i < 3 && status == TG_PENDING; i++) {
            const size_t n = tg_session_tokens(e[i].session);
            const bool fed = memcmp(tg_session_logits(e[i].session), before[i], sizeof before[i]);
            assert_int_equal(n, 3 + i + (fed ? e[i].n : 0));
            between = between || fed;
        }
        tg_batch_free(batch);
        if (status == TG_PENDING) continue;
        OK(s.ctx, status);
        break;
    }
    assert_true(between);
    close_scene(&s);
}

/* ------------------------------------------------------------- a loss that somebody else has found
 */

/* What a lost device had of the cache is not there to be saved; what a file has is. */
static void sessions_are_saved(void **state) {
    (void)state;
    static const char path[] = "build/test_lost_device.session";
    scene s = open_scene();
    tg_session *session;
    OK(s.ctx, tg_session_new(s.ctx, s.model, 0, &session));
    OK(s.ctx, tg_session_eval(session, s.tokens, 9, NULL));
    OK(s.ctx, tg_session_save(session, path, NULL, 0));
    s.ctx->generation++;
    assert_int_equal(tg_session_save(session, path, NULL, 0), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(s.ctx), "have 0 of 9"));
    OK(s.ctx, tg_session_load(session, path, NULL, NULL));
    OK(s.ctx, tg_session_save(session, path, NULL, 0));
    remove(path);
    tg_session_free(session);
    close_scene(&s);
}

/* In each slice but the first two until it has happened as often as asked. */
static void embeddings_begin_anew(void **state) {
    (void)state;
    enum { WIDTH = 32 };
    scene s = open_scene();
    const tg_embed_text texts[] = { { "a text", 6 }, { "and another one", 15 } };
    const tg_embed_options o = tg_embed_options_default();
    float want[2 * WIDTH], have[2 * WIDTH];
    tg_embedder *e;
    tg_embed_work w;
    OK(s.ctx, tg_embedder_new(s.ctx, s.model, &o, &e));
    OK(s.ctx, tg_embedder_run(e, texts, 2, want));
    tg_embed_begin(e, texts, 2, have, &w);
    tg_status status;
    int losses = 0;
    while ((status = tg_embed_go_on(&w, 1e-6)) == TG_PENDING) {
        if (losses >= 3 || !tg_run_begun(&e->decoder.run) || e->decoder.run.next < 12) continue;
        spoil_cache(&e->decoder.cache, 0, w.ids.n);
        s.ctx->generation++;
        losses++;
    }
    OK(s.ctx, status);
    tg_embed_deinit(&w);
    assert_int_equal(losses, 3);
    assert_memory_equal(have, want, sizeof want);
    tg_embedder_free(e);
    close_scene(&s);
}

static void probes_begin_anew(void **state) {
    (void)state;
    scene s = open_scene();
    tg_probe *p;
    float want[8 * 8];
    OK(s.ctx, tg_probe_new(s.ctx, s.model, 8, &p));
    OK(s.ctx, tg_probe_run(p, s.tokens, NULL, 0, NULL));
    memcpy(want, tg_probe_attention(p, 0, 0), sizeof want);
    float *const attention = tg_plan_data(&p->plan, p->layer[0].attention);
    OK(s.ctx, tg_probe_begin(p, s.tokens, NULL, 0, NULL));
    memset(attention, 0xff, sizeof want);
    tg_status status;
    int losses = 0;
    while ((status = tg_probe_go_on(p, 1e-6)) == TG_PENDING) {
        if (losses > 0 || memcmp(attention, want, sizeof want) != 0) continue;
        memset(attention, 0xff, sizeof want);
        s.ctx->generation++;
        losses++;
    }
    OK(s.ctx, status);
    assert_int_equal(losses, 1);
    assert_memory_equal(tg_probe_attention(p, 0, 0), want, sizeof want);
    tg_probe_free(p);
    close_scene(&s);
}

enum { LETTERS_MOST = 3000 };

static tg_text *letters(const scene *s, size_t n) {
    char bytes[LETTERS_MOST];
    tg_text *text;
    for (size_t i = 0; i < n; i++) bytes[i] = (char)('a' + (i * i + 3 * i) % 26);
    OK(s->ctx, tg_text_from_memory(s->ctx, bytes, n, &text));
    return text;
}

/* Lost in the second piece of each of two windows: no token counts twice. */
static void evaluations_begin_anew(void **state) {
    (void)state;
    scene s = open_scene();
    tg_text *text = letters(&s, 300);
    double loss[2];
    for (int turn = 0; turn < 2; turn++) {
        tg_model_evaluating e = { 0 };
        OK(s.ctx, tg_model_evaluating_begin(&e, s.ctx, s.model, text, 0, 0));
        e.in_pieces = e.windows.rest = true;
        tg_status status;
        size_t losses = 0;
        while ((status = tg_model_evaluating_go_on(&e, 1e-6, &loss[turn])) == TG_PENDING) {
            const size_t pos = e.pieces.pos;
            if (turn == 0 || e.state.next != losses || losses == 2 || pos == 0) continue;
            spoil_cache(&e.pieces.rows.cache, 0, pos);
            s.ctx->generation++;
            losses++;
        }
        OK(s.ctx, status);
        assert_int_equal(losses, turn == 0 ? 0 : 2);
        tg_model_evaluating_deinit(&e);
    }
    assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
    tg_text_free(text);
    close_scene(&s);
}

/* In batches, of which the second is lost halfway: the logits that it has so far are of no use. */
static void evaluations_in_batches_begin_anew(void **state) {
    (void)state;
    scene s = open_scene();
    tg_text *text = letters(&s, 3000);
    double loss[2];
    for (int turn = 0; turn < 2; turn++) {
        tg_model_evaluating e = { 0 };
        OK(s.ctx, tg_model_evaluating_begin(&e, s.ctx, s.model, text, 0, 0));
        assert_false(e.in_pieces);
        tg_status status;
        size_t losses = 0;
        while ((status = tg_model_evaluating_go_on(&e, 1e-6, &loss[turn])) == TG_PENDING) {
            if (turn == 0 || losses || e.state.next == 0 || !tg_run_begun(&e.state.run)) continue;
            memset(tg_plan_data(&e.plans.eval, e.plans.eval_tokens), 0,
                   e.state.in_batch * (size_t)e.o.row_tokens * sizeof(int32_t));
            s.ctx->generation++;
            losses++;
        }
        OK(s.ctx, status);
        assert_int_equal(losses, turn);
        tg_model_evaluating_deinit(&e);
    }
    assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
    tg_text_free(text);
    close_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_go_on),
        cmocka_unit_test(abandoned_in_between),
        cmocka_unit_test(sessions_are_saved),
        cmocka_unit_test(embeddings_begin_anew),
        cmocka_unit_test(probes_begin_anew),
        cmocka_unit_test(evaluations_begin_anew),
        cmocka_unit_test(evaluations_in_batches_begin_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
