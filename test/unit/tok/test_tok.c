/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tok.c - tokenizers on vocabularies of a few pieces: merging, special tokens, hostile files,
 * failing memory, and the hold-back of unfinished characters.
 */
#include "fail_alloc.h"
#include "tok/tok_inside.h"
#include "tok/unicode/normal.h"
#include "tok_util.h"

#define TEXT(s) { s, sizeof(s) - 1 }

/* a, b, ab, abab and bab in the alphabet of bytes; <x> is a control token, #y one of the user's. */
static const tg_tok_text pieces[] = { TEXT("a"),   TEXT("b"),   TEXT("ab"), TEXT("abab"),
                                      TEXT("bab"), TEXT("<x>"), TEXT("#y"), TEXT("<xx") };
static const uint8_t types[] = { 1, 1, 1, 1, 1, 3, 4, 3 };
static const tg_tok_text merges[] = { TEXT("a"),  TEXT("b"), TEXT("ab"),
                                      TEXT("ab"), TEXT("b"), TEXT("ab") };
enum { N_PIECES = sizeof pieces / sizeof pieces[0] };

static tg_tok_desc description(void) {
    tg_tok_desc d;
    tg_tok_desc_init(&d);
    d.model = TG_TOK_BYTE_BPE;
    d.n_tokens = N_PIECES;
    d.pieces = pieces;
    d.types = types;
    d.merges = merges;
    d.n_merges = 3;
    return d;
}

static tg_tok *make(tg_ctx *ctx, const tg_tok_desc *d) {
    tg_tok *tok;
    if (tg_tok_new(ctx, d, &tok) != TG_OK) fail_msg("%s", ctx->message);
    return tok;
}

/* Into memory for fewer than there are: the first ones, and how many there would be. */
static void counts(const tg_tok *tok, const char *text, unsigned flags, const tg_ids *all) {
    enum { ROOM = 64, GUARD = -7 };
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (size_t room = 0; room <= all->n && room < ROOM; room++) {
        int32_t id[ROOM];
        for (size_t i = 0; i < ROOM; i++) id[i] = GUARD;
        tg_ids ids = tg_ids_lend(id, room);
        assert_int_equal(tg_tok_encode(&ctx, tok, text, strlen(text), flags, &ids), TG_OK);
        assert_int_equal(ids.n, all->n);
        if (room > 0) assert_memory_equal(id, all->id, room * sizeof *id);
        assert_int_equal(id[room], GUARD);
    }
}

/* The ids of text are the `want`, which end with -1. */
static void gives(const tg_tok *tok, const char *text, unsigned flags, const int *want) {
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_ids ids;
    tg_ids_init(&ids, &ctx.mem);
    if (tg_tok_encode(&ctx, tok, text, strlen(text), flags, &ids) != TG_OK) {
        fail_msg("%s", ctx.message);
    }
    size_t n = 0;
    for (; want[n] >= 0; n++) {
        if (n >= ids.n || ids.id[n] != want[n]) fail_msg("\"%s\": id %zu differs", text, n);
    }
    assert_int_equal(ids.n, n);
    counts(tok, text, flags, &ids);
    tg_ids_deinit(&ids);
}
#define GIVES(tok, text, flags, ...) gives(tok, text, flags, (const int[]) { __VA_ARGS__, -1 })

static void merging(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok_desc d = description();
    tg_tok *tok = make(&ctx, &d);
    GIVES(tok, "a", 0, 0);
    GIVES(tok, "ab", 0, 2);
    GIVES(tok, "ababab", 0, 3, 2); /* of equal ranks the left one first */
    GIVES(tok, "bab", 0, 4);
    GIVES(tok, "aab", 0, 0, 2);
    gives(tok, "", 0, (const int[]) { -1 });
    tg_tok_free(tok);
}

