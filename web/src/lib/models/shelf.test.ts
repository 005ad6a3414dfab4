// SPDX-License-Identifier: Apache-2.0
/**
 * shelf.test.ts - copies that are broken off by the source, by a person, by a full disk and by a
 * power cut at every point, and go on; sources that change meanwhile; hosts of all manners.
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';

import { CrashDisk, PowerCut } from '../store/crash_disk.js';
import { StoreError } from './errors.js';
import { modelFile } from './place.js';
import { type AddOptions, Shelf, type ShelfOptions, type StoredModel } from './shelf.js';
import { addressSource, fileSource, type Source } from './source.js';

const PIECE_BYTES = 8000;
/** Three pieces and a bit, with another byte at every place that matters. */
const BYTES = new Uint8Array(3 * PIECE_BYTES + 1000).map((_, i) => (i * 31 + (i >> 8)) & 255);
const CHUNK = 3000;

const sha = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const HASH = sha(BYTES);

interface Host {
  bytes: Uint8Array;
  stamp: string;
  /** Answers 206 to a Range. */
  ranges: boolean;
  /** Breaks the connection after so many bytes of an answer. */
  breakAt: number;
  /** Where answers began. */
  asked: number[];
  /** How long they were, at most. */
  sent: number[];
}

function host(fields: Partial<Host> = {}): Host {
  return { bytes: BYTES, stamp: '"one"', ranges: true, breakAt: Infinity, asked: [], sent: [], ...fields };
}

function served(h: Host): Source {
  const get = async (_: unknown, init?: RequestInit) => {
    const range = new Headers(init?.headers).get('range');
    const [, from = 0, last = ''] = (h.ranges && /^bytes=(\d+)-(\d*)$/.exec(range ?? '')) || [];
    h.asked.push(Number(from));
    const rest = h.bytes.subarray(Number(from), last === '' ? undefined : Number(last) + 1);
    h.sent.push(rest.length);
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(c) {
        if (sent >= h.breakAt) return c.error(new Error('reset'));
        if (sent === rest.length) return c.close();
        const part = rest.slice(sent, Math.min(sent + CHUNK, h.breakAt));
        sent += part.length;
        c.enqueue(part);
      },
    });
    const headers: Record<string, string> = { 'content-length': String(rest.length) };
    if (h.stamp) headers['etag'] = h.stamp;
    return new Response(body, { status: h.ranges && range ? 206 : 200, headers });
  };
  return addressSource(new URL('https://host/a/model.gguf'), get as typeof fetch);
}

const options = (o: Partial<AddOptions> = {}): AddOptions => ({
  signal: new AbortController().signal, ...o,
});

function shelfOn(disk: CrashDisk, o: ShelfOptions = {}): Shelf {
  return new Shelf(disk, { pieceBytes: PIECE_BYTES, ...o });
}

async function code(call: Promise<unknown>): Promise<string> {
  const e = await call.then(() => undefined, (reason: unknown) => reason);
  return e instanceof StoreError ? e.code : String(e);
}

function isWhole(disk: CrashDisk, model: StoredModel): void {
  expect(model).toMatchObject({ whole: true, bytes: BYTES.length, sha256: HASH });
  expect(sha(disk.bytes(modelFile(model.id)))).toBe(HASH);
}

