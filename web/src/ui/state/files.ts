// SPDX-License-Identifier: Apache-2.0
/**
 * files.ts - a model file that was opened, and what can be done with it: write, look inside, go on
 * with its run, or train it on another text. And downloads.
 */
import type { FileKind, ModelInfo } from '../../lib/types';
import { onRebuilt, whenEngine } from '../engine';
import { fileName, modelFileProblem } from '../files/model_file';
import { plainError } from '../plain_error';
import { withBase } from '../run/settings';
import { Store } from '../store';
import { current } from './current';
import { kept } from './keeping';
import { notify } from './notices';
import { openView, settings, sizeChosen } from './route';
import { controller, leaveRun, offer, runState, start } from './run';
import type { ShelfRun } from './shelf';
import { runText } from './text';

export interface OpenedFile {
  name: string;
  blob: Blob;
  info: ModelInfo;
  /** The core's own lines about the file, all checksums checked. */
  lines: string;
}

export interface FilesState {
  opened: OpenedFile | null;
  /** What is being done: 'Opening …'; '' if nothing is. */
  busy: string;
  problem: string;
}

export const filesState = new Store<FilesState>({ opened: null, busy: '', problem: '' });

let control: AbortController | null = null;

/** One thing at a time. A signal that aborts ends the wait at once; what comes later is dropped. */
async function doing(what: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  if (filesState.get().busy !== '') return;
  filesState.patch({ busy: what, problem: '' });
  const { signal } = (control = new AbortController());
  const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  try {
    await Promise.race([work(signal), stopped]);
  } catch (e) {
    if (!signal.aborted) filesState.patch({ problem: plainError(e) });
  } finally {
    filesState.patch({ busy: '' });
  }
}

/** What is being done is not wanted any more. */
export function cancelFiles(): void {
  control?.abort();
}

/** Opens a file, or one that has to come first, and makes its model the current one, unless a run
 *  holds that place. True if it is open. */
export async function openModelFile(
  file: File | { name: string; get: (signal: AbortSignal) => Promise<File> },
): Promise<boolean> {
  const before = filesState.get().opened;
  await doing(`Opening ${file.name}`, async (signal) => {
    await openOne(file instanceof File ? file : await file.get(signal), signal);
  });
  return filesState.get().opened !== before;
}

async function openOne(file: File, signal: AbortSignal): Promise<void> {
  const head = new Uint8Array(await file.slice(0, 512).arrayBuffer());
  const problem = modelFileProblem(file.name, head, file.size);
  if (problem) throw new Error(problem);
  const engine = await whenEngine();
  const lines = await engine.checkFile(file, { signal });
  const model = await engine.openModel(file, { signal });
  const info = await model.info();
  if (signal.aborted) {
    model.free();
    return;
  }
  const taken = runState().phase === 'running' || runState().phase === 'preparing';
  if (!taken) await leaveRun();
  if (!signal.aborted) filesState.patch({ opened: { name: file.name, blob: file, info, lines } });
  if (taken || signal.aborted) {
    model.free();
    return;
  }
  const old = current.get();
  if (old?.origin === 'file') old.model.free();
  current.set({
    model,
    config: info.config,
    unit: info.config.vocab === 256 ? 'byte' : 'token',
    origin: 'file',
    label: file.name,
    step: info.step,
    tick: (old?.tick ?? 0) + 1,
  });
}

/** The run in the opened file goes on, on the text in hand, which the engine compares. */
export function continueOpenedRun(): Promise<void> {
  return doing('Continuing the run', async (signal) => {
    const { opened } = filesState.get();
    const text = runText();
    if (!opened) return;
    if (!text)
      throw new Error('The text that this run was trained on is needed. Open it under Text first.');
    offer.set(null);
    sizeChosen.set(true);
    await controller.resume(opened.blob, text, {}, '', 0, signal);
    if (signal.aborted) return;
    const s = runState();
    if (s.phase === 'failed') {
      throw new Error(
        `${s.problem} Open the very text that this run was trained on under Text, then try again.`,
      );
    }
    if (s.settings) settings.set(s.settings);
    openView('live');
  });
}

/** Fine-tuning: a new run that begins with the weights of the opened file. */
export function trainOpenedModel(): Promise<void> {
  return doing('Starting', async (signal) => {
    const { opened } = filesState.get();
    if (!opened) return;
    await start(opened.blob, signal, withBase(settings.get(), opened.info.config));
  });
}

/** A run of the shelf as a file, as it was last saved. */
export async function exportRun(run: ShelfRun, signal: AbortSignal): Promise<void> {
  const saved = await kept.loadRun(run.id);
  if (!saved || signal.aborted) return;
  const { step } = run.meta;
  const name = fileName({ base: run.name, step, kind: 'run', extension: 'tinygpt' });
  saveAs(new Blob([saved.run as Uint8Array<ArrayBuffer>]), name);
}

export interface Layout {
  kind: FileKind | 'best' | 'last';
  title: string;
  about: string;
  extension: string;
}

/** Writes the current model, or the run, and hands it to the browser's downloads. */
export function download(layout: Layout): Promise<void> {
  return doing(`Writing ${layout.title}`, async (signal) => {
    const bytes = await written(layout);
    if (signal.aborted) return;
    const s = runState();
    const now = current.get();
    const name = fileName({
      base: s.settings && now?.origin !== 'file' ? s.settings.size : (now?.label ?? 'model'),
      step: s.settings && now?.origin !== 'file' ? s.step : (now?.step ?? 0),
      kind: layout.kind,
      extension: layout.extension,
    });
    saveAs(bytes, name);
  });
}

async function written(layout: Layout): Promise<Blob> {
  const { trainer, lastSave } = controller;
  if (layout.kind === 'last') {
    if (!lastSave) throw new Error('There is no save yet.');
    return lastSave;
  }
  const model = current.get()?.model;
  let bytes: Uint8Array;
  if (layout.kind === 'best') {
    if (!trainer) throw new Error('Only a run keeps a best version.');
    bytes = await trainer.saveBest();
  } else if (trainer) {
    bytes = await trainer.save(layout.kind);
  } else if (model) {
    bytes = await model.save(layout.kind);
  } else {
    throw new Error('There is no model to download yet.');
  }
  return new Blob([bytes as Uint8Array<ArrayBuffer>]);
}

/** A file that has to come first. */
export function downloadFetched(name: string, get: () => Promise<Blob>): Promise<void> {
  return doing(`Fetching ${name}`, async (signal) => {
    const blob = await get();
    if (!signal.aborted) saveAs(blob, name);
  });
}

/** Hands a file to the browser's downloads. */
export function saveAs(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // The download has its own hold on the Blob once it has begun.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  notify('good', `${name} is in your downloads.`);
}

export function startFiles(): void {
  onRebuilt(() => filesState.set({ opened: null, busy: '', problem: '' }));
}
