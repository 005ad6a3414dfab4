/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unicode.h - what tokenizers ask of a character: its class, its lower case, its decomposition.
 *
 * The tables are generated (tools/unicode.py) from Unicode 16. A code point that is none (beyond
 * 10FFFF, a surrogate) is of class OTHER and stands for itself everywhere, so that a byte that is
 * no UTF-8 can travel as one: TG_UC_BYTE + byte.
 */
#ifndef TG_TOK_UNICODE_H
#define TG_TOK_UNICODE_H

#include "base/libc.h"

enum { TG_UC_BYTE = 0x110000 };

/* General categories, grouped. BLANK is White_Space, controls included; it comes before the rest.
 */
typedef enum tg_uc_class {
    TG_UC_OTHER,       /* symbols and what is unassigned */
    TG_UC_LETTER,      /* L */
    TG_UC_NONSPACING,  /* Mn */
    TG_UC_MARK,        /* Mc, Me */
    TG_UC_NUMBER,      /* N */
    TG_UC_PUNCTUATION, /* P */
    TG_UC_BLANK,
    TG_UC_CONTROL /* Cc, Cf, Co */
} tg_uc_class;

/* The first character of n > 0 bytes and its length; a byte that begins none is TG_UC_BYTE + it. */
size_t tg_uc_next_long(const char *text, size_t n, uint32_t *code);
static inline size_t tg_uc_next(const char *text, size_t n, uint32_t *code) {
    if ((unsigned char)text[0] >= 0x80) return tg_uc_next_long(text, n, code);
    *code = (unsigned char)text[0]; /* most of most texts, without a call */
    return 1;
}
/* Writes a code as UTF-8, or the byte that it stands for; returns the length. */
size_t tg_uc_put(uint32_t code, char out[4]);

tg_uc_class tg_uc_class_of(uint32_t code);

/* Of a letter: Lu and Lt, Ll, or one without case (Lm, Lo). */
typedef enum tg_uc_case { TG_UC_UNCASED, TG_UC_CAPITAL, TG_UC_SMALL } tg_uc_case;
tg_uc_case tg_uc_case_of(uint32_t code);

/* Full lower case without context, 1 or 2 codes; returns how many. */
size_t tg_uc_lower(uint32_t code, uint32_t out[2]);

/* Canonical combining class: 0 for a starter. */
uint8_t tg_uc_order(uint32_t code);

/* The full decomposition of a code (itself, if it has none), canonical or for compatibility;
 * returns how many. */
enum { TG_UC_DECOMPOSED_MAX = 18 };
size_t tg_uc_decompose(uint32_t code, bool compatibility, uint32_t out[TG_UC_DECOMPOSED_MAX]);

/* The code that two compose to; 0: none. */
uint32_t tg_uc_compose(uint32_t first, uint32_t second);

#endif
