# SPDX-License-Identifier: Apache-2.0
"""util.py - what the black-box tests of the program share: running it, counting, folders.

A test file holds functions that run the program and compare what it did with what was promised:

    from util import check, expect, main, tinygpt

    def missing_file():
        expect(tinygpt("info", "none.tinygpt"), 2, "info of a missing file", err="none.tinygpt")

    main(missing_file)

It is started as `python3 test/cli/test_x.py build/tinygpt`. Every function gets an empty folder of
its own as the current one. A FAIL line says what was wanted and found, and the command that shows
it; the last line is "N passed, N failed", and the exit code is 1 if anything failed.

What can go wrong here must show as a failure: an exception in a test counts as one, so does a
program that does not end in time, and so does a test that checks nothing.
"""
import fcntl
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = os.path.join(TOP, ".cache", "models")

# The smallest model that still has every part: 7,664 parameters, a step well below a millisecond.
TINY = ("--layers", "1", "--width", "16", "--heads", "2", "--ctx", "16", "--batch", "8")
# Training without tables, samples and pictures, for tests that look at files.
SILENT = ("--quiet", "--sample-every", "0")
PIPE_BYTES = 16384
# Whoever takes longer hangs, also on a machine that is slow and busy.
HANG_S = 300
# Keys of the log that hold times; all others must be the same in two runs that are one.
TIME_KEYS = (b"ms", b"tok_per_s", b"mfu")


class Count:
    passed = 0
    failed = 0
    skipped = 0
    test = ""  # that is running


class Result:
    """What a finished command did. code is negative for a signal, None if it had to be killed."""

    def __init__(self, argv, code, out, err):
        self.argv, self.code, self.out, self.err = argv, code, out, err

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")

    @property
    def errors(self):
        return self.err.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.out.decode("utf-8"))

    def json_lines(self):
        return [json.loads(line) for line in self.out.decode("utf-8").splitlines()]


def say(text):
    print(text, flush=True)


def note(text):
    say("note: " + text)


def skip(text):
    """What this machine cannot do is said, and counts neither as passed nor as failed. Nothing that
    tools/setup.sh brings is left out when it is missing: see have_model."""
    say(f"skipped: {Count.test}: {text}")
    Count.skipped += 1


def have_model(name):
    """The path of a model that the set-up has fetched. Without it the test fails."""
    path = os.path.join(MODELS, name)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} is missing: tools/setup.sh fetches it")
    return path


def shown(argv):
    parts = []
    for arg in argv:
        text = os.fsdecode(arg)
        parts.append(shlex.quote(text if len(text) < 200 else text[:200] + "..."))
    return " ".join(parts)


def check(ok, what, detail="", command=None):
    """Counts one check; ok may be any truth value. Returns it as a bool."""
    if ok:
        Count.passed += 1
        return True
    Count.failed += 1
    say(f"FAIL {what}" + (f": {detail}" if detail else ""))
    if command is not None:
        say(f"     in {os.getcwd()}: {shown(command)}")
    return False


def equal(have, want, what, command=None):
    return check(have == want, what, f"want {want!r}, have {have!r}", command)


def tail(data, lines=4):
    return " | ".join(data.decode("utf-8", "replace").strip().splitlines()[-lines:])


def expect(result, code, what, out=(), err=()):
    """Checks exit code and, as regular expressions, parts of both outputs. One check in all."""
    problems = []
    if result.code != code:
        have = "no end in time" if result.code is None else f"exit code {result.code}"
        problems.append(f"want exit code {code}, have {have}")
    for name, wanted, text in (("output", out, result.text), ("error output", err, result.errors)):
        for pattern in (wanted,) if isinstance(wanted, str) else wanted:
            if not re.search(pattern, text):
                problems.append(f"want /{pattern}/ in the {name}")
    if problems:
        problems.append(f"stdout: {tail(result.out)!r}, stderr: {tail(result.err)!r}")
    return check(not problems, what, "; ".join(problems), result.argv)


QUICK_S = 1.0

