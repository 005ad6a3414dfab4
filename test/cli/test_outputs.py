#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_outputs.py - what the program may write over, who may write meanwhile, and what a signal leaves.

One rule for all outputs: nothing that was read, nothing of somebody else's without --force, and what
is replaced stays as .prev.
"""
import os
import shutil
import signal
import stat
import subprocess
import time

from faults import chat_model
from util import (PROGRAM, SILENT, TINY, TOP, check, environment, equal, expect, finish, main, read,
                  read_step, start, text_file, tinygpt, train, whole, write)

LM = os.path.join(TOP, "test", "golden", "lm")
LONG = ("--steps", "1000000", "--eval-every", "0", "--save-every", "0")


def contents(folder):
    return {name: read(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}


def convert_never_destroys_its_input():
    """Every file of the input, by whatever name or link, in every form: refused, and all as it was."""
    for name, folder in (("mlx4", "fold"), ("llama", "shards")):
        shutil.copytree(os.path.join(LM, name), folder)
    for i in range(1, 5):
        shutil.copy(os.path.join(LM, f"qwen2-split-0000{i}-of-00004.gguf"), ".")
    shutil.copy(os.path.join(LM, "bert.zip"), "b.zip")
    part = "qwen2-split-0000{}-of-00004.gguf".format
    os.symlink("fold/config.json", "link.gguf")
    os.link("fold/model.safetensors", "hard.gguf")
    before = contents("fold"), contents("shards")
    files = {n: read(n) for n in os.listdir(".") if os.path.isfile(n)}
    for args in (("fold", "fold/config.json", "--format", "gguf"),
                 ("shards", "shards/model-00002-of-00002.safetensors", "--format", "gguf", "--force"),
                 ("shards", "shards/model.safetensors.index.json", "--format", "v3", "--force"),
                 ("shards", "shards", "--format", "safetensors", "--force"),
                 ("fold", "fold/model.safetensors", "--format", "gguf", "--force"),
                 ("fold", "fold/model.safetensors", "--format", "v3", "--force"),
                 ("fold/model.safetensors", "fold", "--format", "safetensors", "--dtype", "f16"),
                 ("fold/model.safetensors", "fold", "--format", "safetensors", "--force"),
                 ("fold", "fold/model.safetensors", "--force"),
                 ("fold", "link.gguf", "--force"), ("fold", "hard.gguf", "--force"),
                 (part(1), part(2), "--force"), (part(1), part(4), "--format", "v3", "--force"),
                 ("b.zip", "./b.zip", "--format", "gguf", "--force")):
        r = tinygpt("convert", *args)
        expect(r, 2, f"convert {' '.join(args)}", err="file of the input|same file|another|tinygpt did not write")
        equal((contents("fold"), contents("shards")), before, "the folders are as they were")
        equal({n: read(n) for n in files}, files, "so are the files")
    equal([n for n in os.listdir(".") if ".tmp" in n], [], "no temporary files")


def what_stands_there_decides():
    """convert, corpus, train --out, --log and --svg: ours stays as .prev, all else needs --force."""
    expect(train("--steps", "3", "--out", "a.tinygpt", "--log", "a.log", "--svg", "a.picture"), 0, "a run")
    expect(tinygpt("convert", "a.tinygpt", "a.gguf"), 0, "as GGUF")
    corpus = ("corpus", "stories", "--bytes", "2000")
    run = ("train", "--data", text_file(), *TINY, *SILENT, "--steps", "2")
    for what, args, ours in (
            ("GGUF", ("convert", "a.tinygpt", "x", "--format", "gguf"), "a.gguf"),
            ("v3", ("convert", "a.tinygpt", "x"), "a.tinygpt"),
            ("v2", ("convert", "a.tinygpt", "x", "--format", "v2"), "a.tinygpt"),
            ("a run", (*run, "--out", "x"), "a.tinygpt"),
            ("a log", (*run, "--no-save", "--log", "x"), "a.log"),
            ("a picture", (*run, "--no-save", "--svg", "x"), "a.picture"),
            ("stories", (*corpus, "--out", "x"), None)):
        write("x", "a thesis\n")
        expect(tinygpt(*args), 2, f"{what} over a thesis", err=["x: want nothing or", "--force"])
        equal(read("x"), b"a thesis\n", f"the thesis under {what}")
        expect(tinygpt(*args, "--force"), 0, f"{what} over a thesis by force")
        check(read("x") != b"a thesis\n", f"{what} is written")
        equal(read("x.prev"), b"a thesis\n", f"and the thesis stays beside {what}")
        for name in ("x", "x.prev", "x.best", "x.svg"):
            if os.path.exists(name):
                os.remove(name)
        write("x", "")
        expect(tinygpt(*args), 0, f"{what} over an empty file")
        if ours:
            shutil.copy(ours, "x")
            forced = ("--force",) if what == "a run" else ()  # the next save would replace the other
            expect(tinygpt(*args, *forced), 0, f"{what} over its kind")
            equal(read("x.prev"), read(ours), f"what {what} replaced")
        for name in os.listdir("."):
            if name.startswith("x"):
                os.remove(name)
    # A run is not lost to a model without moments, and the best weights of the run before stay, too.
    best = read("a.tinygpt.best")
    data = read("a.tinygpt")
    expect(tinygpt("convert", "a.gguf", "a.tinygpt"), 0, "over a run")
    equal(read("a.tinygpt.prev"), data, "the run is there")
    shutil.copy("a.tinygpt.prev", "a.tinygpt")
    expect(train("--steps", "2", "--out", "a.tinygpt"), 2, "another run", err=["a.tinygpt exists", "--resume"])
    expect(train("--steps", "2", "--out", "a.tinygpt", "--force"), 0, "another run by force")
    equal(read("a.tinygpt.best.prev"), best, "the best weights before")


def refused_as_it_is(what, *args, err=(), data=None):
    """Exit 2 (1 within a conversation), and each file is as it was."""
    before = {n: read(n) for n in os.listdir(".") if os.path.isfile(n)}
    expect(tinygpt(*args, data=data), 1 if data else 2, what, err=err)
    equal({n: read(n) for n in os.listdir(".") if os.path.isfile(n)}, before, f"files after {what}")


def what_is_kept_is_no_input():
    """PATH.prev is an output as PATH is: nothing that was read is lost to it, by force neither."""
    expect(train("--steps", "3", "--save-every", "1", "--out", "a.tinygpt"), 0, "a run")
    for name in ("k.gguf", "k.gguf.prev"):
        expect(tinygpt("convert", "a.tinygpt", name, "--format", "gguf"), 0, f"as {name}")
    os.symlink("k.gguf", "link")
    for args in (("k.gguf.prev", "k.gguf"), ("k.gguf.prev", "k.gguf", "--force"), ("k.gguf.prev", "link", "--force"),
                 ("a.tinygpt.prev", "a.tinygpt", "--dtype", "int4"), ("a.tinygpt.prev", "a.tinygpt", "--force")):
        refused_as_it_is(f"convert {args}", "convert", *args, err="prev: want an output that is not read")
    os.remove("k.gguf")
    os.remove("link")
    expect(tinygpt("convert", "k.gguf.prev", "k.gguf"), 0, "where nothing is to be kept")
    more = ("train", "--data", text_file(), *SILENT, "--steps", "3", "--save-every", "1")
    for base in ("a.tinygpt", "a.tinygpt.prev", "a.tinygpt.best"):
        refused_as_it_is(f"--from {base}", *more, "--from", base, "--out", "a.tinygpt", err="--out")
        refused_as_it_is(f"--from {base}", *more, "--from", base, "--out", "a.tinygpt", "--force", err="same file")
    refused_as_it_is("an older save", *more[:-4], "--steps", "9", "--resume", "a.tinygpt.prev", "--out", "a.tinygpt",
                     "--force", err="same file")
    refused_as_it_is("another run", *more, *TINY, "--out", "a.tinygpt", err=["a.tinygpt exists", "--resume", "--force"])
    expect(tinygpt(*more[:-4], "--resume", "a.tinygpt", "--steps", "6", "--save-every", "1"), 0, "the run goes on")


def what_was_read_is_never_an_output():
    """Of each command, for as long as it runs, and by force neither."""
    shutil.copytree(os.path.join(LM, "llama"), "base")
    expect(tinygpt("convert", "base", "m.gguf"), 0, "a GGUF")
    write("s.txt", read(text_file())[:20000])
    expect(tinygpt("tokenize", "--train", "s.txt", "--kind", "chars", "--out", "T"), 0, "a vocabulary")
    new = ("train", "--data", "s.txt", *TINY, *SILENT, "--steps", "3", "--save-every", "1", "--tokenizer", "T", "--force")
    tune = ("train", "--data", "s.txt", *SILENT, "--steps", "2", "--row-tokens", "16", "--batch", "1", "--force")
    for args in ((*new, "--out", "T"), (*new, "--no-save", "--log", "T"), (*new, "--no-save", "--svg", "T"),
                 ("tokenize", "--train", "s.txt", "--kind", "chars", "--out", "s.txt", "--force"),
                 (*tune, "--from", "m.gguf", "--out", "m.gguf"), (*tune, "--from", "m.gguf", "--no-save", "--log", "m.gguf"),
                 (*tune, "--from", "base", "--out", "base/model.safetensors"),
                 (*tune, "--from", "base", "--no-save", "--log", "base/config.json")):
        before = contents("base")
        refused_as_it_is(" ".join(args), *args)
        equal(contents("base"), before, f"the folder after {' '.join(args)}")
    shutil.copy("s.txt", "text.txt")
    chat_model("chat")
    shutil.copytree("chat", "draft")
    chat = ("chat", "chat", "--template", "chatml", "--tokens", "2", "--full", "slide", "--draft-model",
            "draft", "--force")
    before = contents("draft"), contents("chat")
    for name in ("draft/model.safetensors", "draft/tokenizer.json", "chat/config.json"):
        expect(tinygpt(*chat, data=f"Hi\n/save {name}\n".encode()), 1, f"/save {name}", err="have a file of the input")
    equal((contents("draft"), contents("chat")), before, "both models")
    expect(tinygpt(*chat, "--session", "s", data=b"Hi\n/save t\n/load t\n/save t\n/save\nHo\n/save\n"), 0, "what goes on")
    expect(tinygpt(*chat, "--session", "s", data=b"Ho\n/save\nHi\n/save\n"), 0, "a session that goes on")


def a_strangers_prev_stays():
    """What PATH.prev would lose is asked for as what PATH would."""
    expect(train("--steps", "2", "--out", "a.tinygpt", "--log", "a.log"), 0, "a run")
    run = ("train", "--data", text_file(), *TINY, *SILENT, "--steps", "2")
    write("x", "a thesis\n")
    expect(tinygpt("convert", "a.tinygpt", "x", "--force"), 0, "a thesis goes to .prev")
    refused_as_it_is("and stays there", "convert", "a.tinygpt", "x", err=["x.prev: want nothing or a model", "--force"])
    expect(tinygpt("convert", "a.tinygpt", "x", "--force"), 0, "by force")
    check(read("x.prev") != b"a thesis\n", "the thesis is gone by force")
    for name in ("l", "r.tinygpt", "a.tinygpt", "st", "s", "a.tinygpt.best"):
        write(f"{name}.prev", "a thesis\n")
    shutil.copy("a.log", "l")
    refused_as_it_is("a log", *run, "--no-save", "--log", "l", err=r"l\.prev: want nothing")
    refused_as_it_is("a new run", *run, "--out", "r.tinygpt", err=r"r\.tinygpt\.prev: want nothing")
    refused_as_it_is("a run that goes on", *run[:3], *SILENT, "--resume", "a.tinygpt", "--steps", "4",
                     err=r"a\.tinygpt\.best\.prev: want nothing")
    os.remove("a.tinygpt.best.prev")
    refused_as_it_is("a run that goes on", *run[:3], *SILENT, "--resume", "a.tinygpt", "--steps", "4",
                     err=r"a\.tinygpt\.prev: want nothing")
    expect(tinygpt("corpus", "stories", "--bytes", "900", "--out", "st"), 0, "stories where nothing was")
    refused_as_it_is("stories", "corpus", "stories", "--bytes", "2000", "--out", "st", err=r"st\.prev: want nothing")
    write("text.txt", read(text_file())[:20000])
    chat_model("chat")
    chat = ("chat", "chat", "--template", "chatml", "--tokens", "2")
    r = tinygpt(*chat, "--session", "s", data=b"Hi\n")
    expect(r, 2, "a session", err=r"s\.prev: want nothing")
    equal(read("s.prev"), b"a thesis\n", "and the thesis stays")
    os.rename("chat", "v.prev")
    before = contents("v.prev")
    r = tinygpt("chat", "v.prev", "--template", "chatml", "--tokens", "2", "--force", data=b"Hi\n/save v\n/save v\n")
    expect(r, 1, "/save v twice beside the model v.prev", err="v.prev")
    equal(contents("v.prev"), before, "the model is as it was")


def folders_are_swapped_as_a_whole():
    """Never half a model under another one's config.json, index or tokenizer."""
    gguf = os.path.join(LM, "llama.gguf")
    form = ("--format", "safetensors")
    for name in ("config.json", "model.safetensors.index.json", "tokenizer.json", "notes.txt"):
        os.mkdir("d")
        write(f"d/{name}", "{}")
        expect(tinygpt("convert", gguf, "d", *form), 2, f"a folder with {name}", err=["d: want an empty folder", "--force"])
        equal(contents("d"), {name: b"{}"}, f"the folder with {name}")
        expect(tinygpt("convert", gguf, "d", *form, "--force"), 0, f"by force over {name}")
        equal(contents("d.prev"), {name: b"{}"}, f"{name} stays")
        check("model.safetensors" in os.listdir("d") and "notes.txt" not in os.listdir("d"), "the new folder")
        shutil.rmtree("d")
        shutil.rmtree("d.prev")
    os.mkdir("d")
    expect(tinygpt("convert", gguf, "d", *form), 0, "an empty folder")
    first = contents("d")
    expect(tinygpt("convert", gguf, "d", *form, "--dtype", "f16"), 0, "over our own")
    equal(contents("d.prev"), first, "the one before")
    expect(tinygpt("convert", os.path.join(LM, "llama"), "n", *form, "--dtype", "q8_0"), 2, "a type that is none")
    check(not os.path.exists("n"), "no empty folder is left")
    shutil.copytree(os.path.join(LM, "llama"), "n")
    write("n/chat_template.json", "{}")
    for what in "a folder with all that goes along", "and over it":
        expect(tinygpt("convert", "n", "o", *form), 0, what)
    check("chat_template.json" in os.listdir("o"), "what goes along")
    equal([n for n in os.listdir(".") if ".tmp" in n], [], "no temporary files")


