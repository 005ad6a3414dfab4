/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_loop.c - the server's thread: accepts, reads heads under a clock, writes replies (see
 * http.h).
 *
 * Why not a library. What is served is a fixed table of files under GET and HEAD, without bodies,
 * and what matters is to be strict and never to be locked out. libmicrohttpd 0.9.75, as Debian 12
 * has it, takes folded headers, bare line feeds and zeros, and has a clock for silence alone, which
 * one byte every few seconds winds up again; its stricter levels came with 1.0. libevent and
 * civetweb take the same heads, and parsers without sockets leave the clocks to the caller.
 *
 *     free --accept--> READING --whole head, or a refusal--> WRITING --kept--> READING
 *                                                               |
 *                                                               +--closed--> DRAINING --> free
 *
 * Clocks. A head has HEAD_MS from the connection (or, on one that is kept, from its first byte) to
 * its end, however its bytes trickle. A reply may take as long as it likes if some of it moves
 * every MOVE_MS. A connection between two requests may rest for REST_MS.
 *
 * Limits. There are CONNECTIONS of them, fewer where descriptors are short. One more is never
 * refused: it takes the place of the one that has been waited for longest, of the address that has
 * the most. So slow clients push each other out, and one that sends its head at once is answered.
 *
 * Draining. A socket that is closed with unread bytes in it resets, and the reset overtakes the
 * reply. So the writing half is closed first, and what still comes is thrown away for DRAIN_MS.
 */
#define _XOPEN_SOURCE 700 /* sockets, poll, fcntl */
#include "server/http.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTIONS = 512,
    AT_ONCE = 64,
    HEAD_MS = 10 * 1000,
    MOVE_MS = 10 * 1000,
    REST_MS = 10 * 1000,
    DRAIN_MS = 2 * 1000,
    LOOK_MS = 250,  /* how often the folder is looked at, at most */
    SHORT_MS = 100, /* a pause when there is no descriptor and nobody to take one from */
    REPLY_BYTES = 2048,
};

typedef enum state { FREE, READING, WRITING, DRAINING } state;

typedef struct connection {
    state state;
    int fd;
    uint32_t address;
    int64_t since_ms, ends_ms; /* the state: when it began or something moved last, its limit */

    size_t n_bytes; /* received and not yet answered */
    tg_head head;   /* of the request at the front of bytes */

    const tg_site *site;       /* whose bytes the body is */
    const unsigned char *body; /* [n_body] */
    size_t n_body, n_text, n_sent;
    bool closes;
    char text[REPLY_BYTES]; /* [n_text] the head of the reply */

    char bytes[TG_HEAD_BYTES_MAX + 1]; /* one more, to see that a head is too long */
} connection;

/* A site that has been read anew, or one before it that replies are still made of. */
typedef struct kept_site {
    struct kept_site *next;
    tg_site site;
} kept_site;

struct tg_http {
    int listener, wake[2];
    unsigned port;
    pthread_t thread;
    const tg_site *site;
    const char *folder; /* NULL: never looked at again */
    kept_site *kept;
    int64_t looked_ms, paused_ms;
    connection *all; /* [CONNECTIONS], zeros: pages that no client needs are never there */
};

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* limit_ms from now on_time_up decides, whatever the state is. */
static void enter(connection *c, state s, int64_t now, int64_t limit_ms) {
    c->state = s;
    c->since_ms = now;
    c->ends_ms = now + limit_ms;
}

/* Its bytes stay in the table, where the next client's come over them. */
static void drop(connection *c) {
    close(c->fd);
    c->state = FREE;
    c->site = NULL;
}

/* ---------------------------------------------------------------------------- a folder that
 * changes */

/* A reply is sent from the bytes of the site that it was made of, however long its client takes. */
static void free_unused_sites(tg_http *http) {
    for (kept_site **at = &http->kept; *at;) {
        kept_site *kept = *at;
        bool used = http->site == &kept->site;
        for (size_t i = 0; i < CONNECTIONS && !used; i++) {
            used = http->all[i].state == WRITING && http->all[i].site == &kept->site;
        }
        if (used) {
            at = &kept->next;
            continue;
        }
        *at = kept->next;
        tg_site_free(&kept->site);
        free(kept);
    }
}

