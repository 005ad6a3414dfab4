#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which files a new op, family, type ... touches: measured from the last commit that added one.

A kind of thing is a list, one a line. The last commit that put a line into it which is a new name
there (and not a list begun, or a line moved) is what adding one took; its files are counted by
folder. `places.py` prints a line a kind, `places.py KIND` the files.
"""
import os
import re
import subprocess
import sys

KINDS = {
    "op": "src/ir/ops.def",
    "family": "src/model/families.def",
    "type": "src/dtype/types.def",
    "preset": "src/model/presets.def",
    "lever": "src/ir/levers.def",
    "sampler": "src/engine/samplers/samplers.def",
    "instruction set": "src/simd/isa.def",
    "file format": "src/io/formats.def",
    "command": "app/commands.def",
}
ENTRY = re.compile(r"^([-+])\s*TG_\w+\(\s*\"?(\w+)")
# What a reader of the program sees, and what was measured: not places of the code.
PROSE = ("docs/", "README.md", "CHANGES.md", "bench/history/")


def git(*args):
    return subprocess.run(("git",) + args, check=True, capture_output=True, text=True).stdout


def last_addition(path):
    """(commit, names) of the last commit that added names to the list, or None; one that takes as many
    away renames them."""
    for commit in git("log", "--format=%h", "--", path).split():
        names = {"+": set(), "-": set()}
        begun = False
        for line in git("show", "--format=", "--unified=0", commit, "--", path).splitlines():
            begun = begun or line.startswith("new file")
            found = ENTRY.match(line)
            if found:
                names[found.group(1)].add(found.group(2))
        added = names["+"] - names["-"]
        renamed = len(added) == len(names["-"] - names["+"])
        if added and not begun and not renamed:
            return commit, sorted(added)
    return None


def files_of(commit):
    """Lines "A path" and "M path", prose left out."""
    changes = git("show", "--format=", "--name-status", "--no-renames", commit).splitlines()
    changes = [tuple(line.split("\t")) for line in changes]
    return [(how, path) for how, path in changes if not path.startswith(PROSE)]


def main():
    wanted = sys.argv[1:]
    if any(w not in KINDS for w in wanted):
        sys.exit("usage: places.py [%s]" % " | ".join(KINDS))
    os.chdir(git("rev-parse", "--show-toplevel").strip())
    for kind in wanted or KINDS:
        found = last_addition(KINDS[kind])
        if not found:
            print("%-16s no commit added one to %s" % (kind, KINDS[kind]))
            continue
        commit, names = found
        files = files_of(commit)
        folders = sorted({os.path.dirname(path) for _, path in files if path.startswith(("src/", "app/"))})
        code = sum(path.startswith(("src/", "app/")) for _, path in files)
        print("%-16s %s  %s: %d files of code in %s, %d others"
              % (kind, commit, " ".join(names), code, " ".join(folders), len(files) - code))
        for how, path in files if wanted else ():
            print("    %s %s" % (how, path))


if __name__ == "__main__":
    main()
