/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io_hf.c - folders of models made here, one line changed in each: what config.json and the
 * files beside it become, and with which words the others are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/hf/hf.h"

static char folder[64] = "/tmp/tghf-XXXXXX";
static tg_ctx ctx;
static tg_gguf g;

static void put_bytes(const char *name, const void *bytes, size_t n) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    mkdir(path, 0777);
    *slash = '/';
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}
static void put(const char *name, const char *text) { put_bytes(name, text, strlen(text)); }

/* Tensors by their header, and so many zeros of data. */
static void put_tensors(const char *name, const char *header, size_t n_data) {
    static uint8_t file[8192];
    const size_t n = strlen(header);
    assert_true(8 + n + n_data <= sizeof file);
    memset(file, 0, sizeof file);
    tg_put_u64(file, n);
    memcpy(file + 8, header, n);
    put_bytes(name, file, 8 + n + n_data);
}

static int clear(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    return system(command);
}

/* A list as "[1,2]". */
static void list_text(const tg_gguf_value *v, char *out, size_t room) {
    size_t n = 0;
    for (size_t i = 0; i < v->count; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%u", i ? "," : "[",
                              (unsigned)tg_get_u32(v->elements + 4 * i));
    snprintf(out + n, room - n, "]");
}

/* "key=number", "key=text" or "key=[list]" of a folder that opens, or a part of the message of one
 * that does not. */
static void check(const char *what, tg_status want, const char *says) {
    static tg_mem mem;
    mem = tg_mem_default();
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    const tg_status have = tg_hf_open(&ctx, folder, &g);
    if (have != want || (want != TG_OK && !strstr(ctx.message, says)))
        fail_msg("%s: want %d \"%s\", have %d \"%s\"", what, (int)want, says, (int)have,
                 ctx.message);
    if (have != TG_OK) return;
    if (*says == '!' && tg_gguf_find(&g, says + 1)) fail_msg("%s: want no %s", what, says + 1);
    const char *number = strchr(says, '=');
    char key[96];
    snprintf(key, sizeof key, "%.*s", (int)(number ? number - says : 0), says);
    const tg_gguf_value *v = tg_gguf_find(&g, key);
    const bool text = v && v->type == TG_GGUF_STRING;
    if (text && (strlen(number + 1) != v->text.n_bytes ||
                 memcmp(number + 1, v->text.bytes, v->text.n_bytes) != 0))
        fail_msg("%s: want %s, have %.*s", what, says, (int)v->text.n_bytes, v->text.bytes);
    char list[96] = "";
    if (v && v->type == TG_GGUF_ARRAY) list_text(v, list, sizeof list);
    if (*list && strcmp(list, number + 1) != 0) fail_msg("%s: want %s, have %s", what, says, list);
    if (number && !text && !*list && (!v || v->real != atof(number + 1)))
        fail_msg("%s: want %s, have %g", what, says, v ? v->real : -1);
    tg_gguf_close(&g);
}

/* --------------------------------------------------------------------------------- config.json */

#define COMMON(type)                                                                               \
    "{\"model_type\":\"" type "\",\"num_hidden_layers\":2,\"hidden_size\":32,"                     \
    "\"intermediate_size\":64,\"max_position_embeddings\":64,\"num_attention_heads\":4"
#define TIED    ",\"tie_word_embeddings\":true}"
#define LLAMA   COMMON("llama") TIED
#define QWEN2   COMMON("qwen2") TIED
#define GEMMA   COMMON("gemma3_text") "}"
#define OLMO3   COMMON("olmo3") TIED
#define GEMMA2  COMMON("gemma2") "}"
#define MISTRAL COMMON("mistral") TIED
#define SMOLLM3 COMMON("smollm3") "}"
#define PHI3    COMMON("phi3") TIED
#define BERT    COMMON("bert") "}"
#define GPT2    "{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":32,\"n_positions\":64,\"n_head\":4}"
#define GRANITE                                                                                    \
    COMMON("granitemoehybrid")                                                                     \
    ",\"shared_intermediate_size\":48,\"mamba_n_heads\":4,\"mamba_d_state\":8,\"mamba_d_conv\":4," \
    "\"mamba_n_groups\":1,\"num_key_value_heads\":2,\"layer_types\":[\"mamba\",\"attention\"]" TIED
#define FALCON                                                                                     \
    COMMON("falcon_h1")                                                                            \
    ",\"mamba_n_heads\":4,\"mamba_d_state\":8,\"mamba_d_conv\":4,\"mamba_n_groups\":1" TIED
/* Of num_hidden_layers, which is 2. */
#define NEMOTRON_SIZES                                                                             \
    COMMON("nemotron_h")                                                                           \
    ",\"head_dim\":8,\"mamba_num_heads\":4,\"mamba_head_dim\":16,\"n_groups\":2"
#define NEMOTRON NEMOTRON_SIZES ",\"hybrid_override_pattern\":\"*-\"" TIED
#define MOE      COMMON("qwen3_moe") ",\"num_experts_per_tok\":2,\"moe_intermediate_size\":8" TIED
#define QWEN35_SIZES                                                                                     \
    COMMON("qwen3_5_text")                                                                               \
    ",\"head_dim\":8,\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_key_head_dim\":8," \
    "\"linear_value_head_dim\":16"
#define QWEN35 QWEN35_SIZES TIED
#define IMAGES                                                                                     \
    "{\"model_type\":\"qwen3_5\",\"vision_config\":{\"depth\":2},\"text_config\":" QWEN35 "}"
#define GEMMA4_SIZES                                                                               \
    COMMON("gemma4_text")                                                                          \
    ",\"num_key_value_heads\":2,\"head_dim\":8,"                                                   \
    "\"layer_types\":[\"sliding_attention\",\"full_attention\"]"
#define GEMMA4 GEMMA4_SIZES ",\"global_head_dim\":16}"
#define SOUNDS                                                                                             \
    "{\"model_type\":\"gemma4\",\"audio_config\":{\"depth\":2},\"boa_token_id\":5,\"text_config\":" GEMMA4 \
    "}"
#define LFM2 COMMON("lfm2") ",\"conv_L_cache\":3,\"norm_eps\":1e-5}"

/* Members that come last; "" in config: as it is. */
typedef struct row {
    const char *config, *members;
    tg_status status;
    const char *says;
} row;
#define BAD  TG_E_FORMAT
#define ODD  TG_E_UNSUPPORTED
#define FULL "\"rope_type\":\"default\",\"rope_theta\":1e6"

#define YARN(more) "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4" more "}"
#define LONGROPE(shorter, longer)                                                                  \
    "\"original_max_position_embeddings\":16,\"rope_scaling\":{\"type\":\"longrope\","             \
    "\"short_factor\":[" shorter "],\"long_factor\":[" longer "]}"

static const row rows[] = {
    { LLAMA, "", TG_OK, "llama.block_count=2" },
    { "[1]", "", BAD, "want a JSON object" },
    { "{}", "", ODD, "model_type: want one of gpt2 llama mistral smollm3 qwen2" },
    { "{\"model_type\":7}", "", ODD, "bert, have 7" },
    { "{\"model_type\":\"llama\"}", "", BAD, "num_hidden_layers: want a whole number" },
    { GPT2, "", TG_OK, "gpt2.feed_forward_length=128" },
    { GPT2, "\"n_inner\":99", TG_OK, "gpt2.feed_forward_length=99" },
    { "{\"model_type\":\"gpt2\",\"n_layer\":2}", "", BAD, "n_embd: want" },
    /* sizes and numbers */
    { LLAMA, "\"vocab_size\":0", BAD, "vocab_size: want a whole number in 1..2147483647, have 0" },
    { LLAMA, "\"vocab_size\":2147483648", BAD, "have 2147483648" },
    { LLAMA, "\"vocab_size\":2.5", BAD, "have 2.5" },
    { LLAMA, "\"vocab_size\":null", TG_OK, "" },
    { LLAMA, "\"vocab_size\":5", TG_OK, "llama.vocab_size=5" },
    { LLAMA, "\"head_dim\":\"x\"", BAD, "head_dim: want a whole number" },
    { LLAMA, "\"rms_norm_eps\":0", BAD, "rms_norm_eps: want a number above 0, have 0" },
    { LLAMA, "\"rms_norm_eps\":\"x\"", BAD, "rms_norm_eps: want a number above 0, have x" },
    { LLAMA, "\"rms_norm_eps\":1e30", BAD, "rms_norm_eps: want a number above 0" },
    { LLAMA, "\"rms_norm_eps\":0.5", TG_OK, "llama.attention.layer_norm_rms_epsilon=0.5" },
    /* activations and switches */
    { LLAMA, "\"hidden_act\":\"silu\"", TG_OK, "" },
    { LLAMA, "\"hidden_act\":\"gelu\"", ODD, "hidden_act: want silu, have gelu" },
    { GPT2, "\"activation_function\":\"tanh\"", ODD,
      "want gelu_new or gelu_pytorch_tanh or gelu, have tanh" },
    { GPT2, "\"activation_function\":\"gelu\"", TG_OK, "" },
    { BERT, "\"hidden_act\":\"gelu\"", TG_OK, "bert.pooling_type=1" },
    { LLAMA, "\"use_sliding_window\":false", TG_OK, "" },
    { LLAMA, "\"use_sliding_window\":0", TG_OK, "" },
    { LLAMA, "\"use_sliding_window\":\"\"", TG_OK, "" },
    { LLAMA, "\"use_sliding_window\":[]", TG_OK, "" },
    { LLAMA, "\"use_sliding_window\":{}", TG_OK, "" },
    { LLAMA, "\"use_sliding_window\":null", TG_OK, "" },
    { LLAMA, "\"use_sliding_window\":true", ODD, "use_sliding_window: want none, have true" },
    { LLAMA, "\"use_sliding_window\":1", ODD, "use_sliding_window: want none, have 1" },
    { LLAMA, "\"use_sliding_window\":\"x\"", ODD, "use_sliding_window: want none, have x" },
    { LLAMA, "\"use_sliding_window\":[0]", ODD, "use_sliding_window: want none" },
    { LLAMA, "\"use_sliding_window\":{\"a\":0}", ODD, "use_sliding_window: want none" },
    { BERT, "\"position_embedding_type\":\"absolute\"", TG_OK, "" },
    { BERT, "\"position_embedding_type\":\"relative_key\"", ODD,
      "position_embedding_type: want absolute, have relative_key" },
    /* what is known by its name alone */
    { LLAMA, "\"torch_dtype\":[1]", TG_OK, "" },
    { LLAMA, "\"num_experts\":0", TG_OK, "" },
    { LLAMA, "\"num_experts\":8", ODD, "num_experts: want keys that are known" },
    { LLAMA, "\"logits_scaling\":1.0", TG_OK, "" },
    { LLAMA, "\"is_causal\":true", TG_OK, "" },
    { LLAMA, "\"is_causal\":false", ODD, "is_causal: want keys that are known" },
    { LLAMA, "\"logits_scaling\":2", ODD, "logits_scaling: want keys that are known" },
    { LLAMA, "\"brand_new\":null", TG_OK, "" },
    { LLAMA, "\"brand_new\":[[1],{\"a\":{}}]", ODD, "brand_new: want keys that are known" },
    /* windows that are off */
    { LLAMA, "\"layer_types\":[\"full_attention\"]", TG_OK, "" },
    { LLAMA, "\"layer_types\":[\"full_attention\",\"x\"]", ODD, "in all layers, have x" },
    { LLAMA, "\"sliding_window\":9", ODD, "sliding_window: want keys that are known" },
    { QWEN2, "\"sliding_window\":9,\"max_window_layers\":1", TG_OK, "" },
    /* rope */
    { LLAMA, "\"rope_theta\":5", TG_OK, "llama.rope.freq_base=5" },
    { LLAMA, "\"rope_theta\":-5", BAD, "rope_theta: want a number above 0" },
    { LLAMA, "\"partial_rotary_factor\":1.0", TG_OK, "" },
    { LLAMA, "\"partial_rotary_factor\":0.5", ODD, "partial_rotary_factor: want 1, have 0.5" },
    { LLAMA, "\"rope_scaling\":{\"rope_type\":\"default\",\"x\":null}", TG_OK, "" },
    { LLAMA, "\"rope_scaling\":{\"x\":1}", ODD, "rope: x: want no such key" },
    { LLAMA, "\"rope_scaling\":{\"type\":\"linear\",\"factor\":4}", TG_OK,
      "llama.rope.scaling.factor=4" },
    { LLAMA, "\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}", BAD, "factor: want" },
    { LLAMA, "\"rope_scaling\":{\"type\":\"dynamic\"}", ODD,
      "want default, linear, yarn or llama3, have dynamic" },
    { LLAMA, "\"rope_scaling\":{\"type\":\"yarn\"}", ODD, "rope of yarn: want a factor above 1" },
    { LLAMA, YARN(""), TG_OK, "llama.rope.scaling.factor=4" },
    { LLAMA, YARN(""), TG_OK, "llama.rope.scaling.original_context_length=64" },
    { LLAMA, YARN(",\"original_max_position_embeddings\":8"), TG_OK,
      "llama.rope.scaling.original_context_length=8" },
    { LLAMA, YARN(",\"beta_fast\":16"), ODD, "bounds of 32 and 1" },
    { LLAMA, YARN(",\"mscale\":1"), ODD, "rope: mscale: want no such key" },
    { OLMO3, "", TG_OK, "olmo2.attention.sliding_window=4096" },
    { OLMO3, "", TG_OK, "!olmo2.attention.scale" },
    { OLMO3, "\"rope_theta\":7", TG_OK, "olmo2.rope.freq_base_swa=500000" },
    { GEMMA2, "", TG_OK, "gemma2.attn_logit_softcapping=50" },
    { GEMMA2, "\"attn_logit_softcapping\":null", TG_OK, "gemma2.attn_logit_softcapping=0" },
    { GEMMA2, "\"final_logit_softcapping\":7", TG_OK, "gemma2.final_logit_softcapping=7" },
    { GEMMA2, "\"final_logit_softcapping\":-7", BAD, "final_logit_softcapping: want a number" },
    { GEMMA2, "", TG_OK, "!gemma2.rope.freq_base_swa" },
    { GEMMA2, "\"layer_types\":[\"sliding_attention\",\"full_attention\"]", TG_OK,
      "!gemma2.attention.sliding_window_pattern" },
    { GEMMA, "\"attn_logit_softcapping\":50", ODD, "attn_logit_softcapping: want none" },
    { MISTRAL, "", TG_OK, "llama.attention.sliding_window=4096" },
    { MISTRAL, "\"sliding_window\":9", TG_OK, "llama.attention.sliding_window=9" },
    { MISTRAL, "\"sliding_window\":null", TG_OK, "!llama.attention.sliding_window" },
    { SMOLLM3, "", TG_OK, "smollm3.rope.freq_base=2000000" },
    { SMOLLM3, "\"no_rope_layers\":[1,1,1,0,1]", TG_OK, "" },
    { SMOLLM3, "\"no_rope_layers\":[1,1,0]", ODD, "no_rope_layers: want one layer of every 4" },
    { SMOLLM3, "\"no_rope_layer_interval\":3", ODD, "no_rope_layer_interval: want one layer" },
    { PHI3, "\"partial_rotary_factor\":0.5", TG_OK, "phi3.rope.dimension_count=4" },
    { PHI3, "\"partial_rotary_factor\":0.4", BAD, "want an even number of a head's 8 elements" },
    { PHI3, LONGROPE("1,1", "2,2"), BAD, "rope: short_factor: want 4 numbers above 0" },
    { PHI3, LONGROPE("1,1,1,1", "2,2,0,2"), BAD, "rope: long_factor: want 4 numbers above 0" },
    { PHI3, LONGROPE("1,1,1,1", "2,2,2,2"), TG_OK, "phi3.rope.scaling.original_context_length=16" },
    { LLAMA, "\"rope_scaling\":{\"partial_rotary_factor\":2}", ODD, "want 1, have 2" },
    { LLAMA, "\"rope_parameters\":{" FULL "}", TG_OK, "llama.rope.freq_base=1e6" },
    { LLAMA, "\"rope_parameters\":{\"rope_theta\":0}", BAD, "rope_theta: want" },
    { LLAMA, "\"rope_parameters\":{\"full_attention\":{" FULL "},\"x\":1}", ODD, "rope: x: want" },
    { LLAMA, "\"rope_parameters\":{\"full_attention\":{" FULL ",\"x\":1}}", ODD, "rope: x: want" },
#define LLAMA3(factor, low, high, original)                                                        \
    "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":" factor ",\"low_freq_factor\":" low    \
    ",\"high_freq_factor\":" high ",\"original_max_position_embeddings\":" original "}"
    { LLAMA, LLAMA3("8", "1", "4", "64"), TG_OK, "" },
    { LLAMA, "\"head_dim\":6," LLAMA3("8", "1", "4", "64"), TG_OK, "" },
    { LLAMA, "\"head_dim\":1," LLAMA3("8", "1", "4", "64"), BAD,
      "head_dim: want 2..65536, have 1" },
    { LLAMA, "\"head_dim\":65537," LLAMA3("8", "1", "4", "64"), BAD, "have 65537" },
    { LLAMA, LLAMA3("0", "1", "4", "64"), BAD, "factor: want a number above 0" },
    { LLAMA, LLAMA3("0.5", "1", "4", "64"), BAD, "rope of llama3: want factor of 1 or more" },
    { LLAMA, LLAMA3("8", "-1", "4", "64"), BAD, "low_freq_factor: want a number" },
    { LLAMA, LLAMA3("8", "null", "4", "64"), BAD, "have 8, 0, 4, 64" },
    { LLAMA, LLAMA3("8", "1", "\"x\"", "64"), BAD, "high_freq_factor: want a number" },
    { LLAMA, LLAMA3("8", "4", "4", "64"), BAD, "have 8, 4, 4, 64" },
    { LLAMA, LLAMA3("8", "1", "4", "true"), BAD, "original_max_position_embeddings: want" },
    { LLAMA, LLAMA3("8", "1", "4", "null"), BAD, "have 8, 1, 4, 0" },
    { COMMON("llama") ",\"num_key_value_heads\":\"x\"}", "", BAD, "num_key_value_heads: want" },
    { GEMMA, LLAMA3("8", "1", "4", "64"), ODD,
      "want default, linear, yarn or llama3, have llama3" },
    /* windows, and a rope of their own */
    { GEMMA, "", TG_OK, "gemma3.attention.sliding_window=4096" },
    { GEMMA, "\"query_pre_attn_scalar\":4", TG_OK, "gemma3.attention.scale=0.5" },
    { GEMMA, "\"query_pre_attn_scalar\":0", BAD, "query_pre_attn_scalar: want" },
    { GEMMA, "\"sliding_window_pattern\":0", BAD, "sliding_window_pattern: want" },
    { GEMMA, "\"sliding_window_pattern\":3", TG_OK, "gemma3.attention.sliding_window_pattern=3" },
    { GEMMA, "\"sliding_window_pattern\":6", TG_OK, "" },
    { GEMMA, "\"_sliding_window_pattern\":2", TG_OK, "gemma3.attention.sliding_window_pattern=2" },
    { GEMMA, "\"_sliding_window_pattern\":-2", BAD, "_sliding_window_pattern: want" },
    { GEMMA, "\"layer_types\":[\"sliding_attention\",\"full_attention\"]", TG_OK,
      "gemma3.attention.sliding_window_pattern=2" },
    { GEMMA, "\"layer_types\":[]", TG_OK, "gemma3.attention.sliding_window_pattern=1" },
    { GEMMA, "\"layer_types\":[\"sliding_attention\"]", TG_OK,
      "gemma3.attention.sliding_window_pattern=2" },
    { GEMMA, "\"layer_types\":[\"full_attention\",\"sliding_attention\"]", ODD,
      "one layer of every 1 without a window, have sliding_attention as number 2" },
    { GEMMA, "\"rope_local_base_freq\":7", TG_OK, "gemma3.rope.freq_base_swa=7" },
    { GEMMA, "\"rope_local_base_freq\":\"x\"", BAD, "rope_local_base_freq: want" },
#define SLIDING(members)                                                                           \
    "\"rope_parameters\":{\"full_attention\":{" FULL "},\"sliding_attention\":{" members "}}"
    { GEMMA, SLIDING("\"rope_theta\":3"), TG_OK, "gemma3.rope.freq_base_swa=3" },
    { GEMMA, SLIDING("\"rope_theta\":0"), BAD, "rope_theta: want" },
    { GEMMA, SLIDING("\"rope_type\":\"default\""), TG_OK, "" },
    { GEMMA, SLIDING("\"rope_type\":\"linear\""), ODD, "rope of sliding_attention: want default" },
    { GEMMA, SLIDING("\"partial_rotary_factor\":0.25"), ODD, "want 1, have 0.25" },
    { GEMMA, SLIDING("\"x\":1"), ODD, "rope: x: want no such key" },
    /* layers of two kinds, and an MLP that is stated in another way than it is */
    { LFM2, "", TG_OK, "lfm2.attention.head_count_kv=[4,4]" },
    { LFM2, "\"full_attn_idxs\":[1],\"num_key_value_heads\":2", TG_OK,
      "lfm2.attention.head_count_kv=[0,2]" },
    { LFM2, "\"layer_types\":[\"full_attention\",\"conv\"]", TG_OK,
      "lfm2.attention.head_count_kv=[4,0]" },
    { LFM2, "\"layer_types\":[\"conv\"]", BAD, "layer_types: want one for each of 2 layers" },
    { LFM2, "\"layer_types\":7", BAD, "layer_types: want one for each of 2 layers, have 7" },
    { LFM2, "\"layer_types\":[\"conv\",\"x\"]", ODD, "want full_attention or conv, have x" },
    { LFM2, "", TG_OK, "lfm2.feed_forward_length=256" },
    { LFM2, "\"block_multiple_of\":16", TG_OK, "lfm2.feed_forward_length=48" },
    { LFM2, "\"block_ff_dim\":99,\"block_auto_adjust_ff_dim\":false", TG_OK,
      "lfm2.feed_forward_length=99" },
    { LFM2, "\"block_ffn_dim_multiplier\":2,\"block_multiple_of\":1", TG_OK,
      "lfm2.feed_forward_length=84" },
    { LFM2, "\"conv_bias\":true", ODD, "conv_bias: want none" },
    { COMMON("lfm2") ",\"norm_eps\":1e-5}", "", BAD, "conv_L_cache: want" },
    /* scales, states and steps; layers by their old and their new names */
    { GRANITE, "", TG_OK, "granitehybrid.attention.head_count_kv=[0,2]" },
    { GRANITE, "\"mamba_d_head\":16,\"residual_multiplier\":0.5", TG_OK,
      "granitehybrid.residual_scale=0.5" },
    { GRANITE, "\"mamba_d_head\":\"auto\",\"time_step_limit\":[0.0,{\"__float__\":\"Infinity\"}]",
      TG_OK, "granitehybrid.ssm.inner_size=64" },
    /* layers that are one thing each, by letters or names; of experts nothing is left */
    { NEMOTRON, "", TG_OK, "nemotron_h.attention.head_count_kv=[4,0]" },
    { NEMOTRON, "\"num_key_value_heads\":2,\"chunk_size\":7,\"moe_latent_size\":null", TG_OK,
      "nemotron_h.feed_forward_length=[0,64]" },
    { NEMOTRON, "\"layers_block_type\":[\"mlp\",\"mamba\"]", TG_OK,
      "nemotron_h.feed_forward_length=[64,0]" },
    { NEMOTRON, "\"layers_block_type\":[\"linear_attention\",\"full_attention\"]", TG_OK,
      "nemotron_h.attention.head_count_kv=[0,4]" },
    { NEMOTRON, "\"time_step_limit\":[0.0,{\"__float__\":\"Infinity\"}]", TG_OK,
      "nemotron_h.ssm.inner_size=64" },
    { NEMOTRON, "\"layers_block_type\":[\"mlp\",\"moe\"]", ODD, "have moe as number 2" },
    { NEMOTRON, "\"layers_block_type\":[\"mlp\"]", BAD,
      "want a kind for each of num_hidden_layers" },
    { NEMOTRON, "\"layers_block_type\":7", BAD, "layers_block_type: want a kind for each" },
    { NEMOTRON_SIZES ",\"hybrid_override_pattern\":\"ME\"" TIED, "", ODD, "have ME as number 2" },
    { NEMOTRON_SIZES TIED, "", BAD, "hybrid_override_pattern: want a kind for each" },
    { NEMOTRON, "\"use_bias\":true", ODD, "use_bias: want none, have true" },
    { NEMOTRON, "\"use_conv_bias\":false", ODD, "use_conv_bias: want true" },
    { NEMOTRON, "\"mamba_hidden_act\":\"relu\"", ODD, "mamba_hidden_act: want silu, have relu" },
    { NEMOTRON, "\"mlp_hidden_act\":\"silu\"", ODD, "mlp_hidden_act: want relu2, have silu" },
    { NEMOTRON, "\"time_step_limit\":[0.0,0.1]", ODD, "time_step_limit: want none" },
    { NEMOTRON, "\"num_nextn_predict_layers\":1", ODD, "num_nextn_predict_layers: want none" },
    { NEMOTRON, "\"mamba_head_dim\":1025", BAD, "mamba_head_dim" },
    { NEMOTRON, "\"mamba_n_groups\":2", ODD, "mamba_n_groups: want keys that are known" },
    /* a rhythm, a list or none; parts of heads; texts of models that see images */
    { QWEN35, "", TG_OK, "qwen35.attention.recurrent_layers=[1,1]" },
    { QWEN35, "\"full_attention_interval\":2", TG_OK, "qwen35.attention.recurrent_layers=[1,0]" },
    { QWEN35, "\"layer_types\":[\"full_attention\",\"linear_attention\"]", TG_OK,
      "qwen35.attention.recurrent_layers=[0,1]" },
    { QWEN35, "", TG_OK, "qwen35.ssm.inner_size=64" },
    { QWEN35, "", TG_OK, "qwen35.rope.dimension_count=2" },
    { QWEN35,
      "\"rope_parameters\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.5,"
      "\"mrope_section\":[1,1,0]}",
      TG_OK, "qwen35.rope.dimension_count=4" },
    { QWEN35, "\"attn_output_gate\":false", ODD, "attn_output_gate: want true, have false" },
    { QWEN35, "\"layer_types\":[\"conv\",\"conv\"]", ODD,
      "want full_attention or linear_attention, have conv" },
    { IMAGES, "", TG_OK, "qwen35.ssm.inner_size=64" },
    { IMAGES, "\"image_token_id\":7,\"tie_word_embeddings\":true", TG_OK, "" },
    { IMAGES, "\"speech_config\":{}", ODD,
      "speech_config: want keys that are known beside text_config" },
    /* layers that differ: heads, MLPs and keys; what belongs to other models is refused by name */
    { GEMMA4, "", TG_OK, "gemma4.attention.key_length=16" },
    { GEMMA4, "", TG_OK, "gemma4.attention.key_length_swa=8" },
    { GEMMA4, "", TG_OK, "gemma4.feed_forward_length=64" },
    { GEMMA4_SIZES ",\"per_layer_config\":{\"1\":{\"head_dim\":32}}}", "", TG_OK,
      "gemma4.attention.key_length=32" },
    { GEMMA4_SIZES ",\"per_layer_config\":{\"0\":{\"head_dim\":32}}}", "", ODD,
      "per_layer_config: want a head_dim for each layer of full_attention" },
    { GEMMA4_SIZES ",\"per_layer_config\":{\"1\":{\"num_key_value_heads\":1}}}", "", ODD,
      "per_layer_config: 1: want head_dim alone" },
    { GEMMA4, "\"num_kv_shared_layers\":1,\"use_double_wide_mlp\":true", TG_OK,
      "gemma4.feed_forward_length=[64,128]" },
    { GEMMA4, "\"num_kv_shared_layers\":0,\"use_double_wide_mlp\":true", TG_OK,
      "gemma4.feed_forward_length=64" },
    { GEMMA4, "\"num_kv_shared_layers\":2", BAD, "num_kv_shared_layers: want 0..1, have 2" },
    { GEMMA4, "\"vocab_size_per_layer_input\":8", ODD,
      "vocab_size_per_layer_input: want 262144, as vocab_size has, have 8" },
    { GEMMA4, "\"hidden_size_per_layer_input\":0", BAD,
      "hidden_size_per_layer_input: want a whole" },
    { GEMMA4, "\"final_logit_softcapping\":30.0", TG_OK, "gemma4.final_logit_softcapping=30" },
    { GEMMA4, "\"use_bidirectional_attention\":\"vision\",\"num_global_key_value_heads\":1", TG_OK,
      "" },
    { GEMMA4, "\"use_bidirectional_attention\":\"all\"", ODD, "want vision or none, have all" },
    { GEMMA4, "\"attention_k_eq_v\":true", ODD, "attention_k_eq_v: want none, have true" },
    { GEMMA4, "\"enable_moe_block\":true", ODD, "enable_moe_block: want none, have true" },
    { GEMMA4, "\"laurel_rank\":64", ODD, "laurel_rank: want keys that are known" },
    { GEMMA4,
      "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"proportional\",\"factor\":2.0}}",
      ODD, "rope of proportional: want a part of up to 1 of a head, and a factor of 1" },
    { GEMMA4, "\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"proportional\"}}", ODD,
      "rope of sliding_attention: want default, have proportional" },
    { SOUNDS, "", TG_OK, "gemma4.attention.key_length=16" },
    { GRANITE, "\"mamba_d_head\":15", BAD, "mamba_d_head: want heads of 64 columns in all" },
    { GRANITE, "\"time_step_limit\":[0.0,0.1]", ODD, "time_step_limit: want none" },
    { GRANITE, "\"normalization_function\":\"rmsnorm\",\"init_method\":\"mup\"", TG_OK, "" },
    { GRANITE, "\"normalization_function\":\"layernorm\"", ODD, "want rmsnorm, have layernorm" },
    { GRANITE, "\"mamba_proj_bias\":true", ODD, "mamba_proj_bias: want none" },
    { GRANITE, "\"mamba_conv_bias\":false", ODD, "mamba_conv_bias: want keys that are known" },
    { FALCON, "", TG_OK, "falcon-h1.ssm.inner_size=64" },
    { FALCON, "\"mamba_expand\":3", TG_OK, "falcon-h1.ssm.inner_size=96" },
    { FALCON, "\"mamba_d_ssm\":48,\"mamba_expand\":3,\"mamba_d_head\":12,\"mamba_use_mlp\":true",
      TG_OK, "falcon-h1.ssm.inner_size=48" },
    { FALCON, "\"mamba_expand\":65", BAD, "mamba_d_head: want heads of 2147483647 columns" },
    { FALCON, "\"mamba_d_ssm\":48,\"mamba_d_head\":16", BAD, "heads of 48 columns in all, have 4" },
    { FALCON, "\"mamba_rms_norm\":true", ODD, "mamba_norm_before_gate: want false beside" },
    { FALCON, "\"mamba_rms_norm\":true,\"mamba_norm_before_gate\":true", ODD, "gate: want false" },
    { FALCON, "\"mamba_rms_norm\":true,\"mamba_norm_before_gate\":false", TG_OK, "" },
    { FALCON, "\"mamba_rms_norm\":false,\"mamba_norm_before_gate\":true", TG_OK, "" },
    { FALCON, "\"projectors_bias\":true", ODD, "projectors_bias: want none, have true" },
    { FALCON, "\"mamba_use_mlp\":false", ODD, "mamba_use_mlp: want keys that are known" },
    { FALCON, "\"time_step_limit\":[0.0,0.1]", ODD, "time_step_limit: want none" },
    { FALCON, "\"mlp_multipliers\":[1,2,3]", BAD, "mlp_multipliers: want 2 numbers above 0" },
    { FALCON, "\"mlp_multipliers\":2", BAD, "mlp_multipliers: want 2 numbers above 0, have 2" },
    { FALCON, "\"ssm_multipliers\":[1,1,1,1,0]", BAD, "ssm_multipliers: want 5 numbers above 0" },
    { FALCON, "\"key_multiplier\":-1", BAD, "key_multiplier: want a number above 0" },
    { FALCON, "\"mlp_multipliers\":null,\"key_multiplier\":0.5", BAD, "tensor lm_head.weight" },
    { MOE, "\"num_experts\":1024", TG_OK, "qwen3moe.expert_count=1024" },
    { MOE, "\"num_experts\":1025", BAD, "num_experts: want 1..1024 experts, have 1025" },
    { MOE, "\"num_local_experts\":2147483647", BAD, "num_local_experts: want 1..1024 experts" },
    { MOE, "\"num_experts\":0", BAD, "num_experts: want a whole number" },
    { GRANITE, "\"num_local_experts\":62", ODD, "num_local_experts: want none, have 62" },
    { GRANITE, "\"position_embedding_type\":\"rope\"", ODD, "want nope, have rope" },
    /* heads and quantisation */
    { COMMON("llama") "}", "", BAD, "tensor lm_head.weight: want it, as tie_word_embeddings" },
    { BERT, "\"tie_word_embeddings\":true", TG_OK, "" },
    { LLAMA, "\"quantization\":{\"group_size\":64,\"bits\":4}", TG_OK, "" },
    { LLAMA, "\"quantization\":{\"group_size\":32,\"mode\":\"affine\"}", TG_OK, "" },
    { LLAMA, "\"quantization_config\":{\"group_size\":128}", TG_OK, "" },
    { LLAMA, "\"quantization\":{\"group_size\":48}", ODD, "want 32, 64 or 128, have 48" },
    { LLAMA, "\"quantization\":{}", BAD, "group_size: want a whole number" },
    { LLAMA, "\"quantization\":{\"mode\":\"mxfp4\",\"group_size\":32}", TG_OK, "" },
    { LLAMA, "\"quantization\":{\"mode\":\"mxfp8\",\"group_size\":32}", ODD, "have mxfp8" },
    { LLAMA, "\"quantization\":{\"quant_method\":\"aqlm\"}", ODD, "have aqlm" },
    { LLAMA, "\"quantization_config\":{\"quant_method\":\"gptq\"}", BAD, "bits: want a whole" },
    /* ends of texts */
    { LLAMA, "\"eos_token_id\":7", TG_OK, "tokenizer.ggml.eos_token_id=7" },
    { LLAMA, "\"eos_token_id\":[5,6]", TG_OK, "tokenizer.ggml.eos_token_id=5" },
    { LLAMA, "\"eos_token_id\":[]", TG_OK, "" },
    { LLAMA, "\"eos_token_id\":null", TG_OK, "" },
    { LLAMA, "\"eos_token_id\":-1", BAD, "config.json: eos_token_id: want ids, have -1" },
    { LLAMA, "\"eos_token_id\":[1,2147483648]", BAD, "want ids, have 2147483648" },
    { LLAMA, "\"eos_token_id\":\"x\"", BAD, "want ids, have x" },
};

static void configs(void **state) {
    (void)state;
    put_tensors("model.safetensors", "{}", 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[1024];
        const row *r = &rows[i];
        const bool more = *r->members != '\0';
        snprintf(text, sizeof text, "%.*s%s%s%s", (int)strlen(r->config) - more, r->config,
                 more ? "," : "", r->members, more ? "}" : "");
        put("config.json", text);
        check(text, r->status, r->says);
    }
}

/* ---------------------------------------------------------------------------- files beside it */

static const struct {
    const char *config, *name, *text;
    tg_status status;
    const char *says;
} beside[] = {
#define GENERATION "generation_config.json"
    { LLAMA, GENERATION, "{", BAD, "generation_config.json" },
    { LLAMA, GENERATION, "{\"eos_token_id\":9}", TG_OK, "tokenizer.ggml.eos_token_id=9" },
    { LLAMA, GENERATION, "{\"eos_token_id\":null}", TG_OK, "" },
    { LLAMA, GENERATION, "{\"eos_token_id\":true}", BAD, "generation_config.json: eos_token_id" },
    { LLAMA, GENERATION, "{\"top_k\":5,\"temperature\":0.5}", TG_OK, "general.sampling.top_k=5" },
    { LLAMA, GENERATION, "{\"temperature\":2}", TG_OK, "general.sampling.temp=2" },
    { LLAMA, GENERATION, "{\"do_sample\":true,\"top_p\":0.5}", TG_OK,
      "general.sampling.top_p=0.5" },
    { LLAMA, GENERATION, "{\"do_sample\":false,\"top_k\":\"x\"}", TG_OK, "" },
    { LLAMA, GENERATION, "{\"top_k\":\"x\",\"top_p\":\"x\"}", TG_OK, "" },
    { LLAMA, "chat_template.jinja", "{{ x }}", TG_OK, "" },
    { LLAMA, "tokenizer_config.json", "{", BAD, "tokenizer_config.json" },
    { LLAMA, "tokenizer_config.json", "{\"chat_template\":\"x\"}", TG_OK, "" },
    { LLAMA, "tokenizer_config.json", "{\"chat_template\":5}", TG_OK, "" },
    { LLAMA, "tokenizer_config.json",
      "{\"chat_template\":[{\"name\":\"x\",\"template\":\"x\"},{\"name\":\"default\"},{},"
      "{\"name\":\"default\",\"template\":1},{\"name\":\"default\",\"template\":\"y\"}]}",
      TG_OK, "" },
    { LLAMA, "tokenizer_config.json", "{\"chat_template\":[]}", TG_OK, "" },
    { LLAMA, "chat_template.json", "{\"chat_template\":\"x\"}", TG_OK, "" },
#define POOLING "1_Pooling/config.json"
    { BERT, POOLING, "x", BAD, POOLING },
    { BERT, POOLING, "{}", TG_OK, "bert.pooling_type=1" },
    { BERT, POOLING, "{\"pooling_mode_cls_token\":true}", TG_OK, "bert.pooling_type=2" },
    { BERT, POOLING, "{\"pooling_mode_cls_token\":true,\"pooling_mode_lasttoken\":true}", TG_OK,
      "bert.pooling_modes=cls,lasttoken" },
    { BERT, POOLING, "{\"pooling_mode_of_tomorrow\":true}", TG_E_UNSUPPORTED,
      "1_Pooling/config.json: pooling_mode_of_tomorrow" },
    { BERT, POOLING, "{\"pooling_mode_of_tomorrow\":false,\"pooling_mode_cls_token\":true}", TG_OK,
      "bert.pooling_type=2" },
    { BERT, POOLING, "{\"pooling_mode_max_tokens\":true}", TG_OK, "bert.pooling_modes=max" },
    { BERT, POOLING, "{\"pooling_mode\":\"lasttoken\"}", TG_OK, "bert.pooling_type=3" },
    { LLAMA, POOLING, "{\"pooling_mode\":[\"mean\",\"cls\"]}", TG_OK,
      "llama.pooling_modes=mean,cls" },
    { LLAMA, POOLING, "{\"pooling_mode\":[\"mean\",1]}", ODD, "pooling_mode: want" },
    { BERT, POOLING,
      "{\"pooling_mode\":[\"cls\",\"cls\",\"cls\",\"cls\",\"cls\",\"cls\",\"cls\",\"cls\","
      "\"cls\"]}",
      ODD, "want up to 8 ways" },
    { BERT, "modules.json", "[{\"type\":\"a.b.Pooling\",\"path\":\"x\"}]", TG_OK,
      "bert.pooling_type=1" },
    { BERT, "modules.json", "[{\"type\":\"a.b.Dense\",\"path\":\"x\"}]", ODD, "have a.b.Dense" },
    { BERT, "modules.json", "[{\"path\":\"x\"}]", ODD, "have none" },
#define SENTENCES "sentence_bert_config.json"
    { BERT, SENTENCES, "[", BAD, SENTENCES },
    { BERT, SENTENCES, "{\"max_seq_length\":128}", TG_OK, "bert.embedding_tokens=128" },
    { BERT, SENTENCES, "{\"max_seq_length\":null}", TG_OK, "" },
    { BERT, SENTENCES, "{}", TG_OK, "" },
    { BERT, SENTENCES, "{\"max_seq_length\":0}", BAD, "max_seq_length: want a number of tokens" },
    { BERT, SENTENCES, "{\"max_seq_length\":\"9\"}", BAD, "max_seq_length: want" },
    { BERT, SENTENCES, "{\"max_seq_length\":1.5}", BAD, "max_seq_length: want" },
    { BERT, SENTENCES, "{\"max_seq_length\":2147483648}", BAD, "max_seq_length: want" },
#define INDEX "model.safetensors.index.json"
    { LLAMA, INDEX, "{", BAD, INDEX },
    { LLAMA, INDEX, "{}", BAD, "weight_map" },
    { LLAMA, INDEX, "{\"weight_map\":{\"a\":1}}", BAD, "want the name of a file" },
    { LLAMA, INDEX, "{\"weight_map\":{\"a\":\"m\\u0000\"}}", BAD, "want the name of a file" },
    { LLAMA, INDEX, "{\"weight_map\":{\"a\":\"..\"}}", BAD, "want the name of a file in it" },
    { LLAMA, INDEX, "{\"weight_map\":{\"a\":\"b/c\"}}", BAD, "want files of this folder" },
    { LLAMA, INDEX, "{\"weight_map\":{\"a\":\"none.st\"}}", TG_E_IO, "none.st" },
    { LLAMA, INDEX, "{\"weight_map\":{\"a\":\"model.safetensors\",\"b\":\"model.safetensors\"}}",
      TG_OK, "" },
};

static void files_beside(void **state) {
    (void)state;
    char path[256];
    put_tensors("model.safetensors", "{}", 0);
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        put("config.json", beside[i].config);
        put(beside[i].name, beside[i].text);
        check(beside[i].text, beside[i].status, beside[i].says);
        snprintf(path, sizeof path, "%s/%s", folder, beside[i].name);
        assert_int_equal(remove(path), 0);
    }
}

