/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term.c - terminal or not, and what follows from it (see term.h).
 */
#define _DEFAULT_SOURCE /* TIOCGWINSZ, isatty, fileno */
#include "print/term.h"

#include "print/format.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A locale that names another charset than UTF-8 is believed, and so are C and POSIX, which
 * somebody has asked for. None at all is not, since containers leave it unset while the terminal
 * outside is a modern one. */
static bool locale_is_unicode(void) {
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (!value || !*value) continue;
        if (!strcmp(value, "C") || !strcmp(value, "POSIX")) return false;
        const char *charset = strchr(value, '.');
        if (!charset) return true;
        return strstr(charset, "UTF") || strstr(charset, "utf");
    }
    return true;
}

/* Asked once, at the start: a stream does not become a terminal later. Off a terminal unicode is on
 * if the locale agrees, since files are read by editors; on a dumb terminal it is off. */
void tg_term_init(tg_term *term, FILE *file) {
    const char *kind = getenv("TERM");
    const char *no_colour = getenv("NO_COLOR");
    const bool dumb = !kind || strcmp(kind, "dumb") == 0;
    term->file = file;
    term->tty = isatty(fileno(file)) && !dumb;
    term->colour = term->tty && !(no_colour && *no_colour);
    /* The fonts of the Linux console have no braille. */
    term->unicode = locale_is_unicode() && !(kind && strcmp(kind, "linux") == 0) &&
                    (term->tty || !isatty(fileno(file)));
    term->live_line = false;
}

/* The sixteen colours of old: the terminal's own theme decides what they look like. */
const char *tg_term_style(const tg_term *term, tg_style style) {
    static const char *const codes[TG_STYLES] = {
        [TG_PLAIN] = "\x1b[0m", [TG_BOLD] = "\x1b[1m",   [TG_DIM] = "\x1b[2m",
        [TG_RED] = "\x1b[31m",  [TG_GREEN] = "\x1b[32m", [TG_YELLOW] = "\x1b[33m",
        [TG_CYAN] = "\x1b[36m",
    };
    return term->colour ? codes[style] : "";
}

int tg_term_width(const tg_term *term) {
    struct winsize size;
    if (term->tty && ioctl(fileno(term->file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return 80;
}

/* Bytes of the longest beginning of text that ends at a word and fits into columns; of a word that
 * does not fit at all, what fits of it. */
static size_t fitting(const char *text, size_t n_bytes, int columns) {
    size_t at = 0, word = 0;
    for (int column = 0; at < n_bytes && column < columns; column++) {
        const size_t length = tg_fmt_utf8_length(text + at, n_bytes - at);
        at += length ? length : 1;
        if (at == n_bytes || text[at] == ' ') word = at;
    }
    return at == n_bytes || word == 0 ? at : word;
}

void tg_term_wrapped(const tg_term *term, int indent, const char *text) {
    const int width = term->tty ? tg_term_width(term) - 1 : INT_MAX;
    while (*text) {
        size_t left = strcspn(text, "\n");
        const char *next = text + left + (text[left] == '\n');
        if (left == 0) fputc('\n', term->file);
        /* Where there is no room for the indentation, one word a line is no help. */
        for (int used = 0; left > 0; used = width > 2 * indent ? indent : 0) {
            const size_t n = fitting(text, left, width - used);
            fprintf(term->file, "%*s%.*s\n", used, "", (int)n, text);
            text += n;
            left -= n;
            while (left > 0 && *text == ' ') text++, left--;
        }
        text = next;
    }
}

void tg_term_live(tg_term *term, const char *line) {
    if (!term->tty) return;
    /* One column stays free: a cursor behind the last one would make some terminals wrap. */
    int columns = tg_term_width(term) - 1;
    size_t left = strlen(line), bytes = 0;
    while (left > bytes && columns > 0) {
        if (line[bytes] == '\x1b') { /* colours take no column: skip to the 'm' that ends them */
            bytes += strcspn(line + bytes, "m");
            if (bytes < left) bytes++;
            continue;
        }
        const size_t length = tg_fmt_utf8_length(line + bytes, left - bytes);
        bytes += length ? length : 1;
        columns--;
    }
    fprintf(term->file, "\r%.*s%s\x1b[K", (int)bytes, line, tg_term_style(term, TG_PLAIN));
    fflush(term->file);
    term->live_line = true;
}

/* Only if there is one: callers may clear before every line that they print. */
void tg_term_clear(tg_term *term) {
    if (!term->live_line) return;
    fputs("\r\x1b[K", term->file);
    term->live_line = false;
}

/* The filter through which a model's own words pass. C0 and DEL are shown in caret notation, a C1
 * control as the pair of ESC and letter that it stands for: U+009B is ^[[. What is no UTF-8 is one
 * U+FFFD a byte. Newline and tab pass: they cannot do harm. */
void tg_term_text(const tg_term *term, const char *bytes, size_t n_bytes) {
    if (!term->tty) {
        fwrite(bytes, 1, n_bytes, term->file);
        return;
    }
    while (n_bytes > 0) {
        size_t length = tg_fmt_utf8_length(bytes, n_bytes);
        const unsigned char c = (unsigned char)*bytes;
        if (length == 2 && c == 0xC2 && (unsigned char)bytes[1] < 0xA0) { /* C1 controls */
            fprintf(term->file, "^[%c", (unsigned char)bytes[1] - 0x40);
        } else if (length == 0) {
            fputs("\xEF\xBF\xBD", term->file);
            length = 1;
        } else if (c == 0x7F) {
            fputs("^?", term->file);
        } else if (c < 0x20 && c != '\n' && c != '\t') {
            fprintf(term->file, "^%c", c + 0x40);
        } else {
            fwrite(bytes, 1, length, term->file);
        }
        bytes += length;
        n_bytes -= length;
    }
}
