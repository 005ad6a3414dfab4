/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_llama3.c - from the rule to the factors, and back. See rope_llama3.h.
 */
#include "io/rope_llama3.h"

#include "base/math.h"

static double divisor(const tg_rope_llama3 *r, double base, size_t head, size_t i) {
    const double freq = 1 / tg_pow(base, (double)(2 * i) / (double)head);
    const double turns = r->original * freq / (2 * TG_PI); /* within the original context */
    const double blend = (turns - r->low) / (r->high - r->low);
    const double scaled = turns > r->high  ? freq
                          : turns < r->low ? freq / r->factor
                                           : (1 - blend) * freq / r->factor + blend * freq;
    return freq / scaled;
}

void tg_rope_llama3_fill(const tg_rope_llama3 *rule, double base, size_t head, float *out) {
    for (size_t i = 0; i < head / 2; i++) out[i] = (float)divisor(rule, base, head, i);
}

/* The slowest frequency is divided by the whole factor. Rules that give the same factors mean the
 * same model, so the first one is as good as any. */
bool tg_rope_llama3_find(const float *factors, double base, size_t head, tg_rope_llama3 *out) {
    const size_t n = head / 2;
    *out = (tg_rope_llama3) { .factor = (double)factors[n - 1], .low = 1, .high = 4 };
    if (!(out->factor >= 1 && out->factor < 1e6)) return false;
    for (out->original = 32; out->original <= 1 << 22; out->original *= 2) {
        size_t i = 0;
        while (i < n && tg_fabs(divisor(out, base, head, i) / (double)factors[i] - 1) <= 1e-6) i++;
        if (i == n) return true;
    }
    return false;
}
