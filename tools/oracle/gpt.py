# SPDX-License-Identifier: Apache-2.0
"""The byte GPT in plain PyTorch: the model, the update, the evaluation that golden numbers rest on.

Pre-LN decoder, learned positions, exact (erf) GELU, biases on every linear layer, the output head
tied to the token embedding. Parameter names are those of a .tinygpt file (spec.py).
The update is torch.optim.AdamW itself and the clipping is torch's own, so what is compared with
is PyTorch and not a second reading of the same formula.

`Mutant` switches one mistake on at a time. A tolerance that lets a mutant pass is too loose, so
golden.py measures each of them against the tolerance that the tests use.
"""

import math
from typing import NamedTuple, Optional

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from philox import batch_starts, init_weights
from spec import VOCAB, manifest

BETAS, EPS = (0.9, 0.95), 1e-8


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        c = config.width
        self.heads = config.heads
        self.q_proj, self.k_proj = nn.Linear(c, c), nn.Linear(c, c)
        self.v_proj, self.o_proj = nn.Linear(c, c), nn.Linear(c, c)

    def forward(self, x):  # [B, T, C] -> [B, T, C]
        b, t, c = x.shape
        q, k, v = (
            f(x).view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for f in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, c))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc_in = nn.Linear(config.width, config.mlp)
        self.fc_out = nn.Linear(config.mlp, config.width)

    def forward(self, x):
        return self.fc_out(F.gelu(self.fc_in(x)))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln1, self.attn = nn.LayerNorm(config.width, eps=1e-5), Attention(config)
        self.ln2, self.mlp = nn.LayerNorm(config.width, eps=1e-5), MLP(config)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(VOCAB, config.width)
        self.position_embedding = nn.Embedding(config.ctx, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.ln_final = nn.LayerNorm(config.width, eps=1e-5)

    def forward(self, tokens):  # [B, T] -> logits [B, T, V]
        x = self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.ln_final(x), self.token_embedding.weight)

    def loss(self, tokens, targets, reduction="mean"):
        return F.cross_entropy(
            self(tokens).view(-1, VOCAB), targets.reshape(-1), reduction=reduction
        )


def make_model(config, seed, dtype=torch.float32):
    """A model whose weights are the float32 initial values of `seed`, widened if dtype is wider."""
    model = GPT(config).to(dtype)
    params = dict(model.named_parameters())
    weights = init_weights(config, seed)
    assert set(params) == set(weights), set(params) ^ set(weights)
    with torch.no_grad():
        for tensor in manifest(config):
            value = torch.from_numpy(weights[tensor.name])
            params[tensor.name].copy_(value.t() if tensor.linear else value)
    return model


def make_optimizer(model, decay, decays=lambda name, param: param.dim() >= 2):
    """AdamW with decay on the tensors that `decays` picks: by default all matrices."""
    groups = ([], [])
    for name, param in model.named_parameters():
        groups[0 if decays(name, param) else 1].append(param)
    return torch.optim.AdamW(
        [{"params": groups[0], "weight_decay": decay}, {"params": groups[1], "weight_decay": 0.0}],
        lr=0.0,
        betas=BETAS,
        eps=EPS,
    )


class Text:
    """A text as bytes, cut into a training part and, behind it, a validation part."""

    def __init__(self, path, val_fraction):
        data = np.fromfile(path, np.uint8)
        n_val = int(len(data) * val_fraction)
        self.train = torch.from_numpy(data[: len(data) - n_val].astype(np.int64))
        self.val = torch.from_numpy(data[len(data) - n_val :].astype(np.int64))

    def batch(self, seed, step, batch, ctx):
        """Inputs and targets [B, T] of a step; the samples of a run are numbered through."""
        starts = batch_starts(seed, step * batch, batch, len(self.train) - ctx)
        inputs = torch.stack([self.train[s : s + ctx] for s in starts])
        targets = torch.stack([self.train[s + 1 : s + 1 + ctx] for s in starts])
        return inputs, targets


class Schedule(NamedTuple):
    """Learning rate by step. Without `warmup` and `cosine` it is the constant `lr`.

    step < warmup:  lr * (step + 1) / warmup
    after that:     min + (lr - min) / 2 * (1 + cos(pi * (step - warmup) / (steps - warmup)))
    with min = 0.1 * lr, if cosine; else lr.
    """

    lr: float
    steps: int
    warmup: int = 0
    cosine: bool = False

    def at(self, step):
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        if not self.cosine:
            return self.lr
        low = 0.1 * self.lr
        done = (step - self.warmup) / (self.steps - self.warmup)
        return low + 0.5 * (self.lr - low) * (1 + math.cos(math.pi * done))


class Mutant(NamedTuple):
    """One mistake in the update. The default makes none."""

    decay_biases: bool = False
    decay_gains: bool = False
    no_decay: bool = False
    no_clip: bool = False
    drop_grad: Optional[str] = None  # the tensor whose gradient stays zero


class Run(NamedTuple):
    """What training gave: the loss before each update, the gradient norm, and the model."""

    losses: list
    norms: list
    model: GPT


def train(config, text, schedule, seed=42, batch=None, clip=1.0, decay=0.1, dtype=torch.float32,
          mutant=Mutant(), fixed_batch=False):
    """Train from the initial weights. With fixed_batch every step sees the samples of step 0."""
    model = make_model(config, seed, dtype)
    params = list(model.parameters())
    names = [name for name, _ in model.named_parameters()]
    opt = make_optimizer(
        model,
        0.0 if mutant.no_decay else decay,
        lambda name, param: param.dim() >= 2
        or (mutant.decay_biases and name.endswith(".bias"))
        or (mutant.decay_gains and name.endswith(".weight")),
    )
    losses, norms = [], []
    for step in range(schedule.steps):
        inputs, targets = text.batch(seed, 0 if fixed_batch else step, batch or config.batch,
                                     config.ctx)
        loss = model.loss(inputs, targets)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        if mutant.drop_grad:
            params[names.index(mutant.drop_grad)].grad.zero_()
        limit = math.inf if mutant.no_clip else clip
        norms.append(nn.utils.clip_grad_norm_(params, limit).item())
        for group in opt.param_groups:
            group["lr"] = schedule.at(step)
        opt.step()
        losses.append(loss.item())
    return Run(losses, norms, model)


@torch.no_grad()
def evaluate(model, val, windows=None, rows=64):
    """Mean loss over `windows` windows of T bytes, spread evenly over `val`; None: all of them."""
    ctx = model.config.ctx
    available = (len(val) - 1) // ctx
    n = min(windows or available, available)
    starts = [i * available // n * ctx for i in range(n)]
    total = 0.0
    for i in range(0, n, rows):
        part = starts[i : i + rows]
        inputs = torch.stack([val[s : s + ctx] for s in part])
        targets = torch.stack([val[s + 1 : s + 1 + ctx] for s in part])
        total += model.loss(inputs, targets, "none").double().sum().item()
    return total / (n * ctx)
