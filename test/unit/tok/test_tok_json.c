/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tok_json.c - parts of tokenizer.json, one odd in each row: read as what they mean, or
 * refused with words that name them; and no part is lost where memory is.
 */
#include "tok_util.h"

#include "fail_alloc.h"

/* NULL: the part is missing; of the model, a small BPE. says NULL: the file is read. */
typedef struct row {
    const char *normalizer, *pre, *model, *added, *post, *truncation, *says;
} row;

#define MARK                  "\xe2\x96\x81"
#define SEQUENCE(list, parts) "{\"type\":\"Sequence\",\"" list "\":[" parts "]}"
#define REPLACE               "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"}"
#define BPE(members)          "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}," members "}"
#define VOCAB(vocab)          "{\"type\":\"BPE\",\"vocab\":{" vocab "},\"merges\":[]}"
#define WORDPIECE(members)                                                                              \
    "{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0,\"a\":1,\"##a\":2},\"unk_token\":\"[UNK]\"" members \
    "}"
#define UNIGRAM(list, members) "{\"type\":\"Unigram\",\"vocab\":[" list "]" members "}"
#define QWEN                                                                                       \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| "              \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(pattern, members) "{\"type\":\"Split\",\"pattern\":{" pattern "}" members "}"
#define REMOVED                 ",\"behavior\":\"Removed\",\"invert\":true"
#define ISOLATED                ",\"behavior\":\"Isolated\""
#define TEMPLATE(items)         "{\"type\":\"TemplateProcessing\",\"single\":[" items "]}"
#define SPECIAL(id)             "{\"SpecialToken\":{\"id\":" id "}}"
#define TEXT_ITEM               "{\"Sequence\":{\"id\":\"A\"}}"

