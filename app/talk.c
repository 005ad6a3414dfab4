/* SPDX-License-Identifier: Apache-2.0 */
/*
 * talk.c - turns in an array, each with a copy of its text; and the file of them, which talk.h
 * shows.
 *
 * Invariant: a system turn, if there is one, is turn 0, and no other is one. Texts are malloced,
 * end with a zero that n_bytes does not count, and may have zeros in them. A call that fails for
 * lack of memory leaves the talk as it was.
 *
 *     turns    | system | user | assistant | user | ..
 *              ^ 0      ^ the oldest that may be forgotten (tg_talk_drop_oldest)
 *
 * A file may come from anybody. Nothing in it is trusted: a turn's text is taken by its length,
 * which must fit into what is left, so that a text may have lines that look like heads of turns.
 */
#include "talk.h"

#include "out_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* By tg_role. They are words of the file's format: another name would be another version. */
static const char *const roles[] = { "system", "user", "assistant" };
static const char headline[] = "tinygpt chat 2\n";
static const char damaged[] = "it is damaged";

/* A file longer than this is not read: no window could hold it. */
#define FILE_LIMIT ((size_t)64 << 20)
/* A line of the head with its end and a zero; the longest is that of sampling. */
enum { LINE_BYTES = 512 };

static char *copy_of(const char *text, size_t n_bytes) {
    char *copy = malloc(n_bytes + 1);
    if (!copy) return NULL;
    if (n_bytes > 0) memcpy(copy, text, n_bytes);
    copy[n_bytes] = '\0';
    return copy;
}

/* Takes over the text, which was malloced; not if there is no memory for the turn (false). Room is
 * doubled, so that a long talk is not copied turn by turn. */
static bool insert(tg_talk *t, size_t at, tg_role role, char *text, size_t n_bytes) {
    if (t->n == t->room) {
        const size_t room = t->room ? 2 * t->room : 16;
        tg_turn *grown = realloc(t->turns, room * sizeof *grown);
        if (!grown) return false;
        t->turns = grown;
        t->room = room;
    }
    memmove(t->turns + at + 1, t->turns + at, (t->n - at) * sizeof *t->turns);
    t->turns[at] = (tg_turn) { role, text, n_bytes };
    t->n++;
    return true;
}

/* tg_turn has a pointer to const, as callers of the library give it; here the text is the talk's
 * own. */
static void take_out(tg_talk *t, size_t at) {
    free((void *)(uintptr_t)t->turns[at].text);
    t->n--;
    memmove(t->turns + at, t->turns + at + 1, (t->n - at) * sizeof *t->turns);
}

static bool add_at(tg_talk *t, size_t at, tg_role role, const char *text, size_t n_bytes) {
    char *copy = copy_of(text, n_bytes);
    if (copy && insert(t, at, role, copy, n_bytes)) return true;
    free(copy);
    return false;
}

bool tg_talk_add(tg_talk *t, tg_role role, const char *text, size_t n_bytes) {
    return add_at(t, t->n, role, text, n_bytes);
}

bool tg_talk_has_system(const tg_talk *t) { return t->n > 0 && t->turns[0].role == TG_SYSTEM; }

/* The new turn is put in before the old one goes: where there is no memory, the old one stays. */
bool tg_talk_set_system(tg_talk *t, const char *text, size_t n_bytes) {
    if (n_bytes > 0 && !add_at(t, 0, TG_SYSTEM, text, n_bytes)) return false;
    const size_t old = n_bytes > 0 ? 1 : 0;
    if (t->n > old && t->turns[old].role == TG_SYSTEM) take_out(t, old);
    return true;
}

void tg_talk_drop_last(tg_talk *t) {
    if (t->n > 0) take_out(t, t->n - 1);
}

/* Below three turns behind the system's there is no more than a question and its answer, or the one
 * that is to be answered. Answers that follow the turn go as well, since many templates want a talk
 * to begin with the user; but the last turn stays, whoever's it is. */
bool tg_talk_drop_oldest(tg_talk *t) {
    const size_t first = tg_talk_has_system(t) ? 1 : 0;
    if (t->n < first + 3) return false;
    take_out(t, first);
    while (t->n > first + 1 && t->turns[first].role == TG_ASSISTANT) take_out(t, first);
    return true;
}

void tg_talk_reset(tg_talk *t) {
    const size_t kept = tg_talk_has_system(t) ? 1 : 0;
    while (t->n > kept) take_out(t, t->n - 1);
}

