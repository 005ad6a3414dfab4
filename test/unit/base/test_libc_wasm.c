/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_libc_wasm.c - the C library of the WebAssembly modules, natively and under other names,
 * beside the host's: the same text, to the last digit, and the same results.
 */
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/libc.h"

/* The headers are read, so that what follows renames the definitions alone. */
#define memcpy    wasm_memcpy
#define memmove   wasm_memmove
#define memset    wasm_memset
#define memcmp    wasm_memcmp
#define memchr    wasm_memchr
#define strlen    wasm_strlen
#define strcmp    wasm_strcmp
#define strncmp   wasm_strncmp
#define strchr    wasm_strchr
#define strrchr   wasm_strrchr
#define strstr    wasm_strstr
#define snprintf  wasm_snprintf
#define vsnprintf wasm_vsnprintf
#include "base/libc_wasm.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef strlen
#undef strcmp
#undef strncmp
#undef strchr
#undef strrchr
#undef strstr
#undef snprintf
#undef vsnprintf

/* A xorshift of 64 bits: cases must be the same in every run. */
static uint64_t random_state = 88172645463325252u;
static uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* ----------------------------------------------------------------------------------------- printf
 */

enum { ROOM = 1024, GUARD = 0x5a };

/* Both texts and lengths, with room for all and with room for a part. Formats are made here, so the
 * compiler cannot look at them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static size_t n_compared;
static void same(const char *format, ...) {
    char want[ROOM], have[ROOM];
    va_list args;
    va_start(args, format);
    const int want_n = vsnprintf(want, sizeof want, format, args);
    va_end(args);
    memset(have, GUARD, sizeof have);
    va_start(args, format);
    const int have_n = wasm_vsnprintf(have, sizeof have, format, args);
    va_end(args);
    if (want_n != have_n || strcmp(want, have) != 0)
        fail_msg("%s: want %d bytes, %s; have %d bytes, %s", format, want_n, want, have_n, have);
    n_compared++;
    const size_t room = random_bits() % (unsigned)(want_n + 2);
    memset(have, GUARD, sizeof have);
    va_start(args, format);
    const int cut_n = wasm_vsnprintf(have, room, format, args);
    va_end(args);
    assert_int_equal(cut_n, want_n);
    const size_t kept = room ? room - 1 : 0;
    assert_memory_equal(have, want, kept < (size_t)want_n ? kept : (size_t)want_n);
    if (room) assert_int_equal(have[kept < (size_t)want_n ? kept : (size_t)want_n], 0);
    for (size_t i = room; i < room + 8; i++) assert_int_equal(have[i], GUARD);
}
#pragma GCC diagnostic pop

static const char *const flags[] = { "", "-", "0", "-0" };
static const char *const widths[] = { "", "1", "7", "12", "40" };
static const char *const precisions[] = { "",   ".",  ".0",  ".1",  ".2", ".3",
                                          ".6", ".9", ".17", ".40", ".60" };
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* %[flags][width][.precision][size]letter, by a number that counts through all of them. */
static void make_format(char out[32], size_t n, const char *size, char letter) {
    snprintf(out, 32, "%%%s%s%s%s%c", flags[n % COUNT(flags)],
             widths[n / COUNT(flags) % COUNT(widths)],
             precisions[n / COUNT(flags) / COUNT(widths) % COUNT(precisions)], size, letter);
}
enum { FORMATS = COUNT(flags) * COUNT(widths) * COUNT(precisions) };

/* Ties, which go to the even digit; where %g changes to %e; carries through nines; both ends of
 * what a double holds. */
