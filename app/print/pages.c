/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.c - what is told about commands: lists, manual pages, completions, the build (see pages.h).
 *
 * Nothing is described twice. Each command is asked for its help, and a form (args.h) gets the
 * tables instead of the text: names, kinds and words of the options become roff, or a shell's
 * completions.
 */
#include "print/pages.h"

#include "app.h"
#include "print/format.h"
#include "server/site.h"

#include <string.h>

enum { PRESET_BYTES = 96 };

/* The order of commands.def is that of the help. app.h declares the functions from the same
 * list. */
static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
#define TG_COMMAND(name, function, help) { #name, function, help },
#include "commands.def"
#undef TG_COMMAND
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

/* The two lines of a start are the shortest way from nothing to a text, and need no other file than
 * the one that the reader brings. */
void tg_pages_usage(FILE *out) {
    fprintf(out, "usage: tinygpt COMMAND [options]\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    }
    fprintf(out,
            "\nFor a start, with any text file:\n"
            "  tinygpt train --data book.txt\n"
            "  tinygpt sample run.tinygpt --prompt \"Once upon\"\n"
            "\ntinygpt help COMMAND tells the options of one; tinygpt --version the version and "
            "the build.\n");
}

/* No abbreviations: a script that uses one breaks when a command is added. */
int tg_pages_run(int argc, char **argv) {
    const char *word = argc > 0 ? argv[0] : "";
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (!strcmp(word, commands[i].name)) return commands[i].run(argc - 1, argv + 1);
        names[i] = commands[i].name;
    }
    char shown[64];
    const char *near = tg_args_nearest(word, names, N_COMMANDS);
    fprintf(stderr, "tinygpt: no command \"%s\"%s%s%s\nsee tinygpt --help\n",
            tg_fmt_safe(shown, sizeof shown, word), near ? "; did you mean " : "", near ? near : "",
            near ? "?" : "");
    return TG_EXIT_USAGE;
}

/* Has every command tell its tables to page, between what before and after print for it. The
 * defaults that page sees are right, since a command sets them before it parses anything. */
static void tell_all(void (*page)(const tg_args_form *form, const tg_args *args),
                     void (*before)(const struct command *),
                     void (*after)(const struct command *)) {
    char help[] = "--help";
    char *argv[] = { help, NULL };
    for (size_t i = 0; i < N_COMMANDS; i++) {
        tg_args_form form = { .page = page, .summary = commands[i].help };
        if (before) before(&commands[i]);
        tg_args_set_form(&form);
        commands[i].run(1, argv);
        tg_args_set_form(NULL);
        if (after) after(&commands[i]);
    }
}

/* "train" of "bench train"; NULL for a command of one word. */
static const char *second_word(const tg_args *args) {
    const char *blank = strchr(args->spec->name, ' ');
    return blank ? blank + 1 : NULL;
}

/* The shown options of all groups, one at each call: *g and *i are where the next one is looked
 * for, zeros at first. */
