/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logits.c - the functions of logits.h, in double over a fixed order; those of a link of the chain
 * of samplers are in its file (samplers/).
 *
 * A token must be the same on every machine, so sums run over ids in their order, on one thread,
 * and exp and log are the project's own (base/math.h), not a C library's. What a float may be
 * besides a number is settled in one place: tg_candidate takes a NaN for -inf and +inf for FLT_MAX.
 * A token is impossible when its logit is -inf; bans and cuts write just that.
 */
#include "engine/logits.h"

#include "base/math.h"
#include "base/str.h"

/* ----------------------------------------------------------------------------------- n best */

double tg_logits_largest(const float *logits, size_t V) {
    double most = -TG_INF;
    for (size_t i = 0; i < V; i++)
        most = tg_logit_value(logits[i]) > most ? tg_logit_value(logits[i]) : most;
    return most;
}

/* ln sum exp(x); -inf where nothing is possible. */
static double log_sum(const float *logits, size_t V) {
    const double max = tg_logits_largest(logits, V);
    double total = 0;
    if (!tg_isfinite(max)) return max;
    for (size_t i = 0; i < V; i++) total += tg_exp(tg_logit_value(logits[i]) - max);
    return max + tg_log(total);
}

/* -inf where no token is possible, since there is no distribution that it could be of. */
double tg_logits_logprob(const float *logits, size_t V, int32_t id) {
    const double sum = log_sum(logits, V);
    return tg_isfinite(sum) ? tg_logit_value(logits[id]) - sum : -TG_INF;
}

/* By insertion into a list of n, which is short: nearly all of the V logits are below its last one.
 * Until all have been seen, logprobs [n] holds logits. */
size_t tg_logits_best(const float *logits, size_t V, size_t n, int32_t *ids, double *logprobs) {
    size_t have = 0;
    for (size_t i = 0; i < V && n > 0; i++) {
        const double x = tg_logit_value(logits[i]);
        if (have == n && !(x > logprobs[n - 1])) continue;
        size_t at = have < n ? have++ : n - 1;
        for (; at > 0 && x > logprobs[at - 1]; at--) {
            ids[at] = ids[at - 1];
            logprobs[at] = logprobs[at - 1];
        }
        ids[at] = (int32_t)i;
        logprobs[at] = x;
    }
    const double sum = have > 0 ? log_sum(logits, V) : 0;
    for (size_t k = 0; k < have && tg_isfinite(sum); k++) logprobs[k] -= sum;
    return have;
}

bool tg_logits_possible(const float *logits, size_t V) {
    return tg_isfinite(tg_logits_largest(logits, V));
}

/* ------------------------------------------------------------------------------------ texts */

/* All are checked before one is taken. Texts are copied, since they are needed as long as a session
 * generates, which may be longer than the call that names them. */
tg_status tg_logits_set_texts(tg_ctx *ctx, const char *const *texts, size_t n,
                              tg_logits_texts *out) {
    if (n > TG_LOGITS_TEXTS_MAX) {
        return tg_fail(ctx, TG_E_ARG, "texts: want at most %d, have %zu", TG_LOGITS_TEXTS_MAX, n);
    }
    for (size_t i = 0; i < n; i++) {
        const size_t length = texts[i] ? strlen(texts[i]) : 0;
        if (length == 0 || length > TG_LOGITS_TEXT_BYTES_MAX) {
            return tg_fail(ctx, TG_E_ARG, "text %zu: want 1..%d bytes, have %zu", i,
                           TG_LOGITS_TEXT_BYTES_MAX, length);
        }
        if (tg_utf8_valid(texts[i], length) != length) {
            return tg_fail(ctx, TG_E_ARG, "text %zu: want UTF-8, have other bytes", i);
        }
    }
    out->n = n;
    out->longest = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(texts[i]);
        out->text[i].n_bytes = length;
        memcpy(out->text[i].bytes, texts[i], length);
        if (length > out->longest) out->longest = length;
    }
    return TG_OK;
}

/* How much of the end of what is held is the beginning of a stop: that is held back, since the next
 * piece may complete it; what stands before can never belong to one. */
static size_t may_stop(const tg_stop_match *match, const tg_logits_texts *stops) {
    const size_t most = stops->longest > 0 ? stops->longest - 1 : 0;
    for (size_t k = match->n < most ? match->n : most; k > 0; k--) {
        for (size_t i = 0; i < stops->n; i++) {
            if (stops->text[i].n_bytes > k &&
                memcmp(match->held + match->n - k, stops->text[i].bytes, k) == 0) {
                return k;
            }
        }
    }
    return 0;
}

/* The longest stop that what is held ends with; 0: none. */
static size_t stop_at_end(const tg_stop_match *match, const tg_logits_texts *stops) {
    size_t longest = 0;
    for (size_t i = 0; i < stops->n; i++) {
        const size_t n = stops->text[i].n_bytes;
        if (n <= match->n && n > longest &&
            memcmp(match->held + match->n - n, stops->text[i].bytes, n) == 0) {
            longest = n;
        }
    }
    return longest;
}

/* After every character the match holds less than a stop, and a character is at most four bytes, so
 * there is always room. Stops are UTF-8: neither they nor what is held back divide a character. */
void tg_stop_match_push(tg_stop_match *match, const tg_logits_texts *stops, const char *text,
                        size_t n, tg_stop_fn out, void *user) {
    for (size_t at = 0; at < n && !match->stopped;) {
        uint32_t code;
        size_t length = tg_utf8_next(text + at, n - at, &code);
        length = length ? length : 1;
        memcpy(match->held + match->n, text + at, length);
        match->n += length;
        at += length;
        const size_t stop = stop_at_end(match, stops);
        match->stopped = stop > 0;
        const size_t keep = match->stopped ? stop : may_stop(match, stops);
        if (match->n > keep) out(user, match->held, match->n - keep);
        memmove(match->held, match->held + match->n - keep, keep);
        match->n = keep;
    }
}

/* The text is over: what was held back for a stop that did not come belongs to it. */
void tg_stop_match_end(tg_stop_match *match, tg_stop_fn out, void *user) {
    if (match->n > 0 && !match->stopped) out(user, match->held, match->n);
    match->n = 0;
}
