// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { nextSave } from './save_times';

/** The times of saves that take so long each, of the first minute. */
function times(took: number): number[] {
  const all: number[] = [];
  for (let now = 0; now < 60_000; ) {
    now = Math.max(now, nextSave(0, now, took));
    all.push(now);
    now += took;
  }
  return all;
}

it('saves once a second where that costs little', () => {
  expect(times(20).slice(0, 3)).toEqual([1000, 2000, 3020]);
  expect(times(20).length).toBeGreaterThan(55);
});

it('saves early all the same where it costs much, and then a twentieth of the time', () => {
  const slow = times(500);
  expect(slow.slice(0, 4)).toEqual([1000, 2000, 5000, 10_000]);
  expect(slow[4]).toBe(10_500 + 10_000);
});
