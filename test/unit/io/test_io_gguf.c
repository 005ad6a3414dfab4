/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io_gguf.c - heads of GGUF files made here, byte by byte: what is read of good ones, and one
 * rule broken in each of the others.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io/gguf/gguf.h"

typedef struct file {
    uint8_t bytes[4096];
    size_t n;
} file;

static void put(file *f, const void *bytes, size_t n) {
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}
static void u32(file *f, uint32_t x) {
    tg_put_u32(f->bytes + f->n, x);
    f->n += 4;
}
static void u64(file *f, uint64_t x) {
    tg_put_u64(f->bytes + f->n, x);
    f->n += 8;
}
static void text_of(file *f, const char *text, size_t n) {
    u64(f, n);
    put(f, text, n);
}
static void text(file *f, const char *t) { text_of(f, t, strlen(t)); }

static file head(uint32_t version, uint64_t n_tensors, uint64_t n_values) {
    file f = { .n = 0 };
    put(&f, "GGUF", 4);
    u32(&f, version);
    u64(&f, n_tensors);
    u64(&f, n_values);
    return f;
}
static void value(file *f, const char *key, uint32_t type, uint64_t bits, size_t n_bytes) {
    uint8_t bytes[8];
    text(f, key);
    u32(f, type);
    tg_put_u64(bytes, bits);
    put(f, bytes, n_bytes);
}
static void tensor(file *f, const char *name, uint32_t n_dims, uint64_t rows, uint64_t cols,
                   uint32_t type, uint64_t offset) {
    text(f, name);
    u32(f, n_dims);
    u64(f, cols);
    if (n_dims > 1) u64(f, rows);
    u32(f, type);
    u64(f, offset);
}
/* Up to the data, and so many zeros of it. */
static void data(file *f, size_t n, size_t align) {
    f->n = (f->n + align - 1) / align * align + n;
    assert_true(f->n <= sizeof f->bytes);
}

static tg_ctx ctx;
static tg_status open_it(const file *f, tg_gguf *g) {
    static const tg_mem *mem;
    static tg_mem plain;
    plain = tg_mem_default();
    mem = &plain;
    tg_ctx_init(&ctx, mem, NULL, NULL);
    return tg_gguf_open_memory(&ctx, "made.gguf", f->bytes, f->n, g);
}
static void refused(const file *f, tg_status want, const char *words) {
    tg_gguf g;
    const tg_status status = open_it(f, &g);
    if (status == TG_OK) tg_gguf_close(&g);
    if (status != want || !strstr(ctx.message, words))
        fail_msg("want %d, \"%s\", have %d, \"%s\"", (int)want, words, (int)status, ctx.message);
}

/* ------------------------------------------------------------------------------------------ values
 */

/* The least and the largest of every kind of number. */
static void numbers(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        size_t n_bytes;
        uint64_t bits;
        int64_t whole;
        double real;
    } cases[] = {
        { TG_GGUF_U8, 1, 255, 255, 255 },
        { TG_GGUF_I8, 1, 0x80, -128, -128 },
        { TG_GGUF_I8, 1, 0x7f, 127, 127 },
        { TG_GGUF_U16, 2, 0xfffe, 65534, 65534 },
        { TG_GGUF_I16, 2, 0x8001, -32767, -32767 },
        { TG_GGUF_U32, 4, 0xffffffff, 4294967295, 4294967295.0 },
        { TG_GGUF_I32, 4, 0xfffffffe, -2, -2 },
        { TG_GGUF_U64, 8, UINT64_MAX, INT64_MAX, 9223372036854775807.0 },
        { TG_GGUF_U64, 8, 5, 5, 5 },
        { TG_GGUF_I64, 8, (uint64_t)INT64_MIN, INT64_MIN, -9223372036854775808.0 },
        { TG_GGUF_BOOL, 1, 1, 1, 1 },
        { TG_GGUF_F32, 4, 0xc0200000, 0, -2.5 },
        { TG_GGUF_F64, 8, UINT64_C(0x3fb999999999999a), 0, 0.1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file f = head(3, 0, 1);
        tg_gguf g;
        value(&f, "a.key", cases[i].type, cases[i].bits, cases[i].n_bytes);
        if (open_it(&f, &g) != TG_OK) fail_msg("%s", ctx.message);
        const tg_gguf_value *v = tg_gguf_find(&g, "a.key");
        assert_non_null(v);
        assert_int_equal(v->type, cases[i].type);
        assert_true(v->whole == cases[i].whole);
        assert_true(v->real >= cases[i].real && v->real <= cases[i].real);
        tg_gguf_close(&g);
    }
}

