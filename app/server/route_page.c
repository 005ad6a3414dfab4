/*
 * route_page.c - GET /...: the files of the page.
 *
 * A browser may keep a file but must ask each time whether it is still the one (no-cache and an
 * entity tag): the page is updated by building the program anew, and asking costs nothing here.
 * Ranges are not offered; the largest file is a module of some hundred kilobytes.
 */
#include "server/http.h"

#include <stdio.h>
#include <string.h>

void tg_route_page(const tg_request *request, tg_reply *reply) {
    const tg_site_file *file = tg_site_find(request->site, request->path);
    if (!file) {
        tg_http_say(reply, 404, "There is no such file on this page.\n");
        return;
    }
    /* Two bodies are two representations, and a strong tag belongs to one of them. */
    const bool packed = file->gzip && tg_http_accepts(request->accept_coding, "gzip");
    snprintf(reply->etag, sizeof reply->etag, "%.*s%s\"", (int)strlen(file->etag) - 1, file->etag,
             packed ? "-gzip" : "");
    reply->varies = file->gzip != NULL;
    if (request->if_none_match && tg_http_matches(request->if_none_match, reply->etag)) {
        reply->status = 304;
        return;
    }
    reply->status = 200;
    reply->type = file->type;
    reply->coding = packed ? "gzip" : NULL;
    reply->bytes = packed ? file->gzip : file->bytes;
    reply->n_bytes = packed ? file->n_gzip : file->n_bytes;
}
