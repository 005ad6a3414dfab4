/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocabulary.c - tokenizers out of files: the arrays of a GGUF file's metadata, or tokenizer.json.
 *
 *     tg_vocabulary_open     path     GGUF, folder, zip, .tinygpt with metadata: its keys
 *                                     a file that begins with '{': tokenizer.json
 *                                     anything else: *out stays NULL
 *     tg_vocabulary_keys     bytes    the section KEYS of a run
 *     tg_vocabulary_gguf     tg_gguf  of a model that is open: tokenizer.json first, else arrays
 *     tg_vocabulary_bytes             256 tokens, id = byte
 *
 * A tokenizer that was opened from a file keeps the metadata it came from (load/keys.h), so that a
 * model trained with it can be written with its vocabulary. One that belongs to a model borrows
 * nothing of the file either: tg_tok_new copies.
 *
 * Arrays of GGUF are read as llama.cpp reads them, with what it assumes where a key is missing;
 * names of models and splitters are tok_gguf.c's. All bounds of pieces, scores and ids are
 * tg_tok_new's; here arrays are held against each other and against the model's rows.
 */
#include "load/vocabulary.h"

#include "io/detect.h"
#include "io/hf/hf.h"

/* Real ones reach 35 MB; what is larger is another file. */
enum { JSON_LIMIT = 256 << 20 };

/* ------------------------------------------------------------------------------------- GGUF */

/* A piece of 4 GiB is cut to a length that tg_tok_new refuses. */
static tg_tok_text text_of(tg_gguf_string s) {
    return (tg_tok_text) { s.bytes, s.n_bytes < UINT32_MAX ? (uint32_t)s.n_bytes : UINT32_MAX };
}

/* "left right": the blank that is not the first byte of either part. A piece of GPT-2's alphabet
 * holds no blank; one of another vocabulary may begin with one. Without any, the right half is
 * empty, which is no piece, so tg_tok_new refuses the merge. */
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

/* types and scores have one for each token, merges any number. n_tokens 0: there is no model to
 * agree with. */
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

/* Pieces, types, scores and merges of the description; strings point into the file's metadata,
 * arrays lie in the arena. Elements are read byte by byte, since they are not aligned in the
 * file. */
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

/* A file that asks for a token at an end and names none is refused; where only its tokenizer is one
 * that usually adds it, this is said. */
static tg_status want_added(const tg_gguf *g, const char *flag, const char *name, int32_t id,
                            bool *add) {
    if (!*add || id >= 0) return TG_OK;
    if (tg_gguf_find(g, flag))
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want %s, where it is true, have none", g->path,
                       flag, name);
    tg_say(g->ctx, TG_LOG_WARNING, "%s: %s: none: no such token is added to a text", g->path, name);
    *add = false;
    return TG_OK;
}

/* SentencePiece's numbers where a file has none, if the tokens there are of that kind. 0, 1 and
 * 2 are what SentencePiece's trainer gives them unless it is told otherwise; the types must
 * agree. */
static void guess_ids(tg_tok_desc *d) {
    const bool sentence = d->model == TG_TOK_SCORE_BPE && d->n_tokens > 2;
    if (!sentence) return;
    if (d->unknown < 0 && d->types[0] == TG_TOK_UNKNOWN) d->unknown = 0;
    if (d->bos < 0 && d->types[1] == TG_TOK_CONTROL) d->bos = 1;
    if (d->eos < 0 && d->types[2] == TG_TOK_CONTROL) d->eos = 2;
}

/* What SentencePiece's and WordPiece's files add, and byte-level ones of some names
 * (tok_gguf.c), they add unless they say that they don't. A prefix blank and its switch are
 * SentencePiece's alone; lower case and accents are WordPiece's, where accents follow lower case
 * unless a key says more. The key of sep is misspelled in the format itself. */
