/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_methods.c - methods of quantisation of which transformers opens folders: FP8, GPTQ, AWQ,
 * bitsandbytes. hf_quant.h says what each becomes. R rows (outputs), C columns:
 *
 *   fp8   weight        e4m3 [R, C]
 *         scale         [], [1], [R] or [R,1], or one for each block of rows and columns
 *                                               w = e4m3 * scale
 *   gptq  qweight  i32  [C * bits / 32, R]      q of a column in bits of a word, the first columns
 *                                               in the lowest
 *         qzeros   i32  [groups, R * bits / 32] zero points less one; of gptq_v2, as they are
 *         scales        [groups, R]             w = scale * (q - zero)
 *         g_idx    i32  [C]                     the group of each column
 *   awq   qweight  i32  [C, R / 8]              q of eight rows in the order 0 2 4 6 1 3 5 7
 *         qzeros   i32  [groups, R / 8]         in the same order
 *         scales        [groups, R]
 *   bitsandbytes
 *         weight   u8   [R * C / 2, 1]          two weights a byte, the first in the high half
 *         .absmax       [blocks]                f32, or u8 that are places in nested_quant_map,
 *                                               times nested_absmax of 256 blocks, plus an offset
 *         .quant_map    [16] f32                w = quant_map[q] * absmax of its block
 *         .quant_state  JSON                    shape, blocksize, dtype, nested_offset
 *   its int8
 *         weight   i8   [R, C]
 *         SCB      f32  [R]                     w = q * SCB / 127
 *
 * Sources: transformers' quantizers, AutoGPTQ's and AutoAWQ's packing, bitsandbytes' QuantState.
 */
#include "base/math.h"
#include "io/hf/hf_quant.h"

/* A float in the type that a matrix has become. */
static void put_float(tg_dtype type, uint8_t *out, size_t i, float x) {
    if (type == TG_F32)
        tg_hf_put_f32(out + 4 * i, x);
    else
        tg_put_u16(out + 2 * i, type == TG_F16 ? tg_f16_from_f32(x) : tg_bf16_from_f32(x));
}

/* ------------------------------------------------------------------------------------------- FP8
 */

/* Sign, four bits of exponent, three of fraction; no infinities, and a NaN where all are set. */
static float e4m3(uint8_t x) {
    const uint32_t sign = (uint32_t)(x & 0x80) << 24, rest = x & 0x7f;
    uint32_t bits = sign | (rest + (120 << 3)) << 20;
    float out;
    if (rest == 0x7f) bits = sign | 0x7fc00000;
    memcpy(&out, &bits, sizeof out);
    if (rest >= 8) return out;
    return (sign ? -1.0f : 1.0f) * (float)rest / 512;
}

static size_t fp8_scratch(const tg_gguf_tensor *t, uint64_t n) {
    const tg_gguf_part *s = &t->place->part[0];
    (void)n;
    return (size_t)s->cols * (sizeof(float) + tg_dtype_table[s->type].bytes) +
           (size_t)t->dim[0] * (sizeof(float) + 1);
}

/* scratch: scales of a row, the row as floats, scales and row as they are stored. */
static tg_status read_fp8(tg_ctx *ctx, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                          uint8_t *out, uint8_t *scratch) {
    const tg_gguf_place *p = t->place;
    const tg_gguf_part *part = p->part;
    const size_t cols = (size_t)t->dim[0], groups = (size_t)part->cols;
    float *scales = (float *)(void *)scratch, *row = scales + groups;
    uint8_t *codes = (uint8_t *)(row + cols), *stored = codes + cols;
    float values[256];
    for (int x = 0; x < 256; x++) values[x] = e4m3((uint8_t)x);
    for (uint64_t r = first; r < first + n; r++, out += tg_gguf_row_bytes(t)) {
        TG_TRY(tg_gguf_read_part(ctx, t, part, r / p->group_rows * groups, groups, stored, scales));
        TG_TRY(tg_gguf_read_at(ctx, &p->reader, t, t->offset + r * cols, codes, cols));
        for (size_t begin = 0, g = 0; begin < cols; begin += p->group, g++)
            for (size_t c = begin; c < cols && c < begin + p->group; c++)
                row[c] = values[codes[c]] * scales[g];
        tg_bf16_from_f32_n((uint16_t *)(void *)out, row, cols);
    }
    return TG_OK;
}

static const tg_gguf_form fp8_form = { .scratch_bytes = fp8_scratch, .read = read_fp8 };

