// SPDX-License-Identifier: Apache-2.0
/** run_bar.tsx - the run in one line, at the bottom of the views that are not about it. */
import { Button, IconButton } from '../parts/button';
import { Bar } from '../parts/stat';
import { count, loss } from '../format';
import { controller, useRun } from '../state/run';
import { openView } from '../state/route';

export function RunBar({ hidden }: { hidden: boolean }) {
  const s = useRun();
  if (hidden || s.phase === 'idle' || s.phase === 'preparing') return null;
  const running = s.phase === 'running';
  const state = running
    ? 'Learning'
    : s.phase === 'paused'
      ? 'Paused'
      : s.phase === 'done'
        ? 'Done'
        : 'Stopped by a fault';
  return (
    <section class="run-bar" aria-label="Run in progress">
      <div class="run-bar-words">
        <p>
          {state}, step {count(s.step)} of {count(s.total)}
          {Number.isFinite(s.loss) && `, loss ${loss(s.loss)}`}
        </p>
        <Bar label="Share of the steps that are done" share={s.total > 0 ? s.step / s.total : 0} />
      </div>
      {running && <IconButton icon="pause" label="Pause" onClick={() => void controller.pause()} />}
      {s.phase === 'paused' && (
        <IconButton icon="play" label="Go on" onClick={() => void controller.unpause()} />
      )}
      <Button kind="plain" onClick={() => openView('live')}>
        Watch
      </Button>
    </section>
  );
}
