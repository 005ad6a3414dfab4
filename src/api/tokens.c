/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.c - the public calls about tokenizers and conversations: they check, and pass on.
 *
 * A tokenizer belongs to the caller (tg_tokenizer_open) or lies inside of a model, as long as that
 * lives; no call here changes one. Which template a conversation is written with is decided in one
 * place, tg_template_want().
 */
#include "api/tokens.h"
#include "api/want.h"
#include "load/weights.h"
#include "training/train.h"

/* A third-party file has a vocabulary of its own. A file of ours may have one among its keys, and
 * is otherwise a model of bytes, whose tokenizer needs no file. */
tg_status tg_tokenizer_open(tg_context *ctx, const char *path, tg_tokenizer **out) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, out);
    TG_TRY(tg_vocabulary_open(ctx, path, out));
    if (*out) return TG_OK;
    tg_file *f; /* of ours */
    TG_TRY(tg_file_open(&ctx->err, path, &f));
    tg_status s = f->keys ? tg_vocabulary_keys(ctx, path, f->keys, f->keys_bytes, out)
                          : tg_vocabulary_bytes(ctx, out);
    if (s == TG_OK) s = tg_train_read_date(&ctx->err, f->header, (*out)->date);
    tg_file_close(f);
    if (s == TG_OK) return TG_OK;
    tg_vocabulary_free(*out);
    *out = NULL;
    return s;
}

void tg_tokenizer_free(tg_tokenizer *tokenizer) { tg_vocabulary_free(tokenizer); }

const tg_tokenizer *tg_model_tokenizer(const tg_model *model) {
    return model ? &model->tokenizer : NULL;
}

/* Straight into the caller's memory: a long text's ids are larger than the text, and would be there
 * twice. ids NULL: only the number is wanted. */
static tg_ids into(int32_t *ids, size_t cap) { return tg_ids_lend(ids, ids ? cap : 0); }

/* *n is the number of all ids, also where there was no room for them, so that a caller can ask once
 * for the number and once for the ids. */
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

/* A caller's write that has said no is not called again, while what is held back goes on. */
typedef struct decoding {
    tg_text_fn write;
    void *user;
    bool refused;
} decoding;

static void decoded(void *user, const char *text, size_t n_bytes) {
    decoding *d = user;
    if (!d->refused) d->refused = d->write(d->user, text, n_bytes) != 0;
}

/*
 * A token may end within a character: its bytes are held back until the rest comes. held [4], the
 * caller's, keeps them from call to call: their number (0..3), then the bytes; any other number is
 * memory that nobody has set, and counts as none. NULL, or n == 0, is the end of a text: what is
 * still held back goes out as it is. All ids are checked before a byte is written.
 */
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

/* The day that templates are told; all zeros stand for none. With a date that is given, a
 * conversation is the same tokens on every day. */
tg_status tg_context_date(tg_context *ctx, const char *date) {
    ENTER(ctx);
    memset(ctx->date, 0, sizeof ctx->date);
    if (!date || tg_chat_date(date, ctx->date)) return TG_OK;
    return tg_fail(&ctx->err, TG_E_ARG, "date: want YYYY-MM-DD, have %.40s", date);
}

const char *tg_chat_template_at(size_t i) { return tg_chat_name_at(i); }

const char *tg_tokenizer_template(const tg_tokenizer *t) { return t ? t->template_text : NULL; }

tg_status tg_template_want(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                           tg_chat_template *made, const tg_chat_template **out) {
    *made = (tg_chat_template) { 0 };
    *out = made;
    if (name && strchr(name, '{'))
        return tg_chat_template_new(&ctx->err, "--template", name, strlen(name), made);
    if (name) return tg_chat_template_named(&ctx->err, name, made);
    if (!tok->template_text)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "chat: want a template, have none in the file: name one");
    if (!tok->chat.jinja) /* says again why it cannot be read */
        return tg_chat_template_new(&ctx->err, "the file", tok->template_text, tok->template_bytes,
                                    made);
    *out = &tok->chat;
    return TG_OK;
}

/* What goes into a template beside the turns: the caller's flags, and the context's date. */
static tg_chat_said said_of(const tg_context *ctx, unsigned flags) {
    return (tg_chat_said) { .flags = (flags & TG_NO_THINKING ? TG_CHAT_NO_THINKING : 0u) |
                                     (flags & TG_CONTINUE ? TG_CHAT_CONTINUE : 0u),
                            .date = { ctx->date[0], ctx->date[1], ctx->date[2] } };
}

/* Of turns without tools: they need no JSON. Their texts stay the caller's; only the list of them
 * is copied, as template code has a type of its own for a turn. */
