/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata.c - the sizes of a model out of the metadata of its file.
 *
 * Keys are those of llama.cpp, "<architecture>.<name>"; folders of transformers have them by now,
 * too (io/hf/hf_config.c). What is read here is common to all families; each family's config() then
 * reads what is its own.
 *
 *     block_count, embedding_length, feed_forward_length         must be there
 *     context_length, attention.head_count
 *     attention.head_count_kv, key_length, value_length          follow from these if missing
 *     layer_norm_epsilon, rope.*, scales                         have defaults
 *     vocabulary                                                 the rows of token_embd.weight
 *
 * The rule of io/hf/hf_config.c holds here as well: every key that somebody looks for is marked
 * (tg_gguf.asked), and one of the architecture that nobody knows is refused, since it may change
 * what the model computes. Shapes of tensors are not looked at, but for the embedding's: tensors.c
 * holds all of them against the sizes.
 *
 * The last part makes the frequencies of rotary positions of a configuration.
 */
#include "base/math.h"
#include "base/str.h"
#include "model/family.h"

/* Names of families and keys are ours, and far shorter than the room. */
const char *tg_config_key(const tg_model_config *c, const char *name, char out[TG_KEY_BYTES]) {
    snprintf(out, TG_KEY_BYTES, "%s.%s", c->family, name);
    return out;
}

/* ---------------------------------------------------------------------------------------- sizes
 */

/* Families that no file has (config NULL) are passed over: the byte GPT is written as a gpt2. */
static tg_status find_family(const tg_gguf *g, tg_model_config *c) {
    tg_gguf_string name = { "", 0 };
    char known[256] = "";
    TG_TRY(tg_gguf_get_string(g, "general.architecture", &name));
    for (size_t i = 0; i < tg_n_families; i++) {
        const tg_family *f = tg_families[i];
        if (!f->config) continue;
        if (strlen(f->name) == name.n_bytes && memcmp(f->name, name.bytes, name.n_bytes) == 0) {
            c->family = f->name;
            return TG_OK;
        }
        tg_str_append(known, sizeof known, " %s", f->name);
    }
    return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: architecture: want one of%s, have '%.*s'",
                   g->path, known, (int)(name.n_bytes < 64 ? name.n_bytes : 64), name.bytes);
}

/* 0 marks a missing key, since all sizes are 1 or more. */
tg_status tg_config_want_int(const tg_gguf *g, const tg_model_config *c, const char *name,
                             int64_t max, int32_t *out) {
    char key[TG_KEY_BYTES];
    *out = 0;
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, name, key), 1, max, out));
    if (*out == 0) return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s is missing", g->path, key);
    return TG_OK;
}

/* Heads of keys: of all layers, or of each in a list, where layers of the family's other kind
 * have none. Layers of one model may differ in kind, but not in their number of heads, for which
 * the configuration has one place. llama.cpp's converter writes the list as i32. */
static tg_status read_kv_heads(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    const tg_layer_kind other = tg_family_of(c)->other;
    const tg_gguf_value *v = tg_gguf_find(g, tg_config_key(c, "attention.head_count_kv", key));
    if (other) memset(c->layer_kind, TG_LAYER_ATTENTION, (size_t)c->layers);
    if (!other || !v || v->type != TG_GGUF_ARRAY)
        return tg_gguf_get_int(g, key, 1, c->heads, &c->kv_heads);
    const bool whole = v->element == TG_GGUF_I32 || v->element == TG_GGUF_U32;
    bool fits = whole && v->count == (uint64_t)c->layers;
    c->kv_heads = 0;
    for (int32_t i = 0; fits && i < c->layers; i++) {
        const uint32_t n = tg_get_u32(v->elements + 4 * i);
        const bool more = n > 0 && n <= (uint32_t)c->heads;
        fits = n == 0 || (more && (c->kv_heads == 0 || n == (uint32_t)c->kv_heads));
        if (more) c->kv_heads = (int32_t)n;
        c->layer_kind[i] = (char)(n > 0 ? TG_LAYER_ATTENTION : other);
    }
    if (fits && c->kv_heads > 0) return TG_OK;
    return tg_fail(g->ctx, TG_E_FORMAT,
                   "%s: %s: want a whole number in 1..%d, or for each of %d layers one, the same "
                   "wherever it is not 0, have others",
                   g->path, key, (int)c->heads, (int)c->layers);
}

