#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_train_cli.py - a life in commands: train, resume, fine-tune, sample, inspect, convert.

What is compared is what a user sees: exit codes, printed text and JSON, and files byte for byte.
"""
import json
import math
import os
import re
import signal
import socket
import struct
import xml.etree.ElementTree as xml

from util import (SILENT, TINY, TOP, check, equal, expect, finish, isas, main, read, read_step, resume,
                  same_log, same_run, skip, start, step_of, text_file, tinygpt, train, whole, write)

PARAMS = 256 * 16 + 16 * 16 + 2 * 16 + (12 * 16 * 16 + 13 * 16)  # of TINY
BLIND = math.log(256)


# ------------------------------------------------------------------------------------ train, files


def first_run():
    """One run, and all that it leaves behind."""
    r = tinygpt("train", "--data", text_file(), *TINY, "--steps", "40", "--eval-every", "10",
                "--sample-every", "20", "--log", "a.jsonl", "--svg", "a.svg", "--out", "a.tinygpt",
                "--json")
    expect(r, 0, "train --json")
    rows = r.json_lines()
    steps, last = rows[:-1], rows[-1]
    keys = {"step", "loss", "val", "lr", "grad_norm", "ms", "tok_per_s", "mfu"}
    equal([s["step"] for s in steps], list(range(1, 41)), "a JSON line a step")
    check(all(keys <= set(s) for s in steps), "keys of the JSON lines", str(steps[0].keys()))
    check(all(s["ms"] > 0 and s["tok_per_s"] > 0 and s["grad_norm"] > 0 and s["lr"] == 3e-4
              for s in steps), "numbers of the JSON lines")
    check(all((s["val"] is not None) == (s["step"] % 10 == 0) for s in steps), "val when it is due")
    check(all(("sample" in s) == (s["step"] % 20 == 0) for s in steps), "samples when they are due")
    check(last.get("done") is True and last["step"] == 40 and last["exit"] == 0, "the last line",
          str(last))
    check(abs(steps[0]["loss"] - BLIND) < 0.3, "a fresh model guesses blindly",
          str(steps[0]["loss"]))
    check(steps[-1]["loss"] < steps[0]["loss"] - 0.03, "it learns")

    log = [line for line in read("a.jsonl").decode().splitlines()]
    equal(len(log), 40, "lines of the log")
    for have, want in zip(log, r.text.splitlines()):
        # A step's line is the same in both places, but for the sample at its end.
        if not want.startswith(have[:-1]):
            check(False, "log and --json agree", f"{have} and {want}")
            break
    check(len(set(s["hash"] for s in steps)) == 40, "the hash of the losses changes every step")

    svg = xml.fromstring(read("a.svg"))
    check(svg.tag == "{http://www.w3.org/2000/svg}svg", "the picture is SVG", svg.tag)
    check(len(svg.findall(".//{http://www.w3.org/2000/svg}polyline")) +
          len(svg.findall(".//{http://www.w3.org/2000/svg}path")) >= 2,
          "the picture has two curves")
    equal(sorted(os.listdir(".")), ["a.jsonl", "a.svg", "a.tinygpt", "a.tinygpt.best"],
          "files of the run")
    whole("a.tinygpt", "first run")
    whole("a.tinygpt.best", "first run")

    info = tinygpt("info", "a.tinygpt", "--json").json()
    equal((info["format"], info["params"], info["step"], info["has_moments"]),
          ("tinygpt v3", PARAMS, 40, True), "info --json")
    equal(info["loss_history"][-1]["train"], steps[-1]["loss"], "the history's last loss")
    expect(tinygpt("info", "a.tinygpt"), 0, "info", out=["layers 1, width 16", f"{PARAMS:d}"])

    seen = tinygpt("eval", "a.tinygpt", "--data", text_file(), "--val", "0.1", "--windows", "64",
                   "--json")
    expect(seen, 0, "eval --json")
    loss = seen.json()["loss"]
    check(abs(loss - steps[-1]["val"]) < 1e-6 * loss, "eval gives the run's validation loss",
          f"{loss} and {steps[-1]['val']}")
    check(abs(seen.json()["bits_per_byte"] - loss / math.log(2)) < 1e-9, "bits a byte of eval")
    write("part.txt", read(text_file())[:1601])
    part = tinygpt("eval", "a.tinygpt", "--data", "part.txt", "--json").json()
    check(part["bytes"] == 1601 and part["loss"] != loss, "eval of another text")
    one = tinygpt("eval", "a.tinygpt", "--data", "part.txt", "--windows", "1", "--json").json()
    write("window.txt", read("part.txt")[:17])
    equal(one["loss"],
          tinygpt("eval", "a.tinygpt", "--data", "window.txt", "--json").json()["loss"],
          "eval --windows 1 looks at the first window")
    expect(tinygpt("eval", "a.tinygpt", "--data", "part.txt"), 0, "eval",
           out=["loss", "perplexity", "bits"])


def forecast_first():
    """What a run will need is said before its first step, and counted right."""
    r = tinygpt("train", "--data", text_file(), *TINY, "--steps", "5", "--out", "a.tinygpt")
    expect(r, 0, "train with its table")
    table = re.search(r"^ +step +loss", r.text, re.M)
    check(table is not None, "the table has a header")
    before = r.text[:table.start()] if table else ""
    for what in ("7,664 parameters", r"memory +[0-9.]+ .B needed, [0-9.]+ .B free",
                 r"disk +[0-9.]+ .B a save", r"time +about", "held back for validation",
                 r"threads of|thread of"):
        check(re.search(what, before), f"/{what}/ is told before step 1")
    check(re.search(r"^ +5 ", r.text[len(before):], re.M), "step 5 is in the table")
    j = tinygpt("train", "--data", text_file(), *TINY, "--steps", "5", "--no-save", "--json")
    expect(j, 0, "train --json --no-save", err=["needed", "time +about"])
    check(len(j.json_lines()) == 6, "with --json the forecast stays out of standard output")
    equal(os.path.exists("run.tinygpt"), False, "--no-save saves nothing")


def file_names():
    """A run that names no file replaces none; one that does keeps the predecessor."""
    for name in ("run.tinygpt", "run-2.tinygpt"):
        expect(train("--steps", "2"), 0, "train without --out")
        whole(name, "without --out")
    first = read("run.tinygpt")
    r = train("--steps", "3", "--out", "run.tinygpt")
    expect(r, 2, "train over an old file", err=["run.tinygpt exists", "--resume", "--force"])
    equal(read("run.tinygpt"), first, "the old file is as it was")
    r = train("--steps", "3", "--out", "run.tinygpt", "--force")
    expect(r, 0, "train over an old file by force", err="run.tinygpt exists")
    equal(read("run.tinygpt.prev"), first, "the old file is kept as .prev")
    q = train("--steps", "2", "--out", "q.tinygpt")
    equal((q.out, q.err), (b"", b""), "--quiet prints nothing")
    before = sorted(os.listdir("."))
    expect(train("--steps", "2", "--no-save"), 0, "train --no-save")
    equal(sorted(os.listdir(".")), before, "--no-save leaves no file")
    bests = [n for n in before if n.endswith(".best")]
    expect(train("--steps", "2", "--val", "0", "--out", "n.tinygpt"), 0, "train without validation")
    equal([n for n in sorted(os.listdir(".")) if n.endswith(".best")], bests,
          "no .best without validation")


def learning_rates():
    """The rates in the log follow the schedule that was asked for."""
    n, warm, lr = 40, 5, 1e-3

    def rates(*args):
        r = tinygpt("train", "--data", text_file(), *TINY, "--sample-every", "0", "--no-save",
                    "--json", "--steps", n, "--lr", lr, *args)
        expect(r, 0, f"train {' '.join(args)}")
        return [row["lr"] for row in r.json_lines()[:-1]]

    def close(have, want, what):
        check(len(have) == len(want) and all(abs(a - b) <= 1e-12 for a, b in zip(have, want)), what,
              f"want {want}, have {have}")

    ramp = [lr * (i + 1) / warm for i in range(warm)]
    close(rates("--warmup", str(warm)), ramp + [lr] * (n - warm), "warm-up, then constant")
    close(rates("--schedule", "cosine", "--warmup", str(warm), "--min-lr", "0.2"),
          ramp + [lr * (0.2 + 0.8 * 0.5 * (1 + math.cos(math.pi * (i - warm) / (n - warm))))
                  for i in range(warm, n)], "cosine to a fifth")
    have = rates("--schedule", "wsd", "--decay", "0.25", "--min-lr", "0")
    close(have[:30], [lr] * 30, "wsd is constant before its last quarter")
    close(have[30:], [lr * (1 - (i + 1) / 10) for i in range(10)], "wsd falls to zero at its end")


# ------------------------------------------------------------------------------------------ resume


def resume_is_the_run():
    """20 steps are 10 + 10: weights, moments, history and log, with and without accumulation."""
    for accum in ("1", "3"):
        options = ("--eval-every", "5", "--accum", accum, "--lr", "1e-3", "--schedule", "wsd",
                   "--decay", "0")
        a, b = f"a{accum}.tinygpt", f"b{accum}.tinygpt"
        log_a, log_b = f"a{accum}.jsonl", f"b{accum}.jsonl"
        expect(train(*options, "--steps", "20", "--out", a, "--log", log_a), 0, "unbroken run")
        expect(train(*options, "--steps", "10", "--out", b, "--log", log_b), 0, "first half")
        equal(step_of(b), 10, "steps of the first half")
        expect(resume(b, "--steps", "20", "--log", log_b), 0, "second half")
        same_run(a, b, f"20 = 10 + 10, accum {accum}")
        equal(read(a + ".best"), read(b + ".best"), f"best weights, accum {accum}")
        same_log(log_a, log_b, f"20 = 10 + 10, accum {accum}")
        equal(step_of(b + ".prev"), 10, "the first half is kept as .prev")

    again = resume("b1.tinygpt")
    expect(again, 0, "resuming a finished run", out="finished")
    same_run("a1.tinygpt", "b1.tinygpt", "resuming a finished run changes nothing")
    expect(resume("a1.tinygpt", "--steps", "30", "--out", "c.tinygpt", "--threads", "3"), 0,
           "resume into another file")
    equal((step_of("a1.tinygpt"), step_of("c.tinygpt")), (20, 30), "--resume A --out B leaves A")
    expect(resume("b1.tinygpt", "--steps", "25"), 0, "third part")
    expect(resume("b1.tinygpt", "--steps", "30"), 0, "fourth part")
    same_run("c.tinygpt", "b1.tinygpt", "30 = 20 + 10 with 3 threads = 20 + 5 + 5")


def resume_after_ctrl_c():
    """A run that is interrupted wherever it happens to be goes on to the same bits."""
    for accum, shots in (("1", (7, 40)), ("3", (3, 20, 21))):
        options = ("--eval-every", "11", "--accum", accum, "--steps", "600", "--schedule", "cosine")
        a, b = f"a{accum}.tinygpt", f"b{accum}.tinygpt"
        log_a, log_b = f"a{accum}.jsonl", f"b{accum}.jsonl"
        expect(train(*options, "--out", a, "--log", log_a), 0, "unbroken run")
        args = ["--out", b, *TINY, *options]
        for at in shots:
            p = start("train", "--data", text_file(), *SILENT, *args, "--log", log_b, "--json")
            read_step(p, at)
            p.send_signal(signal.SIGINT)
            r = finish(p)
            expect(r, 130, f"Ctrl-C behind step {at}", err="to go on|To go on", out='"interrupted"')
            check(at <= step_of(b) < 600, f"a step behind {at} is saved", str(step_of(b)))
            args = ["--resume", b]
        expect(resume(b, "--log", log_b), 0, "the rest of the interrupted run")
        same_run(a, b, f"interrupted {len(shots)} times, accum {accum}")
        same_log(log_a, log_b, f"interrupted {len(shots)} times, accum {accum}")


def resume_long_history():
    """A history that is thinned (more than 4,096 points) is thinned alike in a resumed run."""
    small = ("--layers", "1", "--width", "4", "--heads", "1", "--ctx", "4", "--batch", "1",
             "--eval-every", "500", "--eval-windows", "2", "--save-every", "0")

    def go(*args):
        return tinygpt("train", "--data", text_file(), *SILENT, *args)

    expect(go(*small, "--steps", "5000", "--out", "a.tinygpt"), 0, "5,000 steps")
    expect(go(*small, "--steps", "4500", "--out", "b.tinygpt"), 0, "4,500 steps")
    expect(go("--resume", "b.tinygpt", "--steps", "5000"), 0, "500 more")
    same_run("a.tinygpt", "b.tinygpt", "5,000 = 4,500 + 500")
    points = tinygpt("info", "a.tinygpt", "--json").json()["loss_history"]
    check(2000 < len(points) <= 4096, "the history is thinned", str(len(points)))


def resume_refuses():
    """What cannot be the same run is refused, with both sides named, and nothing is written."""
    expect(train("--steps", "4", "--out", "a.tinygpt"), 0, "a run")
    data = read("a.tinygpt")
    for option, value in (("--lr", "1e-3"), ("--batch", "4"), ("--preset", "tiny"), ("--seed", "1"),
                          ("--layers", "2"), ("--ctx", "8"), ("--accum", "2"), ("--val", "0.2")):
        expect(resume("a.tinygpt", option, value), 2, f"--resume with {option}", err=option)
    expect(resume("a.tinygpt", "--from", "a.tinygpt"), 2, "--resume with --from", err="both")
    write("other.txt", read(text_file())[:-1])
    expect(tinygpt("train", "--data", "other.txt", *SILENT, "--resume", "a.tinygpt", "--steps",
                   "9"), 2, "--resume with another text",
           err=["another text", "want [0-9]+ bytes", "have [0-9]+"])
    expect(resume("a.tinygpt.best", "--steps", "9"), 2, "--resume of weights alone", err="--from")
    expect(resume("a.tinygpt", "--steps", "2"), 2, "--resume with fewer steps",
           err="want at least the 4 that are done, have 2")
    equal(read("a.tinygpt"), data, "refused runs change nothing")


def resume_across_classes():
    """A run goes on in the other determinism class, and says that bits may differ."""
    if not {"scalar", "avx2"} <= set(isas()):
        return skip("a run from one determinism class to the other: want scalar and avx2")
    expect(train("--steps", "6", "--out", "a.tinygpt", "--isa", "avx2"), 0, "a run with avx2")
    r = resume("a.tinygpt", "--steps", "12", "--isa", "scalar")
    expect(r, 0, "resume with scalar", err="determinism class")
    equal(step_of("a.tinygpt"), 12, "steps of the resumed run")


def fine_tune():
    """--from trains given weights on another text as a run of its own."""
    expect(train("--steps", "400", "--lr", "1e-2", "--out", "a.tinygpt"), 0,
           "base model")
    data = read("a.tinygpt")
    # Other stories: in capitals, which those of the base model hardly have, all would be new.
    expect(tinygpt("corpus", "stories", "--bytes", "100k", "--seed", "7", "--out", "letters.txt"), 0,
           "another text")
    r = tinygpt("train", "--data", "letters.txt", "--from", "a.tinygpt", "--sample-every", "0",
                "--quiet", "--json", "--steps", "10", "--out", "b.tinygpt")
    expect(r, 0, "train --from")
    rows = r.json_lines()
    check(rows[0]["loss"] < BLIND - 0.7, "fine-tuning starts from what was learnt",
          str(rows[0]["loss"]))
    equal((rows[0]["step"], step_of("b.tinygpt")), (1, 10), "a run of its own counts from 1")
    equal(read("a.tinygpt"), data, "the base model is untouched")
    expect(tinygpt("train", "--data", "letters.txt", "--from", "a.tinygpt", "--layers", "2",
                   *SILENT), 2, "--from with --layers", err="--layers")
    for bits in ("f16", "int4"):
        expect(tinygpt("convert", "a.tinygpt", "half.tinygpt", "--dtype", bits), 0, "convert")
        expect(tinygpt("train", "--data", "letters.txt", "--from", "half.tinygpt", *SILENT,
                       "--steps", "3", "--out", f"{bits}.tinygpt"), 0, f"--from {bits} weights")
        whole(f"{bits}.tinygpt", "fine-tuned")


def early_stop():
    """--patience ends a run whose validation no longer improves, and the run is saved."""
    write("few.txt", b"abcdefgh" * 200 + b"zyxwvuts" * 30)
    r = tinygpt("train", "--data", "few.txt", *TINY, "--quiet", "--json", "--sample-every", "0",
                "--steps", "2000", "--eval-every", "10", "--lr", "1e-2", "--patience", "2", "--out",
                "a.tinygpt")
    expect(r, 0, "train --patience")
    last = r.json_lines()[-1]
    check(last["reason"] == "early_stop" and last["step"] < 2000 and last["done"], "early stop",
          str(last))
    equal(step_of("a.tinygpt"), last["step"], "the run is saved where it stopped")
    best = min((row["val"], row["step"]) for row in r.json_lines()[:-1] if row["val"] is not None)
    equal(step_of("a.tinygpt.best"), best[1], ".best is the best validation")
    expect(tinygpt("train", "--data", "few.txt", *SILENT, "--resume", "a.tinygpt"), 0,
           "resuming a run that stopped early")


# -------------------------------------------------------------------------------------- same bits


def threads_change_nothing():
    """1, 2, 3, 5 and 8 threads: the same file and the same text, byte for byte."""
    model = ("--layers", "2", "--width", "24", "--heads", "3", "--ctx", "20", "--batch", "5")
    texts = []
    for n in ("1", "2", "3", "5", "8"):
        r = tinygpt("train", "--data", text_file(), *model, *SILENT, "--steps", "12", "--accum",
                    "2", "--threads", n, "--out", f"{n}.tinygpt")
        expect(r, 0, f"train with {n} threads")
        same_run("1.tinygpt", f"{n}.tinygpt", f"{n} threads")
        s = tinygpt("sample", "1.tinygpt", "--tokens", "60", "--prompt", "To be", "--threads", n)
        expect(s, 0, f"sample with {n} threads")
        texts.append(s.out)
    check(texts[0] and len(set(texts)) == 1, "the sampled text is the same for all threads")
    if os.cpu_count() > 255:
        return skip("more threads than cores: there are too many")
    many = train("--steps", "1", "--no-save", "--threads", os.cpu_count() + 1)
    return expect(many, 0, "more threads than cores", err="warning")


def isas_agree():
    """avx2 = avx512 to the bit; scalar, which does not fuse multiply and add, is near."""
    have = isas()
    for isa in have:
        expect(train("--steps", "25", "--isa", isa, "--out", f"{isa}.tinygpt", "--log",
                     f"{isa}.jsonl"), 0, f"train --isa {isa}")
    if {"avx2", "avx512"} <= set(have):
        same_run("avx2.tinygpt", "avx512.tinygpt", "avx2 and avx512")
        same_log("avx2.jsonl", "avx512.jsonl", "avx2 and avx512")
        a, b = (tinygpt("sample", "avx2.tinygpt", "--tokens", "60", "--isa", i)
                for i in ("avx2", "avx512"))
        check(a.out == b.out and a.out, "avx2 and avx512 sample the same text")
    else:
        skip(f"avx2 against avx512: this CPU has {' '.join(have)}")
    losses = [tinygpt("info", f"{isa}.tinygpt", "--json").json()["final_loss"]["train"]
              for isa in have]
    check(max(losses) - min(losses) < 1e-4, "losses of all instruction sets are near", str(losses))
    expect(train("--isa", "sse9"), 2, "an unknown instruction set", err="sse9")


# ----------------------------------------------------------------------------------------- sample


def trained(*args):
    """A model that knows the letters of the text: the file it is in."""
    expect(train("--steps", "1000", "--lr", "1e-2", "--out", "m.tinygpt", *args), 0,
           "a trained model")
    return "m.tinygpt"


def ids(*args):
    r = tinygpt("sample", "m.tinygpt", "--json", "--tokens", "300", *args)
    expect(r, 0, f"sample {' '.join(args)}")
    return r.json()["ids"]


def sampling():
    """Seeds, temperature and every filter do what they say."""
    trained()
    plain = ids("--seed", "5")
    equal(ids("--seed", "5"), plain, "same seed, same text")
    check(ids("--seed", "6") != plain, "another seed, another text")
    greedy = ids("--temp", "0")
    equal(ids("--temp", "0", "--seed", "9"), greedy, "--temp 0 takes no notice of the seed")
    for args in (("--top-k", "1"), ("--top-p", "1e-9"), ("--min-p", "1")):
        equal(ids(*args, "--temp", "1", "--seed", "3"), greedy, f"{' '.join(args)} is greedy")
    hot, cold = ids("--temp", "2"), ids("--temp", "0.3")
    check(len(set(hot)) > len(set(plain)) > len(set(cold)), "heat brings variety",
          f"{len(set(hot))}, {len(set(plain))}, {len(set(cold))} different bytes")
    for args in (("--top-k", "4"), ("--top-p", "0.4"), ("--min-p", "0.3")):
        check(len(set(ids(*args, "--temp", "2"))) < len(set(hot)) * 0.8,
              f"{' '.join(args)} filters")
    equal(ids("--top-k", "0", "--top-p", "1", "--min-p", "0", "--repeat-penalty", "1", "--seed",
              "5"), plain, "filters that are off")
    check(len(set(ids("--temp", "0", "--repeat-penalty", "1.5"))) > len(set(greedy)),
          "--repeat-penalty disfavours what was said")
    equal(ids("--temp", "0", "--repeat-penalty", "1.5", "--repeat-last", "0"), greedy,
          "--repeat-last 0 sees nothing recent")


def prompts():
    """Prompts come from the command line, a file or a pipe; one that is too long is cut aloud."""
    trained()
    said = tinygpt("sample", "m.tinygpt", "--prompt", "ROMEO:", "--tokens", "50")
    expect(said, 0, "sample --prompt")
    equal(len(said.text), 50, "a byte a token, of ASCII")
    write("p.txt", "ROMEO:")
    equal(tinygpt("sample", "m.tinygpt", "--file", "p.txt", "--tokens", "50").out, said.out,
          "the prompt from a file")
    equal(tinygpt("sample", "m.tinygpt", "--file", "-", "--tokens", "50", data=b"ROMEO:").out,
          said.out, "the prompt from a pipe")
    equal(tinygpt("sample", "m.tinygpt", "--prompt", "ROMEO:", "--tokens", "50", "--echo").out,
          b"ROMEO:" + said.out, "--echo")
    j = tinygpt("sample", "m.tinygpt", "--prompt", "ROMEO:", "--tokens", "50", "--json").json()
    equal((j["text"], bytes(j["ids"]), bytes(j["prompt_ids"])),
          (said.text, said.out, b"ROMEO:"), "sample --json says the same")
    check(j["tok_per_s"] > 0, "tokens a second")
    short = tinygpt("sample", "m.tinygpt", "--prompt", "To be, or", "--tokens", "3")
    check(b"were left out" not in short.err, "no note for a short prompt")
    long = tinygpt("sample", "m.tinygpt", "--prompt", "x" * 100 + "ROMEO:", "--tokens", "20")
    expect(long, 0, "a prompt longer than the window", err=["has 106 tokens and the window 16: 91 were left out", "The model has no more"])
    newest = ("x" * 100 + "ROMEO:")[-15:]
    equal(tinygpt("sample", "m.tinygpt", "--prompt", newest, "--tokens", "20").out, long.out,
          "its newest part is what counts")
    j = tinygpt("sample", "m.tinygpt", "--prompt", "x" * 106, "--json").json()
    equal((j["prompt_dropped"], len(j["prompt_ids"])), (91, 106), "prompt_dropped")
    equal(tinygpt("sample", "m.tinygpt", "--tokens", "0").out, b"", "--tokens 0")
    expect(tinygpt("sample", "m.tinygpt", "--stats", "--tokens", "9"), 0, "--stats", err="9 tokens")
    check(tinygpt("sample", "m.tinygpt", "--prompt", "a", "--ctx", "4", "--tokens", "99").out !=
          tinygpt("sample", "m.tinygpt", "--prompt", "a", "--tokens", "99").out,
          "a smaller window is a shorter memory")
    t = tinygpt("tokenize", "m.tinygpt", "né\n", "--json")
    equal(t.json(), {"ids": [110, 195, 169, 10], "pieces": ["n", "<0xC3>", "<0xA9>", "\n"]},
          "tokenize --json")
    expect(tinygpt("tokenize", "m.tinygpt", "--file", "p.txt"), 0, "tokenize --file",
           out="6 tokens")


def characters_are_whole():
    """A stream never shows half a character, whatever the model says."""
    line = "žluťoučký kůň pěl ďábelské ódy – 漢字かな混じり文 😀🎉 ".encode()
    write("accents.txt", line * 600)
    expect(tinygpt("train", "--data", "accents.txt", *TINY, *SILENT, "--steps", "500", "--lr",
                   "1e-2", "--out", "m.tinygpt"), 0, "a model of accents")
    for seed, temp in (("1", "1"), ("2", "1.5"), ("3", "0.5")):
        # A socket that keeps apart what was written apart, whenever it is read.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            p = start("sample", "m.tinygpt", "--tokens", "2000", "--temp", temp, "--seed", seed,
                      stdout=theirs)
            theirs.close()
            pieces = []
            while piece := ours.recv(1 << 16):
                pieces.append(piece)
        expect(finish(p), 0, f"sample at temperature {temp}")
        broken = None
        for piece in pieces:
            try:
                piece.decode("utf-8")
            except UnicodeDecodeError as e:
                broken = str(e)
        check(broken is None, "each piece of the stream is whole UTF-8", broken)
        said = b"".join(pieces).decode("utf-8", "replace")
        check(any(len(c.encode()) > 1 and c != "\ufffd" for c in said), "characters of many bytes")
        check(len(pieces) > 500, "the text comes in pieces", str(len(pieces)))
        ends = tinygpt("sample", "m.tinygpt", "--tokens", "2000", "--temp", temp, "--seed", seed,
                       "--json").json()
        equal(ends["text"], said, "--json has the text of the stream")
    fresh = tinygpt("train", "--data", "accents.txt", *TINY, *SILENT, "--steps", "1", "--out",
                    "f.tinygpt")
    expect(fresh, 0, "a model that knows nothing")
    noise = tinygpt("sample", "f.tinygpt", "--tokens", "1000").out
    check("\ufffd" in noise.decode("utf-8"), "bytes that are no character are shown as U+FFFD")


# ----------------------------------------------------------------------------------------- convert


def body_of(path):
    """Version and body of a v1 or v2 file, read as its specification says."""
    data = read(path)
    magic, version, length = struct.unpack_from("<4sII", data)
    equal(magic, b"TGPT", f"magic of {path}")
    return version, data[12 + length + 4:], struct.unpack_from("<i", data, 12 + length)[0]


def conversions():
    """v3 → v2 (f32, f16, int4), v1 and back: the same weights as far as the layout can hold them."""
    expect(train("--steps", "30", "--lr", "1e-2", "--out", "a.tinygpt"), 0, "a run")
    for out, options in (("v2", ("--format", "v2")), ("v1", ("--format", "v1")),
                         ("f16", ("--dtype", "f16")), ("int4", ("--dtype", "int4"))):
        expect(tinygpt("convert", "a.tinygpt", out, *options), 0, f"convert to {out}", out=out[:2])
        whole(out, "converted")
        expect(tinygpt("sample", out, "--tokens", "20"), 0, f"sample from {out}")
    expect(tinygpt("verify", "a.tinygpt", "v2"), 0, "v3 and v2 hold the same run", out="^equal")
    expect(tinygpt("convert", "v2", "back", "--json"), 0, "v2 back to v3", out='"v3 f32"')
    expect(tinygpt("verify", "a.tinygpt", "back"), 0, "v3 → v2 → v3", out="^equal")
    expect(tinygpt("convert", "a.tinygpt", "copy"), 0, "v3 to v3")
    equal(read("copy"), read("a.tinygpt"), "v3 → v3 changes nothing")

    (n2, f32, step2), (n1, old, step1) = body_of("v2"), body_of("v1")
    equal((n2, n1, step2, step1), (2, 1, 30, 30), "versions and steps")
    equal(len(f32), 12 * PARAMS, "length of the f32 body")
    check(old == f32, "v1 and v2 have the same body")
    weights = []  # of all tensors, without the moments that follow each
    at = 0
    for t in tinygpt("info", "a.tinygpt", "--json").json()["tensors"]:
        n = math.prod(t["shape"])
        if not t["name"].startswith("adam_"):
            weights += [struct.unpack_from(f"<{n}f", f32, at)]
            at += 12 * n
    flat = [w for t in weights for w in t]
    have = struct.unpack(f"<{PARAMS}e", body_of("f16")[1])
    want = struct.unpack(f"<{PARAMS}e", struct.pack(f"<{PARAMS}e", *flat))
    check(have == want, "f16 weights are rounded to nearest, ties to even")
    packed = body_of("int4")[1]
    blocks = [t[i:i + 64] for t in weights for i in range(0, len(t), 64)]
    equal(len(packed), 34 * len(blocks), "length of the int4 body")
    worst = 0
    for i, block in enumerate(blocks):
        scale = struct.unpack_from("<e", packed, 2 * i)[0]
        nibbles = packed[2 * len(blocks) + 32 * i:][:32]
        for k, w in enumerate(block):
            q = (nibbles[k // 2] >> 4 * (k % 2) & 15) - 8
            worst = max(worst, abs(q * scale - w) / scale if scale else abs(w))
    check(worst <= 0.51, "int4 weights are within half a step", f"{worst} steps")
    write("part.txt", read(text_file())[:3200])
    losses = {name: tinygpt("eval", name, "--data", "part.txt", "--json").json()["loss"]
              for name in ("a.tinygpt", "v2", "v1", "f16", "int4")}
    check(losses["v2"] == losses["v1"] == losses["a.tinygpt"], "f32 layouts give one loss",
          str(losses))
    check(abs(losses["f16"] - losses["v2"]) < 1e-3 and abs(losses["int4"] - losses["v2"]) < 0.1,
          "f16 and int4 are near", str(losses))

    expect(resume("v2", "--steps", "40"), 0, "resume from a v2 file")
    expect(resume("a.tinygpt", "--steps", "40"), 0, "resume from the v3 file")
    # v2 has no place for the hash of all losses, but for everything that decides the next step.
    for name in ("a.tinygpt", "v2"):
        expect(tinygpt("convert", name, name + ".end", "--format", "v2"), 0, "convert both to v2")
    check(body_of("v2.end")[1:] == body_of("a.tinygpt.end")[1:],
          "a v2 file resumes to the same step and bits")
    expect(tinygpt("convert", "a.tinygpt", "x", "--dtype", "int4", "--format", "v3"), 2,
           "int4 in v3", err="v2")
    expect(tinygpt("convert", "a.tinygpt", "a.tinygpt"), 2, "convert onto itself", err="same file")
    expect(tinygpt("verify", "a.tinygpt", "copy"), 1, "different runs differ", out="differ")
    equal(tinygpt("verify", "a.tinygpt", "copy", "--json").json()["equal"], False, "verify --json")
    equal(tinygpt("verify", "a.tinygpt", "--json").json(), {"whole": True, "checksummed": True},
          "verify --json of one")
    equal(os.path.exists("x"), False, "a refused conversion writes nothing")


def verify_names_the_difference():
    """One changed weight is named with its tensor, element and both values."""
    expect(train("--steps", "3", "--out", "a.tinygpt"), 0, "a run")
    expect(tinygpt("convert", "a.tinygpt", "v2", "--format", "v2"), 0, "convert")
    data = bytearray(read("v2"))
    at = len(data) - 12 * PARAMS + 4 * 5  # element 5 of the first tensor
    struct.pack_into("<f", data, at, 0.5)
    write("changed", data)
    expect(tinygpt("verify", "v2", "changed"), 1, "verify of a changed weight",
           out=["token_embedding.weight", "element 5", "0.5"])


# -------------------------------------------------------------------------------------------- help


def options_of_nothing():
    """Sizes apply to a preset's own family; an option that would do nothing is refused by its name."""
    new = ("--steps", "1", "--no-save", "--quiet", "--sample-every", "0")
    modern = ("train", "--data", text_file(), "--preset", "modern-small", "--layers", "1", *new)
    run = ("train", "--data", text_file(), "--preset", "modern-small", "--layers", "1", "--steps", "1", "--quiet",
           "--sample-every", "0")
    expect(tinygpt(*run, "--kv-heads", "1", "--head-size", "16", "--mlp", "48", "--rope-base", "500", "--out", "a.tinygpt"), 0,
           "sizes of a preset's family")
    config = tinygpt("info", "a.tinygpt", "--json").json()["config"]
    equal((config["kv_heads"], config["head_size"], config["d_mlp"], config["heads"]), (1, 16, 48, 4), "are those of its model")
    expect(tinygpt(*run, "--out", "b.tinygpt"), 0, "without them")
    equal(tinygpt("info", "b.tinygpt", "--json").json()["config"]["kv_heads"], 2, "they are the preset's")
    for size in ("--kv-heads", "--head-size", "--mlp", "--window", "--rope-base"):
        for family in ((), ("--family", "tinygpt")):
            expect(train("--steps", "1", "--no-save", *family, size, "2"), 2, f"{size} {family}",
                   err=f"{size}: want a family that has it .*have tinygpt")
    expect(tinygpt(*modern, "--window", "8"), 2, "a window of Qwen 3", err="window: want a family that has windows")
    for family in ("gpt2", "granitehybrid"):
        expect(train("--steps", "1", "--no-save", "--family", family, "--rope-base", "500"), 2, f"rotary positions of {family}",
               err=f"rope_base: want a family with rotary positions, have {family}")
    for args, wanted in ((("--min-lr", "0.1"), "--schedule cosine or wsd"), (("--decay", "0.1"), "--schedule wsd"),
                         (("--schedule", "cosine", "--decay", "0.1"), "--schedule wsd"),
                         (("--val", "0", "--patience", "2"), "a validation"), (("--val", "0", "--eval-windows", "2"), "a validation"),
                         (("--val", "0", "--eval-every", "2"), "a validation"), (("--sample-tokens", "3"), "samples")):
        expect(train("--steps", "2", "--no-save", *args), 2, f"{args}", err=f"{args[-2]} wants {wanted}")
    expect(train("--steps", "2", "--sweep", "min-lr=0,0.5"), 2, "a sweep of nothing", err="min-lr wants --schedule cosine or wsd")
    expect(train("--steps", "2", "--val", "0", "--out", "c.tinygpt"), 0, "a run without validation")
    expect(resume("c.tinygpt", "--steps", "4", "--patience", "2"), 2, "has none later", err="--patience: c.tinygpt has no validation")


