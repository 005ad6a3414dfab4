// SPDX-License-Identifier: Apache-2.0
import { beforeEach, expect, it, vi } from 'vitest';
import type { ListedRun } from '../../lib/store/index';
import type { RunMeta } from '../run/controller';

const done: string[] = [];
const listed: ListedRun[] = [];
vi.mock('./keeping', () => ({
  keeping: { get: () => ({ status: 'ok' }) },
  measureRoom: () => Promise.resolve(),
  newId: () => id,
  kept: {
    listRuns: () => Promise.resolve(listed),
    loadDocs: () => Promise.resolve({}),
    copyRun: (from: string, to: string) => Promise.resolve(void done.push(`copy ${from} ${to}`)),
    dropRun: (id: string) => Promise.resolve(void done.push(`drop ${id}`)),
    removeRun: (id: string) => Promise.resolve(void done.push(`remove ${id}`)),
    restoreRun: (id: string) => Promise.resolve(void done.push(`restore ${id}`)),
    removeDoc: (key: string) => Promise.resolve(void done.push(`forget ${key}`)),
    saveDoc: (key: string) => Promise.resolve(void done.push(`save ${key}`)),
  },
}));
const { copyRun, refreshShelf, removeRun } = await import('./shelf');
const { notices } = await import('./notices');
const run = { id: 'a', name: 'A', meta: {} as RunMeta, bytes: 1, text: 0 };

let id = 'copy';
beforeEach(() => {
  done.splice(0);
  listed.splice(0);
  notices.set([]);
});

it('a copy that is wanted gets a name', async () => {
  await copyRun(run, new AbortController().signal);
  expect(done).toEqual(['copy a copy', 'save name.copy']);
});

it('a copy that was cancelled while it was written does not stay, nor show meanwhile', async () => {
  id = 'other';
  const meta = { step: 1, settings: {}, text: { name: 'T', bytes: 1 } };
  listed.push({ id, meta, bytes: 1, text: 0 }, { id: 'a', meta, bytes: 1, text: 0 });
  const control = new AbortController();
  const copying = copyRun(run, control.signal);
  control.abort();
  expect((await refreshShelf()).map((r) => r.id)).toEqual(['a']);
  await copying;
  const all = ['copy a other', 'save name.other', 'drop other', 'forget name.other'];
  await vi.waitFor(() => expect(done).toEqual(all));
});

it('what is deleted can come back, and is back after a cancel, without a word', async () => {
  const control = new AbortController();
  await removeRun(run, control.signal);
  expect(done).toEqual(['remove a']);
  expect(notices.get().map(({ text }) => text)).toEqual(['“A” is deleted.']);
  notices.set([]);
  const removing = removeRun(run, control.signal);
  control.abort();
  await removing;
  expect(done).toEqual(['remove a', 'remove a', 'restore a']);
  expect(notices.get()).toEqual([]);
});

it('of a run that is open it says that it stays, and a way back makes it that run again', async () => {
  const takeBack = vi.fn();
  await removeRun(run, new AbortController().signal, takeBack);
  expect(notices.get()[0]?.text).toMatch(/still open here: if it goes on, it is kept as a new model/);
  expect(takeBack).not.toHaveBeenCalled();
  notices.get()[0]?.action?.run();
  await vi.waitFor(() => expect(takeBack).toHaveBeenCalledTimes(1));
  expect(done).toEqual(['remove a', 'restore a']);
});
