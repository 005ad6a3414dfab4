/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_head.c - reads the header of a .safetensors file, whatever model it holds.
 *
 * A header that somebody has made up is refused here, before anything is read by it:
 *
 *   1  its length is at most that of the file and of the format
 *   2  it is JSON without double keys and of little depth (base/codec/json.h)
 *   3  each tensor: a known dtype, a shape whose product fits, offsets that are as far apart as the
 *      shape says, and inside the data
 *   4  all tensors together tile the data: sorted by place, each begins where the last one ended
 */
#include "io/safetensors/safetensors_head.h"

#include "base/sort.h"

/* An object of objects with an array inside. */
static const tg_json_limits limits = { .depth = 4, .values = 1u << 20 };

const tg_st_dtype tg_st_dtypes[TG_ST_DTYPES] = {
    { "F32", 4 }, { "F16", 2 }, { "BF16", 2 }, { "F64", 8 },     { "I64", 8 },
    { "U64", 8 }, { "I32", 4 }, { "U32", 4 },  { "I16", 2 },     { "U16", 2 },
    { "I8", 1 },  { "U8", 1 },  { "BOOL", 1 }, { "F8_E4M3", 1 }, { "F8_E5M2", 1 },
};

/* ---------------------------------------------------------------------------------- one tensor */

tg_status tg_st_fail(const tg_st_head *o, tg_status code, const char *name, const char *field,
                     const char *want, const tg_json *have) {
    return tg_fail(o->ctx, code, "%s: header: %.60s: %s: want %s, have %.40s", o->path, name, field,
                   want, TG_JSON_SHOWN(have));
}

static tg_status read_dtype(const tg_st_head *o, const tg_json *v, tg_st_tensor *s) {
    const tg_json *dtype = tg_json_get(v, "dtype");
    while (dtype && s->dtype < TG_ST_DTYPES && !tg_json_is(dtype, tg_st_dtypes[s->dtype].name)) {
        s->dtype++;
    }
    if (!dtype || s->dtype == TG_ST_DTYPES) {
        return tg_st_fail(o, TG_E_UNSUPPORTED, s->name, "dtype",
                          "F32, F16, BF16 or another known one", dtype);
    }
    return TG_OK;
}

/* A dimension of 0 makes a tensor of no bytes, which the format allows. A product that does not fit
 * is refused even if a later dimension is 0. */
static tg_status read_shape(const tg_st_head *o, const tg_json *v, tg_st_tensor *s,
                            uint64_t *elems) {
    const tg_json *shape = tg_json_get(v, "shape");
    if (!shape || tg_json_kind(shape) != TG_JSON_ARRAY) {
        return tg_st_fail(o, TG_E_FORMAT, s->name, "shape", "a list", shape);
    }
    for (const tg_json *d = tg_json_first(shape); d; d = tg_json_next(d)) {
        uint64_t n;
        if (tg_json_uint64(NULL, d, &n) != TG_OK || !tg_mul_u64(*elems, n, elems)) {
            return tg_st_fail(o, TG_E_FORMAT, s->name, "shape",
                              "whole numbers whose product fits 64 bits", d);
        }
        if (s->n_dims < TG_ST_MAX_DIMS) {
            s->dim[s->n_dims] = n;
        }
        s->n_dims++;
    }
    return TG_OK;
}

static tg_status read_offsets(const tg_st_head *o, const tg_json *v, tg_st_tensor *s,
                              uint64_t elems) {
    const tg_json *offsets = tg_json_get(v, "data_offsets");
    uint64_t want_bytes;
    if (!offsets || tg_json_kind(offsets) != TG_JSON_ARRAY || offsets->count != 2) {
        return tg_st_fail(o, TG_E_FORMAT, s->name, "data_offsets", "a list of two", offsets);
    }
    const tg_json *begin = tg_json_first(offsets), *end = tg_json_next(begin);
    if (tg_json_uint64(NULL, begin, &s->begin) != TG_OK ||
        tg_json_uint64(NULL, end, &s->end) != TG_OK || s->begin > s->end) {
        return tg_st_fail(o, TG_E_FORMAT, s->name, "data_offsets",
                          "two whole numbers, the first not above the second", end);
    }
    if (s->end > o->data_bytes) {
        return tg_fail(o->ctx, TG_E_FORMAT,
                       "%s: header: %.60s: data_offsets: want an end within the %" PRIu64
                       " bytes of data, have %" PRIu64,
                       o->path, s->name, o->data_bytes, s->end);
    }
    if (!tg_mul_u64(elems, tg_st_dtypes[s->dtype].bytes, &want_bytes) ||
        s->end - s->begin != want_bytes) {
        return tg_fail(
            o->ctx, TG_E_FORMAT,
            "%s: header: %.60s: data_offsets: want %" PRIu64 " bytes of %s, have %" PRIu64, o->path,
            s->name, want_bytes, tg_st_dtypes[s->dtype].name, s->end - s->begin);
    }
    return TG_OK;
}

