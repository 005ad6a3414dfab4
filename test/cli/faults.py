# SPDX-License-Identifier: Apache-2.0
"""faults.py - every command that writes, with a call of the system failing (test/fault/shim.c).

For each command, each kind of call and each place that is asked for, once and from then on:

    no signal, no hang, and an exit code that is 0, 1 or (stopped and saved) 3
    each output is what it was before, or what the command writes undisturbed, or saved early
    no temporary file is left, nor a lock, unless the message says why
    a failure has a message, and it names the error that was made: that of the machine is never told
    as bad input (2), as a file that is not there, or as a file of another format
"""
import errno
import filecmp
import json
import os
import re
import shutil
import subprocess

from util import HANG_S, PROGRAM, SILENT, TINY, check, environment, equal, expect, goes_on, note, tinygpt, write

SHIM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fault", "shim.c")
READING = ("open", "read", "close", "mmap", "malloc")
WRITING = ("write", "short", "fsync", "rename", "link")
REASONS = {"write": errno.ENOSPC, "short": errno.ENOSPC, "malloc": errno.ENOMEM, "mmap": errno.ENOMEM}


def error_of(call):
    return REASONS.get(call, errno.EIO)


class Command:
    """args as they are given; outputs: files and folders that are compared; grows: logs, which are
    written line by line and may end early; talk: standard input."""

    def __init__(self, name, args, outputs, grows=(), talk=b""):
        self.name, self.args, self.outputs, self.grows, self.talk = name, args, outputs, grows, talk


def commands():
    train = ("--data", "text.txt", *TINY, "--quiet", "--sample-every", "0", "--threads", "1")
    one = ("--threads", "1")
    chat = ("chat", "chat", "--template", "chatml", "--tokens", "2", "--threads", "1")
    return [
        Command("train", ("train", *train, "--seed", "2", "--steps", "4", "--eval-every", "2",
                          "--out", "a.tinygpt", "--force", "--svg", "a.svg", "--log", "a.log"),
                ("a.tinygpt", "a.tinygpt.best", "a.svg"), ("a.log",)),
        Command("resume", ("train", "--data", "text.txt", "--resume", "r.tinygpt", "--steps", "6",
                           "--quiet", "--sample-every", "0", *one), ("r.tinygpt",)),
        Command("v3", ("convert", "m.tinygpt", "c.tinygpt", *one), ("c.tinygpt",)),
        Command("v2", ("convert", "m.tinygpt", "c2.tinygpt", "--format", "v2", *one), ("c2.tinygpt",)),
        Command("int4", ("convert", "m.tinygpt", "c4.tinygpt", "--dtype", "int4", *one),
                ("c4.tinygpt",)),
        Command("gguf", ("convert", "m.tinygpt", "c.gguf", "--dtype", "q8_0", *one), ("c.gguf",)),
        Command("v3 of GGUF", ("convert", "m.gguf", "g.tinygpt", "--dtype", "f16", *one),
                ("g.tinygpt",)),
        Command("folder", ("convert", "m.tinygpt", "folder", "--format", "safetensors", *one),
                ("folder",)),
        Command("folder of GGUF", ("convert", "m.gguf", "gfolder", "--format", "safetensors", *one),
                ("gfolder",)),
        Command("tokenizer", ("tokenize", "--train", "text.txt", "--vocab", "300", "--out", "t.json",
                              "--force", *one), ("t.json",)),
        Command("pieces", ("train", *train, "--family", "gpt2", "--tokens", "bpe:300", "--seed", "2", "--steps", "3",
                           "--eval-every", "2", "--out", "p.tinygpt", "--log", "p.csv"),
                ("p.tinygpt", "p.tinygpt.best"), ("p.csv",)),
        Command("corpus", ("corpus", "stories", "--bytes", "2000", "--out", "s.txt"), ("s.txt",)),
        Command("session", (*chat, "--session", "c.session"), ("c.session",), talk=b"Hi\n"),
        Command("/save", chat, ("talk.txt",), talk=b"Hi\n/save talk.txt\n"),
    ]


