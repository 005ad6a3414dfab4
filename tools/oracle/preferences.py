#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints loss and gradient norm of ten steps of direct preference optimisation in float64, of the folder
test/golden/lm/tune_phi3.zip and a file of pairs whose last quarter validates:

    build/oracle-venv/bin/python tools/oracle/preferences.py PAIRS.jsonl

tinygpt's are those of `train --pairs PAIRS.jsonl --from tune_phi3.zip --batch 4 --lr 1e-3 --steps 10 --val 0.25`.
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

FOLDER = os.path.join(os.path.dirname(__file__), "../../test/golden/lm/tune_phi3.zip")
BETA, STEPS, PAIRS, SEED = 0.1, 10, 2, 42


def order(n, epoch):
    o = list(range(n))
    for i in range(n, 1, -1):
        x = blocks(SEED, BATCH, 1, epoch * n + i, 1)[0]
        k = ((int(x[0]) | int(x[1]) << 32) * i) >> 64
        o[i - 1], o[k] = o[k], o[i - 1]
    return o


def rows(tok, pair):
    for key in ("chosen", "rejected"):
        asked = tok.apply_chat_template(pair["prompt"], add_generation_prompt=True, tokenize=False)
        whole = tok.apply_chat_template(pair["prompt"] + pair[key], tokenize=False)
        asked, whole = (tok(s, add_special_tokens=False)["input_ids"] for s in (asked, whole))
        assert whole[:len(asked)] == asked
        yield whole, len(asked)


def logp(model, ids, n):
    logs = torch.log_softmax(model(torch.tensor([ids])).logits[0], -1)
    return sum(logs[t, ids[t + 1]] for t in range(n - 1, len(ids) - 1))


def main():
    with tempfile.TemporaryDirectory() as top:
        zipfile.ZipFile(FOLDER).extractall(top)
        root = next(at for at, _, files in os.walk(top) if "config.json" in files)
        model = tf.AutoModelForCausalLM.from_pretrained(root, dtype=torch.float64, attn_implementation="eager")
        tok = tf.AutoTokenizer.from_pretrained(root)
    with open(sys.argv[1], encoding="utf-8") as f:
        pairs = [list(rows(tok, json.loads(line))) for line in f]
    pairs = pairs[:len(pairs) - len(pairs) // 4]
    with torch.no_grad():
        reference = [[logp(model, *row) for row in pair] for pair in pairs]
    groups = [{"params": [p for p in model.parameters() if (p.dim() == 2) == decays], "weight_decay": 0.1 * decays}
              for decays in (True, False)]
    adamw = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    for step in range(STEPS):
        loss = 0
        for n in range(step * PAIRS, (step + 1) * PAIRS):
            i = order(len(pairs), n // len(pairs))[n % len(pairs)]
            chosen, rejected = (logp(model, *row) - was for row, was in zip(pairs[i], reference[i]))
            loss = loss - torch.nn.functional.logsigmoid(BETA * (chosen - rejected)) / PAIRS
        adamw.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        print(step + 1, loss.item(), norm.item())


main()
