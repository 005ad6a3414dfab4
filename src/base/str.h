/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.h - text: lines built in place, decimal numbers that come back exactly, and UTF-8.
 *
 * Numbers never pass through the C library: its printf and scanf obey a locale, and WebAssembly has
 * neither. Reading is correctly rounded; writing gives the shortest digits that read back as the
 * same number (and the closest of those), so a value survives any number of round trips.
 */
#ifndef TG_BASE_STR_H
#define TG_BASE_STR_H

#include "base/libc.h"

/*
 * Appends to the text in out, which must be terminated; out_bytes is all the room it has, the zero
 * included. What does not fit is cut, and out stays terminated: for messages and banners, where a
 * cut end is better than none. Text of any length is base/buf.h's.
 */
TG_PRINTF(3, 4)
void tg_str_append(char *out, size_t out_bytes, const char *format, ...);

/* Room for any number that the writers below produce, with the zero behind it. */
#define TG_NUMBER_BYTES 32

/*
 * Whole-text parsers: the n_bytes must be a number from the first to the last, without spaces or
 * plus sign. False: *out is untouched. Integers: digits, with '-' in front for int64 alone; false
 * also if the value does not fit.
 */
bool tg_parse_uint64(const char *text, size_t n_bytes, uint64_t *out);
bool tg_parse_int64(const char *text, size_t n_bytes, int64_t *out);

/* JSON's grammar: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?  Nearest double, ties to
 * even; false also if the value rounds to infinity. Tiny values round to subnormals or 0. */
bool tg_parse_double(const char *text, size_t n_bytes, double *out);

/*
 * Shortest text that reads back as the same double (or float), in JSON's grammar: "0.1", "-3",
 * "1e-07" as "1e-7", "1.5e300". Plain digits while 1e-5 <= |x| < 1e17. "nan", "inf" and "-inf"
 * for what is no number. Returns the length.
 */
size_t tg_format_double(double x, char out[TG_NUMBER_BYTES]);
size_t tg_format_float(float x, char out[TG_NUMBER_BYTES]);

/*
 * The first character of n_bytes: its code point goes to *code, its length (1..4) is returned; 0 if
 * there is no whole, valid character (overlong, surrogate, beyond 10FFFF, cut off, empty).
 */
size_t tg_utf8_next(const char *text, size_t n_bytes, uint32_t *code);
/* Writes one code point (a scalar value); returns its length, 0 for what is none. */
size_t tg_utf8_put(uint32_t code, char out[4]);
/* Bytes of the longest valid beginning: equals n_bytes if all of it is valid. */
size_t tg_utf8_valid(const char *text, size_t n_bytes);

#endif
