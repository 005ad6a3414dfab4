/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.c - text in place, decimal numbers and UTF-8.
 *
 * Both directions of the decimal conversion are done in exact integers of up to 4096 bits. That is
 * slower than the clever algorithms (a microsecond a number) and short enough to be seen to be
 * right; short numbers take a way of two exact doubles.
 *
 * Reading: the value is N / M in integers. Shifted so that 1 <= N/M < 2, a long division yields 64
 * bits and a remainder that tells whether anything is left: enough to round to 53.
 *
 * Writing: Steele and White 1990, with the scaling of Burger and Dybvig 1996. Digits are made
 * until what is left is within the interval of numbers that read back as x:
 *
 *          x - low                x                    x + high
 *     -----[----------------------*---------------------]-----   all in units of 1/scale
 *
 * low and high are half the distances to the neighbours; the ends belong to it if the last bit of
 * x is even, since reading rounds ties to even.
 */
#include "base/str.h"

#include "base/err.h"
#include "base/math.h"

/* Asks the text for its length each time, so that callers carry no second variable that could
 * disagree with it; these texts are a few hundred bytes and not on a hot path. vsnprintf would
 * return the length that it had no room for, which is why its result is not added up. */
void tg_str_append(char *out, size_t out_bytes, const char *format, ...) {
    const size_t used = strlen(out);
    TG_ASSERT(used < out_bytes);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, out_bytes - used, format, args);
    va_end(args);
}

/* ---------------------------------------------------------------------------------- big numbers */

#define LIMBS 128 /* 10^1127 shifted by a limb, the largest divisor that reading needs, has 119 */

/* limb[0] is the least; limb[n - 1] is not 0; n = 0 stands for zero. */
typedef struct big {
    int n;
    uint32_t limb[LIMBS];
} big;

/* Writes both halves and lets n say how many of them count: limb[n] and beyond are never read. */
static void big_set(big *b, uint64_t value) {
    b->limb[0] = (uint32_t)value;
    b->limb[1] = (uint32_t)(value >> 32);
    b->n = b->limb[1] ? 2 : b->limb[0] ? 1 : 0;
}

/* b = b * factor + addend */
static void big_multiply_add(big *b, uint32_t factor, uint32_t addend) {
    uint64_t carry = addend;
    for (int i = 0; i < b->n; i++) {
        carry += (uint64_t)b->limb[i] * factor;
        b->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) b->limb[b->n++] = (uint32_t)carry;
}

/* b = b * 10^exponent, nine powers at a time: 10^9 is the largest that fits into a limb. */
static void big_power_of_ten(big *b, int exponent) {
    for (; exponent >= 9; exponent -= 9) big_multiply_add(b, 1000000000, 0);
    for (; exponent > 0; exponent--) big_multiply_add(b, 10, 0);
}

/* b = b * 2^bits: whole limbs are moved, the rest is a product. */
static void big_shift_left(big *b, int bits) {
    const int limbs = bits / 32, rest = bits % 32;
    if (b->n == 0) return;
    if (limbs) {
        memmove(b->limb + limbs, b->limb, (size_t)b->n * sizeof b->limb[0]);
        memset(b->limb, 0, (size_t)limbs * sizeof b->limb[0]);
        b->n += limbs;
    }
    if (rest) big_multiply_add(b, UINT32_C(1) << rest, 0);
}

/* The place of the highest bit that is set, from 1; 0 for zero. */
static int big_bits(const big *b) {
    int bits = 0;
    if (b->n == 0) return 0;
    for (uint32_t top = b->limb[b->n - 1]; top; top >>= 1) bits++;
    return (b->n - 1) * 32 + bits;
}

/* Less than 0, 0 or more, as a is below, equal to or above b. Without leading zeros the longer one
 * is the greater one. */
