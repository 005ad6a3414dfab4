// SPDX-License-Identifier: Apache-2.0
/**
 * store/ - a run survives its tab: the last save is found again after a reload, a crash or a power
 * cut, by the same browser on the same machine.
 *
 *     const store = openRunStore();
 *     if ((await store.open()).status === 'ok') {
 *       const before = await store.load();                  // null, or a run and its meta
 *       await store.save(await trainer.save('run'), { step: 100 });
 *     }
 *
 * How a save is made so that none can be lost is told in vault.ts. One worker does all the work;
 * the page only waits for it. A second tab gets 'locked' and can train without saving.
 */
import * as Comlink from 'comlink';

import { QuotaError } from './disk.js';
import type { StoreApi, StoreStatus } from './store.worker.js';
import type { SavedRun } from './vault.js';

export { QuotaError };
export type { SavedRun, StoreStatus };

export interface RunStore {
  /** What the last load() found damaged, in a sentence; '' if nothing. */
  readonly notice: string;
  /** Call it first, and again to ask whether another tab has given the store up. */
  open(): Promise<StoreStatus>;
  /** Rejects with QuotaError when there is no room; the save before is whole then. */
  save(run: Uint8Array, meta: object): Promise<void>;
  load(): Promise<SavedRun | null>;
  /** The text that the saves after it belong to. */
  saveText(text: Blob): Promise<void>;
  /** The text of the run that load() gives; null if none is kept. */
  loadText(): Promise<Blob | null>;
  clear(): Promise<void>;
}

export function openRunStore(): RunStore {
  return new WorkerStore();
}

class WorkerStore implements RunStore {
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

  async load(): Promise<SavedRun | null> {
    const { saved, notice } = await this.#call((api) => api.load());
    this.notice = notice;
    return saved;
  }

  async save(run: Uint8Array, meta: object): Promise<void> {
    this.#persist();
    await this.#call((api) => api.save(run, meta));
  }

  async saveText(text: Blob): Promise<void> {
    await this.#call((api) => api.saveText(text));
  }

  async loadText(): Promise<Blob | null> {
    return this.#call((api) => api.loadText());
  }

  async clear(): Promise<void> {
    await this.#call((api) => api.clear());
  }

  /** Asks the browser not to throw the run away when its disk fills up. A no changes nothing. */
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
      this.#died(`The store of runs has failed. ${event.message ?? ''}`.trim());
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
