/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tok.c - making a tokenizer of a description, and the way of a text through it.
 *
 *     text -> raw trie -> normaliser -> cooked trie -> splitter -> model -> ids
 *             cut_out     normal.c      cut_out        split.c     bpe.c, unigram.c, wordpiece.c
 *
 * Strings of control and user-defined tokens are found first, leftmost and longest, as a trie is
 * walked from each place. SentencePiece looks for user-defined ones after its normaliser, where
 * blanks are marks, so those are in a trie of their own ("cooked").
 *
 * Each token has two strings, which differ:
 *
 *     model        piece, as the file spells it     out, what it adds to a text
 *     BYTE_BPE     "Ġthe" (GPT-2's alphabet)        " the": bytes, perhaps no UTF-8
 *     SCORE_BPE,   "▁the" (U+2581)                  " the"
 *     UNIGRAM
 *     WORDPIECE    "the", "##ing"                   " the", "ing"
 *     any          "<0x0A>" of type BYTE            one byte
 *     any          a control token                  nothing
 *
 * All that a tg_tok owns lies in its arena and is read-only once tg_tok_new is through; what a
 * call needs beside it is in its tg_tok_work. A description is checked here, whatever file it
 * comes from (tok_json.c, load/vocabulary.c), so that models can index without a look.
 */
#include "tok/tok_inside.h"

#include "base/math.h"
#include "base/str.h"

enum { WINDOW_BYTES = 4096 };

/* -------------------------------------------------------------------------------- small parts */

void tg_ids_init(tg_ids *ids, const tg_mem *mem) { *ids = (tg_ids) { .mem = *mem }; }

void tg_ids_deinit(tg_ids *ids) {
    tg_free(&ids->mem, ids->id, ids->room * sizeof *ids->id);
    ids->id = NULL;
    ids->n = ids->room = 0;
}

/* Counts past its room: the caller sees from n how much room the ids would have taken. */
tg_ids tg_ids_lend(int32_t *id, size_t room) {
    return (tg_ids) { .id = id, .room = room, .lent = true };
}

/* Growth by half: n pushes copy O(n) ids in all. `last` is kept beside the ids, since a lent
 * array may not have kept the id itself. */
tg_status tg_ids_push(tg_ctx *ctx, tg_ids *ids, int32_t id) {
    if (ids->n == ids->room && !ids->lent) {
        const size_t room = ids->room ? ids->room + ids->room / 2 : 64;
        int32_t *grown =
            tg_realloc(&ids->mem, ids->id, ids->room * sizeof *grown, room * sizeof *grown);
        if (!grown) return tg_fail_memory(ctx, "token ids", room * sizeof *grown);
        ids->id = grown;
        ids->room = room;
    }
    if (ids->n < ids->room) ids->id[ids->n] = id;
    ids->n++;
    ids->last = id;
    return TG_OK;
}

tg_status tg_tok_push(tg_tok_work *w, int32_t id) { return tg_ids_push(w->ctx, w->ids, id); }

/* All bytes or none: half a character in tokens of bytes would be decoded as U+FFFD. */
static tg_status push_bytes(tg_tok_work *w, const char *bytes, size_t n, bool *all) {
    *all = true;
    for (size_t i = 0; i < n; i++) *all = *all && w->tok->byte_id[(uint8_t)bytes[i]] >= 0;
    for (size_t i = 0; i < n && *all; i++) {
        TG_TRY(tg_tok_push(w, w->tok->byte_id[(uint8_t)bytes[i]]));
    }
    return TG_OK;
}

/* Some byte-level vocabularies lack bytes that texts hardly have, such as controls: those are left
 * out, as tokenizers and llama.cpp do. One that lacks those of U+FFFD is none of these: it lacks
 * texts. */
tg_status tg_tok_push_unknown(tg_tok_work *w, const char *bytes, size_t n) {
    const tg_tok *t = w->tok;
    bool done;
    TG_TRY(push_bytes(w, bytes, n, &done));
    if (done) return TG_OK;
    if (t->model == TG_TOK_BYTE_BPE && t->byte_id[0xef] >= 0 && t->byte_id[0xbf] >= 0 &&
        t->byte_id[0xbd] >= 0)
        return TG_OK;
    /* GGUF names an unknown token for byte-level vocabularies, too; it is the token that ends
     * texts, which must not come out of a text. */
    if (t->unknown < 0 || t->model == TG_TOK_BYTE_BPE) {
        return tg_fail(w->ctx, TG_E_FORMAT,
                       "tokenizer: want a token for byte 0x%02x or an unknown token, have neither",
                       (unsigned)(uint8_t)bytes[0]);
    }
    if (w->ids->n > 0 && w->ids->last == t->unknown) return TG_OK;
    return tg_tok_push(w, t->unknown);
}

/* A control token that a text happens to spell is thus never built by merges. */
int32_t tg_tok_find_normal(const tg_tok *tok, const char *bytes, size_t n) {
    const int32_t id = tg_piece_find(&tok->by_piece, bytes, n);
    if (id < 0) return -1;
    const uint8_t type = tok->types[id];
    return type == TG_TOK_NORMAL || type == TG_TOK_USER_DEFINED ? id : -1;
}

/* Printable Latin-1 stands for itself; the other 68 bytes follow on each other from U+0100. */
static bool printable(uint32_t c) {
    return (c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF);
}

/*
 * GPT-2's own table, written as ranges: its bytes of white space and controls have to be
 * printable characters, so that merges can be lines of a text file.
 *
 *     byte    00..20      21..7E    7F..A0      A1..AC    AD      AE..FF
 *     char    0100..0120  itself    0121..0142  itself    0143    itself
 */
uint32_t tg_alphabet_char(uint8_t byte) {
    if (printable(byte)) return byte;
    return byte <= 0x20 ? 0x100u + byte : byte <= 0xA0 ? 0x121u + byte - 0x7F : 0x143u;
}

int tg_alphabet_byte(uint32_t code) {
    if (code < 0x100) return printable(code) ? (int)code : -1;
    if (code <= 0x120) return (int)(code - 0x100);
    if (code <= 0x142) return (int)(code - 0x121 + 0x7F);
    return code == 0x143 ? 0xAD : -1;
}

void tg_tok_desc_init(tg_tok_desc *d) {
    memset(d, 0, sizeof *d);
    d->bos = d->eos = d->unknown = d->sep = d->cls = d->pad = -1;
}

/* ---------------------------------------------------------------------------- checks of a file */

/* -1 says that there is none; a loader that found a bad number hands over another negative one. */
static tg_status check_id(tg_ctx *ctx, const char *name, int32_t id, size_t n) {
    if (id >= -1 && (id < 0 || (size_t)id < n)) return TG_OK;
    return tg_fail(ctx, TG_E_FORMAT, "tokenizer: %s: want an id below %zu, have %ld", name, n,
                   (long)id);
}

static tg_status check_ids(tg_ctx *ctx, const tg_tok_desc *d, size_t n) {
    const struct {
        const char *name;
        int32_t id;
    } special[] = { { "bos", d->bos }, { "eos", d->eos }, { "unknown", d->unknown },
                    { "sep", d->sep }, { "cls", d->cls }, { "pad", d->pad } };
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        TG_TRY(check_id(ctx, special[i].name, special[i].id, n));
    }
    return TG_OK;
}

