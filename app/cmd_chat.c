/*
 * cmd_chat.c - tinygpt chat: a conversation with a model that was tuned for it.
 *
 * A line is a turn; one that ends with a backslash goes on, and between two lines of """ everything
 * is one turn. Lines that begin with a slash are commands. Ctrl-C ends the answer, and at the
 * prompt, twice, the program.
 *
 * The conversation is encoded as a whole for each answer, and what the cache already holds of it is
 * kept: the longest beginning that both have in common.
 */
#define _POSIX_C_SOURCE 200809L /* isatty */
#include "app.h"
#include "format.h"
#include "sampling.h"
#include "signals.h"
#include "talk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REFUSE, SLIDE, STOP };
/* A slice of a long prompt, after which Ctrl-C is heard. */
#define SLICE_MS 50.0

typedef struct values {
    const char *system, *template_name;
    int64_t tokens, ctx;
    tg_sampling sampling;
    uint64_t seed;
    int full;
    bool no_thinking;
} values;

static const tg_option options[] = {
    TG_TEXT("--system", values, system, "TEXT", "what the model is told before everything else",
            .hide_default = true),
    TG_TEXT("--template", values, template_name, "NAME",
            "how turns are written (default: the file's own)", .hide_default = true),
    TG_FLAG("--no-thinking", values, no_thinking, "answer at once, where the template can say so"),
    TG_INT("--tokens", values, tokens, 1, 1000000, "N", "an answer has at most so many"),
    TG_INT("--ctx", values, ctx, 1, 1048576, "T", "tokens it may look back (default: the model's)",
           .hide_default = true),
    TG_CHOICE("--full", values, full, "refuse|slide|stop",
              "when the context is full: refuse the turn, forget the oldest, or end"),
    TG_SAMPLING_OPTIONS(values),
    TG_SEED("--seed", values, seed, "S", "same seed and turns, same answers"),
};

