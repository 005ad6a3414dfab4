// SPDX-License-Identifier: Apache-2.0
/** setting_fields.tsx - the number fields of one group of settings.ts's table. */
import { NumberField } from '../parts/fields';
import { settings, sizeChosen } from '../state/route';
import { useStore } from '../store';
import { type FieldGroup, FIELDS, withField } from './settings';

export function SettingFields(p: { group: FieldGroup; advanced?: boolean }) {
  const s = useStore(settings);
  const shown = FIELDS.filter(
    (f) => f.group === p.group && Boolean(f.advanced) === Boolean(p.advanced),
  );
  return (
    <div class="grid">
      {shown.map((f) => (
        <NumberField
          key={f.key}
          label={f.label}
          help={f.help}
          value={s[f.key]}
          min={f.min}
          max={f.max}
          whole={f.whole}
          onChange={(value) => {
            sizeChosen.set(true);
            settings.set(withField(settings.get(), f.key, value));
          }}
        />
      ))}
    </div>
  );
}
