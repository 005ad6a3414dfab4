/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_embed.c - what sentence-transformers have around a model, as the metadata of a GGUF file.
 *
 *     modules.json                         what a text's vector goes through, in this order
 *     1_Pooling/config.json                pooling_type, or pooling_modes
 *     2_Dense/, 3_Dense/config.json        dense_N_feat_in and _out; hf.c opens the matrices
 *     sentence_bert_config.json            embedding_tokens
 *     config_sentence_transformers.json    embedding_prompt; embedding_prompts, which have names
 *
 * Begin with tg_hf_put_embedding, last in this file; hf_writer.c is the way back.
 */
#include "io/hf/hf.h"

#include "io/pooling.h"

#include "base/str.h"

/* A member that counts tokens; 0: there is none, or, where that is endless, a number beyond all
 * counting. transformers writes 1e30 for a tokenizer without a limit. */
static tg_status count_of(tg_hf_embedding *o, const char *file, const tg_json *config,
                          const char *key, bool endless, int64_t *out) {
    const tg_json *v = config ? tg_json_get(config, key) : NULL;
    double real = 0;
    *out = 0;
    if (!v || tg_json_kind(v) == TG_JSON_NULL) return TG_OK;
    const bool number = tg_json_kind(v) == TG_JSON_NUMBER;
    if (endless && number && tg_json_double(NULL, v, &real) == TG_OK && real > (double)INT32_MAX)
        return TG_OK;
    if (number && tg_json_int64(NULL, v, out) == TG_OK && *out > 0 && *out <= INT32_MAX)
        return TG_OK;
    return tg_fail(o->g->ctx, TG_E_FORMAT, "%s/%s: %s: want a number of tokens, have %s",
                   o->g->path, file, key, TG_JSON_SHOWN(v));
}

/* How many tokens of a text sentence-transformers looks at: what it says itself, or as much as
 * the tokenizer is made for. Without the first file it is no folder of sentence-transformers,
 * and the model's context is the limit. */
static tg_status put_most_tokens(tg_hf_embedding *o, tg_hf_values *m) {
    static const char own[] = "sentence_bert_config.json", tok[] = "tokenizer_config.json";
    const tg_json *config;
    int64_t most = 0;
    TG_TRY(tg_hf_read_json(o->g, o->folder, own, &config));
    if (!config) return TG_OK;
    TG_TRY(count_of(o, own, config, "max_seq_length", false, &most));
    if (most == 0) {
        TG_TRY(tg_hf_read_json(o->g, o->folder, tok, &config));
        TG_TRY(count_of(o, tok, config, "model_max_length", true, &most));
    }
    if (most > 0) tg_hf_put_int(m, "embedding_tokens", most);
    return TG_OK;
}

/* What sentence-transformers puts in front of every text, unless it is told another thing. */
static tg_status put_prompt(tg_hf_embedding *o, tg_hf_values *m, bool *there) {
    const tg_json *config, *prompts, *name, *text = NULL;
    TG_TRY(tg_hf_read_json(o->g, o->folder, "config_sentence_transformers.json", &config));
    name = config ? tg_json_get(config, "default_prompt_name") : NULL;
    prompts = config ? tg_json_get(config, "prompts") : NULL;
    if (!name || tg_json_kind(name) != TG_JSON_STRING) return TG_OK;
    if (prompts && tg_json_kind(prompts) == TG_JSON_OBJECT)
        text = tg_json_get(prompts, name->u.text);
    if (!text || tg_json_kind(text) != TG_JSON_STRING)
        return tg_fail(o->g->ctx, TG_E_FORMAT,
                       "%s/config_sentence_transformers.json: default_prompt_name: want one of "
                       "prompts, have %s",
                       o->g->path, TG_JSON_SHOWN(name));
    *there = text->length > 0;
    if (*there) tg_hf_put_text(m, "embedding_prompt", text->u.text, text->length);
    return TG_OK;
}

/* The prompts that have names, for who asks for one. */
static tg_status put_prompts(tg_hf_embedding *o, tg_hf_values *m) {
    const tg_json *config, *prompts;
    TG_TRY(tg_hf_read_json(o->g, o->folder, "config_sentence_transformers.json", &config));
    prompts = config ? tg_json_get(config, "prompts") : NULL;
    if (!prompts || tg_json_kind(prompts) != TG_JSON_OBJECT || prompts->count == 0) return TG_OK;
    tg_buf text;
    tg_json_writer w;
    tg_buf_init(&text, &o->g->ctx->mem);
    tg_json_writer_init(&w, &text);
    tg_json_begin_object(&w);
    for (const tg_json *v = tg_json_first(prompts); v; v = tg_json_next(v)) {
        if (tg_json_kind(v) != TG_JSON_STRING || strlen(v->key) != v->key_length) continue;
        tg_json_key(&w, v->key);
        tg_json_put_string_n(&w, v->u.text, v->length);
    }
    tg_json_end_object(&w);
    const tg_status s = tg_buf_status(o->g->ctx, &text, "embedding_prompts");
    if (s == TG_OK) tg_hf_put_text(m, "embedding_prompts", text.data, text.length);
    tg_buf_deinit(&text);
    return s;
}

