/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_transformers.c - our model and the one that transformers made of it are one model.
 *
 * test/golden/transformers holds a GPT2LMHeadModel as save_pretrained wrote it, after it had been
 * opened from what `tinygpt convert` wrote, and its logits (tools/oracle/transformers_gpt2.py). The
 * model behind both is the sharp one of seed 42, so it can be made again here.
 */
#include "sharp_util.h"
#include "text_util.h"

#include "base/math.h"
#include "io/safetensors/safetensors.h"

#define FOLDER "test/golden/transformers/"
enum { T = 8, V = 256 };
static const tg_model_config config = { 2, 8, 2, T, V, 32 };

static tg_model *sharp_model(tg_context *ctx) {
    tg_model *m;
    OK(ctx, tg_model_new(ctx, &config, 42, &m));
    sharpen(m);
    return m;
}

/* What it wrote is opened by its own config.json, and has our weights bit for bit. */
static void same_weights(void **state) {
    (void)state;
    tg_context *ctx = open_context(2, NULL, NULL);
    tg_model *own = sharp_model(ctx), *theirs;
    tg_model_info info;
    OK(ctx, tg_model_open(ctx, FOLDER "model.safetensors", &theirs));
    OK(ctx, tg_model_get_info(theirs, &info));
    assert_string_equal(info.format, "safetensors");
    assert_string_equal(info.dtype, "f32");
    assert_memory_equal(&info.config, &own->layout.config, sizeof info.config);
    assert_memory_equal(own->weights, theirs->weights, own->layout.n_elems * sizeof(float));
    tg_model_free(theirs);
    tg_model_free(own);
    tg_context_free(ctx);
}

static void same_logits(void **state) {
    (void)state;
    size_t n;
    double *want = read_golden(FOLDER "logits.txt", &n);
    assert_int_equal(n, T * V);
    tg_context *ctx = open_context(2, NULL, NULL);
    tg_model *m;
    tg_session *s;
    int32_t tokens[T];
    read_tokens(ctx, 0, tokens, T);
    OK(ctx, tg_model_open(ctx, FOLDER "model.safetensors", &m));
    OK(ctx, tg_session_new(ctx, m, 0, &s));
    for (int t = 0; t < T; t++) {
        const float *logits;
        OK(ctx, tg_session_eval(s, &tokens[t], 1, &logits));
        for (int v = 0; v < V; v++)
            if (!(tg_fabs((double)logits[v] - want[t * V + v]) < 1e-5))
                fail_msg("position %d logit %d: want %.9g, have %.9g", t, v, want[t * V + v],
                         (double)logits[v]);
    }
    tg_session_free(s);
    tg_model_free(m);
    tg_context_free(ctx);
    free(want);
}

/* ------------------------------------------------------------------------- tensor by tensor, raw
 */

typedef struct raw_file {
    tg_buf bytes;
    const tg_json *header;
    const char *data;
} raw_file;

static raw_file read_raw(tg_ctx *ctx, tg_arena *arena, const char *path) {
    raw_file r;
    tg_buf_init(&r.bytes, &ctx->mem);
    assert_int_equal(tg_os_read_all(ctx, path, 1 << 20, &r.bytes), TG_OK);
    const size_t n = (size_t)tg_get_u64((const uint8_t *)r.bytes.data);
    assert_int_equal(tg_json_parse(ctx, arena, path, r.bytes.data + 8, n, NULL, &r.header), TG_OK);
    r.data = r.bytes.data + 8 + n;
    return r;
}

static uint64_t number(tg_ctx *ctx, const tg_json *v) {
    uint64_t x;
    assert_int_equal(tg_json_uint64(ctx, v, &x), TG_OK);
    return x;
}

static void same_tensor(tg_ctx *ctx, const raw_file *a, const tg_json *x, const raw_file *b,
                        const tg_json *y) {
    const tg_json *shape_x = tg_json_get(x, "shape"), *shape_y = tg_json_get(y, "shape");
    assert_true(tg_json_is(tg_json_get(x, "dtype"), "F32"));
    assert_true(tg_json_is(tg_json_get(y, "dtype"), "F32"));
    assert_int_equal(shape_x->count, shape_y->count);
    const tg_json *dx = tg_json_first(shape_x), *dy = tg_json_first(shape_y);
    for (; dx; dx = tg_json_next(dx), dy = tg_json_next(dy))
        assert_int_equal(number(ctx, dx), number(ctx, dy));
    const tg_json *begin_x = tg_json_first(tg_json_get(x, "data_offsets"));
    const tg_json *begin_y = tg_json_first(tg_json_get(y, "data_offsets"));
    const uint64_t first = number(ctx, begin_x), end = number(ctx, tg_json_next(begin_x));
    assert_memory_equal(a->data + first, b->data + number(ctx, begin_y), (size_t)(end - first));
}

