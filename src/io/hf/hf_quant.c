/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_quant.c - what methods of quantisation have in common, and MLX's (hf_quant.h has a table).
 *
 *     MLX   weight  u32 [R, C * bits / 32]     the lowest bits first
 *           affine  scales, biases [R, C / group] of floats    w = q * scale + bias
 *           mxfp4   scales u8 [R, C / 32]                      as GGUF's MXFP4
 */
#include "io/hf/hf_quant.h"

#include "base/sort.h"
#include "base/str.h"

enum { MXFP4_GROUP = 32 };

static bool name_before(const void *user, uint32_t a, uint32_t b) {
    const tg_st_tensor *list = user;
    return strcmp(list[a].name, list[b].name) < 0;
}

tg_status tg_hf_sort_stored(tg_hf_files *f) {
    f->by_name = tg_arena_array(&f->g->arena, f->n + 1, sizeof *f->by_name);
    for (size_t h = 0; f->by_name && h < f->n; h++) {
        uint32_t *order = tg_arena_array(&f->g->arena, f->heads[h].n + 1, sizeof *order);
        if (!order) return tg_fail_memory(f->g->ctx, f->g->path, f->heads[h].n * sizeof *order);
        tg_sort_numbers(order, f->heads[h].n, name_before, f->heads[h].list);
        f->by_name[h] = order;
    }
    return f->by_name ? TG_OK : tg_fail_memory(f->g->ctx, f->g->path, f->n * sizeof *f->by_name);
}

const tg_st_tensor *tg_hf_find_stored(const tg_hf_files *f, const char *name, size_t n_name,
                                      const char *suffix, size_t *file) {
    for (size_t h = 0; h < f->n; h++)
        for (size_t low = 0, high = f->heads[h].n; low < high;) {
            const size_t middle = low + (high - low) / 2;
            const tg_st_tensor *s = &f->heads[h].list[f->by_name[h][middle]];
            const int stem = strncmp(s->name, name, n_name);
            const int order = stem ? stem : strcmp(s->name + n_name, suffix);
            if (order == 0) {
                *file = h;
                return s;
            }
            if (order < 0)
                low = middle + 1;
            else
                high = middle;
        }
    return NULL;
}

/* The label of any other type differs from all of them. */
bool tg_hf_type_of(const tg_st_tensor *s, tg_dtype *out) {
    const char *dtype = tg_st_dtypes[s->dtype].name;
    *out = strcmp(dtype, "F16") == 0 ? TG_F16 : strcmp(dtype, "BF16") == 0 ? TG_BF16 : TG_F32;
    return strcmp(tg_dtype_table[*out].label, dtype) == 0;
}

tg_status tg_hf_misfit(const tg_hf_matrix *x, const char *want) {
    return tg_fail(x->files->g->ctx, TG_E_UNSUPPORTED,
                   "%s: tensor %.80s of %s: want %s, have others", x->files->g->path,
                   x->stored->name, tg_st_dtypes[x->stored->dtype].name, want);
}

/* What is no float counts as bytes. */
tg_status tg_hf_find_part(const tg_hf_matrix *x, const char *suffix, const char *dtype,
                          tg_gguf_part *out) {
    size_t file;
    const tg_st_tensor *s = tg_hf_find_stored(x->files, x->stored->name, x->n_stem, suffix, &file);
    *out = (tg_gguf_part) { .type = dtype && strcmp(dtype, "F32") == 0 ? TG_F32 : TG_U8 };
    const bool empty = s && (s->dim[0] == 0 || s->dim[1] == 0);
    const bool fits =
        s && s->n_dims <= 2 && !empty &&
        (dtype ? strcmp(tg_st_dtypes[s->dtype].name, dtype) == 0 : tg_hf_type_of(s, &out->type));
    if (!fits)
        return tg_fail(x->files->g->ctx, TG_E_UNSUPPORTED,
                       "%s: tensor %.80s: want %.*s%s of %s beside it, have %s%s",
                       x->files->g->path, x->stored->name, (int)x->n_stem, x->stored->name, suffix,
                       dtype ? dtype : "floats", s ? tg_st_dtypes[s->dtype].name : "none",
                       empty ? " without elements" : "");
    out->reader = x->files->readers[file];
    out->offset = x->files->heads[file].data_offset + s->begin;
    out->n_dims = s->n_dims;
    out->rows = s->dim[0];
    out->cols = s->dim[1];
    return TG_OK;
}

/* ------------------------------------------------------------------------------------------- MLX
 */

/* 32 halves of bytes as they follow each other, into the order of Q4_0: i and i + 16 in a byte. */
static void put_halves(uint8_t out[16], const uint8_t from[16]) {
    for (int i = 0; i < 16; i++) {
        const int low = from[i / 2] >> (i % 2 * 4) & 15;
        const int high = from[8 + i / 2] >> (i % 2 * 4) & 15;
        out[i] = (uint8_t)(low | high << 4);
    }
}

