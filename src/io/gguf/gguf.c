/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf.c - reads the head of a GGUF file: its metadata and its table of tensors. gguf.h has the
 * layout.
 *
 * The head has no length of its own, and is read as a whole: first HEAD_BYTES of the file are
 * taken, twice as many if it does not end within them, and so on. Then a file of a hundred
 * thousand strings costs one read, and no tensor is read at all.
 *
 *     file    | "GGUF" .. metadata | table of tensors | gap | data ................ |
 *     arena   | copy of the head | tg_gguf_value [] | tg_gguf_tensor [] | keys and names |
 *
 * Strings and arrays of values point into the copy of the head and live until close. Keys and
 * names are copied once more, since they are C strings here and have no terminator in the file.
 *
 * What holds once a file is open, so that nobody checks it again: keys and names are sorted and
 * each is there once; an array's elements lie within the head; a tensor has a type of types.def,
 * rows of whole blocks, a size that fits 64 bits, and bytes of its own within the file.
 *
 * Read walk() first, which is the order of the file. gguf_rows.c reads the data, gguf_split.c
 * joins the files of a split model, gguf_writer.c is the way back.
 */
#include "io/gguf/gguf.h"

#include "base/sort.h"
#include "base/str.h"
#include "io/hf/hf.h"

/* What an entry takes at least, from which counts get their bound: a value has a key of one byte
 * behind its length, a type and one byte; a tensor has the length of its name, one dimension
 * with its count, a type and an offset. */
enum {
    HEAD_BYTES = 8 << 20,
    MIN_VALUE_BYTES = 8 + 1 + 4 + 1,
    MIN_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8
};
/* The specification of GGUF gives keys 65535 bytes. Names of tensors have 64 there; other
 * programs may write longer ones. */
#define MAX_KEY_BYTES  65535u
#define MAX_NAME_BYTES 255u

bool tg_gguf_probe(const uint8_t *first, size_t n_bytes) {
    return n_bytes >= 4 && memcmp(first, "GGUF", 4) == 0;
}

/* What is read while the head is walked. */
typedef struct head {
    tg_gguf *g;
    tg_reader r; /* of the part that is in memory */
    tg_gguf_value *values;
    tg_gguf_tensor *tensors; /* [n_tensors] */
    size_t n_tensors;
} head;

/* Bytes where they lie: the head stays in the arena. The reader is always one over memory;
 * tg_reader_need has proved that n bytes are left, so the pointer is good for all of them. */
static tg_status take(tg_reader *r, const char *field, uint64_t n, const uint8_t **out) {
    TG_TRY(tg_reader_need(r, field, n));
    *out = r->memory + (r->offset - r->memory_offset);
    r->offset += n;
    return TG_OK;
}

/* The string is not terminated and may hold zero bytes. Its length is 64 bits in the file:
 * take() holds it against what is left, so the cast cannot cut it. */
static tg_status take_string(tg_reader *r, const char *field, tg_gguf_string *out) {
    uint64_t n;
    const uint8_t *bytes;
    TG_TRY(tg_read_u64(r, field, &n));
    TG_TRY(take(r, field, n, &bytes));
    *out = (tg_gguf_string) { (const char *)bytes, (size_t)n };
    return TG_OK;
}

/* Keys and names are text without controls, of a sane length, and become terminated strings.
 * Without zeros among them, strcmp gives a total order, and a message can show a name as it is. */
static tg_status take_name(head *h, const char *field, size_t most, const char **out) {
    tg_gguf_string s;
    const uint64_t at = h->r.offset;
    TG_TRY(take_string(&h->r, field, &s));
    if (s.n_bytes == 0 || s.n_bytes > most)
        return tg_reader_fail(&h->r, TG_E_FORMAT, at, field, "want 1..%zu bytes, have %zu", most,
                              s.n_bytes);
    for (size_t i = 0; i < s.n_bytes; i++)
        if ((unsigned char)s.bytes[i] < 0x20 || s.bytes[i] == 0x7f)
            return tg_reader_fail(&h->r, TG_E_FORMAT, at, field, "byte %zu of it is a control", i);
    *out = tg_arena_strndup(&h->g->arena, s.bytes, s.n_bytes);
    return *out ? TG_OK : tg_fail_memory(h->g->ctx, field, s.n_bytes);
}

