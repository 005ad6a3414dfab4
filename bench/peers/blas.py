# SPDX-License-Identifier: Apache-2.0
"""Rate of OpenBLAS's sgemm as numpy brings it: what the machine gives to a matrix product.

    python blas.py [--threads 2] [--size 2048] [--reps 7]

A process of its own, since OpenBLAS picks threads and kernel when it is loaded. Prints one JSON
object: the best rate in GFLOP/s, all of them, and the kernel that was picked.
"""

import argparse
import ctypes
import json
import os
import time


def corename():
    """The kernel OpenBLAS chose, asked of the library that this process has loaded."""
    with open("/proc/self/maps") as maps:
        paths = sorted({line.split()[-1] for line in maps if "openblas" in line.lower()})
    for path in paths:
        lib = ctypes.CDLL(path)
        for symbol in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename",
                       "openblas_get_corename64_", "openblas_get_corename"):
            if hasattr(lib, symbol):
                ask = getattr(lib, symbol)
                ask.restype = ctypes.c_char_p
                return ask().decode()
    return "unknown (no OpenBLAS in this process)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--reps", type=int, default=7)
    args = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = str(args.threads)
    import numpy as np  # after the thread count is set, which is read when it loads

    n = args.size
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    out = np.empty((n, n), np.float32)
    np.matmul(a, b, out=out)
    rates = []
    for _ in range(args.reps):
        start = time.perf_counter()
        np.matmul(a, b, out=out)
        rates.append(2.0 * n**3 / (time.perf_counter() - start) / 1e9)
    print(json.dumps({"size": n, "threads": args.threads, "gflops": max(rates), "all": rates,
                      "kernel": corename(), "numpy": np.__version__}))


if __name__ == "__main__":
    main()
