/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgpt_v2.c - .tinygpt v1 and v2, read and written as the original does.
 *
 *     "TGPT" | u32 version | u32 H | JSON [H] | i32 step | body
 *
 * The layout of the body follows from "config" and two more keys of the header, never from the
 * manifest; so its length is known, and a body of another length is refused.
 *
 *     weightDtype  includesOptimizerState   body (P elements in all, B blocks of 64)      bytes
 *     fp32         true                     w0 m0 v0 | w1 m1 v1 | ...     f32             12 P
 *     fp16         false                    w0 | w1 | ...                 f16             2 P
 *     int4         false                    scales of w0 | of w1 | ...    f16             2 B
 *                                           nibbles of w0 | of w1 | ...                   32 B
 *
 * There is no checksum: damage inside the body cannot be seen here.
 *
 * A manifest that is there must agree with the layout, since another program may go by it. It
 * states PyTorch's shapes, [out, in], though the bytes are [in, out]: the trap of manifest.h.
 */
#include "base/buf.h"
#include "dtype/dtype.h"
#include "io/run/file.h"
#include "io/run/quant.h"
#include "io/run/saving.h"

/* A v3 file begins with the same four letters, so its probe is asked before this one. */
#define MAGIC "TGPT"

bool tg_tgpt2_probe(const uint8_t *first, size_t n_bytes) {
    return n_bytes >= 4 && memcmp(first, MAGIC, 4) == 0;
}

/* The three bodies, by what "weightDtype" says. */
static const struct body {
    const char *name;
    tg_file_dtype dtype;
    bool moments;
} bodies[] = {
    { "fp32", TG_FILE_F32, true },
    { "fp16", TG_FILE_F16, false },
    { "int4", TG_FILE_INT4, false },
};
#define N_BODIES (sizeof bodies / sizeof bodies[0])

/* Blocks of all tensors: each tensor begins a new one. */
static uint64_t count_blocks(const tg_manifest *m) {
    uint64_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        n += tg_int4_blocks(m->entry[i].elems);
    }
    return n;
}

/* Behind the step, to the end of the file. Below 2^44 for any configuration that was checked. */
static uint64_t body_bytes(const struct body *body, const tg_manifest *m) {
    switch (body->dtype) {
    case TG_FILE_F32: return 12 * m->elems;
    case TG_FILE_INT4: return (TG_INT4_SCALE_BYTES + TG_INT4_NIBBLE_BYTES) * count_blocks(m);
    default: return 2 * m->elems;
    }
}

/* -------------------------------------------------------------------------------------- reading */

/*
 * The two keys must agree. "No moments" could be taken for f16, as one of the original's programs
 * does, but then an f32 file without moments would be read as twice as many halves.
 */
static tg_status choose_body(const tg_file *f, const struct body **out) {
    const tg_json *dtype = tg_json_get(f->header, "weightDtype");
    const tg_json *moments = tg_json_get(f->header, "includesOptimizerState");
    bool has_moments = true;
    if (moments) {
        TG_TRY(tg_json_bool(f->ctx, moments, &has_moments));
    }
    const struct body *body = NULL;
    for (size_t i = 0; i < N_BODIES && !body; i++) {
        if (dtype ? tg_json_is(dtype, bodies[i].name) : i == 0) {
            body = &bodies[i];
        }
    }
    if (!body) {
        return tg_fail(f->ctx, TG_E_UNSUPPORTED,
                       "%s: header: weightDtype: want \"fp32\", \"fp16\" or \"int4\", have %s%.40s",
                       f->path, tg_json_kind(dtype) == TG_JSON_STRING ? "" : "another value",
                       tg_json_kind(dtype) == TG_JSON_STRING ? dtype->u.text : "");
    }
    if (has_moments != body->moments) {
        return tg_fail(
            f->ctx, TG_E_UNSUPPORTED,
            "%s: header: includesOptimizerState: want %s for weights of type %s, have %s", f->path,
            body->moments ? "true" : "false", body->name, has_moments ? "true" : "false");
    }
    *out = body;
    return TG_OK;
}

/* A key of the header that may be absent, and must be this number if it is not. What it says
 * follows from the layout, so it is redundant; a contradiction is a file that we would misread. */
