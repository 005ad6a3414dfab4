#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_runner.py - the test runner (tools/run_tests.py) calls nothing passed that did not say so.

Every fault is a job of its own: a hang, a crash, silence, counts that contradict the exit code, a
skip without a name, a list with nothing in it.
"""
import contextlib
import os
import re
import subprocess
import sys
import time

from util import PROGRAM, TOP, check, equal, main, run

sys.path.insert(0, os.path.join(TOP, "tools"))
sys.path.insert(0, os.path.join(TOP, "test", "cli"))
import run_tests  # noqa: E402
from run_tests import Job  # noqa: E402


def sh(text, **more):
    return Job("job", ["sh", "-c", text], **more)


def quietly(call, *args):
    """What a runner prints inside of a test is not for the one outside to count."""
    with open(os.devnull, "w", encoding="utf-8") as sink, contextlib.redirect_stdout(sink):
        return call(*args)


def results_of(*jobs, builds=(), cores=2):
    return quietly(run_tests.run_all, list(builds), lambda: list(jobs), os.path.abspath("log"), cores)


def exit_code(results):
    return quietly(run_tests.summary, results, 0)


def result_of(text, **more):
    return results_of(sh(text, **more))[0]


def fails(text, why, **more):
    r = result_of(text, **more)
    check(r.failed and re.search(why, r.why), text, f"want a failure: {why}; have {r.failed} {r.why!r}")
    equal(exit_code([r]), 1, f"exit code: {text}")


def what_passes():
    for text, passed in (("echo 3 passed, 0 failed", 3), ("echo x: 2 passed, 0 failed; echo 1 passed, 0 failed", 3),
                         ("echo '[==========] tests: Running 2 test(s).'; echo '[  PASSED  ] 2 test(s).'", 2)):
        r = result_of(text)
        equal((r.passed, r.failed, r.why), (passed, 0, ""), text)
        equal(exit_code([r]), 0, f"exit code: {text}")
    r = result_of("echo 'skipped: a test: no such CPU'; echo 1 passed, 0 failed, 1 skipped")
    equal((r.passed, r.failed, r.skipped), (1, 0, ["a test: no such CPU"]), "a skip that is named")
    # With the name of the group in front, and without: cmocka's versions differ.
    for group in "tests: ", "":
        r = result_of("echo 'skipped: a: no such CPU'; echo '[==========] Running 2 test(s).'; "
                      f"echo '[  PASSED  ] 1 test(s).'; echo '[  SKIPPED ] {group}1 test(s), listed below:'; "
                      "echo '[  SKIPPED ] a'")
        equal((r.passed, r.failed, r.why), (1, 0, ""), f"a skip of cmocka's, {group}1 test(s)")


def what_fails():
    fails("echo 3 passed, 1 failed; exit 1", "")
    fails("echo 3 passed, 1 failed", "")
    fails("echo 3 passed, 0 failed; exit 1", "exit code 1")
    fails("echo 3 passed, 0 failed; kill -SEGV $$", "SIGSEGV")
    fails("exit 0", "counted no test")
    fails("echo ok", "counted no test")
    fails("echo 0 passed, 0 failed", "counted no test")
    fails("echo 0 passed, 0 failed, 1 skipped; echo 'skipped: a: b'", "counted no test")
    fails("echo 1 passed, 0 failed, 1 skipped", "left out 1, and said of 0")
    fails("echo '[==========] tests: Running 2 test(s).'; echo '[  PASSED  ] 1 test(s).'; "
          "echo '[  SKIPPED ] tests: 1 test(s), listed below:'; echo '[  SKIPPED ] a'", "left out 1")
    fails("echo '[==========] tests: Running 3 test(s).'; echo '[  PASSED  ] 2 test(s).'", "began 3 tests, and reported 2")
    r = results_of(Job("job", ["./none"]))[0]
    check(r.failed, "a program that is not there")


def time_limits():
    """What hangs is killed, with what it has started, in whatever session that is."""
    begun = time.monotonic()
    fails("setsid sleep 987 & echo 1 passed, 0 failed; sleep 988", "time limit: 1 s", limit_s=1)
    check(time.monotonic() - begun < 60, "it does not wait for a hang")
    fails("trap '' TERM INT HUP; while :; do sleep 1; done", "time limit", limit_s=1)
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    check(not re.search(r"^sleep 98[78]$", left, re.M), "nothing is left of them")


def time_of_all_processes():
    """CPU time is that of all processes, whatever became of parent, session and environment."""
    spin = "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; touch %s; sleep 986"
    orphan = f"(env -i setsid sh -c '{spin % os.path.abspath('spun')}' &)"
    r = result_of(f"{orphan}; until [ -e {os.path.abspath('spun')} ]; do sleep 0.1; done; echo 1 passed, 0 failed")
    check(not r.failed, "an orphan is no failure")
    check(r.cpu_s > 0.05, f"half a million turns of an orphan's loop: {r.cpu_s} s")
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    check(not re.search(r"^sleep 986$", left, re.M), "it has ended with its job")


def limits_of_tests_in_one_file():
    """util.main stops a test at its limit, which one of many small ones moves on with each."""
    script = ("import sys, time; sys.path.insert(0, sys.argv.pop(1)); import util\n"
              "def slow():\n"
              "    for _ in range(3): util.goes_on(4); time.sleep({})\n"
              "    util.check(True, 'slow')\n"
              "util.main(slow)")
    for sleep_s, passes in ((1, True), (8, False)):
        r = run([sys.executable, "-c", script.format(sleep_s), os.path.join(TOP, "test", "cli"), PROGRAM])
        equal(r.code, 0 if passes else 1, f"exit code of thrice {sleep_s} s")
        check(("waited for too long" in r.out.decode() + r.errors) != passes, f"what is said of {sleep_s} s")


def builds_and_their_tests():
    good, bad = Job("good", ["touch", os.path.abspath("made")], makes=[os.path.abspath("made")]), \
        Job("bad", ["true"], makes=[os.path.abspath("not made")])
    found = results_of(Job("on it", ["echo", "1 passed, 0 failed"], needs=("bad",)),
                       Job("beside", ["echo", "1 passed, 0 failed"], needs=("good",)), builds=(good, bad))
    equal({r.job.name: bool(r.failed) for r in found},
          {"good": False, "bad": True, "on it": True, "beside": False}, "what fails")
    equal(exit_code([]), 1, "nothing to run")


def beside_each_other():
    """As many as there are cores; what measures time, alone; what shares a thing, in turns."""
    spans = {}

    def job(name, **more):
        text = f"date +%s.%N >{name}; sleep 0.5; date +%s.%N >>{name}; echo 1 passed, 0 failed"
        return Job(name, ["sh", "-c", f"cd {os.getcwd()} && {text}"], **more)

    results_of(job("a"), job("b"), job("c", holds=("x",)), job("d", holds=("x",)), job("t", alone=True), cores=4)
    for name in "abcdt":
        with open(name, encoding="ascii") as f:
            spans[name] = [float(line) for line in f]

    def together(one, other):
        return spans[one][0] < spans[other][1] and spans[other][0] < spans[one][1]

    check(together("a", "b"), "two run beside each other")
    check(not together("c", "d"), "what shares a thing does not")
    check(not any(together("t", n) for n in "abcd"), "what measures time is alone")


def table():
    """An empty list, and a program that cannot say what it has, are jobs that fail."""
    import test_jobs
    here = os.getcwd()
    equal([j.name for j in test_jobs.per_line("pages", "none/*.ts", None)], ["pages"], "an empty list is a job")
    for text in ("exit 139", "exit 0", "kill -SEGV $$"):
        os.makedirs("b", exist_ok=True)
        with open("b/tinygpt", "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\n{text}\n")
        os.chmod("b/tinygpt", 0o755)
        found = test_jobs.jobs("full", os.path.join(here, "b"))
        equal([j.name for j in found], ["doctor"], f"doctor: {text}")
        r = results_of(*found)[0]
        check(r.failed, f"it fails: {text}")
    os.chdir(TOP)
    names = {j.name for j in test_jobs.jobs("full", os.path.dirname(PROGRAM))}
    equal(set(test_jobs.SECONDS) - names, set(), "jobs that are said to be long are there")
    os.chdir(here)


main(what_passes, what_fails, time_limits, time_of_all_processes, limits_of_tests_in_one_file, builds_and_their_tests, beside_each_other, table)
