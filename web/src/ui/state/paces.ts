// SPDX-License-Identifier: Apache-2.0
/**
 * paces.ts - how long a step took here, by the shape of the model and the size of a step. The core
 * can only estimate a step from the machine's peak; once such a run has been made, the page knows.
 */
import { type Settings, vocabOf } from '../run/settings';

const KEY = 'tinygpt paces';
const MOST = 24;

/** Everything that a step's time depends on but the machine's load. */
export function paceKey(s: Settings, device: string): string {
  const { family, layers, width, heads, ctx, batch, accum } = s;
  const like = [device, family, layers, width, heads, ctx, batch, accum];
  return (s.tokens === 'bytes' ? like : [...like, vocabOf(s)]).join(' ');
}

function stored(): Record<string, number> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}') as Record<string, number>;
  } catch {
    return {};
  }
}

let paces: Record<string, number> | null = null;

/** Milliseconds a step, as it was last seen; NaN if there was no such run. */
export function paceOf(key: string): number {
  paces ??= stored();
  return paces[key] ?? NaN;
}

/** The newest are kept. */
export function learnPace(key: string, msPerStep: number): void {
  if (!(msPerStep > 0) || !Number.isFinite(msPerStep)) return;
  paces ??= stored();
  const { [key]: _, ...others } = paces;
  paces = Object.fromEntries([...Object.entries(others).slice(1 - MOST), [key, msPerStep]]);
  try {
    localStorage.setItem(KEY, JSON.stringify(paces));
  } catch {
    // It counts for this visit.
  }
}

/** A forecast by what was seen: its times in proportion. */
export function byPace<F extends { msPerStep: number; seconds: number }>(f: F, pace: number): F {
  if (!(pace > 0) || !(f.msPerStep > 0)) return f;
  return { ...f, msPerStep: pace, seconds: (f.seconds * pace) / f.msPerStep };
}
