// SPDX-License-Identifier: Apache-2.0
/**
 * host.ts - what the module sees of the world: clocks, files that stay outside of its memory,
 * saves, and the listeners behind C's callbacks.
 *
 * C waits for no promise, so a file is opened here first (which may await) and then read at once:
 * bytes in memory, a Blob through FileReaderSync, or a file of Node through readSync.
 */
import type { Imports, Memory, Ptr } from './abi.js';
import { TinygptError } from './errors.js';
import { Gpus } from './gpu.js';
import { openStored } from './models/stored_file.js';
import { fileSystem } from './platform.js';
import type { EngineEvent, Wire } from './protocol.js';

/** Of a Blob: it is read whole if it is no longer, else in blocks. */
const WHOLE_BYTES = 128 << 20;
const BLOCK_BYTES = 64 << 10;
const BLOCKS_KEPT = 512;

/** Something that answers reads at once. */
interface HostFile {
  readonly bytes: number;
  /** Fills `to` from an offset on; false if the device fails. */
  read(offset: number, to: Uint8Array): boolean;
  close(): void;
}

class BytesFile implements HostFile {
  readonly bytes: number;

  constructor(private readonly content: Uint8Array) {
    this.bytes = content.length;
  }

  read(offset: number, to: Uint8Array): boolean {
    if (offset + to.length > this.bytes) return false;
    to.set(this.content.subarray(offset, offset + to.length));
    return true;
  }

  close(): void {}
}

/** Part of the WebWorker library of TypeScript, which cannot be had beside the DOM's. */
declare class FileReaderSync {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}

/**
 * A large Blob, read in blocks: a read is a round trip to the browser's process, however short it
 * is, and training asks for many short pieces. The blocks read last are kept.
 */
class BlobFile implements HostFile {
  readonly bytes: number;
  readonly #reader = new FileReaderSync();
  readonly #blocks = new Map<number, Uint8Array>();

  constructor(private readonly blob: Blob) {
    this.bytes = blob.size;
  }

  read(offset: number, to: Uint8Array): boolean {
    if (offset + to.length > this.bytes) return false;
    try {
      if (to.length >= BLOCK_BYTES) {
        to.set(this.#slice(offset, offset + to.length));
        return true;
      }
      for (let done = 0; done < to.length;) {
        const at = offset + done;
        const block = this.#block(Math.floor(at / BLOCK_BYTES));
        const part = block.subarray(at % BLOCK_BYTES, (at % BLOCK_BYTES) + to.length - done);
        to.set(part, done);
        done += part.length;
      }
      return true;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#blocks.clear();
  }

  #slice(from: number, to: number): Uint8Array {
    return new Uint8Array(this.#reader.readAsArrayBuffer(this.blob.slice(from, to)));
  }

  /** A Map keeps the order of insertion: the first key is the block that was used longest ago. */
  #block(index: number): Uint8Array {
    const from = index * BLOCK_BYTES;
    const block =
      this.#blocks.get(index) ?? this.#slice(from, Math.min(from + BLOCK_BYTES, this.bytes));
    this.#blocks.delete(index);
    this.#blocks.set(index, block);
    if (this.#blocks.size > BLOCKS_KEPT) {
      const oldest = this.#blocks.keys().next();
      if (!oldest.done) this.#blocks.delete(oldest.value);
    }
    return block;
  }
}

/** A file of Node, by its address. */
class DiskFile implements HostFile {
  readonly bytes: number;
  readonly #fs: NonNullable<typeof fileSystem>;
  readonly #handle: number;

  constructor(address: string) {
    if (!fileSystem) {
      throw new TinygptError('UNSUPPORTED', `${address}: want a Blob or bytes, have an address`);
    }
    this.#fs = fileSystem;
    try {
      this.#handle = this.#fs.openSync(new URL(address), 'r');
      this.bytes = this.#fs.fstatSync(this.#handle).size;
    } catch (error) {
      throw new TinygptError('IO', `${address}: ${error instanceof Error ? error.message : error}`);
    }
  }

  read(offset: number, to: Uint8Array): boolean {
    for (let done = 0; done < to.length;) {
      const n = this.#fs.readSync(this.#handle, to, done, to.length - done, offset + done);
      if (n === 0) return false;
      done += n;
    }
    return true;
  }

  close(): void {
    this.#fs.closeSync(this.#handle);
  }
}

/** Opens what a caller gave as a text or a model. */
export async function openFile(source: Exclude<Wire, string>): Promise<HostFile> {
  if (source instanceof Uint8Array) return new BytesFile(source);
  if (!(source instanceof Blob)) {
    const { stored, address } = (source ?? {}) as { stored?: unknown; address?: unknown };
    if (typeof stored === 'string') return openStored(stored);
    if (typeof address === 'string') return new DiskFile(address);
    throw new TinygptError('ARG', 'file: want a Uint8Array, a Blob or a File, have something else');
  }
  const readable = typeof FileReaderSync === 'function';
  if (readable && source.size > WHOLE_BYTES) return new BlobFile(source);
  try {
    return new BytesFile(new Uint8Array(await source.arrayBuffer()));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TinygptError('IO', `file: want to read ${source.size} bytes, have: ${reason}`);
  }
}

/** A listener gets what C passes after `user`; what it answers goes back to C. */
type Listener = (...args: number[]) => number | void;

export class Host {
  /** Set when the instance exists: until then nothing is called. */
  memory!: Memory;
  readonly #named = new Map<string, HostFile>();
  readonly #opened = new Map<number, HostFile>();
  readonly #saves = new Map<number, { path: string; parts: Uint8Array[] }>();
  readonly #saved = new Map<string, Uint8Array[]>();
  readonly #listeners = new Map<number, Listener>();
  #last = 0;
  /** What the module said before it gave up. */
  assertion = '';
  readonly gpus = new Gpus();

