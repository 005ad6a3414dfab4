/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat.c - the templates as a table, and the one way in which all of them are written.
 *
 *     bos  { open role close gap  text  end tail eos }*  open assistant close gap  think
 *          \______________ a turn ________________/      \___ the answer's beginning __/
 *
 * What is between special tokens is one text, though it comes from two hands: "user\n" and the
 * user's words are encoded together, as the reference does, or a line end at their seam would give
 * other tokens.
 */
#include "tok/chat.h"

#include "base/str.h"
#include "base/time.h"

enum { N_MARKS = 2, N_ENDS = 3 };
enum { EOS_ANSWERS = 1, EOS_TURNS = 2 };

struct tg_chat_template {
    const char *name;
    /* A text that is none that is known looks like this one if it has all of these. Rows are tried
     * in their order. */
    const char *looks[N_MARKS];
    const char *bos; /* "": the vocabulary's; else that goes first, and this, if it has none */
    const char *open, *close, *end; /* special tokens; NULL: none */
    const char *gap, *tail;         /* text behind close and end */
    const char *assistant;          /* the model's role; the others are "system" and "user" */
    const char *default_system;     /* if the conversation has none; NULL: no such turn */
    const char *system_head;        /* in front of the system's text; a date comes behind it */
    const char *date;               /* "": today's */
    const char *think, *no_think;   /* how the answer begins; "": with nothing */
    int eos;                        /* the vocabulary's end of a text, behind EOS_ANSWERS or
                                       EOS_TURNS; 0: none */
    bool trim;                      /* white space at the ends of every text goes */
    bool system_with_user;          /* the system's text opens the first turn of the user */
    bool no_system;                 /* a turn of the system is refused */
    bool alternate;                 /* user and model in turn, or it is refused */
    bool drop_thinking;             /* of the model's earlier turns */
    const char *ends[N_ENDS];       /* that an answer stops at */
};

#define CHATML_TURNS                                                                               \
    .open = "<|im_start|>", .end = "<|im_end|>", .gap = "\n", .assistant = "assistant",            \
    .ends = { "<|im_end|>", "<|endoftext|>" }
#define CHATML .tail = "\n", CHATML_TURNS
#define LLAMA3_TURNS                                                                               \
    .open = "<|start_header_id|>", .close = "<|end_header_id|>", .end = "<|eot_id|>",              \
    .gap = "\n\n", .tail = "", .assistant = "assistant", .trim = true,                             \
    .ends = { "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>" }
#define LLAMA3 .bos = "<|begin_of_text|>", LLAMA3_TURNS
#define LLAMA31                                                                                    \
    .default_system = "",                                                                          \
    .system_head = "Cutting Knowledge Date: December 2023\nToday Date: ", LLAMA3
#define GEMMA                                                                                      \
    .bos = "<bos>", .open = "<start_of_turn>", .end = "<end_of_turn>", .gap = "\n", .tail = "\n",  \
    .assistant = "model", .trim = true, .alternate = true, .ends = { "<end_of_turn>", "<eos>" }

static const tg_chat_template templates[] = {
    { .name = "smollm2",
      .looks = { "AI assistant named SmolLM, trained by Hugging Face" },
      .default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
      CHATML },
    { .name = "qwen3.5",
      .looks = { "enable_thinking", "render_content" },
      .trim = true,
      .drop_thinking = true,
      .think = "<think>\n",
      .no_think = "<think>\n\n</think>\n\n",
      CHATML },
    { .name = "qwen3",
      .looks = { "enable_thinking", "last_query_index" },
      .drop_thinking = true,
      .no_think = "<think>\n\n</think>\n\n",
      CHATML },
    { .name = "qwen3-thinking", /* that always thinks */
      .looks = { "'<|im_start|>assistant\\n<think>\\n'", "last_query_index" },
      .drop_thinking = true,
      .think = "<think>\n",
      CHATML },
    { .name = "qwen2.5",
      .looks = { "<|im_start|>", "You are Qwen, created by Alibaba Cloud." },
      .default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
      CHATML },
    { .name = "qwen2",
      .looks = { "<|im_start|>system\\nYou are a helpful assistant." },
      .default_system = "You are a helpful assistant.",
      CHATML },
    { .name = "llama3.1",
      .looks = { "<|start_header_id|>", "Cutting Knowledge Date: December 2023" },
      .date = "26 Jul 2024",
      LLAMA31 },
    { .name = "llama3.2", .looks = { "<|start_header_id|>", "strftime_now" }, .date = "", LLAMA31 },
    { .name = "llama3", .looks = { "<|start_header_id|>", "<|eot_id|>" }, LLAMA3 },
    { .name = "llama3-no-bos", .looks = { "<|start_header_id|>" }, LLAMA3_TURNS },
    { .name = "gemma2",
      .looks = { "<start_of_turn>", "System role not supported" },
      .no_system = true,
      GEMMA },
    { .name = "gemma", .looks = { "<start_of_turn>", "model" }, .system_with_user = true, GEMMA },
    { .name = "chatml-bos", .looks = { "<|im_start|>", "bos_token" }, .bos = "", CHATML },
    { .name = "chatml-eos", .looks = { "<|im_start|>", "eos_token" }, .eos = EOS_ANSWERS, CHATML },
    { .name = "chatml", .looks = { "<|im_start|>", "<|im_end|>" }, CHATML },
    { .name = "chatml-eos-turns", .looks = { "<|im_start|>" }, .eos = EOS_TURNS, CHATML },
    { .name = "chatml-no-line", .looks = { "<|im_start|>" }, .tail = "", CHATML_TURNS },
};
enum { N_TEMPLATES = sizeof templates / sizeof templates[0] };

