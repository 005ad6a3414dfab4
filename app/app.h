/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app.h - what all commands share: exit codes, global options, the context, errors, files.
 *
 * The program includes include/tinygpt.h and nothing else of the library. A command is a function
 *
 *     int tg_cmd_info(int argc, char **argv)         argv begins behind the command's name
 *
 * that declares its options (args.h), calls tg_app_start, works, and returns through tg_app_end.
 *
 * Channels. A person's text goes to app.out, which is standard output, or standard error under
 * --json; JSON goes to standard output; warnings and errors go to standard error (app.err). What
 * standard output could not take is found by main at the end and becomes exit code 1.
 */
#ifndef TG_APP_APP_H
#define TG_APP_APP_H

#include "args.h"
#include "print/json_out.h"
#include "print/term.h"
#include "tinygpt.h"

enum {
    TG_EXIT_DONE = 0,
    TG_EXIT_FAILED = 1,
    TG_EXIT_USAGE = 2,        /* bad usage or bad input */
    TG_EXIT_SAVED = 3,        /* stopped early, with the run saved */
    TG_EXIT_INTERRUPTED = 130 /* stopped by a signal, with the run saved if it had begun */
};

/* Every command takes these. */
enum { TG_GLOBALS = 6 };
typedef struct tg_globals {
    bool json;
    int64_t threads; /* 0: chosen by the library */
    const char *isa;
    int device; /* 0 cpu, 1 webgpu */
    const char *levers;
    const char *pack_cache;
} tg_globals;

typedef struct tg_app {
    tg_globals globals;
    tg_option global_options[TG_GLOBALS]; /* those that mean nothing to the command are hidden */
    tg_args args;
    tg_term out, err;
    tg_context *ctx;
} tg_app;

#define TG_COMMAND(name, function, help) int function(int argc, char **argv);
#include "commands.def"
#undef TG_COMMAND

/* ------------------------------------------------------------------------------ start and end */

/*
 * Parses the command line into the groups' values and the globals, then opens the context. Returns
 * TG_ARGS_GO_ON, or the exit code to return at once (nothing is left open then).
 */
int tg_app_start(tg_app *app, const tg_command_spec *spec, const tg_option_group *groups,
                 size_t n_groups, int argc, char **argv);

/* The same in two steps, for commands that check their options before anything is opened. */
int tg_app_parse(tg_app *app, const tg_command_spec *spec, const tg_option_group *groups,
                 size_t n_groups, int argc, char **argv);
int tg_app_open(tg_app *app);

/* A further context with the same options, but for the threads (0: the same; else it is silent) and
 * with these levers added. On failure *out may be a context that has the message; free it in any
 * case. */
tg_status tg_app_context(tg_app *app, unsigned threads, const char *more_levers, tg_context **out);

/* Frees the context; returns code, so that a command can end with it. */
int tg_app_end(tg_app *app, int code);

/* The commands of a command: "tinygpt bench matmul". */
typedef struct tg_subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} tg_subcommand;
int tg_app_subcommand(const char *name, const char *about, const tg_subcommand *list, size_t n,
                      int argc, char **argv);

/* The program as it was called, for commands that the user may copy. */
const char *tg_app_program(void);
void tg_app_set_program(const char *argv0);

/* --------------------------------------------------------------------------------------- errors */

/* What the library was doing: a file that cannot be read is bad input, one that cannot be written
 * is a failure. */
typedef enum tg_doing { TG_READING, TG_WRITING, TG_WORKING } tg_doing;

/* Exit code of a status. */
int tg_app_exit_code(tg_status status, tg_doing doing);

/* The message of a failed call on ctx, and its exit code; tg_app_failed prints the one and returns
 * the other. */
const char *tg_app_why(const tg_context *ctx, tg_status status);
int tg_app_code_of(const tg_context *ctx, tg_status status, tg_doing doing);
int tg_app_failed(tg_app *app, tg_context *ctx, tg_status status, tg_doing doing);

/* Exit code of an errno, of a call that the program made itself. */
int tg_app_errno_code(int error);

/* "tinygpt: error: ..." and "tinygpt: warning: ..." on standard error, made safe for a terminal. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void tg_app_error(tg_app *app, const char *format, ...);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void tg_app_warn(tg_app *app, const char *format, ...);

/* --------------------------------------------------------------------------------- small services
 */

double tg_app_now_ms(void); /* a clock that never jumps */

/*
 * Can a file be made at path, beside it a temporary one, and is path itself free or a regular
 * file? On failure the reason is in why, and its exit code in *code. Tries it, since permission
 * bits alone do not tell.
 */
bool tg_app_can_write(const char *path, char *why, size_t why_bytes, int *code);

/* Do two paths name one file, through links or not, whether it exists already or not? */
bool tg_app_same_file(const char *a, const char *b);

/* Free bytes of the file system that path will lie on; UINT64_MAX if unknown. */
uint64_t tg_app_disk_free(const char *path);

/* The file that a model was read from, for path as it was asked for: path.prev where the library
 * fell back to that one. Returns out, or path. */
const char *tg_app_file_read(const tg_model *model, const char *path, char *out, size_t out_bytes);
/* The same as two members of a JSON object, "file" and "fell_back": the exit code does not tell,
 * and a program does not read warnings. */
void tg_app_put_file_read(tg_jout *j, const tg_model *model, const char *path);

/* All bytes of a file, pipe or (path "-") standard input, at most limit of them; zero-terminated.
 * The caller frees *out. Returns TG_ARGS_GO_ON or an exit code after a message. */
int tg_app_read_file(tg_app *app, const char *path, size_t limit, char **out, size_t *n_bytes);

/* Length of a file, 0 if there is none. */
uint64_t tg_app_file_bytes(const char *path);

/* Has whoever read standard output gone, as head does when it has enough? Then there is nothing to
 * complain of, and nothing more to say. */
bool tg_app_reader_gone(void);

/* A tg_text_fn that writes to the FILE * in user; a failing write stops the producer. */
int tg_app_write_text(void *user, const char *bytes, size_t n_bytes);

/* A growing text, zero-terminated; a tg_text_fn with a tg_app_buffer * as user fills it. */
typedef struct tg_app_buffer {
    char *bytes;
    size_t n, cap;
} tg_app_buffer;
int tg_app_buffer_add(void *user, const char *bytes, size_t n_bytes);
void tg_app_buffer_free(tg_app_buffer *buffer);

/* The bytes of tg_app_read_file, behind what is in the buffer. NULL, or what went wrong, and *code
 * for the exit. A FIFO that nobody writes to is an error, not a wait. */
const char *tg_app_read_text(const char *path, size_t limit, tg_app_buffer *b, int *code);

#endif