/* A page that is just being built has no index.html for a moment, or half a file: what was read
 * before stays until the folder can be read as a whole. */
static void look_at_folder(tg_http *http, int64_t now) {
    if (!http->folder || now - http->looked_ms < LOOK_MS) return;
    http->looked_ms = now;
    if (tg_site_stamp(http->folder) == http->site->stamp) return;
    kept_site *kept = calloc(1, sizeof *kept);
    char why[1];
    if (!kept) return;
    if (!tg_site_read(&kept->site, http->folder, why, sizeof why)) {
        free(kept);
        return;
    }
    kept->next = http->kept;
    http->kept = kept;
    http->site = &kept->site;
    free_unused_sites(http);
}

/* ----------------------------------------------------------------------------------- one request
 */

/* The text is made at once and whole; the body is never copied. */
static void reply_with(connection *c, const tg_reply *reply, bool body, int64_t now) {
    c->n_text = tg_http_head_text(reply, c->closes, c->text, sizeof c->text);
    c->body = reply->bytes;
    c->n_body = body ? reply->n_bytes : 0;
    c->n_sent = 0;
    enter(c, WRITING, now, MOVE_MS);
}

/* Where the next request would begin is not known after a refusal, so the connection ends with it.
 */
static void refuse(connection *c, unsigned status, int64_t now) {
    tg_reply reply;
    tg_http_refuse(status, &reply);
    c->closes = true;
    reply_with(c, &reply, true, now);
}

/* Goes on with the head at the front of bytes, and answers it when it is whole. */
static void understand(tg_http *http, connection *c, int64_t now) {
    const unsigned status = tg_head_read(&c->head, c->bytes, c->n_bytes);
    if (status == TG_HEAD_MORE) return;
    if (status != TG_HEAD_WHOLE) {
        refuse(c, status, now);
        return;
    }
    look_at_folder(http, now);
    tg_reply reply;
    tg_http_answer(&c->head, http->port, http->site, &reply);
    /* A body is not read, so what comes behind it has no place to begin. */
    c->closes = c->head.wants_close || c->head.has_body;
    c->site = http->site;
    reply_with(c, &reply, strcmp(c->head.method, "HEAD") != 0, now);
}

/* The request is answered: forget its head, keep what has come behind it. */
static void next_request(connection *c, int64_t now) {
    c->n_bytes -= c->head.n_read;
    memmove(c->bytes, c->bytes + c->head.n_read, c->n_bytes);
    memset(&c->head, 0, sizeof c->head);
    enter(c, READING, now, c->n_bytes > 0 ? HEAD_MS : REST_MS);
}

/* ------------------------------------------------------------------------- what poll has to report
 */

