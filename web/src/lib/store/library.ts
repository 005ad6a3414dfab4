// SPDX-License-Identifier: Apache-2.0
/**
 * library.ts - all that the store keeps, on one disk: runs and documents, each a record (vault.ts),
 * and texts (texts.ts).
 *
 *     run-ID-0, run-ID-1, run-ID-at     a run: its two slots and its pointer
 *     doc-KEY-0, doc-KEY-1, doc-KEY-at  a document: JSON alone
 *     text-N                            a text
 *     slot-0, slot-1, pointer           the one run of an older version of this store, known as `first`
 *
 * A run that is removed is only marked at first, by a document, so that it can be brought back; it
 * goes when the store is opened the next time, or when its room is needed. Texts that nothing
 * refers to go at opening. Documents under `part.ID.` belong to the run ID: they are copied with it,
 * and go with it.
 */
import { type Disk, QuotaError } from './disk.js';
import { Texts } from './texts.js';
import { type Files, Vault } from './vault.js';

export interface SavedRun {
  run: Uint8Array;
  meta: object;
  /** Id of its text, 0 for none. */
  text: number;
}

export interface ListedRun {
  id: string;
  meta: object;
  /** Bytes on the disk, both saves of it. */
  bytes: number;
  text: number;
}

const RUN_FILE = /^run-([a-z0-9]+)-(?:0|1|at)$/;
const DOC_FILE = /^doc-([a-z0-9.]+)-(?:0|1|at)$/;
const FIRST = 'first';
const FIRST_FILES: Files = { slots: ['slot-0', 'slot-1'], pointer: 'pointer' };
const GONE = 'gone.';
const PART = 'part.';
const NOTHING = new Uint8Array();

export class Library {
  /** What a person should know about the last listRuns() or loadRun(); '' if all was well. */
  notice = '';
  readonly #disk: Disk;
  readonly #texts: Texts;
  readonly #runs = new Map<string, Vault>();
  readonly #docs = new Map<string, Vault>();
  /** Texts whose ids were given out, and which nothing refers to yet. */
  readonly #given = new Set<number>();
  #queue: Promise<unknown> = Promise.resolve();

  constructor(disk: Disk) {
    this.#disk = disk;
    this.#texts = new Texts(disk);
  }

