/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ids.c - generation from ids, ids as text, strings of tokenizers, and what a session that
 * slides keeps.
 */
#include "engine_util.h"

#include "engine/session.h"

#define MODEL      "test/golden/transformers/model.safetensors" /* tokens are bytes */
#define BARE       "test/golden/lm/llama3.gguf"                 /* without a tokenizer */
#define VOCAB      "test/golden/tok/byte_bpe.json"
#define DONE(call) assert_int_equal(call, TG_OK)
enum { N = 12 };

typedef struct said {
    char text[1024];
    size_t n;
} said;

static int hear(void *user, const char *bytes, size_t n) {
    said *s = user;
    assert_true(s->n + n < sizeof s->text);
    memcpy(s->text + s->n, bytes, n);
    s->n += n;
    return 0;
}

static int refuse(void *user, const char *bytes, size_t n) {
    (void)user;
    (void)bytes;
    (void)n;
    return 1;
}

static tg_status from_ids(tg_session *s, const int32_t *ids, size_t n, const int32_t *ends,
                          size_t n_ends, said *to, int32_t *new_ids, tg_generate_stats *stats) {
    tg_generation what = behind_ids(ids, n, N);
    what.ends = ends;
    what.n_ends = n_ends;
    what.write = hear;
    what.user = to;
    what.new_ids = new_ids;
    return tg_session_continue(s, &what, stats);
}

/* The ids of a text give what the text gives, whatever the session was fed before. */
static void generation_from_ids(void **state) {
    (void)state;
    tg_context *ctx;
    tg_model *m;
    tg_session *s;
    DONE(tg_context_new(NULL, &ctx));
    DONE(tg_model_open(ctx, MODEL, &m));
    DONE(tg_session_new(ctx, m, 0, &s));
    static const char prompt[] = "the cat";
    int32_t ids[64], want[N], have[N];
    size_t n;
    said first = { .n = 0 }, again = { .n = 0 };
    tg_generate_stats stats;
    tg_generation what = behind_text(prompt, sizeof prompt - 1, N);
    what.write = hear;
    what.user = &first;
    what.new_ids = want;
    DONE(tg_session_continue(s, &what, &stats));
    DONE(tg_tokenizer_encode(ctx, tg_model_tokenizer(m), prompt, sizeof prompt - 1, TG_ENCODE_ENDS,
                             ids, 64, &n));
    assert_int_equal(stats.prompt_tokens, n);
    const size_t made = stats.new_tokens;
    DONE(from_ids(s, ids, n, NULL, 0, &again, have, &stats));
    assert_int_equal(stats.new_tokens, made);
    assert_memory_equal(have, want, made * sizeof *have);
    assert_int_equal(again.n, first.n);
    assert_memory_equal(again.text, first.text, first.n);
    /* A token of the caller's ends it, and is not written. */
    again.n = 0;
    DONE(from_ids(s, ids, n, want, 1, &again, have, &stats));
    assert_int_equal(stats.new_tokens, 1);
    assert_int_equal(again.n, 0);
    const int32_t wrong = -1;
    assert_int_equal(from_ids(s, ids, 0, NULL, 0, &again, have, NULL), TG_E_ARG);
    assert_int_equal(from_ids(s, ids, n, want, TG_ENDS_MAX + 1, &again, have, NULL), TG_E_ARG);
    assert_int_equal(from_ids(s, &wrong, 1, NULL, 0, &again, have, NULL), TG_E_RANGE);
    tg_session_free(s);
    tg_model_free(m);
    tg_context_free(ctx);
}

/* The newest half, behind the token that began the text; of a model without a tokenizer, too, which
 * knows of no such token. */
static void slides_keep_the_first_token(void **state) {
    (void)state;
    tg_context *ctx;
    tg_model *m;
    tg_session *s;
    tg_tok_desc d;
    tg_tok *tok;
    const int32_t tokens[8] = { 9, 1, 2, 3, 4, 5, 6, 7 }, behind[4] = { 9, 5, 6, 7 },
                  newest[4] = { 4, 5, 6, 7 };
    DONE(tg_context_new(NULL, &ctx));
    DONE(tg_model_open(ctx, BARE, &m));
    tg_tok *own = m->tok; /* bytes, without a first one */
    tg_tok_desc_init(&d);
    d.bos = 9;
    DONE(tg_tok_new(&ctx->err, &d, &tok));
    DONE(tg_session_new(ctx, m, 8, &s));
    static const char *const texts[] = { "<s>" };
    DONE(tg_session_set_stops(s, texts, 1));
    for (int k = 0; k < 3; k++) {
        m->tok = k == 1 ? tok : own;
        DONE(tg_session_rewind(s, 0));
        DONE(tg_session_eval(s, tokens, 8, NULL));
        DONE(tg_session_slide(s));
        assert_int_equal(tg_session_tokens(s), 4);
        assert_memory_equal(s->fed, k == 1 ? behind : newest, sizeof behind);
    }
    m->tok = own;
    tg_session_free(s);
    tg_model_free(m);
    tg_tok_free(tok);
    tg_context_free(ctx);
}

