/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family.c - the lists of families and presets, and what is common to all of them.
 *
 * A family (family.h) is mostly data: a table of tensors that it wants, each with two sizes by
 * name, a few flags, and functions for what no table can say. This file answers what follows from
 * the data alone: which tensors a layer has, how large they are, how many weights there are,
 * whether a configuration holds together.
 *
 *     tg_model_config   by a caller, some sizes 0 -> tg_config_complete -> complete and checked
 *                       by a file                 -> metadata.c         -> complete and checked
 *     tg_want           "blk.%d.ffn_up.weight", MLP, WIDTH  ->  [M,C] in each layer
 *     part of a want    attn_q, attn_k, attn_v    ->  attn_qkv, one product [queries + 2 keys, C]
 *
 * A new family is a file with a tg_family and a line in families.def, a preset a line in
 * presets.def; no family is known here by its name but the byte GPT, which NULL stands for.
 * layout.h turns wants into one array of floats that can be trained, tensors.h into states as a
 * file has them.
 */
#include "model/family.h"

#include "base/math.h"
#include "base/str.h"
#include "io/hf/hf.h"
#include "io/run/meta.h"
#include "ops/build.h"

#define TG_FAMILY(symbol) extern const tg_family tg_family_##symbol;
#include "model/families.def"
#undef TG_FAMILY

const tg_family *const tg_families[] = {
#define TG_FAMILY(symbol) &tg_family_##symbol,
#include "model/families.def"
#undef TG_FAMILY
};
const size_t tg_n_families = sizeof tg_families / sizeof tg_families[0];

/* A linear search by name: a dozen families, asked where a model is opened or made, never in a
 * loop over tokens. NULL is the byte GPT, as in tg_model_config. */
const tg_family *tg_family_find(const char *name) {
    for (size_t i = 0; i < tg_n_families; i++)
        if (strcmp(tg_families[i]->name, name ? name : TG_META_OWN) == 0) return tg_families[i];
    return NULL;
}

/* Classes of transformers counted through all families, since some families have two. */
const tg_hf_family *tg_hf_family_at(size_t i) {
    for (size_t k = 0; k < tg_n_families; k++) {
        const tg_family *f = tg_families[k];
        for (int n = 0; n < TG_FAMILY_CLASSES && f->hf[n]; n++)
            if (i-- == 0) return f->hf[n];
    }
    return NULL;
}

const tg_family *tg_family_of(const tg_model_config *c) { return tg_family_find(c->family); }

const char *tg_family_at(size_t i) {
    for (size_t k = 0; k < tg_n_families; k++)
        if (tg_families[k]->fresh && i-- == 0) return tg_families[k]->name;
    return NULL;
}

/* By the "%d" of its name, which tables cannot forget. */
bool tg_want_in_layers(const tg_want *want) { return strchr(want->name, '%') != NULL; }

/* "attn_qkv.weight" of "blk.%d.attn_qkv.weight", so that graphs of all families use the same
 * words. */
const char *tg_want_role(const tg_want *want) {
    const char *part = want->part ? want->part : want->name, *of_layer = strchr(part, '%');
    return want->role ? want->role : of_layer ? of_layer + strlen("%d.") : part;
}

/* A want without a kind is in every layer; one with kinds is in layers of these. Layer -1 is the
 * model itself. */
bool tg_want_is_in(const tg_want *want, const tg_model_config *c, int layer) {
    if (layer < 0 || !tg_want_in_layers(want)) return layer < 0 && !tg_want_in_layers(want);
    const unsigned kinds = want->flags & (TG_WANT_IN_ATTENTION | TG_WANT_IN_CONV |
                                          TG_WANT_IN_MAMBA2 | TG_WANT_IN_DELTA | TG_WANT_IN_MLP);
    const tg_layer_kind kind = tg_layer_kind_of(c, layer);
    if (layer == 0 && (want->flags & TG_WANT_NOT_FIRST)) return false;
    if ((want->flags & TG_WANT_OWN_KEYS) && tg_shares_keys(c, layer)) return false;
    const unsigned own = kind == TG_LAYER_CONV     ? TG_WANT_IN_CONV
                         : kind == TG_LAYER_MAMBA2 ? TG_WANT_IN_MAMBA2
                         : kind == TG_LAYER_DELTA  ? TG_WANT_IN_DELTA
                         : kind == TG_LAYER_MLP    ? TG_WANT_IN_MLP
                                                   : TG_WANT_IN_ATTENTION;
    return kinds == 0 || (kinds & own) != 0;
}