/* A word that is a piece is that piece, though no merges lead to it (Llama 3). */
static void whole_words(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (int whole = 0; whole < 2; whole++) {
        tg_tok_desc d = description();
        d.n_merges = 1;
        d.ignore_merges = whole;
        tg_tok *tok = make(&ctx, &d);
        if (whole)
            GIVES(tok, "abab", 0, 3);
        else
            GIVES(tok, "abab", 0, 2, 2);
        GIVES(tok, "ababab", 0, 2, 2, 2);
        tg_tok_free(tok);
    }
}

/* A word of which a part is in no piece is unknown as a whole, and so is one of more than a hundred
 * characters. */
static void words_of_pieces(void **state) {
    (void)state;
    static const tg_tok_text words[] = { TEXT("[UNK]"), TEXT("a"), TEXT("ab"), TEXT("##a"),
                                         TEXT("##c") };
    static const uint8_t kinds[] = { 2, 1, 1, 1, 1 };
    enum { CHARS_MAX = 100 };
    char text[CHARS_MAX + 2];
    int want[CHARS_MAX + 2];
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok_desc d;
    tg_tok_desc_init(&d);
    d.model = TG_TOK_WORDPIECE;
    d.n_tokens = sizeof kinds;
    d.pieces = words;
    d.types = kinds;
    d.unknown = 0;
    tg_tok *tok = make(&ctx, &d);
    GIVES(tok, "abc", 0, 2, 4);
    GIVES(tok, "abx a", 0, 0, 1);
    GIVES(tok, "x abac", 0, 0, 2, 3, 4);
    for (int n = CHARS_MAX; n <= CHARS_MAX + 1; n++) {
        memset(text, 'a', (size_t)n);
        text[n] = '\0';
        for (int i = 0; i < n; i++) want[i] = i ? 3 : 1;
        want[n] = -1;
        if (n == CHARS_MAX)
            gives(tok, text, 0, want);
        else
            GIVES(tok, text, 0, 0);
    }
    tg_tok_free(tok);
}

static void normal(unsigned flags, const char *text, const char *want) {
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_normal w;
    tg_normal_init(&w, &ctx.mem);
    const char *have = text;
    size_t n = strlen(text);
    assert_int_equal(tg_normal_apply(&ctx, &w, flags, &have, &n), TG_OK);
    if (n != strlen(want) || memcmp(have, want, n) != 0)
        fail_msg("\"%s\": want \"%s\", have \"%.*s\"", text, want, (int)n, have);
    tg_normal_deinit(&w);
}

/* Marks of one class block each other: between a and an acute accent there is a bridge, which joins
 * nothing. A cedilla, of another class, blocks nothing. */
static void marks_that_block(void **state) {
    (void)state;
    normal(TG_TOK_NFC, "a\u0301", "\u00e1");
    normal(TG_TOK_NFC, "a\u0346\u0301", "a\u0346\u0301");
    normal(TG_TOK_NFC, "a\u0327\u0301", "\u00e1\u0327");
    normal(TG_TOK_NFC, "a\u0301\u0327", "\u00e1\u0327");
}

