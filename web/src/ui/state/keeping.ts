// SPDX-License-Identifier: Apache-2.0
/**
 * keeping.ts - the page's store: the package's, loaded when it is first needed, so that it does not
 * weigh on the first paint. Everything that the page keeps goes through here: runs and their texts,
 * the text in hand (`hand`), names (`name.ID`), conversations (`talk.ID`), weights of earlier steps
 * (`part.RUN.STEP`).
 */
import type { ListedRun, SavedRun, Store as Library } from '../../lib/store/index';
import { bytes } from '../format';
import { plainError } from '../plain_error';
import { toldQuota } from '../quota';
import { Store } from '../store';
import { notify } from './notices';

export interface Keeping {
  status: 'opening' | 'ok' | 'locked' | 'unavailable';
  /** Why it is not ok, in a sentence. */
  reason: string;
}

/** Whether the browser keeps what is made here. */
export const keeping = new Store<Keeping>({ status: 'opening', reason: '' });

/** What the page has stored, and what it may store, in bytes; null: not known. */
export interface Room {
  used: number;
  /** null: the browser does not tell. */
  most: number | null;
  /** The browser has promised not to throw it away by itself. */
  promised: boolean;
}
export const room = new Store<Room | null>(null);

let library: Promise<Library> | null = null;
let opening: Promise<boolean> | null = null;

function load(): Promise<Library> {
  library ??= import('../../lib/store/index').then((m) => m.openStore());
  library.catch(() => (library = null));
  return library;
}

async function open(): Promise<boolean> {
  try {
    const { status, reason = '' } = await (await load()).open();
    keeping.set({ status, reason });
  } catch (e) {
    keeping.set({ status: 'unavailable', reason: plainError(e) });
  }
  void measureRoom();
  return keeping.get().status === 'ok';
}

/** Opens the store once; whether it can be used. */
export function whenStore(): Promise<boolean> {
  opening ??= open();
  return opening;
}

/** Asks again: the tab that had the store may be gone. */
export function openAgain(): Promise<boolean> {
  opening = open();
  return opening;
}

export async function measureRoom(): Promise<void> {
  try {
    const estimate = await navigator.storage.estimate();
    const promised = (await navigator.storage.persisted?.()) ?? false;
    room.set({ used: estimate.usage ?? 0, most: toldQuota(estimate), promised });
  } catch {
    room.set(null);
  }
}

/** Asks the browser to promise it; whether it did shows in `room`. */
export async function askToPersist(): Promise<void> {
  await navigator.storage.persist?.();
  await measureRoom();
}

/** A sentence if so many bytes more will not fit; '' if they will, or nobody knows. */
export function roomProblem(more: number): string {
  const r = room.get();
  if (!r || r.most === null || r.used + more <= r.most) return '';
  return (
    `The browser has ${bytes(Math.max(0, r.most - r.used))} left for this page, and this needs ` +
    `${bytes(more)}. Delete something under Your models, or download it and then delete it.`
  );
}

/** The calls that the page makes of the store; each loads it. */
export const kept = {
  async listRuns(): Promise<ListedRun[]> {
    const store = await load();
    const runs = await store.listRuns();
    if (store.notice !== '') notify('warning', store.notice);
    return runs;
  },
  async loadRun(id: string): Promise<SavedRun | null> {
    const store = await load();
    const saved = await store.loadRun(id);
    if (store.notice !== '') notify('warning', store.notice);
    return saved;
  },
  async saveRun(id: string, run: Uint8Array, meta: object, text: number): Promise<void> {
    await (await load()).saveRun(id, run, meta, text);
  },
  async copyRun(from: string, to: string): Promise<void> {
    await (await load()).copyRun(from, to);
  },
  async removeRun(id: string): Promise<void> {
    await (await load()).removeRun(id);
  },
  async dropRun(id: string): Promise<void> {
    await (await load()).dropRun(id);
  },
  async restoreRun(id: string): Promise<void> {
    await (await load()).restoreRun(id);
  },
  async keepText(text: Blob): Promise<number> {
    return (await load()).keepText(text);
  },
  async loadText(id: number): Promise<Blob | null> {
    return (await load()).loadText(id);
  },
  async keepWeights(id: string, step: number, weights: Blob): Promise<boolean> {
    // Half of the room is for what cannot be had again. Where the browser does not tell how much there
    // is, each run's weights have their own limit all the same.
    await measureRoom();
    const r = room.get();
    if (r?.most && r.used + weights.size > r.most / 2) return false;
    const text = await kept.keepText(weights);
    await kept.saveDoc(weightsKey(id, step), { step, text });
    return true;
  },
  async dropWeights(id: string, step: number): Promise<void> {
    await kept.removeDoc(weightsKey(id, step));
  },
  async loadWeights(id: string, step: number): Promise<Blob | null> {
    const key = weightsKey(id, step);
    const { text = 0 } = ((await kept.loadDocs(key))[key] ?? {}) as { text?: number };
    return text === 0 ? null : kept.loadText(text);
  },
  async listWeights(id: string): Promise<number[]> {
    const docs = Object.values(await kept.loadDocs(weightsKey(id, ''))) as { step: number }[];
    return docs.map((d) => d.step).sort((a, b) => a - b);
  },
  async saveDoc(key: string, value: object): Promise<void> {
    await (await load()).saveDoc(key, value);
  },
  async loadDocs(prefix: string): Promise<Record<string, object>> {
    return (await load()).loadDocs(prefix);
  },
  async removeDoc(key: string): Promise<void> {
    await (await load()).removeDoc(key);
  },
};

function weightsKey(id: string, step: number | ''): string {
  return `part.${id}.${step}`;
}

const unsaved = new Set<() => boolean>();

/** Asks `what` whether leaving now would lose something. */
export function watchUnsaved(what: () => boolean): void {
  unsaved.add(what);
}

/** The browser asks the person before the page goes while anything is not saved. */
export function startKeeping(): void {
  void whenStore();
  window.addEventListener('beforeunload', (e) => {
    if ([...unsaved].some((what) => what())) e.preventDefault();
  });
}

/** An id for something new: when it was made, and what tells it from others of that moment. */
export function newId(): string {
  const random = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  return `${Date.now().toString(36)}${random.toString(36)}`;
}
