/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.c - making, opening and saving the weights of a model.
 *
 * Files hold tensors one after the other; memory holds parameters, some of which are several
 * tensors side by side. Row r of a tensor is at offset + r * stride of the flat array, and that is
 * all there is to it.
 */
#include "load/weights.h"

#include "base/math.h"
#include "base/rng.h"
#include "base/time.h"
#include "io/detect.h"
#include "io/safetensors/safetensors.h"
#include "load/packing.h"

/* tg_weights_free takes a model at any stage: arena and block are valid when they are empty. */
tg_status tg_weights_new(tg_context *ctx, tg_model **out) {
    tg_model *m = *out = tg_alloc(&ctx->err.mem, sizeof *m);
    if (!m) return tg_fail_memory(&ctx->err, "model", sizeof *m);
    m->ctx = ctx;
    m->loss = m->val_loss = TG_NAN;
    m->table.embed.type = -1; /* nothing is said of embeddings */
    tg_meta_init(&m->meta);
    tg_arena_init(&m->arena, &ctx->err.mem);
    return TG_OK;
}

/* Without a vocabulary tokens are bytes, though a model of other ones can still be used on ids. */
tg_status tg_weights_read_text_parts(tg_model *m) {
    const size_t vocab = (size_t)m->layout.config.vocab;
    if (!m->tok && m->metadata) TG_TRY(tg_vocabulary_gguf(m->metadata, vocab, &m->tok));
    if (!m->tok) {
        tg_tok_desc bytes;
        tg_tok_desc_init(&bytes);
        TG_TRY(tg_tok_new(&m->ctx->err, &bytes, &m->tok));
    }
    m->tokenizer = (tg_tokenizer) { .ctx = m->ctx, .tok = m->tok };
    return m->metadata ? tg_vocabulary_chat(m->metadata, &m->tokenizer) : TG_OK;
}

static tg_status take_flat(tg_model *m, const tg_model_config *config) {
    tg_context *ctx = m->ctx;
    m->format = "new";
    m->dtype = "f32";
    m->metadata = m->keys ? &m->keys->g : NULL;
    const bool writes = tg_family_of(config)->graph;
    if (m->metadata && !writes)
        TG_TRY(tg_embed_rules_read(m->metadata, config->family, &m->table.embed));
    m->table.embed.only = !writes;
    TG_TRY(tg_layout_make(&ctx->err, &m->arena, config, &m->layout));
    m->n_params = tg_config_params(config);
    m->weight_bytes = (uint64_t)m->layout.n_elems * sizeof(float);
    TG_TRY(tg_weights_make_vectors(m));
    TG_TRY(tg_weights_read_text_parts(m));
    TG_TRY(tg_runtime_block_take(ctx, m->layout.n_elems * sizeof(float), &m->block));
    m->weights = m->block.data;
    return TG_OK;
}

/* The weights are zero until tg_filling or tg_loading fills them. */
tg_status tg_weights_take(tg_context *ctx, const tg_model_config *config, tg_keys *keys,
                          tg_model **out) {
    tg_model_config whole = *config;
    tg_model *m = *out = NULL;
    tg_status s = tg_config_complete(&ctx->err, "model", &whole);
    if (s == TG_OK) s = tg_weights_new(ctx, &m);
    if (s != TG_OK) {
        tg_keys_free(&ctx->err, keys);
        return s;
    }
    m->keys = keys;
    s = take_flat(m, &whole);
    if (s == TG_OK)
        *out = m;
    else
        tg_weights_free(m);
    return s;
}

tg_status tg_weights_take_file(tg_context *ctx, const tg_file *f, tg_model **out) {
    tg_keys *keys = NULL;
    if (f->keys) TG_TRY(tg_keys_of_bytes(&ctx->err, f->path, f->keys, f->keys_bytes, &keys));
    return tg_weights_take(ctx, &f->config, keys, out);
}

tg_status tg_weights_alloc(tg_context *ctx, const tg_model_config *config, tg_model **out) {
    TG_TRY(tg_weights_take(ctx, config, NULL, out));
    return tg_block_clear(&(*out)->block, 0);
}

