/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgpt_v3_gguf.c - .tinygpt v3 files that metadata describe, read and written as a tg_gguf.
 *
 *     META   {"family": "llama", "tool": ..}: for people, and for older readers' messages
 *     KVAL   u32 number of values, then each as a GGUF file has it (gguf.h); CRC
 *     TNSR   as ever, but element types are 128 + GGUF's numbers and shapes those of rows of blocks
 *     DATA   bytes of tensors as a GGUF file has them, in chunks
 *     CHNK   CRC-32C of each chunk
 *     HASH   SHA-256 of all bytes before it
 *
 * The container is the one of runs: sections that tile the file, a CRC for each chunk, a hash over
 * all. So what a GGUF file cannot tell, that a byte of it has changed, is told here.
 *
 * Shapes are the one trap: TNSR has the slowest dimension first, as PyTorch does, and
 * tg_gguf_tensor the fastest. Both directions turn them around, here and nowhere else.
 *
 * tgpt_v3.h has the container's layout, tgpt_v3.c reads it, tgpt_v3_writer.c writes it.
 */
#include "io/tgpt/tgpt_v3_gguf.h"

#include "base/codec/crc.h"
#include "base/codec/sha256.h"
#include "base/time.h"
#include "io/tgpt/tgpt_v3.h"

/* -------------------------------------------------------------------------------------- reading */

/* By the section KVAL, which runs lack. Nothing is proved yet: the number of sections is the
 * file's claim, so entries are taken only as far as bytes were read. What is broken is named
 * when the file is opened. */
tg_status tg_tgpt3_is_gguf(tg_ctx *ctx, const char *path, bool *is) {
    uint8_t head[TGPT3_HEAD_BYTES + TGPT3_SECTIONS_MAX * TGPT3_ENTRY_BYTES];
    size_t n;
    *is = false;
    TG_TRY(tg_reader_first(ctx, path, head, sizeof head, &n));
    if (n < TGPT3_HEAD_BYTES || memcmp(head, TGPT3_MAGIC, TGPT3_MAGIC_BYTES) != 0) return TG_OK;
    const uint32_t count = tg_get_u32(head + 40);
    const uint8_t *entry = head + TGPT3_HEAD_BYTES;
    for (uint32_t i = 0; i < count && entry + TGPT3_ENTRY_BYTES <= head + n; i++) {
        *is = *is || tg_get_u32(entry) == TGPT3_KVAL;
        entry += TGPT3_ENTRY_BYTES;
    }
    return TG_OK;
}

/* Codes below 128 are elements of a run; those above are GGUF's, whose numbers begin with 0. */
static bool type_of(uint32_t code, tg_dtype *type) {
    return code >= TGPT3_BLOCKS && tg_dtype_of_number(code - TGPT3_BLOCKS, type);
}

/* What tg_tgpt3_table asks of each entry. False refuses the file: an unknown type, or rows that
 * are no whole blocks. The last dimension is the row. */
static bool bytes_of(uint32_t code, const tg_file_tensor *t, uint64_t *bytes) {
    tg_dtype type;
    if (t->n_dims == 0 || !type_of(code, &type)) return false;
    const tg_dtype_desc *d = &tg_dtype_table[type];
    return t->dim[t->n_dims - 1] % d->cols == 0 && tg_mul_u64(t->elems / d->cols, d->bytes, bytes);
}

/* Every entry of the table has been through bytes_of, so its type is known here. */
static tg_status take_tensors(tg_file *f, const tgpt3_head *h, tg_gguf *g, tg_gguf_tensor **out,
                              uint32_t *n) {
    tg_file_tensor *table;
    TG_TRY(tg_tgpt3_table(f, h, bytes_of, &table, n));
    *out = tg_arena_array(&f->arena, (size_t)*n + 1, sizeof **out);
    if (!*out) return tg_fail_memory(g->ctx, "table of tensors", *n * sizeof **out);
    for (uint32_t i = 0; i < *n; i++) {
        const tg_file_tensor *from = &table[i];
        tg_gguf_tensor *t = &(*out)[i];
        *t = (tg_gguf_tensor) { .name = from->name,
                                .n_dims = from->n_dims,
                                .dim = { 1, 1, 1, 1 },
                                .elems = from->elems,
                                .bytes = from->bytes,
                                .offset = from->offset };
        for (uint32_t d = 0; d < t->n_dims; d++) t->dim[d] = from->dim[t->n_dims - 1 - d];
        const bool known = type_of((uint32_t)from->dtype, &t->type);
        TG_ASSERT(known);
        (void)known;
    }
    return TG_OK;
}

