#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_losses.py - losses of real models on a real text: llama.cpp's (test/golden/llama_cpp/losses.txt).

Both sides cut the text into windows alike, and round what goes into products to 8 bits, each in its
own way: perplexities are within 1 % of each other. The first 4,000 bytes take seconds; TG_LOSS_BYTES
names another of the file's lengths. Models that tools/setup.sh has not fetched are skipped.
"""
import json
import math
import os

from util import TOP, check, expect, have_model, main, text_file, tinygpt, write

FILES = {"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf", "gemma3": "gemma-3-270m-q4_k_m.gguf"}
BYTES = os.environ.get("TG_LOSS_BYTES", "4000")


def losses():
    with open(text_file(), "rb") as f:
        write("text.txt", f.read(int(BYTES)))
    with open(os.path.join(TOP, "test", "golden", "llama_cpp", "losses.txt"), encoding="utf-8") as f:
        rows = [line.split() for line in f if line.split()[1] == BYTES]
    check(len(rows) == len(FILES), f"numbers for {BYTES} bytes")
    for name, _, tokens, total in rows:
        result = tinygpt("eval", have_model(FILES[name]), "--data", "text.txt", "--json", timeout=600)
        expect(result, 0, f"eval of {name}")
        ours, theirs = json.loads(result.text)["loss"], float(total) / int(tokens)
        ratio = math.exp(ours - theirs)
        check(abs(ratio - 1) <= 0.01, f"perplexity of {name} on {BYTES} bytes",
              f"ours is {ratio:.4f} of theirs, {math.exp(theirs):.3f}")


main(losses)