/* Folders without the files that are read. */
static void other_folders(void **state) {
    (void)state;
    static const char *const others[][2] = {
        { "adapter_config.json", "an adapter" },
        { "pytorch_model.bin", "a pickle" },
        { "pytorch_model.bin.index.json", "pickles" },
        { "tf_model.h5", "TensorFlow" },
        { "flax_model.msgpack", "Flax" },
        { "consolidated.safetensors", "Mistral's own names" },
    };
    check("nothing", BAD, "want a folder with a config.json, have none");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        put(others[i][0], "");
        check(others[i][0], ODD, others[i][1]);
        put("config.json", LLAMA);
        check(others[i][0], ODD, others[i][1]);
        assert_int_equal(clear(NULL), 0);
    }
    put("config.json", LLAMA);
    check("no tensors", TG_E_IO, "model.safetensors");
}

/* Texts beyond all reason are not read: holes of a file cost nothing here. */
static void long_texts(void **state) {
    (void)state;
    char path[128];
    put_tensors("model.safetensors", "{}", 0);
    put("config.json", LLAMA);
    put("tokenizer.json", "");
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    assert_int_equal(truncate(path, ((off_t)256 << 20) + 1), 0);
    check("tokenizer.json", BAD, "want at most 268435456 bytes, have 268435457");
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(truncate(path, ((off_t)1 << 24) + 1), 0);
    check("config.json", BAD, "want at most 16777216 bytes, have 16777217");
}

