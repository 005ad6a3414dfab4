/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chats.c - see chats.h.
 *
 * Where an answer begins and ends in the tokens of a conversation is found by rendering it twice:
 * up to the answer with what asks for one, and with it. What both begin with is read, the rest up
 * to the token that ends answers is predicted. No template has to be known for that.
 */
#include "training/data/chats.h"

#include "base/codec/crc.h"
#include "base/codec/json.h"
#include "base/rng.h"

/* A token that is to be predicted is kept as its complement, a negative number. */
typedef struct row {
    size_t first, n; /* of the ids */
    bool begins;     /* a conversation */
} row;

typedef struct chats {
    tg_text *text;
    const tg_tok *tok;            /* while lines are read, */
    const tg_chat_template *chat; /* this one (NULL: there is none), and */
    tg_jinja_date date;           /* the day that templates are told */
    int32_t ends[TG_CHAT_ENDS_MAX];
    size_t n_ends;
    tg_ids ids;
    row *row;               /* [n], of which a run's last ones validate: see split */
    size_t n, room, n_held; /* n_held: of is_held, those before what validates */
    tg_ids asked, answered; /* of the answer that is being read */
    uint32_t *order;        /* [n], of which n_ordered are those of an epoch of a seed */
    size_t n_ordered;
    uint64_t epoch, seed;
    bool is_held; /* what validates is fixed */
    size_t group; /* rows that follow each other in a batch: 2 of a pair, else 1 */
} chats;

static tg_ctx *err_of(const chats *c) { return &c->text->ctx->err; }

/* --------------------------------------------------------------------------------------- reading
 */

static tg_status begin_row(chats *c, bool begins) {
    if (c->n == c->room) {
        const size_t more = 2 * c->room + 64;
        row *grown =
            tg_realloc(&err_of(c)->mem, c->row, c->room * sizeof *grown, more * sizeof *grown);
        if (!grown) return tg_fail_memory(err_of(c), "conversations", more * sizeof *grown);
        c->row = grown;
        c->room = more;
    }
    c->row[c->n++] = (row) { .first = c->ids.n, .begins = begins };
    return TG_OK;
}

static bool ends_answer(const chats *c, int32_t id) {
    for (size_t i = 0; i < c->n_ends; i++)
        if (c->ends[i] == id) return true;
    return false;
}

static int32_t id_of(int32_t kept) { return kept < 0 ? ~kept : kept; }

/* Does the answered conversation go on where the last row, if it is this conversation's, ends? */
static bool goes_on(const chats *c, size_t rows_before, size_t begin) {
    if (c->n == rows_before) return false;
    const row *r = &c->row[c->n - 1];
    if (r->n > begin) return false;
    for (size_t i = 0; i < r->n; i++)
        if (id_of(c->ids.id[r->first + i]) != c->answered.id[i]) return false;
    return true;
}

/* The messages that are shown now (see show), as ids. */
static tg_status render(chats *c, const tg_json *line, unsigned flags, tg_ids *ids) {
    const tg_chat_said said = { .json = line, .flags = flags, .date = c->date };
    ids->n = 0;
    return tg_chat_encode(err_of(c), c->chat, c->tok, &said, ids);
}

/* Adds the answer that ends the messages as they are shown now: to the row that it goes on from, or
 * as one of its own. */
static tg_status add_answer(chats *c, const tg_json *line, size_t rows_before) {
    TG_TRY(render(c, line, TG_CHAT_WHOLE, &c->answered));
    size_t begin = 0, end = c->answered.n;
    while (begin < end && begin < c->asked.n && c->answered.id[begin] == c->asked.id[begin])
        begin++;
    while (end > begin && !ends_answer(c, c->answered.id[end - 1])) end--;
    const bool is_ended = end > begin;
    if (!is_ended) end = c->answered.n;
    if (begin == end)
        return tg_fail(err_of(c), TG_E_DATA, "want an answer that its template writes, have none");
    if (!goes_on(c, rows_before, begin)) TG_TRY(begin_row(c, c->n == rows_before));
    row *r = &c->row[c->n - 1];
    for (; r->n < end; r->n++) {
        const int32_t id = c->answered.id[r->n];
        TG_TRY(tg_ids_push(err_of(c), &c->ids, r->n < begin ? id : ~id));
    }
    if (is_ended || c->n_ends == 0) return TG_OK;
    r->n++;
    return tg_ids_push(err_of(c), &c->ids, ~c->ends[0]);
}

