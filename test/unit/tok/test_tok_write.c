/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tok_write.c - tokenizer.json as it is written: read again, it gives the ids of the tokenizer
 * that it was written of; and those that Hugging Face's tokenizers give (tools/oracle/folder.py
 * opens such files there).
 */
#include "fail_alloc.h"
#include "tok_util.h"

#include "load/vocabulary.h"
#include "tok/tok_inside.h"

#include <unistd.h>

#define MODELS  ".cache/models/"
#define TEXT(s) { s, sizeof(s) - 1 }

static tg_tok *load(tg_ctx *ctx, const char *text, size_t n) {
    tg_tok *tok;
    if (tg_tok_new_json(ctx, "tokenizer.json", text, n, &tok) != TG_OK)
        fail_msg("%s", ctx->message);
    return tok;
}

static tg_tok *golden(tg_ctx *ctx, const char *name) {
    char path[256];
    size_t n;
    snprintf(path, sizeof path, TOK_GOLDEN "%s.json", name);
    char *text = read_file(path, &n);
    tg_tok *tok = load(ctx, text, n);
    free(text);
    return tok;
}

/* What is read of what is written. */
static tg_tok *again(tg_ctx *ctx, const tg_tok *tok) {
    tg_buf text;
    tg_buf_init(&text, &ctx->mem);
    if (tg_tok_put_json(ctx, tok, &text) != TG_OK) fail_msg("%s", ctx->message);
    tg_tok *read = load(ctx, text.data, text.length);
    tg_buf_deinit(&text);
    return read;
}

static void same_ids(tg_ctx *ctx, const tg_tok *a, const tg_tok *b, const char *text, size_t n,
                     unsigned flags) {
    tg_ids x, y;
    tg_ids_init(&x, &ctx->mem);
    tg_ids_init(&y, &ctx->mem);
    assert_int_equal(tg_tok_encode(ctx, a, text, n, flags, &x), TG_OK);
    assert_int_equal(tg_tok_encode(ctx, b, text, n, flags, &y), TG_OK);
    if (x.n != y.n || (x.n && memcmp(x.id, y.id, x.n * sizeof *x.id) != 0))
        fail_msg("%.*s: other ids, of them %zu and %zu", (int)n, text, x.n, y.n);
    tg_ids_deinit(&x);
    tg_ids_deinit(&y);
}

/* Both make the same of the 2,000 strings. */
static void same_strings(tg_ctx *ctx, const tg_tok *a, const tg_tok *b, unsigned flags) {
    size_t n;
    char *text = read_file(TOK_GOLDEN "strings.json", &n);
    const tg_json *source;
    tg_arena arena;
    tg_buf string;
    tg_arena_init(&arena, &ctx->mem);
    tg_buf_init(&string, &ctx->mem);
    assert_int_equal(tg_json_parse(ctx, &arena, "strings", text, n, NULL, &source), TG_OK);
    for (uint64_t i = 0; i < N_TOK_STRINGS; i++) {
        tok_string(source, i, &string);
        same_ids(ctx, a, b, tg_buf_text(&string), string.length, flags);
    }
    tg_buf_deinit(&string);
    tg_arena_deinit(&arena);
    free(text);
}

/* The description that a GGUF file would give of a tokenizer: its arrays, in the arena. */
static tg_tok_desc described(tg_arena *arena, const tg_tok *t) {
    tg_tok_desc d;
    tg_tok_desc_init(&d);
    tg_tok_text *pieces = tg_arena_array(arena, t->n, sizeof *pieces);
    tg_tok_text *merges = tg_arena_array(arena, (size_t)t->pairs.mask + 1, 2 * sizeof *merges);
    tg_tok_merges m = { .n = 0 };
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    if (t->pairs.slot) assert_int_equal(tg_tok_merges_of(&ctx, t, arena, &m), TG_OK);
    for (size_t i = 0; i < t->n; i++) {
        size_t n;
        pieces[i].bytes = tg_strings_get(&t->pieces, i, &n);
        pieces[i].n_bytes = (uint32_t)n;
    }
    for (size_t i = 0; i < m.n; i++) {
        merges[2 * i] = pieces[m.pair[m.order[i]].left];
        merges[2 * i + 1] = pieces[m.pair[m.order[i]].right];
    }
    d.model = t->model;
    d.split = t->split;
    d.normal = t->normal;
    d.n_tokens = t->n;
    d.pieces = pieces;
    d.types = t->types;
    d.merges = merges;
    d.n_merges = m.n;
    d.unknown = t->unknown;
    return d;
}

