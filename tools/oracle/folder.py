# SPDX-License-Identifier: Apache-2.0
"""Checks that transformers opens the folders that `tinygpt convert` makes of GGUF files.

    python folder.py [--program build/tinygpt] [--lib build/libtinygpt.so] [--models .cache/models]

Of the tiny models of test/golden/lm: the logits. Of the real ones: the ids of 2,000 strings by the
tokenizer.json that was written, as user text and with special tokens; the chat template; and along
the golden tokens of llama.cpp (test/golden/llama_cpp) the logits in floats, of the very weights that
the GGUF file stands for. Of MiniLM, by way of GGUF: ids and vectors. What is printed is in README.md;
a difference that should not be, fails.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
import transformers
from llama_logits import Tiny
from tok_strings import strings

GOLDEN = pathlib.Path(__file__).parents[2] / "test/golden"
TINY = "llama", "qwen2", "qwen3", "gemma3", "gpt2", "mistral", "biases", "smollm3", "yarn", "phi4", "lfm2", "gemma2", "olmo2", "olmo3", "granite", "qwen3moe", "olmoe", "granitemoe", "qwen35", "falcon", "falcon_norm", "nemotron"
REAL = (("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2"), ("gemma-3-270m-q4_k_m.gguf", "gemma3"))
TOKENS = 64


def call(args, *command):
    done = subprocess.run([args.program, *command, "--threads", "1"], check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def convert(args, source, folder, auto=transformers.AutoModelForCausalLM, **more):
    call(args, "convert", source, folder, "--format", "safetensors")
    model, report = auto.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True, **more)
    assert not any(report.values()), report
    return model.eval()


def logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def tiny_models(args):
    ids = [(7 * i * i + 3 * i + 1) % 40 for i in range(20)]
    for name in TINY:
        with tempfile.TemporaryDirectory() as folder:
            path = str(GOLDEN / f"lm/{name}.gguf")
            theirs = logits(convert(args, path, folder), ids)
            ours = Tiny(args.lib, path, "-int8_activations").logits(ids, theirs.shape[1])
            worst = np.abs(theirs - ours).max()
            print(f"{name}: logits up to {np.abs(theirs).max():.3g}, largest difference {worst:.2g}")
            assert worst < 1e-4


def tokens(folder, tiny):
    """Texts of users, where special tokens are letters; and of templates, where they are tokens."""
    tok = transformers.AutoTokenizer.from_pretrained(folder)
    plain = transformers.PreTrainedTokenizerFast.from_pretrained(folder, split_special_tokens=True)
    texts = strings()
    texts[::20] = [t + "<|im_start|><end_of_turn>[SEP]" + t for t in texts[::20]]
    user = sum(plain.encode(t, add_special_tokens=False) == tiny.encode(t, 0) for t in texts)
    special = sum(tok.encode(t) == tiny.encode(t, 3) for t in texts)
    print(f"  ids of {user} and, with special tokens, {special} of {len(texts)} strings the same")
    assert user == special == len(texts)
    if tok.chat_template:
        turn = [{"role": "user", "content": "Hi"}]
        print("  chat:", repr(tok.apply_chat_template(turn, tokenize=False)[-40:]))


def golden(name):
    for line in (GOLDEN / f"llama_cpp/{name}_greedy.txt").read_text().splitlines():
        yield line.split()


def real_model(args, file, name):
    path = str(pathlib.Path(args.models) / file)
    with tempfile.TemporaryDirectory() as folder:
        model = convert(args, path, folder)
        tokens(folder, Tiny(args.lib, path))
    ours = Tiny(args.lib, path, "-int8_activations", threads=1)
    rows = list(golden(name))[: 2 * args.prompts]
    differ, ours_same, theirs_same, margins = [], [], [], []
    for prompt, answer in zip(rows[::2], rows[1::2]):
        prompt, want = [int(x) for x in prompt[1:]], [int(x) for x in answer[::2]]
        ids = prompt + want[:-1]
        theirs = logits(model, ids)[-TOKENS:]
        a = ours.logits(ids, theirs.shape[1], TOKENS)
        differ.append(np.abs(a - theirs).max())
        ours_same.append(int((a.argmax(-1) == theirs.argmax(-1)).sum()))
        theirs_same.append(int((theirs.argmax(-1) == want).sum()))
        top = np.sort(theirs, axis=-1)[:, -2:]
        margins += [float(top[i, 1] - top[i, 0]) for i in range(TOKENS)
                    if theirs[i].argmax() != want[i]]
    print(f"  logits: largest difference of ours in floats {max(differ):.2g}")
    print(f"  likeliest: ours in floats and transformers' {ours_same}")
    print(f"  likeliest: llama.cpp's and transformers' {theirs_same}; its margins where not: "
          + " ".join(f"{m:.2f}" for m in sorted(margins, reverse=True)))
    assert max(differ) < 1e-3


def encoder(args):
    """The folder that a zip file becomes by way of GGUF, whose tokenizer and configuration are made.
    It has no pooler: GGUF keeps none, and the mean of the vectors needs none."""
    with tempfile.TemporaryDirectory() as folder:
        path, out, lines = (os.path.join(folder, name) for name in ("x.gguf", "folder", "lines"))
        call(args, "convert", str(pathlib.Path(args.models) / "minilm.zip"), path, "--dtype", "f32")
        model = convert(args, path, out, transformers.AutoModel, add_pooling_layer=False)
        tokens(out, Tiny(args.lib, path))
        tok = transformers.AutoTokenizer.from_pretrained(out)
        texts = [line for line in (GOLDEN / "lm/minilm.txt").read_text().splitlines() if line][::3]
        pathlib.Path(lines).write_text("".join(t + "\n" for t in texts))
        ours = json.loads(call(args, "embed", path, "--file", lines, "--raw", "--json"))["vectors"]
        with torch.no_grad():
            theirs = [model(**tok(t, return_tensors="pt")).last_hidden_state[0].mean(0).numpy() for t in texts]
    worst = np.abs(np.array(ours) - theirs).max()
    print(f"  vectors of {len(texts)} texts up to {np.abs(theirs).max():.3g}, largest difference {worst:.2g}")
    assert worst < 1e-4


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/tinygpt")
    parser.add_argument("--lib", default="build/libtinygpt.so")
    parser.add_argument("--models", default=".cache/models")
    parser.add_argument("--prompts", type=int, default=10, help="of the golden ones, for the logits")
    parser.add_argument("--only", default="", help="part of a real model's name; all of them otherwise")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if not args.only:
        tiny_models(args)
    if args.only in "minilm.zip":
        print("minilm.zip", flush=True)
        encoder(args)
    for file, name in REAL:
        if args.only in file:
            print(file, flush=True)
            real_model(args, file, name)


main()
