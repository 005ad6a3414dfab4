/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_hf.c - folders of safetensors, as zip files: the tables that come out of config.json, and
 * the rows of every tensor.
 *
 * Each input is taken as a zip file. Since a mutated one seldom gets past its directory, an input
 * is also divided (fuzz_part) into config.json, the header and the data of model.safetensors, a
 * name of a further file and its text, of which a zip file is made here.
 */
#include "fuzz.h"

#include "io/hf/hf.h"

static void read_tensors(tg_ctx *ctx, const tg_gguf *g) {
    for (size_t i = 0; i < g->n_tensors; i++) {
        const tg_gguf_tensor *t = &g->tensors[i];
        PROMISE(tg_gguf_tensor_find(g, t->name) == t);
        PROMISE(t->elems > 0 && t->elems % t->dim[0] == 0);
        if (t->bytes > 1u << 20) continue;
        uint8_t *rows = malloc((size_t)t->bytes);
        fuzz_ok(ctx, tg_gguf_read_rows(g, t, 0, t->elems / t->dim[0], rows));
        free(rows);
    }
}

static void try_zip(const uint8_t *bytes, size_t n) {
    tg_ctx ctx;
    meter m;
    tg_gguf g;
    fuzz_begin(&ctx, &m, n, 1100, 1 << 20); /* deflate gives up to 1032 bytes of one */
    if (fuzz_ok(&ctx, tg_hf_open_memory(&ctx, "fuzz", bytes, n, &g))) {
        read_tensors(&ctx, &g);
        tg_gguf_close(&g);
    }
    PROMISE(m.live_bytes == 0);
}

/* ------------------------------------------------------------------- a zip file of stored members
 */

enum { ZIP_BYTES = 1 << 18, MEMBERS = 3 };
typedef struct zip {
    uint8_t bytes[ZIP_BYTES + 1024], directory[1024];
    size_t n, n_directory, members;
} zip;

static void begin_member(zip *z, const char *name, size_t n_name) {
    uint8_t *m = z->bytes + z->n, *d = z->directory + z->n_directory;
    memset(m, 0, 30);
    memcpy(m, "PK\3\4", 4);
    tg_put_u16(m + 26, (uint16_t)n_name);
    memcpy(m + 30, name, n_name);
    memset(d, 0, 46);
    memcpy(d, "PK\1\2", 4);
    tg_put_u16(d + 28, (uint16_t)n_name);
    tg_put_u32(d + 42, (uint32_t)z->n);
    memcpy(d + 46, name, n_name);
    z->n += 30 + n_name;
}

static void add_bytes(zip *z, const void *bytes, size_t n) {
    if (n) memcpy(z->bytes + z->n, bytes, n);
    z->n += n;
}

/* CRC-32 of zip files, four bits at a time. */
FUZZ_PLAIN static uint32_t crc_of(const uint8_t *bytes, size_t n) {
    static uint32_t table[16];
    for (uint32_t i = 0; i < 16 && !table[15]; i++)
        for (uint32_t bit = table[i] = i, k = 0; k < 4; k++, bit = table[i])
            table[i] = bit >> 1 ^ (bit & 1 ? 0xedb88320 : 0);
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static void end_member(zip *z, size_t n_name) {
    uint8_t *d = z->directory + z->n_directory;
    const size_t data = tg_get_u32(d + 42) + 30 + n_name;
    tg_put_u32(d + 16, crc_of(z->bytes + data, z->n - data));
    tg_put_u32(d + 20, (uint32_t)(z->n - data));
    tg_put_u32(d + 24, (uint32_t)(z->n - data));
    z->n_directory += 46 + n_name;
    z->members++;
}

static void end_zip(zip *z) {
    uint8_t *e = z->bytes + z->n + z->n_directory;
    memcpy(z->bytes + z->n, z->directory, z->n_directory);
    memset(e, 0, 22);
    memcpy(e, "PK\5\6", 4);
    tg_put_u16(e + 10, (uint16_t)z->members);
    tg_put_u32(e + 12, (uint32_t)z->n_directory);
    tg_put_u32(e + 16, (uint32_t)z->n);
    z->n += z->n_directory + 22;
}

static void try_members(const uint8_t *data, size_t n) {
    static zip z;
    uint8_t length[8];
    size_t n_part, n_name;
    z.n = z.n_directory = z.members = 0;
    const uint8_t *part = fuzz_part(&data, &n, &n_part);
    if (n == 0) return;
    begin_member(&z, "config.json", 11);
    add_bytes(&z, part, n_part);
    end_member(&z, 11);
    part = fuzz_part(&data, &n, &n_part);
    begin_member(&z, "model.safetensors", 17);
    tg_put_u64(length, n_part);
    add_bytes(&z, length, sizeof length);
    add_bytes(&z, part, n_part);
    part = fuzz_part(&data, &n, &n_part);
    add_bytes(&z, part, n_part);
    end_member(&z, 17);
    part = fuzz_part(&data, &n, &n_name);
    if (n_name > 0 && n_name < 64 && n > 0) {
        begin_member(&z, (const char *)part, n_name);
        add_bytes(&z, data, n);
        end_member(&z, n_name);
    }
    end_zip(&z);
    uint8_t *copy = fuzz_copy(z.bytes, z.n);
    try_zip(copy, z.n);
    free(copy);
}

static void fuzz_one(const uint8_t *data, size_t n) {
    if (n > ZIP_BYTES / 2) return;
    if (n >= 4 && memcmp(data, "PK", 2) == 0)
        try_zip(data, n);
    else
        try_members(data, n);
}
