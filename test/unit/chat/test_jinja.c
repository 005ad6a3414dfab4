/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jinja.c - templates are rendered as jinja2 renders them (test/golden/chat/jinja.json, by
 * tools/oracle/jinja.py), within limits, and each character knows whose it is.
 */
#include "chat_util.h"
#include "fail_alloc.h"

#include <pthread.h>

/* With the members of a JSON object as variables, all of them somebody's words; NULL: with none. */
static void render(rendered *x, const char *template, const tg_json *variables) {
    tg_jinja *t = NULL;
    x->status = tg_jinja_new(&x->ctx, "test", template, strlen(template), &t);
    tg_jinja_run *r = x->status == TG_OK ? tg_jinja_run_new(&x->ctx, t) : NULL;
    if (r) {
        tg_jinja_set_date(r, (tg_jinja_date) { 2026, 11, 9 });
        for (const tg_json *v = variables ? tg_json_first(variables) : NULL; v; v = tg_json_next(v))
            tg_jinja_set(r, v->key, tg_jinja_from_json(r, v, true));
        x->status = tg_jinja_render(r, &x->out);
    } else if (x->status == TG_OK) {
        x->status = TG_E_MEMORY;
    }
    tg_jinja_run_free(r);
    tg_jinja_free(t);
}

/* An error of this kind that says this. */
static void refuses(const char *template, tg_status want, const char *says) {
    rendered x;
    begin(&x, NULL);
    render(&x, template, NULL);
    if (x.status != want || !strstr(x.ctx.message, says))
        fail_msg("%s\nhave %d: %s%s", template, (int)x.status, x.ctx.message,
                 tg_buf_text(&x.out.text));
    end(&x);
}

static void as_jinja2(void **state) {
    (void)state;
    golden g;
    open_golden(&g, "test/golden/chat/jinja.json");
    const tg_json *cases = tg_json_get(g.root, "cases");
    assert_true(cases->count > 100);
    for (const tg_json *c = tg_json_first(cases); c; c = tg_json_next(c)) {
        const char *text = tg_json_get(c, "text")->u.text;
        const tg_json *want = tg_json_get(c, "want");
        rendered x;
        begin(&x, NULL);
        render(&x, text, tg_json_get(g.root, "variables"));
        if (tg_json_kind(want) == TG_JSON_NULL
                ? x.status == TG_OK
                : x.status != TG_OK || !tg_json_is(want, tg_buf_text(&x.out.text)))
            fail_msg("%s\nhave %s%s\nwant %s", text, tg_buf_text(&x.out.text), x.ctx.message,
                     TG_JSON_SHOWN(want));
        assert_int_equal(x.out.text.length, x.out.words.length);
        end(&x);
    }
    close_golden(&g);
}

/* What is not known is named, and what a template says itself is told. */
static void refusals(void **state) {
    (void)state;
    refuses("{% include 'x' %}", TG_E_UNSUPPORTED,
            "test: chat template, line 1: not known here: tag include");
    refuses("\n\n{{ 1 | wordcount }}", TG_E_UNSUPPORTED,
            "line 3: not known here: filter wordcount");
    refuses("{{ 1 is escaped }}", TG_E_UNSUPPORTED, "test escaped");
    refuses("{{ 'a'.zfill(3) }}", TG_E_UNSUPPORTED, "method zfill");
    refuses("{{ lipsum() }}", TG_E_UNSUPPORTED, "function lipsum");
    refuses("{{ f(**x) }}", TG_E_UNSUPPORTED, "**kwargs");
    refuses("{% for x in [] recursive %}{% endfor %}", TG_E_UNSUPPORTED, "recursive");
    refuses("{{ 9223372036854775807 + 1 }}", TG_E_UNSUPPORTED, "more than 64 bits");
    refuses("{{ 99999999999999999999 }}", TG_E_UNSUPPORTED, "the number 99999999999999999999");
    refuses("{{ strftime_now('%H') }}", TG_E_UNSUPPORTED, "more than a day");
    refuses("{{ raise_exception('No tools!') }}", TG_E_ARG, "it refuses: No tools!");
    refuses("{{ tools.x }}", TG_E_ARG, "tools is undefined");
    refuses("{% if %}", TG_E_FORMAT, "want an expression, have %}");
    refuses("a\n{% endfor %}", TG_E_FORMAT, "line 2: want a tag that is known, have endfor");
}

