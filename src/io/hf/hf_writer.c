/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_writer.c - names, head and config.json of a model folder. See hf_writer.h.
 *
 * It is hf.c backwards: both go by the same tables of families (model/), so that a name or a key
 * that is written is also read. A model comes in as a tg_gguf, whatever file it was. What the form
 * cannot state is refused here, before a byte is written: a folder that another library would read
 * as another model is worse than none.
 */
#include "io/hf/hf_writer.h"

#include "io/pooling.h"

#include "base/math.h"
#include "base/str.h"
#include "io/rope_llama3.h"
#include "io/rope_proportional.h"

/* A key of the model's own architecture, such as llama.rope.freq_base; NULL: the file has none. */
static const tg_gguf_value *value(const tg_gguf *g, const tg_hf_family *f, const char *key) {
    char full[160];
    snprintf(full, sizeof full, "%s.%s", f->arch, key);
    return tg_gguf_find(g, full);
}

static bool has_window(const tg_gguf *g, const tg_hf_family *f) {
    const tg_gguf_value *window = value(g, f, "attention.sliding_window");
    const tg_gguf_value *positions = value(g, f, "context_length");
    return window && window->whole > 0 && positions && window->whole < positions->whole;
}

/* By the name of the architecture that GGUF has, and of two classes by the window; the message
 * lists all that can be written. */
static tg_status find_family(const tg_gguf *g, const tg_hf_family **out) {
    tg_gguf_string arch = { "", 0 };
    char known[256] = "";
    const tg_hf_family *f, *found = NULL;
    TG_TRY(tg_gguf_get_string(g, "general.architecture", &arch));
    for (size_t i = 0; (f = tg_hf_family_at(i)) != NULL; i++) {
        if (strlen(f->arch) == arch.n_bytes && memcmp(f->arch, arch.bytes, arch.n_bytes) == 0 &&
            (!found || has_window(g, f)))
            found = f;
        if (!f->all_windowed) tg_str_append(known, sizeof known, " %s", f->arch);
    }
    *out = found;
    if (found) return TG_OK;
    return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: safetensors: want one of%s", g->path, known);
}

#define RANK_TENSOR "cls.output.weight"

/* A head of one label. */
static bool ranks(const tg_gguf *g, const tg_hf_family *f) {
    const tg_gguf_tensor *t = f->rank ? tg_gguf_tensor_find(g, RANK_TENSOR) : NULL;
    return t && t->elems == t->dim[0];
}

/* The row of a tensor's name behind "blk.3.", and what follows its stem; NULL: there is none. */
static const tg_hf_name *find_row(const tg_hf_name *row, const char *name, const char **suffix) {
    const char *end = strrchr(name, '.');
    if (!end) end = name;
    for (; row->theirs; row++) {
        const size_t n = strlen(row->ours);
        const bool whole = row->flags & TG_HF_WHOLE;
        if ((whole ? strlen(name) : (size_t)(end - name)) != n || memcmp(name, row->ours, n) != 0)
            continue;
        *suffix = whole ? "" : end;
        return row;
    }
    return NULL;
}

/* "blk.3.attn_q.weight" to "model.layers.3.self_attn.q_proj.weight". NULL: without *row no name of
 * the family, else there is no memory for it. */
static const char *translate(const tg_gguf *g, const tg_hf_family *f, tg_arena *arena,
                             const char *name, const tg_hf_name **row) {
    const bool in_block = strncmp(name, "blk.", 4) == 0;
    const char *rest = in_block ? strchr(name + 4, '.') : name, *suffix = "";
    *row = NULL;
    if (!rest) return NULL;
    if (in_block) rest++;
    *row = find_row(in_block ? f->block : f->top, rest, &suffix);
    const tg_hf_name *own = *row;
    if (!*row && ranks(g, f)) *row = find_row(f->rank, rest, &suffix);
    if (!*row) return NULL;
    /* Heads stand beside the model proper; encoders without one are saved without their prefix. */
    const bool within = own ? strcmp(own->theirs, "lm_head") != 0 && (!f->encoder || ranks(g, f))
                            : ((*row)->flags & TG_HF_WITHIN) != 0;
    const char *prefix = within ? f->prefix : "";
    if (!in_block) return tg_arena_sprintf(arena, "%s%s%s", prefix, (*row)->theirs, suffix);
    return tg_arena_sprintf(arena, "%s%s%.*s.%s%s", prefix, f->layers, (int)(rest - name - 5),
                            name + 4, (*row)->theirs, suffix);
}

#define ROPE_FREQS tg_gguf_factors[TG_FACTORS_LLAMA3]

