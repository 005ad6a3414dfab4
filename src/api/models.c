/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models.c - the public calls about what a model can do, what its file says of drawing tokens, the
 * cache of packed weights, and embeddings. They check, and pass on.
 */
#include "api/jobs.h"
#include "api/options.h"
#include "api/want.h"
#include "base/str.h"
#include "engine/embed.h"
#include "load/weights.h"
#include "runtime/job.h"

tg_status tg_context_pack_cache(tg_context *ctx, const char *folder) {
    ENTER(ctx);
    const size_t n = folder ? strlen(folder) : 0;
    if (n >= sizeof ctx->pack_cache)
        return tg_fail(&ctx->err, TG_E_ARG,
                       "pack cache: want a path of at most %zu bytes, have %zu",
                       sizeof ctx->pack_cache - 1, n);
    memcpy(ctx->pack_cache, n ? folder : "", n + 1);
    return TG_OK;
}

/* What the file says in place of what is there, if it can be used. */
static void take(const tg_gguf *g, const char *key, double min, double max, const char *name,
                 double *value, char *said, size_t said_bytes) {
    char full[64];
    snprintf(full, sizeof full, "general.sampling.%s", key);
    const tg_gguf_value *v = tg_gguf_find(g, full);
    if (!v || v->type == TG_GGUF_STRING || v->type == TG_GGUF_ARRAY) return;
    if (!(v->real >= min && v->real <= max)) return;
    *value = v->real;
    tg_str_append(said, said_bytes, "%s%s %g", *said ? ", " : "", name, v->real);
}

/* Of GGUF, what nobody does here and would change the text. */
static void tell_undone(const tg_model *model) {
    static const char *const keys[] = { "general.sampling.xtc_probability",
                                        "general.sampling.mirostat" };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const tg_gguf_value *v = tg_gguf_find(model->metadata, keys[i]);
        if (v && v->real != 0)
            tg_say(&model->ctx->err, TG_LOG_WARNING,
                   "%s: %g is not done here, so tokens are drawn without it", keys[i], v->real);
    }
}

bool tg_model_can(const tg_model *model, tg_ability what) {
    if (!model) return false;
    switch (what) {
    case TG_CAN_WRITE: return !model->table.embed.only;
    case TG_CAN_EMBED: return true; /* hidden states are pooled where there is no encoder */
    case TG_CAN_RANK: return tg_rank_there(model);
    case TG_CAN_CHAT: return tg_tokenizer_template(&model->tokenizer) != NULL;
    case TG_CAN_TRAIN:
    case TG_CAN_SAVE: return tg_weights_are_flat(model);
    }
    return false;
}

tg_status tg_model_sampling(const tg_model *model, tg_sample_options *options, char *said,
                            size_t said_bytes) {
    if (!model || !options || !said || said_bytes == 0) return TG_E_ARG;
    said[0] = '\0';
    const tg_gguf *g = model->metadata;
    if (!g) return TG_OK;
    TG_OPTIONS_TAKE(&model->ctx->err, tg_sample_options, options, own);
    tg_sample_options *const o = &own;
    double top_k = (double)o->top_k, repeat_last = (double)o->repeat_last;
    take(g, "temp", 0, 1000, "temperature", &o->temperature, said, said_bytes);
    take(g, "top_k", 0, INT32_MAX, "top-k", &top_k, said, said_bytes);
    take(g, "top_p", 1e-9, 1, "top-p", &o->top_p, said, said_bytes);
    take(g, "min_p", 0, 1, "min-p", &o->min_p, said, said_bytes);
    take(g, "typical_p", 0, 1, "typical-p", &o->typical_p, said, said_bytes);
    take(g, "penalty_repeat", 1e-9, 100, "repeat penalty", &o->repeat_penalty, said, said_bytes);
    take(g, "penalty_last_n", 0, 1024, "repeat-last", &repeat_last, said, said_bytes);
    o->top_k = (int32_t)top_k;
    o->repeat_last = (int32_t)repeat_last;
    tell_undone(model);
    return tg_options_give(&model->ctx->err, "tg_sample_options", o, options);
}

tg_status tg_embedder_new(tg_context *ctx, tg_model *model, const tg_embed_options *options,
                          tg_embedder **out) {
    ENTER(ctx);
    WANT(ctx, model);
    WANT(ctx, out);
    TG_OPTIONS_TAKE(&ctx->err, tg_embed_options, options, own);
    return tg_embedder_open(ctx, model, &own, out);
}

void tg_embedder_free(tg_embedder *embedder) { tg_embedder_close(embedder); }

size_t tg_embedder_width(const tg_embedder *embedder) {
    return embedder ? tg_embedder_wide(embedder) : 0;
}

tg_status tg_embedder_query(tg_embedder *embedder, const char *query) {
    if (!embedder) return TG_E_ARG;
    ENTER(embedder->ctx);
    WANT(embedder->ctx, query);
    TG_TRY(tg_embedder_want_idle(embedder));
    return tg_embedder_ask(embedder, query);
}

tg_status tg_embedder_run(tg_embedder *embedder, const tg_embed_text *texts, size_t n, float *out) {
    tg_job *job;
    TG_TRY(tg_embedder_run_job(embedder, texts, n, out, &job));
    return tg_job_finish(job);
}