/* Of the wanted kind and within the wanted range, or refused; left as it is where it is absent. */
static void what_is_asked_for(void **state) {
    (void)state;
    file f = head(2, 0, 6);
    value(&f, "count", TG_GGUF_U16, 12, 2);
    value(&f, "f", TG_GGUF_F32, 0x3f800000, 4);
    value(&f, "infinite", TG_GGUF_F32, 0x7f800000, 4);
    value(&f, "minus", TG_GGUF_F64, UINT64_C(0xffefffffffffffff), 8);
    value(&f, "on", TG_GGUF_BOOL, 1, 1);
    text(&f, "name");
    u32(&f, TG_GGUF_STRING);
    text(&f, "llama");
    tg_gguf g;
    assert_int_equal(open_it(&f, &g), TG_OK);
    int32_t n = -7;
    float x = -7;
    bool b = false;
    tg_gguf_string s = { NULL, 0 };
    assert_int_equal(tg_gguf_get_int(&g, "none", 0, 1, &n), TG_OK);
    assert_int_equal(n, -7);
    assert_int_equal(tg_gguf_get_int(&g, "count", 12, 12, &n), TG_OK);
    assert_int_equal(n, 12);
    assert_int_equal(tg_gguf_get_float(&g, "f", &x), TG_OK);
    assert_true(x >= 1 && x <= 1);
    assert_int_equal(tg_gguf_get_bool(&g, "on", &b), TG_OK);
    assert_true(b);
    assert_int_equal(tg_gguf_get_string(&g, "name", &s), TG_OK);
    assert_int_equal(s.n_bytes, 5);
    assert_int_equal(tg_gguf_get_int(&g, "count", 13, 99, &n), TG_E_FORMAT);
    assert_int_equal(tg_gguf_get_int(&g, "count", 0, 11, &n), TG_E_FORMAT);
    assert_int_equal(tg_gguf_get_int(&g, "f", 0, 11, &n), TG_E_FORMAT);
    assert_int_equal(tg_gguf_get_int(&g, "on", 0, 11, &n), TG_E_FORMAT);
    assert_int_equal(tg_gguf_get_float(&g, "count", &x), TG_E_FORMAT);
    assert_int_equal(tg_gguf_get_float(&g, "infinite", &x), TG_E_FORMAT);
    assert_int_equal(tg_gguf_get_float(&g, "minus", &x), TG_E_FORMAT);
    assert_int_equal(tg_gguf_get_bool(&g, "count", &b), TG_E_FORMAT);
    assert_int_equal(tg_gguf_get_string(&g, "f", &s), TG_E_FORMAT);
    tg_gguf_close(&g);
}

static void values_that_are_none(void **state) {
    (void)state;
    file f = head(3, 0, 2);
    value(&f, "same", TG_GGUF_U8, 1, 1);
    value(&f, "same", TG_GGUF_U8, 1, 1);
    refused(&f, TG_E_FORMAT, "key same is there twice");
    f = head(3, 0, 1);
    value(&f, "on", TG_GGUF_BOOL, 2, 1);
    refused(&f, TG_E_FORMAT, "want 0 or 1, have 2");
    f = head(3, 0, 1);
    value(&f, "odd", TG_GGUF_TYPE_COUNT, 0, 8);
    refused(&f, TG_E_FORMAT, "want a type of values");
    for (int bad = 0; bad < 3; bad++) {
        f = head(3, 0, 1);
        value(&f, bad == 0 ? "a\nb" : bad == 1 ? "a\x7f" : "", TG_GGUF_U32, 1, 4);
        refused(&f, TG_E_FORMAT, bad < 2 ? "a control" : "want 1..65535 bytes");
    }
    /* Arrays: of arrays, longer than the file, of a size that does not fit 64 bits. */
    static const uint64_t counts[] = { 1, 3, UINT64_MAX / 2 };
    static const uint32_t elements[] = { TG_GGUF_ARRAY, TG_GGUF_U64, TG_GGUF_U32 };
    for (int i = 0; i < 3; i++) {
        f = head(3, 0, 1);
        text(&f, "list");
        u32(&f, TG_GGUF_ARRAY);
        u32(&f, elements[i]);
        u64(&f, counts[i]);
        u64(&f, 0);
        refused(&f, TG_E_FORMAT, i == 0 ? "want a type of elements" : "list: want");
    }
}