/* Hides all messages but the first n from the template for a while: nodes are the arena's own. */
static tg_status show(chats *c, const tg_json *line, tg_json *messages, uint32_t n, unsigned flags,
                      size_t rows_before) {
    tg_json *last = messages + 1;
    for (uint32_t i = 1; i < n; i++) last += last->skip;
    const uint32_t count = messages->count, skip = last->skip;
    messages->count = n;
    last->skip = 0;
    const tg_status s = flags & TG_CHAT_WHOLE ? add_answer(c, line, rows_before)
                                              : render(c, line, flags, &c->asked);
    messages->count = count;
    last->skip = skip;
    return s;
}

static tg_status read_conversation(chats *c, const tg_json *line) {
    const size_t rows_before = c->n;
    const tg_json *messages;
    TG_TRY(tg_json_want(err_of(c), line, "messages", TG_JSON_ARRAY, &messages));
    uint32_t at = 0;
    for (const tg_json *m = tg_json_first(messages); m; m = tg_json_next(m), at++) {
        const tg_json *role;
        TG_TRY(tg_json_want(err_of(c), m, "role", TG_JSON_STRING, &role));
        if (!tg_json_is(role, "assistant") || at == 0) continue;
        tg_json *list = (tg_json *)(uintptr_t)messages;
        TG_TRY(show(c, line, list, at, 0, rows_before));
        TG_TRY(show(c, line, list, at + 1, TG_CHAT_WHOLE, rows_before));
    }
    if (c->n == rows_before)
        return tg_fail(err_of(c), TG_E_DATA,
                       "want an answer of the role \"assistant\" behind a question, have none");
    return TG_OK;
}

/* ------------------------------------------------------------------------------------------ pairs
 */

/* An answer as plain text, which no template writes, behind a prompt that is one; both as people
 * who train with TRL have them. */
static tg_status add_plain(chats *c, const tg_json *prompt, const tg_json *answer) {
    tg_ctx *err = err_of(c);
    const int32_t bos = tg_tok_bos(c->tok), eos = tg_tok_eos(c->tok);
    c->asked.n = c->answered.n = 0;
    if (tg_tok_adds_bos(c->tok)) TG_TRY(tg_ids_push(err, &c->asked, bos));
    TG_TRY(tg_tok_encode(err, c->tok, prompt->u.text, prompt->length, 0, &c->asked));
    TG_TRY(tg_tok_encode(err, c->tok, answer->u.text, answer->length, 0, &c->answered));
    if (eos >= 0) TG_TRY(tg_ids_push(err, &c->answered, eos));
    if (c->asked.n == 0 || c->answered.n == 0)
        return tg_fail(err, TG_E_DATA, "want a token of the prompt and of each answer, have none");
    TG_TRY(begin_row(c, true));
    row *r = &c->row[c->n - 1];
    r->n = c->asked.n + c->answered.n;
    for (size_t i = 0; i < c->asked.n; i++) TG_TRY(tg_ids_push(err, &c->ids, c->asked.id[i]));
    for (size_t i = 0; i < c->answered.n; i++)
        TG_TRY(tg_ids_push(err, &c->ids, ~c->answered.id[i]));
    return TG_OK;
}

static size_t nodes_of(const tg_json *list) {
    const tg_json *last = tg_json_first(list);
    for (const tg_json *m = last; m; m = tg_json_next(m)) last = m;
    if (!last) return 0;
    const tg_json *end = last + 1; /* behind the last message's own members */
    for (uint32_t open = last->count; open > 0; end++) open += end->count - 1;
    return (size_t)(end - (list + 1));
}

/* {"messages": [prompt.., answer..]}, whose last message is the answer: a copy of the line's nodes
 * in the order that the reader would have made. */
