// SPDX-License-Identifier: Apache-2.0
/**
 * models.worker.ts - the worker of the store of models: fetches, hashes and writes, so that a page
 * does not have to wait for any of it.
 *
 * Each file is locked by the browser while it is written, so two tabs may use the store at once.
 */
import * as Comlink from 'comlink';

import { OpfsDisk, QuotaError } from '../store/disk.js';
import { StoreError, type StoreCode } from './errors.js';
import { MODELS_FOLDER } from './place.js';
import { type AddOptions, type Progress, Shelf, type StoredModel } from './shelf.js';
import { addressSource, fileSource } from './source.js';

export type Reply<T> = { ok: true; value: T } | { ok: false; code: StoreCode; message: string };

/** A page tells at most so often how far a copy is. */
const TELL_MS = 100;

let shelf: Promise<Shelf> | undefined;
const copies = new Map<number, AbortController>();

async function room(): Promise<number> {
  const { quota, usage } = await navigator.storage.estimate();
  return quota === undefined ? Infinity : quota - (usage ?? 0);
}

/** A model file that can be told by its beginning; what lies behind is the core's to judge. */
function judge(name: string, head: Uint8Array): string {
  const start = new TextDecoder('latin1').decode(head);
  if (/^(GGUF|PK\x03\x04|TGPT)/.test(start)) return '';
  if (/^\s*<(!doctype|html|\?xml)/i.test(start)) {
    return (
      `${name} is a web page, not a model: an error, or a page about the file. Look there for ` +
      'the link that downloads the file itself.'
    );
  }
  if (start.startsWith('version https://git-lfs')) {
    return `${name} is only a pointer to a model (Git LFS). Use the address of the file itself.`;
  }
  return `${name} is no model that can be opened here: want a GGUF file, or a folder of safetensors.`;
}

async function mount(): Promise<Shelf> {
  try {
    return new Shelf(await OpfsDisk.mount(MODELS_FOLDER, { full: true }), { room, judge });
  } catch (e) {
    if (e instanceof QuotaError) {
      // There may be room the next time.
      shelf = undefined;
      throw e;
    }
    const why = e instanceof Error ? e.message : String(e);
    throw new StoreError('UNAVAILABLE', `Models cannot be kept in this browser: ${why}.`);
  }
}

/** Errors travel inside of replies: over the border they would lose their code. */
async function reply<T>(work: (shelf: Shelf) => Promise<T>): Promise<Reply<T>> {
  try {
    shelf ??= mount();
    return { ok: true, value: await work(await shelf) };
  } catch (e) {
    if (e instanceof StoreError) {
      if (e.code === 'UNAVAILABLE') shelf = undefined;
      return { ok: false, code: e.code, message: e.message };
    }
    const message = e instanceof Error ? e.message : String(e);
    if (e instanceof QuotaError) {
      const what = `It cannot be kept: ${message}. Delete a model, or make room on the disk.`;
      return { ok: false, code: 'QUOTA', message: what };
    }
    const stopped = e instanceof Error && e.name === 'AbortError';
    return { ok: false, code: stopped ? 'STOPPED' : 'FAILED', message };
  }
}

/** Work that a page hears of, and may stop by its number. */
function stoppable<T>(
  copy: number, tell: (progress: Progress) => void,
  work: (shelf: Shelf, options: AddOptions) => Promise<T>,
): Promise<Reply<T>> {
  const control = new AbortController();
  copies.set(copy, control);
  let told = -Infinity;
  const onProgress = (progress: Progress) => {
    const now = performance.now();
    if (now - told < TELL_MS) return;
    told = now;
    tell(progress);
  };
  return reply((s) => work(s, { signal: control.signal, onProgress })).finally(() =>
    copies.delete(copy));
}

const api = {
  list: (): Promise<Reply<StoredModel[]>> => reply((s) => s.list()),
  remove: (id: string): Promise<Reply<void>> => reply((s) => s.remove(id)),

  add(
    copy: number, from: File | string, sha256: string | undefined,
    tell: (progress: Progress) => void,
  ): Promise<Reply<StoredModel>> {
    return stoppable(copy, tell, (s, options) => {
      const source = typeof from === 'string' ? addressSource(new URL(from)) : fileSource(from);
      return s.add(source, { ...options, sha256 });
    });
  },

  check(copy: number, id: string, tell: (progress: Progress) => void): Promise<Reply<number>> {
    return stoppable(copy, tell, (s, options) => s.check(id, options));
  },

  stop(copy: number): void {
    copies.get(copy)?.abort();
  },
};

export type ModelsApi = typeof api;

Comlink.expose(api);
