// SPDX-License-Identifier: Apache-2.0
/**
 * run_buttons.tsx - Start, pause, stop, continue: the buttons that make sense at the moment. Start is
 * always there: the run that is open is saved, and another one begins.
 */
import { useState } from 'preact/hooks';
import { Button } from '../parts/button';
import { NumberField } from '../parts/fields';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { count } from '../format';
import { forecast } from '../state/forecast';
import { room, roomProblem } from '../state/keeping';
import { openView } from '../state/route';
import { controller, goOn, start, useRun } from '../state/run';
import { GETTING_READY, useStartProblem } from '../state/start_problem';
import { useStore } from '../store';
import './run.css';

export function StartButton({ big }: { big?: boolean }) {
  const problem = useStartProblem();
  const busy = useRun((s) => s.phase === 'running');
  const preparing = useRun((s) => s.phase === 'preparing');
  const waiting = problem === GETTING_READY;
  if (preparing) return <Cancel />;
  return (
    <>
      <Button
        kind={busy ? undefined : 'primary'}
        icon={waiting ? undefined : 'play'}
        size={big ? 'big' : undefined}
        wide={big}
        disabled={problem !== ''}
        onClick={() => void start()}
      >
        {waiting ? 'Getting ready…' : busy ? 'Start another' : 'Start'}
      </Button>
      {problem !== '' && !waiting && <P class="field-help">{problem}</P>}
      {busy && <P class="field-help">The run in progress is saved; it stays under Your models.</P>}
      <NoRoom />
    </>
  );
}

/** A save is two copies at most, and the text. */
function NoRoom() {
  useStore(room);
  const bytes = useStore(forecast, (f) => f.value?.saveBytes ?? 0);
  const problem = roomProblem(2 * bytes);
  if (problem === '') return null;
  return (
    <Notice kind="warning">
      <P>{problem}</P>
    </Notice>
  );
}

/** While a model is being made. */
function Cancel() {
  return (
    <div class="row">
      <P class="muted">Getting ready…</P>
      <Button icon="close" onClick={() => void controller.forget().then(() => openView('start'))}>
        Cancel
      </Button>
    </div>
  );
}

export function RunButtons() {
  const phase = useRun((s) => s.phase);
  const running = phase === 'running';
  if (phase === 'idle') return <StartButton />;
  if (phase === 'preparing') return <Cancel />;
  return (
    <div class="row">
      {running && (
        <Button kind="primary" icon="pause" onClick={() => void controller.pause()}>
          Pause
        </Button>
      )}
      {phase === 'paused' && (
        <Button kind="primary" icon="play" onClick={() => goOn()}>
          Go on
        </Button>
      )}
      {(running || phase === 'paused') && (
        <Button icon="stop" onClick={() => void controller.stop()}>
          Stop
        </Button>
      )}
      {!running && (
        <Button icon="spark" onClick={() => openView('start')}>
          New run
        </Button>
      )}
    </div>
  );
}

/** Continue for N more: after a pause, a stop, or the end. */
export function ContinueForm() {
  const phase = useRun((s) => s.phase);
  const step = useRun((s) => s.step);
  const total = useRun((s) => s.total);
  const [more, setMore] = useState(() => Math.max(100, Math.round(total / 200) * 100));
  if (phase !== 'paused' && phase !== 'done') return null;
  const left = total - step;
  return (
    <form
      class="run-continue"
      onSubmit={(e) => {
        e.preventDefault();
        goOn(more);
      }}
    >
      <NumberField
        label="Continue for more steps"
        value={more}
        min={1}
        max={10_000_000}
        whole
        onChange={setMore}
      />
      <Button submit icon="play">
        Continue
      </Button>
      {phase === 'done' && left > 0 && (
        <Button onClick={() => goOn()}>Only the {count(left)} left</Button>
      )}
    </form>
  );
}