static tg_status join_messages(chats *c, tg_arena *arena, const tg_json *prompt,
                               const tg_json *answer, tg_json **out) {
    const size_t before = prompt ? nodes_of(prompt) : 0, n = nodes_of(answer);
    tg_json *node = tg_arena_array(arena, 2 + before + n, sizeof *node);
    const tg_json **keyed = tg_arena_array(arena, 1, sizeof *keyed);
    if (!node || !keyed)
        return tg_fail_memory(err_of(c), "messages", (2 + before + n) * sizeof *node);
    keyed[0] = node + 1;
    node[0] = (tg_json) {
        .u.keyed = keyed, .document = answer->document, .count = 1, .type = TG_JSON_OBJECT
    };
    node[1] = *answer;
    node[1].key = "messages";
    node[1].key_length = 8;
    node[1].skip = 0;
    if (before) memcpy(node + 2, prompt + 1, before * sizeof *node);
    if (n) memcpy(node + 2 + before, answer + 1, n * sizeof *node);
    tg_json *last = NULL;
    for (uint32_t i = 0; prompt && i < prompt->count; i++)
        last = last ? last + last->skip : node + 2;
    if (last) last->skip = (uint32_t)(node + 2 + before - last);
    node[1].count += prompt ? prompt->count : 0;
    *out = node;
    return TG_OK;
}

/* An answer as messages, through the template. Copies of objects look their members up in the
 * line's own nodes, which live as long. */
static tg_status add_messages(chats *c, tg_arena *arena, const tg_json *prompt,
                              const tg_json *answer) {
    tg_json *line = NULL;
    const tg_json *role = NULL;
    if (!c->chat)
        return tg_fail(err_of(c), TG_E_UNSUPPORTED,
                       "%s: want a template for messages, have none in the file: name one",
                       answer->key);
    if (prompt && answer->count != 1)
        return tg_fail(err_of(c), TG_E_DATA,
                       "%s: want one message behind a prompt of messages, have %u", answer->key,
                       answer->count);
    TG_TRY(join_messages(c, arena, prompt, answer, &line));
    for (const tg_json *m = tg_json_first(answer); m; m = tg_json_next(m))
        TG_TRY(tg_json_want(err_of(c), m, "role", TG_JSON_STRING, &role));
    if (line[1].count < 2 || !tg_json_is(role, "assistant"))
        return tg_fail(err_of(c), TG_E_DATA,
                       "%s: want an answer of the role \"assistant\" behind a question, have none",
                       answer->key);
    const uint32_t n = line[1].count;
    const size_t rows_before = c->n;
    TG_TRY(show(c, line, line + 1, n - 1, 0, rows_before));
    return show(c, line, line + 1, n, TG_CHAT_WHOLE, rows_before);
}

/* "chosen" and "rejected" are strings behind a "prompt" that is one, or lists of messages: one
 * answer behind a "prompt" that is a list, or whole conversations, which end in the answer. */
static tg_status read_pair(chats *c, tg_arena *arena, const tg_json *line) {
    static const char *const keys[] = { "chosen", "rejected" };
    const tg_json *prompt = tg_json_get(line, "prompt");
    const tg_json *first = tg_json_get(line, keys[0]), *answer;
    const bool plain = first && tg_json_kind(first) == TG_JSON_STRING;
    if (plain) TG_TRY(tg_json_want(err_of(c), line, "prompt", TG_JSON_STRING, &prompt));
    /* Data sets repeat the question as a text beside whole conversations. */
    if (!plain && prompt && tg_json_kind(prompt) == TG_JSON_STRING) prompt = NULL;
    if (!plain && prompt) TG_TRY(tg_json_want(err_of(c), line, "prompt", TG_JSON_ARRAY, &prompt));
    for (int i = 0; i < 2; i++) {
        TG_TRY(tg_json_want(err_of(c), line, keys[i], plain ? TG_JSON_STRING : TG_JSON_ARRAY,
                            &answer));
        TG_TRY(plain ? add_plain(c, prompt, answer) : add_messages(c, arena, prompt, answer));
    }
    c->row[c->n - 1].begins = false;
    return TG_OK;
}

static tg_status read_line(chats *c, const char *name, size_t number, const char *text, size_t n) {
    char where[512];
    snprintf(where, sizeof where, "%.400s: line %zu", name, number);
    tg_arena arena;
    tg_arena_init(&arena, &err_of(c)->mem);
    const tg_json *line;
    tg_status s = tg_json_parse(err_of(c), &arena, where, text, n, NULL, &line);
    if (s == TG_OK)
        s = tg_fail_named(err_of(c), where,
                          c->group == 2 ? read_pair(c, &arena, line) : read_conversation(c, line));
    tg_arena_deinit(&arena);
    return s;
}

