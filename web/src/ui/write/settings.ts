// SPDX-License-Identifier: Apache-2.0
/**
 * settings.ts - how the next byte is chosen: the fields, their ranges, and words for them. The
 * ranges are those of the core (tg_sample_options), narrowed to what makes sense on a page.
 */
import type { SampleOptions } from '../../lib/types';

export interface FieldRange {
  key: Exclude<keyof SampleOptions, 'seed'>;
  label: string;
  min: number;
  max: number;
  step: number;
  /** The value at which the field does nothing, if it has one. */
  off?: number;
  help: string;
}

export const FIELDS: readonly FieldRange[] = [
  {
    key: 'temperature',
    label: 'Temperature',
    min: 0,
    max: 2,
    step: 0.05,
    help: '0 always takes the likeliest byte; higher is bolder.',
  },
  {
    key: 'topK',
    label: 'Top-k',
    min: 0,
    max: 100,
    step: 1,
    off: 0,
    help: 'Only the k likeliest bytes are drawn from.',
  },
  {
    key: 'topP',
    label: 'Top-p',
    min: 0.05,
    max: 1,
    step: 0.01,
    off: 1,
    help: 'Only the likeliest bytes that together have this share.',
  },
  {
    key: 'minP',
    label: 'Min-p',
    min: 0,
    max: 0.5,
    step: 0.01,
    off: 0,
    help: 'Drops bytes less likely than this share of the likeliest.',
  },
  {
    key: 'repeatPenalty',
    label: 'Repeat penalty',
    min: 1,
    max: 2,
    step: 0.05,
    off: 1,
    help: 'Makes bytes that came up lately less likely.',
  },
  {
    key: 'repeatLast',
    label: 'Penalty looks back',
    min: 1,
    max: 256,
    step: 1,
    help: 'So many bytes count as lately.',
  },
];

export const DEFAULTS: SampleOptions = {
  temperature: 0.8,
  topK: 0,
  topP: 1,
  minP: 0,
  repeatPenalty: 1,
  repeatLast: 64,
  seed: 42,
};

/** The other side of a comparison: careful where the defaults are bold. */
export const CAREFUL: SampleOptions = { ...DEFAULTS, temperature: 0.3 };

export const MOST_SEED = 2 ** 32 - 1;

/** "temperature 0.8, top-k 40, seed 42": what is off is left out. */
export function describe(s: SampleOptions, unit = 'byte'): string {
  const parts =
    s.temperature === 0 ? [`the likeliest ${unit} each time`] : [`temperature ${s.temperature}`];
  for (const { key, label, off } of FIELDS) {
    // Greedy choice makes the filters idle, but not the penalty.
    if (off === undefined || s[key] === off) continue;
    if (s.temperature === 0 && key !== 'repeatPenalty') continue;
    parts.push(`${label.toLowerCase()} ${s[key]}`);
  }
  if (s.repeatPenalty !== 1) parts.push(`looking back ${s.repeatLast}`);
  if (s.temperature !== 0) parts.push(`seed ${s.seed}`);
  return parts.join(', ');
}

/** How many characters two texts have in common at their beginning. */
export function sharedStart(a: string, b: string): number {
  const n = Math.min(a.length, b.length);
  let i = 0;
  while (i < n && a[i] === b[i]) i++;
  return i;
}

export function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}
