/*
 * lm_wasm_train.c - lm.h, lm_eval.h and vocabulary.h in the modules for training, which do not run
 * model files of others: a GGUF file is known by how it begins, and refused.
 */
#include "run/lm_eval.h"
#include "run/vocabulary.h"

static tg_status refuse(tg_context *ctx, const char *path) {
    return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                   "%s: a model of others: want a module that runs these (tinygpt-chat-*.wasm), "
                   "have one for training",
                   path);
}

bool tg_lm_takes(const char *path, char folder[TG_LM_PATH_BYTES]) {
    tg_ctx quiet;
    uint8_t first[4] = { 0 };
    tg_reader r;
    tg_ctx_init(&quiet, NULL, NULL, NULL);
    if (strlen(path) >= TG_LM_PATH_BYTES) return false;
    memcpy(folder, path, strlen(path) + 1);
    if (tg_reader_open(&quiet, path, &r) != TG_OK) return false;
    const tg_status s = tg_read_bytes(&r, "magic", first, sizeof first);
    tg_reader_close(&r);
    return s == TG_OK && memcmp(first, "GGUF", sizeof first) == 0;
}

tg_status tg_lm_load(tg_context *ctx, const char *path, double deadline_ms, tg_lm_model **out) {
    (void)deadline_ms;
    *out = NULL;
    return refuse(ctx, path);
}

tg_status tg_lm_check(tg_context *ctx, const char *path) { return refuse(ctx, path); }

tg_status tg_lm_info(tg_context *ctx, const char *path, bool json, tg_text_fn write, void *user) {
    (void)json;
    (void)write;
    (void)user;
    return refuse(ctx, path);
}

/* What follows is never called, as there is no model that it could be called for. */

tg_status tg_lm_whole(tg_context *ctx, const tg_lm_model *m) {
    (void)ctx;
    (void)m;
    return TG_OK;
}

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

tg_status tg_lm_evaluating_begin(tg_lm_evaluating *e, tg_context *ctx, const tg_model *model,
                                 tg_text *text, uint64_t first, int32_t windows) {
    (void)e;
    (void)ctx;
    (void)model;
    (void)text;
    (void)first;
    (void)windows;
    return TG_E_UNSUPPORTED;
}

tg_status tg_lm_evaluating_go_on(tg_lm_evaluating *e, double deadline_ms, double *loss) {
    (void)e;
    (void)deadline_ms;
    (void)loss;
    return TG_E_UNSUPPORTED;
}

void tg_lm_evaluating_deinit(tg_lm_evaluating *e) { (void)e; }
