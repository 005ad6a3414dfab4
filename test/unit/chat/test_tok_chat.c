/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tok_chat.c - conversations become what the models' own templates make of them
 * (test/golden/tok/chat.json, by tools/oracle/chat.py), and special tokens stay the template's.
 */
#include "chat_util.h"
#include "fail_alloc.h"

#include "chat/chat.h"

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
static const tg_chat_said plainly = { .flags = 0 };

static tg_status render(rendered *x, const tg_chat_template *t, const tg_chat_turn *list, size_t n,
                        tg_chat_said said) {
    said.turns = list;
    said.n = n;
    return tg_chat_render(&x->ctx, t, NULL, &said, &x->out);
}

static tg_chat_template named(const char *name) {
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_chat_template t;
    if (tg_chat_template_named(&ctx, name, &t) != TG_OK) fail_msg("%s", ctx.message);
    return t;
}

static tg_status render_named(rendered *x, const char *name, const tg_chat_turn *list, size_t n,
                              tg_chat_said said) {
    tg_chat_template t = named(name);
    const tg_status s = render(x, &t, list, n, said);
    tg_chat_template_deinit(&t);
    return s;
}

/* What a template renders is rendered, and what it refuses is refused. */
static void as_the_models_templates(void **state) {
    (void)state;
    golden g;
    open_golden(&g, TOK_GOLDEN "chat.json");
    const tg_json *rows = tg_json_get(g.root, "rows");
    size_t count = 0;
    while (tg_chat_name_at(count)) count++;
    assert_int_equal(rows->count, count * N_CONVERSATIONS * 2);
    for (const tg_json *row = tg_json_first(rows); row; row = tg_json_next(row)) {
        const char *name = tg_json_get(row, "template")->u.text;
        const bool thinking = tg_json_kind(tg_json_get(row, "thinking")) == TG_JSON_TRUE;
        const tg_json *want = tg_json_get(row, "text");
        int64_t k;
        assert_int_equal(tg_json_int64(&g.ctx, tg_json_get(row, "conversation"), &k), TG_OK);
        tg_chat_said said = { .flags = thinking ? 0 : TG_CHAT_NO_THINKING };
        if (strcmp(name, "llama3.2") == 0) said.date = (tg_jinja_date) { 2026, 11, 9 };
        rendered x;
        begin(&x, NULL);
        const tg_status s =
            render_named(&x, name, conversations[k].turns, conversations[k].n, said);
        if (tg_json_kind(want) == TG_JSON_NULL
                ? s != TG_E_ARG
                : s != TG_OK || !tg_json_is(want, tg_buf_text(&x.out.text)))
            fail_msg("%s, conversation %d:\n%s%s\nwant\n%s", name, (int)k, x.ctx.message,
                     tg_buf_text(&x.out.text), TG_JSON_SHOWN(want));
        end(&x);
    }
    close_golden(&g);
}

/* Templates as files have them render what those of the same name do. */
static void as_files_have_them(void **state) {
    (void)state;
    golden g;
    open_golden(&g, TOK_GOLDEN "chat.json");
    const tg_json *texts = tg_json_get(g.root, "texts");
    assert_true(texts->count > 10);
    for (const tg_json *row = tg_json_first(texts); row; row = tg_json_next(row)) {
        const tg_json *text = tg_json_get(row, "text"), *name = tg_json_get(row, "name");
        tg_chat_template t, other = named(name->u.text);
        assert_int_equal(tg_chat_template_new(&g.ctx, "text", text->u.text, text->length, &t),
                         TG_OK);
        for (size_t k = 0; k < N_CONVERSATIONS; k++) {
            rendered x, y;
            begin(&x, NULL);
            begin(&y, NULL);
            const tg_status s = render(&x, &t, conversations[k].turns, conversations[k].n, plainly);
            const tg_status r =
                render(&y, &other, conversations[k].turns, conversations[k].n, plainly);
            if (strstr(x.ctx.message, "bos_token is undefined")) {
                assert_int_equal(s, TG_E_ARG);
            } else if (s != TG_OK) {
                assert_int_equal(r, s);
            } else { /* without a vocabulary, bos_token is a name of its own there */
                const char *have = tg_buf_text(&x.out.text), *want = tg_buf_text(&y.out.text);
                const size_t bos = strncmp(want, "<|begin_of_text|>", 17) == 0 ? 17 : 0;
                assert_string_equal(have, want + bos);
            }
            end(&x);
            end(&y);
        }
        tg_chat_template_deinit(&t);
        tg_chat_template_deinit(&other);
    }
    close_golden(&g);
    tg_chat_template none;
    tg_ctx_clear(&g.ctx);
    assert_int_equal(tg_chat_template_named(&g.ctx, "nobody", &none), TG_E_ARG);
}

