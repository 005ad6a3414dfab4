/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.c - the JSON writer: commas, quotes and escapes.
 *
 * Two bits a level are its whole memory: is this level an object, and has it a member yet? What it
 * writes, json.c reads; strings that are no UTF-8 are mended, numbers that JSON lacks become null.
 */
#include "base/codec/json.h"

#include "base/str.h"

void tg_json_writer_init(tg_json_writer *w, tg_buf *out) { *w = (tg_json_writer) { .out = out }; }

/*
 * Everything that begins a value or key: writes the comma that is due. The value behind a key needs
 * none, since the key wrote it. At the top level values simply follow each other.
 */
static void separate(tg_json_writer *w) {
    const uint64_t bit = UINT64_C(1) << w->depth;
    if (w->keyed) {
        w->keyed = false;
        return;
    }
    if (w->depth > 0 && (w->filled_bits & bit)) tg_buf_putc(w->out, ',');
    w->filled_bits |= bit;
}

/* Level 0, the outermost, is never an object: its bit is never set. */
static bool in_object(const tg_json_writer *w) { return w->object_bits >> w->depth & 1; }

static void before_value(tg_json_writer *w) {
    TG_ASSERT(w->keyed == in_object(w)); /* in an object, and only there, a key comes first */
    separate(w);
}

/* Clears what an earlier array or object at this depth has left in the bits. */
static void begin(tg_json_writer *w, bool object) {
    before_value(w);
    TG_ASSERT(w->depth + 1 < TG_JSON_DEPTH_MAX);
    w->depth++;
    const uint64_t bit = UINT64_C(1) << w->depth;
    w->filled_bits &= ~bit;
    w->object_bits = object ? w->object_bits | bit : w->object_bits & ~bit;
    tg_buf_putc(w->out, object ? '{' : '[');
}

static void end(tg_json_writer *w, bool object) {
    TG_ASSERT(w->depth > 0 && !w->keyed && in_object(w) == object);
    w->depth--;
    tg_buf_putc(w->out, object ? '}' : ']');
}

void tg_json_begin_object(tg_json_writer *w) { begin(w, true); }
void tg_json_end_object(tg_json_writer *w) { end(w, true); }
void tg_json_begin_array(tg_json_writer *w) { begin(w, false); }
void tg_json_end_array(tg_json_writer *w) { end(w, false); }

/* A character that may not stand for itself inside quotes. A zero would be found by strchr at the
 * end of the table, so it is kept away. */
static void put_escaped(tg_buf *out, char c) {
    static const char short_names[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = c ? strchr(short_names, c) : NULL;
    if (found) {
        tg_buf_putc(out, '\\');
        tg_buf_putc(out, letters[found - short_names]);
    } else {
        tg_buf_printf(out, "\\u%04x", (unsigned)(unsigned char)c);
    }
}

/* Needs no escape; 0x7f and all of UTF-8 beyond ASCII may be written as they are (RFC 8259, 7). */
static bool plain(char c) { return (unsigned char)c >= 0x20 && c != '"' && c != '\\'; }

static void put_quoted(tg_buf *out, const char *bytes, size_t n_bytes) {
    size_t i = 0;
    tg_buf_putc(out, '"');
    while (i < n_bytes) {
        size_t run = i; /* copied as it is: valid characters that need no escape */
        while (run < n_bytes && plain(bytes[run])) {
            uint32_t code;
            const size_t length = tg_utf8_next(bytes + run, n_bytes - run, &code);
            if (length == 0) break;
            run += length;
        }
        tg_buf_append(out, bytes + i, run - i);
        i = run;
        if (i == n_bytes) break;
        if (plain(bytes[i]))
            tg_buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD for a byte that is no UTF-8 */
        else
            put_escaped(out, bytes[i]);
        i++;
    }
    tg_buf_putc(out, '"');
}

/* Keys are our own words, with nothing in them to escape. */
static void put_snake(tg_buf *out, const char *key) {
    tg_buf_putc(out, '"');
    for (; *key; key++) {
        const bool upper = *key >= 'A' && *key <= 'Z';
        if (upper) tg_buf_putc(out, '_');
        tg_buf_putc(out, upper ? (char)(*key - 'A' + 'a') : *key);
    }
    tg_buf_putc(out, '"');
}

void tg_json_key(tg_json_writer *w, const char *key) {
    TG_ASSERT(in_object(w) && !w->keyed);
    separate(w);
    if (w->snake) {
        put_snake(w->out, key);
    } else {
        put_quoted(w->out, key, strlen(key));
    }
    tg_buf_putc(w->out, ':');
    w->keyed = true;
}

void tg_json_put_string_n(tg_json_writer *w, const char *bytes, size_t n_bytes) {
    before_value(w);
    put_quoted(w->out, bytes, n_bytes);
}

void tg_json_put_string(tg_json_writer *w, const char *text) {
    tg_json_put_string_n(w, text, strlen(text));
}

void tg_json_put_int(tg_json_writer *w, int64_t value) {
    before_value(w);
    tg_buf_printf(w->out, "%" PRId64, value);
}

void tg_json_put_uint(tg_json_writer *w, uint64_t value) {
    before_value(w);
    tg_buf_printf(w->out, "%" PRIu64, value);
}

/* value - value is 0 for every finite number and NaN for the rest. */
void tg_json_put_double(tg_json_writer *w, double value) {
    char text[TG_NUMBER_BYTES];
    before_value(w);
    const size_t length = tg_format_double(value, text);
    const bool finite = value - value == 0;
    tg_buf_append(w->out, finite ? text : "null", finite ? length : 4);
}

void tg_json_put_real(tg_json_writer *w, double value) {
    char text[TG_NUMBER_BYTES];
    tg_format_double(value, text);
    tg_json_put_double(w, value);
    if (!strchr(text, '.') && !strchr(text, 'e') && !strchr(text, 'n'))
        tg_buf_append(w->out, ".0", 2);
}

/* Not as a double: 0.1f would become 0.10000000149011612. */
void tg_json_put_float(tg_json_writer *w, float value) {
    char text[TG_NUMBER_BYTES];
    before_value(w);
    const size_t length = tg_format_float(value, text);
    const bool finite = value - value == 0;
    tg_buf_append(w->out, finite ? text : "null", finite ? length : 4);
}

void tg_json_put_bool(tg_json_writer *w, bool value) {
    before_value(w);
    tg_buf_puts(w->out, value ? "true" : "false");
}

void tg_json_put_null(tg_json_writer *w) {
    before_value(w);
    tg_buf_puts(w->out, "null");
}
