/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unicode.c - searches in the generated tables; Hangul syllables are computed (Unicode 3.12).
 */
#include "tok/unicode/unicode.h"

#include "base/str.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const uint32_t class_runs[] = {
#include "tok/unicode/unicode_class.def"
};
typedef struct lower_row {
    uint32_t first, last, step;
    int32_t delta;
} lower_row;
static const lower_row lower_rows[] = {
#define ROW(first, last, step, delta) { first, last, step, delta },
#include "tok/unicode/unicode_lower.def"
#undef ROW
};
static const uint32_t small_rows[] = {
#include "tok/unicode/unicode_small.def"
};
static const uint32_t capital_rows[] = {
#include "tok/unicode/unicode_capital.def"
};
static const uint64_t order_rows[] = {
#include "tok/unicode/unicode_order.def"
};
static const uint32_t keys[] = {
#include "tok/unicode/unicode_key.def"
};
static const uint8_t key_counts[LENGTH(keys)] = {
#include "tok/unicode/unicode_count.def"
};
static const uint16_t pool_at[(LENGTH(keys) + 15) / 16] = {
#include "tok/unicode/unicode_at.def"
};
static const uint8_t pool[] = {
#include "tok/unicode/unicode_pool.def"
};
typedef struct second_row {
    uint32_t code, at;
} second_row;
static const second_row second_rows[] = {
#define ROW(code, at) { code, at },
#include "tok/unicode/unicode_second.def"
#undef ROW
};
static const uint32_t composites[] = {
#include "tok/unicode/unicode_compose.def"
};

enum {
    HANGUL = 0xAC00,
    LEAD = 0x1100,
    VOWEL = 0x1161,
    TRAIL = 0x11A7, /* one before the first */
    N_LEAD = 19,
    N_VOWEL = 21,
    N_TRAIL = 28,
    N_HANGUL = N_LEAD * N_VOWEL * N_TRAIL
};
#define CODE_MASK 0x1fffffu

size_t tg_uc_next_long(const char *text, size_t n, uint32_t *code) {
    const size_t length = tg_utf8_next(text, n, code);
    if (length > 0) return length;
    *code = TG_UC_BYTE + (uint8_t)text[0];
    return 1;
}

size_t tg_uc_put(uint32_t code, char out[4]) {
    if (code < TG_UC_BYTE) return tg_utf8_put(code, out);
    out[0] = (char)(code - TG_UC_BYTE);
    return 1;
}

tg_uc_class tg_uc_class_of(uint32_t code) {
    if (code >= TG_UC_BYTE) return TG_UC_OTHER;
    size_t low = 0,
           high = LENGTH(class_runs); /* run high begins behind code; run low does not, or is 0 */
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (class_runs[middle] >> 3 <= code) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (tg_uc_class)(class_runs[low] & 7);
}

/* Whether one of n rows has the code. */
static bool is_in_rows(const uint32_t *rows, size_t n, uint32_t code) {
    size_t low = 0, high = n; /* rows from high on begin behind code */
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (rows[middle] >> 11 <= code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (high == 0) return false;
    const uint32_t row = rows[high - 1], behind = code - (row >> 11);
    return behind <= (row >> 1 & 1023) && behind % ((row & 1) + 1) == 0;
}

tg_uc_case tg_uc_case_of(uint32_t code) {
    uint32_t lower[2];
    if (is_in_rows(small_rows, LENGTH(small_rows), code)) return TG_UC_SMALL;
    if (tg_uc_lower(code, lower) > 1 || lower[0] != code ||
        is_in_rows(capital_rows, LENGTH(capital_rows), code))
        return TG_UC_CAPITAL;
    return TG_UC_UNCASED;
}

/* Distances to lower case may be negative: the sum wraps back. */
TG_WRAPS size_t tg_uc_lower(uint32_t code, uint32_t out[2]) {
    enum { DOTTED_I = 0x130, DOT_ABOVE = 0x307 };
    if (code == DOTTED_I) {
        out[0] = 'i';
        out[1] = DOT_ABOVE;
        return 2;
    }
    out[0] = code;
    size_t low = 0, high = LENGTH(lower_rows);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const lower_row *row = &lower_rows[middle];
        if (code < row->first) {
            high = middle;
        } else if (code > row->last) {
            low = middle + 1;
        } else {
            if ((code - row->first) % row->step == 0) out[0] = code + (uint32_t)row->delta;
            break;
        }
    }
    return 1;
}

