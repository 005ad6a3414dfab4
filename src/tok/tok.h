/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tok.h - text to token ids and back, for the vocabularies that model files bring along.
 *
 *     tg_tok_desc d = { .model = TG_TOK_BYTE_BPE, .split = TG_TOK_SPLIT_SMOLLM, ... };  a loader
 *     TG_TRY(tg_tok_new(ctx, &d, &tok));                                                fills it
 *     TG_TRY(tg_tok_encode(ctx, tok, text, n_bytes, TG_TOK_ENDS, &ids));
 *     const char *bytes = tg_tok_bytes(tok, id, &n);
 *
 * A text goes through these stages; every model uses some of them:
 *
 *     text -> user-defined and special tokens cut out -> normaliser -> splitter -> model -> ids
 *             (trie, longest first)                      normal.h      split.h     bpe.c unigram.c
 *                                                                                  wordpiece.c
 *
 * Round trip: the bytes of the ids of a text are that text, for every byte string, where the
 * vocabulary has a token for each byte (byte-level BPE, SentencePiece with byte fallback) and no
 * normaliser changes it. Bytes that are no UTF-8 go byte by byte where tokens of bytes exist; a
 * byte that a byte-level vocabulary lacks is left out. What cannot be encoded otherwise
 * becomes the unknown token; a vocabulary without one, or with a control token for one (WordPiece's
 * excepted), makes that an error. Time is linear in the text, whatever it is: a long word is
 * merged a window at a time (bpe.c).
 *
 * A tokenizer is read-only once it is made: any number of threads may use one.
 */
#ifndef TG_TOK_TOK_H
#define TG_TOK_TOK_H

#include "base/buf.h"
#include "base/err.h"
#include "base/libc.h"
#include "base/mem.h"

/* ------------------------------------------------------------------------------- description */

typedef enum tg_tok_model {
    TG_TOK_RAW_BYTES, /* id = byte; no vocabulary is given */
    TG_TOK_BYTE_BPE,  /* merges over bytes, which pieces spell in GPT-2's alphabet ("Ġthe") */
    TG_TOK_SCORE_BPE, /* SentencePiece BPE: neighbours whose join is a piece, best score first */
    TG_TOK_MERGE_BPE, /* the same vocabularies as tokenizer.json has them: merges over characters */
    TG_TOK_UNIGRAM,   /* SentencePiece unigram: the best sum of scores */
    TG_TOK_WORDPIECE, /* BERT: longest piece first, "##" continues a word */
    TG_TOK_MODEL_COUNT
} tg_tok_model;

/* How byte-level BPE cuts a text into words before it merges (split.c has each rule). */
typedef enum tg_tok_split {
    TG_TOK_SPLIT_NONE,
    TG_TOK_SPLIT_GPT2,
    TG_TOK_SPLIT_SMOLLM, /* each digit alone, then GPT-2's rule on what is between */
    TG_TOK_SPLIT_LLAMA3, /* numbers by up to three digits */
    TG_TOK_SPLIT_QWEN2,  /* the same, each digit alone */
    TG_TOK_SPLIT_QWEN35, /* the same, marks count as letters */
    TG_TOK_SPLIT_GPT4O,  /* a word begins where small letters are over; numbers as LLAMA3 */
    TG_TOK_SPLIT_TEKKEN, /* the same, each digit alone, and 's is a word by itself */
    TG_TOK_SPLIT_COUNT
} tg_tok_split;

/* What a token is; the numbers are those of GGUF's token_type. */
enum {
    TG_TOK_NORMAL = 1,
    TG_TOK_UNKNOWN = 2,
    TG_TOK_CONTROL = 3,      /* found in a text only if TG_TOK_SPECIAL asks for it */
    TG_TOK_USER_DEFINED = 4, /* found in every text, before anything else */
    TG_TOK_UNUSED = 5,
    TG_TOK_BYTE = 6 /* "<0x0A>": stands for a byte that no piece covers */
};

/* What happens to a text before it is split; applied in this order. */
enum {
    TG_TOK_CLEAN = 1,            /* BERT: controls and U+FFFD go, white space becomes a blank */
    TG_TOK_CJK_SPACES = 2,       /* BERT: blanks around ideographs */
    TG_TOK_STRIP_ACCENTS = 4,    /* NFD, without the nonspacing marks */
    TG_TOK_LOWER = 8,            /* full lower case */
    TG_TOK_NFC = 16,             /* canonical composition */
    TG_TOK_NFKC = 32,            /* compatibility composition */
    TG_TOK_SQUEEZE = 64,         /* SentencePiece: blanks at the ends go, runs become one */
    TG_TOK_PREFIX_BLANK = 128,   /* a blank in front of all but an empty text */
    TG_TOK_PREFIX_MISSING = 256, /* the same, unless the text begins with one */
    TG_TOK_BLANK_MARK = 512      /* ' ' becomes U+2581, the lower one eighth block */
};

