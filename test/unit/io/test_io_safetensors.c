/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io_safetensors.c - .safetensors files: those of this test's own making, byte by byte, those
 * that transformers wrote (test/golden/transformers), and those that nobody should have written.
 */
#include "inspect/inspect.h"

#include "io_folder.h"

#include "dtype/dtype.h"
#include "fail_alloc.h"
#include "io/safetensors/safetensors.h"

/* ---------------------------------------------------------------------------- files of our making
 */

/* A file while it grows: members of the header, and the data behind it. */
typedef struct maker {
    tg_buf header;
    file_bytes data;
} maker;

static maker make(const char *first_member) {
    maker m = { .data = { NULL, 0 } };
    const tg_mem mem = tg_mem_default();
    tg_buf_init(&m.header, &mem);
    tg_buf_printf(&m.header, "{%s", first_member);
    return m;
}

static void add_bytes(maker *m, const char *name, const char *dtype, const char *shape,
                      const void *data, size_t n) {
    const size_t begin = m->data.n;
    if (n) bytes_append(&m->data, data, n);
    tg_buf_printf(&m->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                  m->header.length > 1 ? "," : "", name, dtype, shape, begin, m->data.n);
}

/* Whole files have their length in front; the maker is done then. */
static file_bytes finish(maker *m) {
    uint8_t length[8];
    tg_buf_puts(&m->header, "}");
    tg_put_u64(length, m->header.length);
    file_bytes b = bytes_of(length, 8);
    bytes_append(&b, m->header.data, m->header.length);
    if (m->data.n) bytes_append(&b, m->data.data, m->data.n);
    tg_buf_deinit(&m->header);
    bytes_free(&m->data);
    return b;
}

/* Values that f16 and bf16 hold exactly, by tensor of the manifest and element. */
static float value(size_t tensor, uint64_t e) {
    return (float)((int)((tensor * 37 + e * 11) % 255) - 127) / 64;
}

static void add_values(maker *m, const char *name, const char *dtype, const char *shape,
                       const float *x, size_t n) {
    uint16_t half[512];
    assert_true(n <= 512);
    if (strcmp(dtype, "F16") == 0) tg_f16_from_f32_n(half, x, n);
    for (size_t i = 0; i < n && strcmp(dtype, "BF16") == 0; i++)
        half[i] = (uint16_t)(tg_bits_from_float(x[i]) >> 16);
    const bool wide = strcmp(dtype, "F32") == 0;
    add_bytes(m, name, dtype, shape, wide ? (const void *)x : half, n * (wide ? 4 : 2));
}

/* A tensor of so many rows that holds n_parts of ours side by side; cols 0: a vector. */
static void add_tensor(maker *m, const char *prefix, const char *name, const char *dtype,
                       size_t first, size_t n_parts, size_t rows, size_t cols) {
    float x[512];
    size_t n = 0;
    char full[96], shape[32];
    const size_t part = cols ? cols : rows;
    for (size_t r = 0; r < (cols ? rows : 1); r++)
        for (size_t p = 0; p < n_parts; p++)
            for (size_t c = 0; c < part; c++) x[n++] = value(first + 2 * p, r * part + c);
    snprintf(full, sizeof full, "%s%s", prefix, name);
    if (cols)
        snprintf(shape, sizeof shape, "[%zu,%zu]", rows, cols * n_parts);
    else
        snprintf(shape, sizeof shape, "[%zu]", rows * n_parts);
    add_values(m, full, dtype, shape, x, n);
}