def devices_links_and_fifos():
    """Answered, never waited for; /dev/null is nobody's to replace."""
    expect(train("--steps", "2", "--out", "a.tinygpt"), 0, "a run")
    os.mkfifo("fifo")
    for what, args in (("a text", ("sample", "a.tinygpt", "--tokens", "2", "--file", "fifo")),
                       ("a log", ("train", "--data", text_file(), *TINY, *SILENT, "--steps", "2",
                                  "--no-save", "--log", "fifo")),
                       ("stories", ("corpus", "stories", "--bytes", "100", "--out", "fifo")),
                       ("a run", ("train", "--data", text_file(), *TINY, *SILENT, "--steps", "2",
                                  "--out", "fifo")),
                       ("a model", ("convert", "a.tinygpt", "fifo"))):
        expect(tinygpt(*args), 2, f"{what} and a FIFO without another end", err="fifo")
    check(stat.S_ISFIFO(os.stat("fifo").st_mode), "the FIFO is one still")
    r = subprocess.run(["sh", "-c", f'(sleep 1; echo Hi) > fifo & exec "$0" "$@"', PROGRAM, "sample",
                        "a.tinygpt", "--tokens", "2", "--file", "fifo"], capture_output=True,
                       env=environment(), check=False)
    equal(r.returncode, 0, "a FIFO whose writer is slow")
    expect(tinygpt("corpus", "stories", "--bytes", "100", "--out", "/dev/null"), 0, "stories to nowhere")
    expect(train("--steps", "2", "--no-save", "--log", "/dev/null"), 0, "a log to nowhere")
    stories = tinygpt("corpus", "stories", "--bytes", "100").out
    for out in "/dev/stdout", "/dev/fd/1":
        r = tinygpt("corpus", "stories", "--bytes", "100", "--out", out)
        expect(r, 0, "stories to a pipe that has no other name")
        check(r.out.startswith(stories), f"{out} has them")
    r = train("--steps", "2", "--no-save", "--log", "/dev/stdout")
    expect(r, 0, "a log to a pipe", out='"step":2')
    expect(tinygpt("convert", "a.tinygpt", "/dev/null"), 2, "a model to nowhere", err="/dev/null")
    check(stat.S_ISCHR(os.stat("/dev/null").st_mode), "/dev/null is a device still")
    expect(tinygpt("corpus", "stories", "--bytes", "100", "--out", "s.txt"), 0, "stories")
    os.symlink("s.txt", "link")
    expect(tinygpt("corpus", "stories", "--bytes", "200", "--out", "link"), 0, "stories through a link")
    equal((os.path.islink("link"), os.path.getsize("s.txt")), (True, 200), "what the link names is replaced")


