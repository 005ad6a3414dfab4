/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_generate.c - the engine of generation: what callbacks hear, why texts end, what happens when
 * the window is full, what is kept of a prompt.
 */
#include "engine_util.h"

#include <math.h>

enum { V = 256, CTX = 64, N = 24 };
static const char PROMPT[] = "To be, or not";
enum { PROMPT_TOK = sizeof PROMPT - 1 };

typedef struct opened {
    tg_context *ctx;
    tg_model *model;
    tg_session *session;
} opened;

static opened open_nano(void) {
    static const tg_model_config nano = { 1, 16, 2, CTX, V, 64 };
    opened o;
    o.ctx = open_context(1, NULL, NULL);
    OK(o.ctx, tg_model_new(o.ctx, &nano, 42, &o.model));
    OK(o.ctx, tg_session_new(o.ctx, o.model, 0, &o.session));
    return o;
}

static void close_nano(opened *o) {
    tg_session_free(o->session);
    tg_model_free(o->model);
    tg_context_free(o->ctx);
}

/* All that callbacks hear. */
typedef struct heard {
    int32_t ids[CTX * 4];
    size_t n, n_texts, asked, stop_after; /* stop_after tokens; 0: never */
    double logprob[CTX * 4], best[CTX * 4];
    char told[1024], written[1024]; /* by tokens, and by texts */
    size_t n_told, n_written;
    const int32_t *room; /* [n_room] what make_room answers */
    size_t n_room, n_made;
} heard;

static int hear_token(void *user, const tg_token *t) {
    heard *h = user;
    memcpy(h->told + h->n_told, t->text, t->n_bytes);
    h->n_told += t->n_bytes;
    if (t->id < 0) return 0;
    h->ids[h->n] = t->id;
    h->logprob[h->n] = t->logprob;
    h->best[h->n] = 0;
    double sum = 0;
    for (size_t i = 0; i < t->n_best; i++) {
        if (t->best[i].id == t->id) h->best[h->n] = t->best[i].logprob;
        if (i > 0) assert_true(t->best[i].logprob <= t->best[i - 1].logprob);
        sum += exp(t->best[i].logprob);
    }
    if (t->n_best == V) assert_true(fabs(sum - 1) < 1e-9);
    h->n++;
    return h->n == h->stop_after;
}

static int hear_text(void *user, const char *bytes, size_t n) {
    heard *h = user;
    assert_true(n > 0);
    memcpy(h->written + h->n_written, bytes, n);
    h->n_written += n;
    h->n_texts++;
    return 0;
}

static int ask(void *user) {
    heard *h = user;
    return ++h->asked == h->stop_after;
}

static size_t give_room(void *user, size_t n_made, const int32_t **ids) {
    heard *h = user;
    h->n_made = n_made;
    *ids = h->room;
    return h->n_room;
}

static tg_generation generation(heard *h, size_t n_tokens) {
    tg_generation what = behind_text(PROMPT, PROMPT_TOK, n_tokens);
    what.token = hear_token;
    what.write = hear_text;
    what.user = h;
    return what;
}

