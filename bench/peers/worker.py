# SPDX-License-Identifier: Apache-2.0
"""A side of a comparison: a process that lives through all blocks and runs one when told to.

    it prints   {"ready": true, ...}      once, when it has warmed up
    it reads    go                        and answers {"ms": [t, t, ...]}, one number a step
    it reads    quit                      and ends

Both sides speak this, so neither pays for starting up inside a measurement, and the other one
sleeps on its standard input meanwhile. What a side says on standard error is shown if it fails.
"""

import json
import os
import selectors
import subprocess
import tempfile
import time


class SideFailed(Exception):
    """A side ended, fell silent, or said what nobody understands."""


class Side:
    def __init__(self, name, command, env=None):
        self.name = name
        self.errors = tempfile.TemporaryFile()
        self.pending = b""
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=self.errors, env=env)
        except OSError as e:
            raise SideFailed(f"{name}: {command[0]}: {e.strerror}") from e
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def fail(self, why):
        self.process.kill()
        self.process.wait()
        self.errors.seek(0)
        said = self.errors.read()[-1500:].decode(errors="replace").strip()
        raise SideFailed(f"{self.name}: {why}" + (f"; it said:\n{said}" if said else ""))

    def read_json(self, timeout_s):
        """The next line as JSON, waiting at most timeout_s."""
        end = time.monotonic() + timeout_s
        while b"\n" not in self.pending:
            if not self.selector.select(max(0.0, end - time.monotonic())):
                self.fail(f"no answer in {timeout_s:.0f} s")
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                self.fail(f"ended with exit code {self.process.wait()}")
            self.pending += part
        line, self.pending = self.pending.split(b"\n", 1)
        try:
            return json.loads(line)
        except ValueError:
            self.fail(f"want a line of JSON, have {line[:200]!r}")

    def ready(self, timeout_s=300):
        answer = self.read_json(timeout_s)
        if answer.get("ready") is not True:
            self.fail(f"want ready, have {answer}")
        return answer

    def block(self, timeout_s=300):
        """Run one block; milliseconds of its steps."""
        try:
            self.process.stdin.write(b"go\n")
            self.process.stdin.flush()
        except OSError:
            self.fail("does not read")
        answer = self.read_json(timeout_s)
        ms = answer.get("ms")
        if not ms or not all(isinstance(t, (int, float)) and t > 0 for t in ms):
            self.fail(f"want a list of milliseconds, have {answer}")
        return [float(t) for t in ms]

    def quit(self):
        if self.process.poll() is None:
            try:
                self.process.communicate(b"quit\n", timeout=20)
            except (subprocess.TimeoutExpired, OSError):
                self.process.kill()
                self.process.wait()
        self.selector.close()
        self.errors.close()
