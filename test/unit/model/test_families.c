/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_families.c - every family that can be made: trained, saved, resumed, opened, continued and
 * converted; a family is tested by being in the list.
 */
#include "engine_util.h"

#include "load/weights.h"

#include <math.h>

enum { STEPS = 50, TOKENS = 24 };

#define RUN    "build/test/families.tinygpt"
#define GGUF   "build/test/families.gguf"
#define FOLDER "build/test/families.hf"

/* Two layers of odd sizes; heads share keys and values where the family can have that. */
static tg_model_config config_of(const char *family) {
    tg_model_config c = { .layers = 2, .width = 24, .heads = 4, .ctx = 32, .vocab = 256 };
    c.family = family;
    if (strcmp(family, "tinygpt") == 0)
        c.mlp = 96;
    else
        c.head_size = 6;
    if (strcmp(family, "tinygpt") != 0 && strcmp(family, "gpt2") != 0) c.kv_heads = 2;
    if (tg_family_find(family)->windows) c.window = 9;
    return c;
}

static tg_train_options options(void) {
    tg_train_options o = tg_train_options_default();
    o.steps = STEPS;
    o.batch = 4;
    o.lr = 3e-3;
    o.eval_every = 0;
    return o;
}

/* The loss falls, whatever the number of threads the bits are the same, and a run that was saved
 * and resumed goes on with the same ones. */
static void train(const char *family) {
    const tg_model_config c = config_of(family);
    const tg_train_options o = options();
    run_of whole = start_run(open_context(1, NULL, NULL), &c, &o);
    const double first = steps_until(&whole, 1).loss;
    const tg_step_report last = steps_until(&whole, STEPS);
    if (!(last.loss < first - 1)) fail_msg("%s: loss %g after %g", family, last.loss, first);

    run_of half = start_run(open_context(3, NULL, NULL), &c, &o);
    steps_until(&half, STEPS / 2);
    OK(half.ctx, tg_trainer_save(half.trainer, RUN));
    run_of rest = { .ctx = open_context(2, NULL, NULL) };
    OK(rest.ctx, tg_text_open(rest.ctx, STORIES, &rest.text));
    OK(rest.ctx, tg_trainer_open(rest.ctx, RUN, rest.text, 0, &rest.trainer));
    const uint64_t hash = steps_until(&rest, STEPS).loss_hash;
    if (hash != last.loss_hash) fail_msg("%s: resumed to other bits", family);
    OK(rest.ctx, tg_trainer_save(rest.trainer, RUN));
    end_run(&rest);
    end_run(&half);
    end_run(&whole);
}

/* Logits behind each token: of the whole text at once, fed one by one, and fed in pieces. */
static void run(const char *family) {
    tg_context *ctx = open_context(2, NULL, NULL);
    tg_model *m;
    tg_session *s;
    tg_probe *p;
    const float *logits, *lens;
    int32_t ids[TOKENS];
    OK(ctx, tg_model_open(ctx, RUN, &m));
    assert_string_equal(m->layout.config.family, family);
    OK(ctx, tg_session_new(ctx, m, 0, &s));
    for (int i = 0; i < TOKENS; i++) ids[i] = "The bear who had seen it"[i];
    OK(ctx, tg_probe_new(ctx, m, TOKENS, &p));
    OK(ctx, tg_probe_run(p, ids, NULL, 0, NULL));
    lens = tg_probe_lens(p, 2);
    for (int i = 0; i < TOKENS; i++) {
        OK(ctx, tg_session_eval(s, &ids[i], 1, &logits));
        if (memcmp(logits, lens + 256 * i, 256 * sizeof *logits) != 0)
            fail_msg("%s: token %d: alone it has other logits than in the whole text", family, i);
    }
    for (int cut = 1; cut < TOKENS; cut += 5) {
        OK(ctx, tg_session_rewind(s, 0));
        OK(ctx, tg_session_eval(s, ids, (size_t)cut, NULL));
        OK(ctx, tg_session_eval(s, ids + cut, (size_t)(TOKENS - cut), &logits));
        if (memcmp(logits, lens + 256 * (TOKENS - 1), 256 * sizeof *logits) != 0)
            fail_msg("%s: cut at %d the text has other logits", family, cut);
    }
    tg_probe_free(p);
    tg_session_free(s);
    tg_model_free(m);
    tg_context_free(ctx);
}

