/*
 * hf_config.c - config.json as the metadata of a GGUF file.
 *
 * Whatever changes what the model computes is either translated or refused by its name: a config
 * that is half understood would give answers that are wrong without a sign of it.
 */
#include "base/math.h"
#include "base/str.h"
#include "io/hf.h"

/* What is not null. */
static const tg_json *member(const tg_json *v, const char *key) {
    const tg_json *m = v ? tg_json_get(v, key) : NULL;
    return m && tg_json_kind(m) != TG_JSON_NULL ? m : NULL;
}

static const char *shown(const tg_json *v) {
    if (!v) return "none";
    const tg_json_type kind = tg_json_kind(v);
    return kind == TG_JSON_STRING || kind == TG_JSON_NUMBER ? v->u.text : "another value";
}

static tg_status find_family(tg_hf_values *m, const char *where, const tg_json *root) {
    const tg_json *type = member(root, "model_type");
    char known[160] = "";
    for (size_t i = 0; i < tg_n_hf_families; i++) {
        m->family = &tg_hf_families[i];
        if (type && tg_json_is(type, m->family->model_type)) return TG_OK;
        tg_str_append(known, sizeof known, " %s", m->family->model_type);
    }
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: model_type: want one of%s, have %.60s", where,
                   known, shown(type));
}

static tg_status get_int(tg_ctx *ctx, const char *where, const tg_json *root, const char *key,
                         int64_t *out) {
    const tg_json *v = member(root, key);
    if (v && tg_json_int64(NULL, v, out) == TG_OK && *out >= 1 && *out <= INT32_MAX) return TG_OK;
    return tg_fail(ctx, TG_E_FORMAT, "%s: %s: want a whole number in 1..%d, have %.40s", where, key,
                   INT32_MAX, shown(v));
}

/* A float that may be missing; *out stays then. */
static tg_status get_float(tg_ctx *ctx, const char *where, const tg_json *root, const char *key,
                           double *out) {
    const tg_json *v = member(root, key);
    if (!v) return TG_OK;
    if (tg_json_double(NULL, v, out) == TG_OK && *out > 0 && *out < 1e30) return TG_OK;
    return tg_fail(ctx, TG_E_FORMAT, "%s: %s: want a number above 0, have %.40s", where, key,
                   shown(v));
}

static tg_status put_sizes(tg_hf_values *m, const char *where, const tg_json *root) {
    for (const tg_hf_size *s = m->family->sizes; s->theirs; s++) {
        int64_t value = s->fallback;
        if (s->fallback == 0 || member(root, s->theirs))
            TG_TRY(get_int(m->g->ctx, where, root, s->theirs, &value));
        if (value > 0) tg_hf_put_int(m, s->ours, value);
    }
    /* GPT-2's is four times the width where it is not said. */
    int64_t width = 0;
    if (strcmp(m->family->arch, "gpt2") == 0 && !member(root, "n_inner")) {
        TG_TRY(get_int(m->g->ctx, where, root, "n_embd", &width));
        tg_hf_put_int(m, "feed_forward_length", 4 * width);
    }
    return TG_OK;
}

static tg_status check_options(tg_hf_values *m, const char *where, const tg_json *root) {
    const tg_hf_family *f = m->family;
    const tg_json *act = member(root, f->act_key);
    size_t i = 0;
    while (act && f->acts[i] && !tg_json_is(act, f->acts[i])) i++;
    if (act && !f->acts[i])
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: %s: want %s, have %.60s", where,
                       f->act_key, f->acts[0], shown(act));
    if (act && tg_json_is(act, "gelu") && strcmp(f->arch, "gpt2") == 0)
        tg_hf_put_text(m, "activation", "gelu_erf", 8);
    for (i = 0; f->switches[i]; i++) {
        const tg_json *v = member(root, f->switches[i]);
        if (v && tg_json_kind(v) != TG_JSON_FALSE)
            return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: %s: want none, have %.60s", where,
                           f->switches[i], shown(v));
    }
    const tg_json *positions = member(root, "position_embedding_type");
    if (positions && !tg_json_is(positions, "absolute"))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: position_embedding_type: want absolute, have %.60s", where,
                       shown(positions));
    return TG_OK;
}

