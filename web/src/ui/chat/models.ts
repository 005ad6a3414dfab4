// SPDX-License-Identifier: Apache-2.0
/**
 * models.ts - the models of this browser: the list, a copy under way, and the one that is open.
 *
 * Chat has an engine of its own: its modules are larger than those for training, and a module's
 * memory never shrinks. So a model is closed by closing its engine, and a run in training is left
 * alone.
 */
import type { ChatModel, ChatSession, Engine } from '../../lib/index';
import {
  folderFile,
  openModelStore,
  type Progress,
  type StoredModel,
  StoreError,
} from '../../lib/models/index';
import { TinygptError } from '../../lib/errors';
import type { ChatInfo, DeviceName, ModelFacts, ModelSource } from '../../lib/types';
import { takeOneThread, threadsHere } from '../engine';
import { isOfTemplate, plainError } from '../plain_error';
import { notify } from '../state/notices';
import { Store } from '../store';
import { modelAddress } from './address';
import { openDrawer } from './drawer';
import { decodeSpeed, device, otherSpeed, wantDevice } from './device';
import { deviceGib, needs, nearest, twiceTooMuch } from './forecast';
import { type HubFile, type HubModel, hubModel, hubPlace, hubSha256, isHubName } from './hub';
import {
  CHAT_DEFAULTS,
  type ChatSettings,
  type Loaded,
  modelKey,
  NO_TEMPLATE,
  templateFor,
  withTemplate,
} from './settings';

/** A model that can be opened: a stored one, or a file where the browser stores none. */
export interface Shown {
  name: string;
  source: ModelSource;
}

/** One that was looked at, and what its head tells. */
export interface Looked extends Shown {
  facts: ModelFacts;
  /** What tells it from other models. */
  key: string;
}

export interface Opened extends Looked {
  info: ChatInfo;
  loaded: Loaded;
  capacity: number;
  /** What turns are written by; null: it goes on with texts alone. */
  template: string | null;
}

/** Where the engine computes, which a GPU that is lost may change. */
export interface Place {
  device: DeviceName;
  name: string;
  software: boolean;
  /** Why it is the CPU, where it is. */
  note: string;
}

export interface ModelsState {
  /** null: not looked yet. */
  list: readonly StoredModel[] | null;
  /** Why nothing can be kept here; '' if it can. */
  noStore: string;
  copying: (Progress & { name: string }) | null;
  /** What share of the model that is being loaded has been read; null: none is. */
  loading: number | null;
  chosen: Looked | null;
  opened: Opened | null;
  /** null: there is no engine. */
  place: Place | null;
  /** Files of a model that was asked for by name, of which one can be fetched. */
  found: HubModel | null;
  /** What is being done; '' if nothing is. All of it can be cancelled. */
  busy: string;
  problem: string;
  /** That the browser has no room for a model is the problem. */
  short: boolean;
  /** The file that there is no room for, which can be used from where it is. */
  visit: File | null;
  /** The model whose turns cannot be written as its template has them, if that is the problem. */
  untold: Looked | null;
}

export const models = new Store<ModelsState>({
  list: null,
  noStore: '',
  copying: null,
  loading: null,
  chosen: null,
  opened: null,
  place: null,
  found: null,
  busy: '',
  problem: '',
  short: false,
  visit: null,
  untold: null,
});

export const chatSettings = new Store<ChatSettings>(CHAT_DEFAULTS);

const store = openModelStore();
let engine: Promise<Engine> | null = null;
let model: ChatModel | null = null;
let session: ChatSession | null = null;
/** Of what is being done. */
let control: AbortController | null = null;

/** The tokens of a text, by the model that is open. */
export async function tokensOf(text: string): Promise<Int32Array> {
  return (await model?.tokenize(text))?.ids ?? new Int32Array();
}

/** Texts as vectors, by the model that is open; of one that is too long the beginning counts. */
export async function vectorsOf(texts: readonly string[]): Promise<Float32Array[]> {
  if (!model) throw new Error('No model is open.');
  return model.embed(texts, { cut: true });
}

/** The conversation's cache, while a model is open. */
export function chatSession(): ChatSession | null {
  return session;
}

async function openEngine(on: DeviceName): Promise<Engine> {
  const { Engine } = await import('../../lib/index');
  const wasmBase = new URL('./wasm/', document.baseURI);
  return Engine.open({ wasmBase, device: on, threads: threadsHere() });
}

