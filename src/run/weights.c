/*
 * weights.c - making, opening and saving the weights of a model.
 *
 * Files hold tensors one after the other; memory holds parameters, some of which are several
 * tensors side by side. Row r of a tensor is at offset + r * stride of the flat array, and that is
 * all there is to it.
 */
#include "run/weights.h"

#include "base/math.h"
#include "base/rng.h"

/* The weights are zero until tg_weights_init or tg_weights_load fills them. tg_weights_free takes a
 * model at any stage: arena and block are valid when they are empty. */
tg_status tg_weights_alloc(tg_context *ctx, const tg_gpt_config *config, tg_model **out) {
    *out = NULL;
    TG_TRY(tg_gpt_config_check(&ctx->err, "model", config));
    tg_model *m = tg_alloc(&ctx->err.mem, sizeof *m);
    if (!m) return tg_fail_memory(&ctx->err, "model", sizeof *m);
    m->ctx = ctx;
    m->family = tg_families[0];
    m->loss = m->val_loss = TG_NAN;
    m->format = "new";
    m->dtype = "f32";
    tg_meta_init(&m->meta);
    tg_arena_init(&m->arena, &ctx->err.mem);
    tg_status s = m->family->layout(&ctx->err, &m->arena, config, &m->layout);
    if (s == TG_OK) s = tg_runtime_block(ctx, m->layout.n_elems * sizeof(float), &m->block);
    if (s != TG_OK) {
        tg_weights_free(m);
        return s;
    }
    m->weights = m->block.data;
    *out = m;
    return TG_OK;
}

void tg_weights_free(tg_model *m) {
    if (!m) return;
    const tg_mem mem = m->ctx->err.mem;
    tg_block_free(&m->block);
    tg_arena_deinit(&m->arena);
    tg_free(&mem, m, sizeof *m);
}

/* ----------------------------------------------------------------------------------- fresh weights
 */

/* Read by all workers at once; they write to disjoint elements. */
typedef struct init_job {
    tg_model *m;
    uint64_t seed;
} init_job;

/* Elements [i, i + 4) of a tensor come from one block of random bits, numbered by (ordinal of the
 * tensor, i / 4) and by nothing else: not by the layout in memory, so that a family may place its
 * tensors side by side, and not by the worker. i counts in the file's order. first is a multiple of
 * 4. Normals are scaled in double and rounded once. */
static void init_normal(const init_job *job, const tg_tensor_spec *t, uint32_t ordinal,
                        uint64_t first, uint64_t end) {
    for (uint64_t i = first; i < end; i += 4) {
        uint32_t x[4];
        double z[4];
        tg_philox(job->seed, i / 4, TG_RNG_INIT, ordinal, x);
        tg_rng_normal4(x, z);
        for (uint64_t j = i; j < i + 4 && j < end; j++)
            job->m->weights[t->offset_elems + j / t->cols * t->row_stride_elems + j % t->cols] =
                (float)(z[j - i] * t->init_std);
    }
}

/* Workers split each tensor at whole blocks, so the bits do not depend on their number. Constants
 * are vectors (gains and biases), too short to be worth splitting. */
static void init_worker(void *arg, unsigned worker) {
    const init_job *job = arg;
    const tg_layout *l = &job->m->layout;
    const unsigned workers = job->m->ctx->threads;
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tg_tensor_spec *t = &l->tensors[i];
        const uint64_t n = (uint64_t)t->rows * t->cols;
        if (t->init == TG_INIT_NORMAL) {
            const uint64_t blocks = (n + 3) / 4;
            const uint64_t first = blocks * worker / workers * 4;
            const uint64_t end = blocks * (worker + 1) / workers * 4;
            init_normal(job, t, (uint32_t)i, first, end < n ? end : n);
        } else if (worker == 0) {
            float *row = job->m->weights + t->offset_elems;
            for (size_t j = 0; j < t->cols; j++) row[j] = t->init == TG_INIT_ONE ? 1.0f : 0.0f;
        }
    }
}