/* Nothing there, in contrast to the end of the connection. */
static bool try_again(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/* There is always room for one more byte: a head that fills all of it has been refused. */
static void on_readable(tg_http *http, connection *c, int64_t now) {
    const ssize_t n = recv(c->fd, c->bytes + c->n_bytes, sizeof c->bytes - c->n_bytes, 0);
    if (n < 0 && try_again()) return;
    if (n < 0 || (n == 0 && c->n_bytes == 0)) {
        drop(c);
        return;
    }
    if (n == 0) {
        refuse(c, 400, now); /* a head that ends in its middle */
        return;
    }
    /* The clock of a head on a kept connection begins here; that of the first one runs already. */
    if (c->n_bytes == 0 && c->site) c->ends_ms = now + HEAD_MS;
    c->n_bytes += (size_t)n;
    understand(http, c, now);
}

/* Text and body go out in one call, so that a small reply is one packet. */
static void on_writable(connection *c, int64_t now) {
    struct iovec parts[2] = { { c->text, c->n_text }, { (void *)(uintptr_t)c->body, c->n_body } };
    size_t done = c->n_sent;
    for (size_t i = 0; i < 2; i++) {
        const size_t n = done < parts[i].iov_len ? done : parts[i].iov_len;
        parts[i].iov_base = (char *)parts[i].iov_base + n;
        parts[i].iov_len -= n;
        done -= n;
    }
    const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    const ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
    if (n < 0 && !try_again()) drop(c);
    if (n < 0) return;
    c->n_sent += (size_t)n;
    if (c->n_sent < c->n_text + c->n_body) {
        enter(c, WRITING, now, MOVE_MS);
    } else if (c->closes) {
        shutdown(c->fd, SHUT_WR);
        enter(c, DRAINING, now, DRAIN_MS);
    } else {
        next_request(c, now);
    }
}

static void on_draining(connection *c) {
    const ssize_t n = recv(c->fd, c->bytes, sizeof c->bytes, 0);
    if (n == 0 || (n < 0 && !try_again())) drop(c);
}

/* A head that was begun is answered; a connection on which nothing was said is just closed, as a
 * browser expects of those that it opens in advance. */
static void on_time_up(connection *c, int64_t now) {
    if (c->state == READING && c->n_bytes > 0) {
        refuse(c, 408, now);
    } else {
        drop(c);
    }
}

/* ----------------------------------------------------------------------------------- connections
 */

/* Counted when somebody asks, which is only when all places are taken: a table of addresses would
 * be one more thing that can go out of step. */
static size_t count_of(const tg_http *http, uint32_t address) {
    size_t n = 0;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        n += http->all[i].state != FREE && http->all[i].address == address;
    }
    return n;
}

/* Addresses weigh first, then how long nothing has moved. Bytes of a head that is not whole yet do
 * not count as something that moves. */
static connection *most_dispensable(tg_http *http) {
    connection *worst = NULL;
    size_t n_worst = 0;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        connection *c = &http->all[i];
        if (c->state == FREE) continue;
        const size_t n =
            worst && c->address == worst->address ? n_worst : count_of(http, c->address);
        if (!worst || n > n_worst || (n == n_worst && c->since_ms < worst->since_ms)) {
            worst = c;
            n_worst = n;
        }
    }
    return worst;
}

/* It is told why, if its socket takes that much at once. */
static bool make_room(tg_http *http) {
    connection *c = most_dispensable(http);
    if (!c) return false;
    if (c->state == READING && c->n_bytes > 0) {
        refuse(c, 503, 0);
        on_writable(c, 0);
    }
    if (c->state != FREE) drop(c);
    return true;
}

/* The second look finds the place that has been made; NULL only if there is nobody to take one
 * from.
 */
static connection *free_connection(tg_http *http) {
    for (int tries = 0; tries < 2; tries++) {
        for (size_t i = 0; i < CONNECTIONS; i++) {
            if (http->all[i].state == FREE) return &http->all[i];
        }
        make_room(http);
    }
    return NULL;
}

/* As many at once as can do no harm: who was accepted is listened to before many others come. */
static void accept_all(tg_http *http, int64_t now) {
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_in from = { 0 };
        socklen_t n_from = sizeof from;
        const int fd = accept(http->listener, (struct sockaddr *)&from, &n_from);
        if (fd < 0) {
            if (errno == ECONNABORTED || errno == EINTR) continue;
            const bool full = errno == EMFILE || errno == ENFILE;
            if (full && make_room(http)) continue;
            if (!try_again()) http->paused_ms = now + SHORT_MS;
            return;
        }
        const int on = 1;
        connection *c = free_connection(http);
        if (!c || fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        c->fd = fd;
        c->address = from.sin_addr.s_addr;
        c->site = NULL;
        c->n_bytes = 0;
        memset(&c->head, 0, sizeof c->head);
        enter(c, READING, now, HEAD_MS);
    }
}

/* ------------------------------------------------------------------------------------- the thread
 */

