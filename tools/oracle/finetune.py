#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/lm/tune_*: tiny random models with a tokenizer as folders of transformers, and the losses of
twenty steps of fine-tuning each.

    build/oracle-venv/bin/pip install torch==2.14.1 transformers==5.24.0
    build/oracle-venv/bin/python tools/oracle/finetune.py --data build/test/stories.txt

The text is the first 12,000 bytes of what `make tests` writes. Its tokens are those of the tokenizers library, its
windows those that src/training/windows.h draws, and the update is torch.optim.AdamW, all in float64. The families
differ in what goes wrong easily: Llama has a token before each window, a head of its own and Llama 3's frequencies,
Qwen 2 biases, Qwen 3 norms of heads, Gemma windows and gains less 1, GPT-2 positions and matrices as [in, out].

    tune_FAMILY.txt   20 losses, then the validation loss behind them, one a line
"""
import argparse
import os
import shutil
import sys

import tokenizers as tk
import torch
import transformers as tf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from philox import BATCH, blocks
from zip_folder import pack

OUT = os.path.join(os.path.dirname(__file__), "../../test/golden/lm")
TEXT_BYTES, V, C, M, T, B, STEPS, VAL, SEED = 12000, 288, 16, 32, 24, 4, 20, 0.1, 42
SPECIAL = ["<bos>", "<eos>"]
SIZES = dict(vocab_size=V, hidden_size=C, intermediate_size=M, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
             num_hidden_layers=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=1, pad_token_id=None)
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32, "rope_theta": 500.0}


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


def fill(model, gains_at):
    for key, p in model.named_parameters():
        p.normal_(0, 0.2)
        if any(s in key for s in ("norm", "ln_")) and key.endswith("weight"):
            p.add_(gains_at)
        p.copy_(p.half().to(p.dtype))


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--only", help="one family, instead of all")
    args = parser.parse_args()
    with open(args.data, "rb") as f:
        text = f.read(TEXT_BYTES).decode()
    for number, (name, model, begins) in enumerate(families()):
        if args.only and name != args.only:
            continue
        torch.manual_seed(number + 1)
        model = model.float().train()
        with torch.no_grad():
            fill(model, 0 if name == "gemma3" else 1)
        t = tokenizer(text, begins)
        ids = t.encode(text, add_special_tokens=False).ids
        folder = os.path.join(OUT, "tune_" + name)
        model.half().save_pretrained(folder)
        tf.PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<bos>", eos_token="<eos>").save_pretrained(folder)
        with open(os.path.join(OUT, f"tune_{name}.txt"), "w", encoding="utf-8") as f:
            for loss in tune(model.double(), ids, begins):
                f.write(f"{loss:.9f}\n")
        pack(folder)


main()
