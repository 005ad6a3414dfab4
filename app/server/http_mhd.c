/*
 * http_mhd.c - the server on top of libmicrohttpd, which parses HTTP (see http.h).
 *
 * One thread of the library answers everything; every body is memory that outlives the server, so
 * it is never copied. Limits, against clients that do not behave: the head of a request and of its
 * reply share 32 KB (a longer head gets 431 or 414 from the library while it is being read), a
 * connection on which nothing moves for ten seconds is closed, and there are at most 128 of them.
 * No request has a body.
 */
#include "server/http.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD_BYTES_MAX = 32 * 1024, IDLE_S = 10, CONNECTIONS_MAX = 128 };

struct tg_http {
    struct MHD_Daemon *daemon;
    const tg_site *site;
    unsigned port;
};

const char *tg_http_missing(void) { return NULL; }

/* Leaves %2e and its like as they came. No file of the page has such a name, so they end in 404. */
static size_t no_unescape(void *user, struct MHD_Connection *connection, char *text) {
    (void)user, (void)connection;
    return strlen(text);
}

static enum MHD_Result count_host(void *user, enum MHD_ValueKind kind, const char *key,
                                  const char *value) {
    (void)kind, (void)value;
    *(unsigned *)user += !strcasecmp(key, "Host");
    return MHD_YES;
}

static const char *header(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool has_body(struct MHD_Connection *connection) {
    const char *length = header(connection, "Content-Length");
    return header(connection, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

static void answer(const tg_http *http, struct MHD_Connection *connection, const char *url,
                   const char *method, tg_reply *reply) {
    unsigned n_hosts = 0;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &n_hosts);
    const unsigned refused = tg_http_guard(header(connection, "Host"), n_hosts,
                                           header(connection, "Origin"), http->port);
    if (refused == 400) {
        tg_http_say(reply, 400, "A request must say once which host it is for.\n");
    } else if (refused) {
        tg_http_say(reply, refused,
                    "This server answers to 127.0.0.1, localhost and [::1] on its own port, and "
                    "to no page from elsewhere.\n");
    } else {
        const tg_request request = { .method = method,
                                     .path = url,
                                     .accept_coding = header(connection, "Accept-Encoding"),
                                     .if_none_match = header(connection, "If-None-Match"),
                                     .site = http->site };
        tg_http_route(&request, reply);
    }
}

/* The library drops headers that it cannot hold; then it is better to give no reply at all. */
static enum MHD_Result add_headers(struct MHD_Response *response, const tg_reply *reply) {
    for (const tg_http_header *h = tg_http_headers; h->name; h++) {
        if (!MHD_add_response_header(response, h->name, h->value)) return MHD_NO;
    }
    const tg_http_header own[] = {
        { "Content-Type", reply->type },
        { "Content-Encoding", reply->coding },
        { "ETag", reply->etag[0] ? reply->etag : NULL },
        { "Vary", reply->varies ? "Accept-Encoding" : NULL },
        { "Allow", reply->status == 405 ? "GET, HEAD" : NULL },
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (own[i].value && !MHD_add_response_header(response, own[i].name, own[i].value)) {
            return MHD_NO;
        }
    }
    return MHD_YES;
}

/*
 * The library calls this when the head is there and again when the request is complete. A good
 * request is answered the second time, so that the connection stays open for the next one; one
 * with a body is answered at once, and the library closes without reading it.
 */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *n_upload, void **state) {
    (void)version, (void)upload, (void)n_upload;
    static int head_seen;
    const tg_http *http = user;
    const bool body = has_body(connection);
    if (!*state && !body) {
        *state = &head_seen;
        return MHD_YES;
    }
    tg_reply reply = { 0 };
    answer(http, connection, url, method, &reply);
    if (body && reply.status < 400) {
        memset(&reply, 0, sizeof reply);
        tg_http_say(&reply, 413, "This address takes no body.\n");
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply.n_bytes, (void *)(uintptr_t)reply.bytes, MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    enum MHD_Result result = add_headers(response, &reply);
    if (result && body) result = MHD_add_response_header(response, "Connection", "close");
    if (result) result = MHD_queue_response(connection, reply.status, response);
    MHD_destroy_response(response);
    return result;
}

tg_http *tg_http_start(int socket, unsigned port, const tg_site *site) {
    tg_http *http = calloc(1, sizeof *http);
    if (!http) return NULL;
    http->site = site;
    http->port = port;
    http->daemon = MHD_start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, http,
        MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEAD_BYTES_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_UNESCAPE_CALLBACK,
        no_unescape, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!http->daemon) {
        free(http);
        return NULL;
    }
    return http;
}

void tg_http_stop(tg_http *http) {
    if (!http) return;
    MHD_stop_daemon(http->daemon);
    free(http);
}