/* Types come from files as numbers. UNIGRAM adds scores up and SCORE_BPE sorts by them: a NaN
 * would make both depend on the order of comparisons. */
static tg_status check_piece(tg_ctx *ctx, const tg_tok_desc *d, size_t i) {
    if (d->types && (d->types[i] < TG_TOK_NORMAL || d->types[i] > TG_TOK_BYTE)) {
        return tg_fail(ctx, TG_E_FORMAT, "tokenizer: piece %zu: want a type of 1..6, have %u", i,
                       (unsigned)d->types[i]);
    }
    const bool scored = d->model == TG_TOK_SCORE_BPE || d->model == TG_TOK_UNIGRAM;
    if (scored && !tg_isfinite(d->scores[i])) {
        return tg_fail(ctx, TG_E_FORMAT, "tokenizer: piece %zu: want a finite score, have none", i);
    }
    return TG_OK;
}

/* Bounds of the tables to come: 2^24 pieces, as their hash table holds that many, 2^26 merges,
 * and pieces of less than 2 GiB together, since offsets are 32 bits and outs need a little more
 * room than pieces. */
static tg_status check(tg_ctx *ctx, const tg_tok_desc *d) {
    if ((unsigned)d->model >= TG_TOK_MODEL_COUNT || (unsigned)d->split >= TG_TOK_SPLIT_COUNT) {
        return tg_fail(ctx, TG_E_ARG, "tokenizer: want a model and a split, have %d and %d",
                       (int)d->model, (int)d->split);
    }
    if (d->model == TG_TOK_RAW_BYTES) return check_ids(ctx, d, 256);
    if (d->n_tokens == 0 || d->n_tokens > 1u << 24) {
        return tg_fail(ctx, TG_E_FORMAT, "tokenizer: want 1..%u pieces, have %zu", 1u << 24,
                       d->n_tokens);
    }
    const bool scored = d->model == TG_TOK_SCORE_BPE || d->model == TG_TOK_UNIGRAM;
    if (scored && !d->scores) {
        return tg_fail(ctx, TG_E_FORMAT, "tokenizer: want a score for each piece, have none");
    }
    if (d->n_merges > 1u << 26) {
        return tg_fail(ctx, TG_E_FORMAT, "tokenizer: want at most %u merges, have %zu", 1u << 26,
                       d->n_merges);
    }
    size_t total = 0;
    for (size_t i = 0; i < d->n_tokens; i++) {
        TG_TRY(check_piece(ctx, d, i));
        if (!tg_add_size(total, d->pieces[i].n_bytes, &total) || total > UINT32_MAX / 2) {
            return tg_fail(ctx, TG_E_FORMAT, "tokenizer: want less than 2 GiB of pieces");
        }
    }
    return check_ids(ctx, d, d->n_tokens);
}

