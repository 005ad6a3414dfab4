/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io_tools.c - info, compare and convert on whole files.
 */
#include "io_folder.h"

#include "base/codec/json.h"
#include "inspect/inspect.h"
#include "io/run/meta.h"

static int stop_at_once(void *user, const char *text, size_t n) {
    (void)user;
    (void)text;
    return n > 0;
}

static void describes_a_file(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    tg_ctx ctx;
    tg_buf text;
    tg_arena arena;
    const tg_json *root, *tensors;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_buf_init(&text, &ctx.mem);
    tg_arena_init(&arena, &ctx.mem);
    assert_int_equal(model_save_v3(&ctx, path, &config, true, false), TG_OK);
    assert_int_equal(tg_inspect_file_info(&ctx, path, false, keep_text, &text), TG_OK);
    static const char *const lines[] = { "tinygpt v3", "284, stored as\n  F32       20 tensors",
                                         "step 30",    "validation 3.5 at step 30",
                                         "3 points",   "adam_v.blocks.0.mlp.fc_out.bias" };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (!strstr(tg_buf_text(&text), lines[i])) {
            fail_msg("want \"%s\" in:\n%s", lines[i], tg_buf_text(&text));
        }
    }
    tg_buf_clear(&text);
    assert_int_equal(tg_inspect_file_info(&ctx, path, true, keep_text, &text), TG_OK);
    assert_int_equal(tg_json_parse(&ctx, &arena, "info", text.data, text.length, NULL, &root), 0);
    assert_int_equal(tg_json_want(&ctx, root, "tensors", TG_JSON_ARRAY, &tensors), TG_OK);
    assert_int_equal(tensors->count, 60);
    assert_true(tg_json_is(tg_json_get(root, "format"), "tinygpt v3"));
    assert_int_equal(tg_inspect_file_info(&ctx, path, true, stop_at_once, NULL), TG_STOPPED);
    tg_arena_deinit(&arena);
    tg_buf_deinit(&text);
}

/* Changes of one kind each, and the line that names it. */
static void names_the_first_difference(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    tg_ctx ctx;
    bool equal;
    tg_buf line;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_buf_init(&line, &ctx.mem);
    file_bytes a = saved(&config, true);
    static const struct {
        const char *from, *to; /* in META, the same length; NULL: the second moment of a tensor */
        const char *says;
    } cases[] = {
        { NULL, NULL, "tensor adam_v.ln_final.bias: element 0 differs: " },
        { "\"step\":30,\"train\":{", "\"step\":31,\"train\":{", "step differs: 30 and 31" },
        { "\"lr\":0.0003", "\"lr\":0.0004", "option lr differs: 0.0003 and 0.0004" },
        { "\"schedule\":\"cosine\"", "\"schedule\":\"wsd\"   ",
          "option schedule differs: \"cosine\"" },
        { "\"keepBest\":true", "\"keepBest\":null", NULL },
        { "\"step\":20,\"train\":4.25", "\"step\":20,\"train\":4.75",
          "history point 1: loss differs: 4.25 and 4.75" },
        { "\"val\":4.5}", "\"val\":4.6}", "history point 1: validation loss differs: 4.5 and 4.6" },
        { "\"step\":10,\"train\":5.5", "\"step\":11,\"train\":5.5",
          "history point 0: step differs" },
        { "\"loss\":3.5", "\"loss\":3.6", "best validation loss differs: 3.5 and 3.6" },
        { "\"dModel\":1,\"ctx\":1", "\"dModel\":1,\"ctx\":1", "equal: 60 tensors, step 30" },
        { "tinygpt " TG_VERSION_TEXT, "tinygpt 9.9.9",
          "equal: " }, /* who wrote it does not matter */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        file_bytes b = bytes_of(a.data, a.n);
        if (cases[i].from) {
            const size_t n = strlen(cases[i].from);
            size_t at = 0;
            while (memcmp(b.data + at, cases[i].from, n) != 0) {
                at++;
                assert_true(at + n < b.n);
            }
            assert_int_equal(n, strlen(cases[i].to));
            memcpy(b.data + at, cases[i].to, n);
        } else {
            tg_file *f;
            assert_int_equal(tg_file_open(&ctx, path, &f), TG_OK);
            b.data[tg_file_find(f, "adam_v.ln_final.bias")->offset] ^= 1;
            tg_file_close(f);
        }
        v3_repair(b.data, b.n);
        bytes_write(path_b, b);
        tg_buf_clear(&line);
        tg_ctx_clear(&ctx);
        const tg_status status = tg_io_compare(&ctx, path, path_b, &equal, keep_text, &line);
        if (!cases[i].says) { /* an option of the wrong type cannot be compared */
            assert_int_equal(status, TG_E_FORMAT);
            assert_false(equal);
        } else {
            assert_int_equal(status, TG_OK);
            assert_int_equal(equal, strncmp(cases[i].says, "equal", 5) == 0);
            if (!strstr(tg_buf_text(&line), cases[i].says)) {
                fail_msg("want \"%s\", have \"%s\"", cases[i].says, tg_buf_text(&line));
            }
        }
        bytes_free(&b);
    }
    /* Other sizes, and moments on one side only. */
    const tg_model_config other = large();
    assert_int_equal(model_save_v3(&ctx, path_b, &other, true, false), TG_OK);
    tg_buf_clear(&line);
    assert_int_equal(tg_io_compare(&ctx, path, path_b, &equal, keep_text, &line), TG_OK);
    assert_non_null(strstr(tg_buf_text(&line), "config differs: layers 1, width 1"));
    assert_false(equal);
    assert_int_equal(model_save_v3(&ctx, path_b, &config, false, false), TG_OK);
    tg_buf_clear(&line);
    assert_int_equal(tg_io_compare(&ctx, path, path_b, &equal, keep_text, &line), TG_OK);
    assert_non_null(strstr(tg_buf_text(&line), "tensor adam_m.token_embedding.weight is in "));
    assert_false(equal);
    tg_buf_deinit(&line);
    bytes_free(&a);
}