/* For fresh models and for counting. Which optional tensors a file brings is seen there
 * (tensors.c). */
bool tg_want_is_made(const tg_want *want, const tg_model_config *c) {
    if (TG_WANT_BIASES(want)) return (c->biases & TG_WANT_BIASES(want)) != 0;
    return !(want->flags & TG_WANT_OPTIONAL) ||
           (!c->tied && strcmp(tg_want_role(want), "output.weight") == 0);
}

/* One side of a tensor. All cases are within 32 bits for a configuration that check() has
 * passed, so they are on a 32-bit machine, too. */
size_t tg_size_of(const tg_model_config *c, tg_size size, int layer) {
    switch (size) {
    case TG_SIZE_WIDTH: return (size_t)c->width;
    case TG_SIZE_MLP: return (size_t)tg_layer_mlp(c, layer);
    case TG_SIZE_VOCAB: return (size_t)c->vocab;
    case TG_SIZE_HEAD: return (size_t)tg_layer_head_size(c, layer);
    case TG_SIZE_QUERIES: return (size_t)c->heads * tg_size_of(c, TG_SIZE_HEAD, layer);
    case TG_SIZE_KEYS: return (size_t)c->kv_heads * tg_size_of(c, TG_SIZE_HEAD, layer);
    case TG_SIZE_QKV:
        return tg_size_of(c, TG_SIZE_QUERIES, layer) + 2 * tg_size_of(c, TG_SIZE_KEYS, layer);
    case TG_SIZE_GATE_UP: return 2 * tg_size_of(c, TG_SIZE_MLP, layer);
    case TG_SIZE_CTX: return (size_t)c->ctx;
    case TG_SIZE_TWO: return 2;
    case TG_SIZE_CONV_IN: return 3 * tg_size_of(c, TG_SIZE_WIDTH, layer);
    case TG_SIZE_TAPS: return (size_t)c->conv_taps;
    case TG_SIZE_SSM_INNER: return (size_t)c->ssm_heads * (size_t)c->ssm_head_size;
    case TG_SIZE_SSM_HEADS: return (size_t)c->ssm_heads;
    case TG_SIZE_DELTA_HEAD: return (size_t)c->ssm_head_size;
    case TG_SIZE_GATED_QUERIES: return 2 * tg_size_of(c, TG_SIZE_QUERIES, layer);
    case TG_SIZE_SSM_CONV:
        return tg_size_of(c, TG_SIZE_SSM_INNER, layer) +
               2 * (size_t)c->ssm_groups * (size_t)c->ssm_state;
    case TG_SIZE_SSM_IN:
        return tg_size_of(c, TG_SIZE_SSM_INNER, layer) + tg_size_of(c, TG_SIZE_SSM_CONV, layer) +
               (size_t)c->ssm_heads;
    case TG_SIZE_EXPERTS: return (size_t)c->experts;
    case TG_SIZE_EXPERTS_MLP: return (size_t)c->experts * (size_t)c->mlp;
    case TG_SIZE_EXPERTS_WIDTH: return (size_t)c->experts * (size_t)c->width;
    case TG_SIZE_LAYER_INPUTS: return (size_t)c->layer_inputs;
    case TG_SIZE_ALL_INPUTS: return (size_t)c->layers * (size_t)c->layer_inputs;
    case TG_SIZE_ANY:
    case TG_SIZE_ONE: break;
    }
    return 1;
}

/* ---------------------------------------------------------------------------------- configuration
 */

static tg_status want_size(tg_ctx *ctx, const char *where, const char *name, int32_t have,
                           int32_t low, int32_t high) {
    if (have >= low && have <= high) return TG_OK;
    return tg_fail(ctx, TG_E_RANGE, "%s: %s: want %d..%d, have %d", where, name, (int)low,
                   (int)high, (int)have);
}