static const tg_option *next_option(const tg_args *args, size_t *g, size_t *i) {
    for (; *g < args->n_groups; *i = 0, ++*g) {
        while (*i < args->groups[*g].n) {
            const tg_option *o = &args->groups[*g].options[(*i)++];
            if (!o->hidden) return o;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------- manual pages
 */

/* Text that roff prints as it is: a dash that can be copied, no request at the start of a line. */
static void put_roff(const char *text) {
    bool starts = true;
    for (; *text; text++) {
        if (starts && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        starts = *text == '\n';
        if (*text == '\\') {
            fputs("\\e", stdout);
        } else if (*text == '-') {
            fputs("\\-", stdout);
        } else if (*text == '|') {
            fputs("|\\:", stdout); /* a long list of choices may break here */
        } else {
            putchar(*text);
        }
    }
}

/* A tagged paragraph: the option in bold, what stands for its value in italics. */
static void put_option(const tg_option *o, const void *values) {
    char preset[PRESET_BYTES];
    tg_args_default_text(o, values, preset, sizeof preset);
    printf(".TP\n\\fB");
    put_roff(o->name);
    printf("\\fR");
    if (o->value) {
        printf(" \\fI");
        put_roff(o->value);
        printf("\\fR");
    }
    putchar('\n');
    put_roff(o->help);
    put_roff(preset);
    putchar('\n');
}

/* The comment in front is where the Makefile cuts. No date: pages of one version are equal,
 * whenever they are made. */
static void man_begin(const char *name, const char *help) {
    printf(".\\\" file tinygpt%s%s.1\n", *name ? "-" : "", name);
    printf(".TH TINYGPT%s", *name ? "\\-" : "");
    for (const char *c = name; *c; c++) putchar(*c - 'a' + 'A');
    printf(" 1 \"\" \"tinygpt %s\" \"User Commands\"\n.SH NAME\ntinygpt%s%s \\- ", tg_version(),
           *name ? "\\-" : "", name);
    put_roff(help);
    printf("\n");
}

/* A page for each command; its commands of two words are told while it is open. */
static void man_before(const struct command *c) { man_begin(c->name, c->help); }

/* The commands of a command are sections of its page, so that there is a page for each word that
 * stands behind tinygpt, and uninstall knows their names from commands.def. */
static void man_page(const tg_args_form *form, const tg_args *args) {
    const tg_command_spec *spec = args->spec;
    if (second_word(args)) {
        printf(".SH TINYGPT ");
        for (const char *c = spec->name; *c; c++) putchar(*c == ' ' ? ' ' : *c - 'a' + 'A');
        printf("\n");
        put_roff(form->summary);
        printf("\n.PP\n");
    } else {
        printf(".SH SYNOPSIS\n");
    }
    printf("\\fBtinygpt %s\\fR ", spec->name);
    put_roff(spec->usage);
    printf("\n%s\n", second_word(args) ? ".PP" : ".SH DESCRIPTION");
    put_roff(spec->about);
    printf("\n");
    for (size_t g = 0; g < args->n_groups; g++) {
        const tg_option_group *group = &args->groups[g];
        size_t shown = 0;
        for (size_t i = 0; i < group->n; i++) {
            if (group->options[i].hidden) continue;
            if (shown++ == 0) printf("%s %s\n", second_word(args) ? ".SS" : ".SH", group->title);
            put_option(&group->options[i], group->values);
        }
    }
    if (spec->more_help) {
        printf(".PP\n.nf\n");
        spec->more_help();
        printf(".fi\n");
    }
    if (spec->examples) {
        printf("%s EXAMPLES\n.nf\n", second_word(args) ? ".SS" : ".SH");
        put_roff(spec->examples);
        printf(".fi\n");
    }
}

/* Scripts live by exit codes, so they stand on every page. */
static void man_after(const struct command *c) {
    (void)c;
    printf(".SH EXIT STATUS\n"
           "0 done, 1 failed, 2 bad usage or input, 3 stopped early with the run saved, 130 "
           "interrupted.\n"
           ".SH SEE ALSO\n.BR tinygpt (1)\n");
}

/* All pages in one stream, since only the program knows how many there are. */
static void print_man(void) {
    man_begin("", "train and run small transformers");
    printf(".SH SYNOPSIS\n\\fBtinygpt\\fR COMMAND [options]\n"
           ".PP\n\\fBtinygpt help\\fR COMMAND\n"
           ".PP\n\\fBtinygpt\\fR \\-\\-version\n"
           ".SH COMMANDS\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        printf(".TP\n.BR tinygpt\\-%s (1)\n", commands[i].name);
        put_roff(commands[i].help);
        printf("\n");
    }
    man_after(NULL);
    tell_all(man_page, man_before, man_after);
}

/* ----------------------------------------------------------------------------------- completions
 */

/* What may stand behind an option. */
typedef enum completed { NOTHING, FILES, WORDS } completed;

/* Texts and numbers are left alone: a list of files there would be a wrong hint. */
static completed completed_by(const tg_option *o) {
    if (o->kind == TG_OPTION_PATH || o->kind == TG_OPTION_PATHS) return FILES;
    return o->kind == TG_OPTION_CHOICE ? WORDS : NOTHING;
}

/* "constant|cosine|wsd" as a list of a shell. */
static void put_words(const char *words) {
    for (; *words; words++) putchar(*words == '|' ? ' ' : *words);
}

/* Text between single quotes, with a backslash in front of each of special. Nothing can be quoted
 * between single quotes, one of them neither: the quotes are closed for it and opened again. */
static void put_quoted(const char *text, const char *special) {
    for (; *text; text++) {
        if (strchr(special, *text)) putchar('\\');
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else {
            putchar(*text);
        }
    }
}

static void put_command_names(void) {
    for (size_t i = 0; i < N_COMMANDS; i++) printf("%s%s", i ? " " : "", commands[i].name);
}

/* An arm of the function's case: what a command's options are, and what stands behind each. A
 * command of commands is followed by an arm for each of them, which adds its name to subcommands.
 */
static void bash_page(const tg_args_form *form, const tg_args *args) {
    (void)form;
    const tg_option *o;
    printf("    '%s')\n        case $before in\n", args->spec->name);
    for (size_t g = 0, i = 0; (o = next_option(args, &g, &i)) != NULL;) {
        if (o->kind == TG_OPTION_FLAG) continue;
        printf("        %s) ", o->name);
        switch (completed_by(o)) {
        case NOTHING: printf("kind=nothing"); break;
        case FILES: printf("kind=files"); break;
        case WORDS:
            printf("kind=words words='");
            put_words(o->value);
            printf("'");
            break;
        }
        printf(" ;;\n");
    }
    printf("        esac\n        options='--help");
    for (size_t g = 0, i = 0; (o = next_option(args, &g, &i)) != NULL;) printf(" %s", o->name);
    printf("' ;;\n");
}

/* A statement for each word that may stand behind a command of commands; bash and zsh read it
 * alike. */
static void put_subcommand(const tg_args_form *form, const tg_args *args) {
    (void)form;
    const char *second = second_word(args);
    if (second) {
        printf("    [[ $command == %.*s ]] && subcommands+=' %s'\n",
               (int)(second - 1 - args->spec->name), args->spec->name, second);
    }
}

/* The function finds the command, then what stands before the word at the cursor. Quotes around
 * file names are readline's work, which -o filenames asks for. Names come line by line (mapfile),
 * since a word list would break those with blanks; and compopt fails where the function is called
 * by hand, as the tests do. */
static void print_bash(void) {
    printf("# Completions of tinygpt %s for bash, made by: tinygpt completion bash\n"
           "_tinygpt() {\n"
           "    local now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local command=${COMP_WORDS[1]} subcommands= options= kind= words=\n"
           "    COMPREPLY=()\n"
           "    # --name=value comes as three words.\n"
           "    if [[ $now == = ]]; then now=\n"
           "    elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
           "    if [[ $COMP_CWORD -eq 1 || $command == help && $COMP_CWORD -eq 2 ]]; then\n"
           "        COMPREPLY=($(compgen -W 'help --version ",
           tg_version());
    put_command_names();
    printf("' -- \"$now\"))\n        return\n    fi\n");
    tell_all(put_subcommand, NULL, NULL);
    printf("    [[ $command == completion ]] && subcommands='bash zsh fish'\n"
           "    if [[ -n $subcommands && $COMP_CWORD -eq 2 && $now != -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$subcommands\" -- \"$now\"))\n"
           "        return\n"
           "    fi\n"
           "    if [[ -n $subcommands && $COMP_CWORD -gt 2 && $command != completion ]]; then\n"
           "        command+=\" ${COMP_WORDS[2]}\"\n"
           "    fi\n"
           "    case $command in\n");
    tell_all(bash_page, NULL, NULL);
    printf("    esac\n"
           "    case $kind in\n"
           "    nothing) ;;\n"
           "    words) COMPREPLY=($(compgen -W \"$words\" -- \"$now\")) ;;\n"
           "    *)  if [[ $now == -* && -z $kind ]]; then\n"
           "            COMPREPLY=($(compgen -W \"$options\" -- \"$now\"))\n"
           "        else\n"
           "            compopt -o filenames 2>/dev/null\n"
           "            mapfile -t COMPREPLY < <(compgen -f -- \"$now\")\n"
           "        fi ;;\n"
           "    esac\n"
           "}\n"
           "complete -F _tinygpt tinygpt\n");
}

/* One _arguments a command: it knows of options, values and --name=value by itself. */
static void zsh_page(const tg_args_form *form, const tg_args *args) {
    (void)form;
    const tg_option *o;
    printf("    '%s') _arguments '--help[print the options]'", args->spec->name);
    for (size_t g = 0, i = 0; (o = next_option(args, &g, &i)) != NULL;) {
        printf(" \\\n        '%s[", o->name);
        put_quoted(o->help, "[]:\\");
        printf("]");
        if (o->kind != TG_OPTION_FLAG) {
            printf(":%s:", o->kind == TG_OPTION_CHOICE ? "word" : o->value);
            if (completed_by(o) == FILES) printf("_files");
            if (completed_by(o) == WORDS) {
                printf("(");
                put_words(o->value);
                printf(")");
            }
        }
        printf("'");
    }
    printf(" \\\n        '*:file:_files' ;;\n");
}

/* zsh loads the file as the body of the function at the first use, so the last line calls it, with
 * its arguments. It does not split words by itself: ${=...} asks for that. */
static void print_zsh(void) {
    printf("#compdef tinygpt\n"
           "# Completions of tinygpt %s for zsh, made by: tinygpt completion zsh\n"
           "_tinygpt() {\n    local command=$words[2] subcommands=\n    local -a commands=(\n",
           tg_version());
    for (size_t i = 0; i < N_COMMANDS; i++) {
        printf("        '%s:", commands[i].name);
        put_quoted(commands[i].help, ":\\");
        printf("'\n");
    }
    printf("        'help:tell the options of a command'\n    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    case $command in\n"
           "    help) subcommands=' ");
    put_command_names();
    printf("' ;;\n    completion) subcommands=' bash zsh fish' ;;\n    esac\n");
    tell_all(put_subcommand, NULL, NULL);
    printf("    shift words; (( CURRENT-- ))\n"
           "    if [[ -n $subcommands ]]; then\n"
           "        if (( CURRENT == 2 )); then\n"
           "            compadd -- ${=subcommands}\n"
           "            return\n"
           "        fi\n"
           "        command+=\" $words[2]\"\n"
           "        shift words; (( CURRENT-- ))\n"
           "    fi\n"
           "    case $command in\n");
    tell_all(zsh_page, NULL, NULL);
    printf("    esac\n}\n_tinygpt \"$@\"\n");
}

/* fish has no function to write: each line is a candidate and the condition that it holds under. */
static void fish_page(const tg_args_form *form, const tg_args *args) {
    const tg_option *o;
    const char *second = second_word(args);
    if (second) {
        printf("complete -c tinygpt -f -n '__tinygpt_is 2 %.*s' -a %s -d '",
               (int)(second - 1 - args->spec->name), args->spec->name, second);
        put_quoted(form->summary, "\\");
        printf("'\n");
    }
    for (size_t g = 0, i = 0; (o = next_option(args, &g, &i)) != NULL;) {
        printf("complete -c tinygpt -n '__tinygpt_is 0 %s", args->spec->name);
        printf("' -l %s", o->name + 2);
        if (completed_by(o) == FILES) printf(" -r -F");
        if (o->kind != TG_OPTION_FLAG && completed_by(o) == NOTHING) printf(" -x");
        if (completed_by(o) == WORDS) {
            printf(" -x -a '");
            put_words(o->value);
            printf("'");
        }
        printf(" -d '");
        put_quoted(o->help, "\\");
        printf("'\n");
    }
}

/* The function counts the words in front of the cursor, because fish's own conditions
 * (__fish_seen_subcommand_from) would take a file called "train" for the command. */
static void print_fish(void) {
    printf(
        "# Completions of tinygpt %s for fish, made by: tinygpt completion fish\n\n"
        "# Do the words behind tinygpt begin with these, and are there as many words in all (0: or "
        "more)?\n"
        "function __tinygpt_is\n"
        "    set -l words (commandline -opc)\n"
        "    test $argv[1] -eq 0 -o (count $words) -eq $argv[1]; or return 1\n"
        "    set -e argv[1] words[1]\n"
        "    for word in $argv\n"
        "        test \"$words[1]\" = $word; or return 1\n"
        "        set -e words[1]\n"
        "    end\n"
        "end\n\n",
        tg_version());
    for (size_t i = 0; i < N_COMMANDS; i++) {
        printf("complete -c tinygpt -f -n __fish_use_subcommand -a %s -d '", commands[i].name);
        put_quoted(commands[i].help, "\\");
        printf("'\n");
    }
    printf("complete -c tinygpt -f -n __fish_use_subcommand -a help -d 'tell the options of a "
           "command'\n"
           "complete -c tinygpt -f -n '__tinygpt_is 2 help' -a '");
    put_command_names();
    printf("'\ncomplete -c tinygpt -f -n '__tinygpt_is 2 completion' -a 'bash zsh fish'\n");
    tell_all(fish_page, NULL, NULL);
}

int tg_cmd_completion(int argc, char **argv) {
    static const tg_command_spec spec = {
        .name = "completion",
        .usage = "bash|zsh|fish",
        .about = "Prints a script that completes commands, options and their values in a shell. "
                 "make install puts it where each shell looks for it.",
        .pos = { "SHELL" },
        .pos_min = 1,
        .pos_max = 1,
        .examples = "  source <(tinygpt completion bash)\n"
                    "  tinygpt completion fish > ~/.config/fish/completions/tinygpt.fish\n",
    };
    tg_app app;
    const int code = tg_app_parse(&app, &spec, NULL, 0, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    const char *shell = app.args.pos[0];
    if (!strcmp(shell, "bash")) {
        print_bash();
    } else if (!strcmp(shell, "zsh")) {
        print_zsh();
    } else if (!strcmp(shell, "fish")) {
        print_fish();
    } else {
        char shown[64];
        return tg_args_refuse(&app.args, "want bash, zsh or fish, have \"%s\"",
                              tg_fmt_safe(shown, sizeof shown, shell));
    }
    return TG_EXIT_DONE;
}

/* ------------------------------------------------------------------------------- help and version
 */

/* A word that is no command is refused by tg_pages_run, with the nearest one that is. */
int tg_pages_help(int argc, char **argv) {
    if (argc == 0) {
        tg_pages_usage(stdout);
        return TG_EXIT_DONE;
    }
    if (argc == 1 && !strcmp(argv[0], "--man")) {
        print_man();
        return TG_EXIT_DONE;
    }
    /* Both forms become "COMMAND [SUBCOMMAND] --help", which is the one way to a command's help. */
    char help[] = "--help";
    char *words[] = { argv[0], argc > 1 ? argv[1] : help, help, NULL };
    if (argc > 2) {
        char shown[64];
        fprintf(stderr, "tinygpt help: one argument too many: \"%s\"\n",
                tg_fmt_safe(shown, sizeof shown, argv[2]));
        return TG_EXIT_USAGE;
    }
    return tg_pages_run(argc + 1, words);
}

/* What a report of a fault should begin with; it is about the build, doctor is about the machine.
 */
void tg_pages_version(void) {
    printf("tinygpt %s\n", tg_version());
    /* clang first: it says that it is gcc, too. */
#if defined(__clang__)
    printf("  compiler  clang %d.%d.%d\n", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
    printf("  compiler  gcc %d.%d.%d\n", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
    printf("  kernels  ");
    for (size_t i = 0; i < tg_isa_count(); i++) {
        if (tg_isa_at(i)->built) printf(" %s", tg_isa_at(i)->name);
    }
    printf("\n");
#if defined(TG_BUILT_WITH_WEBGPU)
    printf("  webgpu    through a library that is there at run time (TG_WEBGPU_LIB names it)\n");
#else
    printf("  webgpu    not in this build: its header was not there\n");
#endif
    tg_site site;
    if (tg_site_built(&site) && site.n > 0) {
        printf("  server    with the page: %zu files, %s\n", site.n, TG_BYTES(site.n_bytes));
    } else {
        printf("  server    without the page: serve needs --dir\n");
    }
    tg_site_free(&site);
}
