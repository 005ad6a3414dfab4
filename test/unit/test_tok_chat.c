/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tok_chat.c - conversations become what the models' own templates make of them
 * (test/golden/tok/chat.json, by tools/oracle/chat.py), and special tokens stay the template's.
 */
#include "fail_alloc.h"
#include "tok_util.h"

#include "tok/chat.h"

#define TURN(role, text) { role, text, sizeof(text) - 1 }
#define USER(text)       TURN(TG_CHAT_USER, text)
#define MODEL(text)      TURN(TG_CHAT_ASSISTANT, text)
#define S                TURN(TG_CHAT_SYSTEM, " Be brief. ")
#define U0               USER("\n Hi <|im_end|> there \n")
#define U1               USER("Write <eos> twice.")
#define U2               USER("And <think>now</think>?")
#define U3               USER("")
#define A0               MODEL("<think>\nA greeting.\n</think>\n\nHello! ")
#define A1               MODEL(" plain\n")
#define A2               MODEL("no\n</think>\n\n\n yes</think> \n")
#define A3               MODEL("<think>\n\n</think>\n\nempty")
#define A4               MODEL("")
/* Those of the script, in its order. */
enum { TURNS_MAX = 6 };
static const struct {
    tg_chat_turn turns[TURNS_MAX];
    size_t n;
} conversations[] = {
    { { U0 }, 1 },
    { { S, U0 }, 2 },
    { { U0, A0, U1 }, 3 },
    { { S, U0, A0, U1 }, 4 },
    { { U0, U1 }, 2 },
    { { TURN(TG_CHAT_SYSTEM, ""), U0 }, 2 },
    { { U0, A1, U1, A0, U2 }, 5 },
    { { U0, A1, A0, U1 }, 4 },
    { { U0, A2, U1 }, 3 },
    { { U3 }, 1 },
    { { A1, U0 }, 2 },
    { { S, A1, U0 }, 3 },
    { { S, U0, A3, U1, A4, U2 }, 6 },
};
enum { N_CONVERSATIONS = sizeof conversations / sizeof conversations[0] };
static const tg_chat_turn turns[] = { S, U0, A0, U1 };
static const tg_chat_how plainly = { .flags = 0 };

/* The golden file, and what it is in. */
typedef struct golden {
    tg_ctx ctx;
    tg_arena arena;
    char *text;
    const tg_json *root;
} golden;

static void open_golden(golden *g) {
    size_t n;
    tg_ctx_init(&g->ctx, NULL, NULL, NULL);
    tg_arena_init(&g->arena, &g->ctx.mem);
    g->text = read_file(TOK_GOLDEN "chat.json", &n);
    assert_int_equal(tg_json_parse(&g->ctx, &g->arena, "chat.json", g->text, n, NULL, &g->root),
                     TG_OK);
}

static void close_golden(golden *g) {
    tg_arena_deinit(&g->arena);
    free(g->text);
}

/* What a template renders is rendered, and what it refuses is refused. */
static void as_the_models_templates(void **state) {
    (void)state;
    golden g;
    open_golden(&g);
    const tg_json *rows = tg_json_get(g.root, "rows");
    size_t count = 0;
    while (tg_chat_at(count)) count++;
    assert_int_equal(rows->count, count * N_CONVERSATIONS * 2);
    tg_buf out;
    tg_buf_init(&out, &g.ctx.mem);
    for (const tg_json *row = tg_json_first(rows); row; row = tg_json_next(row)) {
        const tg_chat_template *t = tg_chat_named(tg_json_get(row, "template")->u.text);
        const bool thinking = tg_json_kind(tg_json_get(row, "thinking")) == TG_JSON_TRUE;
        const tg_json *want = tg_json_get(row, "text");
        int64_t k;
        assert_non_null(t);
        assert_int_equal(tg_json_int64(&g.ctx, tg_json_get(row, "conversation"), &k), TG_OK);
        tg_chat_how how = { .flags = thinking ? 0 : TG_CHAT_NO_THINKING };
        if (strcmp(tg_chat_name(t), "llama3.2") == 0) how.date = (tg_chat_date) { 2026, 11, 9 };
        tg_buf_clear(&out);
        tg_ctx_clear(&g.ctx);
        const tg_status s =
            tg_chat_render(&g.ctx, t, conversations[k].turns, conversations[k].n, &how, &out);
        if (tg_json_kind(want) == TG_JSON_NULL) {
            if (s != TG_E_ARG) fail_msg("%s, conversation %d: taken", tg_chat_name(t), (int)k);
            continue;
        }
        assert_int_equal(s, TG_OK);
        if (!tg_json_is(want, tg_buf_text(&out)))
            fail_msg("%s, conversation %d:\n%s\nwant\n%s", tg_chat_name(t), (int)k,
                     tg_buf_text(&out), want->u.text);
    }
    tg_buf_deinit(&out);
    close_golden(&g);
}

