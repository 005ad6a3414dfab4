// SPDX-License-Identifier: Apache-2.0
/** term.tsx - a word of the field in a sentence: a tap tells what it means. */
import { useId } from 'preact/hooks';
import { GLOSSARY, type TermName } from './glossary';

export function Term({ name, children }: { name: TermName; children?: string }) {
  const id = useId();
  return (
    <>
      <button type="button" class="term" popovertarget={id}>
        {children ?? name}
      </button>
      <span id={id} class="term-meaning" popover="auto">
        <b>{name}</b> {GLOSSARY[name]}
      </span>
    </>
  );
}

/** All of them, in the order of the alphabet. */
export function Glossary() {
  const names = (Object.keys(GLOSSARY) as TermName[]).sort((a, b) => a.localeCompare(b));
  return (
    <dl class="glossary">
      {names.map((name) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{GLOSSARY[name]}</dd>
        </div>
      ))}
    </dl>
  );
}