/* How many elements a block has of n; block 0: config.json names none, and all are one. */
static bool block_of(uint64_t n, uint64_t parts, uint32_t block, uint32_t *out) {
    const uint64_t size = parts == 1 ? n : parts == n ? 1 : block;
    *out = (uint32_t)size;
    return size > 0 && size <= UINT32_MAX && (n + size - 1) / size == parts;
}

static tg_status set_fp8(const tg_hf_matrix *x) {
    static const char *const names[] = { ".weight_scale_inv", ".weight_scale" };
    const tg_st_tensor *s = x->stored;
    tg_gguf_place *p = x->place;
    size_t file, which = 0;
    if (!tg_hf_find_stored(x->files, s->name, x->n_stem, names[0], &file)) which = 1;
    TG_TRY(tg_hf_find_part(x, names[which], NULL, &p->part[0]));
    if (s->n_dims != 2 ||
        !block_of(s->dim[0], p->part[0].rows, x->quant->group_rows, &p->group_rows) ||
        !block_of(s->dim[1], p->part[0].cols, x->quant->group, &p->group))
        return tg_hf_misfit(x, "a matrix with a scale of all, of each row, or of each block of "
                               "weight_block_size");
    p->form = &fp8_form;
    p->bits = 8;
    x->t->type = TG_BF16;
    return TG_OK;
}

/* Sizes of blocks; scales of rows and of whole matrices say nothing. */
static tg_status configure_fp8(tg_hf_values *m, const tg_json *q, tg_hf_quant *out) {
    const tg_json *sizes = tg_hf_member(m, q, "weight_block_size"), *first;
    uint64_t rows, cols;
    if (!sizes) return TG_OK;
    first = tg_json_kind(sizes) == TG_JSON_ARRAY && sizes->count == 2 ? tg_json_first(sizes) : NULL;
    if (!first || tg_json_uint64(NULL, first, &rows) != TG_OK ||
        tg_json_uint64(NULL, tg_json_next(first), &cols) != TG_OK || rows < 1 || cols < 1 ||
        rows > 1 << 20 || cols > 1 << 20)
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: quantization: weight_block_size: want two sizes, have %.60s", m->where,
                       TG_JSON_SHOWN(sizes));
    out->group_rows = (uint32_t)rows;
    out->group = (uint32_t)cols;
    return TG_OK;
}

static tg_status want_word(tg_hf_values *m, const tg_json *q, const char *key, const char *word) {
    const tg_json *v = tg_hf_member(m, q, key);
    if (!v || tg_json_is(v, word)) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: quantization: %s: want %s, have %.60s",
                   m->where, key, word, TG_JSON_SHOWN(v));
}

/* What turns activations or weights beside the products, which is not computed here. What is there
 * and empty says that nothing does. */
static tg_status want_unturned(tg_hf_values *m, const tg_json *q) {
    static const char *const keys[] = { "transform_config", "rotation", "adapter" };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const tg_json *v = tg_hf_member(m, q, keys[i]);
        const tg_json_type kind = v ? tg_json_kind(v) : TG_JSON_NULL;
        const bool list = kind == TG_JSON_ARRAY || kind == TG_JSON_OBJECT;
        if (kind != TG_JSON_NULL && kind != TG_JSON_FALSE && !(list && v->count == 0))
            return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                           "%s: quantization: %s: want none, have %.60s", m->where, keys[i],
                           TG_JSON_SHOWN(v));
    }
    return TG_OK;
}

/* Red Hat's and NVIDIA's tools have other kinds of weights under the same method. */
static tg_status configure_compressed(tg_hf_values *m, const tg_json *q, tg_hf_quant *out) {
    (void)out;
    TG_TRY(want_unturned(m, q));
    return want_word(m, q, "format", "float-quantized");
}

static tg_status configure_modelopt(tg_hf_values *m, const tg_json *q, tg_hf_quant *out) {
    (void)out;
    return want_word(m, q, "quant_algo", "FP8");
}

static const char *const beside_fp8[] = { ".weight_scale_inv", ".weight_scale",
                                          ".input_scale",      ".activation_scale",
                                          ".k_scale",          ".v_scale",
                                          ".input_scale_ub",   NULL };
#define FP8_METHOD(id, word, how)                                                                  \
    static const tg_hf_method id = { .name = word,                                                 \
                                     .matrix = ".weight",                                          \
                                     .dtype = "F8_E4M3",                                           \
                                     .beside = beside_fp8,                                         \
                                     .configure = how,                                             \
                                     .set = set_fp8 }
