/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt2.c - what transformers calls the parts of a GPT-2, and its config.json.
 *
 * Only the byte GPT of this program goes through here, in both directions: as a folder of
 * transformers that a fine-tuning elsewhere can load, and back. Any other GPT-2 is a family of its
 * own (model/families/gpt.c), read through hf.c. safetensors.h has the table of names with their
 * shapes.
 *
 *     ours, in the manifest        theirs                       side by side in a row
 *     q_proj, k_proj, v_proj       attn.c_attn                  | q [C] | k [C] | v [C] |
 *     each [C,C] and a bias [C]    [C,3C] and a bias [3C]
 *
 * The manifest alternates weight and bias, so the parts of a tensor are every second entry. Linear
 * layers are [in,out] on both sides: nothing is transposed.
 *
 * Reading refuses what computes something else than this program does, by its name; keys that
 * change nothing are those of hf_keys.def.
 */
#include "base/str.h"
#include "io/hf/hf.h"
#include "io/safetensors/safetensors.h"

/* Number in the manifest (of the block's 16 tensors, for those of blocks), and how many of them lie
 * side by side. The order is that of manifest.h. */
typedef struct row {
    const char *name;
    size_t first, n_parts;
} row;

/* Tensors of the model. Their number is the manifest's as well, which is why N_TOP counts in
 * both lists. */
static const row top[] = {
    { "wte.weight", 0, 1 }, { "wpe.weight", 1, 1 }, { "ln_f.weight", 2, 1 }, { "ln_f.bias", 3, 1 }
};
static const row block[] = {
    { "ln_1.weight", 0, 1 },      { "ln_1.bias", 1, 1 },          { "attn.c_attn.weight", 2, 3 },
    { "attn.c_attn.bias", 3, 3 }, { "attn.c_proj.weight", 8, 1 }, { "attn.c_proj.bias", 9, 1 },
    { "ln_2.weight", 10, 1 },     { "ln_2.bias", 11, 1 },         { "mlp.c_fc.weight", 12, 1 },
    { "mlp.c_fc.bias", 13, 1 },   { "mlp.c_proj.weight", 14, 1 }, { "mlp.c_proj.bias", 15, 1 },
};
enum {
    N_TOP = sizeof top / sizeof top[0],
    N_BLOCK = sizeof block / sizeof block[0],
    N_BLOCK_MANIFEST = 16
};

/* The causal mask and what it writes into scores, which are constants. Old versions of
 * transformers saved them with each layer; they are skipped. */
static const char *const buffers[] = { "attn.bias", "attn.masked_bias" };

size_t tg_gpt2_tensors(const tg_model_config *config) {
    return N_TOP + N_BLOCK * (size_t)config->layers;
}

/* The shape is the first part's, with the last dimension times the parts: all parts are alike. i
 * is below tg_gpt2_tensors of the manifest's configuration. */
tg_gpt2_tensor tg_gpt2_tensor_at(const tg_manifest *manifest, size_t i) {
    const bool is_top = i < N_TOP;
    const size_t layer = is_top ? 0 : (i - N_TOP) / N_BLOCK;
    const row *r = is_top ? &top[i] : &block[(i - N_TOP) % N_BLOCK];
    tg_gpt2_tensor t = { .first = r->first, .n_parts = r->n_parts };
    if (!is_top) {
        t.first += N_TOP + N_BLOCK_MANIFEST * layer;
    }
    if (is_top) {
        snprintf(t.name, sizeof t.name, "%s", r->name);
    } else {
        snprintf(t.name, sizeof t.name, "h.%zu.%s", layer, r->name);
    }
    const tg_manifest_entry *part = &manifest->entry[t.first];
    t.n_dims = (uint32_t)part->n_dims;
    t.dim[0] = part->dim[0];
    t.dim[1] = part->dim[1];
    t.dim[t.n_dims - 1] *= t.n_parts;
    return t;
}

/* ---------------------------------------------------------------------------------------- names */

static size_t find_row(const row *rows, size_t n, const char *name) {
    size_t i = 0;
    while (i < n && strcmp(rows[i].name, name) != 0) {
        i++;
    }
    return i;
}

/* "12.rest" to 12; NULL unless it is a number below `layers`, written as one would write it. The
 * loop ends once the number is too large, so it cannot overflow; "012" is refused, so that two
 * names are never one layer. */
static const char *read_layer(const char *text, int32_t layers, size_t *layer) {
    size_t n = 0;
    *layer = 0;
    while (text[n] >= '0' && text[n] <= '9' && *layer < (size_t)layers) {
        *layer = 10 * *layer + (size_t)(text[n++] - '0');
    }
    const bool is_number = n > 0 && (n == 1 || text[0] != '0') && *layer < (size_t)layers;
    return is_number && text[n] == '.' ? text + n + 1 : NULL;
}

