/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packing.c - reads the tensors of a model file and packs them, all workers at once.
 *
 * Matrices are cut into pieces of whole groups of sixteen rows. A worker takes the next run of
 * pieces and packs them into the block, out of the mapped file, or, where that cannot be mapped or
 * has them in another form, out of a buffer of its own that it reads them into; meanwhile the first
 * worker makes the tokenizer. Where the file has checksums, all of them are held against it before
 * the first piece. A deadline is looked at between pieces; what is not packed then is the next
 * call's.
 */
#include "load/packing.h"

#include "base/os/os.h"
#include "base/time.h"
#include "io/hf/hf.h"
#include "io/tgpt/tgpt_v3_gguf.h"
#include "load/pack_cache.h"
#include "simd/pack.h"

#include <stdatomic.h>

/*
 * Of a file, about so many bytes are a piece: read, they are to stay in the second cache beside
 * what becomes of them; mapped, or where rows lie apart, to be worth calls of the system's. Pieces
 * that go into the same huge page are a run, which one worker packs: were it zeroed at the first
 * touch of two, each would do it. Maps are dropped once so many bytes were packed.
 */
enum {
    READ_BYTES = 64 << 10,
    APART_BYTES = 2 << 20,
    MAPPED_BYTES = 512 << 10,
    RUN_BYTES = TG_OS_HUGE_BYTES,
    DROP_BYTES = 16 << 20
};

/* ---------------------------------------------------------------------------------------- packing
 */

typedef struct piece {
    const tg_tensor *t;
    size_t first_group, n_groups;
} piece;

/* What the workers share, in the model's arena. Each has errors of its own. */
struct tg_packer {
    tg_model *m;
    tg_pack_fn pack;
    piece *pieces; /* [n] */
    size_t *runs;  /* [n_runs + 1] the first piece of each */
    size_t n, n_runs, n_chunks;
    _Atomic size_t next; /* chunks to check, then runs */
    _Atomic size_t done; /* bytes of maps */
    double deadline_ms;
    bool tokenized; /* worker 0's */
    tg_folder_checking members;
    unsigned n_workers;
    tg_block buffers;
    tg_pack_cache cache;
    bool kept;           /* there is to be a cache */
    _Atomic bool broken; /* a chunk of the cache's map */
    struct packing_worker {
        tg_ctx err;
        uint8_t *buffer, *scratch;
        size_t at, end; /* pieces of its run that are to come */
        tg_status status;
    } *workers;
};
typedef struct tg_packer packer;

static size_t row_bytes_of(const tg_tensor *t) {
    return (size_t)(t->source->bytes / t->type.dim[0]);
}

static size_t group_bytes_of(const tg_tensor *t) {
    return tg_pack_group_bytes(t->type.layout, t->type.dim[1]);
}

static size_t rows_of(const piece *p) {
    const size_t first = p->first_group * TG_PACK_ROWS, n = p->n_groups * TG_PACK_ROWS;
    return p->t->type.dim[0] - first < n ? p->t->type.dim[0] - first : n;
}

/* The row of the file that row i of a packed matrix is: neighbours that belong together come half a
 * head apart (rope.c). */
static size_t source_row(const tg_tensor *t, size_t i, size_t head_size) {
    return t->pairs ? tg_row_paired(i, head_size) : i;
}

static void pack_piece(const packer *k, const piece *p, const uint8_t *bytes) {
    const tg_model *m = k->m;
    const tg_tensor *t = p->t;
    const size_t head_size = (size_t)m->layout.config.head_size, row_bytes = row_bytes_of(t);
    const size_t group_bytes = group_bytes_of(t);
    for (size_t g = 0; g < p->n_groups; g++) {
        const size_t first = (p->first_group + g) * TG_PACK_ROWS;
        const uint8_t *row[TG_PACK_ROWS] = { NULL };
        for (size_t i = 0; i < TG_PACK_ROWS && first + i < t->type.dim[0]; i++)
            row[i] = bytes + (source_row(t, first + i, head_size) - p->first_group * TG_PACK_ROWS) *
                                 row_bytes;
        k->pack(t->source->type, t->type.dim[1], row,
                (uint8_t *)m->block.data + t->offset_bytes + (p->first_group + g) * group_bytes);
    }
}

/* Checks chunk i of what is mapped or, if nothing is, of a file that has checksums. */
static tg_status check_chunk(packer *k, struct packing_worker *w, size_t i) {
    if (!k->cache.map.data) return tg_tgpt3_gguf_check_chunk(&w->err, &k->m->file, i, w->buffer);
    if (!tg_pack_cache_check(&k->cache, i)) atomic_store(&k->broken, true);
    return TG_OK;
}

