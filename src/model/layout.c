/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - places the tensors of a family in one flat array.
 */
#include "model/layout.h"

#include "base/math.h"

typedef struct builder {
    tg_arena *arena;
    const tg_model_config *config;
    const tg_family *family;
    tg_param *params;
    tg_tensor_spec *tensors;
    size_t n_params, n_tensors, n_elems;
    bool out_of_memory;
} builder;

/* Lack of memory is remembered and asked for once, at the end: the tables are small. */
static const char *named(builder *b, const char *pattern, int layer) {
    const char *of_layer = strchr(pattern, '%');
    const char *s = of_layer ? tg_arena_sprintf(b->arena, "%.*s%d%s", (int)(of_layer - pattern),
                                                pattern, layer, of_layer + 2)
                             : tg_arena_strdup(b->arena, pattern);
    if (!s) b->out_of_memory = true;
    return s;
}

static bool same_part(const tg_want *a, const tg_want *b) {
    return a->part && b->part && strcmp(a->part, b->part) == 0;
}

/* Tensors of a part lie side by side: columns of vectors and of [in,out], rows of [out,in]. */
static bool side_by_columns(const tg_want *w) {
    return w->rows == TG_SIZE_ONE || (w->flags & TG_WANT_IN_OUT) != 0;
}

/* Rows or columns that wants [first, end) of the part of w have in a layer. */
static size_t extent(const builder *b, const tg_want *w, size_t first, size_t end, int layer) {
    size_t n = 0;
    for (size_t k = first; k < end; k++) {
        const tg_want *other = &b->family->wants[k];
        if (same_part(w, other) && tg_want_is_in(other, b->config, layer))
            n += tg_size_of(b->config, side_by_columns(w) ? other->cols : other->rows, layer);
    }
    return n;
}

/* The parameter that want i begins, with room for all tensors of its part. */
static tg_param *add_param(builder *b, size_t i, int layer) {
    const tg_want *w = &b->family->wants[i];
    size_t rows = tg_size_of(b->config, w->rows, layer);
    size_t cols = tg_size_of(b->config, w->cols, layer);
    *(side_by_columns(w) ? &cols : &rows) += extent(b, w, i + 1, b->family->n_wants, layer);
    tg_param *p = &b->params[b->n_params++];
    *p = (tg_param) { .name = named(b, w->part ? w->part : w->name, layer),
                      .type = w->rows == TG_SIZE_ONE ? tg_type_1d(TG_F32, cols)
                                                     : tg_type_2d(TG_F32, rows, cols),
                      .offset_elems = b->n_elems,
                      .role = tg_want_role(w),
                      .layer = layer,
                      .in_out = (w->flags & TG_WANT_IN_OUT) != 0 };
    b->n_elems += (tg_type_elems(&p->type) + 63) / 64 * 64;
    return p;
}

/* Where want i begins in its part: the tensors before it are side by side with it. */
static size_t offset_in_part(const builder *b, size_t i, const tg_param *p) {
    const tg_want *w = &b->family->wants[i];
    return extent(b, w, 0, i, p->layer) * (side_by_columns(w) ? 1 : tg_type_cols(&p->type));
}

static const tg_param *param_of(builder *b, size_t i, int layer) {
    const tg_want *w = &b->family->wants[i];
    if (w->part)
        for (size_t k = 0; k < b->n_params; k++)
            if (b->params[k].layer == layer && strcmp(b->params[k].role, tg_want_role(w)) == 0)
                return &b->params[k];
    return add_param(b, i, layer);
}

/* A branch is added to the stream 2L times; with initial values smaller by sqrt(2L) the stream has
 * the same size at the end of any depth (Radford et al. 2019). */
