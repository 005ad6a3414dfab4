/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_config.c - config.json as the metadata of a GGUF file.
 *
 * Whatever changes what the model computes is either translated or refused by its name: a config
 * that is half understood would give answers that are wrong without a sign of it. So every member
 * that is looked at is marked in asked[], by its place in the document, and want_known refuses the
 * first one that is neither marked nor in hf_keys.def.
 *
 *     config.json                                  key, behind the family's name and a dot
 *     num_hidden_layers, hidden_size, ..           block_count, embedding_length, ..
 *     layer_types, full_attn_idxs, ..              attention.head_count_kv or .recurrent_layers
 *     rope_theta, rope_scaling, rope_parameters    rope.freq_base, rope.scaling.*, factors
 *     layer_types, sliding_window_pattern          attention.sliding_window_pattern
 *     hidden_act and other options                 nothing: others than the family's are refused
 *     quantization, quantization_config            nothing: they are for hf.c (hf_quant.c)
 *
 * What differs from family to family stands in its tg_hf_family (hf.h, model/families/llama.c and
 * its like): tables first, and a function for what no table can say. Start with tg_hf_config, last
 * in this file. Sizes are checked against each other later, once they are a tg_model_config
 * (model/metadata.c).
 */
#include "base/math.h"
#include "base/str.h"
#include "io/hf/hf_quant.h"
#include "io/rope_llama3.h"
#include "io/rope_proportional.h"

/* Every member that somebody asks for is marked: those that nobody has are looked at in the end.
 * Nodes of a document lie in one array, so the distance to the root numbers them; v is the root
 * or lies within it. Whoever wants a member ignored gets it and does nothing else. */
static const tg_json *get(tg_hf_values *m, const tg_json *v, const char *key) {
    const tg_json *found = v ? tg_json_get(v, key) : NULL;
    if (found) m->asked[found - m->root] = true;
    return found;
}

/* What is not null. transformers writes null for "the default", so null and missing are the same
 * here; put_sizes is the one exception. */
const tg_json *tg_hf_member(tg_hf_values *m, const tg_json *v, const char *key) {
    const tg_json *found = get(m, v, key);
    return found && tg_json_kind(found) != TG_JSON_NULL ? found : NULL;
}

/* A switch that is off, and one that is on: numbers stand for booleans as they do in Python. */
static bool is_number(const tg_json *v, double value) {
    double have;
    return tg_json_double(NULL, v, &have) == TG_OK && have == value;
}

/* Empty strings, lists and objects are off, too, as Python has it. */
static bool is_off(const tg_json *v) {
    switch (tg_json_kind(v)) {
    case TG_JSON_NULL:
    case TG_JSON_FALSE: return true;
    case TG_JSON_NUMBER: return is_number(v, 0);
    case TG_JSON_STRING: return v->length == 0;
    case TG_JSON_ARRAY:
    case TG_JSON_OBJECT: return v->count == 0;
    default: return false;
    }
}

/* A null stands for the default, which is on wherever this is asked. */
static bool is_on(const tg_json *v) {
    return tg_json_kind(v) == TG_JSON_TRUE || tg_json_kind(v) == TG_JSON_NULL || is_number(v, 1);
}

/* By model_type, and by whether attention sees both ways, where two families share one. The class
 * in "architectures" would say no more: heads of other tasks are tensors of unknown names. */
static tg_status find_family(tg_hf_values *m) {
    const tg_json *type = tg_hf_member(m, m->root, "model_type");
    const tg_json *both = get(m, m->root, "use_bidirectional_attention");
    char known[256] = "";
    const tg_hf_family *found = NULL;
    for (size_t i = 0; (m->family = tg_hf_family_at(i)) != NULL; i++) {
        if (type && tg_json_is(type, m->family->model_type) &&
            (m->family->both_ways ? both && !is_off(both) : !found))
            found = m->family;
        if (!m->family->both_ways) tg_str_append(known, sizeof known, " %s", m->family->model_type);
    }
    m->family = found;
    if (found) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: model_type: want one of%s, have %.60s",
                   m->where, known, TG_JSON_SHOWN(type));
}