def files_of_a_live_run():
    """Whoever writes them is told whose they are: a log, the best weights, the save."""
    expect(train("--steps", "2", "--out", "m.tinygpt"), 0, "a model")
    p = start("train", "--data", text_file(), *SILENT, "--json", *TINY, *LONG, "--out", "a.tinygpt", "--log", "a.log")
    read_step(p, 3)
    for args in (("convert", "m.tinygpt", "a.tinygpt"), ("convert", "m.tinygpt", "a.tinygpt.best"),
                 ("convert", "m.tinygpt", "a.tinygpt.best.prev", "--force"),
                 ("corpus", "stories", "--bytes", "9", "--out", "a.log", "--force"),
                 ("train", "--data", text_file(), *SILENT, *TINY, "--steps", "2", "--out", "a.tinygpt.best"),
                 ("train", "--data", text_file(), *SILENT, *TINY, "--steps", "2", "--no-save", "--log", "a.log")):
        expect(tinygpt(*args), 2, " ".join(args), err=[f"process {p.pid} at work", "choose another name"])
    check(b'"step":1' in read("a.log"), "the log is the run's")
    p.send_signal(signal.SIGTERM)
    expect(finish(p), 130, "the run")
    check(not [n for n in os.listdir(".") if n.endswith(".lock") or n.endswith(".prev")], "nothing else is left")
    expect(tinygpt("convert", "m.tinygpt", "a.tinygpt.best.prev"), 0, "afterwards")