/* One row to blocks of ours (blocks.h). q of eight bits gets a sign. */
static void convert_affine(const tg_gguf_tensor *t, const uint8_t *q, const float *scales,
                           const float *biases, uint8_t *out) {
    const tg_gguf_place *p = t->place;
    for (uint64_t k = 0; k < t->dim[0]; k += 32, out += tg_dtype_table[t->type].bytes) {
        const float scale = scales[k / p->group], bias = biases[k / p->group];
        const uint8_t *from = q + k * p->bits / 8;
        tg_hf_put_f32(out, scale);
        if (p->bits == 8) {
            tg_hf_put_f32(out + 4, bias + 128 * scale);
            for (int i = 0; i < 32; i++) out[8 + i] = (uint8_t)(from[i] ^ 128);
        } else {
            tg_hf_put_f32(out + 4, bias + 8 * scale);
            put_halves(out + 8, from);
        }
    }
}

static size_t q_bytes_of(const tg_gguf_tensor *t) {
    return (size_t)(t->dim[0] * t->place->bits / 8);
}

static size_t affine_scratch(const tg_gguf_tensor *t, uint64_t n) {
    const tg_gguf_part *s = &t->place->part[0];
    (void)n;
    return (size_t)s->cols * (2 * sizeof(float) + tg_dtype_table[s->type].bytes) + q_bytes_of(t);
}

/* scratch: scales and biases [groups] each, then bytes as they are stored. */
static tg_status read_affine(tg_ctx *ctx, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                             uint8_t *out, uint8_t *scratch) {
    const tg_gguf_part *part = t->place->part;
    const size_t groups = (size_t)part->cols, q_bytes = q_bytes_of(t);
    float *values[2] = { (float *)(void *)scratch, (float *)(void *)scratch + groups };
    uint8_t *stored = (uint8_t *)(values[1] + groups);
    uint8_t *q = stored + groups * tg_dtype_table[part->type].bytes;
    const size_t row_bytes = tg_gguf_row_bytes(t);
    for (uint64_t r = first; r < first + n; r++) {
        for (size_t i = 0; i < 2; i++)
            TG_TRY(tg_gguf_read_part(ctx, t, &part[i], r * groups, groups, stored, values[i]));
        TG_TRY(tg_gguf_read_at(ctx, &t->place->reader, t, t->offset + r * q_bytes, q, q_bytes));
        convert_affine(t, q, values[0], values[1], out + (r - first) * row_bytes);
    }
    return TG_OK;
}

static size_t mxfp4_scratch(const tg_gguf_tensor *t, uint64_t n) {
    (void)n;
    return q_bytes_of(t) + (size_t)t->place->part[0].cols;
}

static tg_status read_mxfp4(tg_ctx *ctx, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                            uint8_t *out, uint8_t *scratch) {
    const tg_gguf_part *scales = t->place->part;
    const size_t groups = (size_t)scales->cols, q_bytes = q_bytes_of(t);
    uint8_t *scale = scratch + q_bytes;
    for (uint64_t r = first; r < first + n; r++) {
        TG_TRY(
            tg_gguf_read_at(ctx, &t->place->reader, t, t->offset + r * q_bytes, scratch, q_bytes));
        TG_TRY(
            tg_gguf_read_at(ctx, &scales->reader, t, scales->offset + r * groups, scale, groups));
        for (size_t g = 0; g < groups; g++, out += 17) {
            out[0] = scale[g];
            put_halves(out + 1, scratch + 16 * g);
        }
    }
    return TG_OK;
}

static const tg_gguf_form affine_form = { .scratch_bytes = affine_scratch, .read = read_affine };
static const tg_gguf_form mxfp4_form = { .scratch_bytes = mxfp4_scratch, .read = read_mxfp4 };

/* The size of q follows from the shapes, which also hold where single layers have more bits than
 * the others; biases tell an affine matrix from one of MXFP4. */
