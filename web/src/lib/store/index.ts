// SPDX-License-Identifier: Apache-2.0
/**
 * store/ - what a person made survives its tab: runs with their texts, and documents (JSON), are
 * found again after a reload, a crash or a power cut, by the same browser on the same machine.
 *
 *     const store = openStore();
 *     if ((await store.open()).status === 'ok') {
 *       const text = await store.keepText(new Blob([book]));
 *       await store.saveRun('first', await trainer.save('run'), { step: 100 }, text);
 *       const runs = await store.listRuns();               // id, meta, bytes and text of each
 *       const before = await store.loadRun('first');       // null, or the run with its meta and text
 *       await store.saveDoc('notes.1', { any: 'JSON' });
 *     }
 *
 * How a save is made so that none can be lost is told in vault.ts. One worker does all the work;
 * the page only waits for it. A second tab gets 'locked' and can work without saving.
 */
import * as Comlink from 'comlink';

import { QuotaError } from './disk.js';
import type { ListedRun, SavedRun } from './library.js';
import type { StoreApi, StoreStatus } from './store.worker.js';

export { STORE_FOLDER } from './place.js';
export { QuotaError };
export type { ListedRun, SavedRun, StoreStatus };

/** Ids and keys are of small letters and digits, keys with dots, too. */
export interface Store {
  /** What the last listRuns() or loadRun() found damaged, in a sentence; '' if nothing. */
  readonly notice: string;
  /** Call it first, and again to ask whether another tab has given the store up. */
  open(): Promise<StoreStatus>;
  /** All runs, in no particular order. */
  listRuns(): Promise<ListedRun[]>;
  /** Rejects with QuotaError when there is no room; the save before is whole then. */
  saveRun(id: string, run: Uint8Array, meta: object, text: number): Promise<void>;
  loadRun(id: string): Promise<SavedRun | null>;
  copyRun(from: string, to: string): Promise<void>;
  /** Takes the run out of the list. It goes when the store is opened again, or room is needed. */
  removeRun(id: string): Promise<void>;
  /** Takes the run away at once, for good. */
  dropRun(id: string): Promise<void>;
  /** Brings a removed run back, in the same visit. */
  restoreRun(id: string): Promise<void>;
  /** Keeps a text once, for runs and documents that refer to it; gives its id, which is above 0. */
  keepText(text: Blob): Promise<number>;
  /** null if it is not kept, or damaged. */
  loadText(id: number): Promise<Blob | null>;
  /** `value.text`, if it is a number, is the id of a text that stays for the document. What is kept
   *  under `part.ID.` is copied with the run ID, and goes with it. */
  saveDoc(key: string, value: object): Promise<void>;
  /** All documents whose keys begin so. */
  loadDocs(prefix: string): Promise<Record<string, object>>;
  removeDoc(key: string): Promise<void>;
}

export function openStore(): Store {
  return new WorkerStore();
}

class WorkerStore implements Store {
  notice = '';
  #worker: Worker | null = null;
  #api: Comlink.Remote<StoreApi> | null = null;
  /** Whoever waits for the worker: they must hear of its death. */
  readonly #waiting = new Set<(e: Error) => void>();
  #askedToPersist = false;

  async open(): Promise<StoreStatus> {
    if (typeof Worker !== 'function' || !globalThis.navigator?.storage) {
      return { status: 'unavailable', reason: 'This browser has no place to keep runs in.' };
    }
    return this.#call((api) => api.open());
  }

  async listRuns(): Promise<ListedRun[]> {
    const { runs, notice } = await this.#call((api) => api.listRuns());
    this.notice = notice;
    return runs;
  }

  async loadRun(id: string): Promise<SavedRun | null> {
    const { saved, notice } = await this.#call((api) => api.loadRun(id));
    this.notice = notice;
    return saved;
  }

  async saveRun(id: string, run: Uint8Array, meta: object, text: number): Promise<void> {
    this.#persist();
    await this.#call((api) => api.saveRun(id, run, meta, text));
  }

  async copyRun(from: string, to: string): Promise<void> {
    await this.#call((api) => api.copyRun(from, to));
  }

  async removeRun(id: string): Promise<void> {
    await this.#call((api) => api.removeRun(id));
  }

  async dropRun(id: string): Promise<void> {
    await this.#call((api) => api.dropRun(id));
  }

  async restoreRun(id: string): Promise<void> {
    await this.#call((api) => api.restoreRun(id));
  }

  async keepText(text: Blob): Promise<number> {
    return this.#call((api) => api.keepText(text));
  }

  async loadText(id: number): Promise<Blob | null> {
    return this.#call((api) => api.loadText(id));
  }

  async saveDoc(key: string, value: object): Promise<void> {
    await this.#call((api) => api.saveDoc(key, value));
  }

  async loadDocs(prefix: string): Promise<Record<string, object>> {
    return this.#call((api) => api.loadDocs(prefix));
  }

  async removeDoc(key: string): Promise<void> {
    await this.#call((api) => api.removeDoc(key));
  }

  /** Asks the browser not to throw these things away when its disk fills up. A no changes nothing. */
  #persist(): void {
    if (this.#askedToPersist) return;
    this.#askedToPersist = true;
    navigator.storage.persist?.().catch(() => {});
  }

  #start(): Comlink.Remote<StoreApi> {
    const worker = new Worker(new URL('./store.worker.js', import.meta.url), {
      type: 'module',
      name: 'tinygpt store',
    });
    worker.addEventListener('error', (event) => {
      event.preventDefault();
      this.#died(`The store has failed. ${event.message || 'Its script could not be loaded.'}`);
    });
    this.#worker = worker;
    this.#api = Comlink.wrap<StoreApi>(worker);
    return this.#api;
  }

  /** The next open() begins with a new worker. */
  #died(reason: string): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#api = null;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const reject of waiting) reject(new Error(reason));
  }

  /** A call that settles whatever happens to the worker. */
  #call<T>(work: (api: Comlink.Remote<StoreApi>) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.add(reject);
      work(this.#api ?? this.#start())
        .then(resolve, (e: unknown) => reject(typed(e)))
        .finally(() => this.#waiting.delete(reject));
    });
  }
}

/** Errors cross the border between worker and page as name and text only. */
function typed(e: unknown): unknown {
  return e instanceof Error && e.name === 'QuotaError' ? new QuotaError(e.message) : e;
}