/* Head, metadata, table and CRCs, all of them checked by their own CRC; of the tensors nothing
 * is read. The arena goes from f to g and back by value: only one of the two may use it at a
 * time, and on failure too it must end up with f, whose caller hands it over. */
static tg_status take_all(tg_file *f, tg_gguf *g) {
    tgpt3_head h;
    tg_reader meta, kval;
    tg_gguf_value *values;
    tg_gguf_tensor *tensors;
    size_t n_values;
    uint32_t n_tensors;
    TG_TRY(tg_tgpt3_head(f, &h));
    if (!h.kval.offset)
        return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                       "%s: want a model that metadata describe, have a run", g->path);
    TG_TRY(tg_tgpt3_section(f, "META", h.meta, &meta));
    TG_TRY(tg_tgpt3_section(f, "KVAL", h.kval, &kval));
    g->arena = f->arena; /* one arena, lent to either side in turn */
    const tg_status s = tg_gguf_read_values(g, &kval, &values, &n_values);
    f->arena = g->arena;
    TG_TRY(s);
    TG_TRY(take_tensors(f, &h, g, &tensors, &n_tensors));
    TG_TRY(tg_tgpt3_chunks(f, &h));
    g->checks = (tg_gguf_checks) { .crc = f->chunk_crc,
                                   .chunk_bytes = f->chunk_bytes,
                                   .offset = f->data_offset,
                                   .bytes = f->data_bytes,
                                   .hash_offset = f->hash_offset };
    g->arena = f->arena;
    const tg_status sorted = tg_gguf_set_tables(g, values, n_values, tensors, n_tensors);
    f->arena = g->arena;
    return sorted;
}

/* tokenizer.json goes along as it was, under the key that GGUF files have for it. A file with
 * GGUF's own arrays of tokens keeps to these. */
static void find_tokenizer(tg_gguf *g) {
    const tg_gguf_value *v = tg_gguf_find(g, TG_GGUF_TOKENIZER_JSON);
    if (!v || v->type != TG_GGUF_STRING || tg_gguf_find(g, "tokenizer.ggml.tokens")) return;
    g->tokenizer_json = v->text.bytes;
    g->tokenizer_bytes = v->text.n_bytes;
}

/* f is of this call alone; what it opened moves to *out, also on failure, so that one close
 * frees it. */
tg_status tg_tgpt3_open_gguf(tg_ctx *ctx, const char *path, tg_gguf *out) {
    tg_file f = { .ctx = ctx, .path = path };
    *out = (tg_gguf) { .ctx = ctx, .path = path, .version = 3, .n_files = 1 };
    tg_arena_init(&f.arena, &ctx->mem);
    tg_status s = tg_reader_open(ctx, path, &f.reader);
    if (s == TG_OK) s = take_all(&f, out);
    out->arena = f.arena;
    out->reader = f.reader;
    out->reader.offset = 0;
    out->total_bytes = f.reader.end;
    if (s == TG_OK)
        find_tokenizer(out);
    else
        tg_gguf_close(out);
    return s;
}

size_t tg_tgpt3_gguf_chunks(const tg_gguf *g) {
    const tg_gguf_checks *c = &g->checks;
    return c->crc ? (size_t)((c->bytes - 1) / c->chunk_bytes + 1) : 0;
}

/* For several threads at once: the copy of the reader has the caller's context, and reads by
 * offset. */
