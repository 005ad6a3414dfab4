/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tok_border.c - a text that is encoded in pieces has the ids of the whole, by every rule of
 * splitting, wherever it is cut.
 */
#include "tok_util.h"

#include "tok/tok_inside.h"

static tg_ctx ctx;

static tg_tok *open_tok(const char *name) {
    size_t n;
    tg_tok *t;
    char *text = read_file(name, &n);
    assert_int_equal(tg_tok_new_json(&ctx, name, text, n, &t), TG_OK);
    free(text);
    return t;
}

/* All strings of the golden list, one behind the other. */
static void all_strings(tg_buf *out) {
    size_t n;
    tg_arena arena;
    const tg_json *source;
    char *text = read_file(TOK_GOLDEN "strings.json", &n);
    tg_arena_init(&arena, &ctx.mem);
    assert_int_equal(tg_json_parse(&ctx, &arena, "strings", text, n, NULL, &source), TG_OK);
    tg_buf one;
    tg_buf_init(&one, &ctx.mem);
    for (uint64_t i = 0; i < N_TOK_STRINGS; i++) {
        tok_string(source, i, &one);
        tg_buf_append(out, one.data, one.length);
    }
    tg_buf_deinit(&one);
    tg_arena_deinit(&arena);
    free(text);
}

static void encode(const tg_tok *t, const char *text, size_t n, tg_ids *ids) {
    assert_int_equal(tg_tok_encode(&ctx, t, text, n, 0, ids), TG_OK);
}

/* Pieces of about so many bytes; returns how many there were. */
static size_t in_pieces(const tg_tok *t, const tg_buf *text, size_t most, tg_ids *ids) {
    size_t n_pieces = 0;
    for (size_t at = 0; at < text->length; n_pieces++) {
        size_t n = 0;
        for (size_t want = most; n == 0; want *= 2)
            n = want < text->length - at ? tg_tok_border(t, text->data + at, want)
                                         : text->length - at;
        encode(t, text->data + at, n, ids);
        at += n;
    }
    return n_pieces;
}

static void test_pieces(void **state) {
    (void)state;
    static const unsigned normals[] = { 0, TG_TOK_NFC };
    tg_tok *t = open_tok(TOK_GOLDEN "byte_bpe.json");
    tg_buf text;
    tg_ids whole, pieces;
    tg_buf_init(&text, &ctx.mem);
    tg_ids_init(&whole, &ctx.mem);
    tg_ids_init(&pieces, &ctx.mem);
    all_strings(&text);
    for (int split = TG_TOK_SPLIT_GPT2; split < TG_TOK_SPLIT_COUNT; split++)
        for (size_t k = 0; k < 2; k++) {
            t->split = (tg_tok_split)split;
            t->normal = normals[k];
            assert_true(tg_tok_has_borders(t));
            whole.n = 0;
            encode(t, text.data, text.length, &whole);
            for (size_t most = 40; most < 20000; most = most * 5 / 3) {
                pieces.n = 0;
                const size_t n = in_pieces(t, &text, most, &pieces);
                assert_true(n > 3);
                if (pieces.n != whole.n || memcmp(pieces.id, whole.id, whole.n * 4) != 0)
                    fail_msg("split %d, normal %u: pieces of %zu have other ids", split, normals[k],
                             most);
            }
        }
    t->split = TG_TOK_SPLIT_NONE;
    assert_false(tg_tok_has_borders(t));
    t->split = TG_TOK_SPLIT_GPT2;
    t->normal = TG_TOK_PREFIX_BLANK;
    assert_false(tg_tok_has_borders(t));
    tg_ids_deinit(&pieces);
    tg_ids_deinit(&whole);
    tg_buf_deinit(&text);
    tg_tok_free(t);
}

int main(void) {
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests_name("borders", tests, NULL, NULL);
}