/* Strings and arrays have no fixed size: theirs is 0, and callers ask before they come here. */
static size_t bytes_of(tg_gguf_type t) {
    static const uint8_t bytes[TG_GGUF_TYPE_COUNT] = {
        [TG_GGUF_U8] = 1,  [TG_GGUF_I8] = 1,  [TG_GGUF_U16] = 2, [TG_GGUF_I16] = 2,
        [TG_GGUF_U32] = 4, [TG_GGUF_I32] = 4, [TG_GGUF_F32] = 4, [TG_GGUF_BOOL] = 1,
        [TG_GGUF_U64] = 8, [TG_GGUF_I64] = 8, [TG_GGUF_F64] = 8,
    };
    return bytes[t];
}

static const char *const type_names[TG_GGUF_TYPE_COUNT] = { "u8",  "i8",  "u16",  "i16",    "u32",
                                                            "i32", "f32", "bool", "string", "array",
                                                            "u64", "i64", "f64" };

/* A value keeps its number twice, as whole and as real, since writers do not agree on a key's
 * type: a getter below takes either width. Nothing in the head is aligned, hence the tg_get
 * calls. */
static void set_number(tg_gguf_value *v, const uint8_t *p) {
    const uint64_t u64 = bytes_of(v->type) == 8 ? tg_get_u64(p) : 0;
    const uint32_t u32 = bytes_of(v->type) == 4 ? tg_get_u32(p) : 0;
    float f;
    double d;
    switch (v->type) {
    case TG_GGUF_U8: v->whole = p[0]; break;
    case TG_GGUF_I8: v->whole = (int8_t)p[0]; break;
    case TG_GGUF_U16: v->whole = tg_get_u16(p); break;
    case TG_GGUF_I16: v->whole = (int16_t)tg_get_u16(p); break;
    case TG_GGUF_U32: v->whole = u32; break;
    case TG_GGUF_I32: v->whole = (int32_t)u32; break;
    case TG_GGUF_U64: v->whole = u64 > INT64_MAX ? INT64_MAX : (int64_t)u64; break;
    case TG_GGUF_I64: v->whole = (int64_t)u64; break;
    case TG_GGUF_BOOL: v->whole = p[0]; break;
    case TG_GGUF_F32:
        memcpy(&f, &u32, sizeof f);
        v->real = (double)f;
        return;
    case TG_GGUF_F64:
        memcpy(&d, &u64, sizeof d);
        v->real = d;
        return;
    default: return;
    }
    v->real = (double)v->whole;
}

/* The specification allows arrays of arrays. No key that is read here is one, so they are
 * refused, and a value needs no recursion. */
static tg_status take_type(head *h, const char *key, bool in_array, tg_gguf_type *out) {
    const uint64_t at = h->r.offset;
    uint32_t type;
    TG_TRY(tg_read_u32(&h->r, key, &type));
    if (type >= TG_GGUF_TYPE_COUNT || (in_array && type == TG_GGUF_ARRAY))
        return tg_reader_fail(&h->r, TG_E_FORMAT, at, key, "want a type %s, have %u",
                              in_array ? "of elements" : "of values", (unsigned)type);
    *out = (tg_gguf_type)type;
    return TG_OK;
}

/* A vocabulary has a quarter of a million strings, so those that fit are passed over without a
 * call; what does not is told by the one that reads. */
static tg_status skip_strings(tg_reader *r, const char *field, uint64_t count) {
    for (; count > 0; count--) {
        const uint64_t left = tg_reader_left(r);
        const uint8_t *at = r->memory + (r->offset - r->memory_offset);
        const uint64_t n = left < 8 ? 0 : tg_get_u64(at);
        if (left < 8 || n > left - 8) {
            tg_gguf_string s;
            return take_string(r, field, &s);
        }
        r->offset += 8 + n;
    }
    return TG_OK;
}