/* The bounds are those of tg_model_config's fields; limits of a family come later. */
tg_status tg_hf_get_int(tg_hf_values *m, const tg_json *root, const char *key, int64_t *out) {
    const tg_json *v = tg_hf_member(m, root, key);
    if (v && tg_json_int64(NULL, v, out) == TG_OK && *out >= 1 && *out <= INT32_MAX) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: %s: want a whole number in 1..%d, have %.40s",
                   m->where, key, INT32_MAX, TG_JSON_SHOWN(v));
}

/* A float that may be missing; *out stays then. */
tg_status tg_hf_get_float(tg_hf_values *m, const tg_json *root, const char *key, double *out) {
    const tg_json *v = tg_hf_member(m, root, key);
    if (!v) return TG_OK;
    if (tg_json_double(NULL, v, out) == TG_OK && *out > 0 && *out < 1e30) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: %s: want a number above 0, have %.40s", m->where,
                   key, TG_JSON_SHOWN(v));
}

/* The table's order matters for one thing: a size of four times the width (fallback -4) stands
 * behind the width. Of families whose every layer has a window, a window of null says that there
 * is none, while a missing one is the fallback. */
static tg_status put_sizes(tg_hf_values *m) {
    int64_t width = 0;
    for (const tg_hf_size *s = m->family->sizes; s->theirs; s++) {
        int64_t value = s->fallback;
        const tg_json *there = get(m, m->root, s->theirs);
        if (s->fallback == 0 || tg_hf_member(m, m->root, s->theirs))
            TG_TRY(tg_hf_get_int(m, m->root, s->theirs, &value));
        else if (there && m->family->all_windowed)
            continue;
        if (value == -4) value = 4 * width;
        if (strcmp(s->ours, "embedding_length") == 0) width = value;
        if (value > 0) tg_hf_put_int(m, s->ours, value);
    }
    return TG_OK;
}

/* Qwen's and SmolLM3's windows are switched off, so what they would be like does not matter. */
static tg_status want_no_windows(tg_hf_values *m) {
    const tg_json *types = tg_hf_member(m, m->root, "layer_types");
    if (strncmp(m->family->model_type, "qwen", 4) == 0 || m->family->still_every) {
        get(m, m->root, "max_window_layers");
        get(m, m->root, "sliding_window");
    }
    for (const tg_json *t = types ? tg_json_first(types) : NULL; t; t = tg_json_next(t))
        if (!tg_json_is(t, "full_attention"))
            return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                           "%s: layer_types: want full_attention in all layers, have %.60s",
                           m->where, TG_JSON_SHOWN(t));
    return TG_OK;
}

/* Layers that do not turn: the family's rhythm, as a list of all layers or as a number. */
static tg_status want_still(tg_hf_values *m) {
    const int32_t every = m->family->still_every;
    if (every == 0) return TG_OK;
    const tg_json *list = tg_hf_member(m, m->root, "no_rope_layers");
    const tg_json *number = tg_hf_member(m, m->root, "no_rope_layer_interval");
    int32_t layer = 0;
    bool fits = list || !number || is_number(number, every);
    for (const tg_json *v = list ? tg_json_first(list) : NULL; v; v = tg_json_next(v))
        fits = fits && is_number(v, ++layer % every != 0);
    return fits ? TG_OK
                : tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                          "%s: %s: want one layer of every %d without positions, have others",
                          m->where, list ? "no_rope_layers" : "no_rope_layer_interval", (int)every);
}

/* Options that a family has computed one way: the activation must be one of its own, switches
 * must be off, positions of the kind that it turns by. */
static tg_status check_options(tg_hf_values *m) {
    const tg_hf_family *f = m->family;
    const tg_json *act = f->act_key ? tg_hf_member(m, m->root, f->act_key) : NULL;
    size_t i = 0;
    while (act && f->acts[i] && !tg_json_is(act, f->acts[i])) i++;
    if (act && !f->acts[i]) {
        char known[96] = "";
        for (i = 0; f->acts[i]; i++)
            tg_str_append(known, sizeof known, "%s%s", i ? " or " : "", f->acts[i]);
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: %s: want %s, have %.60s", m->where,
                       f->act_key, known, TG_JSON_SHOWN(act));
    }
    if (act && f->gelu_erf && tg_json_is(act, f->gelu_erf))
        tg_hf_put_text(m, "activation", "gelu_erf", 8);
    for (i = 0; f->switches[i]; i++) {
        const tg_json *v = get(m, m->root, f->switches[i]);
        if (v && !is_off(v))
            return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: %s: want none, have %.60s", m->where,
                           f->switches[i], TG_JSON_SHOWN(v));
    }
    const tg_json *positions = tg_hf_member(m, m->root, "position_embedding_type");
    const char *known_positions = f->positions ? f->positions : "absolute";
    if (positions && !tg_json_is(positions, known_positions))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: position_embedding_type: want %s, have %.60s", m->where,
                       known_positions, TG_JSON_SHOWN(positions));
    TG_TRY(want_still(m));
    return f->window_every || f->all_windowed || f->other_layer ? TG_OK : want_no_windows(m);
}