describe('a model on the shelf', () => {
  it('is copied, listed, not copied twice, and removed', async () => {
    const disk = new CrashDisk();
    const shelf = shelfOn(disk, { now: () => 7 });
    const file = new File([BYTES], 'm.gguf', { lastModified: 5 });
    const told: number[] = [];
    const model = await shelf.add(
      fileSource(file), options({ onProgress: ({ done }) => told.push(done) }),
    );
    isWhole(disk, model);
    expect(told.at(-1)).toBe(BYTES.length);
    expect(await shelf.list()).toEqual([model]);
    const events = disk.events;
    expect((await shelf.add(fileSource(file), options())).id).toBe(model.id);
    expect(disk.events).toBe(events);
    await shelf.remove(model.id);
    expect(await shelf.list()).toEqual([]);
    expect(await disk.names()).toEqual([]);
  });

  it('hears a stop between pieces that lie ready', async () => {
    const ready: Source = {
      name: 'm.gguf',
      address: '',
      open: async (from) => ({
        from,
        bytes: 100 * PIECE_BYTES,
        stamp: '',
        pieces: (async function* () {
          for (let i = 0; i < 100; i++) yield new Uint8Array(PIECE_BYTES);
        })(),
        drop: () => {},
      }),
    };
    const control = new AbortController();
    setTimeout(() => control.abort());
    const shelf = shelfOn(new CrashDisk());
    await expect(shelf.add(ready, options({ signal: control.signal }))).rejects.toThrow(/abort/i);
    expect((await shelf.list())[0]?.have).toBeLessThan(10 * PIECE_BYTES);
  });

  it('goes on where the connection broke', async () => {
    const disk = new CrashDisk();
    const shelf = shelfOn(disk);
    const h = host({ breakAt: 2 * PIECE_BYTES });
    expect(await code(shelf.add(served(h), options()))).toBe('SOURCE');
    const [part] = await shelf.list();
    expect(part).toMatchObject({ whole: false, have: 2 * PIECE_BYTES, bytes: BYTES.length });
    h.breakAt = Infinity;
    const model = await shelfOn(disk).add(served(h), options());
    isWhole(disk, model);
    expect(model.id).toBe(part!.id);
    expect(h.asked).toEqual([0, 2 * PIECE_BYTES]);
  });

  it('goes on after a stop', async () => {
    const disk = new CrashDisk();
    const shelf = shelfOn(disk);
    const control = new AbortController();
    const onProgress = ({ done }: { done: number }) => {
      if (done > PIECE_BYTES) control.abort();
    };
    const stopped = shelf.add(served(host()), { signal: control.signal, onProgress });
    await expect(stopped).rejects.toMatchObject({ name: 'AbortError' });
    const [part] = await shelf.list();
    expect(part!.have).toBeGreaterThan(PIECE_BYTES);
    expect(part!.have).toBeLessThan(BYTES.length);
    const stages = new Set<string>();
    const model = await shelf.add(
      served(host()), options({ onProgress: ({ stage }) => stages.add(stage) }),
    );
    isWhole(disk, model);
    expect([...stages]).toEqual(['checking', 'copying']);
  });

  it.each([
    ['a host that knows only whole files', { ranges: false }],
    ['a file that is another one now', { stamp: '"two"' }],
    ['a file that has another size now', { bytes: BYTES.slice(5) }],
  ])('begins anew with %s', async (_, change) => {
    const disk = new CrashDisk();
    const shelf = shelfOn(disk);
    const h = host({ breakAt: PIECE_BYTES + 1 });
    expect(await code(shelf.add(served(h), options()))).toBe('SOURCE');
    Object.assign(h, { breakAt: Infinity, ...change });
    const model = await shelf.add(served(h), options());
    expect(model).toMatchObject({ whole: true, sha256: sha(h.bytes), bytes: h.bytes.length });
    expect(sha(disk.bytes(modelFile(model.id)))).toBe(model.sha256);
    expect(await shelf.list()).toEqual([model]);
  });

  it('survives a power cut at every point, and is then copied to its end', async () => {
    for (let dieAt = 0; ; dieAt++) {
      const disk = new CrashDisk();
      disk.dieAt = dieAt;
      const died = await shelfOn(disk).add(served(host()), options()).then(() => false, (e) => {
        expect(e).toBeInstanceOf(PowerCut);
        return true;
      });
      if (!died) {
        expect(dieAt).toBeGreaterThan(10);
        return;
      }
      for (const outcome of [0, disk.outcomes - 1, disk.outcomes >> 1]) {
        const after = disk.survive(outcome);
        const found = await shelfOn(after).list();
        expect(found.length).toBeLessThanOrEqual(1);
        if (found[0]?.whole) isWhole(after, found[0]);
        isWhole(after, await shelfOn(after).add(served(host()), options()));
        const [model, ...others] = await shelfOn(after).list();
        isWhole(after, model!);
        expect(others).toEqual([]);
      }
    }
  });

  it('is not kept where the disk gives back something else than the journal tells of', async () => {
    const disk = new CrashDisk();
    const h = host({ breakAt: 2 * PIECE_BYTES });
    await code(shelfOn(disk).add(served(h), options()));
    const [part] = await shelfOn(disk).list();
    disk.spoil(modelFile(part!.id), (bytes) => bytes.slice(0, PIECE_BYTES));
    h.breakAt = Infinity;
    expect(await code(shelfOn(disk).add(served(h), options()))).toBe('WRONG');
    isWhole(disk, await shelfOn(disk).add(served(h), options()));
  });
});

