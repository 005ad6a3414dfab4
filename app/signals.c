/*
 * signals.c - the handler sets a flag and nothing else (see signals.h).
 */
#define _POSIX_C_SOURCE 200809L /* sigaction, write, clock_gettime, pselect */
#include "signals.h"

#include <signal.h>
#include <string.h>
#include <sys/select.h>
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

/* SA_RESTART: a save that is under way must not see EINTR. */
static void handle(int number) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void tg_signals_install(void) {
    struct sigaction before;
    handle(SIGINT);
    handle(SIGTERM);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) handle(SIGHUP);
}

void tg_signals_interrupt(void) { handle(SIGINT); }
void tg_signals_forget(void) { caught = 0; }

/* Blocked but for the time in pselect: it cannot slip between the question and the sleep. */
bool tg_signals_await_input(int fd) {
    sigset_t ours, outside;
    fd_set in;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ours, &outside);
    FD_ZERO(&in);
    FD_SET(fd, &in);
    if (!caught) pselect(fd + 1, &in, NULL, NULL, NULL, &outside);
    pthread_sigmask(SIG_SETMASK, &outside, NULL);
    return caught != 0;
}

int tg_signals_caught(void) { return (int)caught; }