def refused(what, *args, err=(), codes=(2,), quick_s=QUICK_S, **options):
    """Runs a command that must be refused, with little work; one check."""
    before = sorted(os.listdir("."))
    used_before = used_by_ended()
    r = tinygpt(*args, **options)
    used_s = used_by_ended() - used_before
    problems = [f"want {p!r} in the message" for p in ((err,) if isinstance(err, str) else err)
                if p not in r.errors]
    if r.code not in codes:
        problems.append(f"want exit code {codes}, have {r.code}")
    if used_s > quick_s:
        problems.append(f"want {quick_s} s of work at most, have {used_s:.1f}")
    if r.code == 2 and not r.err.startswith((b"tinygpt", b"usage")):
        problems.append("want a message that begins with tinygpt")
    if r.code == 2 and r.out:
        problems.append(f"want no output, have {r.out[:80]!r}")
    if any(c < 32 and c != 10 for c in r.err):
        problems.append("control characters in the message")
    if sorted(os.listdir(".")) != before:
        problems.append(f"want nothing written, have {os.listdir('.')}")
    return check(not problems, what, "; ".join(problems) + f"; stderr: {r.errors[-400:]!r}", r.argv)


def text_file():
    """Stories of the program's own, as many bytes as a small book."""
    if not os.path.isfile(stories):
        subprocess.run([PROGRAM, "corpus", "stories", "--bytes", "1115394", "--out", stories],
                       check=True, stdout=subprocess.DEVNULL)
    return stories


def environment(extra=None):
    """The caller's, less what would change outputs."""
    changing = ("LANG", "LC_ALL", "LC_CTYPE", "COLUMNS")
    env = {k: v for k, v in os.environ.items() if k not in changing}
    env.update(TERM="dumb", **(extra or {}))
    return env


