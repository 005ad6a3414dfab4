/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logits.h - what is done to logits before a token is drawn, and what can be asked of them.
 *
 * Each function works on the logits [V] of one position, and is defined for all that they may hold:
 * NaN counts as -inf (impossible), +inf as FLT_MAX. The order in a draw is that of
 * samplers/samplers.def.
 */
#ifndef TG_ENGINE_LOGITS_H
#define TG_ENGINE_LOGITS_H

#include "base/err.h"
#include "ops/sample/candidate.h"
#include "tinygpt.h"

/* A logit as the sampler sees it. */
static inline double tg_logit_value(float x) { return (double)tg_candidate(x); }
/* -inf where no token is possible. */
double tg_logits_largest(const float *logits, size_t V);

/* logits[id] += bias; -inf makes a token impossible. Ids lie in [0, V), biases are no NaN and not
 * +inf: tg_logits_check_bias has seen to it. Of two entries for one token both count. */
void tg_logits_bias(float *logits, const tg_logit_bias *bias, size_t n);
tg_status tg_logits_check_bias(tg_ctx *ctx, const tg_logit_bias *bias, size_t n, size_t V);

typedef struct tg_logits_penalties {
    double repeat;    /* > 0; 1: off. Divides positive logits, multiplies others, once a token */
    double frequency; /* 0: off. Taken off for each time that the token came */
    double presence;  /* 0: off. Taken off once if it came at all */
} tg_logits_penalties;

/* For the tokens of recent [n]; ids beyond V are passed over. n is small: it costs n * n. */
void tg_logits_penalize(float *logits, size_t V, const int32_t *recent, size_t n,
                        const tg_logits_penalties *p);

/*
 * Locally typical sampling (Meister et al., 2022): with p = softmax(logits / temperature) and the
 * entropy H = -sum p ln p, tokens are kept in rising order of |H + ln p| until their sum reaches
 * mass; the others become -inf. Equal distances go by rising id; one token always stays. A mass of
 * 0 or less, 1 or more, or NaN, and a temperature that is not positive, keep all.
 *   order [V], distance [V]   scratch
 */
void tg_logits_typical(float *logits, size_t V, double mass, double temperature, uint32_t *order,
                       double *distance);

/* The n most likely tokens, likeliest first, equal ones by rising id, and the logarithms of their
 * probabilities: x - max - ln sum exp(x - max). Returns how many there are, at most V. Where
 * nothing is possible, logarithms are -inf. */
size_t tg_logits_best(const float *logits, size_t V, size_t n, int32_t *ids, double *logprobs);

/* ------------------------------------------------------------------------------------ texts */

enum { TG_LOGITS_TEXTS_MAX = 64, TG_LOGITS_TEXT_BYTES_MAX = 256 };

/* Texts of the caller's, copied: what must not be written, or what an answer ends at. */
typedef struct tg_logits_texts {
    size_t n, longest, n_ids;
    int32_t ids[TG_LOGITS_TEXTS_MAX]; /* [n_ids] of those that are special tokens */
    struct {
        size_t n_bytes;
        char bytes[TG_LOGITS_TEXT_BYTES_MAX];
    } text[TG_LOGITS_TEXTS_MAX];
} tg_logits_texts;

/* E_ARG: too many, too long, an empty one, or one that is no UTF-8; out is as it was then. */
tg_status tg_logits_set_texts(tg_ctx *ctx, const char *const *texts, size_t n,
                              tg_logits_texts *out);

/* The bytes that a token adds. */
typedef const char *(*tg_logits_piece_fn)(const void *user, int32_t id, size_t *n_bytes);

/*
 * Makes every token impossible whose bytes, behind the tail of the text so far, complete a banned
 * text. It is a rule about text: however a banned text may be cut into tokens, it does not appear.
 *   tail [n_tail]   at least the last longest - 1 bytes of the text, if there are as many
 */
void tg_logits_ban(float *logits, size_t V, const tg_logits_texts *banned, const char *tail,
                   size_t n_tail, tg_logits_piece_fn piece, const void *user);

/* The logarithm of one token's probability, in the same manner. */
double tg_logits_logprob(const float *logits, size_t V, int32_t id);

/* Is there a token left that can be drawn? */
bool tg_logits_possible(const float *logits, size_t V);

/*
 * Text on its way out, watched for stops: what could be the beginning of one is held back.
 * Zero-initialised it is empty.
 */
typedef struct tg_stop_match {
    char held[2 * TG_LOGITS_TEXT_BYTES_MAX];
    size_t n;
    bool stopped;
} tg_stop_match;

typedef void (*tg_stop_fn)(void *user, const char *text, size_t n_bytes);

/* Whole characters: passes on what is no stop and cannot become one. At the first stop that is
 * complete (the longest of those that end there), the text before it is passed on, and nothing any
 * more. */
void tg_stop_match_push(tg_stop_match *match, const tg_logits_texts *stops, const char *text,
                        size_t n, tg_stop_fn out, void *user);
/* What is held at the end was no stop. */
void tg_stop_match_end(tg_stop_match *match, tg_stop_fn out, void *user);

#endif
