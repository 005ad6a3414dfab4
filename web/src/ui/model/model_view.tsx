// SPDX-License-Identifier: Apache-2.0
/** model_view.tsx - the nine sizes, sizes of one's own, and the forecast beside them. */
import { Button } from '../parts/button';
import { Card, Disclosure } from '../parts/card';
import { SettingFields } from '../run/setting_fields';
import { openView, settings } from '../state/route';
import { useRun } from '../state/run';
import { useStore } from '../store';
import { ForecastCard } from './forecast_card';
import { SizePicker } from './size_picker';

export default function ModelView() {
  const custom = useStore(settings, (s) => s.size === 'custom');
  const busy = useRun((s) => s.phase === 'running' || s.phase === 'paused');
  return (
    <div class="columns">
      <div class="stack">
        <Card title="Size" aside="each with its own number of steps">
          <SizePicker />
          <Disclosure summary="A size of your own" open={custom}>
            <SettingFields group="size" />
          </Disclosure>
        </Card>
      </div>
      <div class="stack">
        <ForecastCard />
        {busy && (
          <p class="muted small">
            A run is in progress. What you choose here counts for the next one.
          </p>
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
