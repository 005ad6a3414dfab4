/*
 * safetensors.c - reads .safetensors files that hold a GPT-2 (safetensors.h draws the layout).
 *
 * A header that somebody has made up is refused here, before anything is read by it:
 *
 *   1  its length is at most that of the file and of the format
 *   2  it is JSON without double keys and of little depth (base/json.h)
 *   3  each tensor: a known dtype, a shape whose product fits, offsets that are as far apart as the
 *      shape says, and inside the data
 *   4  all tensors together tile the data: sorted by place, each begins where the last one ended
 *   5  the configuration, from our part of __metadata__ or from config.json beside the file
 *   6  names and shapes are those that it asks for
 *
 * What leaves here is in terms of the manifest: a tensor that lies in the columns of another one
 * (q, k and v in c_attn) is a tensor with a row step. Nothing above this file knows.
 */
#include "io/safetensors.h"

#include "base/sort.h"
#include "base/str.h"

/* An object of objects with an array inside. */
static const tg_json_limits limits = { .depth = 4, .values = 1u << 20 };
#define CONFIG_MAX_BYTES ((size_t)1 << 20)

/* Of a file of other tensors; those of ours are the first three. file_dtype 0: can be stepped over,
 * but not be read. */
static const struct {
    const char *name;
    uint32_t bytes;
    tg_file_dtype file_dtype;
} dtypes[] = {
    { "F32", 4, TG_FILE_F32 },
    { "F16", 2, TG_FILE_F16 },
    { "BF16", 2, TG_FILE_BF16 },
    { "F64", 8, 0 },
    { "I64", 8, 0 },
    { "U64", 8, 0 },
    { "I32", 4, 0 },
    { "U32", 4, 0 },
    { "I16", 2, 0 },
    { "U16", 2, 0 },
    { "I8", 1, 0 },
    { "U8", 1, 0 },
    { "BOOL", 1, 0 },
    { "F8_E4M3", 1, 0 },
    { "F8_E5M2", 1, 0 },
};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* A tensor as the header has it. */
typedef struct stored {
    const char *name;
    size_t dtype; /* row of the table */
    uint32_t n_dims;
    uint64_t dim[TG_FILE_MAX_DIMS]; /* of tensors with more dimensions, the first ones */
    uint64_t begin, end;            /* in the data */
} stored;

/* What is known of a file while it is opened. */
typedef struct opening {
    tg_file *file;
    const tg_json *root;
    uint64_t data_offset, data_bytes;
    stored *list; /* [n] */
    size_t n;
} opening;

/* Text has no zero bytes, and no header is 2^40 bytes long: the length's upper three are enough to
 * know a text that happens to have a brace there. A length that is only too large gets as far as a
 * message of its own. */
bool tg_safetensors_probe(const uint8_t *first, size_t n_bytes) {
    return n_bytes > 8 && first[8] == '{' && !first[5] && !first[6] && !first[7];
}

/* ---------------------------------------------------------------------------------- one tensor */

static tg_status fail_tensor(const opening *o, tg_status code, const char *name, const char *field,
                             const char *want, const tg_json *have) {
    const bool text =
        have && (tg_json_kind(have) == TG_JSON_STRING || tg_json_kind(have) == TG_JSON_NUMBER);
    return tg_fail(o->file->ctx, code, "%s: header: %.60s: %s: want %s, have %.40s", o->file->path,
                   name, field, want,
                   text   ? have->u.text
                   : have ? "another value"
                          : "none");
}

static tg_status read_dtype(const opening *o, const tg_json *v, stored *s) {
    const tg_json *dtype = tg_json_get(v, "dtype");
    while (dtype && s->dtype < N_DTYPES && !tg_json_is(dtype, dtypes[s->dtype].name)) {
        s->dtype++;
    }
    if (!dtype || s->dtype == N_DTYPES) {
        return fail_tensor(o, TG_E_UNSUPPORTED, s->name, "dtype",
                           "F32, F16, BF16 or another known one", dtype);
    }
    return TG_OK;
}

