/*
 * vocabulary.c - tokenizers out of files: the arrays of a GGUF file's metadata, or tokenizer.json.
 */
#include "run/vocabulary.h"

#include "io/hf.h"
#include "run/lm.h"

/* Real ones reach 35 MB; what is larger is another file. */
enum { JSON_LIMIT = 256 << 20 };

/* ------------------------------------------------------------------------------------- GGUF */

static tg_tok_text text_of(tg_gguf_string s) {
    return (tg_tok_text) { s.bytes, s.n_bytes < UINT32_MAX ? (uint32_t)s.n_bytes : UINT32_MAX };
}

/* "left right": the blank that is not the first byte of either part. */
static void split_merge(tg_gguf_string s, tg_tok_text out[2]) {
    size_t blank = 1;
    while (blank < s.n_bytes && s.bytes[blank] != ' ') blank++;
    if (blank >= s.n_bytes) {
        out[0] = text_of(s);
        out[1] = (tg_tok_text) { "", 0 };
        return;
    }
    out[0] = text_of((tg_gguf_string) { s.bytes, blank });
    out[1] = text_of((tg_gguf_string) { s.bytes + blank + 1, s.n_bytes - blank - 1 });
}

typedef struct arrays {
    const tg_gguf_value *tokens, *types, *scores, *merges;
    size_t n, n_merges;
} arrays;

static tg_status find_arrays(const tg_gguf *g, size_t n_tokens, arrays *a) {
    TG_TRY(tg_gguf_get_array(g, "tokenizer.ggml.tokens", TG_GGUF_STRING, &a->tokens));
    TG_TRY(tg_gguf_get_array(g, "tokenizer.ggml.token_type", TG_GGUF_I32, &a->types));
    TG_TRY(tg_gguf_get_array(g, "tokenizer.ggml.scores", TG_GGUF_F32, &a->scores));
    TG_TRY(tg_gguf_get_array(g, "tokenizer.ggml.merges", TG_GGUF_STRING, &a->merges));
    a->n = a->tokens ? a->tokens->count : 0;
    a->n_merges = a->merges ? a->merges->count : 0;
    if (a->n > 0 && (n_tokens == 0 || a->n == n_tokens) && (!a->types || a->types->count == a->n) &&
        (!a->scores || a->scores->count == a->n))
        return TG_OK;
    return tg_fail(g->ctx, TG_E_FORMAT,
                   "%s: tokenizer: want %zu tokens, and types and scores for each, have %zu, %zu "
                   "and %zu",
                   g->path, n_tokens ? n_tokens : a->n, a->n, a->types ? a->types->count : 0,
                   a->scores ? a->scores->count : 0);
}

/* Pieces, types, scores and merges of the description; strings point into the file's metadata. */
static tg_status describe(const tg_gguf *g, size_t n_tokens, tg_arena *arena, tg_tok_desc *d) {
    arrays a = { .n = 0 };
    TG_TRY(find_arrays(g, n_tokens, &a));
    tg_tok_text *pieces = tg_arena_array(arena, a.n, sizeof *pieces);
    uint8_t *types = tg_arena_array(arena, a.n, 1);
    double *scores = tg_arena_array(arena, a.n, sizeof *scores);
    tg_tok_text *merges = tg_arena_array(arena, a.n_merges, 2 * sizeof *merges);
    if (!pieces || !types || !scores || !merges)
        return tg_fail_memory(g->ctx, "vocabulary", a.n * sizeof *pieces);
    size_t at = 0;
    for (size_t i = 0; i < a.n; i++) {
        pieces[i] = text_of(tg_gguf_next_string(a.tokens, &at));
        const uint32_t type = a.types ? tg_get_u32(a.types->elements + 4 * i) : TG_TOK_NORMAL;
        types[i] = type < UINT8_MAX ? (uint8_t)type : UINT8_MAX; /* which tg_tok_new refuses */
    }
    for (size_t i = 0; a.scores && i < a.n; i++) {
        const uint32_t bits = tg_get_u32(a.scores->elements + 4 * i);
        float score;
        memcpy(&score, &bits, sizeof score);
        scores[i] = (double)score;
    }
    at = 0;
    for (size_t i = 0; i < a.n_merges; i++)
        split_merge(tg_gguf_next_string(a.merges, &at), merges + 2 * i);
    d->n_tokens = a.n;
    d->pieces = pieces;
    d->types = types;
    d->scores = a.scores ? scores : NULL;
    d->n_merges = a.n_merges;
    d->merges = merges;
    return TG_OK;
}