static tg_status read_flags(const tg_gguf *g, tg_tok_desc *d) {
    const int64_t most = (int64_t)d->n_tokens - 1;
    const bool words = d->model == TG_TOK_WORDPIECE;
    bool blank = d->model == TG_TOK_SCORE_BPE, lower = true, strip;
    d->add_bos = d->add_bos || d->model != TG_TOK_BYTE_BPE;
    d->add_eos = words;
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
    TG_TRY(tg_gguf_get_bool(g, "tokenizer.ggml.normalizer.lowercase", &lower));
    strip = lower;
    TG_TRY(tg_gguf_get_bool(g, "tokenizer.ggml.normalizer.strip_accents", &strip));
    if (words && !lower) d->normal &= ~(unsigned)TG_TOK_LOWER;
    if (words && !strip) d->normal &= ~(unsigned)TG_TOK_STRIP_ACCENTS;
    guess_ids(d);
    TG_TRY(want_added(g, "tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id",
                      words && d->cls >= 0 ? d->cls : d->bos, &d->add_bos));
    return want_added(g, "tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id",
                      words && d->sep >= 0 ? d->sep : d->eos, &d->add_eos);
}

/* --------------------------------------------------------------------------- ends of texts */

/* Ids, each once. */
typedef struct id_list {
    int32_t id[TG_TOK_ENDS_MAX + 1];
    size_t n;
} id_list;

/* What does not fit is dropped at one more than the most, so that tg_tok_set_ends sees that
 * there are too many. */
static void add_id(id_list *l, int32_t id) {
    for (size_t i = 0; i < l->n; i++)
        if (l->id[i] == id) return;
    if (id >= 0 && l->n <= TG_TOK_ENDS_MAX) l->id[l->n++] = id;
}

static tg_status add_key(const tg_gguf *g, const tg_tok *t, const char *key, id_list *l) {
    int32_t id = -1;
    TG_TRY(tg_gguf_get_int(g, key, 0, (int64_t)tg_tok_count(t) - 1, &id));
    add_id(l, id);
    return TG_OK;
}

/* Of a folder all that its files name (io/hf/hf.c puts them there); in GGUF it is a key of
 * Ollama's. */
static tg_status add_list(const tg_gguf *g, id_list *l) {
    const char *const key = "tokenizer.ggml.eos_token_ids";
    const tg_gguf_value *ids = tg_gguf_find(g, key);
    if (!ids) return TG_OK;
    if (ids->type != TG_GGUF_ARRAY ||
        (ids->element != TG_GGUF_I32 && ids->element != TG_GGUF_U32) ||
        ids->count > TG_TOK_ENDS_MAX)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want a list of at most %d ids as i32 or u32",
                       g->path, key, TG_TOK_ENDS_MAX);
    for (size_t i = 0; i < ids->count; i++) {
        const uint32_t id = tg_get_u32(ids->elements + 4 * i);
        if (id > INT32_MAX)
            return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want ids, have %" PRIu32, g->path, key,
                           id);
        add_id(l, (int32_t)id);
    }
    return TG_OK;
}

/* llama.cpp's rule and its list: a GGUF file names one end, two or three, and the others go by
 * their names, whatever their type. Without it a chat model converted with eos alone would talk
 * on behind its turn. */
static void add_names(const tg_tok *t, id_list *l) {
    static const char *const names[] = {
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "</s>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<eos>",
        "<|fim_pad|>",
        "<fim-pad>",
        "<fim_pad>",
        "<|fim_repo|>",
        "<|repo_name|>",
        "<fim-repo>",
        "<|file_sep|>",
        ("<\xef\xbd\x9c"
         "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"),
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        add_id(l, tg_tok_find(t, names[i], strlen(names[i])));
}

/* Of tokenizer.json, whose files name all ends (generation_config.json), nothing is guessed by
 * name. */
static tg_status set_ends(const tg_gguf *g, tg_tok *t) {
    id_list l = { .n = 0 };
    if (g->tokenizer_json) {
        TG_TRY(add_key(g, t, "tokenizer.ggml.eos_token_id", &l));
        TG_TRY(add_list(g, &l));
        return tg_tok_set_ends(g->ctx, t, g->path, l.id, l.n);
    }
    add_id(&l, tg_tok_eos(t));
    TG_TRY(add_key(g, t, "tokenizer.ggml.eot_token_id", &l));
    TG_TRY(add_key(g, t, "tokenizer.ggml.eom_token_id", &l));
    TG_TRY(add_key(g, t, "tokenizer.ggml.fim_pad_token_id", &l));
    TG_TRY(add_key(g, t, "tokenizer.ggml.fim_rep_token_id", &l));
    TG_TRY(add_key(g, t, "tokenizer.ggml.fim_sep_token_id", &l));
    TG_TRY(add_list(g, &l));
    add_names(t, &l);
    return tg_tok_set_ends(g->ctx, t, g->path, l.id, l.n);
}

/* What would be left out of every draw is a rule of the model's that nobody has here. To draw
 * such tokens all the same would be another model. */
static tg_status want_no_suppressed(const tg_gguf *g) {
    const tg_gguf_value *v = tg_gguf_find(g, "tokenizer.ggml.suppress_tokens");
    if (!v || (v->type == TG_GGUF_ARRAY && v->count == 0)) return TG_OK;
    return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: %s: want none, have some", g->path, v->key);
}

/* *out stays NULL where the file names no tokenizer. Names become C strings for the tables of
 * tok_gguf.c. */
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
    TG_TRY(want_no_suppressed(g));
    TG_TRY(describe(g, n_tokens, arena, &d));
    if (d.model == TG_TOK_MERGE_BPE && d.n_merges == 0)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: tokenizer.ggml.merges: want some, have none",
                       g->path);
    TG_TRY(read_flags(g, &d));
    return tg_tok_new(g->ctx, &d, out);
}