/* ------------------------------------------------------------------------------ making tables */

/* Room for n strings of n_bytes together, each with a zero behind it, which strings_get does not
 * count. at[0] is 0. */
static tg_status strings_new(tg_ctx *ctx, tg_arena *arena, size_t n, size_t n_bytes,
                             tg_strings *out) {
    out->n = n;
    out->bytes = tg_arena_alloc(arena, n_bytes + n + 1); /* zeros */
    out->at = tg_arena_array(arena, n + 1, sizeof *out->at);
    return out->bytes && out->at ? TG_OK : tg_fail_memory(ctx, "tokenizer", n_bytes);
}

/* "<0x0A>" to 10; -1: another spelling. SentencePiece writes upper-case digits, and others would
 * be an ordinary piece. */
static int byte_of(const tg_tok_text *p) {
    static const char digits[] = "0123456789ABCDEF";
    if (p->n_bytes != 6 || memcmp(p->bytes, "<0x", 3) != 0 || p->bytes[5] != '>') return -1;
    const char *high = p->bytes[3] ? strchr(digits, p->bytes[3]) : NULL;
    const char *low = p->bytes[4] ? strchr(digits, p->bytes[4]) : NULL;
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

/* Spelled in GPT-2's alphabet throughout? Then those bytes go to out; else nothing does. Some
 * added pieces of byte-level vocabularies are plain text that happens to be outside the
 * alphabet; those stand for their own bytes. out has room for the spelling, which is never
 * shorter. */
static bool from_alphabet(const tg_tok_text *p, char *out, size_t *n) {
    size_t used = 0;
    for (size_t at = 0; at < p->n_bytes;) {
        uint32_t code;
        at += tg_uc_next(p->bytes + at, p->n_bytes - at, &code);
        const int byte = tg_alphabet_byte(code);
        if (byte < 0) return false;
        out[used++] = (char)byte;
    }
    *n = used;
    return true;
}

/* The way back of TG_TOK_BLANK_MARK. The search begins behind the first byte, so each turn of
 * the loop takes one byte at least: the mark's first byte begins other characters, too. */
static size_t blanks_for_marks(const char *text, size_t n, char *out) {
    size_t used = 0, end;
    for (size_t at = 0; at < n; at = end) {
        if (n - at >= 3 && memcmp(text + at, TG_BLANK_MARK, 3) == 0) {
            out[used++] = ' ';
            end = at + 3;
            continue;
        }
        const char *mark = memchr(text + at + 1, TG_BLANK_MARK[0], n - at - 1);
        end = mark ? (size_t)(mark - text) : n;
        memcpy(out + used, text + at, end - at);
        used += end - at;
    }
    return used;
}

/* What a token adds to a text; never longer than its spelling and one byte, but for U+FFFD. It
 * also fills byte_id, with the first token that stands for a byte alone: tokens of type BYTE, or
 * pieces of one letter of the alphabet. WordPiece's blank in front of a word stands for the
 * boundary that its words had; tg_tok_first_blank says when to leave it out. */
static tg_status make_out(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d, size_t i, char *out,
                          size_t *n) {
    const tg_tok_text *p = &d->pieces[i];
    *n = 0;
    switch (t->types[i]) {
    case TG_TOK_CONTROL: return TG_OK;
    case TG_TOK_UNKNOWN:
        memcpy(out, "\xef\xbf\xbd", 3);
        *n = 3;
        return TG_OK;
    case TG_TOK_BYTE: {
        const int byte = byte_of(p);
        if (byte < 0) {
            return tg_fail(ctx, TG_E_FORMAT, "tokenizer: piece %zu: want <0x00>..<0xFF>, have %.*s",
                           i, (int)(p->n_bytes < 40 ? p->n_bytes : 40), p->bytes);
        }
        if (t->byte_id[byte] < 0) t->byte_id[byte] = (int32_t)i;
        out[0] = (char)byte;
        *n = 1;
        return TG_OK;
    }
    default: break;
    }
    if (t->model == TG_TOK_BYTE_BPE && t->types[i] != TG_TOK_USER_DEFINED &&
        from_alphabet(p, out, n)) {
        if (*n == 1 && t->byte_id[(uint8_t)out[0]] < 0) t->byte_id[(uint8_t)out[0]] = (int32_t)i;
    } else if (t->model == TG_TOK_WORDPIECE && !d->word_starts_marked) {
        const bool goes_on = p->n_bytes > 2 && memcmp(p->bytes, "##", 2) == 0;
        out[0] = ' ';
        memcpy(out + !goes_on, p->bytes + 2 * goes_on, p->n_bytes - 2 * goes_on);
        *n = p->n_bytes - 2 * goes_on + !goes_on;
    } else if (t->model == TG_TOK_BYTE_BPE) {
        memcpy(out, p->bytes, p->n_bytes);
        *n = p->n_bytes;
    } else {
        *n = blanks_for_marks(p->bytes, p->n_bytes, out);
    }
    return TG_OK;
}

/* Long texts are looked through faster than many short ones: so first all pieces as one, which
 * are UTF-8 if that is, and none begins with a byte that continues a character. The zero behind
 * each piece ends what a piece leaves unfinished. Only a failure is looked up piece by piece,
 * for the message. */
static tg_status check_utf8(tg_ctx *ctx, const tg_strings *s) {
    bool goes_on = false;
    for (size_t i = 0; i < s->n; i++) goes_on |= ((uint8_t)s->bytes[s->at[i]] & 0xc0) == 0x80;
    if (!goes_on && tg_utf8_valid(s->bytes, s->at[s->n]) == s->at[s->n]) return TG_OK;
    size_t i = 0, n;
    for (; i < s->n; i++) {
        const char *piece = tg_strings_get(s, i, &n);
        if (tg_utf8_valid(piece, n) != n) break;
    }
    return tg_fail(ctx, TG_E_FORMAT, "tokenizer: piece %zu: want UTF-8, have other bytes", i);
}

/* `most` bounds the outs: U+FFFD has three bytes, a word of WordPiece a blank more than its
 * spelling. A byte-level vocabulary with tokens of type BYTE has pieces whose spelling says
 * nothing of their length in a text, so `longest` is given up there. */
static tg_status make_strings(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d) {
    size_t total = 0, most = 0;
    for (size_t i = 0; i < t->n; i++) {
        total += d->pieces[i].n_bytes;
        most += (d->pieces[i].n_bytes > 2 ? d->pieces[i].n_bytes : 2) + 1;
    }
    t->types = tg_arena_alloc(&t->arena, t->n);
    if (!t->types) return tg_fail_memory(ctx, "tokenizer", t->n);
    TG_TRY(strings_new(ctx, &t->arena, t->n, total, &t->pieces));
    TG_TRY(strings_new(ctx, &t->arena, t->n, most, &t->outs));
    uint32_t out_at = 0;
    for (size_t i = 0; i < t->n; i++) {
        const uint32_t at = t->pieces.at[i];
        memcpy(t->pieces.bytes + at, d->pieces[i].bytes, d->pieces[i].n_bytes);
        t->pieces.at[i + 1] = at + d->pieces[i].n_bytes + 1;
    }
    TG_TRY(check_utf8(ctx, &t->pieces));
    for (size_t i = 0; i < t->n; i++) {
        t->types[i] = d->types ? d->types[i] : TG_TOK_NORMAL;
        if (d->pieces[i].n_bytes > t->longest) t->longest = d->pieces[i].n_bytes;
        if (t->model == TG_TOK_BYTE_BPE && t->types[i] == TG_TOK_BYTE) t->longest = SIZE_MAX;
        size_t n;
        TG_TRY(make_out(ctx, t, d, i, t->outs.bytes + out_at, &n));
        out_at += (uint32_t)n + 1;
        t->outs.at[i + 1] = out_at;
    }
    return tg_piece_table_make(ctx, &t->arena, &t->pieces, &t->by_piece);
}

/* Neighbours within what normal pieces stand for: a Bloom filter with one hash, 2^21 bits, 256
 * KiB. A 0 proves that no token spans the two, which lets bpe.c and unigram.c cut there; a 1 may
 * be chance and costs only time. Byte-level pieces hold bytes, others characters (with marks for
 * blanks, as in the text that is merged). */
static tg_status make_joins(tg_ctx *ctx, tg_tok *t) {
    const size_t bytes = (size_t)1 << TG_JOIN_BITS >> 3;
    t->joins = tg_arena_alloc(&t->arena, bytes);
    if (!t->joins) return tg_fail_memory(ctx, "tokenizer", bytes);
    const bool by_byte = t->model == TG_TOK_BYTE_BPE;
    for (size_t i = 0; i < t->n; i++) {
        if (t->types[i] != TG_TOK_NORMAL && t->types[i] != TG_TOK_USER_DEFINED) continue;
        size_t n;
        const char *text = tg_strings_get(by_byte ? &t->outs : &t->pieces, i, &n);
        if (n == 0) continue;
        uint32_t left = (uint8_t)text[0], right;
        for (size_t at = by_byte ? 1 : tg_uc_next(text, n, &left); at < n; left = right) {
            right = (uint8_t)text[at];
            at += by_byte ? 1 : tg_uc_next(text + at, n - at, &right);
            const uint64_t h = tg_tok_join_at(left, right);
            t->joins[h / 64] |= UINT64_C(1) << h % 64;
        }
    }
    return TG_OK;
}

static bool sentencepiece(tg_tok_model m) { return m == TG_TOK_SCORE_BPE || m == TG_TOK_UNIGRAM; }

/* Which of the two tries holds a token: 0 raw, 1 cooked, -1 neither. */
static int trie_of(const tg_tok *t, const tg_tok_desc *d, size_t i) {
    if (t->types[i] == TG_TOK_CONTROL) return 0;
    if (t->types[i] != TG_TOK_USER_DEFINED) return -1;
    return d->cooked ? d->cooked[i] : sentencepiece(t->model);
}

/* The string of a token as its trie has it: normalised as a text is, where tokenizer.json asks for
 * that; SentencePiece's own have their blanks marked. */
static tg_status spelling(tg_ctx *ctx, const tg_tok *t, const tg_tok_desc *d, size_t i, int k,
                          tg_normal *normal, const char **text, size_t *n) {
    *text = tg_strings_get(&t->pieces, i, n);
    if (k != 1 || *n == 0) return TG_OK;
    const unsigned flags = d->cooked ? t->normal : t->normal & TG_TOK_BLANK_MARK;
    return tg_normal_apply(ctx, normal, flags, text, n);
}

/* Twice over the tokens: the first pass counts bytes, which bound the nodes of each trie.
 * first[] says of each byte whether a string begins with it, so that most places of a text are
 * passed without a step in the trie. */
static tg_status fill_tries(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d, tg_normal *normal) {
    tg_trie *trie[2] = { &t->raw, &t->cooked };
    bool *first[2] = { t->raw_first, t->cooked_first };
    size_t total[2] = { 0, 0 }, n;
    const char *text;
    for (size_t i = 0; i < t->n; i++) {
        const int k = trie_of(t, d, i);
        if (k < 0) continue;
        TG_TRY(spelling(ctx, t, d, i, k, normal, &text, &n));
        total[k] += n;
    }
    for (int k = 0; k < 2; k++) TG_TRY(tg_trie_make(ctx, &t->arena, total[k], trie[k]));
    for (size_t i = 0; i < t->n; i++) {
        const int k = trie_of(t, d, i);
        if (k < 0) continue;
        TG_TRY(spelling(ctx, t, d, i, k, normal, &text, &n));
        if (n == 0) continue;
        TG_TRY(tg_trie_put(ctx, trie[k], text, n, (int32_t)i));
        first[k][(uint8_t)text[0]] = true;
    }
    return TG_OK;
}

static tg_status make_tries(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d) {
    tg_normal normal;
    tg_normal_init(&normal, &t->arena.mem);
    const tg_status status = fill_tries(ctx, t, d, &normal);
    tg_normal_deinit(&normal);
    return status;
}

/* Strings first, which all else is made of; joins and merges need the types and outs. Where
 * tokens are bytes, piece, out and id are one. */
static tg_status make(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d) {
    if (t->model == TG_TOK_RAW_BYTES) {
        for (int b = 0; b < 256; b++) t->byte_id[b] = b;
        TG_TRY(strings_new(ctx, &t->arena, 256, 256, &t->pieces));
        for (uint32_t b = 0; b < 256; b++) {
            t->pieces.bytes[2 * b] = (char)b;
            t->pieces.at[b + 1] = 2 * (b + 1);
        }
        t->outs = t->pieces;
        t->types = tg_arena_alloc(&t->arena, t->n);
        if (!t->types) return tg_fail_memory(ctx, "tokenizer", t->n);
        memset(t->types, TG_TOK_NORMAL, t->n);
        return tg_piece_table_make(ctx, &t->arena, &t->pieces, &t->by_piece);
    }
    TG_TRY(make_strings(ctx, t, d));
    TG_TRY(make_tries(ctx, t, d));
    TG_TRY(make_joins(ctx, t));
    switch (t->model) {
    case TG_TOK_UNIGRAM: return tg_unigram_make(ctx, t, d);
    case TG_TOK_WORDPIECE: return TG_OK;
    default: return tg_bpe_make(ctx, t, d);
    }
}

/* BERT's files name cls and sep where others name bos and eos, with the same part to play: what
 * is put around a text. The description's arrays are borrowed for this call alone. */
tg_status tg_tok_new(tg_ctx *ctx, const tg_tok_desc *d, tg_tok **out) {
    *out = NULL;
    TG_TRY(check(ctx, d));
    tg_tok *t = tg_alloc(&ctx->mem, sizeof *t);
    if (!t) return tg_fail_memory(ctx, "tokenizer", sizeof *t);
    tg_arena_init(&t->arena, &ctx->mem);
    t->model = d->model;
    t->split = d->split;
    t->normal = d->normal;
    t->add_bos = d->add_bos;
    t->add_eos = d->add_eos;
    t->ignore_merges = d->ignore_merges;
    t->word_starts_marked = d->word_starts_marked;
    const bool bert = d->model == TG_TOK_WORDPIECE;
    t->bos = bert && d->cls >= 0 ? d->cls : d->bos;
    t->eos = bert && d->sep >= 0 ? d->sep : d->eos;
    t->unknown = d->unknown;
    t->pad = d->pad;
    if (t->eos >= 0) t->ends[t->n_ends++] = t->eos;
    t->n = d->model == TG_TOK_RAW_BYTES ? 256 : d->n_tokens;
    t->window = WINDOW_BYTES;
    for (int b = 0; b < 256; b++) t->byte_id[b] = -1;
    const tg_status status = make(ctx, t, d);
    if (status != TG_OK) {
        tg_tok_free(t);
        return status;
    }
    *out = t;
    return TG_OK;
}

/* A tokenizer that adds eos to texts keeps its own: that one was trained as the end of a text,
 * while the list is of what ends a turn. */
tg_status tg_tok_set_ends(tg_ctx *ctx, tg_tok *t, const char *name, const int32_t *ids, size_t n) {
    if (n > TG_TOK_ENDS_MAX)
        return tg_fail(ctx, TG_E_FORMAT, "%s: want at most %d tokens that end a text, have %zu",
                       name, TG_TOK_ENDS_MAX, n);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= t->n)
            return tg_fail(ctx, TG_E_FORMAT, "%s: want ids of its %zu tokens, have %ld", name, t->n,
                           (long)ids[i]);
    if (n == 0) return TG_OK;
    if (!t->add_eos) t->eos = ids[0];
    memcpy(t->ends, ids, n * sizeof *ids);
    t->n_ends = n;
    return TG_OK;
}

