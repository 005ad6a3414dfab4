/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve.c - loss curves for terminals and for pictures (see curve.h).
 *
 * Both map the points by the same frame: x from the first to the last step, y from the lowest to
 * the highest value shown. The terminal has 2 x 4 dots in a character:
 *
 *     bit   0 3        U+2800 + bits is the character
 *           1 4
 *           2 5
 *           6 7
 */
#include "print/curve.h"

#include "print/format.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The least of 1, 2, 5 times a power of ten that cuts span into at most n pieces. Loops and not
 * log10: nothing here needs libm. The factor keeps a span that is exactly n ticks from taking the
 * next larger one by rounding. */
double tg_curve_tick(double span, int n) {
    const double rough = span / n * (1 - 1e-12);
    double power = 1;
    while (power > rough && power > 1e-300) power /= 10;
    while (power * 10 <= rough) power *= 10;
    if (power >= rough) return power;
    return 2 * power >= rough ? 2 * power : 5 * power >= rough ? 5 * power : 10 * power;
}

/* The first multiple of tick that is not below x. */
static double first_tick(double x, double tick) {
    const double at = tick * (double)(int64_t)(x / tick);
    return at < x - 1e-9 * tick ? at + tick : at;
}

/* NaN never gets here: is_shown has kept it out, so plain comparisons will do. */
static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }
static int nearest(double x) { return (int)(x < 0 ? x - 0.5 : x + 0.5); }

static bool is_shown(const tg_curve_point *p) { return isfinite(p->x) && isfinite(p->y); }

/* ---------------------------------------------------------------------------------------- frame */

typedef struct frame {
    double x0, x1, y0, y1; /* x0 < x1, y0 < y1 */
} frame;

/* How many of the points are shown; the frame grows to hold them. Outliers are not cut off: a spike
 * is what a person looks at a curve for. */
static size_t extend(frame *f, const tg_curve_point *points, size_t n) {
    size_t shown = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_shown(&points[i])) continue;
        shown++;
        f->x0 = smaller(f->x0, points[i].x);
        f->x1 = larger(f->x1, points[i].x);
        f->y0 = smaller(f->y0, points[i].y);
        f->y1 = larger(f->y1, points[i].y);
    }
    return shown;
}

/* False if there is nothing to draw a line between. A flat curve gets a little height. */
static bool make_frame(frame *f, const tg_curve *c) {
    *f = (frame) { INFINITY, -INFINITY, INFINITY, -INFINITY };
    if (extend(f, c->train, c->n_train) < 2 || !(f->x0 < f->x1)) return false;
    extend(f, c->val, c->n_val);
    if (f->y1 - f->y0 < 1e-3) {
        const double middle = 0.5 * (f->y0 + f->y1);
        f->y0 = middle - 5e-4;
        f->y1 = middle + 5e-4;
    }
    return true;
}

/* ------------------------------------------------------------------------------------- terminal */

enum { LABEL_COLUMNS = 8 }; /* "  2.50 ┤" */

typedef struct canvas {
    int columns, rows;    /* characters */
    unsigned char *dots;  /* [rows][columns] bits of a braille character */
    unsigned char *marks; /* [rows][columns] a validation lies there */
    double *heights;      /* [2*columns] sums, then means, of a dot column's points */
} canvas;

/* Row 0 is the top, which is y1. */
static int dot_row(const canvas *k, const frame *f, double y) {
    const int last = 4 * k->rows - 1;
    const int row = nearest((f->y1 - y) / (f->y1 - f->y0) * last);
    return row < 0 ? 0 : row > last ? last : row;
}

/* Dot columns are half characters: 0 .. 2 * columns - 1. x0 and x1 fall on the first and the
 * last. */
static int dot_column(const canvas *k, const frame *f, double x) {
    return nearest((x - f->x0) / (f->x1 - f->x0) * (2 * k->columns - 1));
}

/* The bits of the table on top, by row and column within a character. */
static void set_dot(canvas *k, int column, int row) {
    static const unsigned char bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
    k->dots[row / 4 * k->columns + column / 2] |= bits[row % 4][column % 2];
}

/* The dots of one column, up or down to where the last one was, so that the line has no gaps. */
static void draw_column(canvas *k, int column, int row, int last_row) {
    const int towards = last_row < row ? -1 : 1;
    set_dot(k, column, row);
    while (row != last_row && row + towards != last_row) {
        row += towards;
        set_dot(k, column, row);
    }
}

/* Averages the points of each dot column, then joins the columns that have some. heights is used
 * for both, sums at first. False without memory: then nothing has been drawn. */
