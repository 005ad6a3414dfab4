/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgpt_v3_writer.c - a .tinygpt v3 file from front to back, without ever looking back.
 *
 * All tensors are declared before the first byte of data, so every offset and length is known
 * when the header is written. What is not known then stands behind the data:
 *
 *     header, table, META, TNSR    written when the first data comes (begin_file)
 *     DATA                         as it comes; a CRC for each chunk, kept in memory
 *     CHNK, HASH                   at commit
 *
 * Invariant: sha has seen all that save was given; position counts it. The writer holds the same
 * picture of tensors that a reader makes, and makes it with the reader's own checks.
 */
#include "base/codec/crc.h"
#include "base/codec/sha256.h"
#include "io/run/saving.h"
#include "io/tgpt/tgpt_v3.h"

#define SECTIONS_MAX 7u
#define HEADER_MAX   (TGPT3_HEAD_BYTES + SECTIONS_MAX * TGPT3_ENTRY_BYTES)

struct tg_tgpt3_writer {
    tg_ctx *ctx;
    tg_status status; /* the first error sticks */
    tg_file picture;  /* arena, path, header, config, manifest, tensors: as a reader would see it */
    tg_buf table;     /* of tg_file_tensor, as declared; offset is within DATA */
    uint64_t data_bytes;
    const tg_buf *values; /* KVAL of a file that metadata describe; NULL: it holds a run */
    const void *keys;     /* KEYS of a run [keys_bytes]; NULL: its tokens are bytes */
    size_t keys_bytes;

    tg_save *save; /* NULL until the first data */
    tg_sha256 sha;
    uint64_t position;      /* bytes written to the file */
    size_t tensor;          /* the one that is being written */
    uint64_t tensor_bytes;  /* of it, written */
    uint64_t data_position; /* bytes of DATA written */
    uint32_t chunk_crc;     /* of the chunk that is being written */
    tg_buf crcs;            /* of the chunks before it, four bytes each */
};

/* ------------------------------------------------------------------------------------ low level */

/* Every byte of the file but the hash itself goes through here. */
static tg_status emit(tg_tgpt3_writer *w, const void *bytes, size_t n_bytes) {
    tg_sha256_update(&w->sha, bytes, n_bytes);
    w->position += n_bytes;
    return tg_save_write(w->save, bytes, n_bytes);
}

/* Zeros up to the next place where something may begin. */
static tg_status emit_gap(tg_tgpt3_writer *w) {
    static const uint8_t zeros[TGPT3_ALIGN];
    return emit(w, zeros, (size_t)(tgpt3_align(w->position) - w->position));
}

/* A whole section that ends with its CRC. */
static tg_status emit_section(tg_tgpt3_writer *w, const void *bytes, size_t n_bytes) {
    uint8_t crc[TGPT3_CRC_BYTES];
    tg_put_u32(crc, tg_crc32c(0, bytes, n_bytes));
    TG_TRY(emit_gap(w));
    TG_TRY(emit(w, bytes, n_bytes));
    return emit(w, crc, sizeof crc);
}

/* A gigabyte of data makes 4 KiB of CRCs. */
static void end_chunk(tg_tgpt3_writer *w) {
    uint8_t crc[4];
    tg_put_u32(crc, w->chunk_crc);
    tg_buf_append(&w->crcs, crc, sizeof crc);
    w->chunk_crc = 0;
}

/* Bytes of DATA, cut where chunks end. */
static tg_status emit_data(tg_tgpt3_writer *w, const void *bytes, size_t n_bytes) {
    const uint8_t *from = bytes;
    while (n_bytes > 0) {
        const size_t left = TGPT3_CHUNK_BYTES - (size_t)(w->data_position % TGPT3_CHUNK_BYTES);
        const size_t n = n_bytes < left ? n_bytes : left;
        w->chunk_crc = tg_crc32c(w->chunk_crc, from, n);
        TG_TRY(emit(w, from, n));
        w->data_position += n;
        if (n == left) {
            end_chunk(w);
        }
        from += n;
        n_bytes -= n;
    }
    return TG_OK;
}

/* ---------------------------------------------------------------------------- header and tables */

/* The table grows in a buffer, whose memory is aligned as any allocation is. */
static size_t n_declared(const tg_tgpt3_writer *w) {
    return w->table.length / sizeof(tg_file_tensor);
}