/* One layer, width 2, one head, ctx 3: all its tensors, last ones first. */
#define CONFIG_OWN "{\"layers\":1,\"dModel\":2,\"ctx\":3,\"heads\":1}"
static void add_model(maker *m, const char *prefix, const char *dtype) {
    add_tensor(m, prefix, "wte.weight", dtype, 0, 1, 256, 2);
    add_tensor(m, prefix, "h.0.mlp.c_proj.bias", dtype, 19, 1, 2, 0);
    add_tensor(m, prefix, "h.0.mlp.c_proj.weight", dtype, 18, 1, 8, 2);
    add_tensor(m, prefix, "h.0.mlp.c_fc.bias", dtype, 17, 1, 8, 0);
    add_tensor(m, prefix, "h.0.mlp.c_fc.weight", dtype, 16, 1, 2, 8);
    add_tensor(m, prefix, "h.0.ln_2.bias", dtype, 15, 1, 2, 0);
    add_tensor(m, prefix, "h.0.ln_2.weight", dtype, 14, 1, 2, 0);
    add_tensor(m, prefix, "h.0.attn.c_proj.bias", dtype, 13, 1, 2, 0);
    add_tensor(m, prefix, "h.0.attn.c_proj.weight", dtype, 12, 1, 2, 2);
    add_tensor(m, prefix, "h.0.attn.c_attn.bias", dtype, 7, 3, 2, 0);
    add_tensor(m, prefix, "h.0.attn.c_attn.weight", dtype, 6, 3, 2, 2);
    add_tensor(m, prefix, "h.0.ln_1.bias", dtype, 5, 1, 2, 0);
    add_tensor(m, prefix, "h.0.ln_1.weight", dtype, 4, 1, 2, 0);
    add_tensor(m, prefix, "ln_f.bias", dtype, 3, 1, 2, 0);
    add_tensor(m, prefix, "ln_f.weight", dtype, 2, 1, 2, 0);
    add_tensor(m, prefix, "wpe.weight", dtype, 1, 1, 3, 2);
}

#define OWN_METADATA                                                                               \
    "\"__metadata__\":{\"format\":\"pt\",\"tinygpt\":\"{\\\"family\\\":\\\"tinygpt\\\","           \
    "\\\"step\\\":7,\\\"config\\\":{\\\"layers\\\":1,\\\"dModel\\\":2,\\\"ctx\\\":3,"              \
    "\\\"heads\\\":1}}\"}"
static file_bytes good_file(void) {
    maker m = make(OWN_METADATA);
    add_model(&m, "", "F32");
    return finish(&m);
}

/* All numbers of an open file are those of value(). */
static void check_values(tg_file *f) {
    for (size_t i = 0; i < f->n_tensors; i++) {
        const tg_file_tensor *t = &f->tensor[i];
        for (uint64_t first = 0; first < t->elems; first++) { /* every piece of up to 5 elements */
            const size_t n = t->elems - first < 5 ? (size_t)(t->elems - first) : 5;
            float x[5];
            assert_int_equal(tg_file_read_f32(f, t, x, first, n), TG_OK);
            for (size_t k = 0; k < n; k++)
                if (x[k] != value(i, first + k))
                    fail_msg("%s element %d: want %g, have %g", t->name, (int)(first + k),
                             (double)value(i, first + k), (double)x[k]);
        }
    }
}

/* ----------------------------------------------------------------------------------------- reading
 */

static void reads_every_type(void **state) {
    (void)state;
    static const char *const dtypes[] = { "F32", "F16", "BF16" };
    static const tg_file_dtype types[] = { TG_FILE_F32, TG_FILE_F16, TG_FILE_BF16 };
    for (size_t i = 0; i < 3; i++) {
        maker m = make(OWN_METADATA);
        add_model(&m, i == 1 ? "transformer." : "", dtypes[i]);
        file_bytes b = finish(&m);
        tg_ctx ctx;
        tg_file *f;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        if (tg_file_open_memory(&ctx, "m", b.data, b.n, &f) != TG_OK) fail_msg("%s", ctx.message);
        assert_string_equal(f->format, "safetensors");
        assert_int_equal(f->dtype, types[i]);
        assert_int_equal(f->step, 7);
        assert_int_equal(f->config.ctx, 3);
        assert_false(f->has_moments || f->checksummed);
        assert_string_equal(tg_file_find(f, "blocks.0.attn.k_proj.bias")->stored_as,
                            i == 1 ? "transformer.h.0.attn.c_attn.bias" : "h.0.attn.c_attn.bias");
        check_values(f);
        assert_int_equal(tg_file_check_all(f), TG_OK);
        tg_file_close(f);
        bytes_free(&b);
    }
}

/* What stands in files of other programs besides weights: masks, and the head once more. */
static file_bytes with_extras(bool same_head) {
    maker m = make(OWN_METADATA);
    const uint8_t mask[9] = { 1, 0, 0, 1, 1, 0, 1, 1, 1 };
    float head[512];
    for (size_t e = 0; e < 512; e++) head[e] = value(0, e);
    if (!same_head) head[511] += 0.25f;
    add_bytes(&m, "transformer.h.0.attn.bias", "BOOL", "[1,1,3,3]", mask, 9);
    add_bytes(&m, "transformer.h.0.attn.masked_bias", "F32", "[]", "\0\0\200\307", 4);
    add_model(&m, "transformer.", "F32");
    add_values(&m, "lm_head.weight", "BF16", "[256,2]", head, 512);
    return finish(&m);
}

