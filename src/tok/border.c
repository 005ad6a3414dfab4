/* SPDX-License-Identifier: Apache-2.0 */
/*
 * border.c - where a long text may be cut so that its pieces, each encoded alone, give the ids of
 * the whole.
 *
 *     ..word| word..        before a blank that stands alone before an ASCII letter
 *     ..word\n|word..       behind a line end that does
 *
 * All splitting rules of byte-level BPE (split.c) end a word there whatever stands around: what
 * comes before is an ASCII character that is no blank, so the run of blanks is one alone, and
 * nothing but a blank reaches back from a letter. NFC composes neither with a blank nor across one.
 * Other tokenizers put a mark before the first word, or know no words: they have no borders.
 */
#include "tok/tok_inside.h"

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_printed(char c) { return c > ' ' && c < 0x7f; }

/* A token that is found in every text, with a blank beside something else, may lie on a border. */
static bool crosses(const tg_tok *t, size_t i) {
    bool blank = false, other = false;
    if (t->types[i] != TG_TOK_USER_DEFINED) return false;
    for (uint32_t at = t->pieces.at[i]; at + 1 < t->pieces.at[i + 1]; at++)
        *(is_blank(t->pieces.bytes[at]) ? &blank : &other) = true;
    return blank && other;
}

bool tg_tok_has_borders(const tg_tok *t) {
    if (t->model == TG_TOK_RAW_BYTES) return true;
    if (t->model != TG_TOK_BYTE_BPE || t->split == TG_TOK_SPLIT_NONE ||
        (t->normal & ~(unsigned)TG_TOK_NFC))
        return false;
    for (size_t i = 0; i < t->n; i++)
        if (crosses(t, i)) return false;
    return true;
}

size_t tg_tok_border(const tg_tok *t, const char *text, size_t n) {
    if (t->model == TG_TOK_RAW_BYTES) return n;
    for (size_t i = n; i-- > 2;) {
        if (!is_letter(text[i]) || !is_printed(text[i - 2])) continue;
        if (text[i - 1] == '\n') return i;
        if (text[i - 1] == ' ') return i - 1;
    }
    return 0;
}
