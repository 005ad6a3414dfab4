// SPDX-License-Identifier: Apache-2.0
/**
 * write_view.tsx - Write: the model in hand continues a prompt, by one set of settings or by two
 * side by side. It may be in training meanwhile.
 */
import { plainError } from '../plain_error';
import { Button } from '../parts/button';
import { Card, Disclosure } from '../parts/card';
import { Check, Field, NumberField } from '../parts/fields';
import { Notice } from '../parts/notice';
import { Stat } from '../parts/stat';
import { P } from '../parts/term';
import { capital, count, milliseconds } from '../format';
import { current } from '../state/current';
import { notify } from '../state/notices';
import { keys } from '../shortcuts';
import { useStore } from '../store';
import { outputs, stop, write, writeState, type Output, type Side } from './generation';
import { NeedModel } from './need_model';
import { describe, sharedStart } from './settings';
import { SettingsFields } from './settings_fields';
import './write.css';

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify('good', 'The text is in the clipboard.');
  } catch {
    notify('warning', 'The browser did not allow copying. Select the text and copy it by hand.');
  }
}

/** Which model wrote, and at which step it was, or between which it moved on. */
function writerWords(o: Output): string {
  // A model of somebody else's does not say how long it was trained.
  if (o.toStep === 0 && current.get()?.origin === 'file') return `${o.label}.`;
  return o.fromStep === o.toStep
    ? `${o.label} at step ${o.fromStep}.`
    : `${o.label} at steps ${o.fromStep} to ${o.toStep}: it went on learning meanwhile.`;
}

/** What the model in hand writes one by one. */
function useUnit(): string {
  const unit = useStore(current, (c) => c?.unit ?? 'byte');
  return `${capital(unit)}s`;
}

const STATUS: Record<Output['status'], string> = {
  empty: '',
  waiting: 'Waits for the first text.',
  writing: 'Writing …',
  done: 'Done.',
  stopped: 'Stopped.',
  failed: 'Failed.',
};

function Written({ side, title, shared }: { side: Side; title: string; shared: number }) {
  const out = useStore(outputs[side]);
  const unit = useUnit();
  if (out.status === 'empty') return <P class="quiet">Nothing written yet.</P>;
  return (
    <>
      <P class="quiet" role="status">
        {STATUS[out.status]} {out.status !== 'waiting' && writerWords(out)}
      </P>
      {out.status !== 'waiting' && (
        <div
          class="write-text"
          tabIndex={0}
          role="region"
          aria-label={`${title}, written`}
          aria-busy={out.status === 'writing'}
        >
          <span class="write-prompt">{out.prompt}</span>
          {shared > 0 && <span class="write-shared">{out.text.slice(0, shared)}</span>}
          {out.text.slice(shared)}
          {out.status === 'writing' && <span class="caret" aria-hidden="true" />}
        </div>
      )}
      {out.status === 'failed' && <Notice kind="error">{plainError(out.error)}</Notice>}
      {out.pieces > 0 && (
        <dl class="stats write-stats">
          <Stat name="First text after" value={milliseconds(out.firstMs)} />
          <Stat
            name={`${unit} a second`}
            value={Number.isFinite(out.tokPerS) ? count(out.tokPerS) : '–'}
          />
          <Stat
            name={`${unit} written`}
            value={count(out.pieces)}
            note={
              out.stats && out.stats.slides > 0 ? 'longer than the model looks back' : undefined
            }
          />
        </dl>
      )}
      {out.stats !== null && out.stats.promptDropped > 0 && (
        <Notice kind="info">
          The prompt is longer than the model can look back: its first {out.stats.promptDropped}{' '}
          {unit.toLowerCase()} were left out.
        </Notice>
      )}
      {out.text !== '' && out.status !== 'writing' && (
        <div class="row">
          <Button icon="copy" onClick={() => void copy(out.prompt + out.text)}>
            Copy
          </Button>
        </div>
      )}
    </>
  );
}

function Column({
  side,
  title,
  shared,
  open,
}: {
  side: Side;
  title: string;
  shared: number;
  open: boolean;
}) {
  const settings = useStore(writeState, (s) => s[side]);
  return (
    <Card title={title} aside={describe(settings)}>
      <Written side={side} title={title} shared={shared} />
      <Disclosure summary="Settings" open={open}>
        <SettingsFields
          value={settings}
          onChange={(value) => writeState.patch({ [side]: value })}
        />
      </Disclosure>
    </Card>
  );
}

export default function WriteView() {
  const model = useStore(current, (c) => c?.model ?? null);
  const unit = useUnit();
  const { prompt, tokens, compare } = useStore(writeState);
  const a = useStore(outputs.a);
  const b = useStore(outputs.b);
  if (!model) return <NeedModel what="write with" />;
  const busy = [a, b].some((o) => o.status === 'writing' || o.status === 'waiting');
  const both = compare && a.text !== '' && b.text !== '' && !busy;
  const shared = both ? sharedStart(a.text, b.text) : 0;
  return (
    <div class="stack">
      <Card title="Prompt">
        <form
          class="stack-tight"
          onSubmit={(e) => {
            e.preventDefault();
            void write(model);
          }}
        >
          <Field label="The beginning of the text" help="The model goes on from here.">
            {({ id, describedBy }) => (
              <textarea
                id={id}
                class="input write-input"
                rows={3}
                aria-describedby={describedBy}
                value={prompt}
                onInput={(e) => writeState.patch({ prompt: e.currentTarget.value })}
                onKeyDown={keys('write', { write: () => void write(model), stop })}
              />
            )}
          </Field>
          <div class="write-actions">
            <NumberField
              label={`${unit} to write`}
              value={tokens}
              min={1}
              max={100_000}
              whole
              onChange={(n) => writeState.patch({ tokens: n })}
            />
            <Check
              label="Two settings side by side"
              checked={compare}
              disabled={busy}
              onChange={(on) => writeState.patch({ compare: on })}
            />
            <div class="row">
              {busy ? (
                <Button icon="stop" onClick={stop}>
                  Stop
                </Button>
              ) : (
                <Button kind="primary" icon="pen" submit title="Ctrl + Enter">
                  Write
                </Button>
              )}
            </div>
          </div>
        </form>
      </Card>
      <div class={compare ? 'write-two' : ''}>
        <Column side="a" title={compare ? 'A' : 'Text'} shared={shared} open={!compare} />
        {compare && <Column side="b" title="B" shared={shared} open={false} />}
      </div>
      {both && (
        <P class="quiet" role="status">
          {shared === a.text.length && shared === b.text.length
            ? 'Both texts are the same.'
            : shared === 0
              ? 'The texts differ from their first character on.'
              : shared === 1
                ? 'The first character is the same; it is shown paler.'
                : `The first ${shared} characters are the same; they are shown paler.`}
        </P>
      )}
    </div>
  );
}