/* The rule of Llama 3 behind the factors of a file; *there: it has some. GGUF has a factor for each
 * pair of a head's elements, config.json the four numbers that they follow from, so the numbers are
 * looked for, and found only if they give these factors again. */
static tg_status find_llama3(const tg_gguf *g, const tg_hf_family *f, tg_rope_llama3 *rule,
                             bool *there) {
    const tg_gguf_tensor *t = tg_gguf_tensor_find(g, ROPE_FREQS);
    const tg_gguf_value *base = value(g, f, "rope.freq_base");
    *there = t != NULL;
    if (!t) return TG_OK;
    float *factors;
    TG_TRY(tg_gguf_new_floats(g, t, &factors));
    const bool found =
        tg_rope_llama3_find(factors, base ? base->real : 1e4, 2 * (size_t)t->elems, rule);
    tg_gguf_free_floats(g, t, factors);
    if (found) return TG_OK;
    return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                   "%s: tensor %s: want factors that follow from a rule of Llama 3, which "
                   "config.json can state, have others",
                   g->path, ROPE_FREQS);
}

/* The number of the tensor whose rows follow those of this one; its own: the model has none. */
static size_t other_half(const tg_gguf *g, const char *name, const tg_hf_name *row) {
    char other[160];
    const size_t stem = strlen(name) - strlen(row->ours) - strlen(".weight");
    snprintf(other, sizeof other, "%.*s%s.weight", (int)stem, name, row[1].ours);
    const tg_gguf_tensor *t = tg_gguf_tensor_find(g, other);
    return (size_t)((t ? t : tg_gguf_tensor_find(g, name)) - g->tensors);
}

/* Room in the list: matrices of experts may stand one by one. */
static size_t most_entries(const tg_gguf *g) {
    size_t n = 1;
    for (size_t i = 0; i < g->n_tensors; i++) n += (size_t)g->tensors[i].dim[2];
    return n;
}

/* The newest entry, whose name has a %d, once for each expert. */
static tg_status put_experts(const tg_gguf *g, tg_arena *arena, tg_hf_out *list, size_t *n) {
    const tg_hf_out all = list[--*n];
    const tg_gguf_tensor *t = &g->tensors[all.source];
    const char *number = strchr(all.name, '%');
    for (uint64_t e = 0; e < t->dim[2]; e++) {
        tg_hf_out *one = &list[(*n)++];
        *one = all;
        one->first_row = e * t->dim[1];
        one->n_rows = t->dim[1];
        one->name = tg_arena_sprintf(arena, "%.*s%" PRIu64 "%s", (int)(number - all.name), all.name,
                                     e, number + strlen("%d"));
        if (!one->name) return tg_fail_memory(g->ctx, t->name, 64);
    }
    return TG_OK;
}

/* Names live in the arena. What a family's table says of a tensor is undone when it is written:
 * gains that GGUF keeps as 1 + w, and matrices that GPT-2 has as [columns, rows]. */
tg_status tg_hf_outline(const tg_gguf *g, tg_arena *arena, const tg_hf_family **family,
                        tg_hf_out **out, size_t *n) {
    tg_rope_llama3 rule;
    bool llama3;
    TG_TRY(find_family(g, family));
    if ((*family)->proportional == 0) TG_TRY(find_llama3(g, *family, &rule, &llama3));
    const size_t most = most_entries(g);
    tg_hf_out *list = *out = tg_arena_array(arena, most, sizeof *list);
    if (!list) return tg_fail_memory(g->ctx, "table of tensors", most * sizeof *list);
    *n = 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const tg_hf_name *row;
        const char *name = g->tensors[i].name;
        if (tg_gguf_is_factors(name)) continue; /* config.json has them, or the rule behind them */
        const char *theirs = translate(g, *family, arena, name, &row);
        if (!theirs && row) return tg_fail_memory(g->ctx, name, strlen(name));
        if (!theirs)
            return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: tensor %s: want a name of %s", g->path,
                           name, (*family)->arch);
        const bool halves = row->flags & TG_HF_HALVES;
        if (halves && row > (*family)->block && row[-1].flags & TG_HF_HALVES) continue;
        list[(*n)++] =
            (tg_hf_out) { .name = theirs,
                          .source = i,
                          .second = halves ? other_half(g, name, row) : 0,
                          .halves = halves,
                          .vector = (row->flags & TG_HF_WHOLE) != 0,
                          .turned = (row->flags & TG_HF_TURNED) && g->tensors[i].n_dims == 2,
                          .channels = (row->flags & TG_HF_CHANNELS) && g->tensors[i].n_dims == 2,
                          .plus_one = (row->flags & TG_HF_PLUS_ONE) != 0 };
        if (row->flags & TG_HF_EXPERTS) TG_TRY(put_experts(g, arena, list, n));
    }
    return TG_OK;
}

