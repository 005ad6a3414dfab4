#!/usr/bin/env python3
"""What a host and a user may rely on around the results: stacks, headers, levers, resuming.

Usage: test_contract.py build/tinygpt
"""
import os
import resource
import shutil

from util import TINY, SILENT, TOP, check, expect, main, run, text_file, tinygpt


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


main(small_stack, header_in_every_language)
