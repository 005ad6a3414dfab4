/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_json.c - what a strict reader must take and refuse, where it says the fault is, exact
 * numbers, lookups, every allocation failing, and the writer read back.
 */
#include "base/codec/json.h"
#include "base/math.h"
#include "base/rng.h"
#include "fail_alloc.h"

#include <setjmp.h>

#include <cmocka.h>

typedef struct fixture {
    tg_ctx ctx;
    tg_arena arena;
} fixture;

static fixture *start(fixture *f) {
    tg_ctx_init(&f->ctx, NULL, NULL, NULL);
    tg_arena_init(&f->arena, &f->ctx.mem);
    return f;
}

static tg_status parse_n(fixture *f, const char *text, size_t n, const tg_json **root) {
    /* An exact copy on the heap: reading one byte too far is seen by the sanitizer. */
    char *copy = malloc(n ? n : 1);
    if (n) memcpy(copy, text, n);
    tg_ctx_clear(&f->ctx);
    const tg_status status = tg_json_parse(&f->ctx, &f->arena, "test", copy, n, NULL, root);
    free(copy);
    assert_int_equal(*root == NULL, status != TG_OK);
    return status;
}

static tg_status parse(fixture *f, const char *text, const tg_json **root) {
    return parse_n(f, text, strlen(text), root);
}

/* ---------------------------------------------------------------------------- accept and refuse */

static void accepted(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "null",
        "true",
        "false",
        "0",
        "\"\"",
        " \t\r\n{ } \n",
        "[[]   ]",
        "[null,1]",
        "[ 1 , 2 ]",
        "{\"a\":{}}",
        "{\"\":0}",
        "{\"a\":1,\"A\":1}",
        "{\"a\\u0000\":1,\"a\":2}",
        "[-0]",
        "[-1]",
        "[0e+1]",
        "[0e1]",
        "[1E22]",
        "[1E-2]",
        "[1E+2]",
        "[123.456e78]",
        "[0.5]",
        "[-123123e100000]",
        "[123123123123123123123123123]",
        "[1e-400]",
        "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
        "[\"\\u0041\\u00e9\\u20AC\"]",
        "[\"\\uD801\\udc37\"]",
        "[\"\\u0000\"]",
        "[\"\\\\u0000\"]",
        "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"]",
        "[\"\x7f\"]",
        "[\"\\uFFFF\"]",
        "[\"\xef\xbf\xbf\"]",
        "[\"a/*b*/c\"]",
        "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]",
        "\"asd\"",
        "[false]",
        "[1,null,null,null,2]",
        "[\"\\uDBFF\\uDFFF\"]",
        "[\"\xe2\x80\xa8\"]",
    };
    fixture f;
    start(&f);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const tg_json *root;
        if (parse(&f, texts[i], &root)) fail_msg("refused %s: %s", texts[i], f.ctx.message);
    }
    tg_arena_deinit(&f.arena);
}