void tg_weights_free(tg_model *m) {
    if (!m) return;
    const tg_mem mem = m->ctx->err.mem;
    tg_packing_free(m);
    tg_runtime_block_free(m->ctx, &m->block);
    for (size_t i = 0; i < m->n_vectors; i++)
        tg_backend_forget(m->ctx->backend, m->vectors[i].data, m->vectors[i].bytes);
    tg_tok_free(m->tok);
    tg_vocabulary_chat_deinit(&m->tokenizer);
    tg_keys_free(&m->ctx->err, m->keys);
    tg_arena_deinit(&m->arena);
    tg_free(&mem, m, sizeof *m);
}

bool tg_weights_are_flat(const tg_model *m) { return m->layout.n_tensors > 0; }

void tg_weights_net(const tg_model *m, tg_graph *g, tg_net *out) {
    if (tg_weights_are_flat(m))
        *out = tg_net_of(g, &m->layout);
    else
        *out = (tg_net) { .g = g, .config = &m->layout.config, .tensors = &m->table, .layer = -1 };
}

/* A state that the plan has not is passed over. */
tg_status tg_weights_bind(const tg_model *m, tg_plan *plan) {
    if (tg_weights_are_flat(m))
        TG_TRY(tg_plan_bind(plan, TG_WEIGHTS_NAME, m->weights, m->layout.n_elems * sizeof(float)));
    for (size_t i = 0; i < m->table.n_tensors; i++) {
        const tg_tensor *t = &m->table.tensors[i];
        const char *data = t->stays ? (const char *)m->in_file[i] : m->packed + t->offset_bytes;
        TG_TRY(tg_plan_bind(plan, t->name, (char *)(uintptr_t)data, t->bytes));
    }
    for (size_t i = 0; i < m->n_vectors; i++)
        TG_TRY(tg_plan_bind(plan, m->vectors[i].name, m->vectors[i].data, m->vectors[i].bytes));
    return TG_OK;
}

tg_status tg_weights_whole(const tg_model *m) {
    const bool cache = m->map.data && tg_os_map_broken(&m->map);
    if (!cache && !tg_file_maps_broken(m)) return TG_OK;
    return tg_fail(&m->ctx->err, TG_E_IO, "%s%s: want a file that stays, have one that shrank",
                   cache ? "pack cache of " : "", m->file.path);
}

tg_status tg_weights_want_floats(const tg_model *m, const char *what) {
    if (tg_weights_are_flat(m)) return TG_OK;
    return tg_fail(&m->ctx->err, TG_E_UNSUPPORTED,
                   "%s: want weights that are floats in memory, have those of a third-party file, "
                   "packed in its types (%s): open it with tg_model_open_floats, as train --from "
                   "does",
                   what, m->dtype);
}

tg_status tg_weights_fetch(const tg_model *m) {
    return tg_backend_fetch(m->ctx->backend, m->weights, m->block.bytes);
}

tg_status tg_weights_want_steady(const tg_model *m) {
    if (!m->changing) return TG_OK;
    return tg_fail(&m->ctx->err, TG_E_ARG,
                   "model: its trainer is in the middle of an update: poll that first");
}

/* ----------------------------------------------------------------------------------- fresh weights
 */

/* Elements that are filled at once by all workers, a multiple of 4: some milliseconds of work. */
#define FILL_ELEMS ((uint64_t)1 << 18)

/* Read by all workers at once; they write to disjoint elements. */
typedef struct fill_piece {
    tg_model *m;
    uint64_t seed;
    uint32_t ordinal;    /* of the tensor */
    uint64_t first, end; /* elements of it */
} fill_piece;

/* Elements [i, i + 4) of a tensor come from one block of random bits, numbered by (ordinal of the
 * tensor, i / 4) and by nothing else: not by the layout in memory, so that a family may place its
 * tensors side by side, and not by the worker. i counts in the file's order. first is a multiple of
 * 4. Normals are scaled in double and rounded once. */
