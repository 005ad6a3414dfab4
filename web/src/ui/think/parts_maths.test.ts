// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { Probe } from '../../lib/types';
import { answers, looksOf, raised } from './parts_maths';

/** Two bytes, one layer, one head, three possible bytes. */
const probe = {
  tokens: Int32Array.of(1, 2),
  layers: 1,
  heads: 1,
  vocab: 3,
  attention: Float32Array.of(1, 0, 0.2, 0.8),
  lens: Float32Array.of(0, 0, 0, 0, 0, 0, /* after the layer */ 0, 0, 0, 2, 1, 0),
} as unknown as Probe;

it('scores are what lies below the highest', () => {
  const looks = looksOf(probe, 0, 0, 1, 5);
  expect(looks.map((l) => l.at)).toEqual([1, 0]);
  expect(looks[0]?.score).toBe(0);
  expect(looks[1]?.score).toBeCloseTo(Math.log(0.2 / 0.8), 6);
});

it('a layer raises what it makes likelier, and nothing else', () => {
  const up = raised(probe, 0, 1, 3);
  expect(up.map((r) => r.id)).toEqual([0]);
  expect(up[0]?.p).toBeCloseTo(Math.exp(2) / (Math.exp(2) + Math.E + 1) - 1 / 3, 6);
});

it('a temperature divides the scores', () => {
  const [top, second] = answers(probe, 1, 0.5, 2);
  expect([top?.id, top?.logit]).toEqual([0, 2]);
  expect((top?.p ?? 0) / (second?.p ?? 1)).toBeCloseTo(Math.exp(2), 5);
  expect(answers(probe, 1, 100, 3).every((a) => Math.abs(a.p - 1 / 3) < 0.01)).toBe(true);
});
