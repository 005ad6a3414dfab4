/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - numbers, times and foreign text, made readable.
 *
 * Every tg_fmt_ function writes into the caller's buffer of TG_FMT_BYTES and returns it, so that it
 * can stand among the arguments of a printf. The macros bring a buffer that lives as long as the
 * enclosing block:
 *
 *     printf("%s of %s\n", TG_BYTES(used), TG_BYTES(all));
 */
#ifndef TG_APP_FORMAT_H
#define TG_APP_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define TG_FMT_BYTES 48

char *tg_fmt_bytes(char *buf, uint64_t n);     /* "1.12 MB": powers of 1000 */
char *tg_fmt_count(char *buf, uint64_t n);     /* "366,432" */
char *tg_fmt_short(char *buf, double n);       /* "41.2k" */
char *tg_fmt_time(char *buf, double seconds);  /* "3 min 20 s" */
char *tg_fmt_clock(char *buf, double seconds); /* "3:20" or "2:03:20" */
char *tg_fmt_percent(char *buf, double share); /* "45%", "-" when 0 or not a number */

#define TG_BYTES(n)   tg_fmt_bytes((char[TG_FMT_BYTES]) { 0 }, (n))
#define TG_COUNT(n)   tg_fmt_count((char[TG_FMT_BYTES]) { 0 }, (n))
#define TG_SHORT(n)   tg_fmt_short((char[TG_FMT_BYTES]) { 0 }, (n))
#define TG_TIME(s)    tg_fmt_time((char[TG_FMT_BYTES]) { 0 }, (s))
#define TG_CLOCK(s)   tg_fmt_clock((char[TG_FMT_BYTES]) { 0 }, (s))
#define TG_PERCENT(x) tg_fmt_percent((char[TG_FMT_BYTES]) { 0 }, (x))

#define TG_LN2 0.69314718055994530942

/* exp(loss), for 0 <= loss; infinite when it is too large. The program links no libm, like the
 * library. */
double tg_fmt_perplexity(double loss);

/* Length, 1..4, of the valid UTF-8 character at the start of bytes; 0 if there is none. Overlong
 * forms, surrogates and what lies beyond U+10FFFF are not valid. */
size_t tg_fmt_utf8_length(const char *bytes, size_t n_bytes);

/* Columns of a terminal that tg_term_text takes for the character of length bytes: a control is
 * shown as ^X, letters of East Asia and most pictures are two wide, accents that combine have none.
 */
int tg_fmt_columns(const char *bytes, size_t length);

/*
 * Text from a user or a file, safe to show: control characters and invalid bytes become \xNN.
 * It is cut to fit cap (at least 8), with "..." at its end. Returns out.
 */
char *tg_fmt_safe(char *out, size_t cap, const char *text);

/* A word for the shell: as it is when harmless, else in single quotes. Returns out, "" if it does
 * not fit into cap. */
char *tg_fmt_shell(char *out, size_t cap, const char *word);

#endif
