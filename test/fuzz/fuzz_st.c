/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_st.c - the header of a .safetensors file. Each input is taken as a file, and as the JSON of
 * one whose length is right.
 */
#include "fuzz.h"

#include "io/safetensors/safetensors_head.h"

static void try_file(const uint8_t *data, size_t n) {
    tg_ctx ctx;
    meter m;
    tg_arena arena;
    tg_reader r;
    tg_st_head head;
    fuzz_begin(&ctx, &m, n, 300, 1 << 16);
    tg_arena_init(&arena, &ctx.mem);
    tg_reader_open_memory(&ctx, "fuzz", data, n, &r);
    if (fuzz_ok(&ctx, tg_st_read(&r, &arena, &head))) {
        PROMISE(head.data_offset <= n && head.data_bytes == n - head.data_offset);
        PROMISE(r.offset == head.data_offset);
        for (size_t i = 0; i < head.n; i++) {
            const tg_st_tensor *t = &head.list[i];
            PROMISE(t->name && t->dtype < TG_ST_DTYPES);
            PROMISE(t->begin <= t->end && t->end <= head.data_bytes);
        }
    }
    tg_reader_close(&r);
    tg_arena_deinit(&arena);
    PROMISE(m.live_bytes == 0);
}

static void fuzz_one(const uint8_t *data, size_t n) {
    try_file(data, n);
    uint8_t *framed = malloc(n + 8);
    PROMISE(framed);
    size_t end = n;
    while (end > 0 && data[end - 1] != '}') end--;
    tg_put_u64(framed, end);
    if (n) memcpy(framed + 8, data, n);
    try_file(framed, n + 8);
    free(framed);
}