static bool is_blank(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') return false;
    return true;
}

static tg_status read_all(chats *c, const char *name, const char *bytes, size_t n_bytes,
                          uint64_t val_from, tg_chats_info *info) {
    size_t number = 0;
    for (size_t at = 0; at < n_bytes; number++) {
        const char *nl = memchr(bytes + at, '\n', n_bytes - at);
        const size_t n = nl ? (size_t)(nl - (bytes + at)) : n_bytes - at;
        if (!is_blank(bytes + at, n)) {
            TG_TRY(read_line(c, name, number + 1, bytes + at, n));
            info->conversations++;
            if (val_from == 0 || at < val_from) c->n_held = c->n;
        }
        at += n + 1;
    }
    if (c->n_held == 0)
        return tg_fail(err_of(c), TG_E_DATA, "%s: want a %s to train on, have none", name,
                       c->group == 2 ? "pair" : "conversation");
    return TG_OK;
}

/* ------------------------------------------------------------------------------------------ rows
 */

/* A row of T tokens: what is longer is cut, what is shorter ends in tokens that nothing is asked
 * of. */
static void put_row(const chats *c, size_t i, size_t T, int32_t *ids, int32_t *targets) {
    const row *r = &c->row[i];
    const int32_t *kept = c->ids.id + r->first;
    for (size_t t = 0; t < T; t++) {
        ids[t] = t < r->n ? id_of(kept[t]) : 0;
        targets[t] = t + 1 < r->n && kept[t + 1] < 0 ? ~kept[t + 1] : TG_NO_TARGET;
    }
}

/* Every conversation once an epoch, in an order that follows from seed and epoch (Fisher, Yates).
 */
static void order(chats *c, size_t n, uint64_t epoch, uint64_t seed) {
    if (c->n_ordered == n && c->epoch == epoch && c->seed == seed) return;
    for (size_t i = 0; i < n; i++) c->order[i] = (uint32_t)i;
    for (size_t i = n; i > 1; i--) {
        uint32_t x[4];
        tg_philox(seed, epoch * n + i, TG_RNG_BATCH, 1, x);
        const size_t k = (size_t)tg_rng_below(tg_rng_draw64(x), i);
        const uint32_t other = c->order[k];
        c->order[k] = c->order[i - 1];
        c->order[i - 1] = other;
    }
    c->epoch = epoch;
    c->seed = seed;
    c->n_ordered = n;
}

static uint64_t ordered_row(void *user, uint64_t n) {
    chats *c = user;
    const size_t groups = (size_t)c->text->rows_train / c->group;
    order(c, groups, n / c->group / groups, c->text->rows_seed);
    return c->order[n / c->group % groups] * c->group + n % c->group;
}

static int train_row(void *user, uint64_t n, size_t T, int32_t *ids, int32_t *targets) {
    put_row(user, (size_t)ordered_row(user, n), T, ids, targets);
    return 0;
}

static int val_row(void *user, uint64_t n, size_t T, int32_t *ids, int32_t *targets) {
    const chats *c = user;
    const size_t n_train = (size_t)c->text->rows_train;
    if (n >= c->n - n_train) return 1;
    put_row(c, n_train + (size_t)n, T, ids, targets);
    return 0;
}

/* Of a run that begins: a conversation validates with all of its rows, or with none. Other runs
 * on the same text keep their own answer. */
static uint64_t split(void *user, double val_fraction, uint64_t *n_val) {
    const chats *c = user;
    size_t n_train = c->n_held;
    if (!c->is_held) {
        n_train = c->n - (size_t)(val_fraction * (double)c->n);
        while (n_train < c->n && !c->row[n_train].begins) n_train++;
    }
    *n_val = c->n - n_train;
    return n_train;
}

static bool predicts(const chats *c, const row *r, size_t T) {
    for (size_t t = 1; t < r->n && t <= T; t++)
        if (c->ids.id[r->first + t] < 0) return true;
    return false;
}

/* Of conversations one is enough; of pairs each answer, as one that is cut off whole would be as
 * likely as can be. */