static tg_status read_piece(packer *k, struct packing_worker *w, const piece *p) {
    const uint8_t *const mapped = k->m->in_file[p->t - k->m->table.tensors];
    if (mapped) {
        const size_t row_bytes = row_bytes_of(p->t), bytes = rows_of(p) * row_bytes;
        const uint8_t *const from = mapped + p->first_group * TG_PACK_ROWS * row_bytes;
        tg_os_map_load(from, bytes);
        pack_piece(k, p, from);
        const size_t before = atomic_fetch_add_explicit(&k->done, bytes, memory_order_relaxed);
        if (before / DROP_BYTES != (before + bytes) / DROP_BYTES) tg_file_maps_drop(k->m);
        return TG_OK;
    }
    TG_TRY(tg_gguf_read_rows_into(&w->err, &k->m->file, p->t->source, p->first_group * TG_PACK_ROWS,
                                  rows_of(p), w->buffer, w->scratch));
    pack_piece(k, p, w->buffer);
    return TG_OK;
}

static void pack_worker(void *arg, unsigned worker) {
    packer *k = arg;
    struct packing_worker *w = &k->workers[worker];
    const size_t all = k->n_chunks + k->n_runs;
    if (worker == 0 && !k->tokenized) {
        const double start = tg_time_ms();
        k->tokenized = true;
        w->status = tg_vocabulary_gguf(&k->m->file, (size_t)k->m->layout.config.vocab, &k->m->tok);
        k->m->tok_ms = tg_time_ms() - start;
        k->m->pack_ms -= k->m->tok_ms / k->n_workers;
        if (w->status == TG_OK && tg_time_over(k->deadline_ms)) return;
    }
    while (w->status == TG_OK) {
        if (w->at < w->end) {
            w->status = read_piece(k, w, &k->pieces[w->at++]);
        } else {
            const size_t i = atomic_fetch_add_explicit(&k->next, 1, memory_order_relaxed);
            if (i >= all) return;
            if (i < k->n_chunks) {
                w->status = check_chunk(k, w, i);
            } else {
                w->at = k->runs[i - k->n_chunks];
                w->end = k->runs[i - k->n_chunks + 1];
            }
        }
        /* Asked last: some work is done in the shortest slice, too. */
        if (w->status == TG_OK && tg_time_over(k->deadline_ms)) return;
    }
    atomic_store_explicit(&k->next, all, memory_order_relaxed); /* no need to go on, elsewhere */
}

static size_t offset_of(const tg_tensor *t, size_t group) {
    return t->offset_bytes + group * group_bytes_of(t);
}

/* Groups of a piece, which begin in one run; rows in another order are read all at once. */
static size_t groups_of_piece(const tg_tensor *t, size_t first, bool mapped) {
    const size_t left = tg_pack_groups(t->type.dim[0]) - first;
    if (t->pairs) return left;
    const size_t each = group_bytes_of(t);
    const size_t room = (RUN_BYTES - offset_of(t, first) % RUN_BYTES + each - 1) / each;
    const tg_gguf_form *form = tg_gguf_form_of(t->source);
    const size_t bytes = mapped                     ? MAPPED_BYTES
                         : form && form->by_columns ? APART_BYTES
                                                    : READ_BYTES;
    size_t n = bytes / (row_bytes_of(t) * TG_PACK_ROWS);
    if (n > room) n = room;
    return n < 1 ? 1 : n < left ? n : left;
}

/* Of one worker, in bytes. */
struct buffer_sizes {
    size_t rows, scratch;
};

static void grow(size_t *most, size_t n) {
    n = (n + TG_BLOCK_ALIGN - 1) / TG_BLOCK_ALIGN * TG_BLOCK_ALIGN;
    if (n > *most) *most = n;
}

/* Cuts all matrices; while there is no table, pieces and runs are only counted. *most: what the
 * largest takes. */
static void cut(packer *k, struct buffer_sizes *most) {
    const tg_tensors *table = &k->m->table;
    size_t run = SIZE_MAX;
    *most = (struct buffer_sizes) { 0 };
    k->n = k->n_runs = 0;
    for (size_t i = 0; i < table->n_tensors; i++) {
        const tg_tensor *t = &table->tensors[i];
        const bool mapped = k->m->in_file[i];
        if (!t->type.layout) continue;
        for (size_t g = 0; g < tg_pack_groups(t->type.dim[0]); k->n++) {
            const piece p = { t, g, groups_of_piece(t, g, mapped) };
            if (!mapped) grow(&most->rows, rows_of(&p) * row_bytes_of(t));
            grow(&most->scratch, tg_gguf_scratch_bytes(t->source, rows_of(&p)));
            if (offset_of(t, g) / RUN_BYTES != run) {
                if (k->pieces) k->runs[k->n_runs] = k->n;
                run = offset_of(t, g) / RUN_BYTES;
                k->n_runs++;
            }
            if (k->pieces) k->pieces[k->n] = p;
            g += p.n_groups;
        }
    }
    if (k->pieces) k->runs[k->n_runs] = k->n;
}

