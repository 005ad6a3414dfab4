#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/unit/base/math_cases.h: arguments and exact values of the functions of base/math.h.

Needs mpmath. Each value is given as two doubles whose sum is the true value to 106 bits, so that a
test can measure errors of a hundredth of a unit in the last place.

    python3 tools/oracle/base_math.py > test/unit/base/math_cases.h
"""
import random
import sys

from mpmath import mp, mpf
import mpmath

mp.prec = 300
random.seed(20261127)


def spread(low, high, n):
    """n doubles, evenly spread, none of them round."""
    return [random.uniform(low + (high - low) * i / n, low + (high - low) * (i + 1) / n)
            for i in range(n)]


def powers(low, high, n, signs=(1, -1)):
    """n doubles whose magnitudes are spread evenly over the binary exponents low..high."""
    return [random.choice(signs) * random.uniform(1, 2) * 2.0 ** round(low + (high - low) * i / (n - 1))
            for i in range(n)]


def near(points):
    """Doubles next to the given points."""
    return [float(mpf(p)) for p in points]


def worst_quarter_turns():
    """Doubles that come closest to a multiple of pi/2: little is left of them when it is taken off."""
    best = []
    for n in range(1, 640000):
        turns = n * mpmath.pi / 2
        x = float(turns)
        best.append((abs(mpf(x) - turns) / x, x))
    best.sort()
    return [x for _, x in best[:6]] + [-best[6][1]]


CASES = [
    ("exp", mpmath.exp, spread(-1, 1, 10) + spread(-745, 709, 20) + powers(-60, -3, 6) + [-744.9, 709.7]),
    ("expm1", mpmath.expm1, spread(-1, 1, 12) + spread(-39, 709, 14) + powers(-1000, -3, 8)),
    ("log", mpmath.log, spread(0.5, 2, 14) + powers(-1074, 1023, 14, (1,)) + near([1 + 2 ** -52, 1 - 2 ** -53])),
    ("log1p", mpmath.log1p, spread(-0.99, 1, 14) + powers(-1000, 100, 12, (1,)) + powers(-60, -2, 6)),
    ("sin", mpmath.sin, spread(-7, 7, 14) + spread(-1e6, 1e6, 14) + powers(-500, -3, 5) + worst_quarter_turns()),
    ("cos", mpmath.cos, spread(-7, 7, 14) + spread(-1e6, 1e6, 14) + powers(-30, -3, 5) + worst_quarter_turns()),
    ("tanh", mpmath.tanh, spread(-1, 1, 14) + spread(-21, 21, 10) + powers(-1000, -3, 6)),
    ("erf", mpmath.erf, spread(-1, 1, 14) + spread(-5.9, 5.9, 12) + powers(-1000, -3, 6)),
    ("erfc", mpmath.erfc, spread(-5.9, 0.5, 8) + spread(0.5, 6, 14) + spread(6, 26.5, 14)),
]
POW = [(b, e) for b, e in zip(spread(0, 10, 16), spread(-40, 40, 16))]
POW += [(0.9, float(t)) for t in (1, 2, 10, 100, 1000)] + [(0.999, float(t)) for t in (1, 7, 1000, 100000)]
POW += [(10000.0, -i / 64) for i in (1, 2, 31, 63)]
POW += [(1 + 2 ** -52, 2.0 ** 60), (1 - 2 ** -53, 2.0 ** 60), (1e300, -1.02), (5e-324, 0.5), (-2.5, 3.0), (-0.1, -7.0)]


def row(name, x, y, value):
    high = float(value)
    low = float(value - mpf(high))
    return f"    X({name}, {float(x).hex()}, {float(y).hex()}, {high.hex()}, {low.hex()})"


def main():
    rows = [row(name, x, 0.0, f(mpf(x))) for name, f, xs in CASES for x in xs]
    rows += [row("pow", x, y, mpmath.power(mpf(x), mpf(y))) for x, y in POW]
    print("/*\n * math_cases.h - values of elementary functions, written by tools/oracle/base_math.py.\n"
          " *\n * X(function, x, y, high, low): f(x), or f(x, y) for pow, is high + low to 106 bits.\n */")
    print("/* clang-format off */\n#ifndef TG_TEST_MATH_CASES_H\n#define TG_TEST_MATH_CASES_H\n")
    print("#define MATH_CASES(X) \\")
    print(" \\\n".join(rows))
    print("\n#endif")
    print(len(rows), "cases", file=sys.stderr)


main()
