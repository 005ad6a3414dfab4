/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf.c - opens a model folder: the files, the names, the tables. See hf.h.
 *
 * A folder becomes a tg_gguf in three steps, of which none reads a tensor's bytes:
 *
 *     values     config.json (hf_config.c), then what other files say of ends of texts, drawing,
 *                templates and embeddings, all under GGUF's keys
 *     files      model.safetensors, or all files of the index: their headers, and a reader of each
 *     tensors    each stored tensor gets GGUF's name, shape and type, and a place (gguf.h): where
 *                it lies and how, turned, in halves, of one expert, quantised (hf_quant.h)
 *
 * One stored tensor may become two of GGUF (HALVES), and many may become one (EXPERTS). Bytes are
 * put right as they are read (gguf_rows.c), so nothing is converted that is not used.
 *
 *     theirs                                       ours
 *     model.layers.3.self_attn.q_proj.weight       blk.3.attn_q.weight
 *     model.layers.3.mlp.experts.7.up_proj.weight  blk.3.ffn_up_exps.weight, expert 7 of E
 *     lm_head.weight                               output.weight; nothing where the model is tied
 *
 * All strings and tables lie in the arena of the tg_gguf. The files are of tg_hf, which
 * tg_gguf_close closes. Begin with open_all, near the end; hf_writer.c is the way back.
 */
#include "io/hf/hf_quant.h"

#include "io/tgpt/tgpt_v3_gguf.h"

#include "base/str.h"

/* No model in use has as many files; a vocabulary with its merges takes 35 MB at most. */
enum { FILES_MAX = 1000 };
#define CONFIG_MAX_BYTES    ((uint64_t)1 << 24)
#define TOKENIZER_MAX_BYTES ((uint64_t)256 << 20)

/* What is known while a folder is opened. */
typedef struct opening {
    tg_gguf *g;
    tg_folder *folder;
    const tg_hf_family *family;
    const tg_hf_values *values;
    bool tied;
    bool twice; /* the embedding is the head, too, but is multiplied with other numbers there */
    tg_hf_embedding around; /* how texts become vectors */
    tg_hf_quant quant;
    uint64_t experts; /* of a layer; 0: there are none */
    tg_hf_files files;
    tg_gguf_tensor *tensors;
    size_t n_tensors;
} opening;

/* A folder counts as one of a model whatever is in it: what it lacks is said when it is opened. */
tg_status tg_hf_probe(tg_ctx *ctx, const char *path, bool *is) {
    uint8_t first[4];
    size_t n;
    *is = tg_os_kind_of(path) == TG_OS_FOLDER;
    if (*is) return TG_OK;
    TG_TRY(tg_reader_first(ctx, path, first, sizeof first, &n));
    *is = tg_zip_probe(first, n);
    return TG_OK;
}

void tg_hf_close(tg_hf *hf) {
    if (!hf) return;
    const tg_mem mem = hf->folder.ctx->mem;
    tg_folder_close(&hf->folder);
    tg_free(&mem, hf, sizeof *hf);
}

/* --------------------------------------------------------------------------------------- values */

/* Never NULL: without memory for the key, `failed` is set and the value goes on with an empty
 * one, so that callers are straight lines. open_all asks once. The number of values is bounded
 * by tables of ours and not by the file, hence an assertion. */
static tg_gguf_value *new_value(tg_hf_values *m, const char *key, tg_gguf_type type) {
    TG_ASSERT(m->n < TG_HF_VALUES);
    tg_gguf_value *v = &m->v[m->n++];
    const char *full = key[0] == '.'
                           ? tg_arena_strdup(&m->g->arena, key + 1)
                           : tg_arena_sprintf(&m->g->arena, "%s.%s", m->family->arch, key);
    m->failed = m->failed || !full;
    *v = (tg_gguf_value) { .key = full ? full : "", .type = type };
    return v;
}

void tg_hf_put_int(tg_hf_values *m, const char *key, int64_t value) {
    tg_gguf_value *v = new_value(m, key, TG_GGUF_U32);
    v->whole = value;
    v->real = (double)value;
}

static uint8_t *put_list(tg_hf_values *m, const char *key, size_t n, tg_gguf_type element,
                         size_t bytes) {
    tg_gguf_value *v = new_value(m, key, TG_GGUF_ARRAY);
    uint8_t *elements = tg_arena_array(&m->g->arena, n + 1, bytes);
    m->failed = m->failed || !elements;
    v->element = element;
    v->count = elements ? n : 0;
    v->elements = elements;
    v->elements_bytes = bytes * v->count;
    return elements;
}

uint8_t *tg_hf_put_ints(tg_hf_values *m, const char *key, size_t n) {
    return put_list(m, key, n, TG_GGUF_I32, 4);
}

uint8_t *tg_hf_put_bools(tg_hf_values *m, const char *key, size_t n) {
    return put_list(m, key, n, TG_GGUF_BOOL, 1);
}

void tg_hf_put_bool(tg_hf_values *m, const char *key, bool value) {
    new_value(m, key, TG_GGUF_BOOL)->whole = value;
}

