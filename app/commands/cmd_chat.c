/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_chat.c - tinygpt chat: a conversation with a model that was tuned for it.
 *
 * A line is a turn; one that ends with a backslash goes on, and between two lines of """ everything
 * is one turn. Lines that begin with a slash are commands. Ctrl-C ends the answer, and at the
 * prompt, twice, the program; SIGTERM, SIGHUP and SIGQUIT end both. The file of --session is
 * written in every case.
 *
 * The conversation is encoded as a whole for each answer, and what the cache already holds of it is
 * kept: the longest beginning that both have in common. So a conversation that was loaded, taken
 * back in part or told another system's turn is answered as one that was typed.
 */
#define _POSIX_C_SOURCE 200809L /* isatty */
#include "app.h"
#include "print/format.h"
#include "sampling.h"
#include "signals.h"
#include "talk.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REFUSE, SLIDE, STOP };

typedef struct values {
    const char *system, *template_name, *session, *date;
    int64_t tokens, ctx;
    tg_sampling sampling;
    tg_logit_options logits;
    tg_draft_options draft;
    uint64_t seed;
    int full, kv;
    bool no_thinking, force;
} values;

static const tg_option options[] = {
    TG_TEXT("--system", values, system, "TEXT", "what the model is told before everything else",
            .hide_default = true),
    TG_TEXT("--template", values, template_name, "FILE|NAME",
            "how turns are written: a file in Jinja, or one that is built in (default: the model "
            "file's own)",
            .hide_default = true),
    TG_TEXT("--date", values, date, "YYYY-MM-DD",
            "the date that a template writes which says one (default: its own, or today's)",
            .hide_default = true),
    TG_FLAG("--no-thinking", values, no_thinking, "answer at once, where the template can say so"),
    TG_INT("--tokens", values, tokens, 1, 1000000, "N", "an answer has at most so many"),
    TG_INT("--ctx", values, ctx, 1, 1048576, "T",
           "tokens it may look back (default: the model's; of a third-party model at most 4096)",
           .hide_default = true),
    TG_CHOICE("--full", values, full, "refuse|slide|stop",
              "when the context is full: refuse the turn, forget the oldest, or end"),
    TG_CHOICE("--kv", values, kv, "f32|f16|int8",
              "what keys and values are kept in: less memory, a little less exact"),
    TG_PATH(
        "--session", values, session, "FILE",
        "go on from this file, if it is there, and keep the conversation in it at the end, with "
        "the model's state: nothing is read anew",
        .written = true),
    TG_FLAG("--force", values, force, "let /save and --session replace files of other kinds"),
    TG_SAMPLING_OPTIONS(values),
    TG_LOGIT_OPTIONS(values),
    TG_DRAFT_OPTIONS(values),
    TG_SEED("--seed", values, seed, "S", "same seed and turns, same answers"),
};

static const tg_command_spec spec = {
    .name = "chat",
    .uses = TG_USES_ALL,
    .usage = "MODEL [options]",
    .about =
        "Talks with a model that was tuned for conversations. /help lists what can be typed. "
        "Without a terminal each line of standard input is a turn; --json prints one object an "
        "answer.",
    .pos = { "MODEL" },
    .pos_min = 1,
    .pos_max = 1,
    .examples = "  tinygpt chat SmolLM2-135M-Instruct.gguf\n"
                "  echo \"Why is the sky blue?\" | tinygpt chat model.gguf --temp 0\n",
};

static const char help[] =
    "/system TEXT   what the model is told first; alone: nothing\n"
    "/reset         forget the conversation\n"
    "/regen         answer the last turn anew\n"
    "/seed N        the seed of the answers from here\n"
    "/save FILE     write the conversation and its settings to a file; /load FILE reads it\n"
    "/save          the same with the state of the model, where --session has named a file\n"
    "/help          this\n"
    "/quit          leave (or Ctrl-D)\n"
    "A line that ends with \\ goes on in the next one; between two lines of \"\"\" all is one turn.\n"
    "Ctrl-C ends an answer.\n";

typedef struct chat {
    tg_app *app;
    values *v;
    const char *template_name; /* or its text; NULL: the file's */
    char *template_text;       /* of --template FILE */
    tg_model *model;
    tg_session *session;
    tg_draft draft;
    const tg_tokenizer *tok;
    tg_talk talk;
    tg_lock *lock; /* of --session */
    int32_t *ids;  /* [capacity] of the conversation */
    size_t n_ids;
    int32_t ends[TG_ENDS_MAX];
    size_t n_ends;
    tg_app_buffer parts[3]; /* of the answer, by tg_answer_part */
    tg_answer_part shown;   /* of what was shown last */
    bool slid;              /* in the middle of this answer */
    bool no_memory;         /* for all of this answer */
    bool unsaved;           /* a /save failed: the program's end is no success */
    bool refused;           /* a turn of a pipe's, which has no answer */
    tg_talk_settings now;
} chat;

static void say(const chat *c, const char *text) {
    fprintf(stderr, "%s%s%s\n", tg_term_style(&c->app->err, TG_DIM), text,
            tg_term_style(&c->app->err, TG_PLAIN));
}

/* ---------------------------------------------------------------------------------- answering */

/* What a terminal shows of thinking and of tool calls stands dim above the answer, each part on
 * lines of its own; a pipe gets the answer alone. */
static void show_part(chat *c, tg_answer_part part, const char *text, size_t n) {
    if (c->app->globals.json || (part != TG_ANSWER_TEXT && !isatty(STDOUT_FILENO))) return;
    if (part != c->shown && c->parts[c->shown].n > 0)
        printf("%s\n", tg_term_style(&c->app->out, TG_PLAIN));
    if (part != c->shown && part != TG_ANSWER_TEXT)
        fputs(tg_term_style(&c->app->out, TG_DIM), stdout);
    c->shown = part;
    tg_term_text(&c->app->out, text, n);
    fflush(stdout);
}

/* Whole characters, to be seen at once. */
static int show(void *user, const tg_token *token) {
    chat *c = user;
    if (token->n_bytes == 0) return 0;
    show_part(c, token->part, token->text, token->n_bytes);
    c->no_memory = tg_app_buffer_add(&c->parts[token->part], token->text, token->n_bytes) != 0;
    return c->no_memory;
}

/* How to have room for so many tokens and an answer: the option, or that there is none. A window
 * does not grow by itself: its cache is memory that the user may not have. */
static const char *more_room(const chat *c, size_t n_tokens, char out[80]) {
    tg_model_info info = { 0 };
    size_t room = tg_session_capacity(c->session);
    tg_model_get_info(c->model, &info);
    const size_t most = (size_t)info.config.ctx;
    if (room >= most) {
        snprintf(out, 80, "the model sees no more than %zu tokens", most);
        return out;
    }
    do {
        room *= 2;
    } while (room <= n_tokens && room < most);
    snprintf(out, 80, "--ctx %zu makes more room", room < most ? room : most);
    return out;
}

/* Encodes the conversation, and makes room for it as --full says. Returns TG_E_FULL if it does not
 * fit. One place in the window is left for an answer. */
static tg_status encode(chat *c) {
    const size_t room = tg_session_capacity(c->session) - 1;
    for (;;) {
        const tg_status s =
            tg_tokenizer_chat(c->app->ctx, c->tok, c->template_name, c->talk.turns, c->talk.n,
                              c->v->no_thinking ? TG_NO_THINKING : 0, c->ids, room, &c->n_ids);
        if (s != TG_E_FULL || c->v->full != SLIDE || !tg_talk_drop_oldest(&c->talk)) return s;
        char more[80], line[160];
        snprintf(line, sizeof line, "(the context is full, %s: the oldest turn is forgotten)",
                 more_room(c, c->n_ids, more));
        say(c, line);
    }
}

/* In the middle of an answer, whose n_made tokens are to stay: the oldest turns are forgotten. */
static size_t make_room(void *user, size_t n_made, const int32_t **ids) {
    chat *c = user;
    const size_t capacity = tg_session_capacity(c->session);
    do {
        if (c->v->full != SLIDE || !tg_talk_drop_oldest(&c->talk) || encode(c) != TG_OK) return 0;
        c->slid = true;
    } while (c->n_ids + n_made >= capacity);
    *ids = c->ids;
    return c->n_ids;
}

/* Until the answer ends, is long enough, the context is full, or Ctrl-C. */
static tg_status write_answer(chat *c, tg_generate_stats *stats) {
    const tg_talk_settings *now = &c->now;
    tg_generation what = tg_generation_default();
    what.ids = c->ids;
    what.n_ids = c->n_ids;
    what.ends = c->ends;
    what.n_ends = c->n_ends;
    const tg_sample_options sample = tg_sampling_options(&now->sampling, now->seed + now->answers);
    what.sample = &sample;
    what.n_tokens = (size_t)c->v->tokens;
    what.make_room = make_room;
    what.token = show;
    what.parts = true;
    what.chat_template = c->template_name;
    what.cancel = tg_signals_cancel;
    what.user = c;
    tg_draft_set(&c->v->draft, &c->draft, &what);
    const tg_status s = tg_session_continue(c->session, &what, stats);
    if (stats->new_tokens > 0) c->now.answers++;
    return s;
}

static void put_part(tg_jout *j, const char *key, const tg_app_buffer *part) {
    tg_jout_text_n(j, key, part->bytes ? part->bytes : "", part->n);
}

static void tell(const chat *c, const tg_generate_stats *stats) {
    const size_t used = tg_session_tokens(c->session);
    if (c->app->globals.json) {
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        put_part(&j, "text", &c->parts[TG_ANSWER_TEXT]);
        if (c->parts[TG_ANSWER_THINKING].n > 0)
            put_part(&j, "thinking", &c->parts[TG_ANSWER_THINKING]);
        if (c->parts[TG_ANSWER_TOOL_CALL].n > 0)
            put_part(&j, "tool_calls", &c->parts[TG_ANSWER_TOOL_CALL]);
        tg_jout_uint(&j, "tokens", stats->new_tokens);
        tg_jout_text(&j, "end", tg_sampling_end(stats->end));
        tg_jout_uint(&j, "prompt_tokens", stats->prompt_tokens);
        tg_jout_uint(&j, "kept_tokens", stats->prompt_kept);
        tg_jout_uint(&j, "slid_tokens", stats->slid_tokens);
        tg_jout_uint(&j, "drafted", stats->drafted);
        tg_jout_uint(&j, "accepted", stats->accepted);
        tg_jout_rounded(&j, "prompt_ms", stats->prompt_ms, 3);
        tg_jout_rounded(&j, "tok_per_s", stats->tok_per_s, 1);
        tg_jout_uint(&j, "context", used);
        tg_jout_uint(&j, "context_max", tg_session_capacity(c->session));
        tg_jout_close(&j);
        tg_jout_line(&j);
        return;
    }
    printf("%s\n", c->shown == TG_ANSWER_TEXT ? "" : tg_term_style(&c->app->out, TG_PLAIN));
    fflush(stdout);
    if (!isatty(STDOUT_FILENO)) return;
    fprintf(stderr, "%s(%zu token%s, %s a second; context %zu of %zu, %zu of %zu kept)%s\n",
            tg_term_style(&c->app->err, TG_DIM), stats->new_tokens,
            stats->new_tokens == 1 ? "" : "s", TG_SHORT(stats->tok_per_s), used,
            tg_session_capacity(c->session), stats->prompt_kept, stats->prompt_tokens,
            tg_term_style(&c->app->err, TG_PLAIN));
}

/* Answers the last turn. A turn that cannot be answered is taken back; an answer that was stopped
 * stays as far as it came. Returns TG_ARGS_GO_ON or an exit code. */
static int answer(chat *c) {
    tg_signals_forget();
    tg_generate_stats stats = { 0 };
    for (size_t i = 0; i < 3; i++) c->parts[i].n = 0;
    c->shown = TG_ANSWER_TEXT;
    c->slid = c->no_memory = false;
    tg_status s = encode(c);
    if (s == TG_OK) s = write_answer(c, &stats);
    if (s == TG_E_FULL) {
        tg_talk_drop_last(&c->talk);
        char why[160], more[80];
        snprintf(why, sizeof why,
                 "the turn does not fit: want room for %zu tokens and an answer, have %zu",
                 c->n_ids, tg_session_capacity(c->session));
        if (isatty(STDIN_FILENO) && c->v->full != STOP) {
            snprintf(why, sizeof why, "(the context is full, %s: or /reset, or a shorter turn)",
                     more_room(c, c->n_ids, more));
            say(c, why);
            return TG_ARGS_GO_ON;
        }
        tg_app_error(c->app, "%s: %s; --full slide forgets the oldest turns", why,
                     more_room(c, c->n_ids, more));
        c->refused = true;
        return c->v->full == STOP ? TG_EXIT_FAILED : TG_ARGS_GO_ON;
    }
    if (c->no_memory) {
        tg_talk_drop_last(&c->talk);
        return tg_app_failed(c->app, NULL, TG_E_MEMORY, TG_WORKING);
    }
    if (s == TG_STOPPED && stats.new_tokens == 0) {
        tg_talk_drop_last(&c->talk);
        say(c, "(stopped: the turn is taken back)");
        return TG_ARGS_GO_ON;
    }
    if (s != TG_OK && s != TG_STOPPED) return tg_app_failed(c->app, c->app->ctx, s, TG_WORKING);
    if (stats.end == TG_END_FULL) say(c, "\n(the context is full: the answer ends here)");
    tell(c, &stats);
    if (c->slid) {
        char more[80], line[160];
        snprintf(line, sizeof line, "(the context was full, %s: the oldest turn is forgotten)",
                 more_room(c, c->n_ids, more));
        say(c, line);
    }
    const tg_app_buffer *said = &c->parts[TG_ANSWER_TEXT]; /* thinking is for this turn alone */
    if (tg_talk_add(&c->talk, TG_ASSISTANT, said->bytes ? said->bytes : "", said->n))
        return TG_ARGS_GO_ON;
    tg_app_error(c->app, "not enough memory for the conversation");
    return TG_EXIT_FAILED;
}

/* ----------------------------------------------------------------------------------- commands */

static int regenerate(chat *c) {
    if (c->talk.n > 0 && c->talk.turns[c->talk.n - 1].role == TG_ASSISTANT) {
        tg_talk_drop_last(&c->talk);
    }
    if (c->talk.n > 0 && c->talk.turns[c->talk.n - 1].role == TG_USER) return answer(c);
    say(c, "(there is no turn to answer)");
    return TG_ARGS_GO_ON;
}

static void told(const chat *c, const char *what, const char *name, const char *fault) {
    char line[512];
    snprintf(line, sizeof line, fault ? "(%s %s: %s)" : "(%s %s)", what, name, fault);
    say(c, line);
}

/* --------------------------------------------------------------------------------- its file */

/* A cache whose window was left behind is not kept: it would have to be read anew anyway. NULL, or
 * what went wrong. */
static const char *save_session(chat *c) {
    tg_app_buffer note = { 0 };
    const char *fault = "there is not enough memory";
    if (tg_talk_write(&c->talk, &c->now, &note)) {
        if (tg_session_held(c->session) < tg_session_tokens(c->session))
            tg_session_rewind(c->session, 0);
        const tg_status s = tg_session_save(c->session, c->v->session, note.bytes, note.n);
        fault = s == TG_OK ? NULL : tg_context_error(c->app->ctx);
    }
    tg_app_buffer_free(&note);
    return fault;
}

static const char *load_session(chat *c) {
    tg_app_buffer note = { 0 };
    const tg_status s = tg_session_load(c->session, c->v->session, tg_app_buffer_add, &note);
    const char *fault = s == TG_OK        ? tg_talk_read(&c->talk, &c->now, note.bytes, note.n)
                        : s == TG_STOPPED ? "there is not enough memory" /* for the note */
                                          : tg_context_error(c->app->ctx);
    tg_app_buffer_free(&note);
    return fault;
}

/* /save and /load: with a name the conversation alone, without one that of --session. */
static void to_or_from_file(chat *c, bool save, const char *path) {
    const char *name = *path ? path : c->v->session, *fault;
    if (!name) {
        say(c, save ? "(want /save FILE)" : "(want /load FILE)");
        return;
    }
    if (*path) {
        fault = save ? tg_talk_save(c->app->ctx, &c->talk, &c->now, path)
                     : tg_talk_load(&c->talk, &c->now, path);
    } else {
        fault = save ? save_session(c) : load_session(c);
    }
    if (save) c->unsaved = fault != NULL;
    told(c, save ? "save to" : "load from", name, fault);
}

/* A line that begins with a slash. */
static int command(chat *c, char *line) {
    char *rest = line + strcspn(line, " ");
    if (*rest) *rest++ = '\0';
    if (strcmp(line, "/help") == 0) {
        fputs(help, stderr);
    } else if (strcmp(line, "/quit") == 0) {
        return TG_EXIT_DONE;
    } else if (strcmp(line, "/reset") == 0) {
        tg_talk_reset(&c->talk);
        say(c, "(forgotten)");
    } else if (strcmp(line, "/regen") == 0) {
        return regenerate(c);
    } else if (strcmp(line, "/system") == 0) {
        if (!tg_talk_set_system(&c->talk, rest, strlen(rest))) return TG_EXIT_FAILED;
        say(c, *rest ? "(the system's turn is set)" : "(there is no system's turn)");
    } else if (strcmp(line, "/seed") == 0) {
        if (tg_args_uint64(rest, &c->now.seed)) {
            c->now.answers = 0;
            told(c, "seed", rest, NULL);
        } else {
            say(c, "(want /seed and a whole number)");
        }
    } else if (strcmp(line, "/save") == 0 || strcmp(line, "/load") == 0) {
        to_or_from_file(c, line[1] == 's', rest);
    } else {
        say(c, "(unknown: /help lists the commands)");
    }
    return TG_ARGS_GO_ON;
}

/* ---------------------------------------------------------------------------------- the prompt */

typedef enum reading { GOT_LINE, GOT_END, GOT_INTERRUPT, GOT_NO_MEMORY } reading;

/* One line, without its end, behind what is in the buffer already. Byte by byte, as it may hold
 * zeros, and what waits behind it is the next one's. */
static reading read_line(tg_app_buffer *b) {
    const size_t before = b->n;
    for (;;) {
        if (tg_signals_await_input(STDIN_FILENO)) return GOT_INTERRUPT;
        const int c = fgetc(stdin);
        if (c == EOF) {
            clearerr(stdin);
            return b->n > 0 ? GOT_LINE : GOT_END;
        }
        if (c == '\n') {
            if (b->n > before && b->bytes[b->n - 1] == '\r') b->n--;
            return GOT_LINE;
        }
        const char byte = (char)c;
        if (tg_app_buffer_add(b, &byte, 1) != 0) return GOT_NO_MEMORY;
    }
}

static void prompt(const chat *c, const char *sign) {
    if (!isatty(STDIN_FILENO)) return;
    fprintf(stderr, "%s%s%s", tg_term_style(&c->app->err, TG_BOLD), sign,
            tg_term_style(&c->app->err, TG_PLAIN));
    fflush(stderr);
}

/* A whole turn: a line, the lines up to one without a backslash, or those between the quotes. */
static reading read_turn(const chat *c, tg_app_buffer *turn) {
    static const char quotes[] = "\"\"\"";
    turn->n = 0;
    prompt(c, "> ");
    reading r = read_line(turn);
    if (r != GOT_LINE) return r;
    const bool quoted = turn->n == 3 && memcmp(turn->bytes, quotes, 3) == 0;
    if (quoted) turn->n = 0;
    for (size_t from = 0; quoted || (turn->n > 0 && turn->bytes[turn->n - 1] == '\\');) {
        if (!quoted) turn->bytes[turn->n - 1] = '\n';
        if (quoted && from > 0 && tg_app_buffer_add(turn, "\n", 1) != 0) return GOT_NO_MEMORY;
        from = turn->n;
        prompt(c, "... ");
        r = read_line(turn);
        if (r != GOT_LINE) return r;
        if (quoted && turn->n - from == 3 && memcmp(turn->bytes + from, quotes, 3) == 0) {
            turn->n = from > 0 ? from - 1 : 0;
            break;
        }
        if (quoted && from == 0) from = 1; /* an empty first line is a line, too */
    }
    /* The zero of a C string. */
    return tg_app_buffer_add(turn, "", 1) == 0 ? GOT_LINE : GOT_NO_MEMORY;
}

/* Two interrupts in a row at the prompt leave; one alone is told how. The other signals leave at
 * once, also out of an answer, which stays as far as it came. */
static int talk(chat *c) {
    tg_app_buffer turn = { 0 };
    int code = TG_ARGS_GO_ON;
    for (bool warned = false; code == TG_ARGS_GO_ON;) {
        tg_signals_forget(); /* what ended an answer is not the first of two at the prompt */
        if (tg_signals_final()) {
            code = TG_EXIT_INTERRUPTED;
            break;
        }
        const reading r = read_turn(c, &turn);
        tg_signals_forget();
        if (r == GOT_END) break;
        if (r == GOT_NO_MEMORY) {
            code = tg_app_failed(c->app, NULL, TG_E_MEMORY, TG_WORKING);
            break;
        }
        if (r == GOT_INTERRUPT) {
            if (tg_signals_final()) continue;
            if (warned) code = TG_EXIT_INTERRUPTED;
            if (!warned) say(c, "\n(Ctrl-C once more, /quit or Ctrl-D to leave)");
            warned = true;
            continue;
        }
        warned = false;
        const size_t n = turn.n - 1;
        if (n == 0) continue;
        if (turn.bytes[0] == '/' && memchr(turn.bytes, '\0', n)) {
            say(c, "(a command has a zero byte in it, and is left out)");
        } else if (turn.bytes[0] == '/') {
            code = command(c, turn.bytes);
        } else if (tg_talk_add(&c->talk, TG_USER, turn.bytes, n)) {
            code = answer(c);
        } else {
            code = tg_app_failed(c->app, NULL, TG_E_MEMORY, TG_WORKING);
        }
    }
    if (isatty(STDIN_FILENO)) fputc('\n', stderr);
    tg_app_buffer_free(&turn);
    if (code == TG_ARGS_GO_ON) code = c->refused ? TG_EXIT_FAILED : TG_EXIT_DONE;
    return code;
}

/* The template is asked for before the first turn, so that its fault is told at once. */
static int open_chat(chat *c, const char *path) {
    int code = tg_talk_template(c->app, c->v->template_name, &c->template_name, &c->template_text);
    if (code == TG_ARGS_GO_ON)
        code = tg_talk_date(c->app, c->v->date, c->template_name, NULL, false);
    if (code != TG_ARGS_GO_ON) return code;
    tg_status s = tg_model_open(c->app->ctx, path, &c->model);
    if (s != TG_OK) return tg_app_failed(c->app, c->app->ctx, s, TG_READING);
    c->tok = tg_model_tokenizer(c->model);
    code = tg_talk_date(c->app, c->v->date, c->template_name, c->tok, false);
    if (code != TG_ARGS_GO_ON) return code;
    s = tg_tokenizer_ends(c->app->ctx, c->tok, c->template_name, c->ends, &c->n_ends);
    if (s != TG_OK) {
        code = tg_app_failed(c->app, c->app->ctx, s, TG_READING);
        if (!c->template_name) tg_talk_template_names();
        return code;
    }
    s = tg_session_new_kv(c->app->ctx, c->model, (int32_t)c->v->ctx, (tg_kv_type)c->v->kv,
                          &c->session);
    if (s != TG_OK) return tg_app_failed(c->app, c->app->ctx, s, TG_READING);
    code = tg_logit_options_set(c->app, &c->v->logits, c->session);
    if (code == TG_ARGS_GO_ON) code = tg_draft_open(c->app, &c->v->draft, c->session, &c->draft);
    if (code != TG_ARGS_GO_ON) return code;
    const size_t capacity = tg_session_capacity(c->session);
    c->ids = malloc(capacity * sizeof *c->ids);
    if (c->ids) return TG_ARGS_GO_ON;
    tg_app_error(c->app, "not enough memory for a context of %s tokens", TG_COUNT(capacity));
    return TG_EXIT_FAILED;
}

/* What was kept in the file of --session, and over it what the command line asks for. */
static int begin(chat *c) {
    const values *v = c->v;
    if (v->session) {
        const tg_status s = tg_lock_new(c->app->ctx, v->session, &c->lock);
        if (s != TG_OK) return tg_app_failed(c->app, c->app->ctx, s, TG_READING);
    }
    if (v->session && access(v->session, F_OK) == 0) {
        const char *fault = load_session(c);
        if (fault) {
            tg_app_error(c->app, "--session: %s", fault);
            return tg_context_machine_failed(c->app->ctx) ? TG_EXIT_FAILED : TG_EXIT_USAGE;
        }
        tg_sampling_keep(&c->now.sampling, &v->sampling, &c->app->args);
        if (tg_args_given(&c->app->args, "--seed")) {
            c->now.seed = v->seed;
            c->now.answers = 0;
        }
    }
    /* Found out now, and not at the end of the conversation. */
    if (v->session) {
        const tg_output_rule session = { .kind = TG_OUTPUT_SESSION };
        const tg_status s = tg_output_check(c->app->ctx, v->session, &session);
        if (s != TG_OK) return tg_app_failed(c->app, c->app->ctx, s, TG_READING);
    }
    if (!v->system || tg_talk_set_system(&c->talk, v->system, strlen(v->system)))
        return TG_ARGS_GO_ON;
    tg_app_error(c->app, "not enough memory for the system's turn");
    return TG_EXIT_FAILED;
}

/* The file of --session, written when the conversation has ended, however it has. */
static int end(chat *c, int code) {
    const char *fault = c->v->session ? save_session(c) : NULL;
    if (c->unsaved && code == TG_EXIT_DONE) code = TG_EXIT_FAILED;
    if (!fault) return code;
    tg_app_error(c->app, "--session: %s", fault);
    return TG_EXIT_FAILED;
}

static void close_chat(chat *c) {
    free(c->template_text);
    tg_lock_free(c->lock);
    tg_draft_free(&c->draft);
    tg_session_free(c->session);
    tg_model_free(c->model);
    tg_talk_free(&c->talk);
    for (size_t i = 0; i < 3; i++) tg_app_buffer_free(&c->parts[i]);
    free(c->ids);
}

int tg_cmd_chat(int argc, char **argv) {
    values v = { .tokens = 1024,
                 .sampling = tg_sampling_default(),
                 .seed = tg_sample_options_default().seed };
    v.sampling.top_k = 40;
    v.sampling.top_p = 0.95;
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_start(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    chat c = { .app = &app, .v = &v, .now = { .seed = v.seed, .sampling = v.sampling } };
    tg_context_force(app.ctx, v.force);
    code = open_chat(&c, app.args.pos[0]);
    if (code == TG_ARGS_GO_ON) {
        tg_sampling_of_model(&app, c.model, &c.now.sampling);
        code = begin(&c);
    }
    if (code == TG_ARGS_GO_ON) {
        tg_signals_install_patient();
        setvbuf(stdin, NULL, _IONBF, 0); /* what waits is seen by who waits for it */
        if (isatty(STDIN_FILENO)) say(&c, "(/help lists what can be typed)");
        code = end(&c, talk(&c));
    }
    close_chat(&c);
    return tg_app_end(&app, code);
}