/* Strings are walked once, so that later walks (tg_gguf_next_string) need no checks. A string
 * takes 8 bytes at least: count is held against that before the loop, so that a huge count fails
 * at once and not after as many steps. */
static tg_status take_array(head *h, tg_gguf_value *v) {
    TG_TRY(take_type(h, v->key, true, &v->element));
    uint64_t count, bytes;
    TG_TRY(tg_read_u64(&h->r, v->key, &count));
    const size_t each = v->element == TG_GGUF_STRING ? 8 : bytes_of(v->element);
    if (!tg_mul_u64(count, each, &bytes)) bytes = UINT64_MAX;
    TG_TRY(tg_reader_need(&h->r, v->key, bytes));
    const uint64_t begin = h->r.offset;
    if (v->element == TG_GGUF_STRING) {
        TG_TRY(skip_strings(&h->r, v->key, count));
    } else {
        h->r.offset += bytes;
    }
    v->count = (size_t)count;
    v->elements = h->r.memory + (begin - h->r.memory_offset);
    v->elements_bytes = (size_t)(h->r.offset - begin);
    return TG_OK;
}

/* A value's type is known only after its key, so messages about the value name the key. */
static tg_status take_value(head *h, tg_gguf_value *v) {
    TG_TRY(take_name(h, "key", MAX_KEY_BYTES, &v->key));
    TG_TRY(take_type(h, v->key, false, &v->type));
    if (v->type == TG_GGUF_ARRAY) return take_array(h, v);
    if (v->type == TG_GGUF_STRING) return take_string(&h->r, v->key, &v->text);
    const uint8_t *bytes;
    const uint64_t at = h->r.offset;
    TG_TRY(take(&h->r, v->key, bytes_of(v->type), &bytes));
    if (v->type == TG_GGUF_BOOL && bytes[0] > 1)
        return tg_reader_fail(&h->r, TG_E_FORMAT, at, v->key, "want 0 or 1, have %u",
                              (unsigned)bytes[0]);
    set_number(v, bytes);
    return TG_OK;
}

/* All that can be read, each behind a space. */
static const char *known_types(char text[300]) {
    text[0] = 0;
    for (int i = 0; i < TG_DTYPE_COUNT; i++)
        if (tg_dtype_table[i].number != TG_NOT_IN_GGUF)
            tg_str_append(text, 300, " %s", tg_dtype_table[i].label);
    return text;
}

/* What ggml calls a type that is not read here. Numbers without a name in this table are read
 * (types.def), or newer than the table. */
static const char *name_of_type(uint32_t type) {
    static const char *const names[] = {
        [4] = "Q4_2",        [5] = "Q4_3",        [9] = "Q8_1",        [15] = "Q8_K",
        [16] = "IQ2_XXS",    [17] = "IQ2_XS",     [18] = "IQ3_XXS",    [19] = "IQ1_S",
        [21] = "IQ3_S",      [22] = "IQ2_S",      [24] = "I8",         [25] = "I16",
        [26] = "I32",        [27] = "I64",        [28] = "F64",        [29] = "IQ1_M",
        [31] = "Q4_0_4_4",   [32] = "Q4_0_4_8",   [33] = "Q4_0_8_8",   [34] = "TQ1_0",
        [36] = "IQ4_NL_4_4", [37] = "IQ4_NL_4_8", [38] = "IQ4_NL_8_8", [40] = "NVFP4",
    };
    const char *name = type < sizeof names / sizeof names[0] ? names[type] : NULL;
    return name ? name : "one that is not known";
}

/* Types, sizes and places of one tensor. dim[0] is the fastest, so a row is dim[0] elements, and
 * blocks lie along it: a row is a whole number of them. offset is still that in the data;
 * place_tensors makes it one of the file, once it is known where the data begin. */
