/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lint.c - what a model would stumble over in a text: encoding, line ends, length, repetition.
 *
 * One pass over at most 256 MiB. A byte model can learn any bytes, so that most findings are
 * warnings with advice; only a text too short to cut a window from is an error.
 */
#include "training/data/text.h"

#include "base/codec/crc.h"
#include "base/str.h"
#include "base/time.h"

/* A piece is much longer than a character, which the carry over borders relies on, and a multiple
 * of 4 KiB, so that repeats are looked for at one alignment. It takes about a millisecond. */
enum { PIECE_BYTES = 1 << 18 };
#define SCAN_LIMIT (UINT64_C(256) << 20)

/* All that one pass collects; offsets and counts are in bytes from the start of the text. What is
 * reported is decided afterwards, since most findings are about shares of the whole. */
struct tg_linting {
    tg_text *text;
    int32_t ctx_tokens;
    double val_fraction;
    tg_lint_fn report;
    void *user;
    uint8_t *piece; /* [PIECE_BYTES] */
    uint64_t count[256];
    uint64_t scanned;
    uint64_t first_nul, first_bad_utf8; /* UINT64_MAX: none */
    uint64_t cr_alone, crlf;
    uint64_t pieces, repeated; /* 4 KiB pieces, and those that equal one seen before */
    uint32_t *seen;            /* hash set of the pieces' checksums */
    uint8_t carry[4];          /* the start of a character that the next piece ends */
    size_t n_carry;
    bool after_cr;
};
typedef struct tg_linting scan;

/* Twice the 4 KiB pieces of SCAN_LIMIT, so the set is never more than half full. 0 marks a free
 * place; a checksum that is 0 is stored as 1. */
enum { SEEN = 1 << 17 };

/* Levels as in tg_lint: 0 error, 1 warning, 2 remark. The codes are part of the API; programs go by
 * them, so the sentence may change and the code may not. */
static void find(scan *s, int level, const char *code, const char *fmt, ...) TG_PRINTF(4, 5);
static void find(scan *s, int level, const char *code, const char *fmt, ...) {
    tg_lint l = { .level = level, .code = code };
    va_list args;
    va_start(args, fmt);
    vsnprintf(l.text, sizeof l.text, fmt, args);
    va_end(args);
    s->report(s->user, &l);
}

/* after_cr carries over the borders of pieces; a CR at the very end is counted by scan_text. */
static void count_bytes(scan *s, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        s->count[p[i]]++;
        if (p[i] == 0 && s->first_nul == UINT64_MAX) s->first_nul = s->scanned + i;
        if (s->after_cr) {
            s->crlf += p[i] == '\n';
            s->cr_alone += p[i] != '\n';
        }
        s->after_cr = p[i] == '\r';
    }
}

/* Same 4 KiB at the same alignment: what a text that was pasted many times looks like. Pieces are
 * compared by checksum alone: among 2^16 pieces one pair or none collides by chance, which is far
 * below what is reported. After 16 tries a piece is dropped, so the time is bounded. */
static void count_repeats(scan *s, const uint8_t *p, size_t n) {
    for (size_t at = 0; at + 4096 <= n; at += 4096) {
        uint32_t h = tg_crc32c(0, p + at, 4096);
        s->pieces++;
        if (h == 0) h = 1;
        for (size_t i = h % SEEN, tries = 0; tries < 16; tries++, i = (i + 1) % SEEN) {
            if (s->seen[i] == 0)
                s->seen[i] = h;
            else if (s->seen[i] == h)
                s->repeated++;
            else
                continue;
            break;
        }
    }
}

/* Validity across piece borders: up to three bytes are carried over. They are whatever a piece ends
 * with that is not valid so far: if it is no start of a character either, the next piece tells.
 * Only the first fault is kept, so nothing is looked at after it. */
static void check_utf8(scan *s, const uint8_t *p, size_t n, bool last) {
    if (s->first_bad_utf8 != UINT64_MAX) return;
    size_t skip = 0;
    if (s->n_carry) {
        uint8_t joined[8];
        memcpy(joined, s->carry, s->n_carry);
        const size_t take = n < 4 ? n : 4;
        memcpy(joined + s->n_carry, p, take);
        uint32_t code;
        const size_t k = tg_utf8_next((const char *)joined, s->n_carry + take, &code);
        if (k <= s->n_carry) {
            s->first_bad_utf8 = s->scanned - s->n_carry;
            return;
        }
        skip = k - s->n_carry;
        s->n_carry = 0;
    }
    const size_t valid = skip + tg_utf8_valid((const char *)p + skip, n - skip);
    if (valid == n) return;
    if (n - valid < 4 && !last) {
        s->n_carry = n - valid;
        memcpy(s->carry, p + valid, s->n_carry);
        return;
    }
    s->first_bad_utf8 = s->scanned + valid;
}