/* A matrix that a text's vector goes through, of the folders whose names the family knows. A bias
 * or a function behind it is not computed here. GGUF has its sizes. */
static tg_status put_dense(tg_hf_embedding *o, tg_hf_values *m, const char *folder) {
    static const char *const sides[] = { "in_features", "out_features" };
    static const char *const keys[] = { "dense_2_feat_in", "dense_2_feat_out", "dense_3_feat_in",
                                        "dense_3_feat_out" };
    const tg_json *config;
    const size_t place = o->dense[0] ? 1 : 0;
    const char *file = tg_arena_sprintf(&o->g->arena, "%s/config.json", folder);
    if (!file) return tg_fail_memory(o->g->ctx, o->g->path, strlen(folder));
    TG_TRY(tg_hf_read_json(o->g, o->folder, file, &config));
    const tg_json *bias = config ? tg_json_get(config, "bias") : NULL;
    const tg_json *act = config ? tg_json_get(config, "activation_function") : NULL;
    const bool linear = bias && tg_json_kind(bias) == TG_JSON_FALSE && act &&
                        tg_json_is(act, "torch.nn.modules.linear.Identity");
    if (!linear || o->dense[place])
        return tg_fail(o->g->ctx, TG_E_UNSUPPORTED,
                       "%s/%s: want one of two matrices without a bias and a function behind them, "
                       "have bias %s, %s",
                       o->g->path, file, TG_JSON_SHOWN(bias), TG_JSON_SHOWN(act));
    o->dense[place] = folder;
    for (size_t i = 0; i < 2; i++) {
        const tg_json *said;
        int64_t size = 0;
        TG_TRY(tg_json_want(o->g->ctx, config, sides[i], TG_JSON_NUMBER, &said));
        TG_TRY(tg_json_int64(o->g->ctx, said, &size));
        if (size < 1)
            return tg_fail(o->g->ctx, TG_E_FORMAT, "%s/%s: %s: want a size of 1 or more, have %s",
                           o->g->path, file, sides[i], TG_JSON_SHOWN(said));
        tg_hf_put_int(m, keys[2 * place + i], size);
    }
    return TG_OK;
}

/* The folder of the module that pools; 1_Pooling where no list of modules says another. What
 * else a text's vector goes through (LayerNorm; Dense of most families) is not computed here, and
 * is refused; length 1 is for the caller to ask for. */
static tg_status find_modules(tg_hf_embedding *o, tg_hf_values *m, const char **pooling) {
    const tg_json *modules;
    *pooling = "1_Pooling";
    TG_TRY(tg_hf_read_json(o->g, o->folder, "modules.json", &modules));
    if (!modules || tg_json_kind(modules) != TG_JSON_ARRAY) return TG_OK;
    for (const tg_json *v = tg_json_first(modules); v; v = tg_json_next(v)) {
        const tg_json *type = tg_json_get(v, "type"), *path = tg_json_get(v, "path");
        const bool known = type && tg_json_kind(type) == TG_JSON_STRING;
        const char *dot = known ? strrchr(type->u.text, '.') : NULL;
        const char *name = dot ? dot + 1 : known ? type->u.text : "";
        if (strcmp(name, "Pooling") == 0 && path && tg_json_kind(path) == TG_JSON_STRING)
            *pooling = path->u.text;
        else if (strcmp(name, "Dense") == 0 && m->family->both_ways && path &&
                 tg_json_kind(path) == TG_JSON_STRING)
            TG_TRY(put_dense(o, m, path->u.text));
        else if (strcmp(name, "Transformer") != 0 && strcmp(name, "Normalize") != 0)
            return tg_fail(o->g->ctx, TG_E_UNSUPPORTED,
                           "%s/modules.json: want Transformer, Pooling and Normalize, have %s",
                           o->g->path, TG_JSON_SHOWN(type));
    }
    return TG_OK;
}

/* Names in a pooling_mode, one or a list; or older keys that are true. Without either it is the
 * mean, as there. */
static tg_status read_ways(tg_hf_embedding *o, const char *file, const tg_json *config,
                           tg_pooling_ways *ways) {
    const tg_json *mode = tg_json_get(config, "pooling_mode");
    const bool list = mode && tg_json_kind(mode) == TG_JSON_ARRAY;
    for (const tg_json *v = list ? tg_json_first(mode) : mode; v; v = list ? tg_json_next(v) : NULL)
        if (tg_json_kind(v) != TG_JSON_STRING || !tg_pooling_add(ways, v->u.text, v->length))
            return tg_fail(o->g->ctx, TG_E_UNSUPPORTED,
                           "%s/%s: pooling_mode: want up to %d ways that are known, have %s",
                           o->g->path, file, TG_POOLING_WAYS_MOST, TG_JSON_SHOWN(v));
    for (const tg_json *v = mode ? NULL : tg_json_first(config); v; v = tg_json_next(v)) {
        int i = 0;
        while (i < TG_POOLING_COUNT && strcmp(v->key, tg_pooling_table[i].older) != 0) i++;
        if (i == TG_POOLING_COUNT && strncmp(v->key, "pooling_mode_", 13) == 0 &&
            tg_hf_is_on(config, v->key))
            return tg_fail(o->g->ctx, TG_E_UNSUPPORTED,
                           "%s/%s: %.60s: want a way of pooling that is known, have true",
                           o->g->path, file, v->key);
    }
    for (int i = 0; i < TG_POOLING_COUNT && !mode; i++)
        if (tg_hf_is_on(config, tg_pooling_table[i].older)) ways->way[ways->n++] = (uint8_t)i;
    if (ways->n == 0) ways->way[ways->n++] = TG_POOLING_BY_MEAN;
    return TG_OK;
}

