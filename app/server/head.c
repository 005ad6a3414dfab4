/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head.c - the rules of RFC 9112 for the head of a request (see head.h).
 *
 * What two programs can read in two ways is refused, not put right: whoever stands in front of this
 * server, a browser or a proxy, must see the same request as it does. Section numbers below are of
 * RFC 9112 where nothing else is said.
 */
#include "server/head.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

enum { BAD = 400, LONG_TARGET = 414, LONG_HEAD = 431, NO_CODING = 501, NO_VERSION = 505 };

/* The characters of a token (RFC 9110, 5.6.2), of which methods and names of headers consist. */
static size_t token_bytes(const char *text) {
    return strspn(text, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "abcdefghijklmnopqrstuvwxyz");
}

#define BLANKS " \t" /* RFC 9110, 5.6.3 */

/* Bytes of [text, text + n) without the blanks at the end. */
static size_t without_blanks(const char *text, size_t n) {
    while (n > 0 && strchr(BLANKS, text[n - 1])) n--;
    return n;
}

/* Empty elements are allowed, and are none. */
const char *tg_head_element(const char **at, size_t *n) {
    const char *element = *at + strspn(*at, "," BLANKS);
    *n = strcspn(element, ",");
    *at = element + *n;
    *n = without_blanks(element, *n);
    return *element ? element : NULL;
}

/* ---------------------------------------------------------------------------- the request line */

/* 2.3: "HTTP/" DIGIT "." DIGIT. A minor version that is not known yet means what 1.1 means. */
static unsigned read_version(tg_head *head, const char *text) {
    if (strlen(text) != 8 || memcmp(text, "HTTP/", 5) != 0 || text[6] != '.') return BAD;
    if (text[5] < '0' || text[5] > '9' || text[7] < '0' || text[7] > '9') return BAD;
    if (text[5] != '1') return NO_VERSION;
    head->minor = (unsigned)(text[7] - '0');
    return 0;
}

/*
 * 3.2: a path, or an address with one, or for OPTIONS a star. The address's host must be that of
 * the Host header, which is compared at the end. Beyond ASCII there is nothing in an address, and
 * what follows a '#' never leaves a browser.
 */
static unsigned read_target(tg_head *head, char *target) {
    static const char scheme[] = "http://";
    for (const char *p = target; *p; p++) {
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '#') return BAD;
    }
    char *path = target;
    if (!strncasecmp(target, scheme, sizeof scheme - 1)) {
        char *authority = target + sizeof scheme - 1;
        path = authority + strcspn(authority, "/?");
        if (path == authority || *path != '/') return BAD;
        /* One to the left, so that there is a place for the zero between the two. */
        memmove(authority - 1, authority, (size_t)(path - authority));
        path[-1] = '\0';
        head->authority = authority - 1;
    } else if (*target != '/' && !(!strcmp(target, "*") && !strcmp(head->method, "OPTIONS"))) {
        return BAD;
    }
    path[strcspn(path, "?")] = '\0';
    head->path = path;
    return 0;
}

/* 3: method SP target SP version, with exactly these two blanks. */
static unsigned read_request(tg_head *head, char *line) {
    const size_t n_method = token_bytes(line);
    if (n_method == 0 || line[n_method] != ' ') return BAD;
    line[n_method] = '\0';
    char *target = line + n_method + 1;
    char *end = strchr(target, ' ');
    if (!end || end == target) return BAD;
    *end = '\0';
    head->method = line;
    head->has_request = true;
    const unsigned refused = read_version(head, end + 1);
    return refused ? refused : read_target(head, target);
}

/* --------------------------------------------------------------------------------- the headers */

/* 6.2: digits. Of a length only "none" and "some" matter here, but one beyond 64 bits is a trick.
 */
static unsigned read_length(tg_head *head, const char *value) {
    if (head->n_lengths++ > 0) return BAD;
    uint64_t length = 0;
    if (!*value) return BAD;
    for (; *value; value++) {
        if (*value < '0' || *value > '9') return BAD;
        const uint64_t digit = (uint64_t)(*value - '0');
        if (length > (UINT64_MAX - digit) / 10) return BAD;
        length = length * 10 + digit;
    }
    if (length > 0) head->has_body = true;
    return 0;
}

/* 6.1: one coding, the one that every server knows. No client sends another one to a server that
 * it has not asked. */