def one_process_at_a_time():
    """A second trainer or chat on one file is told whose it is, and the first one is unharmed."""
    p = start("train", "--data", text_file(), *SILENT, "--json", *TINY, *LONG, "--seed", "1", "--out", "a.tinygpt")
    read_step(p, 3)
    for args in (("--seed", "2", *TINY, "--out", "a.tinygpt"), ("--seed", "2", *TINY, "--out", "./a.tinygpt")):
        expect(tinygpt("train", "--data", text_file(), *SILENT, "--steps", "5", *args), 2, "a second trainer",
               err=["a.tinygpt: want it for this process alone", f"process {p.pid} at work"])
    p.send_signal(signal.SIGTERM)
    expect(finish(p), 130, "the first one")
    whole("a.tinygpt", "after a second trainer")
    check(not os.path.exists("a.tinygpt.lock"), "no lock is left")
    p = start("train", "--data", text_file(), *SILENT, "--json", *TINY, *LONG, "--out", "b.tinygpt")
    read_step(p, 2)
    p.kill()
    p.wait()
    expect(train("--steps", "2", "--out", "b.tinygpt"), 0, "the lock of a killed run blocks nobody")


class Chat:
    """A conversation through a pipe, which stays open."""

    def __init__(self, *args):
        self.p = subprocess.Popen([PROGRAM, "chat", "chat", "--template", "chatml", "--threads", "1", *args],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=environment())

    def say(self, text):
        self.p.stdin.write(text.encode())
        self.p.stdin.flush()

    def end(self):
        out, err = self.p.communicate(timeout=300)
        return self.p.returncode, out, err