/* Through f32, so that a folder and its conversion have the same bits. */
void tg_hf_put_float(tg_hf_values *m, const char *key, double value) {
    new_value(m, key, TG_GGUF_F32)->real = (double)(float)value;
}

void tg_hf_put_text(tg_hf_values *m, const char *key, const char *text, size_t n_bytes) {
    tg_gguf_value *v = new_value(m, key, TG_GGUF_STRING);
    v->text.bytes = tg_arena_strndup(&m->g->arena, text, n_bytes);
    v->text.n_bytes = n_bytes;
    m->failed = m->failed || !v->text.bytes;
}

void tg_hf_put_times(tg_hf_values *m, const char *ours, const tg_gguf_times *rows) {
    size_t n = 0;
    bool same = true;
    do same = same && rows[n].by == 1;
    while (rows[n++].end != UINT64_MAX);
    if (same) return;
    TG_ASSERT(m->n_times < TG_HF_TIMES);
    tg_gguf_times *kept = tg_arena_array(&m->g->arena, n, sizeof *kept);
    m->failed = m->failed || !kept;
    if (!kept) return;
    memcpy(kept, rows, n * sizeof *kept);
    m->times[m->n_times].ours = ours;
    m->times[m->n_times++].rows = kept;
}

/* A file of the folder as text that stays; NULL where there is none. The limit is held against
 * the file's size before memory is taken. */
static tg_status read_text(tg_gguf *g, tg_folder *folder, const char *name, uint64_t most,
                           const char **text, size_t *n_bytes) {
    tg_reader r;
    *text = NULL;
    *n_bytes = 0;
    if (!tg_folder_has(folder, name)) return TG_OK;
    TG_TRY(tg_folder_file(folder, name, &r));
    const uint64_t n = tg_reader_left(&r);
    if (n > most)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: want at most %" PRIu64 " bytes, have %" PRIu64,
                       r.name, most, n);
    *n_bytes = (size_t)n;
    return tg_read_text(&r, &g->arena, name, n, text);
}

/* *out is NULL where there is no such file. The document lives as long as the tg_gguf. */
tg_status tg_hf_read_json(tg_gguf *g, tg_folder *folder, const char *name, const tg_json **out) {
    const char *text;
    size_t n;
    *out = NULL;
    TG_TRY(read_text(g, folder, name, CONFIG_MAX_BYTES, &text, &n));
    if (!text) return TG_OK;
    const char *where = tg_arena_sprintf(&g->arena, "%s/%s", g->path, name);
    if (!where) return tg_fail_memory(g->ctx, name, strlen(g->path));
    return tg_json_parse(g->ctx, &g->arena, where, text, n, NULL, out);
}

static tg_status read_json(opening *o, const char *name, const tg_json **out) {
    return tg_hf_read_json(o->g, o->folder, name, out);
}

/* The tokens that end a text: one, or a list, of which the first is eos in GGUF's words. The
 * whole list goes under a key of Ollama's, since GGUF's own has one id. Whether the vocabulary
 * has these ids is checked where it is made (load/vocabulary.c). */
static tg_status put_ends(opening *o, tg_hf_values *m, const char *file, const tg_json *ids) {
    const bool list = tg_json_kind(ids) == TG_JSON_ARRAY;
    const size_t n = list ? ids->count : 1;
    uint8_t *kept = n > 1 ? tg_hf_put_ints(m, ".tokenizer.ggml.eos_token_ids", n) : NULL;
    if (n > 1 && !kept) return tg_fail_memory(o->g->ctx, file, 4 * n);
    const tg_json *v = list ? tg_json_first(ids) : ids;
    for (size_t i = 0; i < n; i++, v = tg_json_next(v)) {
        int64_t id = -1;
        if (tg_json_int64(NULL, v, &id) != TG_OK || id < 0 || id > INT32_MAX) {
            return tg_fail(o->g->ctx, TG_E_FORMAT, "%s/%s: eos_token_id: want ids, have %.40s",
                           o->g->path, file, TG_JSON_SHOWN(v));
        }
        if (kept) tg_put_u32(kept + 4 * i, (uint32_t)id);
        if (i == 0) tg_hf_put_int(m, ".tokenizer.ggml.eos_token_id", id);
    }
    return TG_OK;
}

/* generation_config.json comes first, as in transformers: makers put ends of turns there that
 * config.json lacks. Of a model that sees images config.json's may stand in the text model's
 * object. Ends that only a chat template knows come with the template. */
static tg_status put_generation(opening *o, tg_hf_values *m, const tg_json *config) {
    const char *file = "generation_config.json";
    const tg_json *generation;
    TG_TRY(read_json(o, file, &generation));
    const tg_json *ids = generation ? tg_json_get(generation, "eos_token_id") : NULL;
    if (!ids || tg_json_kind(ids) == TG_JSON_NULL) {
        file = "config.json";
        ids = tg_json_get(config, "eos_token_id");
        if (!ids && m->root != config) ids = tg_json_get(m->root, "eos_token_id");
    }
    if (ids && tg_json_kind(ids) != TG_JSON_NULL) TG_TRY(put_ends(o, m, file, ids));
    if (generation) tg_hf_sampling(m, generation);
    return TG_OK;
}