static tg_tok *made(tg_ctx *ctx, const tg_tok_desc *d) {
    tg_tok *tok;
    if (tg_tok_new(ctx, d, &tok) != TG_OK) fail_msg("%s", ctx->message);
    return tok;
}

/* Byte-level BPE with each splitter: the reference's ids, after one way through the file. */
static void splitters(void **state) {
    (void)state;
    static const struct {
        const char *name;
        tg_tok_split split;
        unsigned normal;
    } all[] = { { "gpt2", TG_TOK_SPLIT_GPT2, 0 },
                { "smollm", TG_TOK_SPLIT_SMOLLM, 0 },
                { "llama3", TG_TOK_SPLIT_LLAMA3, 0 },
                { "qwen2", TG_TOK_SPLIT_QWEN2, TG_TOK_NFC },
                { "qwen35", TG_TOK_SPLIT_QWEN35, TG_TOK_NFC },
                { "gpt4o", TG_TOK_SPLIT_GPT4O, 0 },
                { "tekken", TG_TOK_SPLIT_TEKKEN, 0 } };
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok *base = golden(&ctx, "byte_bpe");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tg_arena arena;
        tg_arena_init(&arena, &ctx.mem);
        tg_tok_desc d = described(&arena, base);
        d.split = all[i].split;
        d.normal = all[i].normal;
        d.ignore_merges = i % 2 && i < 5;
        d.bos = d.eos = 0; /* one token at both ends */
        d.add_bos = d.add_eos = true;
        tg_tok *first = made(&ctx, &d), *second = again(&ctx, first);
        if (!d.ignore_merges) same_as_reference(&ctx, second, all[i].name, 0);
        same_strings(&ctx, first, second, TG_TOK_ENDS | TG_TOK_SPECIAL);
        assert_int_equal(second->ignore_merges, d.ignore_merges);
        tg_tok_free(first);
        tg_tok_free(second);
        tg_arena_deinit(&arena);
    }
    tg_tok_free(base);
}

/* Merges of characters as SentencePiece has them: a score for each piece, falling with the rank. */
static void sentencepiece(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok *base = golden(&ctx, "char_bpe");
    for (int prefix = 0; prefix < 2; prefix++) {
        tg_arena arena;
        tg_arena_init(&arena, &ctx.mem);
        tg_tok_desc d = described(&arena, base);
        double *scores = tg_arena_array(&arena, d.n_tokens, sizeof *scores);
        uint8_t *types = tg_arena_alloc(&arena, d.n_tokens);
        memcpy(types, d.types, d.n_tokens);
        for (size_t i = 0; i < d.n_tokens; i++) scores[i] = -(double)i;
        /* Users' tokens are found after blanks have become marks: without a prefix, here too. */
        size_t of = 300;
        while (d.pieces[of].n_bytes < 5 || memcmp(d.pieces[of].bytes, TG_BLANK_MARK, 3) != 0) of++;
        if (!prefix) types[of] = TG_TOK_USER_DEFINED;
        d.model = TG_TOK_SCORE_BPE;
        d.scores = scores;
        d.types = types;
        d.bos = 1;
        d.add_bos = true;
        if (prefix) d.normal |= TG_TOK_PREFIX_BLANK;
        tg_tok *first = made(&ctx, &d), *second = again(&ctx, first);
        assert_int_equal(tg_tok_model_of(second), TG_TOK_MERGE_BPE);
        same_strings(&ctx, first, second, TG_TOK_ENDS);
        same_strings(&ctx, first, second, TG_TOK_SPECIAL);
        tg_tok_free(first);
        tg_tok_free(second);
        tg_arena_deinit(&arena);
    }
    tg_tok *same = again(&ctx, base); /* merges by their ranks, as Gemma's files have them */
    same_strings(&ctx, base, same, TG_TOK_ENDS);
    same_strings(&ctx, base, same, TG_TOK_SPECIAL);
    tg_tok_free(same);
    tg_tok_free(base);
    tg_tok *other = golden(&ctx, "unigram");
    tg_buf text;
    tg_buf_init(&text, &ctx.mem);
    assert_int_equal(tg_tok_put_json(&ctx, other, &text), TG_E_UNSUPPORTED);
    tg_buf_deinit(&text);
    tg_tok_free(other);
}