static bool draw_train(canvas *k, const frame *f, const tg_curve *c) {
    const int n = 2 * k->columns;
    int *counts = calloc((size_t)n, sizeof *counts);
    if (!counts) return false;
    for (int i = 0; i < n; i++) k->heights[i] = 0;
    for (size_t i = 0; i < c->n_train; i++) {
        if (!is_shown(&c->train[i])) continue;
        const int column = dot_column(k, f, c->train[i].x);
        k->heights[column] += c->train[i].y;
        counts[column]++;
    }
    int last = -1, last_row = 0;
    for (int i = 0; i < n; i++) {
        if (counts[i] == 0) continue;
        const double y = k->heights[i] / counts[i];
        const double from = last < 0 ? y : k->heights[last];
        k->heights[i] = y;
        if (last < 0) last_row = dot_row(k, f, y);
        for (int j = last < 0 ? i : last + 1; j <= i; j++) { /* straight over empty columns */
            const double share = j == i ? 1 : (double)(j - last) / (double)(i - last);
            const int row = dot_row(k, f, from + (y - from) * share);
            draw_column(k, j, row, last_row);
            last_row = row;
        }
        last = i;
    }
    free(counts);
    return true;
}

/* U+2800 + bits in UTF-8: E2, then A0 + the upper two bits, then 80 + the lower six. */
static void put_braille(FILE *file, unsigned bits) {
    fprintf(file, "\xE2%c%c", 0xA0 + (int)(bits >> 6), 0x80 + (int)(bits & 63));
}

/* Blanks at the end are not printed, and a colour is only sent where it changes: a curve is mostly
 * blanks, and a log file should not be full of escapes. */
static void print_row(const tg_term *term, const canvas *k, int row) {
    const unsigned char *dots = k->dots + row * k->columns, *marks = k->marks + row * k->columns;
    tg_style style = TG_PLAIN;
    int end = k->columns;
    while (end > 0 && !dots[end - 1] && !marks[end - 1]) end--;
    for (int i = 0; i < end; i++) {
        const tg_style wanted = marks[i] ? TG_YELLOW : dots[i] ? TG_CYAN : style;
        if (wanted != style) fputs(tg_term_style(term, wanted), term->file);
        style = wanted;
        if (marks[i]) {
            fputc('o', term->file);
        } else if (!dots[i]) {
            fputc(' ', term->file);
        } else if (term->unicode) {
            put_braille(term->file, dots[i]);
        } else {
            fputc('*', term->file);
        }
    }
    fprintf(term->file, "%s\n", style == TG_PLAIN ? "" : tg_term_style(term, TG_PLAIN));
}

/* The y tick that falls into a row of characters, NaN if none does. Walks all ticks for each row:
 * there are about half as many of them as rows, and a picture is drawn once. */
static double tick_of_row(const canvas *k, const frame *f, double tick, int row) {
    for (double y = first_tick(f->y0, tick); y <= f->y1 + 1e-9 * tick; y += tick) {
        if (dot_row(k, f, y) / 4 == row) return y;
    }
    return NAN;
}

/* Ticks as the line is drawn, labels collected meanwhile and printed below it. A label that would
 * run into the one before is moved, one that would leave the frame ends the axis. */
static void print_x_axis(const tg_term *term, const canvas *k, const frame *f) {
    char labels[512];
    const char *corner = term->unicode ? "└" : "+", *line = term->unicode ? "─" : "-";
    const char *down = term->unicode ? "┬" : "+";
    const double tick = larger(1, tg_curve_tick(f->x1 - f->x0, k->columns / 12 + 1));
    const int total = LABEL_COLUMNS + k->columns + 2; /* the width that was asked for */
    memset(labels, ' ', sizeof labels);
    fprintf(term->file, "%*s%s", LABEL_COLUMNS - 1, "", corner);
    int drawn = 0, used = 0;
    for (double x = first_tick(f->x0, tick); x <= f->x1; x += tick) {
        char text[32];
        const int at = dot_column(k, f, x) / 2;
        const int length = snprintf(text, sizeof text, "%.0f", x);
        int start = LABEL_COLUMNS + at - length / 2;
        if (start <= used && used > 0) start = used + 1;
        if (start + length > total) break;
        for (; drawn < at; drawn++) fputs(line, term->file);
        fputs(down, term->file);
        drawn++;
        memcpy(labels + start, text, (size_t)length);
        used = start + length;
    }
    for (; drawn < k->columns; drawn++) fputs(line, term->file);
    fprintf(term->file, "\n%.*s%s\n", used, labels, used + 5 <= total ? " step" : "");
}

