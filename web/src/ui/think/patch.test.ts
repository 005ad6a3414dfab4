// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Pace } from './pace';
import { DOUBLE, doubleProbe } from './probe_double';
import {
  answersOf,
  firstDifference,
  logitDifference,
  patchGrid,
  patchProblem,
  recovered,
  type PatchCell,
} from './patch';

const donor = Int32Array.of(1, 4, 2);
const recipient = Int32Array.of(1, 1, 2);

describe('patchProblem', () => {
  it('says what is wrong in words', () => {
    expect(patchProblem(donor, recipient, 8)).toBe('');
    expect(patchProblem(donor, Int32Array.of(1), 8)).toMatch(/donor has 3, the recipient 1/);
    expect(patchProblem(donor, donor, 8)).toMatch(/equal/);
    expect(patchProblem(donor, recipient, 2)).toMatch(/2 bytes at most/);
    expect(patchProblem(donor, new Int32Array(0), 8)).toMatch(/at least one/);
  });
});

it('finds the first difference', () => {
  expect(firstDifference(donor, recipient)).toBe(1);
  expect(firstDifference(donor, donor)).toBe(-1);
});

describe('recovered', () => {
  it('is 0 for the recipient, 1 for the donor, and knows no answer without a span', () => {
    expect(recovered(2, 2, 5)).toBe(0);
    expect(recovered(5, 2, 5)).toBe(1);
    expect(recovered(1, 2, 4)).toBe(-0.5);
    expect(recovered(1, 2, 2)).toBeNaN();
  });
});

describe('patchGrid', () => {
  async function grid(part: 'block' | 'mlp'): Promise<[PatchCell[], number]> {
    const model = doubleProbe();
    const answers = answersOf(await model.probe(donor), await model.probe(recipient));
    const cells: PatchCell[] = [];
    const signal = new AbortController().signal;
    for await (const cell of patchGrid(
      model.probe,
      donor,
      recipient,
      part,
      answers,
      DOUBLE.layers,
      new Pace(),
      signal,
    ))
      cells.push(cell);
    return [cells, model.calls - 2];
  }

  it('covers every layer and position once', async () => {
    const [cells, calls] = await grid('block');
    expect(new Set(cells.map((c) => `${c.layer} ${c.position}`)).size).toBe(6);
    // Two runs a layer to compare with; the equal first column costs none.
    expect(calls).toBe(2 * (2 + 2));
  });

  it('recovers all at the end of the last layer, and nothing at the equal prefix', async () => {
    const [cells] = await grid('block');
    const at = (layer: number, position: number) =>
      cells.find((c) => c.layer === layer && c.position === position)?.recovered;
    expect(at(1, 2)).toBeCloseTo(1, 6);
    expect(at(1, 1)).toBe(0);
    expect(at(0, 0)).toBe(0);
    // After the first block the difference sits at the changed byte and, moved there by attention,
    // at the last one: neither has all of it.
    expect(at(0, 1)).toBeGreaterThan(0.01);
    expect(at(0, 2)).toBeGreaterThan(0.01);
    expect(at(0, 2)).toBeLessThan(0.99);
  });

  it('stops when it is cancelled', async () => {
    const model = doubleProbe();
    const control = new AbortController();
    const run = async () => {
      for await (const _ of patchGrid(
        model.probe,
        donor,
        recipient,
        'block',
        { donor: 3, recipient: 2 },
        2,
        new Pace(),
        control.signal,
      ))
        control.abort();
    };
    await expect(run()).rejects.toThrow();
  });
});

it('takes the tokens that tell the prompts apart for answers', async () => {
  const model = doubleProbe();
  const [a, b] = [await model.probe(donor), await model.probe(recipient)];
  const answers = answersOf(a, b);
  expect(answers.donor).not.toBe(answers.recipient);
  expect(logitDifference(a, answers)).toBeGreaterThan(logitDifference(b, answers));
});