/* ----------------------------------------------------------------------------- kinds of layers */

static bool list_has(const tg_json *list, int64_t number) {
    int64_t have;
    for (const tg_json *v = list ? tg_json_first(list) : NULL; v; v = tg_json_next(v))
        if (tg_json_int64(NULL, v, &have) == TG_OK && have == number) return true;
    return false;
}

/*
 * GGUF tells layers of attention by their heads of keys, of which others have none, or lists the
 * others. config.json has a list of names, or one of the numbers of those that are attention
 * (LFM2's first files), or says of how many one is (Qwen 3.5).
 *
 *     layers                  linear linear linear full
 *     head_count_kv           [0, 0, 0, K]; or K, and beside it
 *     recurrent_layers        [1, 1, 1, 0]
 *
 * A list of names wins over the other two, and has one for each layer. The number of layers is
 * the file's claim: it is bounded before room is made for the list.
 */
static tg_status put_kinds(tg_hf_values *m) {
    const tg_json *types = tg_hf_member(m, m->root, "layer_types");
    const tg_json *full = tg_hf_member(m, m->root, "full_attn_idxs");
    int64_t layers = 0, heads = 0;
    TG_TRY(tg_hf_get_int(m, m->root, "num_hidden_layers", &layers));
    const bool own = tg_hf_member(m, m->root, "num_key_value_heads");
    TG_TRY(tg_hf_get_int(m, m->root, own ? "num_key_value_heads" : "num_attention_heads", &heads));
    const bool list = types && tg_json_kind(types) == TG_JSON_ARRAY;
    if (layers > INT16_MAX || (types && (!list || types->count != (size_t)layers)))
        return tg_fail(m->g->ctx, TG_E_FORMAT,
                       "%s: layer_types: want one for each of %" PRId64 " layers, have %.60s",
                       m->where, layers, TG_JSON_SHOWN(types));
    const bool recurrent = m->family->recurrent;
    int64_t every = 4;
    if (recurrent && tg_hf_member(m, m->root, "full_attention_interval"))
        TG_TRY(tg_hf_get_int(m, m->root, "full_attention_interval", &every));
    if (recurrent) tg_hf_put_int(m, "attention.head_count_kv", heads);
    uint8_t *each = tg_hf_put_ints(
        m, recurrent ? "attention.recurrent_layers" : "attention.head_count_kv", (size_t)layers);
    const tg_json *t = types ? tg_json_first(types) : NULL;
    for (int64_t i = 0; each && i < layers; i++, t = t ? tg_json_next(t) : NULL) {
        const tg_hf_family *f = m->family;
        const bool other =
            t && (tg_json_is(t, f->other_layer) || (f->other_now && tg_json_is(t, f->other_now)));
        if (t && !other && !tg_json_is(t, "full_attention") &&
            !(f->attention_layer && tg_json_is(t, f->attention_layer)))
            return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                           "%s: layer_types: want full_attention or %s, have %.60s", m->where,
                           m->family->other_layer, TG_JSON_SHOWN(t));
        const bool attends = t           ? !other
                             : recurrent ? (i + 1) % every == 0
                                         : !full || list_has(full, i);
        tg_put_u32(each + 4 * i, recurrent ? !attends : attends ? (uint32_t)heads : 0);
    }
    return TG_OK;
}

/* ---------------------------------------------------------------------------------------- rope */

/* Elements of a head. head_dim is read where it is said, since newer models have heads that do
 * not make up the width. */
static tg_status get_head(tg_hf_values *m, int64_t *head) {
    int64_t width = 0, heads = 0;
    if (tg_hf_member(m, m->root, "head_dim")) {
        TG_TRY(tg_hf_get_int(m, m->root, "head_dim", head));
    } else {
        TG_TRY(tg_hf_get_int(m, m->root, "hidden_size", &width));
        TG_TRY(tg_hf_get_int(m, m->root, "num_attention_heads", &heads));
        *head = width / heads;
    }
    if (*head >= 2 && *head <= 65536) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: head_dim: want 2..65536, have %d", m->where,
                   (int)*head);
}