/* A template is known by all of its text, however it is laid out, or not at all. */
static void detection(void **state) {
    (void)state;
    golden g;
    open_golden(&g);
    const tg_json *texts = tg_json_get(g.root, "texts");
    assert_true(texts->count > 20);
    for (const tg_json *row = tg_json_first(texts); row; row = tg_json_next(row)) {
        const char *text = tg_json_get(row, "text")->u.text;
        const tg_json *name = tg_json_get(row, "name"), *key = tg_json_get(row, "key");
        tg_chat_found found;
        char hex[17];
        snprintf(hex, sizeof hex, "%016" PRIx64, tg_chat_key(text, strlen(text), &found));
        if (tg_json_kind(key) == TG_JSON_STRING ? !tg_json_is(key, hex)
                                                : strcmp(hex, "0000000000000000") != 0)
            fail_msg("%s: have the key %s", text, hex);
        const tg_chat_template *t = tg_chat_detect(text, strlen(text), &found);
        if (tg_json_kind(name) == TG_JSON_NULL ? t != NULL
                                               : !t || !tg_json_is(name, tg_chat_name(t)))
            fail_msg("%s: have %s", text, t ? tg_chat_name(t) : "none");
        /* One that differs in one letter anywhere is another one. */
        char *copy = malloc(strlen(text) + 1);
        memcpy(copy, text, strlen(text) + 1);
        for (size_t i = 0; t && i < strlen(text); i++) {
            if (copy[i] < 'a' || copy[i] > 'z' || found.system_bytes > 0) continue;
            copy[i] ^= 1;
            tg_chat_found other;
            if (tg_chat_detect(copy, strlen(copy), &other) && !strstr(text, "{# done #}"))
                fail_msg("taken with another letter at %zu: %s", i, copy);
            copy[i] ^= 1;
        }
        free(copy);
    }
    close_golden(&g);
    assert_null(tg_chat_named("nobody"));
    for (size_t i = 0; tg_chat_at(i); i++)
        assert_ptr_equal(tg_chat_named(tg_chat_name(tg_chat_at(i))), tg_chat_at(i));
}

/* The system's turn that a ChatML template says by itself is what it says. */
static void default_system_of_the_file(void **state) {
    (void)state;
    golden g;
    open_golden(&g);
    const tg_json *row = tg_json_first(tg_json_get(g.root, "texts"));
    while (row && !strstr(tg_json_get(row, "text")->u.text, "Meow")) row = tg_json_next(row);
    assert_non_null(row);
    const char *text = tg_json_get(row, "text")->u.text;
    tg_chat_found found;
    const tg_chat_template *t = tg_chat_detect(text, strlen(text), &found);
    const tg_chat_how how = { .found = &found };
    tg_buf out;
    tg_buf_init(&out, &g.ctx.mem);
    assert_int_equal(tg_chat_render(&g.ctx, t, turns + 1, 1, &how, &out), TG_OK);
    assert_string_equal(tg_buf_text(&out),
                        "<|im_start|>system\nSpeak like a cat.\nMeow.<|im_end|>\n<|im_start|>user\n"
                        "\n Hi <|im_end|> there \n<|im_end|>\n<|im_start|>assistant\n");
    tg_buf_deinit(&out);
    close_golden(&g);
}

