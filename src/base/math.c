/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math.c - elementary functions out of +, -, *, / and sqrt.
 *
 * The plan is the same everywhere: reduce the argument to a small interval with an error far below
 * the last bit, sum a series there, and keep the large, exact part of the sum apart from the small,
 * rounded part, so that only the last addition rounds at full weight:
 *
 *     exp x   = 2^k * (1 + r + ...)           x = k ln2 + r          |r| <= ln2 / 2
 *     log x   = k ln2 + 2 atanh(f / (2 + f))  x = 2^k * (1 + f)      sqrt(1/2) <= 1 + f < sqrt(2)
 *     sin x   = +-sin r or +-cos r            x = n pi/2 + r         |r| <= pi / 4
 *     erfc x  = exp(-x*x) * q(t) / (1 + 2x)   t = (x - 3) / (x + 3)
 *
 * The series are Taylor's, whose coefficients can be checked by eye, except for erf and erfc. What
 * has to be more exact than a double is kept as an unevaluated sum of two (a dd).
 *
 * Trap: an optimiser that may reassociate (-ffast-math) or contract (a * b + c in one rounding)
 * turns the error terms below into zeros. The file must be compiled with -ffp-contract=off and
 * arithmetic in double; the first is in the Makefile, the second is checked here.
 */
#include "base/math.h"

_Static_assert(FLT_EVAL_METHOD == 0, "double arithmetic must not be done in a wider format");

/* The negative-argument path of the built-in calls libm for errno alone: -fno-math-errno drops it.
 */
double tg_sqrt(double x) { return __builtin_sqrt(x); }

/* -------------------------------------------------------------------------------- to integers */

#define INTEGERS_FROM 4503599627370496.0 /* 2^52: from here on every double is an integer */

/* Through a 64-bit integer, which truncates exactly; what is no smaller than 2^52 has no fraction,
 * and zero keeps its sign. NaN takes the first return, too. */
double tg_floor(double x) {
    if (!(tg_fabs(x) < INTEGERS_FROM) || x == 0) return x;
    const double truncated = (double)(int64_t)x;
    return truncated > x ? truncated - 1 : truncated;
}

double tg_ceil(double x) { return -tg_floor(-x); }

/* Not floor(x + 0.5): just below 0.5 that sum would round up to 1. */
double tg_round(double x) {
    const double size = tg_fabs(x);
    if (!(size < INTEGERS_FROM)) return x;
    double whole = (double)(int64_t)size;
    if (size - whole >= 0.5) whole += 1;
    return x < 0 || (x == 0 && tg_bits_from_double(x) >> 63) ? -whole : whole;
}

/* 2^e for -1022 <= e <= 1023. */
static double power_of_two(int e) { return tg_double_from_bits((uint64_t)(e + 1023) << 52); }

/*
 * Downwards in steps of 2^-969: such a step leaves 53 bits above the subnormal range or ends in a
 * number that the remaining factor turns into zero anyway, so only the last product rounds.
 */
double tg_ldexp(double x, int e) {
    for (int i = 0; i < 2 && e > 1023; i++) {
        x *= power_of_two(1023);
        e -= 1023;
    }
    for (int i = 0; i < 2 && e < -1022; i++) {
        x *= power_of_two(-969);
        e += 969;
    }
    return x * power_of_two(e > 1023 ? 1023 : e < -1022 ? -1022 : e);
}

/* ------------------------------------------------------------------------------- double-double */

/* hi + lo with |lo| <= ulp(hi) / 2: about 106 bits. */
typedef struct dd {
    double hi, lo;
} dd;

/* a + b exactly (Knuth). */
static dd two_sum(double a, double b) {
    const double sum = a + b;
    const double b_part = sum - a;
    return (dd) { sum, (a - (sum - b_part)) + (b - b_part) };
}

/* The same, for |a| >= |b| or a = 0 (Dekker). */
static dd quick_two_sum(double a, double b) {
    const double sum = a + b;
    return (dd) { sum, b - (sum - a) };
}

/* a * b exactly (Dekker, Veltkamp): each factor is split into halves of 26 bits. */
static dd two_product(double a, double b) {
    const double splitter = 134217729.0; /* 2^27 + 1 */
    const double ca = splitter * a, cb = splitter * b;
    const double a1 = ca - (ca - a), b1 = cb - (cb - b);
    const double a2 = a - a1, b2 = b - b1;
    const double product = a * b;
    return (dd) { product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2 };
}