static tg_status take_tensor(head *h, tg_gguf_tensor *t) {
    TG_TRY(take_name(h, "name of a tensor", MAX_NAME_BYTES, &t->name));
    const uint64_t at = h->r.offset;
    TG_TRY(tg_read_u32(&h->r, t->name, &t->n_dims));
    if (t->n_dims < 1 || t->n_dims > 4)
        return tg_reader_fail(&h->r, TG_E_FORMAT, at, t->name, "want 1..4 dimensions, have %u",
                              (unsigned)t->n_dims);
    t->elems = 1;
    for (uint32_t i = 0; i < 4; i++) {
        t->dim[i] = 1;
        if (i < t->n_dims) TG_TRY(tg_read_u64(&h->r, t->name, &t->dim[i]));
        if (t->dim[i] == 0 || !tg_mul_u64(t->elems, t->dim[i], &t->elems) || t->elems > INT64_MAX)
            return tg_reader_fail(&h->r, TG_E_FORMAT, at, t->name,
                                  "want sizes above 0 whose product fits, have %" PRIu64,
                                  t->dim[i]);
    }
    const uint64_t type_at = h->r.offset;
    uint32_t type;
    TG_TRY(tg_read_u32(&h->r, t->name, &type));
    if (!tg_dtype_of_number(type, &t->type)) {
        char known[300];
        return tg_reader_fail(&h->r, TG_E_UNSUPPORTED, type_at, t->name,
                              "want one of%s, have %s, type %u", known_types(known),
                              name_of_type(type), (unsigned)type);
    }
    const tg_dtype_desc *d = &tg_dtype_table[t->type];
    if (t->dim[0] % d->cols != 0)
        return tg_reader_fail(&h->r, TG_E_FORMAT, at, t->name,
                              "want rows of whole blocks of %u for %s, have %" PRIu64,
                              (unsigned)d->cols, d->label, t->dim[0]);
    if (!tg_mul_u64(t->elems / d->cols, d->bytes, &t->bytes))
        return tg_reader_fail(&h->r, TG_E_FORMAT, at, t->name,
                              "want a size in bytes that fits 64 bits, have %" PRIu64
                              " elements of %s",
                              t->elems, d->label);
    return tg_read_u64(&h->r, t->name, &t->offset);
}

/* ---------------------------------------------------------------------------------------- tables
 */

static bool value_before(const void *user, uint32_t a, uint32_t b) {
    const tg_gguf_value *v = user;
    return strcmp(v[a].key, v[b].key) < 0;
}
static bool tensor_before(const void *user, uint32_t a, uint32_t b) {
    const tg_gguf_tensor *t = user;
    return strcmp(t[a].name, t[b].name) < 0;
}
static bool place_before(const void *user, uint32_t a, uint32_t b) {
    const tg_gguf_tensor *t = user;
    return t[a].offset < t[b].offset;
}

/* A sorted copy in place of the items: indices are sorted, n log n comparisons, then items are
 * moved once. The copy stays in the arena until close, since nothing is freed alone there. */
static tg_status sort(tg_gguf *g, void *items, size_t n, size_t item_bytes, tg_before_fn before) {
    uint32_t *order = tg_arena_array(&g->arena, n + 1, sizeof *order);
    char *copy = tg_arena_array(&g->arena, n + 1, item_bytes);
    if (!order || !copy) return tg_fail_memory(g->ctx, "order of a table", n * item_bytes);
    tg_sort_numbers(order, n, before, items);
    for (size_t i = 0; i < n; i++)
        memcpy(copy + i * item_bytes, (const char *)items + order[i] * item_bytes, item_bytes);
    if (n > 0) memcpy(items, copy, n * item_bytes);
    return TG_OK;
}

/* The file's order means nothing, while a lookup by binary search does; and once names are
 * sorted, equal ones are neighbours. A second tensor of the same name would be weights that are
 * silently not used, so it is an error. */
