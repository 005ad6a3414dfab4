// SPDX-License-Identifier: Apache-2.0
/** live_view.tsx - the run as it goes: a strip of numbers, the curve beside the newest sample, then
 *  the same beginning at earlier steps, milestones, all samples, and the verdict. */
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { P } from '../parts/term';
import { CompareList } from '../run/compare_list';
import { StartButton } from '../run/run_buttons';
import { openView } from '../state/route';
import { useRun } from '../state/run';
import { LossChart } from './loss_chart';
import { MilestonesCard } from './milestones_card';
import { MoreNumbers, ProgressCard } from './progress_card';
import { SamplesCard } from './samples_card';
import { ThenAndNowCard } from './then_and_now_card';
import { VerdictCard } from './verdict_card';
import './live.css';

export default function LiveView() {
  const idle = useRun((s) => s.phase === 'idle');
  const failed = useRun((s) => s.phase === 'failed');
  if (idle) return <NothingYet />;
  return (
    <div class="stack">
      {failed && <VerdictCard />}
      <ProgressCard />
      <div class="columns live-first">
        <LossChart />
        <SamplesCard />
      </div>
      {!failed && <VerdictCard />}
      <div class="columns">
        <ThenAndNowCard />
        <MilestonesCard />
      </div>
      <MoreNumbers />
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
        <P class="muted">
          Once a run has begun, its curve, its numbers and what it writes are shown here.
        </P>
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
