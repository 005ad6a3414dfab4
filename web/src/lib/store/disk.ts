// SPDX-License-Identifier: Apache-2.0
/**
 * disk.ts - the few file operations that the vault and the shelf of models need, and their form in
 * a browser's private file system (OPFS).
 *
 * Reading, writing and flushing are synchronous, which browsers allow in a worker only. A test has
 * another Disk, which dies at every point that it is told to.
 */

/** There is no room: the browser's limit for this page, or the disk itself. */
export class QuotaError extends Error {
  override readonly name = 'QuotaError';
}

export interface DiskFile {
  size(): number;
  /** Fills `into` from offset `at` on; returns how many bytes there were. */
  read(into: Uint8Array, at: number): number;
  /** Writes all of `from`, or throws QuotaError. */
  write(from: Uint8Array, at: number): void;
  resize(bytes: number): void;
  /** Comes back when what was written would survive a power cut. */
  flush(): void;
  close(): void;
}

export interface Disk {
  /** A file that is there from now on, if it was not before; one user at a time. */
  open(name: string): Promise<DiskFile>;
  /** Nothing happens if there is no such file. */
  remove(name: string): Promise<void>;
  /** The file's bytes from `start` on. They can be read until the file is written to again. */
  blob(name: string, start: number): Promise<Blob>;
  /** All files, in no particular order. */
  names(): Promise<string[]>;
}

/* TypeScript's types of a page lack what only workers have. */
interface SyncHandle {
  getSize(): number;
  read(into: Uint8Array, o: { at: number }): number;
  write(from: Uint8Array, o: { at: number }): number;
  truncate(bytes: number): void;
  flush(): void;
  close(): void;
}
type WorkerFileHandle = FileSystemFileHandle & {
  createSyncAccessHandle?: () => Promise<SyncHandle>;
};

/** A file stays locked for a moment after the tab that had it was killed. */
const OPEN_TRIES = 30;
const OPEN_PAUSE_MS = 100;

const NO_ROOM = 'the browser has no room left for this page';

/** The error that a person can do something about is told apart from all others. */
function told(e: unknown): unknown {
  return e instanceof Error && e.name === 'QuotaExceededError' ? new QuotaError(NO_ROOM) : e;
}

function guarded<T>(work: () => T): T {
  try {
    return work();
  } catch (e) {
    throw told(e);
  }
}

/** Tries again while somebody else has the file. Where all room is taken, none can even be made. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (e) {
      const taken = e instanceof Error && e.name === 'NoModificationAllowedError';
      if (!taken || tries === OPEN_TRIES) throw told(e);
    }
    await new Promise((resolve) => setTimeout(resolve, OPEN_PAUSE_MS));
  }
}

class OpfsFile implements DiskFile {
  readonly #handle: SyncHandle;

  constructor(handle: SyncHandle) {
    this.#handle = handle;
  }

  size(): number {
    return this.#handle.getSize();
  }

  read(into: Uint8Array, at: number): number {
    return this.#handle.read(into, { at });
  }

  write(from: Uint8Array, at: number): void {
    // Some browsers throw at the limit, some write less.
    const written = guarded(() => this.#handle.write(from, { at }));
    if (written !== from.length) throw new QuotaError(NO_ROOM);
  }

  resize(bytes: number): void {
    guarded(() => this.#handle.truncate(bytes));
  }

  flush(): void {
    guarded(() => this.#handle.flush());
  }

  close(): void {
    this.#handle.close();
  }
}

export class OpfsDisk implements Disk {
  readonly #folder: FileSystemDirectoryHandle;

  private constructor(folder: FileSystemDirectoryHandle) {
    this.#folder = folder;
  }

  /** Throws, with a sentence, where a browser has no such file system or refuses it; where it is
   *  full, unless that is enough for what is there to be listed, read and removed. */
  static async mount(folder: string, { full = false } = {}): Promise<OpfsDisk> {
    const storage = globalThis.navigator?.storage;
    if (typeof storage?.getDirectory !== 'function') {
      throw new Error('this browser has no private file system (OPFS)');
    }
    const root = await storage.getDirectory();
    const own = await patiently(() => root.getDirectoryHandle(folder, { create: true }));
    const disk = new OpfsDisk(own);
    // Private windows and older browsers fail only here, so it is tried once before any training.
    try {
      const probe = await disk.open('probe');
      probe.close();
      await disk.remove('probe');
    } catch (e) {
      if (!(full && e instanceof QuotaError)) throw e;
    }
    return disk;
  }

  async open(name: string): Promise<DiskFile> {
    const file: WorkerFileHandle = await patiently(() =>
      this.#folder.getFileHandle(name, { create: true }));
    if (!file.createSyncAccessHandle) {
      throw new Error('this browser cannot write to its private file system from a worker');
    }
    const open = file.createSyncAccessHandle.bind(file);
    return patiently(async () => new OpfsFile(await open()));
  }

  async remove(name: string): Promise<void> {
    try {
      await patiently(() => this.#folder.removeEntry(name));
    } catch (e) {
      if (!(e instanceof Error && e.name === 'NotFoundError')) throw e;
    }
  }

  async blob(name: string, start: number): Promise<Blob> {
    return (await (await this.#folder.getFileHandle(name)).getFile()).slice(start);
  }

  async names(): Promise<string[]> {
    const names: string[] = [];
    for await (const name of this.#folder.keys()) names.push(name);
    return names;
  }
}
