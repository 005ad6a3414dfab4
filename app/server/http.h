/*
 * http.h - the web server behind `tinygpt serve`: requests in, replies out, one socket on
 * 127.0.0.1.
 *
 *     socket -> http_mhd.c (libmicrohttpd) -> guard (names, origins, methods) -> a route -> reply
 *
 * A route is a file app/server/route_<name>.c and a line in routes.def. It sees a tg_request and
 * fills in a tg_reply; the library, the security headers and the guard are none of its business.
 * Routes run on the server's one thread and must not wait.
 *
 * What a page from elsewhere may do: nothing. A name that somebody points at 127.0.0.1 (DNS
 * rebinding) fails at the Host header, a request sent by another page at its Origin header, and
 * every reply says that only this origin may load it. The headers also isolate the page, which is
 * what a browser asks for before it shares memory between threads.
 */
#ifndef TG_APP_SERVER_HTTP_H
#define TG_APP_SERVER_HTTP_H

#include "server/site.h"

/* All strings are borrowed for the call; a header that did not come is NULL. */
typedef struct tg_request {
    const char *method;        /* "GET", "HEAD", ... */
    const char *path;          /* as it came: percent signs are not decoded, the query is cut off */
    const char *accept_coding; /* Accept-Encoding */
    const char *if_none_match;
    const tg_site *site;
} tg_request;

/* The bytes are borrowed until the server stops. */
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

/*
 * Decides what the server says before any route sees the request: returns 0 to go on, or the
 * status of a refusal. n_hosts counts the Host headers; host and origin are the first of each.
 *   400  no Host header or several        403  a name or an origin that is not ours
 */
unsigned tg_http_guard(const char *host, unsigned n_hosts, const char *origin, unsigned port);

/* Finds the route and runs it; 404 and 405 are replies, too. */
void tg_http_route(const tg_request *request, tg_reply *reply);

/* A reply of one plain sentence, which must be a literal. */
void tg_http_say(tg_reply *reply, unsigned status, const char *sentence);

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

/* Why there is no server in this program, NULL if there is one. */
const char *tg_http_missing(void);

/*
 * Serves on a listening socket, which the server closes. The signals that are blocked in the caller
 * stay blocked in the server's thread. NULL if it could not be started.
 */
tg_http *tg_http_start(int socket, unsigned port, const tg_site *site);

/* Ends the connections that are open and waits for the thread. NULL is allowed. */
void tg_http_stop(tg_http *http);

#endif