  /** To be called once, before all else: finds what is there, and takes out what is not wanted. */
  open(): Promise<void> {
    return this.#serially(async () => {
      for (const name of await this.#disk.names()) {
        const run = RUN_FILE.exec(name)?.[1] ?? (name === FIRST_FILES.pointer ? FIRST : undefined);
        if (run !== undefined) this.#run(run);
        const doc = DOC_FILE.exec(name)?.[1];
        if (doc !== undefined) this.#doc(doc);
      }
      await this.#purge();
      await this.#texts.sweep(await this.#usedTexts());
    });
  }

  // -------------------------------------------------------------------------------------- runs

  /** All runs but those that were removed, in no particular order. */
  listRuns(): Promise<ListedRun[]> {
    return this.#serially(async () => {
      const listed: ListedRun[] = [];
      this.notice = '';
      for (const [id, vault] of this.#runs) {
        if (this.#docs.has(GONE + id)) continue;
        const head = await vault.head();
        if (!head) this.notice ||= vault.notice;
        else listed.push({ id, meta: head.meta, bytes: head.size, text: head.text });
      }
      return listed;
    });
  }

  /** Rejects with QuotaError when there is no room; the save before is whole then. */
  saveRun(id: string, run: Uint8Array, meta: object, text: number): Promise<void> {
    return this.#serially(async () => {
      await this.#roomFor(() => this.#run(id).save(run, meta, text));
      this.#given.delete(text);
    });
  }

  loadRun(id: string): Promise<SavedRun | null> {
    return this.#serially(async () => {
      const vault = this.#runs.get(id);
      const kept = (await vault?.load()) ?? null;
      this.notice = vault?.notice ?? '';
      return kept && { run: kept.bytes, meta: kept.meta, text: kept.text };
    });
  }

  /** The same run once more, under another id. */
  copyRun(from: string, to: string): Promise<void> {
    return this.#serially(async () => {
      const kept = await this.#runs.get(from)?.load();
      if (!kept) throw new Error('the run that is to be copied is not there');
      await this.#roomFor(() => this.#run(to).save(kept.bytes, kept.meta, kept.text));
      for (const key of this.#parts(from)) {
        const part = await this.#docs.get(key)?.load();
        const copy = this.#doc(PART + to + key.slice(PART.length + from.length));
        if (part) await this.#roomFor(() => copy.save(NOTHING, part.meta, part.text));
      }
    });
  }

  /** Takes a run out of the list; restoreRun() brings it back in the same visit. */
  removeRun(id: string): Promise<void> {
    return this.#serially(async () => {
      try {
        await this.#doc(GONE + id).save(NOTHING, {});
      } catch (e) {
        // There is not even room for a mark: then it goes now.
        if (!(e instanceof QuotaError)) throw e;
        this.#docs.delete(GONE + id);
        await this.#removeRun(id);
      }
    });
  }

  /** Takes a run away at once, for good. */
  dropRun(id: string): Promise<void> {
    return this.#serially(() => this.#removeRun(id));
  }

  restoreRun(id: string): Promise<void> {
    return this.#serially(() => this.#removeDoc(GONE + id));
  }

  // ------------------------------------------------------------------------------------- texts

  /** Keeps a text, once; the id that it has. */
  keepText(text: Blob): Promise<number> {
    return this.#serially(() =>
      this.#roomFor(async () => {
        const id = await this.#texts.keep(text, Math.max(0, ...(await this.#usedTexts())));
        this.#given.add(id);
        return id;
      }),
    );
  }

  loadText(id: number): Promise<Blob | null> {
    return this.#serially(() => this.#texts.load(id));
  }

  // --------------------------------------------------------------------------------- documents

  /** A document's `text`, if it has one, is the id of a text that stays for it. */
  saveDoc(key: string, value: object): Promise<void> {
    return this.#serially(async () => {
      const doc = this.#doc(key);
      const before = await this.#textOf(doc);
      await this.#roomFor(() => doc.save(NOTHING, value, textOf(value)));
      this.#given.delete(textOf(value));
      // A text that is replaced by another may be nobody's now.
      if (before !== 0 && before !== textOf(value)) {
        await this.#texts.sweep(await this.#usedTexts());
      }
    });
  }

  /** All documents whose key begins so, by key. */
  loadDocs(prefix: string): Promise<Record<string, object>> {
    return this.#serially(async () => {
      const found: Record<string, object> = {};
      for (const [key, vault] of this.#docs) {
        if (!key.startsWith(prefix)) continue;
        const kept = await vault.load();
        if (kept) found[key] = kept.meta;
      }
      return found;
    });
  }

  removeDoc(key: string): Promise<void> {
    return this.#serially(async () => {
      const doc = this.#docs.get(key);
      const text = doc ? await this.#textOf(doc) : 0;
      await this.#removeDoc(key);
      if (text !== 0) await this.#texts.sweep(await this.#usedTexts());
    });
  }

  // ------------------------------------------------------------------------------------ inside

  /** Keys of the documents that belong to a run. */
  #parts(id: string): string[] {
    return [...this.#docs.keys()].filter((key) => key.startsWith(`${PART}${id}.`));
  }

  /** A run, and what belongs to it. */
  async #removeRun(id: string): Promise<void> {
    await this.#runs.get(id)?.remove();
    this.#runs.delete(id);
    for (const key of this.#parts(id)) await this.#removeDoc(key);
  }

  async #removeDoc(key: string): Promise<void> {
    await this.#docs.get(key)?.remove();
    this.#docs.delete(key);
  }

  #run(id: string): Vault {
    return this.#vault(this.#runs, id, id === FIRST ? FIRST_FILES : files(`run-${id}`));
  }

  #doc(key: string): Vault {
    return this.#vault(this.#docs, key, files(`doc-${key}`));
  }

  #vault(map: Map<string, Vault>, key: string, names: Files): Vault {
    if (!/^[a-z0-9.]+$/.test(key)) throw new Error(`the store keeps nothing under "${key}"`);
    const vault = map.get(key) ?? new Vault(this.#disk, names);
    map.set(key, vault);
    return vault;
  }

  /** Runs that are marked, and their marks, go. */
  async #purge(): Promise<boolean> {
    const marked = [...this.#docs.keys()].filter((key) => key.startsWith(GONE));
    for (const key of marked) {
      const id = key.slice(GONE.length);
      await this.#removeRun(id);
      await this.#removeDoc(key);
    }
    return marked.length > 0;
  }

  /** Does the work; where there is no room for it, once more without what was removed. */
  async #roomFor<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (e) {
      if (!(e instanceof QuotaError) || !(await this.#purge())) throw e;
      await this.#texts.sweep(await this.#usedTexts());
      return work();
    }
  }

  async #usedTexts(): Promise<Set<number>> {
    const used = new Set(this.#given);
    for (const vault of [...this.#runs.values(), ...this.#docs.values()]) {
      used.add(await this.#textOf(vault));
    }
    return used;
  }

  async #textOf(vault: Vault): Promise<number> {
    if (vault.text === undefined) await vault.head();
    return vault.text ?? 0;
  }

  /** Calls follow one another, whoever makes them; one that fails holds up none. */
  #serially<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => {});
    return result;
  }
}

function files(name: string): Files {
  return { slots: [`${name}-0`, `${name}-1`], pointer: `${name}-at` };
}

function textOf(value: object): number {
  const { text } = value as { text?: unknown };
  return typeof text === 'number' ? text : 0;
}