/* Ids, text and logarithms are those of the calls that give them one by one. */
static void tokens_are_told(void **state) {
    (void)state;
    opened o = open_nano();
    heard h = { .n = 0 };
    int32_t ids[N], prompt[PROMPT_TOK];
    tg_generate_stats stats;
    tg_generation what = generation(&h, N);
    what.logprobs = true;
    what.n_best = 2 * V;
    what.new_ids = ids;
    OK(o.ctx, tg_session_continue(o.session, &what, &stats));
    assert_int_equal(stats.end, TG_END_LIMIT);
    assert_int_equal(stats.new_tokens, N);
    assert_int_equal(h.n, N);
    assert_memory_equal(h.ids, ids, sizeof ids);
    assert_int_equal(h.n_told, h.n_written);
    assert_memory_equal(h.told, h.written, h.n_told);
    assert_true(h.n_texts <= N + 1);
    for (int i = 0; i < PROMPT_TOK; i++) prompt[i] = PROMPT[i];
    OK(o.ctx, tg_session_rewind(o.session, 0));
    OK(o.ctx, tg_session_eval(o.session, prompt, PROMPT_TOK, NULL));
    for (int i = 0; i < N; i++) {
        const float *logits = tg_session_logits(o.session);
        double sum = 0;
        for (int k = 0; k < V; k++) sum += exp((double)logits[k]);
        assert_true(fabs(h.logprob[i] - ((double)logits[ids[i]] - log(sum))) < 1e-9);
        assert_true(fabs(h.logprob[i] - h.best[i]) < 1e-12);
        int32_t id;
        OK(o.ctx, tg_session_sample(o.session, NULL, (uint64_t)i, &id));
        assert_int_equal(id, ids[i]);
        OK(o.ctx, tg_session_eval(o.session, &id, 1, NULL));
    }
    /* Draws that begin at another number are the later ones. */
    heard later = { .n = 0 };
    int32_t all[PROMPT_TOK + 5];
    memcpy(all, prompt, sizeof prompt);
    memcpy(all + PROMPT_TOK, ids, 5 * sizeof *ids);
    what = generation(&later, N - 5);
    what.ids = all;
    what.n_ids = PROMPT_TOK + 5;
    what.first_draw = 5;
    OK(o.ctx, tg_session_continue(o.session, &what, NULL));
    assert_memory_equal(later.ids, ids + 5, (N - 5) * sizeof *ids);
    close_nano(&o);
}

static void ends_are_told(void **state) {
    (void)state;
    opened o = open_nano();
    heard whole = { .n = 0 };
    tg_generate_stats stats;
    tg_generation what = generation(&whole, N);
    tg_sample_options greedy = tg_sample_options_default();
    greedy.temperature = 0; /* of a model that knows nothing: bytes that come again */
    greedy.presence_penalty = 50;
    what.sample = &greedy;
    OK(o.ctx, tg_session_continue(o.session, &what, &stats));
    assert_int_equal(stats.end, TG_END_LIMIT);
    heard h = { .n = 0 };
    tg_generation some = what;
    some.user = &h;
    some.ends = &whole.ids[4];
    some.n_ends = 1;
    OK(o.ctx, tg_session_continue(o.session, &some, &stats));
    assert_int_equal(stats.end, TG_END_TOKEN);
    assert_int_equal(stats.new_tokens, 5);
    h = (heard) { .stop_after = 3 };
    some = what;
    some.user = &h;
    assert_int_equal(tg_session_continue(o.session, &some, &stats), TG_STOPPED);
    assert_int_equal(stats.end, TG_END_CANCELLED);
    assert_int_equal(h.n, 3);
    h = (heard) { .stop_after = 4 };
    some.token = NULL;
    some.cancel = ask;
    assert_int_equal(tg_session_continue(o.session, &some, &stats), TG_STOPPED);
    assert_int_equal(stats.end, TG_END_CANCELLED);
    /* A stop of the text: some ASCII of what was written. */
    size_t at = 0;
    while (at < whole.n_written && (whole.written[at] & 0x80 || !whole.written[at])) at++;
    assert_true(at < whole.n_written);
    const char stop[2] = { whole.written[at], 0 }, *const stops[1] = { stop };
    OK(o.ctx, tg_session_set_stops(o.session, stops, 1));
    h = (heard) { .n = 0 };
    some.token = hear_token;
    some.cancel = NULL;
    OK(o.ctx, tg_session_continue(o.session, &some, &stats));
    assert_int_equal(stats.end, TG_END_STOP);
    assert_int_equal(h.n_told, at);
    assert_memory_equal(h.told, whole.told, at);
    close_nano(&o);
}