static void steps_over_extras(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_file *f;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    file_bytes b = with_extras(true);
    if (tg_file_open_memory(&ctx, "m", b.data, b.n, &f) != TG_OK) fail_msg("%s", ctx.message);
    check_values(f);
    tg_file_close(f);
    bytes_free(&b);
    b = with_extras(false);
    assert_int_equal(tg_file_open_memory(&ctx, "m", b.data, b.n, &f), TG_E_UNSUPPORTED);
    assert_non_null(strstr(ctx.message, "lm_head.weight: want transformer.wte.weight once more"));
    bytes_free(&b);
}

/* ---------------------------------------------------------------------------------------- writing
 */

static char st[160], back[160];

/* The drawing of safetensors.h, read by this test alone. */
static void writes_what_is_drawn(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_arena arena;
    const tg_json *root, *own;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_arena_init(&arena, &ctx.mem);
    const tg_model_config config = config_of(2, 6, 3, 5);
    assert_int_equal(model_save_v3(&ctx, path, &config, true, false), TG_OK);
    assert_int_equal(tg_io_convert(&ctx, path, st, TG_FILE_SAFETENSORS), TG_OK);
    file_bytes b = bytes_read(st);
    const size_t n = (size_t)tg_get_u64(b.data), data = 8 + n;
    assert_int_equal(data % 8, 0);
    assert_int_equal(
        tg_json_parse(&ctx, &arena, "header", (const char *)b.data + 8, n, NULL, &root), TG_OK);
    assert_int_equal(root->count, 1 + 4 + 2 * 12);
    const tg_json *metadata = tg_json_get(root, "__metadata__");
    assert_true(tg_json_is(tg_json_get(metadata, "format"), "pt"));
    own = tg_json_get(metadata, "tinygpt");
    assert_int_equal(tg_json_parse(&ctx, &arena, "own", own->u.text, own->length, NULL, &own), 0);
    assert_true(tg_json_is(tg_json_get(own, "family"), "tinygpt"));
    assert_int_equal(tg_json_get(own, "lossHistory")->count, 3);

    static const struct {
        const char *name;
        size_t tensor, n_parts, rows, cols; /* of a part */
    } wanted[] = {
        { "wte.weight", 0, 1, 256, 6 },
        { "wpe.weight", 1, 1, 5, 6 },
        { "ln_f.bias", 3, 1, 1, 6 },
        { "h.0.attn.c_attn.weight", 6, 3, 6, 6 },
        { "h.1.attn.c_attn.weight", 22, 3, 6, 6 },
        { "h.1.attn.c_attn.bias", 23, 3, 1, 6 },
        { "h.1.mlp.c_fc.weight", 32, 1, 6, 24 },
        { "h.1.mlp.c_proj.weight", 34, 1, 24, 6 },
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const tg_json *t = tg_json_get(root, wanted[i].name), *offset;
        uint64_t begin;
        assert_non_null(t);
        assert_true(tg_json_is(tg_json_get(t, "dtype"), "F32"));
        offset = tg_json_first(tg_json_get(t, "data_offsets"));
        assert_int_equal(tg_json_uint64(&ctx, offset, &begin), TG_OK);
        const uint8_t *at = b.data + data + begin;
        for (size_t r = 0; r < wanted[i].rows; r++)
            for (size_t p = 0; p < wanted[i].n_parts; p++)
                for (size_t c = 0; c < wanted[i].cols; c++, at += 4) {
                    const float want = model_value(wanted[i].tensor + 2 * p, TG_PART_WEIGHT,
                                                   r * wanted[i].cols + c);
                    assert_memory_equal(at, &want, 4);
                }
    }
    bytes_free(&b);
    tg_arena_deinit(&arena);
}

