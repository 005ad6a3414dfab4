// SPDX-License-Identifier: Apache-2.0
/** library.test.ts - many runs, texts and documents on one disk that loses power and fills up. */
import { describe, expect, it } from 'vitest';
import { CrashDisk, PowerCut } from './crash_disk.js';
import { QuotaError } from './disk.js';
import { Library } from './library.js';
import { Vault } from './vault.js';

function run(fill: number, bytes = 300): Uint8Array {
  return new Uint8Array(bytes).fill(fill);
}

async function opened(disk: CrashDisk): Promise<Library> {
  const library = new Library(disk);
  await library.open();
  return library;
}

async function textOf(library: Library, id: string): Promise<string | null> {
  const saved = await library.loadRun(id);
  const text = saved ? await library.loadText(saved.text) : null;
  return (await text?.text()) ?? null;
}

async function ids(library: Library): Promise<string[]> {
  return (await library.listRuns()).map((r) => r.id).sort();
}

/** Two runs on one text, one on another, and a document. */
async function filled(): Promise<CrashDisk> {
  const disk = new CrashDisk();
  const library = await opened(disk);
  const one = await library.keepText(new Blob(['one']));
  const two = await library.keepText(new Blob(['two']));
  await library.saveRun('a', run(1), { step: 1 }, one);
  await library.saveRun('b', run(2), { step: 2 }, one);
  await library.saveRun('c', run(3), { step: 3 }, two);
  await library.saveDoc('talk.x', { turns: ['hello'] });
  return disk.survive(0);
}

describe('a library', () => {
  it('keeps runs apart, and gives each with its text', async () => {
    const library = await opened(await filled());
    expect(await ids(library)).toEqual(['a', 'b', 'c']);
    expect((await library.loadRun('b'))?.run).toEqual(run(2));
    expect((await library.loadRun('b'))?.meta).toEqual({ step: 2 });
    expect([await textOf(library, 'a'), await textOf(library, 'b'), await textOf(library, 'c')])
      .toEqual(['one', 'one', 'two']);
    expect(await library.loadRun('d')).toBeNull();
    expect(await library.loadDocs('talk.')).toEqual({ 'talk.x': { turns: ['hello'] } });
  });

  it('sweeps no text that somebody is about to refer to', async () => {
    const library = await opened(new CrashDisk());
    await library.saveDoc('hand', { text: await library.keepText(new Blob(['one'])) });
    const two = await library.keepText(new Blob(['two']));
    await library.removeDoc('hand');
    await library.saveDoc('part.a.10', { text: two });
    expect(await (await library.loadText(two))?.text()).toBe('two');
    await library.removeDoc('part.a.10');
    expect(await library.loadText(two)).toBeNull();
  });

  it('copies what belongs to a run with it, and lets it go with it', async () => {
    const disk = await filled();
    let library = await opened(disk);
    const text = await library.keepText(new Blob(['weights']));
    await library.saveDoc('part.a.10', { step: 10, text });
    await library.saveDoc('part.ab.10', { step: 1 });
    await library.copyRun('a', 'd');
    expect(await library.loadDocs('part.d.')).toEqual({ 'part.d.10': { step: 10, text } });
    await library.removeRun('a');
    library = await opened(disk);
    expect(Object.keys(await library.loadDocs('part.'))).toEqual(['part.ab.10', 'part.d.10']);
    expect(await (await library.loadText(text))?.text()).toBe('weights');
    await library.removeDoc('part.d.10');
    expect(await library.loadText(text)).toBeNull();
  });

  it('keeps a text once, and for as long as a run or a document has it', async () => {
    const disk = await filled();
    let library = await opened(disk);
    const before = disk.events;
    expect(await library.keepText(new Blob(['two']))).toBe(2);
    expect(disk.events).toBe(before);
    const hand = await library.keepText(new Blob(['three']));
    await library.saveDoc('hand', { text: hand });
    library = await opened(disk.survive(0));
    expect(await (await library.loadText(hand))?.text()).toBe('three');
    const other = await library.keepText(new Blob(['four']));
    await library.saveDoc('hand', { text: other });
    expect(await library.loadText(hand)).toBeNull();
    expect(await textOf(library, 'c')).toBe('two');
    // A text that nothing has referred to is gone at the next opening.
    const lost = await library.keepText(new Blob(['five']));
    library = await opened(disk);
    expect(await library.loadText(lost)).toBeNull();
  });

  it('opens the one run of the store before it, with its text', async () => {
    const disk = new CrashDisk();
    const names = { slots: ['slot-0', 'slot-1'], pointer: 'pointer' } as const;
    const old = new Library(disk);
    await old.open();
    // The older store counted texts, too, and kept them in two files by turns.
    await old.keepText(new Blob(['old']));
    disk.spoil('text-0', () => disk.bytes('text-1'));
    await disk.remove('text-1');
    await new Vault(disk, names).save(run(9), { step: 9 }, 1);
    const library = await opened(disk.survive(0));
    expect(await ids(library)).toEqual(['first']);
    expect(await textOf(library, 'first')).toBe('old');
    await library.saveRun('first', run(10), { step: 10 }, 1);
    expect(await textOf(await opened(disk.survive(0)), 'first')).toBe('old');
  });

  it('brings back what was removed, in the same visit', async () => {
    const disk = await filled();
    const library = await opened(disk);
    await library.removeRun('b');
    expect(await ids(library)).toEqual(['a', 'c']);
    await library.restoreRun('b');
    expect((await library.loadRun('b'))?.run).toEqual(run(2));
    await library.removeRun('c');
    const later = await opened(disk.survive(0));
    expect(await ids(later)).toEqual(['a', 'b']);
    expect(await later.loadText(2)).toBeNull();
  });

  it('drops a run at once, with all that belongs to it', async () => {
    const disk = await filled();
    const library = await opened(disk);
    const before = await disk.names();
    await library.saveDoc('part.a.10', { step: 10 });
    await library.copyRun('a', 'd');
    await library.dropRun('d');
    expect(await ids(library)).toEqual(['a', 'b', 'c']);
    await library.removeDoc('part.a.10');
    expect((await disk.names()).sort()).toEqual(before.sort());
  });

  it('copies', async () => {
    const library = await opened(await filled());
    await library.copyRun('c', 'd');
    await library.saveRun('c', run(4), { step: 4 }, 2);
    expect((await library.loadRun('d'))?.meta).toEqual({ step: 3 });
    expect(await textOf(library, 'd')).toBe('two');
    await expect(library.copyRun('none', 'e')).rejects.toThrow('not there');
  });

  it('lets calls that overlap follow one another', async () => {
    const disk = new CrashDisk();
    const library = await opened(disk);
    await Promise.all([1, 2, 3, 4].map((step) => library.saveRun('a', run(step), { step }, 0)));
    expect((await library.loadRun('a'))?.meta).toEqual({ step: 4 });
    expect((await (await opened(disk.survive(0))).loadRun('a'))?.run).toEqual(run(4));
  });

  it('refuses names that are none of a file', async () => {
    const library = await opened(new CrashDisk());
    await expect(library.saveDoc('../x', {})).rejects.toThrow('keeps nothing');
  });
});