uint8_t tg_uc_order(uint32_t code) {
    size_t low = 0, high = LENGTH(order_rows);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const uint32_t first = (uint32_t)(order_rows[middle] >> 15);
        const uint32_t last = first + (uint32_t)(order_rows[middle] >> 8 & 0x7f);
        if (code < first) {
            high = middle;
        } else if (code > last) {
            low = middle + 1;
        } else {
            return (uint8_t)(order_rows[middle] & 0xff);
        }
    }
    return 0;
}

static uint32_t pool_unit(size_t i) { return (uint32_t)pool[i] << 8 | pool[i + LENGTH(pool) / 2]; }

/* The pool is UTF-16, valid by construction. */
static size_t from_pool(size_t at, size_t n_units, uint32_t *out) {
    size_t n = 0;
    for (size_t i = 0; i < n_units; i++) {
        uint32_t unit = pool_unit(at + i);
        if (unit >= 0xD800 && unit < 0xDC00) {
            i++;
            unit = 0x10000 + ((unit - 0xD800) << 10) + (pool_unit(at + i) - 0xDC00);
        }
        out[n++] = unit;
    }
    return n;
}

/* Runs rise by (compatibility, first code); the length between the two is no part of the order. */
static bool find_run(uint32_t code, uint32_t compatibility, size_t *at, size_t *n_units) {
    size_t low = 0, high = LENGTH(keys); /* run low begins at or before code, run high not */
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        const uint32_t flag = keys[middle] >> 31, first = keys[middle] & CODE_MASK;
        if (flag > compatibility || (flag == compatibility && first > code)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    const uint32_t first = keys[low] & CODE_MASK;
    if (keys[low] >> 31 != compatibility || code < first || code - first >= key_counts[low])
        return false;
    *n_units = keys[low] >> 21 & 0x1f;
    *at = pool_at[low / 16] + (code - first) * *n_units;
    for (size_t i = low / 16 * 16; i < low; i++) *at += key_counts[i] * (keys[i] >> 21 & 0x1f);
    return true;
}

/* A range is asked by one comparison here and below: what lies before it wraps to beyond it. */
TG_WRAPS size_t tg_uc_decompose(uint32_t code, bool compatibility,
                                uint32_t out[TG_UC_DECOMPOSED_MAX]) {
    if (code - HANGUL < N_HANGUL) {
        const uint32_t s = code - HANGUL, trail = s % N_TRAIL;
        out[0] = LEAD + s / (N_VOWEL * N_TRAIL);
        out[1] = VOWEL + s % (N_VOWEL * N_TRAIL) / N_TRAIL;
        out[2] = TRAIL + trail;
        return trail ? 3 : 2;
    }
    size_t at, n_units;
    if ((compatibility && find_run(code, 1, &at, &n_units)) || find_run(code, 0, &at, &n_units)) {
        return from_pool(at, n_units, out);
    }
    out[0] = code;
    return 1;
}

/* Of two full canonical decompositions, before or behind. n counts less than the longest. */
static int compare(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b) {
    for (size_t i = 0; i < n_a && i < n_b; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return (n_a > n_b) - (n_a < n_b);
}

/* Few codes end a composite, and few composites end with one, so most calls end after the first
 * search. A composite is known by its decomposition, which has the second at its end; so first has
 * to be what normal.c composes: a code that composition keeps. */
static uint32_t composite(uint32_t first, uint32_t second) {
    size_t low = 0, high = LENGTH(second_rows); /* row low begins at or before second, or is 0 */
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (second_rows[middle].code <= second) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (second_rows[low].code != second || low + 1 == LENGTH(second_rows)) return 0;
    uint32_t want[TG_UC_DECOMPOSED_MAX], have[TG_UC_DECOMPOSED_MAX];
    const size_t n = tg_uc_decompose(first, false, want);
    high = second_rows[low + 1].at;
    for (low = second_rows[low].at; low < high;) {
        const size_t middle = (low + high) / 2;
        const uint32_t made = composites[middle];
        const int order = compare(have, tg_uc_decompose(made, false, have) - 1, want, n);
        if (order == 0) return made;
        if (order > 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return 0;
}

TG_WRAPS uint32_t tg_uc_compose(uint32_t first, uint32_t second) {
    if (first - LEAD < N_LEAD && second - VOWEL < N_VOWEL) {
        return HANGUL + ((first - LEAD) * N_VOWEL + (second - VOWEL)) * N_TRAIL;
    }
    if (first - HANGUL < N_HANGUL && (first - HANGUL) % N_TRAIL == 0 && second > TRAIL &&
        second < TRAIL + N_TRAIL) {
        return first + (second - TRAIL);
    }
    return composite(first, second);
}
