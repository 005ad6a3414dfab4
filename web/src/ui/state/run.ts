// SPDX-License-Identifier: Apache-2.0
/**
 * run.ts - the run that is open: the controller with the engine, the store, the current model and the
 * notification at the end around it. All others are on the shelf (shelf.ts).
 */
import type { Model, Text } from '../../lib/index';
import type { DeviceName } from '../../lib/types';
import { engineState, onRebuilt, onWarning, openOnDevice, openWithOneThread, whenEngine } from '../engine';
import { plainError } from '../plain_error';
import { duration, loss } from '../format';
import { type RunState, RunController, type RunText } from '../run/controller';
import { gptConfig, type Settings } from '../run/settings';
import { Store, useStore } from '../store';
import { current } from './current';
import { notify } from './notices';
import { openView, settings, sizeChosen } from './route';
import { keeping, kept, newId, openAgain, watchUnsaved, whenStore } from './keeping';
import { readMeta, refreshShelf, removeRun, type ShelfRun } from './shelf';
import { runText, settleText, textAnswered, textState } from './text';

/** A run of an earlier visit that has not come to its end. */
export interface Offer {
  run: ShelfRun;
  /** It is open already, standing where it was saved. */
  opened: boolean;
}

export const offer = new Store<Offer | null>(null);
/** A person has asked to be told at the end. */
export const tellAtEnd = new Store<boolean>(false);

