#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom: a file may include its own top folder and folders of a smaller number.

The numbers are those of LEVEL: rooms of the same number never include each other. app/ and web/ see include/tinygpt.h alone (app/ its own files, too, and the generated
page.def).
"""
import os
import re
import sys

LEVEL = {"base": 0, "dtype": 0, "simd": 0, "ir": 1, "io": 1, "tok": 1, "ops": 2, "model": 3,
         "plan": 3, "backend": 4, "runtime": 5, "load": 6, "engine": 7, "training": 8,
         "inspect": 9, "convert": 10, "api": 11}
# What a folder of the same number may use all the same: simd and io are built on base.
ALSO = {("dtype", "base"), ("simd", "base"), ("simd", "dtype"), ("io", "base"), ("tok", "base")}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def included(path):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            found = INCLUDE.match(line)
            if found:
                yield number, found.group(1)


def main():
    faults = []
    for root, _, files in os.walk("src"):
        for name in sorted(files):
            if not name.endswith((".c", ".h", ".def")):
                continue
            path = os.path.join(root, name)
            own = path.split(os.sep)[1]
            for number, target in included(path):
                if target in ("tinygpt.h", "simd_ops.h"):
                    continue
                other = target.split("/")[0]
                if other == own or (own, other) in ALSO:
                    continue
                if other not in LEVEL or LEVEL[other] >= LEVEL[own]:
                    faults.append(f"{path}:{number}: {own}/ may not include {target}")
    for root, _, files in os.walk("app"):
        for name in sorted(files):
            if not name.endswith((".c", ".h")):
                continue
            path = os.path.join(root, name)
            for number, target in included(path):
                if target not in ("tinygpt.h", "page.def") and not os.path.exists(os.path.join("app", target)):
                    faults.append(f"{path}:{number}: app/ may only include tinygpt.h, has {target}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