static const row rows[] = {
    { .says = NULL },
    /* normalizers */
    { .normalizer = "null" },
    { .normalizer = "{\"type\":\"NFC\"}" },
    { .normalizer = "{\"type\":\"NFKC\"}" },
    { .normalizer = "{\"type\":\"Lowercase\"}" },
    { .normalizer = "{\"type\":7}",
      .says = "normalizer: want one of a known model family, have another form" },
    { .normalizer = "{}", .says = "normalizer: want one of a known" },
    { .normalizer = "{\"type\":\"Sequence\"}", .says = "normalizers" },
    { .normalizer = SEQUENCE("normalizers", "{\"type\":\"NFC\"},{\"type\":\"NFC\"}"),
      .says = "order" },
    { .normalizer = SEQUENCE("normalizers", "{\"type\":\"Nmt\"}"), .says = "have Nmt" },
    { .normalizer = "{\"type\":\"BertNormalizer\"}" },
    { .normalizer = "{\"type\":\"BertNormalizer\",\"lowercase\":true,\"clean_text\":true,"
                    "\"handle_chinese_chars\":true,\"strip_accents\":false}" },
    { .normalizer = "{\"type\":\"BertNormalizer\",\"strip_accents\":true}" },
    { .normalizer = REPLACE },
    { .normalizer = "{\"type\":\"Replace\"}", .says = "have Replace" },
    { .normalizer = "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"}}",
      .says = "have Replace" },
    { .normalizer = "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" \"},\"content\":\"x\"}",
      .says = "have Replace" },
    { .normalizer = "{\"type\":\"Replace\",\"pattern\":{\"String\":\"y\"},\"content\":\"x\"}",
      .says = "have Replace" },
    { .normalizer = "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"x\"}",
      .says = "have Replace" },
    { .normalizer = "{\"type\":\"Prepend\",\"prepend\":\"" MARK "\"}" },
    { .normalizer = "{\"type\":\"Prepend\",\"prepend\":\"x\"}", .says = "have Prepend" },
    { .normalizer = "{\"type\":\"Prepend\"}", .says = "have Prepend" },
    { .normalizer = "{\"type\":\"Nmt\",\"prepend\":\"" MARK "\"}", .says = "have Nmt" },
    /* words */
    { .pre = "{\"type\":\"ByteLevel\"}" },
    { .pre = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":true}" },
    { .pre = "{\"type\":\"ByteLevel\",\"use_regex\":false}" },
    { .pre = SEQUENCE("pretokenizers", "{\"type\":\"Digits\",\"individual_digits\":true},"
                                       "{\"type\":\"ByteLevel\"}") },
    { .pre = "{\"type\":\"Digits\"}", .says = "have Digits" },
    { .pre = SEQUENCE("pretokenizers", "{\"type\":\"Digits\",\"individual_digits\":true},"
                                       "{\"type\":\"Digits\",\"individual_digits\":true}"),
      .says = "have Digits" },
    { .pre = SEQUENCE("pretokenizers",
                      SPLIT("\"Regex\":\"" QWEN "\"",
                            ISOLATED) ","
                                      "{\"type\":\"ByteLevel\",\"use_regex\":false}") },
    { .pre = SEQUENCE("pretokenizers",
                      SPLIT("\"Regex\":\"" QWEN "\"", ISOLATED) ","
                                                                "{\"type\":\"ByteLevel\"}"),
      .says = "have ByteLevel" },
    { .pre = SEQUENCE("pretokenizers", SPLIT("\"Regex\":\"" QWEN "\"", ISOLATED) "," SPLIT(
                                           "\"Regex\":\"" QWEN "\"", ISOLATED)),
      .says = "pre_tokenizer, pattern" },
    { .pre = SPLIT("\"Regex\":\"" QWEN "\"", ""), .says = "have Split" },
    { .pre = SPLIT("\"Regex\":\"" QWEN "\"", ISOLATED ",\"invert\":true"), .says = "have Split" },
    { .pre = SPLIT("\"Regex\":\"" QWEN "\"", ",\"behavior\":\"Removed\""), .says = "pattern" },
    { .pre = SEQUENCE("pretokenizers",
                      SPLIT("\"Regex\":\"" QWEN "\"",
                            REMOVED) ","
                                     "{\"type\":\"ByteLevel\",\"use_regex\":false}") },
    { .pre = SPLIT("\"String\":\" \"", REMOVED), .says = "pattern: want one of a known" },
    { .pre = SPLIT("\"String\":\" \"", ISOLATED), .says = "pattern: want one of a known" },
    { .pre = SPLIT("\"String\":\"x\"", ISOLATED),
      .says = "pattern: want one of a known model family, have x" },
    { .pre = SPLIT("", ISOLATED),
      .says = "pattern: want one of a known model family, have another form" },
    { .normalizer = REPLACE, .pre = SPLIT("\"String\":\" \"", ISOLATED) },
    { .pre = "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\"}" },
    { .pre = "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\",\"add_prefix_space\":true}" },
    { .pre =
          "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\",\"prepend_scheme\":\"always\"}" },
    { .pre = "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\",\"prepend_scheme\":\"never\"}" },
    { .pre = "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\",\"prepend_scheme\":\"first\"}",
      .says = "prepend_scheme: want one of a known model family, have first" },
    { .pre = "{\"type\":\"Metaspace\",\"replacement\":\"_\"}", .says = "have _" },
    { .pre = "{\"type\":\"Metaspace\"}", .says = "pre_tokenizer: want" },
    { .normalizer = REPLACE,
      .pre = "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\"}",
      .says = "order" },
    { .normalizer = REPLACE,
      .pre = "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\",\"prepend_scheme\":\"always\"}",
      .says = "order" },
    { .normalizer = REPLACE,
      .pre = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}",
      .says = "order" },
    { .pre = "{\"type\":\"BertPreTokenizer\"}", .says = "have BertPreTokenizer" },
    { .pre = "{\"type\":\"BertPreTokenizer\"}", .model = WORDPIECE("") },
    /* vocabularies */
    { .model = "7", .says = "model" },
    { .model = "{\"type\":\"BPE\"}", .says = "model: want a vocab, have none" },
    { .model = "{\"type\":\"BPE\",\"vocab\":[]}", .says = "model: want a vocab" },
    { .model = "{\"type\":\"Unigram\",\"vocab\":{}}", .says = "model: want a vocab" },
    { .model = "{\"vocab\":{\"a\":0}}", .says = "model: want one of a known" },
    { .model = VOCAB("\"a\":-1"), .says = "have -1" },
    { .model = VOCAB("\"a\":\"x\""), .says = "integer" },
    { .model = VOCAB("\"a\":0,\"c\":9"), .says = NULL },
    { .model = UNIGRAM("[\"a\",0],[\"<0x41>\",-1]", ",\"unk_id\":0,\"byte_fallback\":true") },
    { .model = UNIGRAM("[\"a\",0]", "") },
    { .model = UNIGRAM("[\"a\",0]", ",\"unk_id\":-1"), .says = "unknown" },
    { .model = UNIGRAM("[\"a\",0]", ",\"unk_id\":16777216"), .says = "unknown" },
    { .model = UNIGRAM("[\"a\",0]", ",\"unk_id\":\"a\""), .says = "integer" },
    { .model = UNIGRAM("7", ""), .says = "want [text, score]" },
    { .model = UNIGRAM("[\"a\"]", ""), .says = "want [text, score]" },
    { .model = UNIGRAM("[1,2]", ""), .says = "want [text, score]" },
    { .model = UNIGRAM("{\"a\":\"b\",\"c\":2}", ""), .says = "want [text, score]" },
    { .model = UNIGRAM("[\"a\",\"b\"]", ""), .says = "number" },
    { .model = UNIGRAM("[\"\",0]", ""), .says = "have an empty one" },
    { .model = "{\"type\":\"BPE\",\"vocab\":{\"<0x4Z>\":0,\"<0x41)\":1,\"<1x41>\":2},\"merges\":[],"
               "\"byte_fallback\":true}",
      .says = "<0x4Z>" },
    { .model = BPE("\"merges\":[\"a b\"],\"byte_fallback\":true,\"unk_token\":\"a\"") },
    { .model = BPE("\"merges\":[[\"a\",\"b\"]],\"unk_token\":5") },
    { .model = BPE("\"merges\":[]") },
    { .model = BPE("\"x\":0"), .says = "merges" },
    { .model = BPE("\"merges\":[7]"), .says = "want a merge of two" },
    { .model = BPE("\"merges\":[[\"a\",7]]"), .says = "want a merge of two" },
    { .model = BPE("\"merges\":[[7,\"b\"]]"), .says = "want a merge of two" },
    { .model = BPE("\"merges\":[[\"a\",\"b\",\"c\"]]"), .says = "want a merge of two" },
    { .model = BPE("\"merges\":[{\"a\":\"a\",\"b\":7}]"), .says = "want a merge of two" },
    { .model = BPE("\"merges\":[],\"dropout\":0.5"), .says = "dropout" },
    { .model = BPE("\"merges\":[],\"continuing_subword_prefix\":\"##\""), .says = "prefix" },
    { .model = BPE("\"merges\":[],\"end_of_word_suffix\":\"x\",\"continuing_subword_prefix\":\"\""),
      .says = "suffix" },
    { .model =
          WORDPIECE(",\"max_input_chars_per_word\":100,\"continuing_subword_prefix\":\"##\"") },
    { .model = WORDPIECE(",\"max_input_chars_per_word\":50"),
      .says = "WordPiece's prefix or limit" },
    { .model = WORDPIECE(",\"max_input_chars_per_word\":\"x\""), .says = "integer" },
    { .model = WORDPIECE(",\"continuing_subword_prefix\":\"@@\""), .says = "have @@" },
    /* added tokens */
    { .added =
          "[{\"id\":3,\"content\":\"x\",\"special\":true},{\"id\":4,\"content\":\"y\",\"normalized\":true}]" },
    { .added = "[{\"id\":0,\"content\":\"a\",\"special\":true}]" },
    { .added = "[{\"content\":\"x\"}]", .says = "id" },
    { .added = "[{\"id\":\"x\",\"content\":\"x\"}]", .says = "id" },
    { .added = "[{\"id\":1.5,\"content\":\"x\"}]", .says = "integer" },
    { .added = "[{\"id\":3}]", .says = "content" },
    { .added = "[{\"id\":3,\"content\":\"x\",\"lstrip\":true}]",
      .says = "stripping of neighbours" },
    { .added = "[{\"id\":3,\"content\":\"x\",\"rstrip\":true}]",
      .says = "stripping of neighbours" },
    { .added = "[{\"id\":3,\"content\":\"x\",\"single_word\":true}]",
      .says = "stripping of neighbours" },
    { .added = "[{\"id\":99999999,\"content\":\"x\"}]", .says = "have 99999999" },
    /* ends */
    { .post = "{\"type\":\"ByteLevel\"}" },
    { .post = SEQUENCE("processors", "{\"type\":\"ByteLevel\"}") },
    { .post = "{\"type\":\"Roberta\"}", .says = "have Roberta" },
    { .post = TEMPLATE(SPECIAL("\"a\"") "," TEXT_ITEM "," SPECIAL("\"b\"")) },
    { .post = TEMPLATE(SPECIAL("\"a\"") "," SPECIAL("\"b\"")), .says = "have b" },
    { .post = TEMPLATE(SPECIAL("\"x\"")), .says = "have x" },
    { .post = "{\"type\":\"TemplateProcessing\"}", .says = "single" },
    { .post = "{\"type\":\"BertProcessing\",\"cls\":[\"a\",0],\"sep\":[\"b\",1]}" },
    { .post = "{\"type\":\"BertProcessing\",\"cls\":[\"a\",0]}", .says = "cls or sep" },
    /* A name that is no text, or none, is not that of a number without a piece. */
    { .model = VOCAB("\"a\":0,\"c\":9"),
      .post = TEMPLATE(SPECIAL("{}")),
      .says = "post_processor" },
    { .model = VOCAB("\"a\":0,\"c\":9"),
      .post = TEMPLATE(SPECIAL("\"\"")),
      .says = "post_processor" },
    { .model = VOCAB("\"7\":0"), .post = TEMPLATE(SPECIAL("7")), .says = "post_processor" },
    /* lengths */
    { .truncation = "{\"max_length\":512}" },
    { .truncation = "{\"max_length\":2147483648}" },
    { .truncation = "null" },
    { .truncation = "{}", .says = "max_length" },
    { .truncation = "{\"max_length\":-1}", .says = "integer" },
};

