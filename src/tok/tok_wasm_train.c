/*
 * tok_wasm_train.c - tok.h in the modules for training: tokens are bytes, and there is nothing
 * else.
 *
 * Other vocabularies come out of other people's model files alone, which these modules do not run;
 * their tables of Unicode would be a quarter of a module. The same answers as tok.c's where the
 * model is TG_TOK_RAW_BYTES.
 */
#include "tok/tok.h"

struct tg_tok {
    tg_mem mem;
    char bytes[256]; /* the piece of id i, and what it adds to a text, is bytes + i */
};

void tg_tok_desc_init(tg_tok_desc *d) {
    memset(d, 0, sizeof *d);
    d->bos = d->eos = d->unknown = d->sep = d->cls = d->pad = -1;
}

tg_status tg_tok_new(tg_ctx *ctx, const tg_tok_desc *d, tg_tok **out) {
    *out = NULL;
    if (d->model != TG_TOK_RAW_BYTES)
        return tg_fail(ctx, TG_E_UNSUPPORTED,
                       "tokenizer: want tokens that are bytes in a module for training, have "
                       "another vocabulary");
    tg_tok *t = tg_alloc(&ctx->mem, sizeof *t);
    if (!t) return tg_fail_memory(ctx, "tokenizer", sizeof *t);
    t->mem = ctx->mem;
    for (int b = 0; b < 256; b++) t->bytes[b] = (char)b;
    *out = t;
    return TG_OK;
}

void tg_tok_free(tg_tok *t) {
    if (!t) return;
    const tg_mem mem = t->mem;
    tg_free(&mem, t, sizeof *t);
}

void tg_ids_init(tg_ids *ids, const tg_mem *mem) { *ids = (tg_ids) { .mem = *mem }; }

void tg_ids_deinit(tg_ids *ids) {
    tg_free(&ids->mem, ids->id, ids->room * sizeof *ids->id);
    ids->id = NULL;
    ids->n = ids->room = 0;
}

/* Grows to what is wanted and no further: a text is encoded at once. */
tg_status tg_tok_encode(tg_ctx *ctx, const tg_tok *tok, const char *text, size_t n_bytes,
                        unsigned flags, tg_ids *ids) {
    (void)tok;
    (void)flags;
    const size_t room = ids->n + n_bytes;
    if (n_bytes > UINT32_MAX / 8)
        return tg_fail(ctx, TG_E_RANGE, "tokenizer: want a text of up to %u bytes, have %zu",
                       UINT32_MAX / 8, n_bytes);
    if (room > ids->room) {
        int32_t *grown =
            tg_realloc(&ids->mem, ids->id, ids->room * sizeof *grown, room * sizeof *grown);
        if (!grown) return tg_fail_memory(ctx, "token ids", room * sizeof *grown);
        ids->id = grown;
        ids->room = room;
    }
    for (size_t i = 0; i < n_bytes; i++) ids->id[ids->n++] = (uint8_t)text[i];
    return TG_OK;
}

const char *tg_tok_bytes(const tg_tok *t, int32_t id, size_t *n_bytes) {
    *n_bytes = id >= 0 && id < 256;
    return *n_bytes ? t->bytes + id : NULL;
}

tg_tok_model tg_tok_model_of(const tg_tok *t) {
    (void)t;
    return TG_TOK_RAW_BYTES;
}

bool tg_tok_is_end(const tg_tok *t, int32_t id) {
    (void)t;
    (void)id;
    return false;
}
