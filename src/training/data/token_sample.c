/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_sample.c - how many tokens a text is, before it has become tokens.
 *
 * A text of up to SAMPLES pieces goes through the tokenizer whole, and the count is exact. Of a
 * longer one that many pieces are taken, evenly spread: the same ones each time.
 */
#include "training/data/text.h"

#include "base/buf.h"

enum { SAMPLES = 8, SAMPLE_BYTES = 32 << 10 };

/* A piece may begin and end within a character or word, which makes a few tokens more. */
static tg_status add_piece(tg_text *t, uint64_t at, size_t n, tg_buf *piece, tg_ids *ids,
                           tg_token_sample *out) {
    tg_ctx *const err = &t->ctx->err;
    tg_buf_clear(piece);
    char *to = tg_buf_reserve(piece, n);
    if (!to) return tg_fail_memory(err, "sample of a text", n);
    TG_TRY(tg_text_read(t, at, to, n));
    ids->n = 0;
    TG_TRY(tg_fail_named(err, t->name, tg_tok_encode(err, t->tok, to, n, 0, ids)));
    out->bytes += n;
    out->tokens += ids->n;
    for (size_t i = 0; i < ids->n; i++) out->unknown += ids->id[i] == tg_tok_unknown(t->tok);
    return TG_OK;
}

tg_status tg_text_sample_tokens(tg_text *t, tg_token_sample *out) {
    *out = (tg_token_sample) { 0 };
    if (!t->tok || t->n_bytes == 0) return TG_OK;
    const bool whole = t->n_bytes <= (uint64_t)SAMPLES * SAMPLE_BYTES;
    const size_t n = whole ? 1 : SAMPLES;
    const size_t each = whole ? (size_t)t->n_bytes : SAMPLE_BYTES;
    tg_buf piece;
    tg_ids ids;
    tg_buf_init(&piece, &t->ctx->err.mem);
    tg_ids_init(&ids, &t->ctx->err.mem);
    tg_status s = TG_OK;
    for (size_t i = 0; s == TG_OK && i < n; i++)
        s = add_piece(t, (t->n_bytes - each) / n * i, each, &piece, &ids, out);
    tg_buf_deinit(&piece);
    tg_ids_deinit(&ids);
    return s;
}

uint64_t tg_tokens_about(const tg_token_sample *s, uint64_t bytes) {
    if (s->bytes == 0 || bytes == 0) return bytes;
    if (bytes == s->bytes) return s->tokens;
    return (uint64_t)((double)bytes * (double)s->tokens / (double)s->bytes);
}
