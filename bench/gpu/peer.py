# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the same card: training steps of the presets, and products of matrices.

    python peer.py train [--presets small,medium] [--modes eager,compile] [--out FILE.json]
    python peer.py matmul [--sizes 1024,4096] [--out FILE.json]

A step is what ours does (bench/peers/peer.py, here on the GPU): a batch cut out of a text that lies
on the card, forward, loss, backward, clipping to norm 1, AdamW with decay 0.1 on matrices, the loss
read back. fp32 throughout: TF32 stays off, as it is by default. The model has one projection for
q, k and v, exact (erf) GELU, biases everywhere, and a head tied to the embedding.
"""

import argparse
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

# layers, width, heads, ctx, batch: src/model/presets.def. "behemoth4" is behemoth with 4 x 1024.
PRESETS = {
    "tiny": (2, 48, 3, 32, 16),
    "small": (3, 96, 3, 64, 16),
    "medium": (4, 128, 4, 96, 16),
    "large": (6, 192, 6, 128, 12),
    "xl": (8, 256, 8, 128, 8),
    "huge": (12, 256, 8, 256, 8),
    "massive": (14, 384, 12, 256, 4),
    "mega": (14, 384, 12, 512, 2),
    "behemoth": (24, 1280, 20, 512, 1),
    "behemoth4": (24, 1280, 20, 1024, 4),
}
VOCAB = 256


class Block(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.proj = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.fc_in, self.fc_out = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.fc_out(F.gelu(self.fc_in(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, layers, width, heads, ctx):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, width), nn.Embedding(ctx, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() >= 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, VOCAB), targets.reshape(-1))


class Trainer:
    def __init__(self, preset, mode):
        layers, width, heads, self.ctx, self.batch = PRESETS[preset]
        torch.manual_seed(42)
        self.model = GPT(layers, width, heads, self.ctx).cuda()
        self.params = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(
            [{"params": [p for p in self.params if p.dim() >= 2], "weight_decay": 0.1},
             {"params": [p for p in self.params if p.dim() < 2], "weight_decay": 0.0}],
            lr=3e-4, betas=(0.9, 0.95), eps=1e-8)
        self.text = torch.randint(VOCAB, (1 << 20,), device="cuda")
        self.window = torch.arange(self.ctx + 1, device="cuda")
        self.loss = torch.compile(self.model) if mode == "compile" else self.model

    def step(self):
        starts = torch.randint(len(self.text) - self.ctx, (self.batch, 1), device="cuda")
        rows = self.text[starts + self.window]
        loss = self.loss(rows[:, :-1], rows[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(self.params, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()


def time_steps(trainer, seconds):
    start = time.perf_counter()
    trainer.step()
    first_s = time.perf_counter() - start
    for _ in range(5):
        trainer.step()
    ms, start = [], time.perf_counter()
    while len(ms) < 10 or (len(ms) < 300 and time.perf_counter() - start < seconds):
        before = time.perf_counter()
        trainer.step()
        ms.append((time.perf_counter() - before) * 1e3)
    ms.sort()
    return {"first_s": round(first_s, 2), "n": len(ms), "median_ms": statistics.median(ms),
            "low_ms": ms[len(ms) // 10], "high_ms": ms[-1 - len(ms) // 10]}


def train(args):
    for preset in args.presets.split(","):
        for mode in args.modes.split(","):
            trainer = Trainer(preset, mode)
            yield {"what": "train", "preset": preset, "mode": mode,
                   **time_steps(trainer, args.seconds)}
            del trainer
            torch.cuda.empty_cache()


def matmul(args):
    for text in args.sizes.split(","):
        m, n, k = (int(s) for s in (text.split("x") * 3)[:3])
        a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
        times = max(20, min(500, int(2e12 / (2 * m * n * k))))
        for _ in range(10):
            a @ b
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            a @ b
        end.record()
        torch.cuda.synchronize()
        ms = begin.elapsed_time(end) / times
        yield {"what": "matmul", "m": m, "n": n, "k": k, "times": times, "ms": ms,
               "tflops": 2e-9 * m * n * k / ms}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("train", "matmul"))
    parser.add_argument("--presets", default=",".join(PRESETS))
    parser.add_argument("--modes", default="eager")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--sizes", default="512,1024,2048,4096")
    parser.add_argument("--out")
    args = parser.parse_args()
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
    out = open(args.out, "a") if args.out else None
    for row in (train if args.what == "train" else matmul)(args):
        text = json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
        print(text, flush=True)
        if out:
            print(text, file=out, flush=True)


if __name__ == "__main__":
    sys.exit(main())
