/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - the options of a command as a table: parsed, checked and printed from one description.
 *
 * A command keeps its settings in a struct that holds the defaults, and says in a table where each
 * option goes:
 *
 *     struct values { int64_t steps; double lr; const char *data; };
 *     static const tg_option options[] = {
 *         TG_INT("--steps", struct values, steps, 1, 1000000, "N", "steps of the whole run"),
 *         TG_REAL("--lr", struct values, lr, 0, 1, "X", "learning rate", .above_low = true),
 *         TG_PATH("--data", struct values, data, "FILE", "text to train on"),
 *     };
 *
 * Rules. A value is the next argument or follows '=' (--steps 10, --steps=10); after --, everything
 * is positional. A number must be one from its first character to its last. Unknown options,
 * repeated ones that are no lists, missing values, numbers out of range, NaN, infinity and invalid
 * UTF-8 are refused with a message that states what is wanted, and exit code 2. --help prints the
 * table, with the defaults it finds in the struct.
 */
#ifndef TG_APP_ARGS_H
#define TG_APP_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_option_kind {
    TG_OPTION_FLAG,  /* bool, takes no value */
    TG_OPTION_INT,   /* int64_t in [low, high] */
    TG_OPTION_SIZE,  /* int64_t in [low, high]; k, M and G stand for 1000, 1000^2, 1000^3 */
    TG_OPTION_SEED,  /* uint64_t, all of its range */
    TG_OPTION_REAL,  /* double in [real_low, real_high], the low end excluded by above_low */
    TG_OPTION_TEXT,  /* const char *, may be empty */
    TG_OPTION_PATH,  /* const char *, not empty */
    TG_OPTION_TEXTS, /* tg_args_list, none of them empty; may be given several times */
    TG_OPTION_PATHS, /* the same of names of files */
    TG_OPTION_CHOICE /* int, index of the word in value, such as "constant|cosine|wsd" */
} tg_option_kind;

/* The values of an option that may be repeated, in the order of the command line. */
enum { TG_ARGS_LIST_MAX = 256 };
typedef struct tg_args_list {
    const char *item[TG_ARGS_LIST_MAX];
    size_t n;
} tg_args_list;

typedef struct tg_option {
    const char *name; /* with its dashes */
    tg_option_kind kind;
    size_t offset; /* bytes, of the field in the struct of values */
    int64_t low, high;
    double real_low, real_high;
    const char *value; /* what the help calls the value; the words of a choice */
    const char *help;
    bool above_low;    /* REAL: low itself is refused */
    bool hide_default; /* the help text says what happens without the option */
    bool hidden;       /* taken, but told nowhere: it means nothing to this command */
    bool written;      /* PATH: an output, which - is no name of */
} tg_option;

/* offsetof, and a warning (an error here) when the field has not the type that the kind stores. */
#define TG_FIELD(S, field, type) (offsetof(S, field) + 0 * sizeof(1 ? &((S *)0)->field : (type *)0))

/* The last argument is the help text; designated members of tg_option may follow it. */
#define TG_OPTION_OF(name_, kind_, S, field, type, ...)                                            \
    { .name = name_, .kind = kind_, .offset = TG_FIELD(S, field, type), __VA_ARGS__ }
#define TG_FLAG(name, S, field, ...)                                                               \
    TG_OPTION_OF(name, TG_OPTION_FLAG, S, field, bool, .help = __VA_ARGS__)
#define TG_INT(name, S, field, low_, high_, value_, ...)                                           \
    TG_OPTION_OF(name, TG_OPTION_INT, S, field, int64_t, .low = low_, .high = high_,               \
                 .value = value_, .help = __VA_ARGS__)
#define TG_SIZE(name, S, field, low_, high_, value_, ...)                                          \
    TG_OPTION_OF(name, TG_OPTION_SIZE, S, field, int64_t, .low = low_, .high = high_,              \
                 .value = value_, .help = __VA_ARGS__)
#define TG_SEED(name, S, field, value_, ...)                                                       \
    TG_OPTION_OF(name, TG_OPTION_SEED, S, field, uint64_t, .value = value_, .help = __VA_ARGS__)
#define TG_REAL(name, S, field, low_, high_, value_, ...)                                          \
    TG_OPTION_OF(name, TG_OPTION_REAL, S, field, double, .real_low = low_, .real_high = high_,     \
                 .value = value_, .help = __VA_ARGS__)
#define TG_TEXT(name, S, field, value_, ...)                                                       \
    TG_OPTION_OF(name, TG_OPTION_TEXT, S, field, const char *, .value = value_, .help = __VA_ARGS__)
