// SPDX-License-Identifier: Apache-2.0
/** files_view.tsx - downloads in every layout, opening a file, what the browser keeps. */
import { useState } from 'preact/hooks';
import { Button } from '../parts/button';
import { Card, Disclosure } from '../parts/card';
import { Notice } from '../parts/notice';
import { Stat } from '../parts/stat';
import { P, Words } from '../parts/term';
import { Wait } from '../parts/wait';
import { bytes, count, loss, roughCount } from '../format';
import { familyOf, UNNAMED } from '../model/families';
import { current } from '../state/current';
import {
  cancelFiles,
  continueOpenedRun,
  download,
  filesState,
  type Layout,
  openModelFile,
  type OpenedFile,
  trainOpenedModel,
} from '../state/files';
import { openView } from '../state/route';
import { keeping } from '../state/keeping';
import { controller, useRun } from '../state/run';
import { textName, textState } from '../state/text';
import { useStore } from '../store';
import { FileButton } from '../text/text_box';
import { VIEWS } from '../state/views';
import { isModelName } from './model_file';
import './files.css';

export default function FilesView() {
  const { busy, problem } = useStore(filesState);
  return (
    <>
      <div class="messages" aria-live="polite">
        {busy !== '' && <Wait words={busy} onCancel={cancelFiles} />}
        {problem !== '' && (
          <Notice kind="error">
            <P>{problem}</P>
          </Notice>
        )}
      </div>
      <div class="columns">
        <Downloads />
        <div class="stack">
          <Upload />
          <Kept />
        </div>
      </div>
    </>
  );
}

const RUN: Layout = {
  kind: 'run',
  title: 'The whole run',
  about:
    'All that it has learnt and how far it is, without the text. Opened here, or by the program ' +
    '(tinygpt train --resume), it goes on exactly there.',
  extension: 'tinygpt',
};

const BEST: Layout = {
  kind: 'best',
  title: 'The best version',
  about: 'The weights that did best on text the model has not seen.',
  extension: 'tinygpt',
};

const LAST: Layout = {
  kind: 'last',
  title: 'The last save',
  about: 'The run as it was last saved, before it stopped.',
  extension: 'tinygpt',
};

const WEIGHTS: Layout = {
  kind: 'v3',
  title: 'The model',
  about: 'What it has learnt alone: a third of the run’s size.',
  extension: 'tinygpt',
};

const GGUF: Layout = {
  kind: 'gguf',
  title: 'GGUF',
  about: 'For llama.cpp, and programs that are built on it.',
  extension: 'gguf',
};

/** Layouts that can hold a tinygpt alone. */
const AS_GPT2: readonly Layout[] = [
  {
    kind: 'safetensors',
    title: 'safetensors',
    about: 'For Python: as a GPT-2 of the library transformers.',
    extension: 'safetensors',
  },
];

const ORIGINAL: readonly Layout[] = [
  {
    kind: 'v2-f32',
    title: '.tinygpt v2',
    about: 'As the original TinyGPT keeps what it trains.',
    extension: 'tinygpt',
  },
  {
    kind: 'v2-f16',
    title: '.tinygpt v2, half precision',
    about: 'As in its gallery: half the size, a little less exact.',
    extension: 'tinygpt',
  },
  {
    kind: 'v2-int4',
    title: '.tinygpt v2, 4 bits',
    about: 'An eighth of the size, coarse. Only for writing.',
    extension: 'tinygpt',
  },
];

function Downloads() {
  const now = useStore(current);
  const phase = useRun((s) => s.phase);
  const best = useRun((s) => s.best);
  const isRun = now?.origin === 'run';
  const isTinygpt = familyOf(now?.config.family).name === UNNAMED;
  const opened = useStore(filesState, (f) => f.opened);
  // Packed weights are in the types of their file, which these layouts do not have.
  const packed = now?.origin === 'file' && opened !== null && !opened.info.trains;
  const failed = phase === 'failed' && controller.lastSave !== null;
  return (
    <Card title="Download" aside={now ? `${now.label}, step ${count(now.step)}` : ''}>
      {!now && !failed && (
        <P class="muted">
          There is no model yet. Train one, or open a file; then it can be taken along in every
          layout.
        </P>
      )}
      {failed && <DownloadList layouts={[LAST]} />}
      {packed && (
        <P class="muted">
          This model is for writing: it is not trained here, and not saved in another layout.
        </P>
      )}
      {now && !packed && (
        <>
          <DownloadList
            layouts={[
              ...(isRun ? [RUN] : []),
              ...(isRun && best ? [BEST] : []),
              WEIGHTS,
              GGUF,
              ...(isTinygpt ? AS_GPT2 : []),
            ]}
          />
          {isTinygpt && (
            <Disclosure summary="For the original TinyGPT">
              <DownloadList layouts={ORIGINAL} />
            </Disclosure>
          )}
        </>
      )}
    </Card>
  );
}

