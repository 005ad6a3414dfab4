/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.c - the option parser and the help that comes from the same table (see args.h).
 *
 * Order of the checks, so that messages are the same however an argument is wrong: UTF-8, then the
 * option's name, then repetition, then the value. Positional arguments are counted at the end.
 */
#include "args.h"

#include "last_error.h"
#include "print/format.h"
#include "print/term.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Help is laid out for a fixed width, since what is piped into a pager has no window to ask, or for
 * the width of a window that is narrower. SHOWN_BYTES is how much of a wrong argument a message
 * quotes. */
enum { HELP_COLUMN = 26, HELP_WIDTH = 96, SHOWN_BYTES = 72 };

/* ------------------------------------------------------------------------------------ numbers */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits and nothing else: no sign, no blanks, no prefix. strtoull would take all of these, and
 * "-1" as 18446744073709551615. */
bool tg_args_uint64(const char *text, uint64_t *out) {
    uint64_t value = 0;
    if (*text == '\0') return false;
    for (; *text; text++) {
        if (!is_digit(*text)) return false;
        const uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

/* INT64_MIN is refused along the way: its magnitude has no int64_t, and no option needs it. */
bool tg_args_int64(const char *text, int64_t *out) {
    const bool negative = *text == '-';
    uint64_t magnitude;
    if (!tg_args_uint64(text + negative, &magnitude)) return false;
    if (magnitude > (uint64_t)INT64_MAX) return false;
    *out = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

/* The unit is cut off and the rest read as a number, so "1.5M" and "1kk" are refused with it. */
bool tg_args_size(const char *text, int64_t *out) {
    char digits[24];
    const size_t length = strlen(text);
    int64_t unit = 1, value;
    if (length == 0 || length >= sizeof digits) return false;
    memcpy(digits, text, length + 1);
    switch (digits[length - 1]) {
    case 'k': unit = 1000; break;
    case 'M': unit = 1000 * 1000; break;
    case 'G': unit = 1000 * 1000 * 1000; break;
    default: break;
    }
    if (unit != 1) digits[length - 1] = '\0';
    if (!tg_args_int64(digits, &value) || value > INT64_MAX / unit || value < -INT64_MAX / unit) {
        return false;
    }
    *out = value * unit;
    return true;
}

/* strtod takes hexadecimal, "inf", "nan" and leading blanks as well, so the characters are checked
 * first: what is left is a decimal number or an error. */
bool tg_args_double(const char *text, double *out) {
    const char *p = text + (*text == '-');
    if (!is_digit(*p) && !(*p == '.' && is_digit(p[1]))) return false;
    if (strspn(p, "0123456789.eE+-") != strlen(p)) return false;
    char *end;
    errno = 0;
    const double value = strtod(text, &end);
    if (*end != '\0' || !isfinite(value)) return false;
    *out = value;
    return true;
}

/* --------------------------------------------------------------------------------- what is near */

/*
 * Edit distance of two short words, swapped neighbours counting one; large when a word is long.
 * Only three rows of the table are alive: the current one, the one above it and, for swapped
 * neighbours ("trian"), the one above that.
 */
static size_t distance(const char *a, const char *b) {
    enum { LONGEST = 31 };
    size_t rows[3][LONGEST + 1];
    const size_t na = strlen(a), nb = strlen(b);
    if (na > LONGEST || nb > LONGEST) return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++) rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        const size_t *two_up = rows[(i + 1) % 3], *up = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best) best = up[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two_up[j - 2] + 1 < best) {
                best = two_up[j - 2] + 1;
            }
            row[j] = best;
        }
    }
    return rows[na % 3][nb];
}

/* Of equally near ones the first wins, so the order of the table is a preference. Two mistakes are
 * forgiven in a short word, three in a longer one; more would offer what nobody meant. */
