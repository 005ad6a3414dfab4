#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/gpt/muon_custom.txt: weights of a small byte GPT behind three updates by Muon and AdamW.

    build/oracle-venv/bin/python tools/oracle/muon.py > test/golden/gpt/muon_custom.txt

Weights and gradients are formulas of tensor, element and step, so that the test has the same ones. The updates are
torch.optim.Muon's (PyTorch 2.9 or later) with the rates of Moonlight, and torch.optim.AdamW's for what is no matrix
of a layer, all in float64: Muon rounds to bfloat16 on the way, which is switched off here. A line is a tensor's sum
of weights times their cosines of the element's number, in the order of files.
"""
import numpy as np
import torch

from spec import Config, manifest

CONFIG = Config(layers=2, width=40, heads=5, ctx=24)
STEPS, LR, DECAY = 3, 0.02, 0.1


def values(shape, tensor, step):
    e = np.arange(np.prod(shape), dtype=np.float64)
    return torch.tensor(np.sin(0.01 * e * e + tensor + 0.7 * step).astype(np.float32).astype(np.float64)).reshape(shape)


def main():
    names = [(t.name, t.shape) for t in manifest(CONFIG)]
    weights = [torch.nn.Parameter(values(shape, i, 0)) for i, (_, shape) in enumerate(names)]
    is_muons = [name.startswith("blocks.") and len(shape) == 2 for name, shape in names]
    of = {False: [], True: []}
    for w, m in zip(weights, is_muons):
        of[m].append(w)
    decayed = [w for w in of[False] if w.ndim == 2]
    others = [w for w in of[False] if w.ndim == 1]
    torch.Tensor.bfloat16 = lambda x: x
    muon = torch.optim.Muon(of[True], lr=LR, weight_decay=DECAY, momentum=0.95, adjust_lr_fn="match_rms_adamw")
    adamw = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0}],
                              lr=LR, betas=(0.9, 0.95), eps=1e-8)
    for step in range(1, STEPS + 1):
        for i, w in enumerate(weights):
            w.grad = values(w.shape, i, step)
        muon.step()
        adamw.step()
    print(f"# tools/oracle/muon.py, torch {torch.__version__}, float64: layers 2, width 40, heads 5, ctx 24;")
    print("# behind three updates, of each tensor the sum of w[e] cos(e)")
    for w in weights:
        flat = w.detach().numpy().reshape(-1)
        print(f"{np.dot(flat, np.cos(np.arange(flat.size, dtype=np.float64))):.12g}")


main()
