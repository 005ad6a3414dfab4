/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_chat.c - templates of model files, which are recognised and never run; and conversations,
 * rendered by each template that is built in.
 *
 *     text of a template, 0xff 0xff, then turns: each a byte of its role, and its text up to the
 *     next 0xff 0xff
 */
#include "fuzz.h"

#include "tok/chat.h"

enum { TURNS_MAX = 8 };

static void render(const uint8_t *data, size_t n, const tg_chat_template *t, unsigned flags) {
    tg_ctx ctx;
    meter m;
    tg_buf out;
    tg_chat_turn turns[TURNS_MAX];
    size_t n_turns = 0, n_text = 0;
    fuzz_begin(&ctx, &m, n, 8, 1 << 16);
    while (n > 0 && n_turns < TURNS_MAX) {
        size_t n_part;
        const uint8_t *part = fuzz_part(&data, &n, &n_part);
        if (n_part == 0) continue;
        turns[n_turns++] = (tg_chat_turn) { .role = (tg_chat_role)(part[0] % 3),
                                            .text = (const char *)part + 1,
                                            .n_bytes = n_part - 1 };
        n_text += n_part - 1;
    }
    tg_buf_init(&out, &ctx.mem);
    const tg_chat_how how = { .flags = flags };
    if (fuzz_ok(&ctx, tg_chat_render(&ctx, t, turns, n_turns, &how, &out)))
        PROMISE(out.length <= n_text + n_turns * 64 + 512);
    tg_buf_deinit(&out);
    PROMISE(m.live_bytes == 0);
}

static void fuzz_one(const uint8_t *data, size_t n) {
    size_t n_template;
    const char *text = (const char *)fuzz_part(&data, &n, &n_template);
    tg_chat_found said;
    const tg_chat_template *found = tg_chat_detect(text, n_template, &said);
    PROMISE(said.system_bytes <= TG_CHAT_SYSTEM_MAX);
    if (found) PROMISE(tg_chat_named(tg_chat_name(found)) == found);
    for (size_t i = 0; tg_chat_at(i); i++) render(data, n, tg_chat_at(i), (unsigned)(n & 1));
}
