// SPDX-License-Identifier: Apache-2.0
/** next_bytes.tsx - the ten likeliest next bytes as bars; the one that really came is marked. */
import { rankOf, topK } from './maths';
import { Token } from './token';

export interface NextBytesProps {
  label: string;
  p: ArrayLike<number>;
  /** What really comes next in the text, or -1 at its end. */
  actual: number;
  /** Probabilities to compare with, drawn as a second, thin bar. */
  before?: ArrayLike<number>;
  count?: number;
}

export function percentOf(p: number): string {
  return p >= 0.0995
    ? `${(100 * p).toFixed(0)} %`
    : p >= 0.0005
      ? `${(100 * p).toFixed(1)} %`
      : '< 0.1 %';
}

export function NextBytes({ label, p, actual, before, count = 10 }: NextBytesProps) {
  const rows = topK(p, count);
  // The byte that came is shown even where the model put it far down.
  if (actual >= 0 && !rows.some((r) => r.id === actual))
    rows.push({ id: actual, p: p[actual] ?? 0 });
  return (
    <ol class="think-bars" aria-label={label}>
      {rows.map(({ id, p: share }) => (
        <li key={id} class={id === actual ? 'think-bar think-bar-actual' : 'think-bar'}>
          <Token id={id} />
          <span class="think-bar-track">
            <span class="think-bar-fill" style={{ width: `${100 * share}%` }} />
            {before && (
              <span class="think-bar-before" style={{ width: `${100 * (before[id] ?? 0)}%` }} />
            )}
          </span>
          <span class="think-bar-number">
            {before && <span class="think-bar-was">{percentOf(before[id] ?? 0)} → </span>}
            {percentOf(share)}
          </span>
          {id === actual && (
            <span class="think-bar-note">
              came next{rankOf(p, id) > count ? `, place ${rankOf(p, id)}` : ''}
            </span>
          )}
        </li>
      ))}
    </ol>
  );
}
