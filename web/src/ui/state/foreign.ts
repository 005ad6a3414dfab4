// SPDX-License-Identifier: Apache-2.0
/**
 * foreign.ts - what other pages at this address keep in the browser. They share one room with this
 * page, as a host with many pages has it: where a model does not fit, some of theirs may go.
 */
import { MODELS_FOLDER } from '../../lib/models/index';
import { STORE_FOLDER } from '../../lib/store/index';
import { CACHE_PREFIX } from '../places';
import { Store } from '../store';
import { measureRoom } from './keeping';

export interface Foreign {
  kind: 'files' | 'cache' | 'database';
  name: string;
  /** null: the browser does not tell. */
  bytes: number | null;
}

/** null: not looked yet. */
export const foreign = new Store<readonly Foreign[] | null>(null);

/** TypeScript's types lack the iterators of a folder. */
type Folder = FileSystemDirectoryHandle & { values(): AsyncIterable<FileSystemHandle> };

async function sizeOf(handle: FileSystemHandle): Promise<number> {
  if (handle.kind === 'file') return (await (handle as FileSystemFileHandle).getFile()).size;
  let bytes = 0;
  for await (const part of (handle as Folder).values()) bytes += await sizeOf(part);
  return bytes;
}

async function files(): Promise<Foreign[]> {
  const found: Foreign[] = [];
  const root = (await navigator.storage.getDirectory()) as Folder;
  for await (const handle of root.values()) {
    if (handle.name === STORE_FOLDER || handle.name === MODELS_FOLDER) continue;
    const bytes = await sizeOf(handle).catch(() => null);
    found.push({ kind: 'files', name: handle.name, bytes });
  }
  return found;
}

/** By what the answers say of themselves: to read all of a cache would take as long as to fill it. */
async function cacheBytes(name: string): Promise<number | null> {
  const cache = await caches.open(name);
  let bytes = 0;
  for (const request of await cache.keys()) {
    const told = (await cache.match(request))?.headers.get('content-length');
    if (told == null) return null;
    bytes += Number(told);
  }
  return bytes;
}

async function cached(): Promise<Foreign[]> {
  const names = (await caches.keys()).filter((name) => !name.startsWith(CACHE_PREFIX));
  return Promise.all(
    names.map(async (name) => ({ kind: 'cache' as const, name, bytes: await cacheBytes(name) })),
  );
}

async function databases(): Promise<Foreign[]> {
  const list = (await indexedDB.databases?.()) ?? [];
  return list.flatMap(({ name }) => (name ? [{ kind: 'database' as const, name, bytes: null }] : []));
}

/** Looks for all of it. What a browser does not tell of is not there. */
export async function findForeign(): Promise<void> {
  const ways = [files, cached, databases].map((way) => way().catch(() => []));
  foreign.set((await Promise.all(ways)).flat());
}

function removeDatabase(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = () => resolve();
    request.onerror = () => reject(request.error ?? new Error(`${name} could not be deleted.`));
    request.onblocked = () =>
      reject(
        new Error(`A page that is open uses ${name}: it will be deleted when that page is closed.`),
      );
  });
}

/** For good; rejects where a page that is open has a database in use, which goes with that page. */
export async function removeForeign({ kind, name }: Foreign): Promise<void> {
  if (kind === 'database') await removeDatabase(name);
  else if (kind === 'cache') await caches.delete(name);
  else await (await navigator.storage.getDirectory()).removeEntry(name, { recursive: true });
  await Promise.all([findForeign(), measureRoom()]);
}