/* A list of the widths of all layers' MLPs: that of the first one, which whoever has layers that
 * differ holds against the others. */
static tg_status read_mlp_list(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    const tg_gguf_value *v = tg_gguf_find(g, tg_config_key(c, "feed_forward_length", key));
    const bool whole = v->element == TG_GGUF_I32 || v->element == TG_GGUF_U32;
    bool fits = whole && v->count == (uint64_t)c->layers;
    for (int32_t i = 0; fits && i < c->layers; i++) {
        const uint32_t width = tg_get_u32(v->elements + 4 * i);
        fits = width > 0 && width <= 262144;
    }
    if (!fits)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want 1..262144, or that of each of %d layers",
                       g->path, key, (int)c->layers);
    c->mlp = (int32_t)tg_get_u32(v->elements);
    return TG_OK;
}

/* The MLP's size: of all layers, or in families whose layers may be one alone of each in a list, 0
 * where the layer is another one. */
static tg_status read_mlp(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    const tg_gguf_value *v = tg_gguf_find(g, tg_config_key(c, "feed_forward_length", key));
    if (tg_differs_by_layer(c) && v && v->type == TG_GGUF_ARRAY) return read_mlp_list(g, c);
    if (!tg_has_mlps_alone(c))
        return tg_config_want_int(g, c, "feed_forward_length", 262144, &c->mlp);
    bool fits = v && v->type == TG_GGUF_ARRAY && v->count == (uint64_t)c->layers &&
                (v->element == TG_GGUF_I32 || v->element == TG_GGUF_U32);
    c->mlp = 0;
    for (int32_t i = 0; fits && i < c->layers; i++) {
        const uint32_t n = tg_get_u32(v->elements + 4 * i);
        if (n == 0) continue;
        fits = n <= 262144 && (c->mlp == 0 || n == (uint32_t)c->mlp) &&
               c->layer_kind[i] != TG_LAYER_ATTENTION;
        c->mlp = (int32_t)n;
        c->layer_kind[i] = TG_LAYER_MLP;
    }
    if (fits && c->mlp > 0) return TG_OK;
    return tg_fail(
        g->ctx, TG_E_FORMAT,
        "%s: %s: want for each of %d layers the size of its MLP, the same wherever it is "
        "not 0, and 0 where there is attention, have others",
        g->path, key, (int)c->layers);
}

/* Limits keep each side of a tensor within 32 bits, and are far beyond any model that a CPU
 * would run; elements of a matrix are counted in 64. The embedding has the last word on the
 * vocabulary, since a key of that size may be missing, and rows are what a token's id looks up.
 * A mean of squares and a variance share one eps: a family has one kind of norm, so only one of
 * the two keys is there. */