static tg_status sort_tensors(tg_gguf *g, tg_gguf_tensor *tensors, size_t n) {
    TG_TRY(sort(g, tensors, n, sizeof *tensors, tensor_before));
    for (size_t i = 1; i < n; i++)
        if (strcmp(tensors[i - 1].name, tensors[i].name) == 0)
            return tg_fail(g->ctx, TG_E_FORMAT, "%s: tensor %s is there twice", g->path,
                           tensors[i].name);
    g->tensors = tensors;
    g->n_tensors = n;
    return TG_OK;
}

static tg_status sort_values(tg_gguf *g, tg_gguf_value *values, size_t n) {
    TG_TRY(sort(g, values, n, sizeof *values, value_before));
    for (size_t i = 1; i < n; i++)
        if (strcmp(values[i - 1].key, values[i].key) == 0)
            return tg_fail(g->ctx, TG_E_FORMAT, "%s: key %s is there twice", g->path,
                           values[i].key);
    g->values = values;
    g->n_values = n;
    return TG_OK;
}

tg_status tg_gguf_set_tables(tg_gguf *g, tg_gguf_value *values, size_t n_values,
                             tg_gguf_tensor *tensors, size_t n_tensors) {
    TG_TRY(sort_values(g, values, n_values));
    return sort_tensors(g, tensors, n_tensors);
}

/* Every tensor is aligned, inside of the file, and behind the one before it: in the order of
 * places each begins where the last one ends or later, so that no two overlap. Gaps are allowed.
 * Sums are checked, for offsets come from the file and may be anything. */
static tg_status place_tensors(head *h, uint64_t alignment) {
    tg_gguf *g = h->g;
    const uint64_t data = (h->r.offset + alignment - 1) / alignment * alignment;
    uint64_t end = data;
    TG_TRY(sort(g, h->tensors, h->n_tensors, sizeof *h->tensors, place_before));
    for (size_t i = 0; i < h->n_tensors; i++) {
        tg_gguf_tensor *t = &h->tensors[i];
        uint64_t stop;
        if (t->offset % alignment != 0 || !tg_add_u64(data, t->offset, &t->offset) ||
            !tg_add_u64(t->offset, t->bytes, &stop) || t->offset < end || stop > g->total_bytes)
            return tg_fail(g->ctx, TG_E_FORMAT,
                           "%s: tensor %s: want %" PRIu64 " bytes within the %" PRIu64
                           " of the file, aligned and apart from others, have byte %" PRIu64,
                           g->path, t->name, t->bytes, g->total_bytes, t->offset);
        end = stop;
    }
    return sort_tensors(g, h->tensors, h->n_tensors);
}

/* A multiple that the writer chose for mmap and for direct reads; 32 where the file says
 * nothing. Powers of two alone are allowed, and 64 KiB is beyond any page that a writer aligns
 * for. */
static tg_status alignment_of(const tg_gguf *g, uint64_t *out) {
    int32_t alignment = 32;
    const tg_gguf_value *v = tg_gguf_find(g, "general.alignment");
    TG_TRY(tg_gguf_get_int(g, "general.alignment", 1, 65536, &alignment));
    if ((v && v->type != TG_GGUF_U32) || (alignment & (alignment - 1)) != 0)
        return tg_fail(g->ctx, TG_E_FORMAT,
                       "%s: general.alignment: want a power of two as u32, have %d", g->path,
                       (int)alignment);
    *out = (uint64_t)alignment;
    return TG_OK;
}

/* A count is at most what the rest of the file could hold, by min_bytes each. So a table has a
 * size in proportion to the file, and a head of a few bytes cannot ask for gigabytes. */
static tg_status take_count(head *h, const char *field, uint64_t min_bytes, uint64_t *out) {
    const uint64_t at = h->r.offset;
    TG_TRY(tg_read_u64(&h->r, field, out));
    const uint64_t most = (h->g->total_bytes - h->r.offset) / min_bytes;
    if (*out > most)
        return tg_reader_fail(&h->r, TG_E_FORMAT, at, field,
                              "want at most %" PRIu64 ", which is what fits, have %" PRIu64, most,
                              *out);
    return TG_OK;
}

