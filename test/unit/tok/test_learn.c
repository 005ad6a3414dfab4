/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_learn.c - vocabularies that are trained: against those of tokenizers' trainers on the same
 * text (tools/oracle/vocabulary.py), whatever pieces and slices they are trained in; what is
 * refused; and what lint and forecast say in their tokens.
 */
#include "engine_util.h"
#include "fail_alloc.h"

#include "../../golden/tok/vocabularies.h"
#include "tok/learn/learn.h"

/* ------------------------------------------------------------------------------------ the text */

static uint32_t draw(uint64_t *x, uint32_t n) {
    *x = (*x * 1664525 + 1013904223) & 0xffffffff;
    return (uint32_t)(*x >> 16) % n;
}

/* That of tools/oracle/vocabulary.py, from the same generator. The caller frees it. */
static char *make_text(size_t *n) {
    static const char *const syllables[] = {
        "ba", "re", "th", "in", "ou", "sta", "e",  "nd", "er",
        "é",  "lo", "中", "a",  "😀", "an",  "ll", "qu", "ing"
    };
    static const char *const joints[] = { " ",    " ",  " ",   " ",  ", ", ". ", "\n",   "  ",
                                          "\n\n", " 1", "'s ", "\t", "! ", "-",  " 207 " };
    char *text = malloc(3000 * 40);
    uint64_t x = 1;
    *n = 0;
    for (int word = 0; word < 3000; word++) {
        for (uint32_t k = 1 + draw(&x, 4); k > 0; k--) {
            const uint32_t a = draw(&x, 18), b = draw(&x, 18);
            const char *s = syllables[a < b ? a : b];
            memcpy(text + *n, s, strlen(s));
            *n += strlen(s);
        }
        const char *s = joints[draw(&x, 15)];
        memcpy(text + *n, s, strlen(s));
        *n += strlen(s);
    }
    return text;
}

/* What write has been given, as a tokenizer. */
typedef struct made {
    tg_buf json;
    tg_memory_file *file;
    tg_tokenizer *tok;
} made;

static int take(void *user, const char *bytes, size_t n_bytes) {
    tg_buf_append(user, bytes, n_bytes);
    return 0;
}

static void begin(made *m) {
    const tg_mem mem = tg_mem_default();
    *m = (made) { .tok = NULL };
    tg_buf_init(&m->json, &mem);
}

static void open_made(tg_context *ctx, made *m) {
    OK(ctx, tg_memory_file_new(ctx, "made.json", m->json.data, m->json.length, &m->file));
    OK(ctx, tg_tokenizer_open(ctx, "memory:made.json", &m->tok));
}

static void drop(made *m) {
    tg_tokenizer_free(m->tok);
    tg_memory_file_free(m->file);
    tg_buf_deinit(&m->json);
}

static made train(tg_context *ctx, const char *kind, size_t n_tokens) {
    size_t n;
    char *bytes = make_text(&n);
    tg_text *text;
    made m;
    begin(&m);
    OK(ctx, tg_text_from_memory(ctx, bytes, n, &text));
    free(bytes);
    OK(ctx, tg_tokenizer_train(text, kind, n_tokens, take, &m.json));
    tg_text_free(text);
    open_made(ctx, &m);
    if (n_tokens) assert_int_equal(tg_tokenizer_count(m.tok), n_tokens);
    return m;
}

