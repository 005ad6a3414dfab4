/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.c - the next token of a session: the options, what is set for all draws, and the chain of
 * what changes the candidates before one is drawn.
 */
#include "engine/samplers/sampler.h"

tg_status tg_session_keep_texts(tg_session *s, const char *const *texts, size_t n,
                                tg_logits_texts **out) {
    if (!*out) *out = tg_alloc(&s->ctx->err.mem, sizeof **out);
    if (!*out) return tg_fail_memory(&s->ctx->err, "texts", sizeof **out);
    TG_TRY(tg_logits_set_texts(&s->ctx->err, texts, n, *out));
    /* A special token adds no bytes, so as a text it would never be met. */
    tg_logits_texts *t = *out;
    const size_t all = t->n;
    t->n = t->n_ids = 0;
    for (size_t i = 0; i < all; i++) {
        const int32_t id = tg_tok_control(s->model->tok, t->text[i].bytes, t->text[i].n_bytes);
        if (id >= 0)
            t->ids[t->n_ids++] = id;
        else
            t->text[t->n++] = t->text[i];
    }
    return TG_OK;
}

/* ------------------------------------------------------------------------------------------ chain
 */

#define TG_SAMPLER_OF_OP(name, doc)
#define TG_SAMPLER(name, doc) extern const tg_sampler tg_sampler_##name;
#include "engine/samplers/samplers.def"
#undef TG_SAMPLER

static const tg_sampler *const chain[] = {
#define TG_SAMPLER(name, doc) &tg_sampler_##name,
#include "engine/samplers/samplers.def"
#undef TG_SAMPLER
};
enum { LINKS = sizeof chain / sizeof chain[0] };

/* Each test is written so that NaN fails it. The upper bounds are far beyond any use; they keep the
 * products of the kernel finite. */
tg_status tg_sample_options_check(tg_ctx *err, const tg_sample_options *o) {
    if (!(o->temperature >= 0 && o->temperature <= 1000))
        return tg_fail(err, TG_E_ARG, "sampling: temperature: want 0..1000, have %g",
                       o->temperature);
    if (o->top_k < 0)
        return tg_fail(err, TG_E_ARG, "sampling: top_k: want 0 (off) or more, have %d",
                       (int)o->top_k);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return tg_fail(err, TG_E_ARG, "sampling: top_p: want a number in (0,1], have %g", o->top_p);
    if (!(o->min_p >= 0 && o->min_p <= 1))
        return tg_fail(err, TG_E_ARG, "sampling: min_p: want 0..1, have %g", o->min_p);
    for (size_t i = 0; i < LINKS; i++)
        if (chain[i]->check) TG_TRY(chain[i]->check(err, o));
    return TG_OK;
}

static bool processes_logits(const tg_session *s, const tg_sample_options *o) {
    bool wanted = false;
    for (size_t i = 0; i < LINKS; i++) wanted = wanted || chain[i]->wanted(s, o);
    return wanted;
}

/* Doubles first, for their alignment. */
static tg_status make_room(tg_session *s, tg_drawing *d) {
    const size_t V = d->V;
    if (!s->logit_work.data)
        TG_TRY(tg_block_new(&s->ctx->err,
                            V * (sizeof(double) + 2 * sizeof(float)) + (V + 31) / 32 * 4,
                            &s->logit_work));
    d->distance = s->logit_work.data;
    d->order = (uint32_t *)(d->distance + V);
    d->were = (float *)(d->order + V);
    d->allowed = (uint32_t *)(d->were + V);
    return TG_OK;
}

/* The logits are changed where the sampling plan reads them, and what they were is kept: it is
 * theirs who asked for it. All penalties are applied, since the op comes behind what follows them.
 */
static tg_status process_logits(tg_drawing *d) {
    TG_TRY(make_room(d->s, d));
    memcpy(d->were, d->logits, d->V * sizeof *d->logits);
    for (size_t i = 0; i < LINKS; i++)
        if (chain[i]->with_any || chain[i]->wanted(d->s, d->o)) chain[i]->apply(d);
    if (tg_logits_possible(d->logits, d->V)) return TG_OK;
    return tg_fail(&d->s->ctx->err, TG_E_ARG,
                   "sampling: want a token that may be drawn, have none left");
}

