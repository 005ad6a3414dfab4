/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat.c - a conversation through its template: variables in, text out, and the text as ids.
 *
 *     turns or JSON -> variables -> jinja.h -> text, each byte the template's or somebody's -> ids
 *
 * What is between special tokens is one text, though it comes from two hands: "user\n" and the
 * user's words are encoded together, as the reference does, or a line end at their seam would give
 * other tokens.
 */
#include "chat/chat.h"

#include "base/str.h"
#include "base/time.h"

/* ------------------------------------------------------------------------------------ built in */

static const struct {
    const char *name, *needs, *text;
} builtin[] = {
#define TEMPLATE(name, needs, text) { name, needs, text },
#include "chat/chat_builtin.def"
#undef TEMPLATE
};
enum { N_BUILTIN = sizeof builtin / sizeof builtin[0] };

/* In the order of the list. */
const char *tg_chat_name_at(size_t i) { return i < N_BUILTIN ? builtin[i].name : NULL; }

tg_status tg_chat_template_new(tg_ctx *ctx, const char *name, const char *text, size_t n_bytes,
                               tg_chat_template *out) {
    out->needs = NULL;
    return tg_jinja_new(ctx, name, text, n_bytes, &out->jinja);
}

/* A template that is built in knows which token its turns begin with: a model without it would read
 * marks as mere text, so that it is refused when it is used. */
tg_status tg_chat_template_named(tg_ctx *ctx, const char *name, tg_chat_template *out) {
    for (size_t i = 0; i < N_BUILTIN; i++) {
        if (strcmp(builtin[i].name, name) != 0) continue;
        TG_TRY(tg_chat_template_new(ctx, name, builtin[i].text, strlen(builtin[i].text), out));
        out->needs = builtin[i].needs;
        return TG_OK;
    }
    return tg_fail(ctx, TG_E_ARG, "chat: want the name or text of a template, have \"%.60s\"",
                   name);
}

const char *tg_chat_text_named(const char *name) {
    for (size_t i = 0; i < N_BUILTIN; i++)
        if (strcmp(builtin[i].name, name) == 0) return builtin[i].text;
    return NULL;
}

void tg_chat_template_deinit(tg_chat_template *t) {
    tg_jinja_free(t->jinja);
    t->jinja = NULL;
}

bool tg_chat_thinks(const tg_chat_template *t) {
    return tg_jinja_mentions(t->jinja, "enable_thinking");
}

/* ----------------------------------------------------------------------------------- variables */

/* A number of n digits, all of which have to be digits; else -1. */
static int digits_of(const char *text, size_t n) {
    int value = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = 10 * value + (text[i] - '0');
    }
    return value;
}

bool tg_chat_date(const char *text, int date[3]) {
    static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    const bool formed = strlen(text) == 10 && text[4] == '-' && text[7] == '-';
    const int year = formed ? digits_of(text, 4) : -1, month = formed ? digits_of(text + 5, 2) : -1,
              day = formed ? digits_of(text + 8, 2) : -1;
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days[month - 1] ||
        (month == 2 && day == 29 && !leap))
        return false;
    date[0] = year;
    date[1] = month;
    date[2] = day;
    return true;
}

/* By the two names that transformers and Llama's makers have for it; a template that sets
 * date_string itself where nobody did asks for today's by strftime_now. */
bool tg_chat_asks_date(const tg_chat_template *t, bool *todays) {
    *todays = tg_jinja_mentions(t->jinja, "strftime_now");
    return *todays || tg_jinja_mentions(t->jinja, "date_string");
}

/* Days to a date of the calendar that we have: years begin in March, so that the leap day is the
 * last one. */
