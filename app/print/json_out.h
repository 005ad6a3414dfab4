/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out.h - prints one JSON value to a stream, in compact form.
 *
 *     tg_jout j = tg_jout_to(stdout);
 *     tg_jout_open(&j, NULL, '{');
 *     tg_jout_int(&j, "step", 7);
 *     tg_jout_open(&j, "ms", '[');
 *     tg_jout_double(&j, NULL, 1.5);
 *     tg_jout_close(&j);
 *     tg_jout_close(&j);              {"step":7,"ms":[1.5]}
 *     tg_jout_line(&j);               ends the line and flushes it
 *
 * key is NULL inside arrays and for the outermost value. Numbers that JSON lacks (NaN, infinity)
 * become null; doubles are printed with the fewest digits that read back to the same bits; bytes
 * that are no UTF-8 become U+FFFD. What the stream refuses is found by ferror() at the end.
 */
#ifndef TG_APP_JSON_OUT_H
#define TG_APP_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TG_JOUT_DEPTH 8

typedef struct tg_jout {
    FILE *file;
    unsigned depth;
    char closer[TG_JOUT_DEPTH]; /* '}' or ']' of each open value */
    bool has[TG_JOUT_DEPTH];    /* something is printed there already */
} tg_jout;

tg_jout tg_jout_to(FILE *file);
void tg_jout_open(tg_jout *j, const char *key, char bracket); /* '{' or '[' */
void tg_jout_close(tg_jout *j);
void tg_jout_line(tg_jout *j);

void tg_jout_text(tg_jout *j, const char *key, const char *text); /* NULL becomes null */
void tg_jout_text_n(tg_jout *j, const char *key, const char *bytes, size_t n_bytes);
void tg_jout_double(tg_jout *j, const char *key, double value);
void tg_jout_rounded(tg_jout *j, const char *key, double value, int decimals); /* for timings */
void tg_jout_int(tg_jout *j, const char *key, int64_t value);
void tg_jout_uint(tg_jout *j, const char *key, uint64_t value);
void tg_jout_bool(tg_jout *j, const char *key, bool value);

#endif
