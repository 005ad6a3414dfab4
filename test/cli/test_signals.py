#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_signals.py - interrupts, numbers that are not finite, and standard streams that are gone.

How a run may end, and what must be on the disk then, is the table at the top of app/train/train_run.c.
"""
import json
import math
import os
import signal
import subprocess
import time

from faults import make_shim
from util import (PIPE_BYTES, PROGRAM, SILENT, TINY, check, environment, equal, expect, finish,
                  freeze, heard, main, read, read_step, resume, run, same_run, start, state, step_of,
                  text_file, thaw, tinygpt, train, used, used_by_ended, whole, write)

LONG = ("--steps", "1000000", "--eval-every", "0", "--save-every", "0")


def training(*args, **popen):
    """A run that tells of each step as JSON."""
    return start("train", "--data", text_file(), *SILENT, "--json", *args, **popen)


# --------------------------------------------------------------------------------------- interrupts


def one_signal_saves():
    """SIGINT, SIGTERM and SIGHUP: the last whole step is saved, exit 130, and the run goes on."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        out = f"{name}.tinygpt"
        p = training(*TINY, *LONG, "--out", out)
        read_step(p, 5)
        p.send_signal(getattr(signal, name))
        r = finish(p)
        expect(r, 130, name, out='"reason":"interrupted"', err=["Interrupted: step", "--resume"])
        last = r.json_lines()[-1]
        equal((last["done"], last["out"], last["step"]), (False, out, step_of(out)),
              f"the last line after {name}")
        whole(out, name)
        # The command that was printed is the one to type.
        told = [line for line in r.errors.splitlines() if "--resume" in line][0]
        expect(run(["sh", "-c", f"{told.strip()} --quiet --steps {last['step'] + 2}"]), 0,
               f"the command printed after {name}")
        equal(step_of(out), last["step"] + 2, f"steps after resuming from {name}")


