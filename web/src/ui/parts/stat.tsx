// SPDX-License-Identifier: Apache-2.0
/** stat.tsx - numbers with names, in a <dl class="stats">. */
import type { ComponentChildren } from 'preact';
import { Words } from './term';

export function Stat(p: { name: string; value: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div class="stat">
      <dt>
        <Words>{p.name}</Words>
      </dt>
      <dd>{p.value}</dd>
      {p.note !== undefined && p.note !== '' && (
        <dd class="stat-note">
          <Words>{p.note}</Words>
        </dd>
      )}
    </div>
  );
}

/** 0..1 of a whole, drawn. The words beside it say the same. */
export function Bar(p: { label: string; share: number }) {
  const percent = Math.round(100 * Math.min(1, Math.max(0, p.share)));
  return (
    <div
      class="bar"
      role="progressbar"
      aria-label={p.label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
    >
      <div style={{ width: `${percent}%` }} />
    </div>
  );
}
