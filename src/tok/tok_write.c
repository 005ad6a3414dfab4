/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tok_write.c - tokenizer.json of a tokenizer that came from elsewhere, such as GGUF's arrays.
 *
 * What tok_json.c reads, the other way round, in the parts that Hugging Face's tokenizers would
 * put together for the same vocabulary:
 *
 *     BYTE_BPE    (NFC) | the splitter's pattern, ByteLevel | BPE of bytes
 *     SCORE_BPE   (Prepend), Replace " "                    | BPE of characters, byte fallback
 *     WORDPIECE   BertNormalizer | BertPreTokenizer         | WordPiece, "##" continues a word
 *
 * Merges are ranked there, and pieces in SentencePiece: each way to put a piece together from two
 * becomes a merge, in the order of the scores. Of two pieces of one score, SentencePiece merges the
 * leftmost first; a list of merges has to prefer one of them.
 */
#include "base/codec/json.h"
#include "base/sort.h"
#include "tok/tok_inside.h"

/* -------------------------------------------------------------------------------------- merges */

static bool rank_before(const void *user, uint32_t a, uint32_t b) {
    const tg_pair *p = user;
    return p[a].rank != p[b].rank ? p[a].rank < p[b].rank : a < b;
}

/* All pairs of pieces that are together a piece; of one piece, those with the longest left half
 * come first. */
static tg_status pairs_of_pieces(tg_ctx *ctx, const tg_tok *t, tg_buf *pairs) {
    for (size_t i = 0; i < t->n; i++) {
        size_t n;
        const char *text = tg_strings_get(&t->pieces, i, &n);
        if (n < 2 || tg_tok_find_normal(t, text, n) != (int32_t)i) continue;
        for (size_t at = n - 1; at > 0; at--) {
            if (((uint8_t)text[at] & 0xc0) == 0x80) continue; /* within a character */
            const int32_t left = tg_tok_find_normal(t, text, at);
            const int32_t right = left < 0 ? -1 : tg_tok_find_normal(t, text + at, n - at);
            if (right < 0) continue;
            const tg_pair pair = { left, right, (int32_t)i, t->rank[i] };
            tg_buf_append(pairs, &pair, sizeof pair);
        }
    }
    return tg_buf_status(ctx, pairs, "merges");
}

tg_status tg_tok_merges_of(tg_ctx *ctx, const tg_tok *t, tg_arena *arena, tg_tok_merges *out) {
    *out = (tg_tok_merges) { .n = 0 };
    size_t room = (size_t)t->pairs.mask + 1;
    const tg_pair *pairs = t->pairs.slot;
    if (t->model == TG_TOK_SCORE_BPE) {
        tg_buf made;
        tg_buf_init(&made, &ctx->mem);
        tg_status s = pairs_of_pieces(ctx, t, &made);
        tg_pair *kept = s == TG_OK ? tg_arena_alloc(arena, made.length + 1) : NULL;
        if (s == TG_OK && !kept) s = tg_fail_memory(ctx, "merges", made.length);
        if (kept && made.length) memcpy(kept, made.data, made.length);
        room = made.length / sizeof *kept;
        pairs = kept;
        tg_buf_deinit(&made);
        TG_TRY(s);
    }
    uint32_t *order = tg_arena_array(arena, room + 1, sizeof *order);
    if (!order) return tg_fail_memory(ctx, "merges", room * sizeof *order);
    tg_sort_numbers(order, room, rank_before, pairs);
    while (out->n < room && pairs[order[out->n]].rank != UINT32_MAX) out->n++; /* then free slots */
    out->pair = pairs;
    out->order = order;
    return TG_OK;
}

/* --------------------------------------------------------------------------------------- pieces */

typedef struct writer {
    const tg_tok *t;
    tg_buf *out;
    tg_buf piece;        /* with its mark */
    tg_json_writer json; /* of strings alone */
} writer;

static void put_text(writer *w, const char *text) { tg_buf_puts(w->out, text); }

/* GGUF's WordPiece marks the beginnings of words; here what goes on in a word is marked. Names in
 * brackets are no words. */
static void put_piece(writer *w, int32_t id) {
    size_t n;
    const char *text = tg_strings_get(&w->t->pieces, (size_t)id, &n);
    if (!w->t->word_starts_marked || w->t->types[id] != TG_TOK_NORMAL ||
        (n > 2 && text[0] == '[' && text[n - 1] == ']')) {
        tg_json_put_string_n(&w->json, text, n);
    } else if (n > 3 && memcmp(text, TG_BLANK_MARK, 3) == 0) {
        tg_json_put_string_n(&w->json, text + 3, n - 3);
    } else {
        tg_buf_clear(&w->piece);
        tg_buf_puts(&w->piece, "##");
        tg_buf_append(&w->piece, text, n);
        tg_json_put_string_n(&w->json, tg_buf_text(&w->piece), w->piece.length);
        w->out->failed = w->out->failed || w->piece.failed;
    }
}