/* A row has a label when a tick falls into it; there are about half as many ticks as rows. */
static void print_canvas(const tg_term *term, const canvas *k, const frame *f, bool has_val) {
    const char *dim = tg_term_style(term, TG_DIM), *plain = tg_term_style(term, TG_PLAIN);
    fprintf(term->file, "   loss  %strain %s%s", tg_term_style(term, TG_CYAN),
            term->unicode ? "⠤⠤" : "**", plain);
    if (has_val) fprintf(term->file, "   %svalidation o%s", tg_term_style(term, TG_YELLOW), plain);
    fputc('\n', term->file);
    const double tick = tg_curve_tick(f->y1 - f->y0, k->rows / 2);
    const int decimals = tick >= 1 ? 0 : tick >= 0.1 ? 1 : tick >= 0.01 ? 2 : 4;
    for (int row = 0; row < k->rows; row++) {
        const double y = tick_of_row(k, f, tick, row);
        if (isfinite(y)) {
            fprintf(term->file, "%s%*.*f %s%s", dim, LABEL_COLUMNS - 2, decimals, y,
                    term->unicode ? "┤" : "|", plain);
        } else {
            fprintf(term->file, "%s%*s%s%s", dim, LABEL_COLUMNS - 1, "", term->unicode ? "│" : "|",
                    plain);
        }
        print_row(term, k, row);
    }
    print_x_axis(term, k, f);
}

/* The limits keep the axis readable (36 columns) and within print_x_axis' labels (400). False if
 * there is nothing to draw, or no memory: the picture is a luxury, so neither is an error. */
bool tg_curve_draw(const tg_term *term, const tg_curve *curve, int width, int rows) {
    frame f;
    if (!make_frame(&f, curve)) return false;
    canvas k = { .columns = (width > 36 ? width : 36) - LABEL_COLUMNS - 2,
                 .rows = rows > 4 ? rows : 4 };
    if (k.columns > 400) k.columns = 400;
    const size_t cells = (size_t)k.columns * (size_t)k.rows;
    k.dots = calloc(cells, 1);
    k.marks = calloc(cells, 1);
    k.heights = calloc(2 * (size_t)k.columns, sizeof *k.heights);
    bool ok = k.dots && k.marks && k.heights && draw_train(&k, &f, curve);
    if (ok) {
        size_t n_val = 0;
        for (size_t i = 0; i < curve->n_val; i++) {
            if (!is_shown(&curve->val[i])) continue;
            const int row = dot_row(&k, &f, curve->val[i].y) / 4;
            /* A validation takes the whole character, over whatever dots lie there. */
            k.marks[row * k.columns + dot_column(&k, &f, curve->val[i].x) / 2] = 1;
            n_val++;
        }
        print_canvas(term, &k, &f, n_val > 0);
    }
    free(k.dots);
    free(k.marks);
    free(k.heights);
    return ok;
}

/* ------------------------------------------------------------------------------------------ SVG */

enum { WIDTH = 860, HEIGHT = 460, LEFT = 64, RIGHT = 24, TOP = 56, BOTTOM = 52 };

/* Pixels of the viewBox; y grows downwards. The margins hold the labels that svg_axes writes, and
 * the title and legend that svg_head does. */
static double svg_x(const frame *f, double x) {
    return (double)LEFT + (x - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

static double svg_y(const frame *f, double y) {
    return (double)TOP + (f->y1 - y) / (f->y1 - f->y0) * (HEIGHT - TOP - BOTTOM);
}

/* XML has no place for control characters, and three characters need names. */
static void put_xml(FILE *file, const char *text) {
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        length = tg_fmt_utf8_length(text, left);
        if (length == 0) {
            fputs("\xEF\xBF\xBD", file);
            length = 1;
        } else if (*text == '<') {
            fputs("&lt;", file);
        } else if (*text == '>') {
            fputs("&gt;", file);
        } else if (*text == '&') {
            fputs("&amp;", file);
        } else if ((unsigned char)*text >= 0x20) {
            fwrite(text, 1, length, file);
        }
    }
}

/* Colours are classes, so that the dark theme can replace them in one place. */
static void svg_head(FILE *file, const char *title, bool has_val) {
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n"
            "<title>",
            WIDTH, HEIGHT);
    put_xml(file, title);
    fputs("</title>\n<style>\n"
          "svg { background: #fff; font: 13px system-ui, sans-serif; }\n"
          "text { fill: #444; } .title { font-size: 16px; fill: #111; }\n"
          ".grid { stroke: #ddd; } .axis { stroke: #888; }\n"
          ".raw { stroke: #9cc3e6; } .train { stroke: #1769aa; } .key { fill: #1769aa; }\n"
          ".val { fill: #d9730d; } .vline { stroke: #d9730d; }\n"
          "polyline { fill: none; stroke-linejoin: round; }\n"
          "@media (prefers-color-scheme: dark) {\n"
          "svg { background: #16181c; } text { fill: #bbb; } .title { fill: #eee; }\n"
          ".grid { stroke: #2c3036; } .axis { stroke: #666; }\n"
          ".raw { stroke: #2f5878; } .train { stroke: #6cb6ff; } .key { fill: #6cb6ff; }\n"
          ".val { fill: #ffa657; } .vline { stroke: #ffa657; }\n"
          "}\n</style>\n",
          file);
    fprintf(file, "<text class=\"title\" x=\"%d\" y=\"28\">", LEFT);
    put_xml(file, title);
    fprintf(file, "</text>\n<rect class=\"key\" x=\"%d\" y=\"21\" width=\"18\" height=\"3\"/>",
            WIDTH - RIGHT - 190);
    fprintf(file, "<text x=\"%d\" y=\"27\">train</text>\n", WIDTH - RIGHT - 166);
    if (!has_val) return;
    fprintf(file,
            "<circle class=\"val\" cx=\"%d\" cy=\"23\" r=\"4\"/>"
            "<text x=\"%d\" y=\"27\">validation</text>\n",
            WIDTH - RIGHT - 100, WIDTH - RIGHT - 88);
}

