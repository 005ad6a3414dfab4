/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route_page.c - GET /...: the files of the page.
 *
 * A browser may keep a file but must ask each time whether it is still the one (no-cache and an
 * entity tag): the page is updated by building the program anew, and asking costs nothing here.
 * Ranges are not offered; the largest file is a module of some hundred kilobytes.
 *
 * Beside FILE the page may have FILE.br, the same in brotli's format, which goes out as FILE to who
 * takes it.
 */
#include "server/http.h"

#include <stdio.h>
#include <string.h>

static const tg_site_file *brotli_of(const tg_request *request, const tg_site_file *file) {
    char path[512];
    const int n = snprintf(path, sizeof path, "%s.br", file->path);
    return (size_t)n < sizeof path ? tg_site_find(request->site, path) : NULL;
}

/* A file as it goes out. */
typedef struct body {
    const char *coding; /* NULL: as it is */
    const unsigned char *bytes;
    size_t n_bytes;
} body;

/* The smallest one that is taken. */
static body body_of(const tg_request *request, const tg_site_file *file,
                    const tg_site_file *brotli) {
    const char *accepted = request->accept_coding;
    if (brotli && tg_http_accepts(accepted, "br"))
        return (body) { "br", brotli->bytes, brotli->n_bytes };
    if (file->gzip && tg_http_accepts(accepted, "gzip"))
        return (body) { "gzip", file->gzip, file->n_gzip };
    return (body) { NULL, file->bytes, file->n_bytes };
}

void tg_route_page(const tg_request *request, tg_reply *reply) {
    const tg_site_file *file = tg_site_find(request->site, request->path);
    if (!file) {
        tg_http_say(reply, 404, "There is no such file on this page.\n");
        return;
    }
    const tg_site_file *brotli = brotli_of(request, file);
    const body out = body_of(request, file, brotli);
    /* Each body is a representation, and a strong tag belongs to one of them. */
    snprintf(reply->etag, sizeof reply->etag, "%.*s%s%s\"", (int)strlen(file->etag) - 1, file->etag,
             out.coding ? "-" : "", out.coding ? out.coding : "");
    reply->varies = file->gzip || brotli;
    if (request->if_none_match && tg_http_matches(request->if_none_match, reply->etag)) {
        reply->status = 304;
        return;
    }
    reply->status = 200;
    reply->type = file->type;
    reply->coding = out.coding;
    reply->bytes = out.bytes;
    reply->n_bytes = out.n_bytes;
}
