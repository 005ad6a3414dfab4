/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tok_json.c - reads tokenizer.json, as Hugging Face's tokenizers write it.
 *
 * The file describes a pipeline of parts with free parameters. What is known here are the
 * pipelines that models in use have; each part is recognised as a whole, and one that is not known
 * is refused by its name rather than left out, for a tokenizer that is nearly right is wrong.
 *
 *     added_tokens      types, and ids beyond the model's
 *     normalizer        d->normal
 *     pre_tokenizer     d->split, byte-level or not
 *     model             pieces, scores, merges
 *     post_processor    bos and eos
 *     decoder           nothing: it follows from the rest
 *
 * A part may be null or missing, which is the same; it may be one object, or a Sequence of
 * several. Regular expressions are compared as text and never run: a file cannot make the program
 * spend time on a pattern of its own.
 *
 * Everything lies in the loader's arena, and strings in the parsed document there, until
 * tg_tok_new has made its tables; then all of it goes. tok_write.c is the way back.
 */
#include "base/codec/json.h"
#include "tok/tok_inside.h"

/* Ids may leave gaps, but a huge one must not make a huge table. */
enum { GAPS_MAX = 1 << 16 };

/* pieces, types, scores and cooked are the arrays of d, each [d.n_tokens], which are still
 * written to. */
typedef struct loader {
    tg_ctx *ctx;
    const char *name;
    tg_arena arena;
    const tg_json *root, *model;
    tg_tok_desc d;
    tg_tok_text *pieces;
    uint8_t *types;
    double *scores;
    bool *cooked;
    bool byte_level, byte_fallback;
} loader;

/* what is shown as far as it is a text; an object would be longer than any message. */
static tg_status refuse(loader *l, const char *part, const tg_json *what) {
    const char *text = what && tg_json_kind(what) == TG_JSON_STRING ? what->u.text : "another form";
    return tg_fail(l->ctx, TG_E_UNSUPPORTED,
                   "%s: %s: want one of a known model family, have %.200s", l->name, part, text);
}

/* The member, or NULL if it is missing or null. */
static const tg_json *member(const tg_json *v, const char *key) {
    const tg_json *m = v ? tg_json_get(v, key) : NULL;
    return m && tg_json_kind(m) != TG_JSON_NULL ? m : NULL;
}

static bool is_type(const tg_json *v, const char *type) {
    const tg_json *t = member(v, "type");
    return t && tg_json_is(t, type);
}

static bool is_true(const tg_json *v, const char *key) {
    const tg_json *m = member(v, key);
    return m && tg_json_kind(m) == TG_JSON_TRUE;
}

/* Is a text there that is not empty? */
static bool has_text(const tg_json *v, const char *key) {
    const tg_json *m = member(v, key);
    return m && !tg_json_is(m, "");
}

/* ------------------------------------------------------------------------------- normalizer */

/* Flags are applied in the order of their numbers (tok.h), so a file whose parts come in another
 * order, or twice, means something else. */
static tg_status add_normal(loader *l, unsigned flag, const tg_json *part) {
    if (l->d.normal >= flag) return refuse(l, "normalizer, order", member(part, "type"));
    l->d.normal |= flag;
    return TG_OK;
}

/* It is the only part that sets several flags, and stands alone in the files that have it.
 * Accents are stripped by default only where letters are made small: BERT's own rule. */
static tg_status read_bert_normalizer(loader *l, const tg_json *v) {
    const bool lower = is_true(v, "lowercase");
    const tg_json *strip = member(v, "strip_accents"); /* null: as lowercase */
    if (is_true(v, "clean_text")) l->d.normal |= TG_TOK_CLEAN;
    if (is_true(v, "handle_chinese_chars")) l->d.normal |= TG_TOK_CJK_SPACES;
    if (strip ? tg_json_kind(strip) == TG_JSON_TRUE : lower) l->d.normal |= TG_TOK_STRIP_ACCENTS;
    if (lower) l->d.normal |= TG_TOK_LOWER;
    return TG_OK;
}