/* They live in the arena of the tg_gguf, where hf.c makes a tensor of them. */
static tg_status new_factors(tg_hf_values *m, int kind, size_t n) {
    m->n_factors = n;
    m->factors[kind] = tg_arena_array(&m->g->arena, n, sizeof(float));
    return m->factors[kind] ? TG_OK : tg_fail_memory(m->g->ctx, m->where, n * sizeof(float));
}

/* GGUF has what each frequency is divided by, as rope_freqs.weight, f32 [D/2]; the rule itself
 * has no key there. llama.cpp's converter computes the same numbers. */
static tg_status put_llama3(tg_hf_values *m, const tg_json *rope, double base) {
    tg_rope_llama3 rule = { 0 };
    int64_t head = 0;
    tg_ctx *ctx = m->g->ctx;
    TG_TRY(tg_hf_get_float(m, rope, "factor", &rule.factor));
    TG_TRY(tg_hf_get_float(m, rope, "low_freq_factor", &rule.low));
    TG_TRY(tg_hf_get_float(m, rope, "high_freq_factor", &rule.high));
    TG_TRY(tg_hf_get_float(m, rope, "original_max_position_embeddings", &rule.original));
    if (!(rule.factor >= 1 && rule.low > 0 && rule.high > rule.low && rule.original > 0))
        return tg_fail(ctx, TG_E_FORMAT,
                       "%s: rope of llama3: want factor of 1 or more, low_freq_factor below "
                       "high_freq_factor, and original_max_position_embeddings, have %g, %g, %g, "
                       "%g",
                       m->where, rule.factor, rule.low, rule.high, rule.original);
    TG_TRY(get_head(m, &head));
    TG_TRY(new_factors(m, TG_FACTORS_LLAMA3, (size_t)head / 2));
    tg_rope_llama3_fill(&rule, base, (size_t)head, m->factors[TG_FACTORS_LLAMA3]);
    return TG_OK;
}

/* The positions of the first training: of the object, or of the whole file. */
static tg_status put_original(tg_hf_values *m, const tg_json *rope, int64_t *original) {
    static const char key[] = "original_max_position_embeddings";
    const tg_json *inside = tg_hf_member(m, rope, key), *outside = tg_hf_member(m, m->root, key);
    if (inside || outside) TG_TRY(tg_hf_get_int(m, inside ? rope : m->root, key, original));
    tg_hf_put_int(m, "rope.scaling.original_context_length", *original);
    return TG_OK;
}

/* YaRN (Peng et al. 2023) with the bounds of its authors, 32 turns and 1. attention_factor is
 * the whole scale of cosines and sines in transformers; llama.cpp multiplies the authors' 1 +
 * 0.1 ln(factor) with attn_factor, so the key gets the quotient. */
static tg_status put_yarn(tg_hf_values *m, const tg_json *rope) {
    double factor = 0, scale = 0, fast = 32, slow = 1;
    int64_t original = 0;
    TG_TRY(tg_hf_get_int(m, m->root, "max_position_embeddings", &original));
    TG_TRY(tg_hf_get_float(m, rope, "factor", &factor));
    TG_TRY(tg_hf_get_float(m, rope, "beta_fast", &fast));
    TG_TRY(tg_hf_get_float(m, rope, "beta_slow", &slow));
    TG_TRY(tg_hf_get_float(m, rope, "attention_factor", &scale));
    const tg_json *whole = tg_hf_member(m, rope, "truncate");
    if (!(factor > 1) || fast != 32 || slow != 1 || (whole && !is_on(whole)))
        return tg_fail(
            m->g->ctx, TG_E_UNSUPPORTED,
            "%s: rope of yarn: want a factor above 1, bounds of 32 and 1, truncated, have "
            "%g, %g and %g",
            m->where, factor, fast, slow);
    tg_hf_put_text(m, "rope.scaling.type", "yarn", 4);
    tg_hf_put_float(m, "rope.scaling.factor", factor);
    const double theirs = 1 + 0.1 * tg_log(factor);
    if (scale > 0) tg_hf_put_float(m, "rope.scaling.attn_factor", scale / theirs);
    return put_original(m, rope, &original);
}

