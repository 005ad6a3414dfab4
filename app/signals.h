/*
 * signals.h - Ctrl-C and its relatives as a question that a loop can ask.
 *
 * The first SIGINT, SIGTERM or SIGHUP only sets a flag: the work ends at the next safe point and is
 * saved. The second one ends the process at once with exit code 130; since saves are atomic, the
 * file on disk is then the save before. A SIGHUP that was ignored when the program started (nohup)
 * stays ignored.
 */
#ifndef TG_APP_SIGNALS_H
#define TG_APP_SIGNALS_H

#include <stdbool.h>

void tg_signals_install(void);

/* For conversations: SIGINT alone, which can be forgotten, so that the next one is a first one
 * again; and a wait for input that it ends, whenever it came since then. True: it came. */
void tg_signals_interrupt(void);
void tg_signals_forget(void);
bool tg_signals_await_input(int fd);

/* The number of the signal that came, 0 if none did. */
int tg_signals_caught(void);

#endif
