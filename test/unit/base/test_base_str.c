/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_str.c - decimal numbers against the C library's (correctly rounded in glibc and musl)
 * and UTF-8 against a table of every code point.
 */
#include "base/math.h"
#include "base/rng.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

static bool parse(const char *text, double *out) {
    return tg_parse_double(text, strlen(text), out);
}

static uint64_t random_bits(uint64_t i) {
    uint32_t x[4];
    tg_philox(11, i, 0, 0, x);
    return tg_rng_draw64(x);
}

/* ------------------------------------------------------------------------------------- integers */

static void integers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_unsigned, is_signed;
        uint64_t u;
        int64_t s;
    } cases[] = {
        { "0", true, true, 0, 0 },
        { "007", true, true, 7, 7 },
        { "18446744073709551615", true, false, UINT64_MAX, 0 },
        { "18446744073709551616", false, false, 0, 0 },
        { "99999999999999999999", false, false, 0, 0 },
        { "9223372036854775807", true, true, INT64_MAX, INT64_MAX },
        { "9223372036854775808", true, false, UINT64_C(1) << 63, 0 },
        { "-9223372036854775808", false, true, 0, INT64_MIN },
        { "-9223372036854775809", false, false, 0, 0 },
        { "-1", false, true, 0, -1 },
        { "-0", false, true, 0, 0 },
        { "", false, false, 0, 0 },
        { "-", false, false, 0, 0 },
        { "+1", false, false, 0, 0 },
        { " 1", false, false, 0, 0 },
        { "1 ", false, false, 0, 0 },
        { "1.0", false, false, 0, 0 },
        { "1e3", false, false, 0, 0 },
        { "12abc", false, false, 0, 0 },
        { "0x10", false, false, 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t n = strlen(cases[i].text);
        uint64_t u = 77;
        int64_t s = 77;
        assert_int_equal(tg_parse_uint64(cases[i].text, n, &u), cases[i].is_unsigned);
        assert_int_equal(tg_parse_int64(cases[i].text, n, &s), cases[i].is_signed);
        assert_true(u == (cases[i].is_unsigned ? cases[i].u : 77));
        assert_true(s == (cases[i].is_signed ? cases[i].s : 77));
    }
}

/* -------------------------------------------------------------------------------------- reading */

static void refused_numbers(void **state) {
    (void)state;
    static const char *const texts[] = { "",
                                         "-",
                                         "+1",
                                         ".5",
                                         "1.",
                                         "1.e3",
                                         "01",
                                         "-01",
                                         "1e",
                                         "1e+",
                                         "1e-",
                                         "0x1p3",
                                         "inf",
                                         "nan",
                                         "1 ",
                                         " 1",
                                         "1,5",
                                         "--1",
                                         "1e1.5",
                                         "1e309",
                                         "-1e309",
                                         "1_0",
                                         "1e99999999999999999999",
                                         "1.8e308",
                                         "1e5000" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        double x = 77;
        if (parse(texts[i], &x)) fail_msg("accepted: %s", texts[i]);
        assert_true(x == 77);
    }
}

static void check_reading(const char *text) {
    double got = 77;
    const double want = strtod(text, NULL);
    if (!parse(text, &got) || tg_bits_from_double(got) != tg_bits_from_double(want))
        fail_msg("%s: got %a, want %a", text, got, want);
}

static void hard_numbers(void **state) {
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "0e999999999999",
        "-0.0e-5",
        "1",
        "123456789012345678",
        "1e22",
        "1e23",
        "8.5e22",
        "9007199254740993",
        "9007199254740992.999999999999999999999",
        "0.1",
        "0.3",
        /* halfway between two doubles, and just beside it */
        "9007199254740993.0000000000000000000000000000000000000000000000000000000000001",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126",
        /* the ends of the range, the last one with 788 digits */
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "4.9406564584124654e-324",
        "2.4703282292062328e-324",
        "2.4703282292062327e-324",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "2.225073858507201136057409796709131975934819546351645648023426109724822222021076"
        "94551652952390813508791414915891303962110687008643869459464552765720740782062174"
        "33799881410632673292535522868813721490129811224514518898490572223072852551331557"
        "55015914397476397983411801999323962548289017107081850690630666655994938275772572"
        "01576306269066333264756530000924588831643303777979186961204949739037782970490505"
        "10806099407302629371289589500035837999672072543043602840788957717961509455167482"
        "43471030702609144621572289880258182545180325707018860872113128079512233426288368"
        "62232150377566662250398253433597456888442390026549819838548794829220689472168983"
        "10996983658468140228542433306603398508864458040010349339704275671864433837704860"
        "37861622771738545623065874679014086723327636718751234567890123456789012345678901"
        "e-308",
        "1e-323",
        "1e-324",
        "1e-400",
        "1e-99999999999",
        "0.000000000000000000000000000000000001e36",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) check_reading(texts[i]);
    /* More digits than can matter: the last one decides between two doubles all the same. */
    char text[2000];
    snprintf(text, sizeof text, "1.00000000000000011102230246251565404236316680908203125%01500d1",
             0);
    double x = 0;
    assert_true(parse(text, &x) && x == 1 + 0x1p-52);
    text[strlen(text) - 1] = '0';
    assert_true(parse(text, &x) && x == 1);
}

