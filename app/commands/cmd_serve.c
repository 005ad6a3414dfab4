/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_serve.c - tinygpt serve: the page, on this machine and for this machine only.
 *
 * The page trains in the browser; this command gives out its files and nothing else, on 127.0.0.1.
 * It runs until a signal ends it. All mistakes that a person can make with it (a port in use, a
 * folder without a page, a program built without one) are found before it says that it serves.
 */
#define _XOPEN_SOURCE 700 /* sockets, pselect, sigprocmask */
#include "app.h"
#include "print/format.h"
#include "server/http.h"
#include "signals.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WHY_BYTES = 512, WAITING_MAX = 1024 };

typedef struct values {
    int64_t port;
    const char *dir;
} values;

static const tg_option options[] = {
    TG_INT("--port", values, port, 0, 65535, "N", "port to listen on; 0 takes any free one"),
    TG_PATH("--dir", values, dir, "DIR",
            "serve a built page from this folder, not the one in the program; a page that is built "
            "anew is seen"),
};

static const tg_command_spec spec = {
    .name = "serve",
    .usage = "[options]",
    .about =
        "Serves the page that trains and runs models in a browser tab. It answers this machine "
        "only (127.0.0.1), and nothing that you train or type leaves the browser. Ctrl-C ends it.",
    .examples = "  tinygpt serve\n  tinygpt serve --port 9000 --dir web/dist\n",
};

/* ------------------------------------------------------------------------------------ the page */

static int load_site(tg_app *app, const char *dir, tg_site *site) {
    if (dir) {
        char why[WHY_BYTES];
        if (tg_site_read(site, dir, why, sizeof why)) return TG_ARGS_GO_ON;
        tg_app_error(app, "--dir %s", why);
        return TG_EXIT_USAGE;
    }
    if (!tg_site_built(site)) {
        tg_app_error(app, "%s", tg_status_text(TG_E_MEMORY));
        return TG_EXIT_FAILED;
    }
    if (site->n == 0) {
        tg_app_error(app, "this program was built without the page: run make web, then make "
                          "build; or name the folder of a built page with --dir");
        return TG_EXIT_FAILED;
    }
    return TG_ARGS_GO_ON;
}

/* ---------------------------------------------------------------------------------- the socket */

static int refuse_port(tg_app *app, int64_t port, int reason) {
    if (reason == EADDRINUSE) {
        tg_app_error(app,
                     "port %d is in use: end the program that has it, or take another one, "
                     "such as --port 0 for any that is free",
                     (int)port);
        return TG_EXIT_USAGE;
    }
    if (reason == EACCES || reason == EPERM) {
        tg_app_error(app, "port %d is not for every user: take one from 1024 on", (int)port);
        return TG_EXIT_USAGE;
    }
    tg_app_error(app, "port %d of 127.0.0.1: %s", (int)port, strerror(reason));
    return TG_EXIT_FAILED;
}

/* A listening socket, and the port that it got. SO_REUSEADDR does not share a port: it lets a
 * server start again while closed connections of the one before are still remembered. */
static int open_socket(tg_app *app, int64_t port, int *out, unsigned *got) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n_address = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) return refuse_port(app, port, errno);
    const int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, WAITING_MAX) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &n_address) != 0) {
        const int reason = errno;
        close(fd);
        return refuse_port(app, port, reason);
    }
    *out = fd;
    *got = ntohs(address.sin_port);
    return TG_ARGS_GO_ON;
}

/* --------------------------------------------------------------------------------- the command */

static void announce(const tg_app *app, const tg_site *site, unsigned port, const char *dir) {
    if (app->globals.json) {
        char url[64];
        snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        tg_jout_text(&j, "url", url);
        tg_jout_uint(&j, "port", port);
        tg_jout_text(&j, "dir", dir);
        tg_jout_uint(&j, "files", site->n);
        tg_jout_uint(&j, "bytes", site->n_bytes);
        tg_jout_close(&j);
        tg_jout_line(&j);
        return;
    }
    printf("The page is at  http://127.0.0.1:%u/  (%zu files, %s). Ctrl-C ends the server.\n", port,
           site->n, TG_BYTES(site->n_bytes));
    fflush(stdout);
}

/* Sleeps until a signal comes. They are blocked but for the time in pselect, so that none can slip
 * between the question and the sleep. */
static void wait_for_signal(const sigset_t *outside) {
    while (!tg_signals_caught()) pselect(0, NULL, NULL, NULL, NULL, outside);
}

/* Signals are blocked while the server's thread is made, so that they find this thread. */
static int serve(tg_app *app, const values *v, const tg_site *site) {
    sigset_t outside;
    tg_signals_install();
    tg_signals_block(&outside);
    int fd = -1;
    unsigned port = 0;
    int code = open_socket(app, v->port, &fd, &port);
    if (code == TG_ARGS_GO_ON) {
        tg_http *http = tg_http_start(fd, port, site, v->dir);
        if (http) {
            announce(app, site, port, v->dir);
            wait_for_signal(&outside);
            fprintf(stderr, "\nStopped.\n");
            code = TG_EXIT_INTERRUPTED;
        } else {
            close(fd);
            tg_app_error(app, "the web server could not be started: no memory or no thread for it");
            code = TG_EXIT_FAILED;
        }
        tg_http_stop(http);
    }
    pthread_sigmask(SIG_SETMASK, &outside, NULL);
    return code;
}

int tg_cmd_serve(int argc, char **argv) {
    values v = { .port = 8080 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    tg_site site;
    code = load_site(&app, v.dir, &site);
    if (code != TG_ARGS_GO_ON) return code;
    code = serve(&app, &v, &site);
    tg_site_free(&site);
    return code;
}