/* A dimension of 0 makes a tensor of no bytes, which the format allows. A product that does not fit
 * is refused even if a later dimension is 0. */
static tg_status read_shape(const opening *o, const tg_json *v, stored *s, uint64_t *elems) {
    const tg_json *shape = tg_json_get(v, "shape");
    if (!shape || tg_json_kind(shape) != TG_JSON_ARRAY) {
        return fail_tensor(o, TG_E_FORMAT, s->name, "shape", "a list", shape);
    }
    for (const tg_json *d = tg_json_first(shape); d; d = tg_json_next(d)) {
        uint64_t n;
        if (tg_json_uint64(NULL, d, &n) != TG_OK || !tg_mul_u64(*elems, n, elems)) {
            return fail_tensor(o, TG_E_FORMAT, s->name, "shape",
                               "whole numbers whose product fits 64 bits", d);
        }
        if (s->n_dims < TG_FILE_MAX_DIMS) {
            s->dim[s->n_dims] = n;
        }
        s->n_dims++;
    }
    return TG_OK;
}

static tg_status read_offsets(const opening *o, const tg_json *v, stored *s, uint64_t elems) {
    const tg_json *offsets = tg_json_get(v, "data_offsets");
    uint64_t want_bytes;
    if (!offsets || tg_json_kind(offsets) != TG_JSON_ARRAY || offsets->count != 2) {
        return fail_tensor(o, TG_E_FORMAT, s->name, "data_offsets", "a list of two", offsets);
    }
    const tg_json *begin = tg_json_first(offsets), *end = tg_json_next(begin);
    if (tg_json_uint64(NULL, begin, &s->begin) != TG_OK ||
        tg_json_uint64(NULL, end, &s->end) != TG_OK || s->begin > s->end) {
        return fail_tensor(o, TG_E_FORMAT, s->name, "data_offsets",
                           "two whole numbers, the first not above the second", end);
    }
    if (s->end > o->data_bytes) {
        return tg_fail(o->file->ctx, TG_E_FORMAT,
                       "%s: header: %.60s: data_offsets: want an end within the %" PRIu64
                       " bytes of data, have %" PRIu64,
                       o->file->path, s->name, o->data_bytes, s->end);
    }
    if (!tg_mul_u64(elems, dtypes[s->dtype].bytes, &want_bytes) ||
        s->end - s->begin != want_bytes) {
        return tg_fail(
            o->file->ctx, TG_E_FORMAT,
            "%s: header: %.60s: data_offsets: want %" PRIu64 " bytes of %s, have %" PRIu64,
            o->file->path, s->name, want_bytes, dtypes[s->dtype].name, s->end - s->begin);
    }
    return TG_OK;
}

static tg_status read_tensor(const opening *o, const tg_json *v, stored *s) {
    uint64_t elems = 1;
    *s = (stored) { .name = v->key, .dim = { 1, 1, 1, 1 } };
    if (strlen(v->key) != v->key_length) {
        return fail_tensor(o, TG_E_FORMAT, s->name, "name", "one without a zero byte", NULL);
    }
    if (tg_json_kind(v) != TG_JSON_OBJECT) {
        return fail_tensor(o, TG_E_FORMAT, s->name, "entry", "an object", v);
    }
    TG_TRY(read_dtype(o, v, s));
    TG_TRY(read_shape(o, v, s, &elems));
    return read_offsets(o, v, s, elems);
}

/* ----------------------------------------------------------------------------------- the header */

/* Among tensors that begin at one place, those of no bytes come first. */
static bool place_before(const void *user, uint32_t a, uint32_t b) {
    const stored *list = user;
    return list[a].begin != list[b].begin ? list[a].begin < list[b].begin
                                          : list[a].end < list[b].end;
}

/* No overlap and no hole: bytes that no tensor owns could be anything, and bytes that two own are a
 * trick. */