/* A string that need not end with zero; borrowed. */
typedef struct tg_tok_text {
    const char *bytes;
    uint32_t n_bytes;
} tg_tok_text;

/* All arrays are borrowed for the call of tg_tok_new alone. Ids of -1: the vocabulary has none. */
typedef struct tg_tok_desc {
    tg_tok_model model;
    tg_tok_split split;
    unsigned normal; /* TG_TOK_CLEAN .. TG_TOK_BLANK_MARK */

    size_t n_tokens;           /* V */
    const tg_tok_text *pieces; /* [V] as the file spells them */
    const uint8_t *types;      /* [V] TG_TOK_NORMAL ..; NULL: all are normal */
    const double *scores;      /* [V] SCORE_BPE and UNIGRAM */
    const bool *cooked; /* [V] user-defined ones looked for behind the normaliser, and normalised as
                           a text is; NULL: SCORE_BPE's and UNIGRAM's are, with blanks marked */
    size_t n_merges;
    const tg_tok_text *merges; /* [2 * n_merges] left and right, the first one is merged first */

    int32_t bos, eos, unknown, sep, cls, pad;
    bool add_bos, add_eos;   /* TG_TOK_ENDS adds bos (WordPiece: cls) and eos (sep) */
    bool ignore_merges;      /* a word that is a piece is that piece (Llama 3) */
    bool word_starts_marked; /* WordPiece as GGUF has it: U+2581 starts a word, nothing continues */
} tg_tok_desc;

/* Everything empty, no special ids. */
void tg_tok_desc_init(tg_tok_desc *d);

/* The fields that GGUF gives by name: tokenizer.ggml.model ("gpt2", "llama", "gemma4", "bert")
 * and tokenizer.ggml.pre ("smollm", ...; NULL: absent). TG_E_UNSUPPORTED names those that are
 * known. */
tg_status tg_tok_desc_gguf(tg_ctx *ctx, const char *model, const char *pre, tg_tok_desc *d);
/* The way back: tokenizer.ggml.pre of byte-level BPE. */
const char *tg_tok_gguf_pre(tg_tok_split split, unsigned normal, bool ignore_merges);

/* --------------------------------------------------------------------------------- tokenizer */

typedef struct tg_tok tg_tok;

/*
 * Checks the description and makes the tables; it needs nothing of the caller's afterwards.
 * Errors: TG_E_FORMAT for pieces that are no UTF-8, merges of or into unknown pieces, scores that
 * are no numbers, ids beyond the vocabulary, types that do not exist; TG_E_MEMORY.
 */
tg_status tg_tok_new(tg_ctx *ctx, const tg_tok_desc *d, tg_tok **out);

/* From tokenizer.json: what of it is not known is refused by its name, TG_E_UNSUPPORTED. */
tg_status tg_tok_new_json(tg_ctx *ctx, const char *name, const char *text, size_t n_bytes,
                          tg_tok **out);

/* Appends tokenizer.json, which gives the same ids here and in Hugging Face's tokenizers.
 * TG_E_UNSUPPORTED: a tokenizer that does not come out of GGUF's arrays. */
tg_status tg_tok_put_json(tg_ctx *ctx, const tg_tok *tok, tg_buf *out);

/* For whoever has made it and knows more than its file: the tokens that end a text [n], of which
 * the first is eos, unless the tokenizer adds one itself. TG_E_FORMAT, with name before it: an id
 * that the vocabulary lacks, or more than TG_TOK_ENDS_MAX. */
enum { TG_TOK_ENDS_MAX = 28 }; /* beside those that a chat template has */
tg_status tg_tok_set_ends(tg_ctx *ctx, tg_tok *tok, const char *name, const int32_t *ids, size_t n);

void tg_tok_free(tg_tok *tok); /* NULL is fine */

