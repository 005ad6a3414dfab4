/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head.h - the head of an HTTP/1 request: checked to the letter of RFC 9112, and taken apart.
 *
 * A function of bytes alone: no socket, no clock, no memory of its own. Bytes may come in pieces of
 * any size; every byte is looked at once, and the verdict is the same as for all of them at once.
 *
 *     tg_head head = { 0 };
 *     while ((status = tg_head_read(&head, bytes, n)) == TG_HEAD_MORE) n += more(bytes + n);
 *
 * The texts in a tg_head lie in bytes, each with a zero behind it that took the place of a
 * separator; so bytes must stay where they are until the request is answered.
 */
#ifndef TG_APP_SERVER_HEAD_H
#define TG_APP_SERVER_HEAD_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TG_HEAD_MORE = 0,  /* well so far; the end of the head has not come */
    TG_HEAD_WHOLE = 1, /* n_read bytes are a good head; what lies behind them is the next request */
    /* Anything else is the status of the refusal: 400, 414, 431, 501, 505. */
    TG_HEAD_BYTES_MAX = 32 * 1024 /* request line and headers; beyond it 414 or 431 */
};

/* Zeros before the first call. All but the texts at the end is for tg_head_read itself. */
typedef struct tg_head {
    size_t n_read;  /* bytes that have been looked at */
    size_t n_line;  /* where the line begins that these end in */
    size_t n_lines; /* whole ones, an empty one in front of the request among them */
    bool has_request;
    const char *authority; /* of a request target in absolute form */
    unsigned n_hosts, n_origins, n_lengths, n_codings;

    const char *method, *path; /* percent signs are not decoded, the query is cut off */
    const char *host, *origin, *accept_coding, *if_none_match; /* NULL: did not come */
    unsigned minor;                                            /* of HTTP/1.x */
    bool has_body;    /* announced by Content-Length or Transfer-Encoding */
    bool wants_close; /* the client sends no further request on this connection */
} tg_head;

/*
 * Looks at bytes [0, n), of which the first n_read were there in the call before. n may be more
 * than TG_HEAD_BYTES_MAX only if the head ends before that. After a refusal there is no next call:
 * where the next request begins is not known.
 *
 * Refused: a line that ends in a bare LF, a bare CR, control characters anywhere, a header that
 * goes on in the next line, blanks before the colon, an empty name, a name or method that is no
 * token, a request line with other blanks than its two, a target that is no path of ours, no Host,
 * two of Host, Origin, Content-Length or Transfer-Encoding, both of the last two, a length that is
 * no number, a coding that is not chunked.
 */
unsigned tg_head_read(tg_head *head, char *bytes, size_t n);

/* The next element of a comma-separated header (RFC 9110, 5.6.1), n bytes without the blanks around
 * it; NULL at its end. *at is where the next one is looked for: the header's text at first. */
const char *tg_head_element(const char **at, size_t *n);

#endif