static int big_compare(const big *a, const big *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* a = a - b, for a >= b. The borrow is kept as a signed number: -1 or 0 between limbs. */
static void big_subtract(big *a, const big *b) {
    int64_t borrow = 0;
    for (int i = 0; i < a->n; i++) {
        borrow += (int64_t)a->limb[i] - (i < b->n ? (int64_t)b->limb[i] : 0);
        a->limb[i] = (uint32_t)borrow;
        borrow = borrow < 0 ? -1 : 0;
    }
    while (a->n > 0 && a->limb[a->n - 1] == 0) a->n--;
}

/* a = a + b; either may be the longer one. */
static void big_add(big *a, const big *b) {
    uint64_t carry = 0;
    for (int i = 0; i < a->n || i < b->n || carry; i++) {
        carry += (uint64_t)(i < a->n ? a->limb[i] : 0) + (i < b->n ? b->limb[i] : 0);
        if (i >= a->n) a->n = i + 1;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* ------------------------------------------------------------------------------------- integers */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The test for overflow comes before the product: value * 10 + digit <= max, turned around. */
bool tg_parse_uint64(const char *text, size_t n_bytes, uint64_t *out) {
    uint64_t value = 0;
    if (n_bytes == 0) return false;
    for (size_t i = 0; i < n_bytes; i++) {
        if (!is_digit(text[i])) return false;
        const uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

/* The negative range reaches one further than the positive one, so the sign is put on by wrapping:
 * negating as unsigned is defined for the smallest number. */
TG_WRAPS bool tg_parse_int64(const char *text, size_t n_bytes, int64_t *out) {
    const bool negative = n_bytes > 0 && text[0] == '-';
    uint64_t size;
    if (!tg_parse_uint64(text + negative, n_bytes - negative, &size)) return false;
    if (size > (uint64_t)INT64_MAX + negative) return false;
    *out = negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

/* -------------------------------------------------------------------------------------- reading */

#define DIGITS_MAX 800 /* a tie between two doubles has at most 767 digits */

/* A number as written: 0.d1 d2 d3 ... * 10^point. Leading and trailing zeros are dropped. */
typedef struct decimal {
    bool negative;
    int n;     /* digits kept, at most DIGITS_MAX */
    bool more; /* something that is not 0 lies behind them */
    int64_t point;
    uint8_t digit[DIGITS_MAX];
} decimal;

/* Digits beyond those that can matter only leave the note that there was something. */
static void add_digit(decimal *d, char c) {
    if (d->n == 0 && c == '0') return;
    if (d->n < DIGITS_MAX)
        d->digit[d->n++] = (uint8_t)(c - '0');
    else if (c != '0')
        d->more = true;
}

/*
 * Checks the grammar and collects the digits; false if the text is no number. The point is moved
 * while the digits are read: up for each one before it, once the first that is not 0 was seen, and
 * down for each zero between it and that digit.
 */
static bool scan_decimal(const char *text, size_t n_bytes, decimal *d) {
    size_t i = 0;
    d->n = 0;
    d->more = false;
    d->point = 0;
    d->negative = n_bytes > 0 && text[0] == '-';
    if (d->negative) i++;
    if (i == n_bytes || !is_digit(text[i])) return false;
    if (text[i] == '0' && i + 1 < n_bytes && is_digit(text[i + 1])) return false;
    for (; i < n_bytes && is_digit(text[i]); i++) {
        add_digit(d, text[i]);
        if (d->n) d->point++;
    }
    if (i < n_bytes && text[i] == '.') {
        i++;
        if (i == n_bytes || !is_digit(text[i])) return false;
        for (; i < n_bytes && is_digit(text[i]); i++) {
            add_digit(d, text[i]);
            if (d->n == 0) d->point--;
        }
    }
    if (i < n_bytes && (text[i] == 'e' || text[i] == 'E')) {
        int64_t exponent = 0;
        i++;
        const bool down = i < n_bytes && text[i] == '-';
        if (i < n_bytes && (text[i] == '-' || text[i] == '+')) i++;
        if (i == n_bytes) return false;
        for (; i < n_bytes && is_digit(text[i]); i++) {
            /* Saturates far beyond what any number of digits could bring back. */
            if (exponent < INT64_MAX / 100) exponent = exponent * 10 + (text[i] - '0');
        }
        d->point += down ? -exponent : exponent;
    }
    while (d->n > 0 && !d->more && d->digit[d->n - 1] == 0) d->n--;
    return i == n_bytes;
}

/*
 * q * 2^(exponent - 63) with q >= 2^63, and a little more if `more`, to the nearest double, ties to
 * even. A subnormal result has fewer bits to keep; below half of the smallest one all are dropped.
 */
static double round_to_double(uint64_t q, int exponent, bool more) {
    const int deeper = exponent < -1022 ? -1022 - exponent : 0; /* subnormal: fewer bits */
    const int drop = 11 + deeper;
    if (drop > 64) return 0;
    uint64_t kept = drop < 64 ? q >> drop : 0;
    const uint64_t rest = drop < 64 ? q & ((UINT64_C(1) << drop) - 1) : q;
    const uint64_t half = UINT64_C(1) << (drop - 1);
    kept += rest > half || (rest == half && (more || (kept & 1)));
    /* `kept` holds the implied bit, which adds 1 to the exponent; so does a carry of rounding. */
    if (deeper) return tg_double_from_bits(kept);
    return tg_double_from_bits(((uint64_t)(exponent + 1022) << 52) + kept);
}

/*
 * The long way: exact for any digits and exponents within the range of doubles. After scaling, each
 * turn of the last loop makes one bit of the quotient: the first of them is always 1.
 */
static double decimal_to_double(const decimal *d) {
    big n, m;
    big_set(&n, 0);
    big_set(&m, 1);
    for (int i = 0; i < d->n; i++) big_multiply_add(&n, 10, d->digit[i]);
    int scale = (int)d->point - d->n;
    if (d->more) { /* one more digit that stands for all that follow */
        big_multiply_add(&n, 10, 1);
        scale--;
    }
    big_power_of_ten(scale > 0 ? &n : &m, scale > 0 ? scale : -scale);

    /* 1 <= n / m < 2 after this, and the value is n / m * 2^exponent. */
    int exponent = big_bits(&n) - big_bits(&m);
    big_shift_left(exponent > 0 ? &m : &n, exponent > 0 ? exponent : -exponent);
    if (big_compare(&n, &m) < 0) {
        big_shift_left(&n, 1);
        exponent--;
    }
    uint64_t q = 0;
    for (int bit = 0; bit < 64; bit++) {
        q <<= 1;
        if (big_compare(&n, &m) >= 0) {
            big_subtract(&n, &m);
            q |= 1;
        }
        big_shift_left(&n, 1);
    }
    if (exponent > 1023) return TG_INF;
    return round_to_double(q, exponent, n.n != 0);
}

/*
 * Up to 15 digits and a power of ten up to 22 are exact doubles, so one product or quotient of them
 * is correctly rounded (Clinger 1990).
 */
static bool short_decimal(const decimal *d, double *out) {
    static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    const int64_t scale = d->point - d->n;
    if (d->n > 15 || scale < -22 || scale > 22) return false;
    uint64_t digits = 0;
    for (int i = 0; i < d->n; i++) digits = digits * 10 + d->digit[i];
    *out = scale < 0 ? (double)digits / tens[-scale] : (double)digits * tens[scale];
    return true;
}

/* What is far outside of the range never reaches the big numbers, so they have a largest size. */
bool tg_parse_double(const char *text, size_t n_bytes, double *out) {
    decimal d;
    double value = 0;
    if (!scan_decimal(text, n_bytes, &d)) return false;
    if (d.n == 0 || d.point < -325) /* 10^-325 is less than half of the smallest double */
        value = 0;
    else if (d.point > 310)
        return false;
    else if (!short_decimal(&d, &value))
        value = decimal_to_double(&d);
    if (!tg_isfinite(value)) return false;
    *out = d.negative ? -value : value;
    return true;
}

/* -------------------------------------------------------------------------------------- writing */

/* The state of the digit loop: see the drawing at the head. */
typedef struct digits {
    big rest, scale, low, high;
    bool closed; /* the ends of the interval read back as x */
} digits;

/* Is rest + high beyond the scale, so that rounding up is allowed? */
static bool reaches_up(const digits *s) {
    big sum = s->rest;
    big_add(&sum, &s->high);
    const int order = big_compare(&sum, &s->scale);
    return s->closed ? order >= 0 : order > 0;
}

/*
 * x = f * 2^e. at_power: the neighbour below is only half as far, since the exponent changes there.
 * All four numbers carry a factor 2 (4 at a power) so that half of a distance is an integer.
 */
static void start_digits(digits *s, uint64_t f, int e, bool at_power) {
    const int up = e > 0 ? e : 0, down = e < 0 ? -e : 0;
    big_set(&s->rest, f);
    big_set(&s->scale, 1);
    big_set(&s->low, 1);
    big_set(&s->high, 1);
    big_shift_left(&s->rest, up + 1 + at_power);
    big_shift_left(&s->scale, down + 1 + at_power);
    big_shift_left(&s->low, up);
    big_shift_left(&s->high, up + at_power);
    s->closed = (f & 1) == 0;
}

/* Divides by 10^point so that the first digit is the one before the point. Returns point, for
 * x = 0.d1 d2 ... * 10^point. */
static int scale_digits(digits *s, uint64_t f, int e) {
    int bits = 0;
    for (uint64_t rest = f; rest; rest >>= 1) bits++;
    /* log10(x) from below, at most 1 too small: x >= 2^(bits + e - 1). */
    const double log10_2 = 0.30102999566398120;
    int point = (int)tg_ceil((bits + e - 1) * log10_2 - 1e-10);
    if (point > 0) {
        big_power_of_ten(&s->scale, point);
    } else {
        big_power_of_ten(&s->rest, -point);
        big_power_of_ten(&s->low, -point);
        big_power_of_ten(&s->high, -point);
    }
    if (reaches_up(s)) {
        big_multiply_add(&s->scale, 10, 0);
        point++;
    }
    return point;
}

/*
 * Shortest digits of f * 2^e > 0; returns their number, at most 17. `down`: cutting here reads back
 * as x; `up`: so does the next larger digit. With neither the digits do not yet tell x from its
 * neighbours.
 */
static int shortest_digits(uint64_t f, int e, bool at_power, char digit[20], int *point) {
    digits s;
    int n = 0;
    start_digits(&s, f, e, at_power);
    *point = scale_digits(&s, f, e);
    for (;;) {
        big_multiply_add(&s.rest, 10, 0);
        big_multiply_add(&s.low, 10, 0);
        big_multiply_add(&s.high, 10, 0);
        char d = '0';
        while (big_compare(&s.rest, &s.scale) >= 0) {
            big_subtract(&s.rest, &s.scale);
            d++;
        }
        const int order = big_compare(&s.rest, &s.low);
        const bool down = s.closed ? order <= 0 : order < 0;
        const bool up = reaches_up(&s);
        if (!down && !up) {
            digit[n++] = d;
            continue;
        }
        if (down && up) { /* both ends will do: the nearer one */
            big_shift_left(&s.rest, 1);
            const int half = big_compare(&s.rest, &s.scale);
            if (half > 0 || (half == 0 && (d & 1))) d++;
        } else if (up) {
            d++;
        }
        digit[n++] = d; /* never '9' + 1: then the previous digit would have been rounded up */
        return n;
    }
}

/* Puts sign, digits, point and exponent together. The plain form is what people write and fits into
 * TG_NUMBER_BYTES: a sign, "0.", 4 zeros and 17 digits. */
static size_t lay_out(bool negative, const char *digit, int n, int point,
                      char out[TG_NUMBER_BYTES]) {
    char *to = out;
    if (negative) *to++ = '-';
    if (point > 17 || point < -4) { /* d.ddde+-x */
        *to++ = digit[0];
        if (n > 1) *to++ = '.';
        for (int i = 1; i < n; i++) *to++ = digit[i];
        const int length = snprintf(to, 8, "e%d", point - 1);
        return (size_t)(to - out) + (size_t)length;
    }
    if (point <= 0) { /* 0.000ddd */
        *to++ = '0';
        *to++ = '.';
        for (int i = point; i < 0; i++) *to++ = '0';
    }
    for (int i = 0; i < n || i < point; i++) { /* ddd.ddd or ddd000 */
        if (i == point && point > 0) *to++ = '.';
        *to++ = i < n ? digit[i] : '0';
    }
    *to = 0;
    return (size_t)(to - out);
}

/* For what has no digits. */
static size_t copy_word(const char *word, char out[TG_NUMBER_BYTES]) {
    const size_t length = strlen(word);
    memcpy(out, word, length + 1);
    return length;
}

/*
 * Any binary format: fraction_bits of it are stored, its smallest exponent (of the last bit) is
 * least. exponent and fraction are the stored fields.
 */
static size_t format_binary(bool negative, uint64_t fraction, int exponent, int fraction_bits,
                            int least, char out[TG_NUMBER_BYTES]) {
    char digit[20];
    int point;
    if (exponent == 0 && fraction == 0) return copy_word(negative ? "-0" : "0", out);
    const uint64_t f = exponent ? fraction | UINT64_C(1) << fraction_bits : fraction;
    const int e = exponent ? least + exponent - 1 : least;
    const bool at_power = fraction == 0 && exponent > 1;
    const int n = shortest_digits(f, e, at_power, digit, &point);
    return lay_out(negative, digit, n, point, out);
}

size_t tg_format_double(double x, char out[TG_NUMBER_BYTES]) {
    const uint64_t bits = tg_bits_from_double(x);
    if (tg_isnan(x)) return copy_word("nan", out);
    if (!tg_isfinite(x)) return copy_word(x < 0 ? "-inf" : "inf", out);
    return format_binary(bits >> 63, bits & UINT64_C(0xfffffffffffff), (int)(bits >> 52 & 0x7ff),
                         52, -1074, out);
}

/* On its own bits, not as a double: the interval that reads back as x is far wider for a float. */
size_t tg_format_float(float x, char out[TG_NUMBER_BYTES]) {
    const uint32_t bits = tg_bits_from_float(x);
    if (!tg_isfinite((double)x)) return tg_format_double((double)x, out);
    return format_binary(bits >> 31, bits & 0x7fffff, (int)(bits >> 23 & 0xff), 23, -149, out);
}

/* ---------------------------------------------------------------------------------------- UTF-8 */

/*
 * A length that the lead announces, continuation bytes, and then the value itself is checked: that
 * order catches overlong forms and surrogates without a table of special cases.
 *
 *   code points        bytes                                (RFC 3629)
 *   0000..007F         0xxxxxxx
 *   0080..07FF         110xxxxx 10xxxxxx
 *   0800..FFFF         1110xxxx 10xxxxxx 10xxxxxx           without D800..DFFF
 *   10000..10FFFF      11110xxx 10xxxxxx 10xxxxxx 10xxxxxx
 */
size_t tg_utf8_next(const char *text, size_t n_bytes, uint32_t *code) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (n_bytes == 0) return 0;
    const unsigned char lead = (unsigned char)text[0];
    if (lead < 0x80) {
        *code = lead;
        return 1;
    }
    const size_t length = lead >= 0xf8 || lead < 0xc0 ? 0 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (length == 0 || length > n_bytes) return 0;
    uint32_t value = lead & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        const unsigned char next = (unsigned char)text[i];
        if ((next & 0xc0) != 0x80) return 0;
        value = value << 6 | (next & 0x3f);
    }
    if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
    *code = value;
    return length;
}

/* From the last byte to the first, six bits each; what is left goes under the lead. */
size_t tg_utf8_put(uint32_t code, char out[4]) {
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    out[0] = (char)(lead[length] | code);
    return length;
}

/* The place where it stops is the place of the first fault, for messages and for mending. */
size_t tg_utf8_valid(const char *text, size_t n_bytes) {
    size_t i = 0;
    while (i < n_bytes) {
        uint32_t code;
        if ((unsigned char)text[i] < 0x80) { /* no call for what nearly all of most texts is */
            i++;
            continue;
        }
        const size_t length = tg_utf8_next(text + i, n_bytes - i, &code);
        if (length == 0) break;
        i += length;
    }
    return i;
}
