/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - finds the command, and makes sure that nothing goes wrong unseen around it.
 *
 * Before the command: the three standard streams exist (a file opened later could otherwise land
 * on the number of a closed one and be overwritten by our output), and a broken pipe or a file size
 * limit is an error that write() returns, not the end of the process, and so is a stack that is too
 * small. After it: everything that was
 * printed must have arrived.
 */
#define _XOPEN_SOURCE 700 /* fcntl, SIGXFSZ */
#include "app.h"

#include "last_error.h"
#include "print/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* argc may even be 0: whoever starts a program decides about its arguments. */
static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        tg_pages_usage(stderr);
        return TG_EXIT_USAGE;
    }
    const char *word = argv[1];
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
        return tg_pages_help(word[0] == '-' ? 0 : argc - 2, argv + 2);
    }
    if (!strcmp(word, "--version")) {
        tg_pages_version();
        return TG_EXIT_DONE;
    }
    return tg_pages_run(argc - 1, argv + 1);
}

/* The command line may be what is wrong, so it is asked by itself. */
static bool wants_json(int argc, char **argv) {
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0) return true;
    return false;
}

/* A closed standard stream is replaced by one that refuses: writes to a read-only /dev/null fail,
 * so a command whose output nobody can get still ends with an error. */
static void fill_standard_streams(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            const int opened = open("/dev/null", O_RDONLY);
            if (opened >= 0 && opened != fd) {
                dup2(opened, fd);
                close(opened);
            }
        }
    }
}

/* Less than this and a command may end in a fault: the limit is raised, or the user told. */
enum { STACK_BYTES = 64 << 10 };

static bool has_stack(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_BYTES) return true;
    const rlim_t had = limit.rlim_cur;
    limit.rlim_cur = STACK_BYTES;
    if (limit.rlim_max < STACK_BYTES) limit.rlim_max = STACK_BYTES;
    if (setrlimit(RLIMIT_STACK, &limit) == 0) return true;
    fprintf(stderr,
            "tinygpt: error: want a stack of %d KB, have a limit of %d KB that cannot be raised: "
            "ulimit -s %d\n",
            STACK_BYTES >> 10, (int)(had >> 10), STACK_BYTES >> 10);
    return false;
}

int main(int argc, char **argv) {
    fill_standard_streams();
    if (!has_stack()) return TG_EXIT_FAILED;
    /* Ignored for good, also for what the library writes: a reader that goes ends a run in
     * order. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (argc > 0 && argv[0] && argv[0][0]) tg_app_set_program(argv[0]);
    int code = dispatch(argc, argv);
    if (code != TG_EXIT_DONE && wants_json(argc, argv)) tg_last_error_tell(code);
    /* What printf could not write it kept to itself; fclose writes the rest and tells. */
    errno = 0;
    const bool lost = fflush(stdout) != 0 || ferror(stdout) != 0;
    if (lost && tg_app_reader_gone()) return code;
    if (fclose(stdout) != 0 || lost) {
        fprintf(stderr, "tinygpt: error: standard output could not take all of the output%s%s\n",
                errno ? ": " : "", errno ? strerror(errno) : "");
        if (code == TG_EXIT_DONE) code = TG_EXIT_FAILED;
    }
    return code;
}
