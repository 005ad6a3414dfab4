// SPDX-License-Identifier: Apache-2.0
/** run_bar.tsx - the run in one line, on the views that are not about it: in the side bar where there
 *  is one, else at the bottom. One that has ended is told of until it was looked at, or closed. */
import { useEffect, useState } from 'preact/hooks';
import { Button, IconButton } from '../parts/button';
import { Bar } from '../parts/stat';
import { P } from '../parts/term';
import { count, loss } from '../format';
import type { Phase, RunState } from '../run/controller';
import { controller, useRun } from '../state/run';
import { openView } from '../state/route';

const WORDS: Record<Phase, string> = {
  idle: '',
  preparing: '',
  running: 'Learning',
  paused: 'Paused',
  done: 'Done',
  failed: 'Stopped by a fault',
};

function endOf({ id, phase, step }: RunState): string {
  return phase === 'done' || phase === 'failed' ? `${id} ${phase} ${step}` : '';
}

export function RunBar({ hidden, looking }: { hidden: boolean; looking: boolean }) {
  const s = useRun();
  const end = endOf(s);
  const [known, setKnown] = useState('');
  useEffect(() => {
    if (looking && end !== '') setKnown(end);
  }, [looking, end]);
  if (hidden || WORDS[s.phase] === '' || (end !== '' && end === known)) return null;
  return (
    <section class="run-bar" aria-label="Run in progress">
      <div class="run-bar-words">
        <P>
          {WORDS[s.phase]}, step {count(s.step)} of {count(s.total)}
        </P>
        {Number.isFinite(s.loss) && <P class="quiet">Loss {loss(s.loss)}</P>}
        <Bar label="Share of the steps that are done" share={s.total > 0 ? s.step / s.total : 0} />
      </div>
      {s.phase === 'running' && (
        <IconButton icon="pause" label="Pause" onClick={() => void controller.pause()} />
      )}
      {s.phase === 'paused' && (
        <IconButton icon="play" label="Go on" onClick={() => void controller.unpause()} />
      )}
      <Button kind="plain" onClick={() => openView('live')}>
        Watch
      </Button>
      {end !== '' && <IconButton icon="close" label="Close" onClick={() => setKnown(end)} />}
    </section>
  );
}
