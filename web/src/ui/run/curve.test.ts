// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { StepReport } from '../../lib/types';
import { Curve, MOST } from './curve';

export function report(step: number, loss: number, valLoss = NaN): StepReport {
  return {
    step,
    loss,
    valLoss,
    valIsBest: false,
    lr: 1e-3,
    gradNorm: 1,
    ms: 10,
    tokPerS: 1000,
    shareOfPeak: 0.5,
    lossHash: '0123456789abcdef',
    skipped: false,
    earlyStop: false,
    badTensor: '',
    bitsPerByte: NaN,
    valBitsPerByte: NaN,
  };
}

describe('Curve', () => {
  it('keeps a short run whole', () => {
    const c = new Curve();
    for (let i = 1; i <= 100; i++) c.add(report(i, 5 - i / 50, i % 10 === 0 ? 4 : NaN));
    expect(c.step).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
    expect(c.checks().map((v) => v.step)).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
  });

  it('thins a long one, and keeps every check, the order and the newest point', () => {
    const c = new Curve();
    const steps = 100_003;
    let newest = true;
    for (let i = 1; i <= steps; i++) {
      c.add(report(i, 2, i % 1000 === 7 ? 2.5 : NaN));
      newest &&= c.step.at(-1) === i;
    }
    expect(newest).toBe(true);
    expect(c.length).toBeLessThanOrEqual(MOST + 1);
    expect(c.length).toBeGreaterThan(MOST / 3);
    expect(c.checks()).toHaveLength(100);
    const { step } = c;
    expect(step.every((s, i) => i === 0 || s > (step[i - 1] ?? 0))).toBe(true);
    for (const column of [c.loss, c.smooth, c.val, c.lr, c.gradNorm, c.tokPerS]) {
      expect(column).toHaveLength(c.length);
    }
  });

  it('smooths noise but follows the fall at the start', () => {
    const c = new Curve();
    for (let i = 1; i <= 10; i++) c.add(report(i, 5.5 - i * 0.2));
    expect(c.smoothed).toBeCloseTo(3.5, 5);
    for (let i = 11; i <= 2000; i++) c.add(report(i, 2 + (i % 2 ? 0.5 : -0.5)));
    expect(Math.abs(c.smoothed - 2)).toBeLessThan(0.05);
  });

  it('does not let a number that is none into the mean', () => {
    const c = new Curve();
    c.add(report(1, 3));
    c.add(report(2, NaN));
    expect(c.smoothed).toBe(3);
  });

  it('is drawn again from a history', () => {
    const c = Curve.of([
      { step: 1, loss: 5, valLoss: NaN },
      { step: 9, loss: 4, valLoss: 4.5 },
    ]);
    expect(c.step).toEqual([1, 9]);
    expect(c.checks()).toEqual([{ step: 9, loss: 4.5 }]);
    expect(c.checksIfNew()).toHaveLength(1);
    c.add(report(10, 4));
    expect(c.checksIfNew()).toEqual([]);
  });
});
