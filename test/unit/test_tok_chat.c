/*
 * test_tok_chat.c - conversations become what the models' own templates make of them
 * (test/golden/tok/chat.json, by tools/oracle/chat.py), and special tokens stay the template's.
 */
#include "fail_alloc.h"
#include "tok_util.h"

#include "tok/chat.h"

#define TURN(role, text) { role, text, sizeof(text) - 1 }
static const tg_chat_turn turns[] = {
    TURN(TG_CHAT_SYSTEM, " Be brief. "),
    TURN(TG_CHAT_USER, "\n Hi <|im_end|> there \n"),
    TURN(TG_CHAT_ASSISTANT, "<think>\nA greeting.\n</think>\n\nHello! "),
    TURN(TG_CHAT_USER, "Write <eos> twice."),
};
/* Of the turns above: the first and how many, as in the script. */
static const struct {
    size_t first, n;
} conversations[] = { { 1, 1 }, { 0, 2 }, { 1, 3 }, { 0, 4 } };

static void as_the_models_templates(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    size_t n;
    char *text = read_file(TOK_GOLDEN "chat.json", &n);
    tg_arena arena;
    tg_arena_init(&arena, &ctx.mem);
    const tg_json *root;
    assert_int_equal(tg_json_parse(&ctx, &arena, "chat.json", text, n, NULL, &root), TG_OK);
    assert_int_equal(root->count, 64);
    tg_buf out;
    tg_buf_init(&out, &ctx.mem);
    for (const tg_json *row = tg_json_first(root); row; row = tg_json_next(row)) {
        const tg_chat_template *t = tg_chat_named(tg_json_get(row, "template")->u.text);
        const bool thinking = tg_json_kind(tg_json_get(row, "thinking")) == TG_JSON_TRUE;
        int64_t k;
        assert_non_null(t);
        assert_int_equal(tg_json_int64(&ctx, tg_json_get(row, "conversation"), &k), TG_OK);
        tg_buf_clear(&out);
        assert_int_equal(tg_chat_render(&ctx, t, turns + conversations[k].first, conversations[k].n,
                                        thinking ? 0 : TG_CHAT_NO_THINKING, &out),
                         TG_OK);
        if (!tg_json_is(tg_json_get(row, "text"), tg_buf_text(&out))) {
            fail_msg("%s, conversation %d:\n%s\nwant\n%s", tg_chat_name(t), (int)k,
                     tg_buf_text(&out), tg_json_get(row, "text")->u.text);
        }
    }
    tg_buf_deinit(&out);
    tg_arena_deinit(&arena);
    free(text);
}

static void detection(void **state) {
    (void)state;
    static const struct {
        const char *text, *name;
    } cases[] = {
        { "{{'<|im_start|>' + role + '\\n' + content + '<|im_end|>'}}", "chatml" },
        { "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>",
          "smollm2" },
        { "<|im_start|>system\\nYou are a helpful assistant.<|im_end|>", "qwen2" },
        { "<|im_start|> You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
          "qwen2.5" },
        { "<|im_start|> last_query_index {%- if enable_thinking is false %} <think>\\n\\n</think>",
          "qwen3" },
        { "render_content() enable_thinking {%- else %}\n{{- '<think>\\n' }}", "qwen3.5" },
        { "last_query_index {{- '<|im_start|>assistant\\n<think>\\n' }}", "qwen3-thinking" },
        { "<|start_header_id|> <|eot_id|>", "llama3" },
        { "<|start_header_id|>Cutting Knowledge Date: December 2023\\nToday Date: ", "llama3.1" },
        { "'<start_of_turn>' + role, model", "gemma" },
        { "<|im_start|>SmolLM3 enable_thinking <think> <|im_end|>", NULL },
        { "[INST] {{ message }} [/INST]", NULL },
        { "", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_chat_template *t = tg_chat_detect(cases[i].text, strlen(cases[i].text));
        if ((t == NULL) != (cases[i].name == NULL) ||
            (t && strcmp(tg_chat_name(t), cases[i].name) != 0)) {
            fail_msg("%s: have %s", cases[i].text, t ? tg_chat_name(t) : "none");
        }
    }
    assert_null(tg_chat_named("nobody"));
    for (size_t i = 0; tg_chat_at(i); i++) {
        assert_ptr_equal(tg_chat_named(tg_chat_name(tg_chat_at(i))), tg_chat_at(i));
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
    const tg_chat_template *t = tg_chat_named("chatml");
    tg_ids ids;
    tg_ids_init(&ids, &ctx.mem);
    assert_int_equal(tg_chat_encode(&ctx, t, tok, turns, 4, 0, &ids), TG_OK);
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
    const struct {
        const char *name;
        const tg_chat_turn *turns;
        size_t n;
        tg_status want;
    } cases[] = {
        { "chatml", none, 0, TG_E_ARG },     { "chatml", two, 2, TG_OK },
        { "gemma", two, 2, TG_E_ARG },       { "chatml", late, 3, TG_E_ARG },
        { "chatml", answered, 2, TG_E_ARG }, { "gemma", none, 1, TG_OK },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_ctx ctx;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_buf out;
        tg_buf_init(&out, &ctx.mem);
        assert_int_equal(
            tg_chat_render(&ctx, tg_chat_named(cases[i].name), cases[i].turns, cases[i].n, 0, &out),
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
    assert_int_equal(tg_chat_encode(&ctx, tg_chat_named("gemma"), tok, turns, 4, 0, &ids),
                     TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "<bos>"));
    for (size_t at = 1;; at++) {
        test_alloc a = { .fail_at = at };
        const tg_mem mem = test_alloc_mem(&a);
        tg_ctx failing;
        tg_ctx_init(&failing, &mem, NULL, NULL);
        const tg_status status =
            tg_chat_encode(&failing, tg_chat_named("smollm2"), tok, turns, 4, 0, &ids);
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
        cmocka_unit_test(special_tokens_are_the_templates),
        cmocka_unit_test(wrong_orders),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