/* GPT2LMHeadModel saves names with the prefix, GPT2Model without. */
size_t tg_gpt2_find(const char *name, int32_t layers, bool *layer_buffer) {
    static const char prefix[] = "transformer.";
    *layer_buffer = false;
    if (strncmp(name, prefix, sizeof prefix - 1) == 0) {
        name += sizeof prefix - 1;
    }
    size_t i = find_row(top, N_TOP, name);
    if (i < N_TOP) {
        return i;
    }
    size_t layer;
    const char *rest = strncmp(name, "h.", 2) == 0 ? read_layer(name + 2, layers, &layer) : NULL;
    if (!rest) {
        return SIZE_MAX;
    }
    i = find_row(block, N_BLOCK, rest);
    if (i < N_BLOCK) {
        return N_TOP + N_BLOCK * layer + i;
    }
    for (size_t b = 0; b < sizeof buffers / sizeof buffers[0]; b++) {
        *layer_buffer = *layer_buffer || strcmp(rest, buffers[b]) == 0;
    }
    return SIZE_MAX;
}

/* --------------------------------------------------------------------------------------- config */

/* Numbers that make the sizes. n_inner may be null: four times the width. */
static const struct {
    const char *key;
    size_t place;
    bool needed;
} sizes[] = {
    { "vocab_size", offsetof(tg_model_config, vocab), true },
    { "n_positions", offsetof(tg_model_config, ctx), true },
    { "n_embd", offsetof(tg_model_config, width), true },
    { "n_layer", offsetof(tg_model_config, layers), true },
    { "n_head", offsetof(tg_model_config, heads), true },
    { "n_inner", offsetof(tg_model_config, mlp), false },
};

/* Switches with the value that we compute by; a file that lacks one means this value, too. */
static const struct {
    const char *key;
    bool value;
} switches[] = {
    { "scale_attn_weights", true },
    { "scale_attn_by_inverse_layer_idx", false },
    { "add_cross_attention", false },
};

#define NORM_EPS   1e-5
#define ACTIVATION "gelu" /* x Phi(x), by erf; GPT-2's own "gelu_new" is the one by tanh */

static void put_text(tg_json_writer *w, const char *key, const char *value) {
    tg_json_key(w, key);
    tg_json_put_string(w, value);
}

/* Dropout is 0, as in all of our training, so that a fine-tuning over there does the same as here.
 * Without the two nulls, transformers would take GPT-2's end-of-text, which is no byte. */
void tg_gpt2_put_config(tg_json_writer *w, const tg_model_config *config) {
    static const char *const dropouts[] = { "attn_pdrop", "embd_pdrop", "resid_pdrop" };
    static const char *const no_tokens[] = { "bos_token_id", "eos_token_id" };
    tg_json_begin_object(w);
    put_text(w, "model_type", "gpt2");
    tg_json_key(w, "architectures");
    tg_json_begin_array(w);
    tg_json_put_string(w, "GPT2LMHeadModel");
    tg_json_end_array(w);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int32_t value;
        memcpy(&value, (const char *)config + sizes[i].place, sizeof value);
        tg_json_key(w, sizes[i].key);
        tg_json_put_int(w, value);
    }
    put_text(w, "activation_function", ACTIVATION);
    tg_json_key(w, "layer_norm_epsilon");
    tg_json_put_double(w, NORM_EPS);
    tg_json_key(w, "tie_word_embeddings");
    tg_json_put_bool(w, true);
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        tg_json_key(w, switches[i].key);
        tg_json_put_bool(w, switches[i].value);
    }
    for (size_t i = 0; i < sizeof dropouts / sizeof dropouts[0]; i++) {
        tg_json_key(w, dropouts[i]);
        tg_json_put_double(w, 0);
    }
    for (size_t i = 0; i < sizeof no_tokens / sizeof no_tokens[0]; i++) {
        tg_json_key(w, no_tokens[i]);
        tg_json_put_null(w);
    }
    put_text(w, "dtype", "float32");
    put_text(w, "torch_dtype", "float32"); /* the same, for transformers before version 5 */
    put_text(w, "tinygpt", TG_VERSION_TEXT ": tokens are bytes, id = value");
    tg_json_end_object(w);
}

/* JSON numbers of 1..2^31-1; limits of a byte GPT, and a head count that divides the width, are
 * tg_gpt_config_check's. */
static tg_status get_size(tg_ctx *ctx, const char *where, const tg_json *root, size_t i,
                          tg_model_config *out) {
    const tg_json *json = tg_json_get(root, sizes[i].key);
    int64_t value = 0;
    if (!sizes[i].needed && (!json || tg_json_kind(json) == TG_JSON_NULL)) {
        return TG_OK;
    }
    if (!json || tg_json_int64(NULL, json, &value) != TG_OK || value < 1 || value > INT32_MAX) {
        return tg_fail(ctx, TG_E_RANGE, "%s: %s: want a whole number in 1..%d, have %s", where,
                       sizes[i].key, INT32_MAX, json ? "another value" : "none");
    }
    const int32_t narrow = (int32_t)value;
    memcpy((char *)out + sizes[i].place, &narrow, sizeof narrow);
    return TG_OK;
}

