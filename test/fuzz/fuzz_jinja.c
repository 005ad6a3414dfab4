/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_jinja.c - templates of model files: whatever they are, they end within their limits.
 *
 *     text of a template, 0xff 0xff, then variables as JSON
 */
#include "fuzz.h"

#include "chat/jinja.h"

static void fuzz_one(const uint8_t *data, size_t n) {
    tg_ctx ctx;
    meter m;
    size_t n_template;
    const char *text = (const char *)fuzz_part(&data, &n, &n_template);
    fuzz_begin(&ctx, &m, n_template + n, 4096, 2 * (size_t)TG_JINJA_MEMORY_MAX);
    tg_arena arena;
    tg_arena_init(&arena, &ctx.mem);
    const tg_json *root = NULL;
    if (tg_json_parse(&ctx, &arena, "variables", (const char *)data, n, NULL, &root) != TG_OK)
        tg_ctx_clear(&ctx);
    tg_jinja *t;
    tg_jinja_out out;
    tg_buf_init(&out.text, &ctx.mem);
    tg_buf_init(&out.words, &ctx.mem);
    if (fuzz_ok(&ctx, tg_jinja_new(&ctx, "fuzz", text, n_template, &t))) {
        tg_jinja_run *r = tg_jinja_run_new(&ctx, t);
        tg_jinja_set_date(r, (tg_jinja_date) { 2026, 2, 28 });
        for (const tg_json *v = root ? tg_json_first(root) : NULL; v; v = tg_json_next(v))
            if (v->key) tg_jinja_set(r, v->key, tg_jinja_from_json(r, v, true));
        if (fuzz_ok(&ctx, tg_jinja_render(r, &out))) PROMISE(out.text.length == out.words.length);
        tg_jinja_run_free(r);
        tg_jinja_free(t);
    }
    tg_buf_deinit(&out.text);
    tg_buf_deinit(&out.words);
    tg_arena_deinit(&arena);
    PROMISE(m.live_bytes == 0);
}
