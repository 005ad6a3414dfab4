/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - what a tg_text is inside: files that are read piece by piece and copies in memory, one
 * behind the other; and batches.
 */
#ifndef TG_TRAINING_TEXT_H
#define TG_TRAINING_TEXT_H

#include "base/codec/sha256.h"
#include "base/os/os.h"
#include "runtime/runtime.h"
#include "tok/tok.h"

typedef struct tg_text_part {
    char *path;       /* NULL: in memory */
    tg_os_file *file; /* NULL: closed, or in memory */
    char *bytes;      /* the copy in memory */
    uint64_t first;   /* of the text */
    uint64_t n_bytes;
} tg_text_part;

/* Files that are open at once; of more of them, those that were not read for longest are closed. */
enum { TG_TEXT_FILES_MAX = 64 };

struct tg_text {
    tg_context *ctx;
    char *name;         /* the first path, for messages; "the text" where that lies in memory */
    tg_text_part *part; /* [n_parts], at least one */
    size_t n_parts;
    size_t n_open, next_to_close;
    uint64_t n_bytes;
    tg_row_fn train_row, val_row; /* of the caller, in place of all bytes; or NULL */
    uint64_t n_val_rows;
    uint32_t rows_mark;
    void *rows_user;
    /* For a run that begins: how many rows it trains on, and n_val. NULL: n_val_rows validate. */
    uint64_t (*rows_split)(void *user, double val_fraction, uint64_t *n_val);
    /* Is anything to be predicted in [first, first + n) of all rows, cut at T tokens? NULL: unknown
     */
    bool (*rows_predict)(const void *user, uint64_t first, uint64_t n, size_t T);
    void (*rows_free)(void *user); /* of what is the text's own; NULL: the caller's */
    uint64_t rows_seed;            /* of the run that asks, */
    uint64_t rows_train;           /* and what rows_split answered it: set before each row */
    double rows_token_bytes;       /* of text, a token that is predicted; 0: not known */
    uint64_t held_from;            /* where a validation part of its own begins; 0: there is none */
    tg_mix_part *mix;              /* [n_mix] of tg_text_mix; the last one's end is not used */
    size_t n_mix;                  /* 0: rows are drawn evenly */
    int date[3];                   /* year, month and day that a template wrote; zeros: none */
    const tg_tok *tok;             /* of tg_text_set_tokenizer; NULL: tokens are bytes */
    uint8_t *window;               /* [window_room] scratch for a row of a batch */
    size_t window_room;
    /* Of pairs: what they weigh, and the row, of all n_pair_rows, that train_row's row n is. Rows
     * 2p and 2p + 1 are a pair; those that validate lie behind the others. */
    double beta; /* 0: there are none */
    size_t n_pair_rows;
    uint64_t (*pair_row)(void *user, uint64_t n);
};

tg_status tg_text_new_file(tg_context *ctx, const char *path, tg_text **out);
tg_status tg_text_new_memory(tg_context *ctx, const char *bytes, size_t n_bytes, tg_text **out);
void tg_text_delete(tg_text *t);
/* The parts of more, which goes, behind those of t. On an error both are as they were. */
tg_status tg_text_append(tg_text *t, tg_text *more);

/* The text in parts: those that are trained on, one where there is no mix, and one behind them that
 * validates if it is held back. The byte where part k ends. */
size_t tg_text_train_parts(const tg_text *t);
uint64_t tg_text_part_end(const tg_text *t, size_t k);
/* The file that a byte is of. */
const char *tg_text_name_at(const tg_text *t, uint64_t offset);

/* Exactly n bytes from offset. */
tg_status tg_text_read(tg_text *t, uint64_t offset, void *out, size_t n);

/* Identity of a text for resuming: a CRC of its size and of 64 pieces of 4 KiB spread over it. */
tg_status tg_text_mark(tg_text *t, uint32_t *mark);
/* The same of all bytes, in slices; zero-initialised: not begun. Of texts of up to
 * TG_TEXT_CRC_MAX bytes, which that takes some milliseconds. */
#define TG_TEXT_CRC_MAX ((uint64_t)64 << 20)
typedef struct tg_text_checking {
    uint64_t done;
    uint32_t crc;
} tg_text_checking;
tg_status tg_text_checking_go_on(tg_text_checking *c, tg_text *t, double deadline_ms);

/* The contiguous split: [0, train) are trained on, [train, train + val) validate; counted in
 * tokens, or in bytes of a text. A part that is held back by name counts, and not the fraction. */
typedef struct tg_split {
    uint64_t train, val;
} tg_split;
/* Of n of them. */
tg_split tg_split_of(uint64_t n, double val_fraction);
/* The sums of the parts of a mix. */
tg_split tg_text_split(const tg_text *t, double val_fraction);
static inline bool tg_text_validates(const tg_text *t, double val_fraction) {
    return t->held_from > 0 || val_fraction > 0;
}

/* A share of the text as tokens of its tokenizer: all of a short one. */
typedef struct tg_token_sample {
    uint64_t bytes, tokens, unknown;
} tg_token_sample;
tg_status tg_text_sample_tokens(tg_text *t, tg_token_sample *out);
/* How many tokens so many of its bytes are, by such a sample; the same number without one. */
uint64_t tg_tokens_about(const tg_token_sample *s, uint64_t bytes);

/* The window of T+1 bytes at start, as T inputs and T targets. */
tg_status tg_text_window(tg_text *t, uint64_t start, size_t T, int32_t *inputs, int32_t *targets);

/* Row `sample` of the batches of a seed: where its window starts in `train` tokens. */
uint64_t tg_batch_start(uint64_t seed, uint64_t sample, uint64_t train, size_t T);

/* Lint, and the SHA-256 of all bytes, in slices: TG_PENDING until they are done. Deadlines are on
 * tg_time_ms's clock; 0: none. */
typedef struct tg_linting tg_linting;
tg_status tg_linting_new(tg_text *t, int32_t ctx_tokens, double val_fraction, tg_lint_fn report,
                         void *user, tg_linting **out);
tg_status tg_linting_go_on(tg_linting *l, double deadline_ms);
void tg_linting_free(tg_linting *l); /* NULL is fine */

typedef struct tg_text_hashing { /* zero-initialised: not begun */
    uint64_t done;
    tg_sha256 sha;
} tg_text_hashing;
tg_status tg_text_hashing_go_on(tg_text_hashing *h, tg_text *t, double deadline_ms,
                                uint8_t digest[TG_SHA256_BYTES]);

#endif