def no_conversation_is_lost():
    """chat --session: each signal, at the prompt and in an answer, ends with 130 and the file."""
    write("text.txt", read(text_file())[:20000])
    chat_model("chat")
    for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
        for tokens, where in (("2", "the prompt"), ("1000000", "an answer")):
            c = Chat("--session", "s", "--tokens", tokens, "--full", "slide", "--json" if tokens == "2" else "--no-thinking")
            c.say("Hi\n")
            if tokens == "2":
                c.p.stdout.readline()
            else:
                c.p.stdout.read(1)
            c.p.send_signal(getattr(signal, name))
            code, _, err = c.end()
            equal(code, 130, f"{name} at {where}: {err[-200:]!r}")
            check(os.path.exists("s") and b"user 2\nHi" in read("s"), f"the conversation after {name} at {where}")
            equal([n for n in os.listdir(".") if ".tmp" in n or n.endswith(".lock")], [], "nothing else is left")
            os.remove("s")
    c = Chat("--session", "s", "--tokens", "2", "--json")
    c.say("Hi\n")
    c.p.stdout.readline()
    r = tinygpt("chat", "chat", "--template", "chatml", "--session", "s", data=b"Ho\n")
    expect(r, 2, "a second chat on one session", err=f"process {c.p.pid} at work")
    c.p.stdin.close()
    equal(c.p.wait(60), 0, "the first one")
    check(b"user 2\nHi" in read("s"), "and its conversation")