static const char *dtype_name(tg_dtype type) { return tg_dtype_table[type].label; }

/*
 * The head of a .safetensors file, before the bytes of the tensors in the same order:
 *
 *   OFFSET  SIZE  MEANING
 *        0     8  N, little-endian
 *        8     N  JSON: name -> { dtype, shape, data_offsets [begin, end) behind the head }, padded
 *                 with blanks to a multiple of 8
 *
 * Shapes are row-major there, and GGUF counts dimensions from the fastest one, hence backwards. On
 * success *save is the caller's to go on with; else it is NULL, or to be given up by the caller.
 */
tg_status tg_hf_save_begin(const tg_gguf *g, const char *path, const tg_hf_out *out, size_t n,
                           tg_dtype type, tg_save **save) {
    tg_buf json;
    tg_json_writer w;
    uint64_t at = 0;
    *save = NULL;
    tg_buf_init(&json, &g->ctx->mem);
    tg_json_writer_init(&w, &json);
    tg_json_begin_object(&w);
    tg_json_key(&w, "__metadata__");
    tg_json_begin_object(&w);
    tg_json_key(&w, "format");
    tg_json_put_string(&w, "pt");
    tg_json_key(&w, "tool"); /* by which io/output.c knows it */
    tg_json_put_string(&w, "tinygpt " TG_VERSION_TEXT);
    tg_json_end_object(&w);
    for (size_t i = 0; i < n; i++) {
        const tg_gguf_tensor *t = &g->tensors[out[i].source];
        tg_json_key(&w, out[i].name);
        tg_json_begin_object(&w);
        tg_json_key(&w, "dtype");
        tg_json_put_string(&w, dtype_name(type));
        tg_json_key(&w, "shape");
        tg_json_begin_array(&w);
        const uint32_t n_dims = out[i].vector ? 1 : out[i].n_rows ? 2 : t->n_dims;
        for (uint32_t d = 0; d < n_dims; d++) {
            const uint32_t last = out[i].n_rows ? 1 : t->n_dims - 1;
            const uint64_t dim = out[i].vector ? t->elems : t->dim[out[i].turned ? d : last - d];
            if (d == 1 && out[i].channels) tg_json_put_uint(&w, 1);
            tg_json_put_uint(&w, out[i].halves && d + 2 == n_dims ? 2 * dim : dim);
        }
        tg_json_end_array(&w);
        tg_json_key(&w, "data_offsets");
        tg_json_begin_array(&w);
        tg_json_put_uint(&w, at);
        const uint64_t elems = out[i].n_rows ? out[i].n_rows * t->dim[0] : t->elems;
        at += (out[i].halves ? 2 : 1) * elems * tg_dtype_table[type].bytes;
        tg_json_put_uint(&w, at);
        tg_json_end_array(&w);
        tg_json_end_object(&w);
    }
    tg_json_end_object(&w);
    while (json.length % 8 != 0 && !json.failed) tg_buf_putc(&json, ' ');
    uint8_t length[8];
    tg_put_u64(length, json.length);
    tg_status s = tg_buf_status(g->ctx, &json, path);
    if (s == TG_OK) s = tg_save_begin(g->ctx, path, save);
    if (s == TG_OK) s = tg_save_write(*save, length, sizeof length);
    if (s == TG_OK) s = tg_save_write(*save, json.data, json.length);
    tg_buf_deinit(&json);
    return s;
}

/* --------------------------------------------------------------------------------- config.json */

static void put_double(tg_json_writer *w, const char *key, double x) {
    tg_json_key(w, key);
    tg_json_put_double(w, x);
}

static void put_text(tg_json_writer *w, const char *key, const char *text) {
    tg_json_key(w, key);
    tg_json_put_string(w, text);
}

/* As a float, which is what GGUF keeps: a double would be written with digits that nobody chose. */
static void put_float(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f, const char *ours,
                      const char *theirs) {
    const tg_gguf_value *v = value(g, f, ours);
    if (!v) return;
    tg_json_key(w, theirs);
    tg_json_put_float(w, (float)v->real);
}

/* The table names a key twice if it is read from either of two of ours: the first that is there is
 * written. The size of the vocabulary is that of the table of embeddings, as a tokenizer may have
 * fewer tokens than rows. */
