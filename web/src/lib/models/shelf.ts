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
 *                     {"sha256": "..", "bytes": .., "crcs": [..]}  and now all of them are
 *                     {"have": 12582912}           what lies behind was found to be damaged
 *
 * The invariant: the bytes that a journal speaks of are on the disk, since they are flushed before
 * the line is written, and the line is flushed, too. A last line that was torn does not count. So a
 * copy that was broken off goes on from its last piece, and is hashed anew up to there: that also
 * finds out whether the disk still gives back what it was given. Of a model that is whole, check()
 * finds that out by the checksums of its pieces, and fetches what is damaged again.
 */
import { sha256 } from '@noble/hashes/sha2.js';

import { crc32 } from '../store/crc32.js';
import { type Disk, type DiskFile, QuotaError } from '../store/disk.js';
import { StoreError } from './errors.js';
import { journalFile, modelFile } from './place.js';
import { addressSource, type Opened, type Source } from './source.js';

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
  /** So many bytes have a checksum of their own, and are fetched again if it is another one. */
  crcBytes?: number;
  /** Where a model with an address can be had again. */
  sourceOf?: (address: string) => Source;
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
  crcs?: number[];
}

/** A model as its journal tells of it. */
interface Entry extends StoredModel {
  stamp: string;
  /** CRC-32 of each piece of `crcBytes` bytes; of what was stored without them, none. */
  crcs: number[];
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
    crcs: [], lines: length,
  };
  for (const { have, sha256: hash, bytes, crcs } of lines) {
    if (have !== undefined) Object.assign(entry, { have, whole: false, sha256: '' });
    if (hash === undefined) continue;
    Object.assign(entry, { sha256: hash, whole: true, bytes: bytes ?? entry.bytes, crcs: crcs ?? [] });
    entry.have = entry.bytes;
  }
  return entry;
}

