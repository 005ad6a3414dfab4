/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc_wasm.c - the functions of base/libc.h, for WebAssembly, where there is no C library.
 *
 * Memory is moved by the bulk instructions, which engines implement with their own memcpy. Text
 * functions are plain loops: they see paths, keys and messages, never data.
 *
 * printf's numbers are exact: a double is turned into all of its decimal digits (at most 767 of
 * them) and rounded once, ties to even, so a message reads as it does in a native build. What is
 * not in the list of libc.h (%p, %n, %a, the flags + # and space) is refused with a negative result
 * rather than guessed.
 *
 * To be compiled with -fno-builtin: otherwise a loop that runs to the zero is recognised as strlen,
 * and becomes a call to itself. The first three need -mbulk-memory for the same reason.
 */
#include "base/libc.h"

#if defined(__wasm__) && !defined(__wasm_bulk_memory__)
#error "libc_wasm.c needs -mbulk-memory"
#endif

/* ---------------------------------------------------------------------------------------- bytes */

void *memcpy(void *restrict to, const void *restrict from, size_t n_bytes) {
    return __builtin_memcpy(to, from, n_bytes);
}

void *memmove(void *to, const void *from, size_t n_bytes) {
    return __builtin_memmove(to, from, n_bytes);
}

void *memset(void *to, int byte, size_t n_bytes) { return __builtin_memset(to, byte, n_bytes); }

int memcmp(const void *a, const void *b, size_t n_bytes) {
    const unsigned char *p = a, *q = b;
    for (size_t i = 0; i < n_bytes; i++)
        if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
    return 0;
}

void *memchr(const void *bytes, int byte, size_t n_bytes) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n_bytes; i++)
        if (p[i] == (unsigned char)byte) return (void *)(uintptr_t)(p + i);
    return NULL;
}

/* ----------------------------------------------------------------------------------------- text */

size_t strlen(const char *text) {
    size_t n = 0;
    while (text[n]) n++;
    return n;
}

int strncmp(const char *a, const char *b, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++) {
        const unsigned char p = (unsigned char)a[i], q = (unsigned char)b[i];
        if (p != q) return p < q ? -1 : 1;
        if (p == 0) break;
    }
    return 0;
}

int strcmp(const char *a, const char *b) { return strncmp(a, b, SIZE_MAX); }

/* The zero at the end is a character that can be looked for. What lies behind the character is not
 * read: a line may be sought at the beginning of a long text, again and again. */
char *strchr(const char *text, int c) {
    for (; *text != (char)c; text++)
        if (!*text) return NULL;
    return (char *)(uintptr_t)text;
}

char *strrchr(const char *text, int c) {
    for (size_t n = strlen(text) + 1; n > 0; n--)
        if (text[n - 1] == (char)c) return (char *)(uintptr_t)(text + n - 1);
    return NULL;
}

char *strstr(const char *text, const char *part) {
    const size_t n = strlen(part);
    for (; strncmp(text, part, n) != 0; text++)
        if (!*text) return NULL;
    return (char *)(uintptr_t)text;
}

/* ----------------------------------------------------------------------------- compiler runtime */

#if defined(__wasm__)
/*
 * The compiler turns the overflow checks of base/mem.h into products of 128 bits, and calls this
 * for them. By halves of 32 bits:  (a1 a0) * (b1 b0) = a1 b1 2^64 + (a1 b0 + a0 b1) 2^32 + a0 b0.
 */
__extension__ typedef __int128 wide;
wide __multi3(wide a, wide b);

wide __multi3(wide a, wide b) {
    const uint64_t a_low = (uint64_t)a, b_low = (uint64_t)b;
    const uint64_t a0 = (uint32_t)a_low, a1 = a_low >> 32, b0 = (uint32_t)b_low, b1 = b_low >> 32;
    const uint64_t cross = a1 * b0 + (a0 * b0 >> 32); /* at most 2^64 - 2^32: no carry is lost */
    const uint64_t middle = a0 * b1 + (uint32_t)cross;
    const uint64_t high = a1 * b1 + (cross >> 32) + (middle >> 32) + (uint64_t)(a >> 64) * b_low +
                          a_low * (uint64_t)(b >> 64);
    const uint64_t words[2] = { a_low * b_low, high };
    wide product;
    memcpy(&product, words, sizeof product);
    return product;
}
#endif

