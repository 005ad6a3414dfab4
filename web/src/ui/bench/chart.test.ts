// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { ticksUpTo } from './chart';

describe('ticksUpTo', () => {
  it('is round and short', () => {
    expect(ticksUpTo(4.3)).toEqual([0, 1, 2, 3, 4]);
    expect(ticksUpTo(12)).toEqual([0, 5, 10]);
    expect(ticksUpTo(9.9)).toEqual([0, 2, 4, 6, 8]);
    expect(ticksUpTo(1.1)).toEqual([0, 0.5, 1]);
    for (const max of [0.3, 1, 3, 7, 16, 45, 130]) {
      const ticks = ticksUpTo(max);
      expect(ticks.length).toBeGreaterThan(1);
      expect(ticks.length).toBeLessThanOrEqual(6);
    }
  });
});