static const tg_file_tensor *declared(const tg_tgpt3_writer *w, size_t i) {
    return (const tg_file_tensor *)(const void *)w->table.data + i;
}

/* The body of TNSR, without its CRC. */
static void put_tensors(const tg_tgpt3_writer *w, tg_buf *out) {
    uint8_t number[4];
    tg_put_u32(number, (uint32_t)n_declared(w));
    tg_buf_append(out, number, sizeof number);
    for (size_t i = 0; i < n_declared(w); i++) {
        const tg_file_tensor *t = declared(w, i);
        const size_t name_bytes = strlen(t->name);
        uint8_t entry[TGPT3_TENSOR_BYTES + 8 * TG_FILE_MAX_DIMS];
        tg_put_u16(entry, (uint16_t)name_bytes);
        entry[2] = (uint8_t)t->dtype;
        entry[3] = (uint8_t)t->n_dims;
        tg_put_u64(entry + 4, t->offset);
        tg_put_u64(entry + 12, t->bytes);
        for (uint32_t d = 0; d < t->n_dims; d++) {
            tg_put_u64(entry + TGPT3_TENSOR_BYTES + 8 * d, t->dim[d]);
        }
        tg_buf_append(out, entry, TGPT3_TENSOR_BYTES + 8 * t->n_dims);
        tg_buf_append(out, t->name, name_bytes);
    }
}

/* Header and section table: all lengths are known, so every offset follows. All sections are needed
 * to read the file, so all are marked as required. */
static uint32_t put_header(const tg_tgpt3_writer *w, size_t tnsr_bytes, uint8_t out[HEADER_MAX]) {
    const uint64_t n_chunks = (w->data_bytes - 1) / TGPT3_CHUNK_BYTES + 1;
    const struct {
        uint32_t id;
        uint64_t bytes;
    } sections[SECTIONS_MAX] = {
        { TGPT3_META, w->picture.header_bytes + TGPT3_CRC_BYTES },
        { TGPT3_KVAL, w->values ? w->values->length + TGPT3_CRC_BYTES : 0 },
        { TGPT3_KEYS, w->keys ? w->keys_bytes + TGPT3_CRC_BYTES : 0 },
        { TGPT3_TNSR, tnsr_bytes + TGPT3_CRC_BYTES },
        { TGPT3_DATA, w->data_bytes },
        { TGPT3_CHNK, 4 * n_chunks + TGPT3_CRC_BYTES },
        { TGPT3_HASH, TG_SHA256_BYTES },
    };
    const uint32_t n = SECTIONS_MAX - !w->values - !w->keys;
    const uint32_t header_bytes = TGPT3_HEAD_BYTES + n * TGPT3_ENTRY_BYTES;
    memset(out, 0, HEADER_MAX);
    uint64_t end = header_bytes;
    uint8_t *entry = out + TGPT3_HEAD_BYTES;
    for (size_t i = 0; i < SECTIONS_MAX; i++) {
        if (sections[i].bytes == 0) continue;
        const uint64_t offset = tgpt3_align(end);
        tg_put_u32(entry, sections[i].id);
        tg_put_u32(entry + 4, TGPT3_MUST_KNOW);
        tg_put_u64(entry + 8, offset);
        tg_put_u64(entry + 16, sections[i].bytes);
        end = offset + sections[i].bytes;
        entry += TGPT3_ENTRY_BYTES;
    }
    memcpy(out, TGPT3_MAGIC, TGPT3_MAGIC_BYTES);
    tg_put_u32(out + 8, TGPT3_VERSION);
    tg_put_u32(out + 12, header_bytes);
    tg_put_u64(out + 32, end);
    tg_put_u32(out + 40, n);
    tg_put_u32(out + 44, w->keys ? TGPT3_NEEDS_KEYS : TGPT3_NEEDS);
    tg_put_u32(out + 48, TGPT3_CHUNK_BYTES);
    uint32_t crc = tg_crc32c(0, out, TGPT3_HEAD_CRC);
    crc = tg_crc32c(crc, out + TGPT3_HEAD_BYTES, header_bytes - TGPT3_HEAD_BYTES);
    tg_put_u32(out + TGPT3_HEAD_CRC, crc);
    return header_bytes;
}

/* Creates the temporary file and writes all that stands before DATA. The tensors are held against
 * the configuration before that, by the reader's own code: what it would refuse is never written.
 */
