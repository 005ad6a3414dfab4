// SPDX-License-Identifier: Apache-2.0
/**
 * term.tsx - words of the field in a sentence: a tap tells what they mean. <Words> marks all that the
 * glossary knows; cards, fields and numbers do so with the words that they are given.
 */
import type { ComponentChildren, HTMLAttributes } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useStore } from '../store';
import { explained, loadTerms, terms } from './terms';

/**
 * No <button>, beside which a line may end as beside a box: before a full stop, behind a bracket. Its
 * keyboard way is the list of all of them, behind "?": a stop for each would be too many.
 */
export function Term(p: { name: string; label?: string; children?: string }) {
  const { name, label, children } = p;
  const tell = (e: Event) => {
    // In a line that folds something open the word is meant, not the line.
    e.preventDefault();
    void loadTerms().then(() => explained.set(name));
  };
  return (
    <span
      role="button"
      class="term"
      tabIndex={-1}
      aria-label={label}
      onClick={tell}
      onKeyDown={(e) => {
        if (e.key === 'Enter' || e.key === ' ') tell(e);
      }}
    >
      {children ?? name}
    </span>
  );
}

/** A sentence with its terms marked; what is no plain text stays as it is. */
export function Words({ children }: { children: ComponentChildren }) {
  const known = useStore(terms);
  if (Array.isArray(children)) return <>{children.map((c, i) => <Words key={i}>{c}</Words>)}</>;
  if (!known || typeof children !== 'string') return <>{children}</>;
  return (
    <>
      {known.split(children).map(({ text, term }, i) =>
        term === undefined ? text : (
          <Term key={i} name={term}>
            {text}
          </Term>
        ))}
    </>
  );
}

/** A paragraph whose terms can be tapped: for what the page says, not for what is written in it. */
export function P({ children, ...rest }: HTMLAttributes<HTMLParagraphElement>) {
  return (
    <p {...rest}>
      <Words>{children}</Words>
    </p>
  );
}

/** A question mark beside words that are no place for a button themselves, if they hold a term. */
export function Meant({ children }: { children: string }) {
  const name = useStore(terms)?.split(children).find((p) => p.term !== undefined)?.term;
  return name === undefined ? null : (
    <Term name={name} label="What this means">
      ?
    </Term>
  );
}

/** The meaning of the term that was tapped, over the view. */
export function Explained() {
  const name = useStore(explained);
  const known = useStore(terms);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (name !== '') box.current?.showPopover?.();
  }, [name]);
  return (
    <div
      ref={box}
      class="term-meaning"
      popover="auto"
      role="status"
      onToggle={(e) => {
        if (e.newState === 'closed') explained.set('');
      }}
    >
      <b>{name}</b> {known?.meanings[name]?.means}
    </div>
  );
}