/* Models have rows for more tokens than there are, so that their number divides well; those are
 * never asked for by a text. More tokens than rows would read beyond the embedding. */
static tg_status from_json(const tg_gguf *g, size_t n_tokens, tg_arena *arena, tg_tok **out) {
    const char *name = g->hf ? tg_arena_sprintf(arena, "%s/tokenizer.json", g->path) : g->path;
    if (!name) return tg_fail_memory(g->ctx, "vocabulary", strlen(g->path));
    TG_TRY(tg_tok_new_json(g->ctx, name, g->tokenizer_json, g->tokenizer_bytes, out));
    const size_t have = tg_tok_count(*out);
    if (n_tokens == 0 || have <= n_tokens) return TG_OK;
    return tg_fail(g->ctx, TG_E_FORMAT,
                   "%s: tokenizer: want at most the %zu tokens of the model, have %zu", g->path,
                   n_tokens, have);
}

/* The arena holds the description alone, and goes with this call. */
tg_status tg_vocabulary_gguf(const tg_gguf *g, size_t n_tokens, tg_tok **out) {
    tg_arena arena;
    *out = NULL;
    tg_arena_init(&arena, &g->ctx->mem);
    tg_status s = g->tokenizer_json ? from_json(g, n_tokens, &arena, out)
                                    : from_gguf(g, n_tokens, &arena, out);
    if (s == TG_OK && *out) s = set_ends(g, *out);
    tg_arena_deinit(&arena);
    if (s == TG_OK) return TG_OK;
    tg_tok_free(*out);
    *out = NULL;
    return tg_fail_named(g->ctx, g->path, s); /* descriptions do not know their file */
}

/* The text is kept as it is, for whoever writes the model again. Its errors go to a context of
 * their own, since a model without a usable template still completes texts; only missing memory
 * is an error here. */
tg_status tg_vocabulary_chat(const tg_gguf *g, tg_tokenizer *t) {
    tg_gguf_string text = { NULL, 0 };
    TG_TRY(tg_gguf_get_string(g, "tokenizer.chat_template", &text));
    if (!text.bytes || text.n_bytes == 0) return TG_OK;
    tg_ctx *ctx = &t->ctx->err;
    t->template_text = tg_alloc(&ctx->mem, text.n_bytes + 1);
    if (!t->template_text) return tg_fail_memory(ctx, "a chat template", text.n_bytes);
    memcpy(t->template_text, text.bytes, text.n_bytes);
    t->template_bytes = text.n_bytes;
    tg_ctx quiet;
    tg_ctx_init(&quiet, &ctx->mem, NULL, NULL);
    const tg_status s = tg_chat_template_new(&quiet, g->path, text.bytes, text.n_bytes, &t->chat);
    if (s == TG_E_MEMORY) return tg_fail_as(ctx, s, &quiet);
    if (s != TG_OK) tg_say(ctx, TG_LOG_WARNING, "%s", quiet.message);
    return TG_OK;
}