function publicOf({ stamp: _, lines: __, crcs: ___, ...model }: Entry): StoredModel {
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

/** Checksums of a file as its bytes come: of all, and of each piece. */
class Sums {
  readonly #hash = sha256.create();
  readonly crcs: number[] = [];
  #at = 0;

  constructor(private readonly crcBytes: number) {}

  update(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    for (let done = 0; done < bytes.length;) {
      const piece = Math.floor(this.#at / this.crcBytes);
      const n = Math.min(this.crcBytes - (this.#at % this.crcBytes), bytes.length - done);
      this.crcs[piece] = crc32(bytes.subarray(done, done + n), this.crcs[piece]);
      this.#at += n;
      done += n;
    }
  }

  sha256(): string {
    return hexOf(this.#hash.digest());
  }
}

/** One copy under way. */
class Copy {
  readonly #sums: Sums;
  at = 0;
  #flushed = 0;

  constructor(
    private readonly file: DiskFile,
    private readonly journal: DiskFile,
    private readonly entry: Entry,
    private readonly options: AddOptions,
    private readonly pieceBytes: number,
    crcBytes: number,
  ) {
    this.#sums = new Sums(crcBytes);
  }

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
      this.#sums.update(part.subarray(0, n));
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
    this.#sums.update(piece);
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
    const hash = this.#sums.sha256();
    const { crcs } = this.#sums;
    const wanted = this.options.sha256?.toLowerCase();
    if (wanted && wanted !== hash) {
      throw new StoreError(
        'WRONG',
        `${entry.name} is not the file that it should be, and was not kept. Something changed it on ` +
          `its way, or its host has another one: fetch it again. (want SHA-256 ${wanted}, have ${hash})`,
      );
    }
    this.file.flush();
    this.note({ sha256: hash, bytes: this.at, crcs });
    Object.assign(entry, { sha256: hash, bytes: this.at, have: this.at, whole: true, crcs });
  }
}

export class Shelf {
  readonly #options: Required<ShelfOptions>;

  constructor(
    private readonly disk: Disk,
    options: ShelfOptions = {},
  ) {
    this.#options = {
      room: async () => Infinity, judge: () => '', now: Date.now, pieceBytes: 8 << 20,
      crcBytes: 4 << 20, sourceOf: (address) => addressSource(new URL(address)), ...options,
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

  /**
   * Holds a model that is whole against its checksums; returns how many pieces were damaged and are
   * good again, fetched from where the model came from. What cannot be mended (`WRONG`, `SOURCE`) is
   * not whole any more: add() goes on from its first damaged piece. Nothing happens to one of which
   * only a part is here (`WRONG`), or that an engine has open (`BUSY`, if it is damaged).
   */
  async check(id: string, options: AddOptions): Promise<number> {
    const entry = (await this.#entries()).find((e) => e.id === id);
    if (!entry) return 0;
    if (!entry.whole) {
      throw new StoreError('WRONG', `${entry.name} is not here whole. Add it again to go on copying.`);
    }
    const damaged = await this.#damaged(entry, options);
    if (damaged.length === 0) return 0;
    const journal = await this.#busyIsSaid(() => this.disk.open(journalFile(id)));
    let file: DiskFile | undefined;
    try {
      file = await this.#busyIsSaid(() => this.disk.open(modelFile(id)));
      await this.#mend(entry, file, damaged, options);
      return damaged.length;
    } catch (e) {
      if (options.signal.aborted || (e instanceof StoreError && e.code === 'BUSY')) throw e;
      journal.resize(entry.lines);
      append(journal, { have: damaged[0]! * this.#options.crcBytes });
      if (e instanceof StoreError) throw e;
      throw new StoreError('WRONG', `${damagedWords(entry.name)} (${String(e)})`);
    } finally {
      file?.close();
      journal.close();
    }
  }

  // ------------------------------------------------------------------------------------ inside

  /** Its pieces whose checksums are not what they were; of a model without any, the first or none. */
  async #damaged(entry: Entry, options: AddOptions): Promise<number[]> {
    const { crcBytes } = this.#options;
    const sums = entry.crcs.length === 0 ? new Sums(crcBytes) : undefined;
    const damaged: number[] = [];
    const file = await this.disk.blob(modelFile(entry.id), 0);
    for (let at = 0, piece = 0; at < entry.bytes; at += crcBytes, piece++) {
      options.signal.throwIfAborted();
      const end = Math.min(at + crcBytes, entry.bytes);
      const bytes = await readBlob(file, at, end);
      if (sums) sums.update(bytes);
      else if (bytes.length < end - at || crc32(bytes) !== entry.crcs[piece]) damaged.push(piece);
      options.onProgress?.({ stage: 'checking', done: end, bytes: entry.bytes });
    }
    return sums && sums.sha256() !== entry.sha256 ? [0] : damaged;
  }

  async #mend(entry: Entry, file: DiskFile, damaged: number[], options: AddOptions): Promise<void> {
    const { crcBytes, sourceOf } = this.#options;
    if (entry.address === '' || entry.crcs.length === 0) {
      throw new StoreError('WRONG', damagedWords(entry.name));
    }
    for (const piece of damaged) {
      const at = piece * crcBytes;
      const end = Math.min(at + crcBytes, entry.bytes);
      const bytes = await readSource(sourceOf(entry.address), at, end, options.signal);
      if (crc32(bytes) !== entry.crcs[piece]) {
        throw new StoreError(
          'WRONG', `${damagedWords(entry.name)} Its address holds something else by now.`,
        );
      }
      file.write(bytes, at);
      options.onProgress?.({ stage: 'copying', done: end, bytes: entry.bytes });
    }
    file.flush();
  }

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
      sha256: '', crcs: [], lines: 0,
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
      const { pieceBytes, crcBytes } = this.#options;
      this.#reserve(file, entry, opened);
      copy = new Copy(file, journal, entry, options, pieceBytes, crcBytes);
      await this.#fill(copy, entry, opened, options);
      return publicOf(entry);
    } catch (e) {
      const useless =
        e instanceof StoreError && (e.code === 'WRONG' || (e.code === 'QUOTA' && entry.have === 0));
      if (!useless) throw this.#kept(e, entry, copy);
      file?.close();
      journal.close();
      await this.remove(entry.id);
      throw e;
    } finally {
      file?.close();
      journal.close();
    }
  }

  /** Browsers need not tell how much room there is: whether it is enough, the disk knows at once. */
  #reserve(file: DiskFile, entry: Entry, { bytes }: Opened): void {
    const before = file.size();
    if (bytes <= before) return;
    try {
      file.resize(bytes);
    } catch (e) {
      if (!(e instanceof QuotaError)) throw e;
      throw new StoreError(
        'QUOTA',
        `${entry.name} needs ${megabytes(bytes - before)}, and the browser has not that much left ` +
          'for this page. Delete a model, or make room on the disk.',
      );
    }
    file.resize(before);
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
    let heard = copy.at;
    for await (const piece of opened.pieces) {
      options.signal.throwIfAborted();
      copy.take(piece);
      /* Pieces that lie ready follow each other without a turn of the worker: a stop waits for one. */
      if (copy.at - heard >= this.#options.pieceBytes) {
        await new Promise((resolve) => setTimeout(resolve));
        heard = copy.at;
      }
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
        `${entry.name} ended too early: want ${opened.bytes} bytes, have ${copy.at}. What came is ` +
          'kept: asked for again, it goes on from there.',
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

function damagedWords(name: string): string {
  return (
    `${name} is damaged: the disk gives back something else than was stored. Add it again, and what ` +
    'is damaged is copied anew.'
  );
}

/** The bytes of a file that lie there; fewer if it ends before, none if it cannot be read. */
async function readBlob(file: Blob, from: number, end: number): Promise<Uint8Array> {
  return new Uint8Array(await file.slice(from, end).arrayBuffer().catch(() => new ArrayBuffer(0)));
}

/** A part of a source: fewer bytes if it ends before. */
async function readSource(
  source: Source, from: number, end: number, signal: AbortSignal,
): Promise<Uint8Array> {
  const part = new Uint8Array(end - from);
  const opened = await source.open(from, signal, end);
  let at = opened.from - from;
  try {
    for await (const piece of opened.pieces) {
      signal.throwIfAborted();
      const some = piece.subarray(Math.max(0, -at), Math.max(0, part.length - at));
      part.set(some, Math.max(0, at));
      at += piece.length;
      if (at >= part.length) break;
    }
  } finally {
    opened.drop();
  }
  return part.subarray(0, Math.max(0, Math.min(at, part.length)));
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
