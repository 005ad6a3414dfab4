// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { RunStore } from './ports';
import { EarlierWeights, mostKept, surplus } from './weights';

function memoryStore(room: number): RunStore & { kept: Map<number, Blob> } {
  const kept = new Map<number, Blob>();
  return {
    kept,
    saveRun: async () => {},
    keepText: async () => 1,
    keepWeights: async (_, step, weights) => kept.size < room && !!kept.set(step, weights),
    dropWeights: async (_, step) => void kept.delete(step),
    loadWeights: async (_, step) => kept.get(step) ?? null,
    listWeights: async () => [...kept.keys()],
  };
}

it('keeps the early steps dense, and the first and the last always', async () => {
  const store = memoryStore(100);
  const weights = new EarlierWeights('a', store);
  for (let step = 0; step <= 3000; step += 10) {
    const sampled = step % 130 === 0;
    if (weights.wants(step, sampled, 1e6)) await weights.keep(step, new Blob([`${step}`]));
  }
  const { steps } = weights;
  expect(steps.length).toBe(12);
  expect(steps.slice(0, 4)).toEqual([0, 10, 30, 100]);
  expect(steps.at(-1)).toBe(2990);
  expect(await (await weights.at(30))?.text()).toBe('30');
  expect([...store.kept.keys()]).toEqual(steps);
  const later = new EarlierWeights('a', store);
  await later.find(100);
  expect(later.steps).toEqual([0, 10, 30, 100]);
});

it('keeps few of a large model, none of a huge one, and no more without room', async () => {
  expect([1.5e6, 26e6, 100e6].map(mostKept)).toEqual([12, 3, 0]);
  expect(surplus([0, 10, 30, 130, 260, 390])).toBe(260);
  const store = memoryStore(1);
  const weights = new EarlierWeights('a', store);
  for (const step of [0, 10, 30]) await weights.keep(step, new Blob(['x']));
  expect(weights.steps).toEqual([0]);
  expect(weights.wants(100, true, 1)).toBe(false);
});

it('keeps none of a file that is larger than was thought', async () => {
  const weights = new EarlierWeights('a', null);
  for (const step of [0, 10]) await weights.keep(step, { size: 60e6 } as Blob);
  expect(weights.steps).toEqual([]);
  expect(weights.wants(30, true, 1)).toBe(false);
});

it('keeps them in memory where there is no store', async () => {
  const weights = new EarlierWeights('a', null);
  await weights.keep(0, new Blob(['none']));
  expect(await (await weights.at(0))?.text()).toBe('none');
  expect(await weights.at(1)).toBeNull();
});