function placeOf({ info }: Engine): Place {
  const { device: on, gpu, threads, notes } = info;
  const cpu = `the CPU, ${threads} ${threads === 1 ? 'thread' : 'threads'}`;
  return {
    device: on, name: gpu?.adapter ?? cpu, software: gpu?.software ?? false,
    note: notes.find((text) => text.startsWith('The GPU')) ?? '',
  };
}

async function startEngine(): Promise<Engine> {
  const made = await openEngine(device.get().wanted);
  models.patch({ place: placeOf(made) });
  made.onDevice = () => {
    const place = placeOf(made);
    models.patch({ place });
    notify('warning', `The GPU was lost. The conversation goes on: ${place.name} computes now.`);
  };
  made.onRebuilt = (reason) => {
    forget();
    models.patch({ visit: null, problem: `The engine stopped (${reason}). Open the model again.` });
  };
  return made;
}

function whenEngine(): Promise<Engine> {
  engine ??= startEngine().catch((e: unknown) => {
    engine = null;
    throw e;
  });
  return engine;
}

/** What was open is not any more; its memory may still be there. */
function forget(): void {
  model = null;
  session = null;
  models.patch({ opened: null });
}

/** Gives the memory of the model back. */
export async function closeModel(): Promise<void> {
  forget();
  const old = engine;
  engine = null;
  models.patch({ place: null });
  await (await old?.catch(() => null))?.close();
}

/** Another device, for the model that is open, too; the conversation stays. */
export async function changeDevice(to: DeviceName): Promise<void> {
  const { busy, opened } = models.get();
  if (busy !== '' || to === device.get().wanted) return;
  wantDevice(to);
  if (opened) await openAgain();
  else await closeModel();
}

/** A short text on both devices: by the model that is open, and by a copy of it for so long. */
export function measureDevices(): Promise<void> {
  return doing('Measuring both devices', async (signal) => {
    const { opened, place } = models.get();
    if (!opened || !place || !model) return;
    const tooMuch = twiceTooMuch(opened.info.weightBytes, deviceGib());
    if (tooMuch) throw new Error(tooMuch);
    const onProgress = (loading: number) => models.patch({ loading });
    onProgress(0);
    const here = await decodeSpeed(model, signal);
    const there: DeviceName = place.device === 'cpu' ? 'webgpu' : 'cpu';
    const speed = await otherSpeed(
      openEngine(there), there, opened.source, signal, onProgress,
    ).catch((e: unknown) => {
      // Not the engine in hand: what is open stays, whatever happened to the other one.
      throw new Error(plainError(e));
    });
    device.patch({ speeds: { model: opened.name, of: { [place.device]: here, [there]: speed } } });
  });
}

/**
 * True if the error is that the engine's worker has died: the next call starts another one. Whose
 * conversation is not the one in hand any more lost an engine that was closed, and nothing else.
 */
export function engineDied(e: unknown, of: ChatSession | null = session): boolean {
  if (!(e instanceof TinygptError && e.code === 'CLOSED')) return false;
  if (of !== session) return true;
  engine = null;
  forget();
  models.patch({ visit: null, problem: `${plainError(e)} Open the model again.` });
  return true;
}

/** One thing at a time; `loads` is the model that it loads, if it does. */
async function doing(
  what: string, work: (signal: AbortSignal) => Promise<void>, loads: Looked | null = null,
): Promise<void> {
  if (models.get().busy !== '') return;
  models.patch({ busy: what, problem: '', short: false, visit: null, untold: null });
  const { signal } = (control = new AbortController());
  try {
    await work(signal);
  } catch (e) {
    if (signal.aborted) return;
    if (engineDied(e)) return;
    models.patch({
      problem: plainError(e),
      short: e instanceof StoreError && e.code === 'QUOTA',
      untold: isOfTemplate(e) ? loads : null,
    });
  } finally {
    control = null;
    models.patch({ busy: '', copying: null, loading: null });
  }
}

export async function refresh(): Promise<void> {
  try {
    models.patch({ list: await store.list(), noStore: '' });
  } catch (e) {
    models.patch({ list: [], noStore: plainError(e) });
  }
}

/** Copies a file, or what an address holds, and shows what it is. What Hugging Face gives has to
 *  have the SHA-256 that it tells. */
