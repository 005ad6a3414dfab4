/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out.c - prints JSON (see json_out.h).
 */
#include "print/json_out.h"

#include "print/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Writes straight through, without a tree: what was printed before a failure stays printed. Errors
 * of the stream stick in it and are found by main. The caller keeps the file. */
tg_jout tg_jout_to(FILE *file) { return (tg_jout) { .file = file }; }

/* DEL is escaped too: it is legal in JSON, and harmless nowhere else. Bytes that are no UTF-8
 * become U+FFFD, one each: JSON is UTF-8, and one bad name must not make the whole output
 * unreadable. */
static void put_string(FILE *f, const char *bytes, size_t n_bytes) {
    fputc('"', f);
    while (n_bytes > 0) {
        const size_t length = tg_fmt_utf8_length(bytes, n_bytes);
        const unsigned char c = (unsigned char)*bytes;
        if (length == 0) {
            fputs("\\ufffd", f);
        } else if (length > 1) {
            fwrite(bytes, 1, length, f);
        } else if (c == '"' || c == '\\') {
            fputc('\\', f);
            fputc(c, f);
        } else if (c == '\n') {
            fputs("\\n", f);
        } else if (c < 0x20 || c == 0x7F) {
            fprintf(f, "\\u%04x", c);
        } else {
            fputc(c, f);
        }
        const size_t used = length ? length : 1;
        bytes += used;
        n_bytes -= used;
    }
    fputc('"', f);
}

/* The comma before a value, and its key. has[d] says whether the list or object at depth d has a
 * member already. key is NULL in a list, and at the top. */
static void begin_value(tg_jout *j, const char *key) {
    if (j->depth > 0) {
        if (j->has[j->depth - 1]) fputc(',', j->file);
        j->has[j->depth - 1] = true;
    }
    if (key) {
        put_string(j->file, key, strlen(key));
        fputc(':', j->file);
    }
}

/* The bracket's partner is remembered, so that tg_jout_close needs no argument to get wrong. Depth
 * is bounded by the shape of our own documents, never by data. */
void tg_jout_open(tg_jout *j, const char *key, char bracket) {
    begin_value(j, key);
    fputc(bracket, j->file);
    if (j->depth == TG_JOUT_DEPTH) abort(); /* only a bug of ours nests deeper */
    j->closer[j->depth] = bracket == '{' ? '}' : ']';
    j->has[j->depth++] = false;
}

void tg_jout_close(tg_jout *j) { fputc(j->closer[--j->depth], j->file); }

/* One line a document, flushed: readers of a pipe get it when it is whole. */
void tg_jout_line(tg_jout *j) {
    fputc('\n', j->file);
    fflush(j->file);
}

void tg_jout_text_n(tg_jout *j, const char *key, const char *bytes, size_t n_bytes) {
    begin_value(j, key);
    put_string(j->file, bytes, n_bytes);
}

/* NULL becomes null, so that "unknown" needs no branch in the callers. */
void tg_jout_text(tg_jout *j, const char *key, const char *text) {
    if (text) {
        tg_jout_text_n(j, key, text, strlen(text));
    } else {
        begin_value(j, key);
        fputs("null", j->file);
    }
}

void tg_jout_double(tg_jout *j, const char *key, double value) {
    char text[40];
    begin_value(j, key);
    if (!isfinite(value)) {
        fputs("null", j->file);
        return;
    }
    /* 17 digits are always enough; fewer mostly are, and read better. */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    fputs(text, j->file);
}

/* Digits beyond the clock's own are noise, and make files that are compared look different. For
 * what was measured only: losses go through tg_jout_double, to the bit. */
void tg_jout_rounded(tg_jout *j, const char *key, double value, int decimals) {
    if (!isfinite(value) || fabs(value) > 1e15) {
        tg_jout_double(j, key, value);
        return;
    }
    begin_value(j, key);
    fprintf(j->file, "%.*f", decimals, value);
}

void tg_jout_int(tg_jout *j, const char *key, int64_t value) {
    begin_value(j, key);
    fprintf(j->file, "%" PRId64, value);
}

void tg_jout_uint(tg_jout *j, const char *key, uint64_t value) {
    begin_value(j, key);
    fprintf(j->file, "%" PRIu64, value);
}

void tg_jout_bool(tg_jout *j, const char *key, bool value) {
    begin_value(j, key);
    fputs(value ? "true" : "false", j->file);
}