/* Where no piece is marked, a word may well begin with the mark. */
static void mark_as_letter(tg_ctx *ctx) {
    static const char json[] =
        "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"continuing_subword_prefix\":\"##\","
        "\"max_input_chars_per_word\":100,"
        "\"vocab\":{\"?\":0,\"" TG_BLANK_MARK "\":1,\"##a\":2,\"" TG_BLANK_MARK "a\":3}}}";
    tg_tok *tok = load(ctx, json, sizeof json - 1);
    tg_ids ids;
    tg_ids_init(&ids, &ctx->mem);
    assert_int_equal(tg_tok_encode(ctx, tok, TG_BLANK_MARK "a", 4, 0, &ids), TG_OK);
    assert_int_equal(ids.n, 1);
    assert_int_equal(ids.id[0], 3);
    tg_ids_deinit(&ids);
    tg_tok_free(tok);
}

/* WordPiece, also with GGUF's marks at the beginnings of words. */
static void wordpiece(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_arena arena;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_arena_init(&arena, &ctx.mem);
    mark_as_letter(&ctx);
    tg_tok *base = golden(&ctx, "wordpiece"), *plain = again(&ctx, base);
    same_as_reference(&ctx, plain, "wordpiece", 0);
    tg_tok_desc d = described(&arena, base);
    tg_tok_text *pieces = tg_arena_array(&arena, d.n_tokens, sizeof *pieces);
    for (size_t i = 0; i < d.n_tokens; i++) {
        const tg_tok_text *p = &d.pieces[i];
        const bool word = d.types[i] == TG_TOK_NORMAL,
                   on = p->n_bytes > 2 && p->bytes[0] == '#' && p->bytes[1] == '#';
        const char *marked = tg_arena_sprintf(&arena, "%s%.*s", word && !on ? TG_BLANK_MARK : "",
                                              (int)p->n_bytes - 2 * on, p->bytes + 2 * on);
        pieces[i] = (tg_tok_text) { marked, (uint32_t)strlen(marked) };
    }
    d.pieces = pieces;
    d.word_starts_marked = true;
    d.cls = tg_tok_find(base, "[CLS]", 5);
    d.sep = tg_tok_find(base, "[SEP]", 5);
    d.add_bos = d.add_eos = true;
    tg_tok *marked = made(&ctx, &d), *second = again(&ctx, marked);
    same_as_reference(&ctx, second, "wordpiece", 0);
    same_as_reference(&ctx, marked, "wordpiece", 0); /* also where the text itself has the mark */
    static const char text[] = "[CLS] the cat's [SEP][MASK] (na\xc3\xafve)";
    same_ids(&ctx, marked, second, text, sizeof text - 1, TG_TOK_ENDS | TG_TOK_SPECIAL);
    same_ids(&ctx, marked, second, text, sizeof text - 1, 0);
    for (int32_t i = 0; i < (int32_t)d.n_tokens; i++) {
        size_t a, b;
        const char *x = tg_tok_bytes(base, i, &a), *y = tg_tok_bytes(second, i, &b);
        assert_int_equal(a, b);
        assert_memory_equal(x, y, a);
    }
    tg_tok_free(base);
    tg_tok_free(plain);
    tg_tok_free(marked);
    tg_tok_free(second);
    tg_arena_deinit(&arena);
}

