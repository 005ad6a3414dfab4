/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_cache.c - writes and maps the file that pack_cache.h draws.
 */
#include "load/pack_cache.h"

#include "base/codec/crc.h"
#include "base/codec/sha256.h"

enum { HEAD_BYTES = 56, CRC_AT = 52, DATA_AT = 4096 };
static const char magic[8] = "TGPACK1";

/* ------------------------------------------------------------------------------------------- key
 */

static void add_number(tg_sha256 *sha, uint64_t x) {
    uint8_t b[8];
    tg_put_u64(b, x);
    tg_sha256_update(sha, b, sizeof b);
}

/* Of a file with a name: what was unpacked into memory cannot be told from another. */
static bool add_file(tg_sha256 *sha, const tg_reader *r) {
    uint64_t stamp[TG_OS_STAMP];
    if (!r->file) return false;
    tg_os_file_stamp(r->file, stamp);
    for (size_t i = 0; i < TG_OS_STAMP; i++) add_number(sha, stamp[i]);
    return stamp[1] != 0;
}

/* All files of a place: the tensor's, those of its parts, and those of its experts, which are
 * thousands in a few files. */
static bool add_place(tg_sha256 *sha, const tg_gguf_tensor *t) {
    const tg_gguf_place *p = t->place;
    bool told = true;
    const tg_os_file *last = NULL;
    for (uint64_t e = 0; told && p->experts && e < t->dim[2]; e++) {
        const tg_gguf_place *of = p->experts[e].place;
        if (of->reader.file && of->reader.file == last) continue;
        last = of->reader.file;
        told = add_place(sha, &p->experts[e]);
    }
    const uint64_t numbers[] = { p->bits, p->group, p->group_rows, p->zero_more };
    for (size_t i = 0; p->form && i < sizeof numbers / sizeof numbers[0]; i++)
        add_number(sha, numbers[i]);
    add_number(sha, p->plus_one);
    for (const tg_gguf_times *by = p->times; by; by = by->end == UINT64_MAX ? NULL : by + 1) {
        add_number(sha, by->end);
        tg_sha256_update(sha, &by->by, sizeof by->by);
    }
    for (size_t i = 0; told && p->form && i < TG_GGUF_PARTS; i++)
        if (p->part[i].rows) told = add_file(sha, &p->part[i].reader);
    return told && add_file(sha, &p->reader);
}

static bool add_tensor(tg_sha256 *sha, const tg_gguf *g, const tg_tensor *t) {
    const tg_gguf_place *p = t->source->place;
    tg_sha256_update(sha, t->name, strlen(t->name) + 1);
    const uint64_t numbers[] = {
        t->source->type,          t->type.dim[0], t->type.dim[1],    t->type.layout,
        (uint64_t)t->type.n_dims, t->pairs,       t->offset_bytes,   t->bytes,
        p && p->turned,           p && p->form,   t->source->offset, g->heads_plain
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) add_number(sha, numbers[i]);
    return p ? add_place(sha, t->source) : add_file(sha, &g->reader);
}

/* The layouts by their sizes; a change that keeps these is a change of the magic. */
static bool make_key(const tg_model *m, uint8_t key[TG_SHA256_BYTES]) {
    tg_sha256 sha;
    bool told = true;
    tg_sha256_init(&sha);
    tg_sha256_update(&sha, magic, sizeof magic);
    for (size_t i = 0; i < TG_PACKING_COUNT; i++) {
        add_number(&sha, tg_packing_table[i].cols);
        add_number(&sha, tg_packing_table[i].bytes);
        add_number(&sha, (uint64_t)tg_packing_table[i].zero);
    }
    add_number(&sha, m->table.bytes);
    for (size_t i = 0; told && i < m->table.n_tensors; i++)
        told = add_tensor(&sha, &m->file, &m->table.tensors[i]);
    tg_sha256_final(&sha, key);
    return told;
}

bool tg_pack_cache_find(tg_context *ctx, const tg_model *m, tg_pack_cache *out) {
    tg_sha256 sha;
    uint8_t of_path[TG_SHA256_BYTES];
    *out = (tg_pack_cache) { .bytes = m->table.bytes };
    out->n_chunks = (m->table.bytes + TG_PACK_CHUNK_BYTES - 1) / TG_PACK_CHUNK_BYTES;
    if (!ctx->pack_cache[0] || m->table.bytes == 0 || !make_key(m, out->key)) return false;
    tg_sha256_init(&sha);
    tg_sha256_update(&sha, m->file.path, strlen(m->file.path));
    tg_sha256_final(&sha, of_path);
    int n = snprintf(out->path, sizeof out->path, "%s/", ctx->pack_cache);
    for (size_t i = 0; i < 8; i++)
        n += snprintf(out->path + n, sizeof out->path - (size_t)n, "%02x", of_path[i]);
    snprintf(out->path + n, sizeof out->path - (size_t)n, ".tgpack");
    return true;
}

