// SPDX-License-Identifier: Apache-2.0
/** hero_maths.ts - what the first screen draws, worked out from a probe. */
import type { Probe } from '../../lib/types';
import type { Character } from '../think/characters';
import { attentionMap, nextAt } from '../think/maths';

/** How much the last byte looks at each byte, over all layers and heads: sums to 1. */
export function lookedAt(probe: Probe): Float64Array {
  const n = probe.tokens.length;
  const mean = new Float64Array(n);
  const maps = probe.layers * probe.heads;
  for (let l = 0; l < probe.layers; l++) {
    for (let h = 0; h < probe.heads; h++) {
      const row = attentionMap(probe, l, h).subarray((n - 1) * n);
      for (let t = 0; t < n; t++) mean[t] = (mean[t] ?? 0) + (row[t] ?? 0) / maps;
    }
  }
  return mean;
}

/** The probabilities of what comes behind the text. */
export function nextOf(probe: Probe): Float64Array {
  return nextAt(probe, probe.tokens.length - 1);
}

/** Weights of bytes, added up over each character's. */
export function byCharacter(weights: ArrayLike<number>, characters: readonly Character[]): number[] {
  return characters.map(({ from, to }) => {
    let sum = 0;
    for (let i = from; i < to; i++) sum += weights[i] ?? 0;
    return sum;
  });
}

/** A draw by the probabilities, sharpened by a temperature below 1; `at` is a number in [0, 1). */
export function draw(p: ArrayLike<number>, temperature: number, at: number): number {
  let total = 0;
  const sharp = Array.from(p, (x) => {
    const y = x ** (1 / temperature);
    total += y;
    return y;
  });
  let rest = at * total;
  for (let id = 0; id < sharp.length; id++) {
    rest -= sharp[id] ?? 0;
    if (rest < 0) return id;
  }
  return sharp.lastIndexOf(Math.max(...sharp));
}