/* ----------------------------------------------------------------------------------------- tensors
 */

#define T(name, dtype, shape, end)                                                                 \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[0," #end "]}"
#define U(name, dtype, shape, begin, end)                                                          \
    ",\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #begin       \
    "," #end "]}"
#define MLX COMMON("llama") ",\"quantization\":{\"group_size\":32}" TIED

static const struct {
    const char *config, *header;
    size_t n_data;
    tg_status status;
    const char *says; /* or the name of the first tensor */
} tensors[] = {
    { LLAMA, T("model.embed_tokens.weight", "F32", "2,3", 24), 24, TG_OK, "token_embd.weight" },
    { COMMON(
          "falcon_h1") ",\"mamba_n_heads\":4,\"mamba_d_state\":8,\"mamba_d_conv\":4,"
                       "\"mamba_n_groups\":1,\"embedding_multiplier\":2,\"quantization\":{\"group_size\":32}" TIED,
      T("model.embed_tokens.weight", "U32", "2,4", 32)
          U("model.embed_tokens.scales", "F32", "2,1", 32, 40)
              U("model.embed_tokens.biases", "F32", "2,1", 40, 48),
      48, ODD, "want floats, as a FalconH1ForCausalLM changes them" },
    { FALCON, T("model.layers.1.pre_ff_layernorm.weight", "F16", "2", 4), 4, TG_OK,
      "blk.1.ffn_norm" },
    { GEMMA4, T("model.language_model.layers.1.layer_scalar", "F16", "1", 2), 2, TG_OK,
      "blk.1.layer_output_scale.weight" },
    { LLAMA, T("norm.bias", "F32", "2", 8), 8, TG_OK, "output_norm.bias" },
    { LLAMA, T("model.norm.scale", "F32", "2", 8), 8, TG_OK, "model.norm.scale" },
    { LLAMA, T("model.layers.1.mlp.up_proj.weight", "F16", "2", 4), 4, TG_OK,
      "blk.1.ffn_up.weight" },
    { LLAMA, T("model.layers.999.mlp.up_proj.weight", "F16", "2", 4), 4, TG_OK,
      "blk.999.ffn_up.weight" },
    { LLAMA, T("layers.1000.mlp.up_proj.weight", "F16", "2", 4), 4, TG_OK,
      "layers.1000.mlp.up_proj.weight" },
    { LLAMA, T("layers.01.mlp.up_proj.weight", "F16", "2", 4), 4, TG_OK,
      "layers.01.mlp.up_proj.weight" },
    { LLAMA, T("layers.0x.mlp.up_proj.weight", "F16", "2", 4), 4, TG_OK,
      "layers.0x.mlp.up_proj.weight" },
    { LLAMA, T("layers.x", "F16", "2", 4), 4, TG_OK, "layers.x" },
    { LLAMA, T("layers.0.mlp.weight", "F16", "2", 4), 4, TG_OK, "layers.0.mlp.weight" },
    { LLAMA, T("lm_head.weight", "BF16", "2", 4), 4, TG_OK, "token_embd.weight" },
    { BERT, T("lm_head.weight", "BF16", "2", 4), 4, TG_OK, "lm_head.weight" },
    { COMMON("llama") "}", T("lm_head.weight", "BF16", "2", 4), 4, TG_OK, "output.weight" },
    { LLAMA, T("a", "F32", "", 4), 4, TG_OK, "a" },
    { LLAMA, T("a", "F32", "0,3", 0), 0, BAD, "tensor a: want 1..4 dimensions above 0" },
    { LLAMA, T("a", "F32", "0,4294967296,4294967296", 0), 0, BAD, "tensor a: sizes do not fit" },
    { LLAMA, T("a", "F32", "1,1,1,1,1", 4), 4, BAD, "tensor a: want 1..4 dimensions" },
    { LLAMA, T("a", "I64", "1", 8), 8, ODD, "config.json says (none), have I64" },
    { GPT2, T("h.0.attn.c_attn.weight", "F32", "2,3", 24), 24, TG_OK, "blk.0.attn_qkv.weight" },
    { GPT2, T("h.0.attn.c_attn.bias", "F32", "2", 8), 8, TG_OK, "blk.0.attn_qkv.bias" },
    { GEMMA, T("norm.weight", "F16", "2", 4), 4, TG_OK, "output_norm.weight" },
    /* MLX */
    { MLX,
      T("a.weight", "U32", "2,4", 32) U("a.scales", "F16", "2,1", 32, 36)
          U("a.biases", "F16", "2,1", 36, 40),
      40, TG_OK, "a.weight" },
    { MLX,
      T("a.weight", "U32", "2,8", 64) U("a.scales", "F16", "2,1", 64, 68)
          U("a.biases", "F16", "2,1", 68, 72),
      72, TG_OK, "a.weight" },
    { MLX,
      T("a.weight", "U32", "2,5", 40) U("a.scales", "F16", "2,1", 40, 44)
          U("a.biases", "F16", "2,1", 44, 48),
      48, ODD, "want MLX's affine weights" },
    { MLX, T("a.weight", "U32", "2,4", 32), 32, ODD, "want a.scales of floats beside it" },
    { MLX, T("a.weight", "U32", "2,4", 32) U("a.scales", "F16", "2,1", 32, 36), 36, ODD,
      "want a.biases of floats beside it, have none" },
    { MLX,
      T("a.weight", "U32", "8", 32) U("a.scales", "F16", "2,1", 32, 36)
          U("a.biases", "F16", "2,1", 36, 40),
      40, ODD, "want MLX's affine weights" },
    { MLX,
      T("a.weight", "U32", "2,4", 32) U("a.scales", "F16", "2", 32, 36)
          U("a.biases", "F16", "2,1", 36, 40),
      40, ODD, "want MLX's affine weights" },
    { MLX,
      T("a.weight", "U32", "2,4", 32) U("a.scales", "F16", "2,1", 32, 36)
          U("a.biases", "F16", "2", 36, 40),
      40, ODD, "want MLX's affine weights" },
    { MLX,
      T("a.weight", "U32", "2,4", 32) U("a.scales", "I16", "2,1", 32, 36)
          U("a.biases", "F16", "2,1", 36, 40),
      40, ODD, "want a.scales of floats beside it, have I16" },
    { MLX,
      T("a.weight", "U32", "2,4", 32) U("a.scales", "F16", "2,1", 32, 36)
          U("a.biases", "I16", "2,1", 36, 40),
      40, ODD, "want a.biases of floats beside it, have I16" },
    { MLX,
      T("a.weight", "U32", "2,4", 32) U("a.scales", "F16", "2,1", 32, 36)
          U("a.biases", "BF16", "2,1", 36, 40),
      40, ODD, "want MLX's affine weights" },
    { MLX,
      T("a.weight", "U32", "2,4", 32) U("a.scales", "F16", "1,2", 32, 36)
          U("a.biases", "F16", "2,1", 36, 40),
      40, ODD, "want MLX's affine weights" },
    { MLX,
      T("a.weight", "U32", "2,4", 32) U("a.scales", "F16", "2,1", 32, 36)
          U("a.biases", "F16", "1,2", 36, 40),
      40, ODD, "want MLX's affine weights" },
    { MLX,
      T("a.weight", "U32", "2,4", 32) U("a.scales", "F16", "2,1", 32, 36)
          U("a.biases", "F16", "2,2", 36, 44),
      44, ODD, "want MLX's affine weights" },
    { MLX,
      T("a.weight", "U32", "2,0", 0) U("a.scales", "F16", "2,0", 0, 0)
          U("a.biases", "F16", "2,0", 0, 0),
      0, ODD, "want a.scales of floats beside it, have F16 without elements" },
    { LLAMA, T("a.scales", "F16", "2,1", 4), 4, TG_OK, "a.scales" },
    { LLAMA, T("a.weight", "U32", "2,4", 32), 32, ODD, "config.json says (none), have U32" },
    /* stored once under two names: save_model's notes */
    { LLAMA, "\"__metadata__\":{\"b\":\"a\",\"c\":\"none\",\"a\":\"a\"}," T("a", "F32", "1", 4), 4,
      TG_OK, "a" },
    { LLAMA, "\"__metadata__\":{\"b\":1,\"c\\u0000\":\"a\"}," T("a", "F32", "1", 4), 4, TG_OK,
      "a" },
    { MLX, "\"__metadata__\":{\"b.weight\":\"a.weight\"}," T("a.weight", "U32", "2,4", 32), 32, ODD,
      "want a.scales of floats beside it" },
    { LLAMA,
      "\"__metadata__\":{\"b\":\"rotary_emb.inv_freq\"}," T("rotary_emb.inv_freq", "I64", "1", 8),
      8, ODD, "tensor b: want F32" },
    { LLAMA, T("lm_head.weight", "I64", "1", 8), 8, ODD, "tensor embed_tokens.weight: want F32" },
};

static void tensors_and_names(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        char header[1024];
        put("config.json", tensors[i].config);
        snprintf(header, sizeof header, "{%s}", tensors[i].header);
        put_tensors("model.safetensors", header, tensors[i].n_data);
        if (tensors[i].status != TG_OK) {
            check(header, tensors[i].status, tensors[i].says);
            continue;
        }
        if (tg_hf_open(&ctx, folder, &g) != TG_OK) fail_msg("%s: %s", header, ctx.message);
        assert_string_equal(g.tensors[0].name, tensors[i].says);
        tg_gguf_close(&g);
    }
}

static int begin(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}
static int end(void **state) {
    clear(state);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(configs, clear),
        cmocka_unit_test_teardown(files_beside, clear),
        cmocka_unit_test_teardown(other_folders, clear),
        cmocka_unit_test_teardown(long_texts, clear),
        cmocka_unit_test_teardown(tensors_and_names, clear),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
