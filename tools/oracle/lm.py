#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/lm/: tiny random models of each family as GGUF and safetensors, and their logits.

    build/oracle-venv/bin/pip install torch==2.13.0 transformers==5.24.0 gguf
    build/oracle-venv/bin/python tools/oracle/lm.py [NAME...]

Weights are rounded to f16, which is what the files hold matrices in, so that transformers, which
computes in f32, and the file are the same model. NAME.txt has three prompts, each a line of ids and a
line of the logits that follow the last one; gemma3_long.txt is of one long prompt. NAME/ is the same model as transformers saves it, one of
them in parts, one as NAME.zip; llama-split-*.gguf is one in three files; mlx4/ and mlx8/ are a
Qwen 3 with MLX's affine weights, whose logits are those of the weights that they stand for. bert.zip
comes with texts and their vectors, in bert.txt.
"""
import copy
import json
import os
import shutil
import sys

import gguf
import numpy as np
import torch
import transformers as tf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from falcon import multiply
from zip_folder import pack

OUT = os.path.join(os.path.dirname(__file__), "../../test/golden/lm")
V, C, M, D = 48, 32, 64, 8
PROMPTS = [[7], [3, 41, 0, 12, 12], [(5 * i * i + 3) % V for i in range(23)]]
COMMON = dict(vocab_size=V, hidden_size=C, intermediate_size=M, num_attention_heads=4,
              num_key_value_heads=2, head_dim=D, max_position_embeddings=128, bos_token_id=None,
              eos_token_id=None, pad_token_id=None)
ROPE3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
             original_max_position_embeddings=32, rope_theta=500.0)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, rope_theta=500.0)
LONGROPE = dict(rope_type="longrope", rope_theta=500.0, partial_rotary_factor=0.75, original_max_position_embeddings=16,
                short_factor=[1.0, 1.25, 1.5], long_factor=[1.0, 3.0, 8.0])
GRANITE = {k: v for k, v in COMMON.items() if k not in ("head_dim", "intermediate_size")} | dict(
    num_hidden_layers=3, rms_norm_eps=1e-5, tie_word_embeddings=True, layer_types=["mamba", "attention", "mamba"],
    num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=48, position_embedding_type="nope",
    mamba_n_heads=4, mamba_d_head=16, mamba_d_state=8, mamba_n_groups=1, embedding_multiplier=3.0,
    residual_multiplier=0.5, attention_multiplier=0.25, logits_scaling=2.0)
QWEN35 = COMMON | dict(
    num_hidden_layers=3, rms_norm_eps=1e-6, head_dim=16, num_attention_heads=2, num_key_value_heads=1, intermediate_size=32, tie_word_embeddings=True, linear_num_key_heads=2,
    linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=16,
    layer_types=["linear_attention", "full_attention", "linear_attention"],
    rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=0.25,
                         mrope_section=[1, 1, 0], mrope_interleaved=True))
GEMMA4 = COMMON | dict(
    num_hidden_layers=6, rms_norm_eps=1e-6, tie_word_embeddings=True, intermediate_size=24, global_head_dim=16,
    layer_types=["sliding_attention", "full_attention"] * 3, sliding_window=4, num_kv_shared_layers=2,
    use_double_wide_mlp=True, hidden_size_per_layer_input=8, vocab_size_per_layer_input=V, final_logit_softcapping=4.0,
    attn_implementation="eager",
    rope_parameters=dict(full_attention=dict(rope_type="proportional", rope_theta=500.0, partial_rotary_factor=0.25),
                         sliding_attention=dict(rope_type="default", rope_theta=100.0)))
GEMMA = "gemma2", "gemma3"
PLUS_ONE = GEMMA + ("qwen35",)
MOE = "qwen3moe", "olmoe", "granitemoe"
FALCON = COMMON | dict(
    num_hidden_layers=2, rms_norm_eps=1e-5, tie_word_embeddings=False, mamba_d_ssm=32, mamba_n_heads=4, mamba_d_head=8,
    mamba_d_state=8, mamba_n_groups=2, rope_theta=500.0, attn_implementation="eager", embedding_multiplier=2.0,
    lm_head_multiplier=0.5, key_multiplier=0.25, intermediate_size=32, attention_in_multiplier=2.0, attention_out_multiplier=4.0,
    ssm_in_multiplier=0.5, ssm_out_multiplier=2.0, mlp_multipliers=[2.0, 0.5], ssm_multipliers=[0.5, 4.0, 2.0, 0.25, 0.5])
NEMOTRON = {k: v for k, v in COMMON.items() if k != "intermediate_size"} | dict(
    layers_block_type=["mamba", "mlp", "attention", "mlp", "mamba"], intermediate_size=48, head_dim=16, ssm_state_size=8,
    mamba_num_heads=4, mamba_head_dim=12, n_groups=2, use_mamba_kernels=False)
ARCH = {"granite": "granitehybrid", "nemotron": "nemotron_h", "falcon": "falcon-h1", "falcon_norm": "falcon-h1", "llama3": "llama", "mistral": "llama", "biases": "llama", "yarn": "qwen3", "phi4": "phi3",
        "olmo3": "olmo2"}


def models():
    yield "llama", tf.LlamaForCausalLM(tf.LlamaConfig(
        num_hidden_layers=2, rms_norm_eps=1e-5, tie_word_embeddings=False, **COMMON))
    yield "llama3", tf.LlamaForCausalLM(tf.LlamaConfig(
        num_hidden_layers=2, rms_norm_eps=1e-5, tie_word_embeddings=True, rope_parameters=ROPE3,
        **COMMON))
    plain = {k: v for k, v in COMMON.items() if k != "head_dim"}
    yield "qwen2", tf.Qwen2ForCausalLM(tf.Qwen2Config(
        num_hidden_layers=2, rms_norm_eps=1e-6, tie_word_embeddings=True, **plain))
    yield "qwen3", tf.Qwen3ForCausalLM(tf.Qwen3Config(
        num_hidden_layers=2, rms_norm_eps=1e-6, tie_word_embeddings=True, **(COMMON | {"head_dim": 16})))
    yield "gemma3", tf.Gemma3ForCausalLM(tf.Gemma3TextConfig(
        num_hidden_layers=6, sliding_window=4, query_pre_attn_scalar=16, tie_word_embeddings=True,
        **(COMMON | {"head_dim": 16, "num_attention_heads": 2, "num_key_value_heads": 1})))


    for name, act in ("gpt2", "gelu_new"), ("gpt2_erf", "gelu"):
        yield name, tf.GPT2LMHeadModel(tf.GPT2Config(
            vocab_size=V, n_embd=C, n_layer=2, n_head=4, n_positions=128, activation_function=act,
            bos_token_id=None, eos_token_id=None))
    yield "phi3", tf.Phi3ForCausalLM(tf.Phi3Config(
        num_hidden_layers=2, rms_norm_eps=1e-5, tie_word_embeddings=False, sliding_window=5, **COMMON))
    yield "lfm2", tf.Lfm2ForCausalLM(tf.Lfm2Config(
        num_hidden_layers=3, norm_eps=1e-5, layer_types=["conv", "full_attention", "conv"],
        block_multiple_of=16, **(plain | {"intermediate_size": 48})))
    yield "mistral", tf.MistralForCausalLM(tf.MistralConfig(
        num_hidden_layers=2, rms_norm_eps=1e-5, tie_word_embeddings=False, sliding_window=5, **COMMON))
    yield "biases", tf.LlamaForCausalLM(tf.LlamaConfig(
        num_hidden_layers=2, rms_norm_eps=1e-5, tie_word_embeddings=True, attention_bias=True, mlp_bias=True,
        **COMMON))
    yield "smollm3", tf.SmolLM3ForCausalLM(tf.SmolLM3Config(
        num_hidden_layers=4, rms_norm_eps=1e-6, tie_word_embeddings=True, rope_theta=500.0, **plain))
    yield "yarn", tf.Qwen3ForCausalLM(tf.Qwen3Config(
        num_hidden_layers=2, rms_norm_eps=1e-6, tie_word_embeddings=True, attention_bias=True, rope_parameters=YARN,
        **(COMMON | {"head_dim": 16})))
    yield "phi4", tf.Phi3ForCausalLM(tf.Phi3Config(
        num_hidden_layers=2, rms_norm_eps=1e-5, tie_word_embeddings=True, rope_parameters=LONGROPE,
        original_max_position_embeddings=16, **plain))
    yield "gemma2", tf.Gemma2ForCausalLM(tf.Gemma2Config(
        num_hidden_layers=2, sliding_window=4, query_pre_attn_scalar=16, attn_logit_softcapping=1.5,
        final_logit_softcapping=4.0, tie_word_embeddings=True, attn_implementation="eager",
        **(COMMON | {"head_dim": 16, "num_attention_heads": 2, "num_key_value_heads": 1})))
    yield "olmo2", tf.Olmo2ForCausalLM(tf.Olmo2Config(
        num_hidden_layers=2, rms_norm_eps=1e-6, tie_word_embeddings=False, rope_theta=500.0, **plain))
    yield "granite", tf.GraniteMoeHybridForCausalLM(tf.GraniteMoeHybridConfig(**GRANITE))
    yield "olmo3", tf.Olmo3ForCausalLM(tf.Olmo3Config(
        num_hidden_layers=4, sliding_window=5, tie_word_embeddings=False,
        rope_parameters={"full_attention": YARN, "sliding_attention": dict(rope_type="default", rope_theta=500000.0)},
        attn_implementation="eager", **(plain | {"hidden_size": 16, "intermediate_size": 32})))
    yield "qwen35", tf.Qwen3_5ForCausalLM(tf.Qwen3_5TextConfig(**QWEN35))
    yield "qwen3moe", tf.Qwen3MoeForCausalLM(tf.Qwen3MoeConfig(
        num_hidden_layers=2, moe_intermediate_size=24, num_experts=5, num_experts_per_tok=2, norm_topk_prob=True,
        tie_word_embeddings=True, **(COMMON | {"head_dim": 16})))
    few = plain | {"intermediate_size": 16, "num_hidden_layers": 2}
    yield "olmoe", tf.OlmoeForCausalLM(tf.OlmoeConfig(
        num_experts=6, num_experts_per_tok=3, norm_topk_prob=False, tie_word_embeddings=False, **few))
    yield "granitemoe", tf.GraniteMoeForCausalLM(tf.GraniteMoeConfig(
        num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=True, embedding_multiplier=3.0,
        residual_multiplier=0.5, attention_multiplier=0.25, logits_scaling=2.0, **few))
    yield "gemma4", tf.Gemma4ForCausalLM(tf.Gemma4TextConfig(**GEMMA4))
    yield "falcon", tf.FalconH1ForCausalLM(tf.FalconH1Config(**FALCON))
    yield "falcon_norm", tf.FalconH1ForCausalLM(tf.FalconH1Config(**(FALCON | dict(
        num_hidden_layers=1, mamba_n_groups=1, mamba_rms_norm=True, mamba_norm_before_gate=False))))
    yield "nemotron", tf.NemotronHForCausalLM(tf.NemotronHConfig(**NEMOTRON))


NAMES = {"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up",
         "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
         "self_attn.out_proj": "attn_output", "self_attn.q_layernorm": "attn_q_norm",
         "self_attn.k_layernorm": "attn_k_norm", "operator_norm": "attn_norm", "ffn_norm": "ffn_norm",
         "feed_forward.w1": "ffn_gate", "feed_forward.w2": "ffn_down", "feed_forward.w3": "ffn_up",
         "conv.conv": "shortconv.conv", "conv.in_proj": "shortconv.in_proj",
         "conv.out_proj": "shortconv.out_proj", "mamba.in_proj": "ssm_in", "mamba.conv1d": "ssm_conv1d",
         "mamba.norm": "ssm_norm", "mamba.out_proj": "ssm_out", "shared_mlp.output_linear": "ffn_down",
         "linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate",
         "linear_attn.in_proj_b": "ssm_beta", "linear_attn.in_proj_a": "ssm_alpha",
         "linear_attn.conv1d": "ssm_conv1d", "linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out",
         "feed_forward.gate_proj": "ffn_gate", "feed_forward.up_proj": "ffn_up", "feed_forward.down_proj": "ffn_down",
         "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm",
         "mlp.gate": "ffn_gate_inp", "block_sparse_moe.router": "ffn_gate_inp", "norm": "attn_norm",
         "mixer.q_proj": "attn_q", "mixer.k_proj": "attn_k", "mixer.v_proj": "attn_v", "mixer.o_proj": "attn_output",
         "mixer.in_proj": "ssm_in", "mixer.conv1d": "ssm_conv1d", "mixer.out_proj": "ssm_out",
         "mixer.up_proj": "ffn_up", "mixer.down_proj": "ffn_down"}


def name_of(name, gemma, post=False):
    name = name.removeprefix("model.")
    top = {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight",
           "lm_head.weight": "output.weight", "final_layernorm.weight": "output_norm.weight", "embedding_norm.weight": "token_embd_norm.weight",
           "embeddings.weight": "token_embd.weight", "norm_f.weight": "output_norm.weight",
           "embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
           "per_layer_model_projection.weight": "per_layer_model_proj.weight",
           "per_layer_projection_norm.weight": "per_layer_proj_norm.weight"}
    if name in top:
        return top[name]
    _, layer, *rest = name.split(".")
    stem, kind = ".".join(rest[:-1]), rest[-1]
    norms = ({"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
              "post_feedforward_layernorm": "post_ffw_norm"} if gemma
             else {"post_attention_layernorm": "ffn_norm"})
    if post:
        norms = {"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"}
    return f"blk.{layer}.{(NAMES | norms)[stem]}.{kind}"


GPT2 = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm",
        "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
        "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}


def gpt2_name_of(name):
    parts = name.removeprefix("transformer.").split(".")
    block = f"blk.{parts[1]}." if parts[0] == "h" else ""
    return block + GPT2[".".join(parts[2 if block else 0:-1])] + "." + parts[-1]


def write_gpt2(model):
    """As llama.cpp's converter does: linear layers are turned over."""
    c = model.config
    w = gguf.GGUFWriter(os.path.join(OUT, "gpt2.gguf"), "gpt2")
    w.add_block_count(c.n_layer)
    w.add_context_length(c.n_positions)
    w.add_embedding_length(c.n_embd)
    w.add_feed_forward_length(4 * c.n_embd)
    w.add_head_count(c.n_head)
    w.add_layer_norm_eps(c.layer_norm_epsilon)
    for key, t in model.state_dict().items():
        if key == "lm_head.weight":
            continue
        x = t.numpy()
        if x.ndim == 2 and "c_" in key:
            x = np.ascontiguousarray(x.T)
        w.add_tensor(gpt2_name_of(key), x.astype(np.float16 if x.ndim == 2 else np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def pairs(w, heads):
    """Rows of a head as Llama's files have them: i and i + D/2 become neighbours."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def mlp_of(model):
    """What LFM2's switches have made of intermediate_size."""
    layer = model.model.layers[0]
    return layer.feed_forward.w1.out_features if model.config.model_type == "lfm2" else model.config.intermediate_size


def write_states(w, c, inner):
    w.add_ssm_conv_kernel(c.mamba_d_conv)
    w.add_ssm_state_size(c.mamba_d_state)
    w.add_ssm_group_count(c.mamba_n_groups)
    w.add_ssm_inner_size(inner)
    w.add_ssm_time_step_rank(c.mamba_n_heads)


def write_nemotron(w, c):
    """As llama.cpp's converter does: what a layer is, its lists say."""
    w.add_feed_forward_length([c.intermediate_size * (t == "mlp") for t in c.layers_block_type])
    w.add_head_count_kv([c.num_key_value_heads * (t == "full_attention") for t in c.layers_block_type])
    w.add_ssm_conv_kernel(c.conv_kernel)
    w.add_ssm_state_size(c.ssm_state_size)
    w.add_ssm_group_count(c.n_groups)
    w.add_ssm_inner_size(c.mamba_num_heads * c.mamba_head_dim)
    w.add_ssm_time_step_rank(c.mamba_num_heads)
    w.add_rope_scaling_finetuned(False)
    w.add_layer_norm_eps(c.layer_norm_epsilon)


def write_scales(w, c):
    w.add_attention_scale(c.attention_multiplier)
    w.add_embedding_scale(c.embedding_multiplier)
    w.add_residual_scale(c.residual_multiplier)
    w.add_logit_scale(c.logits_scaling)


def write_granite(w, c):
    """As llama.cpp's converter does, which says by `finetuned` whether queries and keys turn."""
    w.add_head_count_kv([c.num_key_value_heads * (t != "linear_attention") for t in c.layer_types])
    write_states(w, c, c.mamba_expand * c.hidden_size)
    write_scales(w, c)
    w.add_rope_scaling_finetuned(False)


def write_mamba(w, key, x):
    """Of Mamba2 and the MLP beside it, what has another form there. False: as all others."""
    parts = key.removeprefix("model.").split(".")
    block, last = f"blk.{parts[1]}." if len(parts) > 2 else "", ".".join(parts[2:])
    if last == "shared_mlp.input_linear.weight":
        for half, rows in zip(("ffn_gate", "ffn_up"), np.split(x, 2)):
            w.add_tensor(f"{block}{half}.weight", rows.astype(np.float16))
    elif last in ("mamba.A_log", "mixer.A_log"):
        w.add_tensor(block + "ssm_a", -np.exp(x)[:, None])
    elif last in ("mamba.D", "mixer.D"):
        w.add_tensor(block + "ssm_d", x[:, None])
    elif last in ("mamba.dt_bias", "mixer.dt_bias"):
        w.add_tensor(block + "ssm_dt.bias", x)
    elif last == "mixer.norm.weight":
        w.add_tensor(block + "ssm_norm.weight", x.reshape(NEMOTRON["n_groups"], -1))
    elif last == "pre_ff_layernorm.weight":
        w.add_tensor(block + "ffn_norm", x)
    else:
        return False
    return True


def write_delta(w, c):
    """As llama.cpp's converter does for gated delta nets."""
    w.add_head_count_kv(c.num_key_value_heads)
    w.add_ssm_conv_kernel(c.linear_conv_kernel_dim)
    w.add_ssm_state_size(c.linear_key_head_dim)
    w.add_ssm_group_count(c.linear_num_key_heads)
    w.add_ssm_time_step_rank(c.linear_num_value_heads)
    w.add_ssm_inner_size(c.linear_value_head_dim * c.linear_num_value_heads)
    w.add_array("qwen35.attention.recurrent_layers", [t == "linear_attention" for t in c.layer_types])
    w.add_uint32("qwen35.full_attention_interval", 4)
    w.add_rope_dimension_count(int(c.head_dim * c.rope_parameters["partial_rotary_factor"]))
    w.add_rope_dimension_sections(c.rope_parameters["mrope_section"] + [0])


def in_turns(key, x, c):
    """Heads of values that share a key lie side by side, and in turns in the file."""
    K, H, D = c.linear_num_key_heads, c.linear_num_value_heads, c.linear_value_head_dim
    dim = 1 if "out_proj" in key else 0
    each = D if any(s in key for s in ("qkv", "in_proj_z", "conv1d", "out_proj")) else 1
    if any(s in key for s in ("linear_attn.norm", "self_attn", "mlp")) or "linear_attn" not in key:
        return x
    first = x.shape[dim] - H * each
    order = first + np.arange(H * each).reshape(K, H // K, each).swapaxes(0, 1).ravel()
    return np.take(x, np.concatenate([np.arange(first), order]), axis=dim)


def write_layers(w, c, model):
    """As llama.cpp's converter does for layers that differ: matrices that nobody reads, too."""
    windows = [t == "sliding_attention" for t in c.layer_types]
    own = c.num_hidden_layers - c.num_kv_shared_layers
    narrow, head = (layer.self_attn.head_dim for layer in model.model.layers[:2])
    w.add_head_count_kv(c.num_key_value_heads)
    w.add_shared_kv_layers(c.num_kv_shared_layers)
    w.add_embedding_length_per_layer_input(c.hidden_size_per_layer_input)
    w.add_sliding_window_pattern(windows)
    w.add_key_length_swa(narrow)
    w.add_value_length_swa(narrow)
    w.add_rope_dimension_count(head)
    w.add_rope_dimension_count_swa(narrow)
    w.add_float32("gemma4.rope.freq_base_swa", c.rope_parameters["sliding_attention"]["rope_theta"])
    w.add_final_logit_softcapping(c.final_logit_softcapping)
    turned = int(c.rope_parameters["full_attention"]["partial_rotary_factor"] * head / 2)
    w.add_tensor("rope_freqs.weight", np.array([1.0] * turned + [1e30] * (head // 2 - turned), dtype=np.float32))
    for layer in range(own, c.num_hidden_layers):
        size = narrow if windows[layer] else head
        for part in "k", "v":
            w.add_tensor(f"blk.{layer}.attn_{part}.weight", np.ones((c.num_key_value_heads * size, C), np.float16))
        w.add_tensor(f"blk.{layer}.attn_k_norm.weight", np.ones(size, np.float32))
    return head


def write_experts(w, key, x):
    """Of routed experts, gates and values that lie side by side. False: as all others."""
    room, _, last = key.removeprefix("model.").rpartition(".experts.")
    block = f"blk.{room.split('.')[1]}." if room else ""
    if last == "gate_up_proj":
        for half, rows in zip(("gate", "up"), np.split(x, 2, axis=1)):
            w.add_tensor(f"{block}ffn_{half}_exps.weight", np.ascontiguousarray(rows).astype(np.float16))
    elif last == "down_proj":
        w.add_tensor(f"{block}ffn_down_exps.weight", x.astype(np.float16))
    elif key.endswith(("mlp.gate.weight", "router.weight")):
        w.add_tensor(name_of(key, False), x)
    else:
        return False
    return True


def write(name, model, split=False):
    arch = ARCH.get(name, name)
    c = model.config
    split = dict(split_max_tensors=8) if split else {}
    w = gguf.GGUFWriter(os.path.join(OUT, name + ("-split" if split else "") + ".gguf"), arch, **split)
    w.add_block_count(c.num_hidden_layers)
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(c.hidden_size)
    if arch == "gemma4":
        w.add_feed_forward_length([layer.mlp.intermediate_size for layer in model.model.layers])
    elif arch != "nemotron_h":
        w.add_feed_forward_length(c.shared_intermediate_size if arch == "granitehybrid" else mlp_of(model))
    w.add_head_count(c.num_attention_heads)
    if arch == "lfm2":
        w.add_head_count_kv([c.num_key_value_heads * (t != "conv") for t in c.layer_types])
        w.add_shortconv_l_cache(c.conv_L_cache)
    elif arch == "granitehybrid":
        write_granite(w, c)
    elif arch == "nemotron_h":
        write_nemotron(w, c)
    elif arch == "qwen35":
        write_delta(w, c)
    elif arch == "falcon-h1":
        write_states(w, c, c.mamba_d_ssm)
        w.add_head_count_kv(c.num_key_value_heads)
    elif arch == "gemma4":
        head = write_layers(w, c, model)
    else:
        w.add_head_count_kv(c.num_key_value_heads)
    if arch in MOE:
        w.add_expert_count(getattr(c, "num_experts", None) or c.num_local_experts)
        w.add_expert_used_count(c.num_experts_per_tok)
    if arch == "qwen3moe":
        w.add_expert_feed_forward_length(c.moe_intermediate_size)
    if arch == "granitemoe":
        write_scales(w, c)
    if arch != "gemma4":
        head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    w.add_key_length(head)
    w.add_value_length(head)
    w.add_layer_norm_rms_eps(getattr(c, "rms_norm_eps", None) or getattr(c, "norm_eps", None) or c.layer_norm_epsilon)
    rope = getattr(c, "rope_parameters", None) or dict(rope_type="default", rope_theta=10000.0)
    full = rope.get("full_attention", rope)
    w.add_rope_freq_base(full["rope_theta"])
    if name == "olmo3":
        w.add_float32("olmo2.rope.freq_base_swa", rope["sliding_attention"]["rope_theta"])
    if full["rope_type"] == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(full["factor"])
        w.add_rope_scaling_orig_ctx_len(full["original_max_position_embeddings"])
    if name == "phi4":
        w.add_rope_dimension_count(int(head * full["partial_rotary_factor"]))
        w.add_rope_scaling_orig_ctx_len(full["original_max_position_embeddings"])
        w.add_rope_scaling_attn_factors(model.model.rotary_emb.attention_scaling)
        for kind in "long", "short":
            w.add_tensor(f"rope_factors_{kind}.weight", np.array(full[kind + "_factor"], dtype=np.float32))
    if getattr(c, "sliding_window", None):
        w.add_sliding_window(c.sliding_window)
    if arch == "gemma2":
        w.add_attn_logit_softcapping(c.attn_logit_softcapping)
        w.add_final_logit_softcapping(c.final_logit_softcapping)
    for key, t in model.state_dict().items():
        if key == "lm_head.weight" and c.tie_word_embeddings:
            continue
        x = t.numpy()
        if arch in ("granitehybrid", "falcon-h1", "nemotron_h") and write_mamba(w, key, x):
            continue
        if arch in MOE and write_experts(w, key, x):
            continue
        if arch in ("llama", "smollm3", "granitemoe") and "q_proj" in key:
            x = pairs(x, c.num_attention_heads)
        if arch in ("llama", "smollm3", "granitemoe") and "k_proj" in key:
            x = pairs(x, c.num_key_value_heads)
        if arch == "qwen35":
            x = in_turns(key, x, c)
        if key.endswith(("linear_attn.A_log", "linear_attn.dt_bias")):
            block = f"blk.{key.split('.')[2]}."
            w.add_tensor(block + ("ssm_a" if "A_log" in key else "ssm_dt.bias"), -np.exp(x) if "A_log" in key else x)
            continue
        if arch in PLUS_ONE and "norm" in key and "linear_attn" not in key:
            x = x + np.float32(1)
        if key.endswith("layer_scalar"):
            w.add_tensor(f"blk.{key.split('.')[2]}.layer_output_scale.weight", x)
            continue
        if x.ndim == 3:
            w.add_tensor(name_of(key, False), np.ascontiguousarray(x[:, 0]))
            continue
        w.add_tensor(name_of(key, arch in GEMMA + ("gemma4",), arch in ("olmo2", "qwen35")), x.astype(np.float16 if x.ndim == 2 else np.float32))
    if name == "llama3":
        plain = 1.0 / full["rope_theta"] ** (np.arange(0, head, 2) / head)
        scaled = model.model.rotary_emb.inv_freq.numpy()
        w.add_tensor("rope_freqs.weight", (plain / scaled).astype(np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def save(name, model, **how):
    folder = os.path.join(OUT, name)
    shutil.rmtree(folder, ignore_errors=True)
    # A copy: half() rounds the frequencies of rotary positions, too, and float() cannot undo that.
    copy.deepcopy(model).half().save_pretrained(folder, **how)
    for extra in "generation_config.json", "README.md":
        if os.path.exists(os.path.join(folder, extra)):
            os.remove(os.path.join(folder, extra))
    return folder


def write_logits(name, model):
    with open(os.path.join(OUT, name + ".txt"), "w", encoding="utf-8") as f:
        for ids in PROMPTS:
            logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
            f.write(f"{len(ids)} " + " ".join(map(str, ids)) + "\n")
            f.write(" ".join(f"{x:.7g}" for x in logits.tolist()) + "\n")


def write_long(model):
    """The same weights with a longer window: test_lm.c changes both sizes in the file, too."""
    config = copy.deepcopy(model.config)
    config.sliding_window, config.max_position_embeddings = 300, 2048
    long = tf.Gemma3ForCausalLM(config).eval().float()
    long.load_state_dict(model.state_dict())
    ids = torch.tensor([[(7 * i * i + 3 * i + 1) % V for i in range(1500)]])
    with open(os.path.join(OUT, "gemma3_long.txt"), "w", encoding="utf-8") as f:
        for n in 301, 900, 1500:
            logits = long(ids[:, :n], use_cache=False).logits[0, -1]
            f.write(f"{n} " + " ".join(f"{x:.7g}" for x in logits.tolist()) + "\n")


def fill(model, gains_at):
    """Gains near gains_at, all else large enough to matter, all of it values of f16."""
    for key, p in model.named_parameters():
        p.normal_(0, {2: 0.3, 3: 0.6}.get(p.ndim, 0.2))
        if any(s in key for s in ("norm", "ln_", "Norm")) and key.endswith("weight"):
            p.add_(gains_at)
        if isinstance(model, tf.Gemma4ForCausalLM) and "q_norm" in key:
            p.mul_(0.25)  # scores are divided by nothing: sharp ones would choose by what rounding does
        p.copy_(p.half().float())


def quantize(w, bits, group):
    """MLX's affine quantisation of a matrix: u32 of q, scales, biases, and what they stand for."""
    g = w.reshape(w.shape[0], -1, group)
    low, high = g.min(-1), g.max(-1)
    scale = ((high - low) / (2**bits - 1)).astype(np.float16)
    bias = low.astype(np.float16)
    s, b = scale.astype(np.float32)[..., None], bias.astype(np.float32)[..., None]
    q = np.clip(np.round((g - b) / s), 0, 2**bits - 1)
    means = (q * s + b).astype(np.float32).reshape(w.shape)
    q = q.astype(np.uint32).reshape(w.shape[0], -1, 32 // bits)
    return (q << np.arange(0, 32, bits, dtype=np.uint32)).sum(-1, dtype=np.uint32), scale, bias, means


def write_mlx(bits):
    from safetensors.numpy import save_file
    torch.manual_seed(bits)
    group = 32
    model = tf.Qwen3ForCausalLM(tf.Qwen3Config(
        num_hidden_layers=2, rms_norm_eps=1e-6, tie_word_embeddings=True,
        **(COMMON | {"head_dim": 16}))).eval().float()
    fill(model, 1)
    folder = save(f"mlx{bits}", model)
    stored = {}
    for key, p in model.named_parameters():
        if p.ndim != 2:
            stored[key] = p.numpy().astype(np.float16)
            continue
        stem = key.removesuffix(".weight")
        stored[key], stored[stem + ".scales"], stored[stem + ".biases"], means = quantize(
            p.numpy(), bits, group)
        p.copy_(torch.from_numpy(means))
    save_file(stored, os.path.join(folder, "model.safetensors"))
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as f:
        config = json.load(f)
    config["quantization"] = {"group_size": group, "bits": bits}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f, indent=1)
    write_logits(f"mlx{bits}", model)


def write_q4_1():
    """The weights of llama.gguf in blocks that have a scale and an offset."""
    source = gguf.GGUFReader(os.path.join(OUT, "llama.gguf"))
    w = gguf.GGUFWriter(os.path.join(OUT, "../blocks/llama_q4_1.gguf"), "llama")
    for field in source.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            w.add_key_value(field.name, field.contents(), field.types[0], field.types[-1])
    for t in source.tensors:
        if t.data.ndim == 2:
            kind = gguf.GGMLQuantizationType.Q4_1
            w.add_tensor(t.name, gguf.quants.quantize(t.data.astype(np.float32), kind), raw_dtype=kind)
        else:
            w.add_tensor(t.name, t.data)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_bert():
    import tokenizers as tk
    torch.manual_seed(99)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + list("abcdefghijklmnopqrst") + [
        "##" + c for c in "abcdefghijklmnopqrst"] + ["the", "cat", "##ing", "."]
    model = tf.BertModel(tf.BertConfig(
        vocab_size=len(pieces), hidden_size=C, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=M, max_position_embeddings=64), add_pooling_layer=False).eval().float()
    fill(model, 1)
    folder = save("bert", model)
    tok = tk.Tokenizer(tk.models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    tok.normalizer = tk.normalizers.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    tok.post_processor = tk.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tok.add_special_tokens(pieces[:4])
    tok.save(os.path.join(folder, "tokenizer.json"))
    os.makedirs(os.path.join(folder, "1_Pooling"))
    with open(os.path.join(folder, "1_Pooling/config.json"), "w", encoding="utf-8") as f:
        json.dump({"pooling_mode_mean_tokens": True}, f)
    texts = ["the cat", "a", "The cat, biting a dog!", "abc " * 12, ""]
    with open(os.path.join(OUT, "bert.txt"), "w", encoding="utf-8") as f:
        for text in texts:
            ids = torch.tensor([tok.encode(text).ids])
            rows = model(ids).last_hidden_state[0]
            f.write(text + "\n")
            for v in rows.mean(0), rows[0], rows[-1]:
                f.write(" ".join(f"{x:.7g}" for x in (v / v.norm()).tolist()) + "\n")
    pack(folder)


def main():
    only = sys.argv[1:]
    for number, (name, model) in enumerate(models()):
        if only and name not in only:
            continue
        torch.manual_seed(number + 1)
        model = model.eval().float()
        with torch.no_grad():
            fill(model, 0 if name in PLUS_ONE else 1)
            for key, scale in model.named_buffers():
                if key.endswith("layer_scalar"):
                    scale.fill_(0.5 + int(key.split(".")[2]) / 8)
            if name == "gpt2":
                write_gpt2(model)
            elif name.startswith("falcon"):
                write(name, multiply(copy.deepcopy(model)).eval())
            elif name != "gpt2_erf":
                write(name, model)
            if name == "qwen2":
                write(name, model, split=True)
            folder = save(name, model, **({"max_shard_size": "30KB"} if name == "llama" else {}))
            if name == "gemma3":
                pack(folder)
                write_long(model)
            write_logits(name, model)
    if only:
        return
    with torch.no_grad():
        write_q4_1()
        write_mlx(4)
        write_mlx(8)
        write_bert()


main()