static void fill_normal(const fill_piece *p, const tg_tensor_spec *t, uint64_t first,
                        uint64_t end) {
    for (uint64_t i = first; i < end; i += 4) {
        uint32_t x[4];
        double z[4];
        tg_philox(p->seed, i / 4, TG_RNG_INIT, p->ordinal, x);
        tg_rng_normal4(x, z);
        for (uint64_t j = i; j < i + 4 && j < end; j++)
            p->m->weights[t->offset_elems + j / t->cols * t->row_stride_elems + j % t->cols] =
                (float)(z[j - i] * t->init_std);
    }
}

/* Workers split a piece at whole blocks, so the bits do not depend on their number. Constants are
 * vectors (gains and biases), too short to be worth splitting. */
static void fill_worker(void *arg, unsigned worker) {
    const fill_piece *p = arg;
    const tg_tensor_spec *t = &p->m->layout.tensors[p->ordinal];
    const unsigned workers = p->m->ctx->threads;
    if (t->init == TG_INIT_NORMAL) {
        const uint64_t blocks = (p->end - p->first + 3) / 4;
        const uint64_t first = p->first + blocks * worker / workers * 4;
        const uint64_t end = p->first + blocks * (worker + 1) / workers * 4;
        fill_normal(p, t, first, end < p->end ? end : p->end);
    } else if (worker == 0) {
        float *row = p->m->weights + t->offset_elems;
        for (uint64_t j = p->first; j < p->end; j++) row[j] = t->init == TG_INIT_ONE ? 1.0f : 0.0f;
    }
}

