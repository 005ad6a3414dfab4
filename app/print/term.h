/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term.h - what a person sees: colour, width, a line that is rewritten in place, text that cannot
 * control the terminal.
 *
 * Off a terminal everything is plain text: no colour, no rewriting. NO_COLOR and TERM=dumb switch
 * colour off on a terminal as well (https://no-color.org).
 */
#ifndef TG_APP_TERM_H
#define TG_APP_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct tg_term {
    FILE *file;
    bool tty;
    bool colour;
    bool unicode;   /* braille and box characters can be shown; never where the locale is C */
    bool live_line; /* a rewritten line stands at the bottom */
} tg_term;

typedef enum tg_style {
    TG_PLAIN,
    TG_BOLD,
    TG_DIM,
    TG_RED,
    TG_GREEN,
    TG_YELLOW,
    TG_CYAN,
    TG_STYLES
} tg_style;

void tg_term_init(tg_term *term, FILE *file);

/* The escape sequence that begins a style; "" without colour. End each with TG_PLAIN. */
const char *tg_term_style(const tg_term *term, tg_style style);

/* Columns now (windows are resized while a run goes on); 80 off a terminal or if unknown. */
int tg_term_width(const tg_term *term);

/* Prints lines of text, each with its end. On a terminal one that is too long goes on in the next
 * line, between two words and indent columns to the right. */
void tg_term_wrapped(const tg_term *term, int indent, const char *text);

/* Shows line in place of the line shown before, cut to the width. Only on a terminal. */
void tg_term_live(tg_term *term, const char *line);

/* Wipes the rewritten line, so that something else can be printed. */
void tg_term_clear(tg_term *term);

/*
 * Prints text of unknown origin. On a terminal control characters other than newline and tab are
 * shown as ^X, since a model may well write an escape sequence; elsewhere the bytes go out as they
 * are. Pieces must hold whole UTF-8 characters.
 */
void tg_term_text(const tg_term *term, const char *bytes, size_t n_bytes);

#endif
