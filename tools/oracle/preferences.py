#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/lm/pairs_*: pairs of answers, and what direct preference optimisation in float64 makes of them,
of tiny random models whose folders finetune.py has written (tune_FAMILY.zip):

    build/oracle-venv/bin/python tools/oracle/preferences.py

    pairs_phi3.jsonl     messages, through the template of the model
    pairs_lfm2.jsonl     texts, of a model that has no template
    pairs_FAMILY.txt     10 losses, then loss, accuracy and margin of what validates, one a line

tinygpt's are those of `train --pairs pairs_FAMILY.jsonl --from tune_FAMILY.zip --batch 4 --lr 1e-3 --steps 10 --val 0.25`.
"""
import json
import os
import sys
import tempfile
import zipfile

import torch
import transformers as tf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from philox import BATCH, blocks

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../test/golden/lm")
BETA, STEPS, PAIRS, SEED = 0.1, 10, 2, 42


def made(family):
    """16 pairs: the preferred answer says the number, the other one does not; one other asks back."""
    for i in range(16):
        question, good, bad = f"Say {i}", f"It is {i}.", "Why? " * (1 + i % 2) + "No"
        if family != "phi3":
            yield {"prompt": question + ": ", "chosen": good, "rejected": bad}
            continue
        prompt = [{"role": "user", "content": question}]
        good, bad = ([{"role": "assistant", "content": text}] for text in (good, bad))
        if i % 3:
            yield {"prompt": prompt, "chosen": good, "rejected": bad}
        else:
            yield {"chosen": prompt + good, "rejected": prompt + bad}


def order(n, epoch):
    o = list(range(n))
    for i in range(n, 1, -1):
        x = blocks(SEED, BATCH, 1, epoch * n + i, 1)[0]
        k = ((int(x[0]) | int(x[1]) << 32) * i) >> 64
        o[i - 1], o[k] = o[k], o[i - 1]
    return o


def rows(tok, pair):
    for key in ("chosen", "rejected"):
        if isinstance(pair[key], str):
            asked = tok(pair["prompt"])["input_ids"]
            answer = tok(pair[key], add_special_tokens=False)["input_ids"]
            yield asked + answer + [tok.eos_token_id], len(asked)
            continue
        messages = pair.get("prompt", []) + pair[key]
        asked = tok.apply_chat_template(messages[:-1], add_generation_prompt=True, tokenize=False)
        whole = tok.apply_chat_template(messages, tokenize=False)
        asked, whole = (tok(s, add_special_tokens=False)["input_ids"] for s in (asked, whole))
        assert whole[:len(asked)] == asked
        yield whole, len(asked)


def logp(model, ids, n):
    logs = torch.log_softmax(model(torch.tensor([ids])).logits[0], -1)
    return sum(logs[t, ids[t + 1]] for t in range(n - 1, len(ids) - 1))


def margins(model, pairs, reference):
    for pair, before in zip(pairs, reference):
        chosen, rejected = (logp(model, *row) - was for row, was in zip(pair, before))
        yield BETA * (chosen - rejected)


def loss_of(margins):
    return -torch.nn.functional.logsigmoid(torch.stack(margins)).mean()


def train(family):
    with tempfile.TemporaryDirectory() as top:
        zipfile.ZipFile(os.path.join(GOLDEN, f"tune_{family}.zip")).extractall(top)
        root = next(at for at, _, files in os.walk(top) if "config.json" in files)
        model = tf.AutoModelForCausalLM.from_pretrained(root, dtype=torch.float64, attn_implementation="eager")
        tok = tf.AutoTokenizer.from_pretrained(root)
    lines = list(made(family))
    with open(os.path.join(GOLDEN, f"pairs_{family}.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)
    pairs = [list(rows(tok, line)) for line in lines]
    n = len(pairs) - len(pairs) // 4
    with torch.no_grad():
        reference = [[logp(model, *row) for row in pair] for pair in pairs]
    groups = [{"params": [p for p in model.parameters() if (p.dim() >= 2) == decays], "weight_decay": 0.1 * decays}
              for decays in (True, False)]
    adamw = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    with open(os.path.join(GOLDEN, f"pairs_{family}.txt"), "w", encoding="utf-8") as f:
        for step in range(STEPS):
            at = [order(n, i // n)[i % n] for i in range(step * PAIRS, (step + 1) * PAIRS)]
            loss = loss_of(list(margins(model, [pairs[i] for i in at], [reference[i] for i in at])))
            adamw.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adamw.step()
            print(f"{loss.item():.9f}", file=f)
        with torch.no_grad():
            left = list(margins(model, pairs[n:], reference[n:]))
        share = sum(m.item() > 0 for m in left) / len(left)
        for value in (loss_of(left).item(), share, sum(left).item() / len(left)):
            print(f"{value:.9f}", file=f)


for name in ("phi3", "lfm2"):
    train(name)