/* why goes behind what was wanted, for values whose name alone does not say it. */
static tg_status want_text(tg_ctx *ctx, const char *where, const tg_json *root, const char *key,
                           const char *want, const char *why) {
    const tg_json *json = tg_json_get(root, key);
    if (json && tg_json_is(json, want)) {
        return TG_OK;
    }
    return tg_fail(ctx, TG_E_UNSUPPORTED, "%s: %s: want \"%s\"%s, have %.40s", where, key, want,
                   why, TG_JSON_SHOWN(json));
}

/* Another type than a bool is an error of its own, with the place in the file. */
static tg_status want_switches(tg_ctx *ctx, const char *where, const tg_json *root) {
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        const tg_json *json = tg_json_get(root, switches[i].key);
        bool value = switches[i].value;
        if (json) {
            TG_TRY(tg_json_bool(ctx, json, &value));
        }
        if (value != switches[i].value) {
            return tg_fail(ctx, TG_E_UNSUPPORTED, "%s: %s: want %s, have %s", where,
                           switches[i].key, switches[i].value ? "true" : "false",
                           value ? "true" : "false");
        }
    }
    return TG_OK;
}

/* 1e-5 within a relative 1e-6, about 2^-20: somebody may have passed it through a float, whose
 * spacing is 2^-23. */
static tg_status want_eps(tg_ctx *ctx, const char *where, const tg_json *root) {
    const tg_json *json = tg_json_get(root, "layer_norm_epsilon");
    double eps = NORM_EPS;
    if (json) {
        TG_TRY(tg_json_double(ctx, json, &eps));
    }
    if (!(eps > NORM_EPS * (1 - 1e-6) && eps < NORM_EPS * (1 + 1e-6))) {
        return tg_fail(ctx, TG_E_UNSUPPORTED, "%s: layer_norm_epsilon: want 1e-5, have %g", where,
                       eps);
    }
    return TG_OK;
}

/* Keys that are read above; of all others a model of ours has those that change nothing. The
 * tables are asked, so that a new size or switch cannot be forgotten here. */
static bool is_read(const char *key) {
    static const char *const others[] = { "model_type", "activation_function", "layer_norm_epsilon",
                                          "tie_word_embeddings" };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (strcmp(key, sizes[i].key) == 0) return true;
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if (strcmp(key, switches[i].key) == 0) return true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(key, others[i]) == 0) return true;
    return false;
}

/* The head is always the embedding here; a missing key means so in GPT-2's class. */
static tg_status want_known(tg_ctx *ctx, const char *where, const tg_json *root) {
    const tg_json *tie = tg_json_get(root, "tie_word_embeddings");
    if (tie && tg_json_kind(tie) == TG_JSON_FALSE)
        return tg_fail(ctx, TG_E_UNSUPPORTED, "%s: tie_word_embeddings: want true, have false",
                       where);
    for (const tg_json *v = tg_json_first(root); v; v = tg_json_next(v))
        if (!is_read(v->key) && !tg_hf_harmless(v))
            return tg_fail(ctx, TG_E_UNSUPPORTED,
                           "%s: %.80s: want keys that are known, since another may change what the "
                           "model computes, have this one as %.60s",
                           where, v->key, TG_JSON_SHOWN(v));
    return TG_OK;
}

/* Sizes come before the rest, so that a GPT-2 of the usual kind is refused for its vocabulary, and
 * not for details that could be talked about. */
tg_status tg_gpt2_get_config(tg_ctx *ctx, const char *where, const tg_json *root,
                             tg_model_config *out) {
    *out = (tg_model_config) { 0 };
    if (tg_json_kind(root) != TG_JSON_OBJECT) {
        return tg_fail(ctx, TG_E_FORMAT, "%s: want a JSON object, have another value", where);
    }
    TG_TRY(want_text(ctx, where, root, "model_type", "gpt2", ""));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        TG_TRY(get_size(ctx, where, root, i, out));
    }
    if (out->mlp == 0 && out->width <= INT32_MAX / 4) {
        out->mlp = 4 * out->width;
    }
    TG_TRY(tg_gpt_config_check(ctx, where, out));
    TG_TRY(want_text(ctx, where, root, "activation_function", ACTIVATION, " (by erf)"));
    TG_TRY(want_switches(ctx, where, root));
    TG_TRY(want_eps(ctx, where, root));
    return want_known(ctx, where, root);
}
