/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_app_head.c - heads of HTTP requests. The first byte of an input says into what pieces the
 * rest is cut: the verdict, and all that was found, is the same as for all bytes at once.
 */
#include "fuzz.h"

#include "server/head.h"

/* Bytes that a request may not have anywhere in what is handed on. */
static void want_text(const char *text, const char *bytes, size_t n, bool wanted) {
    PROMISE(text || !wanted);
    if (!text) return;
    PROMISE(text >= bytes && text < bytes + n && memchr(text, 0, (size_t)(bytes + n - text)));
    for (const char *c = text; *c; c++) PROMISE((unsigned char)*c >= ' ' || *c == '\t');
}

static void want_whole(const tg_head *h, const char *bytes, size_t n) {
    PROMISE(h->n_read > 0 && h->n_read <= n && h->n_read <= TG_HEAD_BYTES_MAX);
    PROMISE(h->n_hosts <= 1 && h->n_origins <= 1 && h->n_lengths <= 1 && h->n_codings <= 1);
    PROMISE(h->minor <= 9 && h->method && h->path && h->path[0] != '\0');
    want_text(h->method, bytes, h->n_read, true);
    want_text(h->path, bytes, h->n_read, true);
    want_text(h->host, bytes, h->n_read, h->minor > 0);
    want_text(h->origin, bytes, h->n_read, false);
    want_text(h->accept_coding, bytes, h->n_read, false);
    want_text(h->if_none_match, bytes, h->n_read, false);
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void fuzz_one(const uint8_t *data, size_t n) {
    if (n == 0 || n > 2 * TG_HEAD_BYTES_MAX) return;
    const size_t step = 1 + data[0] % 64;
    char *whole = (char *)fuzz_copy(data + 1, n - 1), *cut = (char *)fuzz_copy(data + 1, n - 1);
    tg_head at_once = { 0 }, pieces = { 0 };
    unsigned verdict = TG_HEAD_MORE;
    n--;
    if (n <= TG_HEAD_BYTES_MAX) {
        const unsigned want = tg_head_read(&at_once, whole, n);
        for (size_t have = 0; verdict == TG_HEAD_MORE && have < n;) {
            have = n - have < step ? n : have + step;
            verdict = tg_head_read(&pieces, cut, have);
        }
        PROMISE(n == 0 || verdict == want);
        PROMISE(want <= TG_HEAD_WHOLE || (want >= 400 && want < 600));
        if (n > 0 && want == TG_HEAD_WHOLE) {
            want_whole(&at_once, whole, n);
            want_whole(&pieces, cut, n);
            PROMISE(pieces.n_read == at_once.n_read && pieces.has_body == at_once.has_body);
            PROMISE(pieces.minor == at_once.minor && pieces.wants_close == at_once.wants_close);
            PROMISE(same_text(pieces.method, at_once.method) &&
                    same_text(pieces.path, at_once.path) && same_text(pieces.host, at_once.host) &&
                    same_text(pieces.origin, at_once.origin));
        }
    }
    free(whole);
    free(cut);
}