def run(argv, timeout=HANG_S, stdin=subprocess.DEVNULL, data=None, env=None, **popen):
    """Runs a command to its end; data, if given, is its standard input."""
    argv = [str(a) if not isinstance(a, bytes) else a for a in argv]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    pipes["stdin"] = subprocess.PIPE if data is not None else stdin
    pipes.update(popen)
    process = subprocess.Popen(argv, env=environment(env), **pipes)
    try:
        out, err = process.communicate(input=data, timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        code = None
    return Result(argv, code, out or b"", err or b"")


def tinygpt(*args, **options):
    return run([PROGRAM, *args], **options)


def start(*args, under=(), **popen):
    """A running program, with pipes for both outputs; finish() or kill it.

    The pipes are unbuffered, so that what a test has not read is still there for finish(). That of
    standard output holds some eighty lines of a training run: a program that is not read waits,
    and no run gets far ahead of its test, however fast the one or slow the other is. A hang-up has
    its usual meaning, also where the tests themselves run under nohup.
    """
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    pipes = {"stdin": subprocess.DEVNULL, "stdout": writer, "stderr": subprocess.PIPE,
             "bufsize": 0,
             "preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)}
    pipes.update(popen)
    process = subprocess.Popen([*under, PROGRAM, *map(str, args)], env=environment(), **pipes)
    os.close(writer)
    process.stdout = open(reader, "rb", buffering=0)
    return process


def finish(process, timeout=HANG_S):
    """Waits for a program of start(); what was read from its pipes before is not in the result."""
    try:
        out, err = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        code = None
    return Result(process.args, code, out or b"", err or b"")


def read_step(process, step):
    """Reads JSON lines of a training run until the given step is done. None if it ended before."""
    for line in process.stdout:
        row = json.loads(line)
        if row.get("step", 0) >= step and "done" not in row:
            return row
    return None


def freeze(process):
    """Stops a program where it is, and waits until it stands still (or has ended)."""
    process.send_signal(signal.SIGSTOP)
    if process.returncode is None:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def thaw(process):
    process.send_signal(signal.SIGCONT)


def freeze_when(process, condition):
    """Lets a program run until it stands where the condition holds (or has ended)."""
    freeze(process)
    while process.poll() is None and not condition():
        thaw(process)
        time.sleep(0.0003)  # where there is one processor it gets a turn
        freeze(process)


def state(pid, key):
    """A field of /proc/PID/status."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(line.split()[1] for line in f if line.startswith(key + ":"))


def heard(process):
    """Waits until a program has dealt with what was sent to it, and waits itself (or has ended)."""
    while int(state(process.pid, "ShdPnd"), 16) or int(state(process.pid, "SigPnd"), 16):
        pass
    while state(process.pid, "State") not in "SZ":
        pass


def used(process):
    """Seconds of processor time that a running program has had."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def used_by_ended():
    """The same of all those that have ended."""
    all_of_them = resource.getrusage(resource.RUSAGE_CHILDREN)
    return all_of_them.ru_utime + all_of_them.ru_stime


def train(*args, **options):
    """A silent training run of the smallest model on the real text."""
    return tinygpt("train", "--data", text_file(), *TINY, *SILENT, *args, **options)


def resume(path, *args, **options):
    return tinygpt("train", "--data", text_file(), *SILENT, "--resume", path, *args, **options)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data.encode() if isinstance(data, str) else data)
    return path


def timeless(log):
    """A log without its times."""
    keys = b"|".join(TIME_KEYS)
    return re.sub(rb'"(' + keys + rb')":[-0-9.e+]+', rb'"\1":0', log)


def same_run(a, b, what):
    """Two files hold the same run: verify says so, and as files of one layout they are equal."""
    ok = expect(tinygpt("verify", a, b), 0, f"{what}: verify {a} {b}", out="^equal")
    return check(read(a) == read(b), f"{what}: {a} and {b} are equal byte for byte") and ok


def same_log(a, b, what):
    return check(timeless(read(a)) == timeless(read(b)) and read(a),
                 f"{what}: logs {a} and {b} are equal apart from times")


def whole(path, what):
    return expect(tinygpt("verify", path), 0, f"{what}: {path} is whole")


def step_of(path):
    """Training steps that a file holds, -1 if it cannot be read."""
    r = tinygpt("info", path, "--json")
    return r.json()["step"] if r.code == 0 else -1


def is_root():
    return os.geteuid() == 0


NOBODY = 65534


def as_nobody():
    """For preexec_fn: permissions count for the child, which they do not for root."""
    if is_root():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def program_for_nobody():
    """A copy of the program where every user may run it; the build folder may be private."""
    path = os.path.join(root, "program-for-all")
    if not os.path.exists(path):
        shutil.copy(PROGRAM, path)
        os.chmod(path, 0o755)
    return path


def isas():
    return tinygpt("doctor", "--list-isas").text.split()


def levers():
    return tinygpt("doctor", "--list-levers").text.split()


def hang(*_):
    raise TimeoutError("the test has waited for too long")


def goes_on(limit_s=4 * HANG_S):
    """Of a test that is many small ones: the limit is on each of them."""
    signal.alarm(limit_s)


def run_test(test):
    Count.test = test.__name__
    folder = os.path.join(root, test.__name__)
    os.mkdir(folder)
    os.chdir(folder)
    failed, begun = Count.failed, time.monotonic()
    before = Count.passed + Count.failed + Count.skipped
    signal.signal(signal.SIGALRM, hang)
    goes_on()
    try:
        test()
    except Exception:  # a test that breaks is a failure, and the next one runs
        check(False, test.__name__, "exception\n" + traceback.format_exc())
    signal.alarm(0)
    if Count.passed + Count.failed + Count.skipped == before:
        check(False, test.__name__, "checked nothing")
    if os.environ.get("TG_TEST_TIMES"):
        say(f"{time.monotonic() - begun:7.1f} s  {test.__name__}")
    os.chdir(root)
    if Count.failed == failed:
        shutil.rmtree(folder, ignore_errors=True)


def main(*tests):
    """Runs all tests, or those whose names stand behind the program on the command line."""
    names = sys.argv[2:]
    unknown = set(names) - {t.__name__ for t in tests}
    if unknown:
        sys.exit(f"no test called {', '.join(sorted(unknown))}")
    try:
        for test in tests:
            if not names or test.__name__ in names:
                run_test(test)
    finally:
        os.chdir(TOP)
        shutil.rmtree(root, ignore_errors=True)
    skipped = f", {Count.skipped} skipped" if Count.skipped else ""
    say(f"{Count.passed} passed, {Count.failed} failed{skipped}")
    sys.exit(1 if Count.failed else 0)


# Whoever runs the tests in the background, or under nohup, has these ignored, and children inherit it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
    sys.exit(f"usage: python3 {sys.argv[0]} build/tinygpt [TEST...]")
PROGRAM = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="tinygpt-test-")
os.chmod(root, 0o755)
stories = os.path.join(root, "stories.txt")