void tg_tok_free(tg_tok *t) {
    if (!t) return;
    const tg_mem mem = t->arena.mem;
    tg_arena_deinit(&t->arena);
    tg_free(&mem, t, sizeof *t);
}

/* ---------------------------------------------------------------------------------- encoding */

/* Words follow on each other without gaps, so every byte is encoded. */
static tg_status encode_words(tg_tok_work *w, const char *text, size_t n) {
    tg_splitter s = { .rule = w->tok->split, .text = text, .n = n };
    size_t from;
    while (tg_split_next(&s, &from)) TG_TRY(tg_bpe_encode(w, text + from, s.at - from));
    return TG_OK;
}

static tg_status encode_cooked(tg_tok_work *w, const char *text, size_t n) {
    switch (w->tok->model) {
    case TG_TOK_UNIGRAM: return tg_unigram_encode(w, text, n);
    case TG_TOK_WORDPIECE: return tg_wordpiece_encode(w, text, n);
    case TG_TOK_RAW_BYTES: return tg_tok_push_unknown(w, text, n);
    default: return encode_words(w, text, n);
    }
}

/* The longest string of the trie at the beginning of the text; control tokens only if asked for,
 * and if none of their bytes is somebody's words (NULL: all are the template's). */
static int32_t match(const tg_tok *t, const tg_trie *trie, bool control, const char *text,
                     const char *words, size_t n, size_t *length) {
    int32_t found = -1;
    uint32_t node = 0;
    for (size_t i = 0; i < n && (node = tg_trie_step(trie, node, (uint8_t)text[i]));) {
        i++;
        const int32_t id = trie->id[node];
        if (id < 0) continue;
        if (t->types[id] == TG_TOK_CONTROL && (!control || (words && memchr(words, 1, i))))
            continue;
        found = id;
        *length = i;
    }
    return found;
}