  constructor(private readonly emit: (event: EngineEvent) => void) {}

  /** Gives a file a name that C can open; the answer is the name, changed if it was taken. */
  offer(file: HostFile, wanted: string): string {
    let name = wanted;
    for (let n = 2; this.#named.has(name); n++) name = `${wanted} (${n})`;
    this.#named.set(name, file);
    return name;
  }

  /** Takes the name back. A file that C has open stays readable. */
  withdraw(name: string): void {
    const file = this.#named.get(name);
    this.#named.delete(name);
    if (file) this.#closeUnlessNeeded(file);
  }

  /** The pieces that were saved under a name, in their order, once. */
  takeSaved(path: string): Uint8Array[] {
    const parts = this.#saved.get(path);
    if (!parts) throw new TinygptError('INTERNAL', `${path}: a save went well and left nothing`);
    this.#saved.delete(path);
    return parts;
  }

  /** A number for C's `user`, by which its callbacks find the listener. */
  listen(listener: Listener): number {
    this.#listeners.set(++this.#last, listener);
    return this.#last;
  }

  unlisten(user: number): void {
    this.#listeners.delete(user);
  }

  /** Closes what the module held open when it was dropped. */
  async close(): Promise<void> {
    for (const file of new Set([...this.#named.values(), ...this.#opened.values()])) file.close();
    await this.gpus.close();
  }

  imports(): Imports {
    const tell = (user: Ptr, ...args: number[]) => this.#listeners.get(user)?.(...args) ?? 0;
    return {
      ...this.gpus.imports(),
      now_ms: () => performance.now(),
      unix_s: () => Date.now() / 1000,
      assert_failed: (file, line, condition) => {
        const { memory } = this;
        this.assertion = `${memory.text(file)}:${line}: ${memory.text(condition)} does not hold`;
      },
      file_open: (name) => this.#open(this.memory.text(name)),
      file_size: (handle) => this.#opened.get(handle)?.bytes ?? 0,
      file_read: (handle, offset, to, n) => {
        const read = this.#opened.get(handle)?.read(offset, this.memory.bytes(to, n));
        return read ? n : 0;
      },
      file_close: (handle) => this.#close(handle),
      save_begin: (path) => this.#saveBegin(this.memory.text(path)),
      save_write: (handle, bytes, n) => this.#saveWrite(handle, bytes, n),
      save_end: (handle, commit) => this.#saveEnd(handle, commit !== 0),
      on_text: (user, bytes, n) => tell(user, bytes, n),
      on_token: (user, token) => tell(user, token),
      on_room: (user, made, ids) => tell(user, made, ids),
      on_mask: (user, tokens, n, allowed) => void tell(user, tokens, n, allowed),
      on_cancel: (user) => tell(user),
      on_log: (_user, level, text) => this.#log(level, this.memory.text(text)),
      on_lint: (user, finding) => void tell(user, finding),
      on_check: (user, check) => void tell(user, check),
      on_profile: (user, row) => void tell(user, row),
      on_progress: (user, report) => void tell(user, report),
    };
  }

  #log(level: number, text: string): void {
    const names = ['error', 'warning', 'info'] as const;
    this.emit({ kind: 'log', level: names[level] ?? 'info', text });
  }

  #open(name: string): number {
    const file = this.#named.get(name);
    if (!file) return -1;
    this.#opened.set(++this.#last, file);
    return this.#last;
  }

  #close(handle: number): void {
    const file = this.#opened.get(handle);
    this.#opened.delete(handle);
    if (file) this.#closeUnlessNeeded(file);
  }

  #closeUnlessNeeded(file: HostFile): void {
    const needed = [...this.#named.values(), ...this.#opened.values()].includes(file);
    if (!needed) file.close();
  }

  /* An allocation that fails is answered with an error number: an exception would leave C at an
   * unfinished save. */

  #saveBegin(path: string): number {
    this.#saves.set(++this.#last, { path, parts: [] });
    return this.#last;
  }

  #saveWrite(handle: number, bytes: Ptr, n: number): number {
    try {
      this.#saves.get(handle)!.parts.push(this.memory.copy(bytes, n));
      return 0;
    } catch {
      return 1;
    }
  }

  #saveEnd(handle: number, commit: boolean): number {
    const save = this.#saves.get(handle);
    this.#saves.delete(handle);
    if (save && commit) this.#saved.set(save.path, save.parts);
    return 0;
  }
}