/* Each layer is one that the family has, and sizes of a kind are there exactly if the family has
 * the kind: a size that nothing uses would be lost in a file without a sign. ssm_heads, head
 * sizes, groups and states are 1 at least (ssm, as a number) or 0. */
static tg_status check_kinds(tg_ctx *ctx, const char *where, const tg_model_config *c) {
    const tg_layer_kind other = tg_family_of(c)->other;
    int attend = 0, alone = 0;
    for (int i = 0; i < c->layers; i++)
        if (tg_layer_kind_of(c, i) != TG_LAYER_ATTENTION && tg_layer_kind_of(c, i) != other &&
            !(tg_has_mlps_alone(c) && tg_layer_kind_of(c, i) == TG_LAYER_MLP))
            return tg_fail(ctx, TG_E_UNSUPPORTED,
                           "%s: layer_kind: want kinds that %s has, have '%c' in layer %d", where,
                           c->family, c->layer_kind[i], i);
    for (int i = 0; i < c->layers; i++) {
        attend += tg_layer_kind_of(c, i) == TG_LAYER_ATTENTION;
        alone += tg_layer_kind_of(c, i) == TG_LAYER_MLP;
    }
    /* Files tell heads of keys and an MLP's width by layers that have them. */
    if (tg_has_mlps_alone(c) && (attend == 0 || alone == 0))
        return tg_fail(ctx, TG_E_UNSUPPORTED,
                       "%s: layer_kind: want layers of attention and of an MLP, as %s has them, "
                       "have %d and %d",
                       where, c->family, attend, alone);
    const tg_layer_kind sized = other ? other : tg_family_of(c)->beside;
    const bool taps = sized != 0, ssm = tg_layer_has_state(sized);
    TG_TRY(want_size(ctx, where, "conv_taps", c->conv_taps, taps ? 2 : 0,
                     taps ? TG_CONV_TAPS_MAX : 0));
    TG_TRY(want_size(ctx, where, "ssm_heads", c->ssm_heads, ssm, ssm ? 4096 : 0));
    TG_TRY(want_size(ctx, where, "ssm_head_size", c->ssm_head_size, ssm, ssm ? 1024 : 0));
    TG_TRY(want_size(ctx, where, "ssm_groups", c->ssm_groups, ssm, ssm ? c->ssm_heads : 0));
    TG_TRY(want_size(ctx, where, "ssm_state", c->ssm_state, ssm, ssm ? 1024 : 0));
    if (!ssm || c->ssm_heads % c->ssm_groups == 0) return TG_OK;
    return tg_fail(ctx, TG_E_RANGE, "%s: ssm_groups: want some that divide %d heads, have %d",
                   where, (int)c->ssm_heads, (int)c->ssm_groups);
}

/* Layers that share, and sizes of some layers, in families that have them. The first layer of each
 * kind has keys of its own, which others read. */
tg_status tg_config_check_layers(tg_ctx *ctx, const char *where, const tg_model_config *c) {
    const bool some = tg_differs_by_layer(c);
    TG_TRY(want_size(ctx, where, "kv_shared", c->kv_shared, 0, some ? c->layers - 1 : 0));
    const int32_t own = c->layers - c->kv_shared;
    bool all = c->kv_shared == 0, windowed = c->kv_shared == 0;
    TG_TRY(want_size(ctx, where, "mlp_shared", c->mlp_shared, 0,
                     some && c->kv_shared > 0 ? 262144 : 0));
    TG_TRY(want_size(ctx, where, "window_head_size", c->window_head_size, 0, some ? 1024 : 0));
    TG_TRY(want_size(ctx, where, "layer_inputs", c->layer_inputs, some, some ? 4096 : 0));
    for (int32_t i = 0; i < own; i++) *(tg_windowed(c, i) ? &windowed : &all) = true;
    for (int32_t i = own; i < c->layers; i++)
        if (!(tg_windowed(c, i) ? windowed : all))
            return tg_fail(ctx, TG_E_UNSUPPORTED,
                           "%s: kv_shared: want layers with and without a window among the first "
                           "%d, whose keys others read, have none like layer %d",
                           where, (int)own, (int)i);
    if (c->window_head_size % 2 == 0) return TG_OK;
    return tg_fail(ctx, TG_E_RANGE, "%s: window_head_size: want an even one, have %d", where,
                   (int)c->window_head_size);
}

