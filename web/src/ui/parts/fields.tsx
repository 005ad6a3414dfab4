// SPDX-License-Identifier: Apache-2.0
/**
 * fields.tsx - labelled inputs. A number field keeps what was typed, also while it is not a number
 * or out of range; it says so under the field and hands on only numbers in range.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import { parseNumber } from '../format';
import { Meant, Words } from './term';

export function Field(p: {
  label: string;
  help?: ComponentChildren;
  error?: string;
  /** Gets the ids for the input inside; describedBy only if there is something to describe. */
  children: (ids: { id: string; describedBy: string | undefined }) => ComponentChildren;
}) {
  const id = useId();
  const words = p.error || p.help;
  const helpId = words ? `${id}-help` : undefined;
  return (
    <div class="field">
      <div class="field-name">
        <label for={id}>{p.label}</label>
        <Meant>{p.label}</Meant>
      </div>
      {p.children({ id, describedBy: helpId })}
      {words && (
        <p id={helpId} class={p.error ? 'field-error' : 'field-help'}>
          <Words>{words}</Words>
        </p>
      )}
    </div>
  );
}

export interface NumberFieldProps {
  label: string;
  value: number;
  min: number;
  max: number;
  whole?: boolean;
  help?: ComponentChildren;
  disabled?: boolean;
  onChange: (value: number) => void;
}

export function NumberField(p: NumberFieldProps) {
  const [text, setText] = useState(String(p.value));
  const parsed = parseNumber(text, p);
  useEffect(() => {
    // From outside: a preset was chosen, or a link opened.
    if (parseNumber(text, p).value !== p.value) setText(String(p.value));
  }, [p.value]);
  return (
    <Field label={p.label} help={p.help} error={parsed.problem}>
      {({ id, describedBy }) => (
        <input
          id={id}
          class="input"
          type="text"
          inputMode={p.whole ? 'numeric' : 'decimal'}
          autoComplete="off"
          value={text}
          disabled={p.disabled}
          aria-invalid={parsed.problem !== '' ? 'true' : undefined}
          aria-describedby={describedBy}
          onInput={(e) => {
            const next = e.currentTarget.value;
            setText(next);
            const { value, problem } = parseNumber(next, p);
            if (problem === '' && value !== p.value) p.onChange(value);
          }}
          onBlur={() => {
            if (parsed.problem !== '') setText(String(p.value));
          }}
        />
      )}
    </Field>
  );
}

export interface Option<T extends string> {
  value: T;
  label: string;
}

export function SelectField<T extends string>(p: {
  label: string;
  value: T;
  options: readonly Option<T>[];
  help?: ComponentChildren;
  disabled?: boolean;
  onChange: (value: T) => void;
}) {
  return (
    <Field label={p.label} help={p.help}>
      {({ id, describedBy }) => (
        <select
          id={id}
          class="input"
          value={p.value}
          disabled={p.disabled}
          aria-describedby={describedBy}
          onChange={(e) => p.onChange(e.currentTarget.value as T)}
        >
          {p.options.map((o) => (
            <option key={o.value} value={o.value}>
              {o.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A few exclusive options as pills: a radio group, arrows move in it. */
export function Choice<T extends string>(p: {
  label: string;
  value: T | null;
  options: readonly Option<T>[];
  /** Hides the label, but not from screen readers. */
  unlabelled?: boolean;
  disabled?: boolean;
  onChange: (value: T) => void;
}) {
  const name = useId();
  return (
    <fieldset class="choice">
      <legend class={p.unlabelled ? 'unseen' : 'field-label'}>
        <Words>{p.label}</Words>
      </legend>
      <div class="choice-options">
        {p.options.map((o) => (
          <label class="choice-option" key={o.value}>
            <input
              type="radio"
              name={name}
              checked={p.value === o.value}
              disabled={p.disabled}
              onChange={() => p.onChange(o.value)}
            />
            <span>{o.label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export function Check(p: {
  label: string;
  checked: boolean;
  disabled?: boolean;
  onChange: (on: boolean) => void;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={p.checked}
        disabled={p.disabled}
        onChange={(e) => p.onChange(e.currentTarget.checked)}
      />
      {p.label}
    </label>
  );
}