static void a_full_window(void **state) {
    (void)state;
    opened o = open_nano();
    heard h = { .n = 0 };
    tg_generate_stats stats;
    tg_generation what = generation(&h, 2 * (size_t)CTX);
    OK(o.ctx, tg_session_continue(o.session, &what, &stats));
    assert_int_equal(stats.new_tokens, 2 * CTX);
    assert_true(stats.slides >= 2);
    assert_int_equal(stats.slid_tokens, stats.slides * CTX / 2);
    const heard slid = h;
    h = (heard) { .n = 0 };
    what.full = TG_FULL_STOP;
    OK(o.ctx, tg_session_continue(o.session, &what, &stats));
    assert_int_equal(stats.end, TG_END_FULL);
    assert_int_equal(stats.new_tokens, CTX - PROMPT_TOK + 1); /* the last one is not fed */
    assert_int_equal(stats.slid_tokens, 0);
    assert_memory_equal(h.ids, slid.ids, stats.new_tokens * sizeof *h.ids);
    /* A shorter prompt takes the place of the one before, and the text goes on behind it. */
    enum { SHORT = 5 };
    int32_t room[CTX] = { 1, 2, 3, 4, 5 };
    const size_t made = stats.new_tokens, n = 30;
    h = (heard) { .room = room, .n_room = SHORT };
    what.full = TG_FULL_SLIDE;
    what.make_room = give_room;
    what.n_tokens = made + 4;
    OK(o.ctx, tg_session_continue(o.session, &what, &stats));
    assert_int_equal(h.n_made, made);
    assert_int_equal(stats.slid_tokens, PROMPT_TOK - SHORT);
    assert_memory_equal(h.ids, slid.ids, made * sizeof *h.ids);
    heard behind = { .n = 0 };
    memcpy(room + SHORT, h.ids, made * sizeof *room);
    tg_generation rest = generation(&behind, 4);
    rest.ids = room;
    rest.n_ids = SHORT + made;
    rest.first_draw = made;
    OK(o.ctx, tg_session_continue(o.session, &rest, NULL));
    assert_memory_equal(behind.ids, h.ids + made, 4 * sizeof *room);
    h = (heard) { .room = room, .n_room = 0 };
    OK(o.ctx, tg_session_continue(o.session, &what, &stats));
    assert_int_equal(stats.end, TG_END_FULL);
    h.n_room = n;
    assert_int_equal(tg_session_continue(o.session, &what, &stats), TG_E_FULL);
    /* A prompt that leaves no place. */
    rest.n_ids = CTX;
    rest.full = TG_FULL_STOP;
    assert_int_equal(tg_session_continue(o.session, &rest, &stats), TG_E_FULL);
    rest.full = TG_FULL_SLIDE;
    OK(o.ctx, tg_session_continue(o.session, &rest, &stats));
    assert_int_equal(stats.prompt_dropped, 1);
    rest.make_room = give_room;
    assert_int_equal(tg_session_continue(o.session, &rest, &stats), TG_E_FULL);
    close_nano(&o);
}

/* A text that begins as what the session has gives what a new session gives; other weights, what a
 * new session gives with them. */
static void what_is_kept(void **state) {
    (void)state;
    opened o = open_nano();
    heard h = { .n = 0 }, again = { .n = 0 };
    tg_generate_stats stats;
    tg_generation what = generation(&h, 8);
    OK(o.ctx, tg_session_continue(o.session, &what, &stats));
    assert_int_equal(stats.prompt_kept, 0);
    what.user = &again;
    OK(o.ctx, tg_session_continue(o.session, &what, &stats));
    assert_int_equal(stats.prompt_kept, PROMPT_TOK - 1);
    assert_memory_equal(again.ids, h.ids, 8 * sizeof *h.ids);
    char text[1000];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i * i % 26);
    tg_text *data;
    tg_trainer *trainer;
    tg_train_options t = tg_train_options_default();
    t.batch = 2;
    t.lr = 0.1;
    t.warmup = 0;
    OK(o.ctx, tg_text_from_memory(o.ctx, text, sizeof text, &data));
    OK(o.ctx, tg_trainer_new(o.ctx, o.model, data, &t, &trainer));
    OK(o.ctx, tg_trainer_step(trainer, NULL));
    size_t same = 99;
    int32_t prompt[PROMPT_TOK];
    for (int i = 0; i < PROMPT_TOK; i++) prompt[i] = PROMPT[i];
    again = (heard) { .n = 0 };
    OK(o.ctx, tg_session_continue(o.session, &what, &stats));
    assert_int_equal(stats.prompt_kept, 0);
    tg_session *fresh;
    heard want = { .n = 0 };
    OK(o.ctx, tg_session_new(o.ctx, o.model, 0, &fresh));
    what.user = &want;
    OK(o.ctx, tg_session_continue(fresh, &what, NULL));
    assert_memory_equal(again.ids, want.ids, 8 * sizeof *want.ids);
    OK(o.ctx, tg_session_reuse(o.session, prompt, PROMPT_TOK, &same));
    assert_int_equal(same, PROMPT_TOK - 1);
    OK(o.ctx, tg_trainer_step(trainer, NULL));
    OK(o.ctx, tg_session_reuse(o.session, prompt, PROMPT_TOK, &same));
    assert_int_equal(same, 0);
    tg_session_free(fresh);
    tg_trainer_free(trainer);
    tg_text_free(data);
    close_nano(&o);
}

