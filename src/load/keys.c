/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - metadata on its way from a file of any kind into a trained model and its saves.
 */
#include "load/keys.h"

#include "base/str.h"
#include "io/gguf/gguf_writer.h"

/* What goes into the bytes: values of the file, and those that it has in another form. */
typedef struct gathering {
    tg_gguf_value *v;
    size_t n;
} gathering;

static void add_tokenizer_json(gathering *l, const tg_gguf *from) {
    if (!from->tokenizer_json || tg_gguf_find(from, TG_GGUF_TOKENIZER_JSON)) return;
    l->v[l->n++] = (tg_gguf_value) { .key = TG_GGUF_TOKENIZER_JSON,
                                     .type = TG_GGUF_STRING,
                                     .text = { from->tokenizer_json, from->tokenizer_bytes } };
}

/* The tensor's floats, little-endian, become an array. */
static tg_status add_factors(tg_ctx *ctx, gathering *l, const tg_gguf *from, const char *name,
                             tg_arena *arena) {
    const tg_gguf_tensor *t = tg_gguf_tensor_find(from, name);
    if (!t) return TG_OK;
    const size_t n = (size_t)t->elems;
    uint8_t *stored = tg_arena_alloc(arena, (size_t)t->bytes);
    float *floats = tg_arena_array(arena, n, sizeof *floats);
    uint8_t *bytes = tg_arena_array(arena, n, 4);
    if (!stored || !floats || !bytes) return tg_fail_memory(ctx, t->name, n * sizeof *floats);
    TG_TRY(tg_gguf_read_floats(from, t, stored, floats));
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &floats[i], sizeof bits);
        tg_put_u32(bytes + 4 * i, bits);
    }
    l->v[l->n++] = (tg_gguf_value) { .key = name,
                                     .type = TG_GGUF_ARRAY,
                                     .element = TG_GGUF_F32,
                                     .count = n,
                                     .elements = bytes,
                                     .elements_bytes = 4 * n };
    return TG_OK;
}

static tg_status gather(tg_ctx *ctx, const tg_gguf *from, bool vocabulary_alone, tg_arena *arena,
                        tg_buf *out) {
    static const char vocabulary[] = "tokenizer.";
    gathering l = { .v = tg_arena_array(arena, from->n_values + 1 + TG_FACTORS, sizeof *l.v) };
    if (!l.v) return tg_fail_memory(ctx, "metadata", from->n_values * sizeof *l.v);
    for (size_t i = 0; i < from->n_values; i++)
        if (!vocabulary_alone ||
            strncmp(from->values[i].key, vocabulary, sizeof vocabulary - 1) == 0)
            l.v[l.n++] = from->values[i];
    add_tokenizer_json(&l, from);
    for (size_t i = 0; i < TG_FACTORS && !vocabulary_alone; i++)
        TG_TRY(add_factors(ctx, &l, from, tg_gguf_factors[i], arena));
    tg_gguf_put_values(out, l.v, l.n);
    return tg_buf_status(ctx, out, "metadata");
}

/* Values point into the bytes, which stay. */
static tg_status read(tg_keys *k) {
    tg_gguf *g = &k->g;
    tg_reader r;
    tg_gguf_value *values;
    size_t n;
    tg_reader_open_memory(g->ctx, g->path, tg_buf_text(&k->bytes), k->bytes.length, &r);
    TG_TRY(tg_gguf_read_values(g, &r, &values, &n));
    TG_TRY(tg_gguf_set_tables(g, values, n, NULL, 0));
    const tg_gguf_value *json = tg_gguf_find(g, TG_GGUF_TOKENIZER_JSON);
    if (json && json->type == TG_GGUF_STRING && !tg_gguf_find(g, "tokenizer.ggml.tokens")) {
        g->tokenizer_json = json->text.bytes;
        g->tokenizer_bytes = json->text.n_bytes;
    }
    return TG_OK;
}

static tg_status new_keys(tg_ctx *ctx, const char *name, tg_keys **out) {
    tg_keys *k = *out = tg_alloc(&ctx->mem, sizeof *k);
    if (!k) return tg_fail_memory(ctx, "metadata", sizeof *k);
    k->g = (tg_gguf) { .ctx = ctx, .version = 3, .n_files = 1 };
    tg_arena_init(&k->g.arena, &ctx->mem);
    tg_buf_init(&k->bytes, &ctx->mem);
    k->g.path = tg_arena_strdup(&k->g.arena, name);
    return k->g.path ? TG_OK : tg_fail_memory(ctx, name, strlen(name));
}

static tg_status made(tg_ctx *ctx, tg_status status, tg_keys **k) {
    if (status == TG_OK) return TG_OK;
    tg_keys_free(ctx, *k);
    *k = NULL;
    return status;
}

tg_status tg_keys_of_gguf(tg_ctx *ctx, const tg_gguf *from, bool vocabulary_alone, tg_keys **out) {
    tg_arena arena;
    tg_arena_init(&arena, &ctx->mem);
    tg_status s = new_keys(ctx, from->path, out);
    if (s == TG_OK) s = gather(ctx, from, vocabulary_alone, &arena, &(*out)->bytes);
    if (s == TG_OK) s = read(*out);
    tg_arena_deinit(&arena);
    return made(ctx, s, out);
}

tg_status tg_keys_of_bytes(tg_ctx *ctx, const char *name, const uint8_t *bytes, size_t n_bytes,
                           tg_keys **out) {
    tg_status s = new_keys(ctx, name, out);
    if (s == TG_OK) {
        tg_buf_append(&(*out)->bytes, bytes, n_bytes);
        s = tg_buf_status(ctx, &(*out)->bytes, name);
    }
    if (s == TG_OK) s = read(*out);
    return made(ctx, s, out);
}

void tg_keys_free(tg_ctx *ctx, tg_keys *k) {
    if (!k) return;
    tg_arena_deinit(&k->g.arena);
    tg_buf_deinit(&k->bytes);
    tg_free(&ctx->mem, k, sizeof *k);
}

tg_status tg_keys_factors(const tg_keys *k, const char *name, size_t n, float *out, bool *there) {
    const tg_gguf_value *v;
    TG_TRY(tg_gguf_get_array(&k->g, name, TG_GGUF_F32, &v));
    *there = v != NULL;
    if (!v) return TG_OK;
    if (v->count != n)
        return tg_fail(k->g.ctx, TG_E_SHAPE, "%s: %s: want %zu factors, have %zu", k->g.path,
                       v->key, n, v->count);
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = tg_get_u32(v->elements + 4 * i);
        memcpy(&out[i], &bits, sizeof bits);
    }
    return TG_OK;
}