function add(name: string, source: File | URL): Promise<void> {
  return doing(`Adding ${name}`, async (signal) => {
    const sha256 = source instanceof URL ? await hubSha256(source, { signal }) : '';
    signal.throwIfAborted();
    try {
      const stored = await store.add(source, {
        signal,
        sha256,
        onProgress: (progress) => models.patch({ copying: { ...progress, name } }),
      });
      if (source instanceof URL && hubPlace(source) && sha256 === '') {
        notify('warning', `${name} was not checked: Hugging Face did not tell what SHA-256 it has to have.`);
      }
      await look({ name: stored.name, source: { stored: stored.id } }, signal);
    } catch (e) {
      if (!(e instanceof StoreError && source instanceof File)) throw e;
      // It can be used all the same, for this visit.
      if (e.code === 'QUOTA') models.patch({ visit: source });
      if (e.code !== 'UNAVAILABLE') throw e;
      models.patch({ noStore: e.message });
      await look({ name, source }, signal);
    } finally {
      await refresh();
    }
  });
}

/** The file that there was no room for, from where it is. */
export async function useForVisit(): Promise<void> {
  const { visit } = models.get();
  if (!visit) return;
  const shown = { name: visit.name, source: visit };
  await doing(`Looking at ${visit.name}`, (signal) => look(shown, signal));
}

export function addFile(file: File): Promise<void> {
  return add(file.name, file);
}

/** A folder of safetensors, as one file. */
export async function addFolder(files: readonly File[]): Promise<void> {
  let file: File | undefined;
  await doing('Reading the folder', async (signal) => {
    file = await folderFile(files, { signal });
  });
  if (file) await addFile(file);
}

/** An address, or a name of Hugging Face, of whose files one is chosen then. */
export async function addAddress(typed: string): Promise<void> {
  if (isHubName(typed)) return findOnHub(typed);
  let url: URL;
  try {
    url = modelAddress(typed, location.protocol === 'https:');
  } catch (e) {
    models.patch({ problem: plainError(e), short: false, visit: null });
    return;
  }
  await add(url.pathname.split('/').pop() || url.host, url);
}

/** Looks for the files of a model; with a part of a name, the one that has it is fetched. */
export async function findOnHub(repo: string, part = ''): Promise<void> {
  let file: HubFile | undefined;
  await doing(`Asking for ${repo}`, async (signal) => {
    const found = await hubModel(repo, { signal });
    file = part === '' ? undefined : found.files.find(({ name }) => name.includes(part));
    models.patch({ found: file ? null : found });
  });
  if (file) await addHubFile(file);
}

export async function addHubFile(file: HubFile): Promise<void> {
  models.patch({ found: null });
  await add(file.name, new URL(file.address));
}

/** What is being done is not wanted any more. Of a copy, what came so far is kept. */
export function cancel(): void {
  control?.abort();
}

/** Goes on with a copy that was broken off; a picked file has to be picked again. */
export function resume(stored: StoredModel): Promise<void> {
  return add(stored.name, new URL(stored.address));
}

/** Shows what a model is. What is open, and its conversation's settings, stay as they are. */
async function look(shown: Shown, signal: AbortSignal): Promise<void> {
  const facts = await (await whenEngine()).modelFacts(shown.source, { signal });
  const key = await modelKey(shown.source);
  signal.throwIfAborted();
  models.patch({ chosen: { ...shown, facts, key } });
  openDrawer('models');
}

export function choose(stored: StoredModel): Promise<void> {
  const shown = { name: stored.name, source: { stored: stored.id } };
  return doing(`Looking at ${stored.name}`, (signal) => look(shown, signal));
}

export function chooseTemplate(of: Looked, template: string): void {
  chatSettings.set(withTemplate(chatSettings.get(), of.key, template));
}

/** Loads the model whose template does not fit without one: it goes on with a text. */
export async function openWithoutTemplate(): Promise<void> {
  const { untold } = models.get();
  if (!untold) return;
  chooseTemplate(untold, NO_TEMPLATE);
  await load(untold);
}

/** Loads the model that is open again, as the settings are now. */
export async function openAgain(): Promise<void> {
  const { opened } = models.get();
  if (opened) await load(opened);
}

/** Loads the chosen model. */
export async function openChosen(): Promise<void> {
  const { chosen } = models.get();
  if (chosen) await load(chosen);
}

/** Stored models that were held against their checksums in this visit. */
const checked = new Set<string>();