/* TG_PENDING: the deadline came first. */
static tg_status run_workers(tg_context *ctx, packer *k, double deadline_ms) {
    k->deadline_ms = deadline_ms;
    k->n_workers = tg_os_any_thread_reads() ? ctx->threads : 1;
    if (k->n_workers > 1)
        tg_pool_run(ctx->pool, pack_worker, k);
    else
        pack_worker(k, 0);
    for (unsigned i = 0; i < ctx->threads; i++)
        if (k->workers[i].status != TG_OK)
            return tg_fail_as(&ctx->err, k->workers[i].status, &k->workers[i].err);
    bool more = atomic_load_explicit(&k->next, memory_order_relaxed) < k->n_chunks + k->n_runs;
    for (unsigned i = 0; i < ctx->threads; i++) more |= k->workers[i].at < k->workers[i].end;
    return more ? TG_PENDING : TG_OK;
}

static tg_status begin_packer(tg_context *ctx, tg_model *m) {
    packer *k = tg_arena_alloc(&m->arena, sizeof *k);
    if (!k) return tg_fail_memory(&ctx->err, "packer", sizeof *k);
    *k = (packer) { .m = m, .pack = tg_pack_find(ctx->isa) };
    m->packer = k;
    k->workers = tg_arena_array(&m->arena, ctx->threads, sizeof *k->workers);
    if (!k->workers) return tg_fail_memory(&ctx->err, "workers", sizeof *k->workers);
    for (unsigned i = 0; i < ctx->threads; i++)
        tg_ctx_init(&k->workers[i].err, &ctx->err.mem, NULL, NULL);
    return TG_OK;
}

/* Everything is allocated before the workers begin: allocators need not bear several threads. */
static tg_status begin_matrices(tg_context *ctx, packer *k) {
    struct buffer_sizes most;
    tg_model *m = k->m;
    tg_file_maps_begin_packing(m);
    cut(k, &most);
    k->n_chunks = tg_tgpt3_gguf_chunks(&m->file);
    k->next = 0;
    k->runs = tg_arena_array(&m->arena, k->n_runs + 1, sizeof *k->runs);
    k->pieces = tg_arena_array(&m->arena, k->n, sizeof *k->pieces);
    if (!k->runs || !k->pieces)
        return tg_fail_memory(&ctx->err, "table of pieces", k->n * sizeof *k->pieces);
    cut(k, &most);
    if (k->n_chunks) grow(&most.rows, m->file.checks.chunk_bytes);
    const size_t each = most.rows + most.scratch;
    TG_TRY(tg_block_new(&ctx->err, each * ctx->threads, &k->buffers));
    for (unsigned i = 0; i < ctx->threads; i++) {
        struct packing_worker *w = &k->workers[i];
        w->buffer = (uint8_t *)k->buffers.data + i * each;
        w->scratch = w->buffer + most.rows;
    }
    return tg_runtime_block_take(ctx, m->table.bytes, &m->block);
}

/* Maps the cache, if there is one, and checks it all; a damaged one is let go of. */
static tg_status begin_cache(tg_context *ctx, packer *k) {
    tg_pack_cache *c = &k->cache;
    k->kept = tg_pack_cache_find(ctx, k->m, c);
    if (k->kept) tg_pack_cache_open(ctx, c);
    k->m->map = c->map;
    if (!c->map.data) return TG_OK;
    k->n_chunks = c->n_chunks;
    TG_TRY(run_workers(ctx, k, 0));
    if (!k->broken && !tg_os_map_broken(&c->map)) return TG_OK;
    tg_say(&ctx->err, TG_LOG_WARNING, "pack cache: %s is damaged: packing anew", c->path);
    c->map = (tg_os_map) { .data = NULL };
    tg_os_map_free(&k->m->map);
    return TG_OK;
}

/* What is not packed becomes floats whatever the file has. */
static tg_status load_floats(tg_context *ctx, tg_model *m) {
    tg_block buffer = { 0 };
    tg_status s = TG_OK;
    for (size_t i = 0; s == TG_OK && i < m->table.n_tensors; i++) {
        const tg_tensor *t = &m->table.tensors[i];
        if (t->type.layout || t->stays) continue;
        if (t->source->bytes > buffer.bytes) {
            tg_block_free(&buffer);
            s = tg_block_new(&ctx->err, (size_t)t->source->bytes, &buffer);
        }
        float *to = (float *)(void *)((char *)m->block.data + t->offset_bytes);
        if (s == TG_OK) s = tg_gguf_read_floats(&m->file, t->source, buffer.data, to);
        if (s == TG_OK) tg_tensor_logs(t, to, (size_t)t->source->elems);
    }
    tg_block_free(&buffer);
    return s;
}