def help_and_version():
    commands = ("train", "sample", "info", "eval", "convert", "verify", "tokenize", "dump",
                "doctor")
    top = tinygpt("--help")
    expect(top, 0, "--help", out=commands)
    for c in commands:
        # Of the options that all take, help shows those that mean something to the command.
        computes = c not in ("info", "verify", "tokenize")
        r = tinygpt(c, "--help")
        expect(r, 0, f"{c} --help", out=["usage: tinygpt " + c, "--json"])
        equal("--threads" in r.text, computes, f"{c} --help: --threads")
    for c in ("bench train", "bench levers", "bench matmul", "bench decode", "bench prefill", "bench profile",
              "corpus stories", "chat", "embed", "serve"):
        r = tinygpt(*c.split(), "--help")
        expect(r, 0, f"{c} --help", out="usage: tinygpt " + c)
        twice = [o.split()[0] for o in re.split(r"\n  (?=--)", r.text) if o.count("(default") > 1]
        equal(twice, [], f"{c} --help: options that tell their default twice")
    expect(tinygpt("--version"), 0, "--version", out=r"^tinygpt \d+\.\d+\.\d+\n  compiler ")
    expect(tinygpt(), 2, "no command", err="usage")
    listed = re.findall(r"^  (--[a-z0-9-]+)", tinygpt("train", "--help").text, re.M)
    check(len(listed) == len(set(listed)) > 30, "every option of train is listed once",
          str(len(listed)))