typedef tg_status (*encode_fn)(tg_tok_work *w, const char *text, size_t n);

/* The text between the strings of a trie goes to `between`, the strings' ids are pushed. At most
 * the longest string of the trie is walked from each place. A template's own bytes and
 * somebody's words are told apart by w->words, which lies beside the raw text: a user who types
 * "<|im_end|>" gets its letters, not the token. */
static tg_status cut_out(tg_tok_work *w, const tg_trie *trie, const bool *first, bool control,
                         const char *text, size_t n, encode_fn between) {
    size_t from = 0;
    for (size_t at = 0; trie->n_nodes > 1 && at < n;) {
        size_t length;
        const int32_t id = first[(uint8_t)text[at]]
                               ? match(w->tok, trie, control, text + at,
                                       w->words && control ? w->words + at : NULL, n - at, &length)
                               : -1;
        if (id < 0) {
            at++;
            continue;
        }
        if (at > from) TG_TRY(between(w, text + from, at - from));
        TG_TRY(tg_tok_push(w, id));
        from = at += length;
    }
    return n > from ? between(w, text + from, n - from) : TG_OK;
}

/* What is between raw tokens is normalised alone, each stretch as a text of its own: a prefix
 * blank comes before each. */
static tg_status encode_raw(tg_tok_work *w, const char *text, size_t n) {
    const tg_tok *t = w->tok;
    TG_TRY(tg_normal_apply(w->ctx, &w->normal, t->normal, &text, &n));
    return cut_out(w, &t->cooked, t->cooked_first, false, text, n, encode_cooked);
}

