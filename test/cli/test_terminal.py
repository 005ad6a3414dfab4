#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_terminal.py - what a person sees: lines that break between words, and no braille where the
locale is C."""
import fcntl
import os
import pty
import re
import struct
import termios

from util import (HANG_S, PROGRAM, SILENT, TINY, check, equal, expect, main, run, text_file, tinygpt)


def on_terminal(columns, *args, **env):
    """Runs the program on a terminal of so many columns; returns its lines."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", NO_COLOR="1", **env)
        os.execv(PROGRAM, [PROGRAM, *args])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    data = b""
    try:
        while part := os.read(fd, 65536):
            data += part
    except OSError:  # the other end is closed
        pass
    os.close(fd)
    os.waitpid(pid, 0)
    # What was rewritten in place is not a line.
    return [line.rsplit("\r", 1)[-1] for line in data.decode().replace("\r\n", "\n").split("\n")]


def train_args(*more):
    return ("train", "--data", text_file(), *TINY, "--sample-every", "0", "--no-save", "--steps", "3",
            *more)


def narrow_windows():
    """The plan's lines break between words, and go on under their second column."""
    whole = on_terminal(200, *train_args())
    plan = [line for line in whole if re.match(r"  (text|model|run|memory|time|advice) ", line)]
    check(len(plan) >= 5 and max(map(len, plan)) > 60, "a wide window", repr(whole[:12]))
    for columns in (60, 56):
        lines = on_terminal(columns, *train_args())
        check(all(len(line) < columns for line in lines), f"no line is cut at {columns} columns",
              repr([line for line in lines if len(line) >= columns]))
        # Times and free memory are other ones now; words are the same, and whole.
        words = {word for line in plan for word in re.findall(r"(?<= )[a-z]{2,}[,:]?(?= |$)", line)}
        equal(sorted(words - set(" ".join(lines).split())), [], f"words that break at {columns} columns")
        goes_on = [line for line in lines if re.match(r" {12}[^ ]", line)]
        check(goes_on, f"at {columns} columns lines go on under the second column", repr(lines[:16]))
    check(all(len(line) < 60 for line in on_terminal(60, "train", "--help")
              if not re.match(r"  (tinygpt|[a-z-]+ +[0-9])|usage", line)), "help in 60 columns")


def locale_c():
    """LC_ALL=C is asked for by who can read ASCII alone; no locale at all says nothing."""
    curve = train_args("--steps", "12")[:-2]
    for env, ascii_only in (({"LC_ALL": "C"}, True), ({"LC_ALL": "POSIX"}, True), ({"LANG": "C"}, True),
                            ({"LC_ALL": "C.UTF-8"}, False), ({"LC_ALL": "en_US.ISO-8859-1"}, True),
                            ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, True), ({}, False)):
        r = tinygpt(*curve, env=env)
        expect(r, 0, f"a run with {env}", out="loss  train")
        equal(r.out.isascii(), ascii_only, f"ASCII alone with {env}")
        check(ascii_only == (b"loss  train **" in r.out), f"the curve with {env}")


main(narrow_windows, locale_c)
