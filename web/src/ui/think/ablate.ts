// SPDX-License-Identifier: Apache-2.0
/**
 * ablate.ts - what a part of the model is worth: silence it, run the same text again, and see how
 * much worse the predictions become.
 *
 * A sweep runs on a model that stands still (freeze.ts), where it can. Where the model moves, the
 * untouched run that a row is compared with is made just before that row; a single look takes one
 * before and one after, and the middle of the two, which cancels a drift that is the same for both.
 */
import type { Edit, Probe } from '../../lib/types';
import { meanLoss, nextAt, totalVariation } from './maths';
import type { Pace } from './pace';

/** Model.probe of whatever model is looked at. */
export type ProbeFn = (prompt: Int32Array, edits?: Edit[], donor?: Int32Array) => Promise<Probe>;

export type Part = Edit['part'];

export interface Ablation {
  layer: number;
  part: Part;
  /** Of part `head`. */
  head?: number;
}

export interface AblationResult {
  ablation: Ablation;
  /** Mean loss of the untouched run, and how much the ablation adds to it. */
  baseLoss: number;
  added: number;
  /** Mean over positions of the total variation between the two next-byte distributions. */
  shift: number;
}

/** One row of the table: the whole block, its two halves, then each head. */
export function rowOf(layer: number, heads: number): Ablation[] {
  return [
    { layer, part: 'block' },
    { layer, part: 'attention' },
    { layer, part: 'mlp' },
    ...Array.from({ length: heads }, (_, head): Ablation => ({ layer, part: 'head', head })),
  ];
}

export function editsOf(a: Ablation): Edit[] {
  return [
    a.head === undefined
      ? { layer: a.layer, part: a.part, kind: 'zero' }
      : { layer: a.layer, part: a.part, head: a.head, kind: 'zero' },
  ];
}

/** A name that a person can read; layers and heads are counted from 1, as on the page. */
export function nameOf(a: Ablation): string {
  const where = `layer ${a.layer + 1}`;
  switch (a.part) {
    case 'block':
      return `all of ${where}`;
    case 'attention':
      return `attention of ${where}`;
    case 'mlp':
      return `MLP of ${where}`;
    case 'head':
      return `head ${(a.head ?? 0) + 1} of ${where}`;
  }
}

/** `after` is a second untouched run, from after the changed one. */
export function compare(
  ablation: Ablation,
  base: Probe,
  changed: Probe,
  after: Probe = base,
): AblationResult {
  const n = base.tokens.length;
  let shift = 0;
  for (let t = 0; t < n; t++) shift += totalVariation(nextAt(base, t), nextAt(changed, t)) / n;
  const baseLoss = (meanLoss(base) + meanLoss(after)) / 2;
  return { ablation, baseLoss, added: meanLoss(changed) - baseLoss, shift };
}

/** All ablations of the model, row by row, each result as soon as it is there. */
export async function* sweep(
  probe: ProbeFn,
  tokens: Int32Array,
  layers: number,
  heads: number,
  pace: Pace,
  signal: AbortSignal,
): AsyncGenerator<AblationResult, void, undefined> {
  for (let layer = 0; layer < layers; layer++) {
    const base = await pace.run(() => probe(tokens), signal);
    for (const ablation of rowOf(layer, heads)) {
      const changed = await pace.run(() => probe(tokens, editsOf(ablation)), signal);
      yield compare(ablation, base, changed);
    }
  }
}