static tg_status encode(tg_tok_work *w, const char *text, size_t n, unsigned flags) {
    const tg_tok *t = w->tok;
    if ((flags & TG_TOK_ENDS) && t->add_bos && t->bos >= 0) TG_TRY(tg_tok_push(w, t->bos));
    TG_TRY(cut_out(w, &t->raw, t->raw_first, flags & TG_TOK_SPECIAL, text, n, encode_raw));
    if ((flags & TG_TOK_ENDS) && t->add_eos && t->eos >= 0) TG_TRY(tg_tok_push(w, t->eos));
    return TG_OK;
}

/* The bound keeps offsets in 32 bits, also after a normaliser has made the text longer. On
 * failure ids has what it had; all scratch is freed here, whoever grew it. */
static tg_status encode_all(tg_ctx *ctx, const tg_tok *tok, const char *text, const char *words,
                            size_t n_bytes, unsigned flags, tg_ids *ids) {
    if (n_bytes > UINT32_MAX / 8) {
        return tg_fail(ctx, TG_E_RANGE, "tokenizer: want a text of up to %u bytes, have %zu",
                       UINT32_MAX / 8, n_bytes);
    }
    tg_tok_work w = { .ctx = ctx, .tok = tok, .mem = ctx->mem, .ids = ids, .words = words };
    tg_normal_init(&w.normal, &ctx->mem);
    const size_t before = ids->n;
    const tg_status status = encode(&w, text, n_bytes, flags);
    if (status != TG_OK) ids->n = before;
    tg_normal_deinit(&w.normal);
    tg_free(&w.mem, w.symbol, w.symbol_room * sizeof *w.symbol);
    tg_free(&w.mem, w.heap, w.heap_room * sizeof *w.heap);
    tg_unigram_release(&w);
    return status;
}