static tg_status read_config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    TG_TRY(find_family(g, c));
    TG_TRY(tg_config_want_int(g, c, "block_count", 512, &c->layers));
    TG_TRY(tg_config_want_int(g, c, "embedding_length", 65536, &c->width));
    TG_TRY(tg_config_want_int(g, c, "context_length", 1 << 24, &c->ctx));
    TG_TRY(tg_config_want_int(g, c, "attention.head_count", 1024, &c->heads));
    c->kv_heads = c->heads;
    TG_TRY(read_kv_heads(g, c));
    TG_TRY(read_mlp(g, c));
    c->head_size = c->width / c->heads;
    TG_TRY(
        tg_gguf_get_int(g, tg_config_key(c, "attention.key_length", key), 2, 1024, &c->head_size));
    int32_t value_size = c->head_size;
    TG_TRY(
        tg_gguf_get_int(g, tg_config_key(c, "attention.value_length", key), 1, 65536, &value_size));
    if (c->heads % c->kv_heads != 0 || c->head_size < 2 || c->head_size % 2 != 0 ||
        value_size != c->head_size)
        return tg_fail(g->ctx, TG_E_FORMAT,
                       "%s: heads: want key heads that divide query heads, of an even size, alike "
                       "for keys and values, have %d of %d, size %d and %d",
                       g->path, (int)c->kv_heads, (int)c->heads, (int)c->head_size,
                       (int)value_size);
    int32_t turned = c->head_size;
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "rope.dimension_count", key), 1, 65536, &turned));
    if (turned > c->head_size || turned % 2 != 0 ||
        (turned != c->head_size && !tg_family_of(c)->partial))
        return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: %s: want %d, the whole head, have %d",
                       g->path, key, (int)c->head_size, (int)turned);
    c->rope_size = turned == c->head_size ? 0 : turned;
    const tg_gguf_tensor *table = tg_gguf_tensor_find(g, "token_embd.weight");
    if (!table || table->n_dims != 2 || table->dim[1] > 1 << 26)
        return tg_fail(g->ctx, TG_E_FORMAT,
                       "%s: tensor token_embd.weight: want a matrix with a row for each token",
                       g->path);
    c->vocab = (int32_t)table->dim[1];
    int32_t vocab = c->vocab;
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "vocab_size", key), 1, 1 << 26, &vocab));
    if (vocab != c->vocab)
        return tg_fail(g->ctx, TG_E_SHAPE,
                       "%s: %s: want %d, the rows of token_embd.weight, have %d", g->path, key,
                       (int)c->vocab, (int)vocab);
    c->eps = 1e-5f;
    c->rope_base[0] = c->rope_base[1] = 1e4f;
    c->rope_factor = c->embed_scale = 1;
    c->score_scale = (float)(1 / tg_sqrt((double)c->head_size));
    TG_TRY(
        tg_gguf_get_float(g, tg_config_key(c, "attention.layer_norm_rms_epsilon", key), &c->eps));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "attention.layer_norm_epsilon", key), &c->eps));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "attention.scale", key), &c->score_scale));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "rope.freq_base", key), &c->rope_base[0]));
    return tg_family_of(c)->config(g, c);
}

/* Of Granite's families, whose files state all four. 0 of the stream's and of the logits' stands
 * for 1. */
tg_status tg_config_read_scales(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "embedding_scale", key), &c->embed_scale));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "residual_scale", key), &c->residual_scale));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "logit_scale", key), &c->logit_scale));
    if (c->embed_scale > 0 && c->residual_scale >= 0 && c->logit_scale >= 0 && c->score_scale > 0)
        return TG_OK;
    return tg_fail(g->ctx, TG_E_FORMAT, "%s: want scales above 0, have other ones", g->path);
}

/* Attention of encoders sees both ways, unless a file says that it does not. */
tg_status tg_config_want_encoder(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    bool causal = false;
    TG_TRY(tg_gguf_get_bool(g, tg_config_key(c, "attention.causal", key), &causal));
    if (!causal) return TG_OK;
    return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: %s: want false, have true", g->path, key);
}

static bool is_kind(const tg_gguf_string *kind, const char *name) {
    return kind->n_bytes == strlen(name) && memcmp(kind->bytes, name, kind->n_bytes) == 0;
}

/* YaRN (Peng et al. 2023) with the bounds that its authors chose: others would be keys that are not
 * known. attn_factor is what llama.cpp multiplies the authors' own scale with. */
static tg_status read_yarn(const tg_gguf *g, tg_model_config *c, float factor) {
    char key[TG_KEY_BYTES];
    float scale = 1;
    c->rope_original = c->ctx;
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "rope.scaling.original_context_length", key), 1,
                           1 << 24, &c->rope_original));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "rope.scaling.attn_factor", key), &scale));
    if (!(factor > 1 && scale > 0 && scale < 1e6f))
        return tg_fail(
            g->ctx, TG_E_FORMAT,
            "%s: rope.scaling of yarn: want a factor above 1 and a scale above 0, have %g "
            "and %g",
            g->path, (double)factor, (double)scale);
    c->rope_factor = factor;
    c->rope_scale = (float)((double)scale * (1 + 0.1 * tg_log((double)factor)));
    return TG_OK;
}

