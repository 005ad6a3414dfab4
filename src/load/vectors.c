/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vectors.c - what a graph reads beside the tensors of its model, and no file has as it is wanted:
 *
 *   rope.0 .. rope.2  [R/2] frequencies of rotary positions, by the number of their table
 *   no_shift          [C] zeros, of layer norms without a shift
 *   no_gain.D         [D] ones, of norms of values, by the sizes of heads that layers have
 *   ..biases          biases of one product side by side, where their matrices are states of their
 *                     own; in a flat array they lie so already (model/layout.h)
 *   cls..             the head of a reranker as floats, for engine/rank.c; no graph reads it
 */
#include "load/weights.h"

static tg_status add(tg_model *m, const char *name, size_t n, float **out) {
    tg_vector *v = &m->vectors[m->n_vectors];
    v->bytes = n * sizeof(float);
    v->data = tg_arena_array(&m->arena, n, sizeof(float));
    if (!v->data) return tg_fail_memory(&m->ctx->err, name, v->bytes);
    snprintf(v->name, sizeof v->name, "%s", name);
    m->n_vectors++;
    *out = v->data;
    return TG_OK;
}

/* A tensor of the file, n elements of any type. */
static tg_status read_floats(tg_model *m, const char *name, size_t n, float *out, bool *there) {
    tg_ctx *err = &m->ctx->err;
    const tg_gguf_tensor *t = m->metadata ? tg_gguf_tensor_find(m->metadata, name) : NULL;
    *there = t != NULL;
    if (!t) return TG_OK;
    if (t->elems != n)
        return tg_fail(err, TG_E_SHAPE, "%s: tensor %s: want %zu, have %" PRIu64, m->metadata->path,
                       t->name, n, t->elems);
    tg_block buffer = { 0 };
    tg_status s = tg_block_new(err, (size_t)t->bytes, &buffer);
    if (s == TG_OK) s = tg_gguf_read_floats(m->metadata, t, buffer.data, out);
    tg_block_free(&buffer);
    return s;
}

/* Factors of frequencies are a tensor of a file, and a value of the metadata of a trained model. */
static tg_status read_factors(tg_model *m, const char *name, size_t half, float *out, bool *there) {
    if (m->keys) return tg_keys_factors(m->keys, name, half, out, there);
    return read_floats(m, name, half, out, there);
}

/* The factors of a table of frequencies: none are for layers with a window. */
static const char *factors_of(const tg_model_config *c, int table) {
    return table == TG_FREQ_LONG ? tg_gguf_factors[TG_FACTORS_LONG]
           : table == TG_FREQ_WINDOW
               ? NULL
               : tg_gguf_factors[tg_config_longrope(c) ? TG_FACTORS_SHORT : TG_FACTORS_LLAMA3];
}

static tg_status add_frequencies(tg_model *m) {
    const tg_model_config *c = &m->layout.config;
    const size_t most = tg_config_turned(c, TG_FREQ_ALL) / 2;
    float *factors = tg_arena_array(&m->arena, most + 1, sizeof *factors), *freq = NULL;
    if (!factors) return tg_fail_memory(&m->ctx->err, "frequencies", most * sizeof *factors);
    for (int table = 0; table < TG_FREQ_TABLES; table++) {
        const size_t half = tg_config_turned(c, table) / 2;
        char name[32];
        bool there = false;
        const char *tensor = factors_of(c, table);
        if (table == TG_FREQ_LONG && !tg_config_longrope(c)) continue;
        if (tensor) TG_TRY(read_factors(m, tensor, half, factors, &there));
        snprintf(name, sizeof name, TG_FREQ_NAME, table);
        TG_TRY(add(m, name, half, &freq));
        tg_config_freq(c, table, there ? factors : NULL, freq);
    }
    return TG_OK;
}