static tg_status want_number(const tg_file *f, const char *key, uint64_t want) {
    const tg_json *json = tg_json_get(f->header, key);
    uint64_t have;
    if (!json) {
        return TG_OK;
    }
    TG_TRY(tg_json_uint64(f->ctx, json, &have));
    if (have != want) {
        return tg_fail(f->ctx, TG_E_FORMAT, "%s: header: %s: want %" PRIu64 ", have %" PRIu64,
                       f->path, key, want, have);
    }
    return TG_OK;
}

/* Does a member of the header's manifest say what the layout says? The shape is compared with
 * PyTorch's: the bytes' own, reversed for a linear weight. */
static bool entry_agrees(const tg_json *json, const tg_manifest_entry *want) {
    const tg_json *name = tg_json_get(json, "name"), *shape = tg_json_get(json, "shape");
    const tg_json *first = tg_json_get(json, "floatOffset");
    uint64_t number;
    if (!name || !tg_json_is(name, want->name)) {
        return false;
    }
    if (first && (tg_json_uint64(NULL, first, &number) != TG_OK || number != want->first_elem)) {
        return false;
    }
    if (!shape || tg_json_kind(shape) != TG_JSON_ARRAY || shape->count != (uint32_t)want->n_dims) {
        return false;
    }
    const tg_json *dim = tg_json_first(shape);
    for (int i = 0; i < want->n_dims; i++, dim = tg_json_next(dim)) {
        const int from = want->linear ? want->n_dims - 1 - i : i;
        if (tg_json_uint64(NULL, dim, &number) != TG_OK || number != want->dim[from]) {
            return false;
        }
    }
    return true;
}

/* All members are looked at, and the first few that differ are named: one strange tensor is damage
 * or a bug, many of them are another architecture. */
static tg_status check_manifest(const tg_file *f) {
    const tg_json *list = tg_json_get(f->header, "manifest");
    if (!list || tg_json_kind(list) == TG_JSON_NULL) {
        return TG_OK; /* v1 has none */
    }
    if (tg_json_kind(list) != TG_JSON_ARRAY) {
        return tg_fail(f->ctx, TG_E_FORMAT, "%s: header: manifest: want a list, have another value",
                       f->path);
    }
    size_t i = 0, n_wrong = 0;
    char wrong[400] = "";
    size_t length = 0;
    for (const tg_json *v = tg_json_first(list); v; v = tg_json_next(v), i++) {
        const tg_manifest_entry *want = i < f->manifest.n ? &f->manifest.entry[i] : NULL;
        if (want && entry_agrees(v, want)) {
            continue;
        }
        n_wrong++;
        const tg_json *name = tg_json_get(v, "name");
        if (length < sizeof wrong - 160) { /* room for a whole line */
            length += (size_t)snprintf(
                wrong + length, sizeof wrong - length, "; number %zu: want %s, have %.60s", i,
                want ? want->name : "no more",
                name && tg_json_kind(name) == TG_JSON_STRING ? name->u.text : "no name");
        }
    }
    if (n_wrong || i != f->manifest.n) {
        return tg_fail(f->ctx, TG_E_FORMAT,
                       "%s: header: manifest: want the %zu tensors that config gives, with their "
                       "shapes and offsets, have %zu, of which %zu differ%s",
                       f->path, f->manifest.n, i, n_wrong, wrong);
    }
    return TG_OK;
}

/*
 * The tensors of one manifest entry: weight, and the moments if the body has them. The table is all
 * weights, then all first moments, then all second ones, though the file has them tensor by tensor:
 *
 *     file    w0 m0 v0 w1 m1 v1 ...        element e of part p of a tensor lies at
 *     table   w0 w1 ... m0 m1 ... v0 v1    12 * first_elem + 4 * (p * elems + e)
 */