/* Ids of empty and repeated pieces stay free: a text never becomes one of them. */
static bool has_name(const tg_tok *t, size_t i) {
    size_t n;
    const char *text = tg_strings_get(&t->pieces, i, &n);
    return n > 0 && tg_tok_find(t, text, n) == (int32_t)i;
}

static void put_vocab(writer *w) {
    const char *comma = "";
    put_text(w, "\"vocab\":{");
    for (size_t i = 0; i < w->t->n; i++) {
        if (!has_name(w->t, i)) continue;
        put_text(w, comma);
        put_piece(w, (int32_t)i);
        tg_buf_printf(w->out, ":%zu", i);
        comma = ",";
    }
    put_text(w, "}");
}

/* Tokens that are found in a text before it is cut. SentencePiece looks for those that users define
 * behind the normaliser; not so where that would put a blank in front of them, too. */
static void put_added(writer *w) {
    const tg_tok *t = w->t;
    const bool cooked = t->model == TG_TOK_SCORE_BPE && !(t->normal & TG_TOK_PREFIX_BLANK);
    const char *comma = "";
    put_text(w, "\"added_tokens\":[");
    for (size_t i = 0; i < t->n; i++) {
        const bool special = t->types[i] == TG_TOK_CONTROL;
        if (!has_name(t, i) || (!special && t->types[i] != TG_TOK_USER_DEFINED)) continue;
        tg_buf_printf(w->out, "%s{\"id\":%zu,\"content\":", comma, i);
        put_piece(w, (int32_t)i);
        tg_buf_printf(w->out,
                      ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":%s,"
                      "\"special\":%s}",
                      cooked && !special ? "true" : "false", special ? "true" : "false");
        comma = ",";
    }
    put_text(w, "],");
}

static tg_status put_merges(writer *w, tg_ctx *ctx) {
    tg_arena arena;
    tg_tok_merges m;
    tg_arena_init(&arena, &ctx->mem);
    const tg_status s = tg_tok_merges_of(ctx, w->t, &arena, &m);
    put_text(w, ",\"merges\":[");
    for (size_t i = 0; i < m.n; i++) {
        const tg_pair *p = &m.pair[m.order[i]];
        put_text(w, i ? ",[" : "[");
        put_piece(w, p->left);
        put_text(w, ",");
        put_piece(w, p->right);
        put_text(w, "]");
    }
    put_text(w, "]");
    tg_arena_deinit(&arena);
    return s;
}

/* ---------------------------------------------------------------------------------------- parts */

#define BYTE_LEVEL(prefix, regex)                                                                  \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":" prefix ",\"trim_offsets\":true,"               \
    "\"use_regex\":" regex "}"

