// SPDX-License-Identifier: Apache-2.0
/**
 * advice.ts - what to say before a run, in the words of the page: the core's own lines speak of the
 * command line's options. The limits are the core's (src/inspect/forecast.c).
 */
import type { Forecast } from '../../lib/types';
import { bytes } from '../format';
import { bytesPerToken, type Settings } from '../run/settings';

export interface AdviceLine {
  text: string;
  /** A size that suits the text better. */
  size?: string;
}

const SHORT_BYTES = 10_000;

export function adviceOf(f: Forecast, s: Settings): AdviceLine[] {
  const found: AdviceLine[] = [];
  if (f.memoryAvailableBytes > 0 && f.memoryBytes > f.memoryAvailableBytes) {
    const [need, have] = [bytes(f.memoryBytes), bytes(f.memoryAvailableBytes)];
    found.push({ text: `It needs ${need} of memory, and ${have} are free. Take a smaller size.` });
  }
  if (s.lr > 5e-3) found.push({ text: `A rate of ${s.lr} is high. Usual are 0.0003 to 0.003.` });
  if (f.trainBytes === 0) return found;
  const epochs = f.epochs * bytesPerToken(s);
  const short = f.trainBytes < 0.3 * f.params;
  const smaller = s.size === 'tiny' ? {} : { size: 'tiny' };
  if (short && f.trainBytes < SHORT_BYTES) {
    const text = 'Very short text: it will be learnt by heart. Fun to watch, but it cannot invent.';
    found.push({ text, ...smaller });
  } else if (short) {
    const text =
      'Little text for a model of this size: it will learn much of it by heart. More text, or a ' +
      'smaller size, suits better.';
    found.push({ text, ...smaller });
  } else if (f.trainBytes > 200 * f.params && epochs < 0.5) {
    const share = Math.max(1, Math.round(100 * epochs));
    const text = `It will see ${share} % of the text. More steps, or a larger size, would use the rest.`;
    found.push({ text });
  } else if (epochs > 20) {
    const text =
      `It will read the text ${Math.round(epochs)} times. When the loss on new text rises, it ` +
      'only learns by heart: then stop it.';
    found.push({ text });
  }
  if (s.valFraction > 0 && f.valBytes === 0) {
    found.push({ text: 'The text is too short to keep a part of it for checking.' });
  }
  return found;
}