/* A list of numbers above 0, one for each of n pairs. Each number is marked as asked for, since
 * the list is a part of the object that want_known_rope goes through. */
static tg_status put_factors(tg_hf_values *m, const tg_json *rope, const char *key, int kind,
                             size_t n) {
    const tg_json *list = tg_hf_member(m, rope, key), *v;
    bool fits = list && tg_json_kind(list) == TG_JSON_ARRAY && list->count == n;
    TG_TRY(new_factors(m, kind, n));
    v = fits ? tg_json_first(list) : NULL;
    for (size_t i = 0; v; v = tg_json_next(v), i++) {
        double x = 0;
        fits = fits && tg_json_double(NULL, v, &x) == TG_OK && x > 0 && x < 1e30;
        m->factors[kind][i] = (float)x;
        m->asked[v - m->root] = true;
    }
    if (fits) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: rope: %s: want %zu numbers above 0, have others",
                   m->where, key, n);
}

/* Factors by the length of texts (Ding et al. 2024), and the scale that follows from how far
 * they stretch it: sqrt(1 + ln(factor) / ln(original)), where factor is the ratio of the context
 * to the original one unless the file states it. The scale is written even where it is 1. */
static tg_status put_longrope(tg_hf_values *m, const tg_json *rope, int64_t turned) {
    double factor = 0, scale = 0;
    int64_t original = 4096, most = 0;
    TG_TRY(put_factors(m, rope, "short_factor", TG_FACTORS_SHORT, (size_t)turned / 2));
    TG_TRY(put_factors(m, rope, "long_factor", TG_FACTORS_LONG, (size_t)turned / 2));
    TG_TRY(tg_hf_get_int(m, m->root, "max_position_embeddings", &most));
    TG_TRY(put_original(m, rope, &original));
    TG_TRY(tg_hf_get_float(m, rope, "factor", &factor));
    TG_TRY(tg_hf_get_float(m, rope, "attention_factor", &scale));
    if (factor == 0) factor = (double)most / (double)original;
    if (scale == 0 && factor > 1) scale = tg_sqrt(1 + tg_log(factor) / tg_log((double)original));
    tg_hf_put_float(m, "rope.scaling.attn_factor", scale > 0 ? scale : 1);
    return TG_OK;
}

/* What else stands in the object would belong to another kind of scaling, such as factors of a
 * list in one of yarn. want_known looks at the members of the root alone, not at what is in
 * them. */
static tg_status want_known_rope(tg_hf_values *m, const tg_json *rope) {
    for (const tg_json *v = rope ? tg_json_first(rope) : NULL; v; v = tg_json_next(v))
        if (!m->asked[v - m->root] && tg_json_kind(v) != TG_JSON_NULL)
            return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                           "%s: rope: %.60s: want no such key for this rope_type, have %.60s",
                           m->where, v->key, TG_JSON_SHOWN(v));
    return TG_OK;
}

/* All of the head turns but in a family that says another thing. */
static tg_status want_whole_head(tg_hf_values *m, const tg_json *object) {
    const tg_json *partial = get(m, object, "partial_rotary_factor");
    if (!partial || is_on(partial) || m->family->part > 0) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: partial_rotary_factor: want 1, have %.40s",
                   m->where, TG_JSON_SHOWN(partial));
}

/* Elements of a head that turn, where it may be a part; turned: their number, even, for
 * put_longrope's lists. The newer object wins over the root, as its values do in all of this
 * section. */
static tg_status put_part(tg_hf_values *m, const tg_json *rope, int64_t *turned) {
    double part = m->family->part;
    int64_t head = 0;
    TG_TRY(get_head(m, &head));
    TG_TRY(tg_hf_get_float(m, m->root, "partial_rotary_factor", &part));
    if (rope) TG_TRY(tg_hf_get_float(m, rope, "partial_rotary_factor", &part));
    *turned = (int64_t)((double)head * part);
    if (part <= 1 && *turned >= 2 && *turned % 2 == 0) {
        tg_hf_put_int(m, "rope.dimension_count", *turned);
        return TG_OK;
    }
    return tg_fail(
        m->g->ctx, TG_E_FORMAT,
        "%s: partial_rotary_factor: want an even number of a head's %d elements, have %g", m->where,
        (int)head, part);
}

