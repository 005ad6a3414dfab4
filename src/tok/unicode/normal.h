/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normal.h - normalisers: what is done to a text before it is split (the flags are in tok.h).
 */
#ifndef TG_TOK_NORMAL_H
#define TG_TOK_NORMAL_H

#include "base/buf.h"
#include "tok/tok.h"

/* Two buffers that a text passes through in turn; both are empty at first and kept between calls.
 */
typedef struct tg_normal {
    tg_buf buf[2];
    uint32_t *code; /* [room] a stretch of decomposed text, */
    uint8_t *order; /* [room] its combining classes, */
    uint32_t *swap; /* [room] and where marks are put into order */
    size_t n, room;
    bool failed; /* one of the three had no memory */
} tg_normal;

void tg_normal_init(tg_normal *w, const tg_mem *mem);
void tg_normal_deinit(tg_normal *w);

/*
 * The text after the normalisers of `flags` (TG_TOK_CLEAN ..), in their order. The result is the
 * text itself where nothing changes, else in a buffer of w: valid until the next call. Bytes that
 * are no UTF-8 pass, but for CLEAN, which drops them as the U+FFFD that they would be.
 */
tg_status tg_normal_apply(tg_ctx *ctx, tg_normal *w, unsigned flags, const char **text, size_t *n);

/* U+2581, which stands for a blank in SentencePiece's vocabularies. */
#define TG_BLANK_MARK "\xe2\x96\x81"

#endif