static void put_sizes(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f) {
    for (const tg_hf_size *s = f->sizes; s->theirs; s++) {
        const tg_gguf_value *v = value(g, f, s->ours);
        const bool again = s > f->sizes && strcmp(s->theirs, s[-1].theirs) == 0;
        if (!v || again || strcmp(s->theirs, "vocab_size") == 0) continue;
        tg_json_key(w, s->theirs);
        tg_json_put_int(w, v->whole);
    }
    const tg_gguf_tensor *table = tg_gguf_tensor_find(g, "token_embd.weight");
    tg_json_key(w, "vocab_size");
    tg_json_put_uint(w, table ? table->dim[1] : 0);
}

/* By the list of such layers, or by the rhythm: see model/families/qwen35.c. */
static bool is_recurrent(const tg_gguf *g, const tg_hf_family *f, int64_t layer) {
    const tg_gguf_value *list = value(g, f, "attention.recurrent_layers");
    const tg_gguf_value *every = value(g, f, "full_attention_interval");
    if (!list || list->type != TG_GGUF_ARRAY || (uint64_t)layer >= list->count)
        return (layer + 1) % (every && every->whole > 0 ? every->whole : 4) != 0;
    return list->element == TG_GGUF_BOOL ? list->elements[layer] != 0
                                         : tg_get_u32(list->elements + 4 * layer) != 0;
}

/* A number of key heads for each layer, where there is a list. */
static void put_kinds(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f) {
    const tg_gguf_value *kv = value(g, f, "attention.head_count_kv");
    const tg_gguf_value *layers = value(g, f, "block_count");
    const bool list = !f->recurrent && kv && kv->type == TG_GGUF_ARRAY;
    int64_t most = kv && !list ? kv->whole : 0;
    tg_json_key(w, "layer_types");
    tg_json_begin_array(w);
    for (int64_t i = 0; i < (list ? (int64_t)kv->count : layers ? layers->whole : 0); i++) {
        const int64_t n = list ? (int64_t)tg_get_u32(kv->elements + 4 * i) : most;
        if (n > most) most = n;
        const char *attends = f->attention_layer ? f->attention_layer : "full_attention";
        const bool other = f->recurrent ? is_recurrent(g, f, i) : list && n == 0;
        tg_json_put_string(w, other ? f->other_layer : attends);
    }
    tg_json_end_array(w);
    tg_json_key(w, "num_key_value_heads");
    tg_json_put_int(w, most);
}

static bool is_kind(const tg_gguf_value *kind, const char *name) {
    return kind && kind->text.n_bytes == strlen(name) &&
           memcmp(kind->text.bytes, name, kind->text.n_bytes) == 0;
}

void tg_hf_write_int(tg_json_writer *w, const char *key, int64_t x) {
    tg_json_key(w, key);
    tg_json_put_int(w, x);
}

/* The factors of a tensor as a list. */
static tg_status put_list(tg_json_writer *w, const tg_gguf *g, const char *key, int kind) {
    const tg_gguf_tensor *t = tg_gguf_tensor_find(g, tg_gguf_factors[kind]);
    if (!t)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: tensor %s is missing", g->path,
                       tg_gguf_factors[kind]);
    float *factors;
    TG_TRY(tg_gguf_new_floats(g, t, &factors));
    tg_json_key(w, key);
    tg_json_begin_array(w);
    for (uint64_t i = 0; i < t->elems; i++) tg_json_put_float(w, factors[i]);
    tg_json_end_array(w);
    tg_gguf_free_floats(g, t, factors);
    return TG_OK;
}

/* The original positions stand in the object and, as Phi's class has them, beside it. */
static tg_status put_stretched(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f,
                               bool yarn) {
    const tg_gguf_value *scale = value(g, f, "rope.scaling.attn_factor");
    const tg_gguf_value *factor = value(g, f, "rope.scaling.factor");
    const tg_gguf_value *original = value(g, f, "rope.scaling.original_context_length");
    if (!original) original = value(g, f, "context_length");
    if (!yarn && original) tg_hf_write_int(w, "original_max_position_embeddings", original->whole);
    tg_json_key(w, "rope_scaling");
    tg_json_begin_object(w);
    put_text(w, "rope_type", yarn ? "yarn" : "longrope");
    put_text(w, "type", yarn ? "yarn" : "longrope");
    if (original) tg_hf_write_int(w, "original_max_position_embeddings", original->whole);
    const double theirs = yarn && factor ? 1 + 0.1 * tg_log(factor->real) : 1;
    if (yarn && factor) put_double(w, "factor", factor->real);
    if (scale) put_double(w, "attention_factor", (double)(float)(scale->real * theirs));
    if (!yarn) {
        TG_TRY(put_list(w, g, "short_factor", TG_FACTORS_SHORT));
        TG_TRY(put_list(w, g, "long_factor", TG_FACTORS_LONG));
    }
    tg_json_end_object(w);
    return TG_OK;
}

