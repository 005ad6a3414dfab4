// SPDX-License-Identifier: Apache-2.0
/**
 * words.ts - what the numbers of a run mean, for somebody who sees them for the first time.
 *
 * A loss is the mean surprise about the next byte, in nats. exp(loss) is easier: among how many
 * equally likely characters the model still hesitates. 256 at the start, about 22 when it knows how
 * frequent each letter is, about 11 when it looks at the letter before.
 */

/** What guessing among all 256 byte values costs. */
export const LN_256 = Math.log(256);

/** Among how many characters it hesitates. */
export function choices(loss: number): string {
  const n = Math.exp(loss);
  if (!Number.isFinite(n)) return '–';
  if (n >= 9.95) return Math.round(n).toString();
  return n.toFixed(1);
}

/** One sentence about a loss. */
export function meaning(loss: number): string {
  if (!Number.isFinite(loss)) return '';
  if (loss > LN_256 + 0.3) return 'Worse than guessing. The learning rate may be too high.';
  const n = `It hesitates between about ${choices(loss)} characters`;
  if (loss > 5.2) return `${n}: it knows nothing yet.`;
  if (loss > 3.15) return `${n}: it is finding out which ones occur at all.`;
  if (loss > 2.55) return `${n}: it knows how frequent each one is.`;
  if (loss > 2.05) return `${n}: it looks at the ones before.`;
  if (loss > 1.6) return `${n}: it spells parts of words.`;
  if (loss > 1.2) return `${n}: most of its words are words.`;
  if (loss > 0.85) return `${n}: phrases hold together.`;
  if (loss > 0.4) return `${n}: it is seldom surprised.`;
  return `${n}: it nearly knows the text by heart.`;
}

export interface Milestone {
  step: number;
  id: string;
  text: string;
}

interface Rung {
  id: string;
  below: number;
  text: string;
}

const RUNGS: readonly Rung[] = [
  {
    id: 'common',
    below: 5,
    text: 'It has noticed that some characters are common and others never occur.',
  },
  { id: 'frequency', below: 3.15, text: 'It knows how frequent each letter is.' },
  { id: 'pairs', below: 2.55, text: 'It looks back: after a q comes a u.' },
  { id: 'pieces', below: 2.05, text: 'It spells short words and pieces of longer ones.' },
  { id: 'words', below: 1.6, text: 'Most of its words are real words.' },
  { id: 'phrases', below: 1.2, text: 'Phrases hold together.' },
  { id: 'sure', below: 0.85, text: 'It is seldom surprised by a letter.' },
  { id: 'heart', below: 0.25, text: 'It has nearly learnt the text by heart.' },
];

export interface MilestoneView {
  step: number;
  /** Smoothed training loss. */
  loss: number;
  /** All validations so far, oldest first. */
  checks: readonly { step: number; loss: number }[];
}

/**
 * The milestones reached since the last call. The smoothed loss must pass a rung, so that one lucky
 * batch counts for nothing; several rungs passed at once are told as the last of them.
 */
export function newMilestones(told: readonly Milestone[], v: MilestoneView): Milestone[] {
  const has = (id: string) => told.some((m) => m.id === id);
  const found: Milestone[] = [];
  const reached = RUNGS.filter((r) => v.loss < r.below);
  const top = reached.at(-1);
  if (top && !has(top.id)) found.push({ step: v.step, id: top.id, text: top.text });
  const last = v.checks.at(-1);
  if (last && last.step === v.step) {
    if (!has('gap') && last.loss - v.loss > 0.3 && v.loss < 2.05) {
      found.push({
        step: v.step,
        id: 'gap',
        text:
          'It does better on what it practised than on text it has not seen: it begins to ' +
          'learn by heart.',
      });
    }
    if (!has('turn') && hasTurned(v.checks)) {
      found.push({
        step: v.step,
        id: 'turn',
        text: 'On text it has not seen it no longer improves. The best version was kept.',
      });
    }
  }
  return found;
}

/** The last four checks are all worse than the best one before them, clearly. */
export function hasTurned(checks: readonly { loss: number }[]): boolean {
  if (checks.length < 6) return false;
  const recent = checks.slice(-4);
  const best = Math.min(...checks.slice(0, -4).map((c) => c.loss));
  return recent.every((c) => c.loss > best * 1.01);
}