/* In the order of the rows that they belong to. */
static tg_status add_biases(tg_model *m, const char *role, int layer) {
    const size_t head_size = (size_t)m->layout.config.head_size;
    size_t n = 0, parts = 0;
    char name[64], of_biases[64];
    float *all = NULL;
    snprintf(of_biases, sizeof of_biases, "%s.bias", role);
    for (const tg_tensor *t; (t = tg_tensors_find(&m->table, of_biases, layer, parts)); parts++)
        n += t->type.dim[0];
    if (parts < 2) return TG_OK;
    snprintf(name, sizeof name, TG_BIASES_NAME, layer, role);
    TG_TRY(add(m, name, n, &all));
    for (size_t i = 0; i < parts; i++) {
        const tg_tensor *t = tg_tensors_find(&m->table, of_biases, layer, i);
        const float *from = (const float *)(const void *)(m->packed + t->offset_bytes);
        for (size_t k = 0; k < t->type.dim[0]; k++)
            *all++ = from[t->pairs ? tg_row_paired(k, head_size) : k];
    }
    return TG_OK;
}

/* Of a file that has a classifier, what is there of the head. */
static tg_status add_head(tg_model *m) {
    static const char *const names[TG_RANK_TENSORS] = { "cls.weight", "cls.bias", "cls.norm.weight",
                                                        "cls.output.weight", "cls.output.bias" };
    if (tg_family_of(&m->layout.config)->rank == TG_RANK_NONE || m->keys || !m->metadata ||
        !tg_gguf_tensor_find(m->metadata, "cls.output.weight"))
        return TG_OK;
    for (size_t i = 0; i < TG_RANK_TENSORS; i++) {
        const tg_gguf_tensor *t = tg_gguf_tensor_find(m->metadata, names[i]);
        float *out = NULL;
        bool there;
        if (!t) continue;
        TG_TRY(add(m, names[i], (size_t)t->elems, &out));
        TG_TRY(read_floats(m, names[i], (size_t)t->elems, out, &there));
    }
    return TG_OK;
}

const tg_vector *tg_weights_vector(const tg_model *m, const char *name) {
    for (size_t i = 0; i < m->n_vectors; i++)
        if (strcmp(m->vectors[i].name, name) == 0) return &m->vectors[i];
    return NULL;
}

/* Values have a norm in families of layers that differ. */
static tg_status add_gains(tg_model *m) {
    const tg_model_config *c = &m->layout.config;
    const int32_t sizes[] = { c->head_size, c->window_head_size };
    for (int k = 0; k < 2 && tg_differs_by_layer(c); k++) {
        char name[32];
        float *ones = NULL;
        snprintf(name, sizeof name, TG_NO_GAIN_NAME, (int)sizes[k]);
        if (sizes[k] == 0 || tg_weights_vector(m, name)) continue;
        TG_TRY(add(m, name, (size_t)sizes[k], &ones));
        for (int32_t i = 0; i < sizes[k]; i++) ones[i] = 1;
    }
    return TG_OK;
}

tg_status tg_weights_make_vectors(tg_model *m) {
    const tg_model_config *c = &m->layout.config;
    const size_t most = TG_FREQ_TABLES + 3 + TG_RANK_TENSORS + 3 * (size_t)c->layers;
    float *zeros = NULL;
    m->vectors = tg_arena_array(&m->arena, most, sizeof *m->vectors);
    if (!m->vectors)
        return tg_fail_memory(&m->ctx->err, "table of vectors", most * sizeof *m->vectors);
    TG_TRY(add_frequencies(m));
    if (tg_family_of(c)->layer_norms) {
        TG_TRY(add(m, TG_NO_SHIFT_NAME, (size_t)c->width, &zeros));
        memset(zeros, 0, (size_t)c->width * sizeof *zeros);
    }
    TG_TRY(add_gains(m));
    TG_TRY(add_head(m));
    for (int layer = 0; layer < c->layers; layer++) {
        TG_TRY(add_biases(m, "attn_qkv", layer));
        TG_TRY(add_biases(m, "ffn_gate_up", layer));
        TG_TRY(add_biases(m, "ssm_heads", layer));
    }
    return TG_OK;
}
