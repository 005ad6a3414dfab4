// SPDX-License-Identifier: Apache-2.0
/** live_view.tsx - the run as it goes: numbers, curve, samples, milestones, and the verdict. */
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { CompareList } from '../run/compare_list';
import { StartButton } from '../run/run_buttons';
import { openView } from '../state/route';
import { useRun } from '../state/run';
import { LossChart } from './loss_chart';
import { MilestonesCard } from './milestones_card';
import { ProgressCard } from './progress_card';
import { SamplesCard } from './samples_card';
import { VerdictCard } from './verdict_card';
import './live.css';

export default function LiveView() {
  const idle = useRun((s) => s.phase === 'idle');
  if (idle) return <NothingYet />;
  return (
    <div class="stack">
      <VerdictCard />
      <div class="columns live-columns">
        <div class="stack">
          <ProgressCard />
          <LossChart />
        </div>
        <div class="stack">
          <SamplesCard />
          <MilestonesCard />
        </div>
      </div>
      <Card title="Compare with">
        <CompareList />
      </Card>
    </div>
  );
}

function NothingYet() {
  return (
    <div class="stack">
      <Card title="No run yet">
        <p class="muted">
          Once a run has begun, its curve, its numbers and what it writes are shown here.
        </p>
        <div class="row">
          <StartButton />
          <Button onClick={() => openView('start')}>Choose text and size</Button>
        </div>
      </Card>
      <Card title="Compare with">
        <CompareList />
      </Card>
    </div>
  );
}
