// SPDX-License-Identifier: Apache-2.0
/**
 * shelf.ts - model files on a disk that may lose power, or its tab, at any moment.
 *
 * A model is two files: its bytes, and a journal of lines that is only ever added to.
 *
 *     <id>.model      the bytes as they came
 *     <id>.journal    {"name": .., "address": .., "bytes": .., "stamp": .., "added": ..}
 *                     {"have": 8388608}            so many bytes are on the disk
 *                     {"have": 16777216}
 *                     {"sha256": "..", "bytes": ..}  and now all of them are
 *
 * The invariant: the bytes that a journal speaks of are on the disk, since they are flushed before
 * the line is written, and the line is flushed, too. A last line that was torn does not count. So a
 * copy that was broken off goes on from its last piece, and is hashed anew up to there: that also
 * finds out whether the disk still gives back what it was given.
 */
import { sha256 } from '@noble/hashes/sha2.js';

import { type Disk, type DiskFile, QuotaError } from '../store/disk.js';
import { StoreError } from './errors.js';
import { journalFile, modelFile } from './place.js';
import type { Opened, Source } from './source.js';

/** What a person sees of a stored model. */
export interface StoredModel {
  /** By which the engine finds it. */
  id: string;
  name: string;
  /** Where it came from; '' of a picked file. */
  address: string;
  /** All of it; 0 if that is not known before its end. */
  bytes: number;
  /** How much of it is here. */
  have: number;
  /** All of it is here. */
  whole: boolean;
  /** 64 hexadecimal digits; '' until it is whole. */
  sha256: string;
  /** Milliseconds since 1970. */
  added: number;
}

export interface Progress {
  /** Reading what is here already, or copying what is not. */
  stage: 'checking' | 'copying';
  done: number;
  /** 0 if it is not known. */
  bytes: number;
}

export interface AddOptions {
  signal: AbortSignal;
  onProgress?: (progress: Progress) => void;
  /** What the SHA-256 has to be. */
  sha256?: string | undefined;
}

export interface ShelfOptions {
  /** The bytes that a browser's storage can still take; Infinity if it does not tell. */
  room?: () => Promise<number>;
  /** A sentence if what begins so is no model. */
  judge?: (name: string, head: Uint8Array) => string;
  now?: () => number;
  /** After so many bytes the disk is flushed and the journal gets a line. */
  pieceBytes?: number;
}

const READ_BYTES = 4 << 20;
/** A judge sees at least so many bytes, or all. */
const HEAD_BYTES = 512;

interface Line {
  name?: string;
  address?: string;
  stamp?: string;
  bytes?: number;
  added?: number;
  have?: number;
  sha256?: string;
}

/** A model as its journal tells of it. */
interface Entry extends StoredModel {
  stamp: string;
  /** How much of the journal can be read. */
  lines: number;
}

/** Whole lines that are JSON, and their length; the first one that is not ends the journal. */
function linesOf(text: string): { lines: Line[]; length: number } {
  const lines: Line[] = [];
  let length = 0;
  for (const line of text.split('\n').slice(0, -1)) {
    try {
      lines.push(JSON.parse(line) as Line);
    } catch {
      break;
    }
    length += new TextEncoder().encode(line).length + 1;
  }
  return { lines, length };
}

function entryOf(id: string, text: string): Entry | null {
  const { lines, length } = linesOf(text);
  const [first] = lines;
  if (first?.name === undefined) return null;
  const entry: Entry = {
    id, name: first.name, address: first.address ?? '', stamp: first.stamp ?? '',
    bytes: first.bytes ?? 0, added: first.added ?? 0, have: 0, whole: false, sha256: '',
    lines: length,
  };
  for (const { have, sha256: hash, bytes } of lines) {
    if (have !== undefined) entry.have = have;
    if (hash === undefined) continue;
    Object.assign(entry, { sha256: hash, whole: true, bytes: bytes ?? entry.bytes });
    entry.have = entry.bytes;
  }
  return entry;
}

