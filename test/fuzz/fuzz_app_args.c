/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_app_args.c - command lines, against the option tables of all commands.
 *
 *     command byte, then the arguments, each up to a zero byte or a line end
 *
 * Commands keep their tables to themselves, and would go to work after parsing. So the linker hands
 * their calls of tg_args_parse to this file (--wrap, in the Makefile), which parses, looks at what
 * was stored, and leaves the command by a jump.
 */
#include "fuzz.h"

#include "app.h"

#include <setjmp.h>

int __real_tg_args_parse(tg_args *args, int argc, char **argv);
int __wrap_tg_args_parse(tg_args *args, int argc, char **argv);

static jmp_buf back;

static void want_option(const tg_option *o, const void *values, bool given) {
    const void *field = (const char *)values + o->offset;
    if (!given) return;
    switch (o->kind) {
    case TG_OPTION_INT:
    case TG_OPTION_SIZE: {
        const int64_t x = *(const int64_t *)field;
        PROMISE(x >= o->low && x <= o->high);
        return;
    }
    case TG_OPTION_REAL: {
        const double x = *(const double *)field;
        PROMISE((o->above_low ? x > o->real_low : x >= o->real_low) && x <= o->real_high);
        return;
    }
    case TG_OPTION_CHOICE: {
        int words = 1;
        for (const char *w = o->value; *w; w++) words += *w == '|';
        PROMISE(*(const int *)field >= 0 && *(const int *)field < words);
        return;
    }
    case TG_OPTION_PATH: PROMISE(**(const char *const *)field); return;
    default: return;
    }
}

int __wrap_tg_args_parse(tg_args *args, int argc, char **argv) {
    const int code = __real_tg_args_parse(args, argc, argv);
    PROMISE(code == TG_ARGS_GO_ON || code == 0 || code == 2);
    size_t options = 0;
    for (size_t g = 0; g < args->n_groups; g++) {
        for (size_t i = 0; code == TG_ARGS_GO_ON && i < args->groups[g].n; i++)
            want_option(&args->groups[g].options[i], args->groups[g].values,
                        args->given[options + i]);
        options += args->groups[g].n;
    }
    PROMISE(options <= TG_ARGS_GIVEN_MAX && args->spec->pos_max <= TG_ARGS_POS_MAX);
    if (code == TG_ARGS_GO_ON)
        PROMISE(args->n_pos >= args->spec->pos_min && args->n_pos <= args->spec->pos_max);
    longjmp(back, 1);
}

static void fuzz_one(const uint8_t *data, size_t n) {
    static int (*const commands[])(int argc, char **argv) = {
#define TG_COMMAND(name, function, help) function,
#include "commands.def"
#undef TG_COMMAND
    };
    enum { N_COMMANDS = sizeof commands / sizeof commands[0], ARGS_MAX = 40 };
    static bool quiet;
    /* Help and messages would be most of the time. */
    if (!quiet)
        quiet = freopen("/dev/null", "w", stdout) && setvbuf(stdout, NULL, _IOFBF, 1 << 16) == 0 &&
                setvbuf(stderr, NULL, _IOFBF, 1 << 16) == 0;
    char *argv[ARGS_MAX + 1];
    int argc = 0;
    if (n == 0) return;
    char *text = malloc(n + 1);
    PROMISE(text);
    memcpy(text, data, n);
    text[n] = '\0';
    for (size_t at = 1; at < n && argc < ARGS_MAX; at += strlen(text + at) + 1) {
        char *end = strchr(text + at, '\n');
        if (end) *end = '\0';
        argv[argc++] = text + at;
    }
    argv[argc] = NULL;
    if (setjmp(back) == 0) {
        const int code = commands[data[0] % N_COMMANDS](argc, argv);
        PROMISE(code == 0 || code == 2); /* a command of commands: its help, or no such one */
    }
    free(text);
}