/* Pieces that are empty, repeated, or made of what JSON escapes. */
static void odd_pieces(void **state) {
    (void)state;
    static const tg_tok_text pieces[] = { TEXT("\""), TEXT("\\"),   TEXT("a\nb"), TEXT(""),
                                          TEXT("\\"), TEXT("\"\\"), TEXT("<s\t>") };
    static const uint8_t types[] = { 1, 1, 4, 1, 1, 1, 3 };
    static const tg_tok_text merges[] = { TEXT("\""), TEXT("\\") };
    static const char text[] = "\"\\a\nb\\\"<s\t>";
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok_desc d;
    tg_tok_desc_init(&d);
    d.model = TG_TOK_BYTE_BPE;
    d.n_tokens = sizeof types;
    d.pieces = pieces;
    d.types = types;
    d.merges = merges;
    d.n_merges = 1;
    tg_tok *first = made(&ctx, &d), *second = again(&ctx, first);
    same_ids(&ctx, first, second, text, sizeof text - 1, TG_TOK_SPECIAL);
    assert_int_equal(tg_tok_count(second), d.n_tokens);
    tg_tok_free(first);
    tg_tok_free(second);
}

/* The vocabularies of real models. */
static void real_models(void **state) {
    (void)state;
    static const struct {
        const char *path, *name;
        bool special;
    } all[] = { { MODELS "SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2", true },
                { MODELS "gemma-3-270m-q4_k_m.gguf", "gemma3", false } };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tg_context *ctx;
        tg_tokenizer *t;
        if (access(all[i].path, R_OK) != 0)
            fail_msg("%s is missing: tools/setup.sh fetches it", all[i].path);
        assert_int_equal(tg_context_new(NULL, &ctx), TG_OK);
        assert_int_equal(tg_tokenizer_open(ctx, all[i].path, &t), TG_OK);
        tg_tok *second = again(&ctx->err, t->tok);
        same_as_reference(&ctx->err, second, all[i].name, 0);
        same_strings(&ctx->err, t->tok, second, TG_TOK_ENDS | TG_TOK_SPECIAL);
        tg_tok_free(second);
        tg_tokenizer_free(t);
        tg_context_free(ctx);
    }
}

static void no_memory(void **state) {
    (void)state;
    static const char *const names[] = { "byte_bpe", "wordpiece" };
    for (size_t k = 0; k < 4; k++) {
        tg_ctx good;
        tg_ctx_init(&good, NULL, NULL, NULL);
        tg_tok *tok = golden(&good, names[k / 2]);
        tg_status s = TG_E_MEMORY;
        for (size_t n = 1; s != TG_OK; n++) {
            test_alloc a = { .fail_at = n, .sticky = k % 2 };
            const tg_mem mem = test_alloc_mem(&a);
            tg_ctx ctx;
            tg_buf text;
            tg_ctx_init(&ctx, &mem, NULL, NULL);
            tg_buf_init(&text, &ctx.mem);
            s = tg_tok_put_json(&ctx, tok, &text);
            assert_true(s == TG_E_MEMORY || (s == TG_OK && a.requests < n));
            tg_buf_deinit(&text);
            assert_int_equal(a.live_pieces, 0);
        }
        tg_tok_free(tok);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitters),  cmocka_unit_test(sentencepiece), cmocka_unit_test(wordpiece),
        cmocka_unit_test(odd_pieces), cmocka_unit_test(real_models),   cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
