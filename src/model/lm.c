/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lm.c - what families of model files have in common: sizes out of the metadata, the table of
 * tensors, and the small words that their graphs are written in.
 */
#include "model/lm.h"

#include "base/math.h"
#include "base/str.h"

#define TG_LM_FAMILY(symbol) extern const tg_lm_family tg_lm_family_##symbol;
#include "model/lms.def"
#undef TG_LM_FAMILY

const tg_lm_family *const tg_lm_families[] = {
#define TG_LM_FAMILY(symbol) &tg_lm_family_##symbol,
#include "model/lms.def"
#undef TG_LM_FAMILY
};
const size_t tg_n_lm_families = sizeof tg_lm_families / sizeof tg_lm_families[0];

const char *tg_lm_key(const tg_lm_config *c, const char *name, char out[TG_LM_KEY_BYTES]) {
    snprintf(out, TG_LM_KEY_BYTES, "%s.%s", c->family->name, name);
    return out;
}

/* ---------------------------------------------------------------------------------------- sizes
 */

static tg_status find_family(const tg_gguf *g, tg_lm_config *c) {
    tg_gguf_string name = { "", 0 };
    char known[128] = "";
    TG_TRY(tg_gguf_get_string(g, "general.architecture", &name));
    for (size_t i = 0; i < tg_n_lm_families; i++) {
        const tg_lm_family *f = tg_lm_families[i];
        if (strlen(f->name) == name.n_bytes && memcmp(f->name, name.bytes, name.n_bytes) == 0) {
            c->family = f;
            return TG_OK;
        }
        tg_str_append(known, sizeof known, " %s", f->name);
    }
    return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: architecture: want one of%s, have '%.*s'",
                   g->path, known, (int)(name.n_bytes < 64 ? name.n_bytes : 64), name.bytes);
}

/* A size that must be there. */
static tg_status want_int(const tg_gguf *g, const tg_lm_config *c, const char *name, int64_t max,
                          int32_t *out) {
    char key[TG_LM_KEY_BYTES];
    *out = 0;
    TG_TRY(tg_gguf_get_int(g, tg_lm_key(c, name, key), 1, max, out));
    if (*out == 0) return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s is missing", g->path, key);
    return TG_OK;
}

/* Limits are those that keep every product of sizes within 32 bits, and are far beyond any model
 * that a CPU would run. */