/* ----------------------------------------------------------------------------------- both ways */

static void put_head(const tg_pack_cache *c, const uint8_t *crcs, uint8_t out[HEAD_BYTES]) {
    memcpy(out, magic, sizeof magic);
    tg_put_u64(out + 8, c->bytes);
    memcpy(out + 16, c->key, sizeof c->key);
    tg_put_u32(out + 48, TG_PACK_CHUNK_BYTES);
    const uint32_t crc = tg_crc32c(0, out, CRC_AT);
    tg_put_u32(out + CRC_AT, tg_crc32c(crc, crcs, 4 * c->n_chunks));
}

static uint32_t crc_of(const tg_pack_cache *c, const uint8_t *weights, size_t chunk) {
    const size_t first = chunk * TG_PACK_CHUNK_BYTES, left = c->bytes - first;
    return tg_crc32c(0, weights + first, left < TG_PACK_CHUNK_BYTES ? left : TG_PACK_CHUNK_BYTES);
}

/* NULL: the mapped file is what is wanted. */
static const char *what_is_wrong(tg_pack_cache *c) {
    const uint8_t *file = c->map.data;
    uint8_t want[HEAD_BYTES];
    if (c->map.bytes != DATA_AT + c->bytes + 4 * c->n_chunks) return "has another length";
    c->weights = file + DATA_AT;
    c->crcs = c->weights + c->bytes;
    put_head(c, c->crcs, want);
    if (memcmp(file + 16, c->key, sizeof c->key) != 0)
        return "belongs to another state of the model's files";
    return memcmp(file, want, HEAD_BYTES) == 0 ? NULL : "is damaged";
}

/* A cache that fails is no failure of the load, and what it reads is its own to replace. */
static tg_ctx own_errors(const tg_context *ctx) {
    tg_ctx quiet = ctx->err;
    quiet.files.seen = NULL;
    return quiet;
}

void tg_pack_cache_open(tg_context *ctx, tg_pack_cache *c) {
    if (tg_os_kind_of(c->path) != TG_OS_FILE) return;
    tg_ctx quiet = own_errors(ctx);
    if (tg_os_map_new(&quiet, c->path, &c->map) != TG_OK) {
        tg_say(&ctx->err, TG_LOG_WARNING, "pack cache: %s", quiet.message);
        return;
    }
    const char *wrong = what_is_wrong(c);
    if (!wrong) return;
    tg_say(&ctx->err, TG_LOG_WARNING, "pack cache: %s %s: packing anew", c->path, wrong);
    tg_os_map_free(&c->map);
}

bool tg_pack_cache_check(const tg_pack_cache *c, size_t chunk) {
    return crc_of(c, c->weights, chunk) == tg_get_u32(c->crcs + 4 * chunk);
}

/* --------------------------------------------------------------------------------------- writing
 */

static tg_status write_all(tg_ctx *ctx, const tg_pack_cache *c, const uint8_t *weights,
                           uint8_t *crcs) {
    static const uint8_t zeros[DATA_AT - HEAD_BYTES];
    uint8_t head[HEAD_BYTES];
    tg_save *save;
    for (size_t i = 0; i < c->n_chunks; i++) tg_put_u32(crcs + 4 * i, crc_of(c, weights, i));
    put_head(c, crcs, head);
    TG_TRY(tg_save_begin(ctx, c->path, &save));
    tg_save_write(save, head, sizeof head); /* errors stick */
    tg_save_write(save, zeros, sizeof zeros);
    tg_save_write(save, weights, c->bytes);
    const tg_status s = tg_save_write(save, crcs, 4 * c->n_chunks);
    if (s == TG_OK) return tg_save_commit(save, false);
    tg_save_abort(save);
    return s;
}

void tg_pack_cache_save(tg_context *ctx, const tg_model *m, const tg_pack_cache *c) {
    tg_ctx quiet = own_errors(ctx);
    uint8_t *crcs = tg_alloc(&quiet.mem, 4 * c->n_chunks);
    tg_status s = crcs ? tg_os_make_folder(&quiet, ctx->pack_cache)
                       : tg_fail_memory(&quiet, c->path, 4 * c->n_chunks);
    if (s == TG_OK) s = write_all(&quiet, c, m->block.data, crcs);
    if (s == TG_OK)
        tg_say(&ctx->err, TG_LOG_INFO, "pack cache: %s is written", c->path);
    else
        tg_say(&ctx->err, TG_LOG_WARNING, "pack cache: not written: %s", quiet.message);
    tg_free(&quiet.mem, crcs, 4 * c->n_chunks);
}