/* A file with this header, all else being equal. */
static void save_with(const char *to, const char *json) {
    const tg_weights weights = { .read = model_read };
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    if (tg_tgpt3_save(&ctx, to, json, strlen(json), &weights, false) != TG_OK) {
        fail_msg("%s", ctx.message);
    }
}

#define HEAD                                                                                       \
    "{\"family\":\"tinygpt\",\"step\":1,\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":1,\"heads\":1}"

/* What text a run was trained on belongs to it; who wrote the file and when does not. */
static void compares_what_a_run_depends_on(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *says;
    } cases[] = {
        { HEAD ",\"tool\":\"x\",\"savedAt\":1}", HEAD ",\"savedAt\":2}", "equal: 20 tensors" },
        { HEAD ",\"text\":{\"bytes\":7,\"sums\":[1,2,null]}}",
          HEAD ",\"text\": {\"bytes\":7, \"sums\":[1,2,null]}}", "equal: 20 tensors" },
        { HEAD ",\"text\":{\"bytes\":7,\"sums\":[1,2,null]}}",
          HEAD ",\"text\":{\"bytes\":7,\"sums\":[1,3,null]}}", "header text differs: 2 and 3" },
        { HEAD ",\"text\":{\"bytes\":7,\"name\":\"a\"}}",
          HEAD ",\"text\":{\"bytes\":7,\"name\":\"b\"}}", "header text differs: name a and b" },
        { HEAD ",\"text\":{\"bytes\":7}}", HEAD ",\"text\":{\"size\":7}}",
          "header text differs: bytes" },
        { HEAD ",\"text\":[1,2]}", HEAD ",\"text\":[1]}", "header text differs: text one value" },
        { HEAD ",\"text\":[1,true]}", HEAD ",\"text\":[1,false]}",
          "header text differs: one value" },
        { HEAD ",\"finalLoss\":{\"step\":1,\"train\":2}}",
          HEAD ",\"finalLoss\":{\"step\":1,\"train\":2,\"val\":3}}",
          "final validation loss differs: unknown and 3" },
        { HEAD ",\"finalLoss\":{\"step\":1,\"train\":2}}", HEAD "}",
          "final loss: step differs: 1 and -1" },
        { HEAD ",\"lossHistory\":[{\"step\":1,\"train\":null}]}", HEAD ",\"lossHistory\":[]}",
          "number of history points differs: 1 and 0" },
        { HEAD ",\"run\":{\"lossHash\":18446744073709551615}}",
          HEAD ",\"run\":{\"lossHash\":18446744073709551614}}",
          "header run differs: lossHash 18446744073709551615 and 18446744073709551614" },
        { HEAD ",\"bestVal\":{\"step\":1,\"loss\":2}}", HEAD ",\"bestVal\":null}",
          "best validation loss: step differs: 1 and -1" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_ctx ctx;
        tg_buf line;
        bool equal;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_buf_init(&line, &ctx.mem);
        save_with(path, cases[i].a);
        save_with(path_b, cases[i].b);
        assert_int_equal(tg_io_compare(&ctx, path, path_b, &equal, keep_text, &line), TG_OK);
        assert_int_equal(equal, strncmp(cases[i].says, "equal", 5) == 0);
        if (!strstr(tg_buf_text(&line), cases[i].says)) {
            fail_msg("case %zu: want \"%s\", have \"%s\"", i, cases[i].says, tg_buf_text(&line));
        }
        tg_buf_deinit(&line);
    }
}

