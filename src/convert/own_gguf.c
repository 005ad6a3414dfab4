/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_gguf.c - a trained model as llama.cpp has it: names, sizes, tokenizer; the byte GPT as a
 * GPT-2.
 *
 * The byte GPT's tensors are read as f32 in the shapes that transformers' GPT-2 has
 * (io/safetensors/safetensors.h): q, k and v side by side, linear layers as [in, out], which gguf.h
 * calls turned. Where tokens are bytes, the vocabulary is GPT-2's alphabet in the order of its
 * bytes, and there is nothing to merge; a model with a vocabulary has it, and all that stood in the
 * file that it began with, in its keys (load/keys.h).
 *
 *     tensors     of the byte GPT         add_tensors: renamed, parts put side by side
 *                 of another family       add_as_they_are
 *     metadata    the run keeps keys      put_keys: those, behind put_head if they lack the sizes
 *                 it keeps none           put_bytes: put_head, and 256 tokens
 *
 * Nothing is written: a tg_gguf comes out, and whoever writes (gguf_out.c, io/gguf/gguf_writer.c)
 * asks it as any other file. Strings and tables are in its arena; of the tensors one at a time is
 * in memory, made by make() when its rows are asked for.
 *
 * Keys of sizes are put where they are read: by model/metadata_put.c and by the families.
 */
#include "convert/own_gguf.h"

#include "io/gguf/gguf_writer.h"
#include "io/hf/hf.h"
#include "io/rope_proportional.h"
#include "io/safetensors/safetensors.h"
#include "load/keys.h"
#include "model/metadata_put.h"
#include "tok/tok_inside.h"

/* Beginnings of names, with the dot: weight or bias follows. Names of a layer lack theirs
 * ("h.3."). */
static const struct {
    const char *theirs, *ours;
} names[] = {
    { "wte.", "token_embd." },          { "wpe.", "position_embd." },
    { "ln_f.", "output_norm." },        { "ln_1.", "attn_norm." },
    { "ln_2.", "ffn_norm." },           { "attn.c_attn.", "attn_qkv." },
    { "attn.c_proj.", "attn_output." }, { "mlp.c_fc.", "ffn_up." },
    { "mlp.c_proj.", "ffn_down." },
};

/* "h.3.ln_1.bias" to "blk.3.attn_norm.bias". name is one of ours (tg_gpt2_tensor_at), so it is
 * well formed. NULL: no memory. */
static const char *translate(tg_arena *arena, const char *name) {
    const char *rest = name;
    int layer = -1;
    if (strncmp(name, "h.", 2) == 0) {
        layer = 0;
        for (rest = name + 2; *rest != '.'; rest++) layer = 10 * layer + (*rest - '0');
        rest++;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t n = strlen(names[i].theirs);
        if (strncmp(rest, names[i].theirs, n) != 0) continue;
        return layer < 0 ? tg_arena_sprintf(arena, "%s%s", names[i].ours, rest + n)
                         : tg_arena_sprintf(arena, "blk.%d.%s%s", layer, names[i].ours, rest + n);
    }
    return NULL;
}

/*
 * A tensor of several of ours: row r of each stands beside the others' in row r. Weights and
 * biases alternate in the manifest, so parts are every second entry. A row at a time is read,
 * since out is not contiguous for a part.
 *
 *     out   | q row 0 | k row 0 | v row 0 | q row 1 | ..        width = cols * n_parts
 */
static tg_status read_parts(tg_file *f, const tg_gpt2_tensor *t, float *out) {
    const uint64_t rows = t->n_dims == 2 ? t->dim[0] : 1;
    const uint64_t width = t->dim[t->n_dims - 1], cols = width / t->n_parts;
    for (size_t p = 0; p < t->n_parts; p++) {
        const tg_file_tensor *from = tg_file_find(f, f->manifest.entry[t->first + 2 * p].name);
        TG_ASSERT(from);
        for (uint64_t r = 0; r < rows; r++)
            TG_TRY(tg_file_read_f32(f, from, out + r * width + p * cols, r * cols, (size_t)cols));
    }
    return TG_OK;
}

static bool is_renamed(const tg_file *f) { return tg_family_of(&f->config)->gguf; }