FP8_METHOD(fp8, "fp8", configure_fp8);
FP8_METHOD(fbgemm, "fbgemm_fp8", configure_fp8);
FP8_METHOD(compressed, "compressed-tensors", configure_compressed);
FP8_METHOD(modelopt, "modelopt", configure_modelopt);

/* ------------------------------------------------------------------------------------- GPTQ, AWQ
 */

/*
 * Rows of both lie across the file, so that a piece of rows is read word by word, into scratch:
 *
 *     scales [groups][n] f32 | words [lines][n_words] u32 | group of each column [C] u32
 *     | numbers as they are stored [4 n + 8] | zeros [groups][n] | q of a row [C]
 */
typedef struct columns {
    const tg_gguf_tensor *t;
    uint64_t first, n;           /* rows */
    uint64_t cols, rows, groups; /* of the matrix */
    uint64_t word, n_words;      /* AWQ: of the rows, in a line of words */
    uint64_t lines;              /* of words */
    float *scales;
    uint32_t *words, *order;
    uint8_t *zeros, *q, *stored;
} columns;

static columns columns_of(const tg_gguf_tensor *t, uint64_t first, uint64_t n, uint8_t *scratch) {
    const tg_gguf_place *p = t->place;
    const bool awq = p->across;
    columns x = { .t = t, .first = first, .n = n, .cols = t->dim[0], .rows = t->dim[1] };
    x.groups = p->part[0].rows;
    x.word = awq ? first / 8 : first;
    x.n_words = awq ? (first + n + 7) / 8 - x.word : n;
    x.lines = awq ? x.cols : x.cols * p->bits / 32;
    if (!scratch) return x;
    x.scales = (float *)(void *)scratch;
    x.words = (uint32_t *)(void *)(x.scales + x.groups * n);
    x.order = x.words + x.lines * x.n_words;
    x.stored = (uint8_t *)(x.order + x.cols);
    x.zeros = x.stored + 4 * n + 8;
    x.q = x.zeros + x.groups * n;
    return x;
}

static size_t columns_scratch(const tg_gguf_tensor *t, uint64_t n) {
    const columns x = columns_of(t, 7, n, NULL); /* words for the worst place of rows */
    return (size_t)(4 * (x.groups * n + x.lines * x.n_words + x.cols) + 4 * n + 8 + x.groups * n +
                    x.cols);
}

