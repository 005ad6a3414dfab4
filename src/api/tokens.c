/*
 * tokens.c - the public calls about tokenizers and conversations: they check, and pass on.
 */
#include "api/want.h"
#include "run/vocabulary.h"
#include "run/weights.h"

tg_status tg_tokenizer_open(tg_context *ctx, const char *path, tg_tokenizer **out) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, out);
    TG_TRY(tg_vocabulary_open(ctx, path, out));
    if (*out) return TG_OK;
    tg_gpt_config config; /* our own files: their tokens are bytes */
    TG_TRY(tg_file_config(ctx, path, &config));
    return tg_vocabulary_bytes(ctx, out);
}

void tg_tokenizer_free(tg_tokenizer *tokenizer) { tg_vocabulary_free(tokenizer); }

const tg_tokenizer *tg_model_tokenizer(const tg_model *model) {
    return model ? &model->tokenizer : NULL;
}

/* Straight into the caller's memory: a long text's ids are larger than the text, and would be there
 * twice. ids NULL: only the number is wanted. */
static tg_ids into(int32_t *ids, size_t cap) { return tg_ids_lend(ids, ids ? cap : 0); }

static tg_status counted(tg_context *ctx, tg_status s, const tg_ids *all, size_t *n) {
    TG_TRY(s);
    *n = all->n;
    if (!all->id || all->n <= all->room) return TG_OK;
    return tg_fail(&ctx->err, TG_E_FULL, "tokenizer: want room for %zu ids, have %zu", all->n,
                   all->room);
}

tg_status tg_tokenizer_encode(const tg_tokenizer *t, const char *text, size_t n_bytes,
                              unsigned flags, int32_t *ids, size_t cap, size_t *n) {
    if (!t) return TG_E_ARG;
    ENTER(t->ctx);
    WANT(t->ctx, n);
    if (n_bytes) WANT(t->ctx, text);
    tg_ids all = into(ids, cap);
    const unsigned how = (flags & TG_ENCODE_ENDS ? TG_TOK_ENDS : 0u) |
                         (flags & TG_ENCODE_SPECIAL ? TG_TOK_SPECIAL : 0u);
    const tg_status s = tg_tok_encode(&t->ctx->err, t->tok, text, n_bytes, how, &all);
    return counted(t->ctx, s, &all, n);
}

size_t tg_tokenizer_count(const tg_tokenizer *t) { return t ? tg_tok_count(t->tok) : 0; }

const char *tg_tokenizer_bytes(const tg_tokenizer *t, int32_t id, size_t *n_bytes) {
    size_t n;
    return t ? tg_tok_bytes(t->tok, id, n_bytes ? n_bytes : &n) : NULL;
}

const char *tg_tokenizer_piece(const tg_tokenizer *t, int32_t id, size_t *n_bytes) {
    size_t n;
    return t ? tg_tok_piece(t->tok, id, n_bytes ? n_bytes : &n) : NULL;
}

/* ------------------------------------------------------------------------------------- chat */

const char *tg_chat_template_at(size_t i) {
    const tg_chat_template *t = tg_chat_at(i);
    return t ? tg_chat_name(t) : NULL;
}

const char *tg_tokenizer_template(const tg_tokenizer *t) {
    return t && t->chat ? tg_chat_name(t->chat) : NULL;
}

/* The one that was named, else the file's. */
static tg_status want_template(const tg_tokenizer *t, const char *name,
                               const tg_chat_template **out) {
    *out = name ? tg_chat_named(name) : t->chat;
    if (*out) return TG_OK;
    if (name)
        return tg_fail(&t->ctx->err, TG_E_ARG, "chat: want the name of a template, have \"%.60s\"",
                       name);
    return tg_fail(&t->ctx->err, TG_E_UNSUPPORTED,
                   "chat: want a template that is known, have %s: name one",
                   t->has_template ? "another one in the file" : "none in the file");
}

tg_status tg_tokenizer_chat(const tg_tokenizer *t, const char *name, const tg_turn *turns,
                            size_t n_turns, unsigned flags, int32_t *ids, size_t cap, size_t *n) {
    if (!t) return TG_E_ARG;
    ENTER(t->ctx);
    WANT(t->ctx, n);
    if (n_turns) WANT(t->ctx, turns);
    const tg_chat_template *chat;
    TG_TRY(want_template(t, name, &chat));
    tg_chat_turn *own = tg_alloc(&t->ctx->err.mem, n_turns * sizeof *own);
    if (!own) return tg_fail_memory(&t->ctx->err, "a conversation", n_turns * sizeof *own);
    tg_status s = TG_OK;
    for (size_t i = 0; i < n_turns && s == TG_OK; i++) {
        if (turns[i].role < TG_SYSTEM || turns[i].role > TG_ASSISTANT)
            s = tg_fail(&t->ctx->err, TG_E_ARG, "chat: turn %zu: want a role of 0..2, have %d", i,
                        (int)turns[i].role);
        own[i] = (tg_chat_turn) { (tg_chat_role)turns[i].role, turns[i].text, turns[i].n_bytes };
    }
    tg_ids all = into(ids, cap);
    const unsigned how = flags & TG_NO_THINKING ? TG_CHAT_NO_THINKING : 0u;
    if (s == TG_OK) s = tg_chat_encode(&t->ctx->err, chat, t->tok, own, n_turns, how, &all);
    tg_free(&t->ctx->err.mem, own, n_turns * sizeof *own);
    return counted(t->ctx, s, &all, n);
}

tg_status tg_tokenizer_ends(const tg_tokenizer *t, const char *name, int32_t *ends, size_t *n) {
    if (!t) return TG_E_ARG;
    ENTER(t->ctx);
    WANT(t->ctx, ends);
    WANT(t->ctx, n);
    const tg_chat_template *chat;
    TG_TRY(want_template(t, name, &chat));
    *n = tg_chat_ends(chat, t->tok, ends);
    return TG_OK;
}