static const tg_command_spec spec = {
    .name = "chat",
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
    "/save FILE     write the conversation to a file; /load FILE reads it\n"
    "/help          this\n"
    "/quit          leave (or Ctrl-D)\n"
    "A line that ends with \\ goes on in the next one; between two lines of \"\"\" all is one turn.\n"
    "Ctrl-C ends an answer.\n";

/* fed [n_fed]: the tokens in the session's cache. */
typedef struct chat {
    tg_app *app;
    const values *v;
    const char *template_name; /* NULL: the file's */
    tg_model *model;
    tg_session *session;
    const tg_tokenizer *tok;
    tg_talk talk;
    int32_t *fed, *ids; /* [capacity] each */
    size_t n_fed, n_ids;
    int32_t ends[TG_ENDS_MAX];
    size_t n_ends;
    tg_app_buffer answer;
    size_t shown; /* bytes of the answer that went out */
    uint64_t seed, answers;
} chat;

static void say(const chat *c, const char *text) {
    fprintf(stderr, "%s%s%s\n", tg_term_style(&c->app->err, TG_DIM), text,
            tg_term_style(&c->app->err, TG_PLAIN));
}

/* ---------------------------------------------------------------------------------- answering */

/* Whole characters of the answer go out; one that can never become whole as it is. At the end
 * everything does. */
static void show(chat *c, bool all) {
    const char *text = c->answer.bytes;
    size_t end = c->shown;
    while (end < c->answer.n) {
        const size_t length = tg_fmt_utf8_length(text + end, c->answer.n - end);
        if (length == 0 && !all && c->answer.n - end < 4) break;
        end += length ? length : 1;
    }
    if (end > c->shown && !c->app->globals.json) {
        tg_term_text(&c->app->out, text + c->shown, end - c->shown);
        fflush(stdout);
    }
    c->shown = end;
}

/* Encodes the conversation, and makes room for it as --full says. Returns TG_E_FULL if it does not
 * fit. One place in the window is left for an answer. */
static tg_status encode(chat *c) {
    const size_t room = tg_session_capacity(c->session) - 1;
    for (;;) {
        const tg_status s =
            tg_tokenizer_chat(c->tok, c->template_name, c->talk.turns, c->talk.n,
                              c->v->no_thinking ? TG_NO_THINKING : 0, c->ids, room, &c->n_ids);
        if (s != TG_E_FULL || c->v->full != SLIDE || !tg_talk_drop_oldest(&c->talk)) return s;
        say(c, "(the context is full: the oldest turn is forgotten)");
    }
}

/* Brings the cache to the ids: what both begin with stays, but for the last token, whose logits are
 * wanted. TG_STOPPED: Ctrl-C. */
static tg_status feed(chat *c) {
    size_t same = 0;
    while (same < c->n_fed && same + 1 < c->n_ids && c->fed[same] == c->ids[same]) same++;
    tg_status s = tg_session_rewind(c->session, same);
    if (s != TG_OK) return s;
    c->n_fed = same;
    tg_job *job;
    s = tg_session_eval_job(c->session, c->ids + same, c->n_ids - same, &job);
    while (s == TG_OK && (s = tg_job_poll(job, SLICE_MS)) == TG_PENDING) {
        s = tg_signals_caught() ? TG_STOPPED : TG_OK;
    }
    tg_job_free(job);
    if (s != TG_OK) return s;
    memcpy(c->fed, c->ids, c->n_ids * sizeof *c->fed);
    c->n_fed = c->n_ids;
    return TG_OK;
}

static bool is_end(const chat *c, int32_t id) {
    for (size_t i = 0; i < c->n_ends; i++) {
        if (c->ends[i] == id) return true;
    }
    return false;
}

/* Draws until the answer ends, is long enough, the context is full, or Ctrl-C. */
static tg_status write_answer(chat *c, size_t *n) {
    const values *v = c->v;
    tg_sample_options o = tg_sampling_options(&v->sampling, c->seed + c->answers++);
    for (*n = 0; *n < (size_t)v->tokens && !tg_signals_caught();) {
        int32_t id;
        tg_status s = tg_session_sample(c->session, &o, *n, &id);
        if (s != TG_OK) return s;
        if (is_end(c, id)) return TG_OK;
        ++*n;
        size_t n_bytes = 0;
        const char *bytes = tg_tokenizer_bytes(c->tok, id, &n_bytes);
        if (tg_app_buffer_add(&c->answer, bytes, n_bytes) != 0) return TG_E_MEMORY;
        show(c, false);
        if (c->n_fed == tg_session_capacity(c->session)) {
            say(c, "\n(the context is full: the answer ends here)");
            return TG_OK;
        }
        s = tg_session_eval(c->session, &id, 1, NULL);
        if (s != TG_OK) return s;
        c->fed[c->n_fed++] = id;
    }
    return TG_OK;
}

static void tell(const chat *c, size_t n, double prompt_ms, double ms) {
    const double speed = ms > 0 ? (double)n / ms * 1000 : 0;
    if (c->app->globals.json) {
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        tg_jout_text_n(&j, "text", c->answer.bytes ? c->answer.bytes : "", c->answer.n);
        tg_jout_uint(&j, "tokens", n);
        tg_jout_uint(&j, "prompt_tokens", c->n_ids);
        tg_jout_rounded(&j, "prompt_ms", prompt_ms, 3);
        tg_jout_rounded(&j, "tok_per_s", speed, 1);
        tg_jout_uint(&j, "context", c->n_fed);
        tg_jout_uint(&j, "context_max", tg_session_capacity(c->session));
        tg_jout_close(&j);
        tg_jout_line(&j);
        return;
    }
    putchar('\n');
    fflush(stdout);
    if (!c->app->out.tty) return;
    fprintf(stderr, "%s(%zu tokens, %s a second; context %zu of %zu)%s\n",
            tg_term_style(&c->app->err, TG_DIM), n, TG_SHORT(speed), c->n_fed,
            tg_session_capacity(c->session), tg_term_style(&c->app->err, TG_PLAIN));
}

/* Answers the last turn. A turn that cannot be answered is taken back; an answer that was stopped
 * stays as far as it came. Returns TG_ARGS_GO_ON or an exit code. */
static int answer(chat *c) {
    tg_signals_forget();
    c->answer.n = c->shown = 0;
    const double start = tg_app_now_ms();
    tg_status s = encode(c);
    if (s == TG_OK) s = feed(c);
    if (s == TG_E_FULL) {
        tg_talk_drop_last(&c->talk);
        say(c, "(the context is full: /reset, or a shorter turn)");
        return c->v->full == STOP ? TG_EXIT_FAILED : TG_ARGS_GO_ON;
    }
    if (s == TG_STOPPED) {
        tg_talk_drop_last(&c->talk);
        say(c, "(stopped: the turn is taken back)");
        return TG_ARGS_GO_ON;
    }
    size_t n = 0;
    const double begun = tg_app_now_ms();
    if (s == TG_OK) s = write_answer(c, &n);
    if (s != TG_OK) return tg_app_failed(c->app, c->app->ctx, s, TG_WORKING);
    show(c, true);
    tell(c, n, begun - start, tg_app_now_ms() - begun);
    if (tg_talk_add(&c->talk, TG_ASSISTANT, c->answer.bytes ? c->answer.bytes : "", c->answer.n)) {
        return TG_ARGS_GO_ON;
    }
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
        if (tg_args_uint64(rest, &c->seed)) {
            c->answers = 0;
            told(c, "seed", rest, NULL);
        } else {
            say(c, "(want /seed and a whole number)");
        }
    } else if (strcmp(line, "/save") == 0 && *rest) {
        told(c, "save to", rest, tg_talk_save(&c->talk, rest));
    } else if (strcmp(line, "/load") == 0 && *rest) {
        told(c, "load from", rest, tg_talk_load(&c->talk, rest));
    } else {
        say(c, "(unknown: /help lists the commands)");
    }
    return TG_ARGS_GO_ON;
}