/* Loops, recursion, growth: each ends at once with the limit's name. */
static void limits(void **state) {
    (void)state;
    refuses("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
            TG_E_RANGE, "too m");
    refuses("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", TG_E_RANGE, "too deep");
    refuses("{% set ns = namespace(x='ab') %}{% for a in range(99) %}"
            "{% set ns.x = ns.x + ns.x %}{% endfor %}",
            TG_E_RANGE, "too m");
    refuses("{{ 'ab' * 99999999999 }}", TG_E_RANGE, "too long");
    refuses("{{ range(100001) }}", TG_E_RANGE, "100001");
    refuses("{% for a in range(100000) %}01234567890123456789{% endfor %}", TG_E_RANGE,
            "writes too much");
    refuses("{% set ns = namespace(x=[]) %}{% for a in range(9999) %}"
            "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
            TG_E_RANGE, "too deep");
    refuses("{% set ns = namespace(x=[]) %}{% for a in range(9999) %}"
            "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x == [ns.x] }}{{ ns.x | tojson }}",
            TG_E_RANGE, "too deep");
    char deep[4096];
    memset(deep, '(', sizeof deep);
    memcpy(deep, "{{", 2);
    deep[sizeof deep - 1] = 0;
    refuses(deep, TG_E_RANGE, "too many brackets");
    size_t at = 2;
    for (int i = 0; i < 1000; i++) at += (size_t)snprintf(deep + at, sizeof deep - at, "1+ ");
    snprintf(deep + at, sizeof deep - at, "1}}");
    refuses(deep, TG_E_RANGE, "too deep");
    at = 2;
    for (int i = 0; i < 2000; i++) deep[at++] = '-';
    snprintf(deep + at, sizeof deep - at, "1}}");
    refuses(deep, TG_E_RANGE, "too many brackets");
}

/* The deepest nesting of all kinds, on a small stack; the sanitizers' frames are larger. */
enum { STACK_BYTES = TEST_ASAN ? 2 << 20 : 192 << 10 };

/* As many parts as a template has room for: a chain of them nests nothing, and takes no more memory
 * than its text is worth. */
static void renders_chain(const char *open, const char *part, int parts, const char *close,
                          size_t n_written) {
    enum { MOST_BYTES = 20 << 20 };
    const size_t n_part = strlen(part), n_open = strlen(open);
    char *text = malloc(n_open + (size_t)parts * n_part + strlen(close) + 1), *at = text + n_open;
    memcpy(text, open, n_open);
    for (int i = 0; i < parts; i++, at += n_part) memcpy(at, part, n_part);
    memcpy(at, close, strlen(close) + 1);
    test_alloc a = { .fail_at = 0 };
    const tg_mem mem = test_alloc_mem(&a);
    rendered x;
    begin(&x, &mem);
    render(&x, text, NULL);
    if (x.status != TG_OK) fail_msg("%d: %s", (int)x.status, x.ctx.message);
    assert_int_equal(x.out.text.length, n_written);
    assert_true(a.peak_bytes < MOST_BYTES);
    end(&x);
    free(text);
}

static void *deepest(void *user) {
    (void)user;
    renders_chain("{% if a %}", "{% elif a %}", 40000, "{% else %}x{% endif %}", 1);
    renders_chain("{{", " 'a'", 8000, "}}", 8000);
    refuses("{% macro f(n) %}{% if true %}{% for a in [1] %}{{ [[f(n + 1) | trim ~ 'x']][0] }}"
            "{% endfor %}{% endif %}{% endmacro %}{{ f(0) }}",
            TG_E_RANGE, "too deep");
    limits(NULL);
    return NULL;
}

