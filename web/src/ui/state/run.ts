// SPDX-License-Identifier: Apache-2.0
/**
 * run.ts - the page's one run: the controller with the engine, the store of runs, the current model
 * and the notification at the end around it.
 */
import type { Model, Text } from '../../lib/index';
import type { DeviceName } from '../../lib/types';
import { engineState, onRebuilt, onWarning, openOnDevice, whenEngine } from '../engine';
import { plainError } from '../plain_error';
import { duration, loss } from '../format';
import { type RunMeta, type RunState, RunController, type RunText } from '../run/controller';
import { remember } from '../run/past_runs';
import { defaultSettings, gptConfig } from '../run/settings';
import { Store, useStore } from '../store';
import { current } from './current';
import { notify } from './notices';
import { openView, settings, sizeChosen, wantedText } from './route';
import { openRunStore } from './run_store';
import { runText, settleText, takeSaved, takeStories, textAnswered, textState } from './text';

/** A run that an earlier visit left behind. */
export interface Offer {
  run: Blob;
  meta: RunMeta;
}

export const offer = new Store<Offer | null>(null);
/** Whether the browser keeps the run: 'ok', or why not. */
export const keeping = new Store<{
  status: 'opening' | 'ok' | 'locked' | 'unavailable';
  reason: string;
}>({
  status: 'opening',
  reason: '',
});
/** A person has asked to be told at the end. */
export const tellAtEnd = new Store<boolean>(false);

const store = openRunStore();

export const controller = new RunController<Model, Text>({
  engine: whenEngine,
  store,
  now: () => Date.now(),
  onModel: showModel,
  tell: notify,
  onEnd: announce,
});

export function runState(): RunState {
  return controller.state.get();
}

export function useRun(): RunState;
export function useRun<S>(pick: (s: RunState) => S): S;
export function useRun<S>(pick?: (s: RunState) => S): RunState | S {
  return useStore<RunState, RunState | S>(controller.state, pick ?? ((s) => s));
}

let shownAt = 0;

/** The model for Write and Watch it think; at most twice a second while it learns. */
function showModel(model: Model | null, s: RunState): void {
  const old = current.get();
  if (!model || !s.settings) {
    if (old?.origin === 'run') current.set(null);
    return;
  }
  const now = Date.now();
  if (old?.model === model && s.phase === 'running' && now - shownAt < 500) return;
  if (old?.model === model && old.step === s.step) return;
  shownAt = now;
  if (old?.origin === 'file') old.model.free();
  current.set({
    model,
    config: gptConfig(s.settings),
    origin: 'run',
    label: s.settings.size === 'custom' ? 'Your model' : `Your ${s.settings.size} model`,
    step: s.step,
    tick: (old?.tick ?? 0) + 1,
  });
}

function announce(s: RunState): void {
  if (!tellAtEnd.get() || !('Notification' in window) || Notification.permission !== 'granted')
    return;
  try {
    new Notification('Your model has finished learning', {
      body:
        `${s.step} steps in ${duration(s.seconds)}. ` +
        `${s.val ? `Loss on new text: ${loss(s.val.loss)}.` : ''}`,
    });
  } catch {
    // Some phones only let service workers notify; the page itself shows the end anyway.
  }
}

/** Asked only on a click. Returns whether it will come. */
export async function askToNotify(): Promise<boolean> {
  if (!('Notification' in window)) return false;
  const answer = await Notification.requestPermission();
  tellAtEnd.set(answer === 'granted');
  return answer === 'granted';
}

/** The device is being changed. */
export const moving = new Store<boolean>(false);

/** Computes elsewhere from now on; the run goes along. */
export async function chooseDevice(device: DeviceName): Promise<void> {
  if (moving.get()) return;
  moving.set(true);
  try {
    await textAnswered();
    await controller.move(() => openOnDevice(device));
    const { info } = engineState.get();
    if (info && info.device !== device) notify('warning', info.notes.at(-1) ?? '');
  } catch (e) {
    notify('error', plainError(e));
  } finally {
    moving.set(false);
  }
}

/** Start: the settings and the text in hand. `base` is a model file to go on from. */
export async function start(base: Blob | null = null): Promise<void> {
  await settleText();
  const text = runText();
  if (!text) {
    notify('error', 'There is no text yet. Write, paste or open one first.');
    openView('text');
    return;
  }
  rememberRun();
  offer.set(null);
  openView('live');
  await controller.start(settings.get(), text, base);
}

