# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the training comparison: one process, blocks of steps on demand (worker.py).

    python peer.py --preset small --data FILE --mode eager|compile|bf16 --threads 2 --steps 10

A step is all that training needs: a batch cut out of the text, forward, loss, backward, clipping
to norm 1, AdamW with decay 0.1 on matrices, gradients set to None, and the loss read back.

The model is that of tools/oracle/gpt.py. Two of its choices would handicap PyTorch, so they are
made here as somebody would who wants speed: --qkv fused computes the three projections in one
product, and --optimizer picks the implementation of AdamW (default, foreach or fused).
"""

import argparse
import contextlib
import json
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/oracle"))

import gpt  # noqa: E402
from spec import PRESETS  # noqa: E402

MODES = ("eager", "compile", "bf16")
OPTIMIZERS = {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True}}


class FusedAttention(nn.Module):
    """The oracle's attention with q, k and v as one linear layer of 3C outputs."""

    def __init__(self, attention, width):
        super().__init__()
        self.heads = attention.heads
        self.qkv_proj = nn.Linear(width, 3 * width)
        self.o_proj = attention.o_proj
        with torch.no_grad():
            parts = (attention.q_proj, attention.k_proj, attention.v_proj)
            self.qkv_proj.weight.copy_(torch.cat([p.weight for p in parts]))
            self.qkv_proj.bias.copy_(torch.cat([p.bias for p in parts]))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv_proj(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, c))


class Trainer:
    def __init__(self, args):
        self.config = PRESETS[args.preset]
        torch.manual_seed(42)
        self.model = gpt.make_model(self.config, seed=42)
        if args.qkv == "fused":
            for block in self.model.blocks:
                block.attn = FusedAttention(block.attn, self.config.width)
        self.params = list(self.model.parameters())
        matrices = [p for p in self.params if p.dim() >= 2]
        vectors = [p for p in self.params if p.dim() < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
            lr=3e-4, betas=gpt.BETAS, eps=gpt.EPS, **OPTIMIZERS[args.optimizer])
        data = np.fromfile(args.data, np.uint8)
        self.text = torch.from_numpy(data.astype(np.int64))
        self.window = torch.arange(self.config.ctx + 1)
        self.loss = torch.compile(self.model.loss) if args.mode == "compile" else self.model.loss
        self.bf16 = args.mode == "bf16"

    def step(self):
        last = len(self.text) - self.config.ctx
        starts = torch.randint(last, (self.config.batch, 1))
        rows = self.text[starts + self.window]
        autocast = torch.autocast("cpu", torch.bfloat16) if self.bf16 else contextlib.nullcontext()
        with autocast:
            loss = self.loss(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())
        loss.backward()
        nn.utils.clip_grad_norm_(self.params, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def block(self, steps):
        ms = []
        for _ in range(steps):
            start = time.perf_counter()
            self.step()
            ms.append((time.perf_counter() - start) * 1e3)
        return ms


def say(answer):
    print(json.dumps(answer), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="small")
    parser.add_argument("--data", required=True)
    parser.add_argument("--mode", choices=MODES, default="eager")
    parser.add_argument("--qkv", choices=("separate", "fused"), default="fused")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=0, help="steps of a block; 0: about a second")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_num_interop_threads(1)

    start = time.perf_counter()
    trainer = Trainer(args)
    first_loss = trainer.step()
    first_s = time.perf_counter() - start
    warm = trainer.block(3)
    steps = args.steps or max(3, min(50, round(1000 / min(warm))))
    say({"ready": True, "steps": steps, "first_step_s": first_s, "first_loss": first_loss,
         "warm_ms": warm, "torch": torch.__version__,
         "isa": torch.backends.cpu.get_cpu_capability()})
    for line in sys.stdin:
        word = line.strip()
        if word == "quit":
            return
        if word != "go":
            sys.exit(f"peer.py: want go or quit, have {word!r}")
        say({"ms": trainer.block(steps)})


if __name__ == "__main__":
    main()
