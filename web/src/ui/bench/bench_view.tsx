// SPDX-License-Identifier: Apache-2.0
/**
 * bench_view.tsx - Benchmark: which build is how much faster here, in paired turns on this machine,
 * with intervals, and a plain block to copy.
 */
import { useEffect, useState } from 'preact/hooks';
import type { Preset } from '../../lib/types';
import { useEngine } from '../engine';
import { plainError } from '../plain_error';
import { count } from '../format';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Check, Choice, Field } from '../parts/fields';
import { Notice } from '../parts/notice';
import { Bar } from '../parts/stat';
import { P, Words } from '../parts/term';
import { notify } from '../state/notices';
import { useRun } from '../state/run';
import { Store, useStore } from '../store';
import { findAdapter, type AdapterVerdict } from './adapter';
import { RatioChart } from './chart';
import {
  BENCH_BUILDS,
  formatDrift,
  formatMs,
  formatRatio,
  osBrowser,
  ratioToScalar,
  reportText,
  webgpuCell,
} from './report';
import { drift, runPreset, type BenchProgress, type Entrant, type PresetResult } from './run';
import { median } from './stats';
import './bench.css';

const TURNS = { '6': 'Quick', '9': 'Usual', '15': 'Thorough' } as const;
type Turns = keyof typeof TURNS;

interface BenchState {
  running: boolean;
  presets: readonly string[];
  builds: readonly Entrant[];
  turns: Turns;
  device: string;
  progress: { what: string; done: number } | null;
  results: readonly PresetResult[];
  notes: readonly string[];
  error: unknown;
}

const bench = new Store<BenchState>({
  running: false,
  presets: ['tiny', 'small', 'medium'],
  builds: BENCH_BUILDS.filter((build) => build !== 'webgpu'),
  turns: '9',
  device: '',
  progress: null,
  results: [],
  notes: [],
  error: null,
});

let control: AbortController | null = null;

/** Modules of all builds together are kept open only up to this; beyond, one at a time. */
const TOGETHER_BYTES = 1.5e9;

/** Weights, gradients, both moments, and the activations, which are about as much again. */
function roughBytes(preset: Preset): number {
  const { layers, width, heads, ctx } = preset.config;
  const activations = layers * preset.batch * ctx * (17 * width + heads * ctx);
  return 16 * preset.params + 4 * activations;
}

async function run(presets: readonly Preset[], builds: readonly Entrant[], turns: number) {
  const mine = (control = new AbortController());
  const { signal } = mine;
  const notes = [
    crossOriginIsolated ? 'cross-origin isolated' : 'not cross-origin isolated: no threads',
  ];
  let hidden = document.visibilityState === 'hidden';
  const watchVisibility = () => {
    hidden ||= document.visibilityState === 'hidden';
  };
  document.addEventListener('visibilitychange', watchVisibility);
  bench.patch({
    running: true,
    results: [],
    error: null,
    notes,
    progress: { what: 'Opening', done: 0 },
  });
  const done: PresetResult[] = [];
  try {
    const { openContestant } = await import('./contestants');
    for (const [i, preset] of presets.entries()) {
      const apart = builds.length * roughBytes(preset) > TOGETHER_BYTES;
      if (apart) notes.push(`${preset.name}: modules opened one at a time, for their memory`);
      const race = runPreset(
        preset.name,
        builds,
        (build) => openContestant(build, preset),
        { turns, apart },
        signal,
      );
      let next: IteratorResult<BenchProgress, PresetResult>;
      while (!(next = await race.next()).done) {
        const { what, done: share, result } = next.value;
        bench.patch({
          progress: { what, done: (i + share) / presets.length },
          results: [...done, result],
        });
      }
      done.push(next.value);
      bench.patch({ results: [...done] });
    }
  } catch (error) {
    if (!signal.aborted) bench.patch({ error });
    else notes.push('cancelled before its end');
  } finally {
    document.removeEventListener('visibilitychange', watchVisibility);
    if (hidden) notes.push('the page was hidden for a part of the time');
    if (control === mine) bench.patch({ running: false, progress: null, notes: [...notes] });
  }
}

