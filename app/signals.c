/*
 * signals.c - the handler sets a flag and nothing else (see signals.h).
 */
#define _POSIX_C_SOURCE 200809L /* sigaction, write, clock_gettime */
#include "signals.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t caught;
static struct timespec caught_at; /* handlers of all three signals exclude each other */

/* The same signal again this soon is an echo, not a second wish: timeout(1) signals its
 * child and then the group that the child is in; a person needs longer than that. */
#define ECHO_MS 100

static long ms_since_caught(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)(now.tv_sec - caught_at.tv_sec) * 1000 +
           (now.tv_nsec - caught_at.tv_nsec) / 1000000;
}

static void on_signal(int number) {
    if (caught && (number != caught || ms_since_caught() >= ECHO_MS)) {
        static const char text[] = "\nstopped at once; the save before is untouched\n";
        const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
        (void)written;
        _exit(130);
    }
    if (caught) return;
    clock_gettime(CLOCK_MONOTONIC, &caught_at);
    caught = number;
}

static void handle(int number, int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = flags;
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

/* SA_RESTART: a save that is under way must not see EINTR. */
void tg_signals_install(void) {
    struct sigaction before;
    handle(SIGINT, SA_RESTART);
    handle(SIGTERM, SA_RESTART);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        handle(SIGHUP, SA_RESTART);
}

void tg_signals_interrupt(void) { handle(SIGINT, 0); }
void tg_signals_forget(void) { caught = 0; }

int tg_signals_caught(void) { return (int)caught; }