/* The first and the last of each block that the first BERT knew, and their neighbours. */
static void ideographs_stand_apart(void **state) {
    (void)state;
    static const uint32_t blocks[][2] = {
        { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xf900, 0xfaff },   { 0x20000, 0x2a6df },
        { 0x2a700, 0x2b81f }, { 0x2b920, 0x2ceaf }, { 0x2f800, 0x2fa1f },
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        for (int k = 0; k < 4; k++) {
            const uint32_t code = blocks[i][k / 2] + (k == 0 ? -1u : k == 3 ? 1u : 0);
            char utf8[5] = "", text[16], want[16];
            utf8[tg_utf8_put(code, utf8)] = '\0';
            snprintf(text, sizeof text, "x%sy", utf8);
            snprintf(want, sizeof want, k == 0 || k == 3 ? "x%sy" : "x %s y", utf8);
            normal(TG_TOK_CJK_SPACES, text, want);
        }
}

/* Control tokens are text unless they are asked for; user-defined ones never are; longest first. */
static void special_tokens(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok_desc d = description();
    static const tg_tok_text more[] = { TEXT("a"),  TEXT("<"),   TEXT("x"), TEXT(">"),
                                        TEXT("#y"), TEXT("<x>"), TEXT("<x") };
    static const uint8_t kinds[] = { 1, 1, 1, 1, 4, 3, 3 };
    d.pieces = more;
    d.types = kinds;
    d.n_tokens = sizeof kinds;
    d.n_merges = 0;
    d.bos = 5;
    d.eos = 6;
    d.add_bos = d.add_eos = true;
    tg_tok *tok = make(&ctx, &d);
    GIVES(tok, "a<x>", 0, 0, 1, 2, 3);
    GIVES(tok, "a<x>", TG_TOK_SPECIAL, 0, 5);
    GIVES(tok, "<xa<x><x>", TG_TOK_SPECIAL, 6, 0, 5, 5);
    GIVES(tok, "#y#ya", 0, 4, 4, 0);
    GIVES(tok, "a", TG_TOK_ENDS, 5, 0, 6);
    size_t n;
    assert_string_equal(tg_tok_bytes(tok, 5, &n), tg_tok_bytes(tok, 6, &n)); /* both add nothing */
    assert_int_equal(n, 0);
    assert_null(tg_tok_bytes(tok, 7, &n));
    assert_null(tg_tok_bytes(tok, -1, &n));
    assert_int_equal(tg_tok_find(tok, "<x>", 3), 5);
    assert_int_equal(tg_tok_find(tok, "<y>", 3), -1);
    tg_tok_free(tok);
}

/* A merge that spells a control token is not carried out, so that user text cannot make one. */
static void no_control_by_merging(void **state) {
    (void)state;
    static const tg_tok_text p[] = { TEXT("<"), TEXT("s"), TEXT("<s") };
    static const uint8_t kinds[] = { 1, 1, 3 };
    static const tg_tok_text m[] = { TEXT("<"), TEXT("s") };
    static const double scores[] = { -1, -2, -3 };
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_tok_desc d = description();
    d.pieces = p;
    d.types = kinds;
    d.n_tokens = 3;
    d.merges = m;
    d.n_merges = 1;
    d.scores = scores;
    static const tg_tok_model models[] = { TG_TOK_BYTE_BPE, TG_TOK_SCORE_BPE, TG_TOK_MERGE_BPE,
                                           TG_TOK_UNIGRAM };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        d.model = models[i];
        tg_tok *tok = make(&ctx, &d);
        GIVES(tok, "<s", 0, 0, 1);
        GIVES(tok, "<s", TG_TOK_SPECIAL, 2);
        tg_tok_free(tok);
    }
}

static void refused(const tg_tok_desc *d, tg_status want, const char *about) {
    tg_ctx ctx;
    test_alloc a = { 0 };
    const tg_mem mem = test_alloc_mem(&a);
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    tg_tok *tok = (tg_tok *)&ctx;
    assert_int_equal(tg_tok_new(&ctx, d, &tok), want);
    assert_null(tok);
    if (!strstr(ctx.message, about)) fail_msg("want %s in: %s", about, ctx.message);
    assert_int_equal(a.live_pieces, 0);
}