/* text, byte at which the fault is */
static const struct {
    const char *text;
    size_t at;
} bad[] = {
    { "", 0 },
    { " ", 1 },
    { "[", 1 },
    { "]", 0 },
    { "{", 1 },
    { "}", 0 },
    { "[1", 2 },
    { "[1,", 3 },
    { "[1,]", 3 },
    { "[,1]", 1 },
    { "[1,,2]", 3 },
    { "[1}", 2 },
    { "{\"a\":1]", 6 },
    { "[1 2]", 3 },
    { "[]]", 2 },
    { "[][]", 2 },
    { "{}{}", 2 },
    { "1 2", 2 },
    { "[1]x", 3 },
    { "{\"a\"}", 4 },
    { "{\"a\":}", 5 },
    { "{\"a\" 1}", 5 },
    { "{\"a\"::1}", 5 },
    { "{\"a\":1,}", 7 },
    { "{,}", 1 },
    { "{a:1}", 1 },
    { "{'a':1}", 1 },
    { "{1:1}", 1 },
    { "{\"a\":1 \"b\":2}", 7 },
    { "{\"a\":1,,}", 7 },
    { "{null:1}", 1 },
    { "{[]:1}", 1 },
    { "{\"a\":1", 6 },
    { "{\"a\":1,\"b\"", 10 },
    /* words */
    { "nul", 3 },
    { "nulll", 4 },
    { "True", 0 },
    { "[tru]", 4 },
    { "[fals]", 5 },
    { "NaN", 0 },
    { "[NaN]", 1 },
    { "[Infinity]", 1 },
    { "[-Infinity]", 2 },
    { "[undefined]", 1 },
    /* numbers */
    { "[01]", 2 },
    { "[-01]", 3 },
    { "[-]", 2 },
    { "[+1]", 1 },
    { "[.5]", 1 },
    { "[-.5]", 2 },
    { "[1.]", 3 },
    { "[1.e1]", 3 },
    { "[1e]", 3 },
    { "[1e+]", 4 },
    { "[1eE2]", 3 },
    { "[1.2.3]", 4 },
    { "[0x1]", 2 },
    { "[1_000]", 2 },
    { "[1-1]", 2 },
    { "[- 1]", 2 },
    { "-", 1 },
    { "1e", 2 },
    { "[00]", 2 },
    { "[1a]", 2 },
    { "[0e]", 3 },
    { "[2.e-3]", 3 },
    { "[--2]", 2 },
    /* strings */
    { "\"", 1 },
    { "\"a", 2 },
    { "[\"a", 3 },
    { "[\"\\", 3 },
    { "[\"\\\"", 4 },
    { "['a']", 1 },
    { "[\"\t\"]", 2 },
    { "[\"\n\"]", 2 },
    { "[\"\x1f\"]", 2 },
    { "[\"\\a\"]", 3 },
    { "[\"\\x41\"]", 3 },
    { "[\"\\'\"]", 3 },
    { "[\"\\U0041\"]", 3 },
    { "[\"\\u\"]", 4 },
    { "[\"\\u00A\"]", 4 },
    { "[\"\\u00AG\"]", 4 },
    { "[\"\\u 041\"]", 4 },
    { "[\"\\u+041\"]", 4 },
    { "[\"\\u004", 4 },
    { "[\"\\ud800\"]", 8 },
    { "[\"\\ud800x\"]", 8 },
    { "[\"\\ud800\\n\"]", 8 },
    { "[\"\\ud800\\ud800\"]", 8 },
    { "[\"\\ud800\\u0041\"]", 8 },
    { "[\"\\ud800\\ue000\"]", 8 },
    { "[\"\\udbff\\uffff\"]", 8 },
    { "[\"\\ud800\\udbff\"]", 8 },
    { "[\"\\udc00\"]", 4 },
    { "[\"\\udc00\\ud800\"]", 4 },
    { "[\"\\ud800\\u", 8 },
    { "[\"\\ud800\\udc0", 8 },
    { "[\"\\ud800\\udc0g\"]", 8 },
    { "{\"\\ud800\":1}", 8 },
    { "[\"\xff\"]", 2 },
    { "[\"\xc3\"]", 2 },
    { "[\"\xc3\x28\"]", 2 },
    { "[\"\xc0\x80\"]", 2 },
    { "[\"\xe2\x82\"]", 2 },
    { "[\"\xed\xa0\x80\"]", 2 },
    { "[\"\xf4\x90\x80\x80\"]", 2 },
    { "[\"\x80\"]", 2 },
    { "\"\xe2\x82", 1 },
    /* around the value */
    { "\xef\xbb\xbf{}", 0 },
    { "/**/{}", 0 },
    { "{}//", 2 },
    { "[1]\f", 3 },
    { "[1,\v2]", 3 },
    { "[\xc2\xa0]", 1 },
    { "#", 0 },
    { "[1;2]", 2 },
    { "<null>", 0 },
    { "[1\\u000A]", 2 },
    { "\\u005b]", 0 },
    { "(1)", 0 },
    { "[\"a\"\"b\"]", 4 },
    { "[\"a\":1]", 4 },
    { "*", 0 },
    { "{\"a\":1}}", 7 },
};

