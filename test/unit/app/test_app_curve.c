/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_app_curve.c - loss curves: nothing leaves the frame, the shape is right, bad numbers and too
 * little to draw are harmless, and the picture is well-formed XML.
 */
#include "print/curve.h"
#include "print/format.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POINTS_MAX = 5000, TEXT_BYTES = 1 << 20 };

static tg_curve_point train[POINTS_MAX], val[POINTS_MAX];
static char text[TEXT_BYTES];

/* What a drawing printed. */
static bool draw(const tg_curve *curve, bool unicode, int width, int rows) {
    FILE *file = tmpfile();
    const tg_term term = { .file = file, .unicode = unicode };
    const bool drawn = tg_curve_draw(&term, curve, width, rows);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return drawn;
}

static bool draw_svg(const tg_curve *curve) {
    FILE *file = tmpfile();
    const bool drawn = tg_curve_svg(file, curve);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return drawn;
}

/* Longest line in characters; *lines counts them. Fails on invalid UTF-8. */
static int widest(int *lines) {
    int widest_line = 0, column = 0;
    *lines = 0;
    for (const char *p = text; *p;) {
        const size_t length = tg_fmt_utf8_length(p, strlen(p));
        assert_true(length > 0);
        if (*p == '\n') {
            ++*lines;
            if (column > widest_line) widest_line = column;
            column = -1;
        }
        column++;
        p += length;
    }
    return widest_line;
}

static tg_curve falling(size_t n) {
    for (size_t i = 0; i < n; i++) {
        train[i] = (tg_curve_point) { (double)(i + 1), 1 + 4.5 / (1 + (double)i / 20) };
        val[i] = (tg_curve_point) { (double)(i + 1), 1.5 };
    }
    return (tg_curve) { "a <run> & \"more\"", train, val, n, n > 10 ? 3 : 0 };
}

static void fits_its_frame(void **state) {
    (void)state;
    static const size_t counts[] = { 2, 3, 17, 100, 4096 };
    static const int widths[] = { 1, 36, 37, 80, 100, 999 };
    for (size_t i = 0; i < 5; i++) {
        for (size_t w = 0; w < 6; w++) {
            const tg_curve c = falling(counts[i]);
            int lines;
            assert_true(draw(&c, w % 2 == 0, widths[w], 12));
            const int wide = widest(&lines);
            assert_int_equal(lines, 12 + 3);
            const int limit = widths[w] < 36 ? 36 : widths[w];
            if (wide > limit) fail_msg("%d columns in a frame of %d:\n%s", wide, limit, text);
        }
    }
}

/* Column of the first and last star in a line of the plot, -1 if there is none. */
static int star(int line, bool last) {
    const char *p = text;
    while (line-- > 0) p = strchr(p, '\n') + 1;
    int found = -1;
    for (int i = 0; p[i] && p[i] != '\n'; i++) {
        if (p[i] == '*' && (last || found < 0)) found = i;
    }
    return found;
}

static void falls_from_left_to_right(void **state) {
    (void)state;
    tg_curve c = falling(1000);
    c.n_val = 0;
    assert_true(draw(&c, false, 80, 10));
    assert_int_equal(star(1, false), 8); /* the highest value comes first */
    assert_true(star(10, true) >= 75);   /* the lowest one last */
    assert_true(star(1, true) < star(5, true));
    for (size_t i = 0; i < 1000; i++) train[i].y = (double)i; /* and upwards */
    assert_true(draw(&c, false, 80, 10));
    assert_int_equal(star(10, false), 8);
    assert_true(star(1, true) >= 75);
}

static void gaps_are_bridged(void **state) {
    (void)state;
    train[0] = (tg_curve_point) { 1, 5 };
    train[1] = (tg_curve_point) { 1000, 1 };
    const tg_curve c = { "two points", train, NULL, 2, 0 };
    assert_true(draw(&c, false, 80, 10));
    for (int line = 1; line <= 10; line++) assert_true(star(line, false) >= 8);
}