static void decoding(void **state) {
    (void)state;
    static const char text[] = "n\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x99\x82.";
    tg_context *ctx;
    tg_tokenizer *t;
    int32_t ids[64];
    size_t n;
    DONE(tg_context_new(NULL, &ctx));
    DONE(tg_tokenizer_open(ctx, VOCAB, &t));
    DONE(tg_tokenizer_encode(ctx, t, text, sizeof text - 1, 0, ids, 64, &n));
    said all = { .n = 0 }, single = { .n = 0 };
    uint8_t held[4] = { 0 };
    DONE(tg_tokenizer_decode(ctx, t, ids, n, NULL, hear, &all));
    assert_string_equal(all.text, text);
    for (size_t i = 0; i < n; i++)
        DONE(tg_tokenizer_decode(ctx, t, ids + i, 1, held, hear, &single));
    assert_int_equal(held[0], 0);
    assert_string_equal(single.text, text);
    /* A character that never becomes whole is let out at the end, and not before. */
    int32_t half;
    memset(&single, 0, sizeof single);
    DONE(tg_tokenizer_encode(ctx, t, "\xe6", 1, 0, &half, 1, &n));
    DONE(tg_tokenizer_decode(ctx, t, &half, 1, held, hear, &single));
    assert_int_equal(single.n, 0);
    DONE(tg_tokenizer_decode(ctx, t, NULL, 0, held, hear, &single));
    assert_string_equal(single.text, "\xef\xbf\xbd");
    ids[0] = (int32_t)tg_tokenizer_count(t);
    assert_int_equal(tg_tokenizer_decode(ctx, t, ids, 1, NULL, hear, &single), TG_E_RANGE);
    assert_int_equal(tg_tokenizer_decode(ctx, t, ids + 1, 1, NULL, refuse, &single), TG_STOPPED);
    tg_tokenizer_free(t);
    tg_context_free(ctx);
}

static void strings_end_in_zero(void **state) {
    (void)state;
    static const char *const paths[] = { VOCAB, MODEL };
    for (int k = 0; k < 2; k++) {
        tg_context *ctx;
        tg_tokenizer *t;
        DONE(tg_context_new(NULL, &ctx));
        DONE(tg_tokenizer_open(ctx, paths[k], &t));
        for (int32_t i = 0; i < (int32_t)tg_tokenizer_count(t); i++) {
            size_t n;
            const char *piece = tg_tokenizer_piece(t, i, &n);
            assert_int_equal(piece[n], 0);
            const char *bytes = tg_tokenizer_bytes(t, i, &n);
            assert_int_equal(bytes[n], 0);
        }
        tg_tokenizer_free(t);
        tg_context_free(ctx);
    }
}

/* The message is where the caller reads it, whichever context the model was opened with. */
static void errors_in_the_caller_s_context(void **state) {
    (void)state;
    tg_context *own, *other;
    tg_model *m;
    int32_t ids[2];
    size_t n = 0;
    assert_int_equal(tg_context_new(NULL, &own), TG_OK);
    assert_int_equal(tg_context_new(NULL, &other), TG_OK);
    assert_int_equal(tg_model_open(own, "test/golden/lm/bert.zip", &m), TG_OK);
    const tg_tokenizer *t = tg_model_tokenizer(m);
    assert_int_equal(tg_tokenizer_encode(other, t, "a b c", 5, TG_ENCODE_ENDS, ids, 2, &n),
                     TG_E_FULL);
    assert_int_equal(n, 5);
    assert_non_null(strstr(tg_context_error(other), "want room for 5 ids, have 2"));
    assert_string_equal(tg_context_error(own), "");
    assert_int_equal(tg_tokenizer_encode(NULL, t, "a", 1, 0, ids, 2, &n), TG_E_ARG);
    assert_int_equal(tg_tokenizer_encode(other, NULL, "a", 1, 0, ids, 2, &n), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(other), "tg_tokenizer_encode: want a value for tok"));
    tg_model_free(m);
    tg_context_free(other);
    tg_context_free(own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generation_from_ids),
        cmocka_unit_test(slides_keep_the_first_token),
        cmocka_unit_test(decoding),
        cmocka_unit_test(strings_end_in_zero),
        cmocka_unit_test(errors_in_the_caller_s_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
