#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts plausible faults into the code, one at a time, and sees whether a test notices.

    tools/mutants/run.py [--only AREA|ID ...] [--jobs N] [--folder DIR] [--named] [--list]

--only names what is run, in that order. The faults (mutants) are listed in tools/mutants/AREA.txt:

    @ ID FILE
    - the text that is changed, one line or several; it must occur exactly once in FILE
    + the text that replaces it; may be absent
    ? the tests that should notice it, the likeliest first, separated by commas
    ~ why nothing could notice it, for a mutant that is equivalent to the code

A test is named in one of these ways:

    test_NAME          a unit test program               test_NAME.py   a test of the command line
    op_test FILTER     ops on every instruction set      gradients FILTER   finite differences
    simd_test          vectors of every instruction set  gpu FILTER     ops on a software GPU
    merge_test         merged steps on a software GPU
    models_test FILTER models of files on a software GPU

The script copies the tree once per job and builds the copies, so the tree itself is never touched.
They are built as `make build` does: with ccache, only what a mutant touches is compiled. For each
mutant the script builds what the named tests need and runs them, then the rest of the quick tests
(not for equivalent ones), until one fails. A test that fails must pass on an unchanged copy, where it
runs once, before its first mutant if that names it; a multiple of what it took there is its time
limit. One that is stopped at that limit has noticed the mutant if it passes on the unchanged copy,
at once, within that limit.

The last line is "N passed, N failed": a mutant that was noticed has passed. One that survived has
failed unless it is listed as equivalent. The exit code is 0 if at least 95 % of the mutants died
or are equivalent, every mutant could be applied and built, and no equivalent one was noticed.
"""
import argparse
import glob
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(TOP, "tools", "mutants")
NEEDED_SHARE = 0.95
MAKE = ["make", "--no-print-directory", "-s", "-j1"]
# A limit must not be reached because the machine is busy; most hangs wait, and cost only time.
LIMIT_FACTOR, LIMIT_LEAST_S, LIMIT_UNMEASURED_S, BUILD_LIMIT_S = 8, 30, 600, 1800
# How often a test is looked at, and what cmocka prints of a case that has failed: the other cases
# of that program need not run.
LOOK_S, FAILED_CASE = 0.05, b"[  FAILED  ] "
FILE_MAX_BYTES = 4 << 30
STOPPED = "stopped after"
# For each test on a GPU the adapter that compiles what it needs fastest.
SWIFTSHADER = ("/usr/lib/chromium/vk_swiftshader_icd.json", "libwebgpu_wrapper.so")
LAVAPIPE = ("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json", "libwgpu_native-release.so")
ADAPTERS = {"gpu": SWIFTSHADER, "merge_test": SWIFTSHADER, "models_test": LAVAPIPE}


class Mutant:
    def __init__(self, area, name, path, where):
        self.area, self.name, self.path, self.where = area, name, path, where
        self.old, self.new, self.tests, self.equivalent = [], [], [], ""


def parse(path):
    """The mutants of one list; a line that says nothing is an error."""
    area = os.path.splitext(os.path.basename(path))[0]
    mutants = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            where = f"{os.path.relpath(path, TOP)}:{number}"
            if not line.strip() or line.startswith("#"):
                continue
            mark, text = line[0], line[2:]
            if mark == "@":
                words = text.split()
                if len(words) != 2:
                    sys.exit(f"{where}: want '@ ID FILE', have {line!r}")
                mutants.append(Mutant(area, words[0], words[1], where))
            elif not mutants or mark not in "-+?~" or line[1:2] not in ("", " "):
                sys.exit(f"{where}: want a line that begins with @ - + ? or ~, have {line!r}")
            elif mark == "-":
                mutants[-1].old.append(text)
            elif mark == "+":
                mutants[-1].new.append(text)
            elif mark == "?":
                mutants[-1].tests += [t.strip() for t in text.split(",") if t.strip()]
            else:
                mutants[-1].equivalent = (mutants[-1].equivalent + " " + text).strip()
    return mutants


def changed(mutant, top):
    """The mutated text of the mutant's file, or what is wrong with its entry."""
    path = os.path.join(top, mutant.path)
    if not os.path.isfile(path):
        return None, f"{mutant.where}: {mutant.path} does not exist"
    with open(path, encoding="utf-8", newline="") as f:
        source = f.read()
    old, new = "\n".join(mutant.old), "\n".join(mutant.new)
    times = source.count(old) if old else 0
    if times != 1:
        return None, f"{mutant.where}: {mutant.name}: want its text once in {mutant.path}, have it {times} times"
    if old == new:
        return None, f"{mutant.where}: {mutant.name}: changes nothing"
    if not mutant.tests:
        return None, f"{mutant.where}: {mutant.name}: names no test"
    return source.replace(old, new), ""