/* `last` is about the text and not about the scan: where the scan stops at its limit, half a
 * character at its end is no fault of the text. */
static tg_status scan_text(scan *s, double deadline_ms) {
    const uint64_t end = s->text->n_bytes < SCAN_LIMIT ? s->text->n_bytes : SCAN_LIMIT;
    while (s->scanned < end) {
        const size_t n = (size_t)(end - s->scanned < PIECE_BYTES ? end - s->scanned : PIECE_BYTES);
        TG_TRY(tg_text_read(s->text, s->scanned, s->piece, n));
        count_bytes(s, s->piece, n);
        count_repeats(s, s->piece, n);
        check_utf8(s, s->piece, n, s->scanned + n == s->text->n_bytes);
        s->scanned += n;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    s->cr_alone += s->after_cr;
    return TG_OK;
}

/* Ends of a mix that will not validate, each one by its number. */
static void report_ends(scan *s, const tg_token_sample *sample) {
    const tg_text *t = s->text;
    if (t->held_from || s->val_fraction <= 0 || s->ctx_tokens <= 0) return;
    for (size_t k = 0; k < t->n_mix; k++) {
        const uint64_t first = k ? tg_text_part_end(t, k - 1) : 0;
        const tg_split split = tg_split_of(tg_text_part_end(t, k) - first, s->val_fraction);
        const uint64_t has = tg_tokens_about(sample, split.val);
        if (has <= (uint64_t)s->ctx_tokens)
            find(s, 1, "short_end",
                 "the end of part %zu of the mix has %" PRIu64 " %s, fewer than a window of %d: it "
                 "does not validate",
                 k + 1, has, t->tok ? "tokens" : "bytes", (int)s->ctx_tokens + 1);
    }
}

/* One finding at most: the worst. T is 0 where no model is known yet. */
static void report_length(scan *s, const tg_token_sample *sample) {
    const int32_t T = s->ctx_tokens;
    const double val_fraction = s->val_fraction;
    const char *unit = s->text->tok ? "tokens" : "bytes";
    tg_split split = tg_text_split(s->text, val_fraction);
    split.train = tg_tokens_about(sample, split.train);
    split.val = tg_tokens_about(sample, split.val);
    if (T > 0 && split.train < (uint64_t)T + 1)
        find(s, 0, "short",
             "the training part has %" PRIu64 " %s; a window of %d tokens needs %d: take a longer "
             "text or a smaller context",
             split.train, unit, (int)T, (int)T + 1);
    else if (T > 0 && tg_text_validates(s->text, val_fraction) && split.val < (uint64_t)T + 1)
        find(s, 1, "short",
             "the validation part has %" PRIu64 " %s, fewer than a window of %d: no "
             "validation loss will be shown",
             split.val, unit, (int)T + 1);
    else if (s->text->n_bytes < 20000)
        find(s, 1, "short",
             "%" PRIu64 " bytes are very little: expect the model to learn them by heart",
             s->text->n_bytes);
}

/* What a vocabulary makes of the text. One that was made for texts of this kind has tokens of three
 * to five bytes, a small one of its own two. */
static void report_tokens(scan *s, const tg_token_sample *sample) {
    if (sample->tokens == 0) return;
    const double each = (double)sample->bytes / (double)sample->tokens;
    const double unknown = 100.0 * (double)sample->unknown / (double)sample->tokens;
    const bool all = sample->bytes == s->text->n_bytes;
    if (each < 1.5 && tg_tok_count(s->text->tok) > 1000)
        find(s, 1, "tokens",
             "a token stands for %.2f bytes, %zu tokens in the vocabulary: it was made for other "
             "texts; train one on this text (tokenize --train)",
             each, tg_tok_count(s->text->tok));
    else
        find(s, 2, "tokens", "%s%" PRIu64 " tokens of this vocabulary, %.2f bytes each",
             all ? "" : "about ", tg_tokens_about(sample, s->text->n_bytes), each);
    if (unknown > 0.1)
        find(s, 1, "unknown_tokens",
             "%.1f %% of the tokens are unknown: the model cannot learn what is behind them",
             unknown);
}

/* UTF-16 shows by its mark, or by every second byte of plain text being NUL. */
static bool report_utf16(scan *s) {
    uint8_t head[4] = { 0 };
    const size_t n = s->text->n_bytes < 4 ? (size_t)s->text->n_bytes : 4;
    if (tg_text_read(s->text, 0, head, n) != TG_OK) return false;
    const bool mark =
        n >= 2 && ((head[0] == 0xff && head[1] == 0xfe) || (head[0] == 0xfe && head[1] == 0xff));
    const bool half_nul = s->count[0] > s->scanned * 2 / 5 && s->count[0] < s->scanned * 3 / 5;
    if (mark || half_nul)
        find(s, 1, "utf16",
             "this looks like UTF-16 (%s): convert it to UTF-8 first, or half of what "
             "the model learns is zero bytes",
             mark ? "byte order mark at 0" : "every second byte is NUL");
    if (n >= 3 && head[0] == 0xef && head[1] == 0xbb && head[2] == 0xbf)
        find(s, 2, "bom",
             "a UTF-8 byte order mark stands at offset 0; the model will see its 3 bytes");
    return mark || half_nul;
}

/* Once a text is known to be UTF-16, its NULs, control bytes and invalid UTF-8 are consequences of
 * that, and saying them too would bury the one line that helps. */
static void report_bytes(scan *s, bool utf16) {
    unsigned symbols = 0;
    uint64_t control = 0, most = 0;
    for (int b = 0; b < 256; b++) {
        symbols += s->count[b] > 0;
        if (s->count[b] > most) most = s->count[b];
        if (b < 32 && b != '\n' && b != '\r' && b != '\t') control += s->count[b];
    }
    if (symbols < 4)
        find(s, 1, "few_symbols", "only %u different byte%s: there is nothing to learn", symbols,
             symbols == 1 ? "" : "s");
    if (!utf16 && s->first_nul != UINT64_MAX)
        find(s, 1, "nul", "%" PRIu64 " NUL bytes, the first at offset %" PRIu64 ": is this a text?",
             s->count[0], s->first_nul);
    if (!utf16 && control > s->scanned / 20)
        find(s, 1, "binary", "%.0f %% control bytes: this looks like a binary file",
             100.0 * (double)control / (double)s->scanned);
    if (!utf16 && s->first_bad_utf8 != UINT64_MAX)
        find(s, 1, "invalid_utf8",
             "not valid UTF-8 from offset %" PRIu64 " on: the model learns the "
             "bytes as they are; convert the text if it has accents",
             s->first_bad_utf8);
    else if (!utf16)
        find(s, 2, "utf8", "valid UTF-8, %u different bytes", symbols);
    if (s->cr_alone > s->count['\n'])
        find(s, 1, "cr_only", "lines end with CR alone (%" PRIu64 " of them): convert them to LF",
             s->cr_alone);
    else if (s->crlf > 0)
        find(s, 2, "crlf", "%" PRIu64 " lines end with CR LF: the model will write them so",
             s->crlf);
    if (s->pieces >= 8 && s->repeated * 10 > s->pieces)
        find(s, 1, "repeated",
             "%.0f %% of the text repeats earlier parts byte by byte: the validation "
             "loss will look better than it is",
             100.0 * (double)s->repeated / (double)s->pieces);
}

tg_status tg_linting_new(tg_text *t, int32_t ctx_tokens, double val_fraction, tg_lint_fn report,
                         void *user, tg_linting **out) {
    const tg_mem *mem = &t->ctx->err.mem;
    scan *s = *out = tg_alloc(mem, sizeof *s);
    if (!s) return tg_fail_memory(&t->ctx->err, "scan of a text", sizeof *s);
    *s = (scan) { .text = t,
                  .ctx_tokens = ctx_tokens,
                  .val_fraction = val_fraction,
                  .report = report,
                  .user = user,
                  .piece = tg_alloc(mem, PIECE_BYTES),
                  .seen = tg_alloc(mem, SEEN * sizeof *s->seen),
                  .first_nul = UINT64_MAX,
                  .first_bad_utf8 = UINT64_MAX };
    if (s->piece && s->seen) return TG_OK;
    tg_linting_free(s);
    *out = NULL;
    return tg_fail_memory(&t->ctx->err, "scan of a text", PIECE_BYTES + SEEN * sizeof *s->seen);
}

void tg_linting_free(tg_linting *s) {
    if (!s) return;
    const tg_mem mem = s->text->ctx->err.mem;
    tg_free(&mem, s->piece, PIECE_BYTES);
    tg_free(&mem, s->seen, SEEN * sizeof *s->seen);
    tg_free(&mem, s, sizeof *s);
}

/* A text that cannot be read is an error of the call, not a finding; findings come at the end, when
 * all of the text has been seen. report is called from here, on the caller's thread. */
tg_status tg_linting_go_on(tg_linting *s, double deadline_ms) {
    if (s->text->n_bytes == 0) {
        find(s, 0, "empty", "the text is empty");
        return TG_OK;
    }
    TG_TRY(scan_text(s, deadline_ms));
    tg_token_sample sample;
    TG_TRY(tg_text_sample_tokens(s->text, &sample));
    report_length(s, &sample);
    report_ends(s, &sample);
    report_bytes(s, report_utf16(s));
    report_tokens(s, &sample);
    return TG_OK;
}
