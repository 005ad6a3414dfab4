/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io_hf_writer.c - metadata and names of GGUF as config.json and names of transformers: what a
 * key becomes, what has no place there, and every allocation that fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/math.h"
#include "base/str.h"
#include "fail_alloc.h"
#include "io/hf/hf_writer.h"
#include "io/rope_llama3.h"

enum { VALUES_MAX = 8, TENSORS_MAX = 4, FACTORS = 16 };

/* Metadata as "key=number" or "key:text", separated by blanks; names of tensors [2][3]. */
typedef struct row {
    const char *values, *tensors;
    tg_status status;
    const char *says; /* a part of config.json, of the names, or of the message */
} row;

#define LLAMA  "general.architecture:llama "
#define YARN   "llama.rope.scaling.type:yarn llama.rope.scaling.factor=4 "
#define GEMMA  "general.architecture:gemma3 "
#define OLMO3  "general.architecture:olmo2 olmo2.attention.sliding_window=9 olmo2.context_length=64 "
#define QWEN35 "general.architecture:qwen35 qwen35.attention.key_length=32 "
#define GPT2   "general.architecture:gpt2 "
#define BERT   "general.architecture:bert "
#define ODD    TG_E_UNSUPPORTED
#define FACTOR "rope_freqs.weight"

static const row rows[] = {
    { "", "", ODD, "safetensors: want one of gpt2 llama smollm3 qwen2" },
    { "general.architecture=7", "", TG_E_FORMAT, "general.architecture: want a string" },
    { "general.architecture:llam", "", ODD, "want one of gpt2 llama" },
    { "general.architecture:llamb", "", ODD, "want one of gpt2 llama" },
    { LLAMA, "token_embd.weight", TG_OK, "model.embed_tokens.weight" },
    { LLAMA, "output.weight", TG_OK, "\"tie_word_embeddings\":false" },
    { LLAMA, "output.weight", TG_OK, " lm_head.weight" },
    { LLAMA, "blk.12.ffn_up.weight", TG_OK, "model.layers.12.mlp.up_proj.weight" },
    { LLAMA, "blk.12.ffn_up", ODD, "tensor blk.12.ffn_up: want a name of llama" },
    { LLAMA, "blk.12", ODD, "tensor blk.12: want a name of llama" },
    { LLAMA, "plain", ODD, "tensor plain: want a name of llama" },
    { LLAMA, "token_embd.weight blk.0.new.weight", ODD, "tensor blk.0.new.weight: want" },
    { BERT, "token_embd.weight", TG_OK, " embeddings.word_embeddings.weight" },
    { GPT2, "blk.0.attn_qkv.weight", TG_OK, "transformer.h.0.attn.c_attn.weight turned" },
    { GPT2, "blk.0.attn_qkv.weight", TG_OK, "\"activation_function\":\"gelu_new\"" },
    { GPT2 "gpt2.activation:gelu_erf", "", TG_OK, "\"activation_function\":\"gelu\"" },
    { GEMMA, "output_norm.weight", TG_OK, "model.norm.weight plus_one" },
    { LLAMA "llama.block_count=3", "", TG_OK, "\"num_hidden_layers\":3" },
    { LLAMA, "", TG_OK, "\"vocab_size\":0" },
    { LLAMA, "token_embd.weight", TG_OK, "\"vocab_size\":2" },
    { LLAMA "llama.attention.key_length=8 llama.attention.value_length=8", "", TG_OK,
      "\"head_dim\":8,\"vocab_size\"" },
    /* rope */
    { LLAMA "llama.rope.freq_base=5", "", TG_OK, "\"rope_theta\":5" },
    { LLAMA, "", TG_OK, "!partial_rotary_factor" },
    { QWEN35, "", TG_OK, "\"partial_rotary_factor\":1" },
    { QWEN35 "qwen35.rope.dimension_count=16", "", TG_OK, "\"partial_rotary_factor\":0.5" },
    { LLAMA "llama.rope.scaling.factor=4", "", TG_OK, "\"rope_type\":\"linear\"" },
    { LLAMA "llama.rope.scale_linear=4", "", TG_OK, "\"factor\":4" },
    { LLAMA "llama.rope.scaling.factor=4 llama.rope.scaling.type:none", "", TG_OK,
      "!rope_scaling" },
    { LLAMA "llama.rope.scaling.factor=4 llama.rope.scaling.type:nnne", "", TG_OK, "rope_scaling" },
    { LLAMA "llama.rope.scaling.factor=4 llama.rope.scaling.type:linear", "", TG_OK,
      "rope_scaling" },
    { LLAMA "llama.rope.scaling.factor=1", "", TG_OK, "!rope_scaling" },
    { LLAMA "llama.rope.scaling.factor=0", "", TG_OK, "!rope_scaling" },
    { LLAMA, FACTOR, TG_OK, "\"rope_type\":\"llama3\",\"type\":\"llama3\",\"factor\":8" },
    { LLAMA "llama.rope.freq_base=10000", FACTOR, TG_OK,
      "\"original_max_position_embeddings\":64" },
    { LLAMA "llama.rope.freq_base=500", FACTOR, ODD, "want factors that follow from a rule" },
    { LLAMA YARN "llama.rope.scaling.original_context_length=64", "", TG_OK,
      "\"rope_type\":\"yarn\",\"type\":\"yarn\",\"original_max_position_embeddings\":64,\"factor\":4" },
    { LLAMA YARN "llama.rope.scaling.attn_factor=1", "", TG_OK, "\"attention_factor\":1.138629" },
    { LLAMA YARN, "", TG_OK, "!attention_factor" },
    { LLAMA "llama.attention.sliding_window=9 llama.context_length=64", "", TG_OK,
      "\"model_type\":\"mistral\"" },
    { LLAMA "llama.attention.sliding_window=64 llama.context_length=64", "", TG_OK,
      "\"model_type\":\"llama\"" },
    { LLAMA, "", TG_OK, "\"attention_bias\":false,\"mlp_bias\":false" },
    /* windows */
    { GEMMA, "", TG_OK, "\"query_pre_attn_scalar\":256" },
    { GEMMA, "", TG_OK, "\"rope_local_base_freq\":10000" },
    { GEMMA "gemma3.rope.freq_base_swa=9", "", TG_OK, "\"rope_local_base_freq\":9" },
    { GEMMA "gemma3.attention.scale=0.5", "", TG_OK, "\"query_pre_attn_scalar\":4" },
    { GEMMA "gemma3.attention.scale=0", "", TG_OK, "\"query_pre_attn_scalar\":256" },
    { GEMMA "gemma3.attention.key_length=64", "", TG_OK, "\"query_pre_attn_scalar\":64" },
    { GEMMA "gemma3.attention.sliding_window_pattern=3", "", TG_OK,
      "\"sliding_window_pattern\":3" },
    { GEMMA "gemma3.attention.sliding_window_pattern=2 gemma3.block_count=3", "", TG_OK,
      "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\"]" },
    { GEMMA, "", TG_OK, "!sliding_window_pattern" },
    { OLMO3 "olmo2.rope.freq_base=500000", "", TG_OK, "\"model_type\":\"olmo3\"" },
    { OLMO3 "olmo2.rope.freq_base=7", "", ODD, "want windows that turn by 500000, which is all" },
    /* tokens, sampling, pooling */
    { LLAMA "tokenizer.ggml.eos_token_id=7", "", TG_OK,
      "\"eos_token_id\":7,\"bos_token_id\":null,\"pad_token_id\":null" },
    { LLAMA "tokenizer.ggml.padding_token_id=5", "", TG_OK, "\"pad_token_id\":5" },
    { LLAMA, "", TG_OK, "!do_sample" },
    { LLAMA "general.sampling.top_k=9 general.sampling.temp=0.5", "", TG_OK,
      "\"temperature\":0.5,\"top_k\":9,\"do_sample\":true" },
    { BERT, "", TG_OK, "!word_embedding_dimension" },
    { BERT "bert.pooling_type=1", "", TG_OK, "\"word_embedding_dimension\":0,\"pooling_mode_" },
    { BERT "bert.pooling_type=2", "", TG_OK, "\"pooling_mode_cls_token\":true" },
};

