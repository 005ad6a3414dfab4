/*
 * signals.c - the handler sets a flag and nothing else (see signals.h).
 */
#define _POSIX_C_SOURCE 200809L /* sigaction, write */
#include "signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    if (caught) {
        static const char text[] = "\nstopped at once; the save before is untouched\n";
        const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
        (void)written;
        _exit(130);
    }
    caught = number;
}

static void handle(int number) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART; /* a save that is under way must not see EINTR */
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void tg_signals_install(void) {
    struct sigaction before;
    handle(SIGINT);
    handle(SIGTERM);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) handle(SIGHUP);
}

int tg_signals_caught(void) { return (int)caught; }