/* Of a head's pairs the first ones alone turn, as in a head that turns as a whole: GGUF divides the
 * frequencies of the others by 1e30. */
static tg_status put_proportional(tg_hf_values *m, const tg_json *rope) {
    double part = m->family->proportional, factor = 1;
    int64_t head = 0;
    for (size_t i = 0; i < m->n; i++)
        if (tg_hf_ends_with(m->v[i].key, ".attention.key_length")) head = m->v[i].whole;
    if (rope && !tg_hf_member(m, rope, "partial_rotary_factor")) part = 1;
    if (rope) TG_TRY(tg_hf_get_float(m, rope, "partial_rotary_factor", &part));
    if (rope) TG_TRY(tg_hf_get_float(m, rope, "factor", &factor));
    /* What our own writer divided may be a hair below the whole number. */
    const size_t half = (size_t)head / 2, turned = (size_t)((double)head * part / 2 + 1e-9);
    if (head < 2 || head > 65536 || head % 2 != 0 || part > 1 || turned < 1 || factor != 1)
        return tg_fail(
            m->g->ctx, TG_E_UNSUPPORTED,
            "%s: rope of proportional: want a part of up to 1 of a head, and a factor of "
            "1, have %g of %d, and %g",
            m->where, part, (int)head, factor);
    TG_TRY(new_factors(m, TG_FACTORS_LLAMA3, half));
    tg_rope_proportional_fill(m->factors[TG_FACTORS_LLAMA3], half, turned);
    return TG_OK;
}

/* The kind is "rope_type", or "type" in older files. The conditions beside a kind keep it from
 * families that are not computed with it, such as Gemma: there it is refused, not tried. */
static tg_status put_scaling(tg_hf_values *m, const tg_json *rope, double base, int64_t turned) {
    const tg_json *kind = tg_hf_member(m, rope, "rope_type"), *old = tg_hf_member(m, rope, "type");
    if (!kind) kind = old;
    if (!kind || tg_json_is(kind, "default")) return TG_OK;
    double factor = 1;
    if (TG_NATIVE_PARTS && m->family->proportional > 0 && tg_json_is(kind, "proportional"))
        return put_proportional(m, rope);
    const bool yarn = tg_json_is(kind, "yarn");
    if (m->family->longrope && (yarn || tg_json_is(kind, "longrope") || tg_json_is(kind, "su")))
        return put_longrope(m, rope, turned);
    if (yarn && !m->family->query_scalar) return put_yarn(m, rope);
    if (tg_json_is(kind, "llama3") && !m->family->window_every) return put_llama3(m, rope, base);
    if (!tg_json_is(kind, "linear"))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: rope: want default, linear, yarn or llama3, have %.60s", m->where,
                       TG_JSON_SHOWN(kind));
    TG_TRY(tg_hf_get_float(m, rope, "factor", &factor));
    tg_hf_put_text(m, "rope.scaling.type", "linear", 6);
    tg_hf_put_float(m, "rope.scaling.factor", factor);
    return TG_OK;
}

/* Layers with a window turn by a base of their own, and are not scaled. */
static tg_status put_local_rope(tg_hf_values *m, const tg_json *windowed) {
    double local = m->family->local_base;
    const char *own = m->family->local_key;
    TG_TRY(tg_hf_get_float(m, m->root, own ? own : "rope_local_base_freq", &local));
    if (windowed) TG_TRY(tg_hf_get_float(m, windowed, "rope_theta", &local));
    tg_hf_put_float(m, "rope.freq_base_swa", local);
    const tg_json *kind = tg_hf_member(m, windowed, "rope_type");
    TG_TRY(want_whole_head(m, windowed));
    if (!kind || tg_json_is(kind, "default")) return want_known_rope(m, windowed);
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                   "%s: rope of sliding_attention: want default, have %.60s", m->where,
                   TG_JSON_SHOWN(kind));
}

/* rope_parameters since transformers 5, perhaps one each for layers with and without a window;
 * rope_theta and rope_scaling before. */
