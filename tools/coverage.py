#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coverage.py BUILD TEST.. - runs tests that were built with --coverage (make coverage), and prints lines and branches by room.
A test is a unit test's name, or a file test/cli/test_*.py, which runs the program.

    io, tok     the folders of src/
    saves       what writes and finds again: sessions, runs, caches, temporary files
    base        what these are made of

A branch counts if it was taken. What was never taken goes to BUILD/index.txt, a line each: file,
line, how many of its branches, and the line itself. docs/testing.md says which kinds stay, and why.
"""
import collections
import concurrent.futures
import glob
import gzip
import json
import os
import subprocess
import sys

SAVES = ("src/base/os/os_posix_save.c", "src/io/run/saving.c", "src/training/checkpoint.c", "src/engine/session_file.c",
         "src/load/pack_cache.c", "src/io/tgpt/tgpt_v3_writer.c")


def room_of(path):
    return "saves" if path in SAVES else path.split("/")[1] if path.startswith("src/") else None


def run(build, tests):
    """Counts of all tests are added up by the programs themselves, in files beside the objects. Returns
    what failed."""
    for old in glob.glob(f"{build}/**/*.gcda", recursive=True):
        os.remove(old)

    def failed(test):
        command = ["python3", test, f"{build}/tinygpt"] if test.endswith(".py") else [f"{build}/test/{test}"]
        # Loops over failing calls go through all of them, as in make test-long.
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                              env=dict(os.environ, TG_TEST_LONG="1")).returncode != 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [test for test, bad in zip(tests, pool.map(failed, tests)) if bad]


def read(build):
    """{file: {line: [count, [count of each branch]]}}; a header's lines add up over all files."""
    lines = collections.defaultdict(dict)
    for data in sorted(glob.glob(f"{build}/src/**/*.gcda", recursive=True)):
        r = subprocess.run(["gcov", "--json-format", "--stdout", "-b", data], capture_output=True, check=True)
        text = r.stdout if r.stdout[:1] == b"{" else gzip.decompress(r.stdout)
        for file in json.loads(text)["files"]:
            path = os.path.normpath(file["file"])
            for line in file["lines"]:
                found = lines[path].setdefault(line["line_number"], [0, []])
                found[0] += line["count"]
                counts = [b["count"] for b in line["branches"]]
                both = max(len(counts), len(found[1]))
                found[1] = [sum(c[i] for c in (counts, found[1]) if i < len(c)) for i in range(both)]
    return lines


def main():
    build, tests = sys.argv[1], sys.argv[2:]
    failed = run(build, tests)
    rooms = collections.defaultdict(lambda: [0, 0, 0, 0])
    with open(f"{build}/index.txt", "w", encoding="utf-8") as index:
        for path, lines in sorted(read(build).items()):
            room = room_of(path)
            if room not in ("base", "io", "tok", "saves"):
                continue
            with open(path, encoding="utf-8") as f:
                source = f.read().split("\n")
            for number, (count, branches) in sorted(lines.items()):
                taken = sum(b > 0 for b in branches)
                sums = rooms[room]
                sums[0] += count > 0
                sums[1] += 1
                sums[2] += taken
                sums[3] += len(branches)
                if count == 0 or taken < len(branches):
                    index.write(f"{path}:{number}: {taken}/{len(branches)} {source[number - 1].strip()}\n")
    for room, (line, n_lines, branch, n_branches) in sorted(rooms.items()):
        print(f"{room:6} lines {line:5} of {n_lines:5}, {100 * line / n_lines:5.1f} %   "
              f"branches {branch:5} of {n_branches:5}, {100 * branch / n_branches:5.1f} %")
    if failed:
        sys.exit("these fail: " + " ".join(failed))


main()