static void allow_even(void *user, const int32_t *tokens, size_t n, uint32_t *allowed) {
    size_t *asked = user;
    ++*asked;
    assert_true(n >= PROMPT_TOK);
    assert_true(tokens[0] == 'T' && tokens[1] == 'o');
    for (size_t i = 0; i < V / 32; i++) allowed[i] &= 0x55555555;
}
static void allow_none(void *user, const int32_t *tokens, size_t n, uint32_t *allowed) {
    (void)user;
    (void)tokens;
    (void)n;
    memset(allowed, 0, V / 8);
}

/* A mask counts in both ways of drawing, and is taken back. */
static void a_mask(void **state) {
    (void)state;
    opened o = open_nano();
    heard free = { .n = 0 }, even = { .n = 0 }, again = { .n = 0 };
    size_t asked = 0;
    tg_generation what = generation(&free, N);
    OK(o.ctx, tg_session_continue(o.session, &what, NULL));
    OK(o.ctx, tg_session_set_mask(o.session, allow_even, &asked));
    what.user = &even;
    OK(o.ctx, tg_session_continue(o.session, &what, NULL));
    assert_int_equal(asked, N);
    for (int i = 0; i < N; i++) assert_int_equal(even.ids[i] % 2, 0);
    assert_memory_not_equal(even.ids, free.ids, N * sizeof *free.ids);
    OK(o.ctx, tg_session_set_mask(o.session, allow_none, NULL));
    int32_t id;
    assert_int_equal(tg_session_sample(o.session, NULL, 0, &id), TG_E_ARG);
    OK(o.ctx, tg_session_set_mask(o.session, NULL, NULL));
    what.user = &again;
    OK(o.ctx, tg_session_continue(o.session, &what, NULL));
    assert_memory_equal(again.ids, free.ids, N * sizeof *free.ids);
    close_nano(&o);
}

/* ------------------------------------------------------------------------------------------ drafts
 */

typedef struct written {
    int32_t ids[CTX];
    tg_generate_stats stats;
    size_t tokens;
    float *logits; /* [vocab] at the end */
    size_t vocab;
} written;

static written write_with(tg_context *ctx, tg_model *m, int32_t window, double temperature,
                          size_t draft, tg_session *drafts) {
    static const int32_t prompt[] = { 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2 };
    written w = { .tokens = 0 };
    tg_model_info info;
    tg_session *s;
    OK(ctx, tg_model_get_info(m, &info));
    OK(ctx, tg_session_new(ctx, m, window, &s));
    tg_generation what = behind_ids(prompt, sizeof prompt / sizeof *prompt, 40);
    const int32_t none = -1;
    what.ends = &none;
    what.n_ends = 1;
    tg_sample_options sample = tg_sample_options_default();
    sample.temperature = temperature;
    sample.repeat_penalty = temperature > 0 ? 1.2 : 1;
    what.sample = &sample;
    what.new_ids = w.ids;
    what.draft = draft;
    what.draft_session = drafts;
    OK(ctx, tg_session_continue(s, &what, &w.stats));
    w.tokens = tg_session_tokens(s);
    w.vocab = (size_t)info.config.vocab;
    w.logits = malloc(w.vocab * sizeof *w.logits);
    memcpy(w.logits, tg_session_logits(s), w.vocab * sizeof *w.logits);
    tg_session_free(s);
    return w;
}