function DownloadList({ layouts }: { layouts: readonly Layout[] }) {
  const busy = useStore(filesState, (f) => f.busy !== '');
  return (
    <ul class="files-list">
      {layouts.map((l) => (
        <li key={l.kind}>
          <div>
            <h3>
              <Words>{l.title}</Words>
            </h3>
            <P class="field-help">{l.about}</P>
          </div>
          <button
            class="button"
            type="button"
            disabled={busy}
            aria-label={`Download: ${l.title}`}
            onClick={() => void download(l)}
          >
            Download
          </button>
        </li>
      ))}
    </ul>
  );
}

function Upload() {
  const { opened, busy } = useStore(filesState);
  const [over, setOver] = useState(false);
  const take = (files: File[]) => {
    const file = files.find((f) => isModelName(f.name)) ?? files[0];
    if (file) void openModelFile(file);
  };
  return (
    <Card title="Open a model or run">
      <div
        class={over ? 'files-drop files-over' : 'files-drop'}
        onDragEnter={() => setOver(true)}
        onDragLeave={() => setOver(false)}
        onDrop={() => setOver(false)}
      >
        <P class="muted small">
          A model that was made with tinygpt or the original TinyGPT (.tinygpt, .safetensors), or a
          small one of another maker (.gguf, or a zipped folder). Drop it anywhere on this page.
          Those of other makers can be trained, too, unless they were made smaller (4 or 8 bits).
        </P>
        <FileButton label="Open a file" single primary={!opened && busy === ''} onFiles={take} />
      </div>
      {opened && <Opened file={opened} />}
    </Card>
  );
}

function Opened({ file }: { file: OpenedFile }) {
  const { info } = file;
  const c = info.config;
  const text = useStore(textState);
  const running = useRun((s) => s.phase === 'running' || s.phase === 'preparing');
  const busy = useStore(filesState, (f) => f.busy !== '');
  return (
    <section class="stack-tight" aria-label={file.name}>
      <h3>{file.name}</h3>
      <dl class="stats">
        <Stat
          name="Parameters"
          value={roughCount(info.params)}
          note={`${familyOf(info.family).label}, ${c.layers} layers of ${c.width}, context ${c.ctx}`}
        />
        <Stat
          name="Trained"
          value={info.step > 0 ? `${count(info.step)} steps` : 'not yet'}
          note={`${info.format}, ${info.dtype}`}
        />
        <Stat
          name="Loss"
          value={loss(info.loss)}
          note={Number.isFinite(info.valLoss) ? `on new text ${loss(info.valLoss)}` : ''}
        />
      </dl>
      {running && (
        <Notice kind="info">
          <P>A run is in progress. Stop or pause it to use this file.</P>
        </Notice>
      )}
      {info.hasMoments && (
        <>
          <P class="small">
            This file holds a run. To go on exactly where it was, have the text it was trained on in
            hand. Now in hand: <strong>{textName(text.origin)}</strong>,{' '}
            {bytes(text.blob?.size ?? 0)}.
          </P>
          <div class="row">
            <Button
              kind="primary"
              icon="play"
              disabled={running || busy}
              onClick={() => void continueOpenedRun()}
            >
              Continue the run
            </Button>
            <Button icon="text" onClick={() => openView('text')}>
              Choose its text
            </Button>
          </div>
        </>
      )}
      <div class="row">
        {VIEWS.some((v) => v.id === 'write') && (
          <Button icon="pen" disabled={running} onClick={() => openView('write')}>
            Let it write
          </Button>
        )}
        {info.trains && (
          <Button
            icon="spark"
            disabled={running || busy || !text.blob}
            onClick={() => void trainOpenedModel()}
          >
            Train it on the text in hand
          </Button>
        )}
      </div>
      <Disclosure summary="What is in the file">
        <pre class="files-lines" tabIndex={0}>
          {file.lines}
        </pre>
      </Disclosure>
    </section>
  );
}

const KEEPING = {
  opening: 'Looking for what was saved…',
  ok:
    'What you make is saved in this browser, on this machine: a text when it is taken, a run from ' +
    'its start on, once a second or as often as its size allows, a conversation after each turn.',
  locked: 'Another tab of this page keeps things here. What this tab makes is not saved by itself.',
  unavailable: 'This browser gives the page no place to keep a run. Download it before you leave.',
} as const;

function Kept() {
  const kept = useStore(keeping);
  const s = useRun();
  return (
    <Card title="Nothing is lost">
      <P class="small">{KEEPING[kept.status]}</P>
      {kept.reason !== '' && <P class="field-help">{kept.reason}</P>}
      {s.saveProblem !== '' && (
        <Notice kind="warning">
          <P>{s.saveProblem}</P>
        </Notice>
      )}
      {s.savedStep !== null && s.savedAt !== null && (
        <P class="quiet">
          Last save: step {count(s.savedStep)}, at {new Date(s.savedAt).toLocaleTimeString('en-GB')}
          .
        </P>
      )}
      <div class="row">
        <Button icon="shelf" onClick={() => openView('shelf')}>
          Your models
        </Button>
      </div>
    </Card>
  );
}
