// SPDX-License-Identifier: Apache-2.0
/**
 * run_buttons.tsx - Start, pause, stop, continue: the buttons that make sense at the moment.
 */
import { useState } from 'preact/hooks';
import { Button } from '../parts/button';
import { NumberField } from '../parts/fields';
import { count } from '../format';
import { openView } from '../state/route';
import {
  acceptOffer,
  controller,
  offer,
  reset,
  start,
  useRun,
  useStartProblem,
} from '../state/run';
import { useStore } from '../store';
import './run.css';

export function StartButton({ big }: { big?: boolean }) {
  const problem = useStartProblem();
  const saved = useStore(offer);
  const [asking, setAsking] = useState(false);
  const waiting = problem === 'Getting ready';
  if (asking && saved) {
    const { step } = saved.meta;
    return (
      <div class="stack-tight" role="group" aria-label="Replace the saved run">
        <p class="small">
          A new run takes the place of the one that was saved at step {count(step)}.
        </p>
        <div class="row">
          <Button kind="primary" onClick={() => void acceptOffer()}>
            Continue the saved one
          </Button>
          <Button kind="danger" onClick={() => void start()}>
            Start a new one
          </Button>
        </div>
      </div>
    );
  }
  return (
    <>
      <Button
        kind="primary"
        icon={waiting ? undefined : 'play'}
        size={big ? 'big' : undefined}
        wide={big}
        disabled={problem !== ''}
        onClick={() => (saved ? setAsking(true) : void start())}
      >
        {waiting ? 'Getting ready…' : 'Start'}
      </Button>
      {problem !== '' && !waiting && <p class="field-help">{problem}</p>}
    </>
  );
}

export function RunButtons() {
  const phase = useRun((s) => s.phase);
  const running = phase === 'running';
  if (phase === 'idle') return <StartButton />;
  if (phase === 'preparing') return <p class="muted">Getting ready…</p>;
  return (
    <div class="row">
      {running && (
        <Button kind="primary" icon="pause" onClick={() => void controller.pause()}>
          Pause
        </Button>
      )}
      {phase === 'paused' && (
        <Button kind="primary" icon="play" onClick={() => void controller.unpause()}>
          Go on
        </Button>
      )}
      {(running || phase === 'paused') && (
        <Button icon="stop" onClick={() => void controller.stop()}>
          Stop
        </Button>
      )}
      {!running && <NewRun />}
    </div>
  );
}

/** A new run replaces the old one: asked once more, since the old one is deleted. */
function NewRun() {
  const [asking, setAsking] = useState(false);
  if (!asking) {
    return (
      <Button icon="reset" onClick={() => setAsking(true)}>
        Reset
      </Button>
    );
  }
  return (
    <div class="row" role="group" aria-label="Reset">
      <p class="small">Delete this run and its save? Its curve stays for comparison.</p>
      <Button
        kind="danger"
        onClick={() => {
          setAsking(false);
          void reset().then(() => openView('start'));
        }}
      >
        Delete the run
      </Button>
      <Button onClick={() => setAsking(false)}>Keep it</Button>
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
        openView('live');
        void controller.unpause(more);
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
        <Button onClick={() => void controller.unpause()}>Only the {count(left)} left</Button>
      )}
    </form>
  );
}
