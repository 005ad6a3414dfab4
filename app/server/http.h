/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - the web server behind `tinygpt serve`: requests in, replies out, one socket on
 * 127.0.0.1.
 *
 *     socket -> http_loop.c (clocks, limits) -> head.c (RFC 9112) -> guard (names, origins)
 *            -> a route -> reply
 *
 * A route is a file app/server/route_<name>.c and a line in routes.def. It sees a tg_request and
 * fills in a tg_reply; sockets, the security headers and the guard are none of its business.
 * Routes run on the server's one thread and must not wait.
 *
 * What a page from elsewhere may do: nothing. A name that somebody points at 127.0.0.1 (DNS
 * rebinding) fails at the Host header, a request sent by another page at its Origin header, and
 * every reply says that only this origin may load it. The headers also isolate the page, which is
 * what a browser asks for before it shares memory between threads.
 */
#ifndef TG_APP_SERVER_HTTP_H
#define TG_APP_SERVER_HTTP_H

#include "server/head.h"
#include "server/site.h"

/* All strings are borrowed for the call; a header that did not come is NULL. */
typedef struct tg_request {
    const char *method;        /* "GET", "HEAD", ... */
    const char *path;          /* as it came: percent signs are not decoded, the query is cut off */
    const char *accept_coding; /* Accept-Encoding */
    const char *if_none_match;
    const tg_site *site;
} tg_request;

/* The bytes belong to the site of the request, or are a literal. */
typedef struct tg_reply {
    unsigned status;
    const char *type; /* media type; NULL for a reply without a body */
    const unsigned char *bytes;
    size_t n_bytes;
    const char *coding;                /* "br", "gzip", or NULL */
    bool varies;                       /* another Accept-Encoding gives another reply */
    char etag[TG_SITE_ETAG_BYTES + 8]; /* "" for none */
} tg_reply;

typedef void tg_route_fn(const tg_request *request, tg_reply *reply);

#define TG_ROUTE(method, path, function) tg_route_fn function;
#include "server/routes.def"
#undef TG_ROUTE

/* --------------------------------------------------------------------------------- the guard */

/* May this request be answered at all? Its Host must be a name of ours with our port, and so must
 * its Origin, where there is one (NULL: none). */
bool tg_http_is_ours(const char *host, const char *origin, unsigned port);

/* Finds the route and runs it; 404 and 405 are replies, too. */
void tg_http_route(const tg_request *request, tg_reply *reply);

/* A reply of one plain sentence, which must be a literal. */
void tg_http_say(tg_reply *reply, unsigned status, const char *sentence);

/* The whole of the above: guard, route, and no request with a body. */
void tg_http_answer(const tg_head *head, unsigned port, const tg_site *site, tg_reply *reply);

/* The reply to a request that was not understood, or that did not come to its end. */
void tg_http_refuse(unsigned status, tg_reply *reply);

/* Status line and headers of a reply in out, with the empty line; returns how many bytes, 0 if they
 * are more than cap. closes: the client is told that no further request is read. */
size_t tg_http_head_text(const tg_reply *reply, bool closes, char *out, size_t cap);

/* Does an Accept-Encoding header allow this coding? */
bool tg_http_accepts(const char *header, const char *coding);

/* Does an If-None-Match header name this tag? */
bool tg_http_matches(const char *header, const char *etag);

/* The headers of every reply, errors included: {name, value} pairs up to a NULL. */
typedef struct tg_http_header {
    const char *name, *value;
} tg_http_header;
extern const tg_http_header tg_http_headers[];

/* ------------------------------------------------------------------------------- the server */

typedef struct tg_http tg_http;

/*
 * Serves on a listening socket, which the server closes. folder is where the site was read from, to
 * be looked at again as long as the server runs; NULL: the site never changes. Both are borrowed
 * until tg_http_stop. The signals that are blocked in the caller stay blocked in the server's
 * thread. NULL if it could not be started.
 */
tg_http *tg_http_start(int socket, unsigned port, const tg_site *site, const char *folder);

/* Ends the connections that are open and waits for the thread. NULL is allowed. */
void tg_http_stop(tg_http *http);

#endif