/* ---------------------------------------------------------------------------------------- rope */

/*
 * Llama 3: slow frequencies are divided by factor, fast ones stay, and those between are blended.
 * GGUF has what each is divided by, as rope_freqs.weight (transformers' modeling_rope_utils).
 */
static tg_status put_llama3(tg_hf_values *m, const char *where, const tg_json *rope, double base,
                            const tg_json *root) {
    double factor = 0, low = 0, high = 0, original = 0;
    int64_t head = 0, width = 0, heads = 0;
    tg_ctx *ctx = m->g->ctx;
    TG_TRY(get_float(ctx, where, rope, "factor", &factor));
    TG_TRY(get_float(ctx, where, rope, "low_freq_factor", &low));
    TG_TRY(get_float(ctx, where, rope, "high_freq_factor", &high));
    TG_TRY(get_float(ctx, where, rope, "original_max_position_embeddings", &original));
    if (!(factor >= 1 && low > 0 && high > low && original > 0))
        return tg_fail(ctx, TG_E_FORMAT,
                       "%s: rope of llama3: want factor of 1 or more, low_freq_factor below "
                       "high_freq_factor, and original_max_position_embeddings, have %g, %g, %g, "
                       "%g",
                       where, factor, low, high, original);
    if (member(root, "head_dim")) {
        TG_TRY(get_int(ctx, where, root, "head_dim", &head));
    } else {
        TG_TRY(get_int(ctx, where, root, "hidden_size", &width));
        TG_TRY(get_int(ctx, where, root, "num_attention_heads", &heads));
        head = width / heads;
    }
    if (head < 2 || head > 65536)
        return tg_fail(ctx, TG_E_FORMAT, "%s: head_dim: want 2..65536, have %d", where, (int)head);
    m->n_factors = (size_t)head / 2;
    m->factors = tg_arena_array(&m->g->arena, m->n_factors, sizeof *m->factors);
    if (!m->factors) return tg_fail_memory(ctx, where, m->n_factors * sizeof *m->factors);
    for (size_t i = 0; i < m->n_factors; i++) {
        const double freq = 1 / tg_pow(base, (double)(2 * i) / (double)head);
        const double turns = original * freq / (2 * TG_PI); /* within the original context */
        const double blend = (turns - low) / (high - low);
        const double scaled = turns > high  ? freq
                              : turns < low ? freq / factor
                                            : (1 - blend) * freq / factor + blend * freq;
        m->factors[i] = (float)(freq / scaled);
    }
    return TG_OK;
}

static tg_status put_scaling(tg_hf_values *m, const char *where, const tg_json *rope, double base,
                             const tg_json *root) {
    const tg_json *kind = member(rope, "rope_type");
    if (!kind) kind = member(rope, "type");
    if (!kind || tg_json_is(kind, "default")) return TG_OK;
    double factor = 1;
    if (tg_json_is(kind, "llama3") && !m->family->windows)
        return put_llama3(m, where, rope, base, root);
    if (!tg_json_is(kind, "linear"))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: rope: want default, linear or llama3, have %.60s", where, shown(kind));
    TG_TRY(get_float(m->g->ctx, where, rope, "factor", &factor));
    tg_hf_put_text(m, "rope.scaling.type", "linear", 6);
    tg_hf_put_float(m, "rope.scaling.factor", factor);
    return TG_OK;
}

/* rope_parameters since transformers 5, perhaps one each for layers with and without a window;
 * rope_theta and rope_scaling before. */