/* Bytes that are there already are no event, so one that has some asks for what is always true. */
static short events_of(const connection *c) {
    if (c->state == WRITING) return POLLOUT;
    if (c->state == READING && c->n_bytes > c->head.n_read) return POLLOUT;
    return POLLIN;
}

/* The clock is looked at last: what has come in time is answered, even if we were late to see it.
 */
static void serve_one(tg_http *http, connection *c, short happened, int64_t now) {
    if (c->state == WRITING) {
        if (happened) on_writable(c, now);
    } else if (c->state == DRAINING) {
        if (happened) on_draining(c);
    } else if (happened && c->n_bytes > c->head.n_read) {
        understand(http, c, now);
    } else if (happened) {
        on_readable(http, c, now);
    }
    if (c->state != FREE && now >= c->ends_ms) on_time_up(c, now);
}

/* Which connection is behind a descriptor of poll. The first two are the pipe and the listener. */
typedef struct watched {
    struct pollfd fds[CONNECTIONS + 2];
    connection *of[CONNECTIONS + 2];
    nfds_t n;
} watched;

/* Returns poll's time limit, which is the next clock that runs out; -1: none runs. While accepting
 * is paused the listener is left out, or poll would return at once for it. */
static int watch(tg_http *http, watched *w, int64_t now) {
    const bool paused = now < http->paused_ms;
    int64_t next = paused ? http->paused_ms : INT64_MAX;
    w->fds[0] = (struct pollfd) { .fd = http->wake[0], .events = POLLIN };
    w->fds[1] = (struct pollfd) { .fd = paused ? -1 : http->listener, .events = POLLIN };
    w->n = 2;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        connection *c = &http->all[i];
        if (c->state == FREE) continue;
        w->fds[w->n] = (struct pollfd) { .fd = c->fd, .events = events_of(c) };
        w->of[w->n++] = c;
        if (c->ends_ms < next) next = c->ends_ms;
    }
    if (next == INT64_MAX) return -1;
    return next > now ? (int)(next - now) : 0;
}

static void *run(void *user) {
    tg_http *http = user;
    watched w;
    for (;;) {
        const int timeout = watch(http, &w, now_ms());
        /* Out of memory: no descriptor has an event then, and clocks go on. */
        if (poll(w.fds, w.n, timeout) < 0) poll(NULL, 0, errno == EINTR ? 0 : SHORT_MS);
        if (w.fds[0].revents) break;
        const int64_t now = now_ms();
        for (nfds_t i = 2; i < w.n; i++) serve_one(http, w.of[i], w.fds[i].revents, now);
        /* Last, since a new one may take the place of one whose events were still to be dealt
         * with. */
        if (w.fds[1].revents) accept_all(http, now);
    }
    return NULL;
}

static void free_http(tg_http *http) {
    for (int i = 0; i < 2; i++) {
        if (http->wake[i] >= 0) close(http->wake[i]);
    }
    free(http->all);
    free(http);
}

/* The listener does not block either: a client that gives up between poll and accept would stop all
 * others. */
tg_http *tg_http_start(int socket, unsigned port, const tg_site *site, const char *folder) {
    tg_http *http = calloc(1, sizeof *http);
    if (!http) return NULL;
    http->wake[0] = http->wake[1] = -1;
    http->listener = socket;
    http->port = port;
    http->site = site;
    http->folder = folder;
    http->all = calloc(CONNECTIONS, sizeof *http->all);
    if (!http->all || pipe(http->wake) != 0 || fcntl(socket, F_SETFL, O_NONBLOCK) != 0 ||
        pthread_create(&http->thread, NULL, run, http) != 0) {
        free_http(http);
        return NULL;
    }
    return http;
}

void tg_http_stop(tg_http *http) {
    if (!http) return;
    /* The other end of the pipe is polled beside the connections. */
    while (write(http->wake[1], "", 1) < 0 && errno == EINTR) continue;
    pthread_join(http->thread, NULL);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (http->all[i].state != FREE) drop(&http->all[i]);
    }
    http->site = NULL;
    free_unused_sites(http);
    close(http->listener);
    free_http(http);
}
