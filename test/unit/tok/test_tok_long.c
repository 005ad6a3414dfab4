/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tok_long.c - long words: merged a window at a time they give the ids of the word merged
 * whole, whatever the vocabulary, and time and memory grow as the text does.
 */
#include "fail_alloc.h"
#include "tok/tok_inside.h"
#include "tok_util.h"

#include <time.h>

enum { N_LETTERS = 4, N_PIECES = 40, N_MERGES = N_PIECES - N_LETTERS, PIECE_ROOM = 64 };

/* Pieces over few letters, each made of two earlier ones, in an order that need not be theirs. */
typedef struct vocabulary {
    char text[N_PIECES][PIECE_ROOM];
    tg_tok_text pieces[N_PIECES], merges[2 * N_MERGES];
    double scores[N_PIECES];
} vocabulary;

static uint32_t n_letters(uint64_t *state) { return 1 + (uint32_t)draw_below(state, N_LETTERS); }

static void make_vocabulary(vocabulary *v, uint64_t *state, tg_tok_desc *d) {
    const uint32_t letters = n_letters(state);
    const bool shuffled = draw_below(state, 2);
    uint32_t n = 0, order[N_MERGES];
    for (; n < letters; n++) snprintf(v->text[n], PIECE_ROOM, "%c", (char)('a' + n));
    const uint32_t n_merges = N_PIECES - letters < N_MERGES ? N_PIECES - letters : N_MERGES;
    for (uint32_t i = 0; i < n_merges; i++) order[i] = i;
    for (uint32_t i = n_merges; shuffled && i-- > 1;) {
        const uint32_t k = (uint32_t)draw_below(state, i + 1), held = order[i];
        order[i] = order[k];
        order[k] = held;
    }
    for (uint32_t i = 0; i < n_merges; i++, n++) {
        const char *half[2];
        do {
            for (int k = 0; k < 2; k++) half[k] = v->text[draw_below(state, n)];
        } while (strlen(half[0]) + strlen(half[1]) >= PIECE_ROOM / 4);
        memcpy(v->text[n], half[0], strlen(half[0]));
        strcpy(v->text[n] + strlen(half[0]), half[1]);
        for (int k = 0; k < 2; k++) {
            v->merges[2 * order[i] + (unsigned)k] =
                (tg_tok_text) { half[k], (uint32_t)strlen(half[k]) };
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        v->pieces[i] = (tg_tok_text) { v->text[i], (uint32_t)strlen(v->text[i]) };
        v->scores[i] = -(double)draw_below(state, N_PIECES / 2); /* some are equal */
    }
    tg_tok_desc_init(d);
    d->n_tokens = n;
    d->pieces = v->pieces;
    d->merges = v->merges;
    d->n_merges = n_merges;
    d->scores = v->scores;
    d->unknown = 0;
}

static void encode(const tg_tok *tok, const char *text, size_t n, tg_ids *ids) {
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    ids->n = 0;
    if (tg_tok_encode(&ctx, tok, text, n, 0, ids) != TG_OK) fail_msg("%s", ctx.message);
}

/* Random stretches, repeated ones among them, with now and then a letter that no piece has. */
static size_t make_text(uint64_t *state, char *text, size_t room) {
    size_t n = 0;
    while (n < room) {
        const uint32_t letters = n_letters(state);
        const size_t unit = 1 + draw_below(state, 7), from = n;
        for (size_t i = 0; i < unit && n < room; i++) {
            text[n++] = (char)('a' + draw_below(state, letters + !draw_below(state, 64)));
        }
        for (uint64_t times = draw_below(state, 60); times > 0 && n + unit <= room; times--) {
            memcpy(text + n, text + from, unit);
            n += unit;
        }
    }
    return n;
}

static void windows(void **state) {
    (void)state;
    enum { VOCABULARIES = 150, TEXTS = 6, ROOM = 700 };
    static const tg_tok_model models[] = { TG_TOK_BYTE_BPE, TG_TOK_MERGE_BPE, TG_TOK_SCORE_BPE };
    static const size_t sizes[] = { 1, 2, 5, 16, 61 };
    uint64_t random = 7;
    char text[ROOM];
    vocabulary v;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_ids whole, parts;
    tg_ids_init(&whole, &ctx.mem);
    tg_ids_init(&parts, &ctx.mem);
    for (int k = 0; k < VOCABULARIES * 3; k++) {
        tg_tok_desc d;
        tg_tok *tok;
        make_vocabulary(&v, &random, &d);
        d.model = models[k % 3];
        if (tg_tok_new(&ctx, &d, &tok) != TG_OK) fail_msg("%s", ctx.message);
        for (int b = 'a'; b < 'a' + N_LETTERS + 1 && d.model == TG_TOK_BYTE_BPE; b++) {
            if (tok->byte_id[b] < 0) tok->byte_id[b] = 0; /* such a vocabulary has every byte */
        }
        for (int i = 0; i < TEXTS; i++) {
            const size_t n = make_text(&random, text, ROOM);
            tok->window = ROOM;
            encode(tok, text, n, &whole);
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                tok->window = sizes[s];
                encode(tok, text, n, &parts);
                assert_int_equal(parts.n, whole.n);
                assert_memory_equal(parts.id, whole.id, whole.n * sizeof *whole.id);
            }
        }
        tg_tok_free(tok);
    }
    tg_ids_deinit(&whole);
    tg_ids_deinit(&parts);
}