const tg_chat_template *tg_chat_at(size_t i) { return i < N_TEMPLATES ? &templates[i] : NULL; }
const char *tg_chat_name(const tg_chat_template *t) { return t->name; }
bool tg_chat_thinks(const tg_chat_template *t) { return t->no_think != NULL; }

const tg_chat_template *tg_chat_named(const char *name) {
    for (size_t i = 0; i < N_TEMPLATES; i++) {
        if (strcmp(templates[i].name, name) == 0) return &templates[i];
    }
    return NULL;
}

/* Rows that differ in what the system says go by one key. */
const tg_chat_template *tg_chat_saying(const tg_chat_template *t, const tg_chat_found *found) {
    for (size_t i = 0; found->system_bytes > 0 && i < N_TEMPLATES; i++) {
        const char *says = templates[i].default_system;
        if (says && !templates[i].system_head && strlen(says) == found->system_bytes &&
            memcmp(says, found->system, found->system_bytes) == 0)
            return &templates[i];
    }
    return t;
}

/* The place of a needle in text that may hold zeros; NULL: nowhere. */
static const char *find(const char *text, size_t n, const char *needle) {
    const size_t length = strlen(needle);
    while (n >= length) {
        const char *at = memchr(text, needle[0], n - length + 1);
        if (!at) return NULL;
        if (memcmp(at, needle, length) == 0) return at;
        n -= (size_t)(at + 1 - text);
        text = at + 1;
    }
    return NULL;
}

