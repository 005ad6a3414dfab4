// SPDX-License-Identifier: Apache-2.0
/**
 * engine.ts - the page's one engine. It is opened after the first paint and never blocks it; the
 * package itself comes as a chunk of its own. When the module traps, the package rebuilds it; when
 * a person wants another device, another engine is opened. Then `generation` grows: every Text,
 * Model and Trainer made before is gone.
 */
import type { Engine } from '../lib/index';
import type { DeviceName, EngineInfo } from '../lib/types';
import { codeOf, isOfPart, plainError } from './plain_error';
import { Store, useStore } from './store';

export interface EngineState {
  status: 'opening' | 'ready' | 'failed';
  engine: Engine | null;
  info: EngineInfo | null;
  generation: number;
  /** Why it failed, in plain words. */
  error: string;
}

export const engineState = new Store<EngineState>({
  status: 'opening',
  engine: null,
  info: null,
  generation: 0,
  error: '',
});

/** `reason` is that of a trap; null: it was wanted. */
type RebuiltListener = (reason: string | null) => void;
const rebuiltListeners = new Set<RebuiltListener>();

/** Called after a trap, for another device, or where none came before, when the new module is ready.
 *  Returns the call that ends it. */
export function onRebuilt(listener: RebuiltListener): () => void {
  rebuiltListeners.add(listener);
  return () => rebuiltListeners.delete(listener);
}

const warningListeners = new Set<(text: string) => void>();

/** What the core warns of, and this file. Returns the call that ends it. */
export function onWarning(listener: (text: string) => void): () => void {
  warningListeners.add(listener);
  return () => warningListeners.delete(listener);
}

function warn(text: string): void {
  for (const listener of [...warningListeners]) listener(text);
}

let opening: Promise<Engine> | null = null;

/** The engine, opened by the first call. */
export function whenEngine(): Promise<Engine> {
  return openedOn();
}

function openedOn(device?: DeviceName): Promise<Engine> {
  opening ??= open(device).catch((e: unknown) => {
    opening = null;
    const exact = e instanceof Error && !isOfPart(e);
    engineState.patch({ status: 'failed', error: exact ? e.message : plainError(e) });
    throw e;
  });
  return opening;
}

/** What the device is kept under for the next visit. */
const DEVICE_KEY = 'tinygpt device';

/** Where a person wants to compute. Storage may be refused; then it is the CPU. */
export function wantedDevice(): DeviceName {
  try {
    return localStorage.getItem(DEVICE_KEY) === 'webgpu' ? 'webgpu' : 'cpu';
  } catch {
    return 'cpu';
  }
}

/** Opens an engine on another device in place of this one. */
export async function openOnDevice(device: DeviceName): Promise<void> {
  try {
    localStorage.setItem(DEVICE_KEY, device);
  } catch {
    // It counts for this visit.
  }
  await openInPlaceOf(await whenEngine().catch(() => null), () => openedOn(device));
}

async function openInPlaceOf(old: Engine | null, open: () => Promise<unknown>): Promise<void> {
  await old?.close();
  opening = null;
  await open();
  renewed(null);
}

/** How many threads engines are to have; 0: as many as there are processors. */
let threads = 0;

export function threadsHere(): number {
  return threads;
}

function ofMemory(e: unknown): boolean {
  return codeOf(e) === 'MEMORY' || (e instanceof Error && e.name === 'RangeError');
}

/**
 * Some browsers refuse memory that several threads share sooner than memory of one. True if that may
 * be what happened to an engine that had so many: engines that are opened from now on have one
 * thread. Where one is not granted it, either, it is not the threads' fault, and they come back with
 * the engine after.
 */
export function takeOneThread(e: unknown, had: number): boolean {
  if (!ofMemory(e)) return false;
  const before = threads;
  threads = had > 1 ? 1 : 0;
  if (threads === 1) warn('There was not enough memory for several threads. It is tried with one.');
  return had > 1 || threads !== before;
}

/** After an error: true if there is another engine now, on which the same may go well. What the one
 *  in hand is being asked is `answered` before. */
export async function openWithOneThread(
  e: unknown,
  answered: () => Promise<unknown>,
): Promise<boolean> {
  if (!ofMemory(e)) return false;
  await answered();
  const { engine, info } = engineState.get();
  if (!engine || !info || !takeOneThread(e, info.threads)) return false;
  await openInPlaceOf(engine, whenEngine);
  return threads === 1;
}

function renewed(reason: string | null): void {
  const { generation, engine } = engineState.get();
  engineState.patch({ generation: generation + 1, info: engine?.info ?? null });
  for (const listener of [...rebuiltListeners]) listener(reason);
}

async function open(device = wantedDevice()): Promise<Engine> {
  const late = engineState.get().status === 'failed';
  engineState.patch({ status: 'opening', error: '' });
  const { Engine } = await import('../lib/index');
  const wasmBase = new URL('./wasm/', document.baseURI);
  const engine = await Engine.open({ wasmBase, device, threads });
  engine.onRebuilt = renewed;
  engine.onDevice = () => engineState.patch({ info: { ...engine.info } });
  engine.onLog = (level, text) => {
    if (level === 'info') return;
    warn(text);
  };
  engineState.patch({ status: 'ready', engine, info: engine.info });
  if (late) renewed(null);
  return engine;
}

export function useEngine(): EngineState {
  return useStore(engineState);
}
