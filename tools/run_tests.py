#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_tests.py quick|full|long BUILD [WORD...] - runs the tests; ends with "N passed, N failed".

test_jobs.py has the table of what there is to run; this file knows how. Builds come first, one after
the other, each on all cores. Then follows a queue of jobs, longest first, as many at once as there
are cores. A WORD picks the jobs whose names hold it.

A run must not be able to lie, so a job fails
  - if its exit code is not 0, or a signal ended it;
  - at its time limit: all of its processes are killed (process_tree.py);
  - if it counted nothing ("N passed, N failed", or cmocka's lines), whatever its exit code;
  - if it left something out without saying what and why ("skipped: NAME: REASON");
  - if cmocka began more tests than it reported.
A name that the table needs and that is not there (a tool, a model, a list without a line in it) is a
job that failed. Every job's output is in BUILD/log. CPU time is that of all processes that a job
has started, those of a browser among them.

A disk that fills makes tests fail at places that are not to blame, so the run says how little of it
was ever free, and during which jobs.
"""
import dataclasses
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time

import process_tree

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclasses.dataclass
class Job:
    name: str
    command: list
    env: dict = dataclasses.field(default_factory=dict)
    seconds: float = 1        # about how long, until a run has measured it
    limit_s: float = 300      # on a machine that is busy with other things, too
    cores: int = 1
    alone: bool = False       # measures time: nothing runs beside it
    holds: tuple = ()         # what it shares with no other job
    needs: tuple = ()         # builds that must have worked
    makes: tuple = ()         # of a build: files that it leaves; what is counted


@dataclasses.dataclass
class Result:
    job: Job
    passed: int = 0
    failed: int = 0
    skipped: list = dataclasses.field(default_factory=list)
    why: str = ""             # of a failure that no test has counted
    wall_s: float = 0
    cpu_s: float = 0
    log: str = ""
    times: list = dataclasses.field(default_factory=list)


COUNT = re.compile(r"(?:^|.*\D)(\d+) passed, (\d+) failed(?:, (\d+) skipped)?(?:$|\D.*)")
RUNNING = re.compile(r"\[={10}\].* Running (\d+) test")
PASSED = re.compile(r"\[  PASSED  \] (\d+) test")
FAILED = re.compile(r"\[  FAILED  \] (?:[^:]*: )?(\d+) test")
SKIPPED = re.compile(r"\[  SKIPPED \] (?:[^:]*: )?(\d+) test")
NAMED = re.compile(r"skipped: (\S.*: \S.*)$")
TIME = re.compile(r"\s*(\d+\.\d) s  (\S.*)$")


def count(result, code):
    """Fills in what the log says; code is the exit code, negative for a signal."""
    begun = left_out = 0
    for line in result.log.splitlines():
        # A count may stand in a message, but a line of cmocka's is never one of ours.
        if m := RUNNING.match(line):
            begun += int(m[1])
        elif m := PASSED.match(line):
            result.passed += int(m[1])
        elif m := FAILED.match(line):
            result.failed += int(m[1])
        elif m := SKIPPED.match(line):
            left_out += int(m[1])
        elif m := NAMED.match(line):
            result.skipped.append(m[1])
        elif m := TIME.match(line):
            result.times.append((float(m[1]), m[2]))
        elif m := COUNT.match(line):
            result.passed += int(m[1])
            result.failed += int(m[2])
            left_out += int(m[3] or 0)
    counted = result.passed + result.failed + left_out
    if result.why:
        pass
    elif code < 0:
        result.why = f"ended by {signal.Signals(-code).name}"
    elif code > 0 and not result.failed:
        result.why = f"exit code {code}, though nothing was counted as failed"
    elif not result.passed + result.failed:
        result.why = "counted no test"
    elif left_out != len(result.skipped):
        result.why = (f"left out {left_out}, and said of {len(result.skipped)} what and why "
                      "(skipped: NAME: REASON)")
    elif counted < begun:
        result.why = f"began {begun} tests, and reported {counted}"
    if result.why:
        result.failed += 1


class Running:
    """A job that has been started."""

    def __init__(self, job, folder):
        self.job, self.begun, self.late = job, time.monotonic(), False
        self.path = os.path.join(folder, re.sub(r"[^\w.,-]+", "_", job.name) + ".log")
        env = {**os.environ, "NO_COLOR": "1", "TG_TEST_TIMES": "1", **job.env}
        with open(self.path, "wb") as log:
            self.keeper = process_tree.start(job.command, TOP, env, log)

    def ended(self):
        """The result, or None as long as it runs."""
        result = Result(self.job)
        pid, status, usage = os.wait4(self.keeper, os.WNOHANG)
        if not pid:
            if time.monotonic() - self.begun > self.job.limit_s and not self.late:
                self.late = True
                self.kill()
            return None
        code = os.waitstatus_to_exitcode(status)
        result.cpu_s = usage.ru_utime + usage.ru_stime
        result.wall_s = time.monotonic() - self.begun
        with open(self.path, encoding="utf-8", errors="replace") as f:
            result.log = f.read()
        if self.late:
            result.why = f"time limit: {self.job.limit_s:.0f} s"
        if self.job.makes:
            missing = [f for f in self.job.makes if not os.path.exists(os.path.join(TOP, f))]
            result.passed = int(code == 0 and not missing)
            if not result.passed:
                result.why = result.why or f"exit code {code}; not there: {' '.join(missing)}"
                result.failed = 1
        else:
            count(result, code)
        return result

    def kill(self):
        os.kill(self.keeper, signal.SIGTERM)


class Disk:
    """The least that was ever free where the tests write, and which jobs ran then."""

    def __init__(self):
        self.folders = (TOP, tempfile.gettempdir())
        self.at_first = self.least = self.free()
        self.during, self.seen = "the start", time.monotonic()

    def free(self):
        return min(shutil.disk_usage(f).free for f in self.folders)

    def look(self, running):
        if time.monotonic() - self.seen < 0.5:
            return
        self.seen = time.monotonic()
        if (free := self.free()) < self.least:
            self.least, self.during = free, " and ".join(r.job.name for r in running) or "nothing"

    def __str__(self):
        return (f"disk: {self.at_first / 1e9:.1f} GB free at the start, {self.least / 1e9:.1f} at the "
                f"least, during {self.during}")


def show(result):
    job = result.job
    print(f"{'FAIL' if result.failed else 'ok':4} {job.name:44} {result.passed:6} passed "
          f"{result.failed:3} failed {result.wall_s:5.0f} s {result.cpu_s:5.0f} s of CPU", flush=True)
    for text in result.skipped:
        print(f"     | skipped: {text}")
    if not result.failed:
        return
    if result.why:
        print(f"     | {result.why}")
    # Which tests, however long the log is, then its end.
    lines = result.log.splitlines()
    wrong = [s for s in lines if re.match(r" *FAIL |.*Error: ", s)]
    for line in list(dict.fromkeys(wrong))[:20]:
        print(f"     | {line[:400]}")
    for line in [s for s in lines if not re.match(r"\[ RUN|\[       OK", s)][-25:]:
        print(f"     | {line[:400]}")
    sys.stdout.flush()


def queue(jobs, cores, folder, results, disk=None):
    """Runs the jobs; appends to results, also when it is broken off."""
    waiting = sorted(jobs, key=lambda j: (j.alone, -j.seconds))
    running = []
    try:
        while waiting or running:
            free = cores - sum(min(r.job.cores, cores) for r in running)
            held = {h for r in running for h in r.job.holds}
            for job in list(waiting):
                if running and (job.alone or running[0].job.alone):
                    continue
                if min(job.cores, cores) > free or held & set(job.holds):
                    continue
                waiting.remove(job)
                running.append(Running(job, folder))
                free -= min(job.cores, cores)
                held |= set(job.holds)
            time.sleep(0.02)
            if disk:
                disk.look(running)
            for r in list(running):
                if result := r.ended():
                    running.remove(r)
                    results.append(result)
                    show(result)
    finally:
        for r in running:
            r.kill()
            os.waitpid(r.keeper, 0)


def run_all(builds, jobs_of, folder, cores=None, disk=None):
    """Builds, then the queue of what jobs_of() gives behind them; the results of all."""
    cores = cores or len(os.sched_getaffinity(0))
    os.makedirs(folder, exist_ok=True)
    results = []
    for job in builds:
        queue([job], cores, folder, results, disk)
    broken = {r.job.name for r in results if r.failed}
    jobs = jobs_of()
    for job in jobs:
        if lacking := broken & set(job.needs):
            results.append(Result(job, failed=1, why=f"needs {', '.join(sorted(lacking))}"))
            show(results[-1])
    queue([j for j in jobs if not broken & set(j.needs)], cores, folder, results, disk)
    return results


def summary(results, wall_s):
    """Prints the slowest tests and the sums; the exit code."""
    slow = []
    for r in results:
        inner = [(s, f"{r.job.name}: {name}") for s, name in r.times]
        slow += inner if len(inner) > 1 else [(r.wall_s, r.job.name)]
    print("the slowest twenty:")
    for s, name in sorted(slow, reverse=True)[:20]:
        print(f"{s:7.1f} s  {name}")
    passed, failed = sum(r.passed for r in results), sum(r.failed for r in results)
    skipped = [text for r in results for text in r.skipped]
    if not results:
        print("FAIL there was nothing to run")
        failed = 1
    for r in results:
        if r.failed:
            print(f"FAIL {r.job.name}{': ' + r.why if r.why else ''}")
    cpu_s = sum(r.cpu_s for r in results)
    print(f"{len(results)} jobs in {wall_s / 60:.1f} minutes, {cpu_s / 60:.1f} of CPU time")
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed else 0


def remembered(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("quick", "full", "long"):
        sys.exit(f"usage: {sys.argv[0]} quick|full|long BUILD [WORD...]")
    mode, build, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.chdir(TOP)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A test is not part of the make that started it.
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        os.environ.pop(name, None)
    import test_jobs
    begun = time.monotonic()
    times = os.path.join(build, "log", "times.json")
    known = remembered(times)

    def jobs():
        found = test_jobs.jobs(mode, build)
        for job in found:
            job.seconds = known.get(job.name, job.seconds)
        return [j for j in found if not words or any(w in j.name for w in words)]

    disk = Disk()
    results = run_all(test_jobs.builds(mode, build), jobs, os.path.join(build, "log"), disk=disk)
    print(disk)
    known.update({r.job.name: round(r.wall_s, 1) for r in results})
    with open(times, "w", encoding="utf-8") as f:
        json.dump(known, f, indent=0)
    sys.exit(summary(results, time.monotonic() - begun))


if __name__ == "__main__":
    main()