/* Llama's and Gemma's way to mark blanks; other replacements are refused. */
static bool replaces_blanks(const tg_json *v) {
    const tg_json *pattern = member(v, "pattern"), *content = member(v, "content");
    const tg_json *string = member(pattern, "String");
    return string && content && tg_json_is(string, " ") && tg_json_is(content, TG_BLANK_MARK);
}

/* One part. "Prepend" puts the mark in front before blanks are replaced, so a blank that is
 * marked later is the same. */
static tg_status read_normalizer(loader *l, const tg_json *v) {
    if (is_type(v, "NFC")) return add_normal(l, TG_TOK_NFC, v);
    if (is_type(v, "NFKC")) return add_normal(l, TG_TOK_NFKC, v);
    if (is_type(v, "Lowercase")) return add_normal(l, TG_TOK_LOWER, v);
    if (is_type(v, "BertNormalizer")) return read_bert_normalizer(l, v);
    if (is_type(v, "Replace") && replaces_blanks(v)) return add_normal(l, TG_TOK_BLANK_MARK, v);
    const tg_json *prefix = member(v, "prepend");
    if (is_type(v, "Prepend") && prefix && tg_json_is(prefix, TG_BLANK_MARK)) {
        return add_normal(l, TG_TOK_PREFIX_BLANK, v);
    }
    return refuse(l, "normalizer", member(v, "type"));
}

/* ---------------------------------------------------------------------------- pre_tokenizer */

#define SHORT_FORMS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LEAD        "[^\\r\\n\\p{L}\\p{N}]?"
#define BLANKS      "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LINES       "[\\r\\n]*" BLANKS
/* Of words by case: what may stand before small letters, or behind capitals. */
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(end, digits)                                                                         \
    LEAD CAPITALS "*" SMALL "+" end "|" LEAD CAPITALS "+" SMALL "*" end "|" digits                 \
                  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" BLANKS
