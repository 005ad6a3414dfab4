/*
 * lm.c - reads the tensors of model files of others and packs them, all workers at once.
 *
 * Tensors are read in pieces of whole groups of sixteen rows into a buffer, which the workers then
 * pack into the block; the file is never mapped, so that one that shrinks is an error and no
 * signal.
 */
#include "run/lm.h"

#include "base/json.h"
#include "base/os.h"
#include "base/time.h"
#include "io/hf.h"
#include "run/vocabulary.h"

/* About so many bytes are read at once: enough for all workers, little enough for the caches. */
enum { PIECE_BYTES = 4 << 20 };

/* Is the model of a folder of our own family, which io/safetensors.h reads? Without a config.json
 * only our own files can be opened. */
static bool is_ours(const char *folder) {
    tg_ctx quiet;
    tg_arena arena;
    tg_buf text;
    const tg_json *root = NULL;
    char path[4096];
    tg_ctx_init(&quiet, NULL, NULL, NULL);
    tg_arena_init(&arena, &quiet.mem);
    tg_buf_init(&text, &quiet.mem);
    const int n = snprintf(path, sizeof path, "%s/config.json", folder);
    bool ours = true;
    if (n > 0 && (size_t)n < sizeof path && tg_os_kind_of(path) == TG_OS_FILE &&
        tg_os_read_all(&quiet, path, 1 << 24, &text) == TG_OK &&
        tg_json_parse(&quiet, &arena, path, tg_buf_text(&text), text.length, NULL, &root) ==
            TG_OK) {
        const tg_json *type = tg_json_get(root, "model_type");
        const tg_json *vocab = tg_json_get(root, "vocab_size");
        const tg_json *act = tg_json_get(root, "activation_function");
        ours =
            !type || (tg_json_is(type, "gpt2") && vocab && tg_json_kind(vocab) == TG_JSON_NUMBER &&
                      strcmp(vocab->u.text, "256") == 0 && act && tg_json_is(act, "gelu"));
    }
    tg_buf_deinit(&text);
    tg_arena_deinit(&arena);
    return ours;
}

static bool begins_as_gguf(const char *path) {
    tg_ctx quiet;
    uint8_t first[4] = { 0 };
    tg_reader r;
    tg_ctx_init(&quiet, NULL, NULL, NULL);
    if (tg_reader_open(&quiet, path, &r) != TG_OK) return false;
    const tg_status s = tg_read_bytes(&r, "magic", first, sizeof first);
    tg_reader_close(&r);
    return s == TG_OK && tg_gguf_probe(first, sizeof first);
}

bool tg_lm_takes(const char *path, char folder[TG_LM_PATH_BYTES]) {
    static const char name[] = "model.safetensors";
    const size_t n = strlen(path), k = sizeof name - 1;
    if (n >= TG_LM_PATH_BYTES) return false;
    memcpy(folder, path, n + 1);
    if (n >= k && strcmp(path + n - k, name) == 0 && (n == k || path[n - k - 1] == '/')) {
        folder[n == k ? 0 : n - k - 1] = '\0';
        if (n == k) memcpy(folder, ".", 2);
        return !is_ours(folder);
    }
    return tg_hf_probe(path) || begins_as_gguf(path);
}

/* ---------------------------------------------------------------------------------------- packing
 */

typedef struct piece {
    const tg_lm_tensor *t;
    const uint8_t *bytes; /* of the rows */
    size_t first_group, n_groups, row_bytes, head_size;
    uint8_t *packed; /* of the tensor */
    unsigned workers;
} piece;

/* The row of the file that row i of a packed matrix is: neighbours that belong together come half a
 * head apart (rope.c). */
static size_t source_row(const piece *p, size_t i, size_t head_size) {
    if (!p->t->pairs) return i;
    const size_t head = i / head_size, at = i % head_size, half = head_size / 2;
    return head * head_size + (at < half ? 2 * at : 2 * (at - half) + 1);
}

static void pack_worker(void *arg, unsigned worker) {
    const piece *p = arg;
    const tg_lm_tensor *t = p->t;
    const size_t begin = p->n_groups * worker / p->workers;
    const size_t end = p->n_groups * (worker + 1) / p->workers;
    const size_t group_bytes = tg_pack_group_bytes(t->packing, t->cols);
    for (size_t g = begin; g < end; g++) {
        const size_t group = p->first_group + g;
        const uint8_t *row[TG_PACK_ROWS] = { NULL };
        for (size_t i = 0; i < TG_PACK_ROWS && group * TG_PACK_ROWS + i < t->rows; i++)
            row[i] = p->bytes + (source_row(p, group * TG_PACK_ROWS + i, p->head_size) -
                                 p->first_group * TG_PACK_ROWS) *
                                    p->row_bytes;
        tg_pack_group(t->source->type, t->cols, row, p->packed + group * group_bytes);
    }
}