/* The tables of a row, in memory of the test. factors are those of a rule of Llama 3, base 10,000.
 */
static void make(const row *r, tg_ctx *ctx, tg_gguf *g) {
    static tg_gguf_value values[VALUES_MAX];
    static tg_gguf_tensor tensors[TENSORS_MAX];
    static char texts[512], names[128];
    static float factors[FACTORS];
    static tg_gguf_place place;
    const tg_rope_llama3 rule = { .factor = 8, .low = 1, .high = 4, .original = 64 };
    size_t n_values = 0, n_tensors = 0;
    tg_rope_llama3_fill(&rule, 1e4, 2 * FACTORS, factors);
    tg_reader_open_memory(ctx, "factors", factors, sizeof factors, &place.reader);
    *g = (tg_gguf) { .ctx = ctx, .path = "made.gguf" };
    tg_arena_init(&g->arena, &ctx->mem);
    snprintf(texts, sizeof texts, "%s", r->values);
    for (char *at = strtok(texts, " "); at; at = strtok(NULL, " ")) {
        char *sign = at + strcspn(at, "=:");
        const bool text = *sign == ':';
        *sign = '\0';
        values[n_values] =
            (tg_gguf_value) { .key = at, .type = text ? TG_GGUF_STRING : TG_GGUF_F32 };
        values[n_values].real = text ? 0 : atof(sign + 1);
        values[n_values].whole = text ? 0 : atoi(sign + 1);
        values[n_values].text = (tg_gguf_string) { sign + 1, strlen(sign + 1) };
        n_values++;
    }
    snprintf(names, sizeof names, "%s", r->tensors);
    for (char *at = strtok(names, " "); at; at = strtok(NULL, " ")) {
        const bool rope = strcmp(at, FACTOR) == 0;
        tensors[n_tensors++] = (tg_gguf_tensor) { .name = at,
                                                  .type = TG_F32,
                                                  .n_dims = rope ? 1 : 2,
                                                  .dim = { rope ? FACTORS : 3, rope ? 1 : 2, 1, 1 },
                                                  .elems = rope ? FACTORS : 6,
                                                  .bytes = rope ? sizeof factors : 24,
                                                  .place = &place };
    }
    const tg_mem plain = tg_mem_default(), mem = g->arena.mem;
    g->arena.mem = plain; /* sorting is not what is tested */
    assert_int_equal(tg_gguf_set_tables(g, values, n_values, tensors, n_tensors), TG_OK);
    g->arena.mem = mem;
}

