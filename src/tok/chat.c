/*
 * chat.c - the templates as a table, and the one way in which all of them are written.
 *
 *     bos  { open role close gap  text  end tail }*  open assistant close gap  think
 *          \____________ a turn ______________/      \___ the answer's beginning __/
 *
 * What is between special tokens is one text, though it comes from two hands: "user\n" and the
 * user's words are encoded together, as the reference does, or a line end at their seam would give
 * other tokens.
 */
#include "tok/chat.h"

#include "base/str.h"

enum { N_MARKS = 3, N_ENDS = 3 };

struct tg_chat_template {
    const char *name;
    /* It is this one if the file's template has all of has, and none of lacks. Rows are tried in
     * their order. */
    const char *has[N_MARKS], *lacks[N_MARKS];
    const char *bos, *open, *close, *end; /* special tokens; NULL: none */
    const char *gap, *tail;               /* text behind close and end */
    const char *assistant;                /* the model's role; the others are "system" and "user" */
    const char *default_system;           /* if the conversation has none; NULL: no such turn */
    const char *system_head;              /* in front of the system's text */
    const char *think, *no_think;         /* how the answer begins; "": with nothing */
    bool trim;                            /* white space at the ends of every text goes */
    bool system_with_user;                /* the system's text opens the first turn of the user */
    bool alternate;                       /* user and model in turn, or it is refused */
    bool drop_thinking;                   /* of the model's earlier turns */
    const char *ends[N_ENDS];             /* that an answer stops at */
};

#define CHATML                                                                                     \
    .open = "<|im_start|>", .end = "<|im_end|>", .gap = "\n", .tail = "\n",                        \
    .assistant = "assistant", .ends = { "<|im_end|>", "<|endoftext|>" }
#define LLAMA3                                                                                     \
    .bos = "<|begin_of_text|>", .open = "<|start_header_id|>", .close = "<|end_header_id|>",       \
    .end = "<|eot_id|>", .gap = "\n\n", .tail = "", .assistant = "assistant", .trim = true,        \
    .ends = { "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>" }

static const tg_chat_template templates[] = {
    { .name = "smollm2",
      .has = { "<|im_start|>", "AI assistant named SmolLM, trained by Hugging Face" },
      .lacks = { "Metadata" }, /* SmolLM3's */
      .default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
      CHATML },
    { .name = "qwen3.5",
      .has = { "enable_thinking", "{{- '<think>\\n' }}", "render_content" },
      .trim = true,
      .drop_thinking = true,
      .think = "<think>\n",
      .no_think = "<think>\n\n</think>\n\n",
      CHATML },
    { .name = "qwen3",
      .has = { "<|im_start|>", "enable_thinking", "last_query_index" },
      .lacks = { "Metadata", "render_content", "'<|im_start|>assistant\\n<think>\\n'" },
      .drop_thinking = true,
      .no_think = "<think>\n\n</think>\n\n",
      CHATML },
    { .name = "qwen3-thinking", /* that always thinks */
      .has = { "'<|im_start|>assistant\\n<think>\\n'", "last_query_index" },
      .lacks = { "enable_thinking" },
      .drop_thinking = true,
      .think = "<think>\n",
      CHATML },
    { .name = "qwen2.5",
      .has = { "<|im_start|>",
               "You are Qwen, created by Alibaba Cloud. You are a helpful assistant." },
      .lacks = { "<think>" },
      .default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
      CHATML },
    { .name = "qwen2",
      .has = { "<|im_start|>system\\nYou are a helpful assistant." },
      .lacks = { "<think>" },
      .default_system = "You are a helpful assistant.",
      CHATML },
    { .name = "llama3.1",
      .has = { "<|start_header_id|>", "Cutting Knowledge Date: December 2023", "Today Date: " },
      .default_system = "",
      .system_head = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
      LLAMA3 },
    { .name = "llama3",
      .has = { "<|start_header_id|>", "<|eot_id|>" },
      .lacks = { "function", "Date" },
      LLAMA3 },
    { .name = "gemma",
      .has = { "<start_of_turn>", "model" },
      .bos = "<bos>",
      .open = "<start_of_turn>",
      .end = "<end_of_turn>",
      .gap = "\n",
      .tail = "\n",
      .assistant = "model",
      .trim = true,
      .system_with_user = true,
      .alternate = true,
      .ends = { "<end_of_turn>", "<eos>" } },
    { .name = "chatml",
      .has = { "<|im_start|>", "<|im_end|>" },
      .lacks = { "<think>", "<|im_middle|>", "You are" },
      CHATML },
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

const tg_chat_template *tg_chat_detect(const char *text, size_t n_bytes) {
    for (size_t i = 0; i < N_TEMPLATES; i++) {
        bool fits = true;
        for (int k = 0; k < N_MARKS; k++) {
            const char *has = templates[i].has[k], *lacks = templates[i].lacks[k];
            fits = fits && !(has && !find(text, n_bytes, has));
            fits = fits && !(lacks && find(text, n_bytes, lacks));
        }
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

static tg_status close_turn(writer *w, const tg_chat_template *t) {
    TG_TRY(special(w, t->end));
    tg_buf_puts(w->text, t->tail);
    return TG_OK;
}

static tg_status check(tg_ctx *ctx, const tg_chat_template *t, const tg_chat_turn *turns,
                       size_t n) {
    const size_t first = n > 0 && turns[0].role == TG_CHAT_SYSTEM;
    if (n == 0 || turns[n - 1].role != TG_CHAT_USER) {
        return tg_fail(ctx, TG_E_ARG, "chat: want the user's turn last, have another or none");
    }
    for (size_t i = first; i < n; i++) {
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

/* The system's turn, if the conversation or the template has one. */
static tg_status write_system(writer *w, const tg_chat_template *t, const tg_chat_turn *turn) {
    if (!turn && !t->default_system) return TG_OK;
    TG_TRY(open_turn(w, t, TG_CHAT_SYSTEM));
    if (t->system_head) tg_buf_puts(w->text, t->system_head);
    if (turn) {
        append(w, t, turn);
    } else {
        tg_buf_puts(w->text, t->default_system);
    }
    return close_turn(w, t);
}

static tg_status write_all(writer *w, const tg_chat_template *t, const tg_chat_turn *turns,
                           size_t n, unsigned flags) {
    TG_TRY(check(w->ctx, t, turns, n));
    TG_TRY(special(w, t->bos));
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
        TG_TRY(close_turn(w, t));
    }
    TG_TRY(open_turn(w, t, TG_CHAT_ASSISTANT));
    TG_TRY(flush(w, 0));
    const char *begin = (flags & TG_CHAT_NO_THINKING) && t->no_think ? t->no_think : t->think;
    if (begin) tg_buf_puts(w->text, begin);
    return flush(w, TG_TOK_SPECIAL); /* the template's own words */
}

tg_status tg_chat_encode(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok,
                         const tg_chat_turn *turns, size_t n, unsigned flags, tg_ids *ids) {
    tg_buf text;
    tg_buf_init(&text, &ctx->mem);
    writer w = { .ctx = ctx, .tok = tok, .ids = ids, .text = &text };
    const size_t before = ids->n;
    const tg_status status = write_all(&w, t, turns, n, flags);
    if (status != TG_OK) ids->n = before;
    tg_buf_deinit(&text);
    return status;
}

tg_status tg_chat_render(tg_ctx *ctx, const tg_chat_template *t, const tg_chat_turn *turns,
                         size_t n, unsigned flags, tg_buf *out) {
    writer w = { .ctx = ctx, .text = out };
    return write_all(&w, t, turns, n, flags);
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
