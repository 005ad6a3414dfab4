// SPDX-License-Identifier: Apache-2.0
/** size_picker.tsx - presets as cards: a radio group. `few` shows those for a first run. */
import { useEffect, useId } from 'preact/hooks';
import { duration, roughCount } from '../format';
import { vocabOf, withSize } from '../run/settings';
import { unitOf } from '../live/words';
import { forecastSizes, sizeSeconds } from '../state/forecast';
import { settings, sizeChosen } from '../state/route';
import { textState } from '../state/text';
import { useStore } from '../store';
import { paramCount } from './families';
import { SIZES } from './presets';
import './model.css';

export function SizePicker({ few }: { few?: boolean }) {
  const size = useStore(settings, (s) => s.size);
  const vocab = useStore(settings, vocabOf);
  const tokens = useStore(settings, (s) => s.tokens);
  const unit = unitOf(tokens, useStore(textState, (t) => t.encoding === 'ASCII'));
  const seconds = useStore(sizeSeconds);
  const name = useId();
  useEffect(() => {
    if (!few) forecastSizes().catch(() => {});
  }, []);
  const shown = few ? SIZES.filter((s, i) => i < 4 || s.name === size) : SIZES;
  return (
    <fieldset class={few ? 'sizes sizes-few' : 'sizes'}>
      <legend class={few ? 'field-label' : 'unseen'}>Size of the model</legend>
      {shown.map((s) => (
        <label class="size" key={s.name}>
          <input
            type="radio"
            name={name}
            checked={s.name === size}
            onChange={() => {
              sizeChosen.set(true);
              settings.set(withSize(settings.get(), s));
            }}
          />
          <span class="size-face">
            <strong>{s.name}</strong>
            <span class="size-time">{time(seconds[s.name])}</span>
            {!few && <span class="size-about">{s.about}</span>}
            <span class="size-numbers">
              {few
                ? roughCount(paramCount(s, vocab))
                : `${roughCount(paramCount(s, vocab))} parameters, ${s.layers} layers of ${s.width}, ` +
                  `looks ${s.ctx} ${unit}s back`}
            </span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function time(seconds: number | undefined): string {
  if (seconds === undefined || !(seconds > 0)) return '';
  if (seconds === Infinity) return 'does not fit here';
  if (seconds < 40) return 'under a minute';
  return seconds < 80 ? 'about a minute' : `about ${duration(seconds)}`;
}