static tg_status put_rope(tg_hf_values *m, const char *where, const tg_json *root) {
    const tg_json *all = member(root, "rope_parameters");
    const tg_json *full = member(all, "full_attention");
    const tg_json *windowed = member(all, "sliding_attention");
    if (!full) full = all;
    double base = m->family->windows ? 1e6 : 1e4, local = 1e4;
    TG_TRY(get_float(m->g->ctx, where, root, "rope_theta", &base));
    if (full) TG_TRY(get_float(m->g->ctx, where, full, "rope_theta", &base));
    tg_hf_put_float(m, "rope.freq_base", base);
    const tg_json *partial = member(full, "partial_rotary_factor");
    if (!partial) partial = member(root, "partial_rotary_factor");
    if (partial && !tg_json_is(partial, "1.0"))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: partial_rotary_factor: want none, have %.40s", where, shown(partial));
    if (m->family->windows) {
        TG_TRY(get_float(m->g->ctx, where, root, "rope_local_base_freq", &local));
        if (windowed) TG_TRY(get_float(m->g->ctx, where, windowed, "rope_theta", &local));
        tg_hf_put_float(m, "rope.freq_base_swa", local);
    }
    const tg_json *scaling = full ? full : member(root, "rope_scaling");
    return scaling ? put_scaling(m, where, scaling, base, root) : TG_OK;
}

/* Every sixth layer sees all, in all models of the family. */
static tg_status check_windows(tg_hf_values *m, const char *where, const tg_json *root) {
    const tg_json *types = member(root, "layer_types");
    const tg_json *every = member(root, "sliding_window_pattern");
    double scalar = 256;
    TG_TRY(get_float(m->g->ctx, where, root, "query_pre_attn_scalar", &scalar));
    tg_hf_put_float(m, "attention.scale", 1 / tg_sqrt(scalar));
    bool as_ever = !every || tg_json_is(every, "6");
    int number = 0;
    for (const tg_json *t = types ? tg_json_first(types) : NULL; t; t = tg_json_next(t))
        as_ever =
            as_ever && tg_json_is(t, ++number % 6 == 0 ? "full_attention" : "sliding_attention");
    if (as_ever) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                   "%s: layer_types: want every sixth layer without a window, have others", where);
}

/* ------------------------------------------------------------------------------- quantisation */

static tg_status read_group(tg_hf_values *m, const char *where, const tg_json *root,
                            uint32_t *group) {
    const tg_json *q = member(root, "quantization");
    if (!q) q = member(root, "quantization_config");
    *group = 0;
    if (!q) return TG_OK;
    const tg_json *method = member(q, "quant_method"), *mode = member(q, "mode");
    int64_t size = 0;
    if (method || (mode && !tg_json_is(mode, "affine")))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: quantization: want MLX's affine one, have %.60s", where,
                       shown(method ? method : mode));
    TG_TRY(get_int(m->g->ctx, where, q, "group_size", &size));
    if (size != 32 && size != 64 && size != 128)
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: quantization: group_size: want 32, 64 or 128, have %d", where,
                       (int)size);
    *group = (uint32_t)size;
    return TG_OK;
}

tg_status tg_hf_config(tg_hf_values *m, const char *where, const tg_json *root, bool *tied,
                       uint32_t *group) {
    if (tg_json_kind(root) != TG_JSON_OBJECT)
        return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: want a JSON object, have another value", where);
    TG_TRY(find_family(m, where, root));
    const tg_hf_family *f = m->family;
    double eps = f->eps;
    tg_hf_put_text(m, ".general.architecture", f->arch, strlen(f->arch));
    TG_TRY(put_sizes(m, where, root));
    TG_TRY(get_float(m->g->ctx, where, root, f->eps_theirs, &eps));
    tg_hf_put_float(m, f->eps_ours, eps);
    TG_TRY(check_options(m, where, root));
    if (f->rope) TG_TRY(put_rope(m, where, root));
    if (f->windows) TG_TRY(check_windows(m, where, root));
    const tg_json *tie = member(root, "tie_word_embeddings");
    *tied = tie ? tg_json_kind(tie) == TG_JSON_TRUE : f->tied;
    return read_group(m, where, root, group);
}