def missing_test(name):
    """Is there no such test: a script of the command line, or a program's source?"""
    kind = name.split()[0]
    places = [f"test/cli/{kind}"] if kind.endswith(".py") else [f"test/{room}{kind}.c" for room in ("", "unit/*/", "gpu/")]
    fuzz = f"test/fuzz/fuzz_{kind.removeprefix('test_fuzz_')}.c"
    return kind not in ("gpu", "gradients") and not any(glob.glob(os.path.join(TOP, p)) for p in places + [fuzz])


def limits():
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MAX_BYTES, FILE_MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


running = set()  # the groups of processes


def end_all(number, _):
    """Whoever stops the script stops what it has started; the copies stay."""
    for group in list(running):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os._exit(128 + number)


def run(command, cwd, env, limit_s, log):
    """Exit code, or None if the time limit was reached; output is in log. Leaves no process. A
    program of tests is ended when its first case has failed."""
    with open(log, "wb") as out, open(log, "rb") as written:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=limits)
        running.add(process.pid)
        stop = time.monotonic() + limit_s
        try:
            while process.poll() is None and time.monotonic() < stop:
                if any(line.startswith(FAILED_CASE) for line in written):
                    return 1
                time.sleep(LOOK_S)
            return process.poll()
        finally:
            # What a test has started is in its group, and must not outlive it.
            running.discard(process.pid)
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


class Copy:
    """A copy of the tree with a build of its own."""

    def __init__(self, folder):
        self.tree = os.path.join(folder, "tree")
        self.log = os.path.join(folder, "log")
        self.temp = os.path.join(folder, "tmp")
        shutil.rmtree(self.temp, ignore_errors=True)
        os.makedirs(self.temp)
        os.makedirs(self.tree, exist_ok=True)
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                               cwd=TOP, check=True, capture_output=True).stdout.decode().split("\0")
        self.forget_all_but(set(names))
        for name in filter(None, names):
            source, target = os.path.join(TOP, name), os.path.join(self.tree, name)
            if not os.path.exists(source):
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if not same_bytes(source, target):
                shutil.copy(source, target)
        fetched, link = os.path.join(TOP, ".cache"), os.path.join(self.tree, ".cache")
        if os.path.exists(fetched) and not os.path.lexists(link):
            os.symlink(os.path.realpath(fetched), link)
        self.env = dict(os.environ, TMPDIR=self.temp, NO_COLOR="1", TG_GPU_CACHE="off")

    def forget_all_but(self, names):
        """What a kept copy has of an earlier state of the tree must not be built."""
        for root, folders, files in os.walk(self.tree):
            if root == self.tree:
                folders[:] = [f for f in folders if f not in ("build", ".cache")]
            for file in files:
                path = os.path.join(root, file)
                if os.path.relpath(path, self.tree) not in names and not os.path.islink(path):
                    os.remove(path)

    def make(self, targets):
        return run(MAKE + targets, self.tree, self.env, BUILD_LIMIT_S, self.log) == 0

    def isas(self):
        found = subprocess.run(["build/tinygpt", "doctor", "--list-isas"], cwd=self.tree,
                               capture_output=True, text=True, check=True)
        return found.stdout.split()

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()


def same_bytes(a, b):
    if not os.path.isfile(b):
        return False
    with open(a, "rb") as f, open(b, "rb") as g:
        return f.read() == g.read()


