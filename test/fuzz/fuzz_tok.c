/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tok.c - tokenizer.json, and a text to encode by it (behind two bytes 0xff).
 *
 * A vocabulary that has a token for each byte, and no normaliser, gives every text back. What a
 * tokenizer was made of may be written again, and then cuts texts into the same ids.
 */
#include "fuzz.h"

#include "tok/tok.h"

enum { TEXT_MAX = 512 };

static void want_ids(tg_ctx *ctx, const tg_tok *tok, const char *text, size_t n, unsigned flags) {
    tg_ids ids;
    int32_t lent[4];
    tg_ids_init(&ids, &ctx->mem);
    if (fuzz_ok(ctx, tg_tok_encode(ctx, tok, text, n, flags, &ids))) {
        for (size_t i = 0; i < ids.n; i++) {
            size_t n_bytes;
            PROMISE(ids.id[i] >= 0 && (size_t)ids.id[i] < tg_tok_count(tok));
            PROMISE(tg_tok_bytes(tok, ids.id[i], &n_bytes));
        }
        tg_ids few = tg_ids_lend(lent, 4);
        PROMISE(tg_tok_encode(ctx, tok, text, n, flags, &few) == TG_OK && few.n == ids.n);
        for (size_t i = 0; i < ids.n && i < 4; i++) PROMISE(lent[i] == ids.id[i]);
    } else {
        PROMISE(ids.n == 0);
    }
    tg_ids_deinit(&ids);
}

static void want_pieces(const tg_tok *tok) {
    for (size_t i = 0; i < tg_tok_count(tok); i++) {
        size_t n;
        PROMISE(tg_tok_type(tok, (int32_t)i) > 0 && tg_tok_bytes(tok, (int32_t)i, &n));
        PROMISE(tg_tok_piece(tok, (int32_t)i, &n));
    }
    PROMISE(!tg_tok_piece(tok, (int32_t)tg_tok_count(tok), &(size_t) { 0 }));
    PROMISE(tg_tok_bos(tok) < (int32_t)tg_tok_count(tok));
    PROMISE(tg_tok_eos(tok) < (int32_t)tg_tok_count(tok));
}

static void fuzz_one(const uint8_t *data, size_t n) {
    tg_ctx ctx;
    meter m;
    tg_tok *tok;
    size_t n_json;
    fuzz_begin(&ctx, &m, n, 150, 1 << 24); /* up to 65,536 ids may have no piece */
    const char *json = (const char *)fuzz_part(&data, &n, &n_json);
    if (fuzz_ok(&ctx, tg_tok_new_json(&ctx, "fuzz", json, n_json, &tok))) {
        uint8_t *text = fuzz_copy(data, n < TEXT_MAX ? n : TEXT_MAX);
        want_pieces(tok);
        for (unsigned flags = 0; flags <= (TG_TOK_ENDS | TG_TOK_SPECIAL); flags++)
            want_ids(&ctx, tok, (const char *)text, n < TEXT_MAX ? n : TEXT_MAX, flags);
        free(text);
        tg_tok_free(tok);
    }
    PROMISE(m.live_bytes == 0);
}