/* Tensor `number` of transformers' GPT-2, or of the file. */
static tg_status make(tg_gguf_maker *maker, size_t number) {
    const tg_own_run *run = (const tg_own_run *)maker; /* its first member */
    tg_file *f = run->file;
    if (is_renamed(f)) {
        const tg_gpt2_tensor t = tg_gpt2_tensor_at(&f->manifest, number);
        return read_parts(f, &t, run->tensor.data);
    }
    const tg_manifest_entry *e = &f->manifest.entry[number];
    const tg_file_tensor *from = tg_file_find(f, e->name);
    TG_ASSERT(from);
    return tg_file_read_f32(f, from, run->tensor.data, 0, (size_t)e->elems);
}

/* Room for n tensors, of which the largest has so many elements; sizes were checked as the file was
 * opened. */
static tg_status make_tables(tg_own_run *run, tg_gguf *g, size_t n, uint64_t largest,
                             tg_gguf_tensor **tensors, tg_gguf_place **places) {
    TG_TRY(tg_block_new(g->ctx, (size_t)largest * sizeof(float), &run->tensor));
    run->maker.make = make;
    *tensors = tg_arena_array(&g->arena, n, sizeof **tensors);
    *places = tg_arena_array(&g->arena, n, sizeof **places);
    return *tensors && *places ? TG_OK : tg_fail_memory(g->ctx, "table of tensors", n);
}

/* A tensor whose elements lie at `at`: name in the arena, or NULL if there was no memory for it;
 * rows 1 of a vector; turned: columns are stored as rows. */
static tg_status set_tensor(tg_gguf *g, const char *name, uint32_t n_dims, uint64_t rows,
                            uint64_t cols, bool turned, const float *at, tg_gguf_place *place,
                            tg_gguf_tensor *t) {
    const uint64_t elems = rows * cols;
    tg_reader_open_memory(g->ctx, g->path, at, (size_t)elems * sizeof *at, &place->reader);
    place->turned = turned;
    *t = (tg_gguf_tensor) { .name = name,
                            .type = TG_F32,
                            .n_dims = n_dims,
                            .dim = { turned ? rows : cols, turned ? cols : rows, 1, 1 },
                            .elems = elems,
                            .bytes = elems * sizeof *at,
                            .place = place };
    return name ? TG_OK : tg_fail_memory(g->ctx, "name of a tensor", 64);
}

/* In the order of transformers. */
static tg_status add_tensors(tg_own_run *run, tg_gguf *g, tg_gguf_tensor **out, size_t *n) {
    const tg_file *f = run->file;
    tg_gguf_place *places;
    uint64_t largest = 0;
    *n = tg_gpt2_tensors(&f->config);
    for (size_t i = 0; i < *n; i++) {
        const tg_gpt2_tensor t = tg_gpt2_tensor_at(&f->manifest, i);
        largest = t.dim[0] * t.dim[1] > largest ? t.dim[0] * t.dim[1] : largest;
    }
    TG_TRY(make_tables(run, g, *n, largest, out, &places));
    for (size_t i = 0; i < *n; i++) {
        const tg_gpt2_tensor t = tg_gpt2_tensor_at(&f->manifest, i);
        const bool vector = t.n_dims == 1;
        places[i] = (tg_gguf_place) { .maker = &run->maker, .number = i };
        /* The two embeddings are rows of tokens and positions; what else has two dimensions is a
         * linear layer. */
        TG_TRY(set_tensor(g, translate(&g->arena, t.name), t.n_dims, vector ? 1 : t.dim[0],
                          vector ? t.dim[0] : t.dim[1], !vector && t.name[0] == 'h',
                          run->tensor.data, &places[i], &(*out)[i]));
    }
    return TG_OK;
}

/* Whether a tensor is the matrices of all experts: its name ends as that of a want with this
 * flag does. */
static bool is_of_experts(const tg_model_config *c, const char *name) {
    const tg_family *family = tg_family_of(c);
    for (size_t i = 0; i < family->n_wants; i++) {
        const tg_want *w = &family->wants[i];
        const char *at = strstr(name, w->name + strlen("blk.%d"));
        if ((w->flags & TG_WANT_EXPERTS) && at && strcmp(at, w->name + strlen("blk.%d")) == 0)
            return true;
    }
    return false;
}