/* Which nibble of a word of AWQ row i % 8 is. */
static unsigned awq_shift(uint64_t i) {
    static const uint8_t place[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    return 4u * place[i % 8];
}

static unsigned awq_of(const uint32_t *words, uint64_t first_word, uint64_t row) {
    return words[row / 8 - first_word] >> awq_shift(row) & 15;
}

/* Zero points of the rows, as they are meant. A symmetric matrix has all in the middle: what else
 * stands there would be lost. */
static tg_status read_zeros(tg_ctx *ctx, columns *x) {
    const tg_gguf_place *p = x->t->place;
    const tg_gguf_part *zeros = &p->part[1];
    const uint64_t per = 32 / p->bits, word = x->first / per;
    const uint64_t n_words = (x->first + x->n + per - 1) / per - word;
    const unsigned most = (1u << p->bits) - 1;
    const bool symmetric = x->t->type == TG_Q4_0 || x->t->type == TG_Q8_0;
    for (uint64_t g = 0; g < x->groups; g++) {
        uint32_t *words = (uint32_t *)(void *)x->stored;
        TG_TRY(tg_gguf_read_at(ctx, &zeros->reader, x->t,
                               zeros->offset + 4 * (g * zeros->cols + word), words,
                               (size_t)(4 * n_words)));
        for (uint64_t i = 0; i < x->n; i++) {
            const uint64_t row = x->first + i;
            const unsigned z =
                p->across
                    ? awq_of(words, word, row)
                    : ((words[row / per - word] >> (row % per * p->bits)) + p->zero_more) & most;
            x->zeros[g * x->n + i] = (uint8_t)z;
            if (symmetric && z != (most + 1) / 2)
                return tg_fail(ctx, TG_E_FORMAT,
                               "%s: tensor %s: zero point of row %" PRIu64 ", group %" PRIu64
                               ": want %u, as sym is true in config.json, have %u",
                               p->reader.name, x->t->name, row, g, (most + 1) / 2, z);
        }
    }
    return TG_OK;
}

/* The group of each column: by the list, if there is one, and else one behind the other. Types of
 * blocks want the latter. */
static tg_status read_order(tg_ctx *ctx, columns *x) {
    const tg_gguf_place *p = x->t->place;
    const tg_gguf_part *list = &p->part[2];
    if (list->rows)
        TG_TRY(tg_gguf_read_at(ctx, &list->reader, x->t, list->offset, x->order,
                               (size_t)(4 * x->cols)));
    for (uint64_t c = 0; c < x->cols; c++) {
        const uint64_t usual = c / p->group;
        if (!list->rows) x->order[c] = (uint32_t)usual;
        if (x->order[c] >= x->groups || (x->t->type != TG_F16 && x->order[c] != usual))
            return tg_fail(
                ctx, TG_E_FORMAT, "%s: tensor %s: g_idx of column %" PRIu64 ": want %s, have %u",
                p->reader.name, x->t->name, c,
                x->t->type == TG_F16 ? "one of the groups"
                                     : "groups in order, as those of a run of columns are",
                (unsigned)x->order[c]);
    }
    return TG_OK;
}

static tg_status read_all(tg_ctx *ctx, columns *x) {
    const tg_gguf_place *p = x->t->place;
    const uint64_t line = p->across ? x->rows / 8 : x->rows;
    for (uint64_t g = 0; g < x->groups; g++)
        TG_TRY(tg_gguf_read_part(ctx, x->t, &p->part[0], g * x->rows + x->first, (size_t)x->n,
                                 x->stored, x->scales + g * x->n));
    for (uint64_t k = 0; k < x->lines; k++)
        TG_TRY(tg_gguf_read_at(ctx, &p->reader, x->t, x->t->offset + 4 * (k * line + x->word),
                               x->words + k * x->n_words, (size_t)(4 * x->n_words)));
    TG_TRY(read_zeros(ctx, x));
    return read_order(ctx, x);
}

/* Whole numbers of a row, in the order of its columns. */
static void take_row(const columns *x, uint64_t i) {
    const tg_gguf_place *p = x->t->place;
    const uint64_t per = 32 / p->bits;
    const uint32_t most = (1u << p->bits) - 1;
    for (uint64_t c = 0; c < x->cols; c++)
        x->q[c] =
            (uint8_t)(p->across ? awq_of(x->words + c * x->n_words, x->word, x->first + i)
                                : x->words[c / per * x->n_words + i] >> (c % per * p->bits) & most);
}

/* 32 weights of a group as a block: halves as in Q4_0, or bytes with a sign. */
static uint8_t *put_numbers(uint8_t *out, const uint8_t *q, unsigned bits) {
    if (bits == 4)
        for (int i = 0; i < 16; i++) *out++ = (uint8_t)(q[i] | q[i + 16] << 4);
    else
        for (int i = 0; i < 32; i++) *out++ = (uint8_t)(q[i] ^ 128);
    return out;
}

static void put_row(const columns *x, uint64_t i, uint8_t *out) {
    const tg_gguf_place *p = x->t->place;
    const float middle = p->bits == 4 ? 8 : 128;
    for (uint64_t c = 0; c < x->cols;) {
        const uint64_t at = x->order[c] * x->n + i;
        const float scale = x->scales[at], zero = (float)x->zeros[at];
        if (x->t->type == TG_F16) {
            put_float(TG_F16, out, (size_t)c, scale * ((float)x->q[c] - zero));
            c++;
            continue;
        }
        if (x->t->type == TG_MLX4 || x->t->type == TG_MLX8) {
            tg_hf_put_f32(out, scale);
            tg_hf_put_f32(out + 4, scale * (middle - zero));
            out += 8;
        } else {
            tg_put_u16(out, tg_f16_from_f32(scale));
            out += 2;
        }
        out = put_numbers(out, x->q + c, p->bits);
        c += 32;
    }
}

static tg_status read_columns(tg_ctx *ctx, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                              uint8_t *out, uint8_t *scratch) {
    columns x = columns_of(t, first, n, scratch);
    TG_TRY(read_all(ctx, &x));
    for (uint64_t i = 0; i < n; i++) {
        take_row(&x, i);
        put_row(&x, i, out + i * tg_gguf_row_bytes(t));
    }
    return TG_OK;
}

static const tg_gguf_form columns_form = { .scratch_bytes = columns_scratch,
                                           .read = read_columns,
                                           .by_columns = true };

/* The type that holds all values: whole groups of 32 with a zero point in the middle and scales of
 * f16 are GGUF's own; other zero points and scales, blocks of MLX's; groups that are no runs of
 * columns, floats. */
static tg_dtype type_of_columns(const tg_hf_matrix *x, uint64_t groups, uint64_t cols) {
    const tg_gguf_place *p = x->place;
    if ((x->quant->ordered && groups > 1) || p->group % 32 != 0 || cols % 32 != 0) return TG_F16;
    const bool plain = x->quant->symmetric && p->part[0].type == TG_F16;
    if (p->bits == 4) return plain ? TG_Q4_0 : TG_MLX4;
    return plain ? TG_Q8_0 : TG_MLX8;
}

static tg_status set_columns(const tg_hf_matrix *x, bool across) {
    static const char want[] = "words with scales and zero points of each group and row";
    const tg_st_tensor *s = x->stored;
    tg_gguf_place *p = x->place;
    size_t file;
    p->bits = x->quant->bits;
    p->across = across;
    p->zero_more = x->quant->zero_more;
    if (s->n_dims != 2) return tg_hf_misfit(x, want);
    const uint64_t per = 32 / p->bits, cols = across ? s->dim[0] : s->dim[0] * per;
    const uint64_t rows = across ? s->dim[1] * per : s->dim[1];
    p->group = x->quant->group ? x->quant->group : (uint32_t)cols;
    TG_TRY(tg_hf_find_part(x, ".scales", NULL, &p->part[0]));
    TG_TRY(tg_hf_find_part(x, ".qzeros", "I32", &p->part[1]));
    if (!across && tg_hf_find_stored(x->files, s->name, x->n_stem, ".g_idx", &file)) {
        TG_TRY(tg_hf_find_part(x, ".g_idx", "I32", &p->part[2]));
        if (p->part[2].rows != cols || p->part[2].cols != 1)
            return tg_hf_misfit(x, "a g_idx of each column");
    } else if (x->quant->ordered && p->group != cols) {
        return tg_hf_misfit(x, "a g_idx beside it, as desc_act is true");
    }
    if (p->part[0].n_dims != 2 || p->part[1].n_dims != 2 || cols == 0 || cols > UINT32_MAX / 8 ||
        rows % per != 0 || p->part[0].rows != (cols + p->group - 1) / p->group ||
        p->part[0].cols != rows || p->part[1].rows != p->part[0].rows ||
        p->part[1].cols * per != rows)
        return tg_hf_misfit(x, want);
    p->form = &columns_form;
    x->t->dim[0] = cols;
    x->t->dim[1] = rows;
    x->t->type = type_of_columns(x, p->part[0].rows, cols);
    return TG_OK;
}

static tg_status set_gptq(const tg_hf_matrix *x) { return set_columns(x, false); }
static tg_status set_awq(const tg_hf_matrix *x) { return set_columns(x, true); }

/* group_size: -1 is one group of all columns. */
static tg_status get_group(tg_hf_values *m, const tg_json *q, tg_hf_quant *out) {
    const tg_json *size = tg_hf_member(m, q, "group_size");
    int64_t n = -1;
    if (size && (tg_json_int64(NULL, size, &n) != TG_OK || n < -1 || n == 0 || n > 1 << 20))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: quantization: group_size: want -1 or up to a million, have %.60s",
                       m->where, TG_JSON_SHOWN(size));
    out->group = n < 0 ? 0 : (uint32_t)n;
    return TG_OK;
}

