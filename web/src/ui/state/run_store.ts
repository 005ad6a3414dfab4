// SPDX-License-Identifier: Apache-2.0
/**
 * run_store.ts - the store of runs that this page uses: the package's, loaded when it is first
 * needed, so that it does not weigh on the first paint.
 */
import type { RunStore } from '../run/ports';

class LateStore implements RunStore {
  notice = '';
  #store: Promise<RunStore> | null = null;

  #load(): Promise<RunStore> {
    this.#store ??= import('../../lib/store/index').then((m) => m.openRunStore());
    return this.#store;
  }

  async open() {
    return (await this.#load()).open();
  }

  async save(run: Uint8Array, meta: object) {
    await (await this.#load()).save(run, meta);
  }

  async load() {
    const store = await this.#load();
    const saved = await store.load();
    this.notice = store.notice;
    return saved;
  }

  async saveText(text: Blob) {
    await (await this.#load()).saveText(text);
  }

  async loadText() {
    return (await this.#load()).loadText();
  }

  async clear() {
    await (await this.#load()).clear();
  }
}

export function openRunStore(): RunStore {
  return new LateStore();
}
