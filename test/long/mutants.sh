#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mutants.sh: plausible faults, one at a time; the tests must notice 95 % of them.
exec python3 "$(dirname "$0")/../../tools/mutants/run.py" --jobs 2