/* A template as text, or as a list of named ones (for tools, for retrieval), of which the one
 * called default is for conversations. NULL: neither. */
static const tg_json *default_template(const tg_json *config) {
    const tg_json *v = config ? tg_json_get(config, "chat_template") : NULL;
    if (!v || tg_json_kind(v) == TG_JSON_STRING) return v;
    if (tg_json_kind(v) != TG_JSON_ARRAY) return NULL;
    for (v = tg_json_first(v); v; v = tg_json_next(v)) {
        const tg_json *name = tg_json_get(v, "name"), *text = tg_json_get(v, "template");
        if (name && text && tg_json_is(name, "default") && tg_json_kind(text) == TG_JSON_STRING)
            return text;
    }
    return NULL;
}

/* A file of its own comes first, as in transformers; processors of before 2025 have one as JSON. */
static tg_status put_template(opening *o, tg_hf_values *m) {
    static const char *const files[] = { "tokenizer_config.json", "chat_template.json" };
    const char *text;
    size_t n;
    TG_TRY(read_text(o->g, o->folder, "chat_template.jinja", CONFIG_MAX_BYTES, &text, &n));
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !text; i++) {
        const tg_json *config, *inside;
        TG_TRY(read_json(o, files[i], &config));
        inside = default_template(config);
        if (!inside) continue;
        text = inside->u.text;
        n = inside->length;
    }
    if (text) tg_hf_put_text(m, ".tokenizer.chat_template", text, n);
    return TG_OK;
}

/* --------------------------------------------------------------------------------------- tensors
 */

