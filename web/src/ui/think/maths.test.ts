// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Probe } from '../../lib/types';
import {
  attentionMap,
  choices,
  crossEntropy,
  lensTable,
  logitsAt,
  losses,
  meanLoss,
  nextAt,
  rankOf,
  softmax,
  topK,
  totalVariation,
} from './maths';

/** Two layers, one head, three tokens of a vocabulary of four; logits count upwards. */
function probeOf(): Probe {
  const n = 3,
    layers = 2,
    vocab = 4;
  const lens = Float32Array.from({ length: (layers + 1) * n * vocab }, (_, i) => (i * 7) % 5);
  const attention = Float32Array.from({ length: layers * n * n }, (_, i) => i);
  return { tokens: Int32Array.of(1, 3, 0), layers, heads: 1, vocab, attention, lens };
}

describe('softmax', () => {
  it('sums to one and holds for logits far from zero', () => {
    for (const shift of [0, 1e4, -1e4]) {
      const p = softmax(Float32Array.of(shift, shift + 1, shift + 2));
      expect(p.reduce((a, b) => a + b)).toBeCloseTo(1, 12);
      expect((p[2] as number) / (p[1] as number)).toBeCloseTo(Math.E, 10);
    }
  });
});

describe('crossEntropy', () => {
  it('is -log of the softmax', () => {
    const logits = Float32Array.of(0.5, -2, 3, 1);
    const p = softmax(logits);
    for (let i = 0; i < 4; i++) {
      expect(crossEntropy(logits, i)).toBeCloseTo(-Math.log(p[i] as number), 12);
    }
  });
  it('stays finite where the probability underflows', () => {
    expect(crossEntropy(Float32Array.of(0, -2000), 1)).toBe(2000);
  });
  it('is log V for equal logits', () => {
    expect(crossEntropy(new Float32Array(256), 7)).toBeCloseTo(Math.log(256), 12);
  });
});

describe('topK', () => {
  it('agrees with sorting, ties in the order of ids', () => {
    const p = Array.from({ length: 50 }, (_, i) => ((i * 37) % 11) / 11);
    const sorted = p.map((x, id) => ({ id, p: x })).sort((a, b) => b.p - a.p || a.id - b.id);
    for (const k of [1, 2, 10, 50, 60]) expect(topK(p, k)).toEqual(sorted.slice(0, k));
  });
  it('knows the rank of each', () => {
    const p = [0.1, 0.4, 0.2, 0.3];
    expect(p.map((_, id) => rankOf(p, id))).toEqual([4, 1, 3, 2]);
  });
});

describe('views into a probe', () => {
  const probe = probeOf();
  it('cuts the right row of the lens', () => {
    expect([...logitsAt(probe, 2, 1)]).toEqual([28, 29, 30, 31].map((i) => (i * 7) % 5));
  });
  it('cuts the right map', () => {
    expect([...attentionMap(probe, 1, 0)]).toEqual([9, 10, 11, 12, 13, 14, 15, 16, 17]);
  });
  it('has a loss for each token that has a successor', () => {
    const each = losses(probe);
    expect(each.length).toBe(2);
    expect(each[0]).toBeCloseTo(-Math.log(nextAt(probe, 0)[3] as number), 12);
    expect(each[1]).toBeCloseTo(-Math.log(nextAt(probe, 1)[0] as number), 12);
    expect(meanLoss(probe)).toBeCloseTo(((each[0] as number) + (each[1] as number)) / 2, 12);
    expect(meanLoss(probe, 0)).not.toBeCloseTo(meanLoss(probe), 6);
  });
  it('makes the table of the lens', () => {
    const table = lensTable(probe);
    expect(table.length).toBe(3);
    expect(table[0]?.length).toBe(3);
    expect(table[1]?.[2]).toEqual(topK(nextAt(probe, 2, 1), 1)[0]);
  });
});

describe('distances', () => {
  it('total variation is 0, 1 and what is between', () => {
    expect(totalVariation([0.5, 0.5], [0.5, 0.5])).toBe(0);
    expect(totalVariation([1, 0], [0, 1])).toBe(1);
    expect(totalVariation([0.6, 0.4], [0.4, 0.6])).toBeCloseTo(0.2, 12);
  });
  it('counts equally likely choices', () => {
    expect(choices([0.25, 0.25, 0.25, 0.25])).toBeCloseTo(4, 10);
    expect(choices([1, 0])).toBe(1);
  });
});
