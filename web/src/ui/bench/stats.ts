// SPDX-License-Identifier: Apache-2.0
/**
 * stats.ts - what a benchmark may say: medians, and an interval for the ratio of two builds.
 *
 * Times of one machine drift together (turbo, heat, neighbours), so builds run in turns, block by
 * block, and a ratio is formed inside each turn. The interval is that of the median of these paired
 * ratios by order statistics: with m pairs, the k-th smallest and the k-th largest enclose the true
 * median with probability 1 - 2 P(Bin(m, 1/2) < k), whatever the distribution is. No random
 * resampling is needed, and six pairs are the fewest that reach 95 %.
 */

export interface Ratio {
  median: number;
  /** The 95 % interval, or NaN for both when there are fewer than six pairs. */
  low: number;
  high: number;
  pairs: number;
}

function sorted(xs: readonly number[]): number[] {
  return [...xs].sort((a, b) => a - b);
}

export function median(xs: readonly number[]): number {
  const s = sorted(xs);
  const half = s.length >> 1;
  if (s.length === 0) return NaN;
  return s.length % 2 ? (s[half] as number) : ((s[half - 1] as number) + (s[half] as number)) / 2;
}

/** The largest k for which order statistics k and m + 1 - k cover the median; 0 if none does. */
export function intervalRank(m: number, coverage = 0.95): number {
  const tail = (1 - coverage) / 2;
  let binomial = 0.5 ** m;
  let below = 0;
  let k = 0;
  while (k < m / 2) {
    below += binomial;
    if (below > tail) break;
    k++;
    binomial *= (m - k + 1) / k;
  }
  return k;
}

/** How many times faster `times` is than `base`, pair by pair: base[i] / times[i]. */
export function pairedRatio(base: readonly number[], times: readonly number[]): Ratio {
  const pairs = Math.min(base.length, times.length);
  const ratios = sorted(
    Array.from({ length: pairs }, (_, i) => (base[i] as number) / (times[i] as number)),
  );
  const k = intervalRank(pairs);
  return {
    median: median(ratios),
    low: k === 0 ? NaN : (ratios[k - 1] as number),
    high: k === 0 ? NaN : (ratios[pairs - k] as number),
    pairs,
  };
}

/** The order of n builds in turn `turn`: the one that leads changes every second turn, and each
 * second turn runs backwards, so that no build always comes after the same one. */
export function turnOrder(n: number, turn: number): number[] {
  const order = Array.from({ length: n }, (_, i) => (i + (turn >> 1)) % n);
  return turn % 2 ? order.reverse() : order;
}