/* ids[0..n): grows at its end, and is freed by the caller; all zeros but for mem is empty. */
typedef struct tg_ids {
    tg_mem mem;
    int32_t *id;
    size_t n, room;
    bool lent;    /* id is somebody else's: what room is too small for is counted, and not kept */
    int32_t last; /* the one that was pushed last, kept or not */
} tg_ids;
void tg_ids_init(tg_ids *ids, const tg_mem *mem);
/* Empty, over memory for room ids. Needs no deinit. */
tg_ids tg_ids_lend(int32_t *id, size_t room);
void tg_ids_deinit(tg_ids *ids);
tg_status tg_ids_push(tg_ctx *ctx, tg_ids *ids, int32_t id);

enum {
    TG_TOK_ENDS = 1,   /* the tokens at the beginning and end that the file asks for */
    TG_TOK_SPECIAL = 2 /* control tokens that the text spells are taken as such: templates only */
};

/* Appends the ids of a text. Errors: TG_E_MEMORY; TG_E_FORMAT if a part has no token and the
 * vocabulary no unknown one. ids is as it was then. */
tg_status tg_tok_encode(tg_ctx *ctx, const tg_tok *tok, const char *text, size_t n_bytes,
                        unsigned flags, tg_ids *ids);

/* The same of a text that a template has written: control tokens that it spells are taken as such
 * where words [n_bytes] is 0 all along; 1 is a byte that somebody else has put there. */
tg_status tg_tok_encode_chat(tg_ctx *ctx, const tg_tok *tok, const char *text, const char *words,
                             size_t n_bytes, tg_ids *ids);

/* Can a text be encoded in pieces (border.c)? And the last place in text [n] where it may be cut,
 * if more of it follows: what stands before and behind, encoded alone, gives the ids of the whole.
 * 0: none was found. */
bool tg_tok_has_borders(const tg_tok *tok);
size_t tg_tok_border(const tg_tok *tok, const char *text, size_t n);

/* What a token adds to a text, valid as long as tok; "" for control tokens, NULL if there is no
 * such id. The blank that SentencePiece and WordPiece put before the first word is part of it: see
 * tg_tok_first_blank. */
const char *tg_tok_bytes(const tg_tok *tok, int32_t id, size_t *n_bytes);
/* Is a blank at the very beginning of decoded text the tokenizer's own, to be left out? */
bool tg_tok_first_blank(const tg_tok *tok);

/* The token as the file spells it; valid as long as tok, NULL if there is no such id. */
const char *tg_tok_piece(const tg_tok *tok, int32_t id, size_t *n_bytes);
int tg_tok_type(const tg_tok *tok, int32_t id); /* TG_TOK_NORMAL ..; 0: no such id */
/* The token that the file spells so; -1: none. Control and user-defined tokens included. */
int32_t tg_tok_find(const tg_tok *tok, const char *piece, size_t n_bytes);

/* The same of control tokens alone. */
int32_t tg_tok_control(const tg_tok *tok, const char *piece, size_t n_bytes);

size_t tg_tok_count(const tg_tok *tok); /* V */
/* Tokens that tokenizer.json cuts a text to; 0: it does not. Only embeddings keep to it. */
int32_t tg_tok_truncation(const tg_tok *tok);
tg_tok_model tg_tok_model_of(const tg_tok *tok);
int32_t tg_tok_bos(const tg_tok *tok); /* -1: none; so below */
int32_t tg_tok_eos(const tg_tok *tok);
/* All that end a text when they are drawn; eos, if there is one, is the first. */
const int32_t *tg_tok_ends(const tg_tok *tok, size_t *n);
bool tg_tok_is_end(const tg_tok *tok, int32_t id);
int32_t tg_tok_unknown(const tg_tok *tok);
int32_t tg_tok_pad(const tg_tok *tok);
bool tg_tok_adds_bos(const tg_tok *tok);
bool tg_tok_adds_eos(const tg_tok *tok);

/* ------------------------------------------------------------------------- streaming of text */

/*
 * Bytes of tokens become characters: up to three are held back until the character is whole; one
 * that leads nowhere goes out as U+FFFD. Zero-initialised it is empty.
 */
typedef struct tg_utf8_holdback {
    char held[8];
    size_t n;
} tg_utf8_holdback;

/* Receives whole characters, one or more at a time. */
typedef void (*tg_utf8_fn)(void *user, const char *text, size_t n_bytes);

void tg_utf8_holdback_push(tg_utf8_holdback *hb, const char *bytes, size_t n_bytes, tg_utf8_fn out,
                           void *user);
/* What is held at the end is one unfinished character, so it is one replacement. */
void tg_utf8_holdback_end(tg_utf8_holdback *hb, tg_utf8_fn out, void *user);

#endif