/* Logits behind a few tokens. */
static void logits_of(tg_context *ctx, const char *path, float logits[256]) {
    static const int32_t ids[] = { 'T', 'h', 'e', ' ', 'b', 'e', 'a', 'r' };
    tg_model *m;
    tg_session *s;
    const float *found;
    OK(ctx, tg_model_open(ctx, path, &m));
    OK(ctx, tg_session_new(ctx, m, 0, &s));
    OK(ctx, tg_session_eval(s, ids, sizeof ids / sizeof *ids, &found));
    memcpy(logits, found, 256 * sizeof *found);
    tg_session_free(s);
    tg_model_free(m);
}

/* What convert writes is read back and compared by convert itself; here its report is looked at,
 * and the way back: other formats become a model of ours with the logits of the run. */
static void convert(const char *family) {
    tg_context *ctx = open_context(2, NULL, NULL);
    const struct {
        const char *in, *out;
        tg_file_kind kind;
    } to[] = { { RUN, GGUF, TG_FILE_GGUF },
               { RUN, FOLDER, TG_FILE_FOLDER },
               { GGUF, "build/test/families_gguf.tinygpt", TG_FILE_V3 },
               { FOLDER, "build/test/families_hf.tinygpt", TG_FILE_V3 } };
    float want[256], have[256];
    logits_of(ctx, RUN, want);
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
        tg_convert_report r;
        OK(ctx, tg_model_convert(ctx, to[i].in, to[i].out, to[i].kind, TG_WEIGHT_F32, &r));
        if (!(r.max_error < 1e-4)) fail_msg("%s: %s: off by %g", family, to[i].out, r.max_error);
        if (r.n_positions == 0) fail_msg("%s: nothing was compared", family);
        logits_of(ctx, to[i].out, have);
        for (int v = 0; v < 256; v++)
            if (!(fabsf(have[v] - want[v]) <= 1e-4F * (1 + fabsf(want[v]))))
                fail_msg("%s: %s: logit %d: want %g, have %g", family, to[i].out, v,
                         (double)want[v], (double)have[v]);
    }
    tg_context_free(ctx);
}

static void every_family(void **state) {
    (void)state;
    size_t n = 0;
    for (; tg_family_at(n); n++) {
        train(tg_family_at(n));
        run(tg_family_at(n));
        convert(tg_family_at(n));
    }
    assert_true(n >= 5); /* or the list was empty */
}

/* Rhythms and bases that the readers of GGUF would not take for granted; no windows at all. */
static void windows_of_another_rhythm(void **state) {
    (void)state;
    static const char *const families[] = { "gemma2", "gemma3", "olmo2" };
    tg_context *ctx = open_context(2, NULL, NULL);
    for (int i = 0; i < 9; i++) {
        tg_model_config c = config_of(families[i % 3]);
        tg_model *m;
        tg_convert_report r;
        c.window_every = i < 3 ? 3 : 1;
        c.rope_base[1] = 77;
        if (i >= 6) c.window = c.window_every = 0;
        OK(ctx, tg_model_new(ctx, &c, 1, &m));
        OK(ctx, tg_model_save(m, RUN, TG_FILE_V3));
        tg_model_free(m);
        OK(ctx, tg_model_convert(ctx, RUN, GGUF, TG_FILE_GGUF, TG_WEIGHT_F32, &r));
        if (!(r.max_error < 1e-4)) fail_msg("%s: off by %g", c.family, r.max_error);
        if (i >= 6) continue;
        OK(ctx, tg_model_open(ctx, GGUF, &m));
        assert_int_equal(m->layout.config.window_every, c.window_every);
        if (m->layout.config.rope_base[1] != 77) fail_msg("%s: another base", c.family);
        tg_model_free(m);
    }
    tg_context_free(ctx);
}

