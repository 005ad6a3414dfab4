/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.c - numbers, times and foreign text, made readable (see format.h).
 */
#include "print/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Units of 1000, as disks have, and not of 1024: the numbers stand beside file lengths. Three
 * digits that count; the limits 9.995 and 99.95 are where %.2f and %.1f would round up to a
 * fourth. */
char *tg_fmt_bytes(char *buf, uint64_t n) {
    static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB", "PB", "EB" };
    double value = (double)n;
    size_t unit = 0;
    /* 999.5 would be printed as 1000, so it belongs to the next unit already. */
    while (value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        unit++;
    }
    if (unit == 0) {
        snprintf(buf, TG_FMT_BYTES, "%" PRIu64 " byte%s", n, n == 1 ? "" : "s");
    } else {
        const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
        snprintf(buf, TG_FMT_BYTES, "%.*f %s", digits, value, units[unit]);
    }
    return buf;
}

/* A comma before every third digit, counted from the end. Not printf's ' flag: it goes by the
 * locale, and the same count should look the same everywhere. */
char *tg_fmt_count(char *buf, uint64_t n) {
    char digits[24]; /* 2^64 has 20, and 6 commas come between: 27 bytes fit into TG_FMT_BYTES */
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    int out = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) buf[out++] = ',';
        buf[out++] = digits[i];
    }
    buf[out] = '\0';
    return buf;
}

/* Three digits that count, whatever the size: for rates that nobody reads more closely. Beyond the
 * last unit the number grows instead, and stays right. */
char *tg_fmt_short(char *buf, double n) {
    static const char *const units[] = { "", "k", "M", "G", "T" };
    if (!isfinite(n)) {
        snprintf(buf, TG_FMT_BYTES, "-");
        return buf;
    }
    size_t unit = 0;
    while (fabs(n) >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        n /= 1000;
        unit++;
    }
    const int digits = fabs(n) < 9.995 ? 2 : fabs(n) < 99.95 ? 1 : 0;
    snprintf(buf, TG_FMT_BYTES, "%.*f%s", digits, n, units[unit]);
    return buf;
}

/* Two units at most: nobody plans by the seconds of a run that takes hours. A negative or endless
 * time comes from a rate that is not known yet, so the word for it is "unknown". */
char *tg_fmt_time(char *buf, double seconds) {
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e12) {
        snprintf(buf, TG_FMT_BYTES, "unknown");
        return buf;
    }
    /* Rounded once, here: 59.6 s is 60 s, and so a minute, and not "60 s". Each limit below is
     * where its own format would round up to the next unit. */
    const int64_t whole = (int64_t)(seconds + 0.5);
    if (seconds > 0 && seconds < 0.0005) {
        snprintf(buf, TG_FMT_BYTES, "less than 1 ms");
    } else if (seconds < 0.9995) {
        snprintf(buf, TG_FMT_BYTES, "%.0f ms", seconds * 1000);
    } else if (seconds < 9.95) {
        snprintf(buf, TG_FMT_BYTES, "%.1f s", seconds);
    } else if (whole < 60) {
        snprintf(buf, TG_FMT_BYTES, "%" PRId64 " s", whole);
    } else if (whole < 3600) {
        snprintf(buf, TG_FMT_BYTES, "%" PRId64 " min %02" PRId64 " s", whole / 60, whole % 60);
    } else if (whole < 86400) {
        snprintf(buf, TG_FMT_BYTES, "%" PRId64 " h %02" PRId64 " min", whole / 3600,
                 whole / 60 % 60);
    } else {
        snprintf(buf, TG_FMT_BYTES, "%" PRId64 " days %" PRId64 " h", whole / 86400,
                 whole / 3600 % 24);
    }
    return buf;
}

/* For a column of the table; beyond 100 hours the words of tg_fmt_time are shorter, and a time that
 * is not known is a word as well. */