function publicOf({ stamp: _, lines: __, ...model }: Entry): StoredModel {
  return model;
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function megabytes(n: number): string {
  return `${Math.ceil(n / 1e6).toLocaleString('en-US')} MB`;
}

function append(journal: DiskFile, line: Line): void {
  const bytes = new TextEncoder().encode(`${JSON.stringify(line)}\n`);
  journal.write(bytes, journal.size());
  journal.flush();
}

/** One copy under way. */
class Copy {
  readonly #hash = sha256.create();
  at = 0;
  #flushed = 0;

  constructor(
    private readonly file: DiskFile,
    private readonly journal: DiskFile,
    private readonly entry: Entry,
    private readonly options: AddOptions,
    private readonly pieceBytes: number,
  ) {}

  note(line: Line): void {
    append(this.journal, line);
  }

  tell(stage: Progress['stage']): void {
    this.options.onProgress?.({ stage, done: this.at, bytes: this.entry.bytes });
  }

  /** Hashes what is there already, up to where the journal says that it is. */
  async reread(): Promise<void> {
    const buffer = new Uint8Array(READ_BYTES);
    while (this.at < this.entry.have) {
      const part = buffer.subarray(0, Math.min(READ_BYTES, this.entry.have - this.at));
      const n = this.file.read(part, this.at);
      if (n === 0) break;
      this.#hash.update(part.subarray(0, n));
      this.at += n;
      this.tell('checking');
      await new Promise((resolve) => setTimeout(resolve));
      this.options.signal.throwIfAborted();
    }
    this.#flushed = this.at;
    this.file.resize(this.at);
  }

  take(piece: Uint8Array): void {
    this.file.write(piece, this.at);
    this.#hash.update(piece);
    this.at += piece.length;
    if (this.at - this.#flushed >= this.pieceBytes) this.keep();
    this.tell('copying');
  }

  /** What is here now will be found after a crash. */
  keep(): void {
    if (this.at === this.#flushed) return;
    this.file.flush();
    this.note({ have: this.at });
    this.entry.have = this.#flushed = this.at;
  }

  finish(): void {
    const { entry } = this;
    const hash = hexOf(this.#hash.digest());
    const wanted = this.options.sha256?.toLowerCase();
    if (wanted && wanted !== hash) {
      throw new StoreError('WRONG', `${entry.name}: want SHA-256 ${wanted}, have ${hash}`);
    }
    this.file.flush();
    this.note({ sha256: hash, bytes: this.at });
    Object.assign(entry, { sha256: hash, bytes: this.at, have: this.at, whole: true });
  }
}

export class Shelf {
  readonly #options: Required<ShelfOptions>;

  constructor(
    private readonly disk: Disk,
    options: ShelfOptions = {},
  ) {
    this.#options = {
      room: async () => Infinity, judge: () => '', now: Date.now, pieceBytes: 8 << 20, ...options,
    };
  }

  /** All models, newest first. Files without a journal that speaks of them are cleared away. */
  async list(): Promise<StoredModel[]> {
    return (await this.#entries()).map(publicOf).sort((a, b) => b.added - a.added);
  }

  /** Nothing happens to a model that is in use. */
  async remove(id: string): Promise<void> {
    const file = await this.#busyIsSaid(() => this.disk.open(modelFile(id)));
    file.close();
    /* Bytes without a journal are nobody's, and the next list() takes them away. */
    await this.disk.remove(journalFile(id));
    await this.disk.remove(modelFile(id));
  }

  /**
   * Copies a source, or what is missing of it. One that is here whole is not copied again. Whatever
   * ends the copy, what was flushed stays for the next time, unless it cannot be a model.
   */
  async add(source: Source, options: AddOptions): Promise<StoredModel> {
    const before = (await this.#entries()).filter(
      (e) => e.name === source.name && e.address === source.address,
    );
    const part = before.find((e) => !e.whole);
    const opened = await source.open(part?.have ?? 0, options.signal);
    const { bytes, stamp } = opened;
    try {
      const whole = before.find((e) => e.whole && same(e, bytes, stamp));
      if (whole) return publicOf(whole);
      if (part && same(part, bytes, stamp)) return await this.#copy(part, opened, options);
      if (part) await this.remove(part.id);
      if (opened.from === 0) {
        return await this.#copy(this.#newEntry(source, opened), opened, options);
      }
    } finally {
      opened.drop();
    }
    /* The pieces began in the middle of what is another file now. */
    return this.add(source, options);
  }

  // ------------------------------------------------------------------------------------ inside

  async #entries(): Promise<Entry[]> {
    const entries: Entry[] = [];
    const names = new Set(await this.disk.names());
    for (const name of names) {
      const [id = '', kind] = name.split('.');
      if (kind === 'model' && !names.has(journalFile(id))) {
        await this.disk.remove(name).catch(() => {});
      }
      if (kind !== 'journal') continue;
      const entry = entryOf(id, await (await this.disk.blob(name, 0)).text());
      if (entry) entries.push(entry);
      else await this.disk.remove(name).catch(() => {});
    }
    return entries;
  }

  #newEntry(source: Source, opened: Opened): Entry {
    const { name, address } = source;
    const { stamp, bytes } = opened;
    const id = globalThis.crypto.randomUUID();
    return {
      id, name, address, stamp, bytes, added: this.#options.now(), have: 0, whole: false,
      sha256: '', lines: 0,
    };
  }

  async #copy(entry: Entry, opened: Opened, options: AddOptions): Promise<StoredModel> {
    const missing = opened.bytes - opened.from;
    const room = opened.bytes > 0 ? await this.#options.room() : Infinity;
    if (missing > room) {
      throw new StoreError(
        'QUOTA',
        `${entry.name} needs ${megabytes(missing)}; the browser has ${megabytes(room)} left for ` +
          'this page. Delete a model, or make room on the disk.',
      );
    }
    const journal = await this.#busyIsSaid(() => this.disk.open(journalFile(entry.id)));
    let file: DiskFile | undefined;
    let copy: Copy | undefined;
    try {
      begin(journal, entry);
      file = await this.disk.open(modelFile(entry.id));
      copy = new Copy(file, journal, entry, options, this.#options.pieceBytes);
      await this.#fill(copy, entry, opened, options);
      return publicOf(entry);
    } catch (e) {
      if (!(e instanceof StoreError && e.code === 'WRONG')) throw this.#kept(e, entry, copy);
      file?.close();
      journal.close();
      await this.remove(entry.id);
      throw e;
    } finally {
      file?.close();
      journal.close();
    }
  }

  async #fill(copy: Copy, entry: Entry, opened: Opened, options: AddOptions): Promise<void> {
    if (opened.from === 0 && entry.have > 0) {
      copy.note({ have: 0 });
      entry.have = 0;
    }
    await copy.reread();
    if (copy.at !== opened.from) {
      throw new StoreError(
        'WRONG', `${entry.name}: want ${opened.from} bytes of it on the disk, have ${copy.at}`,
      );
    }
    let judged = copy.at > 0;
    let head = new Uint8Array(0);
    for await (const piece of opened.pieces) {
      options.signal.throwIfAborted();
      copy.take(piece);
      if (judged) continue;
      head = new Uint8Array([...head, ...piece.subarray(0, HEAD_BYTES)]);
      judged = head.length >= HEAD_BYTES;
      if (judged) this.#look(entry, head);
    }
    if (!judged) this.#look(entry, head);
    options.signal.throwIfAborted();
    if (opened.bytes > 0 && copy.at !== opened.bytes) {
      throw new StoreError(
        'SOURCE',
        `${entry.name} ended too early: want ${opened.bytes} bytes, have ${copy.at}; what came ` +
          'is kept.',
      );
    }
    copy.finish();
  }

  #look(entry: Entry, head: Uint8Array): void {
    const { name } = entry;
    const fault = head.length === 0 ? `${name} is empty.` : this.#options.judge(name, head);
    if (fault) throw new StoreError('WRONG', fault);
  }

  /** Keeps what came of a copy that failed; returns what is to be said. */
  #kept(e: unknown, entry: Entry, copy: Copy | undefined): unknown {
    try {
      copy?.keep();
    } catch {
      /* The first error is the one to tell; the journal's last piece is where it goes on. */
    }
    if (!(e instanceof QuotaError)) return e;
    return new StoreError(
      'QUOTA',
      `${entry.name}: ${e.message}, after ${megabytes(entry.have)}. Delete a model, or make room ` +
        'on the disk, and add it again: it goes on from there.',
    );
  }

  async #busyIsSaid<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (e) {
      if (!(e instanceof Error && e.name === 'NoModificationAllowedError')) throw e;
      throw new StoreError('BUSY', 'This model is in use, here or in another tab.');
    }
  }
}

/** Drops a torn end, which would spoil the next line; a new journal gets its first line. */
function begin(journal: DiskFile, entry: Entry): void {
  journal.resize(entry.lines);
  if (entry.lines > 0) return;
  const { name, address, stamp, bytes, added } = entry;
  append(journal, { name, address, stamp, bytes, added });
}

/** Nothing that both sides tell speaks against it. */
function same(entry: Entry, bytes: number, stamp: string): boolean {
  if (entry.bytes > 0 && bytes > 0 && entry.bytes !== bytes) return false;
  return entry.stamp === stamp || (entry.stamp === '' && bytes > 0);
}