function deviceWords(): string {
  const { deviceMemory } = navigator as Navigator & { deviceMemory?: number };
  const cores = navigator.hardwareConcurrency;
  return [
    cores ? `${cores} logical processors` : 'unknown processor',
    deviceMemory ? `${deviceMemory >= 8 ? '8 GB or more' : `${deviceMemory} GB`} of memory` : '',
  ]
    .filter(Boolean)
    .join(', ');
}

function browserWords(): string {
  const { userAgentData: data } = navigator as Navigator & {
    userAgentData?: { brands: { brand: string; version: string }[]; platform: string };
  };
  return osBrowser(navigator.userAgent, data?.brands ?? [], data?.platform ?? '');
}

function onGpu(result: PresetResult): boolean {
  return result.rows.some((row) => row.build === 'webgpu');
}

function ResultTable({ results, gpu }: { results: readonly PresetResult[]; gpu: string }) {
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label="Results">
      <table class="table bench-table">
        <thead>
          <tr>
            <th>Preset</th>
            <th>Build</th>
            <th class="right">ms a step</th>
            <th class="right">Times scalar [95 %]</th>
            <th class="right">
              <Words>Drift</Words>
            </th>
          </tr>
        </thead>
        <tbody>
          {results.map((result) => [
            ...result.rows.map((row, i) => (
              <tr key={`${result.preset} ${row.build}`}>
                {i === 0 && (
                  <th scope="rowgroup" rowSpan={result.rows.length + (onGpu(result) ? 0 : 1)}>
                    {result.preset}
                  </th>
                )}
                <td>
                  {row.build}
                  {row.threads > 1 && row.build !== 'webgpu' && (
                    <span class="quiet"> {row.threads} threads</span>
                  )}
                  {row.build === 'webgpu' && Number.isFinite(row.firstMs) && (
                    <span class="quiet"> first step {formatMs(row.firstMs)} ms</span>
                  )}
                </td>
                {row.problem ? (
                  <td colSpan={3} class="muted">
                    Not measured: {row.problem}
                  </td>
                ) : (
                  <>
                    <td class="right">{formatMs(median(row.ms))}</td>
                    <td class="right">{formatRatio(ratioToScalar(result, row.build))}</td>
                    <td class="right">{formatDrift(drift(result, row.build))}</td>
                  </>
                )}
              </tr>
            )),
            !onGpu(result) && (
              <tr key={`${result.preset} webgpu`}>
                <td>webgpu</td>
                <td colSpan={3} class="muted">
                  {gpu}
                </td>
              </tr>
            ),
          ])}
        </tbody>
      </table>
    </div>
  );
}

function Toggle({
  label,
  on,
  note,
  disabled,
  onChange,
}: {
  label: string;
  on: boolean;
  note?: string;
  disabled: boolean;
  onChange: (on: boolean) => void;
}) {
  return (
    <Check
      label={note ? `${label} (${note})` : label}
      checked={on}
      disabled={disabled}
      onChange={onChange}
    />
  );
}