/* Gemma 3's class has a key for the base of windows; OLMo 3's takes its own, whatever rope_theta
 * is.
 */
static tg_status put_local_rope(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f) {
    const tg_gguf_value *local = value(g, f, "rope.freq_base_swa");
    const tg_gguf_value *base = value(g, f, "rope.freq_base");
    if (!f->local_rope) return TG_OK;
    if (f->query_scalar || f->local_key) {
        const char *key = f->local_key ? f->local_key : "rope_local_base_freq";
        if (!local) put_double(w, key, f->local_base);
        put_float(w, g, f, "rope.freq_base_swa", key);
        return TG_OK;
    }
    if (!local) local = base;
    if (local && local->real == f->local_base) return TG_OK;
    return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                   "%s: safetensors: want windows that turn by %g, which is all that the "
                   "config.json of %s can say, have %g",
                   g->path, f->local_base, f->model_type, local ? local->real : 0);
}

/* Of each kind of layers its own rule. Factors that are 1 are of pairs that turn. */
static tg_status put_proportional(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f) {
    const tg_gguf_tensor *t = tg_gguf_tensor_find(g, ROPE_FREQS);
    double part = 1;
    if (t) {
        float *factors;
        TG_TRY(tg_gguf_new_floats(g, t, &factors));
        part = (double)tg_rope_proportional_find(factors, (size_t)t->elems) / (double)t->elems;
        tg_gguf_free_floats(g, t, factors);
    }
    tg_json_key(w, "rope_parameters");
    tg_json_begin_object(w);
    tg_json_key(w, "full_attention");
    tg_json_begin_object(w);
    put_text(w, "rope_type", "proportional");
    put_double(w, "partial_rotary_factor", part);
    put_float(w, g, f, "rope.freq_base", "rope_theta");
    tg_json_end_object(w);
    tg_json_key(w, "sliding_attention");
    tg_json_begin_object(w);
    put_text(w, "rope_type", "default");
    if (!value(g, f, "rope.freq_base_swa")) put_double(w, "rope_theta", f->local_base);
    put_float(w, g, f, "rope.freq_base_swa", "rope_theta");
    tg_json_end_object(w);
    tg_json_end_object(w);
    return TG_OK;
}

/* Nothing at all is written where positions are not scaled. Both names of the key: older libraries
 * look for "type". */
static tg_status put_rope(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f) {
    const tg_gguf_value *factor = value(g, f, "rope.scaling.factor");
    if (!factor) factor = value(g, f, "rope.scale_linear");
    tg_rope_llama3 rule;
    bool llama3;
    if (TG_NATIVE_PARTS && f->proportional > 0) return put_proportional(w, g, f);
    TG_TRY(find_llama3(g, f, &rule, &llama3));
    put_float(w, g, f, "rope.freq_base", f->base_key ? f->base_key : "rope_theta");
    TG_TRY(put_local_rope(w, g, f));
    const tg_gguf_value *kind = value(g, f, "rope.scaling.type");
    const bool off = is_kind(kind, "none"), yarn = is_kind(kind, "yarn");
    const tg_gguf_value *part = value(g, f, "rope.dimension_count");
    const tg_gguf_value *head = value(g, f, "attention.key_length");
    const tg_gguf_value *width = value(g, f, "embedding_length");
    const tg_gguf_value *heads = value(g, f, "attention.head_count");
    const double size = head ? head->real : width && heads ? width->real / heads->real : 0;
    if (f->part > 0 && part && size > 0 && (part->real < size || f->part < 1))
        put_double(w, "partial_rotary_factor", part->real / size);
    /* The whole head, which readers of the folder would not take it for. */
    if (f->part > 0 && f->part < 1 && !part) put_double(w, "partial_rotary_factor", 1);
    if (yarn || tg_gguf_tensor_find(g, tg_gguf_factors[TG_FACTORS_LONG]))
        return put_stretched(w, g, f, yarn);
    const bool linear = !llama3 && !off && factor && factor->real > 0 && factor->real != 1;
    if (!llama3 && !linear) return TG_OK;
    tg_json_key(w, "rope_scaling");
    tg_json_begin_object(w);
    put_text(w, "rope_type", llama3 ? "llama3" : "linear");
    put_text(w, "type", llama3 ? "llama3" : "linear");
    put_double(w, "factor", llama3 ? rule.factor : factor->real);
    if (llama3) {
        put_double(w, "low_freq_factor", rule.low);
        put_double(w, "high_freq_factor", rule.high);
        tg_json_key(w, "original_max_position_embeddings");
        tg_json_put_int(w, (int64_t)rule.original);
    }
    tg_json_end_object(w);
    return TG_OK;
}