/* Experts of families whose MLPs are routed; 0 in all others. */
static tg_status check_experts(tg_ctx *ctx, const char *where, const tg_model_config *c) {
    const bool some = tg_family_of(c)->experts_weigh != 0;
    TG_TRY(want_size(ctx, where, "experts", c->experts, some, some ? 1024 : 0));
    TG_TRY(want_size(ctx, where, "experts_used", c->experts_used, some, some ? c->experts : 0));
    return want_size(ctx, where, "experts_weigh", c->experts_weigh, some,
                     some ? TG_EXPERTS_SHARES : 0);
}

/* Biases that the family knows, soft caps, and rotary positions. Comparisons are written so that
 * a NaN fails them. */
static tg_status check_more(tg_ctx *ctx, const char *where, const tg_model_config *c) {
    const tg_family *f = tg_family_of(c);
    int32_t known = 0;
    for (size_t i = 0; i < f->n_wants; i++) known |= TG_WANT_BIASES(&f->wants[i]);
    if (c->biases & ~known)
        return tg_fail(ctx, TG_E_UNSUPPORTED,
                       "%s: biases: want some of %d, which %s may have, have %d", where, (int)known,
                       c->family, (int)c->biases);
    const bool caps = c->score_cap > 0 || c->logit_cap > 0;
    if (!(c->score_cap >= 0 && c->logit_cap >= 0) || (caps && !f->caps))
        return tg_fail(ctx, TG_E_UNSUPPORTED,
                       "%s: soft caps: want 0, or above in a family that has them, have %g and %g "
                       "in %s",
                       where, (double)c->score_cap, (double)c->logit_cap, c->family);
    TG_TRY(want_size(ctx, where, "rope_size", c->rope_size, 0, c->head_size));
    TG_TRY(want_size(ctx, where, "rope_original", c->rope_original, 0, 1 << 24));
    if (c->rope_size % 2 == 0 && c->rope_scale >= 0 && c->rope_scale < 1e6f) return TG_OK;
    return tg_fail(ctx, TG_E_RANGE,
                   "%s: rope: want an even size and a scale of 0 or more, have %d, %g", where,
                   (int)c->rope_size, (double)c->rope_scale);
}

/* Limits keep each side of a tensor (tg_size_of) within 32 bits, and are far beyond any model
 * that a CPU would train; elements of a matrix are counted in 64. The layers' limit is the room
 * for their kinds. */
static tg_status check(tg_ctx *ctx, const char *where, const tg_model_config *c) {
    TG_TRY(want_size(ctx, where, "layers", c->layers, 1, (int32_t)sizeof c->layer_kind));
    TG_TRY(check_kinds(ctx, where, c));
    TG_TRY(check_experts(ctx, where, c));
    TG_TRY(want_size(ctx, where, "width", c->width, 1, 65536));
    TG_TRY(want_size(ctx, where, "heads", c->heads, 1, 1024));
    TG_TRY(want_size(ctx, where, "kv_heads", c->kv_heads, 1, c->heads));
    TG_TRY(want_size(ctx, where, "head_size", c->head_size, 2, 1024));
    TG_TRY(want_size(ctx, where, "mlp", c->mlp, 1, 262144));
    TG_TRY(want_size(ctx, where, "ctx", c->ctx, 1, 1 << 24));
    TG_TRY(want_size(ctx, where, "vocab", c->vocab, 1, 1 << 26));
    TG_TRY(want_size(ctx, where, "window", c->window, 0, 1 << 24));
    if (c->heads % c->kv_heads != 0 || c->head_size % 2 != 0)
        return tg_fail(ctx, TG_E_RANGE,
                       "%s: heads: want key heads that divide query heads, of an even size, have "
                       "%d of %d, size %d",
                       where, (int)c->kv_heads, (int)c->heads, (int)c->head_size);
    TG_TRY(want_size(ctx, where, "window_every", c->window_every, 0, 1 << 24));
    if (c->window > 0 && !tg_family_of(c)->windows)
        return tg_fail(ctx, TG_E_UNSUPPORTED, "%s: window: want a family that has windows, have %s",
                       where, c->family);
    TG_TRY(check_more(ctx, where, c));
    TG_TRY(tg_config_check_layers(ctx, where, c));
    if (!(c->eps > 0 && c->eps < 1 && c->rope_factor > 0 && c->rope_base[0] > 1 &&
          c->rope_base[1] > 1 && c->embed_scale > 0 && c->score_scale > 0))
        return tg_fail(ctx, TG_E_RANGE,
                       "%s: want eps in (0,1), bases above 1 and scales above 0, have other ones",
                       where);
    return TG_OK;
}

