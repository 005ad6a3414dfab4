/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tok_golden.c - 2,000 strings become the ids that the reference tokenizers make of them.
 *
 * The vocabularies and the hashes are those of tools/oracle/tok_golden.py. Each splitter is put
 * into the vocabulary of byte-level BPE in the place that is empty there.
 */
#include "tok_util.h"

#include "tok/split.h"

#define SHORT "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
#define LINES "[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define LEAD  "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"
#define CASED(end, digits)                                                                          \
    LEAD                                                                                            \
        "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+" end \
        "|" LEAD                                                                                    \
        "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*" end \
        "|" digits                                                                                  \
        "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define BYTE_LEVEL(regex)                                                                           \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":" regex \
    "}"
#define SEQUENCE(first, second) "{\"type\":\"Sequence\",\"pretokenizers\":[" first "," second "]}"
#define PATTERN(regex)                                                                             \
    SEQUENCE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex                                 \
             "\"},\"behavior\":\"Isolated\",\"invert\":false}",                                    \
             BYTE_LEVEL("false"))

static const struct splitter {
    const char *name, *normalizer, *pre_tokenizer;
} splitters[] = {
    { "gpt2", "null", BYTE_LEVEL("true") },
    { "smollm", "null",
      SEQUENCE("{\"type\":\"Digits\",\"individual_digits\":true}", BYTE_LEVEL("true")) },
    { "llama3", "null",
      PATTERN(
          SHORT
          "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+" LINES) },
    { "qwen2", "{\"type\":\"NFC\"}",
      PATTERN(
          SHORT
          "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+" LINES) },
    { "qwen35", "{\"type\":\"NFC\"}",
      PATTERN(SHORT "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|\\\\p{N}|"
                    " ?[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]+" LINES) },
    { "gpt4o", "null", PATTERN(CASED("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\\\p{N}{1,3}")) },
    { "tekken", "null", PATTERN(CASED("", "\\\\p{N}")) },
};

/* text with the one `from` in it replaced by `to`. */
static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    const size_t room = strlen(text) + strlen(to) + 1;
    char *out = malloc(room);
    assert_non_null(out);
    snprintf(out, room, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static tg_tok *load(tg_ctx *ctx, const char *text, size_t n) {
    tg_tok *tok;
    if (tg_tok_new_json(ctx, "tokenizer.json", text, n, &tok) != TG_OK)
        fail_msg("%s", ctx->message);
    return tok;
}

static tg_tok *with_splitter(tg_ctx *ctx, const struct splitter *s) {
    char part[1024];
    size_t n;
    char *base = read_file(TOK_GOLDEN "byte_bpe.json", &n);
    snprintf(part, sizeof part, "\"pre_tokenizer\": %s", s->pre_tokenizer);
    char *one = replaced(base, "\"pre_tokenizer\":" BYTE_LEVEL("true"), part);
    snprintf(part, sizeof part, "\"normalizer\": %s", s->normalizer);
    char *both = replaced(one, "\"normalizer\":null", part);
    tg_tok *tok = load(ctx, both, strlen(both));
    free(both);
    free(one);
    free(base);
    return tok;
}

static void byte_level(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof splitters / sizeof splitters[0]; i++) {
        tg_tok *tok = with_splitter(&ctx, &splitters[i]);
        same_as_reference(&ctx, tok, splitters[i].name, 0);
        if (strcmp(splitters[i].name, "qwen35") == 0) {
            same_as_reference(&ctx, tok, "qwen35_special", TG_TOK_ENDS | TG_TOK_SPECIAL);
        }
        tg_tok_free(tok);
    }
}

/* What ids of a small vocabulary hardly tell: where words by case end. As the library cuts them, a
 * bar before each but the first: a first part that gives back, marks and letters without case,
 * titles, numbers and capitals that go to lower case and are no letters, every second letter a
 * capital. */
