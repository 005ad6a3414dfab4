// SPDX-License-Identifier: Apache-2.0
/** parts_maths.ts - the numbers behind the parts of the drawn model, from a probe. */
import type { Probe } from '../../lib/types';
import { attentionMap, logitsAt, nextAt, type Ranked, topK } from './maths';

/** Where one head looks from a byte, with its scores: q·k, counted down from the highest. */
export interface Look {
  at: number;
  weight: number;
  score: number;
}

/** softmax keeps differences of scores: ln(w / highest w) is what a score lies below the highest. */
export function looksOf(
  probe: Probe,
  layer: number,
  head: number,
  position: number,
  count: number,
): Look[] {
  const n = probe.tokens.length;
  const row = attentionMap(probe, layer, head).subarray(position * n, position * n + position + 1);
  const best = topK(row, count);
  const top = best[0]?.p ?? 1;
  return best.map(({ id, p }) => ({ at: id, weight: p, score: Math.log(p / top) }));
}

/** What a layer made likelier, and by how much: the largest gains of probability. */
export function raised(probe: Probe, layer: number, position: number, count: number): Ranked[] {
  const before = nextAt(probe, position, layer);
  const after = nextAt(probe, position, layer + 1);
  const gains = Float64Array.from(after, (p, i) => p - (before[i] ?? 0));
  return topK(gains, count).filter((r) => r.p > 0);
}

export interface Scored {
  id: number;
  logit: number;
  p: number;
}

/** The likeliest next bytes with their scores, at a temperature. */
export function answers(
  probe: Probe,
  position: number,
  temperature: number,
  count: number,
): Scored[] {
  const logits = logitsAt(probe, probe.layers, position);
  const best = topK(logits, count);
  const top = best[0]?.p ?? 0;
  let sum = 0;
  for (const x of logits) sum += Math.exp((x - top) / temperature);
  return best.map(({ id, p: logit }) => ({
    id,
    logit,
    p: Math.exp((logit - top) / temperature) / sum,
  }));
}
