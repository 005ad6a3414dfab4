// SPDX-License-Identifier: Apache-2.0
/**
 * verdict.ts - what to say when a run has ended: one judgement, its reasons, and what to do next.
 * The rules are few and stand in the order in which they matter.
 */
import { findSize, SIZES } from '../model/presets';
import { count, loss as lossText, percent, roughCount } from '../format';
import { hasTurned } from './milestones';
import { BY_HEART, choices, guessing, type Unit } from './words';

export type NextAction =
  | { do: 'write' }
  | { do: 'download' }
  | { do: 'continue'; steps: number }
  | { do: 'size'; name: string }
  | { do: 'text' }
  | { do: 'settings' };

export interface Verdict {
  title: string;
  reasons: string[];
  actions: NextAction[];
}

export interface VerdictInput {
  size: string;
  vocab: number;
  unit: Unit;
  params: number;
  steps: number;
  total: number;
  trainBytes: number;
  /** How often each byte of the text was seen; NaN where it is read as tokens. */
  epochs: number;
  /** Smoothed training loss. */
  loss: number;
  checks: readonly { step: number; loss: number }[];
}

/** How much the checks fell over their last quarter, as a share; NaN with too few of them. */
export function lateFall(checks: readonly { loss: number }[]): number {
  if (checks.length < 4) return NaN;
  const from = checks[Math.floor(checks.length * 0.75) - 1];
  const to = checks.at(-1);
  return from && to ? (from.loss - to.loss) / from.loss : NaN;
}

export function verdict(v: VerdictInput): Verdict {
  const last = v.checks.at(-1);
  const judged = last ? last.loss : v.loss;
  const reasons = [
    last
      ? `On text it has never seen, its loss is ${lossText(judged)}: it hesitates between ` +
        `about ${choices(judged)} ${v.unit}s.`
      : `Its loss is ${lossText(judged)}: it hesitates between about ${choices(judged)} ` +
        `${v.unit}s. None of the text was kept for checking, so how well it does on other ` +
        'text is not known.',
  ];
  const more = Math.max(100, Math.round(v.total / 200) * 100);
  const goOn: NextAction = { do: 'continue', steps: more };
  const bigger = next(v.size);
  const take: NextAction[] = [{ do: 'write' }, { do: 'download' }];

  if (judged > guessing(v.vocab) + 0.055) {
    reasons.push('It guesses no better than at the start. A lower learning rate usually helps.');
    return { title: 'It did not learn', reasons, actions: [{ do: 'settings' }, { do: 'text' }] };
  }
  if (hasTurned(v.checks) || (last && last.loss - v.loss > 0.5)) {
    reasons.push(
      `It does better on what it practised (${lossText(v.loss)}) than on new text: it has ` +
        'begun to learn by heart. ' +
        `${seen(v)}The version that did best on new text ` +
        'was kept, and can be downloaded.',
    );
    return {
      title: 'It begins to learn by heart',
      reasons,
      actions: [...take, { do: 'text' }],
    };
  }
  if (v.steps < v.total * 0.9) {
    reasons.push(`It was stopped after ${count(v.steps)} of ${count(v.total)} steps.`);
    return { title: 'Stopped early', reasons, actions: [{ do: 'continue', steps: 0 }, ...take] };
  }
  if (judged < BY_HEART) {
    reasons.push(
      `That is next to nothing: it nearly knows this text by heart. ` +
        `${seen(v)}More steps will not help; a longer text would.`,
    );
    return {
      title: 'It knows the text by heart',
      reasons,
      actions: [{ do: 'write' }, { do: 'text' }, { do: 'download' }],
    };
  }
  const fall = lateFall(v.checks);
  if (fall > 0.02) {
    reasons.push('The loss was still falling at the end, so more steps would help.');
    return {
      title: 'Still learning',
      reasons,
      actions: [{ do: 'write' }, goOn, { do: 'download' }],
    };
  }
  if (v.epochs < 0.5) {
    reasons.push(
      `It has read only ${percent(v.epochs)} of the text, so it is too early to say what this ` +
        'size can hold. More steps would help.',
    );
    return {
      title: 'Only a beginning',
      reasons,
      actions: [{ do: 'write' }, goOn, { do: 'download' }],
    };
  }
  if (bigger && v.trainBytes > 4 * v.params) {
    reasons.push(
      `The loss has levelled out: ${roughCount(v.params)} parameters hold no more. There is ` +
        'enough text for a bigger model.',
    );
    return {
      title: 'It has learnt what this size can hold',
      reasons,
      actions: [{ do: 'write' }, { do: 'size', name: bigger }, { do: 'download' }],
    };
  }
  reasons.push('The loss has levelled out.');
  return { title: 'Done', reasons, actions: [...take, goOn] };
}

function seen({ epochs, unit }: VerdictInput): string {
  if (Number.isNaN(epochs)) return '';
  const times = epochs < 2.5 ? 'twice' : `${Math.round(epochs)} times`;
  return `Each ${unit} was seen about ${epochs < 1.5 ? 'once' : times}. `;
}

function next(size: string): string {
  const family = findSize(size)?.family;
  const line = SIZES.filter((s) => s.family === family);
  const at = line.findIndex((s) => s.name === size);
  // Beyond xl the next step up is a matter of hours: it is not proposed.
  return at >= 0 && at < 4 ? (line[at + 1]?.name ?? '') : '';
}
