/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_back.c - bytes in, whole characters out.
 *
 * Invariant between two bytes: what is held is the start of a character that could still
 * become whole, so it is at most 3 bytes.
 */
#include "base/str.h"
#include "tok/tok.h"

/* Could more bytes make the held ones a character? By the length that the first byte promises, and
 * the ranges its followers must keep (RFC 3629): tg_utf8_next would accept some completion. */
static bool may_become_whole(const char *held, size_t n) {
    static const char tries[] = "\x80\xa0\x90\xbf\x8f\x9f";
    char whole[4];
    uint32_t code;
    for (size_t length = n + 1; length <= 4; length++) {
        for (size_t i = 0; i < sizeof tries - 1; i++) {
            memcpy(whole, held, n);
            memset(whole + n, '\x80', 4 - n);
            whole[n] = tries[i];
            if (tg_utf8_next(whole, length, &code) == length) return true;
        }
    }
    return false;
}

static void drop(tg_utf8_holdback *hb, size_t n) {
    memmove(hb->held, hb->held + n, hb->n - n);
    hb->n -= n;
}

/* A byte can end one character, or spoil several held ones: hence the loop. There is one
 * replacement for each byte that leads nowhere; what followed it is looked at again, since it may
 * begin a character of its own. */
static void push_byte(tg_utf8_holdback *hb, char byte, tg_utf8_fn out, void *user) {
    hb->held[hb->n++] = byte;
    while (hb->n > 0) {
        uint32_t code;
        const size_t k = tg_utf8_next(hb->held, hb->n, &code);
        if (k > 0) {
            out(user, hb->held, k);
            drop(hb, k);
        } else if (may_become_whole(hb->held, hb->n)) {
            return;
        } else {
            out(user, "\xef\xbf\xbd", 3);
            drop(hb, 1);
        }
    }
}

void tg_utf8_holdback_push(tg_utf8_holdback *hb, const char *bytes, size_t n_bytes, tg_utf8_fn out,
                           void *user) {
    for (size_t i = 0; i < n_bytes; i++) push_byte(hb, bytes[i], out, user);
}

void tg_utf8_holdback_end(tg_utf8_holdback *hb, tg_utf8_fn out, void *user) {
    if (hb->n > 0) out(user, "\xef\xbf\xbd", 3);
    hb->n = 0;
}