const tg_chat_template *tg_chat_looks_like(const char *text, size_t n_bytes) {
    for (size_t i = 0; i < N_TEMPLATES; i++) {
        bool fits = true;
        for (int k = 0; k < N_MARKS && templates[i].looks[k]; k++)
            fits = fits && find(text, n_bytes, templates[i].looks[k]);
        if (fits) return &templates[i];
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------- writing */

/* Where a conversation goes: ids, or text for people. */
typedef struct writer {
    tg_ctx *ctx;
    const tg_tok *tok; /* NULL: text */
    tg_ids *ids;
    tg_buf *text; /* out; or what is not encoded yet */
    const tg_chat_how *how;
} writer;

static tg_status flush(writer *w, unsigned flags) {
    TG_TRY(tg_buf_status(w->ctx, w->text, "a conversation"));
    if (!w->tok) return TG_OK;
    const char *text = tg_buf_text(w->text);
    const tg_status status = tg_tok_encode(w->ctx, w->tok, text, w->text->length, flags, w->ids);
    tg_buf_clear(w->text);
    return status;
}

static tg_status special(writer *w, const char *name) {
    if (!name) return TG_OK;
    if (!w->tok) {
        tg_buf_puts(w->text, name);
        return TG_OK;
    }
    TG_TRY(flush(w, 0));
    const int32_t id = tg_tok_find(w->tok, name, strlen(name));
    if (id < 0) {
        return tg_fail(w->ctx, TG_E_FORMAT,
                       "chat template: want a token %s, have none in this model", name);
    }
    return tg_ids_push(w->ctx, w->ids, id);
}

/* The vocabulary's own token, which has no text. */
static tg_status put_own(writer *w, int32_t id, const char *what) {
    if (!w->tok) return TG_OK;
    TG_TRY(flush(w, 0));
    if (id >= 0) return tg_ids_push(w->ctx, w->ids, id);
    return tg_fail(w->ctx, TG_E_FORMAT,
                   "chat template: want a token that %s texts, have none in this model", what);
}

/* The vocabulary's first token of a text; a template may know one for vocabularies without. */
static tg_status begin(writer *w, const char *name) {
    const int32_t id = name && w->tok ? tg_tok_bos(w->tok) : -1;
    if (id >= 0) return tg_ids_push(w->ctx, w->ids, id);
    if (!name || *name) return special(w, name);
    return put_own(w, id, "begins");
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void trim(const char **text, size_t *n) {
    while (*n > 0 && is_space((*text)[*n - 1])) --*n;
    for (; *n > 0 && is_space(**text); ++*text) --*n;
}

/* What follows the last </think>, without the line ends in front. */
static void skip_thinking(const char **text, size_t *n) {
    static const char mark[] = "</think>";
    bool any = false;
    for (const char *at; (at = find(*text, *n, mark)); any = true) {
        const char *rest = at + sizeof mark - 1;
        *n -= (size_t)(rest - *text);
        *text = rest;
    }
    for (; any && *n > 0 && **text == '\n'; ++*text) --*n;
}

static void append(writer *w, const tg_chat_template *t, const tg_chat_turn *turn) {
    const char *text = turn->text;
    size_t n = turn->n_bytes;
    if (t->trim) trim(&text, &n);
    if (t->drop_thinking && turn->role == TG_CHAT_ASSISTANT) skip_thinking(&text, &n);
    tg_buf_append(w->text, text, n);
}

static tg_status open_turn(writer *w, const tg_chat_template *t, tg_chat_role role) {
    static const char *const names[] = { "system", "user" };
    TG_TRY(special(w, t->open));
    tg_buf_puts(w->text, role == TG_CHAT_ASSISTANT ? t->assistant : names[role]);
    TG_TRY(special(w, t->close));
    tg_buf_puts(w->text, t->gap);
    return TG_OK;
}

static tg_status close_turn(writer *w, const tg_chat_template *t, tg_chat_role role) {
    TG_TRY(special(w, t->end));
    tg_buf_puts(w->text, t->tail);
    if (t->eos == EOS_TURNS || (t->eos == EOS_ANSWERS && role == TG_CHAT_ASSISTANT))
        return put_own(w, w->tok ? tg_tok_eos(w->tok) : -1, "ends");
    return TG_OK;
}

/* Templates that drop thinking take such a turn of the user for the answer of a tool, and keep the
 * thinking before it: tools are not known here. */
static bool of_a_tool(const tg_chat_turn *turn) {
    static const char first[] = "<tool_response>", last[] = "</tool_response>";
    const size_t a = sizeof first - 1, b = sizeof last - 1;
    return turn->role == TG_CHAT_USER && turn->n_bytes >= b && memcmp(turn->text, first, a) == 0 &&
           memcmp(turn->text + turn->n_bytes - b, last, b) == 0;
}

static tg_status check(tg_ctx *ctx, const tg_chat_template *t, const tg_chat_turn *turns,
                       size_t n) {
    const size_t first = n > 0 && turns[0].role == TG_CHAT_SYSTEM;
    if (n == 0 || turns[n - 1].role != TG_CHAT_USER) {
        return tg_fail(ctx, TG_E_ARG, "chat: want the user's turn last, have another or none");
    }
    if (first && t->no_system)
        return tg_fail(ctx, TG_E_ARG, "chat, %s: want no system's turn, have one", t->name);
    for (size_t i = first; i < n; i++) {
        if (t->drop_thinking && of_a_tool(&turns[i]))
            return tg_fail(ctx, TG_E_ARG,
                           "chat, %s: turn %zu: want a text, have a <tool_response>, which is not "
                           "supported",
                           t->name, i);
        if (turns[i].role == TG_CHAT_SYSTEM) {
            return tg_fail(ctx, TG_E_ARG, "chat: want the system's turn first, have it at %zu", i);
        }
        const tg_chat_role due = (i - first) % 2 == 0 ? TG_CHAT_USER : TG_CHAT_ASSISTANT;
        if (t->alternate && turns[i].role != due) {
            return tg_fail(ctx, TG_E_ARG, "chat, %s: want user and model in turn, have two of one",
                           t->name);
        }
    }
    return TG_OK;
}

/* "29 Nov 2026": the caller's date, the template's own, or today's in UTC. */
static void put_date(writer *w, const char *fixed) {
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    tg_chat_date d = w->how->date;
    if (d.day == 0 && *fixed) {
        tg_buf_puts(w->text, fixed);
        return;
    }
    if (d.day == 0) d = tg_chat_date_of(tg_time_unix());
    tg_buf_printf(w->text, "%02d %.3s %d", d.day, months + 3 * (d.month - 1), d.year);
}

/* The system's turn, if the conversation or the template has one. */
static tg_status write_system(writer *w, const tg_chat_template *t, const tg_chat_turn *turn) {
    const tg_chat_found *file = w->how->found;
    if (!turn && !t->default_system && !(file && file->system_bytes)) return TG_OK;
    TG_TRY(open_turn(w, t, TG_CHAT_SYSTEM));
    if (t->system_head) {
        tg_buf_puts(w->text, t->system_head);
        put_date(w, t->date);
        tg_buf_puts(w->text, "\n\n");
    }
    if (turn) {
        append(w, t, turn);
    } else if (file && file->system_bytes) {
        tg_buf_append(w->text, file->system, file->system_bytes);
    } else {
        tg_buf_puts(w->text, t->default_system);
    }
    return close_turn(w, t, TG_CHAT_SYSTEM);
}

static tg_status write_all(writer *w, const tg_chat_template *t, const tg_chat_turn *turns,
                           size_t n) {
    TG_TRY(check(w->ctx, t, turns, n));
    TG_TRY(begin(w, t->bos));
    const tg_chat_turn *system = turns[0].role == TG_CHAT_SYSTEM ? &turns[0] : NULL;
    const size_t first = system ? 1 : 0;
    if (!t->system_with_user) TG_TRY(write_system(w, t, system));
    for (size_t i = first; i < n; i++) {
        TG_TRY(open_turn(w, t, turns[i].role));
        if (i == first && system && t->system_with_user) {
            tg_buf_append(w->text, system->text, system->n_bytes);
            tg_buf_puts(w->text, "\n\n");
        }
        append(w, t, &turns[i]);
        TG_TRY(close_turn(w, t, turns[i].role));
    }
    TG_TRY(open_turn(w, t, TG_CHAT_ASSISTANT));
    TG_TRY(flush(w, 0));
    const char *begin =
        (w->how->flags & TG_CHAT_NO_THINKING) && t->no_think ? t->no_think : t->think;
    if (begin) tg_buf_puts(w->text, begin);
    return flush(w, TG_TOK_SPECIAL); /* the template's own words */
}

/* Days to a date of the calendar that we have: years begin in March, so that the leap day is the
 * last one. */
tg_chat_date tg_chat_date_of(int64_t seconds) {
    const int64_t days = seconds / 86400 + 719468, era = days / 146097, rest = days % 146097;
    const int64_t year = (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
    const int64_t day = rest - (365 * year + year / 4 - year / 100), month = (5 * day + 2) / 153;
    return (tg_chat_date) { .year = (int)(year + 400 * era + (month > 9)),
                            .month = (int)(month < 10 ? month + 3 : month - 9),
                            .day = (int)(day - (153 * month + 2) / 5 + 1) };
}

tg_status tg_chat_encode(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok,
                         const tg_chat_turn *turns, size_t n, const tg_chat_how *how, tg_ids *ids) {
    tg_buf text;
    tg_buf_init(&text, &ctx->mem);
    writer w = { .ctx = ctx, .tok = tok, .ids = ids, .text = &text, .how = how };
    const size_t before = ids->n;
    const tg_status status = write_all(&w, t, turns, n);
    if (status != TG_OK) ids->n = before;
    tg_buf_deinit(&text);
    return status;
}

tg_status tg_chat_render(tg_ctx *ctx, const tg_chat_template *t, const tg_chat_turn *turns,
                         size_t n, const tg_chat_how *how, tg_buf *out) {
    writer w = { .ctx = ctx, .text = out, .how = how };
    return write_all(&w, t, turns, n);
}

size_t tg_chat_ends(const tg_chat_template *t, const tg_tok *tok, int32_t ends[TG_CHAT_ENDS_MAX]) {
    size_t n = 0;
    for (int k = 0; k < N_ENDS && t->ends[k]; k++) {
        const int32_t id = tg_tok_find(tok, t->ends[k], strlen(t->ends[k]));
        if (id >= 0) ends[n++] = id;
    }
    size_t n_all;
    const int32_t *all = tg_tok_ends(tok, &n_all);
    for (size_t k = 0; k < n_all && n < TG_CHAT_ENDS_MAX; k++) {
        bool there = false;
        for (size_t i = 0; i < n; i++) there = there || ends[i] == all[k];
        if (!there) ends[n++] = all[k];
    }
    return n;
}
