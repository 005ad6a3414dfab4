#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""learn.py - test/long/learn.py build: two whole trainings reach the loss that they should.

The preset small, 1,500 steps on the stories, the loss over the whole validation part (the last
tenth, every window): PyTorch's, test/golden/gpt/val_small.txt. 2 % leave room for another order of batches, not for a mistake in the model,
the optimizer or the schedule.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
sys.argv = [sys.argv[0], os.path.join(sys.argv[1] if len(sys.argv) > 1 else "build", "tinygpt")]

from util import check, expect, goes_on, main, note, text_file, tinygpt, whole  # noqa: E402


TRAIN_S = 3000


def learn(name, wanted, *options):
    goes_on(2 * TRAIN_S)
    r = tinygpt("train", "--data", text_file(), "--preset", "small", "--steps", "1500", "--batch",
                "16", "--val", "0.1", "--eval-every", "0", "--eval-windows", "0", "--sample-every",
                "0", "--quiet", "--json", "--out", "a.tinygpt", *options, timeout=TRAIN_S)
    if not expect(r, 0, name):
        return None
    val = r.json_lines()[-1]["val"]
    note(f"{name}: validation loss {val:.4f}, want {wanted}")
    check(abs(val - wanted) <= 0.02 * wanted, f"{name}: validation loss",
          f"want {wanted} within 2 %, have {val:.4f}")
    whole("a.tinygpt", name)
    seen = tinygpt("eval", "a.tinygpt", "--data", text_file(),
                   "--val", "0.1", "--json", timeout=600)
    expect(seen, 0, f"{name}: eval")
    return check(abs(seen.json()["loss"] - val) < 1e-6 * val, f"{name}: eval of the file",
                 f"want {val}, have {seen.json()['loss']}")


def constant_rate():
    learn("3e-4, constant", 2.0098, "--lr", "3e-4")


def cosine_rate():
    learn("3e-3, cosine with 100 steps of warm-up", 1.6632, "--lr", "3e-3", "--schedule", "cosine",
          "--warmup", "100")


main(constant_rate, cosine_rate)