def an_ignored_hangup_is_ignored():
    """Under nohup a hang-up does not end the run."""
    p = training(*TINY, *LONG, "--out", "a.tinygpt",
                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    row = read_step(p, 3)
    p.send_signal(signal.SIGHUP)
    later = read_step(p, row["step"] + 200)
    check(later is not None and p.poll() is None, "the run goes on after an ignored SIGHUP")
    p.send_signal(signal.SIGTERM)
    expect(finish(p), 130, "SIGTERM afterwards")


def stopping_is_quick():
    """Ctrl-C ends a step in its middle: what is computed after it is little beside a step.

    Two threads, so that a slice of 50 ms is little on a machine of many, too.
    """
    model = ("--layers", "4", "--width", "256", "--heads", "8", "--ctx", "128", "--batch", "16",
             "--val", "0", "--threads", "2")

    def short(micro_steps):
        before = used_by_ended()
        expect(tinygpt("train", "--data", text_file(), *SILENT, *model, "--steps", "2", "--accum",
                       micro_steps, "--no-save"), 0, "two steps")
        return (used_by_ended() - before) / 2

    accum = 1
    while (step_s := short(accum)) < 1:
        accum = math.ceil(1.2 * accum / step_s)
    p = training(*model, *LONG, "--accum", accum, "--out", "a.tinygpt")
    read_step(p, 1)
    freeze(p)
    before = used_by_ended() + used(p)
    p.send_signal(signal.SIGINT)
    thaw(p)
    expect(finish(p), 130, "Ctrl-C in a long step")
    after_s = used_by_ended() - before
    check(after_s < step_s / 2, "Ctrl-C does not wait for the end of a step",
          f"{after_s:.2f} s of work, where a step takes {step_s:.2f}")
    check(step_of("a.tinygpt") >= 1, "the finished step is saved")


def interrupted_before_the_first_step():
    """Nothing has been learnt, so nothing is saved, and an old file of that name stays."""
    expect(train("--steps", "3", "--out", "a.tinygpt"), 0, "an older run")
    data = read("a.tinygpt")
    p = training("--layers", "4", "--width", "256", "--heads", "8", "--ctx", "128", "--batch", "64",
                 "--accum", "65536", *LONG, "--log", "log", "--out", "a.tinygpt", "--force")
    while not os.path.exists("log") and p.poll() is None:
        time.sleep(0.01)
    p.send_signal(signal.SIGTERM)
    expect(finish(p), 130, "SIGTERM in the first step", err="nothing was saved")
    equal(read("a.tinygpt"), data, "the older file")


class Held:
    """A run whose first step is done and logged, and cannot be told: its output takes nothing."""

    def __init__(self, out):
        self.reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while os.write(writer, bytes(1 << 16)):
                pass
        except BlockingIOError:
            os.set_blocking(writer, True)
        if os.path.exists("log"):
            os.remove("log")
        self.process = training(*TINY, *LONG, "--out", out, "--log", "log", stdout=writer)
        os.close(writer)
        while not (os.path.exists("log") and os.path.getsize("log")) and self.process.poll() is None:
            time.sleep(0.01)

    def send(self, number):
        self.process.send_signal(number)
        heard(self.process)

    def end(self):
        """Takes what waits in the pipe, and waits for the program."""
        with open(self.reader, "rb") as f:
            f.read()
        return finish(self.process)


def two_signals_stop_at_once():
    """The second signal does not wait for a save, and the file is the one saved before."""
    expect(train("--steps", "3", "--out", "a.tinygpt"), 0, "the first steps")
    data = read("a.tinygpt")
    for pair in ((signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)):
        p = training("--resume", "a.tinygpt", *LONG[:2])
        read_step(p, 4)
        freeze(p)  # both arrive together when it wakes up: the handler runs twice before any save
        for number in pair:
            p.send_signal(number)
        thaw(p)
        expect(finish(p), 130, f"{pair[0].name} and {pair[1].name}", err="stopped at once")
        equal(read("a.tinygpt"), data, "the save before is untouched")
    # Twice the same one, later than an echo: the program cannot end in between.
    held = Held("b.tinygpt")
    held.send(signal.SIGINT)
    equal(held.process.poll(), None, "one Ctrl-C waits for a safe point")
    time.sleep(0.1)
    held.process.send_signal(signal.SIGINT)
    expect(held.end(), 130, "Ctrl-C twice", err="stopped at once")
    check(not os.path.exists("b.tinygpt"), "a second Ctrl-C saves nothing")
    expect(resume("a.tinygpt", "--steps", "9"), 0, "resume after all of this")
    equal(step_of("a.tinygpt"), 9, "steps after resuming")


def an_echo_of_a_signal_is_not_a_second_one():
    """timeout(1) signals its child and then the group that it is in: that is one wish, not two."""
    took = 1
    while took >= 0.1:  # a machine that slept in between sent no echo
        held = Held("a.tinygpt")
        begun = time.monotonic()
        held.send(signal.SIGTERM)
        held.send(signal.SIGTERM)
        took = time.monotonic() - begun
        r = held.end()
    expect(r, 130, "SIGTERM and its echo", err="Interrupted: step")
    whole("a.tinygpt", "after SIGTERM and its echo")
    # Its time is up when SIGALRM says so. Both of its signals come before it wakes its child.
    p = training(*TINY, *LONG, "--out", "t.tinygpt",
                 under=("timeout", "600", "sh", "-c", 'echo $$; exec "$@"', "sh"))
    child = int(p.stdout.readline())
    read_step(p, 1)
    os.kill(child, signal.SIGSTOP)
    while state(child, "State") != "T":
        pass
    p.send_signal(signal.SIGALRM)
    expect(finish(p), 124, "a run under timeout(1)", err="Interrupted: step")
    whole("t.tinygpt", "after timeout(1)")


def interrupted_sampling():
    """Ctrl-C ends the text, not the terminal's line; the text so far has been printed."""
    expect(train("--steps", "3", "--out", "a.tinygpt"), 0, "a model")
    p = start("sample", "a.tinygpt", "--tokens", "1000000000")
    check(p.stdout.read(100), "text streams")
    freeze(p)
    p.send_signal(signal.SIGINT)
    thaw(p)
    r = finish(p)
    expect(r, 130, "Ctrl-C in sample")
    check(len(r.out) <= 2 * PIPE_BYTES, "sample stops at the next token", str(len(r.out)))
    before = used_by_ended()
    expect(tinygpt("sample", "a.tinygpt", "--tokens", "1", "--json"), 0, "one token")
    one_s = used_by_ended() - before
    p = start("sample", "a.tinygpt", "--tokens", "100000000", "--json")
    while used(p) < 5 * one_s + 0.05:  # it writes when it has worked for longer than for one token
        time.sleep(0.01)
    p.send_signal(signal.SIGTERM)
    r = finish(p)
    expect(r, 130, "SIGTERM in sample --json")
    check(0 < len(r.json()["ids"]) < 100000000, "the JSON holds the text so far")


def a_signal_takes_its_temporary_files_with_it():
    """In each command that writes and has nothing to save: a signal at each fsync ends it as a signal
    does, and leaves nothing half and nothing beside."""
    make_shim()
    write("t.txt", read(text_file())[:20000])
    expect(train("--steps", "2", "--out", "m.tinygpt"), 0, "a model")
    expect(tinygpt("convert", "m.tinygpt", "m.gguf", "--dtype", "q8_0"), 0, "as GGUF")
    cache, before = ("--pack-cache", "kept"), set(os.listdir("."))
    for args, calls in ((("tokenize", "--train", "t.txt", "--kind", "chars", "--out", "t2.json"), 2),
                        (("doctor", "--quick"), 2), (("embed", "m.gguf", "abc", *cache), 2),
                        (("eval", "m.gguf", "--data", "t.txt", "--windows", "1", *cache), 2)):
        for at in range(1, calls + 1):
            number = signal.SIGINT if args[0] == "doctor" else signal.SIGTERM
            r = tinygpt(*args, env={"LD_PRELOAD": os.path.abspath("shim.so"), "FAULT_CALL": "fsync",
                                    "FAULT_AT": str(at), "FAULT_SIGNAL": str(int(number))})
            equal(r.code, -number, f"{args[0]} and a signal at fsync {at}: {r.errors[-300:]}")
            for name in ("t2.json", *(os.path.join("kept", n) for n in os.listdir("kept") if ".tmp" not in n)) \
                    if os.path.exists("kept") else ("t2.json",):
                if at == 2 and os.path.exists(name):
                    os.remove(name)  # it has its name at the folder's fsync
            left = (set(os.listdir(".")) - before - {"kept"}) | set(os.listdir("kept") if os.path.exists("kept") else ())
            equal(left, set(), f"what {args[0]} leaves at fsync {at}")
    expect(tinygpt("tokenize", "--train", "t.txt", "--kind", "chars", "--out", "t2.json",
                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
                   env={"LD_PRELOAD": os.path.abspath("shim.so"), "FAULT_CALL": "fsync", "FAULT_AT": "1",
                        "FAULT_SIGNAL": str(int(signal.SIGHUP))}), 0, "under nohup a hang-up is none")


# ------------------------------------------------------------------------------------------- NaN


# The program with a fault in its training (test/cli/nan_program.c).
FAULTY = os.path.join(os.path.dirname(PROGRAM), "test", "tinygpt_nan")


def train_with_nan(where, *args):
    """A silent run of the smallest model; where is TENSOR@STEP."""
    return run([FAULTY, "train", "--data", text_file(), *TINY, *SILENT, *args], env={"TG_TEST_NAN": where})


def bad_numbers_are_refused():
    """A NaN: exit 1, the tensor's name, no step taken, and the last good save is intact."""
    for i, (tensor, accum) in enumerate((("blocks.0.mlp.fc_in.weight", "1"),
                                         ("grad.blocks.0.attn.k_proj.weight", "1"),
                                         ("grad.ln_final.bias", "3"),
                                         ("position_embedding.weight", "3"))):
        out, good = f"{i}.tinygpt", f"good{i}.tinygpt"
        options = ("--eval-every", "5", "--accum", accum, "--save-every", "1")
        # q, k and v lie side by side in one tensor, which is what holds the number.
        name = tensor.removeprefix("grad.").replace("k_proj", "(k_proj|qkv)")
        r = train_with_nan(f"{tensor}@8", *options, "--steps", "20", "--out", out, "--log",
                           f"{i}.jsonl", "--json")
        expect(r, 1, f"NaN in {tensor}", err=["step 8", name.replace(".", "[.]"), "not finite",
                                              "holds step 7, the last good save"])
        equal(len(read(f"{i}.jsonl").splitlines()), 7, "steps in the log")
        equal(r.json_lines()[-1]["reason"], "not_finite", "the last JSON line")
        whole(out, f"NaN in {tensor}")
        equal(step_of(out), 7, "step of the last good save")
        # The refused step leaves no trace: without the fault the run is the one it would have been.
        expect(resume(out), 0, "resume after a NaN")
        expect(train(*options, "--steps", "20", "--out", good), 0, "a run without a NaN")
        same_run(out, good, f"resumed after a NaN in {tensor}")
    r = train_with_nan("ln_final.weight@3", "--steps", "5", "--out", "none.tinygpt", "--save-every", "0")
    expect(r, 1, "NaN before any save", out="Nothing had been saved")
    equal(os.path.exists("none.tinygpt"), False, "a run with a NaN is not saved")


def bad_steps_can_be_skipped():
    """With --skip-bad-steps the run drops that batch and goes on to the end."""
    for tensor in ("blocks.0.ln1.weight", "grad.blocks.0.ln1.weight"):
        r = train_with_nan(f"{tensor}@6", "--steps", "12", "--eval-every", "5", "--out", "a.tinygpt",
                           "--force", "--skip-bad-steps", "--log", "log", "--json")
        expect(r, 0, f"skip a NaN in {tensor}")
        rows = r.json_lines()[:-1]
        equal([row["step"] for row in rows if row.get("skipped")], [6], "the step that is skipped")
        check("blocks.0.ln1.weight" in rows[5].get("bad_tensor", ""), "its tensor is named",
              str(rows[5]))
        check(all(row["loss"] is not None for row in rows[6:]), "later losses are finite")
        log = [json.loads(line) for line in read("log").splitlines()]
        check(log[5].get("skipped") is True and len(log) == 12, "the log tells of it")
        equal(step_of("a.tinygpt"), 12, "steps of the run")
        expect(tinygpt("sample", "a.tinygpt", "--tokens", "9"), 0, "the weights are finite")
    shown = run([FAULTY, "train", "--data", text_file(), *TINY, "--steps", "4", "--no-save",
                 "--sample-every", "0", "--skip-bad-steps"], env={"TG_TEST_NAN": "ln_final.bias@2"})
    expect(shown, 0, "a skipped step in the table", out="update refused: .*ln_final.bias")


# ------------------------------------------------------------------------------- standard streams


def commands():
    """Every command that prints, with a model that is there."""
    if not os.path.exists("m.tinygpt"):
        expect(train("--steps", "3", "--out", "m.tinygpt"), 0, "a model")
        write("part.txt", read(text_file())[:500])
    return (("--help",), ("--version",), ("train", "--help"), ("info", "m.tinygpt"),
            ("info", "m.tinygpt", "--json"), ("verify", "m.tinygpt"),
            ("verify", "m.tinygpt", "m.tinygpt"), ("eval", "m.tinygpt", "--data", "part.txt"),
            ("tokenize", "m.tinygpt", "abc"), ("dump", "m.tinygpt"), ("doctor", "--list-levers"),
            ("sample", "m.tinygpt", "--tokens", "50"), ("convert", "m.tinygpt", "out.tinygpt"),
            ("sample", "m.tinygpt", "--json", "--tokens", "5"),
            ("corpus", "stories", "--bytes", "5000"),
            ("train", "--data", text_file(), *TINY, "--steps", "3", "--out", "t.tinygpt", "--force"),
            ("train", "--data", text_file(), *TINY, "--steps", "3", "--out", "t.tinygpt", "--force", "--json"))


def output_that_is_lost_is_an_error():
    """A full disk and a closed stream: exit 1 and a message, no signal. A reader that has gone is
    told nothing: there is nobody who wants it."""
    for args in commands():
        what = " ".join(args[:2])
        with open("/dev/full", "wb") as full:
            expect(tinygpt(*args, stdout=full), 1, f"{what} > /dev/full",
                   err="standard output could not take all")
        expect(tinygpt(*args, stdout=None, preexec_fn=lambda: os.close(1)), 1, f"{what} >&-",
               err="standard output could not take all")
        reader, writer = os.pipe()
        os.close(reader)
        r = tinygpt(*args, stdout=writer)
        trains = args[0] == "train" and "--help" not in args
        expect(r, 3 if trains else 0, f"{what} | nobody")
        check("error" not in r.errors and "standard output" not in r.errors,
              f"{what} | nobody: silence", r.errors)
        os.close(writer)
        expect(tinygpt(*args, stdin=None, preexec_fn=lambda: os.close(0)), 0, f"{what} <&-")
        expect(tinygpt(*args, stderr=None, preexec_fn=lambda: os.close(2)), 0, f"{what} 2>&-")
        equal(tinygpt(*args, stdout=None, stderr=None, stdin=None,
                      preexec_fn=lambda: os.closerange(0, 3)).code, 1, f"{what} without streams")
    whole("t.tinygpt", "a run whose output is lost is saved all the same")
    equal(step_of("t.tinygpt"), 3, "and goes to its end")


def a_reader_may_leave_early():
    """`dump | head -1` ends, and no later than the reader would like."""
    commands()
    for args in (("dump", "--preset", "xl"), ("sample", "m.tinygpt", "--tokens", "1000000000"),
                 ("corpus", "stories", "--bytes", "1000000G")):
        p = subprocess.Popen([PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment())
        p.stdout.read(20)
        p.stdout.close()
        err = p.stderr.read()
        code = p.wait(60)
        check(code == 0 and b"error" not in err, f"{' '.join(args)} | head",
              f"exit code {code}, {err[-200:]!r}")
    p = training(*TINY, *LONG[:4], "--save-every", "50", "--out", "long.tinygpt")
    read_step(p, 60)
    p.stdout.close()
    err = p.stderr.read()
    equal(p.wait(60), 3, "a run that nobody reads is saved, and ends")
    check(b"error" not in err, "without a word", repr(err[-200:]))
    check(60 <= step_of("long.tinygpt") < 1000, "at the step that it had come to",
          str(step_of("long.tinygpt")))


def nothing_on_standard_input():
    """Prompts and texts from a pipe that is empty or closed."""
    commands()
    expect(tinygpt("sample", "m.tinygpt", "--file", "-", "--tokens", "5", data=b""), 0,
           "an empty prompt from a pipe")
    r = tinygpt("sample", "m.tinygpt", "--file", "-", "--tokens", "5", stdin=None,
                preexec_fn=lambda: os.close(0))
    check(r.code in (0, 2), "a prompt from a closed stream", str(r.code), r.argv)
    expect(tinygpt("tokenize", "m.tinygpt", "--file", "-", data=b"ab"), 0, "tokenize of a pipe",
           out="2 tokens")


main(one_signal_saves, an_ignored_hangup_is_ignored, stopping_is_quick,
     interrupted_before_the_first_step, two_signals_stop_at_once,
     an_echo_of_a_signal_is_not_a_second_one, interrupted_sampling,
     a_signal_takes_its_temporary_files_with_it,
     bad_numbers_are_refused, bad_steps_can_be_skipped, output_that_is_lost_is_an_error,
     a_reader_may_leave_early, nothing_on_standard_input)