static bool add_tensor(tg_file *f, const struct body *body, size_t i, uint64_t body_offset,
                       uint64_t n_blocks, uint64_t *blocks_before, tg_file_tensor *table) {
    const tg_manifest_entry *e = &f->manifest.entry[i];
    for (size_t part = 0; part < (body->moments ? 3 : 1); part++) {
        tg_file_tensor *t = &table[part * f->manifest.n + i];
        *t = (tg_file_tensor) {
            .name =
                part ? tg_arena_sprintf(&f->arena, "%s%s", tg_part_prefix[part], e->name) : e->name,
            .dtype = body->dtype,
            .n_dims = (uint32_t)e->n_dims,
            .dim = { e->dim[0], e->dim[1], 1, 1 },
            .elems = e->elems,
        };
        switch (body->dtype) {
        case TG_FILE_F32:
            t->offset = body_offset + 12 * e->first_elem + 4 * part * e->elems;
            t->bytes = 4 * e->elems;
            break;
        case TG_FILE_INT4:
            t->scale_offset = body_offset + TG_INT4_SCALE_BYTES * *blocks_before;
            t->offset = body_offset + TG_INT4_SCALE_BYTES * n_blocks +
                        TG_INT4_NIBBLE_BYTES * *blocks_before;
            t->bytes = TG_INT4_NIBBLE_BYTES * tg_int4_blocks(e->elems);
            break;
        default:
            t->offset = body_offset + 2 * e->first_elem;
            t->bytes = 2 * e->elems;
            break;
        }
        if (!t->name) {
            return false;
        }
    }
    *blocks_before += tg_int4_blocks(e->elems);
    return true;
}

/* The offsets sum up to the length that was compared with the file, so all of them lie inside. */
static tg_status set_tensors(tg_file *f, const struct body *body, uint64_t body_offset) {
    const size_t n = f->manifest.n * (body->moments ? 3 : 1);
    tg_file_tensor *table = tg_arena_array(&f->arena, n, sizeof *table);
    uint64_t blocks_before = 0;
    const uint64_t n_blocks = count_blocks(&f->manifest);
    for (size_t i = 0; table && i < f->manifest.n; i++) {
        if (!add_tensor(f, body, i, body_offset, n_blocks, &blocks_before, table)) {
            table = NULL;
        }
    }
    return table ? tg_file_set_tensors(f, table, n)
                 : tg_fail_memory(f->ctx, "table of tensors", n * sizeof *table);
}

/* A version with large numbers in it is no version, but damage or another format. */
static tg_status read_head(tg_file *f) {
    tg_reader *r = &f->reader;
    uint32_t n_bytes;
    r->offset = strlen(MAGIC);
    TG_TRY(tg_read_u32(r, "version", &f->version));
    if (f->version < 1 || f->version > 2) {
        const bool is_newer = f->version > 2 && f->version < 1000;
        return tg_reader_fail(r, is_newer ? TG_E_UNSUPPORTED : TG_E_FORMAT, 4, "version",
                              "want 1 or 2, have %" PRIu32 "%s", f->version,
                              is_newer ? ": needs a tinygpt later than " TG_VERSION_TEXT : "");
    }
    f->format = f->version == 1 ? "tinygpt v1" : "tinygpt v2";
    TG_TRY(tg_read_u32(r, "header length", &n_bytes));
    const char *text;
    TG_TRY(tg_read_text(r, &f->arena, "header", n_bytes, &text));
    return tg_file_set_header(f, text, n_bytes);
}

/* Length and manifest come before the tables: what is allocated is paid for by the file. */
tg_status tg_tgpt2_open(tg_file *file) {
    tg_reader *r = &file->reader;
    const struct body *body = NULL;
    tg_model_config config;
    int32_t step;
    TG_TRY(read_head(file));
    TG_TRY(tg_meta_get_config(file->ctx, file->path, file->header, &config));
    TG_TRY(tg_file_set_config(file, &config));
    TG_TRY(choose_body(file, &body));
    TG_TRY(check_manifest(file));
    if (body->dtype == TG_FILE_INT4) {
        const uint64_t n_blocks = count_blocks(&file->manifest);
        TG_TRY(want_number(file, "int4BlockSize", TG_INT4_BLOCK));
        TG_TRY(want_number(file, "int4ScalesBytes", TG_INT4_SCALE_BYTES * n_blocks));
        TG_TRY(want_number(file, "int4PackedBytes", TG_INT4_NIBBLE_BYTES * n_blocks));
    }
    TG_TRY(tg_read_i32(r, "step", &step));
    if (step < 0) {
        return tg_reader_fail(r, TG_E_FORMAT, r->offset - 4, "step",
                              "want 0 or more, have %" PRId32, step);
    }
    file->step = step;
    if (tg_reader_left(r) != body_bytes(body, &file->manifest)) {
        return tg_reader_fail(
            r, TG_E_FORMAT, r->offset, "body",
            "want %" PRIu64 " bytes for %" PRIu64 " parameters as %s, have %" PRIu64,
            body_bytes(body, &file->manifest), file->manifest.elems, body->name, tg_reader_left(r));
    }
    return set_tensors(file, body, r->offset);
}

