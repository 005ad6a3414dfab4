/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.c - the public calls about tokenizers and conversations: they check, and pass on.
 */
#include "api/want.h"
#include "load/vocabulary.h"
#include "load/weights.h"

tg_status tg_tokenizer_open(tg_context *ctx, const char *path, tg_tokenizer **out) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, out);
    TG_TRY(tg_vocabulary_open(ctx, path, out));
    if (*out) return TG_OK;
    tg_model_config config; /* our own files: their tokens are bytes */
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

tg_status tg_tokenizer_encode(tg_context *ctx, const tg_tokenizer *tok, const char *text,
                              size_t n_bytes, unsigned flags, int32_t *ids, size_t cap, size_t *n) {
    ENTER(ctx);
    WANT(ctx, tok);
    WANT(ctx, n);
    if (n_bytes) WANT(ctx, text);
    tg_ids all = into(ids, cap);
    const unsigned how = (flags & TG_ENCODE_ENDS ? TG_TOK_ENDS : 0u) |
                         (flags & TG_ENCODE_SPECIAL ? TG_TOK_SPECIAL : 0u);
    const tg_status s = tg_tok_encode(&ctx->err, tok->tok, text, n_bytes, how, &all);
    return counted(ctx, s, &all, n);
}

size_t tg_tokenizer_count(const tg_tokenizer *t) { return t ? tg_tok_count(t->tok) : 0; }

const char *tg_tokenizer_bytes(const tg_tokenizer *tok, int32_t id, size_t *n_bytes) {
    size_t n;
    return tok ? tg_tok_bytes(tok->tok, id, n_bytes ? n_bytes : &n) : NULL;
}

const char *tg_tokenizer_piece(const tg_tokenizer *tok, int32_t id, size_t *n_bytes) {
    size_t n;
    return tok ? tg_tok_piece(tok->tok, id, n_bytes ? n_bytes : &n) : NULL;
}

typedef struct decoding {
    tg_text_fn write;
    void *user;
    bool refused;
} decoding;

static void decoded(void *user, const char *text, size_t n_bytes) {
    decoding *d = user;
    if (!d->refused) d->refused = d->write(d->user, text, n_bytes) != 0;
}

tg_status tg_tokenizer_decode(tg_context *ctx, const tg_tokenizer *tok, const int32_t *ids,
                              size_t n, uint8_t *held, tg_text_fn write, void *user) {
    ENTER(ctx);
    WANT(ctx, tok);
    if (n) WANT(ctx, ids);
    WANT(ctx, write);
    tg_utf8_holdback hb = { .n = held && held[0] <= 3 ? held[0] : 0 };
    if (held) memcpy(hb.held, held + 1, hb.n);
    decoding d = { write, user, false };
    const size_t count = tg_tok_count(tok->tok);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= count)
            return tg_fail(&ctx->err, TG_E_RANGE, "tokenizer: id %zu: want 0..%zu, have %d", i,
                           count - 1, (int)ids[i]);
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes = 0;
        const char *bytes = tg_tok_bytes(tok->tok, ids[i], &n_bytes);
        tg_utf8_holdback_push(&hb, bytes, n_bytes, decoded, &d);
    }
    if (!held || n == 0) tg_utf8_holdback_end(&hb, decoded, &d);
    if (held) {
        held[0] = (uint8_t)hb.n;
        memcpy(held + 1, hb.held, hb.n);
    }
    return d.refused ? TG_STOPPED : TG_OK;
}

/* ------------------------------------------------------------------------------------- chat */

static int digits(const char *text, size_t n) {
    int value = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = 10 * value + (text[i] - '0');
    }
    return value;
}

tg_status tg_context_date(tg_context *ctx, const char *date) {
    static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    ENTER(ctx);
    memset(ctx->date, 0, sizeof ctx->date);
    if (!date) return TG_OK;
    const bool formed = strlen(date) == 10 && date[4] == '-' && date[7] == '-';
    const int year = formed ? digits(date, 4) : -1, month = formed ? digits(date + 5, 2) : -1,
              day = formed ? digits(date + 8, 2) : -1;
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days[month - 1] ||
        (month == 2 && day == 29 && !leap))
        return tg_fail(&ctx->err, TG_E_ARG, "date: want YYYY-MM-DD, have %.40s", date);
    ctx->date[0] = year;
    ctx->date[1] = month;
    ctx->date[2] = day;
    return TG_OK;
}

const char *tg_chat_template_at(size_t i) {
    const tg_chat_template *t = tg_chat_at(i);
    return t ? tg_chat_name(t) : NULL;
}

const char *tg_tokenizer_template(const tg_tokenizer *t) {
    return t && t->chat ? tg_chat_name(t->chat) : NULL;
}

/* The one that was named, else the file's. */
static tg_status want_template(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                               const tg_chat_template **out) {
    *out = name ? tg_chat_named(name) : tok->chat;
    if (*out) return TG_OK;
    if (name)
        return tg_fail(&ctx->err, TG_E_ARG, "chat: want the name of a template, have \"%.60s\"",
                       name);
    if (tok->looks_like)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "chat: want a template that is known as a whole, have one in the file that "
                       "looks like %s and differs from it: name one",
                       tok->looks_like);
    return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                   "chat: want a template that is known, have %s: name one",
                   tok->has_template ? "another one in the file" : "none in the file");
}

tg_status tg_tokenizer_chat(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                            const tg_turn *turns, size_t n_turns, unsigned flags, int32_t *ids,
                            size_t cap, size_t *n) {
    ENTER(ctx);
    WANT(ctx, tok);
    WANT(ctx, n);
    if (n_turns) WANT(ctx, turns);
    const tg_chat_template *chat;
    TG_TRY(want_template(ctx, tok, name, &chat));
    tg_chat_turn *own = tg_alloc(&ctx->err.mem, n_turns * sizeof *own);
    if (!own) return tg_fail_memory(&ctx->err, "a conversation", n_turns * sizeof *own);
    tg_status s = TG_OK;
    for (size_t i = 0; i < n_turns && s == TG_OK; i++) {
        if (turns[i].role < TG_SYSTEM || turns[i].role > TG_ASSISTANT)
            s = tg_fail(&ctx->err, TG_E_ARG, "chat: turn %zu: want a role of 0..2, have %d", i,
                        (int)turns[i].role);
        own[i] = (tg_chat_turn) { (tg_chat_role)turns[i].role, turns[i].text, turns[i].n_bytes };
    }
    tg_ids all = into(ids, cap);
    const tg_chat_how how = { .flags = flags & TG_NO_THINKING ? TG_CHAT_NO_THINKING : 0u,
                              .date = { ctx->date[0], ctx->date[1], ctx->date[2] },
                              .found = name ? NULL : &tok->chat_found };
    if (s == TG_OK) s = tg_chat_encode(&ctx->err, chat, tok->tok, own, n_turns, &how, &all);
    tg_free(&ctx->err.mem, own, n_turns * sizeof *own);
    return counted(ctx, s, &all, n);
}

tg_status tg_tokenizer_ends(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                            int32_t *ends, size_t *n) {
    ENTER(ctx);
    WANT(ctx, tok);
    WANT(ctx, ends);
    WANT(ctx, n);
    const tg_chat_template *chat;
    TG_TRY(want_template(ctx, tok, name, &chat));
    *n = tg_chat_ends(chat, tok->tok, ends);
    return TG_OK;
}
