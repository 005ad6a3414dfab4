// SPDX-License-Identifier: Apache-2.0
/** shelf_view.tsx - Your models: every run that this browser keeps, and what can be done with it. */
import { useEffect, useState } from 'preact/hooks';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Check, Field } from '../parts/fields';
import { Notice } from '../parts/notice';
import { Bar, Stat } from '../parts/stat';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { bytes, count, loss, readable, roughCount } from '../format';
import { exportRun } from '../state/files';
import { askToPersist, keeping, room } from '../state/keeping';
import { openView } from '../state/route';
import { deleteRun, fineTune, openRun, useRun, useStoreAgain } from '../state/run';
import {
  compare,
  compared,
  copyRun,
  refreshShelf,
  rename,
  shelf,
  type ShelfRun,
  sizeWords,
} from '../state/shelf';
import { textName, textState } from '../state/text';
import { useWaiting } from '../state/waiting';
import { useStore } from '../store';
import { ForeignList } from './foreign_list';
import { sparkline } from './sparkline';
import './shelf.css';

export default function ShelfView() {
  const runs = useStore(shelf);
  const kept = useStore(keeping);
  useEffect(() => void refreshShelf(), []);
  return (
    <div class="stack">
      {kept.status !== 'ok' && kept.status !== 'opening' && (
        <Notice kind="warning">
          <P>{kept.reason}</P>
          <Button onClick={() => void useStoreAgain()}>Try again</Button>
        </Notice>
      )}
      {runs === null && kept.status !== 'locked' && kept.status !== 'unavailable' && (
        <P class="muted">Looking for your models…</P>
      )}
      {runs?.length === 0 && <Empty />}
      {runs !== null && runs.length > 0 && (
        <ul class="shelf" aria-label="Your models">
          {runs.map((r) => (
            <Item key={r.id} run={r} />
          ))}
        </ul>
      )}
      <RoomCard />
    </div>
  );
}

function Empty() {
  return (
    <Card title="Nothing here yet">
      <P class="muted">
        Each model that you train stands here from its first second on, with its text, its settings,
        its curve and what it wrote.
      </P>
      <div class="row">
        <Button kind="primary" icon="play" onClick={() => openView('start')}>
          Train one
        </Button>
      </div>
    </Card>
  );
}

function Item({ run }: { run: ShelfRun }) {
  const { meta } = run;
  const open = useRun((s) => s.id === run.id);
  const phase = useRun((s) => (s.id === run.id ? s.phase : 'idle'));
  // What is open is further than what was saved of it last.
  const step = useRun((s) => (s.id === run.id ? s.step : meta.step));
  const over = step >= meta.total;
  const sample = meta.samples.at(-1);
  const [waiting, begin] = useWaiting();
  const busy = waiting !== null;
  const take = (go: boolean) =>
    begin('Opening it', (signal) =>
      openRun(run, go, signal).then((done) => done && !go && openView('live')),
    );
  return (
    <li class={open ? 'shelf-item shelf-open' : 'shelf-item'} aria-label={run.name}>
      <Name run={run} />
      <div class="shelf-body">
        <Sparkline run={run} />
        <dl class="stats">
          <Stat
            name="Trained"
            value={`${count(step)} steps`}
            note={over ? 'to the end' : `of ${count(meta.total)}`}
          />
          <Stat
            name="Loss"
            value={meta.loss === null ? '–' : loss(meta.loss)}
            note={meta.val === null ? '' : `on new text ${loss(meta.val)}`}
          />
          <Stat
            name="Size"
            value={meta.params > 0 ? roughCount(meta.params) : '–'}
            note={`${sizeWords(meta.settings)}, ${bytes(run.bytes)} here`}
          />
        </dl>
      </div>
      <P class="quiet">
        Learnt from “<span>{meta.text.name}</span>”, {bytes(meta.text.bytes)}
        {run.text === 0 && meta.text.stories === undefined && ' (not kept here)'}. Saved{' '}
        {new Date(meta.savedAt).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })}.
      </P>
      {sample && <p class="shelf-sample">{readable(sample.text.trim().slice(0, 160))}</p>}
      <div class="row">
        {phase === 'running' ? (
          <Button kind="primary" icon="pulse" onClick={() => openView('live')}>
            Watch it
          </Button>
        ) : (
          <>
            {!over && (
              <Button
                kind="primary"
                icon="play"
                disabled={busy}
                onClick={() => take(true)}
              >
                Go on
              </Button>
            )}
            {open ? (
              <Button icon="pulse" onClick={() => openView('live')}>
                Look at it
              </Button>
            ) : (
              <Button
                icon="folder"
                disabled={busy}
                onClick={() => take(false)}
              >
                Open
              </Button>
            )}
          </>
        )}
        <FineTune
          busy={busy}
          onStart={() => begin('Starting', (signal) => fineTune(run, signal))}
        />
        <Button
          icon="download"
          disabled={busy}
          onClick={() => begin('Writing it', (signal) => exportRun(run, signal))}
        >
          Download
        </Button>
        <Button
          icon="copy"
          disabled={busy}
          onClick={() => begin('Copying it', (signal) => copyRun(run, signal))}
        >
          Copy
        </Button>
        <Button
          icon="trash"
          disabled={busy || phase === 'running'}
          onClick={() => begin('Deleting it', (signal) => deleteRun(run, signal))}
        >
          Delete
        </Button>
        <Compare run={run} />
      </div>
      {waiting && <Wait words={waiting.words} onCancel={waiting.cancel} />}
    </li>
  );
}