static const double doubles[] = {
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    0.25,
    0.75,
    0.125,
    0.375,
    0.0625,
    -0.25,
    1e-4,
    9.9999e-5,
    1e-5,
    1.5e-5,
    1.5e-4,
    0.00012345,
    123456,
    1234567,
    999999,
    999999.5,
    9999995,
    99999.95,
    0.99999995,
    9.5,
    99.5,
    0.95,
    0.095,
    1e15,
    1e16,
    1e21,
    1e22,
    1e23,
    1e100,
    1e-100,
    1e300,
    1e-300,
    DBL_MAX,
    -DBL_MAX,
    DBL_MIN,
    DBL_TRUE_MIN,
    2.2250738585072011e-308,
    3.14159265358979,
    2.718281828,
    -273.15,
    1.0 / 3,
    2.0 / 3,
    4503599627370497.5,
    9007199254740993.0,
    1e9,
    999999999.0,
    1000000000.5,
    5e-324,
    123e-9,
    0.3,
    INFINITY,
    -INFINITY,
    NAN,
};

static void printf_of_doubles(void **state) {
    (void)state;
    char format[32];
    for (size_t l = 0; l < 3; l++)
        for (size_t n = 0; n < FORMATS; n++)
            for (size_t i = 0; i < COUNT(doubles); i++) {
                make_format(format, n, "", "efg"[l]);
                same(format, doubles[i]);
            }
    assert_true(n_compared > 30000);
}

/* Any bits that are a number, and numbers of few digits, which are often ties. */
static void printf_of_random_doubles(void **state) {
    (void)state;
    char format[32];
    for (int i = 0; i < 20000; i++) {
        double x;
        const uint64_t bits = random_bits();
        memcpy(&x, &bits, sizeof x);
        if (i % 2) x = (double)(int64_t)(random_bits() % 2000001 - 1000000) / (1 << bits % 12);
        if (isnan(x)) x = 1;
        make_format(format, random_bits() % FORMATS, "", "efg"[i % 3]);
        same(format, x);
    }
}

static void printf_of_integers(void **state) {
    (void)state;
    static const int64_t values[] = { 0,        1,         -1,        7,         -10,       99,
                                      100,      255,       -256,      65535,     INT_MAX,   INT_MIN,
                                      UINT_MAX, INT64_MAX, INT64_MIN, 123456789, -987654321 };
    char format[32];
    for (size_t l = 0; l < 4; l++)
        for (size_t n = 0; n < FORMATS; n++)
            for (size_t i = 0; i < COUNT(values); i++) {
                const char letter = "diux"[l];
                make_format(format, n, "", letter);
                same(format, (int)values[i]);
                make_format(format, n, "l", letter);
                same(format, (long)values[i]);
                make_format(format, n, "ll", letter);
                same(format, (long long)values[i]);
                make_format(format, n, "z", letter);
                same(format, (size_t)values[i]);
            }
    same("%" PRId64 " %" PRIu64 " %" PRIx64, INT64_MIN, UINT64_MAX, UINT64_MAX);
    same("%" PRId32 " %" PRIu32 " %" PRIx32, INT32_MIN, UINT32_MAX, UINT32_MAX);
}

static void printf_of_texts(void **state) {
    (void)state;
    static const char *const texts[] = { "", "a", "tensor", "a text that is longer than a width",
                                         "\xc3\xa4\xff\x80" };
    char format[32];
    for (size_t n = 0; n < FORMATS; n++)
        for (size_t i = 0; i < COUNT(texts); i++) {
            make_format(format, n, "", 's');
            if (!strchr(format, '0') || strchr(format, '.')) same(format, texts[i]);
        }
    for (int c = 0; c < 256; c++) same("%c|%3c|%-3c|", c, c, c);
    same("100 %% of %s, %d of %zu (%.1f %%)", "tokens", 3, (size_t)4, 75.0);
    for (int precision = -3; precision < 12; precision++) {
        same("%.*s|", precision, "of a text");
        same("%.*f|%.*g|%.*e", precision, 2.5, precision, 12345.678, precision, 1e-7);
        same("%.*d", precision, 42);
    }
    /* The precision is a limit: a text need not end within it. */
    const char open[3] = { 'a', 'b', 'c' };
    same("%.3s", open);
}

