# SPDX-License-Identifier: Apache-2.0
"""Write test/golden/gpt/probe_custom.txt: what is to be seen inside a model, and what edits do to it.

    python probe.py --data stories.txt [--out DIR]

The forward pass is spelled out stage by stage over the modules of gpt.py, so that every part of a
block can be looked at or replaced; without edits it must agree with the model's own forward. The
weights are made sharp, since attention of a fresh model is the same everywhere: matrices of the
blocks are multiplied by 8, and vectors that begin as zeros get values that differ.
"""

import argparse
import math
import os

import torch
import torch.nn.functional as F

from golden import CUSTOM, LAST_POSITIONS, SEED, TRUTH, VAL_FRACTION, WORKING, sizes, write
from gpt import Text, make_model
from spec import VOCAB

ALL = slice(None)
# Of the text, the byte that the model begins to read at: behind it each edit moves the logits.
FIRST = 24
# (what, [edits]): an edit is layer, part, kind, positions, head. test_probe.c has the same list.
EXPERIMENTS = (
    ("head 2 of layer 1 is zero", [(1, "head", "zero", ALL, 2)]),
    ("attention of layer 0 is zero at position 10", [(0, "attention", "zero", 10, None)]),
    ("MLP of layer 1 is zero", [(1, "mlp", "zero", ALL, None)]),
    ("block 0 is left out", [(0, "block", "zero", ALL, None)]),
    ("MLP of layer 0 from the donor at position 23", [(0, "mlp", "donor", 23, None)]),
    ("head 1 of layer 0 from the donor, block 1 left out at position 20",
     [(0, "head", "donor", ALL, 1), (1, "block", "zero", 20, None)]),
)


def sharpen(model):
    with torch.no_grad():
        for name, param in model.named_parameters():
            if param.dim() == 2 and name.startswith("blocks."):
                param.mul_(8)
            elif name.endswith(".bias"):
                param.copy_((torch.arange(param.numel()) % 7 - 3) / 16)
    return model


def replaced(kept, donor, edits, layer, part, own, nothing):
    """The value of a part after its edits; kept remembers it. Parts of heads are [T, H, D]."""
    value = own.clone()
    for at, what, kind, where, head in edits:
        if (at, what) == (layer, part):
            index = (where,) if head is None else (where, head)
            value[index] = (donor[layer, part] if kind == "donor" else nothing)[index]
    kept[layer, part] = value
    return value


@torch.no_grad()
def run(model, tokens, edits=(), donor=None):
    """Attention [L][H,T,T], lens [L+1][T,V] and the parts by (layer, name), for one text [T]."""
    config, heads = model.config, model.config.heads
    kept, attention, lens = {}, [], []

    def look(x):
        lens.append(F.linear(model.ln_final(x), model.token_embedding.weight))

    x = model.token_embedding(tokens) + model.position_embedding.weight[: len(tokens)]
    look(x)
    seen = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
    for i, block in enumerate(model.blocks):
        before, a = x, block.attn
        q, k, v = (f(block.ln1(x)).view(len(tokens), heads, -1)
                   for f in (a.q_proj, a.k_proj, a.v_proj))
        scores = torch.einsum("thd,jhd->htj", q, k) / math.sqrt(config.width // heads)
        p = scores.masked_fill(~seen, -math.inf).softmax(-1)
        attention.append(p)
        o = torch.einsum("htj,jhd->thd", p, v)
        o = replaced(kept, donor, edits, i, "head", o, torch.zeros_like(o)).reshape(x.shape)
        o = a.o_proj(o)
        x = x + replaced(kept, donor, edits, i, "attention", o, torch.zeros_like(o))
        m = block.mlp(block.ln2(x))
        x = x + replaced(kept, donor, edits, i, "mlp", m, torch.zeros_like(m))
        x = replaced(kept, donor, edits, i, "block", x, before)
        look(x)
    return attention, lens, kept


def look_inside(text, dtype):
    """All values of the file."""
    model = sharpen(make_model(CUSTOM, SEED, dtype))
    tokens, other = text.train[FIRST : FIRST + CUSTOM.ctx], text.train[FIRST + CUSTOM.ctx :][: CUSTOM.ctx]
    attention, lens, _ = run(model, tokens)
    donor = run(model, other)[2]
    with torch.no_grad():
        own = model(tokens[None])[0]
    assert (own - lens[-1]).abs().max() < (1e-12 if dtype == TRUTH else 1e-4)
    parts = [p[:, -LAST_POSITIONS:].reshape(-1) for p in attention]
    parts += [logits[-1] for logits in lens]
    for _, edits in EXPERIMENTS:
        edited = run(model, tokens, edits, donor)[1][-1][-1]
        assert (edited - own[-1]).abs().max() > 1e-2, "an edit that changes nothing tests nothing"
        parts.append(edited)
    return torch.cat(parts).double()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="stories.txt")
    parser.add_argument("--out", default=os.path.join(here, "../../test/golden/gpt"))
    args = parser.parse_args()
    text = Text(args.data, VAL_FRACTION)
    true = look_inside(text, TRUTH)
    noise = (look_inside(text, WORKING) - true).abs().max()
    write(os.path.join(os.path.normpath(args.out), "probe_custom.txt"),
          [f"attention [L][H][{LAST_POSITIONS}][T]: the last {LAST_POSITIONS} rows of every head",
           f"lens [L+1][{VOCAB}]: logits of the last position behind 0, 1, .. blocks",
           f"experiments [{len(EXPERIMENTS)}][{VOCAB}]: the model's logits there, when",
           *(f"  {what}" for what, _ in EXPERIMENTS),
           f"text: {CUSTOM.ctx} bytes of stories.txt from {FIRST} on; donor: the next {CUSTOM.ctx}",
           sizes(CUSTOM) + ", then matrices of blocks times 8, biases (i % 7 - 3) / 16",
           f"float32 differs by at most {noise:.2g}, largest value {true.abs().max():.3g}"],
          true.tolist(), script="probe.py")


if __name__ == "__main__":
    main()