/* ---------------------------------------------------------------------------------------- loading
 */

/* Where no type of ours holds what a method of quantisation stores, matrices are floats, which are
 * more bytes than the file has. */
static void tell_floats(tg_context *ctx, const tg_model *m) {
    const char *type = NULL;
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->table.n_tensors; i++) {
        const tg_tensor *t = &m->table.tensors[i];
        const tg_dtype_desc *d = &tg_dtype_table[t->source->type];
        if (!tg_gguf_form_of(t->source) || d->cols > 1) continue;
        type = d->label;
        bytes += t->source->bytes;
    }
    if (type)
        tg_say(&ctx->err, TG_LOG_WARNING,
               "%s: weights of %s are read as %s, each rounded once: %.1f MB of memory",
               m->file.path, m->file.method, type, (double)bytes / 1e6);
}

static tg_status open_file(tg_context *ctx, const char *path, tg_model *m) {
    const double start = tg_time_ms();
    const char *own = tg_arena_strdup(&m->arena, path);
    if (!own) return tg_fail_memory(&ctx->err, "path", strlen(path));
    TG_TRY(tg_gguf_open_any(&ctx->err, own, &m->file));
    m->open_ms = tg_time_ms() - start;
    return TG_OK;
}

/* A head with a large vocabulary takes a slice for itself, and so does the tokenizer that is made
 * of it, which comes next. */
static tg_status begin(tg_context *ctx, const char *path, double deadline_ms, tg_model *m) {
    if (!m->file.ctx) {
        TG_TRY(open_file(ctx, path, m));
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    const double start = tg_time_ms();
    TG_TRY(tg_tensors_read(&m->file, &m->arena, tg_file_maps_wanted(), &m->table));
    m->metadata = &m->file;
    m->layout.config = m->table.config;
    m->format = tg_gguf_kind(&m->file);
    m->dtype = tg_dtype_table[tg_tensors_type(&m->table)].label;
    m->n_params = m->table.elems;
    m->weight_bytes = m->table.bytes;
    tell_floats(ctx, m);
    TG_TRY(tg_file_maps_begin(m));
    m->open_ms += tg_time_ms() - start;
    TG_TRY(begin_packer(ctx, m));
    TG_TRY(begin_cache(ctx, m->packer));
    if (!m->packer->cache.map.data) TG_TRY(begin_matrices(ctx, m->packer));
    return tg_time_over(deadline_ms) ? TG_PENDING : TG_OK;
}

static tg_status load(tg_context *ctx, const char *path, double deadline_ms, tg_model *m) {
    if (!m->packer) TG_TRY(begin(ctx, path, deadline_ms, m));
    packer *k = m->packer;
    m->packed = m->map.data ? (const char *)k->cache.weights : m->block.data;
    if (!m->map.data) {
        TG_TRY(tg_block_clear(&m->block, deadline_ms));
        k->members.tensors = true;
        if (m->file.hf) TG_TRY(tg_folder_check(&m->file.hf->folder, &k->members, deadline_ms));
        TG_TRY(run_workers(ctx, k, deadline_ms));
        TG_TRY(tg_weights_whole(m));
        tg_file_maps_end_packing(m);
        tg_block_free(&k->buffers);
        TG_TRY(load_floats(ctx, m));
    }
    return tg_weights_make_vectors(m);
}

tg_status tg_packing_go_on(tg_context *ctx, const char *path, double deadline_ms, tg_model **out) {
    const double start = tg_time_ms();
    if (!*out) TG_TRY(tg_weights_new(ctx, out));
    tg_model *m = *out;
    const double opened = m->open_ms;
    const tg_status s = load(ctx, path, deadline_ms, m);
    m->pack_ms += tg_time_ms() - start - (m->open_ms - opened);
    TG_TRY(s);
    if (m->packer->kept && !m->map.data) tg_pack_cache_save(ctx, m, &m->packer->cache);
    return tg_weights_read_text_parts(m);
}

void tg_packing_free(tg_model *m) {
    if (m->packer) tg_block_free(&m->packer->buffers);
    if (m->map.data) tg_backend_forget(m->ctx->backend, m->map.data, m->map.bytes);
    tg_os_map_free(&m->map);
    tg_file_maps_end(m);
    tg_gguf_close(&m->file);
}