tg_status tg_tok_encode(tg_ctx *ctx, const tg_tok *tok, const char *text, size_t n_bytes,
                        unsigned flags, tg_ids *ids) {
    return encode_all(ctx, tok, text, NULL, n_bytes, flags, ids);
}

/* Templates write bos themselves where a model wants it, hence no TG_TOK_ENDS. */
tg_status tg_tok_encode_chat(tg_ctx *ctx, const tg_tok *tok, const char *text, const char *words,
                             size_t n_bytes, tg_ids *ids) {
    return encode_all(ctx, tok, text, words, n_bytes, TG_TOK_SPECIAL, ids);
}

/* ---------------------------------------------------------------------------------- questions */

static bool valid(const tg_tok *t, int32_t id) { return id >= 0 && (size_t)id < t->n; }

const char *tg_tok_bytes(const tg_tok *t, int32_t id, size_t *n_bytes) {
    *n_bytes = 0;
    return valid(t, id) ? tg_strings_get(&t->outs, (size_t)id, n_bytes) : NULL;
}

const char *tg_tok_piece(const tg_tok *t, int32_t id, size_t *n_bytes) {
    *n_bytes = 0;
    return valid(t, id) ? tg_strings_get(&t->pieces, (size_t)id, n_bytes) : NULL;
}