/* SentencePiece's and WordPiece's files add bos and a blank unless they say that they don't. */
static tg_status read_flags(const tg_gguf *g, tg_tok_desc *d) {
    const int64_t most = (int64_t)d->n_tokens - 1;
    bool blank = d->model == TG_TOK_SCORE_BPE;
    d->add_bos = d->model != TG_TOK_BYTE_BPE;
    d->add_eos = d->model == TG_TOK_WORDPIECE;
    TG_TRY(tg_gguf_get_int(g, "tokenizer.ggml.bos_token_id", 0, most, &d->bos));
    TG_TRY(tg_gguf_get_int(g, "tokenizer.ggml.eos_token_id", 0, most, &d->eos));
    TG_TRY(tg_gguf_get_int(g, "tokenizer.ggml.unknown_token_id", 0, most, &d->unknown));
    TG_TRY(tg_gguf_get_int(g, "tokenizer.ggml.padding_token_id", 0, most, &d->pad));
    TG_TRY(tg_gguf_get_int(g, "tokenizer.ggml.cls_token_id", 0, most, &d->cls));
    TG_TRY(tg_gguf_get_int(g, "tokenizer.ggml.seperator_token_id", 0, most, &d->sep)); /* sic */
    TG_TRY(tg_gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &d->add_bos));
    TG_TRY(tg_gguf_get_bool(g, "tokenizer.ggml.add_eos_token", &d->add_eos));
    TG_TRY(tg_gguf_get_bool(g, "tokenizer.ggml.add_space_prefix", &blank));
    if (blank && d->model == TG_TOK_SCORE_BPE) d->normal |= TG_TOK_PREFIX_BLANK;
    return TG_OK;
}

static tg_status from_gguf(const tg_gguf *g, size_t n_tokens, tg_arena *arena, tg_tok **out) {
    tg_gguf_string model = { NULL, 0 }, pre = { NULL, 0 };
    TG_TRY(tg_gguf_get_string(g, "tokenizer.ggml.model", &model));
    TG_TRY(tg_gguf_get_string(g, "tokenizer.ggml.pre", &pre));
    if (!model.bytes) return TG_OK;
    const char *model_name = tg_arena_strndup(arena, model.bytes, model.n_bytes);
    const char *pre_name = tg_arena_strndup(arena, pre.bytes ? pre.bytes : "", pre.n_bytes);
    if (!model_name || !pre_name) return tg_fail_memory(g->ctx, "vocabulary", model.n_bytes);
    tg_tok_desc d;
    tg_tok_desc_init(&d);
    TG_TRY(tg_tok_desc_gguf(g->ctx, model_name, pre.bytes ? pre_name : NULL, &d));
    TG_TRY(describe(g, n_tokens, arena, &d));
    TG_TRY(read_flags(g, &d));
    return tg_tok_new(g->ctx, &d, out);
}

/* Models have rows for more tokens than there are, so that their number divides well; those are
 * never asked for by a text. */
static tg_status from_json(const tg_gguf *g, size_t n_tokens, tg_tok **out) {
    int32_t eos = -1;
    TG_TRY(tg_tok_new_json(g->ctx, g->path, g->tokenizer_json, g->tokenizer_bytes, out));
    const size_t have = tg_tok_count(*out);
    tg_status s = tg_gguf_get_int(g, "tokenizer.ggml.eos_token_id", 0, (int64_t)have - 1, &eos);
    if (s == TG_OK && n_tokens > 0 && have > n_tokens)
        s = tg_fail(g->ctx, TG_E_FORMAT,
                    "%s: tokenizer: want at most the %zu tokens of the model, have %zu", g->path,
                    n_tokens, have);
    if (s == TG_OK) {
        tg_tok_set_eos(*out, eos);
        return TG_OK;
    }
    tg_tok_free(*out);
    *out = NULL;
    return s;
}

/* What is wrong with a description is said without its file, which is known here. */
static tg_status named(const tg_gguf *g, tg_status status) {
    char why[TG_MESSAGE_BYTES];
    tg_ctx *ctx = g->ctx;
    if (status == TG_OK || strncmp(ctx->message, g->path, strlen(g->path)) == 0) return status;
    memcpy(why, ctx->message, sizeof why);
    tg_ctx_clear(ctx);
    return tg_fail(ctx, status, "%s: %s", g->path, why);
}