/* Kinds of layers that no rule of a family gives: a run keeps them, and so do its conversions. */
static void layers_in_an_order_of_their_own(void **state) {
    (void)state;
    static const struct {
        const char *family, *kinds;
    } rows[] = {
        { "lfm2", "aca" }, { "granitehybrid", "mam" }, { "qwen35", "ada" }, { "nemotron_h", "fma" }
    };
    tg_context *ctx = open_context(2, NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tg_model_config c = config_of(rows[i].family);
        tg_model *m;
        tg_convert_report r;
        c.layers = 3;
        memcpy(c.layer_kind, rows[i].kinds, 3);
        OK(ctx, tg_model_new(ctx, &c, 1, &m));
        OK(ctx, tg_model_save(m, RUN, TG_FILE_V3));
        tg_model_free(m);
        OK(ctx, tg_model_open(ctx, RUN, &m));
        assert_string_equal(m->layout.config.layer_kind, rows[i].kinds);
        tg_model_free(m);
        OK(ctx, tg_model_convert(ctx, RUN, GGUF, TG_FILE_GGUF, TG_WEIGHT_F32, &r));
        if (!(r.max_error < 1e-4)) fail_msg("%s: off by %g", c.family, r.max_error);
        OK(ctx, tg_model_open(ctx, GGUF, &m));
        assert_string_equal(m->layout.config.layer_kind, rows[i].kinds);
        tg_model_free(m);
    }
    tg_context_free(ctx);
}

/* Sizes that differ by layer: a run keeps them, and so do a file and a folder that it becomes. */
static void layers_that_differ(void **state) {
    (void)state;
    tg_context *ctx = open_context(2, NULL, NULL);
    tg_model_config c = config_of("gemma4");
    tg_model *m;
    tg_convert_report r;
    c.layers = 4;
    c.window = 8;
    c.window_every = 2;
    c.kv_shared = 2;
    c.mlp = 32;
    c.mlp_shared = 64;
    c.head_size = 16;
    c.rope_size = 4;
    c.window_head_size = 8;
    OK(ctx, tg_model_new(ctx, &c, 1, &m));
    c = m->layout.config;
    OK(ctx, tg_model_save(m, RUN, TG_FILE_V3));
    tg_model_free(m);
    static const tg_file_kind kinds[] = { TG_FILE_GGUF, TG_FILE_FOLDER };
    for (size_t i = 0; i < 2; i++) {
        OK(ctx, tg_model_convert(ctx, RUN, i ? RUN ".hf" : GGUF, kinds[i], TG_WEIGHT_F32, &r));
        if (!(r.max_error < 1e-5)) fail_msg("%zu: off by %g", i, r.max_error);
        OK(ctx, tg_model_open(ctx, i ? RUN ".hf" : GGUF, &m));
        assert_int_equal(m->layout.config.kv_shared, 2);
        assert_int_equal(m->layout.config.mlp_shared, c.mlp_shared);
        assert_int_equal(m->layout.config.window_head_size, 8);
        assert_int_equal(m->layout.config.rope_size, 4);
        tg_model_free(m);
    }
    tg_context_free(ctx);
}

/* Heads that are together wider than the model, or not the same in all layers: a probe looks at
 * them, leaves one out, and takes one from another text. */
static void probes_of_wide_heads(void **state) {
    (void)state;
    static const char *const families[] = { "qwen3", "gemma4", "nemotron_h" };
    tg_context *ctx = open_context(2, NULL, NULL);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        tg_model_config c = config_of(families[i]);
        c.head_size = 10;
        tg_model *m;
        tg_probe *p, *q;
        int32_t ids[TOKENS];
        for (int k = 0; k < TOKENS; k++) ids[k] = "The bear who had seen it"[k];
        OK(ctx, tg_model_new(ctx, &c, 1, &m));
        OK(ctx, tg_probe_new(ctx, m, TOKENS, &p));
        OK(ctx, tg_probe_new(ctx, m, TOKENS, &q));
        OK(ctx, tg_probe_run(q, ids, NULL, 0, NULL));
        const int layer = tg_layer_kind_of(&m->layout.config, 0) == TG_LAYER_ATTENTION ? 0 : 1;
        const float *lens = tg_probe_lens(q, m->layout.config.layers);
        const float before = lens[256 * (TOKENS - 1)];
        ids[3] = 'x';
        const tg_edit edits[] = { { layer, 1, -1, TG_PART_HEAD, TG_EDIT_ZERO },
                                  { layer, 2, 5, TG_PART_HEAD, TG_EDIT_DONOR } };
        OK(ctx, tg_probe_run(p, ids, edits, 2, q));
        lens = tg_probe_lens(p, m->layout.config.layers);
        if (lens[256 * (TOKENS - 1)] == before) fail_msg("%s: an edit changes nothing", c.family);
        tg_probe_free(p);
        tg_probe_free(q);
        tg_model_free(m);
    }
    tg_context_free(ctx);
}