static bool starts_with(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* The number of the expert in "mlp.experts.12.up_proj.weight", whose table says
 * "mlp.experts.%d.up_proj", and what is behind; NULL: another name. */
static const char *match_expert(const char *theirs, const char *name, uint64_t *number) {
    const size_t n = (size_t)(strchr(theirs, '%') - theirs);
    const char *at = name + n, *const rest = theirs + n + strlen("%d");
    if (strncmp(name, theirs, n) != 0 || *at < '0' || *at > '9') return NULL;
    for (*number = 0; *at >= '0' && *at <= '9' && *number < 100000; at++)
        *number = 10 * *number + (uint64_t)(*at - '0');
    return starts_with(at, rest) ? at + strlen(rest) : NULL;
}

/* "self_attn.q_proj.weight" to its row and ".weight"; NULL: no such name. The row's name must be
 * followed by a known suffix: "q_proj" must not match "q_proj.lora_A.weight". Tables have some
 * tens of rows, so a linear search will do. */
static const tg_hf_name *find_name(const tg_hf_name *table, const char *name, const char **suffix) {
    for (; table->theirs; table++) {
        uint64_t number;
        if (table->flags & TG_HF_EXPERTS) {
            *suffix = match_expert(table->theirs, name, &number);
            if (*suffix && strcmp(*suffix, ".weight") == 0) return table;
            continue;
        }
        *suffix = name + strlen(table->theirs);
        if (starts_with(name, table->theirs) &&
            (table->flags & TG_HF_WHOLE
                 ? **suffix == '\0'
                 : strcmp(*suffix, ".weight") == 0 || strcmp(*suffix, ".bias") == 0))
            return table;
    }
    return NULL;
}

/* What llama.cpp calls it; its own name where that is not known, and *row is NULL then:
 * model/tensors.c lists it as of no use. The prefix may be missing (encoders and bare models are
 * saved without their head's). Numbers of layers have up to three digits and no leading zero, so
 * that two names never become one. */
static const char *translate(opening *o, const char *name, const tg_hf_name **row) {
    const tg_hf_family *f = o->family;
    const char *suffix, *rest = name;
    if (starts_with(rest, f->prefix)) rest += strlen(f->prefix);
    if (f->beside && starts_with(rest, "language_model.")) rest += strlen("language_model.");
    *row = find_name(f->top, rest, &suffix);
    if (!*row && o->around.ranks) *row = find_name(f->rank, rest, &suffix);
    if (*row) return tg_arena_sprintf(&o->g->arena, "%s%s", (*row)->ours, suffix);
    if (!starts_with(rest, f->layers)) return name;
    const char *number = rest + strlen(f->layers), *at = number;
    while (*at >= '0' && *at <= '9') at++;
    const int digits = (int)(at - number);
    if (digits < 1 || digits > 3 || (digits > 1 && *number == '0') || *at != '.') return name;
    *row = find_name(f->block, at + 1, &suffix);
    if (!*row) return name;
    return tg_arena_sprintf(&o->g->arena, "blk.%.*s.%s%s", digits, number, (*row)->ours, suffix);
}

/* Buffers that old versions of transformers saved, parts that see images, and a head that
 * repeats a tied embedding. */
static bool is_ignored(opening *o, const char *name) {
    const tg_hf_family *f = o->family;
    const tg_hf_name *row;
    if (o->around.ranks && translate(o, name, &row) && row) return false;
    for (size_t i = 0; f->ignored[i]; i++)
        if (tg_hf_ends_with(name, f->ignored[i])) return true;
    for (size_t i = 0; f->beside && f->beside[i]; i++)
        if (starts_with(name, f->beside[i])) return true;
    return o->tied && f->head && tg_hf_ends_with(name, "lm_head.weight");
}

/* GGUF has the fastest dimension first, safetensors last. A scalar becomes a vector of one
 * element. channels: [C,1,L] loses the dimension of 1. turned: the file has [in,out], while rows
 * of GGUF are outputs, so its shape is taken as it stands. More than four dimensions are cut
 * here, and refused by add_tensor. */
static void set_shape(const tg_st_tensor *s, bool turned, bool channels, tg_gguf_tensor *t) {
    t->n_dims = s->n_dims < 1 ? 1 : s->n_dims > 4 ? 4 : s->n_dims;
    for (uint32_t d = 0; d < 4; d++) t->dim[d] = 1;
    for (uint32_t d = 0; d < t->n_dims && s->n_dims > 0; d++) t->dim[d] = s->dim[t->n_dims - 1 - d];
    if (channels && t->n_dims == 3 && t->dim[1] == 1) {
        t->n_dims = 2;
        t->dim[1] = t->dim[2];
        t->dim[2] = 1;
    }
    if (turned && t->n_dims == 2) {
        t->dim[0] = s->dim[0];
        t->dim[1] = s->dim[1];
    }
}

/* The list is zeros, and a tensor without a place is an expert that is still missing
 * (want_experts). */
static tg_gguf_tensor *new_experts(opening *o, tg_gguf_tensor *t, uint64_t n) {
    tg_gguf_place *place = tg_arena_alloc(&o->g->arena, sizeof *place);
    tg_gguf_tensor *list = tg_arena_array(&o->g->arena, (size_t)n, sizeof *list);
    if (!place || !list) return NULL;
    place->reader = t->place->reader;
    place->experts = list;
    t->place = place;
    return list;
}

/*
 * Of each expert the first half of the rows, and the second.
 *
 *     stored    | gate 0 | up 0 | gate 1 | up 1 | ..     each half is first->bytes / n
 */
static tg_status split_experts(opening *o, tg_gguf_tensor *first, tg_gguf_tensor *second) {
    const uint64_t n = first->dim[2], each = first->bytes / n;
    for (int half = 0; half < 2; half++) {
        tg_gguf_tensor *t = half ? second : first;
        const tg_gguf_place *stored = t->place;
        tg_gguf_tensor *list = new_experts(o, t, n);
        if (!list) return tg_fail_memory(o->g->ctx, t->name, (size_t)n * sizeof *list);
        for (uint64_t e = 0; e < n; e++) {
            list[e] = *t;
            list[e].n_dims = 2;
            list[e].dim[2] = 1;
            list[e].elems /= n;
            list[e].bytes = each;
            list[e].place = stored;
            list[e].offset = first->offset + (2 * e + (uint64_t)half) * each;
        }
    }
    return TG_OK;
}

/* The table is not sorted yet. With experts joined as they come, it stays at hundreds of
 * entries. */
static tg_gguf_tensor *find_tensor(const opening *o, const char *name) {
    for (size_t i = 0; i < o->n_tensors; i++)
        if (strcmp(o->tensors[i].name, name) == 0) return &o->tensors[i];
    return NULL;
}

/* The newest tensor of the table is the matrix of one expert: it joins the others of its layer.
 * The first that comes makes the tensor of all, in its own entry of the table; files have
 * experts in any order, and in any file. */
static tg_status join_expert(opening *o, const tg_st_tensor *s, const tg_hf_name *row,
                             tg_gguf_tensor *t) {
    uint64_t number = 0;
    const size_t n = (size_t)(strchr(row->theirs, '%') - row->theirs);
    const char *at = s->name;
    while (strncmp(at, row->theirs, n) != 0) at++; /* translate() has found it */
    match_expert(row->theirs, at, &number);
    if (number >= o->experts || t->n_dims != 2)
        return tg_fail(o->g->ctx, TG_E_FORMAT,
                       "%s: tensor %.80s: want a matrix of one of %" PRIu64
                       " experts, have another",
                       o->g->path, s->name, o->experts);
    const tg_gguf_tensor alone = *t;
    o->n_tensors--;
    tg_gguf_tensor *all = find_tensor(o, alone.name);
    if (!all) {
        all = &o->tensors[o->n_tensors++];
        if (!new_experts(o, all, o->experts)) return tg_fail_memory(o->g->ctx, s->name, 64);
        all->n_dims = 3;
        all->dim[2] = o->experts;
        all->elems *= o->experts;
        all->bytes *= o->experts;
    }
    if (all->type != alone.type || all->dim[0] != alone.dim[0] || all->dim[1] != alone.dim[1])
        return tg_fail(o->g->ctx, TG_E_FORMAT,
                       "%s: tensor %.80s: want the type and shape of the other experts', have "
                       "another",
                       o->g->path, s->name);
    tg_gguf_tensor *list = (tg_gguf_tensor *)(uintptr_t)all->place->experts;
    if (list[number].place)
        return tg_fail(o->g->ctx, TG_E_FORMAT, "%s: tensor %.80s: is there twice", o->g->path,
                       s->name);
    list[number] = alone;
    return TG_OK;
}

/* All of a layer, if there is one of them. A folder that lacks one of its files shows here. */
static tg_status want_experts(const opening *o) {
    for (size_t i = 0; i < o->n_tensors; i++) {
        const tg_gguf_tensor *t = &o->tensors[i];
        const tg_gguf_tensor *list = t->place ? t->place->experts : NULL;
        for (uint64_t e = 0; list && e < t->dim[2]; e++)
            if (!list[e].place)
                return tg_fail(o->g->ctx, TG_E_FORMAT,
                               "%s: tensor %s: want all %" PRIu64 " experts, expert %" PRIu64
                               " is missing",
                               o->g->path, t->name, t->dim[2], e);
    }
    return TG_OK;
}

/* What the rows of a line of the family's table are multiplied with; NULL: nothing. */
static const tg_gguf_times *times_of(const opening *o, const tg_hf_name *row) {
    for (size_t i = 0; row && i < o->values->n_times; i++)
        if (strcmp(o->values->times[i].ours, row->ours) == 0) return o->values->times[i].rows;
    return NULL;
}

/* Adds what a stored tensor becomes: nothing, one tensor, two, or a part of one. Steps are in an
 * order: the shape as GGUF has it, then what a quantised matrix has in its place, then what is read
 * as f32 (gains, products), then halves; sizes are computed last, from what the shape is by then.
 * Where the file claims a size that its bytes have not, tg_st_read has refused it. */
static tg_status add_tensor(opening *o, size_t file, const tg_st_tensor *s) {
    const bool quantised = tg_hf_is_quantised(&o->quant, s);
    if (is_ignored(o, s->name) || tg_hf_is_beside(&o->quant, s->name)) return TG_OK;
    const tg_hf_name *row;
    tg_gguf_tensor *t = &o->tensors[o->n_tensors++];
    tg_gguf_place *place = tg_arena_alloc(&o->g->arena, sizeof *place);
    const char *name = quantised ? tg_hf_matrix_name(o->g, &o->quant, s) : s->name;
    t->name = name ? translate(o, name, &row) : NULL;
    t->place = place;
    if (!t->name || !place) return tg_fail_memory(o->g->ctx, s->name, sizeof *place);
    place->reader = o->files.readers[file];
    t->offset = o->files.heads[file].data_offset + s->begin;
    const unsigned flags = row ? row->flags : 0;
    place->turned = (flags & TG_HF_TURNED) && s->n_dims == 2;
    set_shape(s, place->turned, flags & TG_HF_CHANNELS, t);
    if (quantised) {
        TG_TRY(tg_hf_set_matrix(&o->files, &o->quant, s, t, place));
    } else if (!tg_hf_type_of(s, &t->type)) {
        return tg_fail(o->g->ctx, TG_E_UNSUPPORTED,
                       "%s: tensor %.80s: want F32, F16, BF16, or what quantization of config.json "
                       "says (%s), have %s",
                       o->g->path, s->name, tg_hf_quant_name(&o->quant),
                       tg_st_dtypes[s->dtype].name);
    }
    place->plus_one = (flags & TG_HF_PLUS_ONE) != 0;
    place->times = times_of(o, row);
    if (quantised && (place->times || place->plus_one || place->turned || (flags & TG_HF_HALVES)))
        return tg_fail(o->g->ctx, TG_E_UNSUPPORTED,
                       "%s: tensor %.80s: want floats, as a %s changes them, have a matrix of %s",
                       o->g->path, s->name, o->family->class, tg_hf_quant_name(&o->quant));
    if (place->plus_one || place->times) {
        place->stored_type = t->type;
        t->type = TG_F32;
    }
    const bool halves = (flags & TG_HF_HALVES) && t->n_dims > 1 && t->dim[1] % 2 == 0;
    if (halves) t->dim[1] /= 2;
    t->elems = t->dim[0];
    for (uint32_t d = 1; d < 4; d++)
        if (!tg_mul_u64(t->elems, t->dim[d], &t->elems))
            return tg_fail(o->g->ctx, TG_E_FORMAT, "%s: tensor %.80s: sizes do not fit", o->g->path,
                           s->name);
    const tg_dtype_desc *d = &tg_dtype_table[t->type];
    if (t->elems == 0 || s->n_dims > 4 || t->dim[0] % d->cols != 0 ||
        !tg_mul_u64(t->elems / d->cols, d->bytes, &t->bytes))
        return tg_fail(o->g->ctx, TG_E_FORMAT,
                       "%s: tensor %.80s: want 1..4 dimensions above 0 of whole blocks", o->g->path,
                       s->name);
    if (flags & TG_HF_EXPERTS) return join_expert(o, s, row, t);
    if (!halves) return TG_OK;
    tg_gguf_tensor *second = &o->tensors[o->n_tensors++];
    const char *suffix = flags & TG_HF_WHOLE ? "" : ".weight";
    *second = *t;
    second->name = tg_arena_sprintf(&o->g->arena, "%.*s%s%s",
                                    (int)(strlen(t->name) - strlen(row->ours) - strlen(suffix)),
                                    t->name, row[1].ours, suffix);
    if (!second->name) return tg_fail_memory(o->g->ctx, s->name, 64);
    if (t->n_dims == 3) return split_experts(o, t, second);
    second->offset += t->bytes;
    return TG_OK;
}

/* ----------------------------------------------------------------------------------------- files
 */

/* A file that was opened is not opened again: the index names it once for each of its tensors.
 * Names of an index with a slash would lead into other folders, which no writer does. */
static tg_status open_file(opening *o, const char *name, bool inside) {
    for (size_t i = 0; i < o->files.n; i++)
        if (strcmp(o->files.readers[i].name + strlen(o->g->path) + 1, name) == 0) return TG_OK;
    if (!inside && strchr(name, '/'))
        return tg_fail(o->g->ctx, TG_E_FORMAT, "%s: want files of this folder, have %.80s",
                       o->g->path, name);
    if (o->files.n == FILES_MAX)
        return tg_fail(o->g->ctx, TG_E_FORMAT, "%s: want at most %d files of tensors", o->g->path,
                       FILES_MAX);
    tg_reader *r = &o->files.readers[o->files.n];
    TG_TRY(tg_folder_file(o->folder, name, r));
    o->g->total_bytes += tg_reader_left(r);
    return tg_st_read(r, &o->g->arena, &o->files.heads[o->files.n++]);
}

/* Folders that hold a model in another form, or no whole model: what to do about it is said.
 * Pickles are programs and are not run. */
static tg_status want_tensors(const opening *o) {
    static const struct {
        const char *file, *what;
    } others[] = {
        { "adapter_config.json",
          "an adapter, which changes another model's weights: merge it into that one first" },
        { "pytorch_model.bin", "a pickle, which is a program: save it again with "
                               "save_pretrained(safe_serialization=True) of transformers" },
        { "pytorch_model.bin.index.json", "pickles, which are programs: save them again with "
                                          "save_pretrained(safe_serialization=True) of "
                                          "transformers" },
        { "tf_model.h5", "weights of TensorFlow: save them again from transformers" },
        { "flax_model.msgpack", "weights of Flax: save them again from transformers" },
        { "consolidated.safetensors", "Mistral's own names of tensors: take the folder of "
                                      "transformers" },
    };
    if (tg_folder_has(o->folder, "model.safetensors")) return TG_OK;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (tg_folder_has(o->folder, others[i].file))
            return tg_fail(o->g->ctx, TG_E_UNSUPPORTED, "%s: want a model.safetensors, have %s: %s",
                           o->g->path, others[i].file, others[i].what);
    return TG_OK;
}

/* The index wins over model.safetensors. Only its names of files are used: which tensors a file
 * has, its own header says. */
static tg_status open_model_files(opening *o) {
    const tg_json *index;
    o->files.heads = tg_arena_array(&o->g->arena, FILES_MAX, sizeof *o->files.heads);
    o->files.readers = tg_arena_array(&o->g->arena, FILES_MAX, sizeof *o->files.readers);
    if (!o->files.heads || !o->files.readers)
        return tg_fail_memory(o->g->ctx, o->g->path, FILES_MAX);
    TG_TRY(read_json(o, "model.safetensors.index.json", &index));
    if (!index) TG_TRY(want_tensors(o));
    if (!index) return open_file(o, "model.safetensors", false);
    const tg_json *map;
    TG_TRY(tg_json_want(o->g->ctx, index, "weight_map", TG_JSON_OBJECT, &map));
    for (const tg_json *v = tg_json_first(map); v; v = tg_json_next(v)) {
        if (tg_json_kind(v) != TG_JSON_STRING || strlen(v->u.text) != v->length)
            return tg_fail(o->g->ctx, TG_E_FORMAT,
                           "%s/model.safetensors.index.json: byte %u: want the name of a file",
                           o->g->path, (unsigned)v->offset);
        TG_TRY(open_file(o, v->u.text, false));
    }
    return TG_OK;
}

/* Tensors of the folders behind the pooling have these in front of their names:
 * "2_Dense/linear.weight". */
static tg_status open_files(opening *o) {
    TG_TRY(open_model_files(o));
    for (size_t i = 0; i < 2 && o->around.dense[i]; i++) {
        const char *file =
            tg_arena_sprintf(&o->g->arena, "%s/model.safetensors", o->around.dense[i]);
        if (!file) return tg_fail_memory(o->g->ctx, o->g->path, 64);
        TG_TRY(open_file(o, file, true));
        const tg_st_head *head = &o->files.heads[o->files.n - 1];
        for (size_t k = 0; k < head->n; k++) {
            tg_st_tensor *t = &head->list[k];
            t->name = tg_arena_sprintf(&o->g->arena, "%s/%s", o->around.dense[i], t->name);
            if (!t->name) return tg_fail_memory(o->g->ctx, o->g->path, 64);
        }
    }
    o->g->n_files = o->files.n;
    return tg_hf_sort_stored(&o->files);
}

/* A tensor that two parts share is stored once, under either's name; safetensors' save_model notes
 * the name that is left out beside the one that is kept. What was left out is read as what was
 * kept. */
static tg_status add_shared(opening *o, size_t file) {
    const tg_json *notes = tg_json_get(o->files.heads[file].root, "__metadata__");
    for (const tg_json *v = notes ? tg_json_first(notes) : NULL; v; v = tg_json_next(v)) {
        size_t at, other;
        if (tg_json_kind(v) != TG_JSON_STRING || strlen(v->key) != v->key_length) continue;
        const tg_st_tensor *kept =
            tg_hf_find_stored(&o->files, v->u.text, strlen(v->u.text), "", &at);
        if (!kept || tg_hf_find_stored(&o->files, v->key, strlen(v->key), "", &other)) continue;
        tg_st_tensor again = *kept;
        again.name = v->key;
        TG_TRY(add_tensor(o, at, &again));
    }
    return TG_OK;
}

static bool has_tensor(const opening *o, const char *name) { return find_tensor(o, name) != NULL; }

/* A tied model whose head alone was stored, without a note. Which of the two names is stored is
 * chance: save_model keeps one. */
static tg_status add_embedding(opening *o) {
    size_t at;
    const tg_hf_name *row = o->family->top;
    while (row->theirs && strcmp(row->ours, "token_embd") != 0) row++;
    const tg_st_tensor *head = tg_hf_find_stored(&o->files, "lm_head", 7, ".weight", &at);
    if (!o->tied || !o->family->head || !head || !row->theirs || has_tensor(o, "token_embd.weight"))
        return TG_OK;
    tg_st_tensor again = *head;
    again.name = tg_arena_sprintf(&o->g->arena, "%s.weight", row->theirs);
    if (!again.name) return tg_fail_memory(o->g->ctx, o->g->path, 64);
    return add_tensor(o, at, &again);
}

/* One table in two uses that have numbers of their own: the head is read from it as well. */
static tg_status add_head(opening *o) {
    for (size_t h = 0; o->twice && h < o->files.n && !has_tensor(o, "output.weight"); h++)
        for (size_t i = 0; i < o->files.heads[h].n; i++) {
            tg_st_tensor again = o->files.heads[h].list[i];
            const tg_hf_name *row;
            if (!translate(o, again.name, &row)) return tg_fail_memory(o->g->ctx, again.name, 64);
            if (!row || strcmp(row->ours, "token_embd") != 0) continue;
            again.name = "lm_head.weight";
            TG_TRY(add_tensor(o, h, &again));
            break;
        }
    return TG_OK;
}

/* An upper bound of what add_tensor is called with: the stored ones, those under a second name
 * (notes), and factors. */
static size_t count_tensors(const opening *o) {
    size_t n = TG_FACTORS + 1; /* and a head that is the embedding */
    for (size_t h = 0; h < o->files.n; h++) {
        const tg_json *notes = tg_json_get(o->files.heads[h].root, "__metadata__");
        n += o->files.heads[h].n + (notes ? notes->count : 0);
    }
    return n;
}

/* A tensor that no file has: its place is a reader over the floats, in the arena. */
static tg_status add_factors(opening *o, const tg_hf_values *m, int kind) {
    tg_gguf_place *place = tg_arena_alloc(&o->g->arena, sizeof *place);
    if (!place) return tg_fail_memory(o->g->ctx, "frequencies", sizeof *place);
    const uint64_t bytes = m->n_factors * sizeof(float);
    tg_reader_open_memory(o->g->ctx, o->g->path, m->factors[kind], (size_t)bytes, &place->reader);
    o->tensors[o->n_tensors++] = (tg_gguf_tensor) { .name = tg_gguf_factors[kind],
                                                    .type = TG_F32,
                                                    .n_dims = 1,
                                                    .dim = { m->n_factors, 1, 1, 1 },
                                                    .elems = m->n_factors,
                                                    .bytes = bytes,
                                                    .place = place };
    return TG_OK;
}

/* What config.json says to be there is: a library would make up biases that are missing. The
 * first block stands for all. */
static tg_status want_biases(const opening *o, const tg_json *config) {
    static const char *const said[][2] = { { "attention_bias", "blk.0.attn_output.bias" },
                                           { "mlp_bias", "blk.0.ffn_down.bias" } };
    for (size_t i = 0; i < 2 && o->family->says_biases; i++) {
        if (tg_hf_is_on(config, said[i][0]) && !has_tensor(o, said[i][1]))
            return tg_fail(o->g->ctx, TG_E_FORMAT,
                           "%s/config.json: %s: want biases, as it is true, "
                           "have none",
                           o->g->path, said[i][0]);
    }
    return TG_OK;
}

static tg_status read_tensors(opening *o, const tg_hf_values *m) {
    const size_t n = 2 * count_tensors(o); /* some become two */
    o->tensors = tg_arena_array(&o->g->arena, n, sizeof *o->tensors);
    if (!o->tensors) return tg_fail_memory(o->g->ctx, "table of tensors", n);
    for (size_t h = 0; h < o->files.n; h++)
        for (size_t i = 0; i < o->files.heads[h].n; i++)
            TG_TRY(add_tensor(o, h, &o->files.heads[h].list[i]));
    for (size_t h = 0; h < o->files.n; h++) TG_TRY(add_shared(o, h));
    TG_TRY(want_experts(o));
    TG_TRY(add_embedding(o));
    TG_TRY(add_head(o));
    for (int kind = 0; kind < TG_FACTORS; kind++)
        if (m->factors[kind]) TG_TRY(add_factors(o, m, kind));
    return TG_OK;
}

/* A model that is not tied and has no head would be run with another one than it was trained. One
 * that makes vectors of texts needs none. */
static tg_status want_head(const opening *o, tg_hf_values *m) {
    const char *head = o->family->head;
    if (!head || o->tied || has_tensor(o, "output.weight")) return TG_OK;
    if (o->around.embeds) {
        tg_hf_put_int(m, "embeds_only", 1);
        return TG_OK;
    }
    return tg_fail(o->g->ctx, TG_E_FORMAT,
                   "%s: tensor %s.weight: want it, as tie_word_embeddings "
                   "is not true, have none",
                   o->g->path, head);
}

/* A folder's table is made by the same call as one of a file, tg_gguf_set_tables, which refuses
 * names that two stored tensors became. */
static tg_status open_all(opening *o) {
    tg_gguf *g = o->g;
    const tg_json *config;
    tg_hf_values m = { .g = g };
    m.v = tg_arena_array(&g->arena, TG_HF_VALUES, sizeof *m.v);
    if (!m.v) return tg_fail_memory(g->ctx, "metadata", TG_HF_VALUES * sizeof *m.v);
    TG_TRY(read_json(o, "config.json", &config));
    if (!config) TG_TRY(want_tensors(o));
    if (!config)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: want a folder with a config.json, have none",
                       g->path);
    char where[512];
    snprintf(where, sizeof where, "%s/config.json", g->path);
    TG_TRY(tg_hf_config(&m, where, config, &o->tied, &o->quant));
    o->files.g = g;
    g->method = o->quant.method ? tg_hf_quant_name(&o->quant) : NULL;
    o->family = m.family;
    o->values = &m;
    o->twice = o->tied && m.n_times > 0;
    o->tied = o->tied && !o->twice;
    for (size_t i = 0; i < m.n; i++)
        if (tg_hf_ends_with(m.v[i].key, ".expert_count")) o->experts = (uint64_t)m.v[i].whole;
    TG_TRY(put_generation(o, &m, config));
    TG_TRY(put_template(o, &m));
    o->around = (tg_hf_embedding) { .g = g, .folder = o->folder };
    TG_TRY(tg_hf_put_embedding(&o->around, &m));
    TG_TRY(read_text(o->g, o->folder, "tokenizer.json", TOKENIZER_MAX_BYTES, &g->tokenizer_json,
                     &g->tokenizer_bytes));
    TG_TRY(open_files(o));
    TG_TRY(read_tensors(o, &m));
    TG_TRY(want_biases(o, config));
    TG_TRY(want_head(o, &m));
    if (m.failed) return tg_fail_memory(g->ctx, "metadata", TG_HF_VALUES * sizeof *m.v);
    return tg_gguf_set_tables(g, m.v, m.n, o->tensors, o->n_tensors);
}

