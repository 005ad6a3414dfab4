// SPDX-License-Identifier: Apache-2.0
/**
 * past_runs.ts - curves of earlier runs, for laying them under the newest one. They are thinned to
 * some hundred points and kept in localStorage; where that is blocked, for this visit.
 */
import { familyOf } from '../model/families';
import { Store } from '../store';
import type { RunState } from './controller';
import type { Curve } from './curve';
import type { Settings } from './settings';

export interface PastRun {
  id: string;
  /** What tells it from the others. */
  label: string;
  /** Milliseconds since 1970. */
  at: number;
  settings: Settings;
  textName: string;
  step: number;
  loss: number;
  val: number | null;
  /** 16 digits over the bits of all losses; equal digits, equal runs. */
  hash: string;
  steps: number[];
  losses: number[];
  shown: boolean;
}

const KEY = 'tinygpt-past-runs';
export const MOST_RUNS = 8;
const POINTS = 200;

export const pastRuns = new Store<readonly PastRun[]>([]);

export function thin(curve: Curve): { steps: number[]; losses: number[] } {
  const steps: number[] = [];
  const losses: number[] = [];
  const by = Math.max(1, Math.ceil(curve.length / POINTS));
  for (let i = 0; i < curve.length; i++) {
    if (i % by !== 0 && i !== curve.length - 1) continue;
    const step = curve.step[i];
    const loss = curve.smooth[i];
    if (step === undefined || loss === undefined || !Number.isFinite(loss)) continue;
    steps.push(step);
    losses.push(Math.round(loss * 1e4) / 1e4);
  }
  return { steps, losses };
}

/** The few settings by which a person tells runs apart. */
export function labelOf(s: Settings): string {
  const own = s.family === 'tinygpt' ? '' : `${familyOf(s.family).label} `;
  const size = s.size === 'custom' ? `${own}${s.layers} × ${s.width}` : s.size;
  return `${size}, rate ${s.lr}, batch ${s.batch * s.accum}, seed ${s.seed}`;
}

export function remember(state: RunState, curve: Curve): void {
  const { settings, last } = state;
  if (!settings || curve.length < 2) return;
  const run: PastRun = {
    id: `${Date.now()}-${state.step}`,
    label: labelOf(settings),
    at: Date.now(),
    settings,
    textName: state.textName,
    step: state.step,
    loss: state.loss,
    val: state.val?.loss ?? null,
    hash: last?.lossHash ?? '',
    shown: true,
    ...thin(curve),
  };
  // The same run remembered twice (paused, then replaced) counts once.
  const others = pastRuns.get().filter((p) => run.hash === '' || p.hash !== run.hash);
  save([run, ...others].slice(0, MOST_RUNS));
}

export function showRun(id: string, shown: boolean): void {
  save(pastRuns.get().map((p) => (p.id === id ? { ...p, shown } : p)));
}

export function forgetRun(id: string): void {
  save(pastRuns.get().filter((p) => p.id !== id));
}

function save(runs: readonly PastRun[]): void {
  pastRuns.set(runs);
  try {
    localStorage.setItem(KEY, JSON.stringify(runs));
  } catch {
    // Blocked or full: they are kept for this visit.
  }
}

export function loadPastRuns(): void {
  try {
    const runs: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    if (Array.isArray(runs)) pastRuns.set(runs.filter(isPastRun).slice(0, MOST_RUNS));
  } catch {
    // Something else wrote there, or storage is blocked: there are no past runs then.
  }
}

function isPastRun(x: unknown): x is PastRun {
  if (typeof x !== 'object' || x === null) return false;
  const p = x as Partial<PastRun>;
  return (
    typeof p.id === 'string' &&
    typeof p.label === 'string' &&
    typeof p.settings === 'object' &&
    Array.isArray(p.steps) &&
    Array.isArray(p.losses) &&
    p.steps.length === p.losses.length
  );
}