static void refused(void **state) {
    (void)state;
    fixture f;
    start(&f);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const tg_json *root;
        char where[40];
        const tg_status status = parse(&f, bad[i].text, &root);
        snprintf(where, sizeof where, "test: byte %zu: want ", bad[i].at);
        if (status != TG_E_FORMAT || strncmp(f.ctx.message, where, strlen(where)) != 0) {
            fail_msg("%s: status %d, \"%s\", want it at byte %zu", bad[i].text, status,
                     f.ctx.message, bad[i].at);
        }
    }
    /* A refused grammar costs no memory. */
    assert_int_equal(f.arena.total_bytes, 0);
    /* Zeros are bytes like others: valid nowhere. */
    const tg_json *root;
    assert_int_equal(parse_n(&f, "{}\0", 3, &root), TG_E_FORMAT);
    assert_int_equal(parse_n(&f, "\0{}", 3, &root), TG_E_FORMAT);
    assert_int_equal(parse_n(&f, "[\"a\0b\"]", 7, &root), TG_E_FORMAT);
    assert_int_equal(parse_n(&f, "[1\0]", 4, &root), TG_E_FORMAT);
    assert_int_equal(parse_n(&f, "[\"\\\0\"]", 6, &root), TG_E_FORMAT);
    tg_arena_deinit(&f.arena);
}

/* Every beginning of a valid text is refused, and every text with one byte changed never crashes.
 */
static void cut_and_bent(void **state) {
    (void)state;
    static const char text[] = "{\"a\":[1,-2.5e+3,true,null,\"\\u20ac\\ud801\\udc37\xe2\x82\xac\"],"
                               "\"b\":{\"c\":\"\\n\"},\"d\":[[],{}]}";
    const size_t n = sizeof text - 1;
    fixture f;
    start(&f);
    const tg_json *root;
    assert_int_equal(parse(&f, text, &root), TG_OK);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(parse_n(&f, text, cut, &root), TG_E_FORMAT);
    char bent[sizeof text];
    for (size_t i = 0; i < n; i++) {
        for (int byte = 0; byte < 256; byte++) {
            memcpy(bent, text, sizeof text);
            bent[i] = (char)byte;
            const tg_status status = parse_n(&f, bent, n, &root);
            assert_true(status == TG_OK || status == TG_E_FORMAT);
        }
        tg_arena_deinit(&f.arena);
    }
}

static void limits(void **state) {
    (void)state;
    static const size_t deep = 200000;
    fixture f;
    start(&f);
    const tg_json *root;
    char *text = malloc(2 * deep);
    memset(text, '[', deep);
    memset(text + deep, ']', deep);
    assert_int_equal(parse_n(&f, text, 2 * deep, &root), TG_E_FORMAT);
    assert_string_equal(f.ctx.message,
                        "test: byte 64: want at most 64 open arrays and objects, have more");
    assert_int_equal(parse_n(&f, text + deep - 64, 128, &root), TG_OK);
    assert_int_equal(parse_n(&f, text + deep - 65, 130, &root), TG_E_FORMAT);
    for (size_t i = 0; i + 5 <= deep; i += 5) memcpy(text + i, "{\"\":", 5);
    assert_int_equal(parse_n(&f, text, deep, &root), TG_E_FORMAT);
    free(text);

    tg_ctx_clear(&f.ctx);
    const tg_json_limits small = { .depth = 2, .values = 4 };
    assert_int_equal(tg_json_parse(&f.ctx, &f.arena, "x", "[[1,2]]", 7, &small, &root), TG_OK);
    assert_int_equal(tg_json_parse(&f.ctx, &f.arena, "x", "[[1,2,3]]", 9, &small, &root),
                     TG_E_FORMAT);
    assert_string_equal(f.ctx.message, "x: byte 6: want at most 4 values, have more");
    assert_int_equal(tg_json_parse(&f.ctx, &f.arena, "x", "[[[]]]", 6, &small, &root), TG_E_FORMAT);
    tg_arena_deinit(&f.arena);
}

/* --------------------------------------------------------------------------------------- content
 */

static void strings(void **state) {
    (void)state;
    fixture f;
    start(&f);
    const tg_json *root, *v;
    assert_int_equal(
        parse(&f,
              "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\\u0041\\u00e9\\u20AC\\uD801\\uDC37\",\"\","
              "\"a\\u0000b\",\"\xf0\x9f\x98\x80!\"]",
              &root),
        TG_OK);
    assert_int_equal(tg_json_kind(root), TG_JSON_ARRAY);
    assert_int_equal(root->count, 5);
    v = tg_json_first(root);
    assert_true(tg_json_is(v, "\"\\/\b\f\n\r\t"));
    v = tg_json_next(v);
    assert_true(tg_json_is(v, "A\xc3\xa9\xe2\x82\xac\xf0\x90\x90\xb7"));
    v = tg_json_next(v);
    assert_true(tg_json_is(v, "") && v->length == 0);
    v = tg_json_next(v);
    assert_int_equal(v->length, 3);
    assert_memory_equal(v->u.text, "a\0b", 4);
    assert_false(tg_json_is(v, "a"));
    v = tg_json_next(v);
    assert_true(tg_json_is(v, "\xf0\x9f\x98\x80!"));
    assert_null(tg_json_next(v));
    tg_arena_deinit(&f.arena);
}

