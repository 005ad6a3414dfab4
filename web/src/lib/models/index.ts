// SPDX-License-Identifier: Apache-2.0
/**
 * models/ - a page's own store of model files, in the browser's private file system: what was
 * picked, dropped or fetched once is there after a reload, without a network.
 *
 *     const store = openModelStore();
 *     const stored = await store.add(file, { onProgress: ({ done, bytes }) => .. });
 *     const model = await engine.openChatModel({ stored: stored.id });
 *
 * Pieces go from their source to the disk as they come, and from the disk into the memory of the
 * module: no model is ever whole in the page's heap. A copy that was broken off, by whatever, goes
 * on from its last piece when the same file or address is added again. How none of this can be lost
 * is told in shelf.ts.
 */
import * as Comlink from 'comlink';

import { StoreError, type StoreCode } from './errors.js';
import type { ModelsApi, Reply } from './models.worker.js';
import type { Progress, StoredModel } from './shelf.js';

export { folderFile, isModelFolder } from './folder.js';
export { MODELS_FOLDER } from './place.js';
export { StoreError, type StoreCode };
export type { Progress, StoredModel };

export interface AddModelOptions {
  /** Stops the copy; what came so far is kept, and the call rejects with `STOPPED`. */
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
  /** 64 hexadecimal digits that the file has to have: otherwise it is not kept (`WRONG`). */
  sha256?: string;
}

/** All calls reject with a StoreError, whose message is a sentence for people. */
export class ModelStore {
  #worker: Worker | undefined;
  #api: Comlink.Remote<ModelsApi> | undefined;
  #lastCopy = 0;
  /** Whoever waits for the worker: they must hear of its death. */
  readonly #waiting = new Set<(e: StoreError) => void>();

  /** All models, newest first; also those of which only a part is here. */
  list(): Promise<StoredModel[]> {
    return this.#call((api) => api.list());
  }

  /** Copies a file, or what an address holds. What is here whole is not copied again. */
  async add(source: File | URL, options: AddModelOptions = {}): Promise<StoredModel> {
    navigator.storage?.persist?.().catch(() => {});
    const from = source instanceof URL ? source.href : source;
    return this.#stoppable(options, (api, copy, tell) => api.add(copy, from, options.sha256, tell));
  }

  /**
   * Holds a stored model against its checksums, before it is opened: returns how many pieces were
   * damaged and were fetched again from its address. If that cannot be done (`WRONG`, `SOURCE`), the
   * model is not whole any more, and add() copies the rest of it anew.
   */
  async check(id: string, options: Omit<AddModelOptions, 'sha256'> = {}): Promise<number> {
    return this.#stoppable(options, (api, copy, tell) => api.check(copy, id, tell));
  }

  /** `BUSY` while an engine has it open, here or in another tab. */
  remove(id: string): Promise<void> {
    return this.#call((api) => api.remove(id));
  }

  /** Ends the worker. Copies under way stop, and keep what came. */
  close(): void {
    this.#died('The store of models was closed.');
  }

  /** Work that tells how far it is, with a number, by which the signal stops it. */
  async #stoppable<T>(
    { signal, onProgress }: AddModelOptions,
    work: (
      api: Comlink.Remote<ModelsApi>, copy: number, tell: (progress: Progress) => void,
    ) => Promise<Reply<T>>,
  ): Promise<T> {
    if (signal?.aborted) throw new StoreError('STOPPED', 'The copy was stopped.');
    const copy = ++this.#lastCopy;
    const stop = () => void this.#api?.stop(copy);
    signal?.addEventListener('abort', stop);
    try {
      const tell = Comlink.proxy((progress: Progress) => onProgress?.(progress));
      return await this.#call((api) => work(api, copy, tell));
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  #start(): Comlink.Remote<ModelsApi> {
    if (typeof Worker !== 'function' || !globalThis.navigator?.storage) {
      throw new StoreError('UNAVAILABLE', 'This browser has no place to keep models in.');
    }
    const worker = new Worker(new URL('./models.worker.js', import.meta.url), {
      type: 'module',
      name: 'tinygpt models',
    });
    worker.addEventListener('error', (event) => {
      event.preventDefault();
      this.#died(`The store of models has failed. ${event.message || 'Its script could not be loaded.'}`);
    });
    this.#worker = worker;
    this.#api = Comlink.wrap<ModelsApi>(worker);
    return this.#api;
  }

  /** The next call begins with a new worker. */
  #died(reason: string): void {
    this.#worker?.terminate();
    this.#worker = this.#api = undefined;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const reject of waiting) reject(new StoreError('FAILED', reason));
  }

  /** A call that settles whatever happens to the worker. */
  #call<T>(work: (api: Comlink.Remote<ModelsApi>) => Promise<Reply<T>>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const api = this.#api ?? this.#start();
      this.#waiting.add(reject);
      work(api)
        .then((reply) => {
          if (reply.ok) resolve(reply.value);
          else reject(new StoreError(reply.code, reply.message));
        }, reject)
        .finally(() => this.#waiting.delete(reject));
    });
  }
}

export function openModelStore(): ModelStore {
  return new ModelStore();
}
