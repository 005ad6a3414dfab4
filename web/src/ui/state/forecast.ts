// SPDX-License-Identifier: Apache-2.0
/**
 * forecast.ts - what a run with the settings and text in hand would need, and how long each preset
 * would take. The engine answers in some milliseconds; it is asked when the person has stopped
 * typing, and an answer that came too late is dropped.
 */
import type { Forecast } from '../../lib/types';
import { engineState, onRebuilt, whenEngine } from '../engine';
import { plainError } from '../plain_error';
import { type Size, SIZES } from '../model/presets';
import {
  gptConfig,
  type Settings,
  settingsOfSize,
  settingsProblem,
  trainOptions,
  withSize,
} from '../run/settings';
import { Store } from '../store';
import { settings, sizeChosen } from './route';
import { byPace, learnPace, paceKey, paceOf } from './paces';
import { controller, runState } from './run';
import { engineText, textState } from './text';

export interface ForecastState {
  value: Forecast | null;
  problem: string;
}

export const forecast = new Store<ForecastState>({ value: null, problem: '' });
/** Seconds of each preset's own run on this machine, as far as known; Infinity: it does not fit. */
export const sizeSeconds = new Store<Readonly<Record<string, number>>>({});

/** Milliseconds a step of such a run took here; NaN if there was none. */
function paceHere(s: Settings): number {
  return paceOf(paceKey(s, engineState.get().info?.device ?? 'cpu'));
}

let asked = 0;

async function ask(): Promise<void> {
  const mine = ++asked;
  const s = settings.get();
  const problem = settingsProblem(s);
  if (problem) {
    forecast.set({ value: null, problem });
    return;
  }
  try {
    const engine = await whenEngine();
    const text = await engineText();
    const guess = await engine.forecast(gptConfig(s), trainOptions(s), text ?? undefined);
    const value = byPace(guess, paceHere(s));
    if (mine === asked) forecast.set({ value, problem: '' });
  } catch (e) {
    if (mine === asked) forecast.set({ value: null, problem: plainError(e) });
  }
}

/** Longest run that the page proposes by itself. */
const PATIENCE_S = 150;

/** Times of the first four sizes; the largest of them that is done soon. */
async function forecastFirst(): Promise<Size | undefined> {
  const engine = await whenEngine();
  let best = SIZES[0];
  for (const size of SIZES.slice(0, 4)) {
    const s = settingsOfSize(size);
    const f = byPace(await engine.forecast(gptConfig(s), trainOptions(s)), paceHere(s));
    sizeSeconds.set({ ...sizeSeconds.get(), [size.name]: f.seconds });
    const fits = f.memoryAvailableBytes === 0 || f.memoryBytes < f.memoryAvailableBytes / 2;
    if (f.seconds > 0 && f.seconds <= PATIENCE_S && fits) best = size;
  }
  return best;
}

/** That one is proposed, unless somebody has chosen already. */
async function chooseSize(): Promise<void> {
  const best = await forecastFirst();
  if (best && !sizeChosen.get() && runState().phase === 'idle') {
    settings.set(withSize(settings.get(), best));
  }
}

/** The other sizes' times, for the Model view; each is asked for once. */
export async function forecastSizes(): Promise<void> {
  const engine = await whenEngine();
  for (const size of SIZES) {
    if (sizeSeconds.get()[size.name] !== undefined) continue;
    const s = settingsOfSize(size);
    try {
      const f = byPace(await engine.forecast(gptConfig(s), trainOptions(s)), paceHere(s));
      const fits = f.memoryAvailableBytes === 0 || f.memoryBytes <= f.memoryAvailableBytes;
      sizeSeconds.set({ ...sizeSeconds.get(), [size.name]: fits ? f.seconds : Infinity });
    } catch {
      // No memory for it: the card shows no time, and choosing it shows the reason.
      sizeSeconds.set({ ...sizeSeconds.get(), [size.name]: NaN });
    }
  }
}

/** So many steps are enough to tell how long one takes. */
const MEASURED_STEPS = 20;

/** A run that has gone some steps tells the next forecasts of its like. */
function learnFrom(soon: () => void): void {
  let told = '';
  controller.state.subscribe((r) => {
    if (!r.settings || r.step - r.from < MEASURED_STEPS) return;
    // Once when it is known, and once when the run stands still.
    const moment = `${r.id} ${r.phase}`;
    if (moment === told) return;
    told = moment;
    learnPace(paceKey(r.settings, engineState.get().info?.device ?? 'cpu'), r.msPerStep);
    void forecastFirst().then(soon, soon);
  });
}

export function startForecast(): void {
  let timer = 0;
  const soon = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void ask(), 150);
  };
  learnFrom(soon);
  settings.subscribe(soon);
  let blob: Blob | null = null;
  textState.subscribe((t) => {
    if (t.blob === blob) return;
    blob = t.blob;
    soon();
  });
  const choose = () => void chooseSize().then(soon, soon);
  onRebuilt(choose);
  choose();
}