/* Groups that are read together; rows in another order are read all at once. */
static size_t groups_of_piece(const tg_lm_tensor *t, size_t row_bytes) {
    if (t->pairs) return tg_pack_groups(t->rows);
    const size_t n = PIECE_BYTES / (row_bytes * TG_PACK_ROWS);
    return n ? n : 1;
}

static tg_status load_matrix(tg_context *ctx, const tg_lm_model *m, const tg_lm_tensor *t,
                             tg_block *buffer) {
    const size_t row_bytes = (size_t)(t->source->bytes / t->rows);
    const size_t head_size = (size_t)m->lm.config.head_size;
    const size_t step = groups_of_piece(t, row_bytes), groups = tg_pack_groups(t->rows);
    for (size_t g = 0; g < groups; g += step) {
        const size_t n = groups - g < step ? groups - g : step;
        const size_t first_row = g * TG_PACK_ROWS;
        const size_t rows =
            t->rows - first_row < n * TG_PACK_ROWS ? t->rows - first_row : n * TG_PACK_ROWS;
        if (rows * row_bytes > buffer->bytes) {
            tg_block_free(buffer);
            TG_TRY(tg_block_new(&ctx->err, rows * row_bytes, buffer));
        }
        TG_TRY(tg_gguf_read_rows(&m->file, t->source, first_row, rows, buffer->data));
        piece p = { .t = t,
                    .bytes = buffer->data,
                    .first_group = g,
                    .n_groups = n,
                    .row_bytes = row_bytes,
                    .head_size = head_size,
                    .packed = (uint8_t *)m->block.data + t->offset_bytes,
                    .workers = ctx->threads };
        tg_pool_run(ctx->pool, pack_worker, &p);
    }
    return TG_OK;
}

/* What is not packed becomes floats whatever the file has. */
static tg_status load_floats(tg_context *ctx, const tg_gguf *file, const tg_gguf_tensor *source,
                             tg_block *buffer, float *out) {
    if (source->bytes > buffer->bytes) {
        tg_block_free(buffer);
        TG_TRY(tg_block_new(&ctx->err, (size_t)source->bytes, buffer));
    }
    TG_TRY(tg_gguf_read_rows(file, source, 0, source->elems / source->dim[0], buffer->data));
    tg_block_to_f32_n(source->type, out, buffer->data, (size_t)source->elems);
    return TG_OK;
}

/* ---------------------------------------------------------------------------------------- extras
 */

static float *add_extra(tg_lm_model *m, const char *name, size_t n) {
    tg_lm_extra *e = &m->extras[m->n_extras];
    e->bytes = n * sizeof(float);
    e->data = tg_arena_array(&m->arena, n, sizeof(float));
    snprintf(e->name, sizeof e->name, "%s", name);
    if (e->data) m->n_extras++;
    return e->data;
}

static tg_status make_freqs(tg_context *ctx, tg_lm_model *m, tg_block *buffer) {
    const size_t half = (size_t)m->lm.config.head_size / 2;
    const tg_gguf_tensor *t = tg_gguf_tensor_find(&m->file, "rope_freqs.weight");
    float *factors = NULL;
    if (t) {
        factors = tg_arena_array(&m->arena, half, sizeof *factors);
        if (!factors) return tg_fail_memory(&ctx->err, "frequencies", half * sizeof(float));
        if (t->elems != half)
            return tg_fail(&ctx->err, TG_E_SHAPE, "%s: tensor %s: want %zu, have %" PRIu64,
                           m->file.path, t->name, half, t->elems);
        TG_TRY(load_floats(ctx, &m->file, t, buffer, factors));
    }
    for (int base = 0; base < 2; base++) {
        char name[32];
        snprintf(name, sizeof name, TG_LM_FREQ_NAME, base);
        float *freq = add_extra(m, name, half);
        if (!freq) return tg_fail_memory(&ctx->err, "frequencies", half * sizeof(float));
        tg_lm_fill_freq(&m->lm.config, base, base == 0 ? factors : NULL, freq);
    }
    return TG_OK;
}

static const tg_lm_tensor *find(const tg_lm_model *m, const char *name) {
    for (size_t i = 0; i < m->lm.n_tensors; i++)
        if (strcmp(m->lm.tensors[i].name, name) == 0) return &m->lm.tensors[i];
    return NULL;
}

/* Biases of queries, keys and values side by side, in the order of the rows that they belong to.
 * Rows that were put into another order have no biases in any family. */
