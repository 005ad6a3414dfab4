// SPDX-License-Identifier: Apache-2.0
/**
 * stored_file.ts - a stored model as the engine's worker reads it: from the browser's private file
 * system straight into the memory of the module.
 */
import { TinygptError } from '../errors.js';
import { MODELS_FOLDER, modelFile } from './place.js';

/* TypeScript's types of a page lack what only workers have. */
interface ReadHandle {
  getSize(): number;
  read(into: Uint8Array, o: { at: number }): number;
  close(): void;
}
type WorkerFileHandle = FileSystemFileHandle & {
  createSyncAccessHandle?: (o?: { mode: 'read-only' }) => Promise<ReadHandle>;
};

/** Where a browser does not read into shared memory, through so much of its own. */
const STAGE_BYTES = 1 << 20;

export class StoredFile {
  readonly bytes: number;
  #stage: Uint8Array | undefined;

  constructor(private readonly handle: ReadHandle) {
    this.bytes = handle.getSize();
  }

  read(offset: number, to: Uint8Array): boolean {
    if (offset + to.length > this.bytes) return false;
    for (let done = 0; done < to.length;) {
      const n = this.#some(offset + done, to.subarray(done));
      if (n === 0) return false;
      done += n;
    }
    return true;
  }

  close(): void {
    this.handle.close();
  }

  #some(offset: number, to: Uint8Array): number {
    if (!this.#stage) {
      try {
        return this.handle.read(to, { at: offset });
      } catch (e) {
        if (!(e instanceof TypeError)) return 0;
        this.#stage = new Uint8Array(STAGE_BYTES);
      }
    }
    const stage = this.#stage.subarray(0, to.length);
    const n = this.handle.read(stage, { at: offset });
    to.set(stage.subarray(0, n));
    return n;
  }
}

/** Several readers may have it open; nobody may write to it or delete it meanwhile. */
export async function openStored(id: string): Promise<StoredFile> {
  const failed = (why: string) => new TinygptError('IO', `stored model ${id}: ${why}`);
  const storage = globalThis.navigator?.storage;
  if (typeof storage?.getDirectory !== 'function') {
    throw failed('want a browser\'s private file system (OPFS), have none');
  }
  try {
    const folder = await (await storage.getDirectory()).getDirectoryHandle(MODELS_FOLDER);
    const file: WorkerFileHandle = await folder.getFileHandle(modelFile(id));
    if (!file.createSyncAccessHandle) throw new Error('this browser cannot read it in a worker');
    return new StoredFile(await file.createSyncAccessHandle({ mode: 'read-only' }));
  } catch (e) {
    throw failed(e instanceof Error ? e.message : String(e));
  }
}