describe('a power cut', () => {
  it('at every point of a visit leaves each thing as it was or as it was to be', async () => {
    let states = 0;
    for (let dieAt = 0; ; dieAt++) {
      const disk = await filled();
      const library = await opened(disk);
      disk.dieAt = disk.events + dieAt;
      const finished = await (async () => {
        const text = await library.keepText(new Blob(['three']));
        await library.saveDoc('hand', { text });
        await library.saveRun('n', run(7), { step: 7 }, text);
        await library.saveRun('n', run(8), { step: 8 }, text);
        await library.removeRun('a');
        await library.removeDoc('talk.x');
      })().then(
        () => true,
        (e: unknown) => {
          if (!(e instanceof PowerCut)) throw e;
          return false;
        },
      );
      for (let outcome = 0; outcome < disk.outcomes; outcome++) {
        const left = await opened(disk.survive(outcome));
        const listed = await ids(left);
        expect(listed).toEqual(expect.arrayContaining(['b', 'c']));
        const n = await left.loadRun('n');
        if (n) {
          const { step } = n.meta as { step: number };
          expect([7, 8]).toContain(step);
          expect(n.run).toEqual(run(step));
          expect(await textOf(left, 'n')).toBe('three');
        }
        expect(await textOf(left, 'b')).toBe('one');
        expect(await textOf(left, 'c')).toBe('two');
        expect(left.notice).toBe('');
        if (finished) {
          expect(listed).toEqual(['b', 'c', 'n']);
          expect(await left.loadDocs('talk.')).toEqual({});
        }
        states++;
      }
      if (finished) break;
    }
    expect(states).toBeGreaterThan(100);
  });
});

describe('a full disk', () => {
  it('takes the room of what was removed before it refuses', async () => {
    const disk = await filled();
    const library = await opened(disk);
    await library.saveRun('big', run(5, 5000), { step: 5 }, 0);
    await library.removeRun('big');
    disk.quota = 6800;
    await library.saveRun('next', run(6, 5000), { step: 6 }, 0);
    expect(await ids(library)).toEqual(['a', 'b', 'c', 'next']);
    await expect(library.saveRun('more', run(7, 5000), { step: 7 }, 0)).rejects.toThrow(QuotaError);
    await expect(library.keepText(new Blob(['x'.repeat(3000)]))).rejects.toThrow(QuotaError);
    expect((await library.loadRun('next'))?.run).toEqual(run(6, 5000));
    // Removing works without room, too.
    disk.quota = 0;
    await library.removeRun('next');
    expect(await ids(library)).toEqual(['a', 'b', 'c']);
  });
});
