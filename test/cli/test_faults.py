#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_faults.py - what a failing call of the system leaves behind, at some places (see faults.py)."""
import util
from faults import sweep


def some_calls_fail():
    sweep(most=2)


util.main(some_calls_fail)
