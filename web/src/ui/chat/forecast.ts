// SPDX-License-Identifier: Apache-2.0
/**
 * forecast.ts - what a model will take before it is loaded: its weights, the cache of a
 * conversation, and the engine around them; with a warning where that is too much.
 */
import type { KeyType, ModelFacts } from '../../lib/types';
import { bytes } from '../format';

/** The module itself, the tokenizer, and room to compute in: 35 MB were measured for SmolLM2. */
const WORK_BYTES = 48e6;
/** What a module with addresses of 32 bits can have. */
const MOST_BYTES = 2 ** 32;
/** A browser ends a tab that takes much more of the machine than this. */
const FAIR_SHARE = 0.5;

export interface Need {
  ctx: number;
  weights: number;
  cache: number;
  total: number;
}

/** Of what f32 takes: int8 has four bytes besides for each token, head and side. */
const SHARES: Record<KeyType, number> = { f32: 1, f16: 0.5, int8: 0.27 };

/** A row for each length of context; models with short ones have one, their own. */
export function needs(facts: ModelFacts, keys: KeyType = 'f32'): Need[] {
  const weights = facts.weightBytes;
  const row = (ctx: number, cache: number) => ({
    ctx,
    weights,
    cache,
    total: weights + cache + WORK_BYTES,
  });
  const rows = facts.caches.map((c) => row(c.tokens, Math.ceil(c.bytes * SHARES[keys])));
  return rows.length > 0 ? rows : [row(facts.ctx, 0)];
}

/** The longest context that is no longer than what was wanted; else the shortest. */
export function nearest(rows: readonly Need[], ctx: number): Need | undefined {
  return rows.findLast((row) => row.ctx <= ctx) ?? rows[0];
}

/** Part of the device API that browsers of the Chromium family have. */
export function deviceGib(): number | undefined {
  return (navigator as Navigator & { deviceMemory?: number }).deviceMemory;
}

/** A sentence if the machine has no room for a model and another copy of it; '' if it has. */
export function twiceTooMuch(weightBytes: number, gib: number | undefined): string {
  const both = 2 * (weightBytes + WORK_BYTES);
  if (gib === undefined || both <= gib * 2 ** 30) return '';
  return `Two copies of this model need ${bytes(both)} of a machine with about ${gib} GB.`;
}

/** A sentence if that much is too much; `deviceGib` is the browser's own word, or undefined. */
export function warning(need: Need, deviceGib: number | undefined): string {
  if (need.total > MOST_BYTES) {
    return (
      `This needs ${bytes(need.total)}, and a module can have 4.3 GB. Choose a shorter context ` +
      'or a smaller model.'
    );
  }
  if (deviceGib !== undefined && need.total > deviceGib * 2 ** 30 * FAIR_SHARE) {
    return (
      `This needs ${bytes(need.total)} of a machine with about ${deviceGib} GB: the browser may ` +
      'end the tab. A shorter context needs less.'
    );
  }
  return '';
}

/** The next longer context that a model can have; 0 if there is none. */
export function longerContext(facts: ModelFacts | undefined, now: number): number {
  return (facts ? needs(facts) : []).find((row) => row.ctx > now)?.ctx ?? 0;
}