static tg_status get_bits(tg_hf_values *m, const tg_json *q, bool eight, tg_hf_quant *out) {
    int64_t bits = 0;
    TG_TRY(tg_hf_get_int(m, q, "bits", &bits));
    if (bits != 4 && !(eight && bits == 8))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: quantization: bits: want 4%s, have %d",
                       m->where, eight ? " or 8" : "", (int)bits);
    out->bits = (uint32_t)bits;
    return TG_OK;
}

/* checkpoint_format is missing in files of before gptq_v2. dynamic has other options of single
 * layers. */
static tg_status configure_gptq(tg_hf_values *m, const tg_json *q, tg_hf_quant *out) {
    const tg_json *format = tg_hf_member(m, q, "checkpoint_format");
    const tg_json *dynamic = tg_hf_member(m, q, "dynamic");
    TG_TRY(want_unturned(m, q));
    TG_TRY(get_bits(m, q, true, out));
    TG_TRY(get_group(m, q, out));
    if (format && !tg_json_is(format, "gptq") && !tg_json_is(format, "gptq_v2"))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: quantization: checkpoint_format: want gptq or gptq_v2, have %.60s",
                       m->where, TG_JSON_SHOWN(format));
    if (dynamic && dynamic->count > 0)
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: quantization: dynamic: want one kind of weights for all layers, have "
                       "others for some",
                       m->where);
    out->zero_more = !format || tg_json_is(format, "gptq");
    out->symmetric = tg_hf_is_on(q, "sym");
    out->ordered = tg_hf_is_on(q, "desc_act");
    return TG_OK;
}