const char *tg_args_nearest(const char *word, const char *const *candidates, size_t n) {
    const char *nearest = NULL;
    size_t best = strlen(word) > 5 ? 4 : 3; /* one more than the mistakes that are forgiven */
    for (size_t i = 0; i < n; i++) {
        const size_t d = distance(word, candidates[i]);
        if (d < best) {
            best = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}

/* ------------------------------------------------------------------------------------- messages */

/* Straight to standard error: the parser runs before there is a context or a live line. Returns the
 * exit code, so that callers can return the call. */
static int vrefuse(const tg_args *args, const char *format, va_list list) {
    char text[1024];
    vsnprintf(text, sizeof text, format, list);
    tg_last_error_set(text);
    fprintf(stderr, "tinygpt %s: %s\nsee tinygpt %s --help\n", args->spec->name, text,
            args->spec->name);
    return 2;
}

int tg_args_refuse(const tg_args *args, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int code = vrefuse(args, format, list);
    va_end(list);
    return code;
}

/* "want <what>, have <text>", with the text made safe for a terminal. */
static int refuse_value(const tg_args *args, const tg_option *o, const char *want,
                        const char *have) {
    char shown[SHOWN_BYTES];
    return tg_args_refuse(args, "%s: want %s, have \"%s\"", o->name, want,
                          tg_fmt_safe(shown, sizeof shown, have));
}

/* -------------------------------------------------------------------------------------- parsing */

/* The i-th option of all groups, and the struct that it is stored into. */
static const tg_option *option_at(const tg_args *args, size_t i, void **values) {
    for (size_t g = 0; g < args->n_groups; g++) {
        if (i < args->groups[g].n) {
            *values = args->groups[g].values;
            return &args->groups[g].options[i];
        }
        i -= args->groups[g].n;
    }
    return NULL;
}

/* Place of the option with this name, which is n_bytes long; SIZE_MAX if there is none. */
/* The index counts through all groups; args->given goes by it. */
static size_t find(const tg_args *args, const char *name, size_t n_bytes) {
    void *values = NULL;
    const tg_option *o;
    for (size_t i = 0; (o = option_at(args, i, &values)) != NULL; i++) {
        if (strlen(o->name) == n_bytes && memcmp(o->name, name, n_bytes) == 0) return i;
    }
    return SIZE_MAX;
}

/* For options whose default cannot tell "given" from "left alone". A name that is in no table is
 * never given: a typing error in the program goes unseen here. */
bool tg_args_given(const tg_args *args, const char *name) {
    const size_t i = find(args, name, strlen(name));
    return i != SIZE_MAX && args->given[i];
}

/* Index of a word in "a|b|c", -1 if it is none of them. The list is also what help and messages
 * show, so words and numbers cannot drift apart. No abbreviations: a script that uses one breaks
 * when a word is added. */
static int choice_index(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (int i = 0;; i++) {
        const size_t n = strcspn(words, "|");
        if (n == length && memcmp(words, word, n) == 0) return i;
        if (words[n] == '\0') return -1;
        words += n + 1;
    }
}

/* The range is part of the message, so that the second try is right. Counts and sizes share it; all
 * whole options are int64_t, whatever type the library has for them. */
static int store_whole(const tg_args *args, const tg_option *o, const char *text, int64_t *field) {
    char want[128];
    int64_t value;
    const bool is_size = o->kind == TG_OPTION_SIZE;
    const bool parsed = is_size ? tg_args_size(text, &value) : tg_args_int64(text, &value);
    if (parsed && value >= o->low && value <= o->high) {
        *field = value;
        return TG_ARGS_GO_ON;
    }
    snprintf(want, sizeof want, "a whole number from %" PRId64 " to %" PRId64 "%s", o->low, o->high,
             is_size ? " (k, M, G allowed)" : "");
    return refuse_value(args, o, want, text);
}

/* %g shows the limits as they are written in the table; above_low makes the lower one exclusive,
 * for rates that must not be 0. */
static int store_real(const tg_args *args, const tg_option *o, const char *text, double *field) {
    char want[128];
    double value;
    if (tg_args_double(text, &value) && value <= o->real_high &&
        (o->above_low ? value > o->real_low : value >= o->real_low)) {
        *field = value;
        return TG_ARGS_GO_ON;
    }
    snprintf(want, sizeof want, "a number %s %g and at most %g", o->above_low ? "above" : "from",
             o->real_low, o->real_high);
    return refuse_value(args, o, want, text);
}

static int store_item(const tg_args *args, const tg_option *o, const char *text,
                      tg_args_list *field) {
    if (*text == '\0')
        return refuse_value(args, o, o->kind == TG_OPTION_PATHS ? "the name of a file" : "a text",
                            text);
    if (field->n == TG_ARGS_LIST_MAX)
        return tg_args_refuse(args, "%s: want it at most %d times", o->name, TG_ARGS_LIST_MAX);
    field->item[field->n++] = text;
    return TG_ARGS_GO_ON;
}

/* offset leads to a field of the type that the macros of args.h checked against the kind. A field
 * is only written once its text was found good. */
static int store(const tg_args *args, const tg_option *o, void *values, const char *text) {
    void *field = (char *)values + o->offset;
    switch (o->kind) {
    case TG_OPTION_FLAG: *(bool *)field = true; return TG_ARGS_GO_ON;
    case TG_OPTION_INT:
    case TG_OPTION_SIZE: return store_whole(args, o, text, field);
    case TG_OPTION_REAL: return store_real(args, o, text, field);
    case TG_OPTION_SEED:
        if (tg_args_uint64(text, field)) return TG_ARGS_GO_ON;
        return refuse_value(args, o, "a whole number from 0 to 18446744073709551615", text);
    case TG_OPTION_PATH:
        if (*text == '\0') return refuse_value(args, o, "the name of a file", text);
        *(const char **)field = text;
        return TG_ARGS_GO_ON;
    case TG_OPTION_TEXT: *(const char **)field = text; return TG_ARGS_GO_ON;
    case TG_OPTION_TEXTS:
    case TG_OPTION_PATHS: return store_item(args, o, text, field);
    case TG_OPTION_CHOICE: break;
    }
    const int index = choice_index(o->value, text);
    if (index < 0) return refuse_value(args, o, o->value, text);
    *(int *)field = index;
    return TG_ARGS_GO_ON;
}

/* A hidden option is not offered as what was meant: it is not there for people. */
static int refuse_unknown(const tg_args *args, const char *arg, size_t length) {
    const char *names[TG_ARGS_GIVEN_MAX];
    char word[SHOWN_BYTES], shown[SHOWN_BYTES];
    size_t n = 0;
    void *values = NULL;
    const tg_option *o;
    for (size_t i = 0; n < TG_ARGS_GIVEN_MAX && (o = option_at(args, i, &values)) != NULL; i++) {
        if (!o->hidden) names[n++] = o->name;
    }
    if (length >= sizeof word) length = sizeof word - 1;
    memcpy(word, arg, length);
    word[length] = '\0';
    const char *near = tg_args_nearest(word, names, n);
    tg_fmt_safe(shown, sizeof shown, word);
    if (near) return tg_args_refuse(args, "no option %s; did you mean %s?", shown, near);
    return tg_args_refuse(args, "no option %s", shown);
}

/* Outputs are files that grow, or are replaced when they are whole: no stream can be that. */
static int refuse_stream(const tg_args *args, const char *name) {
    return tg_args_refuse(args, "%s: want the name of a file, have -, which is standard output",
                          name);
}

/* One option at argv[*at], with its value; moves *at to the last argument used. Both "--name value"
 * and "--name=value" are taken. Values are stored as pointers into argv, which outlives them. A
 * value may begin with one dash, so that negative numbers need no '='. */
static int parse_option(tg_args *args, int argc, char **argv, int *at) {
    const char *arg = argv[*at];
    const size_t length = strcspn(arg, "=");
    const char *text = arg[length] == '=' ? arg + length + 1 : NULL;
    /* A repeated option is an error and not an override: in a long command line the reader sees one
     * of the two, and it may be the wrong one. */
    const size_t index = find(args, arg, length);
    if (index == SIZE_MAX) return refuse_unknown(args, arg, length);
    void *values = NULL;
    const tg_option *o = option_at(args, index, &values);
    const bool list = o->kind == TG_OPTION_TEXTS || o->kind == TG_OPTION_PATHS;
    if (args->given[index] && !list) return tg_args_refuse(args, "%s is given twice", o->name);
    args->given[index] = true;
    if (o->kind == TG_OPTION_FLAG) {
        if (text) return tg_args_refuse(args, "%s takes no value", o->name);
    } else if (!text) {
        /* A text that begins with two dashes is more likely the next option: use '=' for it. */
        if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0) {
            return tg_args_refuse(args, "%s: want a value (%s) behind it, have none", o->name,
                                  o->value);
        }
        text = argv[++*at];
    }
    if (text && o->written && strcmp(text, "-") == 0) return refuse_stream(args, o->name);
    return store(args, o, values, text);
}

/* Prompts and names end up in JSON and in files, which are UTF-8. An argument in another encoding
 * is refused as a whole: to guess would be to train on or look for something else. */
static bool is_utf8(const char *text) {
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        length = tg_fmt_utf8_length(text, left);
        if (length == 0) return false;
    }
    return true;
}