static void random_readings(void **state) {
    (void)state;
    char text[64];
    for (uint64_t i = 0; i < 20000; i++) {
        const uint64_t a = random_bits(2 * i), b = random_bits(2 * i + 1);
        const int digits = 1 + (int)(b % 19);
        snprintf(text, sizeof text, "%s%llu.%0*llue%d", i & 1 ? "-" : "",
                 (unsigned long long)(a % 1000), digits, (unsigned long long)(b >> (b & 31)),
                 (int)(a >> 40) % 320);
        double want = strtod(text, NULL), got;
        if (!tg_isfinite(want))
            assert_false(parse(text, &got));
        else
            check_reading(text);
    }
}

/* -------------------------------------------------------------------------------------- writing */

/* The digits of a number without sign, point, exponent, and zeros at both ends. */
static void only_digits(const char *text, char out[32]) {
    size_t n = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (n > 0 || *text != '0')) out[n++] = *text;
    while (n > 0 && out[n - 1] == '0') n--;
    out[n] = 0;
}

/* Reads back, and no text with fewer digits does. */
static void check_writing(double x) {
    char text[TG_NUMBER_BYTES], shorter[64];
    double back;
    const size_t length = tg_format_double(x, text);
    assert_int_equal(strlen(text), length);
    assert_true(length < TG_NUMBER_BYTES);
    if (!parse(text, &back) || tg_bits_from_double(back) != tg_bits_from_double(x))
        fail_msg("%a written as %s", x, text);
    char own[32];
    only_digits(text, own);
    const int n_digits = (int)strlen(own);
    if (n_digits > 1) {
        snprintf(shorter, sizeof shorter, "%.*e", n_digits - 2, x);
        assert_false(strtod(shorter, NULL) == x);
    }
    /* Of all texts of this length it is the nearest: printf's, unless that one reads as another. */
    char other[32];
    snprintf(shorter, sizeof shorter, "%.*e", n_digits - 1, x);
    if (strtod(shorter, NULL) == x) {
        only_digits(shorter, other);
        assert_string_equal(own, other);
    }
}

static void written_numbers(void **state) {
    (void)state;
    static const struct {
        double x;
        const char *want;
    } cases[] = {
        { 0, "0" },
        { -0.0, "-0" },
        { 1, "1" },
        { -3, "-3" },
        { 0.1, "0.1" },
        { 1e21, "1e21" },
        { 0.3, "0.3" },
        { 100, "100" },
        { 123456789, "123456789" },
        { 1e16, "10000000000000000" },
        { 1e17, "1e17" },
        { 0.00001, "0.00001" },
        { 0.000001, "1e-6" },
        { 1.5e300, "1.5e300" },
        { 5e-324, "5e-324" },
        { DBL_MAX, "1.7976931348623157e308" },
        { 0x1p-1022, "2.2250738585072014e-308" },
        { 1.0 / 3, "0.3333333333333333" },
        { 2.0 / 3, "0.6666666666666666" },
        { 3e-4, "0.0003" },
        { 9007199254740993.0, "9007199254740992" },
        { 1e23, "1e23" },
        { 9.5, "9.5" },
        { 0.0003125, "0.0003125" },
        { 1e-5 * 3, "0.000030000000000000004" },
        { -12.75, "-12.75" },
    };
    char text[TG_NUMBER_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_format_double(cases[i].x, text);
        assert_string_equal(text, cases[i].want);
        if (cases[i].x != 0) check_writing(cases[i].x);
    }
    tg_format_double(TG_NAN, text);
    assert_string_equal(text, "nan");
    tg_format_double(-TG_INF, text);
    assert_string_equal(text, "-inf");
    tg_format_float(0.1f, text);
    assert_string_equal(text, "0.1");
    tg_format_float(16777216.0f, text);
    assert_string_equal(text, "16777216");
    tg_format_float(1e-45f, text);
    assert_string_equal(text, "1e-45");
    tg_format_float(FLT_MAX, text);
    assert_string_equal(text, "3.4028235e38");
    tg_format_float((float)TG_INF, text);
    assert_string_equal(text, "inf");
}