static void add_tensor(builder *b, size_t i, int layer, size_t ordinal) {
    const tg_want *w = &b->family->wants[i];
    const tg_param *p = param_of(b, i, layer);
    const bool vector = w->rows == TG_SIZE_ONE;
    const size_t n = strlen(w->name);
    const double std = 0.02;
    const size_t rows = tg_size_of(b->config, w->rows, layer);
    const size_t cols = tg_size_of(b->config, w->cols, layer);
    b->tensors[ordinal] = (tg_tensor_spec) {
        .name = named(b, w->name, layer),
        .want = w,
        .n_dims = vector ? 1 : 2,
        .rows = rows,
        .cols = cols,
        .offset_elems = p->offset_elems + offset_in_part(b, i, p),
        .row_stride_elems = vector ? cols : tg_type_cols(&p->type),
        .init = !vector                                          ? TG_INIT_NORMAL
                : n > 5 && strcmp(w->name + n - 5, ".bias") == 0 ? TG_INIT_ZERO
                                                                 : TG_INIT_ONE,
        .init_std = w->flags & TG_WANT_BRANCH ? std / tg_sqrt(2.0 * b->config->layers)
                    : w->flags & TG_WANT_TAPS ? 1 / tg_sqrt((double)cols)
                                              : std,
    };
}

/* The ordinal is part of the contract of initial weights: it seeds them (base/rng.h), so it follows
 * the family's list, as files do, and never the layout in memory. */
static void add_all(builder *b, bool matrices) {
    size_t ordinal = 0;
    for (int layer = -1; layer < b->config->layers; layer++)
        for (size_t i = 0; i < b->family->n_wants; i++) {
            const tg_want *w = &b->family->wants[i];
            if (!tg_want_is_in(w, b->config, layer) || !tg_want_is_made(w, b->config)) continue;
            if ((w->rows != TG_SIZE_ONE) == matrices) add_tensor(b, i, layer, ordinal);
            ordinal++;
        }
    b->n_tensors = ordinal;
}

static tg_status make_manifest(tg_ctx *ctx, const builder *b, tg_manifest *out) {
    tg_manifest_entry *entry = tg_arena_array(b->arena, b->n_tensors, sizeof *entry);
    if (!entry) return tg_fail_memory(ctx, "manifest", b->n_tensors * sizeof *entry);
    *out = (tg_manifest) { .entry = entry, .n = b->n_tensors };
    for (size_t i = 0; i < b->n_tensors; i++) {
        const tg_tensor_spec *t = &b->tensors[i];
        entry[i] = (tg_manifest_entry) { .name = t->name,
                                         .n_dims = t->n_dims,
                                         .dim = { t->n_dims == 2 ? t->rows : t->cols,
                                                  t->n_dims == 2 ? t->cols : 1 },
                                         .linear = (t->want->flags & TG_WANT_IN_OUT) != 0,
                                         .elems = t->rows * t->cols,
                                         .first_elem = out->elems };
        out->elems += entry[i].elems;
    }
    return TG_OK;
}

/* Weight decay is for what multiplies (matrices and embeddings) and not for what shifts or scales
 * (biases, gains); with the two apart, the optimizer needs one number to know which is which. */
tg_status tg_layout_make(tg_ctx *ctx, tg_arena *arena, const tg_model_config *config,
                         tg_layout *out) {
    const tg_family *family = tg_family_of(config);
    const size_t most = family->n_wants * ((size_t)config->layers + 1);
    builder b = { .arena = arena,
                  .config = config,
                  .family = family,
                  .params = tg_arena_array(arena, most, sizeof(tg_param)),
                  .tensors = tg_arena_array(arena, most, sizeof(tg_tensor_spec)) };
    if (!b.params || !b.tensors)
        return tg_fail_memory(ctx, "layout of a model", most * sizeof(tg_tensor_spec));
    add_all(&b, true);
    out->n_decayed = b.n_elems;
    add_all(&b, false);
    if (b.out_of_memory) return tg_fail_memory(ctx, "names of a model", 64);
    TG_TRY(make_manifest(ctx, &b, &out->manifest));
    out->config = *config;
    out->params = b.params;
    out->n_params = b.n_params;
    out->tensors = b.tensors;
    out->n_tensors = b.n_tensors;
    out->n_elems = b.n_elems;
    return TG_OK;
}
