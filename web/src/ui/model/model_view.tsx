// SPDX-License-Identifier: Apache-2.0
/** model_view.tsx - the presets, sizes and families of one's own, and the forecast beside them. */
import { Button } from '../parts/button';
import { Card, Disclosure } from '../parts/card';
import { SettingFields } from '../run/setting_fields';
import { SelectField } from '../parts/fields';
import { P } from '../parts/term';
import { withFamily } from '../run/settings';
import { openView, settings, sizeChosen } from '../state/route';
import { useRun } from '../state/run';
import { useStore } from '../store';
import { FAMILIES, familyOf } from './families';
import { ForecastCard } from './forecast_card';
import { SizePicker } from './size_picker';
import { TokensChoice } from './tokens_choice';

export default function ModelView() {
  const custom = useStore(settings, (s) => s.size === 'custom');
  const plain = useStore(settings, (s) => familyOf(s.family).learnedPositions);
  const busy = useRun((s) => s.phase === 'running' || s.phase === 'paused');
  return (
    <div class="columns">
      <div class="stack">
        <Card title="Size" aside="each with its own number of steps">
          <SizePicker />
          <TokensChoice />
          <Disclosure summary="A size of your own" open={custom}>
            <FamilyField />
            <SettingFields group="size" />
            {!plain && (
              <Disclosure summary="More about the shape">
                <SettingFields group="size" advanced />
              </Disclosure>
            )}
          </Disclosure>
        </Card>
      </div>
      <div class="stack">
        <ForecastCard />
        {busy && (
          <P class="muted small">
            A run is in progress. What you choose here counts for the next one.
          </P>
        )}
        <div class="row">
          <Button icon="sliders" onClick={() => openView('run')}>
            How it learns
          </Button>
          <Button icon="spark" kind="primary" onClick={() => openView('start')}>
            To the start
          </Button>
        </div>
      </div>
    </div>
  );
}

/** Which architecture: the same width and depth built in another way. */
function FamilyField() {
  const family = useStore(settings, (s) => s.family);
  return (
    <SelectField
      label="Family"
      help="How a layer is built."
      value={family}
      options={FAMILIES.map((f) => ({ value: f.name, label: f.label }))}
      onChange={(name) => {
        sizeChosen.set(true);
        settings.set(withFamily(settings.get(), name));
      }}
    />
  );
}
