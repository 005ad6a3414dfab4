// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { intervalRank, median, pairedRatio, turnOrder } from './stats';

describe('median', () => {
  it('takes the middle, or the mean of the two middle ones', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([])).toBeNaN();
  });
});

describe('intervalRank', () => {
  it('agrees with the tables of the sign test', () => {
    // From the binomial tables: n = 6..8 -> 1, 9..11 -> 2, 12..14 -> 3, 15 and 16 -> 4.
    expect([5, 6, 8, 9, 11, 12, 14, 15, 16, 17, 20].map((n) => intervalRank(n))).toEqual([
      0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6,
    ]);
  });

  it('covers the true median as often as promised', () => {
    let state = 12345;
    const uniform = () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 2 ** 32;
    };
    let covered = 0;
    const runs = 4000;
    for (let r = 0; r < runs; r++) {
      // Skewed on purpose: exp(uniform) with median exp(0.5).
      const ratios = Array.from({ length: 9 }, () => Math.exp(uniform()));
      const { low, high } = pairedRatio(
        ratios,
        ratios.map(() => 1),
      );
      if (low <= Math.exp(0.5) && Math.exp(0.5) <= high) covered++;
    }
    expect(covered / runs).toBeGreaterThan(0.95);
    expect(covered / runs).toBeLessThan(0.975);
  });
});

describe('pairedRatio', () => {
  it('cancels a drift that both sides share', () => {
    const drift = [1, 1.5, 3, 0.8, 2, 1.1, 5];
    const ratio = pairedRatio(
      drift.map((d) => 40 * d),
      drift.map((d) => 10 * d),
    );
    expect(ratio.median).toBeCloseTo(4, 12);
    expect(ratio.low).toBeCloseTo(4, 12);
    expect(ratio.high).toBeCloseTo(4, 12);
    expect(ratio.pairs).toBe(7);
  });

  it('gives no interval for few pairs', () => {
    const ratio = pairedRatio([2, 4], [1, 1]);
    expect(ratio.median).toBe(3);
    expect(ratio.low).toBeNaN();
    expect(ratio.high).toBeNaN();
  });
});

describe('turnOrder', () => {
  it('is a permutation in which everyone leads', () => {
    const leaders = new Set<number>();
    for (let turn = 0; turn < 8; turn++) {
      const order = turnOrder(4, turn);
      expect([...order].sort()).toEqual([0, 1, 2, 3]);
      leaders.add(order[0] as number);
    }
    expect(leaders.size).toBe(4);
  });
});