static void numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_int, is_uint, is_double;
        int64_t i;
        uint64_t u;
        double d;
    } cases[] = {
        { "0", true, true, true, 0, 0, 0 },
        { "-0", true, false, true, 0, 0, -0.0 },
        { "9007199254740993", true, true, true, 9007199254740993, 9007199254740993,
          9007199254740992.0 },
        { "18446744073709551615", false, true, true, 0, UINT64_MAX, 18446744073709551616.0 },
        { "18446744073709551616", false, false, true, 0, 0, 18446744073709551616.0 },
        { "-9223372036854775808", true, false, true, INT64_MIN, 0, -9223372036854775808.0 },
        { "1.0", false, false, true, 0, 0, 1 },
        { "1e3", false, false, true, 0, 0, 1000 },
        { "0.1", false, false, true, 0, 0, 0.1 },
        { "1e999", false, false, false, 0, 0, 0 },
        { "\"4\"", false, false, false, 0, 0, 0 },
        { "true", false, false, false, 0, 0, 0 },
        { "[1]", false, false, false, 0, 0, 0 },
    };
    fixture f;
    start(&f);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const tg_json *root;
        int64_t i = 0;
        uint64_t u = 0;
        double d = 0;
        assert_int_equal(parse(&f, cases[k].text, &root), TG_OK);
        assert_int_equal(tg_json_int64(&f.ctx, root, &i), cases[k].is_int ? TG_OK : TG_E_FORMAT);
        assert_int_equal(tg_json_uint64(&f.ctx, root, &u), cases[k].is_uint ? TG_OK : TG_E_FORMAT);
        assert_int_equal(tg_json_double(&f.ctx, root, &d),
                         cases[k].is_double ? TG_OK : TG_E_FORMAT);
        assert_true(i == cases[k].i && u == cases[k].u && d == cases[k].d);
    }
    const tg_json *root;
    bool truth = false;
    assert_int_equal(parse(&f, "[true,false,0]", &root), TG_OK);
    assert_int_equal(tg_json_bool(&f.ctx, root + 1, &truth), TG_OK);
    assert_true(truth);
    assert_int_equal(tg_json_bool(&f.ctx, root + 2, &truth), TG_OK);
    assert_false(truth);
    assert_int_equal(tg_json_bool(&f.ctx, root + 3, &truth), TG_E_FORMAT);
    assert_string_equal(f.ctx.message, "test: byte 12: want a boolean, have 0");
    tg_arena_deinit(&f.arena);
}

static void members(void **state) {
    (void)state;
    fixture f;
    start(&f);
    const tg_json *root, *v;
    uint64_t number;
    assert_int_equal(
        parse(&f, "{\"shape\":[2, 3],\"b\":true,\"\":{\"x\":\"y\"},\"name\":\"t\"}", &root), TG_OK);
    assert_int_equal(root->count, 4);
    v = tg_json_first(root);
    assert_string_equal(v->key, "shape");
    assert_int_equal(v->offset, 9);
    v = tg_json_next(v);
    assert_string_equal(v->key, "b");
    assert_true(tg_json_is(tg_json_get(tg_json_get(root, ""), "x"), "y"));
    assert_null(tg_json_get(root, "shap"));
    assert_null(tg_json_get(root, "shapes"));
    assert_null(tg_json_get(v, "b")); /* no object */
    assert_int_equal(tg_json_want(&f.ctx, root, "shape", TG_JSON_ARRAY, &v), TG_OK);
    assert_int_equal(tg_json_uint64(&f.ctx, tg_json_next(tg_json_first(v)), &number), TG_OK);
    assert_int_equal(number, 3);
    assert_int_equal(tg_json_want(&f.ctx, root, "b", TG_JSON_FALSE, &v), TG_OK); /* a boolean */

    assert_int_equal(tg_json_want(&f.ctx, root, "dtype", TG_JSON_STRING, &v), TG_E_FORMAT);
    assert_null(v);
    assert_string_equal(f.ctx.message, "test: byte 0: want a member \"dtype\", have none");
    tg_ctx_clear(&f.ctx);
    assert_int_equal(tg_json_want(&f.ctx, root, "shape", TG_JSON_STRING, &v), TG_E_FORMAT);
    assert_string_equal(f.ctx.message, "test: byte 9: \"shape\": want a string, have an array");
    tg_ctx_clear(&f.ctx);
    assert_int_equal(tg_json_want(&f.ctx, root + 1, "x", TG_JSON_STRING, &v), TG_E_FORMAT);
    tg_arena_deinit(&f.arena);
}

