// SPDX-License-Identifier: Apache-2.0
/**
 * milestones.ts - what a run has reached, told once each. All of it is counted: in what the model has
 * written at that step (observed.ts), or in its checks on text that it has not seen.
 */
import {
  closedBrackets,
  copied,
  type Count,
  knownLetters,
  knownWords,
  type Reference,
  rowsThatFit,
  sumsIn,
} from './observed';

export interface Milestone {
  step: number;
  id: string;
  text: string;
}

/** With fewer than this a share says nothing. */
const LEAST = 4;
const COPIED_CHARS = 60;

interface Rung {
  id: string;
  share: number;
  text: (c: Count) => string;
}

interface Ladder {
  count: (sample: string, r: Reference) => Count | null;
  /** From the lowest to the highest. */
  rungs: readonly Rung[];
}

const ratio = ({ right, of }: Count) => `${right} of ${of}`;

const LADDERS: readonly Ladder[] = [
  {
    count: knownLetters,
    rungs: [
      {
        id: 'letters',
        share: 1,
        text: () => 'Every character that it writes is one of those in the text.',
      },
    ],
  },
  {
    count: knownWords,
    rungs: [
      {
        id: 'words-some',
        share: 0.25,
        text: (c) => `It has its first words: ${ratio(c)} that it wrote stand in the text.`,
      },
      {
        id: 'words-half',
        share: 0.5,
        text: (c) => `Half of its words are words: ${ratio(c)} stand in the text.`,
      },
      {
        id: 'words-most',
        share: 0.8,
        text: (c) => `Most of its words are words: ${ratio(c)} stand in the text.`,
      },
      {
        id: 'words-all',
        share: 0.95,
        text: (c) => `It spells: ${ratio(c)} of its words stand in the text.`,
      },
    ],
  },
  {
    count: (s, r) => (r.brackets ? closedBrackets(s) : null),
    rungs: [
      {
        id: 'brackets',
        share: 0.9,
        text: (c) => `Brackets close: ${ratio(c)} that it opened.`,
      },
    ],
  },
  {
    count: (s, r) => (r.columns > 0 ? rowsThatFit(s, r) : null),
    rungs: [
      {
        id: 'columns',
        share: 0.9,
        text: (c) => `Columns line up: ${ratio(c)} rows have as many as the text's.`,
      },
    ],
  },
  {
    count: (s, r) => (r.sums ? sumsIn(s) : null),
    rungs: [
      { id: 'sums-half', share: 0.5, text: (c) => `It adds up: ${ratio(c)} sums are right.` },
      { id: 'sums', share: 0.95, text: (c) => `It can add: ${ratio(c)} sums are right.` },
    ],
  },
];

/** What is new in a sample. Of several rungs that it passes at once the highest is told. */
export function milestonesOf(
  told: readonly Milestone[],
  step: number,
  sample: string,
  r: Reference,
): Milestone[] {
  const has = (id: string) => told.some((m) => m.id === id);
  const found: Milestone[] = [];
  for (const { count, rungs } of LADDERS) {
    const c = count(sample, r);
    if (!c || c.of < LEAST) continue;
    const passed = rungs.findLastIndex((rung) => c.right >= rung.share * c.of);
    const top = rungs[passed];
    if (top && !rungs.slice(passed).some(({ id }) => has(id))) {
      found.push({ step, id: top.id, text: top.text(c) });
    }
  }
  const same = has('copied') ? 0 : copied(sample, r);
  if (same >= COPIED_CHARS) {
    const text = `It wrote ${same} characters in a row that stand in the text as they are.`;
    found.push({ step, id: 'copied', text });
  }
  return found;
}

/** What is new at a check on text that it has not seen. */
export function milestonesOfCheck(
  told: readonly Milestone[],
  step: number,
  loss: number,
  checks: readonly { step: number; loss: number }[],
): Milestone[] {
  const has = (id: string) => told.some((m) => m.id === id);
  const last = checks.at(-1);
  if (!last || last.step !== step) return [];
  const found: Milestone[] = [];
  if (!has('gap') && last.loss - loss > 0.3 && last.loss > 1.2 * loss) {
    found.push({
      step,
      id: 'gap',
      text:
        'It does better on what it practised than on text it has not seen: it begins to ' +
        'learn by heart.',
    });
  }
  if (!has('turn') && hasTurned(checks)) {
    found.push({
      step,
      id: 'turn',
      text: 'On text it has not seen it no longer improves. The best version was kept.',
    });
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
