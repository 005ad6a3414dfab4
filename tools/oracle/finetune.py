#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/lm/tune_*: tiny random models with a tokenizer as folders of transformers, the losses of
twenty steps of fine-tuning each, and what the trained models answer.

    build/oracle-venv/bin/pip install torch==2.13.0 transformers==5.24.0
    build/oracle-venv/bin/python tools/oracle/finetune.py --data build/test/stories.txt [--program build/tinygpt]

The text is the first 12,000 bytes of what `make tests` writes. Its tokens are those of the tokenizers library, its
windows those that src/training/data/windows.h draws, and the update is torch.optim.AdamW, all in float64. The families
differ in what goes wrong easily: Llama has a token before each window, a head of its own and Llama 3's frequencies,
Qwen 2 biases, Qwen 3 norms of heads, Gemma windows and gains less 1, GPT-2 positions and matrices as [in, out],
Phi-3 its queries, keys and values as one tensor, a window in all layers, and a chat template, Falcon-H1 numbers that
weights are multiplied with, of which PyTorch trains the products, as tinygpt does, Nemotron-H layers that are each one
thing, and norms of groups.

    tune_FAMILY.zip          the folder; made where there is none, else the one that is there
    tune_FAMILY.txt          20 losses, then the validation loss behind them, one a line
    tune_FAMILY_logits.txt   of the trained model, at the last position of PROMPT