static void duplicate_keys(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"b\":0,\"\\u0061\":1}",
        "{\"\":1,\"\":1}",
        "{\"x\":{\"k\":1,\"j\":0,\"k\":1}}",
        "[{},{\"a\":[],\"b\":1,\"c\":2,\"a\":[]}]",
        "{\"\xc3\xa9\":1,\"\\u00e9\":1}",
        "{\"a\\u0000b\":1,\"a\\u0000b\":2}",
    };
    fixture f;
    start(&f);
    const tg_json *root;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(parse(&f, texts[i], &root), TG_E_FORMAT);
        assert_non_null(strstr(f.ctx.message, "want each key once"));
    }
    assert_int_equal(parse(&f, "{\"a\":1,\"b\":2,\"a\":3}", &root), TG_E_FORMAT);
    assert_string_equal(f.ctx.message,
                        "test: byte 17: want each key once, have \"a\" again (first at "
                        "byte 5)");
    tg_arena_deinit(&f.arena);
}

/* Many keys, in an order that is bad for naive sorts and with long common beginnings. */
static void large_objects(void **state) {
    (void)state;
    enum { N = 60000 };
    fixture f;
    start(&f);
    tg_buf text;
    tg_buf_init(&text, &f.ctx.mem);
    for (int order = 0; order < 3; order++) {
        const tg_json *root;
        tg_buf_clear(&text);
        for (int i = 0; i < N; i++) {
            const int number = order == 0 ? i : order == 1 ? N - 1 - i : (int)((i * 7919LL) % N);
            tg_buf_printf(&text, "%c\"blocks.attention.weight.%d\":%d", i ? ',' : '{', number,
                          number);
        }
        tg_buf_putc(&text, '}');
        assert_int_equal(parse_n(&f, text.data, text.length, &root), TG_OK);
        assert_int_equal(root->count, N);
        for (int i = 0; i < N; i += 13) {
            char key[64];
            int64_t number;
            snprintf(key, sizeof key, "blocks.attention.weight.%d", i);
            const tg_json *v = tg_json_get(root, key);
            assert_non_null(v);
            assert_int_equal(tg_json_int64(&f.ctx, v, &number), TG_OK);
            assert_int_equal(number, i);
        }
        text.length--;
        tg_buf_puts(&text, ",\"blocks.attention.weight.777\":1}");
        assert_int_equal(parse_n(&f, text.data, text.length, &root), TG_E_FORMAT);
    }
    tg_buf_deinit(&text);
    tg_arena_deinit(&f.arena);
}

static void out_of_memory(void **state) {
    (void)state;
    static const char text[] = "{\"a\":[1,2,{\"b\":\"c\"}],\"d\":null}";
    for (size_t n = 1;; n++) {
        test_alloc a = { .fail_at = n };
        const tg_mem mem = test_alloc_mem(&a);
        tg_ctx ctx;
        tg_arena arena;
        const tg_json *root;
        tg_ctx_init(&ctx, &mem, NULL, NULL);
        tg_arena_init(&arena, &mem);
        const tg_status status =
            tg_json_parse(&ctx, &arena, "t", text, sizeof text - 1, NULL, &root);
        tg_arena_deinit(&arena);
        assert_int_equal(a.live_pieces, 0);
        if (status == TG_OK) {
            assert_true(n > 1);
            return;
        }
        assert_int_equal(status, TG_E_MEMORY);
        assert_null(root);
    }
}

/* --------------------------------------------------------------------------------------- writer */