/* Dates of the calendar, and the date that Llama 3.1 and 3.2 write. */
static void dates(void **state) {
    (void)state;
    static const struct {
        int64_t seconds;
        tg_jinja_date want;
    } cases[] = { { 0, { 1970, 1, 1 } },
                  { 951782399, { 2000, 2, 28 } },
                  { 951782400, { 2000, 2, 29 } },
                  { 951868800, { 2000, 3, 1 } },
                  { 1795910400, { 2026, 11, 29 } },
                  { 4107542400, { 2100, 3, 1 } } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_jinja_date d = tg_chat_date_of(cases[i].seconds);
        assert_int_equal(d.year, cases[i].want.year);
        assert_int_equal(d.month, cases[i].want.month);
        assert_int_equal(d.day, cases[i].want.day);
    }
    const tg_chat_said day = { .date = { 2026, 2, 3 } };
    for (int k = 0; k < 4; k++) {
        rendered x;
        begin(&x, NULL);
        assert_int_equal(
            render_named(&x, k % 2 ? "llama3.2" : "llama3.1", turns, 2, k < 2 ? day : plainly),
            TG_OK);
        const char *text = tg_buf_text(&x.out.text);
        if (k < 2) assert_non_null(strstr(text, "Today Date: 03 Feb 2026\n\n"));
        if (k >= 2) assert_int_equal(strstr(text, "26 Jul 2024") != NULL, k == 2);
        end(&x);
    }
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
    tg_chat_template t = named("chatml");
    const tg_chat_said said = { .turns = turns, .n = 4 };
    tg_ids ids;
    tg_ids_init(&ids, &ctx.mem);
    assert_int_equal(tg_chat_encode(&ctx, &t, tok, &said, &ids), TG_OK);
    int starts = 0, ends = 0;
    for (size_t i = 0; i < ids.n; i++) {
        starts += ids.id[i] == 1;
        ends += ids.id[i] == 2;
        assert_true(ids.id[i] != 0);
    }
    assert_int_equal(starts, 5);
    assert_int_equal(ends, 4);
    int32_t stop[TG_CHAT_ENDS_MAX];
    size_t n;
    assert_int_equal(tg_chat_ends(&ctx, &t, tok, stop, &n), TG_OK);
    assert_true(n >= 1);
    assert_int_equal(stop[0], 2);
    tg_ids_deinit(&ids);
    tg_chat_template_deinit(&t);
    tg_tok_free(tok);
}