tg_status tg_filling_go_on(tg_filling *f, tg_model *m, uint64_t seed, double deadline_ms) {
    while (f->tensor < m->layout.n_tensors) {
        const tg_tensor_spec *t = &m->layout.tensors[f->tensor];
        const uint64_t n = (uint64_t)t->rows * t->cols;
        fill_piece p = { m, seed, (uint32_t)f->tensor, f->first, n };
        if (n - f->first > FILL_ELEMS) p.end = f->first + FILL_ELEMS;
        tg_pool_run(m->ctx->pool, fill_worker, &p);
        f->tensor += p.end == n;
        f->first = p.end == n ? 0 : p.end;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

/* ------------------------------------------------------------------------------- reading a file */

/* Elements that are read between two looks at the clock: 1 MiB, as a chunk of the file. */
#define LOAD_ELEMS ((uint64_t)1 << 18)

/* The shapes of the byte GPT were held against its configuration when the file was opened
 * (io/run/file_table.c); those of other families are here. */
static tg_status find_tensor(tg_file *f, const tg_tensor_spec *t, const char *prefix,
                             const tg_file_tensor **out) {
    char name[160];
    snprintf(name, sizeof name, "%s%s", prefix, t->name);
    *out = tg_file_find(f, name);
    if (!*out) return tg_fail(f->ctx, TG_E_FORMAT, "%s: tensor %s is missing", f->path, name);
    const uint64_t want[2] = { t->n_dims == 2 ? t->rows : t->cols, t->n_dims == 2 ? t->cols : 1 };
    const tg_file_tensor *have = *out;
    if (have->n_dims == (uint32_t)t->n_dims && have->dim[0] == want[0] && have->dim[1] == want[1])
        return TG_OK;
    char wanted[TG_SHAPE_BYTES], found[TG_SHAPE_BYTES];
    return tg_fail(f->ctx, TG_E_SHAPE, "%s: tensor %s: want %s, have %s", f->path, name,
                   tg_file_shape_text((uint32_t)t->n_dims, want, wanted),
                   tg_file_shape_text(have->n_dims, have->dim, found));
}

/* A tensor that lies alone is read as one long row; one that shares its rows with others, row by
 * row. */
tg_status tg_loading_go_on(tg_loading *l, tg_file *f, const tg_layout *layout, const char *prefix,
                           float *flat, double deadline_ms) {
    uint64_t since = 0; /* elements, the last look at the clock */
    if (f->manifest.n != layout->n_tensors)
        return tg_fail(f->ctx, TG_E_SHAPE, "%s: want the %zu tensors of the family %s, have %zu",
                       f->path, layout->n_tensors, layout->config.family, f->manifest.n);
    for (; l->tensor < layout->n_tensors; l->tensor++, l->first = 0) {
        const tg_tensor_spec *t = &layout->tensors[l->tensor];
        const tg_file_tensor *ft;
        TG_TRY(find_tensor(f, t, prefix, &ft));
        const uint64_t cols = t->row_stride_elems == t->cols ? ft->elems : t->cols;
        while (l->first < ft->elems) {
            const uint64_t row = l->first / cols, col = l->first % cols;
            const uint64_t n = cols - col < LOAD_ELEMS ? cols - col : LOAD_ELEMS;
            float *to = flat + t->offset_elems + row * t->row_stride_elems + col;
            TG_TRY(tg_file_read_f32(f, ft, to, l->first, (size_t)n));
            l->first += n;
            since += n;
            if (since < LOAD_ELEMS) continue;
            if (tg_time_over(deadline_ms)) return TG_PENDING;
            since = 0;
        }
    }
    return TG_OK;
}

/* After this the file may be closed: nothing in the model points into its arena. format and the
 * dtype's name are static strings. */
static tg_status take_story(tg_model *m, tg_file *f) {
    tg_meta meta;
    TG_TRY(tg_meta_read(f, &meta));
    m->meta = meta;
    /* The history lies in the file's arena, which goes with the file: keep a copy. */
    tg_history_point *history = tg_arena_array(&m->arena, meta.n_history + 1, sizeof *meta.history);
    if (!history) return tg_fail_memory(&m->ctx->err, "history", meta.n_history * sizeof *history);
    if (meta.n_history) memcpy(history, meta.history, meta.n_history * sizeof *history);
    m->meta.history = history;
    m->step = f->step;
    m->loss = meta.final.step >= 0 ? meta.final.loss : TG_NAN;
    m->val_loss = meta.final.step >= 0 ? meta.final.val_loss : TG_NAN;
    m->has_moments = f->has_moments;
    m->format = f->format;
    m->dtype = tg_file_dtype_name(f->dtype);
    return TG_OK;
}

/* What cannot be read at all has a predecessor perhaps, which a third-party model has not. */
static tg_status probe(tg_context *ctx, const char *path, char folder[TG_GGUF_PATH_BYTES],
                       bool *takes) {
    char previous[TG_GGUF_PATH_BYTES + 8];
    const tg_status s = tg_gguf_takes(&ctx->err, path, folder, takes);
    if (s != TG_E_IO || strlen(path) >= TG_GGUF_PATH_BYTES) return s;
    snprintf(previous, sizeof previous, "%s.prev", path);
    if (tg_os_kind_of(previous) != TG_OS_FILE) return s;
    tg_ctx_clear(&ctx->err);
    *takes = false;
    return TG_OK;
}

static tg_status go_on_opening(tg_model_opening *o, tg_context *ctx, const char *path,
                               double deadline_ms, tg_model **out) {
    char folder[TG_GGUF_PATH_BYTES] = "";
    bool takes = !o->opening && o->model; /* begun */
    if (!takes && !o->opening && !o->floats) TG_TRY(probe(ctx, path, folder, &takes));
    if (takes && o->wants_floats) TG_TRY(tg_floats_new(ctx, folder, &o->floats));
    if (o->floats) return tg_floats_go_on(o->floats, deadline_ms, out);
    if (takes) {
        TG_TRY(tg_packing_go_on(ctx, folder, deadline_ms, &o->model));
        *out = o->model;
        o->model = NULL;
        return TG_OK;
    }
    if (!o->opening) TG_TRY(tg_opening_new(&ctx->err, path, &o->opening));
    if (!o->file) TG_TRY(tg_opening_go_on(o->opening, deadline_ms, &o->file, &o->used_prev));
    if (!o->model) TG_TRY(tg_weights_take_file(ctx, o->file, &o->model));
    tg_model *m = o->model;
    TG_TRY(tg_block_clear(&m->block, deadline_ms));
    TG_TRY(tg_loading_go_on(&o->loading, o->file, &m->layout, "", m->weights, deadline_ms));
    TG_TRY(take_story(m, o->file));
    m->used_prev = o->used_prev;
    *out = m;
    o->model = NULL;
    return TG_OK;
}

/* A damaged file is replaced by its .prev, with a warning that tg_opening gives; programs that do
 * not read the log are told by the model's info. */
tg_status tg_model_opening_go_on(tg_model_opening *o, tg_context *ctx, const char *path,
                                 double deadline_ms, tg_model **out) {
    return tg_fail_named(&ctx->err, path, go_on_opening(o, ctx, path, deadline_ms, out));
}

void tg_model_opening_deinit(tg_model_opening *o) {
    tg_floats_free(o->floats);
    tg_weights_free(o->model);
    tg_file_close(o->file);
    tg_opening_free(o->opening);
    *o = (tg_model_opening) { .file = NULL };
}

/* ------------------------------------------------------------------------------- writing a file */

/* The other direction of tg_weights_load, but for any range: writers ask for pieces of a tensor
 * that begin and end anywhere within its rows. */
void tg_weights_copy_out(const tg_tensor_spec *t, const float *flat, uint64_t first, size_t n,
                         float *out) {
    for (size_t done = 0; done < n;) {
        const uint64_t at = first + done;
        const size_t col = (size_t)(at % t->cols), row = (size_t)(at / t->cols);
        size_t piece = t->cols - col;
        if (piece > n - done) piece = n - done;
        memcpy(out + done, flat + t->offset_elems + row * t->row_stride_elems + col,
               piece * sizeof(float));
        done += piece;
    }
}

static tg_status read_flat(void *user, size_t tensor, tg_part part, uint64_t first, size_t n,
                           float *out) {
    const tg_flat_source *s = user;
    tg_weights_copy_out(&s->layout->tensors[tensor], s->part[part], first, n, out);
    return TG_OK;
}

/* tg_weights has one `user` for readers of all kinds, so const goes; read_flat does not write. The
 * source must outlive the result. */
tg_weights tg_flat_weights(const tg_flat_source *source) {
    tg_flat_source *user = (tg_flat_source *)(uintptr_t)source;
    return (tg_weights) { .read = read_flat,
                          .user = user,
                          .has_moments = source->part[TG_PART_ADAM_M] != NULL,
                          .has_raw = source->part[TG_PART_RAW] != NULL,
                          .manifest = &source->layout->manifest,
                          .keys = source->keys ? source->keys->bytes.data : NULL,
                          .keys_bytes = source->keys ? source->keys->bytes.length : 0 };
}

tg_status tg_weights_saving(tg_model *m, const char *path, tg_file_kind kind,
                            const tg_weights *weights, tg_saving **out) {
    const tg_model_config *config = &m->layout.config;
    if (kind != TG_FILE_V3 && !tg_meta_is_own(config))
        return tg_fail(&m->ctx->err, TG_E_UNSUPPORTED,
                       "%s: want a .tinygpt file of version 3 for a model of the family %s, have "
                       "another kind",
                       path, config->family);
    if (kind != TG_FILE_V3 && kind != TG_FILE_SAFETENSORS)
        return tg_tgpt2_saving(&m->ctx->err, path, kind, config, m->step, &m->meta, weights, false,
                               out);
    tg_buf text;
    tg_buf_init(&text, &m->ctx->err.mem);
    tg_json_writer w;
    tg_json_writer_init(&w, &text);
    tg_meta meta = m->meta;
    meta.vocabulary = m->keys != NULL;
    tg_meta_begin_v3(&w, config, m->step, &meta);
    tg_meta_end_v3(&w);
    tg_status s = tg_buf_status(&m->ctx->err, &text, "header of a file");
    if (s == TG_OK)
        s = kind == TG_FILE_V3
                ? tg_tgpt3_saving(&m->ctx->err, path, text.data, text.length, weights, false, out)
                : tg_safetensors_saving(&m->ctx->err, path, config, text.data, text.length, weights,
                                        false, out);
    tg_buf_deinit(&text);
    return s;
}

const tg_tensor_spec *tg_weights_find(const tg_model *m, const char *name) {
    for (size_t i = 0; i < m->layout.n_tensors; i++)
        if (strcmp(m->layout.tensors[i].name, name) == 0) return &m->layout.tensors[i];
    return NULL;
}