static void hostile_descriptions(void **state) {
    (void)state;
    tg_tok_desc d = description();
    static const tg_tok_text bad_utf8[] = { TEXT("a"), TEXT("\xff"), TEXT("\xed\xa0\x80") };
    d.pieces = bad_utf8;
    d.n_tokens = 3;
    refused(&d, TG_E_FORMAT, "piece 1");

    d = description();
    static const uint8_t bad_types[N_PIECES] = { 1, 7 }, no_types[N_PIECES] = { 1, 0 };
    d.types = bad_types;
    refused(&d, TG_E_FORMAT, "type");
    d.types = no_types;
    refused(&d, TG_E_FORMAT, "want a type of 1..6, have 0");

    d = description();
    static const tg_tok_text unknown[] = { TEXT("a"), TEXT("c") },
                             apart[] = { TEXT("b"), TEXT("a") }, empty[] = { TEXT(""), TEXT("a") };
    d.n_merges = 1;
    d.merges = unknown;
    refused(&d, TG_E_FORMAT, "merge 0");
    d.merges = apart;
    refused(&d, TG_E_FORMAT, "merge 0");
    d.merges = empty;
    refused(&d, TG_E_FORMAT, "merge 0");

    d = description();
    d.bos = N_PIECES;
    refused(&d, TG_E_FORMAT, "bos");
    d.bos = -2;
    refused(&d, TG_E_FORMAT, "bos");

    d = description();
    d.n_tokens = 0;
    refused(&d, TG_E_FORMAT, "pieces");
    d.n_tokens = SIZE_MAX;
    refused(&d, TG_E_FORMAT, "pieces");

    d = description();
    d.model = TG_TOK_SCORE_BPE;
    refused(&d, TG_E_FORMAT, "score");
    double scores[N_PIECES] = { 0, 1, 0.0 / 0.0 };
    d.scores = scores;
    refused(&d, TG_E_FORMAT, "piece 2");
    d.model = TG_TOK_UNIGRAM;
    scores[2] = 1.0 / 0.0;
    refused(&d, TG_E_FORMAT, "piece 2");
    d.model = (tg_tok_model)99;
    refused(&d, TG_E_ARG, "model");
    d = description();
    d.split = (tg_tok_split)99;
    refused(&d, TG_E_ARG, "a split");
    d = description();
    d.n_merges = ((size_t)1 << 26) + 1;
    refused(&d, TG_E_FORMAT, "want at most 67108864 merges");
    static const tg_tok_text long_ones[] = { { "a", UINT32_MAX / 4 }, { "b", UINT32_MAX / 2 } };
    d = description();
    d.pieces = long_ones;
    d.n_tokens = 2;
    refused(&d, TG_E_FORMAT, "less than 2 GiB");

    d = description();
    static const uint8_t as_byte[N_PIECES] = { 6, 1, 1, 1, 1, 1, 1, 1 };
    d.types = as_byte;
    refused(&d, TG_E_FORMAT, "<0x00>");
    static const uint8_t one_byte[] = { 6 };
    static const tg_tok_text no_bytes[] = { TEXT("<0x4g>"),    TEXT("<0xg4>"), TEXT("<0x4\0>"),
                                            TEXT("<0x\0004>"), TEXT("<0x41)"), TEXT("<1x41>") };
    for (size_t i = 0; i < sizeof no_bytes / sizeof no_bytes[0]; i++) {
        d = description();
        d.types = one_byte;
        d.pieces = &no_bytes[i];
        d.n_tokens = 1;
        d.n_merges = 0;
        refused(&d, TG_E_FORMAT, "want <0x00>..<0xFF>");
    }
}