static void bad_numbers(void **state) {
    (void)state;
    tg_curve c = falling(100);
    train[0].y = NAN;
    train[50].y = INFINITY;
    train[99].y = -INFINITY;
    val[1].y = NAN;
    assert_true(draw(&c, true, 80, 8));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    assert_true(draw_svg(&c));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
}

static void too_little(void **state) {
    (void)state;
    tg_curve c = falling(100);
    c.n_train = 0;
    assert_false(draw(&c, true, 80, 8));
    assert_string_equal(text, "");
    c.n_train = 1;
    assert_false(draw(&c, true, 80, 8));
    assert_false(draw_svg(&c));
    c.n_train = 2;
    train[1].x = train[0].x;
    assert_false(draw(&c, true, 80, 8));
}

static void flat_curves(void **state) {
    (void)state;
    tg_curve c = falling(100);
    for (size_t i = 0; i < 100; i++) train[i].y = 2;
    c.n_val = 0;
    assert_true(draw(&c, false, 80, 8));
    assert_true(star(4, false) == 8 || star(5, false) == 8);
    assert_true(draw_svg(&c));
}

static void validation_is_marked(void **state) {
    (void)state;
    const tg_curve c = falling(1000);
    assert_true(draw(&c, false, 80, 10));
    assert_non_null(strstr(text, "validation o"));
    assert_true(draw_svg(&c));
    assert_non_null(strstr(text, "<circle class=\"val\""));
}

/* Every element is closed in order, every attribute is quoted. Enough of XML for this picture. */
static void picture_is_xml(void **state) {
    (void)state;
    const tg_curve c = falling(500);
    char open[16][16];
    size_t depth = 0, elements = 0;
    assert_true(draw_svg(&c));
    assert_non_null(strstr(text, "a &lt;run&gt; &amp; \"more\""));
    for (const char *p = strchr(text, '<'); p; p = strchr(p + 1, '<')) {
        const char *end = strchr(p, '>');
        assert_non_null(end);
        size_t quotes = 0;
        for (const char *q = p; q < end; q++) quotes += *q == '"';
        assert_true(quotes % 2 == 0);
        const bool closing = p[1] == '/', empty = end[-1] == '/';
        const size_t length = strcspn(p + 1 + closing, " />");
        assert_true(length > 0 && length < sizeof open[0]);
        elements++;
        if (closing) {
            assert_true(depth > 0);
            depth--;
            assert_int_equal(strlen(open[depth]), length);
            assert_memory_equal(open[depth], p + 2, length);
        } else if (!empty) {
            assert_true(depth < 16);
            snprintf(open[depth++], sizeof open[0], "%.*s", (int)length, p + 1);
        }
    }
    assert_int_equal(depth, 0);
    assert_true(elements > 40);
}

static void ticks(void **state) {
    (void)state;
    static const struct {
        double span;
        int n;
        double want;
    } cases[] = { { 10, 10, 1 }, { 10, 5, 2 },      { 4.5, 6, 1 },    { 1500, 6, 500 },
                  { 1, 4, 0.5 }, { 0.03, 5, 0.01 }, { 999, 10, 100 }, { 1e9, 3, 5e8 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double tick = tg_curve_tick(cases[i].span, cases[i].n);
        const double error = tick / cases[i].want - 1;
        if (error > 1e-9 || error < -1e-9) {
            fail_msg("span %g by %d: want %g, have %g", cases[i].span, cases[i].n, cases[i].want,
                     tick);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_its_frame),
        cmocka_unit_test(falls_from_left_to_right),
        cmocka_unit_test(gaps_are_bridged),
        cmocka_unit_test(bad_numbers),
        cmocka_unit_test(too_little),
        cmocka_unit_test(flat_curves),
        cmocka_unit_test(validation_is_marked),
        cmocka_unit_test(picture_is_xml),
        cmocka_unit_test(ticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
