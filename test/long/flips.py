#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""flips.py - test/long/flips.py build: every bit of a small v3 file, flipped one after the other.

verify must refuse each of them with exit code 2 and without a signal. A file of one layer of width
1 has a few thousand bytes; what it lacks in weights it has in headers and tables.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
sys.argv = [sys.argv[0], os.path.join(sys.argv[1] if len(sys.argv) > 1 else "build", "tinygpt")]

from util import SILENT, check, expect, goes_on, main, note, read, text_file, tinygpt, write  # noqa: E402


def every_bit():
    small = ("--layers", "1", "--width", "1", "--heads", "1", "--ctx", "1", "--batch", "1")
    expect(tinygpt("train", "--data", text_file(), *small, *SILENT, "--steps", "2", "--out",
                   "good.tinygpt"), 0, "a small run")
    data = read("good.tinygpt")
    write("bad.tinygpt", data)
    expect(tinygpt("verify", "bad.tinygpt"), 0, "the file as it was")
    with open("bad.tinygpt", "r+b", buffering=0) as f:
        for bit in range(8 * len(data)):
            goes_on()
            at = bit // 8
            f.seek(at)
            f.write(bytes([data[at] ^ 1 << bit % 8]))
            r = tinygpt("verify", "bad.tinygpt", timeout=20)
            f.seek(at)
            f.write(data[at:at + 1])
            ok = r.code == 2 and b"bad.tinygpt" in r.err and b"want" in r.err and not r.out
            if not check(ok, f"bit {bit % 8} of byte {at}", f"exit code {r.code}, {r.errors!r}"):
                break
    expect(tinygpt("verify", "bad.tinygpt"), 0, "the file as it was, afterwards")
    note(f"{8 * len(data)} bits of {len(data)} bytes")


main(every_bit)