/* ------------------------------------------------------------------------------- exact decimals */

#define LIMB       1000000000u /* nine digits */
#define LIMBS      90          /* 2^-1074 times 2^53 - 1 has 767 digits */
#define DIGITS_MAX (9 * LIMBS)

/* 0.d1 d2 d3 ... dn * 10^point; n = 0 stands for zero, whose point is 1, as that of a one. */
typedef struct decimal {
    int n, point;
    char digit[DIGITS_MAX]; /* '0'..'9' */
} decimal;

/* limb[0] is the least. Returns the number of limbs in use afterwards. */
static int multiply(uint32_t limb[LIMBS], int n, uint32_t factor) {
    uint64_t carry = 0;
    for (int i = 0; i < n; i++) {
        carry += (uint64_t)limb[i] * factor;
        limb[i] = (uint32_t)(carry % LIMB);
        carry /= LIMB;
    }
    if (carry) limb[n++] = (uint32_t)carry;
    return n;
}

static int multiply_power(uint32_t limb[LIMBS], int n, uint32_t base, int exponent) {
    for (; exponent >= 8; exponent -= 8) {
        const uint32_t square = base * base;
        n = multiply(limb, n, square * square);
        n = multiply(limb, n, square * square);
    }
    for (; exponent > 0; exponent--) n = multiply(limb, n, base);
    return n;
}

/* fraction * 2^exponent; a negative power of two is a power of five with the point moved:
 * f / 2^k = f * 5^k / 10^k. So both directions end in one integer. */
static void exact_decimal(uint64_t fraction, int exponent, decimal *out) {
    out->n = 0;
    out->point = 1;
    if (fraction == 0) return;
    uint32_t limb[LIMBS] = { (uint32_t)(fraction % LIMB), (uint32_t)(fraction / LIMB) };
    int n = limb[1] ? 2 : 1;
    n = exponent >= 0 ? multiply_power(limb, n, 2, exponent)
                      : multiply_power(limb, n, 5, -exponent);
    for (int i = n - 1; i >= 0; i--) {
        uint32_t part = limb[i];
        for (int place = 8; place >= 0; place--, part /= 10)
            out->digit[out->n + place] = (char)('0' + part % 10);
        out->n += 9;
    }
    int zeros = 0;
    while (out->digit[zeros] == '0') zeros++;
    out->n -= zeros;
    memmove(out->digit, out->digit + zeros, (size_t)out->n);
    out->point = out->n + (exponent < 0 ? exponent : 0);
}

/* Is what lies behind the first `keep` digits more than half a unit, or half beside an odd digit?
 */
static bool rounds_up(const decimal *d, int keep) {
    if (keep < 0 || keep >= d->n) return false;
    if (d->digit[keep] != '5') return d->digit[keep] > '5';
    for (int i = keep + 1; i < d->n; i++)
        if (d->digit[i] != '0') return true;
    return keep > 0 && (d->digit[keep - 1] - '0') % 2 == 1;
}

/* Keeps that many digits; the last nine may carry, up to a new first digit. */
static void round_decimal(decimal *d, int keep) {
    const bool up = rounds_up(d, keep);
    if (keep < 0) keep = 0;
    if (keep < d->n) d->n = keep;
    if (!up) return;
    while (d->n > 0 && d->digit[d->n - 1] == '9') d->n--;
    if (d->n > 0) {
        d->digit[d->n - 1]++;
        return;
    }
    d->digit[d->n++] = '1';
    d->point++;
}

/* ------------------------------------------------------------------------------ numbers as text */

#define PRECISION_MAX 60
#define NUMBER_BYTES  (310 + 1 + PRECISION_MAX + 8) /* the largest double has 309 digits */

static char digit_at(const decimal *d, int i) { return i >= 0 && i < d->n ? d->digit[i] : '0'; }

/* Plain digits, `places` of them behind the point. Returns the length. */
static size_t lay_out_plain(const decimal *d, int places, char *out) {
    size_t n = 0;
    if (d->point <= 0) out[n++] = '0';
    for (int i = 0; i < d->point; i++) out[n++] = digit_at(d, i);
    if (places > 0) out[n++] = '.';
    for (int i = 0; i < places; i++) out[n++] = digit_at(d, d->point + i);
    return n;
}