tg_status tg_tgpt3_gguf_check_chunk(tg_ctx *ctx, const tg_gguf *g, size_t i, uint8_t *buffer) {
    const tg_gguf_checks *c = &g->checks;
    const uint64_t first = (uint64_t)i * c->chunk_bytes, left = c->bytes - first;
    const size_t n = left < c->chunk_bytes ? (size_t)left : c->chunk_bytes;
    tg_reader own = g->reader;
    own.ctx = ctx;
    TG_TRY(tg_read_at(&own, c->offset + first, "tensor data", buffer, n));
    const uint32_t crc = tg_crc32c(0, buffer, n);
    return crc == c->crc[i] ? TG_OK
                            : tg_reader_fail(&own, TG_E_CHECKSUM, c->offset + first, "tensor data",
                                             "chunk %zu: want CRC %08" PRIx32 ", have %08" PRIx32,
                                             i, c->crc[i], crc);
}

/* The hash is the last section, so all bytes before its offset have gone into sha. */
static tg_status compare_hash(const tg_gguf *g, tg_sha256 *sha) {
    const uint64_t at = g->checks.hash_offset;
    uint8_t want[TG_SHA256_BYTES], have[TG_SHA256_BYTES];
    tg_sha256_final(sha, have);
    TG_TRY(tg_read_at(&g->reader, at, "hash", want, sizeof want));
    return memcmp(want, have, sizeof want) == 0
               ? TG_OK
               : tg_reader_fail(&g->reader, TG_E_CHECKSUM, at, "hash",
                                "want the SHA-256 of the file, have another");
}

/* The hash is over all of the file but itself. It is read anew: between the chunks there are head,
 * tables and gaps. */
tg_status tg_tgpt3_gguf_check(const tg_gguf *g, tg_tgpt3_checking *c, uint8_t *buffer,
                              double deadline_ms) {
    while (c->chunk < tg_tgpt3_gguf_chunks(g)) {
        TG_TRY(tg_tgpt3_gguf_check_chunk(g->ctx, g, c->chunk++, buffer));
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    if (c->hashed == 0) tg_sha256_init(&c->sha);
    while (c->hashed < g->checks.hash_offset) {
        const uint64_t left = g->checks.hash_offset - c->hashed;
        const size_t n = left < g->checks.chunk_bytes ? (size_t)left : g->checks.chunk_bytes;
        TG_TRY(tg_read_at(&g->reader, c->hashed, "hash", buffer, n));
        tg_sha256_update(&c->sha, buffer, n);
        c->hashed += n;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return compare_hash(g, &c->sha);
}

/* -------------------------------------------------------------------------------------- writing */

/* Declares all and writes none: the tensors' bytes are the caller's to write, in this order. On
 * failure the writer is gone and no file is left. */
tg_status tg_tgpt3_begin_gguf(tg_ctx *ctx, const char *path, const char *family,
                              const tg_buf *values, const tg_gguf_tensor *tensors, size_t n,
                              tg_tgpt3_writer **out) {
    tg_buf meta;
    tg_json_writer w;
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (strlen(tensors[i].name) > TGPT3_NAME_MAX)
            return tg_fail(ctx, TG_E_UNSUPPORTED, "%s: tensor %s: want a name of 1..%u bytes", path,
                           tensors[i].name, TGPT3_NAME_MAX);
    tg_buf_init(&meta, &ctx->mem);
    tg_json_writer_init(&w, &meta);
    tg_json_begin_object(&w);
    tg_json_key(&w, "family");
    tg_json_put_string(&w, family);
    tg_json_key(&w, "tool");
    tg_json_put_string(&w, "tinygpt " TG_VERSION_TEXT);
    tg_json_end_object(&w);
    tg_status s = tg_buf_status(ctx, values, path);
    if (s == TG_OK) s = tg_buf_status(ctx, &meta, path);
    if (s == TG_OK) s = tg_tgpt3_begin_model(ctx, path, meta.data, meta.length, values, out);
    for (size_t i = 0; s == TG_OK && i < n; i++) {
        const tg_gguf_tensor *t = &tensors[i];
        uint64_t dims[4];
        for (uint32_t d = 0; d < t->n_dims; d++) dims[d] = t->dim[t->n_dims - 1 - d];
        s = tg_tgpt3_declare_model(*out, t->name, TGPT3_BLOCKS + tg_dtype_table[t->type].number,
                                   t->n_dims, dims, t->bytes);
    }
    tg_buf_deinit(&meta);
    if (s == TG_OK) return TG_OK;
    tg_tgpt3_abort(*out);
    *out = NULL;
    return s;
}