/* The head in the order of the file. Version 1 had lengths of 32 bits, and a big-endian file
 * shows its version with the bytes swapped: both are refused by the version. Values are sorted
 * before the table of tensors is placed, since its alignment is one of them. */
static tg_status walk(head *h) {
    tg_gguf *g = h->g;
    const uint8_t *magic;
    uint64_t n_tensors, n_values;
    TG_TRY(take(&h->r, "magic", 4, &magic));
    if (!tg_gguf_probe(magic, 4))
        return tg_reader_fail(&h->r, TG_E_FORMAT, 0, "magic", "want GGUF");
    TG_TRY(tg_read_u32(&h->r, "version", &g->version));
    if (g->version != 2 && g->version != 3)
        return tg_reader_fail(&h->r, TG_E_UNSUPPORTED, 4, "version",
                              "want 2 or 3, little-endian, have %u", (unsigned)g->version);
    TG_TRY(take_count(h, "number of tensors", MIN_TENSOR_BYTES, &n_tensors));
    TG_TRY(take_count(h, "number of values", MIN_VALUE_BYTES, &n_values));
    h->values = tg_arena_array(&g->arena, (size_t)n_values + 1, sizeof *h->values);
    h->tensors = tg_arena_array(&g->arena, (size_t)n_tensors + 1, sizeof *h->tensors);
    if (!h->values || !h->tensors)
        return tg_fail_memory(g->ctx, "tables of a file", (size_t)(n_values + n_tensors) * 64);
    for (uint64_t i = 0; i < n_values; i++) TG_TRY(take_value(h, &h->values[i]));
    for (uint64_t i = 0; i < n_tensors; i++) TG_TRY(take_tensor(h, &h->tensors[i]));
    h->n_tensors = (size_t)n_tensors;
    uint64_t alignment = 32;
    TG_TRY(sort_values(g, h->values, (size_t)n_values));
    TG_TRY(alignment_of(g, &alignment));
    return place_tensors(h, alignment);
}

tg_status tg_gguf_read_values(tg_gguf *g, const tg_reader *r, tg_gguf_value **out, size_t *n) {
    head h = { .g = g, .r = *r };
    uint32_t count;
    const uint64_t at = r->offset;
    TG_TRY(tg_read_u32(&h.r, "number of values", &count));
    if (count > tg_reader_left(&h.r) / MIN_VALUE_BYTES)
        return tg_reader_fail(r, TG_E_FORMAT, at, "number of values",
                              "want what fits into %" PRIu64 " bytes, have %" PRIu32,
                              tg_reader_left(&h.r), count);
    *n = count;
    *out = tg_arena_array(&g->arena, (size_t)count + 1, sizeof **out);
    if (!*out) return tg_fail_memory(g->ctx, "metadata", count * sizeof **out);
    for (uint32_t i = 0; i < count; i++) TG_TRY(take_value(&h, &(*out)[i]));
    if (tg_reader_left(&h.r) == 0) return TG_OK;
    return tg_reader_fail(r, TG_E_FORMAT, h.r.offset, "metadata",
                          "want their end, have %" PRIu64 " more bytes", tg_reader_left(&h.r));
}

/* An error with all of the file in view is one of the file; else there may just be more to see,
 * so it goes to a context that nobody reads, and the next try starts from an empty arena. A head
 * of n bytes is read at most once more by that growth, and the last read has at most 2n. */
static tg_status read_head(tg_gguf *g) {
    g->total_bytes = g->reader.end;
    for (uint64_t n = HEAD_BYTES;; n *= 2) {
        const bool whole = n >= g->total_bytes;
        tg_ctx quiet = *g->ctx;
        head h = { .g = g };
        tg_ctx *const ctx = g->ctx;
        TG_TRY(tg_reader_load(&g->reader, &g->arena, "head", 0, whole ? g->total_bytes : n, &h.r));
        if (!whole) g->ctx = h.r.ctx = &quiet;
        const tg_status status = walk(&h);
        g->ctx = ctx;
        if (status == TG_OK || whole) return status;
        tg_arena_deinit(&g->arena);
        g->values = NULL;
        g->n_values = g->n_tensors = 0;
    }
}

