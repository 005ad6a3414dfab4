/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - errors as values with a message, assertions, and the log.
 *
 * A function that can fail returns tg_status. The place that finds the fault writes the message,
 * once: what, where, wanted, found. Everybody above forwards:
 *
 *     if (n_dims > 4) {
 *         return tg_fail(ctx, TG_E_FORMAT, "%s: tensor %s: want 1..4 dimensions, have %u", ...);
 *     }
 *     TG_TRY(tg_os_file_read(ctx, file, offset, head, sizeof head));
 *
 * What a user, a file or a machine can cause is a status. What only our own bug can cause is
 * TG_ASSERT, which is compiled in when TG_DEBUG is defined (debug, test and sanitizer builds).
 */
#ifndef TG_BASE_ERR_H
#define TG_BASE_ERR_H

#include "base/libc.h"
#include "base/mem.h"
#include "tinygpt.h"

#define TG_MESSAGE_BYTES 1024

/* What a command wants of the files that are read and written on its behalf (base/os/os.h obeys
 * it); zeros in normal life. */
typedef struct tg_ctx_files {
    struct tg_os_seen *seen; /* records what is opened for reading; NULL: nothing does */
    /* Asked before a new file takes its name; temp is where it lies. An error drops it. */
    tg_status (*check)(void *user, const char *temp);
    void *check_user;
    tg_cancel_fn cancel; /* asked while a file is written: TG_STOPPED, and it is dropped */
    void *cancel_user;
    bool force; /* outputs replace what stands in their place, whatever it is */
} tg_ctx_files;

/* What every layer is handed down: where memory comes from, where log lines and errors go. */
typedef struct tg_ctx {
    tg_mem mem;
    tg_log_fn log; /* NULL: silent */
    void *log_user;
    bool small_pages; /* big blocks decline huge pages: a lever's off-switch */
    tg_ctx_files files;
    tg_status code;  /* of the first failure since tg_ctx_clear; TG_OK if there was none */
    bool by_machine; /* it was no fault of a path or a file: a full disk, a broken one, no memory */
    char message[TG_MESSAGE_BYTES];
} tg_ctx;

/* Does the command's user want it to end? Asked where a call would otherwise take long. */
static inline bool tg_ctx_cancelled(const tg_ctx *ctx) {
    return ctx->files.cancel && ctx->files.cancel(ctx->files.cancel_user);
}

/* mem NULL: the system's heap. log may be NULL. */
void tg_ctx_init(tg_ctx *ctx, const tg_mem *mem, tg_log_fn log, void *log_user);

/* Forgets the recorded failure: the public entry points call it first. */
void tg_ctx_clear(tg_ctx *ctx);

/*
 * Records code and message, unless a failure is recorded already: the first one is the cause, the
 * later ones are its echoes. Returns code in any case. ctx NULL: nothing is recorded.
 */
TG_PRINTF(3, 4) tg_status tg_fail(tg_ctx *ctx, tg_status code, const char *format, ...);
tg_status tg_vfail(tg_ctx *ctx, tg_status code, const char *format, va_list args);

/* TG_E_MEMORY, "what: want N bytes of memory (N.N GiB), and the system has none left". */
tg_status tg_fail_memory(tg_ctx *ctx, const char *what, size_t bytes);

/* For whoever knows which file it was about: a recorded message that does not speak of path gets it
 * in front. Returns status. */
tg_status tg_fail_named(tg_ctx *ctx, const char *path, tg_status status);

/* Records what has failed on another context, such as a worker's own. Returns status. */
tg_status tg_fail_as(tg_ctx *ctx, tg_status status, const tg_ctx *other);

/* TG_STOPPED, "what: stopped by the receiver of its text": its callback has asked for it. */
tg_status tg_stopped(tg_ctx *ctx, const char *what);

/* Forwards everything but TG_OK, so TG_PENDING and TG_STOPPED too. */
#define TG_TRY(expression)                                                                         \
    do {                                                                                           \
        const tg_status tg_try_status = (expression);                                              \
        if (tg_try_status != TG_OK) {                                                              \
            return tg_try_status;                                                                  \
        }                                                                                          \
    } while (0)

/* Levels of the log, as in tinygpt.h. */
enum { TG_LOG_ERROR = 0, TG_LOG_WARNING = 1, TG_LOG_INFO = 2 };

/* One line, without its end, to the log; cut at TG_MESSAGE_BYTES. (tg_log is the logarithm.) */
TG_PRINTF(3, 4) void tg_say(const tg_ctx *ctx, int level, const char *format, ...);

#if defined(TG_DEBUG)
#define TG_ASSERT(condition)                                                                       \
    ((condition) ? (void)0 : tg_assert_failed(__FILE__, __LINE__, #condition))
#else
#define TG_ASSERT(condition) (false && (condition) ? (void)0 : (void)0) /* checked, never run */
#endif

/* Prints the three and ends the process: our own invariant is broken, no state can be trusted. */
_Noreturn void tg_assert_failed(const char *file, int line, const char *condition);

#endif