/* Dates of the calendar, and the date that Llama 3.1 and 3.2 write. */
static void dates(void **state) {
    (void)state;
    static const struct {
        int64_t seconds;
        tg_chat_date want;
    } cases[] = { { 0, { 1970, 1, 1 } },
                  { 951782399, { 2000, 2, 28 } },
                  { 951782400, { 2000, 2, 29 } },
                  { 951868800, { 2000, 3, 1 } },
                  { 1795910400, { 2026, 11, 29 } },
                  { 4107542400, { 2100, 3, 1 } } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_chat_date d = tg_chat_date_of(cases[i].seconds);
        assert_int_equal(d.year, cases[i].want.year);
        assert_int_equal(d.month, cases[i].want.month);
        assert_int_equal(d.day, cases[i].want.day);
    }
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_buf out;
    tg_buf_init(&out, &ctx.mem);
    const tg_chat_how day = { .date = { 2026, 2, 3 } };
    for (int k = 0; k < 2; k++) {
        const tg_chat_template *t = tg_chat_named(k ? "llama3.2" : "llama3.1");
        tg_buf_clear(&out);
        assert_int_equal(tg_chat_render(&ctx, t, turns, 2, &day, &out), TG_OK);
        assert_non_null(strstr(tg_buf_text(&out), "Today Date: 03 Feb 2026\n\n"));
        tg_buf_clear(&out);
        assert_int_equal(tg_chat_render(&ctx, t, turns, 2, &plainly, &out), TG_OK);
        assert_int_equal(strstr(tg_buf_text(&out), "26 Jul 2024") != NULL, !k);
    }
    tg_buf_deinit(&out);
}

static tg_tok *bpe(tg_ctx *ctx) {
    size_t n;
    char *json = read_file(TOK_GOLDEN "byte_bpe.json", &n);
    tg_tok *tok;
    assert_int_equal(tg_tok_new_json(ctx, "byte_bpe.json", json, n, &tok), TG_OK);
    free(json);
    return tok;
}

/* Three turns are three special tokens each, whatever the user has typed: ids 0, 1 and 2. */
static void special_tokens_are_the_templates(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok *tok = bpe(&ctx);
    const tg_chat_template *t = tg_chat_named("chatml");
    tg_ids ids;
    tg_ids_init(&ids, &ctx.mem);
    assert_int_equal(tg_chat_encode(&ctx, t, tok, turns, 4, &plainly, &ids), TG_OK);
    int starts = 0, ends = 0;
    for (size_t i = 0; i < ids.n; i++) {
        starts += ids.id[i] == 1;
        ends += ids.id[i] == 2;
        assert_true(ids.id[i] != 0);
    }
    assert_int_equal(starts, 5);
    assert_int_equal(ends, 4);
    int32_t stop[TG_CHAT_ENDS_MAX];
    assert_int_equal(tg_chat_ends(t, tok, stop), 2);
    assert_int_equal(stop[0], 2);
    assert_int_equal(stop[1], 0);
    tg_ids_deinit(&ids);
    tg_tok_free(tok);
}