tg_status tg_turns_encode(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                          const tg_turn *turns, size_t n_turns, unsigned flags, tg_ids *ids) {
    tg_chat_template made;
    const tg_chat_template *chat;
    TG_TRY(tg_template_want(ctx, tok, name, &made, &chat));
    tg_chat_turn *own = tg_alloc(&ctx->err.mem, n_turns * sizeof *own);
    tg_status s = own ? TG_OK : tg_fail_memory(&ctx->err, "a conversation", n_turns * sizeof *own);
    for (size_t i = 0; i < n_turns && s == TG_OK; i++) {
        if (turns[i].role < TG_SYSTEM || turns[i].role > TG_ASSISTANT)
            s = tg_fail(&ctx->err, TG_E_ARG, "chat: turn %zu: want a role of 0..2, have %d", i,
                        (int)turns[i].role);
        own[i] = (tg_chat_turn) { (tg_chat_role)turns[i].role, turns[i].text, turns[i].n_bytes };
    }
    tg_chat_said said = said_of(ctx, flags);
    said.turns = own;
    said.n = n_turns;
    if (s == TG_OK) s = tg_chat_encode(&ctx->err, chat, tok->tok, &said, ids);
    tg_free(&ctx->err.mem, own, n_turns * sizeof *own);
    tg_chat_template_deinit(&made);
    return s;
}

tg_status tg_tokenizer_chat(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                            const tg_turn *turns, size_t n_turns, unsigned flags, int32_t *ids,
                            size_t cap, size_t *n) {
    ENTER(ctx);
    WANT(ctx, tok);
    WANT(ctx, n);
    if (n_turns) WANT(ctx, turns);
    tg_ids all = into(ids, cap);
    return counted(ctx, tg_turns_encode(ctx, tok, name, turns, n_turns, flags, &all), &all, n);
}

/* Reads the JSON and has it rendered: into ids, or into out where that is not NULL. */
static tg_status chat_json(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                           const char *json, size_t n_bytes, unsigned flags, tg_ids *ids,
                           tg_jinja_out *out) {
    tg_chat_template made;
    const tg_chat_template *chat;
    TG_TRY(tg_template_want(ctx, tok, name, &made, &chat));
    tg_arena arena;
    tg_arena_init(&arena, &ctx->err.mem);
    tg_chat_said said = said_of(ctx, flags);
    tg_status s = tg_json_parse(&ctx->err, &arena, "chat", json, n_bytes, NULL, &said.json);
    if (s == TG_OK)
        s = out ? tg_chat_render(&ctx->err, chat, tok->tok, &said, out)
                : tg_chat_encode(&ctx->err, chat, tok->tok, &said, ids);
    tg_arena_deinit(&arena);
    tg_chat_template_deinit(&made);
    return s;
}

tg_status tg_tokenizer_chat_json(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                                 const char *json, size_t n_bytes, unsigned flags, int32_t *ids,
                                 size_t cap, size_t *n) {
    ENTER(ctx);
    WANT(ctx, tok);
    WANT(ctx, json);
    WANT(ctx, n);
    tg_ids all = into(ids, cap);
    const tg_status s = chat_json(ctx, tok, name, json, n_bytes, flags, &all, NULL);
    return counted(ctx, s, &all, n);
}

/* The text comes as one piece: of a template that fails halfway, nothing has been written. */
tg_status tg_tokenizer_render(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                              const char *json, size_t n_bytes, unsigned flags, tg_text_fn write,
                              void *user) {
    ENTER(ctx);
    WANT(ctx, tok);
    WANT(ctx, json);
    WANT(ctx, write);
    tg_jinja_out out;
    tg_buf_init(&out.text, &ctx->err.mem);
    tg_buf_init(&out.words, &ctx->err.mem);
    tg_status s = chat_json(ctx, tok, name, json, n_bytes, flags, NULL, &out);
    if (s == TG_OK && write(user, tg_buf_text(&out.text), out.text.length))
        s = tg_stopped(&ctx->err, "a chat template");
    tg_buf_deinit(&out.text);
    tg_buf_deinit(&out.words);
    return s;
}

/* ends  out [TG_ENDS_MAX]: the ids behind which an answer in this template is over. */
tg_status tg_tokenizer_ends(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                            int32_t *ends, size_t *n) {
    ENTER(ctx);
    WANT(ctx, tok);
    WANT(ctx, ends);
    WANT(ctx, n);
    tg_chat_template made;
    const tg_chat_template *chat;
    TG_TRY(tg_template_want(ctx, tok, name, &made, &chat));
    const tg_status s = tg_chat_ends(&ctx->err, chat, tok->tok, ends, n);
    tg_chat_template_deinit(&made);
    return s;
}