static tg_status read_tensor(const tg_st_head *o, const tg_json *v, tg_st_tensor *s) {
    uint64_t elems = 1;
    *s = (tg_st_tensor) { .name = v->key, .dim = { 1, 1, 1, 1 } };
    if (strlen(v->key) != v->key_length) {
        return tg_st_fail(o, TG_E_FORMAT, s->name, "name", "one without a zero byte", NULL);
    }
    if (tg_json_kind(v) != TG_JSON_OBJECT) {
        return tg_st_fail(o, TG_E_FORMAT, s->name, "entry", "an object", v);
    }
    TG_TRY(read_dtype(o, v, s));
    TG_TRY(read_shape(o, v, s, &elems));
    return read_offsets(o, v, s, elems);
}

/* ----------------------------------------------------------------------------------- the header */

/* Among tensors that begin at one place, those of no bytes come first. */
static bool place_before(const void *user, uint32_t a, uint32_t b) {
    const tg_st_tensor *list = user;
    return list[a].begin != list[b].begin ? list[a].begin < list[b].begin
                                          : list[a].end < list[b].end;
}

/* No overlap and no hole: bytes that no tensor owns could be anything, and bytes that two own are a
 * trick. */
static tg_status check_tiles(const tg_st_head *o) {
    uint32_t *order = tg_arena_array(o->arena, o->n + 1, sizeof *order);
    if (!order) {
        return tg_fail_memory(o->ctx, o->path, o->n * sizeof *order);
    }
    tg_sort_numbers(order, o->n, place_before, o->list);
    uint64_t end = 0;
    for (size_t i = 0; i < o->n; i++) {
        const tg_st_tensor *s = &o->list[order[i]];
        if (s->begin != end) {
            return tg_fail(o->ctx, TG_E_FORMAT,
                           "%s: header: %.60s: data_offsets: want a begin at %" PRIu64
                           ", where the tensor before ends, have %" PRIu64,
                           o->path, s->name, end, s->begin);
        }
        end = s->end;
    }
    if (end != o->data_bytes) {
        return tg_fail(o->ctx, TG_E_FORMAT,
                       "%s: byte %" PRIu64 ": data: want %" PRIu64
                       " bytes, the tensors of the header, have %" PRIu64,
                       o->path, o->data_offset, end, o->data_bytes);
    }
    return TG_OK;
}

static tg_status read_text(tg_st_head *o, tg_reader *r) {
    uint64_t n_bytes;
    const char *text;
    TG_TRY(tg_read_u64(r, "header length", &n_bytes));
    if (n_bytes > TG_SAFETENSORS_HEADER_MAX) {
        return tg_reader_fail(r, TG_E_FORMAT, 0, "header length", "want at most %u, have %" PRIu64,
                              TG_SAFETENSORS_HEADER_MAX, n_bytes);
    }
    TG_TRY(tg_read_text(r, o->arena, "header", n_bytes, &text));
    o->data_offset = r->offset;
    o->data_bytes = tg_reader_left(r);
    const char *name = tg_arena_sprintf(o->arena, "%s: header", o->path);
    if (!name) {
        return tg_fail_memory(o->ctx, o->path, strlen(o->path) + 16);
    }
    TG_TRY(tg_json_parse(o->ctx, o->arena, name, text, (size_t)n_bytes, &limits, &o->root));
    /* Members have keys; the elements of an array do not. */
    if (tg_json_kind(o->root) == TG_JSON_OBJECT) return TG_OK;
    return tg_reader_fail(r, TG_E_FORMAT, 8, "header", "want an object, have another value");
}

/* The list of tensors; the one member that is none is left out. */
tg_status tg_st_read(tg_reader *r, tg_arena *arena, tg_st_head *o) {
    *o = (tg_st_head) { .ctx = r->ctx, .path = r->name, .arena = arena };
    TG_TRY(read_text(o, r));
    o->list = tg_arena_array(arena, (size_t)o->root->count + 1, sizeof *o->list);
    if (!o->list) {
        return tg_fail_memory(o->ctx, o->path, o->root->count * sizeof *o->list);
    }
    for (const tg_json *v = tg_json_first(o->root); v; v = tg_json_next(v)) {
        if (strcmp(v->key, "__metadata__") != 0) {
            TG_TRY(read_tensor(o, v, &o->list[o->n]));
            o->n++;
        }
    }
    return check_tiles(o);
}