static void add(char out[4096], const char *name, const char *part) {
    const size_t n = strlen(out);
    if (part) snprintf(out + n, 4096 - n, "%s\"%s\":%s", n > 1 ? "," : "", name, part);
}

static void file_of(const row *r, char out[4096]) {
    strcpy(out, "{");
    add(out, "normalizer", r->normalizer);
    add(out, "pre_tokenizer", r->pre);
    add(out, "model", r->model ? r->model : BPE("\"merges\":[\"a b\"]"));
    add(out, "added_tokens", r->added);
    add(out, "post_processor", r->post);
    add(out, "truncation", r->truncation);
    strcat(out, "}");
}

static void parts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char file[4096];
        tg_ctx ctx;
        tg_tok *tok;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        file_of(&rows[i], file);
        const tg_status s = tg_tok_new_json(&ctx, "file", file, strlen(file), &tok);
        if ((s == TG_OK) != (rows[i].says == NULL) ||
            (s != TG_OK && !strstr(ctx.message, rows[i].says)))
            fail_msg("%s: want \"%s\", have %d \"%s\"", file, rows[i].says ? rows[i].says : "",
                     (int)s, ctx.message);
        tg_tok_free(tok);
    }
}

/* Reads, encodes, writes. A small vocabulary may lack what the text has, or have what is not
 * written. */