/* Those of a family whose names are GGUF's: rows of queries and keys lie plain, as transformers
 * has them, and gguf_out.c pairs them for llama.cpp. Experts, one below the other here, get
 * GGUF's third dimension. */
static tg_status add_as_they_are(tg_own_run *run, tg_gguf *g, tg_gguf_tensor **out, size_t *n) {
    const tg_file *f = run->file;
    tg_gguf_place *places;
    uint64_t largest = 0;
    *n = f->manifest.n;
    g->heads_plain = true;
    for (size_t i = 0; i < *n; i++)
        largest = f->manifest.entry[i].elems > largest ? f->manifest.entry[i].elems : largest;
    TG_TRY(make_tables(run, g, *n, largest, out, &places));
    for (size_t i = 0; i < *n; i++) {
        const tg_manifest_entry *e = &f->manifest.entry[i];
        const bool vector = e->n_dims == 1;
        places[i] = (tg_gguf_place) { .maker = &run->maker, .number = i };
        TG_TRY(set_tensor(g, tg_arena_strdup(&g->arena, e->name), (uint32_t)e->n_dims,
                          vector ? 1 : e->dim[0], vector ? e->dim[0] : e->dim[1], false,
                          run->tensor.data, &places[i], &(*out)[i]));
        if (is_of_experts(&f->config, e->name)) {
            (*out)[i].n_dims = 3;
            (*out)[i].dim[1] /= (uint64_t)f->config.experts;
            (*out)[i].dim[2] = (uint64_t)f->config.experts;
        }
    }
    return TG_OK;
}

/* ------------------------------------------------------------------------------------- metadata */

static tg_gguf_value whole(const char *key, int64_t x) {
    return (tg_gguf_value) { .key = key, .type = TG_GGUF_U32, .whole = x, .real = (double)x };
}
static tg_gguf_value text(const char *key, const char *s) {
    return (tg_gguf_value) { .key = key, .type = TG_GGUF_STRING, .text = { s, strlen(s) } };
}
/* The elements stay where the buffer has them: callers that free it put a copy in their place. */
static tg_gguf_value array(const char *key, tg_gguf_type element, size_t count, const tg_buf *b) {
    return (tg_gguf_value) { .key = key,
                             .type = TG_GGUF_ARRAY,
                             .element = element,
                             .count = count,
                             .elements = (const uint8_t *)tg_buf_text(b),
                             .elements_bytes = b->length };
}

/* A byte that no text has begins and ends texts: without one, readers would take GPT-2's own
 * number, which lies beyond this vocabulary. */
enum { N_VALUES = TG_METADATA_MAX + 10, NOT_IN_TEXTS = 0 };

/* What the model is, but for its vocabulary. */
static tg_status put_head(tg_gguf *g, const tg_model_config *c, tg_gguf_value *v, size_t *n) {
    const tg_family *family = tg_family_of(c);
    tg_metadata m = { .arena = &g->arena,
                      .c = c,
                      .arch = family->gguf ? family->gguf : family->name,
                      .value = v,
                      .n = 2 };
    v[0] = text("general.architecture", m.arch);
    v[1] = text("general.name", "a model of tinygpt");
    tg_config_put(&m);
    *n = m.n;
    return m.failed ? tg_fail_memory(g->ctx, "metadata", N_VALUES * sizeof *v) : TG_OK;
}

/* The keys of a model that began with a file say all of it; those of a vocabulary alone go
 * behind the head. The factors of frequencies are a tensor in GGUF, so they are taken out and
 * handed over in factors. */