static tg_status make_biases(tg_context *ctx, tg_lm_model *m, int layer) {
    static const char *const parts[] = { "attn_q", "attn_k", "attn_v" };
    const tg_lm_tensor *t[3];
    size_t n = 0, at = 0;
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s.bias", layer, parts[i]);
        t[i] = find(m, name);
        if (!t[i]) return TG_OK;
        n += t[i]->cols;
    }
    char name[64];
    snprintf(name, sizeof name, "blk.%d.attn_q.biases", layer);
    float *all = add_extra(m, name, n);
    if (!all) return tg_fail_memory(&ctx->err, "biases", n * sizeof(float));
    for (int i = 0; i < 3; at += t[i++]->cols)
        memcpy(all + at, (const char *)m->block.data + t[i]->offset_bytes, t[i]->bytes);
    return TG_OK;
}

static tg_status load_tensors(tg_context *ctx, tg_lm_model *m) {
    tg_block buffer = { 0 };
    tg_status s = tg_block_new(&ctx->err, PIECE_BYTES, &buffer);
    for (size_t i = 0; s == TG_OK && i < m->lm.n_tensors; i++) {
        const tg_lm_tensor *t = &m->lm.tensors[i];
        float *floats = (float *)(void *)((char *)m->block.data + t->offset_bytes);
        s = t->is_floats ? load_floats(ctx, &m->file, t->source, &buffer, floats)
                         : load_matrix(ctx, m, t, &buffer);
    }
    if (s == TG_OK) s = make_freqs(ctx, m, &buffer);
    for (int layer = 0; s == TG_OK && layer < m->lm.config.layers; layer++)
        s = make_biases(ctx, m, layer);
    tg_block_free(&buffer);
    return s;
}

/* ---------------------------------------------------------------------------------------- loading
 */

static tg_status load(tg_context *ctx, const char *path, tg_lm_model *m) {
    const double start = tg_time_ms();
    const char *own = tg_arena_strdup(&m->arena, path);
    if (!own) return tg_fail_memory(&ctx->err, "path", strlen(path));
    TG_TRY(tg_gguf_open_any(&ctx->err, own, &m->file));
    TG_TRY(tg_lm_read(&m->file, &m->arena, &m->lm));
    /* A file without a tokenizer can still be run, on ids. */
    TG_TRY(tg_vocabulary_gguf(&m->file, (size_t)m->lm.config.vocab, &m->tok));
    m->extras = tg_arena_array(&m->arena, 2 + (size_t)m->lm.config.layers, sizeof *m->extras);
    if (!m->extras) return tg_fail_memory(&ctx->err, "table of vectors", sizeof *m->extras);
    TG_TRY(tg_runtime_block(ctx, m->lm.bytes, &m->block));
    TG_TRY(load_tensors(ctx, m));
    m->read_ms = tg_time_ms() - start;
    return TG_OK;
}

tg_status tg_lm_load(tg_context *ctx, const char *path, tg_lm_model **out) {
    tg_lm_model *m = tg_alloc(&ctx->err.mem, sizeof *m);
    *out = NULL;
    if (!m) return tg_fail_memory(&ctx->err, "model", sizeof *m);
    tg_arena_init(&m->arena, &ctx->err.mem);
    const tg_status s = load(ctx, path, m);
    if (s == TG_OK)
        *out = m;
    else
        tg_lm_unload(ctx, m);
    return s;
}

void tg_lm_unload(tg_context *ctx, tg_lm_model *m) {
    if (!m) return;
    const tg_mem mem = ctx->err.mem;
    tg_tok_free(m->tok);
    tg_runtime_block_free(ctx, &m->block);
    tg_gguf_close(&m->file);
    tg_arena_deinit(&m->arena);
    tg_free(&mem, m, sizeof *m);
}

const char *tg_lm_types(const tg_lm_model *m) {
    uint64_t bytes[TG_BLOCK_TYPE_COUNT] = { 0 };
    int most = 0;
    for (size_t i = 0; i < m->lm.n_tensors; i++)
        bytes[m->lm.tensors[i].source->type] += m->lm.tensors[i].source->bytes;
    for (int i = 1; i < TG_BLOCK_TYPE_COUNT; i++)
        if (bytes[i] > bytes[most]) most = i;
    return tg_block_table[most].name;
}

tg_status tg_lm_bind(const tg_lm_model *m, tg_plan *plan) {
    for (size_t i = 0; i < m->lm.n_tensors; i++) {
        const tg_lm_tensor *t = &m->lm.tensors[i];
        TG_TRY(tg_plan_bind(plan, t->name, (char *)m->block.data + t->offset_bytes, t->bytes));
    }
    for (size_t i = 0; i < m->n_extras; i++)
        TG_TRY(tg_plan_bind(plan, m->extras[i].name, m->extras[i].data, m->extras[i].bytes));
    return TG_OK;
}