static void put_byte_level(writer *w) {
    const char *pattern = tg_tok_split_pattern(w->t->split);
    const bool digits = w->t->split == TG_TOK_SPLIT_SMOLLM;
    const bool ours = digits || w->t->split == TG_TOK_SPLIT_GPT2;
    tg_buf_printf(w->out, "\"normalizer\":%s,\"pre_tokenizer\":",
                  w->t->normal & TG_TOK_NFC ? "{\"type\":\"NFC\"}" : "null");
    if (pattern || digits) put_text(w, "{\"type\":\"Sequence\",\"pretokenizers\":[");
    if (digits) put_text(w, "{\"type\":\"Digits\",\"individual_digits\":true},");
    if (pattern) {
        put_text(w, "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
        tg_json_put_string(&w->json, pattern);
        put_text(w, "},\"behavior\":\"Isolated\",\"invert\":false},");
    }
    put_text(w, ours ? BYTE_LEVEL("false", "true") : BYTE_LEVEL("false", "false"));
    if (pattern || digits) put_text(w, "]}");
    put_text(w, ",\"decoder\":" BYTE_LEVEL("true", "true") ",");
}

static void put_sentencepiece(writer *w) {
    const bool prefix = w->t->normal & TG_TOK_PREFIX_BLANK;
    put_text(w, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    if (prefix) put_text(w, "{\"type\":\"Prepend\",\"prepend\":\"" TG_BLANK_MARK "\"},");
    put_text(w, "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" TG_BLANK_MARK
                "\"}]},\"pre_tokenizer\":null,\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
                "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" TG_BLANK_MARK
                "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}");
    if (prefix) put_text(w, ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}");
    put_text(w, "]},");
}

static void put_wordpiece(writer *w) {
    tg_buf_printf(w->out,
                  "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":%s,"
                  "\"handle_chinese_chars\":%s,\"strip_accents\":%s,\"lowercase\":%s},"
                  "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
                  "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},",
                  w->t->normal & TG_TOK_CLEAN ? "true" : "false",
                  w->t->normal & TG_TOK_CJK_SPACES ? "true" : "false",
                  w->t->normal & TG_TOK_STRIP_ACCENTS ? "true" : "false",
                  w->t->normal & TG_TOK_LOWER ? "true" : "false");
}

/* A token at an end of the text, as an item of the template. */
static void put_end(writer *w, int32_t id, int type, bool behind) {
    if (id < 0) return;
    put_text(w, behind ? ",{\"SpecialToken\":{\"id\":" : "{\"SpecialToken\":{\"id\":");
    put_piece(w, id);
    tg_buf_printf(w->out, ",\"type_id\":%d}}%s", type, behind ? "" : ",");
}

static void put_special(writer *w, int32_t id, bool more) {
    if (id < 0) return;
    put_piece(w, id);
    put_text(w, ":{\"id\":");
    put_piece(w, id);
    tg_buf_printf(w->out, ",\"ids\":[%ld],\"tokens\":[", (long)id);
    put_piece(w, id);
    put_text(w, more ? "]}," : "]}");
}

/* The tokens at the ends; of two texts, BERT has its last one between them, too. */
static void put_template(writer *w) {
    const tg_tok *t = w->t;
    const int32_t bos = t->add_bos ? t->bos : -1, eos = t->add_eos ? t->eos : -1;
    const bool bert = t->model == TG_TOK_WORDPIECE;
    put_text(w, "\"post_processor\":");
    if (bos < 0 && eos < 0) {
        put_text(w, "null,");
        return;
    }
    put_text(w, "{\"type\":\"TemplateProcessing\",\"single\":[");
    put_end(w, bos, 0, false);
    put_text(w, "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}");
    put_end(w, eos, 0, true);
    put_text(w, "],\"pair\":[");
    put_end(w, bos, 0, false);
    put_text(w, "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},");
    if (bert) put_end(w, eos, 0, false);
    tg_buf_printf(w->out, "{\"Sequence\":{\"id\":\"B\",\"type_id\":%d}}", bert);
    put_end(w, eos, bert, true);
    put_text(w, "],\"special_tokens\":{");
    put_special(w, bos, eos >= 0 && eos != bos);
    if (eos != bos) put_special(w, eos, false);
    put_text(w, "}},");
}

/* ---------------------------------------------------------------------------------------- model */

static void put_unknown(writer *w, const char *otherwise) {
    put_text(w, "\"unk_token\":");
    if (w->t->unknown >= 0 && w->t->model != TG_TOK_BYTE_BPE)
        put_piece(w, w->t->unknown);
    else
        put_text(w, otherwise);
}

/* Merges over characters in which marks stand for blanks, by scores or by ranks. */
static bool has_marks(const tg_tok *t) {
    return t->model == TG_TOK_SCORE_BPE || tg_tok_is_gemma(t);
}

static tg_status put_model(writer *w, tg_ctx *ctx) {
    const tg_tok *t = w->t;
    if (t->model == TG_TOK_WORDPIECE) {
        put_text(w, "\"model\":{\"type\":\"WordPiece\",");
        put_unknown(w, "\"[UNK]\"");
        put_text(w, ",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,");
        put_vocab(w);
        put_text(w, "}}\n");
        return TG_OK;
    }
    const bool fuse = t->model != TG_TOK_BYTE_BPE;
    put_text(w, "\"model\":{\"type\":\"BPE\",\"dropout\":null,");
    put_unknown(w, "null");
    tg_buf_printf(w->out,
                  ",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"
                  "\"fuse_unk\":%s,\"byte_fallback\":%s,\"ignore_merges\":%s,",
                  fuse ? "true" : "false", has_marks(t) ? "true" : "false",
                  t->ignore_merges ? "true" : "false");
    put_vocab(w);
    TG_TRY(put_merges(w, ctx));
    put_text(w, "}}\n");
    return TG_OK;
}

tg_status tg_tok_put_json(tg_ctx *ctx, const tg_tok *t, tg_buf *out) {
    writer w = { .t = t, .out = out };
    const bool plain = t->model == TG_TOK_MERGE_BPE && t->normal == 0; /* as learn_chars.c has it */
    if (t->model != TG_TOK_BYTE_BPE && t->model != TG_TOK_WORDPIECE && !has_marks(t) && !plain)
        return tg_fail(ctx, TG_E_UNSUPPORTED,
                       "tokenizer.json: want BPE or WordPiece out of GGUF's arrays, have another");
    tg_json_writer_init(&w.json, out);
    tg_buf_init(&w.piece, &ctx->mem);
    put_text(&w, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,");
    put_added(&w);
    if (t->model == TG_TOK_BYTE_BPE)
        put_byte_level(&w);
    else if (has_marks(t))
        put_sentencepiece(&w);
    else if (plain)
        put_text(&w, "\"normalizer\":null,\"pre_tokenizer\":null,\"decoder\":{\"type\":\"Fuse\"},");
    else
        put_wordpiece(&w);
    put_template(&w);
    const tg_status s = put_model(&w, ctx);
    tg_buf_deinit(&w.piece);
    return s == TG_OK ? tg_buf_status(ctx, out, "tokenizer.json") : s;
}
