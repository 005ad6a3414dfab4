/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_chat.c - conversations, rendered by each template that is built in.
 *
 *     turns: each a byte of its role, and its text up to the next 0xff 0xff
 */
#include "fuzz.h"

#include "chat/chat.h"

enum { TURNS_MAX = 8 };

static void render(const uint8_t *data, size_t n, const char *name, unsigned flags) {
    tg_ctx ctx;
    meter m;
    tg_jinja_out out;
    tg_chat_turn turns[TURNS_MAX];
    size_t n_turns = 0, n_text = 0;
    fuzz_begin(&ctx, &m, n, 256, 1 << 21);
    while (n > 0 && n_turns < TURNS_MAX) {
        size_t n_part;
        const uint8_t *part = fuzz_part(&data, &n, &n_part);
        if (n_part == 0) continue;
        turns[n_turns++] = (tg_chat_turn) { .role = (tg_chat_role)(part[0] % 3),
                                            .text = (const char *)part + 1,
                                            .n_bytes = n_part - 1 };
        n_text += n_part - 1;
    }
    tg_buf_init(&out.text, &ctx.mem);
    tg_buf_init(&out.words, &ctx.mem);
    tg_chat_template t;
    PROMISE(tg_chat_template_named(&ctx, name, &t) == TG_OK);
    const tg_chat_said said = { .turns = turns, .n = n_turns, .flags = flags };
    if (fuzz_ok(&ctx, tg_chat_render(&ctx, &t, NULL, &said, &out)))
        PROMISE(out.text.length <= n_text + n_turns * 64 + 512);
    tg_chat_template_deinit(&t);
    tg_buf_deinit(&out.text);
    tg_buf_deinit(&out.words);
    PROMISE(m.live_bytes == 0);
}

static void fuzz_one(const uint8_t *data, size_t n) {
    for (size_t i = 0; tg_chat_name_at(i); i++)
        render(data, n, tg_chat_name_at(i), (unsigned)(n & 3));
}
