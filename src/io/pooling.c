/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooling.c - lists of ways of pooling, as text and as llama.cpp's numbers.
 */
#include "io/pooling.h"

#include "base/codec/json.h"
#include "base/str.h"

const tg_pooling_row tg_pooling_table[TG_POOLING_COUNT] = {
#define TG_POOLING(way, name, older, type) { name, older, type },
#include "io/pooling.def"
#undef TG_POOLING
};

bool tg_pooling_add(tg_pooling_ways *list, const char *name, size_t n_bytes) {
    for (int i = 0; i < TG_POOLING_COUNT && list->n < TG_POOLING_WAYS_MOST; i++) {
        const char *known = tg_pooling_table[i].name;
        if (strlen(known) != n_bytes || memcmp(known, name, n_bytes) != 0) continue;
        list->way[list->n++] = (uint8_t)i;
        return true;
    }
    return false;
}

bool tg_pooling_read(tg_pooling_ways *list, const char *names, size_t n_bytes) {
    list->n = 0;
    for (size_t at = 0; at <= n_bytes;) {
        const char *comma = n_bytes > at ? memchr(names + at, ',', n_bytes - at) : NULL;
        const size_t end = comma ? (size_t)(comma - names) : n_bytes;
        if (!tg_pooling_add(list, names + at, end - at)) return false;
        at = end + 1;
    }
    return true;
}

void tg_pooling_write(const tg_pooling_ways *list, char out[TG_POOLING_NAMES_BYTES]) {
    out[0] = '\0';
    for (int32_t i = 0; i < list->n; i++)
        tg_str_append(out, TG_POOLING_NAMES_BYTES, "%s%s", i ? "," : "",
                      tg_pooling_table[list->way[i]].name);
}

tg_pooling_ways tg_pooling_of_type(int type) {
    tg_pooling_ways list = { .n = 0 };
    for (int i = 0; i < TG_POOLING_COUNT && type > 0; i++)
        if (tg_pooling_table[i].type == type) list.way[list.n++] = (uint8_t)i;
    return list;
}

static const char *key_of(const char *architecture, const char *name, char out[160]) {
    snprintf(out, 160, "%s.%s", architecture, name);
    return out;
}

/* Whoever reads the list goes through it by the names of its members, which only an object has. */
static tg_status want_object(const tg_gguf *g, const char *key, const tg_gguf_string *text) {
    const tg_json *root;
    tg_arena arena;
    tg_arena_init(&arena, &g->ctx->mem);
    tg_status s = tg_json_parse(g->ctx, &arena, key, text->bytes, text->n_bytes, NULL, &root);
    if (s == TG_OK && tg_json_kind(root) != TG_JSON_OBJECT)
        s = tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want an object of prompts by name, have %s",
                    g->path, key, TG_JSON_SHOWN(root));
    tg_arena_deinit(&arena);
    return s;
}

/* Other types of llama.cpp's (no pooling, a rank) are no embedding: a decoder writes text as well
 * with them, so that only who embeds refuses them. */
tg_status tg_embed_rules_read(const tg_gguf *g, const char *architecture, tg_embed_rules *out) {
    char key[160];
    tg_gguf_string names = { "", 0 };
    int32_t only = 0;
    *out = (tg_embed_rules) { .type = -1, .prompt = { "", 0 }, .prompts = { "{}", 2 } };
    TG_TRY(tg_gguf_get_int(g, key_of(architecture, "pooling_type", key), -1, 255, &out->type));
    out->ways = tg_pooling_of_type(out->type);
    if (out->ways.n) out->type = -1;
    TG_TRY(tg_gguf_get_int(g, key_of(architecture, "embeds_only", key), 0, 1, &only));
    out->only = only != 0;
    TG_TRY(tg_gguf_get_string(g, key_of(architecture, "embedding_prompt", key), &out->prompt));
    TG_TRY(tg_gguf_get_string(g, key_of(architecture, "embedding_prompts", key), &out->prompts));
    TG_TRY(want_object(g, key, &out->prompts));
    TG_TRY(tg_gguf_get_int(g, key_of(architecture, "embedding_tokens", key), 1, INT32_MAX,
                           &out->most_tok));
    TG_TRY(tg_gguf_get_string(g, key_of(architecture, "pooling_modes", key), &names));
    if (names.n_bytes == 0 || tg_pooling_read(&out->ways, names.bytes, names.n_bytes)) return TG_OK;
    return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want names of ways of pooling, have '%.*s'",
                   g->path, key, (int)(names.n_bytes < 64 ? names.n_bytes : 64), names.bytes);
}