static const struct {
    tg_tok_split split;
    const char *pattern;
} patterns[] = {
    { TG_TOK_SPLIT_LLAMA3, SHORT_FORMS "|" LEAD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+" LINES },
    { TG_TOK_SPLIT_QWEN2, SHORT_FORMS "|" LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+" LINES },
    { TG_TOK_SPLIT_QWEN35,
      SHORT_FORMS "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+" LINES },
    { TG_TOK_SPLIT_GPT4O, CASED(SHORT_FORMS "?", "\\p{N}{1,3}") },
    { TG_TOK_SPLIT_TEKKEN, CASED("", "\\p{N}") },
};

const char *tg_tok_split_pattern(tg_tok_split split) {
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (patterns[i].split == split) return patterns[i].pattern;
    return NULL;
}

/* Isolated: what matches is a word, and what lies between is one, too. Removed, inverted: what lies
 * between goes, and with these patterns nothing does, since each character is in a match. With
 * another behaviour the same pattern cuts otherwise. A second one would cut what the first left. */
static tg_status read_split(loader *l, const tg_json *v) {
    const tg_json *pattern = member(v, "pattern"), *behavior = member(v, "behavior");
    const tg_json *regex = member(pattern, "Regex"), *string = member(pattern, "String");
    const bool inverted = is_true(v, "invert");
    if (!behavior || (inverted && !tg_json_is(behavior, "Removed")))
        return refuse(l, "pre_tokenizer", member(v, "type"));
    /* Gemma's: its normalizer has left no blank, so it cuts nothing. */
    if (string && !inverted && tg_json_is(string, " ") && (l->d.normal & TG_TOK_BLANK_MARK))
        return TG_OK;
    for (size_t i = 0; regex && i < sizeof patterns / sizeof patterns[0]; i++) {
        if (!tg_json_is(regex, patterns[i].pattern) ||
            !tg_json_is(behavior, inverted ? "Removed" : "Isolated"))
            continue;
        if (l->d.split != TG_TOK_SPLIT_NONE) break;
        l->d.split = patterns[i].split;
        return TG_OK;
    }
    return refuse(l, "pre_tokenizer, pattern", regex ? regex : string);
}

/* GPT-2's own pre-tokenizer: it cuts by GPT-2's rule unless use_regex is off, as it is behind a
 * Split (Llama 3, Qwen). SmolLM's files put Digits before it, and then its rule holds for what
 * is between. */
static tg_status read_byte_level(loader *l, const tg_json *v) {
    if (is_true(v, "add_prefix_space")) TG_TRY(add_normal(l, TG_TOK_PREFIX_MISSING, v));
    l->byte_level = true;
    const tg_json *use_regex = member(v, "use_regex"); /* true, if it is not said */
    if (use_regex && tg_json_kind(use_regex) != TG_JSON_TRUE) return TG_OK;
    if (l->d.split == TG_TOK_SPLIT_NONE) {
        l->d.split = TG_TOK_SPLIT_GPT2;
    } else if (l->d.split != TG_TOK_SPLIT_SMOLLM) {
        return refuse(l, "pre_tokenizer", member(v, "type"));
    }
    return TG_OK;
}

/* SentencePiece's blanks. Older files have add_prefix_space where newer ones have
 * prepend_scheme; "first" (only before the first word of a text) is refused. */
static tg_status read_metaspace(loader *l, const tg_json *v) {
    const tg_json *scheme = member(v, "prepend_scheme"), *mark = member(v, "replacement");
    const bool old = !scheme && is_true(v, "add_prefix_space");
    if (!mark || !tg_json_is(mark, TG_BLANK_MARK)) return refuse(l, "pre_tokenizer", mark);
    if (old || (scheme && tg_json_is(scheme, "always"))) {
        TG_TRY(add_normal(l, TG_TOK_PREFIX_MISSING, v));
    } else if (scheme && !tg_json_is(scheme, "never")) {
        return refuse(l, "pre_tokenizer, prepend_scheme", scheme);
    }
    return add_normal(l, TG_TOK_BLANK_MARK, v);
}

/* BertPreTokenizer's rule is part of WordPiece here (wordpiece.c), so it says nothing more. */
static tg_status read_pre_tokenizer(loader *l, const tg_json *v) {
    if (is_type(v, "ByteLevel")) return read_byte_level(l, v);
    if (is_type(v, "Split")) return read_split(l, v);
    if (is_type(v, "Metaspace")) return read_metaspace(l, v);
    if (is_type(v, "BertPreTokenizer") && is_type(l->model, "WordPiece")) return TG_OK;
    if (is_type(v, "Digits") && is_true(v, "individual_digits") &&
        l->d.split == TG_TOK_SPLIT_NONE) {
        l->d.split = TG_TOK_SPLIT_SMOLLM;
        return TG_OK;
    }
    return refuse(l, "pre_tokenizer", member(v, "type"));
}

/* A part, or the parts of a Sequence under list_key. */
static tg_status each_part(loader *l, const tg_json *v, const char *list_key,
                           tg_status (*read)(loader *l, const tg_json *v)) {
    if (!v) return TG_OK;
    if (!is_type(v, "Sequence")) return read(l, v);
    const tg_json *list;
    TG_TRY(tg_json_want(l->ctx, v, list_key, TG_JSON_ARRAY, &list));
    for (const tg_json *part = tg_json_first(list); part; part = tg_json_next(part)) {
        TG_TRY(read(l, part));
    }
    return TG_OK;
}

/* ------------------------------------------------------------------------------------ pieces */

/* Each id once. A piece of the vocabulary may be repeated by added_tokens under the same id and
 * with the same text: that gives it its type. */
static tg_status put_piece(loader *l, uint64_t id, const tg_json *text, const char *bytes,
                           uint32_t n_bytes, uint8_t type) {
    if (id >= l->d.n_tokens) {
        return tg_fail(l->ctx, TG_E_FORMAT, "%s: byte %u: want an id below %zu, have %llu", l->name,
                       text->offset, l->d.n_tokens, (unsigned long long)id);
    }
    if (n_bytes == 0)
        return tg_fail(l->ctx, TG_E_FORMAT, "%s: byte %u: want a token's text, have an empty one",
                       l->name, text->offset);
    /* What is added may be in the vocabulary, too: under the same number. */
    const tg_tok_text *old = &l->pieces[id];
    const bool same = old->n_bytes == n_bytes && memcmp(old->bytes, bytes, n_bytes) == 0;
    if (l->types[id] != TG_TOK_UNUSED && (type == TG_TOK_NORMAL || !same)) {
        return tg_fail(l->ctx, TG_E_FORMAT, "%s: byte %u: want ids once each, have %llu again",
                       l->name, text->offset, (unsigned long long)id);
    }
    l->pieces[id] = (tg_tok_text) { bytes, n_bytes };
    l->types[id] = type;
    return TG_OK;
}

/* BPE and WordPiece: { "piece": id } */
static tg_status read_vocab_object(loader *l, const tg_json *vocab) {
    for (const tg_json *v = tg_json_first(vocab); v; v = tg_json_next(v)) {
        uint64_t id;
        TG_TRY(tg_json_uint64(l->ctx, v, &id));
        TG_TRY(put_piece(l, id, v, v->key, v->key_length, TG_TOK_NORMAL));
    }
    return TG_OK;
}

/* Unigram: [["piece", score]], ids by place. Scores are logarithms of probabilities, so
 * tg_tok_new wants them finite. */
static tg_status read_vocab_list(loader *l, const tg_json *vocab) {
    uint64_t id = 0;
    for (const tg_json *v = tg_json_first(vocab); v; v = tg_json_next(v), id++) {
        const tg_json *text = tg_json_first(v), *score = text ? tg_json_next(text) : NULL;
        if (tg_json_kind(v) != TG_JSON_ARRAY || v->count != 2 ||
            tg_json_kind(text) != TG_JSON_STRING) {
            return tg_fail(l->ctx, TG_E_FORMAT,
                           "%s: byte %u: want [text, score], have another form", l->name,
                           v->offset);
        }
        double value;
        TG_TRY(tg_json_double(l->ctx, score, &value));
        TG_TRY(put_piece(l, id, text, text->u.text, text->length, TG_TOK_NORMAL));
        l->scores[id] = value;
    }
    return TG_OK;
}

/* Room for all ids: the model's own and those that are added behind them. The greatest id
 * decides how much; it is the file's claim, so it must not be further from the number of tokens
 * than GAPS_MAX. Ids that nobody takes stay UNUSED with an empty text. */
static tg_status reserve_ids(loader *l, const tg_json *vocab, const tg_json *added) {
    uint64_t most = 0, id;
    for (const tg_json *v = tg_json_first(vocab); v; v = tg_json_next(v)) {
        if (tg_json_kind(vocab) != TG_JSON_OBJECT) break;
        TG_TRY(tg_json_uint64(l->ctx, v, &id));
        if (id > most) most = id;
    }
    for (const tg_json *v = added ? tg_json_first(added) : NULL; v; v = tg_json_next(v)) {
        const tg_json *number;
        TG_TRY(tg_json_want(l->ctx, v, "id", TG_JSON_NUMBER, &number));
        TG_TRY(tg_json_uint64(l->ctx, number, &id));
        if (id > most) most = id;
    }
    const uint64_t count = (uint64_t)vocab->count + (added ? added->count : 0);
    if (most >= count + GAPS_MAX) {
        return tg_fail(l->ctx, TG_E_FORMAT, "%s: want ids below %llu for %llu tokens, have %llu",
                       l->name, (unsigned long long)(count + GAPS_MAX), (unsigned long long)count,
                       (unsigned long long)most);
    }
    const size_t n = most + 1 > vocab->count ? (size_t)most + 1 : vocab->count;
    l->pieces = tg_arena_array(&l->arena, n, sizeof *l->pieces);
    l->types = tg_arena_array(&l->arena, n, sizeof *l->types);
    l->scores = tg_arena_array(&l->arena, n, sizeof *l->scores);
    l->cooked = tg_arena_array(&l->arena, n, sizeof *l->cooked);
    if (!l->pieces || !l->types || !l->scores || !l->cooked)
        return tg_fail_memory(l->ctx, l->name, n);
    for (size_t i = 0; i < n; i++) l->pieces[i].bytes = "";
    memset(l->types, TG_TOK_UNUSED, n);
    l->d.n_tokens = n;
    l->d.pieces = l->pieces;
    l->d.types = l->types;
    l->d.scores = l->scores;
    l->d.cooked = l->cooked;
    return TG_OK;
}

/* special tokens are found only where a template wrote them, others in every text. Stripping of
 * white space beside a token would change the text around it, which no trie can do, so it is
 * refused. */
static tg_status read_added(loader *l, const tg_json *added) {
    for (const tg_json *v = added ? tg_json_first(added) : NULL; v; v = tg_json_next(v)) {
        const tg_json *content, *number;
        uint64_t id;
        TG_TRY(tg_json_want(l->ctx, v, "content", TG_JSON_STRING, &content));
        TG_TRY(tg_json_want(l->ctx, v, "id", TG_JSON_NUMBER, &number));
        TG_TRY(tg_json_uint64(l->ctx, number, &id));
        if (is_true(v, "single_word") || is_true(v, "lstrip") || is_true(v, "rstrip")) {
            return refuse(l, "added_tokens, stripping of neighbours", content);
        }
        const uint8_t type = is_true(v, "special") ? TG_TOK_CONTROL : TG_TOK_USER_DEFINED;
        TG_TRY(put_piece(l, id, v, content->u.text, content->length, type));
        l->cooked[id] = is_true(v, "normalized");
    }
    return TG_OK;
}

/* Numbers without a piece have an empty one, which is nobody's name. Linear, as it is asked a
 * handful of times a file. */
static int32_t id_of(const loader *l, const tg_json *text) {
    if (!text || tg_json_kind(text) != TG_JSON_STRING || text->length == 0) return -1;
    for (size_t i = 0; i < l->d.n_tokens; i++) {
        if (l->pieces[i].n_bytes == text->length &&
            memcmp(l->pieces[i].bytes, text->u.text, text->length) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

/* ------------------------------------------------------------------------------------- model */

/* "left right", or ["left", "right"]: pieces may hold blanks in the second form alone, which
 * tokenizers writes since 2024. Both halves point into the document. */
static tg_status read_merge(loader *l, const tg_json *v, tg_tok_text half[2]) {
    const tg_json *left = tg_json_first(v), *right = left ? tg_json_next(left) : NULL;
    if (tg_json_kind(v) == TG_JSON_ARRAY && v->count == 2 && tg_json_kind(left) == TG_JSON_STRING &&
        tg_json_kind(right) == TG_JSON_STRING) {
        half[0] = (tg_tok_text) { left->u.text, left->length };
        half[1] = (tg_tok_text) { right->u.text, right->length };
        return TG_OK;
    }
    const char *text = v->u.text;
    const char *blank = tg_json_kind(v) == TG_JSON_STRING ? memchr(text, ' ', v->length) : NULL;
    if (!blank) {
        return tg_fail(l->ctx, TG_E_FORMAT, "%s: byte %u: want a merge of two, have another form",
                       l->name, v->offset);
    }
    const uint32_t at = (uint32_t)(blank - text);
    half[0] = (tg_tok_text) { text, at };
    half[1] = (tg_tok_text) { blank + 1, v->length - at - 1 };
    return TG_OK;
}

/* The rank of a merge is its place. Whether halves and their join are pieces is checked where
 * the table of pairs is made (bpe.c). */
static tg_status read_bpe(loader *l, const tg_json *m) {
    const tg_json *merges;
    if (has_text(m, "continuing_subword_prefix") || has_text(m, "end_of_word_suffix") ||
        member(m, "dropout")) {
        return refuse(l, "model, prefix, suffix or dropout", NULL);
    }
    TG_TRY(tg_json_want(l->ctx, m, "merges", TG_JSON_ARRAY, &merges));
    tg_tok_text *halves = tg_arena_array(&l->arena, merges->count, 2 * sizeof *halves);
    if (!halves) return tg_fail_memory(l->ctx, l->name, merges->count);
    size_t n = 0;
    for (const tg_json *v = tg_json_first(merges); v; v = tg_json_next(v), n++) {
        TG_TRY(read_merge(l, v, halves + 2 * n));
    }
    l->d.model = l->byte_level ? TG_TOK_BYTE_BPE : TG_TOK_MERGE_BPE;
    l->d.merges = halves;
    l->d.n_merges = n;
    l->d.ignore_merges = is_true(m, "ignore_merges");
    return TG_OK;
}

/* wordpiece.c has "##" and the limit of 100 characters built in, as all BERTs do. */
static tg_status read_wordpiece(loader *l, const tg_json *m) {
    const tg_json *prefix = member(m, "continuing_subword_prefix");
    const tg_json *limit = member(m, "max_input_chars_per_word");
    uint64_t most = 100;
    if (limit) TG_TRY(tg_json_uint64(l->ctx, limit, &most));
    if (most != 100 || (prefix && !tg_json_is(prefix, "##"))) {
        return refuse(l, "model, WordPiece's prefix or limit", prefix);
    }
    l->d.model = TG_TOK_WORDPIECE;
    return TG_OK;
}

/* Vocabularies with byte fallback spell those tokens <0x00> .. <0xFF>. */
static void mark_bytes(loader *l) {
    for (size_t i = 0; i < l->d.n_tokens; i++) {
        const tg_tok_text *p = &l->pieces[i];
        if (l->types[i] == TG_TOK_NORMAL && p->n_bytes == 6 && memcmp(p->bytes, "<0x", 3) == 0 &&
            p->bytes[5] == '>') {
            l->types[i] = TG_TOK_BYTE;
        }
    }
}

/* The vocabulary comes before added tokens, which may repeat it; types of bytes come between, so
 * that an added token of such a spelling keeps its own. The unknown token is one by its type,
 * too, unless added_tokens gave it another. */
static tg_status read_model(loader *l) {
    const tg_json *m = l->model, *vocab = member(m, "vocab");
    const tg_json *added = member(l->root, "added_tokens");
    const bool unigram = is_type(m, "Unigram");
    if (!vocab || tg_json_kind(vocab) != (unigram ? TG_JSON_ARRAY : TG_JSON_OBJECT)) {
        return tg_fail(l->ctx, TG_E_FORMAT, "%s: model: want a vocab, have none", l->name);
    }
    TG_TRY(reserve_ids(l, vocab, added));
    TG_TRY(unigram ? read_vocab_list(l, vocab) : read_vocab_object(l, vocab));
    if (is_true(m, "byte_fallback")) mark_bytes(l);
    TG_TRY(read_added(l, added));
    const tg_json *unknown = member(m, unigram ? "unk_id" : "unk_token");
    if (unigram && unknown) {
        int64_t id;
        TG_TRY(tg_json_int64(l->ctx, unknown, &id));
        l->d.unknown = id >= 0 && id < (1 << 24) ? (int32_t)id : -2; /* -2: tg_tok_new refuses it */
    } else {
        l->d.unknown = id_of(l, unknown);
    }
    const int32_t id = l->d.unknown;
    if (id >= 0 && (size_t)id < l->d.n_tokens && l->types[id] == TG_TOK_NORMAL) {
        l->types[id] = TG_TOK_UNKNOWN;
    }
    if (unigram) {
        l->d.model = TG_TOK_UNIGRAM;
        return TG_OK;
    }
    if (is_type(m, "WordPiece")) return read_wordpiece(l, m);
    if (is_type(m, "BPE")) return read_bpe(l, m);
    return refuse(l, "model", member(m, "type"));
}

/* --------------------------------------------------------------------------- post_processor */

/* A template has at most one special token on each side of the text. What is before the text is
 * bos, what is behind is eos. The template for pairs of texts is not used. */
static tg_status read_template(loader *l, const tg_json *v) {
    const tg_json *single;
    TG_TRY(tg_json_want(l->ctx, v, "single", TG_JSON_ARRAY, &single));
    bool behind = false;
    for (const tg_json *item = tg_json_first(single); item; item = tg_json_next(item)) {
        const tg_json *special = member(item, "SpecialToken");
        if (!special) {
            behind = true;
            continue;
        }
        const int32_t id = id_of(l, member(special, "id"));
        bool *add = behind ? &l->d.add_eos : &l->d.add_bos;
        if (id < 0 || *add) return refuse(l, "post_processor", member(special, "id"));
        *add = true;
        *(behind ? &l->d.eos : &l->d.bos) = id;
    }
    return TG_OK;
}

/* ["[SEP]", 102]: by the text; the number is not looked at. */
static int32_t named_id(const loader *l, const tg_json *v, const char *key) {
    const tg_json *pair = member(v, key);
    return pair ? id_of(l, tg_json_first(pair)) : -1;
}

/* It says what TG_TOK_ENDS adds, nothing of what ends a text when it is drawn: load/vocabulary.c
 * adds that. */
static tg_status read_post_processor(loader *l, const tg_json *v) {
    if (is_type(v, "ByteLevel")) return TG_OK; /* about offsets alone */
    if (is_type(v, "TemplateProcessing")) return read_template(l, v);
    if (is_type(v, "BertProcessing")) {
        l->d.bos = named_id(l, v, "cls");
        l->d.eos = named_id(l, v, "sep");
        l->d.add_bos = l->d.add_eos = true;
        return l->d.bos >= 0 && l->d.eos >= 0
                   ? TG_OK
                   : refuse(l, "post_processor, cls or sep", member(v, "type"));
    }
    return refuse(l, "post_processor", member(v, "type"));
}

/* The order is that of the pipeline, and matters: read_split asks what the normalizer has done,
 * read_bpe whether the pre-tokenizer was byte-level, the post-processor looks ids up. */
static tg_status load(loader *l, const char *text, size_t n_bytes, tg_tok **out) {
    TG_TRY(tg_json_parse(l->ctx, &l->arena, l->name, text, n_bytes, NULL, &l->root));
    TG_TRY(tg_json_want(l->ctx, l->root, "model", TG_JSON_OBJECT, &l->model));
    TG_TRY(each_part(l, member(l->root, "normalizer"), "normalizers", read_normalizer));
    TG_TRY(each_part(l, member(l->root, "pre_tokenizer"), "pretokenizers", read_pre_tokenizer));
    TG_TRY(read_model(l));
    TG_TRY(each_part(l, member(l->root, "post_processor"), "processors", read_post_processor));
    return tg_tok_new(l->ctx, &l->d, out);
}

/* Of {"truncation": {"max_length": N, ..}}; null: none. 2^31 - 1 and above stand for no limit. */
static tg_status read_truncation(loader *l, tg_tok *tok) {
    const tg_json *truncation = member(l->root, "truncation"), *number;
    uint64_t most;
    if (!truncation) return TG_OK;
    TG_TRY(tg_json_want(l->ctx, truncation, "max_length", TG_JSON_NUMBER, &number));
    TG_TRY(tg_json_uint64(l->ctx, number, &most));
    tok->truncation = most < INT32_MAX ? (int32_t)most : 0;
    return TG_OK;
}

tg_status tg_tok_new_json(tg_ctx *ctx, const char *name, const char *text, size_t n_bytes,
                          tg_tok **out) {
    *out = NULL;
    loader l = { .ctx = ctx, .name = name };
    tg_arena_init(&l.arena, &ctx->mem);
    tg_tok_desc_init(&l.d);
    tg_status status = load(&l, text, n_bytes, out);
    if (status == TG_OK) status = read_truncation(&l, *out);
    if (status != TG_OK) {
        tg_tok_free(*out);
        *out = NULL;
    }
    tg_arena_deinit(&l.arena);
    return status;
}