static tg_status begin_file(tg_tgpt3_writer *w) {
    TG_TRY(tg_buf_status(w->ctx, &w->table, w->picture.path));
    const tg_file_tensor *table = (const tg_file_tensor *)(const void *)w->table.data;
    if (!w->values) TG_TRY(tg_file_set_tensors(&w->picture, table, n_declared(w)));

    tg_buf tnsr;
    tg_buf_init(&tnsr, &w->ctx->mem);
    put_tensors(w, &tnsr);
    tg_status status = tg_buf_status(w->ctx, &tnsr, w->picture.path);
    if (status == TG_OK) {
        status = tg_save_begin(w->ctx, w->picture.path, &w->save);
    }
    if (status == TG_OK) {
        uint8_t header[HEADER_MAX];
        const uint32_t header_bytes = put_header(w, tnsr.length, header);
        emit(w, header, header_bytes); /* errors of writing stick in save */
        emit_section(w, w->picture.header_text, w->picture.header_bytes);
        if (w->values) emit_section(w, w->values->data, w->values->length);
        if (w->keys) emit_section(w, w->keys, w->keys_bytes);
        emit_section(w, tnsr.data, tnsr.length);
        status = emit_gap(w);
    }
    tg_buf_deinit(&tnsr);
    return status;
}

/* ------------------------------------------------------------------------------------ interface */

/* The text goes into the file as it was given. NULL: no memory. */
static tg_tgpt3_writer *new_writer(tg_ctx *ctx, const char *path, const char *meta_json,
                                   size_t meta_bytes) {
    tg_tgpt3_writer *w = tg_alloc(&ctx->mem, sizeof *w);
    if (w) {
        w->ctx = w->picture.ctx = ctx;
        tg_sha256_init(&w->sha);
        tg_buf_init(&w->table, &ctx->mem);
        tg_buf_init(&w->crcs, &ctx->mem);
        tg_file *p = &w->picture;
        tg_arena_init(&p->arena, &ctx->mem);
        p->path = tg_arena_strdup(&p->arena, path);
        p->header_text = tg_arena_strndup(&p->arena, meta_json, meta_bytes);
        p->header_bytes = meta_bytes;
        if (p->path && p->header_text) return w;
        tg_tgpt3_abort(w);
    }
    tg_fail_memory(ctx, path, meta_bytes);
    return NULL;
}

/* The JSON is parsed so that the tensors can be held against it, and for the manifest. */
tg_status tg_tgpt3_begin(tg_ctx *ctx, const char *path, const char *meta_json, size_t meta_bytes,
                         tg_tgpt3_writer **out) {
    tg_model_config config;
    *out = NULL;
    tg_tgpt3_writer *w = new_writer(ctx, path, meta_json, meta_bytes);
    if (!w) {
        return TG_E_MEMORY;
    }
    tg_file *p = &w->picture;
    tg_status status = tg_file_set_header(p, p->header_text, meta_bytes);
    if (status == TG_OK) {
        status = tg_meta_get_v3(ctx, p->path, p->header, &config, &p->step);
    }
    if (status == TG_OK && tg_meta_is_own(&config)) {
        status = tg_file_set_config(p, &config);
    }
    if (status != TG_OK) {
        tg_tgpt3_abort(w);
        return status;
    }
    *out = w;
    return TG_OK;
}

tg_status tg_tgpt3_begin_model(tg_ctx *ctx, const char *path, const char *meta_json,
                               size_t meta_bytes, const tg_buf *values, tg_tgpt3_writer **out) {
    *out = new_writer(ctx, path, meta_json, meta_bytes);
    if (!*out) {
        return TG_E_MEMORY;
    }
    (*out)->values = values;
    return TG_OK;
}

/* Offsets are dealt out here, in the order of the calls. A product that wraps cannot pass the
 * comparison with the configuration that follows. */
static tg_status declare(tg_tgpt3_writer *w, const char *name, tg_file_tensor t) {
    TG_ASSERT(!w->save);
    TG_TRY(w->status);
    t.name = tg_arena_strdup(&w->picture.arena, name);
    t.offset = tgpt3_align(w->data_bytes);
    if (!t.name) {
        return w->status = tg_fail_memory(w->ctx, name, strlen(name) + 1);
    }
    w->data_bytes = t.offset + t.bytes;
    tg_buf_append(&w->table, &t, sizeof t);
    return w->status = tg_buf_status(w->ctx, &w->table, w->picture.path);
}