function FineTune({ busy, onStart }: { busy: boolean; onStart: () => void }) {
  const text = useStore(textState);
  return (
    <Button
      icon="spark"
      disabled={busy || !text.blob}
      title={`A new model from these weights, on ${textName(text.origin)}`}
      onClick={onStart}
    >
      Train on my text
    </Button>
  );
}

function Compare({ run }: { run: ShelfRun }) {
  const on = useStore(compared, (ids) => ids.includes(run.id));
  return (
    <>
      <Check label="Compare" checked={on} onChange={(yes) => compare(run.id, yes)} />
      {on && (
        <Button kind="plain" onClick={() => openView('live')}>
          See the curves
        </Button>
      )}
    </>
  );
}

/** The name, and a field to change it. */
function Name({ run }: { run: ShelfRun }) {
  const [draft, setDraft] = useState<string | null>(null);
  if (draft === null) {
    return (
      <div class="row spread">
        <h2 class="shelf-name">{run.name}</h2>
        <Button kind="plain" icon="pen" onClick={() => setDraft(run.name)}>
          Rename
        </Button>
      </div>
    );
  }
  return (
    <form
      class="shelf-rename"
      onSubmit={(e) => {
        e.preventDefault();
        setDraft(null);
        void rename(run, draft);
      }}
    >
      <Field label="Name">
        {({ id }) => (
          <input
            id={id}
            class="input"
            type="text"
            maxLength={80}
            value={draft}
            onInput={(e) => setDraft(e.currentTarget.value)}
          />
        )}
      </Field>
      <Button submit kind="primary">
        Save
      </Button>
      <Button onClick={() => setDraft(null)}>Cancel</Button>
    </form>
  );
}

function Sparkline({ run }: { run: ShelfRun }) {
  const points = sparkline(run.meta.curve);
  if (points === '') return <div class="shelf-curve" />;
  return (
    <svg class="shelf-curve" viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true">
      <polyline points={points} />
    </svg>
  );
}

/** How much of what the browser grants is in use; told before it is full. */
function RoomCard() {
  const r = useStore(room);
  if (!r) return null;
  const share = r.most === null ? 0 : r.used / r.most;
  return (
    <Card title="Room" aside={r.most === null ? bytes(r.used) : `${bytes(r.used)} of ${bytes(r.most)}`}>
      {r.most !== null && <Bar label="Share of the browser’s room that is in use" share={share} />}
      <P class={share > 0.8 ? 'small' : 'quiet'}>
        {share > 0.8
          ? 'It is nearly full. Download what you want to keep, and delete what you do not need.'
          : 'Models, texts, conversations and the page itself. ' +
            (r.most === null
              ? 'This browser does not tell how much more it grants; a chat model that does not ' +
                'fit is told before it is copied.'
              : 'When the disk gets full the browser may grant less.')}
      </P>
      <P class="quiet">
        {r.promised
          ? 'The browser has promised to keep it until you delete it.'
          : 'The browser may throw it away when the disk fills up, Safari also after seven days ' +
            'without a visit. Browsers promise more readily where a page is installed.'}
      </P>
      {!r.promised && (
        <div class="row">
          <Button onClick={() => void askToPersist()}>Ask it to keep it</Button>
        </div>
      )}
      <ForeignList />
    </Card>
  );
}