/* One digit, the point, `places` digits, and an exponent of at least two digits. */
static size_t lay_out_exponent(const decimal *d, int places, char *out) {
    size_t n = 0;
    out[n++] = digit_at(d, 0);
    if (places > 0) out[n++] = '.';
    for (int i = 1; i <= places; i++) out[n++] = digit_at(d, i);
    const int exponent = d->point - 1, size = exponent < 0 ? -exponent : exponent;
    out[n++] = 'e';
    out[n++] = exponent < 0 ? '-' : '+';
    if (size >= 100) out[n++] = (char)('0' + size / 100);
    out[n++] = (char)('0' + size / 10 % 10);
    out[n++] = (char)('0' + size % 10);
    return n;
}

/* C11 7.21.6.1: %g is %e or %f, whichever suits the rounded value, without zeros at its end. */
static size_t lay_out_general(decimal *d, int precision, char *out) {
    if (precision == 0) precision = 1;
    round_decimal(d, precision);
    while (d->n > 1 && d->digit[d->n - 1] == '0') d->n--;
    const int exponent = d->point - 1;
    if (exponent < -4 || exponent >= precision)
        return lay_out_exponent(d, d->n > 1 ? d->n - 1 : 0, out);
    return lay_out_plain(d, d->n > d->point ? d->n - d->point : 0, out);
}

/* The digits of a finite |x|, by conversion 'e', 'f' or 'g'. */
static size_t format_finite(uint64_t bits, char conversion, int precision, char *out) {
    const int biased = (int)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    decimal d;
    exact_decimal(biased ? fraction | UINT64_C(1) << 52 : fraction, (biased ? biased : 1) - 1075,
                  &d);
    if (precision > PRECISION_MAX) precision = PRECISION_MAX;
    if (conversion == 'g') return lay_out_general(&d, precision, out);
    round_decimal(&d, conversion == 'f' ? d.point + precision : precision + 1);
    /* A value that was rounded away is a zero, and has a zero's exponent. */
    if (d.n == 0) d.point = 1;
    return conversion == 'f' ? lay_out_plain(&d, precision, out)
                             : lay_out_exponent(&d, precision, out);
}

/* At least `precision` digits; the value 0 with precision 0 has none. */
static size_t format_integer(uint64_t value, unsigned base, int precision, char *out) {
    char reversed[NUMBER_BYTES];
    size_t n = 0;
    if (precision > PRECISION_MAX) precision = PRECISION_MAX;
    for (; value || n < (size_t)precision; value /= base)
        reversed[n++] = "0123456789abcdef"[value % base];
    for (size_t i = 0; i < n; i++) out[i] = reversed[n - 1 - i];
    return n;
}

/* --------------------------------------------------------------------------------------- printf */

/* Counts all, keeps what there is room for. */
typedef struct sink {
    char *out;
    size_t room, length;
} sink;

static void put(sink *s, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++, s->length++)
        if (s->length < s->room) s->out[s->length] = bytes[i];
}

static void put_many(sink *s, char c, size_t n) {
    for (; n > 0; n--) put(s, &c, 1);
}

/* %[flags][width][.precision][size]conversion */
typedef struct conversion {
    bool left, zeros;
    size_t width;
    int precision; /* -1: not given */
    int size;      /* 0 int, 1 long, 2 long long, 3 size_t */
    char letter;
} conversion;

/* Sign, digits and padding; zeros go between sign and digits, spaces outside of both. */
static void put_padded(sink *s, const conversion *c, bool negative, const char *body, size_t n,
                       bool zeros) {
    const size_t used = n + negative, fill = c->width > used ? c->width - used : 0;
    if (!c->left && !zeros) put_many(s, ' ', fill);
    if (negative) put(s, "-", 1);
    if (!c->left && zeros) put_many(s, '0', fill);
    put(s, body, n);
    if (c->left) put_many(s, ' ', fill);
}

static size_t read_number(const char **format) {
    size_t n = 0;
    for (; **format >= '0' && **format <= '9'; (*format)++)
        if (n < 10000) n = n * 10 + (size_t)(**format - '0');
    return n;
}

/* A va_list may be an array, which a pointer to a parameter would not be: it travels in a struct.
 */
typedef struct arguments {
    va_list list;
} arguments;

