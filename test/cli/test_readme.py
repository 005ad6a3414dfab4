#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_readme.py - every command of the README does what the README says, run as it is written.

A shell runs each line of the README's indented blocks that begins with build/tinygpt, in order, in one
folder that has the texts and models which the lines name. A line that trains for longer than
PATIENCE_S is interrupted as by Ctrl-C, and must save then; the lines behind it go on with what it
saved. If the first step was not done by then, it is run again with more patience. `make` lines are
checked against the Makefile's targets.
"""
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import time
import urllib.request

from util import PROGRAM, TOP, check, environment, expect, main, Result, tinygpt

PATIENCE_S = 2
LINE_S = 600  # of a line that hangs
MODELS = os.path.join(TOP, ".cache", "models")
LINKS = {"smollm2.gguf": "SmolLM2-135M-Instruct.Q4_1.gguf", "minilm.zip": "minilm.zip"}
# What takes minutes as it stands is cut to a part of it, but in the long tests.
CUT = {} if os.environ.get("TG_TEST_LONG") else {"bench levers": " --lever recompute",
                                                   "doctor --data": " --quick"}
# What a line must print, by a part of the line; every other line must end with 0 alone.
SAYS = {"info run.tinygpt": "small|366", "eval run.tinygpt": "perplexity|bits", "--similar": r"0\.\d",
        "tokenize --train": "512 tokens", "tokenize smollm2": "Hello",
        "--best 5": "Paris|the", "doctor": "ok|fine|whole|pass"}


# A save of SmolLM2 in training is 1.6 GB, and two trainings leave four. Out of the long tests a corner
# of it is trained: its files, its tokens and template, one layer and one head of each kind.
SMALL = {"num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 1,
         "num_key_value_heads": 1}


def make_small(folder):
    """Cuts the floats of a Llama in a folder to the sizes of SMALL."""
    path = os.path.join(folder, "model.safetensors")
    with open(path, "rb") as f:
        head_bytes, = struct.unpack("<Q", f.read(8))
        head = json.loads(f.read(head_bytes))
        kept, parts, at = {}, [], 0
        for name, t in head.items():
            if name == "__metadata__" or ".layers." in name and ".layers.0." not in name:
                continue
            *rows, width = t["shape"]
            if rows and "embed" not in name:
                rows = [64]
            f.seek(8 + head_bytes + t["data_offsets"][0])
            for _ in range(*rows or [1]):
                parts.append(f.read(width * 4)[:64 * 4])
            first, at = at, at + 64 * 4 * (*rows, 1)[0]
            kept[name] = {"dtype": t["dtype"], "shape": [*rows, 64], "data_offsets": [first, at]}
    head = json.dumps(kept).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + b"".join(parts))
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as f:
        config = json.load(f)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({**config, **SMALL}, f)


def commands():
    """The lines of README.md that a reader would type, without their comments."""
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as f:
        rows = [line.strip() for line in f if re.match(r"    (build/tinygpt|make) ", line)]
    return [re.sub(r"\s{2,}#.*", "", row) for row in rows]


def prepare():
    os.mkdir("build")
    os.symlink(PROGRAM, "build/tinygpt")
    os.mkdir("books")
    for name, n_bytes in (("book.txt", "300k"), ("other.txt", "20k"), ("poems.txt", "50k"),
                          ("books/first.txt", "100k"), ("books/second.txt", "50k"), ("more.txt", "50k"),
                          ("notes.txt", "2k")):
        expect(tinygpt("corpus", "stories", "--bytes", n_bytes, "--seed", len(name), "--out", name), 0, name)
    with open("chats.jsonl", "w", encoding="utf-8") as f:
        f.writelines('{"messages":[{"role":"user","content":"Say %d."},{"role":"assistant","content":"%d"}]}\n' % (i, i)
                     for i in range(20))
    with open("pairs.jsonl", "w", encoding="utf-8") as f:
        f.writelines('{"prompt":"Say %d: ","chosen":"%d","rejected":"no"}\n' % (i, i) for i in range(20))
    with open("questions.tsv", "w", encoding="utf-8") as f:
        f.write("The sky is\tblue\tmade of cheese\nTwo and two are\tfour\n")
    with open("arc.jsonl", "w", encoding="utf-8") as f:
        f.write('{"question": "The sky is", "choices": {"text": ["red", "blue"], "label": ["A", "B"]}, "answerKey": "B"}\n')
    shutil.copy(os.path.join(TOP, "test", "golden", "lm", "rank_bert.zip"), "reranker.zip")
    with open("lines.txt", "w", encoding="utf-8") as f:
        f.write("a cat\nthe dog\n.\n")
    for name, source in LINKS.items():
        check(os.path.exists(os.path.join(MODELS, source)), f"{source} is here: tools/setup.sh fetches it")
        # A copy, since what stands beside a model must be free to write.
        shutil.copy(os.path.join(MODELS, source), name)


def shell(line, patience_s=None):
    """Runs a line to its end, or interrupts it after patience_s; its output, and whether it was interrupted."""
    process = subprocess.Popen(["bash", "-c", "exec " + line], env=environment(), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    interrupted = False
    try:
        out, err = process.communicate(b"Say hello.\n/quit\n", timeout=patience_s or LINE_S)
    except subprocess.TimeoutExpired:
        interrupted = patience_s is not None
        process.send_signal(signal.SIGINT if interrupted else signal.SIGKILL)
        out, err = process.communicate(timeout=120)
    return Result([line], process.returncode, out, err), interrupted


def serves(line):
    """`serve` answers on the address that it prints, and ends on a signal."""
    process = subprocess.Popen(shlex.split(line), env=environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    seen = b""
    while b"http://" not in seen and process.poll() is None:
        seen += process.stdout.readline()
    address = re.search(rb"http://[0-9.]+:\d+", seen)
    status = None
    for _ in range(50):
        try:
            with urllib.request.urlopen(address.group().decode() + "/", timeout=60) as reply:
                status = reply.status
            break
        except OSError as error:
            status = getattr(error, "code", None)
            if status:
                break
            time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    check(status in (200, 404), line, f"want an answer of the page, have {status}")


def every_command():
    prepare()
    for line in commands():
        if line.startswith("make "):
            continue
        if " --device webgpu" in line:
            continue  # gpu_test runs them: a software adapter would take hours for these sizes
        if " serve" in line:
            serves(line)
            continue
        patience_s = PATIENCE_S if " train " in line else None
        line += next((CUT[part] for part in CUT if part in line), "")
        result, interrupted = shell(line, patience_s)
        while interrupted and "before the first step" in result.errors + result.text and patience_s < 300:
            patience_s *= 2
            result, interrupted = shell(line, patience_s)
        wanted = next((SAYS[part] for part in SAYS if part in line), "")
        expect(result, 130 if interrupted else 0, line, out=wanted)
        if " smollm2.gguf folder " in line and not os.environ.get("TG_TEST_LONG"):
            make_small("folder")
        if interrupted and " --sweep " not in line:  # which saves nothing
            check("--resume" in result.errors + result.text, f"{line}: says how to go on")


def make_targets():
    """A `make` line names targets that exist, and what `make` alone prints has them."""
    with open(os.path.join(TOP, "Makefile"), encoding="utf-8") as f:
        helped = set(re.findall(r"^## make ([a-z0-9-]+)", f.read(), re.M))
    for line in commands():
        for part in line.split("&&"):
            words = part.split()
            if words and words[0] == "make":
                targets = [w for w in words[1:] if "=" not in w]
                check(set(targets) <= helped, f"`{line}`: make explains its targets",
                      f"want {targets} among {sorted(helped)}")


main(every_command, make_targets)
