/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - what of the server needs no socket: guard, choice of the route, the texts of replies
 * (see http.h).
 */
#define _POSIX_C_SOURCE 200809L /* gmtime_r */
#include "server/http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/*
 * COOP and COEP isolate the page, so that it gets SharedArrayBuffer; CORP keeps other origins from
 * loading our files. The policy lets the page run its own scripts and compile WebAssembly, and
 * reach other hosts for a text or a model whose address somebody typed in: over http as well, which
 * machines of a local network speak, and which browsers refuse to a page that came over https.
 * web/public/_headers has the same list for static hosts; test/cli/test_serve.py compares the two.
 */
const tg_http_header tg_http_headers[] = {
    { "Cross-Origin-Opener-Policy", "same-origin" },
    { "Cross-Origin-Embedder-Policy", "require-corp" },
    { "Cross-Origin-Resource-Policy", "same-origin" },
    { "Content-Security-Policy",
      "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' https: http:; "
      "worker-src 'self'; img-src 'self' data: blob:; style-src 'self'; object-src 'none'; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
    { "X-Content-Type-Options", "nosniff" },
    { "Referrer-Policy", "no-referrer" },
    { "Cache-Control", "no-cache" },
    { NULL, NULL },
};

/* --------------------------------------------------------------------------------- the guard */

/* "127.0.0.1:8080" and its two other spellings. A browser leaves out port 80. Names like 127.1
 * reach this socket as well, but no browser sends them: it spells an address out first. */
static bool is_our_host(const char *text, unsigned port) {
    static const char *const names[] = { "127.0.0.1", "localhost", "[::1]" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char whole[32];
        snprintf(whole, sizeof whole, "%s:%u", names[i], port);
        if (!strcasecmp(text, whole) || (port == 80 && !strcasecmp(text, names[i]))) return true;
    }
    return false;
}

/* The Host tells DNS rebinding, the Origin tells a page from elsewhere: either is enough to refuse.
 */
bool tg_http_is_ours(const char *host, const char *origin, unsigned port) {
    if (!is_our_host(host, port)) return false;
    /* A page sends its origin with what it fetches from elsewhere; our own does so only for other
     * methods than GET. */
    static const char scheme[] = "http://";
    const size_t n_scheme = sizeof scheme - 1;
    return !origin || (!strncmp(origin, scheme, n_scheme) && is_our_host(origin + n_scheme, port));
}

/* ------------------------------------------------------------------------------- the headers */

/* ";q=0", "; q=0.000": the one weight that means never. Preferences between codings do not
 * matter, there being one. */
static bool is_refused(const char *parameters, size_t n) {
    while (n > 0 && strchr("; \t", *parameters)) parameters++, n--;
    if (n < 3 || strncasecmp(parameters, "q=", 2) != 0) return false;
    for (size_t i = 2; i < n; i++) {
        if (parameters[i] != '0' && parameters[i] != '.') return false;
    }
    return true;
}

/* Who sends no Accept-Encoding would take any coding by the letter of the RFC, but those are
 * scripts that want plain bytes. The first element that names the coding decides; "*" is left
 * aside, since what it stands for may be plain as well. */
bool tg_http_accepts(const char *header, const char *coding) {
    size_t n;
    for (const char *at = header, *e; header && (e = tg_head_element(&at, &n)) != NULL;) {
        size_t n_name = 0;
        while (n_name < n && !strchr("; \t", e[n_name])) n_name++;
        if (n_name == strlen(coding) && !strncasecmp(e, coding, n_name)) {
            return !is_refused(e + n_name, n - n_name);
        }
    }
    return false;
}

/* The weak comparison of RFC 9110, 13.1.2: W/ in front does not count. Our tags hold no comma. */
bool tg_http_matches(const char *header, const char *etag) {
    size_t n;
    for (const char *at = header, *e; (e = tg_head_element(&at, &n)) != NULL;) {
        if (n == 1 && *e == '*') return true;
        const size_t weak = n > 2 && !strncmp(e, "W/", 2) ? 2 : 0;
        if (n - weak == strlen(etag) && !strncmp(e + weak, etag, n - weak)) return true;
    }
    return false;
}

/* -------------------------------------------------------------------------------- the routes */

static const struct route {
    const char *method, *path;
    tg_route_fn *run;
} routes[] = {
#define TG_ROUTE(method, path, function) { method, path, function },
#include "server/routes.def"
#undef TG_ROUTE
};

/* A pattern ends in '*', if it has one: routes are families of addresses. */
static bool path_fits(const char *pattern, const char *path) {
    const size_t n = strlen(pattern);
    if (n > 0 && pattern[n - 1] == '*') return !strncmp(pattern, path, n - 1);
    return !strcmp(pattern, path);
}

/* HEAD is GET whose body stays here (RFC 9110, 9.3.2): no route has to know of it. */
static bool method_fits(const char *wanted, const char *method) {
    return !strcmp(wanted, method) || (!strcmp(wanted, "GET") && !strcmp(method, "HEAD"));
}

void tg_http_say(tg_reply *reply, unsigned status, const char *sentence) {
    reply->status = status;
    reply->type = "text/plain; charset=utf-8";
    reply->bytes = (const unsigned char *)sentence;
    reply->n_bytes = strlen(sentence);
}

/* An address that is known under another method is told so (405, with Allow): "not found" would be
 * wrong, and a client would look for the mistake in the address. */
void tg_http_route(const tg_request *request, tg_reply *reply) {
    bool known_path = false;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (!path_fits(routes[i].path, request->path)) continue;
        known_path = true;
        if (!method_fits(routes[i].method, request->method)) continue;
        routes[i].run(request, reply);
        return;
    }
    if (known_path) {
        tg_http_say(reply, 405, "This address answers GET and HEAD only.\n");
    } else {
        tg_http_say(reply, 404, "There is no such address here.\n");
    }
}