static conversion read_conversion(const char **format, arguments *a) {
    conversion c = { .precision = -1 };
    for (; **format == '-' || **format == '0'; (*format)++) {
        c.left |= **format == '-';
        c.zeros |= **format == '0';
    }
    c.width = read_number(format);
    if (**format == '.') {
        (*format)++;
        if (**format == '*') {
            c.precision = va_arg(a->list, int); /* a negative one counts as not given */
            (*format)++;
        } else {
            c.precision = (int)read_number(format);
        }
    }
    if (**format == 'z') {
        c.size = 3;
        (*format)++;
    }
    for (; **format == 'l' && c.size < 2; (*format)++) c.size++;
    c.letter = **format;
    if (c.letter) (*format)++;
    return c;
}

static uint64_t take_unsigned(const conversion *c, arguments *a) {
    return c->size == 3   ? va_arg(a->list, size_t)
           : c->size == 2 ? va_arg(a->list, unsigned long long)
           : c->size == 1 ? va_arg(a->list, unsigned long)
                          : va_arg(a->list, unsigned);
}

static int64_t take_signed(const conversion *c, arguments *a) {
    return c->size == 3   ? (int64_t)va_arg(a->list, ptrdiff_t)
           : c->size == 2 ? va_arg(a->list, long long)
           : c->size == 1 ? va_arg(a->list, long)
                          : va_arg(a->list, int);
}

static void put_integer(sink *s, const conversion *c, arguments *a) {
    char body[NUMBER_BYTES];
    bool negative = false;
    uint64_t value;
    if (c->letter == 'd' || c->letter == 'i') {
        const int64_t x = take_signed(c, a);
        negative = x < 0;
        value = negative ? 0 - (uint64_t)x : (uint64_t)x;
    } else {
        value = take_unsigned(c, a);
    }
    const size_t n = format_integer(value, c->letter == 'x' ? 16 : 10,
                                    c->precision < 0 ? 1 : c->precision, body);
    put_padded(s, c, negative, body, n, c->zeros && c->precision < 0);
}

static void put_double(sink *s, const conversion *c, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const bool negative = bits >> 63 != 0;
    bits &= ~(UINT64_C(1) << 63);
    const uint64_t infinity = UINT64_C(0x7ff) << 52;
    if (bits >= infinity) {
        put_padded(s, c, negative, bits == infinity ? "inf" : "nan", 3, false);
        return;
    }
    char body[NUMBER_BYTES];
    const size_t n = format_finite(bits, c->letter, c->precision < 0 ? 6 : c->precision, body);
    put_padded(s, c, negative, body, n, c->zeros);
}

/* The precision is a limit: the text need not end with a zero within it. */
static void put_text(sink *s, const conversion *c, const char *text) {
    size_t n = 0;
    while ((c->precision < 0 || n < (size_t)c->precision) && text[n]) n++;
    put_padded(s, c, false, text, n, false);
}

/* False: the conversion is none of the list. */
static bool put_conversion(sink *s, const conversion *c, arguments *a) {
    switch (c->letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'x': put_integer(s, c, a); return true;
    case 'e':
    case 'f':
    case 'g': put_double(s, c, va_arg(a->list, double)); return true;
    case 's': put_text(s, c, va_arg(a->list, const char *)); return true;
    case 'c': {
        const char byte = (char)va_arg(a->list, int);
        put_padded(s, c, false, &byte, 1, false);
        return true;
    }
    case '%': put(s, "%", 1); return true;
    default: return false;
    }
}

int vsnprintf(char *restrict out, size_t out_bytes, const char *restrict format, va_list args) {
    sink s = { out, out_bytes ? out_bytes - 1 : 0, 0 };
    arguments a;
    va_copy(a.list, args);
    bool valid = true;
    for (const char *next = format; *next && valid;) {
        if (*next != '%') {
            put(&s, next++, 1);
            continue;
        }
        next++;
        const conversion c = read_conversion(&next, &a);
        valid = put_conversion(&s, &c, &a);
    }
    va_end(a.list);
    if (out_bytes) out[s.length < s.room ? s.length : s.room] = 0;
    return valid && s.length <= INT_MAX ? (int)s.length : -1;
}

int snprintf(char *restrict out, size_t out_bytes, const char *restrict format, ...) {
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(out, out_bytes, format, args);
    va_end(args);
    return length;
}
