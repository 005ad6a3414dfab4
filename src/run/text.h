/*
 * text.h - what a tg_text is inside: a file read piece by piece, or a copy in memory; and batches.
 */
#ifndef TG_RUN_TEXT_H
#define TG_RUN_TEXT_H

#include "base/os.h"
#include "base/sha256.h"
#include "run/runtime.h"

struct tg_text {
    tg_context *ctx;
    char *name;       /* the path, for messages; "the text" where it lies in memory */
    tg_os_file *file; /* NULL: in memory */
    char *bytes;      /* the copy in memory */
    uint64_t n_bytes;
    uint8_t *window; /* [window_room] scratch for a row of a batch */
    size_t window_room;
};

tg_status tg_text_new_file(tg_context *ctx, const char *path, tg_text **out);
tg_status tg_text_new_memory(tg_context *ctx, const char *bytes, size_t n_bytes, tg_text **out);
void tg_text_delete(tg_text *t);

/* Exactly n bytes from offset. */
tg_status tg_text_read(tg_text *t, uint64_t offset, void *out, size_t n);

/* Identity of a text for resuming: a CRC of its size and of 64 pieces of 4 KiB spread over it. */
tg_status tg_text_mark(tg_text *t, uint32_t *mark);

/* The contiguous split: bytes [0, train) are trained on, [train, n) validate. */
typedef struct tg_split {
    uint64_t train_bytes, val_bytes;
} tg_split;
tg_split tg_text_split(uint64_t n_bytes, double val_fraction);

/* The window of T+1 bytes at start, as T inputs and T targets. */
tg_status tg_text_window(tg_text *t, uint64_t start, size_t T, int32_t *inputs, int32_t *targets);

/* Row `sample` of the batches of a seed: where its window starts in the training part. */
uint64_t tg_batch_start(uint64_t seed, uint64_t sample, uint64_t train_bytes, size_t T);

/* Validation windows: how many of T tokens there are, and where window i of n starts. */
uint64_t tg_eval_windows(const tg_split *s, size_t T, int32_t wanted);
uint64_t tg_eval_start(const tg_split *s, size_t T, uint64_t i, uint64_t n);

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
