/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.c - the table of tensors that a family wants, as a file has them.
 */
#include "model/tensors.h"

#include "base/math.h"
#include "base/str.h"

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

/* The third dimension of a shape, where it has one. */
static const char *deep_text(uint64_t n, char out[24]) {
    out[0] = '\0';
    if (n > 1) snprintf(out, 24, "%" PRIu64 ",", n);
    return out;
}

/* The tensor of a want; false: there is none, which has been noted if it is a fault. */
static bool take_tensor(const tg_gguf *g, const tg_model_config *c, const tg_want *want, int layer,
                        const char *name, tg_tensor *t, faults *f) {
    const tg_gguf_tensor *source = tg_gguf_tensor_find(g, name);
    const bool made = tg_want_is_made(want, c);
    if (!source && made) add_fault(f, name, "missing");
    if (!source || !(made || (want->flags & TG_WANT_OPTIONAL))) return false;
    const bool any_rows = want->rows == TG_SIZE_ANY, any_cols = want->cols == TG_SIZE_ANY;
    const size_t rows = any_rows ? (size_t)source->dim[1] : tg_size_of(c, want->rows, layer);
    const size_t cols = any_cols ? (size_t)source->dim[0] : tg_size_of(c, want->cols, layer);
    char what[160], in_file[2][24];
    f->asked[source - g->tensors] = true;
    /* How many rows a vector has in the file: a column, groups, or one as here. */
    const size_t apart = want->flags & TG_WANT_COLUMN   ? cols
                         : want->flags & TG_WANT_GROUPS ? (size_t)c->ssm_groups
                                                        : 1;
    const size_t above = apart > 1 && source->dim[0] == cols / apart ? apart : 1;
    const size_t deep = want->flags & TG_WANT_EXPERTS ? (size_t)c->experts : 1;
    if (source->dim[0] != cols / above || source->dim[1] != rows / deep * above ||
        source->dim[2] != deep || source->elems != rows * cols) {
        snprintf(what, sizeof what, "want [%s%zu,%zu], have [%s%" PRIu64 ",%" PRIu64 "]",
                 deep_text(deep, in_file[0]), rows / deep, cols,
                 deep_text(source->dim[2], in_file[1]), source->dim[1], source->dim[0]);
        add_fault(f, name, what);
        return false;
    }
    *t = (tg_tensor) { .name = name,
                       .want = want,
                       .layer = layer,
                       .source = source,
                       .type = want->rows == TG_SIZE_ONE ? tg_type_1d(TG_F32, cols)
                               : want->flags & TG_WANT_FLOATS
                                   ? tg_type_2d(TG_F32, rows, cols)
                                   : tg_type_packed(source->type, rows, cols),
                       .logs = (want->flags & TG_WANT_LOGS) && !g->heads_plain,
                       .reorder = (want->flags & TG_WANT_IN_TURNS) && c->ssm_groups != c->ssm_heads,
                       .turns = (want->flags & TG_WANT_ROPE_PAIRS) != 0,
                       .pairs = (want->flags & TG_WANT_ROPE_PAIRS) && !g->heads_plain };
    return true;
}

/* Vectors are copied, too: they are floats whatever the file has, and small. Matrices of 16 bits
 * are multiplied with where they lie (packed_rows.h), those of 32, at 0.95 of the speed, are not.
 */
static void place_tensor(const tg_gguf *g, const tg_want *want, bool stay, tg_tensors *lm,
                         tg_tensor *t) {
    const bool looked_up =
        (want->flags & TG_WANT_TABLE) &&
        ((want->flags & TG_WANT_LOOKED_UP) || !tg_family_of(&lm->config)->graph ||
         tg_gguf_tensor_find(g, "output.weight"));
    const bool halves = tg_dtype_table[t->source->type].bytes == 2;
    t->stays = stay && (looked_up || (halves && t->type.layout && !t->pairs)) &&
               tg_gguf_lies_plain(g, t->source);
    if (t->stays) t->type.layout = TG_PACK_NONE;
    t->bytes = tg_type_bytes(&t->type);
    t->offset_bytes = t->stays ? (size_t)t->source->offset : lm->bytes;
    if (!t->stays) lm->bytes += (t->bytes + 63) / 64 * 64;
    lm->elems += t->source->elems;
    lm->n_tensors++;
}

