/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_inflate.c - deflate streams, bare and as members of a zip file.
 *
 * The first two bytes of an input are a size, taken as it is and in units of 64 bytes, and what a
 * directory claims in units of 16 KiB (deflate gives up to 1032 bytes of one). A stream that is
 * whole gives the same bytes again, and is refused with a byte less or more. A zip file never takes
 * more memory than its packed bytes prove.
 */
#include "fuzz.h"

#include "base/codec/inflate.h"
#include "io/folder.h"

enum { MOST = 1 << 16 };

static void try_stream(tg_ctx *ctx, const uint8_t *in, size_t n_in, size_t n_out) {
    static uint8_t out[MOST + 1], second[MOST + 1];
    if (n_out > MOST) return;
    if (!fuzz_ok(ctx, tg_inflate(ctx, "fuzz", in, n_in, out, n_out))) return;
    PROMISE(n_out <= 1032 * n_in);
    PROMISE(tg_inflate(ctx, "fuzz", in, n_in, second, n_out) == TG_OK);
    PROMISE(memcmp(out, second, n_out) == 0);
    PROMISE(tg_inflate(ctx, "fuzz", in, n_in, second, n_out + 1) != TG_OK);
    tg_ctx_clear(ctx);
    if (n_out > 0) PROMISE(tg_inflate(ctx, "fuzz", in, n_in, second, n_out - 1) != TG_OK);
    tg_ctx_clear(ctx);
}

/* One deflated member, whose size is only claimed. */
static size_t make_zip(uint8_t *z, const uint8_t *in, size_t n_in, uint32_t claimed) {
    static const char name[] = "config.json";
    const size_t n_name = sizeof name - 1, at = 30 + n_name + n_in;
    memset(z, 0, 30);
    memcpy(z, "PK\3\4", 4);
    tg_put_u16(z + 26, (uint16_t)n_name);
    memcpy(z + 30, name, n_name);
    if (n_in) memcpy(z + 30 + n_name, in, n_in);
    uint8_t *d = z + at;
    memset(d, 0, 46 + n_name + 22);
    memcpy(d, "PK\1\2", 4);
    tg_put_u16(d + 10, 8);
    tg_put_u32(d + 20, (uint32_t)n_in);
    tg_put_u32(d + 24, claimed);
    tg_put_u16(d + 28, (uint16_t)n_name);
    memcpy(d + 46, name, n_name);
    uint8_t *e = d + 46 + n_name;
    memcpy(e, "PK\5\6", 4);
    tg_put_u16(e + 10, 1);
    tg_put_u32(e + 12, (uint32_t)(46 + n_name));
    tg_put_u32(e + 16, (uint32_t)at);
    return at + 46 + n_name + 22;
}

static void try_zip(tg_ctx *ctx, const uint8_t *bytes, size_t n) {
    tg_folder f;
    tg_reader r;
    if (!fuzz_ok(ctx, tg_folder_open_memory(ctx, "fuzz", bytes, n, &f))) return;
    for (size_t i = 0; i < f.n_members; i++) {
        PROMISE(tg_folder_has(&f, f.members[i].name));
        if (fuzz_ok(ctx, tg_folder_file(&f, f.members[i].name, &r))) PROMISE(r.offset <= r.end);
    }
    tg_folder_close(&f);
}

static void fuzz_one(const uint8_t *data, size_t n) {
    static uint8_t zip[(1 << 17) + 256];
    tg_ctx ctx;
    meter m;
    fuzz_begin(&ctx, &m, n, 1100, 1 << 20);
    try_zip(&ctx, data, n);
    if (n >= 2 && n <= 1 << 16) {
        const size_t claimed = 64u * tg_get_u16(data);
        uint8_t *in = fuzz_copy(data + 2, n - 2);
        try_stream(&ctx, in, n - 2, claimed);
        try_stream(&ctx, in, n - 2, claimed / 64);
        try_zip(&ctx, zip, make_zip(zip, in, n - 2, (uint32_t)claimed << 8));
        free(in);
    }
    PROMISE(m.live_bytes == 0);
}