static void random_writings(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        const double any = tg_double_from_bits(random_bits(i));
        if (tg_isfinite(any) && any != 0) check_writing(any);
        check_writing((double)(int64_t)random_bits(i) * 0x1p-64); /* of ordinary size */
        check_writing(tg_ldexp(1, (int)(i % 2098) - 1074));       /* powers: uneven neighbours */
        const float f = tg_float_from_bits((uint32_t)random_bits(i));
        if (tg_isfinite((double)f)) {
            char text[TG_NUMBER_BYTES], digits[32];
            tg_format_float(f, text);
            only_digits(text, digits);
            assert_true(strtof(text, NULL) == f && strlen(digits) <= 9);
        }
    }
}

/* ---------------------------------------------------------------------------------------- UTF-8 */

static void every_code_point(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 0x120000; code++) {
        const bool valid = code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
        char bytes[4];
        uint32_t back = 0;
        const size_t length = tg_utf8_put(code, bytes);
        assert_int_equal(length > 0, valid);
        if (!valid) continue;
        assert_int_equal(length, code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);
        assert_int_equal(tg_utf8_next(bytes, length, &back), length);
        assert_int_equal(back, code);
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(tg_utf8_next(bytes, cut, &back), 0);
    }
}

/* All 4-byte strings over the bytes where something changes; valid ones must be what put writes. */
static void every_boundary_byte(void **state) {
    (void)state;
    static const unsigned char bytes[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0,
                                           0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xec, 0xed,
                                           0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff };
    const size_t n = sizeof bytes;
    for (size_t i = 0; i < n * n * n * n; i++) {
        const char text[4] = { (char)bytes[i % n], (char)bytes[i / n % n],
                               (char)bytes[i / n / n % n], (char)bytes[i / n / n / n] };
        uint32_t code;
        char again[4];
        const size_t length = tg_utf8_next(text, 4, &code);
        if (length) {
            assert_int_equal(tg_utf8_put(code, again), length);
            assert_memory_equal(again, text, length);
        }
    }
}

static void valid_beginnings(void **state) {
    (void)state;
    assert_int_equal(tg_utf8_valid("", 0), 0);
    assert_int_equal(tg_utf8_valid("h\xc3\xa9llo", 6), 6);
    assert_int_equal(tg_utf8_valid("h\xc3\xa9llo", 2), 1);
    assert_int_equal(tg_utf8_valid("ab\xff", 3), 2);
    assert_int_equal(tg_utf8_valid("\xc0\x80", 2), 0);         /* overlong zero */
    assert_int_equal(tg_utf8_valid("a\xed\xa0\x80", 4), 1);    /* a surrogate */
    assert_int_equal(tg_utf8_valid("\xf4\x90\x80\x80", 4), 0); /* beyond 10FFFF */
}

/* ------------------------------------------------------------------------------- text in place */

static void appended_text(void **state) {
    (void)state;
    char text[12] = "";
    tg_str_append(text, sizeof text, "%s %d", "abc", 12);
    assert_string_equal(text, "abc 12");
    tg_str_append(text, 8, "%s", "xyz"); /* room for one more */
    assert_string_equal(text, "abc 12x");
    tg_str_append(text, 8, "%s", "y"); /* for none */
    assert_string_equal(text, "abc 12x");
    tg_str_append(text, sizeof text, "%s", "");
    assert_string_equal(text, "abc 12x");
    memset(text, '#', sizeof text);
    text[0] = 0;
    tg_str_append(text, 2, "%d", 77); /* nothing behind the room that was given */
    assert_string_equal(text, "7");
    assert_int_equal(text[2], '#');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),         cmocka_unit_test(refused_numbers),
        cmocka_unit_test(hard_numbers),     cmocka_unit_test(random_readings),
        cmocka_unit_test(written_numbers),  cmocka_unit_test(random_writings),
        cmocka_unit_test(every_code_point), cmocka_unit_test(every_boundary_byte),
        cmocka_unit_test(valid_beginnings), cmocka_unit_test(appended_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