/* Products and sums of these are good to about 2^-104; the product of both low parts is left out.
 */
static dd dd_multiply(dd a, dd b) {
    const dd p = two_product(a.hi, b.hi);
    return quick_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static dd dd_add(dd a, dd b) {
    const dd s = two_sum(a.hi, b.hi);
    return quick_two_sum(s.hi, s.lo + (a.lo + b.lo));
}

/* ln 2: 32 bits, so that k times it is exact, and the rest. */
#define LN2_HI 0x1.62e42feep-1
#define LN2_LO 0x1.a39ef35793c76p-33

/* ----------------------------------------------------------------------------------------- exp */

/* exp(x) = 2^k * (1 + r + tail), |r| <= 0.35, tail smaller than r*r. */
typedef struct exp_parts {
    int k;
    double r, tail;
} exp_parts;

/* exp(hi + lo); |hi| < 2000, |lo| < 0.01. */
static exp_parts exp_reduce(double hi, double lo) {
    const double inverse_ln2 = 0x1.71547652b82fep+0;
    const double turns = hi * inverse_ln2;
    const int k = (int)(turns < 0 ? turns - 0.5 : turns + 0.5);
    /* The first difference is exact: both terms are multiples of its last bit. */
    const dd r = two_sum(hi - k * LN2_HI, lo - k * LN2_LO);
    const double x = r.hi;
    /* sum of x^(n-2) / n! for n = 2..13; the first term left out is 4e-18 of the result. */
    const double series =
        1.0 / 2 +
        x * (1.0 / 6 +
             x * (1.0 / 24 +
                  x * (1.0 / 120 +
                       x * (1.0 / 720 +
                            x * (1.0 / 5040 +
                                 x * (1.0 / 40320 +
                                      x * (1.0 / 362880 +
                                           x * (1.0 / 3628800 +
                                                x * (1.0 / 39916800 +
                                                     x * (1.0 / 479001600 +
                                                          x * (1.0 / 6227020800)))))))))));
    return (exp_parts) { k, x, x * x * series + (r.lo + r.lo * x) };
}

/* base + r + tail with one rounding at full weight; base is 0 or |base| >= |r|. */
static double exp_sum(double base, exp_parts p) {
    const dd head = quick_two_sum(base, p.r);
    return head.hi + (head.lo + p.tail);
}

#define EXP_OVERFLOW  709.79  /* exp of more is infinite */
#define EXP_UNDERFLOW -745.14 /* exp of less rounds to 0 */

/* ldexp rounds once, so a subnormal result is within half a place of the sum before it. */
double tg_exp(double x) {
    if (tg_isnan(x)) return x;
    if (x > EXP_OVERFLOW) return TG_INF;
    if (x < EXP_UNDERFLOW) return 0;
    const exp_parts p = exp_reduce(x, 0);
    return tg_ldexp(exp_sum(1, p), p.k);
}

/* 2^k (1 + r + tail) - 1 = 2^k ((1 - 2^-k) + r + tail): the bracket is exact and loses nothing. */
double tg_expm1(double x) {
    if (tg_isnan(x) || x == 0) return x;
    if (x > EXP_OVERFLOW) return TG_INF;
    if (x < -40) return -1;
    const exp_parts p = exp_reduce(x, 0);
    return tg_ldexp(exp_sum(1 - tg_ldexp(1, -p.k), p), p.k);
}

/*
 * (e - 1) / (e + 1) for e = exp(+-2x). The sign is the one that keeps the rounding of e + 1 small:
 * minus near 0, where it comes to just below 2. From 0.55 on 1 minus a small part hides its errors.
 */
double tg_tanh(double x) {
    const double size = tg_fabs(x);
    if (tg_isnan(x) || x == 0) return x;
    double result = 1; /* beyond 22, to the last bit */
    if (size < 0.3) {
        const double t = tg_expm1(-2 * size);
        result = -t / (t + 2);
    } else if (size < 0.55) {
        const double t = tg_expm1(2 * size);
        result = t / (t + 2);
    } else if (size < 22) {
        result = 1 - 2 / (tg_expm1(2 * size) + 2);
    }
    return x < 0 ? -result : result;
}

/* ----------------------------------------------------------------------------------------- log */

/* x = 2^k * m with sqrt(1/2) <= m < sqrt(2), exactly; x positive and finite. Returns m. */
static double split_power(double x, int *k) {
    int shift = 0;
    if (x < 0x1p-1022) { /* subnormal */
        x *= 0x1p54;
        shift = -54;
    }
    const uint64_t bits = tg_bits_from_double(x);
    int exponent = (int)(bits >> 52) - 1023;
    double m = tg_double_from_bits((bits & UINT64_C(0x000fffffffffffff)) | (UINT64_C(1023) << 52));
    if (m >= 0x1.6a09e667f3bcdp+0) { /* sqrt(2) */
        m *= 0.5;
        exponent++;
    }
    *k = exponent + shift;
    return m;
}

/* atanh(s)/s - 1 - (the terms before n) = z^n/(2n+1) + ..., over z^n, for z = s*s <= 0.0295. */
static double atanh_rest_from_3(double z) {
    return 1.0 / 7 +
           z * (1.0 / 9 +
                z * (1.0 / 11 +
                     z * (1.0 / 13 + z * (1.0 / 15 + z * (1.0 / 17 + z * (1.0 / 19 + z / 21))))));
}

/*
 * k ln2 + log(1 + f) + c, for a small c. With s = f / (2 + f), log(1 + f) = 2 atanh(s) = 2s + s R,
 * and 2s = f - s f = f - (f*f/2 - s f*f/2): f is exact, all the rest is small against it.
 */
static double log_sum(double f, int k, double c) {
    const double s = f / (2 + f);
    const double z = s * s;
    const double rest = 2 * z * (1.0 / 3 + z * (1.0 / 5 + z * atanh_rest_from_3(z)));
    const double half_square = 0.5 * f * f;
    const double small = s * (half_square + rest) + (k * LN2_LO + c);
    return k * LN2_HI - ((half_square - small) - f);
}

/* NaN, 0, negative and infinite arguments of a logarithm; false if x is none of them. */
static bool log_special(double x, double *result) {
    if (x > 0 && tg_isfinite(x)) return false;
    *result = x == 0 ? -TG_INF : x > 0 || tg_isnan(x) ? x : TG_NAN;
    return true;
}

/* m - 1 is exact, since m lies within a factor of 2 of 1 (Sterbenz). */
double tg_log(double x) {
    double special;
    if (log_special(x, &special)) return special;
    int k;
    const double m = split_power(x, &k);
    return log_sum(m - 1, k, 0);
}

/* Near 0, x itself is the exact f. Elsewhere 1 + x is rounded, and the rest is put back. */
double tg_log1p(double x) {
    double special;
    const double sum = 1 + x;
    if (x == 0) return x;
    if (log_special(sum, &special)) return special;
    if (x > -0.29 && x < 0.41) return log_sum(x, 0, 0);
    /* What 1 + x lost to rounding comes back as a relative correction. */
    const double lost = x >= 1 ? 1 - (sum - x) : x - (sum - 1);
    int k;
    const double m = split_power(sum, &k);
    return log_sum(m - 1, k, lost / sum);
}

/* ----------------------------------------------------------------------------------------- pow */

/*
 * log(x) to about 2^-68 of its value. 2 atanh(s) once more; the terms up to z^2 are dd, the rest is
 * smaller by z^3 / 7 < 2^-18 and may be a double.
 */
static dd log_dd(double x) {
    const dd third = { 1.0 / 3, 0x1.5555555555555p-56 };
    const dd fifth = { 1.0 / 5, -0x1.999999999999ap-57 };
    int k;
    const double f = split_power(x, &k) - 1;

    /* s = f / (2 + f): the quotient, and its remainder divided once more. */
    const dd divisor = two_sum(2, f);
    const double s_hi = f / divisor.hi;
    const dd back = two_product(s_hi, divisor.hi);
    const double remainder = ((f - back.hi) - back.lo) - s_hi * divisor.lo;
    const dd s = quick_two_sum(s_hi, remainder / divisor.hi);

    const dd z = dd_multiply(s, s);
    const dd rest = { z.hi * atanh_rest_from_3(z.hi), 0 };
    const dd series = dd_multiply(z, dd_add(third, dd_multiply(z, dd_add(fifth, rest))));
    const dd two_s = { 2 * s.hi, 2 * s.lo };
    const dd log_m = dd_add(two_s, dd_multiply(two_s, series));
    return dd_add(quick_two_sum(k * LN2_HI, k * LN2_LO), log_m);
}

/* Beyond 2^53 every double is even. */
static bool is_integer(double y) { return tg_floor(y) == y; }

static bool is_odd(double y) {
    return is_integer(y) && tg_fabs(y) < 0x1p53 && !is_integer(y * 0.5);
}

/* x^y for 0 < x < infinity, x != 1, y finite and not 0. */
static double pow_positive(double x, double y) {
    /* |log x| >= 2^-53, so |y log x| > 2^10 here: the result is 0 or infinite. */
    if (tg_fabs(y) > 0x1p64) return (y > 0) == (x > 1) ? TG_INF : 0;
    const dd l = log_dd(x);
    dd power = two_product(y, l.hi);
    power = quick_two_sum(power.hi, power.lo + y * l.lo);
    if (power.hi > EXP_OVERFLOW) return TG_INF;
    if (power.hi < EXP_UNDERFLOW) return 0;
    const exp_parts p = exp_reduce(power.hi, power.lo);
    return tg_ldexp(exp_sum(1, p), p.k);
}

/* The special cases of C11 F.10.4.4, in an order that leaves each test as short as possible; then
 * the sign is put aside, and |x|^y remains. */
double tg_pow(double x, double y) {
    if (y == 0 || x == 1) {
        return 1;
    } /* even for NaN */
    if (tg_isnan(x) || tg_isnan(y)) return TG_NAN;
    const double size = tg_fabs(x);
    if (!tg_isfinite(y)) {
        if (size == 1) return 1;
        return (size > 1) == (y > 0) ? TG_INF : 0;
    }
    const bool sign = tg_bits_from_double(x) >> 63;
    if (sign && size != 0 && tg_isfinite(x) && !is_integer(y)) return TG_NAN;
    double result;
    if (size == 0 || !tg_isfinite(x))
        result = (size == 0) == (y > 0) ? 0 : TG_INF;
    else
        result = size == 1 ? 1 : pow_positive(size, y);
    return sign && is_odd(y) ? -result : result;
}

/* ------------------------------------------------------------------------------------ sin, cos */

/*
 * x = n * pi/2 + r. pi/2 is cut into pieces of 22 bits, so that n (31 bits) times a piece is exact;
 * five of them leave an error of 2^-114, below the last bit of r even where x comes within 2^-61 of
 * a multiple of pi/2. Returns n modulo 4.
 */
static unsigned reduce_quarter_turns(double x, dd *r) {
    if (tg_fabs(x) <= TG_PI / 4) {
        *r = (dd) { x, 0 };
        return 0;
    }
    const double two_over_pi = 0x1.45f306dc9c883p-1;
    const double n = tg_floor(x * two_over_pi + 0.5);
    const double first = x - n * 0x1.921fbp+0; /* exact */
    dd sum = two_sum(first, -n * 0x1.5110bp-22);
    sum = dd_add(sum, (dd) { -n * 0x1.1846980p-44, 0 });
    sum = dd_add(sum, (dd) { -n * 0x1.3198ap-69, 0 });
    *r = dd_add(sum, (dd) { -n * 0x1.701b839a25205p-92, 0 });
    return (unsigned)((int64_t)n & 3);
}

/* Taylor to r^17; the next term is 1e-19 of the result. */
static double sin_kernel(dd r) {
    const double x = r.hi, z = x * x;
    const double series =
        -1.0 / 6 +
        z * (1.0 / 120 +
             z * (-1.0 / 5040 +
                  z * (1.0 / 362880 + z * (-1.0 / 39916800 +
                                           z * (1.0 / 6227020800 + z * (-1.0 / 1307674368000 +
                                                                        z / 355687428096000))))));
    return x + (x * z * series + r.lo * (1 - 0.5 * z));
}

/* Taylor to r^16; the next term is 2e-18 of the result. */
static double cos_kernel(dd r) {
    const double x = r.hi, z = x * x;
    const double series =
        1.0 / 24 +
        z * (-1.0 / 720 +
             z * (1.0 / 40320 +
                  z * (-1.0 / 3628800 +
                       z * (1.0 / 479001600 + z * (-1.0 / 87178291200 + z / 20922789888000)))));
    const dd head = quick_two_sum(1, -0.5 * z);
    return head.hi + (head.lo + (z * z * series - x * r.lo));
}

#define TURNS_LIMIT (0x1p30 * TG_PI)

double tg_sin(double x) {
    if (!(tg_fabs(x) < TURNS_LIMIT)) return TG_NAN;
    if (x == 0) return x;
    dd r;
    const unsigned quarter = reduce_quarter_turns(x, &r);
    const double value = quarter & 1 ? cos_kernel(r) : sin_kernel(r);
    return quarter & 2 ? -value : value;
}

double tg_cos(double x) {
    if (!(tg_fabs(x) < TURNS_LIMIT)) return TG_NAN;
    dd r;
    const unsigned quarter = reduce_quarter_turns(x, &r);
    const double value = quarter & 1 ? sin_kernel(r) : cos_kernel(r);
    return (quarter + 1) & 2 ? -value : value;
}

/* ----------------------------------------------------------------------------------- erf, erfc */

/* c[0] + c[1] t + ... + c[n] t^n */
static double polynomial(const double *c, int n, double t) {
    double sum = c[n];
    while (n-- > 0) sum = sum * t + c[n];
    return sum;
}

/*
 * erf(x)/x - 1 in powers of x*x for |x| < 1: mpmath.chebyfit on [0, 1], degree 12, which is within
 * 1.4e-19 everywhere. Leaving the 1 out keeps the rounding of the sum below that of the final x +.
 */
static const double erf_coefficients[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379e6p-2,  0x1.ce2f21a042b30p-4,  -0x1.b82ce31284e00p-6,
    0x1.565bcd0dbaa38p-8,  -0x1.c02db3dac435fp-11, 0x1.f9a321d5b8e1ep-14, -0x1.f4d1e3183f7aep-17,
    0x1.b9df224ca4b97p-20, -0x1.5f1ecb6f0764cp-23, 0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30,
    0x1.05ffd737fb32ep-34,
};

/*
 * (1 + 2x) exp(x*x) erfc(x) in powers of t = (x - 3) / (x + 3): mpmath.chebyfit on the t of
 * x = 0.5 and x = 28, degree 22, within 1.6e-18. The factor 1 + 2x takes the slope out, so that the
 * rounding of t does not matter.
 */
static const double erfc_coefficients[] = {
    0x1.40c522d7e4987p+0,  -0x1.15c084bb9e8f3p-3,  -0x1.85a15c58aa5cdp-5,  0x1.098366a5b469fp-3,
    -0x1.e88b803a49382p-4, 0x1.17ca2877f1b96p-4,   -0x1.8574c40bc9d50p-6,  0x1.4b884e42861a1p-9,
    0x1.ef1bdd40858dcp-10, -0x1.98db50d1c3287p-11, -0x1.b9126ebf84e73p-14, 0x1.065a30a9dc77bp-13,
    0x1.4c221e37ce053p-18, -0x1.513a75424fdccp-16, -0x1.87f201dede497p-21, 0x1.d1f3d7398a3e1p-19,
    0x1.7ab395aca8d21p-22, -0x1.49fabdaa96324p-21, -0x1.2074eb1cf44dfp-23, 0x1.a83b948563730p-24,
    0x1.260f24933a2cep-25, -0x1.6e43162995cb2p-27, -0x1.293cb9f5749fcp-28,
};

#define LAST(table) ((int)(sizeof(table) / sizeof((table)[0])) - 1)

static double erf_small(double x) {
    return x + x * polynomial(erf_coefficients, LAST(erf_coefficients), x * x);
}

/* x >= 0.5. x*x is formed as h*h, exact for h of 26 bits, plus (x - h)(x + h). */
static double erfc_tail(double x) {
    if (x > 28) return 0;
    const double h = tg_double_from_bits(tg_bits_from_double(x) & ~UINT64_C(0x7ffffff));
    const exp_parts p = exp_reduce(-h * h, -(x - h) * (x + h));
    const double t = (x - 3) / (x + 3);
    const double q = polynomial(erfc_coefficients, LAST(erfc_coefficients), t);
    return tg_ldexp(exp_sum(1, p) * q / (1 + 2 * x), p.k);
}

/* From 1 on, 1 - erfc: the small part hides its errors. From 6 on, 1 to the last bit. */
double tg_erf(double x) {
    if (tg_isnan(x)) return x;
    const double size = tg_fabs(x);
    if (size < 1) return erf_small(x);
    const double result = size < 6 ? 1 - erfc_tail(size) : 1;
    return x < 0 ? -result : result;
}

/* Below 0.5, 1 - erf cannot cancel; above, the tail has its own series. */
double tg_erfc(double x) {
    if (tg_isnan(x)) return x;
    if (x < -6) return 2;
    if (x <= -1) return 2 - erfc_tail(-x);
    if (x < 0.5) return 1 - erf_small(x);
    return erfc_tail(x);
}