/* What we write is what it wrote: each tensor's name (theirs has a prefix), type, shape, bytes. */
static void same_file(void **state) {
    (void)state;
    char path[] = "/tmp/tgst-XXXXXX", file[64];
    assert_non_null(mkdtemp(path));
    snprintf(file, sizeof file, "%s/m.safetensors", path);
    tg_context *ctx = open_context(2, NULL, NULL);
    tg_model *m = sharp_model(ctx);
    OK(ctx, tg_model_save(m, file, TG_FILE_SAFETENSORS));
    tg_arena arena;
    tg_arena_init(&arena, &ctx->err.mem);
    raw_file own = read_raw(&ctx->err, &arena, file);
    raw_file theirs = read_raw(&ctx->err, &arena, FOLDER "model.safetensors");
    size_t n = 0;
    assert_int_equal(own.header->count, theirs.header->count); /* of both one is __metadata__ */
    for (const tg_json *x = tg_json_first(own.header); x; x = tg_json_next(x)) {
        char name[80];
        if (strcmp(x->key, "__metadata__") == 0) continue;
        snprintf(name, sizeof name, "transformer.%s", x->key);
        const tg_json *y = tg_json_get(theirs.header, name);
        if (!y) fail_msg("%s: transformers has no such tensor", x->key);
        same_tensor(&ctx->err, &own, x, &theirs, y);
        n++;
    }
    assert_int_equal(n, 4 + 2 * 12);

    /* And our own file opens as our own model, with nothing beside it. */
    tg_model *again;
    OK(ctx, tg_model_open(ctx, file, &again));
    assert_memory_equal(m->weights, again->weights, m->layout.n_elems * sizeof(float));
    tg_model_free(again);
    tg_buf_deinit(&own.bytes);
    tg_buf_deinit(&theirs.bytes);
    tg_arena_deinit(&arena);
    tg_model_free(m);
    tg_context_free(ctx);
    assert_int_equal(remove(file), 0);
    assert_int_equal(remove(path), 0);
}

/* Every key of ours stands in what transformers wrote in the end, with the same value: it read all
 * of them, and dropped or changed none. */
static void same_config(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_buf own_text, their_text;
    tg_arena arena;
    const tg_json *own, *theirs;
    tg_buf_init(&own_text, &ctx->err.mem);
    tg_buf_init(&their_text, &ctx->err.mem);
    tg_arena_init(&arena, &ctx->err.mem);
    OK(ctx, tg_transformers_config(ctx, &config, keep_text, &own_text));
    assert_int_equal(tg_os_read_all(&ctx->err, FOLDER "config.json", 1 << 20, &their_text), TG_OK);
    assert_int_equal(
        tg_json_parse(&ctx->err, &arena, "own", own_text.data, own_text.length, NULL, &own), TG_OK);
    assert_int_equal(tg_json_parse(&ctx->err, &arena, "theirs", their_text.data, their_text.length,
                                   NULL, &theirs),
                     TG_OK);
    for (const tg_json *x = tg_json_first(own); x; x = tg_json_next(x)) {
        const tg_json *y = tg_json_get(theirs, x->key);
        if (strcmp(x->key, "torch_dtype") == 0 || strcmp(x->key, "tinygpt") == 0) continue;
        if (!y || y->type != x->type) fail_msg("%s is not what it was", x->key);
        if (tg_json_kind(x) == TG_JSON_NUMBER) {
            double a, b;
            assert_int_equal(tg_json_double(&ctx->err, x, &a), TG_OK);
            assert_int_equal(tg_json_double(&ctx->err, y, &b), TG_OK);
            if (a != b) fail_msg("%s: want %g, have %g", x->key, a, b);
        } else if (tg_json_kind(x) == TG_JSON_STRING) {
            assert_string_equal(x->u.text, y->u.text);
        }
    }
    tg_arena_deinit(&arena);
    tg_buf_deinit(&own_text);
    tg_buf_deinit(&their_text);
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_weights),
        cmocka_unit_test(same_logits),
        cmocka_unit_test(same_file),
        cmocka_unit_test(same_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