static void survives_there_and_back(void **state) {
    (void)state;
    tg_ctx ctx;
    bool equal;
    tg_buf text;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_buf_init(&text, &ctx.mem);
    const tg_model_config configs[] = { tiny(), large(), config_of(3, 20, 5, 7) };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(model_save_v3(&ctx, path, &configs[i], false, false), TG_OK);
        assert_int_equal(tg_io_convert(&ctx, path, st, TG_FILE_SAFETENSORS), TG_OK);
        assert_int_equal(check_file(&ctx, st), TG_OK);
        assert_int_equal(tg_io_compare(&ctx, path, st, &equal, keep_text, &text), TG_OK);
        if (!equal) fail_msg("%s", tg_buf_text(&text));
        assert_int_equal(tg_io_convert(&ctx, st, back, TG_FILE_V3), TG_OK);
        file_bytes a = bytes_read(path), b = bytes_read(back);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.data, b.data, a.n);
        bytes_free(&a);
        bytes_free(&b);
    }
    tg_buf_clear(&text);
    assert_int_equal(tg_inspect_file_info(&ctx, st, false, keep_text, &text), TG_OK);
    assert_non_null(strstr(tg_buf_text(&text), "h.2.attn.c_attn.weight"));
    tg_buf_clear(&text);
    assert_int_equal(tg_inspect_file_info(&ctx, st, true, keep_text, &text), TG_OK);
    assert_non_null(strstr(tg_buf_text(&text), "\"stored_as\":\"h.2.attn.c_attn.weight\""));
    tg_buf_deinit(&text);
}

/* ------------------------------------------------------------------------------------- config.json
 */

static char config_file[160];

static void write_config(const char *text) {
    file_bytes b = bytes_of(text, strlen(text));
    bytes_write(config_file, b);
    bytes_free(&b);
}

#define SIZES                                                                                      \
    "\"vocab_size\":256,\"n_positions\":3,\"n_embd\":2,\"n_layer\":1,\"n_head\":1,"                \
    "\"activation_function\":\"gelu\""

static void needs_a_configuration(void **state) {
    (void)state;
    static const struct {
        const char *json;
        tg_status want;
        const char *says;
    } cases[] = {
        { "{\"model_type\":\"gpt2\"," SIZES "}", TG_OK, "" },
        { "{\"model_type\":\"gpt2\"," SIZES ",\"n_inner\":null,\"layer_norm_epsilon\":1e-05,"
          "\"task_specific_params\":[{}]}",
          TG_OK, "" },
        { "{\"model_type\":\"gpt2\"," SIZES ",\"something\":[{}]}", TG_E_UNSUPPORTED,
          "something: want keys that are known" },
        { "{\"model_type\":\"gpt2\"," SIZES ",\"tie_word_embeddings\":false}", TG_E_UNSUPPORTED,
          "tie_word_embeddings: want true, have false" },
        { "{\"model_type\":\"gpt2\"," SIZES ",\"n_inner\":8}", TG_OK, "" },
        { "{\"model_type\":\"gpt2\"," SIZES ",\"n_inner\":9}", TG_E_RANGE, "mlp" },
        { "{\"model_type\":\"llama\"," SIZES "}", TG_E_UNSUPPORTED, "model_type" },
        { "{" SIZES "}", TG_E_UNSUPPORTED, "model_type: want \"gpt2\", have none" },
        { "{\"model_type\":\"gpt2\",\"vocab_size\":50257,\"n_positions\":1024,\"n_embd\":768,"
          "\"n_layer\":12,\"n_head\":12,\"activation_function\":\"gelu_new\"}",
          TG_E_UNSUPPORTED, "vocabulary: want 256 (bytes), have 50257" },
        { "{\"model_type\":\"gpt2\",\"vocab_size\":256,\"n_positions\":3,\"n_embd\":2,"
          "\"n_layer\":1,\"n_head\":1,\"activation_function\":\"gelu_new\"}",
          TG_E_UNSUPPORTED, "activation_function: want \"gelu\" (by erf), have gelu_new" },
        { "{\"model_type\":\"gpt2\"," SIZES ",\"layer_norm_epsilon\":1e-6}", TG_E_UNSUPPORTED,
          "layer_norm_epsilon" },
        { "{\"model_type\":\"gpt2\"," SIZES ",\"scale_attn_weights\":false}", TG_E_UNSUPPORTED,
          "scale_attn_weights: want true, have false" },
        { "{\"model_type\":\"gpt2\"," SIZES ",\"add_cross_attention\":true}", TG_E_UNSUPPORTED,
          "add_cross_attention" },
        { "{\"model_type\":\"gpt2\"," SIZES ",\"n_head\":1}", TG_E_FORMAT, "n_head" }, /* twice */
        { "{\"model_type\":\"gpt2\",\"vocab_size\":256,\"n_positions\":3,\"n_embd\":2}", TG_E_RANGE,
          "n_layer" },
        { "{\"model_type\":\"gpt2\",\"vocab_size\":-256}", TG_E_RANGE, "vocab_size" },
        { "[]", TG_E_FORMAT, "JSON object" },
        { "", TG_E_FORMAT, "byte 0" },
        { "<html>", TG_E_FORMAT, "byte 0" },
    };
    tg_ctx ctx;
    tg_file *f;
    maker m = make("");
    add_model(&m, "transformer.", "F32");
    file_bytes b = finish(&m);
    bytes_write(st, b);
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(tg_file_open(&ctx, st, &f), TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "config.json in the same folder, have neither"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_config(cases[i].json);
        tg_ctx_clear(&ctx);
        const tg_status status = tg_file_open(&ctx, st, &f);
        if (status != cases[i].want || !strstr(ctx.message, cases[i].says))
            fail_msg("%s: status %d: %s", cases[i].json, (int)status, ctx.message);
        if (status != TG_OK) {
            assert_non_null(strstr(ctx.message, "config.json"));
            continue;
        }
        assert_int_equal(f->step, 0);
        check_values(f);
        tg_file_close(f);
    }
    /* Bytes in memory lie in no folder. */
    write_config(cases[0].json);
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_file_open_memory(&ctx, st, b.data, b.n, &f), TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "have neither"));
    bytes_free(&b);
    assert_int_equal(unlink(config_file), 0);
}