/* ---------------------------------------------------------------------------------- the prompt */

typedef enum reading { GOT_LINE, GOT_END, GOT_INTERRUPT } reading;

/* One line, without its end, behind what is in the buffer already. */
static reading read_line(tg_app_buffer *b) {
    char block[4096];
    for (;;) {
        errno = 0;
        if (!fgets(block, sizeof block, stdin)) {
            const bool interrupted = ferror(stdin) && errno == EINTR;
            clearerr(stdin);
            return interrupted ? GOT_INTERRUPT : b->n > 0 ? GOT_LINE : GOT_END;
        }
        size_t n = strlen(block);
        const bool whole = n > 0 && block[n - 1] == '\n';
        if (whole) n--;
        if (whole && n > 0 && block[n - 1] == '\r') n--;
        if (tg_app_buffer_add(b, block, n) != 0) return GOT_END;
        if (whole) return GOT_LINE;
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
        if (quoted && from > 0 && tg_app_buffer_add(turn, "\n", 1) != 0) return GOT_END;
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
    return tg_app_buffer_add(turn, "", 1) == 0 ? GOT_LINE : GOT_END; /* the zero of a C string */
}

/* Two interrupts in a row at the prompt leave; one alone is told how. */
static int talk(chat *c) {
    tg_app_buffer turn = { 0 };
    int code = TG_ARGS_GO_ON;
    for (bool warned = false; code == TG_ARGS_GO_ON;) {
        const reading r = read_turn(c, &turn);
        tg_signals_forget();
        if (r == GOT_END) break;
        if (r == GOT_INTERRUPT) {
            if (warned) code = TG_EXIT_INTERRUPTED;
            if (!warned) say(c, "\n(Ctrl-C once more, /quit or Ctrl-D to leave)");
            warned = true;
            continue;
        }
        warned = false;
        const size_t n = turn.n - 1;
        if (n == 0) continue;
        if (turn.bytes[0] == '/') {
            code = command(c, turn.bytes);
        } else if (tg_talk_add(&c->talk, TG_USER, turn.bytes, n)) {
            code = answer(c);
        } else {
            code = TG_EXIT_FAILED;
        }
    }
    if (isatty(STDIN_FILENO)) fputc('\n', stderr);
    tg_app_buffer_free(&turn);
    return code == TG_ARGS_GO_ON ? TG_EXIT_DONE : code;
}

/* The template is asked for before the first turn, so that its fault is told at once. */
static int open_chat(chat *c, const char *path) {
    tg_status s = tg_model_open(c->app->ctx, path, &c->model);
    if (s != TG_OK) return tg_app_failed(c->app, c->app->ctx, s, TG_READING);
    c->tok = tg_model_tokenizer(c->model);
    s = tg_tokenizer_ends(c->tok, c->template_name, c->ends, &c->n_ends);
    if (s != TG_OK) {
        const int code = tg_app_failed(c->app, c->app->ctx, s, TG_READING);
        fputs("templates:", stderr);
        for (size_t i = 0; tg_chat_template_at(i); i++) {
            fprintf(stderr, " %s", tg_chat_template_at(i));
        }
        fputs("\n", stderr);
        return code;
    }
    s = tg_session_new(c->app->ctx, c->model, (int32_t)c->v->ctx, &c->session);
    if (s != TG_OK) return tg_app_failed(c->app, c->app->ctx, s, TG_READING);
    const size_t capacity = tg_session_capacity(c->session);
    c->fed = malloc(capacity * sizeof *c->fed);
    c->ids = malloc(capacity * sizeof *c->ids);
    const bool room =
        c->fed && c->ids &&
        (!c->v->system || tg_talk_set_system(&c->talk, c->v->system, strlen(c->v->system)));
    if (room) return TG_ARGS_GO_ON;
    tg_app_error(c->app, "not enough memory for a context of %s tokens", TG_COUNT(capacity));
    return TG_EXIT_FAILED;
}

static void close_chat(chat *c) {
    tg_session_free(c->session);
    tg_model_free(c->model);
    tg_talk_free(&c->talk);
    tg_app_buffer_free(&c->answer);
    free(c->fed);
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
    chat c = { .app = &app, .v = &v, .template_name = v.template_name, .seed = v.seed };
    code = open_chat(&c, app.args.pos[0]);
    if (code == TG_ARGS_GO_ON) {
        tg_signals_interrupt();
        if (isatty(STDIN_FILENO)) say(&c, "(/help lists what can be typed)");
        code = talk(&c);
    }
    close_chat(&c);
    return tg_app_end(&app, code);
}
