# SPDX-License-Identifier: Apache-2.0
"""Write the golden numbers of the byte GPT that the tests compare with: test/golden/gpt/*.txt.

    python golden.py --data stories.txt [--out DIR] [--only init,logits,losses,overfit,val]

A file is a comment header (lines that begin with '#') and then one value a line. The header says
what the values are, with which settings and versions they came about, and how far float32 runs
stray from them: the room that a tolerance needs. All numbers come from float64 runs that start
at the float32 initial weights, so they are nearer to the truth than what they are compared with.

The losses file also lists mutants: the same run with one mistake in it. Each line tells from which
step on a relative tolerance of 1e-5 notices. A tolerance can be tightened or loosened with that
table in hand, never without it.
"""

import argparse
import os
import platform
import sys
from unittest import mock

import numpy as np
import torch

from gpt import Mutant, Schedule, Text, evaluate, make_model, train
from philox import batch_starts, init_weights
from spec import PRESETS, VOCAB, Config, manifest

SEED = 42
VAL_FRACTION = 0.1
GATE = 1e-5  # the relative tolerance that the loss test uses
SMALL = PRESETS["small"]
CUSTOM = Config(layers=2, width=40, heads=5, ctx=24)
LAST_POSITIONS = 4
OVERFIT_BATCH = 4
TRUTH, WORKING = torch.float64, torch.float32


def sizes(config):
    return (f"layers {config.layers}, width {config.width}, heads {config.heads}, "
            f"ctx {config.ctx}, vocab {VOCAB}, seed {SEED}")


def write(path, lines, values, pattern="%.9g", script="golden.py"):
    """One golden file: the comment lines, versions, then the values."""
    made_by = [f"written by tools/oracle/{script}",
               f"PyTorch {torch.__version__}, numpy {np.__version__}, "
               f"Python {platform.python_version()}"]
    with open(path, "w") as f:
        f.writelines(f"# {line}\n" for line in lines + made_by)
        f.writelines((pattern % v) + "\n" for v in values)
    print(f"{path}: {len(values)} values, {os.path.getsize(path)} bytes")


def relative(have, want):
    return [abs(a - b) / abs(b) for a, b in zip(have, want)]


def first_above(errors, limit):
    return next((i for i, e in enumerate(errors) if e > limit), None)


def write_init(text, out):
    """Random numbers alone, so that a wrong generator is told apart from a wrong model."""
    weights = init_weights(CUSTOM, SEED)
    values = []
    for tensor in manifest(CUSTOM):
        flat = weights[tensor.name].reshape(-1)
        values += [flat[0], flat[1], flat[-1], flat.astype(np.float64).sum()]
    write(os.path.join(out, "init_custom.txt"),
          ["initial weights; for each tensor in manifest order four values:",
           "  first element, second element, last element, sum of all in double",
           "  elements in the order of a .tinygpt file: [in, out] for linear weights",
           sizes(CUSTOM)], values)
    limit = len(text.train) - SMALL.ctx
    write(os.path.join(out, "starts_small.txt"),
          ["batch starts of the samples 0 .. 63",
           f"range [0, {limit}) = training bytes {len(text.train)} - ctx {SMALL.ctx}, seed {SEED}"],
          batch_starts(SEED, 0, 64, limit), "%d")


def wrong_models(config):
    """Mistakes in the forward pass that training hardly shows: name, and patch that makes it."""
    def patch(name, wrong):
        return mock.patch.object(torch.nn.functional, name, wrong)

    gelu, norm = torch.nn.functional.gelu, torch.nn.functional.layer_norm
    attention = torch.nn.functional.scaled_dot_product_attention
    yield "gelu by tanh", patch("gelu", lambda x: gelu(x, approximate="tanh"))
    yield "layer norm eps 1e-6", patch("layer_norm", lambda x, n, w, b, eps: norm(x, n, w, b, 1e-6))
    yield "scores over D, not its root", patch(
        "scaled_dot_product_attention",
        lambda q, k, v, is_causal: attention(q, k, v, is_causal=is_causal,
                                             scale=config.heads / config.width))


def write_logits(text, out):
    """Logits of the untrained model behind the first T bytes of the text."""
    for name, config in (("small", SMALL), ("custom", CUSTOM)):
        prompt = text.train[: config.ctx][None]

        @torch.no_grad()
        def logits(dtype):
            model = make_model(config, SEED, dtype)
            return model(prompt)[0, -LAST_POSITIONS:].reshape(-1).double()

        true = logits(TRUTH)

        def error(values):
            return (values - true).abs().max().item()

        noise, mistakes = error(logits(WORKING)), []
        for mistake, patch in wrong_models(config):
            with patch:
                mistakes.append(f"{mistake} {error(logits(TRUTH)):.1e}")
        write(os.path.join(out, f"logits_{name}.txt"),
              [f"logits of the initial weights at the last {LAST_POSITIONS} positions, "
               f"[{LAST_POSITIONS}][{VOCAB}]",
               f"prompt: the first {config.ctx} bytes of stories.txt",
               sizes(config),
               f"float32 differs by at most {noise:.2g}, largest value {true.abs().max():.3g}",
               "mistakes move them by: " + "; ".join(mistakes)],
              true.tolist())