def prepare(folder):
    """What the commands read and replace, made by themselves: of another seed or length."""
    os.mkdir(folder)
    os.chdir(folder)
    write("text.txt", b"".join(b"Line %d of a text to learn from.\n" % i for i in range(200)))
    tiny = ("train", "--data", "text.txt", *TINY, "--quiet", "--sample-every", "0", "--steps", "3",
            "--threads", "1")
    for name, seed in (("a", "1"), ("r", "1"), ("m", "1"), ("old", "7")):
        expect(tinygpt(*tiny, "--seed", seed, "--eval-every", "1", "--out", f"{name}.tinygpt", "--log",
                       f"{name}.log", "--svg", f"{name}.svg"), 0, f"the run {name}")
    for source in ("m", "old"):
        expect(tinygpt("convert", f"{source}.tinygpt", f"{source}.gguf"), 0, f"{source} as GGUF")
    for out, *options in (("c.tinygpt",), ("c2.tinygpt", "--format", "v2"), ("c.gguf",),
                          ("c4.tinygpt", "--dtype", "int4"), ("folder", "--format", "safetensors"),
                          ("gfolder", "--format", "safetensors")):
        expect(tinygpt("convert", "old.tinygpt", out, *options), 0, f"an older {out}")
    expect(tinygpt("convert", "old.gguf", "g.tinygpt", "--dtype", "f32"), 0, "an older g.tinygpt")
    expect(tinygpt("corpus", "stories", "--bytes", "1000", "--out", "s.txt"), 0, "older stories")
    chat_model("chat")
    for name in ("chat.tinygpt", "chat.tinygpt.best", "chat.tinygpt.svg"):
        os.remove(name)
    os.chdir("..")


def disturbed(command, **settings):
    env = dict(environment(), LD_PRELOAD=os.path.abspath("shim.so"))
    env.update({f"FAULT_{k.upper()}": str(v) for k, v in settings.items()})
    try:
        p = subprocess.run([PROGRAM, *command.args], cwd="work", env=env, input=command.talk,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S)
    except subprocess.TimeoutExpired:
        return None, ""
    return p.returncode, p.stderr.decode("utf-8", "replace")


def fresh():
    shutil.rmtree("work", ignore_errors=True)
    shutil.copytree("before", "work")


def same(a, b):
    """Two files, or two folders of files, or nothing at both places."""
    if not os.path.exists(a) or not os.path.exists(b):
        return os.path.exists(a) == os.path.exists(b)
    if not os.path.isdir(a):
        return not os.path.isdir(b) and filecmp.cmp(a, b, shallow=False)
    names = sorted(os.listdir(a))
    return (os.path.isdir(b) and names == sorted(os.listdir(b)) and
            all(filecmp.cmp(os.path.join(a, n), os.path.join(b, n), shallow=False) for n in names))


def left_over():
    """Temporary files and locks anywhere below."""
    return [os.path.join(at, n) for at, folders, files in os.walk("work") for n in folders + files
            if ".tmp-" in n or n.endswith(".lock")]


def whole_lines(path):
    """A log is whole lines, but for the last one where writing failed."""
    if not os.path.exists(path):
        return True
    with open(path, "rb") as f:
        lines = f.read().split(b"\n")[:-1]
    if path.endswith(".csv"):
        return len({line.count(b",") for line in lines}) <= 1
    return all(re.fullmatch(rb'\{"step":.*\}', line) for line in lines)


def saved_early(name, code):
    """A run that stopped, or a conversation whose last turn has failed: whole, and as far as it came."""
    if name.endswith(".session"):
        return code == 1 and tinygpt("chat", "work/chat", "--template", "chatml", "--session",
                                     f"work/{name}", data=b"").code == 0
    return code == 3 and tinygpt("verify", f"work/{name}").code == 0