/* Closes what a failed opening has made, so that callers have nothing to undo. */
static tg_status finish_open(tg_gguf *g, tg_status status) {
    g->n_files = 1;
    if (status == TG_OK) status = read_head(g);
    if (status != TG_OK) tg_gguf_close(g);
    return status;
}

tg_status tg_gguf_open_one(tg_ctx *ctx, const char *path, tg_gguf *out) {
    *out = (tg_gguf) { .ctx = ctx, .path = path };
    tg_arena_init(&out->arena, &ctx->mem);
    return finish_open(out, tg_reader_open(ctx, path, &out->reader));
}

tg_status tg_gguf_open_memory(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                              tg_gguf *out) {
    *out = (tg_gguf) { .ctx = ctx, .path = name };
    tg_arena_init(&out->arena, &ctx->mem);
    tg_reader_open_memory(ctx, name, bytes, n_bytes, &out->reader);
    return finish_open(out, TG_OK);
}

tg_status tg_gguf_open(tg_ctx *ctx, const char *path, tg_gguf *out) {
    TG_TRY(tg_gguf_open_one(ctx, path, out));
    const tg_status status = tg_gguf_open_others(out);
    if (status != TG_OK) tg_gguf_close(out);
    return status;
}

/* What was never opened has no ctx, and a second close finds none either. */
void tg_gguf_close(tg_gguf *g) {
    if (!g->ctx) return;
    for (size_t i = 1; g->others && i < g->n_files; i++) tg_gguf_close(&g->others[i - 1]);
    tg_hf_close(g->hf);
    tg_reader_close(&g->reader);
    tg_arena_deinit(&g->arena);
    *g = (tg_gguf) { .ctx = NULL };
}

/* ---------------------------------------------------------------------------------------- asking
 */

/* Binary search. Where a record is kept (metadata.c), a const tg_gguf is written to through
 * `asked`: such a view belongs to one thread. */