void tg_talk_free(tg_talk *t) {
    while (t->n > 0) take_out(t, t->n - 1);
    free(t->turns);
    *t = (tg_talk) { 0 };
}

/* ------------------------------------------------------------------------------------- files */

/* Text is put together in memory and written at once: the same bytes are a session's note, and a
 * file that cannot be written as a whole is not begun. */
static bool put(tg_app_buffer *out, const char *text) {
    return tg_app_buffer_add(out, text, strlen(text)) == 0;
}

bool tg_talk_write(const tg_talk *t, const tg_talk_settings *s, tg_app_buffer *out) {
    char line[80];
    snprintf(line, sizeof line, "seed %" PRIu64 " %" PRIu64 "\nsampling ", s->seed, s->answers);
    bool whole = put(out, headline) && put(out, line) && tg_sampling_write(&s->sampling, out);
    for (size_t i = 0; whole && i < t->n; i++) {
        snprintf(line, sizeof line, "%s %zu\n", roles[t->turns[i].role], t->turns[i].n_bytes);
        whole = put(out, line) &&
                tg_app_buffer_add(out, t->turns[i].text, t->turns[i].n_bytes) == 0 &&
                put(out, "\n");
    }
    return whole;
}

/* A line of the text at *at, without what follows it, which *at then is; NULL: there is no more, or
 * the line is longer than any that is written. It is copied, so that it ends with a zero. */
static const char *next_line(const char **at, const char *end, char line[LINE_BYTES]) {
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    const size_t n = stop ? (size_t)(stop - *at) + 1 : 0;
    if (n == 0 || n >= LINE_BYTES) return NULL;
    memcpy(line, *at, n);
    line[n] = '\0';
    *at += n;
    return line;
}

/* A number up to a character behind it, where *at then is. Digits alone: scanf and strtoull take
 * "-1", too, for the largest number. */
static bool number(const char **at, char stop, uint64_t *out) {
    char *end;
    if (**at < '0' || **at > '9') return false;
    errno = 0;
    *out = strtoull(*at, &end, 10);
    if (errno != 0 || *end != stop) return false;
    *at = end + 1;
    return true;
}

/* A setting, or one turn:
 *
 *     role SP bytes LF text LF
 *
 * A setting may come anywhere and more than once; the last one counts. The line end behind a text
 * is checked, so a length that is wrong is found there, or at the next head. A system turn that is
 * not the first would break the invariant, and is damage. */
static const char *read_part(const char **at, const char *end, tg_talk *t, tg_talk_settings *s) {
    char line[LINE_BYTES];
    uint64_t n_bytes;
    size_t role = 0;
    if (!next_line(at, end, line)) return damaged;
    if (strncmp(line, "seed ", 5) == 0) {
        const char *rest = line + 5;
        return number(&rest, ' ', &s->seed) && number(&rest, '\n', &s->answers) ? NULL : damaged;
    }
    if (strncmp(line, "sampling ", 9) == 0)
        return tg_sampling_read(&s->sampling, line + 9) ? NULL : damaged;
    const size_t name = strcspn(line, " ");
    const char *rest = line + name + (line[name] == ' ');
    while (role < 3 && (strlen(roles[role]) != name || memcmp(line, roles[role], name) != 0))
        role++;
    if (role == 3 || (role == TG_SYSTEM && t->n > 0)) return damaged;
    if (!number(&rest, '\n', &n_bytes) || n_bytes >= (uint64_t)(end - *at) ||
        (*at)[n_bytes] != '\n')
        return damaged;
    if (!tg_talk_add(t, (tg_role)role, *at, (size_t)n_bytes)) return "there is not enough memory";
    *at += n_bytes + 1;
    return NULL;
}

/* Into a talk and settings of its own, which take the caller's place when all is read. Version 1
 * has no settings, so those of the caller stay. Answers are constant strings, for a message that
 * begins with the file's name. */
const char *tg_talk_read(tg_talk *t, tg_talk_settings *s, const char *bytes, size_t n_bytes) {
    const char *at = bytes, *end = bytes + n_bytes, *fault = NULL;
    char line[LINE_BYTES];
    tg_talk_settings settings = *s;
    tg_talk loaded = { 0 };
    if (n_bytes == 0 || !next_line(&at, end, line) ||
        (strcmp(line, headline) != 0 && strcmp(line, "tinygpt chat 1\n") != 0))
        return "it is no conversation";
    while (!fault && at < end) fault = read_part(&at, end, &loaded, &settings);
    if (fault) {
        tg_talk_free(&loaded);
        return fault;
    }
    tg_talk_free(t);
    *t = loaded;
    *s = settings;
    return NULL;
}

