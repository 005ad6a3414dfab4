/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - Ctrl-C and its relatives as a question that a loop can ask.
 *
 * The first SIGINT, SIGTERM, SIGHUP or SIGQUIT only sets a flag: the work ends at the next safe
 * point and is saved. The second one ends the process at once with exit code 130, without the
 * temporary file of a save; since saves are atomic, the file on disk is then the save before. A
 * SIGHUP or SIGQUIT that was ignored when the program started (nohup) stays ignored.
 */
#ifndef TG_APP_SIGNALS_H
#define TG_APP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

void tg_signals_install(void);

/* For commands that have nothing to save: a signal ends them at once, and takes the temporary files
 * with it, and the file that was named last (NULL: none; borrowed). A temporary folder stays with
 * what it has, until the next save to the same place takes it away. tg_app_open installs it; the
 * others take its place. */
void tg_signals_install_default(void);
void tg_signals_drop(const char *path);

/* For work that would be lost, and looks at the flag often: a second signal does not end it at once
 * either. In conversations SIGINT can be forgotten, so that the next one is a first one again; the
 * others end the conversation (_final). */
void tg_signals_install_patient(void);
void tg_signals_forget(void);
bool tg_signals_final(void);
/* A wait for input that a signal ends, whenever it came. True: one came. */
bool tg_signals_await_input(int fd);

/* Blocks all four; *outside is the mask before, for pselect. */
void tg_signals_block(sigset_t *outside);

/* The number of the signal that came, 0 if none did; the second form is a tg_cancel_fn. */
int tg_signals_caught(void);
int tg_signals_cancel(void *user);

#endif