static void arrays(void **state) {
    (void)state;
    file f = head(3, 0, 2);
    text(&f, "words");
    u32(&f, TG_GGUF_ARRAY);
    u32(&f, TG_GGUF_STRING);
    u64(&f, 3);
    text(&f, "one");
    text(&f, "");
    text_of(&f, "t\0o", 3);
    text(&f, "numbers");
    u32(&f, TG_GGUF_ARRAY);
    u32(&f, TG_GGUF_U16);
    u64(&f, 2);
    put(&f, "\1\2\3\4", 4);
    tg_gguf g;
    assert_int_equal(open_it(&f, &g), TG_OK);
    const tg_gguf_value *v;
    assert_int_equal(tg_gguf_get_array(&g, "words", TG_GGUF_U16, &v), TG_E_FORMAT);
    assert_int_equal(tg_gguf_get_array(&g, "none", TG_GGUF_U16, &v), TG_OK);
    assert_null(v);
    assert_int_equal(tg_gguf_get_array(&g, "words", TG_GGUF_STRING, &v), TG_OK);
    assert_int_equal(v->count, 3);
    size_t at = 0;
    assert_int_equal(tg_gguf_next_string(v, &at).n_bytes, 3);
    assert_int_equal(tg_gguf_next_string(v, &at).n_bytes, 0);
    assert_memory_equal(tg_gguf_next_string(v, &at).bytes, "t\0o", 3);
    assert_int_equal(tg_gguf_get_array(&g, "numbers", TG_GGUF_U16, &v), TG_OK);
    assert_int_equal(v->elements_bytes, 4);
    assert_memory_equal(v->elements, "\1\2\3\4", 4);
    tg_gguf_close(&g);
}

/* ----------------------------------------------------------------------------------------- tensors
 */

enum { F32 = 0, F16 = 1, Q8_0 = 8 };

static void tensors_where_they_lie(void **state) {
    (void)state;
    file f = head(3, 2, 1);
    value(&f, "general.alignment", TG_GGUF_U32, 64, 4);
    tensor(&f, "b", 2, 3, 32, Q8_0, 64);
    tensor(&f, "a", 1, 1, 5, F32, 0);
    data(&f, 64 + 3 * 34, 64);
    tg_gguf g;
    if (open_it(&f, &g) != TG_OK) fail_msg("%s", ctx.message);
    const tg_gguf_tensor *a = tg_gguf_tensor_find(&g, "a"), *b = tg_gguf_tensor_find(&g, "b");
    assert_null(tg_gguf_tensor_find(&g, "c"));
    assert_int_equal(a->bytes, 20);
    assert_int_equal(b->bytes, 102);
    assert_int_equal(a->offset % 64, 0);
    assert_int_equal(b->offset, a->offset + 64);
    assert_int_equal(b->dim[0], 32);
    assert_int_equal(b->dim[1], 3);
    /* A file that ends within them, at each byte. */
    for (size_t n = 0; n < f.n; n++) {
        file cut = f;
        cut.n = n;
        refused(&cut, TG_E_FORMAT, "made.gguf");
    }
    tg_gguf_close(&g);
}

