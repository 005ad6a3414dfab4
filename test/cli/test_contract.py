#!/usr/bin/env python3
"""What a host and a user may rely on around the results: stacks, headers, levers, resuming.

Usage: test_contract.py build/tinygpt
"""
import os
import re
import resource
import shutil

from damage import with_json
from util import (SILENT, TINY, TOP, check, equal, expect, isas, main, read, resume, run, same_run,
                  step_of, text_file, tinygpt, train, write)


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
            r = run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra",
                     "-Wpedantic", "-Werror", *more, "-fsyntax-only", "-I",
                     os.path.join(TOP, "include"), "-include", "tinygpt.h", os.devnull])
            expect(r, 0, f"tinygpt.h as {standard}")


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


main(small_stack, header_in_every_language, other_levers_are_said)