static void print_help(const tg_args *args);

static tg_args_form *form_now;

void tg_args_set_form(tg_args_form *form) { form_now = form; }
tg_args_form *tg_args_get_form(void) { return form_now; }

int tg_args_parse(tg_args *args, int argc, char **argv) {
    const tg_command_spec *spec = args->spec;
    bool only_positional = false;
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        char shown[SHOWN_BYTES];
        if (!is_utf8(arg)) {
            return tg_args_refuse(args, "want arguments in UTF-8, have \"%s\"",
                                  tg_fmt_safe(shown, sizeof shown, arg));
        }
        /* A lone dash is standard input, so a positional argument. */
        const bool is_option = !only_positional && arg[0] == '-' && arg[1] != '\0';
        if (is_option && strcmp(arg, "--") == 0) {
            only_positional = true;
        } else if (is_option && (!strcmp(arg, "--help") || !strcmp(arg, "-h"))) {
            print_help(args);
            return 0;
        } else if (is_option) {
            const int code = parse_option(args, argc, argv, &i);
            if (code != TG_ARGS_GO_ON) return code;
            if (!is_utf8(argv[i])) {
                return tg_args_refuse(args, "want arguments in UTF-8, have \"%s\"",
                                      tg_fmt_safe(shown, sizeof shown, argv[i]));
            }
        } else if (args->n_pos < spec->pos_max) {
            args->pos[args->n_pos++] = arg;
        } else {
            tg_fmt_safe(shown, sizeof shown, arg);
            return tg_args_refuse(args, "one argument too many: \"%s\"", shown);
        }
    }
    if (args->n_pos < spec->pos_min) {
        return tg_args_refuse(args, "%s is missing", spec->pos[args->n_pos]);
    }
    if (spec->pos_out && args->n_pos >= spec->pos_out &&
        strcmp(args->pos[spec->pos_out - 1], "-") == 0)
        return refuse_stream(args, spec->pos[spec->pos_out - 1]);
    return TG_ARGS_GO_ON;
}