tg_status tg_vocabulary_gguf(const tg_gguf *g, size_t n_tokens, tg_tok **out) {
    *out = NULL;
    if (g->tokenizer_json) return from_json(g, n_tokens, out);
    tg_arena arena;
    tg_arena_init(&arena, &g->ctx->mem);
    const tg_status status = named(g, from_gguf(g, n_tokens, &arena, out));
    tg_arena_deinit(&arena);
    return status;
}

tg_status tg_vocabulary_chat(const tg_gguf *g, tg_tokenizer *t) {
    tg_gguf_string text = { NULL, 0 };
    TG_TRY(tg_gguf_get_string(g, "tokenizer.chat_template", &text));
    t->has_template = text.bytes != NULL;
    t->chat = text.bytes ? tg_chat_detect(text.bytes, text.n_bytes) : NULL;
    return TG_OK;
}

/* ------------------------------------------------------------------------------------ files */

static tg_status open_model(tg_tokenizer *t, const char *path) {
    tg_gguf g;
    TG_TRY(tg_gguf_open_any(&t->ctx->err, path, &g));
    tg_status s = tg_vocabulary_gguf(&g, 0, &t->tok);
    if (s == TG_OK) s = tg_vocabulary_chat(&g, t);
    if (s == TG_OK && !t->tok)
        s = tg_fail(&t->ctx->err, TG_E_UNSUPPORTED, "%s: want a file with a tokenizer, have none",
                    path);
    tg_gguf_close(&g);
    return s;
}

static tg_status open_json(tg_tokenizer *t, tg_reader *r) {
    if (r->end > JSON_LIMIT)
        return tg_reader_fail(r, TG_E_FORMAT, 0, "tokenizer", "want at most %d bytes, have %llu",
                              JSON_LIMIT, (unsigned long long)r->end);
    tg_arena arena;
    tg_arena_init(&arena, &t->ctx->err.mem);
    const char *text;
    tg_status s = tg_read_text(r, &arena, "tokenizer", r->end, &text);
    if (s == TG_OK) s = tg_tok_new_json(&t->ctx->err, r->name, text, (size_t)r->end, &t->tok);
    tg_arena_deinit(&arena);
    return s;
}

/* tokenizer.json begins with the brace of its object, or white space before it. */
static tg_status open_any(tg_tokenizer *t, const char *path, bool *known) {
    tg_reader r;
    uint8_t first[8] = { 0 };
    char folder[TG_LM_PATH_BYTES];
    *known = true;
    if (tg_lm_takes(path, folder)) return open_model(t, folder);
    TG_TRY(tg_reader_open(&t->ctx->err, path, &r));
    const size_t n = r.end < sizeof first ? (size_t)r.end : sizeof first;
    tg_status s = tg_read_at(&r, 0, "beginning", first, n);
    size_t at = 0;
    while (at < n && (first[at] == ' ' || first[at] == '\n' || first[at] == '\r')) at++;
    if (s == TG_OK && at < n && first[at] == '{') {
        s = open_json(t, &r);
    } else {
        *known = false;
    }
    tg_reader_close(&r);
    return s;
}

static tg_status new_one(tg_context *ctx, tg_tokenizer **out) {
    *out = tg_alloc(&ctx->err.mem, sizeof **out);
    if (!*out) return tg_fail_memory(&ctx->err, "tokenizer", sizeof **out);
    (*out)->ctx = ctx;
    return TG_OK;
}

tg_status tg_vocabulary_open(tg_context *ctx, const char *path, tg_tokenizer **out) {
    TG_TRY(new_one(ctx, out));
    bool known = false;
    const tg_status s = open_any(*out, path, &known);
    if (s == TG_OK && known) return TG_OK;
    tg_vocabulary_free(*out);
    *out = NULL;
    return s;
}

tg_status tg_vocabulary_bytes(tg_context *ctx, tg_tokenizer **out) {
    TG_TRY(new_one(ctx, out));
    tg_tok_desc d;
    tg_tok_desc_init(&d);
    const tg_status s = tg_tok_new(&ctx->err, &d, &(*out)->tok);
    if (s == TG_OK) return TG_OK;
    tg_vocabulary_free(*out);
    *out = NULL;
    return s;
}

void tg_vocabulary_free(tg_tokenizer *t) {
    if (!t) return;
    const tg_mem mem = t->ctx->err.mem;
    tg_tok_free(t->tok);
    tg_free(&mem, t, sizeof *t);
}