describe('a model that the disk has damaged', () => {
  const CRC_BYTES = 4000;
  const flip = (...at: number[]) => (bytes: Uint8Array) =>
    bytes.map((byte, i) => (at.includes(i) ? byte ^ 16 : byte));

  /** A stored model, its shelf, and a disk on which those bytes are flipped. */
  async function damaged(h: Host, change: (bytes: Uint8Array) => Uint8Array, source = served(h)) {
    const disk = new CrashDisk();
    const shelf = shelfOn(disk, { crcBytes: CRC_BYTES, sourceOf: () => served(h) });
    const model = await shelf.add(source, options());
    disk.spoil(modelFile(model.id), change);
    h.asked.splice(0);
    h.sent.splice(0);
    return { disk, shelf, model };
  }

  it('is mended by the pieces that are damaged, and by no others', async () => {
    const h = host();
    const { disk, shelf, model } = await damaged(h, flip(4100, 9000, 9001));
    const stages = new Set<string>();
    const tell = options({ onProgress: ({ stage }) => stages.add(stage) });
    expect(await shelf.check(model.id, tell)).toBe(2);
    expect(h.asked).toEqual([4000, 8000]);
    expect(h.sent).toEqual([4000, 4000]);
    expect([...stages]).toEqual(['checking', 'copying']);
    isWhole(disk, (await shelf.list())[0]!);
    expect(await shelf.check(model.id, options())).toBe(0);
  });

  it.each([
    ['that lacks its end', (bytes: Uint8Array) => bytes.slice(0, 23_500), {}],
    ['whose host knows only whole files', flip(24_500), { ranges: false }],
  ])('%s is mended, too', async (_, change, fields) => {
    const { disk, shelf, model } = await damaged(host(fields), change);
    expect(await shelf.check(model.id, options())).toBeGreaterThan(0);
    isWhole(disk, (await shelf.list())[0]!);
  });

  it('is not whole any more where nobody has it, and goes on when it is picked again', async () => {
    const file = fileSource(new File([BYTES], 'm.gguf', { lastModified: 5 }));
    const { disk, shelf, model } = await damaged(host(), flip(9000), file);
    expect(await code(shelf.check(model.id, options()))).toBe('WRONG');
    const part = [{ whole: false, have: 8000, sha256: '' }];
    expect(await shelf.list()).toMatchObject(part);
    expect(await code(shelf.check(model.id, options()))).toBe('WRONG');
    expect(await shelf.list()).toMatchObject(part);
    isWhole(disk, await shelf.add(file, options()));
  });

  it.each([
    ['a connection that breaks', { breakAt: 10 }, 'SOURCE'],
    ['another file', { bytes: BYTES.map((byte) => byte ^ 1) }, 'WRONG'],
  ])('is not mended by %s', async (_, change, wanted) => {
    const h = host();
    const { disk, shelf, model } = await damaged(h, flip(9000));
    Object.assign(h, change);
    expect(await code(shelf.check(model.id, options()))).toBe(wanted);
    Object.assign(h, host());
    isWhole(disk, await shelf.add(served(h), options()));
  });

  it('of an older page, which has one checksum for all, is copied anew', async () => {
    const h = host();
    const { disk, shelf, model } = await damaged(h, (bytes) => bytes);
    disk.spoil(`${model.id}.journal`, (bytes) =>
      new TextEncoder().encode(new TextDecoder().decode(bytes).replace(/,"crcs":\[[^\]]*\]/, '')));
    expect(await shelf.check(model.id, options())).toBe(0);
    disk.spoil(modelFile(model.id), flip(9000));
    expect(await code(shelf.check(model.id, options()))).toBe('WRONG');
    isWhole(disk, await shelf.add(served(h), options()));
  });
});

describe('what is refused', () => {
  it('a file for which there is no room, before it is copied and while it is', async () => {
    const disk = new CrashDisk();
    const file = new File([BYTES], 'm.gguf', { lastModified: 5 });
    const full = shelfOn(disk, { room: async () => BYTES.length - 1 });
    expect(await code(full.add(fileSource(file), options()))).toBe('QUOTA');
    expect(await disk.names()).toEqual([]);
    // A browser that does not tell how much room there is finds out before it copies, too.
    disk.quota = 2 * PIECE_BYTES;
    expect(await code(shelfOn(disk).add(fileSource(file), options()))).toBe('QUOTA');
    expect(await disk.names()).toEqual([]);
    disk.quota = Infinity;
    const fill = options({ onProgress: () => (disk.quota = 2 * PIECE_BYTES) });
    expect(await code(shelfOn(disk).add(fileSource(file), fill))).toBe('QUOTA');
    expect((await shelfOn(disk).list())[0]!.have).toBeGreaterThan(0);
    disk.quota = Infinity;
    isWhole(disk, await shelfOn(disk).add(fileSource(file), options()));
  });

  it('what is no model, or not the one that was wanted: nothing of it is kept', async () => {
    const disk = new CrashDisk();
    const judge = (name: string, head: Uint8Array) => (head[0] === 71 ? '' : `${name} is none`);
    const shelf = shelfOn(disk, { judge });
    for (const bytes of [new Uint8Array(0), new Uint8Array([60, 33]), BYTES]) {
      const source = fileSource(new File([bytes], 'm.gguf'));
      expect(await code(shelf.add(source, options()))).toBe('WRONG');
    }
    const other = options({ sha256: '0'.repeat(64) });
    expect(await code(shelfOn(disk).add(served(host()), other))).toBe('WRONG');
    expect(await disk.names()).toEqual([]);
    const right = options({ sha256: HASH.toUpperCase() });
    isWhole(disk, await shelfOn(disk).add(served(host()), right));
  });

  it.each([404, 403, 500])('an address that answers %i', async (status) => {
    const get = async () => new Response('no', { status });
    const source = addressSource(new URL('https://host/m.gguf'), get as typeof fetch);
    const refused = shelfOn(new CrashDisk()).add(source, options());
    await expect(refused).rejects.toThrow(new RegExp(`^host .*\\(${status}\\)`));
  });

  it('an address without https may be what a page is not let read, and that is said', async () => {
    const get = () => Promise.reject(new TypeError('Failed to fetch'));
    const said = (address: string) =>
      shelfOn(new CrashDisk()).add(addressSource(new URL(address), get), options()).catch(String);
    expect(await said('http://host/m.gguf')).toContain('may read https addresses alone');
    expect(await said('https://host/m.gguf')).not.toContain('https addresses');
  });
});
