/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tok_util.h - for the tests of tokenizers: files, and the 2,000 strings of
 * tools/oracle/tok_strings.py.
 */
#ifndef TG_TEST_TOK_UTIL_H
#define TG_TEST_TOK_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/str.h"
#include "tok/tok.h"

#define TOK_GOLDEN "test/golden/tok/"
enum { N_TOK_STRINGS = 2000 };

/* A whole file, zero-terminated; the test fails if it is not there. */
static inline char *read_file(const char *path, size_t *n_bytes) {
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    fseek(f, 0, SEEK_END);
    *n_bytes = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n_bytes + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n_bytes, f), *n_bytes);
    bytes[*n_bytes] = '\0';
    fclose(f);
    return bytes;
}

static inline uint64_t draw_below(uint64_t *state, uint64_t n) {
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % n;
}

static inline const tg_json *element(const tg_json *array, uint64_t i) {
    const tg_json *v = tg_json_first(array);
    while (i-- > 0) v = tg_json_next(v);
    return v;
}

/* String i into text. */
static inline void tok_string(const tg_json *source, uint64_t i, tg_buf *text) {
    const tg_json *fragments = tg_json_get(source, "fragments");
    const tg_json *ranges = tg_json_get(source, "ranges");
    tg_buf_clear(text);
    if (i < fragments->count) {
        const tg_json *f = element(fragments, i);
        tg_buf_append(text, f->u.text, f->length);
        return;
    }
    uint64_t state = i;
    for (uint64_t parts = 1 + draw_below(&state, 8); parts > 0; parts--) {
        const uint64_t kind = draw_below(&state, 8);
        if (kind <= 5) {
            const uint64_t times = kind == 5 ? 1 + draw_below(&state, 8) : 1;
            const tg_json *f = element(fragments, draw_below(&state, fragments->count));
            for (uint64_t k = 0; k < times; k++) tg_buf_append(text, f->u.text, f->length);
        } else if (kind == 6) {
            for (uint64_t n = 1 + draw_below(&state, 6); n > 0; n--) {
                const tg_json *range = element(ranges, draw_below(&state, ranges->count));
                int64_t low, high;
                char utf8[4];
                tg_json_int64(NULL, element(range, 0), &low);
                tg_json_int64(NULL, element(range, 1), &high);
                const uint64_t code =
                    (uint64_t)low + draw_below(&state, (uint64_t)(high - low + 1));
                tg_buf_append(text, utf8, tg_utf8_put((uint32_t)code, utf8));
            }
        } else {
            for (uint64_t n = 1 + draw_below(&state, 12); n > 0; n--) {
                tg_buf_putc(text, (char)(32 + draw_below(&state, 95)));
            }
        }
    }
}

/* FNV-1a over the ids' bytes, lowest first. */
static inline uint32_t hash_ids(const tg_ids *ids) {
    uint32_t h = 0x811C9DC5u;
    for (size_t i = 0; i < ids->n; i++) {
        for (int shift = 0; shift < 32; shift += 8) {
            h = (h ^ ((uint32_t)ids->id[i] >> shift & 0xff)) * 0x01000193u;
        }
    }
    return h;
}

/* Every string's ids have the hash that the reference's have (test/golden/tok/<name>.txt). */
static inline void same_as_reference(tg_ctx *ctx, const tg_tok *tok, const char *name,
                                     unsigned flags) {
    char path[256];
    size_t n;
    snprintf(path, sizeof path, TOK_GOLDEN "%s.txt", name);
    char *want = read_file(path, &n), *line = want;
    assert_int_equal(n, 9 * N_TOK_STRINGS);
    char *text = read_file(TOK_GOLDEN "strings.json", &n);
    const tg_json *source;
    tg_arena arena;
    tg_arena_init(&arena, &ctx->mem);
    assert_int_equal(tg_json_parse(ctx, &arena, "strings", text, n, NULL, &source), TG_OK);
    tg_buf string;
    tg_buf_init(&string, &ctx->mem);
    tg_ids ids;
    tg_ids_init(&ids, &ctx->mem);
    int wrong = 0;
    for (uint64_t i = 0; i < N_TOK_STRINGS; i++, line += 9) {
        tok_string(source, i, &string);
        ids.n = 0;
        if (tg_tok_encode(ctx, tok, tg_buf_text(&string), string.length, flags, &ids) != TG_OK) {
            fail_msg("%s: string %d: %s", name, (int)i, ctx->message);
        }
        if (hash_ids(&ids) == (uint32_t)strtoul(line, NULL, 16)) continue;
        if (wrong++ < 3)
            print_message("%s: string %d differs: %s\n", name, (int)i, tg_buf_text(&string));
    }
    assert_int_equal(wrong, 0);
    tg_ids_deinit(&ids);
    tg_buf_deinit(&string);
    tg_arena_deinit(&arena);
    free(text);
    free(want);
}

#endif
