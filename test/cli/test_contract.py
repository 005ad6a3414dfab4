#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a host and a user may rely on around the results: stacks, headers, levers, resuming.

Usage: test_contract.py build/tinygpt
"""
import os
import re
import resource
import shutil
import subprocess
import sys

from damage import with_json
from util import (SILENT, TINY, TOP, check, equal, expect, isas, main, read, resume, run, same_run,
                  step_of, text_file, tinygpt, train, write)


PROGRAM = os.path.abspath(sys.argv[1])


def small_stack():
    """A stack of 32 KB is enlarged, or refused with a message: no command ends in a fault."""
    def small(user=None):
        def set_up():
            resource.setrlimit(resource.RLIMIT_STACK, (32 << 10, 32 << 10))
            if user is not None and os.getuid() == 0:
                os.setuid(user)
        return set_up

    expect(tinygpt("train", "--data", text_file(), *TINY, *SILENT, "--steps", "3", "--out",
                   "a.tinygpt"), 0, "a run")
    os.chmod(".", 0o777)
    for what, *args in (("train", "train", "--data", text_file(), *TINY, *SILENT, "--steps", "3",
                         "--no-save"),
                        ("train --resume", "train", "--data", text_file(), *SILENT, "--resume",
                         "a.tinygpt", "--steps", "5", "--no-save"),
                        ("stories", "corpus", "stories", "--bytes", "5000", "--out", "s.txt"),
                        ("sample", "sample", "a.tinygpt", "--tokens", "5")):
        r = tinygpt(*args, preexec_fn=small())
        check(r.code == 0 or r.code == 1 and b"want a stack of" in r.err,
              f"{what} with a stack of 32 KB", f"{r.code}: {r.err[-300:]!r}", r.argv)
    # Whoever is not root cannot raise the limit. The copy can be run by anybody.
    shutil.copy(r.argv[0], "tinygpt")
    os.chmod("tinygpt", 0o755)
    r = run(["./tinygpt", "--version"], preexec_fn=small(65534))
    expect(r, 1, "a stack that cannot be enlarged", err="want a stack of .* ulimit -s")


def header_in_every_language():
    """tinygpt.h is clean C and C++, back to C++98, with -Wpedantic -Werror."""
    for language, compiler, standards in (("c", "cc", ("c99", "c11", "c17")),
                                          ("c++", "c++", ("c++98", "c++11", "c++17", "c++20"))):
        for standard in standards:
            # long long and bool of C's headers are what C++98 lacks, and what is meant to be there.
            more = ("-Wno-long-long",) if standard == "c++98" else ()
            for tier in ((), ("-DTG_ADVANCED",), ("-DTG_UNSTABLE",)):
                r = run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra",
                         "-Wpedantic", "-Werror", *more, *tier, "-fsyntax-only", "-I",
                         os.path.join(TOP, "include"), "-include", "tinygpt.h", os.devnull])
                expect(r, 0, f"tinygpt.h as {standard} {tier}")


def other_levers_are_said():
    """A run that goes on with other levers that change bits says so, with both values; one that
    goes on with levers that keep them is the same run, and nothing is said."""
    args = ("--accum", "3", "--lr", "1e-2")
    expect(train(*args, "--steps", "20", "--out", "whole.tinygpt"), 0, "an unbroken run")
    expect(train(*args, "--steps", "10", "--out", "half.tinygpt"), 0, "half of it")
    half = read("half.tinygpt")

    def on_with(*levers):
        write("x.tinygpt", half)
        r = resume("x.tinygpt", "--steps", "20", *levers)
        expect(r, 0, f"resume with {levers}")
        return r.errors

    for lever in ("simd", "flash_attention", "epilogue_fusion"):
        said = on_with("--levers", "-" + lever)
        check(f"lever {lever} on (here: off)" in said and "not to the same bits" in said,
              f"-{lever} is said", said)
    for lever in ("recompute", "blocked_gemm", "buffer_aliasing", "threads", "int8_activations"):
        said = on_with("--levers", "-" + lever)
        check("bits" not in said, f"-{lever} is not said", said)
        check(read("x.tinygpt.prev") == half, f"-{lever}: the save before is kept")
        same_run("whole.tinygpt", "x.tinygpt", f"resumed with -{lever}")
    equal(on_with(), "", "nothing is said where nothing differs")
    if "scalar" in isas() and "avx2" in isas():
        said = on_with("--isa", "scalar")
        check("determinism class fused (here: plain)" in said, "the class is said", said)
    # One micro-step a step: the fusion of epilogues keeps the bits, as its lever says.
    expect(train("--steps", "10", "--out", "one.tinygpt"), 0, "accum 1")
    r = resume("one.tinygpt", "--steps", "20", "--levers", "-epilogue_fusion")
    check(r.code == 0 and "bits" not in r.errors, "accum 1 without fusion", r.errors)

    def old(text):
        return re.sub(rb',"(device|levers)":"[^"]*"', b"", text)

    write("x.tinygpt", with_json(half, old))
    r = resume("x.tinygpt", "--steps", "20", "--levers", "-simd")
    check(r.code == 0 and "bits" not in r.errors, "a run of before this was kept", r.errors)
    equal(step_of("x.tinygpt"), 20, "and it goes on")


def pieces():
    """A folder with three texts and what is none, and the same bytes as one file."""
    data = read(text_file())
    os.makedirs("d/sub/.git")
    parts = {"d/a.txt": data[150000:200000], "d/b.txt": data[:100000], "d/sub/c": data[300000:330000]}
    for name, text in parts.items():
        write(name, text)
    write("d/picture.png", b"x\0y" * 99)
    write("d/empty", b"")
    write("d/.hidden", b"secret")
    write("d/sub/.git/config", b"text")
    os.symlink("../sub", "d/sub/loop")
    write("one.txt", b"".join(parts[name] for name in sorted(parts)))
    write("v.txt", data[-50000:])


def run_on(*args, out, **options):
    return tinygpt("train", *args, *TINY, *SILENT, "--steps", "8", "--out", out, **options)


def several_texts():
    """Files, folders and standard input are one text; what is passed over is said."""
    pieces()
    one = read("one.txt")
    expect(run_on("--data", "one.txt", out="one.tinygpt"), 0, "one file")
    expect(run_on("--data", "d", out="d/folder.tinygpt"), 0, "a folder")
    expect(run_on("--data", "d/a.txt", "--data", "d/b.txt", "--data=d/sub", out="three.tinygpt"), 0,
           "files and a folder")
    expect(run_on("--data", "-", out="stdin.tinygpt", data=one), 0, "standard input")
    for name in ("d/folder", "three", "stdin"):
        same_run("one.tinygpt", name + ".tinygpt", name)
    # A resumed run may take the same bytes from elsewhere; its own files in the folder are none.
    r = tinygpt("train", "--data", "d", "--sample-every", "0", "--resume",
                "d/folder.tinygpt", "--steps", "12")
    expect(r, 0, "resume on the folder", out=[r"binary: 1 \(picture.png\)", r"empty: 1", "hidden: 2",
                                             r"of this run: \d \(folder.tinygpt"])
    expect(tinygpt("train", "--data", "-", *SILENT, "--resume", "one.tinygpt", "--steps", "12",
                   data=one), 0, "resume on standard input")
    same_run("one.tinygpt", "d/folder.tinygpt", "resumed")
    r = tinygpt("train", "--data", "-", "--sample-every", "0", "--resume", "one.tinygpt", "--steps",
                "14", data=one)
    expect(r, 0, "what to do next", out="--data - --resume one.tinygpt --steps 28\n.*standard input")
    expect(tinygpt("train", "--data", "-", *SILENT, "--resume", "one.tinygpt", "--steps", "15",
                   data=one[:-1]), 2, "another text on standard input", err="another text")
    expect(run_on("--data", "-", "--val-data", "-", out="x"), 2, "standard input twice",
           err="standard input")
    os.makedirs("none/in")
    write("none/in/empty", b"")
    expect(run_on("--data", "none", out="x"), 2, "a folder without a text", err="want a text in it")
    expect(run_on("--data", "d", "--data", "no", out="x"), 2, "a missing file", err="no: want to open")
    expect(run_on("--data", "one.txt", "--out", "v.txt", "--data", "v.txt", out="y"), 2,
           "an output that is the second text")


def a_validation_text():
    """--val-data: all of --data trains, the other text validates, and belongs to the run."""
    pieces()
    r = run_on("--data", "one.txt", "--val-data", "v.txt", "--eval-windows", "0", "--json",
               out="a.tinygpt")
    expect(r, 0, "train --val-data")
    val = r.json_lines()[-1]["val"]
    seen = tinygpt("eval", "a.tinygpt", "--data", "v.txt", "--json").json()
    check(abs(seen["loss"] - val) < 1e-9, "it is the loss on that text", f"{seen} and {val}")
    expect(tinygpt("train", "--data", "one.txt", "--val-data", "v.txt", *SILENT, "--resume",
                   "a.tinygpt", "--steps", "10"), 0, "resumed")
    expect(tinygpt("train", "--data", "one.txt", *SILENT, "--resume", "a.tinygpt", "--steps", "12"),
           2, "resumed without it", err="another text")
    expect(tinygpt("train", "--data", "one.txt", "--data", "v.txt", *SILENT, "--resume", "a.tinygpt",
                   "--steps", "12"), 2, "resumed with a fraction", err="another validation part")
    expect(run_on("--data", "one.txt", "--val-data", "v.txt", "--val", "0.1", out="x"), 2,
           "--val with --val-data", err="have both")
    write("short.txt", b"short")
    expect(run_on("--data", "one.txt", "--val-data", "short.txt", out="x"), 2,
           "a validation text that is too short", err="validation part has 5 of 180005 bytes")


def optimizer_options():
    """--beta1, --beta2, --eps, --dropout and --optimizer count, are kept, and are the run's own."""
    hashes = set()
    for i, option in enumerate(((), ("--beta1", "0.8"), ("--beta2", "0.9"), ("--eps", "1e-3"),
                                ("--dropout", "0.1"), ("--optimizer", "muon"))):
        r = train("--steps", "5", "--json", *option, "--out", f"{i}.tinygpt")
        expect(r, 0, f"train {option}")
        hashes.add(r.json_lines()[-2]["hash"])
        if option:
            r = resume(f"{i}.tinygpt", "--steps", "9", *option)
            expect(r, 2, f"--resume with {option[0]}", err=option[0] + " cannot be changed")
    equal(len(hashes), 6, "each of them changes the run")
    unbroken = train("--steps", "9", "--beta2", "0.9", "--json", "--no-save")
    resumed = resume("2.tinygpt", "--steps", "9", "--json")
    equal(resumed.json_lines()[-2]["hash"], unbroken.json_lines()[-2]["hash"], "--beta2 is kept")