static tg_status check_tiles(const opening *o) {
    uint32_t *order = tg_arena_array(&o->file->arena, o->n + 1, sizeof *order);
    if (!order) {
        return tg_fail_memory(o->file->ctx, o->file->path, o->n * sizeof *order);
    }
    tg_sort_numbers(order, o->n, place_before, o->list);
    uint64_t end = 0;
    for (size_t i = 0; i < o->n; i++) {
        const stored *s = &o->list[order[i]];
        if (s->begin != end) {
            return tg_fail(o->file->ctx, TG_E_FORMAT,
                           "%s: header: %.60s: data_offsets: want a begin at %" PRIu64
                           ", where the tensor before ends, have %" PRIu64,
                           o->file->path, s->name, end, s->begin);
        }
        end = s->end;
    }
    if (end != o->data_bytes) {
        return tg_fail(o->file->ctx, TG_E_FORMAT,
                       "%s: byte %" PRIu64 ": data: want %" PRIu64
                       " bytes, the tensors of the header, have %" PRIu64,
                       o->file->path, o->data_offset, end, o->data_bytes);
    }
    return TG_OK;
}

static tg_status read_header(opening *o) {
    tg_file *f = o->file;
    tg_reader *r = &f->reader;
    uint64_t n_bytes;
    const char *text;
    TG_TRY(tg_read_u64(r, "header length", &n_bytes));
    if (n_bytes > TG_SAFETENSORS_HEADER_MAX) {
        return tg_reader_fail(r, TG_E_FORMAT, 0, "header length", "want at most %u, have %" PRIu64,
                              TG_SAFETENSORS_HEADER_MAX, n_bytes);
    }
    TG_TRY(tg_read_text(r, &f->arena, "header", n_bytes, &text));
    o->data_offset = r->offset;
    o->data_bytes = tg_reader_left(r);
    const char *name = tg_arena_sprintf(&f->arena, "%s: header", f->path);
    if (!name) {
        return tg_fail_memory(f->ctx, f->path, strlen(f->path) + 16);
    }
    return tg_json_parse(f->ctx, &f->arena, name, text, (size_t)n_bytes, &limits, &o->root);
}

/* The list of tensors; the one member that is none is left out. */
static tg_status read_list(opening *o) {
    o->list = tg_arena_array(&o->file->arena, (size_t)o->root->count + 1, sizeof *o->list);
    if (!o->list) {
        return tg_fail_memory(o->file->ctx, o->file->path, o->root->count * sizeof *o->list);
    }
    for (const tg_json *v = tg_json_first(o->root); v; v = tg_json_next(v)) {
        if (strcmp(v->key, "__metadata__") != 0) {
            TG_TRY(read_tensor(o, v, &o->list[o->n]));
            o->n++;
        }
    }
    return check_tiles(o);
}

/* ------------------------------------------------------------------------------ configuration */

/* The JSON of a v3 file, as a text within the JSON of this one; NULL if there is none. */
static tg_status find_own(const opening *o, const tg_json **own) {
    const tg_json *metadata = tg_json_get(o->root, "__metadata__");
    *own = NULL;
    if (!metadata) {
        return TG_OK;
    }
    if (tg_json_kind(metadata) != TG_JSON_OBJECT) {
        return fail_tensor(o, TG_E_FORMAT, "__metadata__", "entry", "an object", metadata);
    }
    for (const tg_json *v = tg_json_first(metadata); v; v = tg_json_next(v)) {
        if (tg_json_kind(v) != TG_JSON_STRING) {
            return fail_tensor(o, TG_E_FORMAT, "__metadata__", v->key, "a string", v);
        }
    }
    *own = tg_json_get(metadata, "tinygpt");
    return TG_OK;
}

/* The path of config.json in the folder of the file; NULL if there is no such file, or no folder,
 * as for bytes in memory. */