/* Horizontal grid lines are enough to read a loss off; vertical ones would only add ink. */
static void svg_axes(FILE *file, const frame *f) {
    const double tick_y = tg_curve_tick(f->y1 - f->y0, 8);
    const double tick_x = larger(1, tg_curve_tick(f->x1 - f->x0, 8));
    const int decimals = tick_y >= 1 ? 0 : tick_y >= 0.1 ? 1 : tick_y >= 0.01 ? 2 : 4;
    for (double y = first_tick(f->y0, tick_y); y <= f->y1 + 1e-9; y += tick_y) {
        fprintf(file, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                WIDTH - RIGHT, svg_y(f, y), svg_y(f, y));
        fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.*f</text>\n", LEFT - 8,
                svg_y(f, y) + 4, decimals, y);
    }
    for (double x = first_tick(f->x0, tick_x); x <= f->x1 + 1e-9; x += tick_x) {
        fprintf(file, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>",
                svg_x(f, x), svg_x(f, x), HEIGHT - BOTTOM, HEIGHT - BOTTOM + 5);
        fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", svg_x(f, x),
                HEIGHT - BOTTOM + 20, x);
    }
    fprintf(file, "<polyline class=\"axis\" points=\"%d,%d %d,%d %d,%d\"/>\n", LEFT, TOP, LEFT,
            HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM);
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n",
            LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 12);
    fprintf(file,
            "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">"
            "loss (nats a byte)</text>\n",
            TOP + (HEIGHT - TOP - BOTTOM) / 2);
}

/*
 * The points of a polyline, each the mean of the points within half a window around it. half 0 is
 * the points themselves. The window shrinks at both ends, so the line keeps its first and last
 * step.
 */
static void svg_line(FILE *file, const frame *f, const tg_curve_point *points, size_t n,
                     size_t half, const char *kind, double stroke_width) {
    fprintf(file, "<polyline class=\"%s\" stroke-width=\"%g\" points=\"", kind, stroke_width);
    for (size_t i = 0; i < n; i++) {
        const size_t room = i < n - 1 - i ? i : n - 1 - i, reach = room < half ? room : half;
        double sum = 0;
        size_t count = 0;
        for (size_t j = i - reach; j <= i + reach; j++) {
            if (!is_shown(&points[j])) continue;
            sum += points[j].y;
            count++;
        }
        if (count == 0) continue;
        fprintf(file, "%.1f,%.1f ", svg_x(f, points[i].x), svg_y(f, sum / (double)count));
    }
    fputs("\"/>\n", file);
}

/* Written as text, one element after the other; whether the file took it is for the caller to see
 * by ferror. Faint: every step; bold: a mean over a thirtieth of the points, since single batches
 * jump about. */
bool tg_curve_svg(FILE *file, const tg_curve *curve) {
    frame f;
    if (!make_frame(&f, curve)) return false;
    bool has_val = false;
    for (size_t i = 0; i < curve->n_val; i++) has_val |= is_shown(&curve->val[i]);
    svg_head(file, curve->title, has_val);
    svg_axes(file, &f);
    svg_line(file, &f, curve->train, curve->n_train, 0, "raw", 1);
    svg_line(file, &f, curve->train, curve->n_train, curve->n_train / 60, "train", 2);
    if (has_val) svg_line(file, &f, curve->val, curve->n_val, 0, "vline", 1);
    for (size_t i = 0; i < curve->n_val; i++) {
        if (!is_shown(&curve->val[i])) continue;
        fprintf(file, "<circle class=\"val\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
                svg_x(&f, curve->val[i].x), svg_y(&f, curve->val[i].y));
    }
    fputs("</svg>\n", file);
    return true;
}