/* One want, in every layer if it is of the layers. */
static tg_status take_wants(const tg_gguf *g, tg_arena *arena, const tg_want *want, bool stay,
                            tg_tensors *lm, tg_tensor *tensors, faults *f) {
    const char *of_layer = strchr(want->name, '%');
    const int n = of_layer ? lm->config.layers : 1;
    for (int layer = 0; layer < n; layer++) {
        const bool spare = (want->flags & TG_WANT_OWN_KEYS) && tg_shares_keys(&lm->config, layer);
        if (of_layer && !spare && !tg_want_is_in(want, &lm->config, layer)) continue;
        char *name = of_layer ? tg_arena_sprintf(arena, "%.*s%d%s", (int)(of_layer - want->name),
                                                 want->name, layer, of_layer + 2)
                              : tg_arena_strdup(arena, want->name);
        if (!name) return tg_fail_memory(g->ctx, "name of a tensor", 64);
        if (spare) {
            const tg_gguf_tensor *unread = tg_gguf_tensor_find(g, name);
            if (unread) f->asked[unread - g->tensors] = true;
            continue;
        }
        tg_tensor *t = &tensors[lm->n_tensors];
        if (take_tensor(g, &lm->config, want, of_layer ? layer : -1, name, t, f))
            place_tensor(g, want, stay, lm, t);
    }
    return TG_OK;
}

/* A tensor of the file that nobody has asked for means that this is another model than it says. */
static void find_extra(const tg_gguf *g, faults *f) {
    for (size_t i = 0; i < g->n_tensors; i++)
        if (!f->asked[i] && !tg_gguf_is_factors(g->tensors[i].name))
            add_fault(f, g->tensors[i].name, "of no use here");
}

/* What its first layer has, all layers must have. */
static int32_t find_biases(const tg_gguf *g, const tg_family *family) {
    int32_t biases = 0;
    for (size_t i = 0; i < family->n_wants; i++) {
        char name[96];
        const tg_want *want = &family->wants[i];
        snprintf(name, sizeof name, "blk.0.%s", want->name + strlen("blk.%d."));
        if (TG_WANT_BIASES(want) && tg_gguf_tensor_find(g, name)) biases |= TG_WANT_BIASES(want);
    }
    return biases;
}

tg_status tg_tensors_read(const tg_gguf *g, tg_arena *arena, bool stay, tg_tensors *out) {
    *out = (tg_tensors) { .n_tensors = 0 };
    TG_TRY(tg_config_read(g, arena, &out->config));
    TG_TRY(tg_embed_rules_read(g, out->config.family, &out->embed));
    const tg_family *family = tg_family_of(&out->config);
    out->embed.only = out->embed.only || !family->graph;
    tg_tensor *tensors =
        tg_arena_array(arena, family->n_wants * (size_t)out->config.layers + 1, sizeof *tensors);
    if (!tensors) return tg_fail_memory(g->ctx, "table of tensors", sizeof *tensors);
    faults f = { .asked = tg_arena_alloc(arena, g->n_tensors) };
    if (!f.asked) return tg_fail_memory(g->ctx, "table of tensors", g->n_tensors);
    out->tensors = tensors;
    out->config.tied = !tg_gguf_tensor_find(g, "output.weight");
    out->config.biases = find_biases(g, family);
    out->in_turns = !g->heads_plain;
    for (size_t i = 0; i < family->n_wants; i++)
        TG_TRY(take_wants(g, arena, &family->wants[i], stay, out, tensors, &f));
    find_extra(g, &f);
    if (f.n > 6) tg_str_append(f.text, sizeof f.text, "; and %zu more", f.n - 6);
    return f.n == 0 ? TG_OK
                    : tg_fail(g->ctx, TG_E_SHAPE, "%s: tensors of %s: %s", g->path, family->name,
                              f.text);
}

tg_dtype tg_tensors_type(const tg_tensors *t) {
    uint64_t bytes[TG_DTYPE_COUNT] = { 0 };
    int most = 0;
    for (size_t i = 0; i < t->n_tensors; i++)
        bytes[t->tensors[i].source->type] += t->tensors[i].source->bytes;
    for (int i = 1; i < TG_DTYPE_COUNT; i++)
        if (bytes[i] > bytes[most]) most = i;
    return (tg_dtype)most;
}