/* ------------------------------------------------------------------------------------------ draw
 *
 * Scalars of a draw say nothing that does not matter: nothing of chance where the largest logit is
 * taken, and no recent tokens without a penalty. So two of the same draw are the same.
 */

tg_scalars tg_draw_greedy(void) { return (tg_scalars) { .repeat_penalty = 1 }; }

tg_scalars tg_draw_next(tg_scalars rt) {
    if (rt.temperature > 0 && ++rt.draw_lo == 0) rt.draw_hi++;
    return rt;
}

static tg_scalars scalars_of(const tg_sample_options *o, uint64_t index, int32_t recent) {
    tg_scalars rt = tg_draw_greedy();
    rt.repeat_penalty = (float)o->repeat_penalty;
    if (rt.repeat_penalty < 1 || rt.repeat_penalty > 1) rt.n_recent = recent;
    if (!((float)o->temperature > 0)) return rt;
    rt.temperature = (float)o->temperature;
    rt.top_p = (float)o->top_p;
    rt.min_p = (float)o->min_p;
    rt.top_k = o->top_k;
    rt.seed_lo = (uint32_t)o->seed;
    rt.seed_hi = (uint32_t)(o->seed >> 32);
    rt.draw_lo = (uint32_t)index;
    rt.draw_hi = (uint32_t)(index >> 32);
    return rt;
}

/* The plan that gave the logits has drawn, too: was it as this draw is to be? */
static bool has_drawn(const tg_session *s, tg_scalars rt) {
    rt.rows = 1;
    return s->drawn >= 0 && memcmp(&rt, &s->drawn_by, sizeof rt) == 0;
}

/* index numbers the draws of one generation. With the seed it decides the random number, so drawing
 * twice for one index gives the same token, whatever was drawn in between. */
tg_status tg_session_draw(tg_session *s, const tg_sample_options *o, uint64_t index,
                          int32_t *token) {
    TG_TRY(tg_sample_options_check(&s->ctx->err, o));
    if (s->n_tokens == 0)
        return tg_fail(&s->ctx->err, TG_E_ARG, "sampling: the session was not fed anything yet");
    if (tg_session_find_cache(s)) tg_run_restart(&s->drawing);
    int32_t recent = s->n_tokens < o->repeat_last ? s->n_tokens : o->repeat_last;
    memcpy(tg_plan_data(&s->sample, s->recent), s->fed + s->n_tokens - recent,
           (size_t)recent * sizeof *s->fed);
    const bool processed = processes_logits(s, o);
    tg_scalars rt = scalars_of(o, index, recent);
    /* The next one will be like this one; where logits are processed, a plan draws for nobody. */
    s->expected = processed ? tg_draw_greedy() : tg_draw_next(scalars_of(o, index, o->repeat_last));
    if (!processed && has_drawn(s, rt)) {
        *token = s->drawn;
        return TG_OK;
    }
    tg_drawing d = { .s = s,
                     .o = o,
                     .logits = s->logits,
                     .V = (size_t)s->model->layout.config.vocab,
                     .recent = recent };
    tg_status status = TG_OK;
    if (processed) {
        rt.repeat_penalty = 1; /* processing has done it, before what must come after it */
        status = process_logits(&d);
    }
    if (status == TG_OK) {
        do { /* the logits are on the host: a lost device takes nothing of a draw with it */
            status = tg_session_run_plan(s, &s->sample, &rt, &s->drawing);
        } while (tg_session_recovered(s, &s->drawing, &status));
    }
    if (status == TG_OK) *token = *(const int32_t *)tg_plan_data(&s->sample, s->token);
    if (status != TG_PENDING) s->drawing = (tg_run) { .next = 0 };
    if (d.were) memcpy(s->logits, d.were, d.V * sizeof *s->logits);
    return status;
}