def dated_conversations(model):
    """The date that a template writes is said, kept in the run, and the run goes on with it on any other day."""
    write("dated.jinja", b"{% for m in messages %}{{ strftime_now('%d') + m['content'] + '<eos>' }}{% endfor %}")
    to = ("train", "--data", "chats.jsonl", "--batch", "4", "--row-tokens", "24", "--eval-every", "2", "--json", "--template",
          "dated.jinja")
    today = tinygpt(*to, "--from", model, "--steps", "2", "--no-save")
    expect(today, 0, "a template with today's date", err=r"writes today's date; --date 20\d\d-\d\d-\d\d keeps it")
    of_3 = tinygpt(*to, "--from", model, "--steps", "4", "--no-save", "--date", "2026-02-03")
    expect(of_3, 0, "another day")
    check("note" not in of_3.errors, "nothing is to be said", of_3.errors)
    of_4 = tinygpt(*to, "--from", model, "--steps", "4", "--no-save", "--date", "2026-02-04").json_lines()
    check(of_3.json_lines()[-2]["hash"] != of_4[-2]["hash"], "the day is among the tokens")
    expect(tinygpt(*to, "--from", model, "--steps", "2", "--out", "d.tinygpt", "--date", "2026-02-03"), 0, "half of it")
    rest = ("train", "--data", "chats.jsonl", "--resume", "d.tinygpt", "--steps", "4", "--json", "--template", "dated.jinja")
    other = tinygpt(*rest, "--date", "2026-02-04")
    expect(other, 2, "resumed with another date", err="written with another date: want 2026-02-03, have 2026-02-04")
    again = tinygpt(*rest)
    expect(again, 0, "resumed without one")
    equal(again.json_lines()[-2]["hash"], of_3.json_lines()[-2]["hash"], "is the same run")
    plain = tinygpt(*rest[:-1], "plain.jinja")
    expect(plain, 2, "resumed with another template", err="another date: want 2026-02-03, have none")
    expect(tinygpt(*to, "--from", model, "--no-save", "--date", "2026-02-30"), 2, "no day", err="date: want YYYY-MM-DD")
    expect(tinygpt("train", "--data", text_file(), "--date", "2026-02-03"), 2, "a date for a text", err="jsonl")
    dateless = tinygpt(*to[:-1], "plain.jinja", "--from", model, "--no-save", "--date", "2026-02-03")
    expect(dateless, 2, "a date for a template that writes none", err="want a template that writes a date")
    hushed = tinygpt(*to, "--from", model, "--steps", "1", "--no-save", "--quiet")
    expect(hushed, 0, "today's date under --quiet")
    check("note" not in hushed.errors, "is not said", hushed.errors)


