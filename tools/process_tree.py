# SPDX-License-Identifier: Apache-2.0
"""process_tree.py - a command, and all that it starts, as one process that can be ended and measured.

A browser's processes outlive their parents, change their sessions and clear their environments, so
neither a process group nor a mark in the environment finds them all. A keeper does: it is the
process that orphans below it go to (PR_SET_CHILD_SUBREAPER). It runs the command, ends what the
command leaves behind, waits for each of them, and ends as the command did. So

    os.wait4(keeper)        gives the CPU time of all processes of the tree, orphans among them
    SIGTERM to the keeper   ends the tree, and then the keeper

A keeper whose own parent is gone ends its tree, too.
"""
import ctypes
import os
import resource
import signal
import subprocess
import time
import traceback

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
NOT_FOUND = 127  # a shell's exit code of a command that is not there


def start(command, cwd, env, log):
    """The process id of the keeper of a command, which writes to the open file log."""
    parent = os.getpid()
    keeper = os.fork()
    if keeper:
        return keeper
    code = NOT_FOUND
    try:
        code = _keep(parent, command, cwd, env, log)
    except BaseException:
        log.write(traceback.format_exc().encode())
        log.flush()
    finally:
        # Whatever has happened here, the parent's code behind start() runs in the parent alone.
        _end_as(code)


def _keep(parent, command, cwd, env, log):
    """Runs the command to its end or until SIGTERM; its exit code, negative for a signal."""
    stopped = False

    def stop(*_):
        nonlocal stopped
        stopped = True
        _kill_below()

    os.setsid()
    signal.signal(signal.SIGTERM, stop)
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((PR_SET_CHILD_SUBREAPER, 1), (PR_SET_PDEATHSIG, signal.SIGTERM)):
        if libc.prctl(option, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:
        return -signal.SIGTERM  # it was gone before it could be told of
    try:
        child = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=subprocess.STDOUT)
    except OSError as e:
        log.write(f"{e}\n".encode())
        log.flush()
        return NOT_FOUND
    if stopped:
        _kill_below()
    pid = status = 0
    while pid != child.pid:
        pid, status = os.wait()
    child.returncode = os.waitstatus_to_exitcode(status)
    _end_below()
    return -signal.SIGKILL if stopped else child.returncode


def _below():
    """All processes below this one, by the parents that /proc tells."""
    children = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                # Behind the name, which may hold any character: the state, and the parent.
                parent = int(f.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(pid)
    found = list(children.get(os.getpid(), ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def _kill_below():
    for pid in _below():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _end_below():
    """Ends what is left and waits for it: that is what adds its time to this process's."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            _kill_below()
            time.sleep(0.005)


def _end_as(code):
    """Ends this process by an exit code or, if that is negative, by that signal."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if code not in (-signal.SIGKILL, -signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
