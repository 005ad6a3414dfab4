// SPDX-License-Identifier: Apache-2.0
/** progress_card.tsx - how far the run is, its numbers, its buttons; polite news for ears. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Card, Disclosure } from '../parts/card';
import { Bar, Stat } from '../parts/stat';
import { P } from '../parts/term';
import { capital, count, duration, loss, milliseconds, percent, rate } from '../format';
import { epochs } from '../model/forecast_card';
import { ContinueForm, RunButtons } from '../run/run_buttons';
import { TellMe } from '../run/run_view';
import type { RunState } from '../run/controller';
import { keeping } from '../state/keeping';
import { controller, useRun } from '../state/run';
import { useStore } from '../store';
import { choices, guessing, meaning } from './words';

export function ProgressCard() {
  const s = useRun();
  const unit = `${s.unit}s`;
  // One step's speed jumps about; what is shown goes by the mean of the last ten or so.
  const smooth = s.last ? s.last.ms / s.msPerStep : NaN;
  const left = ((s.total - s.step) * s.msPerStep) / 1000;
  const words =
    s.phase === 'running' && Number.isFinite(left) ? `${duration(left)} left` : ended(s);
  return (
    <Card title={`Step ${count(s.step)} of ${count(s.total)}`} aside={words} class="live-progress">
      <Bar label="Share of the steps that are done" share={s.total > 0 ? s.step / s.total : 0} />
      <dl class="live-strip">
        <Stat name="Loss, practised" value={loss(s.loss)} note={among(s.loss, s.vocab, unit)} />
        <Stat
          name="Loss, new text"
          value={s.val ? loss(s.val.loss) : '–'}
          note={s.best ? `best ${loss(s.best.loss)} at ${count(s.best.step)}` : ''}
        />
        <Stat
          name={`${capital(unit)} a second`}
          value={Number.isFinite(smooth) ? count(s.last ? s.last.tokPerS * smooth : 0) : '–'}
          note={Number.isFinite(s.msPerStep) ? `${milliseconds(s.msPerStep)} a step` : ''}
        />
        <Stat name="Text read" value={read(s)} note="the part it practises on" />
      </dl>
      <div class="row spread">
        <RunButtons />
        <P class="quiet live-meaning">{meaning(s)}</P>
      </div>
      <News s={s} />
    </Card>
  );
}

/** What is seldom wanted: the other numbers, how safe the run is, more steps. */
export function MoreNumbers() {
  const s = useRun();
  const smooth = s.last ? s.last.ms / s.msPerStep : NaN;
  return (
    <Card title="The run">
      <Saved s={s} />
      {s.phase === 'running' && <TellMe />}
      <ContinueForm />
      <Disclosure summary="More numbers">
        <dl class="stats">
          <Stat name="Learning rate" value={s.last ? rate(s.last.lr) : '–'} />
          <Stat name="Gradient norm" value={s.last ? s.last.gradNorm.toPrecision(3) : '–'} />
          <Stat name="A step takes" value={milliseconds(s.msPerStep)} />
          <Stat name="Share of peak" value={peak(s, smooth)} note="of what was measured here" />
          <Stat name="Trained in this visit" value={duration(s.seconds)} />
          <Stat
            name="Difference"
            value={s.val ? loss(s.val.loss - s.loss) : '–'}
            note="new text minus practised"
          />
          <Stat
            name="Fingerprint of the curve"
            value={<code class="live-hash">{s.last?.lossHash ?? '–'}</code>}
            note="equal for two runs that are one run, to the bit"
          />
        </dl>
        {s.skipped > 0 && (
          <P class="small">
            {count(s.skipped)} steps were refused for numbers that were not finite.
          </P>
        )}
      </Disclosure>
    </Card>
  );
}

/** How often the part of the text that is practised on has gone by. */
function read(s: RunState): string {
  const { settings, step, bytesPerToken } = s;
  const bytes = controller.text?.blob.size ?? 0;
  if (!settings || !(bytesPerToken > 0) || bytes === 0 || step === 0) return '–';
  const { batch, accum, ctx, valFraction } = settings;
  return epochs((step * batch * accum * ctx * bytesPerToken) / (bytes * (1 - valFraction)));
}

/** The peak is measured once, under whatever load there was then: a step may beat it. */
function peak(s: RunState, smooth: number): string {
  if (!s.last || s.last.shareOfPeak <= 0) return '–';
  const share = s.last.shareOfPeak * smooth;
  return share < 1 ? percent(share) : 'all of it';
}

/** What a run that stands still is called. */
function ended(s: RunState): string {
  return s.phase === 'done' && s.step < s.total ? 'stopped' : PHASES[s.phase];
}

const PHASES: Record<RunState['phase'], string> = {
  idle: '',
  preparing: 'getting ready',
  running: '',
  paused: 'paused',
  done: 'done',
  failed: 'stopped by a fault',
};

/** Never more than there are, which a loss above that of guessing would say. */
function among(nats: number, vocab: number, unit: string): string {
  return Number.isFinite(nats) ? `one of ${choices(Math.min(nats, guessing(vocab)))} ${unit}` : '';
}

function Saved({ s }: { s: RunState }) {
  const kept = useStore(keeping);
  let text = '';
  if (s.saveProblem) text = s.saveProblem;
  else if (kept.status === 'unavailable') text = `This run is not saved by itself. ${kept.reason}`;
  else if (s.savedStep !== null && kept.status === 'ok') {
    text =
      `Saved at step ${count(s.savedStep)}. A refresh, a crash or a closed tab loses ` +
      'nothing before it.';
  }
  return text === '' ? null : <P class="quiet">{text}</P>;
}

/** Screen readers hear milestones, ends, and else a line every half minute. */
const NEWS_MS = 30_000;

function News({ s }: { s: RunState }) {
  const [said, setSaid] = useState('');
  const at = useRef(0);
  const milestone = s.milestones.at(-1)?.text ?? '';
  useEffect(() => {
    if (milestone !== '') setSaid(milestone);
  }, [milestone]);
  useEffect(() => {
    if (s.phase === 'paused' || s.phase === 'done' || s.phase === 'failed') {
      setSaid(`${ended(s)} at step ${count(s.step)}`);
    }
  }, [s.phase]);
  useEffect(() => {
    const now = Date.now();
    if (s.phase !== 'running' || now - at.current < NEWS_MS) return;
    at.current = now;
    setSaid(`Step ${count(s.step)} of ${count(s.total)}, loss ${loss(s.loss)}`);
  }, [s.step]);
  return (
    <p class="unseen" aria-live="polite">
      {said}
    </p>
  );
}
