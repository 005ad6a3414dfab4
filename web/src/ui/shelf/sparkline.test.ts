// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { sparkline } from './sparkline';

it('goes from the first loss down to the last, within its box', () => {
  const points = sparkline({ steps: [1, 25, 100], losses: [5, 3, 1] });
  expect(points).toBe('10.0,2.0 50.0,20.0 100.0,38.0');
});

it('draws nothing of nothing, and a line of equal losses', () => {
  expect(sparkline({ steps: [], losses: [] })).toBe('');
  expect(sparkline({ steps: [3], losses: [2] })).toBe('');
  expect(sparkline({ steps: [1, 4], losses: [2, 2] })).toBe('50.0,2.0 100.0,2.0');
});
