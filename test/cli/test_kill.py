#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_kill.py - kills at random moments of runs that save every step (see killing.py)."""
import os
import tempfile

import util
from killing import kill_many


# test/long/kill.py makes 10,000.
KILLS = 60


def sixty_kills():
    # What SIGKILL leaves does not depend on the disk, and memory is faster.
    if os.access("/dev/shm", os.W_OK):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            os.chdir(folder)
            kill_many(KILLS, seed=1)
            os.chdir(util.root)
    else:
        kill_many(KILLS, seed=1)


util.main(sixty_kills)