static bool predict(const void *user, uint64_t first, uint64_t n, size_t T) {
    const chats *c = user;
    const bool each = c->group == 2;
    for (const row *r = c->row + first, *end = r + n; r < end; r++)
        if (predicts(c, r, T) != each) return !each;
    return each;
}

/* ---------------------------------------------------------------------------------------- object
 */

static void free_chats(void *user) {
    chats *c = user;
    const tg_mem mem = err_of(c)->mem;
    tg_ids_deinit(&c->ids);
    tg_ids_deinit(&c->asked);
    tg_ids_deinit(&c->answered);
    tg_free(&mem, c->row, c->room * sizeof *c->row);
    tg_free(&mem, c->order, c->n * sizeof *c->order);
    tg_free(&mem, c, sizeof *c);
}

static void count(const chats *c, tg_chats_info *info) {
    info->rows = c->n;
    info->tokens = c->ids.n;
    double bytes = 0;
    for (size_t i = 0; i < c->ids.n; i++) {
        size_t n = 0;
        if (c->ids.id[i] >= 0) continue;
        tg_tok_bytes(c->tok, ~c->ids.id[i], &n);
        bytes += (double)n;
        info->targets++;
    }
    if (c->group == 1) c->text->rows_token_bytes = bytes / (double)info->targets;
    for (size_t i = 0; i < c->n; i++)
        if (c->row[i].n > info->longest) info->longest = c->row[i].n;
}

/* What the rows follow from, besides the vocabulary, which is the run's own. Pairs are no
 * conversations. */
static uint32_t mark_of(const chats *c) {
    if (c->group == 2)
        return ~tg_crc32c((uint32_t)c->n_held * c->is_held, c->ids.id,
                          c->ids.n * sizeof *c->ids.id);
    return tg_crc32c(c->is_held ? (uint32_t)c->n_held : 0, c->ids.id, c->ids.n * sizeof *c->ids.id);
}

static tg_status fill(chats *c, const char *name, const char *bytes, size_t n_bytes,
                      uint64_t val_from, tg_chats_info *info) {
    if (c->chat) TG_TRY(tg_chat_ends(err_of(c), c->chat, c->tok, c->ends, &c->n_ends));
    TG_TRY(read_all(c, name, bytes, n_bytes, val_from, info));
    c->order = tg_alloc(&err_of(c)->mem, c->n * sizeof *c->order);
    if (!c->order) return tg_fail_memory(err_of(c), "order of rows", c->n * sizeof *c->order);
    c->is_held = val_from > 0;
    count(c, info);
    c->text->train_row = train_row;
    c->text->val_row = val_row;
    c->text->rows_split = split;
    c->text->rows_predict = predict;
    c->text->rows_mark = mark_of(c);
    c->text->pair_row = ordered_row;
    c->text->n_pair_rows = c->text->beta > 0 ? c->n : 0;
    return TG_OK;
}

tg_status tg_chats_new(tg_context *ctx, const tg_tok *tok, const tg_chat_template *chat,
                       tg_jinja_date date, const char *name, const char *bytes, size_t n_bytes,
                       uint64_t val_from, double beta, tg_chats_info *info, tg_text **out) {
    tg_text *text;
    *info = (tg_chats_info) { .rows = 0 };
    TG_TRY(tg_text_new_memory(ctx, NULL, 0, &text));
    chats *c = tg_alloc(&ctx->err.mem, sizeof *c);
    if (!c) {
        tg_text_delete(text);
        return tg_fail_memory(&ctx->err, "conversations", sizeof *c);
    }
    *c =
        (chats) { .text = text, .tok = tok, .chat = chat, .date = date, .group = beta > 0 ? 2 : 1 };
    text->beta = beta;
    tg_ids_init(&c->ids, &ctx->err.mem);
    tg_ids_init(&c->asked, &ctx->err.mem);
    tg_ids_init(&c->answered, &ctx->err.mem);
    text->date[0] = date.year;
    text->date[1] = date.month;
    text->date[2] = date.day;
    text->rows_user = c;
    text->rows_free = free_chats;
    const tg_status s = fill(c, name, bytes, n_bytes, val_from, info);
    if (s == TG_OK)
        *out = text;
    else
        tg_text_delete(text);
    return s;
}