/* The classes of rerankers say in config.json what they are, and how rows are pooled. */
static tg_status put_rank(tg_hf_embedding *o, tg_hf_values *m) {
    const tg_hf_family *f = m->family;
    const tg_json *classes = tg_json_get(m->root, "architectures");
    const tg_json *way = f->rank_pooling ? tg_hf_member(m, m->root, f->rank_pooling) : NULL;
    const bool list = classes && tg_json_kind(classes) == TG_JSON_ARRAY;
    for (const tg_json *v = list ? tg_json_first(classes) : NULL; v; v = tg_json_next(v))
        o->ranks = o->ranks || (f->rank_class && tg_json_is(v, f->rank_class));
    if (!o->ranks) return TG_OK;
    const tg_json *labels = tg_hf_member(m, m->root, "id2label");
    if (!labels || tg_json_kind(labels) != TG_JSON_OBJECT || labels->count != 1)
        return tg_fail(o->g->ctx, TG_E_UNSUPPORTED,
                       "%s/config.json: id2label: want one label, as rerankers have, have %s",
                       o->g->path, labels ? "others" : "two, as it is missing");
    const char *name = !way || tg_json_is(way, "cls") ? "cls"
                       : tg_json_is(way, "mean")      ? "mean"
                                                      : NULL;
    const tg_json *act = tg_hf_member(m, m->root, "classifier_activation");
    if (act && !tg_json_is(act, "gelu"))
        return tg_fail(o->g->ctx, TG_E_UNSUPPORTED,
                       "%s/config.json: classifier_activation: want gelu, have %s", o->g->path,
                       TG_JSON_SHOWN(act));
    if (!name)
        return tg_fail(o->g->ctx, TG_E_UNSUPPORTED, "%s/config.json: %s: want cls or mean, have %s",
                       o->g->path, f->rank_pooling, TG_JSON_SHOWN(way));
    tg_hf_put_int(m, "pooling_type", TG_POOLING_TYPE_RANK);
    tg_hf_put_text(m, "pooling_modes", name, strlen(name));
    return TG_OK;
}

/* What sentence-transformers say, in files of their own. In a zip the folder is part of the
 * name. One way of pooling that llama.cpp knows is GGUF's pooling_type; several ways, or one
 * that it lacks, are names under a key of ours. An encoder that says nothing pools by the mean.
 * Vectors of a text with a prompt must count the prompt's tokens, since the mean here does. */
tg_status tg_hf_put_embedding(tg_hf_embedding *o, tg_hf_values *m) {
    const tg_json *config;
    const char *folder;
    char names[TG_POOLING_NAMES_BYTES];
    tg_pooling_ways ways = { .n = 0 };
    TG_TRY(put_rank(o, m));
    if (o->ranks) return put_most_tokens(o, m);
    TG_TRY(find_modules(o, m, &folder));
    const char *file = tg_arena_sprintf(&o->g->arena, "%s/config.json", folder);
    if (!file) return tg_fail_memory(o->g->ctx, o->g->path, strlen(folder));
    TG_TRY(tg_hf_read_json(o->g, o->folder, file, &config));
    o->embeds = config != NULL;
    if (config) TG_TRY(read_ways(o, file, config, &ways));
    if (!config && m->family->encoder)
        ways = tg_pooling_of_type(tg_pooling_table[TG_POOLING_BY_MEAN].type);
    const int type = ways.n == 1 ? tg_pooling_table[ways.way[0]].type : 0;
    tg_pooling_write(&ways, names);
    if (type)
        tg_hf_put_int(m, "pooling_type", type);
    else if (ways.n)
        tg_hf_put_text(m, "pooling_modes", names, strlen(names));
    bool prompt = false;
    if (o->embeds) TG_TRY(put_prompt(o, m, &prompt));
    const tg_json *whole = config ? tg_json_get(config, "include_prompt") : NULL;
    const bool counts = !whole || tg_json_kind(whole) == TG_JSON_TRUE;
    if (o->embeds && counts) TG_TRY(put_prompts(o, m));
    if (prompt && !counts)
        return tg_fail(o->g->ctx, TG_E_UNSUPPORTED,
                       "%s/%s: include_prompt: want true where there is a prompt, have false",
                       o->g->path, file);
    return put_most_tokens(o, m);
}