static void tensors_that_are_none(void **state) {
    (void)state;
    static const struct {
        uint32_t n_dims;
        uint64_t rows, cols;
        uint32_t type;
        uint64_t offset;
        tg_status status;
        const char *words;
    } cases[] = {
        { 0, 1, 4, F32, 0, TG_E_FORMAT, "want 1..4 dimensions" },
        { 5, 1, 4, F32, 0, TG_E_FORMAT, "want 1..4 dimensions" },
        { 2, 0, 4, F32, 0, TG_E_FORMAT, "want sizes above 0" },
        { 2, UINT64_C(1) << 32, UINT64_C(1) << 32, F32, 0, TG_E_FORMAT, "whose product fits" },
        { 2, 4, 40, Q8_0, 0, TG_E_FORMAT, "want rows of whole blocks of 32" },
        { 2, 32, 5, Q8_0, 0, TG_E_FORMAT, "want rows of whole blocks of 32" },
        { 1, 1, 4, 99, 0, TG_E_UNSUPPORTED, "have one that is not known, type 99" },
        { 1, 1, 4, 40, 0, TG_E_UNSUPPORTED, "have NVFP4" },
        { 1, 1, UINT64_C(1) << 62, F32, 0, TG_E_FORMAT, "fits 64 bits" },
        { 1, 1, 4, F32, 4, TG_E_FORMAT, "aligned and apart" },
        { 1, 1, 4, F32, 1024, TG_E_FORMAT, "within the" },
        { 1, 1, 4, F32, UINT64_MAX - 31, TG_E_FORMAT, "within the" },
        { 1, 1, 40, F32, 0, TG_E_FORMAT, "within the" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file f = head(3, 1, 0);
        tensor(&f, "t", cases[i].n_dims, cases[i].rows, cases[i].cols, cases[i].type,
               cases[i].offset);
        data(&f, 128, 32);
        refused(&f, cases[i].status, cases[i].words);
    }
    file f = head(3, 2, 0);
    tensor(&f, "t", 1, 1, 4, F32, 0);
    tensor(&f, "t", 1, 1, 4, F32, 32);
    data(&f, 128, 32);
    refused(&f, TG_E_FORMAT, "tensor t is there twice");
    f = head(3, 2, 0);
    tensor(&f, "t", 1, 1, 16, F32, 0);
    tensor(&f, "u", 1, 1, 4, F32, 32);
    data(&f, 128, 32);
    refused(&f, TG_E_FORMAT, "apart from others");
}

/* Counts beyond what the file could hold; versions that are not known; alignments that are none. */
static void heads_that_are_none(void **state) {
    (void)state;
    for (uint32_t version = 0; version < 6; version++) {
        file f = head(version, 0, 0);
        tg_gguf g;
        if (version != 2 && version != 3) {
            refused(&f, TG_E_UNSUPPORTED, "want 2 or 3");
            continue;
        }
        assert_int_equal(open_it(&f, &g), TG_OK);
        tg_gguf_close(&g);
    }
    file f = head(3, 1, 0);
    refused(&f, TG_E_FORMAT, "number of tensors: want at most 0");
    f = head(3, 0, 2);
    value(&f, "a", TG_GGUF_U8, 1, 1);
    refused(&f, TG_E_FORMAT, "number of values: want at most 1");
    f = head(3, UINT64_MAX, UINT64_MAX);
    refused(&f, TG_E_FORMAT, "which is what fits");
    static const struct {
        uint32_t type;
        uint64_t bits;
    } alignments[] = {
        { TG_GGUF_U32, 0 }, { TG_GGUF_U32, 48 }, { TG_GGUF_U32, 131072 }, { TG_GGUF_U64, 64 }
    };
    for (size_t i = 0; i < 4; i++) {
        f = head(3, 0, 1);
        value(&f, "general.alignment", alignments[i].type, alignments[i].bits,
              alignments[i].type == TG_GGUF_U64 ? 8 : 4);
        refused(&f, TG_E_FORMAT, "general.alignment: want");
    }
}

/* A number, or a bool for each layer: those of one rhythm alone. */
static void windows_of_layers(void **state) {
    (void)state;
    static const struct {
        const char *layers; /* 1: has a window */
        tg_status status;
        int32_t period;
    } rows[] = {
        { "11101110", TG_OK, 4 },
        { "1110111", TG_OK, 4 },
        { "000", TG_OK, 1 },
        { "111", TG_OK, 4 },
        { "101010", TG_OK, 2 },
        { "", TG_OK, 1 },
        { "0111", TG_E_UNSUPPORTED, -1 },
        { "11101111", TG_E_UNSUPPORTED, -1 },
        { "11011", TG_OK, 3 },
        { "1101110", TG_E_UNSUPPORTED, -1 },
    };
    tg_ctx own = { .mem = tg_mem_default() };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t bools[16];
        const size_t n = strlen(rows[i].layers);
        for (size_t k = 0; k < n; k++) bools[k] = rows[i].layers[k] == '1';
        tg_gguf_value v = { .key = "k",
                            .type = TG_GGUF_ARRAY,
                            .element = TG_GGUF_BOOL,
                            .count = n,
                            .elements = bools,
                            .elements_bytes = n };
        tg_gguf g = { .ctx = &own, .path = "made.gguf" };
        tg_arena_init(&g.arena, &own.mem);
        int32_t period = -1;
        assert_int_equal(tg_gguf_set_tables(&g, &v, 1, NULL, 0), TG_OK);
        assert_int_equal(tg_gguf_get_period(&g, "k", n, &period), rows[i].status);
        assert_int_equal(period, rows[i].period);
        assert_int_equal(tg_gguf_get_period(&g, "none", n, &period), TG_OK);
        assert_int_equal(tg_gguf_get_period(&g, "k", n + 1, &period), TG_E_FORMAT);
        v.element = TG_GGUF_U32;
        assert_int_equal(tg_gguf_get_period(&g, "k", n, &period), TG_E_FORMAT);
        tg_arena_deinit(&g.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(what_is_asked_for),
        cmocka_unit_test(values_that_are_none),
        cmocka_unit_test(arrays),
        cmocka_unit_test(windows_of_layers),
        cmocka_unit_test(tensors_where_they_lie),
        cmocka_unit_test(tensors_that_are_none),
        cmocka_unit_test(heads_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