static bool has(const made *m, const char *piece) {
    size_t n;
    for (size_t i = 0; i < tg_tokenizer_count(m->tok); i++) {
        const char *have = tg_tokenizer_piece(m->tok, (int32_t)i, &n);
        if (n == strlen(piece) && memcmp(have, piece, n) == 0) return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------- goldens */

/* The tokens in their order are the merges: each is a merge's result. */
static void bpe_as_tokenizers_has_it(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    made m = train(ctx, "bpe", 400);
    enum { N = sizeof golden_bpe / sizeof *golden_bpe };
    assert_int_equal(N, 400 - 256);
    for (int i = 0; i < N; i++) {
        size_t n;
        const char *have = tg_tokenizer_piece(m.tok, 256 + i, &n);
        if (n != strlen(golden_bpe[i]) || memcmp(have, golden_bpe[i], n) != 0)
            fail_msg("token %d: want %s, have %.*s", 256 + i, golden_bpe[i], (int)n, have);
    }
    drop(&m);
    tg_context_free(ctx);
}

static void wordpiece_as_tokenizers_has_it(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    made m = train(ctx, "wordpiece", 160);
    size_t lacking = 0;
    enum { N = sizeof golden_wordpiece / sizeof *golden_wordpiece };
    assert_true(N > 150);
    for (int i = 0; i < N; i++) lacking += !has(&m, golden_wordpiece[i]);
    assert_int_equal(lacking, 0);
    drop(&m);
    tg_context_free(ctx);
}

static void characters(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    static const char bytes[] = "b\xc3\xa9"
                                "a\nb \xf0\x9f\x98\x80";
    tg_text *text;
    made m;
    begin(&m);
    OK(ctx, tg_text_from_memory(ctx, bytes, sizeof bytes - 1, &text));
    OK(ctx, tg_tokenizer_train(text, "chars", 0, take, &m.json));
    open_made(ctx, &m);
    static const char *const want[] = {
        "<unk>", "\n", " ", "a", "b", "\xc3\xa9", "\xf0\x9f\x98\x80"
    };
    assert_int_equal(tg_tokenizer_count(m.tok), 7);
    for (int i = 0; i < 7; i++) {
        size_t n;
        const char *have = tg_tokenizer_piece(m.tok, i, &n);
        assert_int_equal(n, strlen(want[i]));
        assert_memory_equal(have, want[i], n);
    }
    int32_t ids[16];
    static const int32_t spelled[] = { 4, 5, 3, 1, 4, 2, 6 }, other[] = { 3, 0, 4 };
    size_t n;
    OK(ctx, tg_tokenizer_encode(ctx, m.tok, bytes, sizeof bytes - 1, 0, ids, 16, &n));
    assert_int_equal(n, 7);
    assert_memory_equal(ids, spelled, sizeof spelled);
    OK(ctx, tg_tokenizer_encode(ctx, m.tok, "axb", 3, 0, ids, 16, &n));
    assert_int_equal(n, 3);
    assert_memory_equal(ids, other, sizeof other);
    tg_text_free(text);
    drop(&m);
    tg_context_free(ctx);
}

/* ------------------------------------------------------------------------------ pieces, slices */

/* The text fed in pieces of so many bytes. */
static void feed(tg_ctx *err, const char *kind, size_t n_tokens, size_t each, tg_buf *json) {
    size_t n;
    char *text = make_text(&n);
    tg_learning *l;
    assert_int_equal(tg_learning_new(err, kind, n_tokens, &l), TG_OK);
    for (size_t at = 0; at < n; at += each) {
        const size_t now = n - at < each ? n - at : each;
        assert_int_equal(tg_learning_feed(l, text + at, now, at + now == n), TG_OK);
    }
    tg_status s;
    while ((s = tg_learning_go_on(l, "text", 1e-9)) == TG_PENDING) {
    }
    assert_int_equal(s, TG_OK);
    assert_int_equal(tg_learning_put_json(l, json), TG_OK);
    tg_learning_free(l);
    free(text);
}

static void the_same_in_pieces(void **state) {
    (void)state;
    static const struct {
        const char *kind;
        size_t n;
    } kinds[] = { { "bpe", 400 }, { "wordpiece", 160 }, { "chars", 0 } };
    const tg_mem mem = tg_mem_default();
    tg_ctx err;
    tg_ctx_init(&err, &mem, NULL, NULL);
    for (size_t k = 0; k < 3; k++) {
        tg_buf whole, cut;
        tg_buf_init(&whole, &mem);
        feed(&err, kinds[k].kind, kinds[k].n, SIZE_MAX / 2, &whole);
        for (size_t each = 1; each < 5000; each = each * 7 + 2) {
            tg_buf_init(&cut, &mem);
            feed(&err, kinds[k].kind, kinds[k].n, each, &cut);
            assert_int_equal(cut.length, whole.length);
            assert_memory_equal(cut.data, whole.data, whole.length);
            tg_buf_deinit(&cut);
        }
        tg_buf_deinit(&whole);
    }
}

/* A word without an end takes neither memory nor time beyond its length. */
static void long_words(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    const size_t n = 1 << 20;
    char *bytes = malloc(n);
    tg_text *text;
    made m;
    for (size_t i = 0; i < n; i++) bytes[i] = (char)('a' + i * i % 7 % 3);
    OK(ctx, tg_text_from_memory(ctx, bytes, n, &text));
    free(bytes);
    begin(&m);
    OK(ctx, tg_tokenizer_train(text, "bpe", 270, take, &m.json));
    open_made(ctx, &m);
    tg_text_free(text);
    drop(&m);
    tg_context_free(ctx);
}

/* -------------------------------------------------------------------------------------- errors */

static void want_refusal(tg_context *ctx, const char *bytes, const char *kind, size_t n_tokens,
                         tg_status status, const char *message) {
    tg_text *text;
    made m;
    begin(&m);
    OK(ctx, tg_text_from_memory(ctx, bytes, strlen(bytes), &text));
    const tg_status s = tg_tokenizer_train(text, kind, n_tokens, take, &m.json);
    if (s != status || !strstr(tg_context_error(ctx), message))
        fail_msg("%s %zu: want status %d and \"%s\", have %d: %s", kind, n_tokens, status, message,
                 s, tg_context_error(ctx));
    assert_int_equal(m.json.length, 0);
    tg_text_free(text);
    drop(&m);
}

static void refusals(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    want_refusal(ctx, "", "bpe", 300, TG_E_DATA, "0 bytes");
    want_refusal(ctx, "abc", "words", 300, TG_E_ARG, "bpe, wordpiece, chars");
    want_refusal(ctx, "abc", "bpe", 255, TG_E_RANGE, "256");
    want_refusal(ctx, "abc", "bpe", (1 << 20) + 1, TG_E_RANGE, "1048576");
    want_refusal(ctx, "abc", "bpe", 300, TG_E_DATA, "gives 258"); /* would be ab and abc */
    want_refusal(ctx, "abc", "chars", 5, TG_E_DATA, "gives 4");
    want_refusal(ctx, "abc", "chars", 3, TG_E_RANGE, "3 characters");
    want_refusal(ctx, "abcdefgh", "wordpiece", 12, TG_E_RANGE, "characters");
    tg_context_free(ctx);
}

static int stop(void *user, const char *bytes, size_t n_bytes) {
    (void)user, (void)bytes, (void)n_bytes;
    return 1;
}

static void stopped_by_the_caller(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text;
    OK(ctx, tg_text_from_memory(ctx, "abcabc", 6, &text));
    assert_int_equal(tg_tokenizer_train(text, "bpe", 256, stop, NULL), TG_STOPPED);
    tg_job *job;
    OK(ctx, tg_tokenizer_train_job(text, "bpe", 256, stop, NULL, &job));
    tg_job_free(job); /* abandoned */
    tg_text_free(text);
    tg_context_free(ctx);
}

/* Every allocation fails once: an error each time, and nothing is left. */
static void memory_fails(void **state) {
    (void)state;
    static const char *const kinds[] = { "bpe", "wordpiece", "chars" };
    for (size_t k = 0; k < 3; k++) {
        tg_status s = TG_E_MEMORY;
        for (size_t at = 1; s != TG_OK; at++) {
            test_alloc a = { .fail_at = at };
            const tg_mem mem = test_alloc_mem(&a);
            tg_ctx err;
            tg_ctx_init(&err, &mem, NULL, NULL);
            tg_learning *l;
            tg_buf json;
            tg_buf_init(&json, &mem);
            static const char text[] = "the cat sat on the mat with the hat";
            s = tg_learning_new(&err, kinds[k], k == 0 ? 262 : k == 1 ? 30 : 0, &l);
            if (s == TG_OK) s = tg_learning_feed(l, text, sizeof text - 1, true);
            if (s == TG_OK) s = tg_learning_go_on(l, "text", 0);
            if (s == TG_OK) s = tg_learning_put_json(l, &json);
            tg_learning_free(l);
            tg_buf_deinit(&json);
            if (s != TG_OK && s != TG_E_MEMORY) fail_msg("%s: %s", kinds[k], err.message);
            assert_int_equal(a.live_pieces, 0);
            assert_true(at < 1000);
        }
    }
}

/* ---------------------------------------------------------------------------- what it is for */

typedef struct findings {
    char tokens[256], length[256];
    int unknown;
} findings;

static void on_lint(void *user, const tg_lint *l) {
    findings *f = user;
    if (strcmp(l->code, "tokens") == 0) strcpy(f->tokens, l->text);
    if (strcmp(l->code, "short") == 0 && l->level == 0) strcpy(f->length, l->text);
    f->unknown += strcmp(l->code, "unknown_tokens") == 0;
}

/* Of a text that is short all of it is counted; forecast and trainer agree. */
static void lint_and_forecast_count_tokens(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    made m = train(ctx, "bpe", 400);
    size_t n, n_tokens;
    char *bytes = make_text(&n);
    int32_t *ids = malloc(n * sizeof *ids);
    OK(ctx, tg_tokenizer_encode(ctx, m.tok, bytes, n, 0, ids, n, &n_tokens));
    tg_text *text;
    OK(ctx, tg_text_from_memory(ctx, bytes, n, &text));
    OK(ctx, tg_text_set_tokenizer(text, m.tok));
    findings f = { "", "", 0 };
    OK(ctx, tg_text_lint(text, (int32_t)n_tokens, 0, on_lint, &f)); /* bytes would do */
    char want[32];
    snprintf(want, sizeof want, "%zu tokens", n_tokens);
    assert_non_null(strstr(f.tokens, want));
    assert_non_null(strstr(f.length, want) ? f.length : strstr(f.length, "tokens; a window"));
    assert_int_equal(f.unknown, 0);

    tg_model_config c = tg_preset_find("modern-small")->config;
    tg_train_options o = tg_train_options_default();
    tg_forecast before, with;
    tg_model *model;
    tg_trainer *trainer;
    c.vocab = 400;
    o.batch = 4;
    o.steps = 10;
    OK(ctx, tg_forecast_run(ctx, &c, text, &o, &before));
    assert_true(before.train_tokens + before.val_tokens == n_tokens);
    assert_non_null(strstr(before.advice, "tokens, "));
    OK(ctx, tg_model_new_vocabulary(ctx, &c, m.tok, 1, &model));
    OK(ctx, tg_trainer_new(ctx, model, text, &o, &trainer));
    OK(ctx, tg_trainer_forecast(trainer, &with));
    assert_true(with.train_tokens == before.train_tokens);
    assert_true(with.epochs > 0 && with.epochs == before.epochs);
    assert_string_equal(with.advice, before.advice);
    tg_trainer_free(trainer);
    /* The model has learnt, and is trained on: nobody chooses its size now. */
    OK(ctx, tg_model_save(model, "build/test/learn.tinygpt", TG_FILE_V3));
    tg_model_free(model);
    OK(ctx, tg_model_open_floats(ctx, "build/test/learn.tinygpt", &model));
    OK(ctx, tg_trainer_new(ctx, model, text, &o, &trainer));
    OK(ctx, tg_trainer_forecast(trainer, &with));
    assert_null(strstr(with.advice, "a parameter"));
    tg_trainer_free(trainer);
    tg_model_free(model);
    tg_text_free(text);
    free(bytes);
    free(ids);
    drop(&m);
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bpe_as_tokenizers_has_it),
        cmocka_unit_test(wordpiece_as_tokenizers_has_it),
        cmocka_unit_test(characters),
        cmocka_unit_test(the_same_in_pieces),
        cmocka_unit_test(long_words),
        cmocka_unit_test(refusals),
        cmocka_unit_test(stopped_by_the_caller),
        cmocka_unit_test(memory_fails),
        cmocka_unit_test(lint_and_forecast_count_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