/* The same tokens and the same bits, greedy and drawn, in windows that slide, by either guess. */
static void guesses_change_nothing(void **state) {
    (void)state;
    static const char *const paths[] = {
        "test/golden/lm/llama3.gguf", "test/golden/lm/gemma3.gguf",   "test/golden/lm/qwen3.gguf",
        "test/golden/lm/lfm2.gguf",   "test/golden/lm/granite.gguf",  "test/golden/lm/qwen35.gguf",
        "test/golden/lm/falcon.gguf", "test/golden/lm/nemotron.gguf", ""
    };
    static const tg_model_config nano = { 1, 16, 2, CTX, V, 64 };
    size_t accepted = 0;
    for (size_t k = 0; k < sizeof paths / sizeof *paths; k++) {
        tg_context *ctx = open_context(1, NULL, NULL);
        tg_model *m;
        tg_session *drafts;
        OK(ctx, *paths[k] ? tg_model_open(ctx, paths[k], &m) : tg_model_new(ctx, &nano, 42, &m));
        OK(ctx, tg_session_new(ctx, m, 0, &drafts));
        for (int hot = 0; hot < 2; hot++)
            for (int window = 20; window <= 60; window += 40) {
                const double t = hot ? 0.9 : 0;
                written want = write_with(ctx, m, window, t, 0, NULL);
                assert_int_equal(want.stats.drafted, 0);
                for (size_t i = 0; i < 6; i++) {
                    const size_t draft = i % 3 == 0 ? 1 : i % 3 == 1 ? 4 : TG_DRAFT_MAX;
                    written have = write_with(ctx, m, window, t, draft, i < 3 ? NULL : drafts);
                    assert_memory_equal(have.ids, want.ids, 40 * sizeof *want.ids);
                    assert_int_equal(have.tokens, want.tokens);
                    assert_int_equal(have.stats.slides, want.stats.slides);
                    assert_memory_equal(have.logits, want.logits, want.vocab * sizeof *want.logits);
                    if (i >= 3 && !hot) assert_int_equal(have.stats.accepted, have.stats.drafted);
                    assert_true(have.stats.accepted <= have.stats.drafted);
                    accepted += have.stats.accepted;
                    free(have.logits);
                }
                free(want.logits);
            }
        tg_session_free(drafts);
        tg_model_free(m);
        tg_context_free(ctx);
    }
    assert_true(accepted > 100);
}

static void what_is_refused(void **state) {
    (void)state;
    opened o = open_nano();
    heard h = { .n = 0 };
    tg_generation what = generation(&h, 3);
    assert_int_equal(tg_session_continue(NULL, &what, NULL), TG_E_ARG);
    assert_int_equal(tg_session_continue(o.session, NULL, NULL), TG_E_ARG);
    what.full = (tg_full)2;
    assert_int_equal(tg_session_continue(o.session, &what, NULL), TG_E_ARG);
    what = generation(&h, 3);
    what.n_ends = TG_ENDS_MAX + 1;
    what.ends = h.ids;
    assert_int_equal(tg_session_continue(o.session, &what, NULL), TG_E_ARG);
    what = generation(&h, 3);
    what.ids = h.ids;
    assert_int_equal(tg_session_continue(o.session, &what, NULL), TG_E_ARG);
    what = generation(&h, 3);
    what.prompt = NULL;
    assert_int_equal(tg_session_continue(o.session, &what, NULL), TG_E_ARG);
    what = generation(&h, 3);
    tg_sample_options below = tg_sample_options_default();
    below.temperature = -1;
    what.sample = &below;
    assert_int_equal(tg_session_continue(o.session, &what, NULL), TG_E_ARG);
    what = generation(&h, 3);
    what.draft = 4;
    what.draft_session = o.session;
    assert_int_equal(tg_session_continue(o.session, &what, NULL), TG_E_ARG);
    what.draft_session = NULL;
    what.draft = TG_DRAFT_MAX + 1;
    assert_int_equal(tg_session_continue(o.session, &what, NULL), TG_E_ARG);
    assert_int_equal(h.n, 0);
    close_nano(&o);
}