static tg_status find_config(const opening *o, const char **path) {
    tg_file *f = o->file;
    *path = NULL;
    if (f->reader.memory) {
        return TG_OK;
    }
    const char *slash = strrchr(f->path, '/');
    const int n = slash ? (int)(slash - f->path) + 1 : 0;
    const char *beside = tg_arena_sprintf(&f->arena, "%.*sconfig.json", n, f->path);
    if (!beside) {
        return tg_fail_memory(f->ctx, f->path, (size_t)n + 12);
    }
    if (tg_os_kind_of(beside) == TG_OS_FILE) {
        *path = beside;
    }
    return TG_OK;
}

static tg_status read_config(const opening *o, tg_gpt_config *config) {
    tg_file *f = o->file;
    const char *path;
    TG_TRY(find_config(o, &path));
    if (!path) {
        return tg_fail(f->ctx, TG_E_FORMAT,
                       "%s: configuration: want \"tinygpt\" in __metadata__, or config.json in the "
                       "same folder, have neither",
                       f->path);
    }
    tg_buf text;
    const tg_json *root;
    tg_buf_init(&text, &f->ctx->mem);
    tg_status status = tg_os_read_all(f->ctx, path, CONFIG_MAX_BYTES, &text);
    if (status == TG_OK) {
        status =
            tg_json_parse(f->ctx, &f->arena, path, tg_buf_text(&text), text.length, NULL, &root);
    }
    tg_buf_deinit(&text);
    TG_TRY(status);
    return tg_gpt2_get_config(f->ctx, path, root, config);
}

static tg_status set_config(const opening *o) {
    tg_file *f = o->file;
    const tg_json *own;
    tg_gpt_config config;
    TG_TRY(find_own(o, &own));
    if (own) {
        f->version = 3;
        TG_TRY(tg_file_set_header(f, own->u.text, own->length));
        TG_TRY(tg_meta_get_v3(f->ctx, f->path, f->header, &config, &f->step));
    } else {
        TG_TRY(tg_file_set_header(f, "{}", 2));
        TG_TRY(read_config(o, &config));
    }
    return tg_file_set_config(f, &config);
}

/* -------------------------------------------------------------------------------------- tensors */

/* Is it what the configuration asks for? */
static void compare(const tg_gpt2_tensor *want, const stored *have, tg_complaints *c) {
    char wanted[TG_SHAPE_BYTES], found[TG_SHAPE_BYTES];
    bool same = have->n_dims == want->n_dims;
    for (uint32_t i = 0; same && i < want->n_dims; i++) {
        same = have->dim[i] == want->dim[i];
    }
    if (!same) {
        const uint32_t n = have->n_dims < TG_FILE_MAX_DIMS ? have->n_dims : TG_FILE_MAX_DIMS;
        tg_complain(c, "%.60s: want %s, have %s", have->name,
                    tg_file_shape_text(want->n_dims, want->dim, wanted),
                    tg_file_shape_text(n, have->dim, found));
    }
    if (dtypes[have->dtype].file_dtype == 0) {
        tg_complain(c, "%.60s: want F32, F16 or BF16, have %s", have->name,
                    dtypes[have->dtype].name);
    }
}

/* Which stored tensor is which wanted one, [tg_gpt2_tensors]; all of them are there if no complaint
 * comes of it. *head: an untied lm_head, or NULL. */
static tg_status match(const opening *o, const stored **wanted, const stored **head,
                       tg_complaints *c) {
    const tg_file *f = o->file;
    *head = NULL;
    for (size_t i = 0; i < o->n; i++) {
        const stored *s = &o->list[i];
        bool layer_buffer;
        const size_t number = tg_gpt2_find(s->name, f->config.layers, &layer_buffer);
        if (number == SIZE_MAX) {
            if (strcmp(s->name, "lm_head.weight") == 0) {
                *head = s;
            } else if (!layer_buffer) {
                tg_complain(c, "%.60s is not wanted", s->name);
            }
            continue;
        }
        if (wanted[number]) {
            tg_complain(c, "%.60s and %.60s are the same tensor", wanted[number]->name, s->name);
            continue;
        }
        wanted[number] = s;
        const tg_gpt2_tensor want = tg_gpt2_tensor_at(&f->manifest, number);
        compare(&want, s, c);
    }
    for (size_t i = 0; i < tg_gpt2_tensors(&f->config); i++) {
        if (!wanted[i]) {
            tg_complain(c, "%s is missing", tg_gpt2_tensor_at(&f->manifest, i).name);
        }
    }
    if (*head) {
        const tg_gpt2_tensor table = tg_gpt2_tensor_at(&f->manifest, 0);
        compare(&table, *head, c);
    }
    return tg_complaints_status(f, c);
}