/* Scores are divided by the root of this; where nothing is said, of the size of a head. */
static void put_windows(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f) {
    const tg_gguf_value *scale = value(g, f, "attention.scale");
    const tg_gguf_value *head = value(g, f, "attention.key_length");
    const double divisor = scale && scale->real > 0 ? 1 / (scale->real * scale->real)
                           : head                   ? (double)head->whole
                                                    : 256;
    if (f->query_scalar)
        put_double(w, "query_pre_attn_scalar", tg_floor(divisor * 1024 + 0.5) / 1024);
    const tg_gguf_value *period = value(g, f, "attention.sliding_window_pattern");
    int32_t every = period ? (int32_t)period->whole : 0;
    if (!period || (period->type == TG_GGUF_ARRAY &&
                    tg_gguf_get_period(g, period->key, period->count, &every) != TG_OK))
        return;
    tg_json_key(w, f->every_key ? f->every_key : "sliding_window_pattern");
    tg_json_put_int(w, every);
    const tg_gguf_value *layers = value(g, f, "block_count");
    if (!layers || every < 1) return;
    tg_json_key(w, "layer_types"); /* transformers reads the number of Gemma 3 alone */
    tg_json_begin_array(w);
    for (int64_t i = 0; i < layers->whole && i < 4096; i++)
        tg_json_put_string(w, (i + !f->first_sees_all) % every == 0 ? "full_attention"
                                                                    : "sliding_attention");
    tg_json_end_array(w);
}

/* null says that there is no such token, which is not what a missing key says: then a library takes
 * its own default for the class. */
static void put_id(tg_json_writer *w, const tg_gguf *g, const char *key, const char *theirs) {
    const tg_gguf_value *id = tg_gguf_find(g, key);
    tg_json_key(w, theirs);
    if (id)
        tg_json_put_int(w, id->whole);
    else
        tg_json_put_null(w);
}

/* Encoders have no use for padding here, but classes of transformers want a number. */
static void put_ids(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f) {
    put_id(w, g, "tokenizer.ggml.eos_token_id", "eos_token_id");
    put_id(w, g, "tokenizer.ggml.bos_token_id", "bos_token_id");
    if (f->encoder && !tg_gguf_find(g, "tokenizer.ggml.padding_token_id"))
        tg_hf_write_int(w, "pad_token_id", 0);
    else
        put_id(w, g, "tokenizer.ggml.padding_token_id", "pad_token_id");
}

/* Two keys say which layers have biases: what they cannot say is refused. Mistral's class has none,
 * Qwen 2's those of queries, keys and values, always. */
static tg_status put_biases(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f) {
    const bool in = tg_gguf_tensor_find(g, "blk.0.attn_q.bias") != NULL;
    const bool out = tg_gguf_tensor_find(g, "blk.0.attn_output.bias") != NULL;
    const bool mlp = tg_gguf_tensor_find(g, "blk.0.ffn_down.bias") != NULL;
    if (f->encoder || f->always_biases || strcmp(f->arch, "gpt2") == 0) return TG_OK;
    if (in != out || ((in || mlp) && !f->says_biases))
        return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                       "%s: safetensors: want biases that the config.json of %s can state: of "
                       "queries, keys, values and what leaves attention together, have others",
                       g->path, f->model_type);
    if (!f->says_biases) return TG_OK;
    tg_json_key(w, "attention_bias");
    tg_json_put_bool(w, in);
    tg_json_key(w, "mlp_bias");
    tg_json_put_bool(w, mlp);
    return TG_OK;
}

/* One label, and how rows are pooled for it. */
static void put_rank(tg_json_writer *w, const tg_gguf *g, const tg_hf_family *f) {
    const tg_gguf_value *modes = value(g, f, "pooling_modes");
    const bool cls = modes && modes->type == TG_GGUF_STRING && modes->text.n_bytes == 3;
    tg_json_key(w, "id2label");
    tg_json_begin_object(w);
    put_text(w, "0", "LABEL_0");
    tg_json_end_object(w);
    if (!f->rank_pooling) return;
    put_text(w, f->rank_pooling, cls ? "cls" : "mean");
    tg_json_key(w, "classifier_bias");
    tg_json_put_bool(w, tg_gguf_tensor_find(g, "cls.bias") != NULL);
}

