#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""faults.py - test/long/faults.py build [N [COMMAND..]]: every call of every command that writes fails,
or N of each kind; of the named commands alone, to go through them in pieces (see ../cli/faults.py).
"""
import os
import sys

# The folder of the short tests comes first: this file has the name of its module.
sys.path[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli")
most = int(sys.argv[2]) if len(sys.argv) > 2 else 10**9
names = sys.argv[3:]
sys.argv = [sys.argv[0], os.path.join(sys.argv[1] if len(sys.argv) > 1 else "build", "tinygpt")]

import util  # noqa: E402
from faults import sweep  # noqa: E402


def every_call_fails():
    sweep(most, names)


util.main(every_call_fails)
