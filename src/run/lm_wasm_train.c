/*
 * lm_wasm_train.c - lm.h and vocabulary.h in the modules for training, which do not run model files
 * of others: such a file is known by how it begins, and refused.
 */
#include "run/lm.h"
#include "run/vocabulary.h"

static tg_status refuse(tg_context *ctx, const char *path) {
    return tg_fail(
        &ctx->err, TG_E_UNSUPPORTED,
        "%s: a model of others: want a module that runs these (tinygpt-chat-*.wasm), have "
        "one for training",
        path);
}

tg_status tg_lm_load(tg_context *ctx, const char *path, tg_lm_model **out) {
    *out = NULL;
    return refuse(ctx, path);
}

tg_status tg_lm_info(tg_context *ctx, const char *path, bool json, tg_text_fn write, void *user) {
    (void)json;
    (void)write;
    (void)user;
    return refuse(ctx, path);
}

/* What follows is never called, as there is no model that it could be called for. */

void tg_lm_unload(tg_context *ctx, tg_lm_model *m) {
    (void)ctx;
    (void)m;
}

const char *tg_lm_types(const tg_lm_model *m) {
    (void)m;
    return "";
}

tg_status tg_lm_bind(const tg_lm_model *m, tg_plan *plan) {
    (void)m;
    (void)plan;
    return TG_E_UNSUPPORTED;
}

tg_status tg_vocabulary_chat(const tg_gguf *g, tg_tokenizer *t) {
    (void)g;
    (void)t;
    return TG_E_UNSUPPORTED;
}