static unsigned read_coding(tg_head *head, const char *value) {
    if (head->n_codings++ > 0 || head->minor == 0) return BAD;
    head->has_body = true;
    if (!strcasecmp(value, "chunked")) return 0;
    return *value && token_bytes(value) == strlen(value) ? NO_CODING : BAD;
}

/* RFC 9110, 7.6.1: a list of options. Of HTTP/1.0 only who asks for it keeps a connection; here
 * nobody needs that. */
static void read_connection(tg_head *head, const char *value) {
    size_t n;
    for (const char *e; (e = tg_head_element(&value, &n)) != NULL;) {
        if (n == 5 && !strncasecmp(e, "close", n)) head->wants_close = true;
    }
}

/* A list that comes in several headers is as good as its first part: a coding that is not seen is
 * not used, and a tag that is not seen does not match. Both cost bytes only. */
static unsigned keep_first(const char **field, const char *value) {
    if (!*field) *field = value;
    return 0;
}

static unsigned read_header(tg_head *head, char *line) {
    const size_t n_name = token_bytes(line);
    /* 5.2: a line that begins with a blank goes on with the one before; 5.1: no blank in front of
     * the colon. Both are no token followed by a colon. */
    if (n_name == 0 || line[n_name] != ':') return BAD;
    line[n_name] = '\0';
    char *value = line + n_name + 1;
    value += strspn(value, BLANKS);
    value[without_blanks(value, strlen(value))] = '\0';
    /* All other headers are none of our business, and may come as often as they like. */
    if (!strcasecmp(line, "Host")) {
        head->host = value;
        return head->n_hosts++ > 0 ? BAD : 0;
    }
    if (!strcasecmp(line, "Origin")) {
        head->origin = value;
        return head->n_origins++ > 0 ? BAD : 0;
    }
    if (!strcasecmp(line, "Content-Length")) return read_length(head, value);
    if (!strcasecmp(line, "Transfer-Encoding")) return read_coding(head, value);
    if (!strcasecmp(line, "Connection")) read_connection(head, value);
    if (!strcasecmp(line, "Accept-Encoding")) return keep_first(&head->accept_coding, value);
    if (!strcasecmp(line, "If-None-Match")) return keep_first(&head->if_none_match, value);
    return 0;
}

/* What can be said only when all headers are there. A length beside a coding is how a request is
 * smuggled past a proxy that believes the other one (6.3). */
static unsigned read_end(tg_head *head) {
    if (!head->host) return BAD;
    if (head->n_lengths && head->n_codings) return BAD;
    if (head->authority && strcasecmp(head->authority, head->host) != 0) return BAD;
    if (head->minor == 0) head->wants_close = true;
    return TG_HEAD_WHOLE;
}

/* ----------------------------------------------------------------------------------- the lines */

static unsigned read_line(tg_head *head, char *line) {
    if (*line == '\0' && head->has_request) return read_end(head);
    /* 2.2: one empty line in front of the request is a habit of old clients. */
    if (*line == '\0') return head->n_lines > 0 ? BAD : TG_HEAD_MORE;
    return head->has_request ? read_header(head, line) : read_request(head, line);
}

/* Byte by byte, so that the verdict does not depend on how the network has cut the head. A line is
 * ended in place by a zero where its CR was: no text is ever copied. */
unsigned tg_head_read(tg_head *head, char *bytes, size_t n) {
    while (head->n_read < n) {
        if (head->n_read == TG_HEAD_BYTES_MAX) return head->has_request ? LONG_HEAD : LONG_TARGET;
        const size_t at = head->n_read++;
        const unsigned char c = (unsigned char)bytes[at];
        const bool after_cr = at > head->n_line && bytes[at - 1] == '\r';
        /* 2.2: CR and LF come in pairs only; RFC 9110, 5.5: no other control character but TAB. */
        if (after_cr != (c == '\n')) return BAD;
        if ((c < ' ' && !strchr("\t\r\n", c)) || c == 0 || c == 0x7f) return BAD;
        if (c != '\n') continue;
        char *line = bytes + head->n_line;
        bytes[at - 1] = '\0';
        head->n_line = head->n_read;
        const unsigned status = read_line(head, line);
        if (status != TG_HEAD_MORE) return status;
        head->n_lines++;
    }
    return TG_HEAD_MORE;
}