def save_is_a_save():
    """/save replaces a conversation and nothing else, and leaves nothing half."""
    write("text.txt", read(text_file())[:20000])
    chat_model("chat")
    chat = ("chat", "chat", "--template", "chatml", "--tokens", "2")
    weights = read("chat/model.safetensors")
    for name in ("chat/model.safetensors", "text.txt", "/dev/null", "chat"):
        r = tinygpt(*chat, data=f"Hi\n/save {name}\n".encode())
        expect(r, 1, f"/save over {name}", err=[f"save to {name}: ", "want"])
    equal(read("chat/model.safetensors"), weights, "the model")
    check(stat.S_ISCHR(os.stat("/dev/null").st_mode), "/dev/null is a device still")
    expect(tinygpt(*chat, data=b"Hi\n/save t\nHo\n/save t\n"), 0, "/save twice")
    check(b"user 2\nHo" in read("t") and b"user 2\nHo" not in read("t.prev"), "the one before stays")
    os.symlink("t", "link")
    expect(tinygpt(*chat, data=b"Yo\n/save link\n"), 0, "/save through a link")
    check(os.path.islink("link") and b"user 2\nYo" in read("t"), "what the link names is replaced")
    os.mkfifo("fifo")
    r = tinygpt(*chat, data=b"/load fifo\n")
    expect(r, 0, "/load of a FIFO that nobody writes to", err="without a writer")


def an_interrupted_convert_leaves_nothing():
    """Each signal: exit 130, no temporary file, and what was there."""
    expect(tinygpt("train", "--data", text_file(), *SILENT, "--steps", "1", "--layers", "3", "--width", "384",
                   "--heads", "8", "--out", "a.tinygpt", "--batch", "1", "--ctx", "16", "--val", "0"), 0,
           "a run of 64 MB")
    write("o.gguf", "")
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        for form in (("o.gguf",), ("folder", "--format", "safetensors"), ("v2", "--format", "v2")):
            p = subprocess.Popen([PROGRAM, "convert", "a.tinygpt", *form], stderr=subprocess.PIPE,
                                 stdout=subprocess.PIPE, env=environment())
            while p.poll() is None and not any(".tmp" in n for n in os.listdir(".")):
                time.sleep(0.001)
            p.send_signal(getattr(signal, name))
            _, err = p.communicate(timeout=300)
            if p.returncode == 0:  # it was quicker than the signal
                continue
            equal(p.returncode, 130, f"convert to {form[0]} and {name}: {err[-200:]!r}")
            equal([n for n in os.listdir(".") if not n.startswith("a.tinygpt")], ["o.gguf"], "what is left")
            equal(read("o.gguf"), b"", "what was there")
    p = subprocess.Popen([PROGRAM, "corpus", "stories", "--bytes", "1000G", "--out", "s.txt"],
                         stderr=subprocess.PIPE, env=environment())
    while p.poll() is None and not any(".tmp" in n for n in os.listdir(".")):
        time.sleep(0.001)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=300)
    equal(p.returncode, 130, "corpus and SIGTERM")
    check(not any(n.startswith("s.txt") for n in os.listdir(".")), "nothing of it is left")


main(convert_never_destroys_its_input, what_stands_there_decides, folders_are_swapped_as_a_whole,
     devices_links_and_fifos, what_is_kept_is_no_input, what_was_read_is_never_an_output, a_strangers_prev_stays,
     files_of_a_live_run, one_process_at_a_time, no_conversation_is_lost, save_is_a_save,
     an_interrupted_convert_leaves_nothing)