export const controller = new RunController<Model, Text>({
  engine: whenEngine,
  another: (e) => openWithOneThread(e, textAnswered),
  store: kept,
  now: () => Date.now(),
  newId,
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
    config: { ...gptConfig(s.settings), vocab: s.vocab },
    unit: s.unit,
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

/**
 * Start: the settings and the text in hand. A run that is there is saved, and stays on the shelf.
 * `base` is a model file to go on from, and `wanted` are the settings that it needs, which take the
 * place of those in hand unless the signal aborts before the run is there.
 */
export async function start(
  base: Blob | null = null,
  signal?: AbortSignal,
  wanted: Settings | null = null,
): Promise<void> {
  await settleText();
  if (signal?.aborted) return;
  const text = runText();
  if (!text) {
    notify('error', 'There is no text yet. Write, paste or open one first.');
    openView('text');
    return;
  }
  offer.set(null);
  openView('live');
  await controller.start(wanted ?? settings.get(), text, base, signal);
  if (wanted && !signal?.aborted) {
    sizeChosen.set(true);
    settings.set(wanted);
  }
  void refreshShelf();
}

/** The offered run goes on. */
export async function acceptOffer(signal: AbortSignal): Promise<void> {
  const o = offer.get();
  if (!o) return;
  if (o.opened && runState().id === o.run.id) goOn();
  else await openRun(o.run, true, signal);
}

/** The run that is open goes on, for more steps if it is over. */
export function goOn(more = 0): void {
  offer.set(null);
  openView('live');
  void controller.unpause(more);
}

/** Takes a run from the shelf; the one that is open is saved before. Without its text the person is
 *  asked for it. */
export async function openRun(
  run: ShelfRun,
  go: boolean,
  signal?: AbortSignal,
): Promise<boolean> {
  if (runState().id !== run.id) {
    const text = await textOf(run);
    if (signal?.aborted) return false;
    if (!text) {
      notify(
        'info',
        `The text of this run (“${run.meta.text.name}”) is not kept in the browser. Open the ` +
          'same text here, then try again.',
      );
      openView('text');
      return false;
    }
    const saved = await kept.loadRun(run.id);
    const meta = saved ? readMeta(saved.meta) : null;
    if (!saved || !meta || signal?.aborted) return false;
    const blob = new Blob([saved.run as Uint8Array<ArrayBuffer>]);
    if (!(await controller.open(blob, text, meta, run.id, 0, signal))) return false;
    sizeChosen.set(true);
    settings.set(meta.settings);
  }
  offer.set(null);
  if (go) goOn();
  return true;
}

/** A new run from the weights of one on the shelf, on the text in hand. */
export async function fineTune(run: ShelfRun, signal: AbortSignal): Promise<void> {
  const saved = await kept.loadRun(run.id);
  if (!saved || signal.aborted) return;
  const base = new Blob([saved.run as Uint8Array<ArrayBuffer>]);
  await start(base, signal, { ...run.meta.settings, steps: settings.get().steps });
}

/** Takes a run from the shelf, with a way back; one that is open stays open. */
export function deleteRun(run: ShelfRun, signal: AbortSignal): Promise<void> {
  return removeRun(run, signal, controller.disown(run.id));
}

/** The run's text: from the store, from the page, or made anew. */
async function textOf({ meta, text: id }: ShelfRun): Promise<RunText | null> {
  const { name, sha256, stories, bytes } = meta.text;
  const named = (blob: Blob, keptAs?: number): RunText => ({
    blob,
    name,
    sha256,
    ...(stories === undefined ? {} : { stories }),
    ...(keptAs === undefined ? {} : { kept: keptAs }),
  });
  if (id !== 0) {
    const blob = await kept.loadText(id);
    if (blob && blob.size === bytes) return named(blob, id);
  }
  const inHand = textState.get();
  if (inHand.blob && inHand.blob.size === bytes && inHand.sha256 === sha256 && sha256 !== '') {
    return named(inHand.blob);
  }
  if (stories === undefined) return null;
  const made = await (await whenEngine()).stories(stories, bytes);
  return named(new Blob([made as Uint8Array<ArrayBuffer>]));
}

/** A run larger than this is not opened by itself: the browser may have less memory than before. */
const OPENED_BYTES = 400e6;

/** What an earlier visit ended with is here again, as it was. */
async function restore(): Promise<void> {
  const [newest] = await refreshShelf();
  if (!newest || runState().phase !== 'idle' || current.get()) return;
  const over = newest.meta.step >= newest.meta.total;
  if (newest.bytes > OPENED_BYTES) {
    offer.set({ run: newest, opened: false });
    return;
  }
  const text = await textOf(newest);
  const saved = text ? await kept.loadRun(newest.id) : null;
  if (runState().phase !== 'idle' || current.get()) return;
  if (!text || !saved) {
    offer.set({ run: newest, opened: false });
    return;
  }
  const meta = readMeta(saved.meta) ?? newest.meta;
  const blob = new Blob([saved.run as Uint8Array<ArrayBuffer>]);
  const opened = await controller.open(blob, text, meta, newest.id);
  if (opened && !over) offer.set({ run: { ...newest, meta }, opened: true });
}

async function useStoreOf(opening: Promise<boolean>): Promise<void> {
  const ok = await opening;
  controller.storing(ok);
  if (ok) await restore();
}

/** Asks for the store again: what it lacked may be there now. */
export async function useStoreAgain(): Promise<void> {
  await useStoreOf(openAgain());
  await refreshShelf();
}

/** Another model takes the run's place; the run is saved, and stays on the shelf. */
export async function leaveRun(): Promise<void> {
  if (runState().phase === 'idle') return;
  offer.set(null);
  await controller.leave();
  await refreshShelf();
}

/** Leaving costs no more than this of a run without a question. */
const FREE_MS = 3000;

export function startRun(): void {
  void useStoreOf(whenStore());
  watchUnsaved(() => controller.unsavedMs > FREE_MS);
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
    else if (keeping.get().status === 'locked') void useStoreAgain();
  });
  window.addEventListener('pagehide', saveNow);
  // The shelf shows a run as it is after each of its ends.
  let phase = runState().phase;
  controller.state.subscribe((r) => {
    if (r.phase === phase) return;
    phase = r.phase;
    if (phase === 'paused' || phase === 'done') void controller.save().then(refreshShelf);
  });
}