/* Heads of one element, or of P behind what belongs to queries and keys. */
static size_t of_heads(const tg_model_config *c, const tg_want *want, size_t i, bool to_turns) {
    const tg_size size = tg_turns_columns(want) ? want->cols : want->rows;
    const size_t H = (size_t)c->ssm_heads, G = (size_t)c->ssm_groups, R = H / G;
    const size_t each = size == TG_SIZE_SSM_HEADS ? 1 : (size_t)c->ssm_head_size;
    const size_t first = tg_size_of(c, size, -1) - H * each;
    if (i < first) return i;
    const size_t h = (i - first) / each;
    const size_t other = to_turns ? h % R * G + h / R : h % G * R + h / G;
    return first + other * each + (i - first) % each;
}

size_t tg_head_in_turns(const tg_model_config *c, const tg_want *want, size_t i) {
    return of_heads(c, want, i, true);
}

size_t tg_head_in_row(const tg_model_config *c, const tg_want *want, size_t i) {
    return of_heads(c, want, i, false);
}

void tg_head_columns(const tg_model_config *c, const tg_want *want,
                     size_t (*order)(const tg_model_config *c, const tg_want *want, size_t i),
                     float *x, float *room, size_t cols) {
    memcpy(room, x, cols * sizeof *x);
    for (size_t i = 0; i < cols; i++) x[order(c, want, i)] = room[i];
}

void tg_tensor_logs(const tg_tensor *t, float *x, size_t n) {
    for (size_t i = 0; t->logs && i < n; i++) x[i] = (float)tg_log(-(double)x[i]);
}

bool tg_tensor_moves(const tg_gguf *g, const tg_tensor *t) {
    return t->pairs || (t->reorder && !g->heads_plain && !tg_turns_columns(t->want));
}

size_t tg_tensor_room_bytes(const tg_tensor *t, uint64_t n) {
    return (size_t)tg_tensor_cols(t) * sizeof(float) +
           (size_t)(t->source->bytes / tg_tensor_rows(t) * n);
}

/* Room for a row lies in front of what the file has. A bias of heads that rotate moves by its
 * elements, as its matrix does by its rows. */
tg_status tg_tensor_read(const tg_gguf *g, const tg_model_config *c, const tg_tensor *t,
                         uint64_t first, uint64_t n, void *room, float *to, uint64_t origin,
                         size_t stride) {
    const size_t all = (size_t)tg_tensor_cols(t);
    const size_t row_bytes = (size_t)(t->source->bytes / tg_tensor_rows(t));
    const uint64_t each = all / t->source->dim[0]; /* rows of the file in one of ours */
    uint8_t *from = (uint8_t *)((float *)room + all);
    const bool bias = t->pairs && t->type.n_dims == 1;
    const bool columns = t->reorder && !g->heads_plain && tg_turns_columns(t->want);
    const bool moves = tg_tensor_moves(g, t);
    const size_t cols = bias ? 1 : all;
    if (bias) stride = 1;
    TG_TRY(tg_gguf_read_rows(g, t->source, first * each, n * each, from));
    for (uint64_t i = 0; i < (bias ? all : n); i++) {
        const size_t in = (size_t)(first + i);
        const size_t row = t->pairs ? tg_row_halved(in, (size_t)c->head_size)
                           : moves  ? tg_head_in_row(c, t->want, in)
                                    : in;
        float *x = to + (row - (size_t)origin) * stride;
        tg_block_to_f32_n(t->source->type, x, from + i * row_bytes / (bias ? all : 1), cols);
        tg_tensor_logs(t, x, cols);
        if (columns) tg_head_columns(c, t->want, tg_head_in_row, x, room, cols);
    }
    return TG_OK;
}

const tg_tensor *tg_tensors_find(const tg_tensors *t, const char *role, int layer, size_t i) {
    for (size_t k = 0; k < t->n_tensors; k++)
        if (t->tensors[k].layer == layer && strcmp(tg_want_role(t->tensors[k].want), role) == 0 &&
            i-- == 0)
            return &t->tensors[k];
    return NULL;
}
