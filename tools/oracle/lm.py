#!/usr/bin/env python3
"""Writes test/golden/lm/: tiny random models of each family as GGUF, and their logits.

    build/oracle-venv/bin/pip install torch==2.13.0 transformers==5.24.0 gguf
    build/oracle-venv/bin/python tools/oracle/lm.py

Weights are rounded to f16, which is what the files hold matrices in, so that transformers, which
computes in f32, and the file are the same model. NAME.txt has three prompts, each a line of ids and a
line of the logits that follow the last one.
"""
import os

import gguf
import numpy as np
import torch
import transformers as tf

OUT = os.path.join(os.path.dirname(__file__), "../../test/golden/lm")
V, C, M, D = 48, 32, 64, 8
PROMPTS = [[7], [3, 41, 0, 12, 12], [(5 * i * i + 3) % V for i in range(23)]]
COMMON = dict(vocab_size=V, hidden_size=C, intermediate_size=M, num_attention_heads=4,
              num_key_value_heads=2, head_dim=D, max_position_embeddings=128, bos_token_id=None,
              eos_token_id=None, pad_token_id=None)
ROPE3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
             original_max_position_embeddings=32, rope_theta=500.0)


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


NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm"}


def name_of(name, gemma):
    name = name.removeprefix("model.")
    top = {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight",
           "lm_head.weight": "output.weight"}
    if name in top:
        return top[name]
    _, layer, *rest = name.split(".")
    stem, kind = ".".join(rest[:-1]), rest[-1]
    norms = ({"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
              "post_feedforward_layernorm": "post_ffw_norm"} if gemma
             else {"post_attention_layernorm": "ffn_norm"})
    return f"blk.{layer}.{(NAMES | norms)[stem]}.{kind}"


def pairs(w, heads):
    """Rows of a head as Llama's files have them: i and i + D/2 become neighbours."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def write(name, model):
    arch = "llama" if name == "llama3" else name
    c = model.config
    w = gguf.GGUFWriter(os.path.join(OUT, name + ".gguf"), arch)
    w.add_block_count(c.num_hidden_layers)
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(c.hidden_size)
    w.add_feed_forward_length(c.intermediate_size)
    w.add_head_count(c.num_attention_heads)
    w.add_head_count_kv(c.num_key_value_heads)
    head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    w.add_key_length(head)
    w.add_value_length(head)
    w.add_layer_norm_rms_eps(c.rms_norm_eps)
    rope = c.rope_parameters
    full = rope["full_attention"] if arch == "gemma3" else rope
    w.add_rope_freq_base(full["rope_theta"])
    if arch == "gemma3":
        w.add_sliding_window(c.sliding_window)
    for key, t in model.state_dict().items():
        if key == "lm_head.weight" and c.tie_word_embeddings:
            continue
        x = t.numpy()
        if arch == "llama" and "q_proj" in key:
            x = pairs(x, c.num_attention_heads)
        if arch == "llama" and "k_proj" in key:
            x = pairs(x, c.num_key_value_heads)
        if arch == "gemma3" and "norm" in key:
            x = x + np.float32(1)
        w.add_tensor(name_of(key, arch == "gemma3"), x.astype(np.float16 if x.ndim == 2 else np.float32))
    if name == "llama3":
        plain = 1.0 / full["rope_theta"] ** (np.arange(0, head, 2) / head)
        scaled = model.model.rotary_emb.inv_freq.numpy()
        w.add_tensor("rope_freqs.weight", (plain / scaled).astype(np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    for number, (name, model) in enumerate(models()):
        torch.manual_seed(number + 1)
        model = model.eval().float()
        with torch.no_grad():
            for key, p in model.named_parameters():
                # Gains near 1 (or near 0 where 1 is added), all else large enough to matter.
                p.normal_(0, 0.3 if p.ndim == 2 else 0.2)
                if "norm" in key and name != "gemma3":
                    p.add_(1)
                p.copy_(p.half().float())
            write(name, model)
            with open(os.path.join(OUT, name + ".txt"), "w", encoding="utf-8") as f:
                for ids in PROMPTS:
                    logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
                    f.write(f"{len(ids)} " + " ".join(map(str, ids)) + "\n")
                    f.write(" ".join(f"{x:.7g}" for x in logits.tolist()) + "\n")


main()