/* What is written can be read, and says what was meant. */
static void config_of_our_own(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_arena arena;
    tg_buf text;
    const tg_json *root;
    tg_model_config want = config_of(12, 256, 8, 256), have;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_buf_init(&text, &ctx.mem);
    tg_arena_init(&arena, &ctx.mem);
    assert_int_equal(tg_io_transformers_config(&ctx, &want, keep_text, &text), TG_OK);
    assert_int_equal(tg_json_parse(&ctx, &arena, "c", text.data, text.length, NULL, &root), TG_OK);
    assert_int_equal(tg_gpt2_get_config(&ctx, "c", root, &have), TG_OK);
    assert_memory_equal(&want, &have, sizeof want);
    want.heads = 7;
    assert_int_equal(tg_io_transformers_config(&ctx, &want, keep_text, &text), TG_E_RANGE);
    tg_buf_deinit(&text);
    tg_arena_deinit(&arena);
}

/* ------------------------------------------------------------------------------------- hostile
 * files
 */

static tg_status open_bytes(file_bytes b, char message[TG_MESSAGE_BYTES]) {
    test_alloc a = { 0 };
    const tg_mem mem = test_alloc_mem(&a);
    tg_ctx ctx;
    tg_file *f;
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    uint8_t *exact = malloc(b.n ? b.n : 1); /* no room behind it: a sanitizer sees a step too far */
    if (b.n) memcpy(exact, b.data, b.n);
    const tg_status status = tg_file_open_memory(&ctx, "bad.safetensors", exact, b.n, &f);
    assert_true((status == TG_OK) == (f != NULL));
    assert_true((status == TG_OK) == (ctx.message[0] == 0));
    tg_file_close(f);
    free(exact);
    assert_int_equal(a.live_pieces, 0);
    assert_true(a.peak_bytes < 2 * b.n + (64u << 20));
    memcpy(message, ctx.message, TG_MESSAGE_BYTES);
    return status;
}

/* A file with this header, and a length of its own if it is not that of the header. */
static file_bytes raw(const char *header, uint64_t length, size_t n_data) {
    uint8_t number[8];
    tg_put_u64(number, length != UINT64_MAX ? length : strlen(header));
    file_bytes b = bytes_of(number, 8);
    bytes_append(&b, header, strlen(header));
    uint8_t *zeros = calloc(1, n_data + 1);
    bytes_append(&b, zeros, n_data);
    free(zeros);
    return b;
}