static tg_status put_rope(tg_hf_values *m) {
    const tg_json *all = tg_hf_member(m, m->root, "rope_parameters");
    const tg_json *full = tg_hf_member(m, all, "full_attention");
    const tg_json *windowed = tg_hf_member(m, all, "sliding_attention");
    if (!full) full = all;
    double base = m->family->rope_base > 0 ? m->family->rope_base : 1e4;
    int64_t turned = 0;
    TG_TRY(tg_hf_get_float(m, m->root, "rope_theta", &base));
    if (m->family->base_key) TG_TRY(tg_hf_get_float(m, m->root, m->family->base_key, &base));
    if (full) TG_TRY(tg_hf_get_float(m, full, "rope_theta", &base));
    tg_hf_put_float(m, "rope.freq_base", base);
    TG_TRY(want_whole_head(m, m->root));
    if (m->family->local_rope) TG_TRY(put_local_rope(m, windowed));
    const tg_json *scaling = full ? full : tg_hf_member(m, m->root, "rope_scaling");
    if (m->family->part > 0) TG_TRY(put_part(m, scaling, &turned));
    const bool proportional = TG_NATIVE_PARTS && m->family->proportional > 0;
    if (!scaling) return proportional ? put_proportional(m, NULL) : TG_OK;
    if (!proportional) TG_TRY(want_whole_head(m, scaling));
    TG_TRY(put_scaling(m, scaling, base, turned));
    /* Parts that turn by rows and columns of images; of a text all turn by its positions. */
    if (m->family->beside) {
        get(m, scaling, "mrope_section");
        get(m, scaling, "mrope_interleaved");
    }
    TG_TRY(want_known_rope(m, scaling));
    return want_known_rope(m, all);
}

/* One layer of so many sees all; by a number, or by a list of all layers. transformers saves the
 * number under a private name (with "_" in front) once it writes the list. A file that says
 * nothing has the family's own period, and so has GGUF without the key. */
static tg_status put_windows(tg_hf_values *m) {
    const tg_json *types = tg_hf_member(m, m->root, "layer_types");
    const char *own = m->family->every_key, *key = own ? own : "sliding_window_pattern";
    const tg_json *every = tg_hf_member(m, m->root, key);
    const tg_json *saved = tg_hf_member(m, m->root, "_sliding_window_pattern");
    double scalar = 256;
    const int32_t usual = m->family->window_every;
    int64_t period = usual, layer = 0;
    if (m->family->query_scalar) {
        TG_TRY(tg_hf_get_float(m, m->root, "query_pre_attn_scalar", &scalar));
        tg_hf_put_float(m, "attention.scale", 1 / tg_sqrt(scalar));
    }
    if (types) {
        const bool first = m->family->first_sees_all;
        const tg_json *t = tg_json_first(types);
        if (first && t) t = tg_json_next(t);
        for (period = 1; t && tg_json_is(t, "sliding_attention"); t = tg_json_next(t)) period++;
        for (t = tg_json_first(types); t; t = tg_json_next(t), layer++)
            if (!tg_json_is(t, (layer + !first) % period == 0 ? "full_attention"
                                                              : "sliding_attention"))
                return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                               "%s: layer_types: want one layer of every %d without a window, have "
                               "%.40s as number %d",
                               m->where, (int)period, TG_JSON_SHOWN(t), (int)layer + 1);
    } else if (every) {
        TG_TRY(tg_hf_get_int(m, m->root, key, &period));
    } else if (saved) {
        TG_TRY(tg_hf_get_int(m, m->root, "_sliding_window_pattern", &period));
    }
    if (!m->family->lists_windows) {
        if (period != usual) tg_hf_put_int(m, "attention.sliding_window_pattern", period);
        return TG_OK;
    }
    int64_t layers = 0;
    TG_TRY(tg_hf_get_int(m, m->root, "num_hidden_layers", &layers));
    if (!types && layers % period != 0)
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: layer_types: want a kind for each of %" PRId64
                       " layers, as every %" PRId64 " does not divide them, have none",
                       m->where, layers, period);
    uint8_t *each = tg_hf_put_bools(m, "attention.sliding_window_pattern", (size_t)layers);
    for (int64_t i = 0; each && i < layers; i++) each[i] = (i + 1) % period != 0;
    return TG_OK;
}

/* ----------------------------------------------------------------------------- all that is left */

static const tg_hf_key harmless[] = {
#define TG_HF_KEY(key, value, why) { key, TG_HF_##value },
#include "io/hf/hf_keys.def"
#undef TG_HF_KEY
};

