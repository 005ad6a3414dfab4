/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c - bytes in, whole characters out.
 *
 * Invariant between two bytes: what the gate holds is the start of a character that could still
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

static void drop(tg_utf8_gate *gate, size_t n) {
    memmove(gate->held, gate->held + n, gate->n - n);
    gate->n -= n;
}

/* A byte can end one character, or spoil several held ones: hence the loop. There is one
 * replacement for each byte that leads nowhere; what followed it is looked at again, since it may
 * begin a character of its own. */
static void push_byte(tg_utf8_gate *gate, char byte, tg_utf8_fn out, void *user) {
    gate->held[gate->n++] = byte;
    while (gate->n > 0) {
        uint32_t code;
        const size_t k = tg_utf8_next(gate->held, gate->n, &code);
        if (k > 0) {
            out(user, gate->held, k);
            drop(gate, k);
        } else if (may_become_whole(gate->held, gate->n)) {
            return;
        } else {
            out(user, "\xef\xbf\xbd", 3);
            drop(gate, 1);
        }
    }
}

void tg_utf8_gate_push(tg_utf8_gate *gate, const char *bytes, size_t n_bytes, tg_utf8_fn out,
                       void *user) {
    for (size_t i = 0; i < n_bytes; i++) push_byte(gate, bytes[i], out, user);
}

void tg_utf8_gate_end(tg_utf8_gate *gate, tg_utf8_fn out, void *user) {
    if (gate->n > 0) out(user, "\xef\xbf\xbd", 3);
    gate->n = 0;
}
