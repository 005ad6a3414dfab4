// SPDX-License-Identifier: Apache-2.0
/** card.tsx - a section of a view with a heading. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { Words } from './term';

export function Card(p: {
  /** Terms are marked in what is plain text; a name comes in an element of its own. */
  title: ComponentChildren;
  /** A short remark at the right of the title. */
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class={p.class ? `card ${p.class}` : 'card'} aria-labelledby={id}>
      <div class="card-head">
        <h2 id={id}>
          <Words>{p.title}</Words>
        </h2>
        {p.aside !== undefined && (
          <p>
            <Words>{p.aside}</Words>
          </p>
        )}
      </div>
      {p.children}
    </section>
  );
}

/** What is one click away: closed at first. */
export function Disclosure(p: { summary: string; open?: boolean; children: ComponentChildren }) {
  return (
    <details class="disclosure" open={p.open}>
      <summary>{p.summary}</summary>
      <div class="stack-tight">{p.children}</div>
    </details>
  );
}