static tg_status configure_awq(tg_hf_values *m, const tg_json *q, tg_hf_quant *out) {
    TG_TRY(get_bits(m, q, false, out));
    TG_TRY(get_group(m, q, out));
    const tg_json *version = tg_hf_member(m, q, "version");
    if (version && tg_json_is(version, "GEMM")) return TG_OK;
    return want_word(m, q, "version", "gemm");
}

static const char *const beside_columns[] = { ".qzeros", ".scales", ".g_idx", NULL };
static const tg_hf_method gptq = { .name = "gptq",
                                   .matrix = ".qweight",
                                   .dtype = "I32",
                                   .beside = beside_columns,
                                   .configure = configure_gptq,
                                   .set = set_gptq };
static const tg_hf_method awq = { .name = "awq",
                                  .matrix = ".qweight",
                                  .dtype = "I32",
                                  .beside = beside_columns,
                                  .configure = configure_awq,
                                  .set = set_awq };

/* --------------------------------------------------------------------------------- bitsandbytes */

/* What a place keeps in memory: values of q, then of nested scales, and what is added to them. */
enum { NF4_VALUES = 16, NESTED_VALUES = 256, OFFSET_AT = NF4_VALUES + NESTED_VALUES };

/* Blocks that a row of so many columns may touch. */
static uint64_t blocks_of(const tg_gguf_tensor *t) { return t->dim[0] / t->place->group + 2; }

static size_t nf4_scratch(const tg_gguf_tensor *t, uint64_t n) {
    (void)n;
    return (size_t)(blocks_of(t) * (2 * sizeof(float) + 4) + t->dim[0] / 2 + 16);
}

/* Scales of blocks [first, first + n), which are stored as they are or nested. */
static tg_status read_absmax(tg_ctx *ctx, const tg_gguf_tensor *t, uint64_t first, size_t n,
                             uint8_t *stored, float *out) {
    const tg_gguf_place *p = t->place;
    const tg_gguf_part *absmax = &p->part[0], *nested = &p->part[1];
    if (!nested->rows) return tg_gguf_read_part(ctx, t, absmax, first, n, stored, out);
    const uint64_t block = first / p->group_rows;
    const size_t n_nested = (size_t)((first + n - 1) / p->group_rows - block + 1);
    float *scales = out + n;
    TG_TRY(tg_gguf_read_part(ctx, t, nested, block, n_nested, stored, scales));
    TG_TRY(tg_gguf_read_at(ctx, &absmax->reader, t, absmax->offset + first, stored, n));
    for (size_t i = 0; i < n; i++)
        out[i] = p->values[NF4_VALUES + stored[i]] * scales[(first + i) / p->group_rows - block] +
                 p->values[OFFSET_AT];
    return TG_OK;
}

/* scratch: scales, nested ones behind them; bytes of either; the row. */
static tg_status read_nf4(tg_ctx *ctx, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                          uint8_t *out, uint8_t *scratch) {
    const tg_gguf_place *p = t->place;
    const uint64_t cols = t->dim[0];
    float *scales = (float *)(void *)scratch;
    uint8_t *stored = (uint8_t *)(scales + 2 * blocks_of(t));
    uint8_t *row = stored + 4 * blocks_of(t);
    for (uint64_t r = first; r < first + n; r++, out += tg_gguf_row_bytes(t)) {
        const uint64_t at = r * cols, block = at / p->group;
        const size_t blocks = (size_t)((at + cols - 1) / p->group - block + 1);
        TG_TRY(read_absmax(ctx, t, block, blocks, stored, scales));
        TG_TRY(tg_gguf_read_at(ctx, &p->reader, t, t->offset + at / 2, row, (size_t)cols / 2));
        for (uint64_t c = 0; c < cols; c++) {
            const unsigned q = row[c / 2] >> (c % 2 ? 0 : 4) & 15;
            put_float(t->type, out, (size_t)c, p->values[q] * scales[(at + c) / p->group - block]);
        }
    }
    return TG_OK;
}

