// SPDX-License-Identifier: Apache-2.0
/**
 * patch.ts - activation patching between two prompts of one length. The recipient is run again and
 * again, each time with one activation (a block's output, or its attention's or MLP's, at one
 * position) taken from the donor's run. What is watched is the logit difference at the end,
 *
 *     D = logit(donor's answer) - logit(recipient's answer)
 *
 * and the share of it that the one activation brings along:
 *
 *     recovered = (D patched - D recipient) / (D donor - D recipient)
 *
 * 0: the activation carries nothing of what tells the prompts apart; 1: it carries all of it;
 * below 0: it pushes the other way. (Method: Meng et al. 2022, arXiv 2202.05262; normalisation: Wang
 * et al. 2022, arXiv 2211.00593.)
 *
 * A causal model's activations before the first byte in which the prompts differ are equal, so
 * these columns are 0 without a run.
 */
import type { Edit, Probe } from '../../lib/types';
import type { ProbeFn } from './ablate';
import { logitsAt, nextAt } from './maths';
import type { Pace } from './pace';

export interface PatchCell {
  layer: number;
  position: number;
  recovered: number;
}

/** The two next tokens between which the prompts make the difference. */
export interface Answers {
  donor: number;
  recipient: number;
}

/** A part of which one position can be taken over. */
export type PatchPart = Exclude<Edit['part'], 'head'>;

/** The first position at which the prompts differ, or -1 if they are equal. */
export function firstDifference(a: Int32Array, b: Int32Array): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return i;
  return -1;
}

/** Why these prompts can't be patched, or '' if they can. */
export function patchProblem(donor: Int32Array, recipient: Int32Array, ctx: number): string {
  if (donor.length === 0 || recipient.length === 0) return 'Both prompts need at least one byte.';
  if (donor.length !== recipient.length) {
    return (
      `Both prompts must have the same length in bytes: the donor has ${donor.length}, ` +
      `the recipient ${recipient.length}.`
    );
  }
  if (donor.length > ctx) {
    return `The model sees ${ctx} bytes at most; the prompts have ${donor.length}.`;
  }
  if (firstDifference(donor, recipient) < 0) return 'The prompts are equal: nothing can change.';
  return '';
}

/** The tokens whose probability at the end the donor raises most, and lowers most. */
export function answersOf(donor: Probe, recipient: Probe): Answers {
  const last = donor.tokens.length - 1;
  const p = nextAt(donor, last);
  const q = nextAt(recipient, last);
  let up = 0;
  let down = 0;
  for (let id = 1; id < p.length; id++) {
    const raised = (p[id] as number) - (q[id] as number);
    if (raised > (p[up] as number) - (q[up] as number)) up = id;
    if (raised < (p[down] as number) - (q[down] as number)) down = id;
  }
  return { donor: up, recipient: down };
}

/** D of the head comment, at the last position. */
export function logitDifference(probe: Probe, answers: Answers): number {
  const logits = logitsAt(probe, probe.layers, probe.tokens.length - 1);
  return (logits[answers.donor] as number) - (logits[answers.recipient] as number);
}

/** NaN where the prompts make no difference that could be recovered. */
export function recovered(patched: number, recipient: number, donor: number): number {
  const span = donor - recipient;
  return Math.abs(span) < 1e-6 ? NaN : (patched - recipient) / span;
}

/**
 * The grid, from the last layer to the first, cell by cell, on a model that stands still where that
 * is possible (freeze.ts). Where it moves, donor and recipient are run anew for each layer.
 */
export async function* patchGrid(
  probe: ProbeFn,
  donor: Int32Array,
  recipient: Int32Array,
  part: PatchPart,
  answers: Answers,
  layers: number,
  pace: Pace,
  signal: AbortSignal,
): AsyncGenerator<PatchCell, void, undefined> {
  const first = firstDifference(donor, recipient);
  for (let layer = layers - 1; layer >= 0; layer--) {
    const from = logitDifference(await pace.run(() => probe(recipient), signal), answers);
    const to = logitDifference(await pace.run(() => probe(donor), signal), answers);
    for (let position = 0; position < recipient.length; position++) {
      if (position < first) {
        yield { layer, position, recovered: 0 };
        continue;
      }
      const edit: Edit = { layer, part, position, kind: 'donor' };
      const patched = await pace.run(() => probe(recipient, [edit], donor), signal);
      yield { layer, position, recovered: recovered(logitDifference(patched, answers), from, to) };
    }
  }
}