/** Whether the disk still has what was stored; what is damaged is fetched again, if it has an
 *  address. */
async function check({ name, source }: Shown, signal: AbortSignal): Promise<void> {
  if (!('stored' in source) || checked.has(source.stored)) return;
  try {
    const mended = await store.check(source.stored, {
      signal,
      onProgress: (progress) => models.patch({ copying: { ...progress, name } }),
    });
    checked.add(source.stored);
    if (mended > 0) {
      notify('good', `${name} was damaged on the disk. What was damaged has been fetched again.`);
    }
  } catch (e) {
    // It is not whole any more: there is nothing to be opened.
    const gone = e instanceof StoreError && (e.code === 'WRONG' || e.code === 'SOURCE');
    if (gone) models.patch({ chosen: null });
    await refresh();
    throw e;
  } finally {
    models.patch({ copying: null });
  }
}

/** Opens a model; where its memory is not granted to several threads, with one, which takes less. */
async function openChatModel(source: ModelSource, signal: AbortSignal): Promise<ChatModel> {
  const onProgress = (loading: number) => models.patch({ loading });
  onProgress(0);
  const made = await whenEngine();
  try {
    return await made.openChatModel(source, { signal, onProgress });
  } catch (e) {
    if (!takeOneThread(e, made.info.threads)) throw e;
    await closeModel();
    if (threadsHere() !== 1) throw e;
    onProgress(0);
    const single = await whenEngine();
    return single.openChatModel(source, { signal, onProgress }).catch(async (again: unknown) => {
      if (takeOneThread(again, 1)) await closeModel();
      throw again;
    });
  }
}

/** Loads a model and begins a conversation; another one that was open is closed. */
function load(looked: Looked): Promise<void> {
  const { name, source, facts, key } = looked;
  const work = async (signal: AbortSignal): Promise<void> => {
    if (model) await closeModel();
    await check(looked, signal);
    const made = await openChatModel(source, signal);
    model = made;
    const settings = chatSettings.get();
    const { ctx: wanted, keys } = settings;
    const named = templateFor(settings, key);
    const loaded = { ctx: wanted, keys, template: named };
    const none = named === NO_TEMPLATE || (named === '' && made.info.template === '');
    const template = none ? null : named;
    // As much as was forecast.
    const ctx = Math.min(nearest(needs(facts, keys), wanted)?.ctx ?? wanted, made.info.ctx);
    const opened = { name, source, facts, key, info: made.info, loaded };
    if (!made.info.writes) {
      models.patch({ opened: { ...opened, capacity: 0, template: null } });
      openDrawer('');
      return;
    }
    try {
      session = await (none ? made.session({ ctx, keys }) : made.chat({ ctx, keys, template: named }));
    } catch (e) {
      made.free();
      forget();
      if (isOfTemplate(e)) {
        // Another template is chosen there.
        models.patch({ chosen: looked });
        openDrawer('models');
      }
      throw e;
    }
    const { capacity } = session;
    models.patch({ opened: { ...opened, capacity, template } });
    openDrawer('');
  };
  return doing(`Loading ${name}`, work, looked);
}

/** Loads the model of a conversation again, with the context of its settings. */
export async function openStored(id: string): Promise<void> {
  const stored = (models.get().list ?? []).find((m) => m.id === id && m.whole);
  if (!stored) return;
  await choose(stored);
  if (models.get().problem === '') await openChosen();
}

/** The model that is open, with a context of that many tokens; the conversation stays. */
export async function openLonger(ctx: number): Promise<void> {
  chatSettings.patch({ ctx });
  const { opened, chosen } = models.get();
  const wanted = opened ?? chosen;
  if (wanted) await load(wanted);
}

export function isOpen(stored: StoredModel): boolean {
  const source = models.get().opened?.source;
  return source !== undefined && 'stored' in source && source.stored === stored.id;
}

export function remove(stored: StoredModel): Promise<void> {
  return doing(`Deleting ${stored.name}`, async (signal) => {
    if (isOpen(stored)) await closeModel();
    // From here on it cannot be stopped, and what was done is said.
    signal.throwIfAborted();
    await store.remove(stored.id);
    const { chosen } = models.get();
    const gone = chosen && 'stored' in chosen.source && chosen.source.stored === stored.id;
    if (gone) models.patch({ chosen: null });
    notify('good', `${stored.name} is deleted.`);
    await refresh();
  });
}
