/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.h - the rows of batches: windows of T tokens of a text, by the model's tokenizer.
 *
 *     the text's tokens   | t0 t1 t2 t3 t4 ..            inputs    t0 t1 t2     B  t0 t1
 *     a window of T = 3     ^ start 0                    targets   t1 t2 t3     t0 t1 t2
 *
 * B is the token that the tokenizer puts before every text, if it does: then each window begins
 * with it, as each text does that the model was trained on. Where tokens are bytes, windows are
 * read from the text as they are needed. Else the whole text becomes ids first, once, which take 2
 * bytes each (4 with a vocabulary above 65,536) and stay in memory: a third to a half of the text.
 * Of the text itself one piece is in memory at a time, if the tokenizer has borders to cut at
 * (tok/border.c); the ids are those of the whole text in any case.
 *
 * A text has parts, one where nobody mixes it (tg_text_mix); a window lies within one of them.
 * Those that validate tile the ends of all parts:
 *
 *     | part 0: trained on     | w0 w1 . | part 1                | w2 w3 w4 |
 *
 * Each token of a part is predicted once, but for a first one that nothing stands before. What is
 * left behind the last whole window is too short for a row of a batch: it is left out, but where
 * `rest` is set; there it is a window of its own, whose other targets are TG_NO_TARGET.
 *
 * Rows of an encoder (masked.h) begin at such windows, too; what they predict lies within them, and
 * the tokens around a text take the place of its last ones.
 *
 * Rows of the caller's own (tg_text_of_rows) come from its functions, by their numbers: training
 * has no end, and number i validates.
 */
#ifndef TG_TRAINING_WINDOWS_H
#define TG_TRAINING_WINDOWS_H

#include "load/weights.h"
#include "training/data/masked.h"
#include "training/data/text.h"

/* A part in tokens: [first, first + train) are trained on, `val` behind them validate. */
typedef struct tg_stretch {
    uint64_t first, train, val;
    uint64_t end;  /* the byte of the text where it ends */
    double weight; /* its share of the draws, of the sum of all */
} tg_stretch;

typedef struct tg_windows {
    tg_text *text;
    const tg_tok *tok; /* NULL: tokens are bytes */
    int32_t begins;    /* B; -1: none */
    size_t vocab;      /* V */
    double val_fraction;
    uint64_t rows_train, n_val_rows; /* of rows: this run's, as others may share the text */
    tg_stretch *part;                /* [n_parts], in tokens; zeros until they are known */
    size_t n_parts, n_train_parts;   /* the last one is held back if they differ */
    bool mixed;                      /* as the text was when this began */
    bool rest;                       /* windows that validate may be shorter: false at first */
    bool masked;                     /* rows are an encoder's, by: */
    tg_masking masking;
    tg_split split; /* the sums of all parts */
    void *ids;      /* u16 or u32 [room], n of them are there */
    bool wide;
    size_t n, room;
    uint64_t done;   /* bytes of the text that have become ids */
    size_t at_part;  /* they lie in */
    tg_buf piece;    /* of the text */
    tg_ids of_piece; /* its ids */
    bool begun;
} tg_windows;

/* E_DATA: the tokenizer has tokens that a model of V rows lacks. */
tg_status tg_windows_want_rows(tg_ctx *err, const tg_text *text, const tg_tok *tok, size_t V);
/* Model and text are borrowed. E_DATA: as of tg_windows_want_rows; E_UNSUPPORTED: as of
 * tg_masking_of, or conversations for an encoder. */
tg_status tg_windows_begin(tg_windows *w, const tg_model *model, tg_text *text,
                           double val_fraction);
/* TG_PENDING until all tokens are there. */
tg_status tg_windows_go_on(tg_windows *w, double deadline_ms);
void tg_windows_deinit(tg_windows *w); /* also of one that is all zeros */

/* E_DATA: a part that is trained on, or one that is held back, has no window of T tokens; E_RANGE:
 * nothing of a text fits into an encoder's row. */
tg_status tg_windows_want(const tg_windows *w, size_t T);
/* Row `sample` of the batches of a seed (tg_batch_start), inputs [T] and targets [T]. */
tg_status tg_windows_train_row(tg_windows *w, uint64_t seed, uint64_t sample, size_t T,
                               int32_t *inputs, int32_t *targets);
/* How many windows of T tokens validate, or tile the whole text; of rest the shorter ones, too. */
uint64_t tg_windows_count(const tg_windows *w, size_t T, bool whole);
/* Number i of them: inputs [T], targets [T]. */
tg_status tg_windows_row(tg_windows *w, uint64_t i, bool whole, size_t T, int32_t *inputs,
                         int32_t *targets);
/* Bytes of text that a token stands for, of those that validate or are trained on; 0: there are
 * none. */
double tg_windows_token_bytes(const tg_windows *w, bool val);
/* "tokens" or "bytes", what messages count. */
const char *tg_windows_unit(const tg_windows *w);

#endif