bool tg_tok_first_blank(const tg_tok *t) {
    return t->model == TG_TOK_WORDPIECE ||
           (t->normal & (TG_TOK_PREFIX_BLANK | TG_TOK_PREFIX_MISSING)) != 0;
}

int tg_tok_type(const tg_tok *t, int32_t id) { return valid(t, id) ? t->types[id] : 0; }
int32_t tg_tok_find(const tg_tok *t, const char *piece, size_t n_bytes) {
    return tg_piece_find(&t->by_piece, piece, n_bytes);
}

int32_t tg_tok_control(const tg_tok *tok, const char *piece, size_t n_bytes) {
    const int32_t id = tg_tok_find(tok, piece, n_bytes);
    return id >= 0 && tg_tok_type(tok, id) == TG_TOK_CONTROL ? id : -1;
}
size_t tg_tok_count(const tg_tok *t) { return t->n; }
int32_t tg_tok_truncation(const tg_tok *t) { return t->truncation; }
tg_tok_model tg_tok_model_of(const tg_tok *t) { return t->model; }
int32_t tg_tok_bos(const tg_tok *t) { return t->bos; }
int32_t tg_tok_eos(const tg_tok *t) { return t->eos; }
const int32_t *tg_tok_ends(const tg_tok *t, size_t *n) {
    *n = t->n_ends;
    return t->ends;
}
bool tg_tok_is_end(const tg_tok *t, int32_t id) {
    for (size_t i = 0; i < t->n_ends; i++)
        if (t->ends[i] == id) return true;
    return false;
}
int32_t tg_tok_unknown(const tg_tok *t) { return t->unknown; }
int32_t tg_tok_pad(const tg_tok *t) { return t->pad; }
bool tg_tok_adds_bos(const tg_tok *t) { return t->add_bos && t->bos >= 0; }
bool tg_tok_adds_eos(const tg_tok *t) { return t->add_eos && t->eos >= 0; }