/* What is asked of a tokenizer that it cannot have. */
static void beyond_the_vocabulary(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    const tg_tok_desc d = description();
    tg_tok *tok = make(&ctx, &d);
    int32_t ids[TG_TOK_ENDS_MAX + 1] = { 2, 1 };
    tg_ids into = tg_ids_lend(ids, 1);
    size_t n;
    assert_int_equal(tg_tok_set_ends(&ctx, tok, "x", ids, TG_TOK_ENDS_MAX + 1), TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "want at most 28 tokens that end a text, have 29"));
    tg_ctx_clear(&ctx);
    ids[1] = N_PIECES;
    assert_int_equal(tg_tok_set_ends(&ctx, tok, "x", ids, 2), TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "x: want ids of its 8 tokens, have 8"));
    tg_ctx_clear(&ctx);
    ids[1] = -1;
    assert_int_equal(tg_tok_set_ends(&ctx, tok, "x", ids, 2), TG_E_FORMAT);
    assert_int_equal(tg_tok_set_ends(&ctx, tok, "x", ids, 0), TG_OK);
    assert_int_equal(tg_tok_set_ends(&ctx, tok, "x", ids, 1), TG_OK);
    assert_true(tg_tok_is_end(tok, 2));
    assert_false(tg_tok_is_end(tok, 1));
    assert_int_equal(tg_tok_type(tok, -1), 0);
    assert_int_equal(tg_tok_type(tok, N_PIECES), 0);
    assert_null(tg_tok_bytes(tok, N_PIECES, &n));
    assert_null(tg_tok_piece(tok, -1, &n));
    assert_int_equal(tg_tok_find(tok, "none", 4), -1);
    assert_int_equal(tg_tok_control(tok, "none", 4), -1);
    assert_int_equal(tg_tok_control(tok, "a", 1), -1);
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_tok_encode(&ctx, tok, "", (size_t)1 << 30, 0, &into), TG_E_RANGE);
    tg_tok_free(tok);
    for (int byte = 0; byte < 256; byte++)
        assert_int_equal(tg_alphabet_byte(tg_alphabet_char((uint8_t)byte)), byte);
    static const uint32_t none[] = { 0, 0x20, 0x7f, 0xa0, 0xad, 0x144, 0x10ffff };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_int_equal(tg_alphabet_byte(none[i]), -1);
}

/* A word without a piece, where no token stands for what is unknown. */
static void nothing_for_unknown_words(void **state) {
    (void)state;
    static const tg_tok_text words[] = { TEXT("a"), TEXT("##b") };
    tg_ctx ctx;
    tg_tok_desc d;
    tg_ids ids;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_ids_init(&ids, &ctx.mem);
    tg_tok_desc_init(&d);
    d.model = TG_TOK_WORDPIECE;
    d.pieces = words;
    d.n_tokens = 2;
    tg_tok *tok = make(&ctx, &d);
    assert_int_equal(tg_tok_encode(&ctx, tok, "ab", 2, TG_TOK_ENDS, &ids), TG_OK);
    assert_int_equal(ids.n, 2);
    assert_int_equal(tg_tok_encode(&ctx, tok, "ax", 2, 0, &ids), TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "want an unknown token for \"ax\", have none"));
    assert_true(tg_tok_first_blank(tok));
    assert_false(tg_tok_adds_bos(tok));
    tg_ids_deinit(&ids);
    tg_tok_free(tok);
}

