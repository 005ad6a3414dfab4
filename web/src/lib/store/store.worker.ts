// SPDX-License-Identifier: Apache-2.0
/**
 * store.worker.ts - the library's worker: the one place that writes to the browser's storage.
 *
 * A Web Lock makes it the only one among all tabs. The lock is held for as long as the worker
 * lives, so a tab that is closed or killed gives it up by itself.
 */
import * as Comlink from 'comlink';

import { OpfsDisk } from './disk.js';
import { Library, type ListedRun, type SavedRun } from './library.js';
import { STORE_FOLDER } from './place.js';

export interface StoreStatus {
  status: 'ok' | 'locked' | 'unavailable';
  /** A sentence for a person, where the status is not ok. */
  reason?: string;
}

const LOCK = 'tinygpt-store';
/** A tab that is being reloaded may hold the lock for a moment longer. */
const LOCK_WAIT_MS = 2000;

let library: Library | null = null;

/** True once the lock is ours, false if another tab keeps it. */
function takeLock(): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const hold = () => {
      resolve(true);
      return new Promise<never>(() => {});
    };
    const signal = AbortSignal.timeout(LOCK_WAIT_MS);
    navigator.locks.request(LOCK, { signal }, hold).catch((e: unknown) => {
      if (signal.aborted) resolve(false);
      else reject(e);
    });
  });
}

async function openLibrary(): Promise<StoreStatus> {
  if (library) return { status: 'ok' };
  if (!navigator.locks) {
    return { status: 'unavailable', reason: 'Saving in the browser needs https, or this machine.' };
  }
  if (!(await takeLock())) {
    return { status: 'locked', reason: 'Another tab of this page keeps things in this browser.' };
  }
  try {
    const opened = new Library(await OpfsDisk.mount(STORE_FOLDER));
    await opened.open();
    library = opened;
  } catch (e) {
    const why = e instanceof Error ? e.message : String(e);
    return { status: 'unavailable', reason: `Nothing can be kept in this browser: ${why}.` };
  }
  return { status: 'ok' };
}

function opened(): Library {
  if (!library) throw new Error('the store is not open');
  return library;
}

const api = {
  open: openLibrary,

  async listRuns(): Promise<{ runs: ListedRun[]; notice: string }> {
    return { runs: await opened().listRuns(), notice: opened().notice };
  },

  async loadRun(id: string): Promise<{ saved: SavedRun | null; notice: string }> {
    const saved = await opened().loadRun(id);
    const reply = { saved, notice: opened().notice };
    return saved ? Comlink.transfer(reply, [saved.run.buffer]) : reply;
  },

  saveRun: (id: string, run: Uint8Array, meta: object, text: number): Promise<void> =>
    opened().saveRun(id, run, meta, text),
  copyRun: (from: string, to: string): Promise<void> => opened().copyRun(from, to),
  removeRun: (id: string): Promise<void> => opened().removeRun(id),
  dropRun: (id: string): Promise<void> => opened().dropRun(id),
  restoreRun: (id: string): Promise<void> => opened().restoreRun(id),
  keepText: (text: Blob): Promise<number> => opened().keepText(text),
  loadText: (id: number): Promise<Blob | null> => opened().loadText(id),
  saveDoc: (key: string, value: object): Promise<void> => opened().saveDoc(key, value),
  loadDocs: (prefix: string): Promise<Record<string, object>> => opened().loadDocs(prefix),
  removeDoc: (key: string): Promise<void> => opened().removeDoc(key),
};

export type StoreApi = typeof api;

Comlink.expose(api);