const tg_gguf_value *tg_gguf_find(const tg_gguf *g, const char *key) {
    for (size_t low = 0, high = g->n_values; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(g->values[middle].key, key);
        if (order == 0 && g->asked) g->asked[middle] = true;
        if (order == 0) return &g->values[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const tg_gguf_tensor *tg_gguf_tensor_find(const tg_gguf *g, const char *name) {
    for (size_t low = 0, high = g->n_tensors; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(g->tensors[middle].name, name);
        if (order == 0) return &g->tensors[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

bool tg_gguf_checksummed(const tg_gguf *g) {
    return g->checks.crc || (g->hf && g->hf->folder.members);
}

static tg_status wrong_type(const tg_gguf *g, const tg_gguf_value *v, const char *want) {
    return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want %s, have %s", g->path, v->key, want,
                   type_names[v->type]);
}

/* Converters write the same key as u32, i32 or u64, so every whole type will do. A bool will
 * not: a key that should be a size and is true means something else. */
static bool is_whole(const tg_gguf_value *v) {
    return v->type != TG_GGUF_F32 && v->type != TG_GGUF_F64 && v->type != TG_GGUF_STRING &&
           v->type != TG_GGUF_ARRAY && v->type != TG_GGUF_BOOL;
}

/* min and max are the caller's and lie within 32 bits, which makes the cast safe. */
tg_status tg_gguf_get_int(const tg_gguf *g, const char *key, int64_t min, int64_t max,
                          int32_t *out) {
    const tg_gguf_value *v = tg_gguf_find(g, key);
    if (!v) return TG_OK;
    if (!is_whole(v)) return wrong_type(g, v, "a whole number");
    if (v->whole < min || v->whole > max)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want %" PRId64 "..%" PRId64 ", have %" PRId64,
                       g->path, key, min, max, v->whole);
    *out = (int32_t)v->whole;
    return TG_OK;
}

/* The comparison is written so that a NaN fails it, and an f64 beyond f32 does too. */
tg_status tg_gguf_get_float(const tg_gguf *g, const char *key, float *out) {
    const tg_gguf_value *v = tg_gguf_find(g, key);
    if (!v) return TG_OK;
    if (v->type != TG_GGUF_F32 && v->type != TG_GGUF_F64) return wrong_type(g, v, "a float");
    if (!(v->real >= -FLT_MAX && v->real <= FLT_MAX))
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want a finite number, have %g", g->path, key,
                       v->real);
    *out = (float)v->real;
    return TG_OK;
}

tg_status tg_gguf_get_bool(const tg_gguf *g, const char *key, bool *out) {
    const tg_gguf_value *v = tg_gguf_find(g, key);
    if (!v) return TG_OK;
    if (v->type != TG_GGUF_BOOL) return wrong_type(g, v, "a bool");
    *out = v->whole != 0;
    return TG_OK;
}

tg_status tg_gguf_get_string(const tg_gguf *g, const char *key, tg_gguf_string *out) {
    const tg_gguf_value *v = tg_gguf_find(g, key);
    if (!v) return TG_OK;
    if (v->type != TG_GGUF_STRING) return wrong_type(g, v, "a string");
    *out = v->text;
    return TG_OK;
}

tg_status tg_gguf_get_array(const tg_gguf *g, const char *key, tg_gguf_type element,
                            const tg_gguf_value **out) {
    *out = tg_gguf_find(g, key);
    if (!*out) return TG_OK;
    if ((*out)->type != TG_GGUF_ARRAY) return wrong_type(g, *out, "an array");
    if ((*out)->element != element)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want an array of %s, have one of %s", g->path,
                       key, type_names[element], type_names[(*out)->element]);
    return TG_OK;
}

/* A list has a bool of one byte for each layer, 1 1 1 0 1 1 1 0 where the period is 4;
 * llama.cpp's converter writes one for some families and a number for others. The period is read
 * off the first 0, and the rest must repeat it. Where all layers have a window, the period is
 * beyond the last one. */
tg_status tg_gguf_get_period(const tg_gguf *g, const char *key, size_t n_layers, int32_t *out) {
    const tg_gguf_value *v = tg_gguf_find(g, key);
    if (!v || v->type != TG_GGUF_ARRAY) return tg_gguf_get_int(g, key, 1, 512, out);
    TG_TRY(tg_gguf_get_array(g, key, TG_GGUF_BOOL, &v));
    if (v->count != n_layers)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want one for each of %zu layers, have %zu",
                       g->path, key, n_layers, v->count);
    size_t period = 1;
    while (period <= v->count && v->elements[period - 1]) period++;
    for (size_t i = 0; i < v->count; i++)
        if ((v->elements[i] != 0) != ((i + 1) % period != 0))
            return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                           "%s: %s: want one layer of every %zu without a window, have another "
                           "rhythm at number %zu",
                           g->path, key, period, i + 1);
    if (period > 512)
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want 1..512, have %zu", g->path, key, period);
    *out = (int32_t)period;
    return TG_OK;
}

/* Without a check: take_array has walked these bytes. The caller counts, and stops at
 * array->count. */
tg_gguf_string tg_gguf_next_string(const tg_gguf_value *array, size_t *at) {
    const uint8_t *p = array->elements + *at;
    const size_t n = (size_t)tg_get_u64(p);
    *at += 8 + n;
    return (tg_gguf_string) { (const char *)p + 8, n };
}

const char *const tg_gguf_factors[TG_FACTORS] = { "rope_freqs.weight", "rope_factors_short.weight",
                                                  "rope_factors_long.weight" };

bool tg_gguf_is_factors(const char *name) {
    for (size_t i = 0; i < TG_FACTORS; i++)
        if (strcmp(name, tg_gguf_factors[i]) == 0) return true;
    return false;
}
