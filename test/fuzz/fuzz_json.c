/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_json.c - the JSON reader, and the writer behind it: what was read, written and read again is
 * the same, and memory is what json.h says (48 bytes a value, 8 a member, the text).
 */
#include "fuzz.h"

#include "base/codec/json.h"

/* The document once more, without recursion: nodes lie in the order of the text. */
static void write_value(tg_json_writer *w, const tg_json *v) {
    if (v->key) tg_json_key(w, v->key);
    switch (tg_json_kind(v)) {
    case TG_JSON_NULL: tg_json_put_null(w); break;
    case TG_JSON_FALSE: tg_json_put_bool(w, false); break;
    case TG_JSON_TRUE: tg_json_put_bool(w, true); break;
    case TG_JSON_NUMBER: tg_json_put_string_n(w, v->u.text, v->length); break;
    case TG_JSON_STRING: tg_json_put_string_n(w, v->u.text, v->length); break;
    case TG_JSON_ARRAY: tg_json_begin_array(w); break;
    case TG_JSON_OBJECT: tg_json_begin_object(w); break;
    }
}

static void write_tree(tg_json_writer *w, const tg_json *root) {
    const tg_json *open[TG_JSON_DEPTH_MAX + 1];
    uint32_t left[TG_JSON_DEPTH_MAX + 1];
    size_t depth = 0;
    for (const tg_json *v = root;; v++) {
        write_value(w, v);
        if (tg_json_kind(v) >= TG_JSON_ARRAY) {
            open[depth] = v;
            left[depth++] = v->count;
        }
        while (depth > 0 && left[depth - 1] == 0) {
            if (tg_json_kind(open[--depth]) == TG_JSON_ARRAY)
                tg_json_end_array(w);
            else
                tg_json_end_object(w);
        }
        if (depth == 0) return;
        left[depth - 1]--;
    }
}

/* Everything that can be asked of a node. Returns how many nodes there are. */
static size_t ask(tg_ctx *ctx, const tg_json *v) {
    size_t n = 1;
    int64_t i;
    uint64_t u;
    double d;
    bool b;
    if (tg_json_int64(ctx, v, &i) == TG_OK && v->u.text[0] != '-')
        PROMISE(tg_json_uint64(ctx, v, &u) == TG_OK && u == (uint64_t)i);
    if (tg_json_double(ctx, v, &d) == TG_OK) PROMISE(d - d == 0);
    (void)tg_json_bool(ctx, v, &b);
    tg_ctx_clear(ctx);
    for (const tg_json *c = tg_json_first(v); c; c = tg_json_next(c)) {
        if (c->key) PROMISE(tg_json_get_n(v, c->key, c->key_length) == c);
        n += ask(ctx, c); /* as deep as TG_JSON_DEPTH_MAX */
    }
    return n;
}

/* No zero in a key: the writer takes keys that end with one. */
static bool plain_keys(const tg_json *root, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (root[i].key && strlen(root[i].key) != root[i].key_length) return false;
    return true;
}

static bool same(const tg_json *a, const tg_json *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const bool number = tg_json_kind(&a[i]) == TG_JSON_NUMBER;
        if (b[i].type != (number ? (uint32_t)TG_JSON_STRING : a[i].type)) return false;
        if (a[i].count != b[i].count || a[i].skip != b[i].skip) return false;
        if ((number || tg_json_kind(&a[i]) == TG_JSON_STRING) &&
            (a[i].length != b[i].length || memcmp(a[i].u.text, b[i].u.text, a[i].length) != 0))
            return false;
    }
    return true;
}

static void fuzz_one(const uint8_t *data, size_t n) {
    tg_ctx ctx;
    meter m;
    tg_arena arena, second;
    tg_buf out;
    const tg_json *root, *again;
    fuzz_begin(&ctx, &m, n, 150, 1 << 16);
    tg_arena_init(&arena, &ctx.mem);
    tg_arena_init(&second, &ctx.mem);
    tg_buf_init(&out, &ctx.mem);
    if (fuzz_ok(&ctx, tg_json_parse(&ctx, &arena, "fuzz", (const char *)data, n, NULL, &root))) {
        const size_t nodes = ask(&ctx, root);
        if (plain_keys(root, nodes)) {
            tg_json_writer w;
            tg_json_writer_init(&w, &out);
            write_tree(&w, root);
            PROMISE(tg_json_parse(&ctx, &second, "again", tg_buf_text(&out), out.length, NULL,
                                  &again) == TG_OK);
            PROMISE(same(root, again, nodes));
        }
    }
    tg_buf_deinit(&out);
    tg_arena_deinit(&arena);
    tg_arena_deinit(&second);
    PROMISE(m.live_bytes == 0);
}