static const tg_gguf_form nf4_form = { .scratch_bytes = nf4_scratch, .read = read_nf4 };

/* A small part as floats, which stay. */
static tg_status load_values(const tg_hf_matrix *x, const char *suffix, uint64_t n, float *out) {
    tg_gguf_part part;
    TG_TRY(tg_hf_find_part(x, suffix, "F32", &part));
    if (part.rows != n || part.cols != 1) return tg_hf_misfit(x, "a list of values of q");
    return tg_gguf_read_at(x->files->g->ctx, &part.reader, x->t, part.offset, out,
                           (size_t)n * sizeof *out);
}

/* The JSON of quant_state: {"blocksize":64,"dtype":"bfloat16","shape":[R,C],..} */
static tg_status read_state(const tg_hf_matrix *x, const tg_json **out) {
    static const char *const names[] = { ".weight.quant_state.bitsandbytes__nf4",
                                         ".weight.quant_state.bitsandbytes__fp4" };
    tg_gguf *g = x->files->g;
    size_t file, which = 0;
    if (!tg_hf_find_stored(x->files, x->stored->name, x->n_stem, names[0], &file)) which = 1;
    tg_gguf_part part;
    TG_TRY(tg_hf_find_part(x, names[which], "U8", &part));
    if (part.cols != 1) return tg_hf_misfit(x, "a quant_state that is a list of bytes");
    tg_reader r = tg_reader_part(&part.reader, part.offset, part.offset + part.rows);
    const char *text;
    TG_TRY(tg_read_text(&r, &g->arena, names[which], part.rows, &text));
    return tg_json_parse(g->ctx, &g->arena, x->stored->name, text, (size_t)part.rows, NULL, out);
}

/* Sizes and type, as quant_state says. */
static tg_status set_state(const tg_hf_matrix *x, const tg_json *state, float *offset) {
    static const struct {
        const char *name;
        tg_dtype type;
    } types[] = { { "bfloat16", TG_BF16 }, { "float16", TG_F16 }, { "float32", TG_F32 } };
    const tg_json *shape = tg_json_get(state, "shape"), *size = tg_json_get(state, "blocksize");
    const tg_json *nested = tg_json_get(state, "nested_blocksize");
    const tg_json *add = tg_json_get(state, "nested_offset"), *type = tg_json_get(state, "dtype");
    uint64_t rows = 0, cols = 0, block = 0, outer = 256;
    double moved = 0;
    size_t i = 0;
    while (i < 3 && !(type && tg_json_is(type, types[i].name))) i++;
    const bool fits = i < 3 && shape && tg_json_kind(shape) == TG_JSON_ARRAY && shape->count == 2 &&
                      tg_json_uint64(NULL, tg_json_first(shape), &rows) == TG_OK &&
                      tg_json_uint64(NULL, tg_json_next(tg_json_first(shape)), &cols) == TG_OK &&
                      size && tg_json_uint64(NULL, size, &block) == TG_OK && block > 0 &&
                      block <= 1 << 16 &&
                      (!nested || tg_json_uint64(NULL, nested, &outer) == TG_OK) && outer > 0 &&
                      outer <= 1 << 16 && (!add || tg_json_double(NULL, add, &moved) == TG_OK) &&
                      rows <= UINT32_MAX && cols <= UINT32_MAX && cols % 2 == 0 &&
                      rows * cols / 2 == x->stored->dim[0] && x->stored->dim[1] == 1;
    if (!fits)
        return tg_hf_misfit(x, "a quant_state with the shape, blocks and dtype of its bytes");
    x->t->dim[0] = cols;
    x->t->dim[1] = rows;
    x->t->type = types[i].type;
    x->place->group = (uint32_t)block;
    x->place->group_rows = (uint32_t)outer;
    *offset = (float)moved;
    return TG_OK;
}

