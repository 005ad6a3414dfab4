// SPDX-License-Identifier: Apache-2.0
/**
 * store.worker.ts - the vault's worker: the one place that writes to the browser's storage.
 *
 * A Web Lock makes it the only one among all tabs. The lock is held for as long as the worker
 * lives, so a tab that is closed or killed gives it up by itself.
 */
import * as Comlink from 'comlink';

import { OpfsDisk } from './disk.js';
import { type SavedRun, Vault } from './vault.js';

export interface StoreStatus {
  status: 'ok' | 'locked' | 'unavailable';
  /** A sentence for a person, where the status is not ok. */
  reason?: string;
}

const FOLDER = 'tinygpt';
const LOCK = 'tinygpt-store';
/** A tab that is being reloaded may hold the lock for a moment longer. */
const LOCK_WAIT_MS = 2000;

let vault: Vault | null = null;

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

async function openVault(): Promise<StoreStatus> {
  if (vault) return { status: 'ok' };
  if (!navigator.locks) {
    return { status: 'unavailable', reason: 'Saving in the browser needs https, or this machine.' };
  }
  if (!(await takeLock())) {
    return { status: 'locked', reason: 'Another tab keeps its run in this browser.' };
  }
  try {
    vault = new Vault(await OpfsDisk.mount(FOLDER));
  } catch (e) {
    const why = e instanceof Error ? e.message : String(e);
    return { status: 'unavailable', reason: `Runs cannot be kept in this browser: ${why}.` };
  }
  return { status: 'ok' };
}

function opened(): Vault {
  if (!vault) throw new Error('the store of runs is not open');
  return vault;
}

const api = {
  open: openVault,

  async load(): Promise<{ saved: SavedRun | null; notice: string }> {
    const saved = await opened().load();
    const reply = { saved, notice: opened().notice };
    return saved ? Comlink.transfer(reply, [saved.run.buffer]) : reply;
  },

  save: (run: Uint8Array, meta: object): Promise<void> => opened().save(run, meta),
  saveText: (text: Blob): Promise<void> => opened().saveText(text),
  loadText: (): Promise<Blob | null> => opened().loadText(),
  clear: (): Promise<void> => opened().clear(),
};

export type StoreApi = typeof api;

Comlink.expose(api);