void tg_vocabulary_chat_deinit(tg_tokenizer *t) {
    tg_chat_template_deinit(&t->chat);
    if (t->template_text) tg_free(&t->ctx->err.mem, t->template_text, t->template_bytes + 1);
    t->template_text = NULL;
}

/* ------------------------------------------------------------------------------------ files */

/* From its keys, which are there: t borrows from them for as long as it lives. */
static tg_status make(tg_tokenizer *t) {
    const tg_gguf *g = &t->keys->g;
    TG_TRY(tg_vocabulary_gguf(g, 0, &t->tok));
    if (t->tok) return tg_vocabulary_chat(g, t);
    return tg_fail(&t->ctx->err, TG_E_UNSUPPORTED, "%s: want a file with a tokenizer, have none",
                   g->path);
}

/* The file is closed again: keys are copies of tokenizer.* alone, and no tensor was read. */
static tg_status open_model(tg_tokenizer *t, const char *path) {
    tg_gguf g;
    TG_TRY(tg_gguf_open_any(&t->ctx->err, path, &g));
    const tg_status s = tg_keys_of_gguf(&t->ctx->err, &g, true, &t->keys);
    tg_gguf_close(&g);
    return s == TG_OK ? make(t) : s;
}

/* The text becomes a key of a tg_gguf that has nothing else, so that make() and a conversion see
 * no difference to a folder. */
static tg_status open_json(tg_tokenizer *t, tg_reader *r) {
    if (r->end > JSON_LIMIT)
        return tg_reader_fail(r, TG_E_FORMAT, 0, "tokenizer", "want at most %d bytes, have %llu",
                              JSON_LIMIT, (unsigned long long)r->end);
    tg_arena arena;
    tg_arena_init(&arena, &t->ctx->err.mem);
    const char *text;
    tg_status s = tg_read_text(r, &arena, "tokenizer", r->end, &text);
    if (s == TG_OK) {
        const tg_gguf alone = { .ctx = &t->ctx->err,
                                .path = r->name,
                                .tokenizer_json = text,
                                .tokenizer_bytes = (size_t)r->end };
        s = tg_keys_of_gguf(&t->ctx->err, &alone, true, &t->keys);
    }
    tg_arena_deinit(&arena);
    if (s == TG_OK) s = make(t);
    return tg_fail_named(&t->ctx->err, r->name, s);
}

/* tokenizer.json begins with the brace of its object, or white space before it. A
 * model.safetensors stands for its folder (io/detect.c). */
static tg_status open_any(tg_tokenizer *t, const char *path, bool *known) {
    tg_reader r;
    uint8_t first[8] = { 0 };
    char folder[TG_GGUF_PATH_BYTES];
    *known = true;
    bool takes;
    TG_TRY(tg_gguf_takes(&t->ctx->err, path, folder, &takes));
    if (takes) return open_model(t, folder);
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

/* All zeros but for the context, which tg_vocabulary_free can take at any time. */
static tg_status new_one(tg_context *ctx, tg_tokenizer **out) {
    *out = tg_alloc(&ctx->err.mem, sizeof **out);
    if (!*out) return tg_fail_memory(&ctx->err, "tokenizer", sizeof **out);
    (*out)->ctx = ctx;
    return TG_OK;
}

tg_status tg_vocabulary_open(tg_context *ctx, const char *path, tg_tokenizer **out) {
    TG_TRY(new_one(ctx, out));
    bool known = false;
    const tg_status s = tg_fail_named(&ctx->err, path, open_any(*out, path, &known));
    if (s == TG_OK && known) return TG_OK;
    tg_vocabulary_free(*out);
    *out = NULL;
    return s;
}

tg_status tg_vocabulary_keys(tg_context *ctx, const char *name, const uint8_t *bytes,
                             size_t n_bytes, tg_tokenizer **out) {
    TG_TRY(new_one(ctx, out));
    tg_status s = tg_keys_of_bytes(&ctx->err, name, bytes, n_bytes, &(*out)->keys);
    if (s == TG_OK) s = make(*out);
    if (s == TG_OK) return TG_OK;
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
    tg_vocabulary_chat_deinit(t);
    tg_keys_free(&t->ctx->err, t->keys);
    tg_free(&mem, t, sizeof *t);
}