static void words_by_case(void **state) {
    (void)state;
    static const struct {
        tg_tok_split rule;
        const char *words;
    } cases[] = {
        { TG_TOK_SPLIT_GPT4O, "\346\274\242|AB| c" },
        { TG_TOK_SPLIT_GPT4O, "ABC\346\274\242D\303\251" },
        { TG_TOK_SPLIT_GPT4O, "\314\201|AB" },
        { TG_TOK_SPLIT_GPT4O, "!\314\201Ab" },
        { TG_TOK_SPLIT_GPT4O, "HELLOworld's| I'LL" },
        { TG_TOK_SPLIT_GPT4O, "\312\260|A" },
        { TG_TOK_SPLIT_GPT4O, "\307\205ungla| |\342\205\243|A" },
        { TG_TOK_SPLIT_GPT4O, "ab|./\n/|c" },
        { TG_TOK_SPLIT_GPT4O, "123|45" },
        { TG_TOK_SPLIT_GPT4O,
          "\360\235\220\200\360\235\220\201a| \304\202\304\203|\304\204\304\205" },
        { TG_TOK_SPLIT_GPT4O, "\304\202\304\204A'S|x" },
        { TG_TOK_SPLIT_TEKKEN, "HELLOworld|'s| I|'LL" },
        { TG_TOK_SPLIT_TEKKEN, "1|2|3" },
        { TG_TOK_SPLIT_TEKKEN, "\304\202\304\204A|'Sx" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64], have[128] = "";
        size_t n = 0, from;
        for (const char *c = cases[i].words; *c; c++)
            if (*c != '|') text[n++] = *c;
        tg_splitter s = { .rule = cases[i].rule, .text = text, .n = n };
        while (tg_split_next(&s, &from)) {
            if (from) strcat(have, "|");
            strncat(have, text + from, s.at - from);
        }
        assert_string_equal(have, cases[i].words);
    }
}

static void other_models(void **state) {
    (void)state;
    static const char *const names[] = { "char_bpe", "unigram", "wordpiece" };
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[256];
        size_t n;
        snprintf(path, sizeof path, TOK_GOLDEN "%s.json", names[i]);
        char *text = read_file(path, &n);
        tg_tok *tok = load(&ctx, text, n);
        same_as_reference(&ctx, tok, names[i], 0);
        tg_tok_free(tok);
        free(text);
    }
}

/* Byte-level BPE and byte fallback give every byte string back. */
static void round_trips(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    size_t n;
    char *text = read_file(TOK_GOLDEN "char_bpe.json", &n);
    tg_tok *toks[] = { with_splitter(&ctx, &splitters[0]), with_splitter(&ctx, &splitters[1]),
                       with_splitter(&ctx, &splitters[2]), load(&ctx, text, n) };
    uint64_t random = 7;
    tg_ids ids;
    tg_ids_init(&ids, &ctx.mem);
    for (int round = 0; round < 2000; round++) {
        char bytes[64];
        const size_t length = draw_below(&random, sizeof bytes + 1);
        for (size_t i = 0; i < length; i++) {
            const size_t b = draw_below(&random, 512);
            bytes[i] = b < 256 ? (char)b : "aeiou \n0\xe2"[b % 9];
        }
        for (size_t k = 0; k < sizeof toks / sizeof toks[0]; k++) {
            ids.n = 0;
            assert_int_equal(tg_tok_encode(&ctx, toks[k], bytes, length, 0, &ids), TG_OK);
            size_t at = 0, n_bytes;
            for (size_t i = 0; i < ids.n; i++, at += n_bytes) {
                const char *out = tg_tok_bytes(toks[k], ids.id[i], &n_bytes);
                assert_true(at + n_bytes <= length);
                assert_memory_equal(out, bytes + at, n_bytes);
            }
            assert_int_equal(at, length);
        }
    }
    tg_ids_deinit(&ids);
    for (size_t k = 0; k < sizeof toks / sizeof toks[0]; k++) tg_tok_free(toks[k]);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level),
        cmocka_unit_test(words_by_case),
        cmocka_unit_test(other_models),
        cmocka_unit_test(round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