/* Seconds of this thread's processor, the better of two, and what was allocated besides the ids. */
static double cost(const tg_tok *tok, const char *text, size_t n, size_t *bytes) {
    double best = 1e9;
    for (int turn = 0; turn < 2; turn++) {
        test_alloc a = { 0 };
        const tg_mem mem = test_alloc_mem(&a);
        tg_ctx ctx;
        tg_ctx_init(&ctx, &mem, NULL, NULL);
        tg_ids ids;
        struct timespec t[2];
        tg_ids_init(&ids, &tok->arena.mem);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t[0]);
        if (tg_tok_encode(&ctx, tok, text, n, 0, &ids) != TG_OK) fail_msg("%s", ctx.message);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t[1]);
        const double took =
            (double)(t[1].tv_sec - t[0].tv_sec) + 1e-9 * (double)(t[1].tv_nsec - t[0].tv_nsec);
        if (took < best) best = took;
        *bytes = a.peak_bytes;
        assert_true(ids.n <= 3 * n); /* a mark without a piece is three bytes */
        tg_ids_deinit(&ids);
    }
    return best;
}

/*
 * One word of a quarter and of 4 MB, under sanitizers of a quarter of that, since what they add is
 * checks of memory and not time. Sixteen times the time is linear, 256 quadratic: the line is
 * between, four times from either, since caches end and neighbours disturb. Memory is counted
 * exactly: merging takes none that grows with the word, a unigram four bytes a byte, and
 * normalisers write the text (blanks as marks of three bytes) into buffers that grow by half.
 */
static void linear(void **state) {
    (void)state;
    enum { MB = TEST_ASAN ? 250000 : 1000000, SHORT = MB / 4, LONG = 4, FIXED = 1 << 19 };
    static const struct {
        const char *file, *unit;
        size_t most; /* bytes for each of the text's */
    } cases[] = {
        { "byte_bpe", "a", 0 },
        { "byte_bpe", " ", 0 },
        { "byte_bpe", "internationalization", 0 },
        { "byte_bpe", "\xf0\x9f\x98\x80", 0 },
        { "char_bpe", "e", 2 },
        { "char_bpe", " ", 6 },
        { "char_bpe", "internationalization", 2 },
        { "unigram", "l", 7 },
        { "unigram", "\xe6\xbc\xa2\xe5\xad\x97", 20 },
        { "unigram", "e\xcc\x81\xcc\xa3", 20 },
        { "wordpiece", "x", 4 },
        { "wordpiece", "7", 4 },
        { "wordpiece", ".", 4 },
        { "wordpiece", "\xcc\x81", 8 },
    };
    char *text = malloc(LONG * MB);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char path[256];
        size_t n, bytes[2];
        tg_ctx ctx;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        snprintf(path, sizeof path, TOK_GOLDEN "%s.json", cases[k].file);
        char *json = read_file(path, &n);
        tg_tok *tok;
        assert_int_equal(tg_tok_new_json(&ctx, path, json, n, &tok), TG_OK);
        const size_t unit = strlen(cases[k].unit);
        for (size_t i = 0; i + unit <= LONG * MB; i += unit) memcpy(text + i, cases[k].unit, unit);
        const double few = cost(tok, text, SHORT - SHORT % unit, &bytes[0]);
        const double many = cost(tok, text, LONG * MB - LONG * MB % unit, &bytes[1]);
        print_message("%-9s %.8s: %3.0f and %4.0f ms, %zu and %zu KB\n", cases[k].file,
                      cases[k].unit, few * 1e3, many * 1e3, bytes[0] / 1000, bytes[1] / 1000);
        assert_true(many < 64 * few);
        assert_true(bytes[1] <= cases[k].most * LONG * MB + FIXED);
        tg_tok_free(tok);
        free(json);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),
        cmocka_unit_test(linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
