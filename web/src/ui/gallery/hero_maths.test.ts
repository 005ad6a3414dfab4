// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { charactersOf } from '../think/characters';
import { byCharacter, draw, lookedAt } from './hero_maths';

it('averages the last row of every map', () => {
  const attention = Float32Array.from([1, 0, 0.25, 0.75, 1, 0, 0.75, 0.25]);
  const probe = {
    tokens: Int32Array.of(1, 2),
    layers: 1,
    heads: 2,
    vocab: 256,
    attention,
    lens: new Float32Array(0),
  } as unknown as Parameters<typeof lookedAt>[0];
  expect([...lookedAt(probe)]).toEqual([0.5, 0.5]);
});

it('adds up the bytes of a character', () => {
  const bytes = new TextEncoder().encode('a中');
  expect(byCharacter([1, 2, 3, 4], charactersOf(bytes))).toEqual([1, 9]);
});

it('draws by the probabilities', () => {
  expect([0, 0.24, 0.26, 0.99].map((at) => draw([0.25, 0.75], 1, at))).toEqual([0, 0, 1, 1]);
  // At half the temperature 1 : 3 becomes 1 : 9.
  expect([0.09, 0.11].map((at) => draw([0.25, 0.75], 0.5, at))).toEqual([0, 1]);
  expect(draw([0.2, 0.8], 1, 1)).toBe(1);
});
