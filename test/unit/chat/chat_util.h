/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat_util.h - what the tests of templates share: what one renders into, and a file of golden
 * texts.
 */
#ifndef TG_TEST_CHAT_UTIL_H
#define TG_TEST_CHAT_UTIL_H

#include "tok_util.h"

#include "chat/jinja.h"

/* What is rendered, or why it is not. */
typedef struct rendered {
    tg_ctx ctx;
    tg_jinja_out out;
    tg_status status;
} rendered;

static inline void begin(rendered *x, const tg_mem *mem) {
    tg_ctx_init(&x->ctx, mem, NULL, NULL);
    tg_buf_init(&x->out.text, &x->ctx.mem);
    tg_buf_init(&x->out.words, &x->ctx.mem);
}

static inline void end(rendered *x) {
    tg_buf_deinit(&x->out.text);
    tg_buf_deinit(&x->out.words);
}

/* A golden file, and what it is in. */
typedef struct golden {
    tg_ctx ctx;
    tg_arena arena;
    char *text;
    const tg_json *root;
} golden;

static inline void open_golden(golden *g, const char *path) {
    size_t n;
    tg_ctx_init(&g->ctx, NULL, NULL, NULL);
    tg_arena_init(&g->arena, &g->ctx.mem);
    g->text = read_file(path, &n);
    assert_int_equal(tg_json_parse(&g->ctx, &g->arena, path, g->text, n, NULL, &g->root), TG_OK);
}

static inline void close_golden(golden *g) {
    tg_arena_deinit(&g->arena);
    free(g->text);
}

#endif