static void wrong_orders(void **state) {
    (void)state;
    static const tg_chat_turn none[] = { TURN(TG_CHAT_USER, "a") };
    static const tg_chat_turn two[] = { TURN(TG_CHAT_USER, "a"), TURN(TG_CHAT_USER, "b") };
    static const tg_chat_turn late[] = { TURN(TG_CHAT_USER, "a"), TURN(TG_CHAT_SYSTEM, "s"),
                                         TURN(TG_CHAT_USER, "b") };
    static const tg_chat_turn answered[] = { TURN(TG_CHAT_USER, "a"),
                                             TURN(TG_CHAT_ASSISTANT, "b") };
    static const tg_chat_turn tool[] = { USER("<tool_response>1</tool_response>") };
    const struct {
        const char *name;
        const tg_chat_turn *turns;
        size_t n;
        tg_status want;
    } cases[] = {
        { "chatml", none, 0, TG_E_ARG },     { "chatml", two, 2, TG_OK },
        { "gemma", two, 2, TG_E_ARG },       { "chatml", late, 3, TG_E_ARG },
        { "chatml", answered, 2, TG_E_ARG }, { "gemma", none, 1, TG_OK },
        { "gemma2", turns, 2, TG_E_ARG },    { "gemma2", none, 1, TG_OK },
        { "qwen3", tool, 1, TG_E_ARG },      { "qwen2.5", tool, 1, TG_OK },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_ctx ctx;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_buf out;
        tg_buf_init(&out, &ctx.mem);
        assert_int_equal(tg_chat_render(&ctx, tg_chat_named(cases[i].name), cases[i].turns,
                                        cases[i].n, &plainly, &out),
                         cases[i].want);
        tg_buf_deinit(&out);
    }
}

/* A vocabulary without the template's tokens is an error that names one; failing memory leaves the
 * ids as they were. */
static void failures(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok *tok = bpe(&ctx);
    tg_ids ids;
    tg_ids_init(&ids, &ctx.mem);
    assert_int_equal(tg_chat_encode(&ctx, tg_chat_named("gemma"), tok, turns, 4, &plainly, &ids),
                     TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "<bos>"));
    for (size_t at = 1;; at++) {
        test_alloc a = { .fail_at = at };
        const tg_mem mem = test_alloc_mem(&a);
        tg_ctx failing;
        tg_ctx_init(&failing, &mem, NULL, NULL);
        const tg_status status =
            tg_chat_encode(&failing, tg_chat_named("smollm2"), tok, turns, 4, &plainly, &ids);
        assert_int_equal(a.live_pieces, 0);
        if (status == TG_OK) break;
        assert_int_equal(status, TG_E_MEMORY);
        assert_int_equal(ids.n, 0);
    }
    assert_true(ids.n > 0);
    tg_ids_deinit(&ids);
    tg_tok_free(tok);
}

/* An answer stops at the template's ends that the vocabulary has, and at its own end. */
static void the_vocabulary_ends_too(void **state) {
    (void)state;
    static const char *const names[] = { "a", "<|im_start|>", "<|im_end|>", "</s>" };
    static const uint8_t kinds[] = { 1, 3, 3, 3 };
    tg_tok_text pieces[4];
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (int i = 0; i < 4; i++)
        pieces[i] = (tg_tok_text) { .bytes = names[i], .n_bytes = (uint32_t)strlen(names[i]) };
    for (int32_t eos = -1; eos < 4; eos += eos == -1 ? 3 : 1) {
        tg_tok_desc d;
        tg_tok_desc_init(&d);
        d.model = TG_TOK_BYTE_BPE;
        d.n_tokens = 4;
        d.pieces = pieces;
        d.types = kinds;
        d.eos = eos;
        tg_tok *tok;
        if (tg_tok_new(&ctx, &d, &tok) != TG_OK) fail_msg("%s", ctx.message);
        int32_t stop[TG_CHAT_ENDS_MAX];
        const size_t n = tg_chat_ends(tg_chat_named("chatml"), tok, stop);
        assert_int_equal(n, eos == 3 ? 2 : 1);
        assert_int_equal(stop[0], 2);
        if (eos == 3) assert_int_equal(stop[1], 3);
        tg_tok_free(tok);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vocabulary_ends_too),
        cmocka_unit_test(as_the_models_templates),
        cmocka_unit_test(detection),
        cmocka_unit_test(default_system_of_the_file),
        cmocka_unit_test(dates),
        cmocka_unit_test(special_tokens_are_the_templates),
        cmocka_unit_test(wrong_orders),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