/* Not in the list of libc.h: refused, and not guessed. */
static void printf_refuses_the_rest(void **state) {
    (void)state;
    static const char *const formats[] = { "%p", "%n", "%a", "%+d", "% d", "%#x",
                                           "%o", "%E", "%",  "%hd", "%5" };
    char out[64];
    for (size_t i = 0; i < COUNT(formats); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
        assert_true(wasm_snprintf(out, sizeof out, formats[i], 1) < 0);
#pragma GCC diagnostic pop
    }
    assert_int_equal(wasm_snprintf(NULL, 0, "%d", 12345), 5);
}

/* ----------------------------------------------------------------------------------- bytes, texts
 */

static int sign(int x) { return (x > 0) - (x < 0); }

/* Few letters, so that they meet; bytes above 127, which must not count as negative. */
static void random_text(char out[33], size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = "ab\x80\xff"[random_bits() % 4];
    out[n] = 0;
}

static void texts_as_the_host_does(void **state) {
    (void)state;
    char a[33], b[33];
    for (int turn = 0; turn < 20000; turn++) {
        random_text(a, random_bits() % 33);
        random_text(b, random_bits() % (turn % 2 ? 33 : 4));
        const size_t n = random_bits() % 34;
        const int c = "ab\x80\xff"[random_bits() % 5];
        assert_int_equal(wasm_strlen(a), strlen(a));
        assert_int_equal(sign(wasm_strcmp(a, b)), sign(strcmp(a, b)));
        assert_int_equal(sign(wasm_strncmp(a, b, n)), sign(strncmp(a, b, n)));
        assert_ptr_equal(wasm_strchr(a, c), strchr(a, c));
        assert_ptr_equal(wasm_strrchr(a, c), strrchr(a, c));
        assert_ptr_equal(wasm_strchr(a, 0), a + strlen(a));
        assert_ptr_equal(wasm_strrchr(a, 0), a + strlen(a));
        assert_ptr_equal(wasm_strstr(a, b), strstr(a, b));
    }
    /* Nothing behind what is found is read, however long the text: see asan. */
    static const char endless[] = { 'a', '\n' };
    assert_ptr_equal(wasm_strchr(endless, '\n'), endless + 1);
    assert_ptr_equal(wasm_strstr(a, ""), a);
    assert_int_equal(wasm_strncmp("a", "b", 0), 0);
}

static void bytes_as_the_host_does(void **state) {
    (void)state;
    unsigned char a[48], b[48];
    for (int turn = 0; turn < 20000; turn++) {
        for (size_t i = 0; i < sizeof a; i++)
            a[i] = b[i] = (unsigned char)(random_bits() % 3 * 127);
        b[random_bits() % sizeof b] ^= (unsigned char)(random_bits() % 2 * 0x81);
        const size_t n = random_bits() % (sizeof a + 1);
        assert_int_equal(sign(wasm_memcmp(a, b, n)), sign(memcmp(a, b, n)));
        const int byte = (int)(random_bits() % 4 * 127) - (int)(turn % 2 ? 256 : 0);
        assert_ptr_equal(wasm_memchr(a, byte, n), memchr(a, byte, n));
        const size_t from = random_bits() % 16, to = random_bits() % 16;
        memcpy(b, a, sizeof b);
        assert_ptr_equal(wasm_memmove(a + to, a + from, 32), a + to);
        memmove(b + to, b + from, 32);
        assert_memory_equal(a, b, sizeof a);
        assert_ptr_equal(wasm_memset(a + from, byte, to), a + from);
        memset(b + from, byte, to);
        assert_memory_equal(a, b, sizeof a);
    }
    assert_ptr_equal(wasm_memcpy(a, "0123456789", 10), a);
    assert_memory_equal(a, "0123456789", 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printf_of_doubles),       cmocka_unit_test(printf_of_random_doubles),
        cmocka_unit_test(printf_of_integers),      cmocka_unit_test(printf_of_texts),
        cmocka_unit_test(printf_refuses_the_rest), cmocka_unit_test(texts_as_the_host_does),
        cmocka_unit_test(bytes_as_the_host_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