/* ----------------------------------------------------------------------------------------- help */

static int help_width(void) {
    tg_term term;
    tg_term_init(&term, stdout);
    const int width = term.tty ? tg_term_width(&term) - 1 : HELP_WIDTH;
    return width < HELP_WIDTH ? width : HELP_WIDTH;
}

/* Prints text from the current column on, wrapped at the help's width and indented. A word longer
 * than a line is printed whole. Columns are bytes: help texts are ASCII. */
static void print_wrapped(const char *text, int column, int indent) {
    const int width = help_width();
    bool gap = false; /* a blank is owed before the next word */
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (column > indent && column + gap + word > width) {
            printf("\n%*s", indent, "");
            column = indent;
            gap = false;
        }
        printf("%s%.*s", gap ? " " : "", word, text);
        column += gap + word;
        text += word + (text[word] == ' ');
        gap = true;
    }
    putchar('\n');
}

/* " (default 3)" from the struct of values, which nobody has changed when help is asked for first;
 * "" when there is nothing to say. */
void tg_args_default_text(const tg_option *o, const void *values, char *out, size_t cap) {
    const void *field = (const char *)values + o->offset;
    out[0] = '\0';
    if (o->hide_default) return;
    switch (o->kind) {
    case TG_OPTION_INT:
    case TG_OPTION_SIZE:
        snprintf(out, cap, " (default %" PRId64 ")", *(const int64_t *)field);
        return;
    case TG_OPTION_SEED:
        snprintf(out, cap, " (default %" PRIu64 ")", *(const uint64_t *)field);
        return;
    case TG_OPTION_REAL: snprintf(out, cap, " (default %g)", *(const double *)field); return;
    case TG_OPTION_TEXT:
    case TG_OPTION_PATH: {
        const char *text = *(const char *const *)field;
        if (text && *text) snprintf(out, cap, " (default %s)", text);
        return;
    }
    case TG_OPTION_CHOICE: {
        const char *words = o->value;
        for (int i = *(const int *)field; i > 0; i--) words += strcspn(words, "|") + 1;
        snprintf(out, cap, " (default %.*s)", (int)strcspn(words, "|"), words);
        return;
    }
    case TG_OPTION_TEXTS:
    case TG_OPTION_PATHS:
    case TG_OPTION_FLAG: return;
    }
}

/* Two columns; an option that is too long for the first one gets a line of its own. */
static void print_option(const tg_option *o, const void *values) {
    char left[96], right[512], preset[96];
    snprintf(left, sizeof left, "  %s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    tg_args_default_text(o, values, preset, sizeof preset);
    snprintf(right, sizeof right, "%s%s", o->help, preset);
    printf("%-*s", HELP_COLUMN, left);
    if (strlen(left) >= HELP_COLUMN) printf("\n%*s", HELP_COLUMN, "");
    print_wrapped(right, HELP_COLUMN, HELP_COLUMN);
}

/* The groups in the order of their tables; one whose options are all hidden has no headline. */
static void print_help(const tg_args *args) {
    const tg_command_spec *spec = args->spec;
    if (form_now) {
        form_now->page(form_now, args);
        return;
    }
    printf("usage: tinygpt %s %s\n\n", spec->name, spec->usage);
    print_wrapped(spec->about, 0, 0);
    for (size_t g = 0; g < args->n_groups; g++) {
        const tg_option_group *group = &args->groups[g];
        size_t shown = 0;
        for (size_t i = 0; i < group->n; i++) {
            if (group->options[i].hidden) continue;
            if (shown++ == 0) printf("\n%s\n", group->title);
            print_option(&group->options[i], group->values);
        }
    }
    if (spec->more_help) spec->more_help();
    if (spec->examples) printf("\nExamples\n%s", spec->examples);
}