static void small_stack(void **state) {
    (void)state;
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, deepest, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Somebody's words stay theirs through whatever a template does with them. */
static void whose_words(void **state) {
    (void)state;
    static const struct {
        const char *template, *text, *words;
    } cases[] = {
        { "<{{ u }}>", "<ab C>", "011110" },
        { "{{ ('<' + u + '>')[1:3] }}", "ab", "11" },
        { "{{ u | trim | upper | replace('B', '--') }}", "A-- C", "10011" },
        { "{{ u.split(' ') | join('|') }}", "ab|C", "1101" },
        { "{{ [u] | tojson }}", "[\"ab C\"]", "00111100" },
        { "{{ {'k': u} }}", "{'k': 'ab C'}", "0000000111100" },
        { "{% set x %}<{{ u }}{% endset %}{{ x[::-1] }}", "C ba<", "11110" },
        { "{% macro f(a) %}{{ a }}.{% endmacro %}{{ f(u) }}", "ab C.", "11110" },
        { "{{ 'é' ~ u[0] ~ 5 }}",
          "\xc3\xa9"
          "a5",
          "0010" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rendered x;
        begin(&x, NULL);
        tg_jinja *t;
        assert_int_equal(
            tg_jinja_new(&x.ctx, "test", cases[i].template, strlen(cases[i].template), &t), TG_OK);
        tg_jinja_run *r = tg_jinja_run_new(&x.ctx, t);
        tg_jinja_set(r, "u", tg_jinja_text(r, "ab C", 4, true));
        assert_int_equal(tg_jinja_render(r, &x.out), TG_OK);
        assert_string_equal(tg_buf_text(&x.out.text), cases[i].text);
        for (size_t k = 0; k < x.out.words.length; k++)
            if (x.out.words.data[k] != cases[i].words[k] - '0')
                fail_msg("%s: character %zu is whose?", cases[i].template, k);
        tg_jinja_run_free(r);
        tg_jinja_free(t);
        end(&x);
    }
}

/* The end of a line behind a tag belongs to the tag; behind a value it is text. */
static void ends_of_lines(void **state) {
    (void)state;
    static const struct {
        const char *template, *text;
    } cases[] = {
        { "{{ 1 }}\na", "1\na" },
        { "{{ 1 -}}\na", "1a" },
        { "{% if true %}\na{% endif %}\n", "a" },
        { "{% if true +%}\na{% endif +%}\nb", "\na\nb" },
        { "{# no #}\na", "a" },
        { " {{ 1 }}\n {% if true %}\n a{% endif %}", " 1\n a" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rendered x;
        begin(&x, NULL);
        render(&x, cases[i].template, NULL);
        assert_int_equal(x.status, TG_OK);
        assert_string_equal(tg_buf_text(&x.out.text), cases[i].text);
        end(&x);
    }
}

/* Bytes that are no UTF-8, and zeros, come out as they went in. */
static void any_bytes(void **state) {
    (void)state;
    static const char bytes[] = "a\xff\x00\xc3 \xed\xa0\x80";
    rendered x;
    begin(&x, NULL);
    tg_jinja *t;
    assert_int_equal(tg_jinja_new(&x.ctx, "test", "{{ u }}{{ u | length }}", 23, &t), TG_OK);
    tg_jinja_run *r = tg_jinja_run_new(&x.ctx, t);
    tg_jinja_set(r, "u", tg_jinja_text(r, bytes, sizeof bytes - 1, true));
    assert_int_equal(tg_jinja_render(r, &x.out), TG_OK);
    assert_int_equal(x.out.text.length, sizeof bytes);
    assert_memory_equal(x.out.text.data, bytes, sizeof bytes - 1);
    assert_int_equal(x.out.text.data[sizeof bytes - 1], '8');
    assert_true(tg_jinja_mentions(t, "u") && !tg_jinja_mentions(t, "v"));
    tg_jinja_run_free(r);
    tg_jinja_free(t);
    end(&x);
}

static void no_memory(void **state) {
    (void)state;
    for (size_t at = 1;; at++) {
        test_alloc a = { .fail_at = at };
        const tg_mem mem = test_alloc_mem(&a);
        rendered x;
        begin(&x, &mem);
        render(&x,
               "{% macro f(x, y=[1]) %}{{ x | upper }}{{ y }}{% endmacro %}{% for k in 'abc' %}"
               "{{ f(k) }}{{ {'k': k} | tojson }}{{ k.split('b') }}{% endfor %}{{ 'x' * 5000 }}",
               NULL);
        const tg_status status = x.status;
        end(&x);
        assert_int_equal(a.live_pieces, 0);
        if (status == TG_OK) break;
        assert_int_equal(status, TG_E_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_jinja2),   cmocka_unit_test(refusals),      cmocka_unit_test(limits),
        cmocka_unit_test(whose_words), cmocka_unit_test(any_bytes),     cmocka_unit_test(no_memory),
        cmocka_unit_test(small_stack), cmocka_unit_test(ends_of_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