/* -------------------------------------------------------------------------------------- writing */

#define HISTORY_MAX 512u  /* points, as the original keeps */
#define F16_LIMIT   65520 /* the least number that rounds to infinity as f16 */

/* Numbers are written as they lie in memory where that is little-endian 32 or 16 bits: all machines
 * that this is built for are. */
typedef struct v2_saving {
    tg_saving base;
    tg_arena arena; /* path, manifest */
    const char *path;
    tg_manifest manifest;
    const struct body *body;
    tg_save *save; /* NULL once it is committed */
    bool keep_prev;
} v2_saving;

/* For the original's other programs: the layout does not depend on it, but they look for it. */
static void put_manifest(tg_json_writer *w, const tg_manifest *m) {
    tg_json_key(w, "manifest");
    tg_json_begin_array(w);
    for (size_t i = 0; i < m->n; i++) {
        const tg_manifest_entry *e = &m->entry[i];
        tg_json_begin_object(w);
        tg_json_key(w, "name");
        tg_json_put_string(w, e->name);
        tg_json_key(w, "shape");
        tg_json_begin_array(w);
        for (int d = 0; d < e->n_dims; d++) { /* PyTorch's shape: the trap */
            tg_json_put_uint(w, e->dim[e->linear ? e->n_dims - 1 - d : d]);
        }
        tg_json_end_array(w);
        tg_json_key(w, "floatOffset");
        tg_json_put_uint(w, e->first_elem);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_uint(tg_json_writer *w, const char *key, uint64_t value) {
    tg_json_key(w, key);
    tg_json_put_uint(w, value);
}

/*
 * The least that the original's programs need, and what is known of the run's course. The order of
 * the keys is part of what tests compare, since the same model has to give the same file. v1 knows
 * neither manifest nor history.
 */
static void put_header(tg_buf *out, unsigned version, const struct body *body,
                       const tg_model_config *config, const tg_meta *meta, const tg_manifest *m) {
    tg_json_writer w;
    tg_json_writer_init(&w, out);
    tg_json_begin_object(&w);
    put_uint(&w, "version", version);
    tg_json_key(&w, "config");
    tg_json_begin_object(&w);
    /* No vocabulary: the original has one alone, bytes, and does not look for the key. */
    put_uint(&w, "layers", (uint64_t)config->layers);
    put_uint(&w, "dModel", (uint64_t)config->width);
    put_uint(&w, "ctx", (uint64_t)config->ctx);
    put_uint(&w, "heads", (uint64_t)config->heads);
    put_uint(&w, "dMlp", (uint64_t)config->mlp);
    tg_meta_put_v2_options(&w, meta);
    /* One of the names that the original knows for what has computed a run. */
    tg_json_key(&w, "backend");
    tg_json_put_string(&w, "wasm");
    tg_json_end_object(&w);
    if (version >= 2) {
        put_manifest(&w, m);
    }
    tg_json_key(&w, "weightDtype");
    tg_json_put_string(&w, body->name);
    tg_json_key(&w, "includesOptimizerState");
    tg_json_put_bool(&w, body->moments);
    if (body->dtype == TG_FILE_INT4) {
        put_uint(&w, "int4BlockSize", TG_INT4_BLOCK);
        put_uint(&w, "int4ScalesBytes", TG_INT4_SCALE_BYTES * count_blocks(m));
        put_uint(&w, "int4PackedBytes", TG_INT4_NIBBLE_BYTES * count_blocks(m));
    }
    put_uint(&w, "stateByteLength", 4 + body_bytes(body, m)); /* the step is part of the state */
    if (version >= 2) {
        tg_meta_put_history(&w, meta, HISTORY_MAX);
    }
    tg_json_end_object(&w);
}

/* The header is built in memory first, because its length stands before it. */
static tg_status write_head(v2_saving *w, unsigned version, const tg_model_config *config,
                            int64_t step, const tg_meta *meta) {
    tg_ctx *ctx = w->base.ctx;
    tg_buf json;
    tg_buf_init(&json, &ctx->mem);
    put_header(&json, version, w->body, config, meta, &w->manifest);
    tg_status status = tg_buf_status(ctx, &json, w->path);
    if (status == TG_OK && json.length > UINT32_MAX) {
        status = tg_fail(ctx, TG_E_RANGE, "%s: header: want less than 4 GiB, have %zu bytes",
                         w->path, json.length);
    }
    if (status == TG_OK) {
        uint8_t prefix[12] = MAGIC, number[4];
        tg_put_u32(prefix + 4, version);
        tg_put_u32(prefix + 8, (uint32_t)json.length);
        tg_put_u32(number, (uint32_t)step);
        tg_save_write(w->save, prefix, sizeof prefix); /* the first error sticks */
        tg_save_write(w->save, json.data, json.length);
        status = tg_save_write(w->save, number, sizeof number);
    }
    tg_buf_deinit(&json);
    return status;
}

/* Weights that would come back as infinity are refused, as are those that are no numbers. limit is
 * the least magnitude that is too large; no comparison is true for a NaN. */
static tg_status want_below(const v2_saving *w, size_t tensor, uint64_t first, size_t n,
                            float limit) {
    const float *piece = w->base.piece;
    for (size_t i = 0; i < n; i++) {
        if (!(piece[i] < limit && piece[i] > -limit)) {
            return tg_fail(w->base.ctx, TG_E_RANGE,
                           "%s: tensor %s: element %" PRIu64
                           ": want a number of a magnitude below %g in this format, have %g",
                           w->path, w->manifest.entry[tensor].name, first + i, (double)limit,
                           (double)piece[i]);
        }
    }
    return TG_OK;
}

/* The halves pass through 2 KiB of stack. */
static tg_status put_f16(v2_saving *w, size_t tensor, uint64_t first, size_t n) {
    TG_TRY(want_below(w, tensor, first, n, F16_LIMIT));
    uint16_t bits[1024];
    for (size_t done = 0; done < n; done += 1024) {
        const size_t part = n - done < 1024 ? n - done : 1024;
        tg_f16_from_f32_n(bits, w->base.piece + done, part);
        TG_TRY(tg_save_write(w->save, bits, part * sizeof *bits));
    }
    return TG_OK;
}

/* Each block is encoded twice, once for its scale and once for its nibbles. Keeping either would
 * take memory in the size of the model. A piece is a whole number of blocks. */
static tg_status put_int4(v2_saving *w, size_t tensor, uint64_t first, size_t n, bool scales) {
    TG_TRY(want_below(w, tensor, first, n, 7 * F16_LIMIT));
    for (size_t done = 0; done < n; done += TG_INT4_BLOCK) {
        uint8_t nibbles[TG_INT4_NIBBLE_BYTES], bytes[TG_INT4_SCALE_BYTES];
        uint16_t scale;
        tg_int4_encode(w->base.piece + done, n - done < TG_INT4_BLOCK ? n - done : TG_INT4_BLOCK,
                       &scale, nibbles);
        tg_put_u16(bytes, scale);
        TG_TRY(scales ? tg_save_write(w->save, bytes, sizeof bytes)
                      : tg_save_write(w->save, nibbles, sizeof nibbles));
    }
    return TG_OK;
}

/* ------------------------------------------------------------------------------------ a whole file
 */

/* The layouts of the table on top, once more, from the other side. Nothing here writes an offset:
 * that the order is right is what makes them right. In f32 the layout has no way to leave moments
 * out: one of the original's programs would take the body for f16. In int4 all scales come before
 * all nibbles, so the weights are asked for twice. */
static tg_status v2_write(tg_saving *s) {
    v2_saving *w = (v2_saving *)s;
    const tg_file_dtype dtype = w->body->dtype;
    const size_t n_tensors = s->manifest->n, turn = s->turn;
    const size_t per_tensor = dtype == TG_FILE_F32 ? 3 : dtype == TG_FILE_INT4 ? 2 : 1;
    if (turn == per_tensor * n_tensors) {
        return TG_OK;
    }
    const size_t tensor = dtype == TG_FILE_F32 ? turn / 3 : turn % n_tensors;
    const tg_part part = dtype == TG_FILE_F32 ? (tg_part)(turn % 3) : TG_PART_WEIGHT;
    uint64_t first;
    size_t n;
    TG_TRY(tg_saving_read(s, tensor, part, &first, &n));
    switch (dtype) {
    case TG_FILE_F32: TG_TRY(tg_save_write(w->save, s->piece, n * sizeof *s->piece)); break;
    case TG_FILE_INT4: TG_TRY(put_int4(w, tensor, first, n, turn < n_tensors)); break;
    default: TG_TRY(put_f16(w, tensor, first, n));
    }
    return TG_PENDING;
}

static tg_status v2_commit(tg_saving *s) {
    v2_saving *w = (v2_saving *)s;
    tg_save *save = w->save;
    w->save = NULL;
    return tg_save_commit(save, w->keep_prev);
}

static void v2_drop(tg_saving *s) {
    v2_saving *w = (v2_saving *)s;
    tg_save_abort(w->save);
    tg_arena_deinit(&w->arena);
}

/* Version and body of a kind; false for a kind that is not one of these. v1 is f32 alone. */
static bool kind_of(tg_file_kind kind, unsigned *version, const struct body **body) {
    *version = kind == TG_FILE_V1_F32 ? 1 : 2;
    switch (kind) {
    case TG_FILE_V1_F32:
    case TG_FILE_V2_F32: *body = &bodies[0]; return true;
    case TG_FILE_V2_F16: *body = &bodies[1]; return true;
    case TG_FILE_V2_INT4: *body = &bodies[2]; return true;
    default: return false;
    }
}

/* The head is written here, so meta is not needed afterwards. */
static tg_status begin(v2_saving *w, const char *path, unsigned version,
                       const tg_model_config *config, int64_t step, const tg_meta *meta) {
    tg_ctx *ctx = w->base.ctx;
    w->path = tg_arena_strdup(&w->arena, path);
    if (!w->path) {
        return tg_fail_memory(ctx, path, strlen(path) + 1);
    }
    TG_TRY(tg_manifest_new(ctx, &w->arena, config, &w->manifest));
    w->base.manifest = &w->manifest;
    TG_TRY(tg_save_begin(ctx, path, &w->save));
    return write_head(w, version, config, step, meta);
}

/* All that can be known to be wrong is refused before the temporary file exists. */
tg_status tg_tgpt2_saving(tg_ctx *ctx, const char *path, tg_file_kind kind,
                          const tg_model_config *config, int64_t step, const tg_meta *meta,
                          const tg_weights *weights, bool keep_prev, tg_saving **out) {
    static const tg_saving_format format = { v2_write, v2_commit, v2_drop };
    unsigned version;
    const struct body *body;
    *out = NULL;
    if (!kind_of(kind, &version, &body)) {
        return tg_fail(ctx, TG_E_ARG, "%s: want a kind of v1 or v2, have number %d", path,
                       (int)kind);
    }
    if (step < 0 || step > INT32_MAX) {
        return tg_fail(ctx, TG_E_RANGE,
                       "%s: step: want 0..2147483647 in this format, have %" PRId64, path, step);
    }
    TG_TRY(tg_gpt_config_check(ctx, path, config));
    v2_saving *w = tg_saving_new(ctx, path, &format, sizeof *w, TG_SAVING_PIECE_ELEMS, weights);
    if (!w) {
        return TG_E_MEMORY;
    }
    tg_arena_init(&w->arena, &ctx->mem);
    w->body = body;
    w->keep_prev = keep_prev;
    const tg_status status = begin(w, path, version, config, step, meta);
    if (status != TG_OK) {
        tg_saving_free(&w->base);
        return status;
    }
    *out = &w->base;
    return TG_OK;
}

tg_status tg_tgpt2_save(tg_ctx *ctx, const char *path, tg_file_kind kind,
                        const tg_model_config *config, int64_t step, const tg_meta *meta,
                        const tg_weights *weights, bool keep_prev) {
    tg_saving *s;
    TG_TRY(tg_tgpt2_saving(ctx, path, kind, config, step, meta, weights, keep_prev, &s));
    return tg_saving_finish(s);
}