/* Factors by the length of texts (Ding et al. 2024), which are tensors of the file. */
static tg_status read_longrope(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "rope.scaling.original_context_length", key), 1,
                           1 << 24, &c->rope_original));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "rope.scaling.attn_factor", key), &c->rope_scale));
    if (c->rope_original > 0 && c->rope_scale >= 0 && c->rope_scale < 1e6f) return TG_OK;
    return tg_fail(
        g->ctx, TG_E_FORMAT,
        "%s: rope.scaling of longrope: want an original_context_length, and an attn_factor "
        "of 0 or more, have %d and %g",
        g->path, (int)c->rope_original, (double)c->rope_scale);
}

/* As llama.cpp has it: a factor without a kind is linear, and 0 is none. The factor's older key is
 * that of files of 2023. */
tg_status tg_config_read_scaling(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    tg_gguf_string kind = { "linear", 6 };
    float factor = 0;
    TG_TRY(tg_gguf_get_string(g, tg_config_key(c, "rope.scaling.type", key), &kind));
    if (tg_gguf_tensor_find(g, tg_gguf_factors[TG_FACTORS_LONG]) || is_kind(&kind, "longrope"))
        return read_longrope(g, c);
    const bool linear = is_kind(&kind, "linear"), yarn = is_kind(&kind, "yarn");
    if (!linear && !yarn && !is_kind(&kind, "none"))
        return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                       "%s: %s: want none, linear, yarn or longrope, have '%.*s'", g->path, key,
                       (int)(kind.n_bytes < 32 ? kind.n_bytes : 32), kind.bytes);
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "rope.scale_linear", key), &factor));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "rope.scaling.factor", key), &factor));
    if (factor < 0)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want 0 or more, have %g", g->path, key,
                       (double)factor);
    if (yarn) return read_yarn(g, c, factor);
    if (linear && factor > 0) c->rope_factor = factor;
    return TG_OK;
}

/* ------------------------------------------------------------------------------- all other keys */

/* Keys of the architecture that change nothing at a value: harmless_keys.def. */
enum { ANY, ZERO, ONE };
static const struct {
    const char *name;
    int value;
} harmless[] = {
#define TG_HARMLESS_KEY(name, value, why) { name, value },
#include "model/harmless_keys.def"
#undef TG_HARMLESS_KEY
};

static bool is_harmless(const tg_gguf_value *v, const char *name) {
    const bool number = v->type != TG_GGUF_STRING && v->type != TG_GGUF_ARRAY;
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        if (strcmp(harmless[i].name, name) == 0)
            return harmless[i].value == ANY ||
                   (number && (v->type == TG_GGUF_BOOL ? (double)v->whole : v->real) ==
                                  (harmless[i].value == ONE ? 1 : 0));
    return false;
}

/* asked[i]: value i of the file has been looked for. Keys of other prefixes (general, tokenizer,
 * split) do not describe the computation; those that matter are read where they are used. */
static tg_status want_known_keys(const tg_gguf *g, const tg_model_config *c, const bool *asked) {
    const size_t n = strlen(c->family);
    for (size_t i = 0; i < g->n_values; i++) {
        const tg_gguf_value *v = &g->values[i];
        if (asked[i] || strncmp(v->key, c->family, n) != 0 || v->key[n] != '.' ||
            is_harmless(v, v->key + n + 1))
            continue;
        char have[64] = "a list";
        if (v->type == TG_GGUF_STRING)
            snprintf(have, sizeof have, "'%.*s'",
                     (int)(v->text.n_bytes < 40 ? v->text.n_bytes : 40), v->text.bytes);
        else if (v->type != TG_GGUF_ARRAY)
            snprintf(have, sizeof have, "%g", v->real);
        return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                       "%s: %.80s: want keys that are known, since another may change what the "
                       "model computes, have this one as %s",
                       g->path, v->key, have);
    }
    return TG_OK;
}

