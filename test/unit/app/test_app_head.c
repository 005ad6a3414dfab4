/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_app_head.c - heads of requests: what is taken apart, what is refused, in pieces of any size.
 */
#include "server/head.h"
#include "server/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Memory of exactly n bytes, so that a sanitizer sees one byte too many. The caller frees *bytes.
 */
static unsigned read_in_pieces(const char *text, size_t n, size_t piece, tg_head *head,
                               char **bytes) {
    *bytes = malloc(n ? n : 1);
    memset(head, 0, sizeof *head);
    unsigned status = TG_HEAD_MORE;
    for (size_t have = 0; status == TG_HEAD_MORE && have < n;) {
        const size_t more = piece < n - have ? piece : n - have;
        memcpy(*bytes + have, text + have, more);
        have += more;
        status = tg_head_read(head, *bytes, have);
    }
    return status;
}

/* The verdict must not depend on how the bytes come. */
static unsigned status_of(const char *text, size_t n) {
    tg_head head;
    char *bytes;
    const unsigned whole = read_in_pieces(text, n, n, &head, &bytes);
    free(bytes);
    for (size_t piece = 1; piece < 8; piece += 2) {
        assert_int_equal(read_in_pieces(text, n, piece, &head, &bytes), whole);
        free(bytes);
    }
    return whole;
}

#define GET(headers)       "GET / HTTP/1.1\r\nHost: h\r\n" headers "\r\n"
#define TARGET(target)     "GET " target " HTTP/1.1\r\nHost: h\r\n\r\n"
#define CASE(status, text) { status, text, sizeof(text) - 1 }