static void wrong_sizes(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    static const struct {
        tg_model_config c;
        const char *message;
    } rows[] = {
        { { 2, 24, 4, 32, 256, 0, "qwen9" }, "family: want one of tinygpt gpt2 llama" },
        { { 2, 24, 4, 32, 256, 0, "qwen3", .window = 4 },
          "want a family that has windows, have qwen3" },
        { { 2, 24, 4, 32, 256, 0, "gpt2", .biases = 1 }, "biases: want some of 0, which gpt2" },
        { { 2, 24, 4, 32, 256, 0, "bert" }, "have bert" },
        { { 2, 24, 4, 32, 256, 0, "llama", .logit_cap = 30 }, "soft caps: want 0, or above in a" },
        { { 2, 24, 4, 32, 256, 0, "gemma2", .score_cap = -1 }, "have -1 and 30 in gemma2" },
        { { 2, 24, 4, 32, 256, 0, "llama", .kv_heads = 3 }, "key heads that divide query heads" },
        { { 2, 25, 5, 32, 256, 0, "llama" }, "of an even size, have 5 of 5, size 5" },
        { { 0, 24, 4, 32, 256, 0, "llama" }, "layers: want 1..512, have 0" },
        { { 2, 24, 4, 32, 256, 0, "llama", .rope_base = { -1, 1e4f } }, "bases above 1" },
        { { 2, 24, 4, 32, 255, 96, NULL }, "vocab" },
        { { 2, 24, 4, 32, 256, 0, "llama", .layer_kind = "ac" },
          "layer_kind: want kinds that llama has, have 'c' in layer 1" },
        { { 2, 24, 4, 32, 256, 0, "lfm2", .layer_kind = "x" }, "have 'x' in layer 0" },
        { { 2, 24, 4, 32, 256, 0, "lfm2", .conv_taps = 9 }, "conv_taps: want 2..8, have 9" },
        { { 2, 24, 4, 32, 256, 0, "granitehybrid", .ssm_heads = 3, .ssm_groups = 2 },
          "ssm_groups: want some that divide 3 heads, have 2" },
        { { 2, 24, 4, 32, 256, 0, "granitehybrid", .ssm_state = 1025 },
          "ssm_state: want 1..1024, have 1025" },
        { { 2, 24, 4, 32, 256, 0, "falcon-h1", .ssm_heads = 3, .ssm_groups = 2 },
          "ssm_groups: want some that divide 3 heads, have 2" },
        { { 2, 24, 4, 32, 256, 0, "falcon-h1", .layer_kind = "am" }, "have 'm' in layer 1" },
        { { 2, 24, 4, 32, 256, 0, "granitehybrid", .layer_kind = "fa" }, "have 'f' in layer 0" },
        { { 2, 24, 4, 32, 256, 0, "nemotron_h", .layer_kind = "fc" }, "have 'c' in layer 1" },
        { { 2, 24, 4, 32, 256, 0, "llama", .kv_shared = 1 }, "kv_shared: want 0..0, have 1" },
        { { 2, 24, 4, 32, 256, 0, "llama", .layer_inputs = 8 }, "layer_inputs: want 0..0, have 8" },
        { { 6, 24, 4, 32, 256, 0, "gemma4", .kv_shared = 6 }, "kv_shared: want 0..5, have 6" },
        { { 6, 24, 4, 32, 256, 0, "gemma4", .kv_shared = 1, .window = 8 },
          "among the first 5, whose keys others read, have none like layer 5" },
        { { 6, 24, 4, 32, 256, 0, "gemma4", .mlp_shared = 8 }, "mlp_shared: want 0..0, have 8" },
        { { 6, 24, 4, 32, 256, 0, "gemma4", .window_head_size = 7 },
          "window_head_size: want an even one, have 7" },
        { { 2, 24, 4, 32, 256, 0, "llama", .residual_scale = 0.5F }, "want 0..0, as llama has" },
        { { 2, 24, 4, 32, 256, 96, NULL, .logit_scale = 2 }, "want 0..0, as tinygpt has" },
        { { 2, 24, 4, 32, 256, 0, "llama", .ssm_heads = 3 }, "ssm_heads: want 0..0, have 3" },
        { { 2, 24, 4, 32, 256, 0, "llama", .conv_taps = 3 }, "conv_taps: want 0..0, have 3" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tg_model *m = NULL;
        assert_int_not_equal(tg_model_new(ctx, &rows[i].c, 1, &m), TG_OK);
        if (!strstr(tg_context_error(ctx), rows[i].message))
            fail_msg("row %zu: %s", i, tg_context_error(ctx));
        assert_int_equal(tg_param_count(&rows[i].c), 0);
    }
    tg_context_free(ctx);
}

/* Tensors of one model under the head of another. */
static void save_under(tg_context *ctx, const tg_model *m, const tg_model_config *head) {
    const tg_flat_source source = { &m->layout, { m->weights, NULL, NULL } };
    const tg_weights weights = tg_flat_weights(&source);
    tg_buf text;
    tg_json_writer w;
    tg_buf_init(&text, &ctx->err.mem);
    tg_json_writer_init(&w, &text);
    tg_meta_begin_v3(&w, head, 0, &m->meta);
    tg_meta_end_v3(&w);
    OK(ctx, tg_tgpt3_save(&ctx->err, RUN, text.data, text.length, &weights, false));
    tg_buf_deinit(&text);
}

/* io/ does not know what a family has, so it is the loader that must. */
static void wrong_tensors(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    const tg_model_config tensors = config_of("qwen3");
    tg_model *m, *opened;
    OK(ctx, tg_model_new(ctx, &tensors, 1, &m));
    const struct {
        const char *family;
        int32_t mlp, vocab;
        const char *message;
    } rows[] = {
        { "qwen3", 80, 256, "tensor blk.0.ffn_gate.weight: want [80,24], have [64,24]" },
        { "llama", 64, 256, "want the 20 tensors of the family llama, have 24" },
        { "gpt2", 64, 256, "tensors of the family gpt2, have 24" },
        { "qwen9", 64, 256, "have qwen9" },
        { "bert", 64, 256, "tensors of the family bert, have 24" },
        { "qwen3", 64, 10, "tensor token_embd.weight: want [10,24], have [256,24]" },
        { "qwen3", 64, 0, "vocab: want 1..67108864, have 0" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tg_model_config head = m->layout.config;
        head.family = rows[i].family;
        head.mlp = rows[i].mlp;
        head.vocab = rows[i].vocab;
        save_under(ctx, m, &head);
        assert_int_not_equal(tg_model_open(ctx, RUN, &opened), TG_OK);
        if (!strstr(tg_context_error(ctx), rows[i].message))
            fail_msg("row %zu: %s", i, tg_context_error(ctx));
    }
    save_under(ctx, m, &m->layout.config);
    OK(ctx, tg_model_open(ctx, RUN, &opened));
    tg_model_free(opened);
    tg_model_free(m);
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family),
        cmocka_unit_test(windows_of_another_rhythm),
        cmocka_unit_test(layers_in_an_order_of_their_own),
        cmocka_unit_test(layers_that_differ),
        cmocka_unit_test(probes_of_wide_heads),
        cmocka_unit_test(wrong_sizes),
        cmocka_unit_test(wrong_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