tg_jinja_date tg_chat_date_of(int64_t seconds) {
    const int64_t days = seconds / 86400 + 719468, era = days / 146097, rest = days % 146097;
    const int64_t year = (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
    const int64_t day = rest - (365 * year + year / 4 - year / 100), month = (5 * day + 2) / 153;
    return (tg_jinja_date) { .year = (int)(year + 400 * era + (month > 9)),
                             .month = (int)(month < 10 ? month + 3 : month - 9),
                             .day = (int)(day - (153 * month + 2) / 5 + 1) };
}

/* A role is the template's word, since some templates make a special token of it ("<|" + role +
 * "|>"). Only those that models know are: another one is somebody's words. */
static bool known_role(const char *role) {
    static const char *const roles[] = { "system",    "user",  "assistant", "tool",
                                         "developer", "model", "function",  "ipython" };
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (strcmp(role, roles[i]) == 0) return true;
    return false;
}

/* What the template calls a message: the role is its own word, the text somebody's. */
static tg_jinja_value put_turn(tg_jinja_run *r, const tg_chat_turn *turn) {
    static const char *const roles[] = { "system", "user", "assistant" };
    const tg_jinja_value message = tg_jinja_dict_new(r);
    tg_jinja_put(r, message, "role",
                 tg_jinja_text(r, roles[turn->role], strlen(roles[turn->role]), false));
    tg_jinja_put(r, message, "content", tg_jinja_text(r, turn->text, turn->n_bytes, true));
    return message;
}

/* A message of JSON. As in transformers, what is null is not there. */
static tg_jinja_value put_message(tg_jinja_run *r, const tg_json *message) {
    if (tg_json_kind(message) != TG_JSON_OBJECT) return tg_jinja_from_json(r, message, true);
    const tg_jinja_value out = tg_jinja_dict_new(r);
    for (const tg_json *v = tg_json_first(message); v; v = tg_json_next(v)) {
        if (tg_json_kind(v) == TG_JSON_NULL) continue;
        const bool role = strcmp(v->key, "role") == 0 && tg_json_kind(v) == TG_JSON_STRING &&
                          known_role(v->u.text);
        tg_jinja_put(r, out, v->key, tg_jinja_from_json(r, v, !role));
    }
    return out;
}

/* As text, which becomes the token again when the output is encoded: the template's own words may
 * be special tokens. */
static void set_token(tg_jinja_run *r, const tg_tok *tok, const char *name, int32_t id) {
    size_t n = 0;
    const char *text = tok && id >= 0 ? tg_tok_piece(tok, id, &n) : NULL;
    if (text) tg_jinja_set(r, name, tg_jinja_text(r, text, n, false));
}

static void set_date(tg_jinja_run *r, tg_jinja_date date) {
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (date.day) { /* the name that Llama 3's templates have for it */
        char text[32];
        snprintf(text, sizeof text, "%02d %.3s %d", date.day, months + 3 * (date.month - 1),
                 date.year);
        tg_jinja_set(r, "date_string", tg_jinja_text(r, text, strlen(text), false));
    }
    tg_jinja_set_date(r, date.day ? date : tg_chat_date_of(tg_time_unix()));
}

/* The variables of apply_chat_template of transformers, with its defaults: None for tools and
 * documents, a generation prompt unless an answer is gone on with. What JSON brings comes last, so
 * that it may replace any of them. Both names of the switch for thinking are set, since templates
 * use either. */
static void set_all(tg_jinja_run *r, const tg_tok *tok, const tg_chat_said *said) {
    tg_jinja_value messages = tg_jinja_list_new(r);
    set_token(r, tok, "bos_token", tok ? tg_tok_bos(tok) : -1);
    set_token(r, tok, "eos_token", tok ? tg_tok_eos(tok) : -1);
    set_token(r, tok, "unk_token", tok ? tg_tok_unknown(tok) : -1);
    set_token(r, tok, "pad_token", tok ? tg_tok_pad(tok) : -1);
    set_date(r, said->date);
    tg_jinja_set(r, "tools", tg_jinja_none());
    tg_jinja_set(r, "documents", tg_jinja_none());
    tg_jinja_set(r, "add_generation_prompt",
                 tg_jinja_bool(!(said->flags & (TG_CHAT_CONTINUE | TG_CHAT_WHOLE))));
    if (said->flags & TG_CHAT_NO_THINKING) {
        tg_jinja_set(r, "enable_thinking", tg_jinja_bool(false));
        tg_jinja_set(r, "thinking", tg_jinja_bool(false));
    }
    for (size_t i = 0; i < said->n; i++) tg_jinja_push(r, messages, put_turn(r, &said->turns[i]));
    for (const tg_json *v = said->json ? tg_json_first(said->json) : NULL; v; v = tg_json_next(v)) {
        if (strcmp(v->key, "messages") != 0) {
            tg_jinja_set(r, v->key, tg_jinja_from_json(r, v, true));
            continue;
        }
        for (const tg_json *m = tg_json_first(v); m; m = tg_json_next(m))
            tg_jinja_push(r, messages, put_message(r, m));
    }
    tg_jinja_set(r, "messages", messages);
}

/* ------------------------------------------------------------------------------------- checks */

static tg_status wrong(tg_ctx *ctx, const char *want, const char *have) {
    return tg_fail(ctx, TG_E_ARG, "chat: want %s, have %s", want, have);
}

/* Turns must end with one that can be answered, or gone on with. What else an order may be, the
 * template says. JSON is checked for its shape alone. */
static tg_status check(tg_ctx *ctx, const tg_chat_said *said) {
    const bool goes_on = said->flags & TG_CHAT_CONTINUE;
    if (said->json) {
        const tg_json *messages = tg_json_get(said->json, "messages");
        if (!messages || tg_json_kind(messages) != TG_JSON_ARRAY || messages->count == 0)
            return wrong(ctx, "an object with a list of messages", "another one");
        for (const tg_json *m = tg_json_first(messages); m; m = tg_json_next(m))
            if (tg_json_kind(m) != TG_JSON_OBJECT)
                return wrong(ctx, "messages that are objects", TG_JSON_SHOWN(m));
        return TG_OK;
    }
    if (said->n == 0) return wrong(ctx, "a turn of the user", "none");
    const bool answered = said->turns[said->n - 1].role == TG_CHAT_ASSISTANT;
    if (goes_on && !answered) return wrong(ctx, "a turn of the model at the end", "another one");
    if (!goes_on && said->turns[said->n - 1].role != TG_CHAT_USER)
        return wrong(ctx, "a turn of the user at the end",
                     answered ? "the model's" : "the system's");
    return TG_OK;
}

/* The text of the last message, for a template whose output is to be cut behind it. */
static const char *last_words(const tg_chat_said *said, size_t *n) {
    *n = 0;
    if (!said->json) {
        *n = said->turns[said->n - 1].n_bytes;
        return said->turns[said->n - 1].text;
    }
    const tg_json *m = tg_json_first(tg_json_get(said->json, "messages")), *last = m;
    for (; m; m = tg_json_next(m)) last = m;
    const tg_json *content = last ? tg_json_get(last, "content") : NULL;
    if (!content || tg_json_kind(content) != TG_JSON_STRING) return NULL;
    *n = content->length;
    return content->u.text;
}

static bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The output up to the end of the model's own last words, which the template may have trimmed. */
static tg_status cut_behind(tg_ctx *ctx, const tg_chat_said *said, size_t before,
                            tg_jinja_out *out) {
    size_t n, end = out->words.length;
    const char *words = last_words(said, &n);
    while (end > before && !out->words.data[end - 1]) end--;
    size_t have = end;
    while (n > 0 && blank(words[n - 1])) n--;
    while (have > before && blank(out->text.data[have - 1])) have--;
    if (n == 0 || have - before < n || memcmp(out->text.data + have - n, words, n) != 0)
        return wrong(ctx, "a turn of the model that its template writes as it is", "another one");
    out->text.length = out->words.length = end;
    return TG_OK;
}

/* ------------------------------------------------------------------------------------ the text */

/* A run for each rendering: its memory and limits end with it. What the caller had in out stays in
 * front. */
tg_status tg_chat_render(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok,
                         const tg_chat_said *said, tg_jinja_out *out) {
    TG_TRY(check(ctx, said));
    if (tok && t->needs && tg_tok_find(tok, t->needs, strlen(t->needs)) < 0)
        return tg_fail(ctx, TG_E_FORMAT, "chat template: want a token %s, have none in this model",
                       t->needs);
    tg_jinja_run *r = tg_jinja_run_new(ctx, t->jinja);
    if (!r) return TG_E_MEMORY;
    const size_t before = out->text.length;
    set_all(r, tok, said);
    tg_status s = tg_jinja_render(r, out);
    tg_jinja_run_free(r);
    if (s == TG_OK && said->flags & TG_CHAT_CONTINUE) s = cut_behind(ctx, said, before, out);
    return s;
}

tg_status tg_chat_encode(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok,
                         const tg_chat_said *said, tg_ids *ids) {
    tg_jinja_out out;
    tg_buf_init(&out.text, &ctx->mem);
    tg_buf_init(&out.words, &ctx->mem);
    tg_status s = tg_chat_render(ctx, t, tok, said, &out);
    if (s == TG_OK)
        s = tg_tok_encode_chat(ctx, tok, tg_buf_text(&out.text), tg_buf_text(&out.words),
                               out.text.length, ids);
    tg_buf_deinit(&out.text);
    tg_buf_deinit(&out.words);
    return s;
}

/* --------------------------------------------------------------------------------------- ends */

/* The special token that the template writes behind the model's last words, if nothing but white
 * space stands between; -1: none. */
static int32_t end_behind(const tg_tok *tok, const tg_jinja_out *out, char mark) {
    enum { LONGEST = 128 };
    const char *text = tg_buf_text(&out->text), *words = tg_buf_text(&out->words);
    size_t at = out->text.length, n = 0;
    while (at > 0 && (!words[at - 1] || text[at - 1] != mark)) at--;
    while (at < out->text.length && blank(text[at])) at++;
    if (at == 0) return -1;
    while (n < LONGEST && at + n < out->text.length && !words[at + n]) n++;
    for (; n > 0; n--) {
        const int32_t id = tg_tok_find(tok, text + at, n);
        const int type = id < 0 ? 0 : tg_tok_type(tok, id);
        if (type == TG_TOK_CONTROL || type == TG_TOK_USER_DEFINED) return id;
    }
    return -1;
}

/* A conversation is rendered that goes on behind an answer: some templates write an answer's end
 * only there. One that refuses it has no end of its own. */
static tg_status end_of_template(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok,
                                 int32_t *id) {
    static const tg_chat_turn turns[] = { { TG_CHAT_USER, "Q", 1 },
                                          { TG_CHAT_ASSISTANT, "A", 1 },
                                          { TG_CHAT_USER, "Q", 1 } };
    const tg_chat_said said = { .turns = turns, .n = 3 };
    tg_ctx quiet; /* a refusal is no error here */
    tg_ctx_init(&quiet, &ctx->mem, NULL, NULL);
    tg_jinja_out out;
    tg_buf_init(&out.text, &ctx->mem);
    tg_buf_init(&out.words, &ctx->mem);
    *id = -1;
    tg_status s = tg_chat_render(&quiet, t, tok, &said, &out);
    if (s == TG_OK)
        *id = end_behind(tok, &out, 'A');
    else
        s = s == TG_E_ARG ? TG_OK : tg_fail_as(ctx, s, &quiet);
    tg_buf_deinit(&out.text);
    tg_buf_deinit(&out.words);
    return s;
}

/* The template's own end first, since it is the one that answers really end with; then what the
 * file names. */
tg_status tg_chat_ends(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok, int32_t *ends,
                       size_t *n) {
    int32_t own;
    size_t n_all;
    TG_TRY(end_of_template(ctx, t, tok, &own));
    *n = 0;
    if (own >= 0) ends[(*n)++] = own;
    const int32_t *all = tg_tok_ends(tok, &n_all);
    for (size_t k = 0; k < n_all && *n < TG_CHAT_ENDS_MAX; k++)
        if (all[k] != own) ends[(*n)++] = all[k];
    return TG_OK;
}
