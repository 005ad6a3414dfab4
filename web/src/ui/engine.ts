/**
 * engine.ts - the page's one engine. It is opened after the first paint and never blocks it; the
 * package itself comes as a chunk of its own. When the module traps, the package rebuilds it and
 * `generation` grows: every Text, Model and Trainer made before is gone.
 */
import type { Engine } from '../lib/index';
import type { EngineInfo } from '../lib/types';
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

type RebuiltListener = (reason: string) => void;
const rebuiltListeners = new Set<RebuiltListener>();

/** Called after a trap, when the new module is ready. Returns the call that ends it. */
export function onRebuilt(listener: RebuiltListener): () => void {
  rebuiltListeners.add(listener);
  return () => rebuiltListeners.delete(listener);
}

let opening: Promise<Engine> | null = null;

/** The engine, opened by the first call. */
export function whenEngine(): Promise<Engine> {
  opening ??= open().catch((e: unknown) => {
    opening = null;
    engineState.patch({ status: 'failed', error: e instanceof Error ? e.message : String(e) });
    throw e;
  });
  return opening;
}

async function open(): Promise<Engine> {
  engineState.patch({ status: 'opening', error: '' });
  const { Engine } = await import('../lib/index');
  const engine = await Engine.open({ wasmBase: new URL('./wasm/', document.baseURI) });
  engine.onRebuilt = (reason) => {
    engineState.patch({ generation: engineState.get().generation + 1, info: engine.info });
    for (const listener of [...rebuiltListeners]) listener(reason);
  };
  engineState.patch({ status: 'ready', engine, info: engine.info });
  return engine;
}

export function useEngine(): EngineState {
  return useStore(engineState);
}