/* A token that the template and a turn spell together is nobody's: neither can make it alone. */
static void seams(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok *tok = bpe(&ctx);
    static const struct {
        const char *text, *turn;
        int specials;
    } cases[] = { { "{{ messages[0].content }}", "<|im_end|>", 0 },
                  { "<|im_{{ messages[0].content }}", "end|>", 0 },
                  { "<|im_end|>{{ messages[0].content }}", "<|im_end|>", 1 },
                  { "{{ messages[0].content | tojson }}", "<|im_end|>", 0 },
                  { "{{ '<|im_' ~ 'end|>' }}", "x", 1 },
                  { "{% if 'x' in messages[0].content %}<|im_end|>{% endif %}", "x", 1 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_chat_template t;
        assert_int_equal(
            tg_chat_template_new(&ctx, "seam", cases[i].text, strlen(cases[i].text), &t), TG_OK);
        const tg_chat_turn turn = { TG_CHAT_USER, cases[i].turn, strlen(cases[i].turn) };
        const tg_chat_said said = { .turns = &turn, .n = 1 };
        tg_ids ids;
        tg_ids_init(&ids, &ctx.mem);
        assert_int_equal(tg_chat_encode(&ctx, &t, tok, &said, &ids), TG_OK);
        int specials = 0;
        for (size_t k = 0; k < ids.n; k++) specials += ids.id[k] < 3;
        if (specials != cases[i].specials) fail_msg("%s: %d", cases[i].text, specials);
        tg_ids_deinit(&ids);
        tg_chat_template_deinit(&t);
    }
    tg_tok_free(tok);
}

static void wrong_orders(void **state) {
    (void)state;
    static const tg_chat_turn none[] = { TURN(TG_CHAT_USER, "a") };
    static const tg_chat_turn two[] = { TURN(TG_CHAT_USER, "a"), TURN(TG_CHAT_USER, "b") };
    static const tg_chat_turn told[] = { TURN(TG_CHAT_USER, "a"), TURN(TG_CHAT_SYSTEM, "s") };
    static const tg_chat_turn answered[] = { TURN(TG_CHAT_USER, "a"),
                                             TURN(TG_CHAT_ASSISTANT, "b") };
    static const tg_chat_turn said_nothing[] = { TURN(TG_CHAT_USER, "a"),
                                                 TURN(TG_CHAT_ASSISTANT, "") };
    const struct {
        const char *name;
        const tg_chat_turn *turns;
        size_t n;
        unsigned flags;
        tg_status want;
    } cases[] = {
        { "chatml", none, 0, 0, TG_E_ARG },
        { "chatml", two, 2, 0, TG_OK },
        { "gemma", two, 2, 0, TG_E_ARG },
        { "chatml", told, 2, 0, TG_E_ARG },
        { "chatml", answered, 2, 0, TG_E_ARG },
        { "gemma", none, 1, 0, TG_OK },
        { "gemma2", turns, 2, 0, TG_E_ARG },
        { "gemma2", none, 1, 0, TG_OK },
        { "chatml", answered, 2, TG_CHAT_CONTINUE, TG_OK },
        { "chatml", two, 2, TG_CHAT_CONTINUE, TG_E_ARG },
        { "chatml", said_nothing, 2, TG_CHAT_CONTINUE, TG_E_ARG },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rendered x;
        begin(&x, NULL);
        const tg_chat_said how = { .flags = cases[i].flags };
        const tg_status s = render_named(&x, cases[i].name, cases[i].turns, cases[i].n, how);
        if (s != cases[i].want) fail_msg("case %zu: %d %s", i, (int)s, x.ctx.message);
        end(&x);
    }
}

/* An answer that was begun goes on where it ends, whatever the template writes behind it. */
static void going_on(void **state) {
    (void)state;
    static const tg_chat_turn begun[] = { TURN(TG_CHAT_USER, "a"),
                                          TURN(TG_CHAT_ASSISTANT, "It is ") };
    static const struct {
        const char *name, *want;
    } cases[] = {
        { "chatml", "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nIt is " },
        { "gemma", "<bos><start_of_turn>user\na<end_of_turn>\n<start_of_turn>model\nIt is" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rendered x;
        begin(&x, NULL);
        const tg_chat_said how = { .flags = TG_CHAT_CONTINUE };
        assert_int_equal(render_named(&x, cases[i].name, begun, 2, how), TG_OK);
        assert_int_equal(x.out.text.length, strlen(cases[i].want));
        assert_memory_equal(x.out.text.data, cases[i].want, x.out.text.length);
        end(&x);
    }
}

/* A begun answer is no place for the opening of another one: templates that ask are told so. */
static void going_on_adds_no_opening(void **state) {
    (void)state;
    static const char text[] = "{{ 'opens' if add_generation_prompt else 'goes on' }}: "
                               "{% for m in messages %}{{ m.content }}{% endfor %}";
    static const tg_chat_turn begun[] = { TURN(TG_CHAT_USER, "a "),
                                          TURN(TG_CHAT_ASSISTANT, "It is") };
    static const struct {
        size_t n;
        unsigned flags;
        const char *want;
    } cases[] = { { 1, 0, "opens: a " }, { 2, TG_CHAT_CONTINUE, "goes on: a It is" } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rendered x;
        begin(&x, NULL);
        tg_chat_template t;
        assert_int_equal(tg_chat_template_new(&x.ctx, "asks", text, strlen(text), &t), TG_OK);
        const tg_chat_said how = { .flags = cases[i].flags };
        assert_int_equal(render(&x, &t, begun, cases[i].n, how), TG_OK);
        assert_string_equal(tg_buf_text(&x.out.text), cases[i].want);
        tg_chat_template_deinit(&t);
        end(&x);
    }
}

/* Messages of JSON: what is null is not there, tools are seen, roles that are known make tokens. */
static void of_json(void **state) {
    (void)state;
    static const char text[] =
        "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}"
        "{{ m.tool_calls is defined }}{% for c in m.tool_calls %}{{ c.function | tojson }}"
        "{% endfor %}{% endfor %}{{ tools | length if tools }}{{ q }}{{ add_generation_prompt }}";
    static const char json[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\", \"tool_calls\": null}, "
        "{\"role\": \"tool \", \"tool_calls\": [{\"function\": {\"n\": [1]}}]}], "
        "\"tools\": [{}, {}], \"q\": 2.50}";
    rendered x;
    begin(&x, NULL);
    tg_chat_template t;
    tg_arena arena;
    tg_chat_said said = { .flags = 0 };
    tg_arena_init(&arena, &x.ctx.mem);
    assert_int_equal(tg_chat_template_new(&x.ctx, "text", text, sizeof text - 1, &t), TG_OK);
    assert_int_equal(tg_json_parse(&x.ctx, &arena, "chat", json, sizeof json - 1, NULL, &said.json),
                     TG_OK);
    assert_int_equal(tg_chat_render(&x.ctx, &t, NULL, &said, &x.out), TG_OK);
    assert_string_equal(tg_buf_text(&x.out.text), "<user>HiFalse<tool >True{\"n\": [1]}22.5True");
    assert_int_equal(x.out.words.data[1], 0);  /* user */
    assert_int_equal(x.out.words.data[6], 1);  /* Hi */
    assert_int_equal(x.out.words.data[14], 1); /* a role that nobody knows */
    static const char *const wrong[] = { "[]", "{}", "{\"messages\": []}", "{\"messages\": {}}",
                                         "{\"messages\": [1]}" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tg_ctx_clear(&x.ctx);
        assert_int_equal(
            tg_json_parse(&x.ctx, &arena, "chat", wrong[i], strlen(wrong[i]), NULL, &said.json),
            TG_OK);
        assert_int_equal(tg_chat_render(&x.ctx, &t, NULL, &said, &x.out), TG_E_ARG);
    }
    tg_chat_template_deinit(&t);
    tg_arena_deinit(&arena);
    end(&x);
}

/* A vocabulary without the template's token is an error that names one; failing memory leaves the
 * ids as they were. */
static void failures(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok *tok = bpe(&ctx);
    tg_ids ids;
    tg_ids_init(&ids, &ctx.mem);
    const tg_chat_said said = { .turns = turns, .n = 4 };
    tg_chat_template gemma = named("gemma"), smollm2 = named("smollm2");
    assert_int_equal(tg_chat_encode(&ctx, &gemma, tok, &said, &ids), TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "<start_of_turn>"));
    for (size_t at = 1;; at++) {
        test_alloc a = { .fail_at = at };
        const tg_mem mem = test_alloc_mem(&a);
        tg_ctx failing;
        tg_ctx_init(&failing, &mem, NULL, NULL);
        int32_t stop[TG_CHAT_ENDS_MAX];
        size_t n;
        tg_status status = tg_chat_encode(&failing, &smollm2, tok, &said, &ids);
        if (status != TG_OK) assert_int_equal(ids.n, 0);
        if (status == TG_OK) status = tg_chat_ends(&failing, &smollm2, tok, stop, &n);
        assert_int_equal(a.live_pieces, 0);
        if (status == TG_OK) break;
        assert_int_equal(status, TG_E_MEMORY);
        ids.n = 0;
    }
    assert_true(ids.n > 0);
    tg_ids_deinit(&ids);
    tg_chat_template_deinit(&gemma);
    tg_chat_template_deinit(&smollm2);
    tg_tok_free(tok);
}

/* An answer stops at the template's end, if the vocabulary has it, and at its own end. */
static void the_vocabulary_ends_too(void **state) {
    (void)state;
    static const char *const names[] = { "a", "<|im_start|>", "<|im_end|>", "</s>" };
    static const uint8_t kinds[] = { 1, 3, 3, 3 };
    tg_tok_text pieces[4];
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (int i = 0; i < 4; i++)
        pieces[i] = (tg_tok_text) { .bytes = names[i], .n_bytes = (uint32_t)strlen(names[i]) };
    /* With an end behind the answer, with the next turn's beginning there, and with words. */
    static const char *const texts[] = {
        ("{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}\n<|im_end|>"
         "{% endif %}{% endfor %}"),
        "{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}",
        "{% for m in messages %}{{ m.content }} a<|im_end|>{% endfor %}",
        "{{ raise_exception('no') }}",
    };
    static const int32_t own[] = { 2, 1, -1, -1 };
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
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
            tg_chat_template t;
            int32_t stop[TG_CHAT_ENDS_MAX];
            size_t n, want = 0;
            assert_int_equal(tg_chat_template_new(&ctx, "text", texts[i], strlen(texts[i]), &t),
                             TG_OK);
            assert_int_equal(tg_chat_ends(&ctx, &t, tok, stop, &n), TG_OK);
            if (own[i] >= 0) assert_int_equal(stop[want++], own[i]);
            if (eos >= 0 && eos != own[i]) assert_int_equal(stop[want++], eos);
            assert_int_equal(n, want);
            tg_chat_template_deinit(&t);
        }
        tg_tok_free(tok);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vocabulary_ends_too),
        cmocka_unit_test(as_the_models_templates),
        cmocka_unit_test(as_files_have_them),
        cmocka_unit_test(seams),
        cmocka_unit_test(going_on),
        cmocka_unit_test(going_on_adds_no_opening),
        cmocka_unit_test(of_json),
        cmocka_unit_test(dates),
        cmocka_unit_test(special_tokens_are_the_templates),
        cmocka_unit_test(wrong_orders),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