#define ENTRY(name, dtype, shape, offsets)                                                         \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define DEEP "{\"a\":[[[[[1]]]]]}"

static void refuses_bad_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        uint64_t length; /* UINT64_MAX: what it is */
        size_t n_data;
        tg_status want;
        const char *says;
    } cases[] = {
        { "{}", UINT64_MAX, 0, TG_E_FORMAT, "have neither" },
        { "{}     ", UINT64_MAX, 0, TG_E_FORMAT, "have neither" }, /* spaces are fine */
        { "{}", 3, 0, TG_E_FORMAT, "header: want 3 bytes, have 2" },
        { "{}", 1, 0, TG_E_FORMAT, "header" },
        { "{}", 0, 0, TG_E_FORMAT, "header" },
        { "{}", UINT64_C(100000001), 0, TG_E_FORMAT, "want at most 100000000, have 100000001" },
        { "{}", UINT64_C(0xffffffffff), 0, TG_E_FORMAT, "header length" },
        { "{}", UINT64_MAX - 1, 0, TG_E_FORMAT, "magic" },
        { "[]", UINT64_MAX, 0, TG_E_FORMAT, "magic" },
        { " {}", UINT64_MAX, 0, TG_E_FORMAT, "magic" },
        { "{} x", UINT64_MAX, 0, TG_E_FORMAT, "header: byte 3" },
        { "{\"a\":1,\"a\":2}", UINT64_MAX, 0, TG_E_FORMAT, "header: byte" },
        { "{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("a", "F32", "[1]", "[4,8]") "}",
          UINT64_MAX, 8, TG_E_FORMAT, "\"a\"" },
        { DEEP, UINT64_MAX, 0, TG_E_FORMAT, "header: byte" },
        { "{\"a\":\"\\ud800\"}", UINT64_MAX, 0, TG_E_FORMAT, "header: byte" },
        { "{\"a\\u0000b\":{}}", UINT64_MAX, 0, TG_E_FORMAT, "zero byte" },
        { "{\"a\":7}", UINT64_MAX, 0, TG_E_FORMAT, "a: entry: want an object, have 7" },
        { "{\"a\":{}}", UINT64_MAX, 0, TG_E_UNSUPPORTED, "a: dtype: want F32" },
        { "{" ENTRY("a", "F31", "[1]", "[0,4]") "}", UINT64_MAX, 4, TG_E_UNSUPPORTED,
          "a: dtype: want F32, F16, BF16 or another known one, have F31" },
        { "{\"a\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}}", UINT64_MAX, 4,
          TG_E_UNSUPPORTED, "dtype" },
        { "{" ENTRY("a", "F32", "1", "[0,4]") "}", UINT64_MAX, 4, TG_E_FORMAT, "shape" },
        { "{" ENTRY("a", "F32", "[-1]", "[0,4]") "}", UINT64_MAX, 4, TG_E_FORMAT, "have -1" },
        { "{" ENTRY("a", "F32", "[1.0]", "[0,4]") "}", UINT64_MAX, 4, TG_E_FORMAT, "shape" },
        { "{" ENTRY("a", "F32", "[4294967296,4294967296]", "[0,4]") "}", UINT64_MAX, 4, TG_E_FORMAT,
          "product" },
        { "{" ENTRY("a", "F32", "[4611686018427387905]", "[0,4]") "}", UINT64_MAX, 4, TG_E_FORMAT,
          "bytes of F32, have 4" },
        { "{" ENTRY("a", "F32", "[1]", "[0]") "}", UINT64_MAX, 4, TG_E_FORMAT, "data_offsets" },
        { "{" ENTRY("a", "F32", "[2]", "[0,12]") "}", UINT64_MAX, 12, TG_E_FORMAT,
          "want 8 bytes of F32, have 12" },
        { "{" ENTRY("a", "F32", "[1]", "[0,4,8]") "}", UINT64_MAX, 4, TG_E_FORMAT, "data_offsets" },
        { "{" ENTRY("a", "F32", "[1]", "[4,0]") "}", UINT64_MAX, 4, TG_E_FORMAT, "not above" },
        { "{" ENTRY("a", "F32", "[1]", "[0,-4]") "}", UINT64_MAX, 4, TG_E_FORMAT, "data_offsets" },
        { "{" ENTRY("a", "F32", "[1]", "[0,4]") "}", UINT64_MAX, 3, TG_E_FORMAT,
          "within the 3 bytes of data, have 4" },
        { "{" ENTRY("a", "F32", "[1]", "[18446744073709551612,18446744073709551615]") "}",
          UINT64_MAX, 4, TG_E_FORMAT, "data_offsets" },
        { "{" ENTRY("a", "F32", "[2]", "[0,4]") "}", UINT64_MAX, 4, TG_E_FORMAT,
          "want 8 bytes of F32, have 4" },
        { "{" ENTRY("a", "F32", "[1]", "[0,4]") "}", UINT64_MAX, 5, TG_E_FORMAT,
          "data: want 4 bytes, the tensors of the header, have 5" },
        { "{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("b", "F32", "[1]", "[2,6]") "}",
          UINT64_MAX, 6, TG_E_FORMAT, "b: data_offsets: want a begin at 4" },
        { "{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("b", "F32", "[1]", "[0,4]") "}",
          UINT64_MAX, 4, TG_E_FORMAT, "want a begin at 4" },
        { "{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("b", "F32", "[1]", "[5,9]") "}",
          UINT64_MAX, 9, TG_E_FORMAT, "b: data_offsets: want a begin at 4" },
        { "{" ENTRY("b", "F32", "[1]", "[4,8]") "," ENTRY("a", "I64", "[0]", "[4,4]") "," ENTRY(
              "c", "U8", "[2,2]", "[0,4]") "}",
          UINT64_MAX, 8, TG_E_FORMAT, "have neither" }, /* any order, and no bytes: fine so far */
        { "{\"__metadata__\":[]}", UINT64_MAX, 0, TG_E_FORMAT, "__metadata__: entry" },
        { "{\"__metadata__\":{\"a\":1}}", UINT64_MAX, 0, TG_E_FORMAT,
          "__metadata__: a: want a string, have 1" },
        { "{\"__metadata__\":{\"tinygpt\":\"\"}}", UINT64_MAX, 0, TG_E_FORMAT, "header: byte 0" },
        { "{\"__metadata__\":{\"tinygpt\":\"{\\\"family\\\":\\\"llama\\\",\\\"step\\\":0,\\\"config\\\":{\\\"layers\\\":1,"
          "\\\"dModel\\\":1,\\\"ctx\\\":1,\\\"heads\\\":1}}\"}}",
          UINT64_MAX, 0, TG_E_UNSUPPORTED, "family" },
        { "{" OWN_METADATA "}", UINT64_MAX, 0, TG_E_FORMAT, "wte.weight is missing" },
        { "{" OWN_METADATA "," ENTRY("wte.weight", "F32", "[256,3]", "[0,3072]") "}", UINT64_MAX,
          3072, TG_E_FORMAT, "wte.weight: want [256,2], have [256,3]" },
        { "{" OWN_METADATA "," ENTRY("wte.weight", "I32", "[256,2]", "[0,2048]") "}", UINT64_MAX,
          2048, TG_E_FORMAT, "wte.weight: want F32, F16 or BF16, have I32" },
        { "{" OWN_METADATA "," ENTRY("wpe.weight", "F32", "[3,2,1,1,1]", "[0,24]") "}", UINT64_MAX,
          24, TG_E_FORMAT, "wpe.weight: want [3,2], have [3,2,1,1]" },
        { "{" OWN_METADATA "," ENTRY("h.1.ln_1.bias", "F32", "[2]", "[0,8]") "}", UINT64_MAX, 8,
          TG_E_FORMAT, "h.1.ln_1.bias is not wanted" },
        { "{" OWN_METADATA "," ENTRY("h.00.ln_1.bias", "F32", "[2]", "[0,8]") "}", UINT64_MAX, 8,
          TG_E_FORMAT, "h.00.ln_1.bias is not wanted" },
        { "{" OWN_METADATA "," ENTRY("ln_f.bias", "F32", "[2]", "[0,8]") "," ENTRY(
              "transformer.ln_f.bias", "F32", "[2]", "[8,16]") "}",
          UINT64_MAX, 16, TG_E_FORMAT, "ln_f.bias and transformer.ln_f.bias are the same tensor" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char message[TG_MESSAGE_BYTES];
        file_bytes b = raw(cases[i].header, cases[i].length, cases[i].n_data);
        const tg_status status = open_bytes(b, message);
        if (status != cases[i].want || !strstr(message, cases[i].says))
            fail_msg("case %zu, %.80s: status %d: %s", i, cases[i].header, (int)status, message);
        bytes_free(&b);
    }
}