/* The writer keeps its first error, and commit returns it; path has what it had before then. The
 * message is the context's, until its next call. */
const char *tg_talk_save(tg_context *ctx, const tg_talk *t, const tg_talk_settings *s,
                         const char *path) {
    tg_app_buffer text = { 0 };
    tg_writer *w = NULL;
    tg_status status = tg_talk_write(t, s, &text) ? TG_OK : TG_E_MEMORY;
    if (status != TG_OK) {
        tg_app_buffer_free(&text);
        return "there is not enough memory";
    }
    status = tg_writer_new(ctx, path, &tg_output_talk, &w);
    if (status == TG_OK) {
        tg_writer_write(w, text.bytes, text.n); /* an error stays with the writer */
        status = tg_writer_commit(w);
    }
    tg_app_buffer_free(&text);
    return status == TG_OK ? NULL : tg_context_error(ctx);
}

const char *tg_talk_load(tg_talk *t, tg_talk_settings *s, const char *path) {
    tg_app_buffer text = { 0 };
    int code;
    const char *fault = tg_app_read_text(path, FILE_LIMIT, &text, &code);
    if (!fault) fault = tg_talk_read(t, s, text.bytes, text.n);
    tg_app_buffer_free(&text);
    return fault;
}

void tg_talk_template_names(void) {
    fputs("--template takes a file, or one of", stderr);
    for (size_t i = 0; tg_chat_template_at(i); i++) fprintf(stderr, " %s", tg_chat_template_at(i));
    fputs("\n", stderr);
}

/* A name that is built in goes before a file of that name. 1 MiB is far more than any template has;
 * that the text has a brace is asked here, since the library would take a text without one for a
 * name. */
int tg_talk_template(tg_app *app, const char *wanted, const char **name, char **text) {
    enum { LIMIT = 1 << 20 };
    size_t n;
    *name = wanted;
    for (size_t i = 0; wanted && tg_chat_template_at(i); i++)
        if (strcmp(tg_chat_template_at(i), wanted) == 0) return TG_ARGS_GO_ON;
    if (!wanted) return TG_ARGS_GO_ON;
    const int code = tg_app_read_file(app, wanted, LIMIT, text, &n);
    *name = *text;
    if (code != TG_ARGS_GO_ON) {
        tg_talk_template_names();
    } else if (!strchr(*text, '{')) {
        tg_app_error(app, "%s: want a chat template, have a text without a {", wanted);
        return TG_EXIT_USAGE;
    }
    return code;
}

/* Does a template write a date, by the names that the library looks for in its text, or by those of
 * built-in ones; and *todays: has it none of its own? True where there is no template, which is
 * another fault. */
static bool asks_date(const char *name, const tg_tokenizer *tok, bool *todays) {
    const char *text = name ? name : tg_tokenizer_template(tok);
    *todays = text && (strstr(text, "strftime_now") || strcmp(text, "llama3.2") == 0);
    return !text || *todays || strstr(text, "date_string") || strcmp(text, "llama3.1") == 0;
}

int tg_talk_date(tg_app *app, const char *date, const char *name, const tg_tokenizer *tok,
                 bool quiet) {
    bool todays = false;
    const bool asked = !tok || asks_date(name, tok, &todays);
    if (date && asked) {
        const tg_status s = tg_context_date(app->ctx, date);
        if (s == TG_OK) return TG_ARGS_GO_ON;
        tg_app_failed(app, app->ctx, s, TG_READING);
        return TG_EXIT_USAGE;
    }
    if (date)
        return tg_args_refuse(&app->args,
                              "--date %s: want a template that writes a date, have one that writes "
                              "none",
                              date);
    char today[16];
    const time_t now = time(NULL);
    struct tm t;
    if (!todays || !localtime_r(&now, &t) || strftime(today, sizeof today, "%Y-%m-%d", &t) == 0)
        return TG_ARGS_GO_ON;
    if (!quiet)
        fprintf(stderr, "note: the template writes today's date; --date %s keeps it\n", today);
    const tg_status s = tg_context_date(app->ctx, today);
    return s == TG_OK ? TG_ARGS_GO_ON : tg_app_failed(app, app->ctx, s, TG_WORKING);
}