tg_status tg_hf_put_config(const tg_gguf *g, const tg_hf_family *f, tg_dtype type, tg_buf *text) {
    tg_json_writer w;
    tg_json_writer_init(&w, text);
    tg_json_begin_object(&w);
    put_text(&w, "model_type", f->model_type);
    tg_json_key(&w, "architectures");
    tg_json_begin_array(&w);
    tg_json_put_string(&w, ranks(g, f) ? f->rank_class : f->class);
    tg_json_end_array(&w);
    if (ranks(g, f)) put_rank(&w, g, f);
    put_sizes(&w, g, f);
    put_float(&w, g, f, f->eps_ours, f->eps_theirs);
    if (f->other_layer) put_kinds(&w, g, f);
    if (f->write) f->write(&w, g);
    if (f->act_key)
        put_text(&w, f->act_key,
                 f->gelu_erf && value(g, f, "activation") ? f->gelu_erf : f->acts[0]);
    if (f->rope) TG_TRY(put_rope(&w, g, f));
    if (f->window_every) put_windows(&w, g, f);
    TG_TRY(put_biases(&w, g, f));
    tg_json_key(&w, "tie_word_embeddings");
    tg_json_put_bool(&w, !tg_gguf_tensor_find(g, "output.weight"));
    put_ids(&w, g, f);
    put_text(&w, "dtype", type == TG_F32 ? "float32" : type == TG_F16 ? "float16" : "bfloat16");
    tg_json_end_object(&w);
    return tg_buf_status(g->ctx, text, "config.json");
}

/* ------------------------------------------------------------------------- what stands beside it
 */

/* generation_config.json: where an answer ends, which may be at one of several ids, and how the
 * file wants tokens drawn. One end is a number there, several are a list. */
tg_status tg_hf_put_generation(const tg_gguf *g, const int32_t *ends, size_t n, tg_buf *text) {
    bool draws = false, greedy = false;
    tg_json_writer w;
    tg_json_writer_init(&w, text);
    tg_json_begin_object(&w);
    put_id(&w, g, "tokenizer.ggml.bos_token_id", "bos_token_id");
    tg_json_key(&w, "eos_token_id");
    if (n == 0) tg_json_put_null(&w);
    if (n > 1) tg_json_begin_array(&w);
    for (size_t i = 0; i < n; i++) tg_json_put_int(&w, ends[i]);
    if (n > 1) tg_json_end_array(&w);
    for (size_t i = 0; i < TG_HF_SAMPLING_KEYS; i++) {
        const tg_hf_sampling_key *k = &tg_hf_sampling_keys[i];
        const tg_gguf_value *v = tg_gguf_find(g, k->ours + 1);
        if (!v) continue;
        const bool likeliest = i == 0 && v->real == 0; /* a temperature that transformers refuses */
        greedy = greedy || likeliest;
        draws = true;
        if (likeliest) continue;
        tg_json_key(&w, k->theirs);
        if (k->whole)
            tg_json_put_int(&w, v->whole);
        else
            tg_json_put_float(&w, (float)v->real);
    }
    if (draws) {
        tg_json_key(&w, "do_sample");
        tg_json_put_bool(&w, !greedy);
    }
    tg_json_end_object(&w);
    return tg_buf_status(g->ctx, text, "generation_config.json");
}

/* 1_Pooling/config.json of an encoder, by which sentence-transformers makes one vector of a text's.
 * A way that it does not know leaves the text empty, and the folder without the file. */
tg_status tg_hf_put_pooling(const tg_gguf *g, const tg_hf_family *f, tg_buf *text) {
    const tg_gguf_value *type = value(g, f, "pooling_type"), *width;
    const tg_gguf_value *names = value(g, f, "pooling_modes");
    tg_pooling_ways ways = tg_pooling_of_type(type ? (int)type->whole : 0);
    const bool known = !names || (names->type == TG_GGUF_STRING &&
                                  tg_pooling_read(&ways, names->text.bytes, names->text.n_bytes));
    if (!known || ways.n == 0) return TG_OK;
    tg_json_writer w;
    tg_json_writer_init(&w, text);
    tg_json_begin_object(&w);
    width = value(g, f, "embedding_length");
    tg_json_key(&w, "word_embedding_dimension");
    tg_json_put_int(&w, width ? width->whole : 0);
    if (ways.n == 1) {
        /* Older keys: libraries of both kinds know them. */
        for (int i = 0; i < TG_POOLING_COUNT; i++) {
            tg_json_key(&w, tg_pooling_table[i].older);
            tg_json_put_bool(&w, ways.way[0] == i);
        }
    } else {
        tg_json_key(&w, "pooling_mode");
        tg_json_begin_array(&w);
        for (int32_t i = 0; i < ways.n; i++)
            tg_json_put_string(&w, tg_pooling_table[ways.way[i]].name);
        tg_json_end_array(&w);
    }
    tg_json_end_object(&w);
    return tg_buf_status(g->ctx, text, "1_Pooling/config.json");
}