static tg_status set_nf4(const tg_hf_matrix *x) {
    tg_gguf *g = x->files->g;
    tg_gguf_place *p = x->place;
    const tg_json *state;
    size_t file;
    float *values = tg_arena_array(&g->arena, OFFSET_AT + 1, sizeof *values);
    if (!values) return tg_fail_memory(g->ctx, x->stored->name, OFFSET_AT * sizeof *values);
    TG_TRY(read_state(x, &state));
    TG_TRY(set_state(x, state, &values[OFFSET_AT]));
    TG_TRY(load_values(x, ".weight.quant_map", NF4_VALUES, values));
    const bool nested =
        tg_hf_find_stored(x->files, x->stored->name, x->n_stem, ".weight.nested_absmax", &file);
    TG_TRY(tg_hf_find_part(x, ".weight.absmax", nested ? "U8" : "F32", &p->part[0]));
    if (nested) {
        TG_TRY(tg_hf_find_part(x, ".weight.nested_absmax", "F32", &p->part[1]));
        TG_TRY(load_values(x, ".weight.nested_quant_map", NESTED_VALUES, values + NF4_VALUES));
    }
    const uint64_t blocks = (x->t->dim[0] * x->t->dim[1] + p->group - 1) / p->group;
    if (p->part[0].rows != blocks || p->part[0].cols != 1 || (nested && p->part[1].cols != 1) ||
        (nested && p->part[1].rows != (blocks + p->group_rows - 1) / p->group_rows))
        return tg_hf_misfit(x, "an absmax of each block");
    p->bits = 4;
    p->values = values;
    p->form = &nf4_form;
    return TG_OK;
}

/* Eight bits: a scale of each row, 127 times too large. */
static size_t int8_scratch(const tg_gguf_tensor *t, uint64_t n) {
    (void)n;
    return (size_t)t->dim[0] + 2 * sizeof(float);
}

static tg_status read_int8(tg_ctx *ctx, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                           uint8_t *out, uint8_t *scratch) {
    const tg_gguf_place *p = t->place;
    const size_t cols = (size_t)t->dim[0];
    float *scale = (float *)(void *)scratch;
    uint8_t *stored = (uint8_t *)(scale + 1), *row = stored + sizeof(float);
    for (uint64_t r = first; r < first + n; r++) {
        TG_TRY(tg_gguf_read_part(ctx, t, &p->part[0], r, 1, stored, scale));
        TG_TRY(tg_gguf_read_at(ctx, &p->reader, t, t->offset + r * cols, row, cols));
        for (size_t c = 0; c < cols; c += 32, out += 40) {
            tg_hf_put_f32(out, *scale / 127);
            tg_hf_put_f32(out + 4, 0);
            memcpy(out + 8, row + c, 32);
        }
    }
    return TG_OK;
}

static const tg_gguf_form int8_form = { .scratch_bytes = int8_scratch, .read = read_int8 };

static tg_status set_int8(const tg_hf_matrix *x) {
    TG_TRY(tg_hf_find_part(x, ".SCB", "F32", &x->place->part[0]));
    if (x->stored->n_dims != 2 || x->stored->dim[1] % 32 != 0 ||
        x->place->part[0].rows != x->stored->dim[0] || x->place->part[0].cols != 1)
        return tg_hf_misfit(x, "rows of whole 32 columns with a scale each");
    x->place->bits = 8;
    x->place->form = &int8_form;
    x->t->type = TG_MLX8;
    return TG_OK;
}

static const char *const beside_int8[] = { ".SCB", ".weight_format", NULL };
static const tg_hf_method eight_bits = { .name = "bitsandbytes",
                                         .matrix = ".weight",
                                         .dtype = "I8",
                                         .beside = beside_int8,
                                         .set = set_int8 };

static tg_status configure_bits(tg_hf_values *m, const tg_json *q, tg_hf_quant *out) {
    (void)m;
    if (tg_hf_is_on(q, "load_in_8bit")) out->method = &eight_bits;
    return TG_OK;
}

static const char *const beside_nf4[] = {
    ".weight.absmax",
    ".weight.quant_map",
    ".weight.nested_absmax",
    ".weight.nested_quant_map",
    ".weight.quant_state.bitsandbytes__nf4",
    ".weight.quant_state.bitsandbytes__fp4",
    NULL,
};
static const tg_hf_method bitsandbytes = { .name = "bitsandbytes",
                                           .matrix = ".weight",
                                           .dtype = "U8",
                                           .beside = beside_nf4,
                                           .configure = configure_bits,
                                           .set = set_nf4 };

const tg_hf_method *const tg_hf_methods[] = { &fp8,    &gptq,       &awq,     &bitsandbytes,
                                              &fbgemm, &compressed, &modelopt };
const size_t tg_hf_n_methods = sizeof tg_hf_methods / sizeof tg_hf_methods[0];