static tg_status read_config(const tg_gguf *g, tg_lm_config *c) {
    char key[TG_LM_KEY_BYTES];
    TG_TRY(find_family(g, c));
    TG_TRY(want_int(g, c, "block_count", 512, &c->layers));
    TG_TRY(want_int(g, c, "embedding_length", 65536, &c->width));
    TG_TRY(want_int(g, c, "feed_forward_length", 262144, &c->mlp));
    TG_TRY(want_int(g, c, "context_length", 1 << 24, &c->ctx));
    TG_TRY(want_int(g, c, "attention.head_count", 1024, &c->heads));
    c->kv_heads = c->heads;
    TG_TRY(tg_gguf_get_int(g, tg_lm_key(c, "attention.head_count_kv", key), 1, c->heads,
                           &c->kv_heads));
    c->head_size = c->width / c->heads;
    TG_TRY(tg_gguf_get_int(g, tg_lm_key(c, "attention.key_length", key), 2, 1024, &c->head_size));
    int32_t value_size = c->head_size;
    TG_TRY(tg_gguf_get_int(g, tg_lm_key(c, "attention.value_length", key), 1, 65536, &value_size));
    if (c->heads % c->kv_heads != 0 || c->head_size < 2 || c->head_size % 2 != 0 ||
        value_size != c->head_size)
        return tg_fail(g->ctx, TG_E_FORMAT,
                       "%s: heads: want key heads that divide query heads, of an even size, alike "
                       "for keys and values, have %d of %d, size %d and %d",
                       g->path, (int)c->kv_heads, (int)c->heads, (int)c->head_size,
                       (int)value_size);
    int32_t turned = c->head_size;
    TG_TRY(tg_gguf_get_int(g, tg_lm_key(c, "rope.dimension_count", key), 1, 65536, &turned));
    if (turned != c->head_size)
        return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: %s: want %d, the whole head, have %d",
                       g->path, key, (int)c->head_size, (int)turned);
    const tg_gguf_tensor *table = tg_gguf_tensor_find(g, "token_embd.weight");
    if (!table || table->n_dims != 2 || table->dim[1] > 1 << 26)
        return tg_fail(g->ctx, TG_E_FORMAT,
                       "%s: tensor token_embd.weight: want a matrix with a row for each token",
                       g->path);
    c->vocab = (int32_t)table->dim[1];
    int32_t vocab = c->vocab;
    TG_TRY(tg_gguf_get_int(g, tg_lm_key(c, "vocab_size", key), 1, 1 << 26, &vocab));
    if (vocab != c->vocab)
        return tg_fail(g->ctx, TG_E_SHAPE,
                       "%s: %s: want %d, the rows of token_embd.weight, have %d", g->path, key,
                       (int)c->vocab, (int)vocab);
    c->eps = 1e-5f;
    c->rope_base[0] = c->rope_base[1] = 1e4f;
    c->rope_factor = c->embed_scale = 1;
    c->score_scale = (float)(1 / tg_sqrt((double)c->head_size));
    TG_TRY(tg_gguf_get_float(g, tg_lm_key(c, "attention.layer_norm_rms_epsilon", key), &c->eps));
    TG_TRY(tg_gguf_get_float(g, tg_lm_key(c, "attention.layer_norm_epsilon", key), &c->eps));
    TG_TRY(tg_gguf_get_float(g, tg_lm_key(c, "attention.scale", key), &c->score_scale));
    TG_TRY(tg_gguf_get_float(g, tg_lm_key(c, "rope.freq_base", key), &c->rope_base[0]));
    return c->family->config(g, c);
}

/* As llama.cpp has it: a factor without a kind is linear, and 0 is none. The factor's older key is
 * that of files of 2023. */
tg_status tg_lm_read_scaling(const tg_gguf *g, tg_lm_config *c) {
    char key[TG_LM_KEY_BYTES];
    tg_gguf_string kind = { "linear", 6 };
    float factor = 0;
    TG_TRY(tg_gguf_get_string(g, tg_lm_key(c, "rope.scaling.type", key), &kind));
    const bool linear = kind.n_bytes == 6 && memcmp(kind.bytes, "linear", 6) == 0;
    if (!linear && !(kind.n_bytes == 4 && memcmp(kind.bytes, "none", 4) == 0))
        return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: %s: want none or linear, have '%.*s'",
                       g->path, key, (int)(kind.n_bytes < 32 ? kind.n_bytes : 32), kind.bytes);
    TG_TRY(tg_gguf_get_float(g, tg_lm_key(c, "rope.scale_linear", key), &factor));
    TG_TRY(tg_gguf_get_float(g, tg_lm_key(c, "rope.scaling.factor", key), &factor));
    if (factor < 0)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want 0 or more, have %g", g->path, key,
                       (double)factor);
    if (linear && factor > 0) c->rope_factor = factor;
    return TG_OK;
}

/* ------------------------------------------------------------------------------- all other keys */