static tg_status put_keys(const tg_file *f, tg_gguf *g, const tg_model_config *c,
                          tg_gguf_value **out, size_t *n,
                          const tg_gguf_value *factors[TG_FACTORS]) {
    tg_reader r;
    tg_gguf_value *keys;
    size_t n_keys, i = 0;
    bool whole = false;
    uint8_t *copy = tg_arena_alloc(&g->arena, f->keys_bytes); /* the file will be closed */
    if (!copy) return tg_fail_memory(g->ctx, "metadata", f->keys_bytes);
    memcpy(copy, f->keys, f->keys_bytes);
    tg_reader_open_memory(g->ctx, g->path, copy, f->keys_bytes, &r);
    TG_TRY(tg_gguf_read_values(g, &r, &keys, &n_keys));
    tg_gguf_value *v = *out = tg_arena_array(&g->arena, N_VALUES + n_keys, sizeof *v);
    if (!v) return tg_fail_memory(g->ctx, "metadata", (N_VALUES + n_keys) * sizeof *v);
    for (size_t k = 0; k < n_keys; k++)
        whole = whole || strcmp(keys[k].key, "general.architecture") == 0;
    if (!whole) TG_TRY(put_head(g, c, v, &i));
    for (size_t k = 0; k < n_keys; k++) {
        if (strcmp(keys[k].key, TG_GGUF_TOKENIZER_JSON) == 0) {
            g->tokenizer_json = keys[k].text.bytes;
            g->tokenizer_bytes = keys[k].text.n_bytes;
        }
        size_t kind = 0;
        while (kind < TG_FACTORS && strcmp(keys[k].key, tg_gguf_factors[kind]) != 0) kind++;
        if (kind < TG_FACTORS)
            factors[kind] = &keys[k];
        else
            v[i++] = keys[k];
    }
    *n = i;
    return TG_OK;
}

/* 256 tokens, GPT-2's letters for bytes 0..255, all normal; no merges; no token at the
 * beginning. */
static tg_status put_bytes(tg_gguf *g, const tg_model_config *c, tg_gguf_value **out, size_t *n) {
    tg_buf tokens, types;
    tg_gguf_value *v = *out = tg_arena_array(&g->arena, N_VALUES, sizeof *v);
    if (!v) return tg_fail_memory(g->ctx, "metadata", N_VALUES * sizeof *v);
    tg_buf_init(&tokens, &g->ctx->mem);
    tg_buf_init(&types, &g->ctx->mem);
    for (int b = 0; b < 256; b++) {
        char utf8[4];
        uint8_t type[4];
        tg_gguf_add_string(&tokens, utf8, tg_uc_put(tg_alphabet_char((uint8_t)b), utf8));
        tg_put_u32(type, TG_TOK_NORMAL);
        tg_buf_append(&types, type, sizeof type);
    }
    char *kept = tg_arena_alloc(&g->arena, tokens.length + types.length);
    tg_status s = tg_buf_status(g->ctx, &tokens, "vocabulary");
    if (s == TG_OK) s = tg_buf_status(g->ctx, &types, "vocabulary");
    if (s == TG_OK && !kept) s = tg_fail_memory(g->ctx, "vocabulary", tokens.length);
    size_t i = 0;
    if (s == TG_OK) s = put_head(g, c, v, &i);
    if (s == TG_OK) {
        memcpy(kept, tokens.data, tokens.length);
        memcpy(kept + tokens.length, types.data, types.length);
        v[i++] = text("tokenizer.ggml.model", "gpt2");
        v[i++] = text("tokenizer.ggml.pre", "gpt-2");
        v[i] = array("tokenizer.ggml.tokens", TG_GGUF_STRING, 256, &tokens);
        v[i++].elements = (const uint8_t *)kept;
        v[i] = array("tokenizer.ggml.token_type", TG_GGUF_I32, 256, &types);
        v[i++].elements = (const uint8_t *)kept + tokens.length;
        tg_buf none;
        tg_buf_init(&none, &g->ctx->mem);
        v[i++] = array("tokenizer.ggml.merges", TG_GGUF_STRING, 0, &none);
        v[i++] = whole("tokenizer.ggml.bos_token_id", NOT_IN_TEXTS);
        v[i++] = whole("tokenizer.ggml.eos_token_id", NOT_IN_TEXTS);
        v[i] = (tg_gguf_value) { .key = "tokenizer.ggml.add_bos_token", .type = TG_GGUF_BOOL };
        i++;
        *n = i;
    }
    tg_buf_deinit(&tokens);
    tg_buf_deinit(&types);
    return s;
}

/* One more tensor, whose bytes are the array's. The table is copied, since an arena's array
 * cannot grow. It is named like its key. */
