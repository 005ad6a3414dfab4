/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jinja_driver.c - the interpreter behind a pipe, for tools/oracle/jinja.py, which compiles it.
 *
 *     in:   two lengths in decimal, one a line; a template and its variables as JSON, one behind
 * the other out:  a status and a length, in one line; what was rendered, or the error's message
 */
#include "chat/jinja.h"

#include <stdlib.h>

static void answer(tg_ctx *ctx, tg_status s, const char *text, size_t n) {
    if (s != TG_OK) {
        text = ctx->message;
        n = strlen(text);
    }
    printf("%d %zu\n", (int)s, n);
    fwrite(text, 1, n, stdout);
    fflush(stdout);
}

static tg_status render(tg_ctx *ctx, const char *template, size_t n, const char *json,
                        size_t n_json, tg_jinja_out *out) {
    tg_arena arena;
    tg_arena_init(&arena, &ctx->mem);
    tg_jinja *t = NULL;
    const tg_json *root;
    tg_status s = tg_jinja_new(ctx, "driver", template, n, &t);
    if (s == TG_OK) s = tg_json_parse(ctx, &arena, "variables", json, n_json, NULL, &root);
    if (s == TG_OK) {
        tg_jinja_run *r = tg_jinja_run_new(ctx, t);
        tg_jinja_set_date(r, (tg_jinja_date) { 2026, 11, 9 });
        for (const tg_json *v = tg_json_first(root); v; v = tg_json_next(v))
            tg_jinja_set(r, v->key, tg_jinja_from_json(r, v, true));
        s = tg_jinja_render(r, out);
        tg_jinja_run_free(r);
    }
    tg_jinja_free(t);
    tg_arena_deinit(&arena);
    return s;
}

int main(void) {
    size_t n, n_json;
    while (scanf("%zu %zu", &n, &n_json) == 2 && getchar() == '\n') {
        char *text = malloc(n + n_json + 1);
        if (!text || fread(text, 1, n + n_json, stdin) != n + n_json) return 1;
        tg_ctx ctx;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_jinja_out out;
        tg_buf_init(&out.text, &ctx.mem);
        tg_buf_init(&out.words, &ctx.mem);
        const tg_status s = render(&ctx, text, n, text + n, n_json, &out);
        answer(&ctx, s, tg_buf_text(&out.text), out.text.length);
        tg_buf_deinit(&out.text);
        tg_buf_deinit(&out.words);
        free(text);
    }
    return 0;
}