/* In the order of computation. Vectors of length 1 are what is asked for here, too. */
tg_status tg_hf_put_modules(const tg_gguf *g, tg_buf *text) {
    static const struct {
        const char *path, *type, *tensor; /* tensor: there with it alone */
    } all[] = { { "", "Transformer", NULL },
                { "1_Pooling", "Pooling", NULL },
                { "2_Dense", "Dense", "dense_2.weight" },
                { "3_Dense", "Dense", "dense_3.weight" },
                { "4_Normalize", "Normalize", NULL } };
    int64_t n = 0;
    tg_json_writer w;
    tg_json_writer_init(&w, text);
    tg_json_begin_array(&w);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char name[64];
        if (all[i].tensor && !tg_gguf_tensor_find(g, all[i].tensor)) continue;
        tg_json_begin_object(&w);
        tg_hf_write_int(&w, "idx", n);
        snprintf(name, sizeof name, "%d", (int)n++);
        put_text(&w, "name", name);
        put_text(&w, "path", all[i].path);
        snprintf(name, sizeof name, "sentence_transformers.models.%s", all[i].type);
        put_text(&w, "type", name);
        tg_json_end_object(&w);
    }
    tg_json_end_array(&w);
    return tg_buf_status(g->ctx, text, "modules.json");
}

tg_status tg_hf_put_most_tokens(const tg_gguf *g, const tg_hf_family *f, tg_buf *text) {
    const tg_gguf_value *most = value(g, f, "embedding_tokens");
    if (!most) return TG_OK;
    tg_json_writer w;
    tg_json_writer_init(&w, text);
    tg_json_begin_object(&w);
    tg_hf_write_int(&w, "max_seq_length", most->whole);
    tg_json_end_object(&w);
    return tg_buf_status(g->ctx, text, "sentence_bert_config.json");
}

/* The one for every text is told by its name, which is that of the same words. */
static void put_prompt_list(tg_json_writer *w, const tg_json *prompts, const tg_gguf_value *own) {
    const char *name = NULL;
    tg_json_begin_object(w);
    tg_json_key(w, "prompts");
    tg_json_begin_object(w);
    for (const tg_json *v = prompts ? tg_json_first(prompts) : NULL; v; v = tg_json_next(v)) {
        if (tg_json_kind(v) != TG_JSON_STRING) continue;
        if (own && !name && v->length == own->text.n_bytes &&
            memcmp(v->u.text, own->text.bytes, v->length) == 0)
            name = v->key;
        tg_json_key(w, v->key);
        tg_json_put_string_n(w, v->u.text, v->length);
    }
    if (own && !name) {
        name = "default";
        tg_json_key(w, name);
        tg_json_put_string_n(w, own->text.bytes, own->text.n_bytes);
    }
    tg_json_end_object(w);
    tg_json_key(w, "default_prompt_name");
    if (name)
        tg_json_put_string(w, name);
    else
        tg_json_put_null(w);
    tg_json_end_object(w);
}

tg_status tg_hf_put_prompts(const tg_gguf *g, const tg_hf_family *f, tg_buf *text) {
    const tg_gguf_value *own = value(g, f, "embedding_prompt");
    const tg_gguf_value *list = value(g, f, "embedding_prompts");
    const tg_json *prompts = NULL;
    tg_json_writer w;
    tg_arena arena;
    if (!own && !list) return TG_OK;
    tg_arena_init(&arena, &g->ctx->mem);
    tg_status s = list ? tg_json_parse(g->ctx, &arena, list->key, list->text.bytes,
                                       list->text.n_bytes, NULL, &prompts)
                       : TG_OK;
    tg_json_writer_init(&w, text);
    if (s == TG_OK) put_prompt_list(&w, prompts, own);
    tg_arena_deinit(&arena);
    return s == TG_OK ? tg_buf_status(g->ctx, text, "config_sentence_transformers.json") : s;
}

tg_status tg_hf_put_dense(const tg_gguf *g, uint64_t in, uint64_t out, tg_buf *text) {
    tg_json_writer w;
    tg_json_writer_init(&w, text);
    tg_json_begin_object(&w);
    tg_hf_write_int(&w, "in_features", (int64_t)in);
    tg_hf_write_int(&w, "out_features", (int64_t)out);
    tg_json_key(&w, "bias");
    tg_json_put_bool(&w, false);
    put_text(&w, "activation_function", "torch.nn.modules.linear.Identity");
    tg_json_end_object(&w);
    return tg_buf_status(g->ctx, text, "config.json of a matrix");
}