/* The guard comes before the routes, so that a stranger cannot tell which addresses there are. A
 * body is refused only where the request would have been answered: the other faults say more. */
void tg_http_answer(const tg_head *head, unsigned port, const tg_site *site, tg_reply *reply) {
    memset(reply, 0, sizeof *reply);
    if (!tg_http_is_ours(head->host, head->origin, port)) {
        tg_http_say(reply, 403,
                    "This server answers to 127.0.0.1, localhost and [::1] on its own port, and "
                    "to no page from elsewhere.\n");
        return;
    }
    const tg_request request = { .method = head->method,
                                 .path = head->path,
                                 .accept_coding = head->accept_coding,
                                 .if_none_match = head->if_none_match,
                                 .site = site };
    tg_http_route(&request, reply);
    if (head->has_body && reply->status < 400) {
        memset(reply, 0, sizeof *reply);
        tg_http_say(reply, 413, "This address takes no body.\n");
    }
}

/* ----------------------------------------------------------------------------- texts of replies */

/* What a status is called, and what is said about a request that did not get as far as a route. */
static const struct refusal {
    unsigned status;
    const char *name, *sentence;
} statuses[] = {
    { 200, "OK", "" },
    { 304, "Not Modified", "" },
    { 400, "Bad Request", "This is no request as RFC 9112 wants it.\n" },
    { 403, "Forbidden", "" },
    { 404, "Not Found", "" },
    { 405, "Method Not Allowed", "" },
    { 408, "Request Timeout", "The request did not come to its end in time.\n" },
    { 413, "Content Too Large", "" },
    { 414, "URI Too Long", "The address is too long.\n" },
    { 431, "Request Header Fields Too Large", "The headers are too long.\n" },
    { 501, "Not Implemented", "The only coding of a transfer is chunked.\n" },
    { 503, "Service Unavailable", "Too many wait already.\n" },
    { 505, "HTTP Version Not Supported", "This server speaks HTTP/1.1.\n" },
};

/* A number that is missing in the table would be our mistake; 400 is never wrong about a refusal.
 */
static const struct refusal *status_of(unsigned status) {
    const size_t n = sizeof statuses / sizeof statuses[0];
    for (size_t i = 0; i < n; i++) {
        if (statuses[i].status == status) return &statuses[i];
    }
    return &statuses[2];
}

void tg_http_refuse(unsigned status, tg_reply *reply) {
    memset(reply, 0, sizeof *reply);
    tg_http_say(reply, status, status_of(status)->sentence);
}

/* RFC 9110, 5.6.7. strftime would write days and months in the user's language. */
static void date_text(time_t now, char *out, size_t cap) {
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm t;
    gmtime_r(&now, &t);
    snprintf(out, cap, "%.3s, %02d %.3s %d %02d:%02d:%02d GMT", &days[3 * t.tm_wday], t.tm_mday,
             &months[3 * t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

/* A 304 has no body, and a length would be read as that of the 200 it stands for. What does not fit
 * is no head at all: half of one could say the opposite. */
size_t tg_http_head_text(const tg_reply *reply, bool closes, char *out, size_t cap) {
    char date[64], length[32];
    date_text(time(NULL), date, sizeof date);
    snprintf(length, sizeof length, "%zu", reply->n_bytes);
    const tg_http_header own[] = {
        { "Date", date },
        { "Content-Type", reply->type },
        { "Content-Encoding", reply->coding },
        { "Content-Length", reply->status == 304 ? NULL : length },
        { "ETag", reply->etag[0] ? reply->etag : NULL },
        { "Vary", reply->varies ? "Accept-Encoding" : NULL },
        { "Allow", reply->status == 405 ? "GET, HEAD" : NULL },
        { "Connection", closes ? "close" : NULL },
    };
    int n = snprintf(out, cap, "HTTP/1.1 %u %s\r\n", reply->status, status_of(reply->status)->name);
    for (size_t i = 0; i < sizeof own / sizeof own[0] && (size_t)n < cap; i++) {
        if (!own[i].value) continue;
        n += snprintf(out + n, cap - (size_t)n, "%s: %s\r\n", own[i].name, own[i].value);
    }
    for (const tg_http_header *h = tg_http_headers; h->name && (size_t)n < cap; h++) {
        n += snprintf(out + n, cap - (size_t)n, "%s: %s\r\n", h->name, h->value);
    }
    if ((size_t)n < cap) n += snprintf(out + n, cap - (size_t)n, "\r\n");
    return (size_t)n < cap ? (size_t)n : 0;
}
