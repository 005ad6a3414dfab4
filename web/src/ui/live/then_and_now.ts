// SPDX-License-Identifier: Apache-2.0
/**
 * then_and_now.ts - one beginning, written on by the model as it was at an earlier step and as it was
 * last kept. The draws are the same at every step: what differs is what it has learnt.
 */
import { whenEngine } from '../engine';
import { plainError } from '../plain_error';
import { controller, runState } from '../state/run';
import { Store } from '../store';

const TOKENS = 120;
const SEED = 1;
/** Texts that were written once are not written again. */
const MOST_WRITTEN = 64;

export interface Written {
  step: number;
  prompt: string;
  text: string;
}

export interface ThenAndNow {
  then: Written | null;
  now: Written | null;
  writing: boolean;
  problem: string;
}

const NOTHING: ThenAndNow = { then: null, now: null, writing: false, problem: '' };
export const thenAndNow = new Store<ThenAndNow>(NOTHING);

const written = new Map<string, Written>();
let control: AbortController | null = null;

/** Writes at both steps; what was being written is stopped, and nothing is written without steps. */
export async function writeThenAndNow(
  then: number | null,
  now: number | null,
  prompt: string,
): Promise<void> {
  stop();
  if (now === null) {
    thenAndNow.set(NOTHING);
    return;
  }
  const { signal } = (control = new AbortController());
  thenAndNow.patch({ writing: true, problem: '' });
  try {
    // The earlier one first: that is what somebody has just chosen.
    const before = then === null ? null : await writeAt(then, prompt, signal);
    if (signal.aborted) return;
    thenAndNow.patch({ then: before });
    const after = await writeAt(now, prompt, signal);
    if (!signal.aborted) thenAndNow.patch({ now: after, writing: false });
  } catch (e) {
    if (!signal.aborted) thenAndNow.patch({ writing: false, problem: plainError(e) });
  }
}

/** Stops, and what was written is shown no more. */
export function leaveThenAndNow(): void {
  stop();
  thenAndNow.set(NOTHING);
}

function stop(): void {
  control?.abort();
  control = null;
  thenAndNow.patch({ writing: false });
}

async function writeAt(step: number, prompt: string, signal: AbortSignal): Promise<Written | null> {
  const key = `${runState().id} ${step} ${prompt}`;
  const before = written.get(key);
  if (before) return before;
  const weights = await controller.weightsAt(step);
  if (!weights || signal.aborted) return null;
  const model = await (await whenEngine()).openModel(weights);
  let text = '';
  try {
    const session = await model.session();
    const o = { tokens: TOKENS, temperature: 0.8, topP: 0.95, seed: SEED, signal };
    const pieces = session.generate(prompt, o);
    // The numbers are not asked for; a stop must not leave an unheard rejection.
    pieces.stats.catch(() => {});
    for await (const piece of pieces) text += piece.text;
    session.free();
  } finally {
    model.free();
  }
  if (signal.aborted) return null;
  const made = { step, prompt, text };
  if (written.size >= MOST_WRITTEN) written.clear();
  written.set(key, made);
  return made;
}