static const struct {
    unsigned status;
    const char *text;
    size_t n;
} cases[] = {
    /* Good ones. */
    CASE(TG_HEAD_WHOLE, GET("")),
    CASE(TG_HEAD_WHOLE, "\r\n" GET("")),
    CASE(TG_HEAD_WHOLE, GET("X:\r\nY: \t \r\nZ:a\tb \x80\xff\r\n")),
    CASE(TG_HEAD_WHOLE, GET("Content-Length: 0\r\n")),
    CASE(TG_HEAD_WHOLE, GET("Content-Length: 18446744073709551615\r\n")),
    CASE(TG_HEAD_WHOLE, GET("Transfer-Encoding: Chunked\r\n")),
    CASE(TG_HEAD_WHOLE, GET("Cookie: a=b\r\nCookie: a=b\r\n")),
    CASE(TG_HEAD_WHOLE, "GET / HTTP/1.0\r\nHost: h\r\n\r\n"),
    CASE(TG_HEAD_WHOLE, "GET / HTTP/1.7\r\nHost: h\r\n\r\n"),
    CASE(TG_HEAD_WHOLE, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(TG_HEAD_WHOLE, "!#$%&'*+-.^_`|~09azAZ / HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(TG_HEAD_WHOLE, TARGET("/a?b=c&d|\\\"")),
    CASE(TG_HEAD_WHOLE, TARGET("http://h/a")),
    CASE(TG_HEAD_WHOLE, TARGET("HTTP://H/")),
    /* Not yet. */
    CASE(TG_HEAD_MORE, ""),
    CASE(TG_HEAD_MORE, "\r"),
    CASE(TG_HEAD_MORE, "\r\n"),
    CASE(TG_HEAD_MORE, "GET / HTTP/1.1\r\nHost: h\r\n"),
    CASE(TG_HEAD_MORE, "GET / HTTP/1.1\r\nHost: h\r\n\r"),
    /* Ends of lines, and control characters. */
    CASE(400, "\n"),
    CASE(400, "GET / HTTP/1.1\nHost: h\n\n"),
    CASE(400, "GET / HTTP/1.1\r\nHost: h\n\r\n"),
    CASE(400, "GET / HTTP/1.1\r\nHost: h\r\n\n"),
    CASE(400, GET("X: a\rb\r\n")),
    CASE(400, GET("X: a\r\r\n")),
    CASE(400, "GET /\r HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, GET("X: a\0b\r\n")),
    CASE(400, GET("X\0: a\r\n")),
    CASE(400, "GET / HTTP/1.1\r\nHost: h\0.evil\r\n\r\n"),
    CASE(400, TARGET("/\0")),
    CASE(400, "G\0ET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, GET("X: a\x01\r\n")),
    CASE(400, GET("X: a\x1f\r\n")),
    CASE(400, GET("X: a\x7f\r\n")),
    CASE(400, "\0"),
    /* The request line. */
    CASE(400, "\r\n\r\n" GET("")),
    CASE(400, "GET\r\n\r\n"),
    CASE(400, "GET /\r\n\r\n"),
    CASE(400, "GET / \r\n\r\n"),
    CASE(400, " GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, "GET  / HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, "GET /  HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, "GET / HTTP/1.1 \r\nHost: h\r\n\r\n"),
    CASE(400, "GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, "GET /\tHTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, "GET / a HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, "G ET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, "G(T / HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, "GET / http/1.1\r\nHost: h\r\n\r\n"),
    CASE(400, "GET / HTTP/1.11\r\nHost: h\r\n\r\n"),
    CASE(400, "GET / HTTP/11\r\nHost: h\r\n\r\n"),
    CASE(400, "GET / HTTP/1,1\r\nHost: h\r\n\r\n"),
    CASE(400, "GET / HTTP/a.1\r\nHost: h\r\n\r\n"),
    CASE(505, "GET / HTTP/2.0\r\nHost: h\r\n\r\n"),
    CASE(505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    CASE(400, TARGET("index.html")),
    CASE(400, TARGET("*")),
    CASE(400, TARGET("/a#b")),
    CASE(400, TARGET("/\xc3\xa9")),
    CASE(400, TARGET("https://h/")),
    CASE(400, TARGET("http://h")),
    CASE(400, TARGET("http:///")),
    CASE(400, TARGET("http://h?x/")),
    CASE(400, TARGET("http://evil/")),
    CASE(400, TARGET("http://u@h/")),
    /* Headers. */
    CASE(400, "GET / HTTP/1.1\r\n Host: h\r\n\r\n"),
    CASE(400, GET("X: a\r\n b\r\n")),
    CASE(400, GET("X: a\r\n\tb\r\n")),
    CASE(400, GET("X : a\r\n")),
    CASE(400, GET("X\t: a\r\n")),
    CASE(400, GET(": a\r\n")),
    CASE(400, GET("X\r\n")),
    CASE(400, GET("X(: a\r\n")),
    CASE(400, GET("X\xc3\xa9: a\r\n")),
    CASE(400, "GET / HTTP/1.1\r\n\r\n"),
    CASE(400, GET("host: h\r\n")),
    CASE(400, GET("HOST: other\r\n")),
    CASE(400, GET("Origin: http://h\r\norigin: http://h\r\n")),
    /* Lengths and codings. */
    CASE(400, GET("Content-Length: 0\r\nContent-Length: 40\r\n")),
    CASE(400, GET("Content-Length: 0\r\nContent-length: 0\r\n")),
    CASE(400, GET("Content-Length: 1,1\r\n")),
    CASE(400, GET("Content-Length: +0\r\n")),
    CASE(400, GET("Content-Length: -1\r\n")),
    CASE(400, GET("Content-Length: 0x0\r\n")),
    CASE(400, GET("Content-Length:\r\n")),
    CASE(400, GET("Content-Length: 1 2\r\n")),
    CASE(400, GET("Content-Length: 18446744073709551616\r\n")),
    CASE(400, GET("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n")),
    CASE(400, GET("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
    CASE(400, GET("Transfer-Encoding : chunked\r\n")),
    CASE(400, GET("Transfer-Encoding:\r\n chunked\r\n")),
    CASE(400, GET("Transfer-Encoding:\r\n")),
    CASE(400, GET("Transfer-Encoding: gzip, chunked\r\n")),
    CASE(400, GET("Transfer-Encoding: chunked;a=b\r\n")),
    CASE(501, GET("Transfer-Encoding: identity\r\n")),
    CASE(501, GET("Transfer-Encoding: xchunked\r\n")),
    CASE(400, "GET / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"),
};

static void verdicts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const unsigned have = status_of(cases[i].text, cases[i].n);
        if (have != cases[i].status)
            print_message("%zu bytes of:\n%s\n", cases[i].n, cases[i].text);
        assert_int_equal(have, cases[i].status);
    }
}

/* A head that is cut off anywhere asks for more, and any byte of it that becomes a zero ends it. */
static void every_cut_and_every_zero(void **state) {
    (void)state;
    static const char text[] = GET("Accept-Encoding: gzip\r\nOrigin: http://h\r\n");
    char changed[sizeof text];
    for (size_t n = 0; n + 1 < sizeof text; n++) {
        assert_int_equal(status_of(text, n), TG_HEAD_MORE);
        memcpy(changed, text, sizeof text);
        changed[n] = '\0';
        assert_int_equal(status_of(changed, sizeof text - 1), 400);
    }
    assert_int_equal(status_of(text, sizeof text - 1), TG_HEAD_WHOLE);
}

static void parts(void **state) {
    (void)state;
    static const char text[] = "GET http://a:1/b/%2e?c=/d HTTP/1.1\r\nhOST: \t A:1 \r\n"
                               "Accept-Encoding:gzip\r\nAccept-Encoding: br\r\n"
                               "If-None-Match: \"x\", \"y\"\r\nOrigin: null\r\n"
                               "Connection: keep-alive, Close\r\nContent-Length: 5\r\n\r\nhello";
    tg_head head;
    char *bytes;
    assert_int_equal(read_in_pieces(text, sizeof text - 1, sizeof text - 1, &head, &bytes),
                     TG_HEAD_WHOLE);
    assert_string_equal(head.method, "GET");
    assert_string_equal(head.path, "/b/%2e");
    assert_string_equal(head.host, "A:1");
    assert_string_equal(head.origin, "null");
    assert_string_equal(head.accept_coding, "gzip");
    assert_string_equal(head.if_none_match, "\"x\", \"y\"");
    assert_int_equal(head.minor, 1);
    assert_true(head.has_body);
    assert_true(head.wants_close);
    assert_int_equal(head.n_read, sizeof text - 1 - 5);
    free(bytes);

    assert_int_equal(read_in_pieces(GET(""), sizeof GET("") - 1, 1, &head, &bytes), TG_HEAD_WHOLE);
    assert_null(head.origin);
    assert_null(head.accept_coding);
    assert_null(head.if_none_match);
    assert_false(head.has_body);
    assert_false(head.wants_close);
    free(bytes);

    static const char old[] = "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n";
    assert_int_equal(read_in_pieces(old, sizeof old - 1, 1, &head, &bytes), TG_HEAD_WHOLE);
    assert_true(head.wants_close);
    free(bytes);
}

/* RFC 9110, 5.6.1 and 5.6.3: blanks around an element are none of it, those inside are. */
static void elements(void **state) {
    (void)state;
    static const struct {
        const char *header, *elements; /* each in brackets */
    } lists[] = {
        { "", "" },
        { " \t,, \t", "" },
        { "close", "[close]" },
        { "\t a \t,b;q=0 , , c d\t", "[a][b;q=0][c d]" },
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char have[64] = "";
        size_t n;
        for (const char *at = lists[i].header, *e; (e = tg_head_element(&at, &n)) != NULL;) {
            snprintf(have + strlen(have), sizeof have - strlen(have), "[%.*s]", (int)n, e);
        }
        assert_string_equal(have, lists[i].elements);
    }
    static const char odd[] = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close keep-alive\r\n\r\n";
    tg_head head;
    char *bytes;
    assert_int_equal(read_in_pieces(odd, sizeof odd - 1, 1, &head, &bytes), TG_HEAD_WHOLE);
    assert_false(head.wants_close);
    free(bytes);
}

/* A head of n bytes with a filling where it is asked for. */
static unsigned filled(const char *front, const char *back, size_t n) {
    char *text = malloc(n + 1);
    const size_t n_front = strlen(front), n_back = strlen(back);
    memcpy(text, front, n_front);
    memset(text + n_front, 'a', n - n_front - n_back);
    memcpy(text + n - n_back, back, n_back + 1);
    tg_head head;
    char *bytes;
    const unsigned status = read_in_pieces(text, n, 4096, &head, &bytes);
    free(bytes);
    free(text);
    return status;
}

static void limits(void **state) {
    (void)state;
    const char *front = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
    assert_int_equal(filled(front, "\r\n\r\n", TG_HEAD_BYTES_MAX), TG_HEAD_WHOLE);
    assert_int_equal(filled(front, "\r\n\r\n", TG_HEAD_BYTES_MAX + 1), 431);
    front = "GET /";
    assert_int_equal(filled(front, " HTTP/1.1\r\nHost: h\r\n\r\n", TG_HEAD_BYTES_MAX),
                     TG_HEAD_WHOLE);
    assert_int_equal(filled(front, " HTTP/1.1\r\nHost: h\r\n\r\n", 2 * TG_HEAD_BYTES_MAX), 414);
}

/* Whose requests are answered: neither the name nor the origin alone is enough. */
static void names_and_origins(void **state) {
    (void)state;
    assert_true(tg_http_is_ours("127.0.0.1:8080", NULL, 8080));
    assert_true(tg_http_is_ours("LocalHost:8080", "http://[::1]:8080", 8080));
    assert_true(tg_http_is_ours("localhost", "http://localhost", 80));
    assert_false(tg_http_is_ours("localhost", NULL, 8080));
    assert_false(tg_http_is_ours("evil.example", NULL, 8080));
    assert_false(tg_http_is_ours("evil.example", "http://127.0.0.1:8080", 8080));
    assert_false(tg_http_is_ours("evil.example:8080", "http://127.0.0.1:8080", 8080));
    assert_false(tg_http_is_ours("127.0.0.1:8080", "http://evil.example", 8080));
    assert_false(tg_http_is_ours("127.0.0.1:8080", "https://127.0.0.1:8080", 8080));
    assert_false(tg_http_is_ours("127.0.0.1:8080", "null", 8080));
    assert_false(tg_http_is_ours("127.0.0.1:8080", "", 8080));
}

static void texts_of_replies(void **state) {
    (void)state;
    char text[2048];
    tg_reply reply;
    static const unsigned refusals[] = { 400, 408, 414, 431, 501, 503, 505 };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        char want[32];
        tg_http_refuse(refusals[i], &reply);
        assert_true(reply.n_bytes > 0);
        const size_t n = tg_http_head_text(&reply, true, text, sizeof text);
        assert_true(n > 0);
        snprintf(want, sizeof want, "HTTP/1.1 %u ", refusals[i]);
        assert_memory_equal(text, want, strlen(want));
        assert_memory_equal(text + n - 4, "\r\n\r\n", 4);
        assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
        assert_non_null(strstr(text, "\r\nX-Content-Type-Options: nosniff\r\n"));
        snprintf(want, sizeof want, "Content-Length: %zu\r\n", reply.n_bytes);
        assert_non_null(strstr(text, want));
        /* Too small a place is an error, and never half a head. */
        assert_int_equal(tg_http_head_text(&reply, true, text, n + 1), n);
        for (size_t cap = 1; cap <= n; cap += 7) {
            assert_int_equal(tg_http_head_text(&reply, true, text, cap), 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(every_cut_and_every_zero),
        cmocka_unit_test(parts),
        cmocka_unit_test(elements),
        cmocka_unit_test(limits),
        cmocka_unit_test(names_and_origins),
        cmocka_unit_test(texts_of_replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