static void written(void **state) {
    (void)state;
    fixture f;
    tg_buf out;
    tg_json_writer w;
    start(&f);
    tg_buf_init(&out, &f.ctx.mem);
    tg_json_writer_init(&w, &out);
    tg_json_begin_object(&w);
    tg_json_key(&w, "i");
    tg_json_put_int(&w, INT64_MIN);
    tg_json_key(&w, "u");
    tg_json_put_uint(&w, UINT64_MAX);
    tg_json_key(&w, "list");
    tg_json_begin_array(&w);
    tg_json_put_double(&w, 0.1);
    tg_json_put_float(&w, 0.1f);
    tg_json_put_real(&w, 30);
    tg_json_put_real(&w, 0.5);
    tg_json_put_double(&w, TG_NAN);
    tg_json_put_float(&w, (float)-TG_INF);
    tg_json_begin_array(&w);
    tg_json_end_array(&w);
    tg_json_begin_object(&w);
    tg_json_end_object(&w);
    tg_json_put_null(&w);
    tg_json_end_array(&w);
    tg_json_key(&w, "quote \" and \n");
    tg_json_put_bool(&w, true);
    tg_json_key(&w, "bytes");
    tg_json_put_string_n(&w, "a\0\x1f\x7f\xff\xc3\xa9\xe2\x82", 9);
    tg_json_end_object(&w);
    assert_string_equal(
        tg_buf_text(&out),
        "{\"i\":-9223372036854775808,\"u\":18446744073709551615,"
        "\"list\":[0.1,0.1,30.0,0.5,null,null,[],{},null],"
        "\"quote \\\" and \\n\":true,"
        "\"bytes\":\"a\\u0000\\u001f\x7f\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\"}");
    const tg_json *root;
    assert_int_equal(parse_n(&f, out.data, out.length, &root), TG_OK);
    tg_buf_deinit(&out);
    tg_arena_deinit(&f.arena);
}

/* Any bytes as a string give valid JSON, and valid UTF-8 comes back as it was. */
static void strings_round_trip(void **state) {
    (void)state;
    fixture f;
    tg_buf out;
    start(&f);
    tg_buf_init(&out, &f.ctx.mem);
    for (uint64_t i = 0; i < 3000; i++) {
        uint32_t x[4];
        char bytes[16];
        tg_json_writer w;
        const tg_json *root;
        tg_philox(3, i, 0, 0, x);
        memcpy(bytes, x, 16);
        if (i % 2) /* ASCII with controls */
            for (int k = 0; k < 16; k++) bytes[k] &= 0x7f;
        tg_buf_clear(&out);
        tg_json_writer_init(&w, &out);
        tg_json_put_string_n(&w, bytes, 16);
        assert_int_equal(parse_n(&f, out.data, out.length, &root), TG_OK);
        if (i % 2) {
            assert_int_equal(root->length, 16);
            assert_memory_equal(root->u.text, bytes, 16);
        }
    }
    tg_buf_deinit(&out);
    tg_arena_deinit(&f.arena);
}

/* Keys alone are changed, and only of a writer that was asked to. */
static void writes_snake_case(void **state) {
    fixture f;
    tg_buf out;
    tg_json_writer w;
    (void)state;
    start(&f);
    tg_buf_init(&out, &f.ctx.mem);
    for (int snake = 0; snake < 2; snake++) {
        tg_json_writer_init(&w, &out);
        w.snake = snake;
        tg_json_begin_object(&w);
        tg_json_key(&w, "holdLrAfter");
        tg_json_put_string(&w, "asIs");
        tg_json_key(&w, "beta1");
        tg_json_put_int(&w, 1);
        tg_json_end_object(&w);
    }
    assert_string_equal(tg_buf_text(&out), "{\"holdLrAfter\":\"asIs\",\"beta1\":1}"
                                           "{\"hold_lr_after\":\"asIs\",\"beta1\":1}");
    tg_buf_deinit(&out);
    tg_arena_deinit(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted),          cmocka_unit_test(refused),
        cmocka_unit_test(cut_and_bent),      cmocka_unit_test(limits),
        cmocka_unit_test(strings),           cmocka_unit_test(numbers),
        cmocka_unit_test(members),           cmocka_unit_test(duplicate_keys),
        cmocka_unit_test(large_objects),     cmocka_unit_test(out_of_memory),
        cmocka_unit_test(written),           cmocka_unit_test(strings_round_trip),
        cmocka_unit_test(writes_snake_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