def problems_of(command, call, code, message):
    if code is None:
        return ["it did not end"]
    found = []
    if code not in (0, 1, 3):
        found.append(f"exit code {code}")
    news = []
    for name in command.outputs:
        new, old = same(f"work/{name}", f"after/{name}"), same(f"work/{name}", f"before/{name}")
        news.append(new)
        if not new and not old and not saved_early(name, code):
            found.append(f"{name} is neither the old nor the new one")
    if code == 0 and not all(news):
        found.append("exit code 0, and an output is not written")
    found += [f"{name} has a broken line" for name in command.grows if not whole_lines(f"work/{name}")]
    # What could be moved neither on nor back is not removed either: the message says where it is.
    found += [f"{name} is left" for name in left_over() if os.path.basename(name) not in message]
    reason = "memory" if error_of(call) == errno.ENOMEM else os.strerror(error_of(call))
    if code != 0 and reason not in message:
        found.append(f"want a message with {reason!r}")
    if re.search(r"(: *$|error 0\)|Success)", message, re.M):
        found.append("a message without a reason")
    return found


def places(n, most):
    """Of n calls those that are made to fail: all, or the first, the last and some between."""
    if n <= most:
        return range(1, n + 1)
    return sorted({1 + round(i * (n - 1) / (most - 1)) for i in range(most)})


def chat_model(folder):
    """A model of bytes that knows a chat template: two bytes that no text has become its marks."""
    expect(tinygpt("train", "--data", "text.txt", "--layers", "1", "--width", "16", "--heads", "2",
                   "--ctx", "64", "--batch", "2", "--steps", "2", *SILENT, "--out", "chat.tinygpt"), 0,
           "a run for a chat")
    expect(tinygpt("convert", "chat.tinygpt", folder, "--format", "safetensors"), 0, "as a folder")
    path = os.path.join(folder, "tokenizer.json")
    with open(path, encoding="utf-8") as f:
        tokenizer = json.load(f)
    vocab = tokenizer["model"]["vocab"]
    for number, name in ((1, "<|im_start|>"), (2, "<|im_end|>")):
        vocab = {piece: n for piece, n in vocab.items() if n != number} | {name: number}
        tokenizer["added_tokens"].append(
            {"id": number, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True})
    tokenizer["model"]["vocab"] = vocab
    with open(path, "w", encoding="utf-8") as f:
        json.dump(tokenizer, f)


def counts_of(command):
    """How often each call comes in an undisturbed run, whose outputs become what is wanted."""
    fresh()
    code, message = disturbed(command, call="none", at=0, counts=os.path.abspath("counts"))
    equal(code, 0, f"{command.name}, undisturbed: {message[-300:]}")
    for name in command.outputs:
        shutil.rmtree(f"after/{name}", ignore_errors=True)
        (shutil.copytree if os.path.isdir(f"work/{name}") else shutil.copy)(f"work/{name}", f"after/{name}")
    with open("counts", encoding="ascii") as f:
        counts = {name: int(n) for name, n in (line.split() for line in f)}
    return dict(counts, short=counts["write"])


def make_shim():
    compiled = subprocess.run(["cc", "-shared", "-fPIC", "-o", "shim.so", SHIM, "-ldl"],
                              capture_output=True)
    equal(compiled.returncode, 0, f"the shim compiles: {compiled.stderr[-500:]!r}")


def sweep(most, names=()):
    """most: places of each call of a command; names: of the commands, if not of all. The number of
    runs is told."""
    make_shim()
    prepare("before")
    os.mkdir("after")
    runs = 0
    chosen = [c for c in commands() if not names or c.name in names]
    for command in chosen:
        counts = counts_of(command)
        for call in WRITING + READING:
            for at in places(counts[call], most):
                for sticky in (False, True):
                    fresh()
                    code, message = disturbed(command, call=call, at=at,
                                              errno=error_of(call),
                                              **({"sticky": 1} if sticky else {}))
                    goes_on()
                    runs += 1
                    found = problems_of(command, call, code, message)
                    where = f"{command.name}: {call} {at}{' and on' if sticky else ''}"
                    check(not found, where, "; ".join(found) + f": {message[-300:]!r}",
                          command.args)
    note(f"{runs} runs of {len(chosen)} commands, each with a call that failed")