static tg_status use(tg_ctx *ctx, const char *file) {
    static const char text[] = "  <0x41> ab a b 4a\n\xc3\x9c " MARK "a";
    tg_tok *tok;
    tg_ids ids;
    tg_buf out;
    tg_ids_init(&ids, &ctx->mem);
    tg_buf_init(&out, &ctx->mem);
    tg_status s = tg_tok_new_json(ctx, "file", file, strlen(file), &tok);
    if (s == TG_OK) s = tg_tok_encode(ctx, tok, "ab", 2, TG_TOK_ENDS | TG_TOK_SPECIAL, &ids);
    if (s == TG_OK) s = tg_tok_encode(ctx, tok, text, sizeof text - 1, TG_TOK_ENDS, &ids);
    if (s == TG_OK || s == TG_E_FORMAT) s = tok ? tg_tok_put_json(ctx, tok, &out) : s;
    tg_tok_free(tok);
    tg_ids_deinit(&ids);
    tg_buf_deinit(&out);
    return s;
}

static void failing_memory(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char file[4096];
        if (rows[i].says) continue;
        file_of(&rows[i], file);
        size_t all = 1;
        tg_status whole = TG_OK;
        for (size_t n = 0; n <= all; n++) {
            test_alloc a = { .fail_at = n };
            const tg_mem mem = test_alloc_mem(&a);
            tg_ctx ctx;
            tg_ctx_init(&ctx, &mem, NULL, NULL);
            const tg_status s = use(&ctx, file);
            if (n == 0) whole = s;
            if (s != TG_E_MEMORY && s != whole)
                fail_msg("%s, request %zu: %d %s", file, n, (int)s, ctx.message);
            if (n == 0) all = a.requests;
            assert_int_equal(a.live_pieces, 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),
        cmocka_unit_test(failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