/* Cut anywhere, it is an error that says where. */
static void refuses_a_file_cut_anywhere(void **state) {
    (void)state;
    char message[TG_MESSAGE_BYTES];
    file_bytes b = good_file();
    assert_int_equal(open_bytes(b, message), TG_OK);
    for (size_t n = 0; n < b.n; n++) {
        assert_int_equal(open_bytes((file_bytes) { b.data, n }, message), TG_E_FORMAT);
        assert_non_null(strstr(message, "bad.safetensors: "));
    }
    bytes_append(&b, "", 1);
    assert_int_equal(open_bytes(b, message), TG_E_FORMAT);
    assert_non_null(strstr(message, "data: want"));
    bytes_free(&b);
}

/* A changed byte of the header is an error or another legal file; it is never more than that. */
static void survives_a_changed_byte(void **state) {
    (void)state;
    char message[TG_MESSAGE_BYTES];
    file_bytes b = good_file();
    size_t n_opened = 0;
    const size_t end = 8 + (size_t)tg_get_u64(b.data);
    for (size_t i = 0; i < end; i++) {
        static const uint8_t changes[] = { 0x01, 0x10, 0x80, 0xff };
        for (size_t k = 0; k < sizeof changes; k++) {
            b.data[i] ^= changes[k];
            n_opened += open_bytes(b, message) == TG_OK;
            b.data[i] ^= changes[k];
        }
    }
    assert_in_range(n_opened, 1, end); /* such as another digit of the step */
    bytes_free(&b);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    tg_ctx clean;
    tg_ctx_init(&clean, NULL, NULL, NULL);
    maker m = make("");
    add_model(&m, "transformer.", "F32");
    file_bytes b = finish(&m);
    bytes_write(st, b);
    bytes_free(&b);
    write_config("{\"model_type\":\"gpt2\"," SIZES "}");
    for (int foreign = 0; foreign < 2; foreign++) {
        const tg_model_config config = tiny();
        assert_int_equal(model_save_v3(&clean, path, &config, true, false), TG_OK);
        bool done = false;
        for (size_t i = 1; !done; i++) {
            test_alloc a = { .fail_at = i };
            const tg_mem mem = test_alloc_mem(&a);
            tg_ctx ctx;
            tg_ctx_init(&ctx, &mem, NULL, NULL);
            const tg_status status = tg_io_convert(&ctx, foreign ? st : path, back,
                                                   foreign ? TG_FILE_V3 : TG_FILE_SAFETENSORS);
            done = a.requests < i;
            if (status != (done ? TG_OK : TG_E_MEMORY))
                fail_msg("request %zu: status %d: %s", i, (int)status, ctx.message);
            assert_int_equal(a.live_pieces, 0);
            assert_int_equal(access(back, F_OK), done ? 0 : -1);
            assert_true(i < 10000);
        }
        assert_int_equal(unlink(back), 0);
    }
    assert_int_equal(unlink(config_file), 0);
}

static int setup_paths(void **state) {
    const int failed = setup(state);
    snprintf(st, sizeof st, "%s/model.safetensors", folder);
    snprintf(back, sizeof back, "%s/back.tinygpt", folder);
    snprintf(config_file, sizeof config_file, "%s/config.json", folder);
    return failed;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(reads_every_type, clear_folder),
        cmocka_unit_test_teardown(steps_over_extras, clear_folder),
        cmocka_unit_test_teardown(writes_what_is_drawn, clear_folder),
        cmocka_unit_test_teardown(survives_there_and_back, clear_folder),
        cmocka_unit_test_teardown(needs_a_configuration, clear_folder),
        cmocka_unit_test_teardown(config_of_our_own, clear_folder),
        cmocka_unit_test_teardown(refuses_bad_headers, clear_folder),
        cmocka_unit_test_teardown(refuses_a_file_cut_anywhere, clear_folder),
        cmocka_unit_test_teardown(survives_a_changed_byte, clear_folder),
        cmocka_unit_test_teardown(survives_failing_allocations, clear_folder),
    };
    return cmocka_run_group_tests(tests, setup_paths, teardown);
}