/* Names of GGUF: there and back; those of splitters that are not written are refused. */
static void names_of_gguf(void **state) {
    (void)state;
    static const struct {
        const char *model, *pre;
        tg_status status;
        const char *says; /* or the name that comes back */
    } cases[] = {
        { "gpt2", "gpt-2", TG_OK, "gpt-2" },
        { "gpt2", "olmo", TG_OK, "gpt-2" },
        { "gpt2", "starcoder", TG_OK, "smollm" },
        { "gpt2", "llama3", TG_OK, "llama-bpe" },
        { "gpt2", "glm4", TG_OK, "smaug-bpe" },
        { "gpt2", "qwen2", TG_OK, "qwen2" },
        { "gpt2", "hunyuan", TG_OK, "deepseek-r1-qwen" },
        { "gpt2", "qwen35", TG_OK, "qwen35" },
        { "gpt2", "jina-v5-nano", TG_OK, "llama-bpe" },
        { "gpt2", "llama4", TG_OK, "gpt-4o" },
        { "gpt2", "granite-embed-multi-97m", TG_OK, "granite-embed-multi-97m" },
        { "gpt2", "tekken", TG_OK, "tekken" },
        { "gpt2", NULL, TG_E_UNSUPPORTED, "have none: the file does not say" },
        { "gpt2", "default", TG_E_UNSUPPORTED, "have default: the file does not say" },
        { "gpt2", "new", TG_E_UNSUPPORTED, "have new" },
        { "llama", NULL, TG_OK, "gpt-2" },
        { "bert", NULL, TG_OK, "gpt-2" },
        { "rwkv", NULL, TG_E_UNSUPPORTED, "want gpt2, llama, gemma4 or bert, have rwkv" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_ctx ctx;
        tg_tok_desc d;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_tok_desc_init(&d);
        assert_int_equal(tg_tok_desc_gguf(&ctx, cases[i].model, cases[i].pre, &d), cases[i].status);
        if (cases[i].status != TG_OK)
            assert_non_null(strstr(ctx.message, cases[i].says));
        else
            assert_string_equal(tg_tok_gguf_pre(d.split, d.normal, d.ignore_merges), cases[i].says);
    }
    /* Rules that no name has: the nearest. */
    assert_string_equal(tg_tok_gguf_pre(TG_TOK_SPLIT_QWEN35, 0, true), "qwen35");
}

/* Every request for memory fails once: an error, nothing lost, and nothing half done. */
static void failing_memory(void **state) {
    (void)state;
    size_t n;
    char *text = read_file(TOK_GOLDEN "unigram.json", &n);
    char *bpe = read_file(TOK_GOLDEN "byte_bpe.json", &n);
    const struct {
        const char *json;
        size_t n;
    } files[] = { { text, strlen(text) }, { bpe, strlen(bpe) } };
    for (size_t k = 0; k < 2; k++) {
        bool done = false;
        for (size_t at = 1; !done; at++) {
            test_alloc a = { .fail_at = at };
            const tg_mem mem = test_alloc_mem(&a);
            tg_ctx ctx;
            tg_ctx_init(&ctx, &mem, NULL, NULL);
            tg_tok *tok;
            tg_status status = tg_tok_new_json(&ctx, "file", files[k].json, files[k].n, &tok);
            if (status == TG_OK) {
                tg_ids ids;
                tg_ids_init(&ids, &mem);
                status = tg_tok_encode(&ctx, tok, "What's Caf\xc3\xa9 e\xcc\x81?", 16, 0, &ids);
                if (status != TG_OK) assert_int_equal(ids.n, 0);
                tg_ids_deinit(&ids);
                tg_tok_free(tok);
            }
            assert_int_equal(a.live_pieces, 0);
            done = status == TG_OK;
            if (!done && status != TG_E_MEMORY) fail_msg("request %zu: %s", at, ctx.message);
            assert_true(at < 10000);
        }
    }
    free(text);
    free(bpe);
}

/* A JSON file with any byte changed is read or refused, and never read beyond its end. */
static void changed_json(void **state) {
    (void)state;
    size_t n;
    char *text = read_file(TOK_GOLDEN "wordpiece.json", &n);
    uint64_t random = 11;
    int opened = 0;
    for (int round = 0; round < 1500; round++) {
        tg_ctx ctx;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        const size_t at = draw_below(&random, round < 750 ? 2000 : n);
        const size_t length = round % 3 == 0 ? at : n;
        char *copy = malloc(length + 1); /* of just this size, so that sanitizers see its end */
        memcpy(copy, text, length);
        if (at < length) copy[at] = (char)draw_below(&random, 256);
        tg_tok *tok;
        if (tg_tok_new_json(&ctx, "file", copy, length, &tok) == TG_OK) {
            opened++;
        } else {
            assert_true(strlen(ctx.message) > 0);
        }
        tg_tok_free(tok);
        free(copy);
    }
    assert_true(opened > 10 && opened < 1490);
    free(text);
}

/* Unknown parts that follow each other are one token, whether it was kept or counted. */
static void unknown_parts_are_one(void **state) {
    (void)state;
    static const tg_tok_text some[] = { TEXT("<unk>"), TEXT("a"), TEXT("b") };
    static const double scores[] = { 0, -1, -2 };
    static const tg_tok_model models[] = { TG_TOK_SCORE_BPE, TG_TOK_UNIGRAM };
    for (size_t i = 0; i < 2; i++) {
        tg_ctx ctx;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_tok_desc d;
        tg_tok_desc_init(&d);
        d.model = models[i];
        d.n_tokens = 3;
        d.pieces = some;
        d.scores = scores;
        d.unknown = 0;
        tg_tok *tok = make(&ctx, &d);
        GIVES(tok, "axybzza", 0, 1, 0, 2, 0, 1);
        tg_tok_free(tok);
    }
}

static void unknown_parts_are_named(void **state) {
    (void)state;
    static const struct {
        const char *json, *about;
    } cases[] = {
        { "{\"model\":{\"type\":\"RNN\",\"vocab\":{}}}", "RNN" },
        { "{\"normalizer\":{\"type\":\"Nmt\"},\"model\":{}}", "Nmt" },
        { "{\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"model\":{}}", "Whitespace" },
        { "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+b\"},"
          "\"behavior\":\"Isolated\"},\"model\":{}}",
          "(a+)+b" },
        { "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
          "{\"type\":\"Lowercase\"}]},\"model\":{}}",
          "Lowercase" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":16000000},\"merges\":[]}}", "16000000" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", "again" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}}", "merge" },
        { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"unk_id\":5}}", "unknown" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\":1},\"merges\":[]}}", "empty" },
        { "{\"added_tokens\":[{\"id\":1,\"content\":\"\",\"special\":true}],"
          "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
          "empty" },
        { "{\"added_tokens\":[{\"id\":0,\"content\":\"b\",\"special\":true}],"
          "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
          "have 0 again" },
        { "{}", "model" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_ctx ctx;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_tok *tok;
        assert_true(tg_tok_new_json(&ctx, "file", cases[i].json, strlen(cases[i].json), &tok) < 0);
        if (!strstr(ctx.message, cases[i].about)) {
            fail_msg("want %s in: %s", cases[i].about, ctx.message);
        }
    }
}

static void collect(void *user, const char *text, size_t n) { tg_buf_append(user, text, n); }

static void hold_back(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        { "plain", "plain" },
        { "\xf0\x9f\x98\xb8", "\xf0\x9f\x98\xb8" },
        { "\xf0\x9f\x98", "\xef\xbf\xbd" },
        { "a\xe2\x82z", "a\xef\xbf\xbd\xef\xbf\xbdz" },
        { "\xc3\xc3\xa9", "\xef\xbf\xbd\xc3\xa9" },
        { "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
        { "\xff", "\xef\xbf\xbd" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_mem mem = tg_mem_default();
        tg_buf out;
        tg_buf_init(&out, &mem);
        tg_utf8_holdback g = { 0 };
        for (const char *p = cases[i].bytes; *p; p++) {
            tg_utf8_holdback_push(&g, p, 1, collect, &out);
            assert_int_equal(tg_utf8_valid(tg_buf_text(&out), out.length), out.length);
        }
        tg_utf8_holdback_end(&g, collect, &out);
        assert_string_equal(tg_buf_text(&out), cases[i].text);
        tg_buf_deinit(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging),
        cmocka_unit_test(whole_words),
        cmocka_unit_test(words_of_pieces),
        cmocka_unit_test(marks_that_block),
        cmocka_unit_test(ideographs_stand_apart),
        cmocka_unit_test(special_tokens),
        cmocka_unit_test(no_control_by_merging),
        cmocka_unit_test(hostile_descriptions),
        cmocka_unit_test(beyond_the_vocabulary),
        cmocka_unit_test(nothing_for_unknown_words),
        cmocka_unit_test(names_of_gguf),
        cmocka_unit_test(failing_memory),
        cmocka_unit_test(changed_json),
        cmocka_unit_test(unknown_parts_are_one),
        cmocka_unit_test(unknown_parts_are_named),
        cmocka_unit_test(hold_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