char *tg_fmt_clock(char *buf, double seconds) {
    if (!isfinite(seconds) || seconds < 0 || seconds > 359999) {
        return tg_fmt_time(buf, seconds);
    }
    const int whole = (int)(seconds + 0.5);
    if (whole < 3600) {
        snprintf(buf, TG_FMT_BYTES, "%d:%02d", whole / 60, whole % 60);
    } else {
        snprintf(buf, TG_FMT_BYTES, "%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
    }
    return buf;
}

/* No number for a share of 0 or less: it stands for "not known", a peak that was not measured. */
char *tg_fmt_percent(char *buf, double share) {
    if (!isfinite(share) || share <= 0) {
        snprintf(buf, TG_FMT_BYTES, "-");
    } else {
        snprintf(buf, TG_FMT_BYTES, "%.0f%%", share * 100);
    }
    return buf;
}

/* e for each whole nat, then the series for the rest of it, which ends after 20 terms: 1 / 20! is
 * below a double's last bit. Our own, since the program is linked without libm, and the same digits
 * should be printed on every machine. A loss is not negative; exp(709.8) is the largest double. */
double tg_fmt_perplexity(double loss) {
    if (!isfinite(loss)) return loss;
    if (loss > 709) return HUGE_VAL;
    double product = 1, term = 1, sum = 1;
    for (; loss >= 1; loss -= 1) product *= 2.71828182845904523536;
    for (int i = 1; i <= 20; i++) {
        term *= loss / i;
        sum += term;
    }
    return product * sum;
}

/* Bytes of the first character, 0 if it is not valid UTF-8 or is cut off (RFC 3629, table 3-7 of
 * Unicode). Both mean the same to callers: show the byte, go on behind it. */
size_t tg_fmt_utf8_length(const char *bytes, size_t n_bytes) {
    if (n_bytes == 0) return 0;
    const unsigned char *b = (const unsigned char *)bytes;
    if (b[0] < 0x80) return 1;
    /* The second byte's range is what keeps out overlong forms, surrogates and the far end. */
    unsigned char low = 0x80, high = 0xBF;
    size_t length;
    if (b[0] >= 0xC2 && b[0] <= 0xDF) {
        length = 2;
    } else if (b[0] >= 0xE0 && b[0] <= 0xEF) {
        length = 3;
        if (b[0] == 0xE0) low = 0xA0;
        if (b[0] == 0xED) high = 0x9F;
    } else if (b[0] >= 0xF0 && b[0] <= 0xF4) {
        length = 4;
        if (b[0] == 0xF0) low = 0x90;
        if (b[0] == 0xF4) high = 0x8F;
    } else {
        return 0;
    }
    if (n_bytes < length || b[1] < low || b[1] > high) return 0;
    for (size_t i = 2; i < length; i++) {
        if (b[i] < 0x80 || b[i] > 0xBF) return 0;
    }
    return length;
}

/* Ranges of Unicode's EastAsianWidth.txt, W and F, with the gaps between them that nobody uses;
 * terminals agree about no more. */
int tg_fmt_columns(const char *bytes, size_t length) {
    static const struct {
        uint32_t first, last;
        int columns;
    } table[] = { { 0x300, 0x36F, 0 },     { 0x1100, 0x115F, 2 },   { 0x200B, 0x200F, 0 },
                  { 0x20D0, 0x20FF, 0 },   { 0x2E80, 0xA4CF, 2 },   { 0xA960, 0xA97F, 2 },
                  { 0xAC00, 0xD7A3, 2 },   { 0xF900, 0xFAFF, 2 },   { 0xFE00, 0xFE0F, 0 },
                  { 0xFE10, 0xFE19, 2 },   { 0xFE20, 0xFE2F, 0 },   { 0xFE30, 0xFE6F, 2 },
                  { 0xFF00, 0xFF60, 2 },   { 0xFFE0, 0xFFE6, 2 },   { 0x16FE0, 0x1B2FF, 2 },
                  { 0x1F300, 0x1F64F, 2 }, { 0x1F680, 0x1F6FF, 2 }, { 0x1F900, 0x1F9FF, 2 },
                  { 0x20000, 0x3FFFD, 2 } };
    const unsigned char *b = (const unsigned char *)bytes;
    uint32_t code = length == 1 ? b[0] : b[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) code = code << 6 | (b[i] & 0x3F);
    if (code == '\t') return 8;
    if (length == 1) return code < 0x20 || code == 0x7F ? 2 : 1;
    if (code < 0xA0) return 3;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (code >= table[i].first && code <= table[i].last) return table[i].columns;
    return 1;
}

/* Cut between characters, never within one. cap is 4 at least. Every step leaves room for the three
 * dots and the end, so the cut can be decided when it comes, without looking ahead; for that a text
 * that would just fit is cut as well. */
char *tg_fmt_safe(char *out, size_t cap, const char *text) {
    size_t left = strlen(text), used = 0;
    while (left > 0) {
        const size_t length = tg_fmt_utf8_length(text, left);
        const unsigned char first = (unsigned char)text[0];
        /* C1 controls, U+0080 to U+009F, control some terminals just like ESC does. */
        const bool c1 = first == 0xC2 && length == 2 && (unsigned char)text[1] < 0xA0;
        const bool plain = length > 0 && first >= 0x20 && first != 0x7F && !c1;
        const size_t need = plain ? length : 4;
        if (used + need + 3 >= cap) { /* room for "..." and the end */
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        if (plain) {
            memcpy(out + used, text, length);
            used += length;
            text += length;
            left -= length;
        } else {
            char hex[5];
            snprintf(hex, sizeof hex, "\\x%02X", first);
            memcpy(out + used, hex, 4);
            used += 4;
            text++;
            left--;
        }
    }
    out[used] = '\0';
    return out;
}

/* Better to quote too much: what a shell takes as special differs between shells. A word that does
 * not fit gives "": a command that is cut would be a different one, and somebody may run it. */
char *tg_fmt_shell(char *out, size_t cap, const char *word) {
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789_./:=@%+,-";
    const size_t length = strlen(word);
    if (length > 0 && strspn(word, harmless) == length) {
        snprintf(out, cap, "%s", length < cap ? word : "");
        return out;
    }
    size_t used = 0;
    out[0] = '\0';
    /* A quote inside becomes '\'' and so takes four bytes. */
    for (size_t i = 0, need = length + 3; i < length; i++) {
        if (word[i] == '\'') need += 3;
        if (need > cap) return out;
    }
    out[used++] = '\'';
    for (size_t i = 0; i < length; i++) {
        if (word[i] == '\'') {
            memcpy(out + used, "'\\''", 4);
            used += 4;
        } else {
            out[used++] = word[i];
        }
    }
    out[used++] = '\'';
    out[used] = '\0';
    return out;
}