bool tg_hf_key_in(const tg_hf_key *list, size_t n, const tg_json *v) {
    if (tg_json_kind(v) == TG_JSON_NULL) return true;
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].key, v->key) == 0)
            return list[i].value == TG_HF_ANY ||
                   (list[i].value == TG_HF_OFF ? is_off(v) : is_on(v));
    return false;
}

bool tg_hf_harmless(const tg_json *v) {
    return tg_hf_key_in(harmless, sizeof harmless / sizeof harmless[0], v);
}

/* The end of every reading: by now all that matters has been asked for. */
static tg_status want_known(tg_hf_values *m) {
    for (const tg_json *v = tg_json_first(m->root); v; v = tg_json_next(v))
        if (!m->asked[v - m->root] && !tg_hf_harmless(v))
            return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                           "%s: %.80s: want keys that are known, since another may change what the "
                           "model computes, have this one as %.60s",
                           m->where, v->key, TG_JSON_SHOWN(v));
    return TG_OK;
}

/* Nodes of a document lie one behind the other, so the last one tells how many there are. */
static size_t count_nodes(const tg_json *root) {
    const tg_json *last = root;
    while (last->count) {
        last = tg_json_first(last);
        while (tg_json_next(last)) last = tg_json_next(last);
    }
    return (size_t)(last - root) + 1;
}

/* A model that sees images has that of its texts in an object of its own. Of what stands beside
 * it, only what is known to belong to images may. *root becomes that object; *tie: as outside,
 * for files that state it there alone. */
static tg_status find_text(tg_hf_values *m, const tg_json **root, const tg_json **tie) {
    static const char *const beside[] = {
        "model_type",          "vision_config",       "image_token_id",
        "video_token_id",      "vision_end_token_id", "vision_start_token_id",
        "language_model_only", "audio_config",        "audio_token_id",
        "boi_token_id",        "eoi_token_id",        "boa_token_id",
        "eoa_token_index",     "eoa_token_id",        "vision_soft_tokens_per_image"
    };
    const tg_json *text = tg_json_get(*root, "text_config");
    *tie = tg_json_get(*root, "tie_word_embeddings");
    if (!text || tg_json_kind(text) != TG_JSON_OBJECT) return TG_OK;
    for (const tg_json *v = tg_json_first(*root); v; v = tg_json_next(v)) {
        size_t i = 0;
        const size_t n = sizeof beside / sizeof beside[0];
        while (i < n && strcmp(beside[i], v->key) != 0) i++;
        if (i == n && v != text && v != *tie && !tg_hf_harmless(v))
            return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                           "%s: %.80s: want keys that are known beside text_config, have this one "
                           "as %.60s",
                           m->where, v->key, TG_JSON_SHOWN(v));
    }
    *root = text;
    return TG_OK;
}

/* The order matters where one step needs another: the family names the keys, sizes come before
 * options that depend on them, and want_known is last. */
tg_status tg_hf_config(tg_hf_values *m, const char *where, const tg_json *root, bool *tied,
                       tg_hf_quant *quant) {
    const tg_json *outside;
    m->where = where;
    if (tg_json_kind(root) != TG_JSON_OBJECT)
        return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: want a JSON object, have another value", where);
    TG_TRY(find_text(m, &root, &outside));
    const size_t n = count_nodes(root);
    m->root = root;
    m->asked = tg_arena_alloc(&m->g->arena, n);
    if (!m->asked) return tg_fail_memory(m->g->ctx, where, n);
    TG_TRY(find_family(m));
    const tg_hf_family *f = m->family;
    double eps = f->eps;
    tg_hf_put_text(m, ".general.architecture", f->arch, strlen(f->arch));
    TG_TRY(put_sizes(m));
    if (f->other_layer) TG_TRY(put_kinds(m));
    if (f->read) TG_TRY(f->read(m));
    TG_TRY(tg_hf_get_float(m, root, f->eps_theirs, &eps));
    tg_hf_put_float(m, f->eps_ours, eps);
    TG_TRY(check_options(m));
    if (f->rope) TG_TRY(put_rope(m));
    if (f->window_every) TG_TRY(put_windows(m));
    const tg_json *tie = tg_hf_member(m, root, "tie_word_embeddings");
    if (!tie) tie = outside;
    *tied = tie ? tg_json_kind(tie) == TG_JSON_TRUE : f->tied;
    TG_TRY(tg_hf_quant_read(m, quant));
    return want_known(m);
}