/* Whatever is looked for while sizes are read is known; all else of the architecture is not. The
 * record is kept in a view of the file, so that the file itself stays without one. */
tg_status tg_config_read(const tg_gguf *g, tg_arena *arena, tg_model_config *c) {
    tg_gguf view = *g;
    *c = (tg_model_config) { .layers = 0 };
    view.asked = tg_arena_alloc(arena, g->n_values);
    if (!view.asked) return tg_fail_memory(g->ctx, "metadata", g->n_values);
    TG_TRY(read_config(&view, c));
    return want_known_keys(g, c, view.asked);
}

/* ---------------------------------------------------------------------------------- frequencies
 */

/* rope_size 0 is the whole head. Where a part turns within the whole one, the rest of its table are
 * frequencies of 0. */
size_t tg_config_turned(const tg_model_config *c, int table) {
    if (TG_NATIVE_PARTS && table == TG_FREQ_WINDOW && c->window_head_size > 0)
        return (size_t)c->window_head_size;
    const bool part = c->rope_size > 0 && !tg_turns_in_proportion(c);
    return (size_t)(part ? c->rope_size : c->head_size);
}

/* Both scalings know the original context; only YaRN has a factor beside it. */
bool tg_config_longrope(const tg_model_config *c) {
    return c->rope_original > 0 && c->rope_factor == 1;
}

/* The number of the pair that turns so often within the original context: pair i turns by
 * base^(-2i/R) a position, R elements turning, and the equation is solved for i. */
static double yarn_pair(const tg_model_config *c, double turns) {
    const double positions = (double)c->rope_original / (turns * 2 * TG_PI);
    return (double)tg_config_turned(c, TG_FREQ_ALL) * tg_log(positions) /
           (2 * tg_log((double)c->rope_base[0]));
}

/* How much of pair i is divided by the factor: nothing of those that turn 32 times or more, all
 * of those that turn once at most, and in between a share that rises in a straight line. Bounds
 * are rounded outwards to whole pairs as the authors' code does, and 0.001 keeps the ramp from
 * being a division by 0. */
static float yarn_share(const tg_model_config *c, int32_t i) {
    double low = tg_floor(yarn_pair(c, 32)), high = tg_ceil(yarn_pair(c, 1));
    const double last = (double)tg_config_turned(c, TG_FREQ_ALL) - 1;
    if (low < 0) low = 0;
    if (high > last) high = last;
    if (high == low) high += 0.001;
    const double share = ((double)i - low) / (high - low);
    return (float)(share < 0 ? 0 : share > 1 ? 1 : share);
}

/* out [R/2], radians a position; pair i is base^(-2i/R), divided as its table wants. The power
 * is rounded to f32 before it is divided into 1, as transformers does, so that frequencies agree
 * with its own to the bit. Layers with a window are never stretched. */
void tg_config_freq(const tg_model_config *c, int table, const float *factors, float *out) {
    const int32_t half = (int32_t)tg_config_turned(c, table) / 2;
    const bool part = tg_turns_in_proportion(c) && c->rope_size > 0 && table != TG_FREQ_WINDOW;
    const bool yarn = c->rope_original > 0 && c->rope_factor != 1;
    const float divisor = table == TG_FREQ_WINDOW ? 1 : c->rope_factor;
    const double base = (double)c->rope_base[table == TG_FREQ_WINDOW];
    for (int32_t i = 0; i < half; i++) {
        const double exponent = (double)i / (double)half;
        const float fast = 1.0f / (float)tg_pow(base, exponent);
        const float share = yarn && table == TG_FREQ_ALL ? yarn_share(c, i) : 1;
        out[i] = share < 1 ? fast / divisor * share + fast * (1 - share) : fast / divisor;
        if (factors) out[i] /= factors[i];
        if (part && i >= c->rope_size / 2) out[i] = 0;
    }
}