#define TG_PATH(name, S, field, value_, ...)                                                       \
    TG_OPTION_OF(name, TG_OPTION_PATH, S, field, const char *, .value = value_, .help = __VA_ARGS__)
#define TG_TEXTS(name, S, field, value_, ...)                                                      \
    TG_OPTION_OF(name, TG_OPTION_TEXTS, S, field, tg_args_list, .value = value_,                   \
                 .help = __VA_ARGS__)
#define TG_PATHS(name, S, field, value_, ...)                                                      \
    TG_OPTION_OF(name, TG_OPTION_PATHS, S, field, tg_args_list, .value = value_,                   \
                 .help = __VA_ARGS__)
#define TG_CHOICE(name, S, field, words, ...)                                                      \
    TG_OPTION_OF(name, TG_OPTION_CHOICE, S, field, int, .value = words, .help = __VA_ARGS__)

/* Options with a headline of their own, stored into one struct. */
typedef struct tg_option_group {
    const char *title;
    const tg_option *options;
    size_t n;
    void *values;
} tg_option_group;

#define TG_GROUP(title, options, values)                                                           \
    { title, options, sizeof(options) / sizeof((options)[0]), values }

#define TG_ARGS_GROUPS_MAX 8
#define TG_ARGS_GIVEN_MAX  96 /* options of all groups together */
#define TG_ARGS_POS_MAX    64

/* What of the global options (app.c) means something to a command. All are taken by every command,
 * so that one set of them can stand in a script; help shows those that apply. */
enum {
    TG_USES_CPU = 1,    /* --threads --isa --levers */
    TG_USES_DEVICE = 2, /* --device */
    TG_USES_PACKS = 4,  /* --pack-cache */
    TG_USES_ALL = 7
};

/* What a command is, for messages and help. */
typedef struct tg_command_spec {
    const char *name;                 /* "train", "bench matmul" */
    const char *usage;                /* "--data FILE [options]" */
    const char *about;                /* a paragraph */
    const char *pos[TG_ARGS_POS_MAX]; /* names of the positional arguments */
    size_t pos_min, pos_max;          /* how many are needed and allowed */
    size_t pos_out;                   /* which is an output, from 1 on; 0: none */
    const char *examples;             /* lines, each "  train --data ..."; may be NULL */
    void (*more_help)(void);          /* prints what follows the options; may be NULL */
    unsigned uses;                    /* TG_USES_* */
} tg_command_spec;

typedef struct tg_args {
    const tg_command_spec *spec;
    tg_option_group groups[TG_ARGS_GROUPS_MAX];
    size_t n_groups;
    bool given[TG_ARGS_GIVEN_MAX]; /* by the option's place among all groups */
    const char *pos[TG_ARGS_POS_MAX];
    size_t n_pos;
} tg_args;

#define TG_ARGS_GO_ON (-1)

/*
 * Parses argv[0..argc), which begins behind the command's name, into the groups' values.
 * Returns TG_ARGS_GO_ON, or the exit code of the program: 0 after --help, 2 after a message.
 * Before the call args holds spec, groups and n_groups, and zeros.
 */
int tg_args_parse(tg_args *args, int argc, char **argv);

/*
 * Help in another form than text (pages.c). While one of these is set, --help calls page and prints
 * nothing; the groups' values are the defaults, and are there for the call only.
 */
typedef struct tg_args_form {
    void (*page)(const struct tg_args_form *form, const tg_args *args);
    const char *summary; /* one line about the command, set by who calls it */
    void *user;
} tg_args_form;
void tg_args_set_form(tg_args_form *form); /* borrowed; NULL: text */
tg_args_form *tg_args_get_form(void);

/* " (default 3)", or "" where there is nothing to say. */
void tg_args_default_text(const tg_option *option, const void *values, char *out, size_t cap);

/* Was this option on the command line? The name must be one of the table's. */
bool tg_args_given(const tg_args *args, const char *name);

/* Prints "tinygpt train: message" and where help is, for what a table cannot check. Returns 2. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int tg_args_refuse(const tg_args *args, const char *format, ...);

/* The candidate that word most likely was meant to be, NULL if none is near. */
const char *tg_args_nearest(const char *word, const char *const *candidates, size_t n);

/* Whole-string numbers; false if text is anything else or does not fit. */
bool tg_args_int64(const char *text, int64_t *out);
bool tg_args_uint64(const char *text, uint64_t *out);
bool tg_args_size(const char *text, int64_t *out);  /* with k, M, G */
bool tg_args_double(const char *text, double *out); /* finite, decimal */

#endif