static tg_status add_factors(tg_gguf *g, const tg_gguf_value *factors, tg_gguf_tensor **tensors,
                             size_t *n) {
    tg_gguf_tensor *all = tg_arena_array(&g->arena, *n + 1, sizeof *all);
    tg_gguf_place *place = tg_arena_alloc(&g->arena, sizeof *place);
    if (!all || !place) return tg_fail_memory(g->ctx, "table of tensors", *n + 1);
    memcpy(all, *tensors, *n * sizeof *all);
    *tensors = all;
    return set_tensor(g, factors->key, 1, 1, factors->count, false,
                      (const float *)(const void *)factors->elements, place, &all[(*n)++]);
}

/* Of a fresh model a part of whose heads turns within the whole one: what a file of GGUF has it by.
 * *out stays where there is no such part. */
static tg_status make_factors(tg_gguf *g, const tg_model_config *c, const tg_gguf_value **out) {
    if (!tg_turns_in_proportion(c) || c->rope_size == 0 || *out) return TG_OK;
    const size_t n = (size_t)c->head_size / 2;
    tg_gguf_value *v = tg_arena_alloc(&g->arena, sizeof *v);
    float *factors = tg_arena_array(&g->arena, n, sizeof *factors);
    if (!v || !factors) return tg_fail_memory(g->ctx, "frequencies", n * sizeof *factors);
    tg_rope_proportional_fill(factors, n, (size_t)c->rope_size / 2);
    *v = (tg_gguf_value) { .key = tg_gguf_factors[TG_FACTORS_LLAMA3],
                           .count = n,
                           .elements = (const uint8_t *)factors };
    *out = v;
    return TG_OK;
}

/* Files of the byte GPT do not state what it has by definition, and GGUF must: so its sizes are
 * completed. */
static tg_status fill(tg_own_run *run, tg_gguf *g, bool metadata_alone) {
    const tg_file *f = run->file;
    const tg_gguf_value *factors[TG_FACTORS] = { NULL };
    tg_gguf_value *values = NULL;
    tg_gguf_tensor *tensors = NULL;
    size_t n_values = 0, n_tensors = 0;
    tg_model_config c = f->config;
    TG_TRY(tg_config_complete(g->ctx, g->path, &c));
    if (!metadata_alone)
        TG_TRY((is_renamed(f) ? add_tensors : add_as_they_are)(run, g, &tensors, &n_tensors));
    TG_TRY(f->keys ? put_keys(f, g, &c, &values, &n_values, factors)
                   : put_bytes(g, &c, &values, &n_values));
    TG_TRY(make_factors(g, &c, &factors[TG_FACTORS_LLAMA3]));
    for (size_t i = 0; i < TG_FACTORS; i++)
        if (!metadata_alone && factors[i]) TG_TRY(add_factors(g, factors[i], &tensors, &n_tensors));
    return tg_gguf_set_tables(g, values, n_values, tensors, n_tensors);
}

void tg_own_run_close(tg_own_run *run) {
    tg_file_close(run->file);
    tg_block_free(&run->tensor);
    *run = (tg_own_run) { .file = NULL };
}

/* run NULL: metadata alone, and the file is closed again. */
tg_status tg_own_gguf(tg_ctx *ctx, const char *path, tg_own_run *run, tg_gguf *out) {
    tg_own_run own, *r = run ? run : &own;
    *out = (tg_gguf) { .ctx = ctx, .path = path, .version = 3, .n_files = 1 };
    *r = (tg_own_run) { .file = NULL };
    TG_TRY(tg_file_open(ctx, path, &r->file));
    tg_arena_init(&out->arena, &ctx->mem);
    out->total_bytes = r->file->total_bytes;
    const tg_status s = fill(r, out, !run);
    if (s != TG_OK) tg_gguf_close(out);
    if (s != TG_OK || !run) tg_own_run_close(r);
    return s;
}

tg_status tg_any_gguf(tg_ctx *ctx, const char *path, char folder[TG_GGUF_PATH_BYTES],
                      tg_own_run *run, tg_gguf *out) {
    bool takes;
    TG_TRY(tg_gguf_takes(ctx, path, folder, &takes));
    return takes ? tg_gguf_open_any(ctx, folder, out) : tg_own_gguf(ctx, path, run, out);
}
