// SPDX-License-Identifier: Apache-2.0
/**
 * text_strip.tsx - the text, byte by byte. The ground of each shows how well the model saw it
 * coming; one of them is where the other cards look.
 */
import { markAt } from './characters';
import { keys } from '../shortcuts';
import { useSpelling } from './spelling';
import { Mark } from './token';

export interface TextStripProps {
  tokens: Int32Array;
  /** Probability that the model gave to each token, NaN for the first. */
  seen: readonly number[];
  position: number;
  onSelect: (position: number) => void;
}

export function TextStrip({ tokens, seen, position, onSelect }: TextStripProps) {
  const last = tokens.length - 1;
  const { unit } = useSpelling();
  const go = (to: number) => onSelect(Math.min(last, Math.max(0, to)));
  const name = (t: number) => {
    const p = seen[t];
    const surprise =
      p === undefined || Number.isNaN(p)
        ? 'the first, not predicted'
        : `predicted at ${(100 * p).toFixed(0)} percent`;
    return `${unit} ${t + 1}, ${markAt(tokens, t).name}, ${surprise}`;
  };
  return (
    <div
      class="think-strip"
      role="slider"
      tabIndex={0}
      aria-label={`The ${unit} after which the model predicts`}
      aria-valuemin={1}
      aria-valuemax={tokens.length}
      aria-valuenow={position + 1}
      aria-valuetext={name(position)}
      onKeyDown={keys('picture', {
        left: () => go(position - 1),
        down: () => go(position - 1),
        right: () => go(position + 1),
        up: () => go(position + 1),
        first: () => go(0),
        last: () => go(last),
      })}
    >
      {Array.from(tokens, (_, t) => (
        <span
          key={t}
          class={t === position ? 'think-byte think-byte-on' : 'think-byte'}
          style={{ '--heat': Math.round(100 * (seen[t] || 0)) }}
          title={name(t)}
          onClick={() => onSelect(t)}
        >
          <Mark token={markAt(tokens, t)} />
        </span>
      ))}
    </div>
  );
}
