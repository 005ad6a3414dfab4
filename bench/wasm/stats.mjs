// SPDX-License-Identifier: Apache-2.0
/*
 * stats.mjs - medians and their intervals, as bench/peers/stats.py has them: order statistics, which
 * assume nothing about a distribution.
 */
export function median(values) {
  const s = [...values].sort((a, b) => a - b), n = s.length;
  return n % 2 ? s[(n - 1) / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
}

/* The count of values below the median is binomial(n, 1/2): as many are cut off on each side as
 * leave 95 %. Fewer than six values have no interval. */
export function summary(values) {
  const s = [...values].sort((a, b) => a - b), n = s.length;
  let k = 0;
  for (let ways = 1, below = 1; 2 * below <= 0.05 * 2 ** n; k++) {
    ways = (ways * (n - k)) / (k + 1);
    below += ways;
  }
  return k ? { median: median(s), low: s[k - 1], high: s[n - k], n } : { median: median(s), n };
}
