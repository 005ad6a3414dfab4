/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.h - help, manual pages and completions, all out of the tables that options are parsed by.
 */
#ifndef TG_APP_PAGES_H
#define TG_APP_PAGES_H

#include <stdio.h>

/* The list of commands, as `tinygpt` and `tinygpt --help` print it. */
void tg_pages_usage(FILE *out);

/*
 * tinygpt help [COMMAND [SUBCOMMAND]], which is tinygpt COMMAND --help. argv begins behind "help".
 * With --man it prints all manual pages, one behind the other, each behind a line of its own:
 *
 *     .\" file tinygpt-train.1
 */
int tg_pages_help(int argc, char **argv);

/* Runs the command called argv[0], "" if argc is 0; a name that is none ends in a message and 2. */
int tg_pages_run(int argc, char **argv);

/* tinygpt --version: the version alone in the first line, then what this program was built with. */
void tg_pages_version(void);

#endif
