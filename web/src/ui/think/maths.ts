// SPDX-License-Identifier: Apache-2.0
/**
 * maths.ts - what the numbers of a probe mean: probabilities, losses, distances.
 *
 * A probe (lib/types.ts) of n tokens holds, row-major,
 *     lens       [L + 1, n, V]   logits at depth d = 0 (embedding alone) .. L (the whole model)
 *     attention  [L, H, n, n]    row = who looks, column = at whom
 * Losses are natural logarithms, as everywhere in the engine. Sums run in double.
 */
import type { Probe } from '../../lib/types';

export interface Ranked {
  id: number;
  p: number;
}

/** The logits at one depth and position: a view, not a copy. */
export function logitsAt(probe: Probe, depth: number, position: number): Float32Array {
  const at = (depth * probe.tokens.length + position) * probe.vocab;
  return probe.lens.subarray(at, at + probe.vocab);
}

/** exp(x - max) / sum: finite for every finite row. */
export function softmax(logits: Float32Array): Float64Array {
  let max = -Infinity;
  for (const x of logits) if (x > max) max = x;
  const p = new Float64Array(logits.length);
  let sum = 0;
  for (let i = 0; i < p.length; i++) sum += p[i] = Math.exp((logits[i] as number) - max);
  for (let i = 0; i < p.length; i++) p[i] = (p[i] as number) / sum;
  return p;
}

/** The probabilities of what comes after `position`, by the model as it ends after `depth`. */
export function nextAt(probe: Probe, position: number, depth = probe.layers): Float64Array {
  return softmax(logitsAt(probe, depth, position));
}

/** -log softmax(logits)[target], without forming the probabilities (none can underflow to 0). */
export function crossEntropy(logits: Float32Array, target: number): number {
  let max = -Infinity;
  for (const x of logits) if (x > max) max = x;
  let sum = 0;
  for (const x of logits) sum += Math.exp(x - max);
  return Math.log(sum) + max - (logits[target] as number);
}

/** The k likeliest, likeliest first; equal ones in the order of their ids. */
export function topK(p: ArrayLike<number>, k: number): Ranked[] {
  const best: Ranked[] = [];
  for (let id = 0; id < p.length; id++) {
    const value = p[id] as number;
    if (best.length === k && value <= (best[k - 1] as Ranked).p) continue;
    let at = best.length;
    while (at > 0 && (best[at - 1] as Ranked).p < value) at--;
    best.splice(at, 0, { id, p: value });
    if (best.length > k) best.pop();
  }
  return best;
}

/** The place of a token among all, 1 for the likeliest. */
export function rankOf(p: ArrayLike<number>, id: number): number {
  let rank = 1;
  for (let i = 0; i < p.length; i++) if ((p[i] as number) > (p[id] as number)) rank++;
  return rank;
}

/** Loss of each position's true next token: n - 1 numbers, since the last one has no successor. */
export function losses(probe: Probe, depth = probe.layers): Float64Array {
  const n = probe.tokens.length;
  const out = new Float64Array(Math.max(0, n - 1));
  for (let t = 0; t < out.length; t++) {
    out[t] = crossEntropy(logitsAt(probe, depth, t), probe.tokens[t + 1] as number);
  }
  return out;
}

/** Mean of losses(); NaN for a text of one token. */
export function meanLoss(probe: Probe, depth = probe.layers): number {
  const each = losses(probe, depth);
  let sum = 0;
  for (const x of each) sum += x;
  return sum / each.length;
}

/** Half the sum of |p - q|: 0 for equal distributions, 1 for disjoint ones. */
export function totalVariation(p: ArrayLike<number>, q: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < p.length; i++) sum += Math.abs((p[i] as number) - (q[i] as number));
  return sum / 2;
}

/** The entropy of a distribution, as the number of equally likely choices that has the same. */
export function choices(p: ArrayLike<number>): number {
  let h = 0;
  for (let i = 0; i < p.length; i++) {
    const x = p[i] as number;
    if (x > 0) h -= x * Math.log(x);
  }
  return Math.exp(h);
}

/** One head's map [n, n] as a view. */
export function attentionMap(probe: Probe, layer: number, head: number): Float32Array {
  const n = probe.tokens.length;
  const at = (layer * probe.heads + head) * n * n;
  return probe.attention.subarray(at, at + n * n);
}

export interface LensCell {
  id: number;
  p: number;
}

/** The lens as a table [depth][position] of the likeliest token and its probability. */
export function lensTable(probe: Probe): LensCell[][] {
  return Array.from({ length: probe.layers + 1 }, (_, depth) =>
    Array.from({ length: probe.tokens.length }, (_, t) => {
      const [top] = topK(nextAt(probe, t, depth), 1);
      return top ?? { id: 0, p: 0 };
    }),
  );
}