static tg_status set_mlx(const tg_hf_matrix *x) {
    static const char want[] = "MLX's affine weights of 4 or 8 bits, or mxfp4, with their scales";
    const tg_st_tensor *s = x->stored;
    tg_gguf_part *part = x->place->part;
    size_t file;
    const tg_st_tensor *biases = tg_hf_find_stored(x->files, s->name, x->n_stem, ".biases", &file);
    const bool affine = biases || !x->quant->mxfp4;
    if (s->n_dims != 2) return tg_hf_misfit(x, want);
    TG_TRY(tg_hf_find_part(x, ".scales", affine ? NULL : "U8", &part[0]));
    if (affine) TG_TRY(tg_hf_find_part(x, ".biases", NULL, &part[1]));
    const uint64_t groups = part[0].cols, cols = groups * x->quant->group;
    const bool four = s->dim[1] * 8 == cols;
    if (part[0].n_dims != 2 || (affine && part[1].n_dims != 2) || groups == 0 ||
        groups >= UINT32_MAX || part[0].rows != s->dim[0] ||
        (affine &&
         (part[1].rows != s->dim[0] || part[1].cols != groups || part[1].type != part[0].type)) ||
        (!four && (s->dim[1] * 4 != cols || !affine)))
        return tg_hf_misfit(x, want);
    x->place->form = affine ? &affine_form : &mxfp4_form;
    x->place->bits = four ? 4 : 8;
    x->place->group = x->quant->group;
    x->t->type = !affine ? TG_MXFP4 : four ? TG_MLX4 : TG_MLX8;
    x->t->dim[0] = cols;
    return TG_OK;
}

/* MLX writes the same object under both keys of config.json, and no quant_method. */
static tg_status configure_mlx(tg_hf_values *m, const tg_json *q, tg_hf_quant *out) {
    const tg_json *mode = tg_hf_member(m, q, "mode");
    int64_t size = 0;
    out->mxfp4 = mode && tg_json_is(mode, "mxfp4");
    if (mode && !out->mxfp4 && !tg_json_is(mode, "affine"))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: quantization: mode: want affine or mxfp4, have %.60s", m->where,
                       TG_JSON_SHOWN(mode));
    TG_TRY(tg_hf_get_int(m, q, "group_size", &size));
    if (out->mxfp4 ? size != MXFP4_GROUP : size != 32 && size != 64 && size != 128)
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: quantization: group_size: want %s, have %d", m->where,
                       out->mxfp4 ? "32" : "32, 64 or 128", (int)size);
    out->group = (uint32_t)size;
    return TG_OK;
}

static const char *const beside_mlx[] = { ".scales", ".biases", NULL };
static const tg_hf_method mlx = {
    .name = "MLX",
    .matrix = ".weight",
    .dtype = "U32",
    .beside = beside_mlx,
    .configure = configure_mlx,
    .set = set_mlx,
};

/* ------------------------------------------------------------------------------------ any method
 */

/* "MLX's, fp8, gptq", for messages. */
static const char *known_methods(char text[120]) {
    text[0] = '\0';
    tg_str_append(text, 120, "MLX's");
    for (size_t i = 0; i < tg_hf_n_methods; i++)
        tg_str_append(text, 120, ", %s", tg_hf_methods[i]->name);
    return text;
}

tg_status tg_hf_quant_read(tg_hf_values *m, tg_hf_quant *out) {
    const tg_json *q = tg_hf_member(m, m->root, "quantization");
    const tg_json *again = tg_hf_member(m, m->root, "quantization_config");
    *out = (tg_hf_quant) { .method = NULL };
    if (!q) q = again;
    if (!q) return TG_OK;
    const tg_json *method = tg_hf_member(m, q, "quant_method");
    if (!method) out->method = &mlx;
    for (size_t i = 0; method && i < tg_hf_n_methods; i++)
        if (tg_json_is(method, tg_hf_methods[i]->name)) out->method = tg_hf_methods[i];
    if (out->method) return out->method->configure(m, q, out);
    char known[120];
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: quantization: want %s, have %.60s", m->where,
                   known_methods(known), TG_JSON_SHOWN(method));
}

bool tg_hf_is_quantised(const tg_hf_quant *q, const tg_st_tensor *s) {
    return q->method && tg_hf_ends_with(s->name, q->method->matrix) &&
           strcmp(tg_st_dtypes[s->dtype].name, q->method->dtype) == 0;
}

bool tg_hf_is_beside(const tg_hf_quant *q, const char *name) {
    for (size_t i = 0; q->method && q->method->beside[i]; i++)
        if (tg_hf_ends_with(name, q->method->beside[i])) return true;
    return false;
}

const char *tg_hf_quant_name(const tg_hf_quant *q) { return q->method ? q->method->name : "none"; }

const char *tg_hf_matrix_name(tg_gguf *g, const tg_hf_quant *q, const tg_st_tensor *s) {
    const size_t n = strlen(s->name) - strlen(q->method->matrix);
    return tg_arena_sprintf(&g->arena, "%.*s.weight", (int)n, s->name);
}

tg_status tg_hf_set_matrix(const tg_hf_files *f, const tg_hf_quant *q, const tg_st_tensor *s,
                           tg_gguf_tensor *t, tg_gguf_place *place) {
    const tg_hf_matrix x = { .files = f,
                             .quant = q,
                             .stored = s,
                             .n_stem = strlen(s->name) - strlen(q->method->matrix),
                             .t = t,
                             .place = place };
    t->n_dims = 2;
    return q->method->set(&x);
}