def mutants():
    """Name of a mistake and the mistake."""
    yield "decay on biases", Mutant(decay_biases=True)
    yield "decay on layer norm gains", Mutant(decay_gains=True)
    yield "no decay", Mutant(no_decay=True)
    yield "no clipping", Mutant(no_clip=True)
    for tensor in manifest(SMALL):
        # One bias of a kind is enough: those of the first block stand for the others.
        if tensor.name.endswith(".bias") and tensor.name.startswith(("ln_", "blocks.0.")):
            yield "no gradient of " + tensor.name, Mutant(drop_grad=tensor.name)


def write_losses(text, out):
    """300 steps of small at a constant rate, and what mistakes do to them."""
    schedule = Schedule(lr=3e-4, steps=300)
    true = train(SMALL, text, schedule, seed=SEED, dtype=TRUTH)
    noise = relative(train(SMALL, text, schedule, seed=SEED, dtype=WORKING).losses, true.losses)
    worst = max(noise)
    rows = []
    for name, mutant in mutants():
        run = train(SMALL, text, schedule, seed=SEED, dtype=TRUTH, mutant=mutant)
        errors = relative(run.losses, true.losses)
        step = first_above(errors, GATE)
        seen = "never" if step is None else f"step {step:3d}"
        rows.append(f"  {name:42s} {seen:8s}  largest {max(errors):.2e} "
                    f"at step {errors.index(max(errors)):3d}")
    clipped = [i for i, n in enumerate(true.norms) if n > 1.0]
    write(os.path.join(out, "losses_small.txt"),
          ["training loss before the update of each step, steps 0 .. 299",
           sizes(SMALL) + f", batch {SMALL.batch}",
           f"lr 3e-4 constant, betas 0.9 0.95, eps 1e-8, decay 0.1 on matrices, clip 1.0, "
           f"val fraction {VAL_FRACTION}",
           f"gradient norm above 1 in {len(clipped)} steps, between {min(true.norms):.3f} "
           f"and {max(true.norms):.3f}",
           f"a float32 run of PyTorch differs by at most {worst:.2e} relative, "
           f"at step {noise.index(worst)}",
           f"first step at which a relative tolerance of {GATE:g} notices a mistake:"]
          + rows +
          ["  (attention cannot see a key bias: softmax takes out what all scores of a row share)"],
          true.losses)


def write_overfit(text, out):
    """One batch over and over: the loss has to fall to almost nothing."""
    schedule = Schedule(lr=1e-3, steps=151)
    true, working = (
        train(SMALL, text, schedule, seed=SEED, batch=OVERFIT_BATCH, dtype=dtype,
              fixed_batch=True).losses
        for dtype in (TRUTH, WORKING)
    )
    noise = relative(working, true)
    write(os.path.join(out, "overfit_small.txt"),
          [f"training loss before each update on one fixed batch (samples 0 .. "
           f"{OVERFIT_BATCH - 1}); value 0: untrained, value 150: after 150 updates",
           sizes(SMALL) + f", batch {OVERFIT_BATCH}",
           "lr 1e-3 constant, betas 0.9 0.95, eps 1e-8, decay 0.1 on matrices, clip 1.0, "
           f"val fraction {VAL_FRACTION}",
           "a float32 run of PyTorch differs, relative: "
           + ", ".join(f"{max(noise[a : b + 1]):.1e} in steps {a} .. {b}"
                       for a, b in ((0, 25), (26, 50), (51, 100), (101, 150)))], true)


def write_val(text, out):
    """Validation loss of two full runs."""
    runs = (("lr 3e-4 constant", Schedule(3e-4, 1500)),
            ("lr 3e-3, 100 steps of warm-up, cosine to 3e-4", Schedule(3e-3, 1500, 100, True)))
    values, lines = [], []
    for i, (name, schedule) in enumerate(runs):
        true, working = (
            evaluate(train(SMALL, text, schedule, seed=SEED, dtype=dtype).model, text.val)
            for dtype in (TRUTH, WORKING)
        )
        values.append(true)
        lines.append(f"value {i}: {name}; a float32 run gives {working:.6f}")
    write(os.path.join(out, "val_small.txt"),
          [f"validation loss after 1500 steps, over all {(len(text.val) - 1) // SMALL.ctx} windows",
           *lines,
           sizes(SMALL) + f", batch {SMALL.batch}",
           "betas 0.9 0.95, eps 1e-8, decay 0.1 on matrices, clip 1.0, "
           f"val fraction {VAL_FRACTION} ({len(text.val)} bytes)",
           "rate: lr*(step+1)/warmup while step < warmup, then "
           "min + (lr-min)/2*(1+cos(pi*(step-warmup)/(steps-warmup))), min = lr/10"], values)


WRITERS = {"init": write_init, "logits": write_logits, "losses": write_losses,
           "overfit": write_overfit, "val": write_val}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="stories.txt")
    parser.add_argument("--out", default=os.path.join(here, "../../test/golden/gpt"))
    parser.add_argument("--only", default=",".join(WRITERS), help="comma-separated parts")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    parts = args.only.split(",")
    unknown = set(parts) - set(WRITERS)
    if unknown:
        sys.exit(f"golden.py: --only: want some of {','.join(WRITERS)}, have {','.join(unknown)}")
    torch.set_num_threads(args.threads)
    out = os.path.normpath(args.out)
    os.makedirs(out, exist_ok=True)
    text = Text(args.data, VAL_FRACTION)
    for part in parts:
        WRITERS[part](text, out)


if __name__ == "__main__":
    main()
