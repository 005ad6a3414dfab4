/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app.c - what all commands share (see app.h).
 */
#define _GNU_SOURCE /* O_TMPFILE; clock_gettime, stat, statvfs */
#include "app.h"

#include "last_error.h"
#include "print/format.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* A longer message is cut; it may quote a path of PATH_BYTES, which then is what is lost. */
enum { MESSAGE_BYTES = 2048, PATH_BYTES = 4096, WRITER_MS = 2000 };

/* --------------------------------------------------------------------------------------- errors */

/*
 * One line on standard error. The rewritten line of a running training is wiped first, and what was
 * printed before goes out first, so that the two streams keep their order on a shared terminal. The
 * text may quote file names and file contents, so it is made safe.
 */
static void say(tg_app *app, tg_style style, const char *kind, const char *text) {
    char safe[MESSAGE_BYTES];
    tg_term_clear(&app->out);
    fflush(app->out.file);
    tg_term_clear(&app->err);
    fprintf(stderr, "tinygpt: %s%s%s%s\n", tg_term_style(&app->err, style), kind,
            tg_term_style(&app->err, TG_PLAIN), tg_fmt_safe(safe, sizeof safe, text));
}

void tg_app_error(tg_app *app, const char *format, ...) {
    char text[MESSAGE_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    tg_last_error_set(text);
    say(app, TG_RED, "error: ", text);
}

void tg_app_warn(tg_app *app, const char *format, ...) {
    char text[MESSAGE_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    say(app, TG_YELLOW, "warning: ", text);
}

/*
 * Codes 2 and 1 part what the user can change (an option, a file) from what has happened to the
 * program (memory, the device, a NaN). Only E_IO can be either.
 */
int tg_app_exit_code(tg_status status, tg_doing doing) {
    switch (status) {
    case TG_OK: return TG_EXIT_DONE;
    case TG_E_ARG:
    case TG_E_FORMAT:
    case TG_E_CHECKSUM:
    case TG_E_RANGE:
    case TG_E_FULL:
    case TG_E_SHAPE:
    case TG_E_UNSUPPORTED:
    case TG_E_DATA: return TG_EXIT_USAGE;
    case TG_E_IO: return doing == TG_READING ? TG_EXIT_USAGE : TG_EXIT_FAILED;
    case TG_PENDING:
    case TG_STOPPED:
    case TG_E_MEMORY:
    case TG_E_DEVICE:
    case TG_E_NUMBER:
    case TG_E_INTERNAL: break;
    }
    return TG_EXIT_FAILED;
}

/* What the library asks of an errno (base/os/os_posix.c), for the calls that the program makes
 * itself: other errors are of a path, its rights or its kind. */
int tg_app_errno_code(int error) {
    static const int of_machine[] = { EIO,    ENOSPC, EDQUOT, EFBIG,     ENOMEM,
                                      EMFILE, ENFILE, ESTALE, ETIMEDOUT, EAGAIN };
    for (size_t i = 0; i < sizeof of_machine / sizeof of_machine[0]; i++)
        if (error == of_machine[i]) return TG_EXIT_FAILED;
    return TG_EXIT_USAGE;
}

/* The library's sentence says what, where, wanted and found; the status alone says much less, and
 * stands in only where there is no context, or no message in it. */
const char *tg_app_why(const tg_context *ctx, tg_status status) {
    const char *text = ctx ? tg_context_error(ctx) : "";
    return *text ? text : tg_status_text(status);
}

int tg_app_code_of(const tg_context *ctx, tg_status status, tg_doing doing) {
    /* A broken disk is no bad input, whichever way the bytes went. */
    const bool machine = status == TG_E_IO && ctx && tg_context_machine_failed(ctx);
    return machine ? TG_EXIT_FAILED : tg_app_exit_code(status, doing);
}

int tg_app_failed(tg_app *app, tg_context *ctx, tg_status status, tg_doing doing) {
    tg_app_error(app, "%s", tg_app_why(ctx, status));
    return tg_app_code_of(ctx, status, doing);
}

/* The library's log. Its information lines repeat the banner, so they are left out. */
static void on_log(void *user, int level, const char *text) {
    tg_app *app = user;
    if (level == 0) say(app, TG_RED, "error: ", text);
    if (level == 1) say(app, TG_YELLOW, "warning: ", text);
}

/* ------------------------------------------------------------------------------- start and end */

/* The last group of every help page. Names of ISAs and levers are checked by the library, which
 * knows them. */
static const tg_option global_options[TG_GLOBALS] = {
    TG_FLAG("--json", tg_globals, json,
            "print JSON on standard output, all else on standard error"),
    TG_INT("--threads", tg_globals, threads, 1, 256, "N", "threads (default: the cores we may use)",
           .hide_default = true),
    TG_TEXT("--isa", tg_globals, isa, "NAME",
            "kernels to use (default: the best this CPU has; see doctor)"),
    TG_CHOICE("--device", tg_globals, device, "cpu|webgpu", "where to compute"),
    TG_TEXT("--levers", tg_globals, levers, "LIST",
            "switch speed ideas off and on: -flash_attention,+bf16 (see bench levers)"),
    TG_PATH("--pack-cache", tg_globals, pack_cache, "DIR",
            "keep packed weights of third-party models in DIR, for a quicker next start"),
};

/* By name, so that the order of the table is free. */
static unsigned use_of(const tg_option *option) {
    if (!strcmp(option->name, "--device")) return TG_USES_DEVICE;
    if (!strcmp(option->name, "--pack-cache")) return TG_USES_PACKS;
    return strcmp(option->name, "--json") ? TG_USES_CPU : 0;
}

/* app is set up before the first message, so that even a parse error knows its terminal. The order
 * of groups is the order of the help. */
int tg_app_parse(tg_app *app, const tg_command_spec *spec, const tg_option_group *groups,
                 size_t n_groups, int argc, char **argv) {
    memset(app, 0, sizeof *app);
    tg_term_init(&app->err, stderr);
    tg_term_init(&app->out, stdout);
    app->args.spec = spec;
    for (size_t i = 0; i < n_groups; i++) app->args.groups[i] = groups[i];
    for (size_t i = 0; i < TG_GLOBALS; i++) {
        const unsigned use = use_of(&global_options[i]);
        app->global_options[i] = global_options[i];
        app->global_options[i].hidden = use && !(spec->uses & use);
    }
    app->args.groups[n_groups] =
        (tg_option_group)TG_GROUP("Every command", app->global_options, &app->globals);
    app->args.n_groups = n_groups + 1;
    const int code = tg_args_parse(&app->args, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    if (app->globals.json) tg_term_init(&app->out, stderr);
    return TG_ARGS_GO_ON;
}

/* Both lists of levers are joined, the user's first: of two words about one lever the last counts,
 * so that a benchmark's own choice holds. */
tg_status tg_app_context(tg_app *app, unsigned threads, const char *more_levers, tg_context **out) {
    char *levers = NULL;
    const char *base = app->globals.levers ? app->globals.levers : "";
    if (*base || *more_levers) {
        const size_t cap = strlen(base) + strlen(more_levers) + 2;
        levers = malloc(cap);
        if (!levers) {
            *out = NULL;
            return TG_E_MEMORY;
        }
        snprintf(levers, cap, "%s%s%s", base, *base && *more_levers ? "," : "", more_levers);
    }
    tg_context_options o = tg_context_options_default();
    o.threads = threads ? threads : (unsigned)app->globals.threads;
    o.isa = app->globals.isa;
    o.device = app->globals.device == 1 ? "webgpu" : "cpu";
    o.levers = levers;
    o.log = threads ? NULL : on_log; /* a number that we chose needs no comment */
    o.log_user = app;
    const tg_status status = tg_context_new(&o, out);
    free(levers);
    return status == TG_OK ? tg_context_pack_cache(*out, app->globals.pack_cache) : status;
}

/* A failed context is kept until its message is out, and freed by tg_app_end. */
int tg_app_open(tg_app *app) {
    tg_signals_install_default();
    const tg_status status = tg_app_context(app, 0, "", &app->ctx);
    if (status != TG_OK) {
        const int code = tg_app_failed(app, app->ctx, status, TG_WORKING);
        return tg_app_end(app, code);
    }
    return TG_ARGS_GO_ON;
}

int tg_app_start(tg_app *app, const tg_command_spec *spec, const tg_option_group *groups,
                 size_t n_groups, int argc, char **argv) {
    const int code = tg_app_parse(app, spec, groups, n_groups, argc, argv);
    return code == TG_ARGS_GO_ON ? tg_app_open(app) : code;
}

int tg_app_end(tg_app *app, int code) {
    tg_context_free(app->ctx);
    app->ctx = NULL;
    return code;
}

/* There is no option between a command and its subcommand: "bench --json train" is an unknown
 * word. */
int tg_app_subcommand(const char *name, const char *about, const tg_subcommand *list, size_t n,
                      int argc, char **argv) {
    /* An unknown word gets the same page as --help, but on standard error and with code 2. */
    const bool help = argc > 0 && (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"));
    tg_args_form *form = tg_args_get_form();
    if (help && form) {
        const tg_command_spec spec = { .name = name, .usage = "COMMAND [options]", .about = about };
        const tg_args own = { .spec = &spec };
        form->page(form, &own);
        for (size_t i = 0; i < n; i++) {
            form->summary = list[i].help;
            list[i].run(argc, argv);
        }
        return TG_EXIT_DONE;
    }
    for (size_t i = 0; argc > 0 && i < n; i++) {
        if (!strcmp(argv[0], list[i].name)) return list[i].run(argc - 1, argv + 1);
    }
    FILE *out = help ? stdout : stderr;
    if (!help && argc > 0) {
        char shown[64];
        fprintf(out, "tinygpt %s: no %s called \"%s\"\n", name, name,
                tg_fmt_safe(shown, sizeof shown, argv[0]));
    }
    fprintf(out, "usage: tinygpt %s ", name);
    for (size_t i = 0; i < n; i++) fprintf(out, "%s%s", i ? "|" : "", list[i].name);
    fprintf(out, " [options]\n\n%s\n\n", about);
    for (size_t i = 0; i < n; i++) fprintf(out, "  %-10s %s\n", list[i].name, list[i].help);
    fprintf(out, "\ntinygpt %s %s --help tells the options of one.\n", name, list[0].name);
    return help ? TG_EXIT_DONE : TG_EXIT_USAGE;
}

/* Set once, before any thread exists; argv's memory lives as long as the process. */
static const char *program = "tinygpt";

const char *tg_app_program(void) { return program; }

void tg_app_set_program(const char *argv0) { program = argv0; }

/* ------------------------------------------------------------------------------- small services */

/* Monotonic: the wall clock may be set while a run goes on. */
double tg_app_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* The folder that path lies in, "." if it names none; false if it does not fit. */
static bool folder_of(const char *path, char *out, size_t cap) {
    const char *slash = strrchr(path, '/');
    const size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    if (n >= cap) return false;
    memcpy(out, n ? path : ".", n ? n : 1);
    out[n ? n : 1] = '\0';
    return true;
}

/*
 * Makes a file and gives it up again; errno says why not. If it can, one without a name: a kill at
 * this moment then leaves nothing behind. Where that is not to be had, the name is one that the
 * next save clears away as a dead save's temporary file, and that no live save takes (they number
 * their names from 1). A name that is too long must be found in either case.
 */
static bool try_file(const char *folder, const char *name) {
    struct stat info;
    if (lstat(name, &info) != 0 && errno == ENAMETOOLONG) return false;
#ifdef O_TMPFILE
    const int nameless = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (nameless >= 0) {
        close(nameless);
        return true;
    }
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL) return false;
#endif
    const int fd = open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    close(fd);
    unlink(name);
    return true;
}

/*
 * The order of the questions makes the answer the most telling one: a device is refused before its
 * folder is (renaming a temporary file over /dev/null would replace it), and the trial comes last.
 */
static bool can_write_at(const char *path, char *why, size_t why_bytes, int *code) {
    char folder[PATH_BYTES], probe[PATH_BYTES];
    struct stat info;
    *code = TG_EXIT_USAGE;
    if (!folder_of(path, folder, sizeof folder) || strlen(path) + 32 > sizeof probe) {
        snprintf(why, why_bytes, "the name is too long");
        return false;
    }
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        snprintf(why, why_bytes, "want a regular file, have %s",
                 S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe");
        return false;
    }
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode)) {
        snprintf(why, why_bytes, "the folder %s does not exist", folder);
        return false;
    }
    if (path[strlen(path) - 1] == '/') {
        snprintf(why, why_bytes, "want a file, have a folder");
        return false;
    }
    snprintf(probe, sizeof probe, "%s.tmp-%ld-0", path, (long)getpid());
    if (try_file(folder, probe)) return true;
    *code = tg_app_errno_code(errno);
    snprintf(why, why_bytes, "%s", strerror(errno));
    return false;
}

/* A path that exists is tried where it really lies: a save replaces what a link names. */
bool tg_app_can_write(const char *path, char *why, size_t why_bytes, int *code) {
    char *real = realpath(path, NULL);
    struct stat info;
    *code = TG_EXIT_USAGE;
    if (!real && lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        snprintf(why, why_bytes, "it is a link to a file that does not exist");
        return false;
    }
    const bool can = can_write_at(real ? real : path, why, why_bytes, code);
    free(real);
    return can;
}

/* Files that exist are compared by identity, others by their folder's identity and their name. */
bool tg_app_same_file(const char *a, const char *b) {
    struct stat of_a, of_b;
    const bool has_a = stat(a, &of_a) == 0, has_b = stat(b, &of_b) == 0;
    if (has_a != has_b) return false;
    if (!has_a) {
        char folder[PATH_BYTES];
        const char *name_a = strrchr(a, '/'), *name_b = strrchr(b, '/');
        if (strcmp(name_a ? name_a + 1 : a, name_b ? name_b + 1 : b) != 0) return false;
        if (!folder_of(a, folder, sizeof folder) || stat(folder, &of_a) != 0) return false;
        if (!folder_of(b, folder, sizeof folder) || stat(folder, &of_b) != 0) return false;
    }
    return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* f_bavail and not f_bfree: what is kept for root is no use to a user. */
uint64_t tg_app_disk_free(const char *path) {
    char folder[PATH_BYTES];
    struct statvfs fs;
    if (!folder_of(path, folder, sizeof folder) || statvfs(folder, &fs) != 0) return UINT64_MAX;
    return (uint64_t)fs.f_bavail * (uint64_t)fs.f_frsize;
}

/* Non-zero stops the producer, which then ends with TG_STOPPED. Lengths are compared before they
 * are added, so nothing wraps; after a failure the buffer still holds what it had. */
int tg_app_buffer_add(void *user, const char *bytes, size_t n_bytes) {
    tg_app_buffer *b = user;
    /* Grown by doubling; the byte beyond n is the zero at the end. */
    if (b->cap - b->n <= n_bytes) {
        if (n_bytes > SIZE_MAX / 4 || b->cap > SIZE_MAX / 4) return 1;
        const size_t cap = 2 * b->cap + n_bytes + 1;
        char *grown = realloc(b->bytes, cap);
        if (!grown) return 1;
        b->bytes = grown;
        b->cap = cap;
    }
    if (n_bytes > 0) memcpy(b->bytes + b->n, bytes, n_bytes);
    b->n += n_bytes;
    b->bytes[b->n] = '\0';
    return 0;
}

void tg_app_buffer_free(tg_app_buffer *b) {
    free(b->bytes);
    *b = (tg_app_buffer) { 0 };
}

const char *tg_app_file_read(const tg_model *model, const char *path, char *out, size_t out_bytes) {
    tg_model_info info;
    if (tg_model_get_info(model, &info) != TG_OK || !info.used_prev) return path;
    snprintf(out, out_bytes, "%s.prev", path);
    return out;
}

void tg_app_put_file_read(tg_jout *j, const tg_model *model, const char *path) {
    char prev[PATH_BYTES];
    const char *file = tg_app_file_read(model, path, prev, sizeof prev);
    tg_jout_text(j, "file", file);
    tg_jout_bool(j, "fell_back", file != path);
}

/* errno in words and as an exit code. */
static const char *system_error(int *code) {
    *code = tg_app_errno_code(errno);
    return strerror(errno);
}

/* Waits for a FIFO to have bytes or an end. One that gets no writer for a while has none, and would
 * be waited for without an end: false. A byte that the question cost is in *first, else -1. */
static bool await_writer(int fd, int *first) {
    struct pollfd p = { .fd = fd, .events = POLLIN };
    for (*first = -1;;) {
        const int ready = poll(&p, 1, WRITER_MS);
        if (ready > 0) return true;
        unsigned char byte;
        const ssize_t n = read(fd, &byte, 1); /* an end: nobody writes; EAGAIN: somebody will */
        if (n == 1) *first = byte;
        if (n == 1 || (n < 0 && errno != EAGAIN)) return true;
        if (n == 0) return false;
    }
}

/* Opens what a text comes from, without waiting for it. NULL: *why says why not, and *code for whom
 * that is. */
static FILE *open_text(const char *path, const char **why, int *code) {
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat info;
    int first = -1;
    *why = NULL;
    *code = TG_EXIT_USAGE;
    if (fd < 0 || fstat(fd, &info) != 0)
        *why = system_error(code);
    else if (S_ISDIR(info.st_mode))
        *why = strerror(EISDIR);
    else if (S_ISFIFO(info.st_mode) && !await_writer(fd, &first))
        *why = "want a FIFO that somebody writes to, have one without a writer";
    const int flags = *why ? -1 : fcntl(fd, F_GETFL);
    FILE *f = NULL;
    if (flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0) f = fdopen(fd, "rb");
    if (!f && !*why) *why = system_error(code);
    if (!f && fd >= 0) close(fd);
    if (f && first >= 0) ungetc(first, f);
    return f;
}

/* What git leaves in the place of a large file that was not fetched. */
static bool is_pointer(const tg_app_buffer *b) {
    static const char mark[] = "version https://git-lfs.github.com/spec/v1";
    return b->n >= sizeof mark - 1 && b->n <= 1024 && memcmp(b->bytes, mark, sizeof mark - 1) == 0;
}

/* NULL, or what went wrong; *code is for the exit then. Unlike a text to train on, a prompt may
 * come through a pipe, so its length is not known: it is read in blocks up to the limit. */
const char *tg_app_read_text(const char *path, size_t limit, tg_app_buffer *b, int *code) {
    static char fault[128];
    const bool standard = strcmp(path, "-") == 0;
    const char *why = NULL;
    char block[65536];
    *code = TG_EXIT_USAGE;
    FILE *f = standard ? stdin : open_text(path, &why, code);
    if (!f) return why;
    errno = 0;
    struct stat info;
    const bool endless =
        fstat(fileno(f), &info) == 0 && S_ISCHR(info.st_mode) && !isatty(fileno(f));
    for (size_t n = sizeof block; !why && n == sizeof block;) {
        n = fread(block, 1, sizeof block, f);
        if (endless && n > 0) {
            why = "want a file or a pipe, have a device, which may have no end";
        } else if (b->n + n > limit) {
            snprintf(fault, sizeof fault, "want at most %s, have more", TG_BYTES(limit));
            why = fault;
        } else if (tg_app_buffer_add(b, block, n) != 0) {
            why = "there is not enough memory to read it";
            *code = TG_EXIT_FAILED;
        }
    }
    if (!why && ferror(f)) why = system_error(code);
    if (!why && !standard && is_pointer(b))
        why =
            "want the file itself, have a pointer of git LFS to it: fetch it with \"git lfs pull\"";
    if (!standard) fclose(f);
    return why;
}

int tg_app_read_file(tg_app *app, const char *path, size_t limit, char **out, size_t *n_bytes) {
    tg_app_buffer b = { 0 };
    int code;
    const char *why = tg_app_read_text(path, limit, &b, &code);
    if (why) {
        tg_app_error(app, "%s: %s", path, why);
        tg_app_buffer_free(&b);
        return code;
    }
    *out = b.bytes;
    *n_bytes = b.n;
    return TG_ARGS_GO_ON;
}

/* 0 also stands for a file that cannot be asked: the number is shown, never relied on. */
uint64_t tg_app_file_bytes(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* Not flushed: for long texts, of which nobody watches the growth. */
int tg_app_write_text(void *user, const char *bytes, size_t n_bytes) {
    return fwrite(bytes, 1, n_bytes, user) != n_bytes;
}

bool tg_app_reader_gone(void) {
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}