class Tests:
    """What a test's name stands for, and how long it may take."""

    def __init__(self, isas, named_only):
        self.isas, self.named_only, self.limit_s = isas, named_only, {}

    @staticmethod
    def target(name):
        kind = name.split()[0]
        if kind.endswith(".py"):
            return "build/tinygpt"
        return "build/test/op_test" if kind in ("gpu", "gradients", "op_test") else f"build/test/{kind}"

    def commands(self, name):
        kind, _, what = name.partition(" ")
        ops = ["build/test/op_test"] + (["--filter", what] if what else [])
        if kind.endswith(".py"):
            return [["python3", f"test/cli/{kind}", "build/tinygpt", *what.split()]]
        if kind == "op_test":
            return [ops + ["--isa", isa] for isa in self.isas]
        if kind == "gradients":
            return [ops + ["--gradients"]]
        if kind == "gpu":
            # Without these levers the shaders are others.
            return [ops + ["--device", "webgpu", *more] for more in ([], ["--levers", "-subgroups,-vec4_loads"])]
        return [[f"build/test/{kind}"] + ([what] if what else [])]

    def noticed(self, name, copy):
        """Runs a test; "" or what it says."""
        env = copy.env
        if name.split()[0] in ADAPTERS:
            driver, library = ADAPTERS[name.split()[0]]
            env = dict(env, VK_ICD_FILENAMES=driver,
                       TG_WEBGPU_LIB=os.path.join(copy.tree, ".cache/webgpu", library))
        limit = self.limit_s.get(name, LIMIT_UNMEASURED_S)
        for command in self.commands(name):
            code = run(command, copy.tree, env, limit, copy.log)
            if code is None:
                return f"{STOPPED} {limit:.0f} s"
            # With levers off an op that no lever changes has no shader to run.
            if code != 0 and not (name.startswith("gpu") and "0 passed, 0 failed" in copy.output()):
                return first_complaint(copy.output()) or f"exit code {code}"
        return ""

    def quick(self, copy):
        if self.named_only:
            return []
        programs = sorted(glob.glob(os.path.join(copy.tree, "test/unit/*/test_*.c")))
        units = [os.path.splitext(os.path.basename(p))[0] for p in programs]
        return units + ["op_test", "gradients", "simd_test"]


def first_complaint(text):
    """The name of the first test case that failed."""
    for pattern in (r"^\[  FAILED  \] ([\w .-]+)$", r"^ *FAIL:? +(\S.*)$", r"^(.*Assert.*)$", r"^([^ ].*(?:want|error).*)$"):
        found = re.search(pattern, text, re.M)
        if found:
            return found.group(1).strip()[:60]
    return ""


def measure(tests, name, copy):
    """Runs a test on the unchanged copy, which it must pass for what it says to count."""
    if not copy.make([tests.target(name)]):
        raise RuntimeError(f"the unchanged tree does not build: {first_complaint(copy.output())}")
    start = time.monotonic()
    said = tests.noticed(name, copy)
    if said:
        raise RuntimeError(f"{name} fails without any mutant: {said}")
    limit = max(LIMIT_LEAST_S, LIMIT_FACTOR * (time.monotonic() - start))
    tests.limit_s[name] = max(limit, tests.limit_s.get(name, 0))


