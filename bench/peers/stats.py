# SPDX-License-Identifier: Apache-2.0
"""Paired ratios and what may be said about them.

Each pair is a block of one side and, right beside it in time, a block of the other, so that a
machine whose speed drifts slows both. The ratio of a pair is a sample; the claim is their median,
with an interval from order statistics: it assumes nothing about the distribution, and it cannot
be narrowed by drawing again.
"""

import math

MIN_PAIRS = 15
WIDEST = 0.03  # half the interval, relative to the median, beyond which nothing is claimed


def median(values):
    s = sorted(values)
    n = len(s)
    return s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2


def median_interval(values, confidence=0.95):
    """(low, high): order statistics that hold the median with at least this confidence.

    The number of samples below the median is binomial(n, 1/2). The k-th smallest and the k-th
    largest miss the median with probability 2 P(count < k); the largest k that keeps it is taken.
    """
    s = sorted(values)
    n = len(s)
    k, tail = 0, 0.0
    while True:
        tail += math.comb(n, k) / 2.0**n  # now P(count <= k): what k + 1 would cost on a side
        if 2 * tail > 1 - confidence:
            break
        k += 1
    if k == 0:
        return -math.inf, math.inf  # too few samples for any interval
    return s[k - 1], s[n - k]


def verdict(ratios):
    """Summary of the ratios peer time / our time: above 1 our side is faster."""
    mid = median(ratios)
    low, high = median_interval(ratios)
    half_width = (high - low) / 2 / mid
    if len(ratios) < MIN_PAIRS or half_width > WIDEST:
        word = "INCONCLUSIVE"
    elif low > 1:
        word = "ours faster"
    elif high < 1:
        word = "peer faster"
    else:
        word = "equal"
    return {"pairs": len(ratios), "median": mid, "low": low, "high": high,
            "half_width": half_width, "verdict": word}


def _check():
    assert median([3, 1, 2]) == 2 and median([4, 1, 2, 3]) == 2.5
    # n = 15: P(count <= 3) = 576 / 32768 = 0.0176 on a side, so the 4th and the 12th value.
    assert median_interval(range(1, 16)) == (4, 12)
    # n = 6 is the first size with an interval at all: 2 / 64 = 0.031.
    assert median_interval(range(1, 7)) == (1, 6)
    assert median_interval(range(1, 6)) == (-math.inf, math.inf)
    assert verdict([1.5 + 0.001 * i for i in range(15)])["verdict"] == "ours faster"
    assert verdict([0.5 + 0.001 * i for i in range(15)])["verdict"] == "peer faster"
    assert verdict([0.99 + 0.002 * i for i in range(15)])["verdict"] == "equal"
    assert verdict([1.0 + 0.05 * i for i in range(15)])["verdict"] == "INCONCLUSIVE"
    assert verdict([1.5] * 14)["verdict"] == "INCONCLUSIVE"
    print("stats: intervals and verdicts agree")


if __name__ == "__main__":
    _check()