/* Kinds of layers are too many for a message, which has the first that differs. */
static void names_the_layer_that_differs(void **state) {
    (void)state;
    tg_model_config a = { .layers = 40 }, b;
    char x[TG_NUMBER_BYTES], y[TG_NUMBER_BYTES];
    memset(a.layer_kind, 'd', 40);
    b = a;
    assert_null(tg_meta_config_difference(&a, &b, x, y));
    b.layer_kind[35] = 'a';
    assert_string_equal(tg_meta_config_difference(&a, &b, x, y), "layerKind");
    assert_string_equal(x, "d in layer 35");
    assert_string_equal(y, "a in layer 35");
    b = (tg_model_config) { .layers = 40 };
    assert_non_null(tg_meta_config_difference(&a, &b, x, y));
    assert_string_equal(y, "none in layer 0");
}

/* From v3 to v2: what the header has a place for goes over, moments included. */
static void converts_to_v2(void **state) {
    (void)state;
    const tg_model_config config = large();
    tg_ctx ctx;
    bool equal;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(model_save_v3(&ctx, path, &config, true, false), TG_OK);
    static const tg_file_kind kinds[] = { TG_FILE_V2_F32, TG_FILE_V1_F32, TG_FILE_V2_F16,
                                          TG_FILE_V2_INT4 };
    for (size_t i = 0; i < 4; i++) {
        tg_file *f;
        tg_meta meta;
        assert_int_equal(tg_io_convert(&ctx, path, path_b, kinds[i]), TG_OK);
        assert_int_equal(check_file(&ctx, path_b), TG_OK);
        assert_int_equal(tg_file_open(&ctx, path_b, &f), TG_OK);
        assert_int_equal(tg_meta_read(f, &meta), TG_OK);
        assert_int_equal(f->step, MODEL_STEP);
        assert_int_equal(meta.n_history, kinds[i] == TG_FILE_V1_F32 ? 0 : 3);
        assert_true(meta.train.seed == UINT64_MAX && meta.train.batch == 4 &&
                    meta.train.lr == 3e-4);
        tg_file_close(f);
        if (i == 0) {
            assert_int_equal(tg_io_compare(&ctx, path, path_b, &equal, NULL, NULL), TG_OK);
            assert_true(equal);
        }
    }
}

/* Same input, same bytes; and convert keeps all of it. */
static void is_the_same_every_time(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    file_bytes a = saved(&config, true), b = saved(&config, true);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.data, b.data, a.n);
    assert_int_equal(tg_io_convert(&ctx, path, path_b, TG_FILE_V3), TG_OK);
    file_bytes c = bytes_read(path_b);
    assert_int_equal(a.n, c.n);
    assert_memory_equal(a.data, c.data, a.n);
    /* Not in place: what was read is never replaced, by whatever name it goes. */
    assert_int_equal(tg_io_convert(&ctx, path, path, TG_FILE_V3), TG_E_ARG);
    assert_non_null(strstr(ctx.message, "have a file of the input"));
    tg_ctx_clear(&ctx);
    unlink(path_b);
    assert_int_equal(link(path, path_b), 0);
    assert_int_equal(tg_io_convert(&ctx, path, path_b, TG_FILE_V3), TG_E_ARG);
    file_bytes d = bytes_read(path);
    assert_int_equal(a.n, d.n);
    assert_memory_equal(a.data, d.data, a.n);
    bytes_free(&a);
    bytes_free(&b);
    bytes_free(&c);
    bytes_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(describes_a_file, clear_folder),
        cmocka_unit_test_teardown(names_the_first_difference, clear_folder),
        cmocka_unit_test_teardown(compares_what_a_run_depends_on, clear_folder),
        cmocka_unit_test(names_the_layer_that_differs),
        cmocka_unit_test_teardown(converts_to_v2, clear_folder),
        cmocka_unit_test_teardown(is_the_same_every_time, clear_folder),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