def judge(mutant, tests, copy):
    """("killed" | "survived" | "broken", by which test and what it said)."""
    path = os.path.join(copy.tree, mutant.path)
    with open(path, encoding="utf-8", newline="") as f:
        original = f.read()
    text, fault = changed(mutant, copy.tree)
    if fault:
        return "broken", fault
    verdict, by = "survived", ""
    if mutant.tests[0] not in tests.limit_s:
        measure(tests, mutant.tests[0], copy)
    try:
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        # What is said to be equivalent is held against the tests that would be the first to object.
        rest = [] if mutant.equivalent else [t for t in tests.quick(copy) if t not in mutant.tests]
        for group in [[t] for t in mutant.tests] + [rest]:
            if group and not copy.make(sorted({tests.target(n) for n in group})):
                return "broken", "does not build: " + first_complaint(copy.output())
            for name in group:
                said = tests.noticed(name, copy)
                if said:
                    verdict, by = "killed", f"{name}: {said}"
                    break
            if verdict == "killed":
                break
    finally:
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(original)
    # One that is new here, or a machine that was too busy for the limit.
    name = by.split(":")[0]
    if verdict == "killed" and (name not in tests.limit_s or STOPPED in by):
        measure(tests, name, copy)
    return verdict, by


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="AREA|ID")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", help="where the copies are made, and kept; else a temporary folder")
    parser.add_argument("--named", action="store_true", help="run the named tests alone, not the rest of the quick ones")
    parser.add_argument("--list", action="store_true", help="print the mutants and check their texts")
    options = parser.parse_args()

    everything = [m for path in sorted(glob.glob(os.path.join(HERE, "*.txt"))) for m in parse(path)]
    names = [m.name for m in everything]
    faults = [f"{n}: is in the lists twice" for n in set(names) if names.count(n) > 1]
    known = set(names) | {m.area for m in everything}
    faults += [f"--only {o}: is no area and no mutant" for o in options.only if o not in known]
    chosen = [m for o in options.only for m in everything if o in (m.name, m.area)]
    mutants = list(dict.fromkeys(chosen)) if options.only else everything
    faults += [fault for m in mutants for fault in [changed(m, TOP)[1]] if fault]
    faults += [f"{m.where}: {m.name}: there is no test {t}" for m in mutants for t in m.tests if missing_test(t)]
    for fault in sorted(faults):
        print(fault)
    if options.list:
        for m in mutants:
            print(f"{m.area:12} {m.name:34} {m.path}  {', '.join(m.tests)}{'  equivalent' if m.equivalent else ''}")
        print(f"{len(mutants)} mutants")
    if options.list or faults:
        # A list that has rotted tells nothing about the tests.
        if not options.list:
            print(f"0 passed, {len(faults)} failed")
        return 1 if faults else 0

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_all)
    folder = options.folder or tempfile.mkdtemp(prefix="tinygpt-mutants-")
    try:
        return run_all(mutants, folder, max(1, options.jobs), options.named)
    except RuntimeError as error:
        print(f"{error}\n0 passed, {len(mutants)} failed")
        return 1
    finally:
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)


def run_all(mutants, folder, jobs, named_only):
    copies = [Copy(os.path.join(folder, str(i))) for i in range(jobs)]
    for copy in copies:
        if not copy.make(["build/tinygpt", "build/test/stories.txt"]):
            raise RuntimeError(f"the unchanged tree does not build:\n{copy.output()[-2000:]}")
        if run(["python3", "tools/oracle/fixtures.py", "build/fixtures"], copy.tree, copy.env, BUILD_LIMIT_S, copy.log):
            raise RuntimeError(f"the fixtures cannot be made:\n{copy.output()[-2000:]}")
    tests = Tests(copies[0].isas(), named_only)

    waiting, results, lock = queue.Queue(), {}, threading.Lock()
    for m in mutants:
        waiting.put(m)

    def work(copy):
        while True:
            try:
                m = waiting.get_nowait()
            except queue.Empty:
                return
            start = time.monotonic()
            try:
                verdict, by = judge(m, tests, copy)
            except Exception as error:  # a broken runner must not look like a mutant that died
                verdict, by = "broken", repr(error)
            if verdict == "survived" and m.equivalent:
                verdict, by = "equivalent", m.equivalent
            elif verdict == "killed" and m.equivalent:
                verdict, by = "broken", f"is listed as equivalent, and noticed by {by}"
            with lock:
                results[m.name] = verdict
                print(f"{verdict:10} {m.area:12} {m.name:34} {time.monotonic() - start:4.0f} s  {by}", flush=True)

    workers = [threading.Thread(target=work, args=(copy,)) for copy in copies]
    for w in workers:
        w.start()
    for w in workers:
        w.join()

    print()
    for area in list(dict.fromkeys(m.area for m in mutants)) + ["all"]:
        of = [results[m.name] for m in mutants if area in (m.area, "all")]
        killed, equivalent = of.count("killed"), of.count("equivalent")
        print(f"{area:12} noticed {killed:3} of {len(of):3}, equivalent {equivalent:2}: "
              f"{100 * (killed + equivalent) / len(of):5.1f} %")
    good = sum(results[m.name] in ("killed", "equivalent") for m in mutants)
    broken = sum(results[m.name] == "broken" for m in mutants)
    print(f"{good} passed, {len(mutants) - good} failed")
    return 0 if good >= NEEDED_SHARE * len(mutants) and broken == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