def what_may_change_on_resume():
    """--eval-every, --patience and --out; more steps that lift the rate are said beforehand."""
    cosine = ("--schedule", "cosine", "--lr", "1e-2")
    expect(train("--steps", "20", *cosine, "--out", "a.tinygpt"), 0, "a run")
    saved = read("a.tinygpt")
    r = resume("a.tinygpt", "--steps", "24", "--eval-every", "1", "--patience", "9", "--json")
    expect(r, 0, "resumed with another interval",
           err=r"the learning rate rises from 0\.00106 at step 20 to 0\.00\d+ at step 21; --hold-lr")
    rows = r.json_lines()[:-1]
    check(all(row["val"] is not None for row in rows) and len(rows) == 4, "validated every step")
    check(rows[0]["lr"] > 1.5e-3, "the rate does rise", str(rows[0]["lr"]))
    # The same with the end of the schedule held, and into another file.
    write("b.tinygpt", saved)
    r = resume("b.tinygpt", "--steps", "24", "--hold-lr", "--json", "--out", "c.tinygpt")
    expect(r, 0, "resumed with --hold-lr")
    check("rises" not in r.errors, "nothing to be said", r.errors)
    equal([row["lr"] for row in r.json_lines()[:-1]], [0.001] * 4, "the rate stays at its floor")
    equal(read("b.tinygpt"), saved, "--out leaves the run where it was")
    r = resume("c.tinygpt", "--steps", "28", "--json")
    equal([row["lr"] for row in r.json_lines()[:-1]], [0.001] * 4, "also when it is resumed again")
    expect(resume("c.tinygpt", "--hold-lr"), 2, "--hold-lr without --steps", err="--hold-lr wants")
    # A finished run with another --out: the file that is named exists.
    r = tinygpt("train", "--data", text_file(), "--resume", "b.tinygpt", "--out", "none.tinygpt")
    expect(r, 0, "a finished run", out="--resume b.tinygpt --steps 40")
    check(not os.path.exists("none.tinygpt"), "nothing was written")
    r = resume("b.tinygpt", "--steps", "19", "--json")
    expect(r, 2, "fewer steps than are done", err="want at least the 20 that are done.* have 19")