tg_status tg_tgpt3_declare(tg_tgpt3_writer *w, const char *name, tg_file_dtype dtype,
                           uint32_t n_dims, const uint64_t *dims) {
    TG_ASSERT(n_dims <= TG_FILE_MAX_DIMS);
    tg_file_tensor t = { .dtype = dtype, .n_dims = n_dims, .dim = { 1, 1, 1, 1 }, .elems = 1 };
    for (uint32_t i = 0; i < n_dims; i++) {
        t.dim[i] = dims[i];
        t.elems *= dims[i];
    }
    t.bytes = tg_file_dtype_bytes(dtype, t.elems);
    return declare(w, name, t);
}

tg_status tg_tgpt3_declare_model(tg_tgpt3_writer *w, const char *name, uint32_t code,
                                 uint32_t n_dims, const uint64_t *dims, uint64_t bytes) {
    TG_ASSERT(n_dims <= TG_FILE_MAX_DIMS);
    tg_file_tensor t = { .dtype = (tg_file_dtype)code, .n_dims = n_dims, .bytes = bytes };
    memcpy(t.dim, dims, n_dims * sizeof *dims);
    return declare(w, name, t);
}

/* The gap before a tensor belongs to DATA and to its chunks. */
static tg_status begin_tensor(tg_tgpt3_writer *w) {
    static const uint8_t zeros[TGPT3_ALIGN];
    const uint64_t offset = declared(w, w->tensor)->offset;
    w->tensor_bytes = 0;
    return emit_data(w, zeros, (size_t)(offset - w->data_position));
}

/* Callers cut where they like; tensors end where they were declared to end. */
static tg_status write_pieces(tg_tgpt3_writer *w, const uint8_t *bytes, size_t n_bytes) {
    if (!w->save) {
        TG_TRY(begin_file(w));
    }
    while (n_bytes > 0) {
        if (w->tensor == n_declared(w)) {
            return tg_fail(w->ctx, TG_E_INTERNAL,
                           "%s: data: want no more than the declared tensors, have %zu bytes more",
                           w->picture.path, n_bytes);
        }
        const tg_file_tensor *t = declared(w, w->tensor);
        if (w->tensor_bytes == 0) {
            TG_TRY(begin_tensor(w));
        }
        const uint64_t left = t->bytes - w->tensor_bytes;
        const size_t n = n_bytes < left ? n_bytes : (size_t)left;
        TG_TRY(emit_data(w, bytes, n));
        w->tensor_bytes += n;
        if (n == left) {
            w->tensor++;
            w->tensor_bytes = 0;
        }
        bytes += n;
        n_bytes -= n;
    }
    return TG_OK;
}

/* An error sticks: every later call returns it at once, and commit removes the temporary file. So
 * callers may write on and look at the end. */
tg_status tg_tgpt3_write(tg_tgpt3_writer *w, const void *bytes, size_t n_bytes) {
    TG_TRY(w->status);
    return w->status = write_pieces(w, bytes, n_bytes);
}

/* CHNK and HASH: what was not known before all data had gone by. */
static tg_status end_file(tg_tgpt3_writer *w) {
    if (w->tensor != n_declared(w) || w->tensor == 0) {
        return tg_fail(w->ctx, TG_E_INTERNAL, "%s: data: want %zu tensors, have %zu",
                       w->picture.path, n_declared(w), w->tensor);
    }
    TG_ASSERT(w->data_position == w->data_bytes);
    if (w->data_position % TGPT3_CHUNK_BYTES != 0) {
        end_chunk(w);
    }
    TG_TRY(tg_buf_status(w->ctx, &w->crcs, w->picture.path));
    TG_TRY(emit_section(w, w->crcs.data, w->crcs.length));
    TG_TRY(emit_gap(w));
    uint8_t hash[TG_SHA256_BYTES];
    tg_sha256_final(&w->sha, hash);
    return tg_save_write(w->save, hash, sizeof hash);
}

/* tg_save_commit frees what it was given, whether it succeeds or not. */
tg_status tg_tgpt3_commit(tg_tgpt3_writer *w, bool keep_prev, uint64_t *n_bytes) {
    tg_status status = w->status;
    if (status == TG_OK) {
        status = end_file(w);
    }
    if (status == TG_OK) {
        if (n_bytes) *n_bytes = tg_save_offset(w->save);
        status = tg_save_commit(w->save, keep_prev);
        w->save = NULL; /* it is gone in any case */
    }
    tg_tgpt3_abort(w);
    return status;
}

