/*
 * lms.c - the public calls about model files of others that those about models in general are not:
 * conversion and embeddings. They check, and pass on.
 */
#include "api/want.h"
#include "run/convert.h"
#include "run/embed.h"

tg_status tg_model_convert(tg_context *ctx, const char *path_in, const char *path_out,
                           tg_convert_kind kind, tg_weight_type type, tg_convert_report *report) {
    ENTER(ctx);
    WANT(ctx, path_in);
    WANT(ctx, path_out);
    WANT(ctx, report);
    if (type < TG_WEIGHT_F32 || type > TG_WEIGHT_Q4_K || kind < TG_CONVERT_GGUF ||
        kind > TG_CONVERT_SAFETENSORS)
        return tg_fail(&ctx->err, TG_E_ARG,
                       "conversion: want a kind of 0..%d and a type of 0..%d, "
                       "have %d and %d",
                       TG_CONVERT_SAFETENSORS, TG_WEIGHT_Q4_K, (int)kind, (int)type);
    return tg_convert(ctx, path_in, path_out, kind, type, report);
}

tg_embed_options tg_embed_options_default(void) {
    return (tg_embed_options) { .pooling = TG_POOLING_MODEL };
}

tg_status tg_embedder_new(tg_context *ctx, tg_model *model, const tg_embed_options *options,
                          tg_embedder **out) {
    ENTER(ctx);
    WANT(ctx, model);
    WANT(ctx, out);
    const tg_embed_options o = options ? *options : tg_embed_options_default();
    return tg_embedder_open(ctx, model, &o, out);
}

void tg_embedder_free(tg_embedder *embedder) { tg_embedder_close(embedder); }

tg_status tg_embedder_run(tg_embedder *embedder, const tg_embed_text *texts, size_t n, float *out) {
    if (!embedder) return TG_E_ARG;
    ENTER(embedder->ctx);
    if (n == 0) return TG_OK;
    WANT(embedder->ctx, texts);
    WANT(embedder->ctx, out);
    for (size_t i = 0; i < n; i++)
        if (texts[i].n_bytes) WANT(embedder->ctx, texts[i].text);
    return tg_embedder_embed(embedder, texts, n, out);
}