/* The order of layers that a family has if nobody gave one: the last of so many is attention,
 * and so is the last of all; MLPs that are layers stand behind each of them. Too many layers are
 * left for check() to refuse. */
static void order_layers(const tg_family *f, tg_model_config *c) {
    if (!f->other || c->layer_kind[0] || c->layers > (int32_t)sizeof c->layer_kind) return;
    const int32_t step = TG_NATIVE_PARTS && f->alone ? 2 : 1;
    memset(c->layer_kind, TG_LAYER_MLP, c->layers > 0 ? (size_t)c->layers : 0);
    for (int32_t i = 0; i < c->layers; i += step) {
        const bool all = (i / step + 1) % f->attention_every == 0 || i + step >= c->layers;
        c->layer_kind[i] = (char)(all ? TG_LAYER_ATTENTION : f->other);
    }
}

/* Of the stream and of logits. Families that do not scale would ignore them, so there 0 is the
 * only value; it stands for 1 elsewhere. */
static tg_status check_scales(tg_ctx *ctx, const char *where, const tg_model_config *c) {
    const float most = tg_family_of(c)->scales ? 1e6f : 0;
    if (c->residual_scale >= 0 && c->residual_scale <= most && c->logit_scale >= 0 &&
        c->logit_scale <= most)
        return TG_OK;
    return tg_fail(ctx, TG_E_UNSUPPORTED,
                   "%s: residual_scale, logit_scale: want 0..%g, as %s has, have %g and %g", where,
                   (double)most, c->family, (double)c->residual_scale, (double)c->logit_scale);
}

/* A base of positions that nobody would use, of a table of them or of no positions at all. */
static tg_status check_rope_base(tg_ctx *ctx, const char *where, const tg_model_config *c) {
    const tg_family *f = tg_family_of(c);
    bool turns = f->still_every != 1;
    for (size_t i = 0; i < f->n_wants; i++)
        turns = turns && strcmp(tg_want_role(&f->wants[i]), "position_embd.weight") != 0;
    if (turns || c->rope_base[0] == 0) return TG_OK;
    return tg_fail(ctx, TG_E_UNSUPPORTED,
                   "%s: rope_base: want a family with rotary positions, have %s", where, f->name);
}

/* What a family makes of sizes that nobody gave. A configuration that was completed before, such as
 * a file's, has a factor of positions, and is its family's own: its head may be untied, and it may
 * be of a family that nobody makes fresh ones of. */
tg_status tg_config_complete(tg_ctx *ctx, const char *where, tg_model_config *c) {
    const tg_family *f = tg_family_of(c);
    if (!f || !(f->fresh || (tg_family_trains(f) && c->rope_factor > 0))) {
        char known[160] = "";
        for (size_t i = 0; tg_family_at(i); i++)
            tg_str_append(known, sizeof known, " %s", tg_family_at(i));
        return tg_fail(ctx, TG_E_UNSUPPORTED, "%s: family: want one of%s, have %s", where, known,
                       c->family);
    }
    c->family = f->name;
    if (c->rope_factor == 0) TG_TRY(check_rope_base(ctx, where, c));
    if (c->kv_heads == 0) c->kv_heads = c->heads;
    if (c->head_size == 0 && c->heads > 0) c->head_size = c->width / c->heads;
    if (f->complete && c->rope_factor == 0) f->complete(c);
    if (c->experts_weigh == 0) c->experts_weigh = f->experts_weigh;
    order_layers(f, c);
    if (c->mlp == 0 && c->width <= 65536) c->mlp = 4 * c->width;
    if (c->eps == 0) c->eps = 1e-5f;
    if (c->embed_scale == 0) c->embed_scale = 1;
    if (c->rope_factor == 0) c->rope_factor = 1;
    for (int i = 0; i < 2; i++)
        if (c->rope_base[i] == 0) c->rope_base[i] = 1e4f;
    if (c->score_scale == 0 && c->head_size > 0)
        c->score_scale = (float)(1 / tg_sqrt((double)c->head_size));
    TG_TRY(check_scales(ctx, where, c));
    return (f->check ? f->check : check)(ctx, where, c);
}