/* Before the first data there is no temporary file, and save is NULL. */
void tg_tgpt3_abort(tg_tgpt3_writer *w) {
    if (!w) {
        return;
    }
    const tg_mem mem = w->ctx->mem;
    tg_save_abort(w->save);
    tg_buf_deinit(&w->table);
    tg_buf_deinit(&w->crcs);
    tg_arena_deinit(&w->picture.arena);
    tg_free(&mem, w, sizeof *w);
}

/* --------------------------------------------------------------------------------- a whole file */

typedef struct v3_saving {
    tg_saving base;
    tg_tgpt3_writer *writer; /* NULL once it is committed */
    size_t n_parts;
    bool keep_prev;
} v3_saving;

/* The order of tg_part: prefixes by its numbers. Names of moments are those of the weights with a
 * prefix, by which a reader finds them (file_table.c). */
static tg_status declare_all(tg_tgpt3_writer *w, size_t n_parts) {
    const tg_manifest *m = &w->picture.manifest;
    for (size_t i = 0; i < n_parts * m->n; i++) {
        const tg_manifest_entry *e = &m->entry[i % m->n];
        char name[TGPT3_NAME_MAX + 1];
        snprintf(name, sizeof name, "%s%s", tg_part_prefix[i / m->n], e->name);
        TG_TRY(tg_tgpt3_declare(w, name, TG_FILE_F32, (uint32_t)e->n_dims, e->dim));
    }
    return TG_OK;
}

/* In the order of the declarations: weights first, then all m, v and raw ones. Whoever reads only
 * weights reads the front of DATA. */
static tg_status v3_write(tg_saving *s) {
    const v3_saving *v = (const v3_saving *)s;
    const size_t n_tensors = s->manifest->n, turn = s->turn;
    uint64_t first;
    size_t n;
    if (turn == v->n_parts * n_tensors) {
        return TG_OK;
    }
    TG_TRY(tg_saving_read(s, turn % n_tensors, (tg_part)(turn / n_tensors), &first, &n));
    TG_TRY(tg_tgpt3_write(v->writer, s->piece, n * sizeof *s->piece));
    return TG_PENDING;
}

static tg_status v3_commit(tg_saving *s) {
    v3_saving *v = (v3_saving *)s;
    tg_tgpt3_writer *w = v->writer;
    v->writer = NULL;
    return tg_tgpt3_commit(w, v->keep_prev, NULL);
}

static void v3_drop(tg_saving *s) { tg_tgpt3_abort(((v3_saving *)s)->writer); }

tg_status tg_tgpt3_saving(tg_ctx *ctx, const char *path, const char *meta_json, size_t meta_bytes,
                          const tg_weights *weights, bool keep_prev, tg_saving **out) {
    static const tg_saving_format format = { v3_write, v3_commit, v3_drop };
    *out = NULL;
    v3_saving *v = tg_saving_new(ctx, path, &format, sizeof *v, TG_SAVING_PIECE_ELEMS, weights);
    if (!v) {
        return TG_E_MEMORY;
    }
    v->n_parts = weights->has_raw ? TG_PARTS : weights->has_moments ? 3 : 1;
    v->keep_prev = keep_prev;
    tg_status status = tg_tgpt3_begin(ctx, path, meta_json, meta_bytes, &v->writer);
    if (status == TG_OK) {
        tg_manifest *manifest = &v->writer->picture.manifest;
        v->writer->keys = weights->keys;
        v->writer->keys_bytes = weights->keys_bytes;
        if (weights->manifest) *manifest = *weights->manifest;
        v->base.manifest = manifest;
        status = declare_all(v->writer, v->n_parts);
    }
    if (status != TG_OK) {
        tg_saving_free(&v->base);
        return status;
    }
    *out = &v->base;
    return TG_OK;
}

tg_status tg_tgpt3_save(tg_ctx *ctx, const char *path, const char *meta_json, size_t meta_bytes,
                        const tg_weights *weights, bool keep_prev) {
    tg_saving *s;
    TG_TRY(tg_tgpt3_saving(ctx, path, meta_json, meta_bytes, weights, keep_prev, &s));
    return tg_saving_finish(s);
}
