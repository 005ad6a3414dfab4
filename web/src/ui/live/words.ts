// SPDX-License-Identifier: Apache-2.0
/**
 * words.ts - what the numbers of a run mean, for somebody who sees them for the first time.
 *
 * A loss is the mean surprise about the next byte, in nats. exp(loss) is easier: among how many
 * equally likely tokens the model still hesitates. All of its vocabulary at the start; of English
 * letters about 22 when it knows how frequent each is, about 11 when it looks at the one before.
 */
import { count } from '../format';
import type { Settings } from '../run/settings';

/** What guessing among all tokens costs, which 256 are bytes. */
export function guessing(vocab: number): number {
  return Math.log(vocab);
}

/** What it guesses, one by one. */
export type Unit = 'byte' | 'character' | 'token';

/** What a text is read in is called: bytes of plain English are characters. */
export function unitOf(tokens: Settings['tokens'], ascii: boolean): Unit {
  if (tokens === 'bytes') return ascii ? 'character' : 'byte';
  return tokens === 'chars' ? 'character' : 'token';
}

/** Among how many characters it hesitates. */
export function choices(loss: number): string {
  const n = Math.exp(loss);
  if (!Number.isFinite(n)) return '–';
  if (n >= 9.95) return Math.round(n).toString();
  return n.toFixed(1);
}

/** One sentence about a run's loss: what the number says, and no more. */
export function meaning({ loss, vocab, unit }: { loss: number; vocab: number; unit: Unit }): string {
  if (!Number.isFinite(loss)) return '';
  if (loss > guessing(vocab) + 0.3) return 'Worse than guessing. The learning rate may be too high.';
  if (loss > guessing(vocab) - 0.345) {
    return `It hesitates between all ${count(vocab)} ${unit}s: it knows nothing yet.`;
  }
  const n = `It hesitates between about ${choices(loss)} ${unit}s`;
  return loss > BY_HEART ? `${n} each time.` : `${n}: next to nothing surprises it.`;
}

/** Below this loss a text is predictable, or known: there is nothing left to learn from it. */
export const BY_HEART = 0.3;
