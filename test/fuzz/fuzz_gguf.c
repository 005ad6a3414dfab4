/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_gguf.c - the reader of GGUF files: its tables, every value by its name, every row.
 */
#include "fuzz.h"

#include "io/gguf/gguf.h"

/* All strings of an array, which must end where the array ends. */
static void walk_strings(const tg_gguf_value *v) {
    size_t at = 0;
    for (size_t i = 0; i < v->count; i++) {
        const tg_gguf_string s = tg_gguf_next_string(v, &at);
        PROMISE(at <= v->elements_bytes && s.n_bytes <= v->elements_bytes);
    }
    PROMISE(at == v->elements_bytes);
}

static void read_values(tg_ctx *ctx, const tg_gguf *g) {
    for (size_t i = 0; i < g->n_values; i++) {
        const tg_gguf_value *v = &g->values[i];
        int32_t whole = -1;
        float real;
        bool truth;
        tg_gguf_string text;
        PROMISE(tg_gguf_find(g, v->key) == v);
        if (tg_gguf_get_int(g, v->key, 0, 1000, &whole) == TG_OK)
            PROMISE(whole >= 0 && whole <= 1000);
        (void)tg_gguf_get_float(g, v->key, &real);
        (void)tg_gguf_get_bool(g, v->key, &truth);
        (void)tg_gguf_get_string(g, v->key, &text);
        if (v->type == TG_GGUF_ARRAY && v->element == TG_GGUF_STRING) walk_strings(v);
        tg_ctx_clear(ctx);
    }
}

/* All rows of all tensors, which must be as many bytes as the table says. */
static void read_tensors(tg_ctx *ctx, const tg_gguf *g, size_t n) {
    for (size_t i = 0; i < g->n_tensors; i++) {
        const tg_gguf_tensor *t = &g->tensors[i];
        PROMISE(tg_gguf_tensor_find(g, t->name) == t);
        PROMISE(t->elems > 0 && t->elems % t->dim[0] == 0 && t->bytes <= n);
        uint8_t *rows = malloc((size_t)t->bytes);
        fuzz_ok(ctx, tg_gguf_read_rows(g, t, 0, t->elems / t->dim[0], rows));
        free(rows);
    }
}

static void fuzz_one(const uint8_t *data, size_t n) {
    tg_ctx ctx;
    meter m;
    tg_gguf g;
    fuzz_begin(&ctx, &m, n, 40, 1 << 16);
    if (fuzz_ok(&ctx, tg_gguf_open_memory(&ctx, "fuzz", data, n, &g))) {
        read_values(&ctx, &g);
        read_tensors(&ctx, &g, n);
        tg_gguf_close(&g);
    }
    PROMISE(m.live_bytes == 0);
}
