#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compare training speed with PyTorch on this machine: makes a virtual environment of its own under
# build/ on the first run, then hands all arguments to train.py (see there, or run.sh --help).
#
#     bench/peers/run.sh --presets small,medium --modes eager
#
# PEERS_PYTHON names a Python that has torch and numpy already; then nothing is installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../../build/peers-venv
torch=2.13.0
numpy=2.4.6

# Both would pick OpenBLAS's kernel in place of its own detection.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

if [ -z "${PEERS_PYTHON:-}" ]; then
    PEERS_PYTHON=$venv/bin/python
    if ! "$PEERS_PYTHON" 2>/dev/null -c "import numpy, torch
assert torch.__version__.split('+')[0] == '$torch' and numpy.__version__ == '$numpy'"; then
        echo "run.sh: installing torch $torch and numpy $numpy into $venv" >&2
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet "torch==$torch" "numpy==$numpy"
    fi
fi
exec "$PEERS_PYTHON" "$here/train.py" "$@"
