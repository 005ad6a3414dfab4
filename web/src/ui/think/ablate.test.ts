// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { compare, editsOf, nameOf, rowOf, sweep, type AblationResult } from './ablate';
import { meanLoss } from './maths';
import { Pace } from './pace';
import { DOUBLE, doubleProbe } from './probe_double';

const text = Int32Array.of(1, 2, 3, 5);

describe('rowOf', () => {
  it('has the block, its halves and every head', () => {
    expect(rowOf(1, 2).map(nameOf)).toEqual([
      'all of layer 2',
      'attention of layer 2',
      'MLP of layer 2',
      'head 1 of layer 2',
      'head 2 of layer 2',
    ]);
  });
  it('names a head in the edit only where there is one', () => {
    expect(editsOf({ layer: 1, part: 'mlp' })).toEqual([{ layer: 1, part: 'mlp', kind: 'zero' }]);
    expect(editsOf({ layer: 0, part: 'head', head: 1 })).toEqual([
      { layer: 0, part: 'head', head: 1, kind: 'zero' },
    ]);
  });
});

describe('sweep', () => {
  it('gives each part the change of the loss that it makes', async () => {
    const model = doubleProbe();
    const results: AblationResult[] = [];
    const signal = new AbortController().signal;
    for await (const r of sweep(
      model.probe,
      text,
      DOUBLE.layers,
      DOUBLE.heads,
      new Pace(),
      signal,
    )) {
      results.push(r);
    }
    expect(results.length).toBe(DOUBLE.layers * (3 + DOUBLE.heads));
    const base = await model.probe(text);
    const without = await model.probe(text, [{ layer: 1, part: 'attention', kind: 'zero' }]);
    const found = results.find((r) => r.ablation.layer === 1 && r.ablation.part === 'attention');
    expect(found?.added).toBeCloseTo(meanLoss(without) - meanLoss(base), 12);
    expect(found?.added).not.toBe(0);
    // The first block's MLP is 0 in this model: silencing it changes nothing.
    const idle = results.find((r) => r.ablation.layer === 0 && r.ablation.part === 'mlp');
    expect(idle).toMatchObject({ added: 0, shift: 0 });
  });

  it('stops when it is cancelled', async () => {
    const model = doubleProbe();
    const control = new AbortController();
    const run = async () => {
      for await (const _ of sweep(model.probe, text, 2, 2, new Pace(), control.signal))
        control.abort();
    };
    await expect(run()).rejects.toThrow();
    expect(model.calls).toBe(2);
  });
});

it('cancels a steady drift by a run before and one after', async () => {
  const shifted = async (by: number) => {
    const probe = await doubleProbe().probe(text);
    // Sharper logits at all depths: the loss falls as it does when a model learns.
    return { ...probe, lens: probe.lens.map((x) => x * (1 + by)) };
  };
  const [before, middle, after] = [await shifted(0), await shifted(0.001), await shifted(0.002)];
  const naive = Math.abs(compare({ layer: 0, part: 'block' }, before, middle).added);
  const paired = Math.abs(compare({ layer: 0, part: 'block' }, before, middle, after).added);
  expect(paired).toBeLessThan(naive / 100);
});

it('compares a run with itself to nothing', async () => {
  const base = await doubleProbe().probe(text);
  expect(compare({ layer: 0, part: 'block' }, base, base)).toMatchObject({ added: 0, shift: 0 });
});