void tg_weights_init(tg_model *m, uint64_t seed) {
    init_job job = { m, seed };
    tg_pool_run(m->ctx->pool, init_worker, &job);
}

/* ------------------------------------------------------------------------------- reading a file */

/* Elements and not shapes are compared: the shapes in a file were held against its configuration
 * when it was opened (io/file_table.c), and the layout is made from the same configuration. A
 * tensor that lies alone is read in one go; one that shares its rows with others, row by row. */
tg_status tg_weights_load(tg_file *f, const tg_layout *layout, const char *prefix, float *flat) {
    for (size_t i = 0; i < layout->n_tensors; i++) {
        const tg_tensor_spec *t = &layout->tensors[i];
        char name[160];
        snprintf(name, sizeof name, "%s%s", prefix, t->name);
        const tg_file_tensor *ft = tg_file_find(f, name);
        if (!ft) return tg_fail(f->ctx, TG_E_FORMAT, "%s: tensor %s is missing", f->path, name);
        if (ft->elems != (uint64_t)t->rows * t->cols)
            return tg_fail(f->ctx, TG_E_SHAPE, "%s: tensor %s: want %zu elements, have %" PRIu64,
                           f->path, name, t->rows * t->cols, ft->elems);
        if (t->row_stride_elems == t->cols) {
            TG_TRY(tg_file_read_f32(f, ft, flat + t->offset_elems, 0, t->rows * t->cols));
            continue;
        }
        for (size_t r = 0; r < t->rows; r++)
            TG_TRY(tg_file_read_f32(f, ft, flat + t->offset_elems + r * t->row_stride_elems,
                                    r * t->cols, t->cols));
    }
    return TG_OK;
}

/* After this the file may be closed: nothing in the model points into its arena. format and the
 * dtype's name are static strings. */
static tg_status load(tg_model *m, tg_file *f) {
    TG_TRY(tg_weights_load(f, &m->layout, "", m->weights));
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

/* A damaged file is replaced by its .prev, with a warning that tg_file_open_newest gives; a model
 * is not written back to where it came from, so which of them it was need not be kept. */
tg_status tg_weights_open(tg_context *ctx, const char *path, tg_model **out) {
    *out = NULL;
    tg_file *f;
    bool used_prev;
    TG_TRY(tg_file_open_newest(&ctx->err, path, &f, &used_prev));
    tg_status s = tg_weights_alloc(ctx, &f->config, out);
    if (s == TG_OK) s = load(*out, f);
    tg_file_close(f);
    if (s != TG_OK) {
        tg_weights_free(*out);
        *out = NULL;
    }
    return s;
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
    return (tg_weights) { read_flat, user, source->part[TG_PART_ADAM_M] != NULL };
}

tg_status tg_weights_save(tg_model *m, const char *path, tg_file_kind kind) {
    const tg_flat_source source = { &m->layout, { m->weights, NULL, NULL } };
    const tg_weights weights = tg_flat_weights(&source);
    if (kind != TG_FILE_V3)
        return tg_tgpt2_save(&m->ctx->err, path, kind, &m->layout.config, m->step, &m->meta,
                             &weights, false);
    tg_buf text;
    tg_buf_init(&text, &m->ctx->err.mem);
    tg_json_writer w;
    tg_json_writer_init(&w, &text);
    tg_meta_put_v3(&w, &m->layout.config, m->step, &m->meta);
    tg_status s = tg_buf_status(&m->ctx->err, &text, "header of a file");
    if (s == TG_OK) s = tg_tgpt3_save(&m->ctx->err, path, text.data, text.length, &weights, false);
    tg_buf_deinit(&text);
    return s;
}

const tg_tensor_spec *tg_weights_find(const tg_model *m, const char *name) {
    for (size_t i = 0; i < m->layout.n_tensors; i++)
        if (strcmp(m->layout.tensors[i].name, name) == 0) return &m->layout.tensors[i];
    return NULL;
}