/* All that is written, one behind the other. */
static tg_status written(const tg_gguf *g, tg_buf *out) {
    const tg_hf_family *f;
    tg_hf_out *list;
    size_t n;
    static const int32_t ends[] = { 5, 6 };
    tg_arena arena;
    tg_arena_init(&arena, &g->ctx->mem);
    tg_status s = tg_hf_outline(g, &arena, &f, &list, &n);
    for (size_t i = 0; s == TG_OK && i < n; i++)
        tg_buf_printf(out, " %s%s%s", list[i].name, list[i].turned ? " turned" : "",
                      list[i].plus_one ? " plus_one" : "");
    if (s == TG_OK) s = tg_hf_put_config(g, f, TG_F16, out);
    if (s == TG_OK) s = tg_hf_put_generation(g, ends, 0, out);
    if (s == TG_OK) s = tg_hf_put_generation(g, ends, 2, out);
    if (s == TG_OK) s = tg_hf_put_pooling(g, f, out);
    tg_arena_deinit(&arena);
    return s;
}

static void configurations(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const row *r = &rows[i];
        tg_ctx ctx;
        tg_gguf g;
        tg_buf out;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_buf_init(&out, &ctx.mem);
        make(r, &ctx, &g);
        const tg_status s = written(&g, &out);
        const char *have = s == TG_OK ? tg_buf_text(&out) : ctx.message;
        const bool without = r->says[0] == '!';
        if (s != r->status || (strstr(have, r->says + without) != NULL) == without)
            fail_msg("%s, %s: want %d \"%s\", have %d \"%s\"", r->values, r->tensors,
                     (int)r->status, r->says, (int)s, have);
        tg_buf_deinit(&out);
        tg_arena_deinit(&g.arena);
    }
}

static void failing_memory(void **state) {
    (void)state;
    static const row whole[] = { { LLAMA, "token_embd.weight " FACTOR, TG_OK, "" },
                                 { GEMMA, "blk.0.ffn_up.weight", TG_OK, "" } };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        size_t all = 1;
        for (size_t n = 0; n <= all; n++) {
            test_alloc a = { .fail_at = n };
            const tg_mem mem = test_alloc_mem(&a);
            tg_ctx ctx;
            tg_gguf g;
            tg_buf out;
            tg_ctx_init(&ctx, &mem, NULL, NULL);
            make(&whole[i], &ctx, &g);
            tg_buf_init(&out, &ctx.mem);
            assert_int_equal(written(&g, &out), n ? TG_E_MEMORY : TG_OK);
            tg_buf_deinit(&out);
            if (n == 0) all = a.requests;
            assert_int_equal(a.live_pieces, 0);
            g.arena.mem = tg_mem_default();
            tg_arena_deinit(&g.arena);
        }
    }
}

/* Heads of three types and of tensors that are turned. */
static void heads_of_files(void **state) {
    (void)state;
    static const tg_dtype types[] = { TG_F32, TG_F16, TG_BF16 };
    static const char *const path = "build/test_io_hf_writer.safetensors";
    const row r = { GPT2, "blk.0.attn_qkv.weight", TG_OK, "" };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        tg_ctx ctx;
        tg_gguf g;
        tg_arena arena;
        const tg_hf_family *f;
        tg_hf_out *list;
        tg_save *save;
        tg_buf out;
        size_t n;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_arena_init(&arena, &ctx.mem);
        tg_buf_init(&out, &ctx.mem);
        make(&r, &ctx, &g);
        assert_int_equal(tg_hf_outline(&g, &arena, &f, &list, &n), TG_OK);
        assert_int_equal(tg_hf_put_config(&g, f, types[i], &out), TG_OK);
        assert_non_null(strstr(tg_buf_text(&out), i == 0   ? "\"dtype\":\"float32\""
                                                  : i == 1 ? "\"dtype\":\"float16\""
                                                           : "\"dtype\":\"bfloat16\""));
        for (int turned = 0; turned < 2; turned++) {
            list[0].turned = turned;
            assert_int_equal(tg_hf_save_begin(&g, path, list, n, types[i], &save), TG_OK);
            tg_save_abort(save);
        }
        assert_int_equal(tg_hf_save_begin(&g, "build/none/x", list, n, types[i], &save), TG_E_IO);
        tg_buf_deinit(&out);
        tg_arena_deinit(&arena);
        tg_arena_deinit(&g.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations),
        cmocka_unit_test(failing_memory),
        cmocka_unit_test(heads_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