/** The curve of the run so far stays for comparison when another one begins. */
function rememberRun(): void {
  const s = runState();
  if (s.settings && s.step > 0) remember(s, controller.curve);
}

export async function reset(): Promise<void> {
  rememberRun();
  await controller.reset();
}

/** Continues the run of an earlier visit; without its text the person is asked for it. */
export async function acceptOffer(): Promise<void> {
  const o = offer.get();
  if (!o) return;
  const text = await textOf(o.meta);
  if (!text) {
    notify(
      'info',
      `The text of this run ("${o.meta.text.name}") is not kept in the browser. Open the same ` +
        'text here, then continue.',
    );
    openView('text');
    return;
  }
  offer.set(null);
  sizeChosen.set(true);
  settings.set(o.meta.settings);
  await takeSaved(text);
  openView('live');
  await controller.resume(o.run, text, o.meta);
}

async function textOf(meta: RunMeta): Promise<RunText | null> {
  const { name, sha256, stories, bytes } = meta.text;
  const named = (blob: Blob): RunText => ({
    blob,
    name,
    sha256,
    ...(stories === undefined ? {} : { stories }),
  });
  const inHand = textState.get();
  if (inHand.blob && inHand.blob.size === bytes && inHand.sha256 === sha256 && sha256 !== '') {
    return named(inHand.blob);
  }
  try {
    const kept = await store.loadText();
    if (kept && kept.size === bytes) return named(kept);
  } catch {
    // Then it is made or asked for.
  }
  if (stories === undefined) return null;
  await takeStories(stories, bytes);
  const made = textState.get().blob;
  return made ? named(made) : null;
}

export async function declineOffer(): Promise<void> {
  offer.set(null);
  try {
    await store.clear();
  } catch (e) {
    notify('warning', `The saved run could not be removed. ${plainError(e)}`);
  }
}

async function openStore(): Promise<void> {
  const opened = await store.open();
  keeping.set({ status: opened.status, reason: opened.reason ?? '' });
  controller.storing(opened.status === 'ok');
  if (opened.status !== 'ok') return;
  await offerSaved();
}

/** Looks into the store for a run, and offers it if there is none on the page. */
async function offerSaved(): Promise<void> {
  const saved = await store.load();
  if (store.notice !== '') notify('warning', store.notice);
  const meta = saved ? readMeta(saved.meta) : null;
  if (saved && meta && runState().phase === 'idle') {
    offer.set({ run: new Blob([saved.run as Uint8Array<ArrayBuffer>]), meta });
  }
}

/** Another model takes the run's place; the run is saved, and offered again. */
export async function leaveRun(): Promise<void> {
  if (runState().phase === 'idle') return;
  rememberRun();
  await controller.leave();
  if (keeping.get().status === 'ok') await offerSaved();
}

function tryStore(): void {
  openStore().catch((e: unknown) => {
    keeping.set({ status: 'unavailable', reason: plainError(e) });
  });
}

/** A save of another version of the page may lack something: it is not offered then. */
function readMeta(meta: object): RunMeta | null {
  const m = meta as Partial<RunMeta>;
  if (typeof m.step !== 'number' || !m.settings || !m.text) return null;
  // Saves of older versions lack settings that came later.
  return { ...(m as RunMeta), settings: { ...defaultSettings(), ...m.settings } };
}

export function startRun(): void {
  tryStore();
  onRebuilt((reason) => {
    if (current.get()?.origin === 'file') current.set(null);
    if (reason !== null) void controller.recover(reason);
  });
  onWarning((text) => notify('warning', text));
  textState.subscribe((t) => {
    if (t.blob && t.sha256) controller.setFingerprint(t.blob, t.sha256);
  });
  // A tab that is hidden may never come back.
  const saveNow = () => {
    if (runState().phase === 'running') void controller.save();
  };
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'hidden') saveNow();
    // The other tab may be gone by now.
    else if (keeping.get().status === 'locked') tryStore();
  });
  window.addEventListener('pagehide', saveNow);
}

/** Why Start is not possible now; '' if it is. */
export function useStartProblem(): string {
  const engine = useStore(engineState, (e) => e.status);
  const text = useStore(textState);
  const wanted = useStore(wantedText);
  if (engine === 'failed') return 'The engine could not be started.';
  if (text.status === 'loading' || engine === 'opening') return 'Getting ready';
  if (!text.blob) return 'A text is needed.';
  const error = text.findings?.find((f) => f.level === 'error');
  if (error) return error.text;
  return wanted && text.hashing ? 'Getting ready' : '';
}
