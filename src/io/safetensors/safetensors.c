/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.c - reads .safetensors files that hold a GPT-2 (safetensors.h draws the layout).
 *
 * The header is read and checked by safetensors_head.c. Then comes the configuration, from our part
 * of __metadata__ or from config.json beside the file, and names and shapes must be those that it
 * asks for.
 *
 * What leaves here is in terms of the manifest: a tensor that lies in the columns of another one
 * (q, k and v in c_attn) is a tensor with a row step. Nothing above this file knows.
 */
#include "io/safetensors/safetensors.h"

#include "base/str.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)

/* The element types that can be read; the others can be stepped over. 0: none of ours. */
static tg_file_dtype dtype_of(const tg_st_tensor *t) {
    const char *name = tg_st_dtypes[t->dtype].name;
    return strcmp(name, "F32") == 0    ? TG_FILE_F32
           : strcmp(name, "F16") == 0  ? TG_FILE_F16
           : strcmp(name, "BF16") == 0 ? TG_FILE_BF16
                                       : (tg_file_dtype)0;
}

/* What is known of a file while it is opened. */
typedef struct opening {
    tg_file *file;
    tg_st_head head;
} opening;

/* Text has no zero bytes, and no header is 2^40 bytes long: the length's upper three are enough to
 * know a text that happens to have a brace there. A length that is only too large gets as far as a
 * message of its own. */
bool tg_safetensors_probe(const uint8_t *first, size_t n_bytes) {
    return n_bytes > 8 && first[8] == '{' && !first[5] && !first[6] && !first[7];
}

/* ------------------------------------------------------------------------------ configuration */

/* The JSON of a v3 file, as a text within the JSON of this one; NULL if there is none. */
static tg_status find_own(const opening *o, const tg_json **own) {
    const tg_json *metadata = tg_json_get(o->head.root, "__metadata__");
    *own = NULL;
    if (!metadata) {
        return TG_OK;
    }
    if (tg_json_kind(metadata) != TG_JSON_OBJECT) {
        return tg_st_fail(&o->head, TG_E_FORMAT, "__metadata__", "entry", "an object", metadata);
    }
    for (const tg_json *v = tg_json_first(metadata); v; v = tg_json_next(v)) {
        if (tg_json_kind(v) != TG_JSON_STRING) {
            return tg_st_fail(&o->head, TG_E_FORMAT, "__metadata__", v->key, "a string", v);
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

static tg_status read_config(const opening *o, tg_model_config *config) {
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
    tg_model_config config;
    TG_TRY(find_own(o, &own));
    if (own) {
        f->version = 3;
        TG_TRY(tg_file_set_header(f, own->u.text, own->length));
        TG_TRY(tg_meta_get_v3(f->ctx, f->path, f->header, &config, &f->step));
        if (!tg_meta_is_own(&config))
            return tg_fail(f->ctx, TG_E_UNSUPPORTED,
                           "%s: family: want \"" TG_META_OWN "\", have \"%.40s\"", f->path,
                           config.family);
    } else {
        TG_TRY(tg_file_set_header(f, "{}", 2));
        TG_TRY(read_config(o, &config));
    }
    return tg_file_set_config(f, &config);
}

/* -------------------------------------------------------------------------------------- tensors */

/* Is it what the configuration asks for? */
static void compare(const tg_gpt2_tensor *want, const tg_st_tensor *have, tg_complaints *c) {
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
    if (dtype_of(have) == 0) {
        tg_complain(c, "%.60s: want F32, F16 or BF16, have %s", have->name,
                    tg_st_dtypes[have->dtype].name);
    }
}

/* Which stored tensor is which wanted one, [tg_gpt2_tensors]; all of them are there if no complaint
 * comes of it. *head: an untied lm_head, or NULL. */
static tg_status match(const opening *o, const tg_st_tensor **wanted, const tg_st_tensor **head,
                       tg_complaints *c) {
    const tg_file *f = o->file;
    *head = NULL;
    for (size_t i = 0; i < o->head.n; i++) {
        const tg_st_tensor *s = &o->head.list[i];
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
static void add_parts(const opening *o, const tg_st_tensor *s, size_t number,
                      tg_file_tensor *table) {
    const tg_manifest *m = &o->file->manifest;
    const tg_gpt2_tensor g = tg_gpt2_tensor_at(m, number);
    const uint64_t elem_bytes = tg_st_dtypes[s->dtype].bytes;
    for (size_t p = 0; p < g.n_parts; p++) {
        const tg_manifest_entry *e = &m->entry[g.first + 2 * p];
        const uint64_t cols = e->dim[e->n_dims - 1];
        table[g.first + 2 * p] = (tg_file_tensor) {
            .name = e->name,
            .dtype = dtype_of(s),
            .n_dims = (uint32_t)e->n_dims,
            .dim = { e->dim[0], e->dim[1], 1, 1 },
            .elems = e->elems,
            .offset = o->head.data_offset + s->begin + p * cols * elem_bytes,
            .bytes = e->elems * elem_bytes,
            .row_elems = g.n_parts > 1 ? cols : 0,
            .row_step_bytes = g.n_parts > 1 ? g.n_parts * cols * elem_bytes : 0,
            .stored_as = s->name,
        };
    }
}

/* Files of some programs repeat the token embedding as the head. Ours is always tied, so another
 * head is another model. */
static tg_status check_head(const opening *o, const tg_st_tensor *head) {
    tg_file *f = o->file;
    const tg_file_tensor *table = &f->tensor[0];
    tg_file_tensor t = *table;
    float a[512], b[512];
    t.dtype = dtype_of(head);
    t.offset = o->head.data_offset + head->begin;
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
    const tg_st_tensor **wanted = tg_arena_array(&f->arena, n_wanted, sizeof *wanted), *head;
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
    TG_TRY(tg_st_read(&file->reader, &file->arena, &o.head));
    file->format = "safetensors";
    TG_TRY(set_config(&o));
    return set_tensors(&o);
}