/* What a model is made to write, byte by byte, and what is heard of it. */
typedef struct forced {
    const char *rest;
    char part[3][64];
    size_t n[3], n_tokens;
    char written[64];
    size_t n_written;
} forced;

static void allow_next(void *user, const int32_t *tokens, size_t n, uint32_t *allowed) {
    forced *f = user;
    const unsigned char next = (unsigned char)*f->rest++;
    (void)tokens;
    (void)n;
    memset(allowed, 0, V / 8);
    allowed[next / 32] = 1u << next % 32;
}

static int hear_part(void *user, const tg_token *t) {
    forced *f = user;
    memcpy(f->part[t->part] + f->n[t->part], t->text, t->n_bytes);
    f->n[t->part] += t->n_bytes;
    f->n_tokens += t->id >= 0;
    return 0;
}

static int hear_answer(void *user, const char *bytes, size_t n) {
    forced *f = user;
    memcpy(f->written + f->n_written, bytes, n);
    f->n_written += n;
    return 0;
}

/* A token for each byte, marks and all. What might be a stop is held back, and comes out at once,
 * in two parts. */
static void parts_are_told(void **state) {
    (void)state;
    static const char answer[] = "<think>Is it?</think>It is. <tool_call>f()</tool_call><";
    static const struct {
        const char *prompt, *name, *said, *thought, *called;
        bool parts;
    } cases[] = {
        { "Q", "{<think><tool_call>", "It is. <", "Is it?", "f()", true },
        { "Q<think>\n", "{<think>", "It is. <tool_call>f()</tool_call><", "<think>Is it?", "",
          true },
        { "Q<think>a</think>", "qwen3", "It is. <tool_call>f()</tool_call><", "Is it?", "", true },
        { "Q", "smollm2", answer, "", "", true },
        { "Q", "{<think>", answer, "", "", false },
    };
    opened o = open_nano();
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        tg_session *s;
        OK(o.ctx, tg_session_new(o.ctx, o.model, 0, &s));
        forced f = { .rest = answer };
        tg_generation what = tg_generation_default();
        what.prompt = cases[c].prompt;
        what.prompt_bytes = strlen(what.prompt);
        what.n_tokens = sizeof answer - 1;
        what.token = hear_part;
        what.write = hear_answer;
        what.user = &f;
        what.parts = cases[c].parts;
        what.chat_template = cases[c].name;
        static const char *const stops[] = { "?</think>It is!" };
        OK(o.ctx, tg_session_set_stops(s, stops, 1));
        OK(o.ctx, tg_session_set_mask(s, allow_next, &f));
        OK(o.ctx, tg_session_continue(s, &what, NULL));
        assert_int_equal(f.n_tokens, sizeof answer - 1);
        assert_string_equal(f.part[TG_ANSWER_TEXT], cases[c].said);
        assert_string_equal(f.part[TG_ANSWER_THINKING], cases[c].thought);
        assert_string_equal(f.part[TG_ANSWER_TOOL_CALL], cases[c].called);
        assert_string_equal(f.written, cases[c].said);
        tg_session_free(s);
    }
    tg_generation what = tg_generation_default();
    what.chat_template = "no such";
    assert_int_equal(tg_session_continue(o.session, &what, NULL), TG_E_ARG);
    close_nano(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_told), cmocka_unit_test(ends_are_told),
        cmocka_unit_test(a_full_window),   cmocka_unit_test(what_is_kept),
        cmocka_unit_test(a_mask),          cmocka_unit_test(guesses_change_nothing),
        cmocka_unit_test(parts_are_told),  cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