/* There is no padding between the members of the struct, and names of complete ones are static. */
bool tg_config_same(const tg_model_config *a, const tg_model_config *b) {
    tg_model_config x = *a, y = *b;
    if (tg_config_complete(NULL, "", &x) != TG_OK || tg_config_complete(NULL, "", &y) != TG_OK)
        return false;
    return memcmp(&x, &y, offsetof(tg_model_config, layer_inputs) + sizeof x.layer_inputs) == 0;
}

/* Elements of a want, in all layers that it is in, or in the model; of its experts, those of `used`
 * alone. The experts of a want lie one below the other, so the division is exact. */
static uint64_t elems_of(const tg_want *w, const tg_model_config *c, bool used) {
    uint64_t all = 0;
    for (int layer = -1; layer < c->layers; layer++)
        if (tg_want_is_in(w, c, layer))
            all += (uint64_t)tg_size_of(c, w->rows, layer) * tg_size_of(c, w->cols, layer);
    return used && (w->flags & TG_WANT_EXPERTS)
               ? all / (uint64_t)c->experts * (uint64_t)c->experts_used
               : all;
}

/* From the wants and not from a model, so that it can be asked before anything is allocated. */
static uint64_t count_params(const tg_model_config *c, bool used) {
    const tg_family *f = tg_family_of(c);
    uint64_t n = 0;
    for (size_t i = 0; f && i < f->n_wants; i++)
        if (tg_want_is_made(&f->wants[i], c)) n += elems_of(&f->wants[i], c, used);
    return n;
}

uint64_t tg_config_params(const tg_model_config *c) { return count_params(c, false); }

uint64_t tg_config_active_params(const tg_model_config *c) { return count_params(c, true); }

/* Vectors are no products; the embedding and the head are not of layers, and what makes the inputs
 * of all layers at once is. A double: only ratios and rates are made of it. */
double tg_config_products(const tg_model_config *c) {
    const tg_family *f = tg_family_of(c);
    double n = 0;
    for (size_t i = 0; f && i < f->n_wants; i++)
        if (f->wants[i].rows == TG_SIZE_ALL_INPUTS ||
            (f->wants[i].rows != TG_SIZE_ONE && tg_want_in_layers(&f->wants[i])))
            n += (double)elems_of(&f->wants[i], c, true);
    return n;
}

/* ---------------------------------------------------------------------------------------- presets
 */

/* Positional initialisers, in the order of tg_model_config's first members: 256 is the
 * vocabulary of bytes. What is 0 is filled in by tg_config_complete. */
static const tg_preset presets[] = {
#define TG_PRESET(id, L, C, H, T, B, S, text) { #id, { L, C, H, T, 256, 4 * (C) }, B, S, text },
#define TG_PRESET_OF(id, family, L, C, H, K, T, B, S, text)                                        \
    { #id, { L, C, H, T, 256, 0, family, K }, B, S, text },
#include "model/presets.def"
#undef TG_PRESET
#undef TG_PRESET_OF
};

size_t tg_preset_count(void) { return sizeof presets / sizeof presets[0]; }

const tg_preset *tg_preset_at(size_t i) { return i < tg_preset_count() ? &presets[i] : NULL; }

const tg_preset *tg_preset_find(const char *name) {
    for (size_t i = 0; name && i < tg_preset_count(); i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

/* As the preset of this width has it, so that a run by width alone and one by preset agree; else
 * heads of 32 where that divides the width, and some number that does. */
int32_t tg_default_heads(int32_t width) {
    for (size_t i = 0; i < tg_preset_count(); i++)
        if (!presets[i].config.family && presets[i].config.width == width)
            return presets[i].config.heads;
    if (width % 32 == 0) return width / 32;
    return width % 3 == 0 ? 3 : 1;
}