def conversations():
    """train --data chats.jsonl: answers are learnt, a run goes on, and what is broken is told by its line."""
    model = os.path.join(TOP, "test", "golden", "lm", "tune_phi3.zip")
    lines = [{"messages": [{"role": "user", "content": f"Say {i}"}, {"role": "assistant", "content": f"It is {i}."}]}
             for i in range(20)]
    write("chats.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())
    to = ("train", "--data", "chats.jsonl", "--batch", "4", "--row-tokens", "24", "--eval-every", "2", "--json")
    whole_run = tinygpt(*to, "--from", model, "--steps", "6", "--no-save")
    expect(whole_run, 0, "a run on conversations")
    rows = whole_run.json_lines()
    check(rows[-2]["val"] < rows[1]["val"], "it learns to answer", str(rows))
    expect(tinygpt(*to, "--from", model, "--steps", "3", "--out", "r.tinygpt"), 0, "half of it")
    rest = tinygpt("train", "--data", "chats.jsonl", "--resume", "r.tinygpt", "--steps", "6", "--json")
    expect(rest, 0, "the other half")
    equal(rest.json_lines()[-2]["hash"], rows[-2]["hash"], "is the same run")
    other = tinygpt(*to, "--from", model, "--steps", "6", "--no-save", "--template", "{{ messages[0]['content'] }}{% "
                    "for m in messages[1:] %}<bos>{{ m['content'] }}<eos>{% endfor %}")
    expect(other, 2, "a template that is neither name nor file", err="--template takes")
    write("plain.jinja", b"{% for m in messages %}{{ m['content'] + '<eos>' }}{% endfor %}")
    other = tinygpt(*to, "--from", model, "--steps", "6", "--no-save", "--template", "plain.jinja")
    expect(other, 0, "a template of one's own")
    check(other.json_lines()[-2]["hash"] != rows[-2]["hash"], "which counts")
    dated_conversations(model)
    write("bad.jsonl", read("chats.jsonl") + b'{"messages":[{"role":"user","content":"?"}]}\n')
    bad = ("train", "--data", "bad.jsonl", "--no-save")
    expect(tinygpt(*bad, "--from", model), 2, "no answer", err=r"bad\.jsonl: line 21: .*answer")
    expect(tinygpt(*bad), 2, "no vocabulary", err="--from MODEL")
    expect(tinygpt(*bad, "--data", text_file(), "--from", model), 2, "texts among them", err="texts alone")
    expect(tinygpt("train", "--data", text_file(), "--template", "chatml"), 2, "a template for a text", err="jsonl")


def pairs_of_answers():
    """train --pairs: PyTorch's losses for messages and texts, a run that goes on, and what is broken told by its line."""
    lm = os.path.join(TOP, "test", "golden", "lm")
    for family in ("phi3", "lfm2"):
        name, model = f"pairs_{family}.jsonl", os.path.join(lm, f"tune_{family}.zip")
        write(name, read(os.path.join(lm, name)))
        want = [float(line) for line in read(os.path.join(lm, f"pairs_{family}.txt")).split()]
        to = ("train", "--pairs", name, "--batch", "4", "--lr", "1e-3", "--val", "0.25", "--json")
        r = tinygpt(*to, "--from", model, "--steps", "10", "--threads", "1", "--out", f"{family}.tinygpt", "--log", f"{family}.csv")
        expect(r, 0, f"pairs of {family}")
        rows = r.json_lines()[:-1]
        check(all(abs(row["loss"] / loss - 1) < 1e-5 for row, loss in zip(rows, want)), "are PyTorch's", str(rows))
        last = [rows[-1][key] for key in ("val", "val_accuracy", "val_margin")]
        check(all(abs(a / b - 1) < 1e-5 for a, b in zip(last, want[10:])), "and what validates", str(last))
        equal([row["val_margin"] for row in rows[:-1]], [None] * 9, "once")
        expect(tinygpt(*to, "--from", model, "--steps", "4", "--threads", "2", "--out", f"half-{family}.tinygpt", "--log", f"half-{family}.csv"), 0, "a part")
        rest = tinygpt("train", "--pairs", name, "--resume", f"half-{family}.tinygpt", "--steps", "10", "--json", "--log", f"half-{family}.csv")
        expect(rest, 0, "the rest")
        equal(rest.json_lines()[-2]["hash"], rows[-1]["hash"], "is the same run")
        loss_of = [[line.split(",")[:2] for line in read(f"{log}{family}.csv").decode().splitlines()] for log in ("", "half-")]
        equal(loss_of[0], loss_of[1], "and the same log")
    check(b",mfu,accuracy,margin,val_accuracy,val_margin,hash," in read("lfm2.csv"), "which has margins", read("lfm2.csv").decode())
    shown = tinygpt(*to[:-1], "--from", model, "--steps", "3", "--out", "s.tinygpt", "--sample-every", "0")
    expect(shown, 0, "for people", out=("16 pairs,", "loss  accuracy   margin     val", "100% of pairs as preferred, a margin of 0",
                                        r"train --pairs pairs_lfm2\.jsonl --resume s\.tinygpt --steps 6"))
    check("bits" not in shown.text and "conversations" not in shown.text, "no word of bits a byte", shown.text)
    far = tinygpt(*to, "--from", model, "--steps", "10", "--no-save", "--dpo-beta", "1").json_lines()
    check(far[-2]["margin"] > 2 * rows[-1]["margin"], "beta weighs", str(far[-2]))
    accum = tinygpt("train", "--pairs", name, "--from", model, "--val", "0.25", "--lr", "1e-3", "--steps", "3", "--no-save",
                    "--batch", "2", "--accum", "2", "--json").json_lines()
    check(all(abs(accum[2][key] / rows[2][key] - 1) < 1e-4 for key in ("loss", "margin", "accuracy")), "micro-steps add up", str(accum[2]))
    pairs_refused(model, to)


def pairs_refused(model, to):
    """What is no pair, or none that can be trained on, is told at once, and nothing is written."""
    good = read("pairs_lfm2.jsonl")
    for line, says in ((b'{"prompt":"a","chosen":"b"}', "rejected"), (b'{"prompt":"a","chosen', "line 17")):
        write("bad.jsonl", good + line + b"\n" + good)
        expect(tinygpt("train", "--pairs", "bad.jsonl", "--from", model, "--out", "bad.tinygpt"), 2, says, err=(r"bad\.jsonl: line 17: ", says))
    write("empty.jsonl", b"")
    expect(tinygpt("train", "--pairs", "empty.jsonl", "--from", model), 2, "an empty file", err="want a pair to train on, have none")
    write("talk.jsonl", b'{"chosen":[{"role":"user","content":"a"}],"rejected":[]}\n')
    expect(tinygpt("train", "--pairs", "talk.jsonl", "--from", model), 2, "messages without a template", err=("template", "talk.jsonl: line 1"))
    run = (*to, "--from", model, "--steps", "2", "--no-save")
    expect(tinygpt(*to[:3], "--from", model, "--batch", "3", "--no-save"), 2, "an odd batch", err="an even number of rows")
    expect(tinygpt(*run, "--row-tokens", "4"), 2, "pairs that are too long", err="an answer that does not begin within the 4 tokens")
    write("same.jsonl", b'{"prompt":"a","chosen":"b","rejected":"b"}\n' * 4)
    same = tinygpt("train", "--pairs", "same.jsonl", "--from", model, "--batch", "2", "--steps", "2", "--no-save", "--json")
    expect(same, 0, "answers that are equal")
    row = same.json_lines()[1]
    check(abs(row["loss"] - math.log(2)) < 1e-6 and row["accuracy"] == 0 == row["margin"], "teach nothing", str(row))
    expect(tinygpt("train", "--pairs", "same.jsonl", "--from", os.path.join(TOP, "test", "golden", "lm", "bert.zip")), 2, "an encoder",
           err="want a model that writes text")
    expect(tinygpt("train", "--pairs", "same.jsonl"), 2, "no model", err="--from MODEL")
    expect(tinygpt("train", "--pairs", text_file(), "--from", model), 2, "a text", err="--pairs wants FILE.jsonl")
    expect(tinygpt("train", "--pairs", "same.jsonl", "--data", text_file(), "--from", model), 2, "a text, too", err="have both")
    expect(tinygpt("train", "--data", text_file(), "--dpo-beta", "1"), 2, "beta of a text", err="wants --pairs")
    expect(tinygpt(*to, "--resume", "lfm2.tinygpt", "--steps", "12", "--dpo-beta", "1"), 2, "another beta", err="cannot be changed")
    expect(tinygpt("train", "--pairs", "same.jsonl", "--resume", "lfm2.tinygpt", "--steps", "12"), 2, "other pairs", err="trained on other rows")
    check(not os.path.exists("bad.tinygpt"), "nothing is written")


def sweeps():
    """train --sweep: each run is the one that the option alone would make, and nothing is written."""
    to = ("train", "--data", text_file(), *TINY, "--steps", "6", "--eval-every", "3", "--sample-every", "0")
    r = tinygpt(*to, "--sweep", "lr=1e-4..1e-2:log:3", "--json")
    expect(r, 0, "a sweep of rates")
    rows = r.json_lines()
    check(all(abs(row["value"] / want - 1) < 1e-9 for row, want in zip(rows, (1e-4, 1e-3, 1e-2))), "equal ratios", str(rows))
    for row in rows:
        alone = tinygpt(*to, "--lr", repr(row["value"]), "--no-save", "--json").json_lines()[-2]
        equal((row["loss"], row["val"], row["step"]), (alone["loss"], alone["val"], 6), f"the run of {row['value']}")
    equal([name for name in os.listdir(".") if name.endswith((".tinygpt", ".svg"))], [], "nothing is saved")
    r = tinygpt(*to, "--sweep", "batch=2,4")
    expect(r, 0, "a sweep of batches", out=[r"\n +2 ", r"\n +4 ", "The best of 2 runs has --batch"])
    r = tinygpt(*to, "--sweep", "eps=0.1..0.3:lin:3", "--json")
    equal([round(row["value"], 9) for row in r.json_lines()], [0.1, 0.2, 0.3], "equal distances")
    for bad in ("lr", "lr=", "lr=1", "lr=1..2", "lr=1..2:log", "lr=1..2:log:1", "lr=1..2:log:65", "lr=0..1:log:3",
                "lr=1..1:lin:3", "lr=1,x", "lr=1,2,", "lr=1..2:cos:3", "lr=nan,1"):
        expect(tinygpt(*to, "--sweep", bad), 2, f"--sweep {bad}", err="--sweep: want")
    expect(tinygpt(*to, "--sweep", "lr=0,1"), 2, "a rate of 0", err="--lr does not take 0")
    expect(tinygpt(*to, "--sweep", "batch=1,1e30"), 2, "a huge batch", err="--batch does not take 1e")
    for name in ("rate", "schedule", "skip-bad-steps", "out"):
        expect(tinygpt(*to, "--sweep", name + "=1,2"), 2, f"--sweep {name}", err="is a number")
    expect(tinygpt(*to, "--sweep", "lr=1e-3,1e-2", "--out", "a.tinygpt"), 2, "to be saved", err="saves nothing")
    expect(tinygpt("train", "--data", "-", "--sweep", "lr=1e-3,1e-2"), 2, "of standard input", err="contradicts standard")
    expect(tinygpt(*to, "--sweep", "momentum=0.5,0.9"), 2, "momenta of nothing", err="wants --optimizer muon")
    expect(train("--momentum", "0.9"), 2, "a momentum of nothing", err="--momentum wants --optimizer muon")


def evaluations():
    """eval --losses sums up to eval; --suite is what the losses say, and tells a broken line by its number."""
    write("t.txt", read(text_file())[:2500])
    expect(train("--steps", "30", "--lr", "1e-2", "--out", "a.tinygpt"), 0, "a model")
    expect(train("--steps", "3", "--family", "llama", "--out", "b.tinygpt"), 0, "a Llama of bytes")
    for model in ("a.tinygpt", "b.tinygpt", os.path.join(TOP, "test", "golden", "lm", "tune_llama.zip"),
                  os.path.join(TOP, "test", "golden", "lm", "tune_qwen3.zip")):
        for part in ((), ("--val", "0.4")):
            r = tinygpt("eval", model, "--data", "t.txt", "--losses", *part)
            expect(r, 0, f"eval --losses of {model}")
            rows = r.json_lines()
            mean = sum(row["loss"] for row in rows[:-1]) / (len(rows) - 1)
            first = rows[0]["token"]
            equal([row["token"] for row in rows[:-1]], list(range(first, first + len(rows) - 1)), f"each token once: {model}")
            want = tinygpt("eval", model, "--data", "t.txt", "--json", *part).json_lines()[0]["loss"]
            check(abs(mean / want - 1) < 1e-5 and abs(rows[-1]["loss"] / want - 1) < 1e-5, "losses sum up to eval's",
                  f"{model} {part}: {mean}, {rows[-1]['loss']}, want {want}")
    # What each answer costs, byte by byte, as sample has it.
    def cost(question, answer):
        text, costs = question + " " + answer, []
        for i in range(len(question), len(text)):
            best = tinygpt("sample", "a.tinygpt", "--prompt", text[:i], "--best", "256", "--json").json()["best"]
            costs += [-row["logprob"] for row in best if row["id"] == ord(text[i])]
        return sum(costs)

    write("q.tsv", b"xxxxxxxxxxxx\tthe\tqzk\tand\r\n\nxxxxxxxxxxxxx \tqzk\tthe\nxxxxxxxxxxxxx\tqzk\n")
    rows = tinygpt("eval", "a.tinygpt", "--suite", "q.tsv", "--json").json_lines()
    equal([row.get("line") for row in rows], [1, 3, 4, None], "lines")
    costs = [cost("x" * 12, answer) for answer in ("the", "qzk", "and")]
    check(all(abs(have + want) < 1e-9 for have, want in zip(rows[0]["logprobs"], costs)), "likelihoods",
          f"{rows[0]}, {costs}")
    equal((rows[1]["right"], rows[1]["chosen"]), (False, "the"), "the likelier answer is chosen")
    equal((rows[2]["kind"], rows[2]["right"]), ("exact", False), "an exact answer")
    greedy = tinygpt("sample", "a.tinygpt", "--prompt", "the ", "--tokens", "3", "--temp", "0").text
    write("g.tsv", ("the \t" + greedy[:3].replace("\n", "\\n") + "\n").encode())
    equal(tinygpt("eval", "a.tinygpt", "--suite", "g.tsv", "--json").json_lines()[-1]["exact"],
          {"asked": 1, "right": 1}, "what it would write is right")
    expect(tinygpt("eval", "a.tinygpt", "--suite", "q.tsv"), 0, "a summary", out=["of 2 right", "0 of 1 right"])
    for line, says in (("no tab", "no tab"), ("a\t", "between tabs"), ("a\tb\\x", "backslash"), ("\tb", "behind"),
                       ("a\tb\0", "zero byte"), ("a\t" + "b" * 40, "leave the context"),
                       ("a" + "\tb" * 17, "at most 16")):
        write("bad.tsv", ("fine\tfine\n" + line + "\n").encode())
        expect(tinygpt("eval", "a.tinygpt", "--suite", "bad.tsv"), 2, says, err=r"bad\.tsv: line 2: .*" + says)
    forms = (
        {"question": "xx", "choices": {"text": ["and", "qzk", "the"], "label": ["A", "B", "C"]}, "answerKey": "C"},
        {"question": {"stem": "xx", "choices": [{"text": "and", "label": "1"}, {"text": "the", "label": "2"},
                                                {"text": "qzk", "label": "3"}]}, "answerKey": "2"},
        {"ctx": "xx", "endings": [" and", " qzk ", "the"], "label": "2"},
        {"question": "xx", "choices": ["the", "and", "qzk"], "answer": 0},
        {"prompt": "xx", "options": ["and", "the", "qzk"], "answer": "B"},
        {"query": "xx", "choices": ["and", "the", "qzk"], "gold": 1},
        {"input": "xx", "choices": ["and", "qzk", "the"], "answer": "the"},
        {"goal": "xx", "sol1": "qzk", "sol2": "the", "label": 1},
        {"article": "aa", "context": "", "question": "bb", "options": ["1", "2"], "answer": 0},
        {"prompt": "a\tb\\\nc", "completion": "th\\e"}, {"text": "xx yy the"})
    told = [("xx\tthe\tand\tqzk", 3)] * 2 + [("xx\tthe\tand\tqzk", 3), ("xx\tthe\tand\tqzk", 3)] + [
        ("xx\tthe\tand\tqzk", 3)] * 3 + [("xx\tthe\tqzk", 2), ("aa\\nbb\t1\t2", 2), ("a\\tb\\\\\\nc\tth\\\\e", 1), ("xx yy\tthe", 1)]
    write("f.jsonl", ("\n".join(json.dumps(form) for form in forms) + "\n\n").encode())
    write("f.tsv", "".join(line + "\n" for line, _ in told).encode())
    want = tinygpt("eval", "a.tinygpt", "--suite", "f.tsv", "--json").json_lines()
    have = tinygpt("eval", "a.tinygpt", "--suite", "f.jsonl", "--json").json_lines()
    equal([len(row["logprobs"]) for row in have[:-1]], [n for _, n in told], "answers of each form")
    equal(have, want, "JSON Lines are the same questions")
    for line, says in (("{", "line 2"), ('{"question": "a"}', "want answers"), ('{"choices": ["a"], "answer": 0}', "want a question"),
                       ('{"question": "a", "choices": ["b", "c"], "answer": "d"}', "want the right answer"),
                       ('{"question": "a", "choices": ["b", "c"], "answer": 2}', "want the right answer"),
                       ('{"question": "a", "choices": ["1", "2", "3"], "answer": "2"}', "have both: 2"),
                       ('{"question": "a", "choices": ["B", "x"], "answer": "B"}', "have both: B"),
                       ('{"question": "a", "passage": ["b"], "answer": "c"}', "want a text: passage"),
                       ('{"question": "a", "answer": "b"}, {"a": 1}', "want one object"), ("[1]", "want one object"),
                       ('{"question": "a", "answer": "b\\u0000"}', "zero byte"),
                       (json.dumps({"question": "a", "choices": ["b"] * 17, "answer": 0}), "at most 16")):
        write("bad.jsonl", (json.dumps(forms[0]) + "\n" + line + "\n").encode())
        expect(tinygpt("eval", "a.tinygpt", "--suite", "bad.jsonl"), 2, says, err=r"bad\.jsonl: line 2: .*" if says == "line 2" else r"bad\.jsonl: line 2: .*" + says)
    write("none.tsv", b"\n\n")
    expect(tinygpt("eval", "a.tinygpt", "--suite", "none.tsv"), 2, "no questions", err="have none")
    expect(tinygpt("eval", "a.tinygpt", "--suite", "q.tsv", "--data", "t.txt"), 2, "both", err="contradicts")
    expect(tinygpt("eval", "a.tinygpt", "--data", "t.txt", "--losses", "--windows", "3"), 2, "fewer", err="contradicts")
    # Of a vocabulary without names, texts are bytes: ids that a model of 48 rows lacks.
    few = os.path.join(TOP, "test", "golden", "lm", "granite")
    for how in (("--data", "t.txt"), ("--data", "t.txt", "--losses"), ("--suite", "q.tsv")):
        expect(tinygpt("eval", few, *how), 2, "ids beyond the rows", err="a row for each of the 256 tokens")


def mixes():
    """train --mix: said in the plan, kept for the resumed run, and refused where a part is of no use."""
    data = read(text_file())
    os.mkdir("books")
    for name, text in (("books/a.txt", data[:3000]), ("books/b.txt", data[3000:5000]), ("c.txt", data[5000:9000]),
                       ("short.txt", data[:9]), ("empty.txt", b"")):
        write(name, text)
    to = ("train", "--data", "books", "--data", "c.txt")
    tokens = ("--tokens", "chars", "--layers", "1", "--width", "16", "--heads", "2", "--ctx", "16", "--batch", "2")
    for size in (TINY, tokens):
        mix = (*to, *size, "--mix", "3,1", "--sample-every", "0")
        whole_run = tinygpt(*mix, "--steps", "8", "--no-save", "--json").json_lines()
        expect(tinygpt(*mix, "--steps", "4", "--out", "a.tinygpt", "--force"), 0, "half of it", out=[r"mix +books 75 % \(.* times\), c\.txt 25 %"])
        r = tinygpt(*to, "--mix", "3,1", "--resume", "a.tinygpt", "--steps", "8", "--json")
        expect(r, 0, "the other half")
        equal(r.json_lines()[-2]["hash"], whole_run[-2]["hash"], "is the same run")
        equal(r.json_lines()[-2]["val"], whole_run[-2]["val"], "and its validation")
        r = tinygpt(*to, *size, "--steps", "8", "--no-save", "--json").json_lines()
        check(r[-2]["hash"] != whole_run[-2]["hash"], "evenly it is another run")
    expect(tinygpt(*to, "--resume", "a.tinygpt"), 2, "another mix", err="want --mix 3,1")
    for bad in ("3", "3,1,1", "3,0", "3,-1", "3,nan", "3,", ",1", "3;1", "x,1"):
        expect(tinygpt(*to, *TINY, "--mix", bad), 2, f"--mix {bad}", err="--mix: want a weight above 0 for each of the 2")
    expect(tinygpt("train", "--data", "c.txt", "--data", "empty.txt", *TINY, "--mix", "1,1", "--no-save"), 2, "an empty part",
           err=r"empty\.txt: want a text in it")
    expect(tinygpt("train", "--data", "c.txt", "--data", "short.txt", *TINY, "--mix", "1,1", "--no-save"), 2, "a short part",
           err=r"short\.txt: the training part of part 2 of the mix has")
    write("d.jsonl", b"{}")
    expect(tinygpt("train", "--data", "d.jsonl", "--from", "a.tinygpt", "--mix", "1"), 2, "of conversations", err="wants texts")


def averages():
    """train --ema: the model is the average, also in the file, and a resumed run is the run."""
    to = ("--lr", "1e-2", "--eval-every", "4", "--ema", "0.9")
    rows = train("--steps", "8", "--no-save", "--json", *to).json_lines()
    expect(tinygpt("train", "--data", text_file(), *TINY, "--sample-every", "0", "--steps", "4", "--out", "a.tinygpt", *to), 0,
           "half of it", out=[r"averaged \(EMA 0\.9\)"])
    expect(tinygpt("info", "a.tinygpt"), 0, "info", out=["the weights are an average"])
    half = tinygpt("eval", "a.tinygpt", "--data", text_file(), "--val", "0.1", "--windows", "64", "--json").json()
    equal(half["loss"], rows[3]["val"], "whoever opens the file has what was validated")
    expect(tinygpt("convert", "a.tinygpt", "b.tinygpt", "--format", "v3"), 0, "a copy")
    expect(tinygpt("verify", "a.tinygpt", "b.tinygpt"), 0, "which is the same run")
    again = resume("b.tinygpt", "--steps", "8", "--json")
    expect(again, 0, "the other half")
    equal((again.json_lines()[-2]["hash"], again.json_lines()[-2]["val"]), (rows[-2]["hash"], rows[-2]["val"]), "is the same run")
    plain = train("--steps", "8", "--no-save", "--json", "--lr", "1e-2", "--eval-every", "4").json_lines()
    check(plain[-2]["hash"] == rows[-2]["hash"] and plain[-2]["val"] != rows[-2]["val"], "training is as without")
    expect(resume("a.tinygpt", "--ema", "0.5"), 2, "another one", err="--ema cannot be changed")


def rates_by_a_table():
    """train --rates: straight lines between the steps of the table, also behind a resume that has it again."""
    table = ("--rates", "2=0,4=1e-3,8=2e-3")
    r = train("--steps", "10", "--json", "--no-save", *table)
    expect(r, 0, "a run by a table")
    rows = r.json_lines()[:-1]
    want = [0, 0, 5e-4, 1e-3, 1.25e-3, 1.5e-3, 1.75e-3, 2e-3, 2e-3, 2e-3]
    check(all(abs(row["lr"] - rate) < 1e-12 for row, rate in zip(rows, want)), "its rates", str([row["lr"] for row in rows]))
    constant = train("--steps", "3", "--json", "--no-save", "--rates", "1=1e-3").json_lines()[-2]
    equal(constant["hash"], train("--steps", "3", "--json", "--no-save", "--lr", "1e-3").json_lines()[-2]["hash"],
          "a table of one rate is that rate")
    expect(train("--steps", "5", "--out", "a.tinygpt", *table), 0, "half of it")
    again = resume("a.tinygpt", "--steps", "10", "--json", *table)
    expect(again, 0, "the other half")
    equal(again.json_lines()[-2]["hash"], rows[-1]["hash"], "is the same run")
    equal(again.errors, "", "without a word")
    again = resume("a.tinygpt", "--steps", "12", "--json")
    equal([row["lr"] for row in again.json_lines()[:-1]], [2e-3] * 2, "it goes on by its own table")
    expect(tinygpt("train", "--data", text_file(), "--resume", "a.tinygpt", "--steps", "13", "--json"), 0, "and says so", err="goes on by its learning rates: --rates 2=0,4=0.001,8=0.002\n")
    other = resume("a.tinygpt", "--steps", "14", "--rates", "2=0,4=1e-3")
    expect(other, 2, "another table", err="want 2=0,4=0.001,8=0.002, as the run has it, have 2=0,4=1e-3")
    expect(resume("a.tinygpt", "--steps", "14", "--hold-lr"), 2, "a held schedule", err="--hold-lr: .* goes by a table")
    expect(train("--steps", "2", "--out", "b.tinygpt"), 0, "a run by its schedule")
    expect(resume("b.tinygpt", "--steps", "4", *table), 0, "goes on by a table", err="has no table of rates: from step 3 on")
    for bad in ("1", "1=", "1=x", "x=1", "-1=1e-3", "2=1e-3,2=1e-4", "3=1e-3,2=1e-4", "1=1e-3,", "1=-1", "1=1e9", "1=nan"):
        expect(train("--steps", "2", "--no-save", "--rates", bad), 2, f"--rates {bad}", err="want STEP=RATE")
    expect(train("--steps", "2", "--no-save", "--lr", "1e-3", *table), 2, "a rate, too", err="contradicts --lr")


main(first_run, forecast_first, file_names, learning_rates, resume_is_the_run, resume_after_ctrl_c,
     resume_long_history, resume_refuses, resume_across_classes, fine_tune, early_stop,
     threads_change_nothing, isas_agree, sampling, prompts, characters_are_whole, conversions,
     conversations, pairs_of_answers, sweeps, evaluations, mixes, averages,
     rates_by_a_table, options_of_nothing, verify_names_the_difference, help_and_version)
