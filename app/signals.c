/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - the handler sets a flag and nothing else (see signals.h).
 */
#define _POSIX_C_SOURCE 200809L /* sigaction, write, clock_gettime, pselect */
#include "signals.h"

#include "tinygpt.h"

#include <signal.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

static volatile sig_atomic_t caught;
static volatile sig_atomic_t patient; /* a second signal is no more than the first one was */
static struct timespec caught_at;     /* handlers of all signals exclude each other */

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
    if (caught && !patient && (number != caught || ms_since_caught() >= ECHO_MS)) {
        static const char text[] = "\nstopped at once; the save before is untouched\n";
        const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
        (void)written;
        tg_drop_temporary_files();
        _exit(130);
    }
    /* One that ends a conversation counts for more than one that ends an answer. */
    if (caught && !(caught == SIGINT && patient)) return;
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

static const char *volatile leftover;

void tg_signals_drop(const char *path) { leftover = path; }

/* SA_RESETHAND: the signal that is raised here ends the process as it would have done without us.
 */
static void on_default(int number) {
    tg_drop_temporary_files();
    if (leftover) (void)unlink(leftover);
    raise(number);
}

void tg_signals_install_default(void) {
    for (int i = 0; i < N_NUMBERS; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) != 0 || action.sa_handler != SIG_DFL) continue;
        memset(&action, 0, sizeof action);
        action.sa_handler = on_default;
        action.sa_flags = SA_RESTART | (int)SA_RESETHAND;
        sigfillset(&action.sa_mask);
        sigaction(numbers[i], &action, NULL);
    }
}

void tg_signals_install(void) {
    for (int i = 0; i < N_NUMBERS; i++) {
        struct sigaction before;
        const bool known = sigaction(numbers[i], NULL, &before) == 0;
        const bool may_be_ignored = numbers[i] == SIGHUP || numbers[i] == SIGQUIT;
        if (!(known && may_be_ignored && before.sa_handler == SIG_IGN)) handle(numbers[i]);
    }
}

void tg_signals_install_patient(void) {
    patient = 1;
    tg_signals_install();
}

/* Only what ends no more than an answer can be forgotten. */
void tg_signals_forget(void) {
    if (caught == SIGINT) caught = 0;
}

void tg_signals_block(sigset_t *outside) {
    sigset_t ours;
    sigemptyset(&ours);
    for (int i = 0; i < N_NUMBERS; i++) sigaddset(&ours, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &ours, outside);
}

/* Blocked but for the time in pselect: it cannot slip between the question and the sleep. */
bool tg_signals_await_input(int fd) {
    sigset_t outside;
    fd_set in;
    tg_signals_block(&outside);
    FD_ZERO(&in);
    FD_SET(fd, &in);
    if (!caught) pselect(fd + 1, &in, NULL, NULL, NULL, &outside);
    pthread_sigmask(SIG_SETMASK, &outside, NULL);
    return caught != 0;
}

int tg_signals_caught(void) { return (int)caught; }
bool tg_signals_final(void) { return caught != 0 && caught != SIGINT; }

int tg_signals_cancel(void *user) {
    (void)user;
    return (int)caught;
}