/* The tensors of the manifest that a stored one holds: columns [p*cols, (p+1)*cols) of each row. */
static void add_parts(const opening *o, const stored *s, size_t number, tg_file_tensor *table) {
    const tg_manifest *m = &o->file->manifest;
    const tg_gpt2_tensor g = tg_gpt2_tensor_at(m, number);
    const uint64_t elem_bytes = dtypes[s->dtype].bytes;
    for (size_t p = 0; p < g.n_parts; p++) {
        const tg_manifest_entry *e = &m->entry[g.first + 2 * p];
        const uint64_t cols = e->dim[e->n_dims - 1];
        table[g.first + 2 * p] = (tg_file_tensor) {
            .name = e->name,
            .dtype = dtypes[s->dtype].file_dtype,
            .n_dims = (uint32_t)e->n_dims,
            .dim = { e->dim[0], e->dim[1], 1, 1 },
            .elems = e->elems,
            .offset = o->data_offset + s->begin + p * cols * elem_bytes,
            .bytes = e->elems * elem_bytes,
            .row_elems = g.n_parts > 1 ? cols : 0,
            .row_step_bytes = g.n_parts > 1 ? g.n_parts * cols * elem_bytes : 0,
            .stored_as = s->name,
        };
    }
}

/* Files of some programs repeat the token embedding as the head. Ours is always tied, so another
 * head is another model. */
static tg_status check_head(const opening *o, const stored *head) {
    tg_file *f = o->file;
    const tg_file_tensor *table = &f->tensor[0];
    tg_file_tensor t = *table;
    float a[512], b[512];
    t.dtype = dtypes[head->dtype].file_dtype;
    t.offset = o->data_offset + head->begin;
    for (uint64_t first = 0; first < t.elems;) {
        const size_t n = t.elems - first < 512 ? (size_t)(t.elems - first) : 512;
        TG_TRY(tg_file_read_f32(f, table, a, first, n));
        TG_TRY(tg_file_read_f32(f, &t, b, first, n));
        if (memcmp(a, b, n * sizeof *a) != 0) {
            return tg_fail(f->ctx, TG_E_UNSUPPORTED,
                           "%s: lm_head.weight: want %s once more (a tied head), have other values",
                           f->path, table->stored_as);
        }
        first += n;
    }
    return TG_OK;
}

static tg_status set_tensors(const opening *o) {
    tg_file *f = o->file;
    const size_t n_wanted = tg_gpt2_tensors(&f->config);
    const stored **wanted = tg_arena_array(&f->arena, n_wanted, sizeof *wanted), *head;
    tg_file_tensor *table = tg_arena_array(&f->arena, f->manifest.n, sizeof *table);
    if (!wanted || !table) {
        return tg_fail_memory(f->ctx, "table of tensors", f->manifest.n * sizeof *table);
    }
    tg_complaints c = { .n = 0 };
    TG_TRY(match(o, wanted, &head, &c));
    for (size_t i = 0; i < n_wanted; i++) {
        add_parts(o, wanted[i], i, table);
    }
    TG_TRY(tg_file_set_tensors(f, table, f->manifest.n));
    return head ? check_head(o, head) : TG_OK;
}

tg_status tg_safetensors_open(tg_file *file) {
    opening o = { .file = file };
    TG_TRY(read_header(&o));
    TG_TRY(read_list(&o));
    file->format = "safetensors";
    TG_TRY(set_config(&o));
    return set_tensors(&o);
}