/* Keys of the architecture that change nothing at a value: lm_keys.def. */
enum { ANY, ZERO, ONE };
static const struct {
    const char *name;
    int value;
} harmless[] = {
#define TG_LM_KEY(name, value, why) { name, value },
#include "model/lm_keys.def"
#undef TG_LM_KEY
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

/* asked[i]: value i of the file has been looked for. */
static tg_status want_known_keys(const tg_gguf *g, const tg_lm_config *c, const bool *asked) {
    const size_t n = strlen(c->family->name);
    for (size_t i = 0; i < g->n_values; i++) {
        const tg_gguf_value *v = &g->values[i];
        if (asked[i] || strncmp(v->key, c->family->name, n) != 0 || v->key[n] != '.' ||
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

/* Whatever is looked for while sizes are read is known; all else of the architecture is not. */
static tg_status read_known(const tg_gguf *g, tg_arena *arena, tg_lm_config *c) {
    tg_gguf view = *g;
    view.asked = tg_arena_alloc(arena, g->n_values);
    if (!view.asked) return tg_fail_memory(g->ctx, "metadata", g->n_values);
    TG_TRY(read_config(&view, c));
    return want_known_keys(g, c, view.asked);
}

/* ---------------------------------------------------------------------------------------- tensors
 */

static size_t size_of(const tg_lm_config *c, tg_lm_size size) {
    switch (size) {
    case TG_LM_WIDTH: return (size_t)c->width;
    case TG_LM_MLP: return (size_t)c->mlp;
    case TG_LM_VOCAB: return (size_t)c->vocab;
    case TG_LM_HEAD: return (size_t)c->head_size;
    case TG_LM_QUERIES: return (size_t)c->heads * (size_t)c->head_size;
    case TG_LM_KEYS: return (size_t)c->kv_heads * (size_t)c->head_size;
    case TG_LM_QKV: return size_of(c, TG_LM_QUERIES) + 2 * size_of(c, TG_LM_KEYS);
    case TG_LM_CTX: return (size_t)c->ctx;
    case TG_LM_TWO: return 2;
    case TG_LM_ONE: break;
    }
    return 1;
}

/* All that is wrong, for one message: the first ones by name, the rest by number. */
typedef struct faults {
    char text[600];
    size_t n;
    bool *asked; /* [n_tensors] of the file: somebody wanted it */
} faults;

static void add_fault(faults *f, const char *name, const char *what) {
    if (f->n++ < 6)
        tg_str_append(f->text, sizeof f->text, "%s%s: %s", f->n > 1 ? "; " : "", name, what);
}

/* The tensor of a want; false: there is none, which has been noted if it is a fault. */
static bool take_tensor(const tg_gguf *g, const tg_lm_config *c, const tg_lm_want *want,
                        const char *name, tg_lm_tensor *t, faults *f) {
    const tg_gguf_tensor *source = tg_gguf_tensor_find(g, name);
    const size_t rows = size_of(c, want->rows), cols = size_of(c, want->cols);
    if (!source) {
        if (!(want->flags & TG_LM_OPTIONAL)) add_fault(f, name, "missing");
        return false;
    }
    char what[160];
    f->asked[source - g->tensors] = true;
    if (source->dim[0] != cols || source->dim[1] != rows || source->elems != rows * cols) {
        snprintf(what, sizeof what, "want [%zu,%zu], have [%" PRIu64 ",%" PRIu64 "]", rows, cols,
                 source->dim[1], source->dim[0]);
        add_fault(f, name, what);
        return false;
    }
    *t = (tg_lm_tensor) { .name = name,
                          .source = source,
                          .packing = tg_packing_of(source->type),
                          .is_floats = want->rows == TG_LM_ONE || (want->flags & TG_LM_FLOATS),
                          .turns = (want->flags & TG_LM_ROPE_PAIRS) != 0,
                          .pairs = (want->flags & TG_LM_ROPE_PAIRS) && !g->heads_plain,
                          .rows = rows,
                          .cols = cols };
    return true;
}

/* Vectors are copied, too: they are floats whatever the file has, and small. Matrices of 16 bits
 * are multiplied with where they lie (linear_rows.h), those of 32, at 0.95 of the speed, are not.
 */
static void place_tensor(const tg_gguf *g, const tg_lm_want *want, bool stay, tg_lm *lm,
                         tg_lm_tensor *t) {
    const bool looked_up = (want->flags & TG_LM_TABLE) &&
                           (!lm->config.family->graph || tg_gguf_tensor_find(g, "output.weight"));
    const bool halves = tg_block_table[t->source->type].bytes == 2;
    t->stays = stay && (looked_up || (halves && !t->is_floats && !t->pairs)) &&
               tg_gguf_lies_plain(g, t->source);
    if (t->stays) t->packing = tg_packing_rows(t->source->type);
    t->bytes = t->is_floats
                   ? t->rows * t->cols * sizeof(float)
                   : tg_pack_pieces(t->packing, t->rows) * tg_pack_piece_bytes(t->packing, t->cols);
    t->offset_bytes = t->stays ? (size_t)t->source->offset : lm->bytes;
    if (!t->stays) lm->bytes += (t->bytes + 63) / 64 * 64;
    lm->elems += t->source->elems;
    lm->n_tensors++;
}

/* One want, in every layer if it is of the layers. */
static tg_status take_wants(const tg_gguf *g, tg_arena *arena, const tg_lm_want *want, bool stay,
                            tg_lm *lm, tg_lm_tensor *tensors, faults *f) {
    const char *of_layer = strchr(want->name, '%');
    const int n = of_layer ? lm->config.layers : 1;
    for (int layer = 0; layer < n; layer++) {
        char *name = of_layer ? tg_arena_sprintf(arena, "%.*s%d%s", (int)(of_layer - want->name),
                                                 want->name, layer, of_layer + 2)
                              : tg_arena_strdup(arena, want->name);
        if (!name) return tg_fail_memory(g->ctx, "name of a tensor", 64);
        tg_lm_tensor *t = &tensors[lm->n_tensors];
        if (take_tensor(g, &lm->config, want, name, t, f)) place_tensor(g, want, stay, lm, t);
    }
    return TG_OK;
}

/* A tensor of the file that nobody has asked for means that this is another model than it says. */
static void find_extra(const tg_gguf *g, faults *f) {
    for (size_t i = 0; i < g->n_tensors; i++)
        if (!f->asked[i] && strcmp(g->tensors[i].name, "rope_freqs.weight") != 0)
            add_fault(f, g->tensors[i].name, "of no use here");
}

tg_status tg_lm_read(const tg_gguf *g, tg_arena *arena, bool stay, tg_lm *out) {
    *out = (tg_lm) { .n_tensors = 0 };
    TG_TRY(read_known(g, arena, &out->config));
    const tg_lm_family *family = out->config.family;
    tg_lm_tensor *tensors =
        tg_arena_array(arena, family->n_wants * (size_t)out->config.layers + 1, sizeof *tensors);
    if (!tensors) return tg_fail_memory(g->ctx, "table of tensors", sizeof *tensors);
    faults f = { .asked = tg_arena_alloc(arena, g->n_tensors) };
    if (!f.asked) return tg_fail_memory(g->ctx, "table of tensors", g->n_tensors);
    out->tensors = tensors;
    for (size_t i = 0; i < family->n_wants; i++)
        TG_TRY(take_wants(g, arena, &family->wants[i], stay, out, tensors, &f));
    find_extra(g, &f);
    if (f.n > 6) tg_str_append(f.text, sizeof f.text, "; and %zu more", f.n - 6);
    return f.n == 0 ? TG_OK
                    : tg_fail(g->ctx, TG_E_SHAPE, "%s: tensors of %s: %s", g->path, family->name,
                              f.text);
}

/* ---------------------------------------------------------------------------------------- graphs
 */

static const tg_lm_tensor *find(const tg_lm_scope *s, const char *name, const char *suffix) {
    char full[160];
    if (s->layer < 0)
        snprintf(full, sizeof full, "%s%s", name, suffix);
    else
        snprintf(full, sizeof full, "blk.%d.%s%s", s->layer, name, suffix);
    for (size_t i = 0; i < s->lm->n_tensors; i++)
        if (strcmp(s->lm->tensors[i].name, full) == 0) return &s->lm->tensors[i];
    return NULL;
}

/* States are made where they are asked for first; a second state of a name would be another one. */
static tg_value *state(const tg_lm_scope *s, const char *name, tg_type type) {
    for (tg_node *n = s->g->first; n; n = n->next)
        if (n->op == TG_OP_state && strcmp(n->name, name) == 0) return &n->out[0];
    char scope[sizeof s->g->scope];
    memcpy(scope, s->g->scope, sizeof scope);
    tg_graph_scope(s->g, "%s", "");
    tg_value *v = tg_state(s->g, name, type);
    memcpy(s->g->scope, scope, sizeof scope);
    return v;
}

tg_value *tg_lm_vector(const tg_lm_scope *s, const char *name) {
    const tg_lm_tensor *t = find(s, name, "");
    return t ? state(s, t->name, tg_type_1d(TG_F32, t->cols)) : NULL;
}

tg_value *tg_lm_floats(const tg_lm_scope *s, const char *name) {
    const tg_lm_tensor *t = find(s, name, "");
    return t ? state(s, t->name, tg_type_2d(TG_F32, t->rows, t->cols)) : NULL;
}

tg_value *tg_lm_layer_norm(const tg_lm_scope *s, tg_value *x, const char *name) {
    char weight[96], bias[96];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return tg_layer_norm(s->g, x, tg_lm_vector(s, weight), tg_lm_vector(s, bias),
                         s->lm->config.eps);
}

tg_packed_value tg_lm_matrix(const tg_lm_scope *s, const char *name) {
    const tg_lm_tensor *t = find(s, name, "");
    if (!t) return (tg_packed_value) { NULL, 0 };
    const tg_type type = tg_type_2d(TG_U8, tg_pack_pieces(t->packing, t->rows),
                                    tg_pack_piece_bytes(t->packing, t->cols));
    return (tg_packed_value) { state(s, t->name, type),
                               (int32_t)(16 * t->rows + (size_t)t->packing) };
}

/* Biases lie apart in files, and side by side in the product of several matrices: a state of their
 * own, which whoever binds the states puts together. */
static tg_value *bias_of(const tg_lm_scope *s, const char *const names[3]) {
    size_t rows = 0;
    bool any = false;
    const tg_lm_tensor *one = names[1] ? NULL : find(s, names[0], ".bias");
    if (one) return state(s, one->name, tg_type_1d(TG_F32, one->cols));
    for (int i = 0; i < 3 && names[i]; i++) {
        const tg_lm_tensor *t = find(s, names[i], ".weight");
        rows += t ? t->rows : 0;
        any = any || find(s, names[i], ".bias");
    }
    if (!any) return NULL;
    char name[160];
    snprintf(name, sizeof name, "blk.%d.%s.biases", s->layer, names[0]);
    return state(s, name, tg_type_1d(TG_F32, rows));
}

tg_value *tg_lm_linear(const tg_lm_scope *s, tg_value *x, const char *a, const char *b,
                       const char *c, tg_value *residual, int read) {
    const char *const names[3] = { a, b, c };
    tg_packed_value w[3] = { { NULL, 0 } };
    for (int i = 0; i < 3 && names[i]; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s.weight", names[i]);
        w[i] = tg_lm_matrix(s, name);
    }
    tg_value *bias = bias_of(s, names);
    if (s->layer < 0)
        tg_graph_scope(s->g, "%s", a);
    else
        tg_graph_scope(s->g, "blk.%d.%s", s->layer, a);
    return tg_linear(s->g, x, w, bias, residual, read);
}

tg_value *tg_lm_asked(const tg_lm_scope *s, tg_value *x) {
    return s->lm->answers == TG_LM_LAST_LOGITS ? tg_last_row(s->g, x) : x;
}

tg_value *tg_lm_answer(const tg_lm_scope *s, tg_value *x) {
    if (s->lm->answers == TG_LM_HIDDEN_STATES) return x;
    const bool tied = !tg_lm_matrix(s, "output.weight").code;
    return tg_lm_linear(s, x, tied ? "token_embd" : "output", NULL, NULL, NULL, TG_READ_PLAIN);
}

tg_value *tg_lm_freq(const tg_lm_scope *s, int base) {
    char name[32];
    snprintf(name, sizeof name, TG_LM_FREQ_NAME, base);
    return state(s, name, tg_type_1d(TG_F32, (size_t)s->lm->config.head_size / 2));
}

/* The power is rounded to f32 before it is divided into 1, as transformers does. */
void tg_lm_fill_freq(const tg_lm_config *c, int base, const float *factors, float *out) {
    const int32_t half = c->head_size / 2;
    const float divisor = base == 0 ? c->rope_factor : 1;
    for (int32_t i = 0; i < half; i++) {
        const double exponent = (double)(2 * i) / (double)c->head_size;
        out[i] = 1.0f / (float)tg_pow((double)c->rope_base[base], exponent) / divisor;
        if (factors) out[i] /= factors[i];
    }
}
