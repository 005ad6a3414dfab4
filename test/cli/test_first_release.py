#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_first_release.py - files that version 0.1.0 wrote open, go on and sample as they did there.

test/golden/first_release has the files and what 0.1.0 computed from them; tools/oracle/first_release.py
made both. Sessions of it are looked at in test_session.c.
"""
import json
import os
import shutil

from util import TOP, check, equal, expect, main, tinygpt

HERE = os.path.join(TOP, "test", "golden", "first_release")
with open(os.path.join(HERE, "expected.json"), encoding="utf-8") as expected:
    EXPECTED = json.load(expected)
QUIET = ("--eval-every", "0", "--sample-every", "0", "--json")
PRESETS = {"tiny": 10, "small": 10, "medium": 3, "large": 2}
# Of the two classes of kernels, the ISA that each machine has (ARM's NEON is of the first).
CLASSES = {"plain": ("scalar",), "fma": ("avx2", "neon")}


def text():
    result = tinygpt("corpus", "stories", "--bytes", "20000", "--seed", "3")
    expect(result, 0, "the text")
    with open("text", "wb") as f:
        f.write(result.out)


def classes():
    """Class and ISA, for the classes that this machine has."""
    has = tinygpt("doctor", "--list-isas").text.split()
    found = [(name, isa) for name, isas in CLASSES.items() for isa in isas if isa in has]
    check(("plain", "scalar") in found, "every machine has the scalar kernels")
    return found


def losses(result, what):
    expect(result, 0, what)
    step = [row for row in result.json_lines() if "hash" in row][-1]
    return [step["hash"], step["val"]]


def samples():
    check(len(EXPECTED["sample"]) >= 7, "a file of each format")
    for name, ids in EXPECTED["sample"].items():
        result = tinygpt("sample", os.path.join(HERE, name), "--prompt", "The", "--tokens", "16", "--temp", "0.9",
                         "--seed", "7", "--json")
        expect(result, 0, name)
        equal(result.json()["ids"], ids, f"{name}: the same tokens as 0.1.0")


def resumes():
    text()
    for name, isa in classes():
        shutil.copy(os.path.join(HERE, "half.tinygpt"), "on.tinygpt")
        result = tinygpt("train", "--data", "text", "--resume", "on.tinygpt", "--steps", "12", "--isa", isa, "--json")
        equal(losses(result, isa), EXPECTED["resume"][name], f"{isa}: a run of 0.1.0 goes on to its bits")


def trains():
    text()
    for name, isa in classes():
        # The large ones say nothing more about plain kernels, and take long there.
        for preset, steps in list(PRESETS.items())[:2 if isa == "scalar" else None]:
            result = tinygpt("train", "--data", "text", "--preset", preset, "--steps", str(steps), "--isa", isa,
                             "--out", f"{preset}_{isa}.tinygpt", *QUIET)
            equal(losses(result, preset), EXPECTED["presets"][preset][name], f"{preset}, {isa}: the bits of 0.1.0")


main(samples, resumes, trains)
