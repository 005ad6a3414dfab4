/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_app_format.c - numbers and times as people read them, foreign text made harmless.
 */
#include "print/format.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void bytes_and_counts(void **state) {
    (void)state;
    assert_string_equal(TG_BYTES(0), "0 bytes");
    assert_string_equal(TG_BYTES(1), "1 byte");
    assert_string_equal(TG_BYTES(999), "999 bytes");
    assert_string_equal(TG_BYTES(1000), "1.00 kB");
    assert_string_equal(TG_BYTES(1115394), "1.12 MB");
    assert_string_equal(TG_BYTES(9995000), "10.0 MB");
    assert_string_equal(TG_BYTES(999499999), "999 MB");
    assert_string_equal(TG_BYTES(999500000), "1.00 GB");
    assert_string_equal(TG_BYTES(UINT64_MAX), "18.4 EB");
    assert_string_equal(TG_COUNT(0), "0");
    assert_string_equal(TG_COUNT(999), "999");
    assert_string_equal(TG_COUNT(1000), "1,000");
    assert_string_equal(TG_COUNT(366432), "366,432");
    assert_string_equal(TG_COUNT(UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(TG_SHORT(41234), "41.2k");
    assert_string_equal(TG_SHORT(NAN), "-");
    assert_string_equal(TG_PERCENT(0.384), "38%");
    assert_string_equal(TG_PERCENT(0), "-");
}

static void times(void **state) {
    (void)state;
    assert_string_equal(TG_TIME(0.0301), "30 ms");
    assert_string_equal(TG_TIME(1.25), "1.2 s");
    assert_string_equal(TG_TIME(59.4), "59 s");
    assert_string_equal(TG_TIME(59.6), "1 min 00 s");
    assert_string_equal(TG_TIME(200), "3 min 20 s");
    assert_string_equal(TG_TIME(7500), "2 h 05 min");
    assert_string_equal(TG_TIME(190000), "2 days 4 h");
    assert_string_equal(TG_TIME(NAN), "unknown");
    assert_string_equal(TG_TIME(-1), "unknown");
    assert_string_equal(TG_CLOCK(0.2), "0:00");
    assert_string_equal(TG_CLOCK(200), "3:20");
    assert_string_equal(TG_CLOCK(7500), "2:05:00");
    assert_string_equal(TG_CLOCK(1e9), "11574 days 1 h");
}

/* Against e^x to 17 digits. */
static void perplexity(void **state) {
    (void)state;
    static const struct {
        double x, want;
    } cases[] = { { 0, 1 },
                  { 0.125, 1.1331484530668263 },
                  { 1, 2.7182818284590452 },
                  { 2.5, 12.182493960703473 },
                  { 5.545177444479562, 256 },
                  { 100, 2.6881171418161356e43 },
                  { 700, 1.0142320547350045e304 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double error = tg_fmt_perplexity(cases[i].x) / cases[i].want - 1;
        assert_true(error < 1e-12 && error > -1e-12);
    }
    assert_true(isinf(tg_fmt_perplexity(1e9)));
    assert_true(isnan(tg_fmt_perplexity(NAN)));
}

static void utf8(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t n, want;
    } cases[] = { { "a", 1, 1 },
                  { "", 0, 0 },
                  { "\xc3\xa9", 2, 2 },
                  { "\xc3\xa9", 1, 0 },
                  { "\xc0\x80", 2, 0 },
                  { "\xe2\x82\xac", 3, 3 },
                  { "\xe0\x80\x80", 3, 0 },
                  { "\xed\xa0\x80", 3, 0 },
                  { "\xf0\x9f\x98\x80", 4, 4 },
                  { "\xf0\x80\x80\x80", 4, 0 },
                  { "\xf4\x90\x80\x80", 4, 0 },
                  { "\x80", 1, 0 },
                  { "\xff", 1, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tg_fmt_utf8_length(cases[i].text, cases[i].n), cases[i].want);
    }
}

/* What a terminal shows for a character, whose width a line is broken by. */
static void columns(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int want;
    } cases[] = { { "a", 1 },
                  { "\x01", 2 },
                  { "\x7f", 2 },
                  { "\t", 8 },
                  { "\xff", 1 },
                  { "\xc2\x9b", 3 },
                  { "\xc3\xa9", 1 },
                  { "\xcc\x81", 0 },
                  { "\xe6\x97\xa5", 2 },
                  { "\xef\xbf\xbd", 1 },
                  { "\xed\x95\x9c", 2 },
                  { "\xf0\x9f\x98\x80", 2 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tg_fmt_columns(cases[i].text, strlen(cases[i].text)), cases[i].want);
}

static void safe_text(void **state) {
    (void)state;
    char out[64], small[8];
    assert_string_equal(tg_fmt_safe(out, sizeof out, "caf\xc3\xa9"), "caf\xc3\xa9");
    assert_string_equal(tg_fmt_safe(out, sizeof out, "a\x1b[2J\r\n"), "a\\x1B[2J\\x0D\\x0A");
    assert_string_equal(tg_fmt_safe(out, sizeof out,
                                    "\xc2\x9b"
                                    "1m\xff"),
                        "\\xC2\\x9B1m\\xFF");
    assert_string_equal(tg_fmt_safe(small, sizeof small, "abcdefghij"), "abcd...");
    assert_string_equal(tg_fmt_safe(small, sizeof small, "\xe2\x82\xac\xe2\x82\xac"),
                        "\xe2\x82\xac...");
}

/* What the shell makes of the word must be the word. */
static void shell_words(void **state) {
    (void)state;
    static const char *const words[] = { "run.tinygpt", "my book.txt", "it's", "''",
                                         "$HOME",       "a;rm -rf b",  "",     "`id`",
                                         "\\",          "caf\xc3\xa9", "-x" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char quoted[128], command[256], back[128];
        tg_fmt_shell(quoted, sizeof quoted, words[i]);
        snprintf(command, sizeof command, "printf %%s %s", quoted);
        FILE *shell = popen(command, "r");
        assert_non_null(shell);
        back[fread(back, 1, sizeof back - 1, shell)] = '\0';
        assert_int_equal(pclose(shell), 0);
        assert_string_equal(back, words[i]);
    }
    char small[6];
    assert_string_equal(tg_fmt_shell(small, sizeof small, "abcdef"), "");
    assert_string_equal(tg_fmt_shell(small, sizeof small, "a b"), "'a b'");
    assert_string_equal(tg_fmt_shell(small, sizeof small, "a bc"), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_counts), cmocka_unit_test(times),
        cmocka_unit_test(perplexity),       cmocka_unit_test(utf8),
        cmocka_unit_test(safe_text),        cmocka_unit_test(shell_words),
        cmocka_unit_test(columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