export default function BenchView() {
  const { info, status } = useEngine();
  const state = useStore(bench);
  const training = useRun((s) => s.phase === 'running' || s.phase === 'preparing');
  const [adapter, setAdapter] = useState<AdapterVerdict | null>(null);
  useEffect(() => void findAdapter().then(setAdapter), []);

  const { running, presets, builds, turns, results, progress } = state;
  const toggle = <T extends string>(list: readonly T[], item: T, on: boolean): readonly T[] =>
    on ? [...list, item] : list.filter((x) => x !== item);
  const chosen = info?.presets.filter((p) => presets.includes(p.name)) ?? [];
  const inOrder = BENCH_BUILDS.filter((b) => builds.includes(b));
  const problem = training
    ? 'Training is running and would spoil the times. Pause it first.'
    : chosen.length === 0
      ? 'Choose at least one preset.'
      : !builds.includes('scalar') || builds.length < 2
        ? 'Choose the scalar build and one to compare with it.'
        : '';
  const finished = results.filter((r) => r.rows.some((row) => row.ms.length > 0));
  const text =
    info && adapter && !running && results.length > 0
      ? reportText(
          {
            device: [state.device.trim(), deviceWords()].filter(Boolean).join('; '),
            osBrowser: browserWords(),
            version: info.version,
            adapter,
            notes: [...state.notes],
          },
          results,
        )
      : '';

  return (
    <div class="stack">
      <Card title="What to compare" aside="All builds on this machine, in turns.">
        <fieldset class="bench-options">
          <legend class="field-label">
            <Words>Presets</Words>
          </legend>
          {info?.presets.map((p) => (
            <Toggle
              key={p.name}
              label={p.name}
              note={`${count(p.params)} parameters`}
              disabled={running}
              on={presets.includes(p.name)}
              onChange={(on) => bench.patch({ presets: toggle(presets, p.name, on) })}
            />
          ))}
          {status === 'opening' && <P class="quiet">Getting the engine ready …</P>}
        </fieldset>
        <fieldset class="bench-options">
          <legend class="field-label">
            <Words>Builds</Words>
          </legend>
          {BENCH_BUILDS.map((b) => (
            <Toggle
              key={b}
              label={b}
              disabled={running || (b === 'webgpu' && adapter?.state !== 'hardware')}
              on={builds.includes(b)}
              {...(b.endsWith('-mt') && { note: 'threads' })}
              {...(b === 'webgpu' && adapter?.state !== 'hardware' && {
                note: adapter ? webgpuCell(adapter) : 'looking',
              })}
              onChange={(on) => bench.patch({ builds: toggle(builds, b, on) })}
            />
          ))}
        </fieldset>
        {adapter?.state === 'software' && <Notice kind="info">{adapter.note}</Notice>}
        <div class="bench-start">
          <Choice
            label="Turns"
            value={turns}
            disabled={running}
            options={(Object.keys(TURNS) as Turns[]).map((t) => ({
              value: t,
              label: `${TURNS[t]}, ${t}`,
            }))}
            onChange={(t) => bench.patch({ turns: t })}
          />
          <Field label="This device" help="Optional, for the block to copy.">
            {({ id, describedBy }) => (
              <input
                id={id}
                class="input"
                type="text"
                autoComplete="off"
                aria-describedby={describedBy}
                placeholder="ThinkPad X1, 2023"
                value={state.device}
                onInput={(e) => bench.patch({ device: e.currentTarget.value })}
              />
            )}
          </Field>
        </div>
        {problem !== '' && info && !running && <Notice kind="info">{problem}</Notice>}
        <div class="row">
          {running ? (
            <Button icon="stop" onClick={() => control?.abort()}>
              Cancel
            </Button>
          ) : (
            <Button
              kind="primary"
              icon="gauge"
              disabled={!info || problem !== ''}
              onClick={() => void run(chosen, inOrder, Number(turns))}
            >
              Start
            </Button>
          )}
          <span class="quiet">
            Plugged in, other programs closed, this tab in front: then the numbers mean most.
          </span>
        </div>
        {progress && (
          <>
            <Bar label="Benchmark" share={progress.done} />
            <P class="quiet number">{progress.what}</P>
          </>
        )}
        {state.error !== null && <Notice kind="error">{plainError(state.error)}</Notice>}
      </Card>
      {finished.length > 0 && (
        <Card title="Result">
          <RatioChart results={finished} />
          <ResultTable results={results} gpu={adapter ? webgpuCell(adapter) : ''} />
          <P class="quiet">
            Times are medians over turns. Drift is the difference of the loss from the scalar
            build's after the same steps; 0 means equal to the last bit.
          </P>
        </Card>
      )}
      {text !== '' && (
        <Card title="To copy">
          <pre class="bench-report" tabIndex={0}>
            {text}
          </pre>
          <Button
            icon="copy"
            onClick={() =>
              void navigator.clipboard.writeText(text).then(
                () => notify('good', 'The benchmark is in the clipboard.'),
                () =>
                  notify(
                    'warning',
                    'The browser did not allow copying. Select the text and copy it by hand.',
                  ),
              )
            }
          >
            Copy
          </Button>
        </Card>
      )}
    </div>
  );
}