def a_picture_that_was_lost():
    """A run that was killed between its last save and its picture is finished, and has one again."""
    expect(train("--steps", "6", "--out", "a.tinygpt"), 0, "a run")
    drawn = read("a.tinygpt.svg")
    os.remove("a.tinygpt.svg")
    write("a.tinygpt.svg.tmp-199999999", "what such a run leaves")
    expect(resume("a.tinygpt"), 0, "resumed when it is finished", out="finished")
    equal(read("a.tinygpt.svg"), drawn, "the picture is drawn again")
    names = sorted(os.listdir("."))
    expect(resume("a.tinygpt"), 0, "and resumed once more", out="finished")
    equal(sorted(os.listdir(".")), names, "a picture that is there stays")
    check(not [n for n in names if ".tmp" in n], "no temporary file is left", str(names))


def a_reader_that_goes():
    """train | head: the run is saved and ends, without a word. sample | head: the same."""
    for more in ((), ("--json",)):
        command = [PROGRAM, "train", "--data", text_file(), *TINY, "--sample-every", "0",
                   "--steps", "300000", "--force", "--out", "a.tinygpt", *more]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   bufsize=0)
        process.stdout.read(50)
        process.stdout.close()
        err = process.stderr.read()
        equal(process.wait(300), 3, f"exit code {more}")
        check(b"error" not in err and b"Broken pipe" not in err, f"no word {more}", repr(err[-300:]))
        check(step_of("a.tinygpt") > 0, "the run is saved")
        os.remove("a.tinygpt")
    expect(train("--steps", "5", "--out", "a.tinygpt"), 0, "a run")
    process = subprocess.Popen([PROGRAM, "sample", "a.tinygpt", "--tokens", "1000000"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   bufsize=0)
    process.stdout.read(50)
    process.stdout.close()
    err = process.stderr.read()
    process.wait(300)
    check(b"error" not in err, "sample | head", repr(err[-300:]))


def errors_as_json():
    """With --json an error is also the last line of standard output, with the exit code."""
    expect(train("--steps", "5", "--out", "a.tinygpt"), 0, "a run")
    for args, words in ((("train", "--data", "none.txt"), "none.txt"),
                        (("train", "--data", text_file(), "--setps", "5"), "--steps"),
                        (("train", "--data", text_file(), "--lr", "x"), "--lr"),
                        (("train", "--data", text_file(), "--resume", "a.tinygpt", "--steps", "4"),
                         "at least the 5"),
                        (("info", "none"), "none"), (("verify", "none"), "none"),
                        (("sample", "none"), "none"), (("eval", "none", "--data", "x"), "none"),
                        (("convert", "none", "b.gguf"), "none")):
        r = tinygpt(*args, "--json")
        rows = r.json_lines()
        check(len(rows) == 1 and set(rows[0]) == {"error"}
              and set(rows[0]["error"]) == {"code", "message"}
              and rows[0]["error"]["code"] == r.code == 2 and words in rows[0]["error"]["message"],
              f"the error of {args[:2]}", r.text + r.errors, r.argv)
        equal(tinygpt(*args).out, b"", f"nothing without --json: {args[:2]}")
    equal(len(tinygpt("info", "a.tinygpt", "--json").text.splitlines()), 1, "no line without an error")


def windows_that_were_measured():
    """eval --json: windows is the number that was measured."""
    expect(train("--steps", "2", "--out", "a.tinygpt"), 0, "a run")
    write("t.txt", read(text_file())[:1601])
    for more, wanted in (((), 100), (("--windows", "7"), 7), (("--windows", "1000"), 100),
                         (("--val", "0.5"), 49)):
        seen = tinygpt("eval", "a.tinygpt", "--data", "t.txt", *more, "--json").json()
        equal(seen["windows"], wanted, f"windows {more}")


def texts_of_older_runs():
    """A run that was saved with the sampled checksum alone goes on with the text that it says, as
    ever: what lies between the samples it cannot see."""
    write("t.txt", read(text_file())[:600000])
    expect(tinygpt("train", "--data", "t.txt", *TINY, *SILENT, "--steps", "5", "--out", "new"), 0,
           "a run")
    write("old", with_json(read("new"), lambda text: re.sub(rb',"crc":[0-9]+', b"", text)))
    text = bytearray(read("t.txt"))
    for run_file, at, code in (("old", None, 0), ("new", None, 0), ("old", 4200, 0),
                               ("new", 4200, 2), ("old", 0, 2), ("new", 0, 2)):
        changed = bytearray(text)
        if at is not None:
            changed[at] ^= 1
        write("x.txt", bytes(changed))
        write("run", read(run_file))
        expect(tinygpt("train", "--data", "x.txt", *SILENT, "--resume", "run", "--steps", "7",
                       "--no-save"), code, f"{run_file} with byte {at} changed",
               err="another text" if code else ())


main(small_stack, a_picture_that_was_lost, header_in_every_language, other_levers_are_said, several_texts, a_validation_text,
     optimizer_options, what_may_change_on_resume, a_reader_that_goes,
     errors_as_json, windows_that_were_measured, texts_of_older_runs)
