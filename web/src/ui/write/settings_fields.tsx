// SPDX-License-Identifier: Apache-2.0
/** settings_fields.tsx - sliders and numbers for one set of sampling settings. */
import type { SampleOptions } from '../../lib/types';
import { IconButton } from '../parts/button';
import { Field, NumberField } from '../parts/fields';
import { FIELDS, MOST_SEED, randomSeed, type FieldRange } from './settings';

function Slider({
  field,
  value,
  onChange,
}: {
  field: FieldRange;
  value: number;
  onChange: (value: number) => void;
}) {
  const isOff = value === field.off;
  return (
    <Field label={field.label} help={field.help}>
      {({ id, describedBy }) => (
        <div class="write-slider">
          <input
            id={id}
            type="range"
            min={field.min}
            max={field.max}
            step={field.step}
            value={value}
            aria-describedby={describedBy}
            aria-valuetext={isOff ? 'off' : String(value)}
            onInput={(e) => onChange(e.currentTarget.valueAsNumber)}
          />
          <output for={id} class="number">
            {isOff ? 'off' : value}
          </output>
        </div>
      )}
    </Field>
  );
}

export function SettingsFields({
  value,
  onChange,
  fields = FIELDS,
}: {
  value: SampleOptions;
  onChange: (value: SampleOptions) => void;
  fields?: readonly FieldRange[];
}) {
  const set = (changed: Partial<SampleOptions>) => onChange({ ...value, ...changed });
  return (
    <div class="grid">
      {fields.filter((f) => f.key !== 'repeatLast' || value.repeatPenalty !== 1).map((field) => (
        <Slider
          key={field.key}
          field={field}
          value={value[field.key]}
          onChange={(v) => set({ [field.key]: v })}
        />
      ))}
      <div class="write-seed">
        <NumberField
          label="Seed"
          value={value.seed}
          min={0}
          max={MOST_SEED}
          whole
          help="Same seed, same text."
          onChange={(seed) => set({ seed })}
        />
        <IconButton icon="dice" label="Another seed" onClick={() => set({ seed: randomSeed() })} />
      </div>
    </div>
  );
}