With --program, tinygpt trains each folder, too, and converts what it has trained to a folder and to GGUF.
transformers opens the folder: its logits must be those of tinygpt's run, folder and GGUF file, its greedy tokens up to
the 64 of the context those of run and GGUF file, and its chat template that of the folder that training began with.
"""
import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import tokenizers as tk
import torch
import transformers as tf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from llama_logits import Tiny
from falcon import multiply
from philox import BATCH, blocks
from zip_folder import pack

OUT = os.path.join(os.path.dirname(__file__), "../../test/golden/lm")
TEXT_BYTES, V, C, M, T, B, STEPS, VAL, SEED = 12000, 288, 16, 32, 24, 4, 20, 0.1, 42
SPECIAL = ["<bos>", "<eos>"]
PROMPT = [(11 * i * i + 5 * i + 2) % (V - 2) + 2 for i in range(20)]
GREEDY = 64 - len(PROMPT)
TEMPLATE = ("{% for m in messages %}{{ '<bos>' + m['role'] + ': ' + m['content'] + '<eos>' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<bos>assistant: ' }}{% endif %}")
SIZES = dict(vocab_size=V, hidden_size=C, intermediate_size=M, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
             num_hidden_layers=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=1, pad_token_id=None)
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32, "rope_theta": 500.0}
LONGROPE = {"rope_type": "longrope", "rope_theta": 500.0, "partial_rotary_factor": 0.75,
            "original_max_position_embeddings": 16, "short_factor": [1.0, 1.25, 1.5], "long_factor": [1.0, 3.0, 8.0]}


def families():
    yield "llama", tf.LlamaForCausalLM(tf.LlamaConfig(tie_word_embeddings=False, rope_parameters=LLAMA3, **SIZES)), True
    yield "qwen2", tf.Qwen2ForCausalLM(tf.Qwen2Config(
        tie_word_embeddings=True, **{k: v for k, v in SIZES.items() if k != "head_dim"})), False
    yield "qwen3", tf.Qwen3ForCausalLM(tf.Qwen3Config(tie_word_embeddings=True, **SIZES)), False
    yield "gemma3", tf.Gemma3ForCausalLM(tf.Gemma3TextConfig(
        sliding_window=8, query_pre_attn_scalar=8, attn_implementation="eager",
        **(SIZES | {"num_hidden_layers": 6}))), True
    yield "gpt2", tf.GPT2LMHeadModel(tf.GPT2Config(
        vocab_size=V, n_embd=C, n_layer=2, n_head=2, n_positions=64, bos_token_id=0, eos_token_id=1, resid_pdrop=0,
        embd_pdrop=0, attn_pdrop=0)), False
    yield "lfm2", tf.Lfm2ForCausalLM(tf.Lfm2Config(
        layer_types=["conv", "full_attention", "conv"], block_auto_adjust_ff_dim=False,
        **({k: v for k, v in SIZES.items() if k != "head_dim"} | {"num_hidden_layers": 3}))), True
    yield "phi3", tf.Phi3ForCausalLM(tf.Phi3Config(
        tie_word_embeddings=False, sliding_window=10, resid_pdrop=0, embd_pdrop=0, attention_dropout=0,
        attn_implementation="eager", **SIZES)), True
    yield "mistral", tf.MistralForCausalLM(tf.MistralConfig(
        tie_word_embeddings=False, sliding_window=8, attn_implementation="eager", **SIZES)), False
    plain = {k: v for k, v in SIZES.items() if k != "head_dim"}
    yield "smollm3", tf.SmolLM3ForCausalLM(tf.SmolLM3Config(
        tie_word_embeddings=True, attention_bias=True, mlp_bias=True, **(plain | {"num_hidden_layers": 4}))), False
    yield "phi4", tf.Phi3ForCausalLM(tf.Phi3Config(
        tie_word_embeddings=True, rope_parameters=LONGROPE, original_max_position_embeddings=16, **plain)), False
    yield "gemma2", tf.Gemma2ForCausalLM(tf.Gemma2Config(
        sliding_window=8, query_pre_attn_scalar=8, attn_logit_softcapping=0.5, final_logit_softcapping=3.0,
        attn_implementation="eager", **SIZES)), True
    yield "olmo2", tf.Olmo2ForCausalLM(tf.Olmo2Config(
        tie_word_embeddings=False, rope_theta=500.0, **plain)), False
    yield "granite", tf.GraniteMoeHybridForCausalLM(tf.GraniteMoeHybridConfig(
        tie_word_embeddings=True, layer_types=["mamba", "attention", "mamba"], num_local_experts=0, num_experts_per_tok=0,
        shared_intermediate_size=M, position_embedding_type="nope", mamba_n_heads=2, mamba_d_head=16, mamba_d_state=8,
        mamba_n_groups=1, embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.25,
        logits_scaling=2.0, **({k: v for k, v in plain.items() if k != "intermediate_size"} | {"num_hidden_layers": 3}))), False
    yield "qwen35", tf.Qwen3_5ForCausalLM(tf.Qwen3_5TextConfig(
        tie_word_embeddings=True, layer_types=["linear_attention", "full_attention", "linear_attention"],
        linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=6, linear_value_head_dim=8,
        rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=0.25),
        **(SIZES | {"num_hidden_layers": 3}))), False


    few = SIZES | {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
    yield "qwen3moe", tf.Qwen3MoeForCausalLM(tf.Qwen3MoeConfig(tie_word_embeddings=True, norm_topk_prob=True, **few)), False
    yield "granitemoe", tf.GraniteMoeForCausalLM(tf.GraniteMoeConfig(
        tie_word_embeddings=True, num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=3.0,
        residual_multiplier=0.5, attention_multiplier=0.25, logits_scaling=2.0, **(plain | {"intermediate_size": 16}))), False
    yield "gemma4", tf.Gemma4ForCausalLM(tf.Gemma4TextConfig(
        layer_types=["sliding_attention", "full_attention"] * 2, sliding_window=8, num_kv_shared_layers=2,
        use_double_wide_mlp=True, hidden_size_per_layer_input=8, vocab_size_per_layer_input=V, global_head_dim=16,
        final_logit_softcapping=3.0, attn_implementation="eager", **(SIZES | {"num_hidden_layers": 4}))), True
    yield "falcon", tf.FalconH1ForCausalLM(tf.FalconH1Config(
        tie_word_embeddings=True, mamba_d_ssm=24, mamba_n_heads=2, mamba_d_head=12, mamba_d_state=8, mamba_n_groups=1,
        embedding_multiplier=3.0, lm_head_multiplier=0.7, key_multiplier=0.6, attention_in_multiplier=1.2,
        attention_out_multiplier=0.9, ssm_in_multiplier=1.1, ssm_out_multiplier=0.8, mlp_multipliers=[1.3, 0.7],
        ssm_multipliers=[0.9, 1.2, 0.8, 1.1, 0.7], attn_implementation="eager", **SIZES)), False
    yield "nemotron", tf.NemotronHForCausalLM(tf.NemotronHConfig(
        layers_block_type=["mamba", "mlp", "attention", "mlp"], ssm_state_size=8, mamba_num_heads=4, mamba_head_dim=6,
        n_groups=2, use_mamba_kernels=False, **{k: v for k, v in SIZES.items() if k != "num_hidden_layers"})), False


def fill(model, gains_at):
    for key, p in model.named_parameters():
        p.normal_(0, 0.2)
        if any(s in key for s in ("norm", "ln_")) and key.endswith("weight"):
            p.add_(gains_at)
        p.copy_(p.half().to(p.dtype))
        if isinstance(model, tf.Gemma4ForCausalLM) and "q_norm" in key:
            p.mul_(0.25)  # scores are divided by nothing: sharp ones would make rounding grow from step to step
    for key, scale in model.named_buffers():
        if key.endswith("layer_scalar"):
            scale.fill_(0.75)


def tokenizer(text, begins):
    t = tk.Tokenizer(tk.models.BPE())
    t.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tk.decoders.ByteLevel()
    t.train_from_iterator([text], tk.trainers.BpeTrainer(
        vocab_size=V, special_tokens=SPECIAL, initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    assert t.get_vocab_size() == V
    if begins:
        t.post_processor = tk.processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 0)])
    return t


def starts(step, n):
    x = blocks(SEED, BATCH, 0, step * B, B)
    return [(int(row[0]) | int(row[1]) << 32) * (n - T) >> 64 for row in x]


def window(ids, start, begins):
    if begins:
        return [0] + ids[start:start + T - 1], ids[start:start + T]
    return ids[start:start + T], ids[start + 1:start + T + 1]


def loss_of(model, rows):
    inputs, targets = (torch.tensor(x) for x in zip(*rows))
    logits = model(input_ids=inputs).logits
    return torch.nn.functional.cross_entropy(logits.reshape(-1, V), targets.reshape(-1))


def decayed(key, p):
    return p.ndim >= 2


def tune(model, ids, begins):
    n_val = int(len(ids) * VAL)
    n = len(ids) - n_val
    groups = [[p for k, p in model.named_parameters() if decayed(k, p) == d] for d in (True, False)]
    optimizer = torch.optim.AdamW([{"params": groups[0], "weight_decay": 0.1}, {"params": groups[1], "weight_decay": 0}],
                                  lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    for step in range(STEPS):
        loss = loss_of(model, [window(ids, s, begins) for s in starts(step, n)])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.item()
    with torch.no_grad():
        all_windows = (n_val - 1) // T
        yield loss_of(model, [window(ids, n + i * T, begins) for i in range(all_windows)]).item()


def make(folder, name, model, begins, text):
    with torch.no_grad():
        fill(model, 0 if name in ("gemma2", "gemma3", "qwen35") else 1)
    model.half().save_pretrained(folder)
    fast = tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer(text, begins), bos_token="<bos>", eos_token="<eos>")
    if name == "phi3":
        fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    pack(folder)


@contextlib.contextmanager
def opened(path):
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(path).extractall(folder)
        yield folder


def model_of(folder, dtype):
    return tf.AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", experts_implementation="eager")


def answer(model):
    with torch.no_grad():
        return model(torch.tensor([PROMPT])).logits[0].numpy()


def call(program, *command):
    done = subprocess.run([program, *command, "--threads", "1"], check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def check_program(program, name, path, text, golden):
    """Trains with tinygpt, and has transformers open what it made of it."""
    with tempfile.TemporaryDirectory() as at:
        data, run, folder, gguf = (os.path.join(at, x) for x in ("text", "run.tinygpt", "folder", "x.gguf"))
        with open(data, "w", encoding="utf-8") as f:
            f.write(text)
        call(program, "train", "--data", data, "--from", path, "--row-tokens", str(T), "--batch", str(B), "--steps",
             str(STEPS), "--lr", "1e-3", "--eval-every", "0", "--val", str(VAL), "--seed", str(SEED), "--out", run)
        call(program, "convert", run, folder, "--format", "safetensors", "--dtype", "f32")
        call(program, "convert", run, gguf, "--dtype", "f32")
        model = model_of(folder, torch.float32).eval()
        theirs = answer(model)
        scale = np.abs(theirs).max()
        lib = os.path.join(os.path.dirname(program), "libtinygpt.so")
        worst = max(np.abs(Tiny(lib, x, "-int8_activations", 1).logits(PROMPT, V) - theirs).max()
                    for x in (run, folder, gguf)) / scale
        trained = np.abs(theirs[-1] - golden).max() / scale
        print(f"{name}: of logits up to {scale:.3g}: ours differ by {worst:.1g}, training's by {trained:.1g}")
        assert worst < 1e-4 and trained < 1e-3
        with torch.no_grad():
            greedy = model.generate(torch.tensor([PROMPT]), max_new_tokens=GREEDY, do_sample=False, eos_token_id=None,
                                    pad_token_id=0)[0, len(PROMPT):].tolist()
        tok = tf.AutoTokenizer.from_pretrained(folder)
        with opened(path) as before:
            old = tf.AutoTokenizer.from_pretrained(before)
        assert tok.chat_template == old.chat_template and tok.eos_token_id == old.eos_token_id == 1
        assert tok.get_vocab() == old.get_vocab() and tok.encode(text) == old.encode(text)
        for x in (run, gguf):
            assert ours_greedy(lib, x) == greedy, (name, x)


def ours_greedy(lib, path):
    """As one text that grows, so that no tokenizer stands between the ids."""
    tiny, ids = Tiny(lib, path, "-int8_activations", 1), list(PROMPT)
    for _ in range(GREEDY):
        ids.append(int(tiny.logits(ids, V, 1)[-1].argmax()))
    return ids[len(PROMPT):]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--only", help="one family, instead of all")
    parser.add_argument("--program")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with open(args.data, "rb") as f:
        text = f.read(TEXT_BYTES).decode()
    for number, (name, model, begins) in enumerate(families()):
        if args.only and name != args.only:
            continue
        folder = os.path.join(OUT, "tune_" + name)
        torch.manual_seed(number + 1)
        if not os.path.exists(folder + ".zip"):
            make(folder, name, model, begins, text)
        with opened(folder + ".zip") as at:
            model = model_of(at, torch.float64)
            model = (multiply(model) if name == "falcon" else model).train()
            ids = tk.Tokenizer.from_file(os.path.join(at, "tokenizer.json")).encode(text, add_special_tokens=False).ids
        with open(folder + ".txt", "w", encoding="utf-8") as f:
            for loss in tune(model, ids, begins):
                f.write(f"{loss:.9f}\n")
        golden = answer(model.eval())[-1]
        with open(folder + "_logits.txt", "w", encoding="utf-8") as f:
            f.writelines(f"{x:.7g}\n" for x in golden)
        if args.program:
            check_program(os.path.abspath(args.program), name, folder + ".zip", text, golden)


main()
