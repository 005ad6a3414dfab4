#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill.py - test/long/kill.py build [N]: 10,000 random kills, or N of them (see ../cli/killing.py).

On the disk that the temporary folder is on: fsync makes saves long, so that more kills hit them.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
n_kills = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
sys.argv = [sys.argv[0], os.path.join(sys.argv[1] if len(sys.argv) > 1 else "build", "tinygpt")]

import util  # noqa: E402
from killing import kill_many  # noqa: E402


def many_kills():
    seed = int.from_bytes(os.urandom(4), "little")  # printed at the end and with every failure
    util.say(f"seed {seed}")
    kill_many(n_kills, seed)


util.main(many_kills)
