#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/lm/masked_*: tiny random encoders as folders of transformers, and the losses of fifty steps of
finding masked tokens.

    build/oracle-venv/bin/pip install torch==2.14.1 transformers==5.24.0
    build/oracle-venv/bin/python tools/oracle/masked.py --data build/test/stories.txt

The text is the first 12,000 bytes of what `make tests` writes. Rows begin where src/training/data/windows.h has them,
the tokens that are to be found are those of src/training/data/masked.h, and the update is torch.optim.AdamW, all in
float64. The logits of a token are the products of its vector with the rows of the table.

    masked_FAMILY.zip   the folder; made where there is none, else the one that is there
    masked_FAMILY.txt   50 losses, then the validation loss behind them, one a line
"""
import argparse
import os
import re
import sys
import tempfile
import zipfile

import tokenizers as tk
import torch
import transformers as tf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from philox import BATCH, MASK, blocks
from zip_folder import pack

OUT = os.path.join(os.path.dirname(__file__), "../../test/golden/lm")
TEXT_BYTES, T, B, STEPS, VAL, SEED = 12000, 24, 4, 50, 0.1, 42
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CLS, SEP, HIDDEN, NONE = 2, 3, 4, -100
LETTERS = [chr(c) for c in range(ord("a"), ord("z") + 1)]


def vocabulary(text):
    """All letters, so that no word is unknown, marks, and the words that come most often."""
    words = re.findall("[a-z]{2,}", text.lower())
    often = sorted(set(words), key=lambda w: (-words.count(w), w))[:40]
    return SPECIAL + list(",.;:!?'\"-") + LETTERS + ["##" + c for c in LETTERS] + often


def families(n):
    sizes = dict(vocab_size=n, hidden_size=16, intermediate_size=32, num_attention_heads=2, num_hidden_layers=2,
                 max_position_embeddings=64, pad_token_id=0)
    words = dict(cls_token_id=CLS, sep_token_id=SEP, bos_token_id=None, eos_token_id=None)
    yield "bert", tf.BertModel(tf.BertConfig(**sizes), add_pooling_layer=False)
    yield "modernbert", tf.ModernBertModel(tf.ModernBertConfig(
        local_attention=8, global_rope_theta=5000.0, local_rope_theta=300.0,
        **(sizes | words | {"num_hidden_layers": 4})))
    yield "nomic", tf.NomicBertModel(tf.NomicBertConfig(**sizes), add_pooling_layer=False)
    yield "embeddinggemma", tf.Gemma3TextModel(tf.Gemma3TextConfig(
        num_key_value_heads=1, head_dim=8, sliding_window=8, query_pre_attn_scalar=8, use_bidirectional_attention=True,
        attn_implementation="eager", bos_token_id=CLS, eos_token_id=SEP, **(sizes | {"num_hidden_layers": 6})))


def tokenizer(pieces):
    t = tk.Tokenizer(tk.models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    t.normalizer = tk.normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    t.post_processor = tk.processors.BertProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    t.add_special_tokens(SPECIAL)
    return tf.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                      sep_token="[SEP]", mask_token="[MASK]")


def make(folder, name, model, tok):
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.normal_(0, 0.2)
            if "norm" in key.lower() and key.endswith("weight") and name != "embeddinggemma":
                p.add_(1)
            p.copy_(p.half().to(p.dtype))
    model.half().save_pretrained(folder)
    tok.save_pretrained(folder)
    pack(folder)


def uniform(x):
    return (int(x) + 0.5) / 2**32


def below(x, n):
    return (int(x[2]) | int(x[3]) << 32) * n >> 64


def hidden(seed, index, ids, n):
    """A row of T with CLS, SEP and gaps, and what is to be found in it."""
    inputs, targets, draws = [CLS, *ids, SEP], [NONE] * T, [blocks(seed, MASK, i, index, 1)[0] for i in range(T + 1)]
    chosen = [i for i in range(1, T - 1) if uniform(draws[i][0]) < 0.15]
    x = draws[T]
    for i in chosen or [1 + ((int(x[0]) | int(x[1]) << 32) * (T - 2) >> 64)]:
        targets[i], u = inputs[i], uniform(draws[i][1])
        if u < 0.8:
            inputs[i] = HIDDEN
        elif u < 0.9:
            inputs[i] = below(draws[i], n)
    return inputs, targets


def loss_of(model, rows):
    inputs, targets = (torch.tensor(x) for x in zip(*rows))
    logits = model(input_ids=inputs).last_hidden_state @ model.get_input_embeddings().weight.T
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=NONE)


def tune(model, ids, n_words):
    n_val = int(len(ids) * VAL)
    n = len(ids) - n_val
    groups = [[p for p in model.parameters() if (p.ndim >= 2) == d] for d in (True, False)]
    optimizer = torch.optim.AdamW([{"params": groups[0], "weight_decay": 0.1}, {"params": groups[1], "weight_decay": 0}],
                                  lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    for step in range(STEPS):
        rows = []
        for i, x in enumerate(blocks(SEED, BATCH, 0, step * B, B)):
            start = (int(x[0]) | int(x[1]) << 32) * (n - T) >> 64
            rows.append(hidden(SEED, step * B + i, ids[start:start + T - 2], n_words))
        loss = loss_of(model, rows)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.item()
    with torch.no_grad():
        rows = [hidden(0, i, ids[n + i * T:n + i * T + T - 2], n_words) for i in range((n_val - 1) // T)]
        yield loss_of(model, rows).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with open(args.data, "rb") as f:
        text = f.read(TEXT_BYTES).decode()
    pieces = vocabulary(text)
    for number, (name, model) in enumerate(families(len(pieces))):
        path = os.path.join(OUT, "masked_" + name)
        torch.manual_seed(number + 1)
        if not os.path.exists(path + ".zip"):
            make(path, name, model, tokenizer(pieces))
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(path + ".zip").extractall(folder)
            model = type(model).from_pretrained(folder, dtype=torch.float64, attn_implementation="eager",
                                                **({"add_pooling_layer": False} if name in ("bert", "nomic") else {}))
            model.get_input_embeddings().padding_idx = None  # else the row of [PAD], drawn like any, stands still
            ids = tf.AutoTokenizer.from_pretrained(folder).encode(text, add_special_tokens=False)
        with open(path + ".txt", "w", encoding="utf-8") as f:
            f.writelines(f"{loss:.9f}\n" for loss in tune(model.eval(), ids, len(pieces)))


main()