/* From here on tg_gguf_close frees hf, on failure too. */
static tg_status open_folder(tg_gguf *g, const void *bytes, size_t n_bytes) {
    tg_hf *hf = tg_alloc(&g->ctx->mem, sizeof *hf);
    if (!hf) return tg_fail_memory(g->ctx, g->path, sizeof *hf);
    const tg_status s = bytes ? tg_folder_open_memory(g->ctx, g->path, bytes, n_bytes, &hf->folder)
                              : tg_folder_open(g->ctx, g->path, &hf->folder);
    if (s != TG_OK) {
        tg_free(&g->ctx->mem, hf, sizeof *hf);
        return s;
    }
    g->hf = hf;
    opening o = { .g = g, .folder = &hf->folder };
    return open_all(&o);
}

/* transformers keeps rows of queries and keys as they were trained; llama.cpp's converter pairs
 * those of Llama. heads_plain says so to whoever reads them. */
static tg_status open_as(tg_ctx *ctx, const char *path, const void *bytes, size_t n_bytes,
                         tg_gguf *out) {
    *out = (tg_gguf) { .ctx = ctx, .path = path, .n_files = 1, .heads_plain = true };
    tg_arena_init(&out->arena, &ctx->mem);
    const tg_status s = open_folder(out, bytes, n_bytes);
    if (s != TG_OK) tg_gguf_close(out);
    return s;
}

tg_status tg_hf_open(tg_ctx *ctx, const char *path, tg_gguf *out) {
    return open_as(ctx, path, NULL, 0, out);
}

tg_status tg_hf_open_memory(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                            tg_gguf *out) {
    return open_as(ctx, name, bytes, n_bytes, out);
}

tg_status tg_gguf_open_any(tg_ctx *ctx, const char *path, tg_gguf *out) {
    bool folder, ours = false;
    *out = (tg_gguf) { .ctx = NULL };
    TG_TRY(tg_hf_probe(ctx, path, &folder));
    if (!folder) TG_TRY(tg_tgpt3_is_gguf(ctx, path, &ours));
    return folder ? tg_hf_open(ctx, path, out)
           : ours ? tg_tgpt3_open_gguf(ctx, path, out)
                  : tg_gguf_open(ctx, path, out);
}
