// SPDX-License-Identifier: Apache-2.0
import { beforeEach, expect, it, vi } from 'vitest';
import type { RunMeta } from '../run/controller';

const done: string[] = [];
vi.mock('./keeping', () => ({
  keeping: { get: () => ({ status: 'ok' }) },
  measureRoom: () => Promise.resolve(),
  newId: () => 'copy',
  kept: {
    listRuns: () => Promise.resolve([]),
    loadDocs: () => Promise.resolve({}),
    copyRun: (from: string, to: string) => Promise.resolve(void done.push(`copy ${from} ${to}`)),
    removeRun: (id: string) => Promise.resolve(void done.push(`remove ${id}`)),
    saveDoc: (key: string) => Promise.resolve(void done.push(`save ${key}`)),
  },
}));
const { copyRun } = await import('./shelf');
const run = { id: 'a', name: 'A', meta: {} as RunMeta, bytes: 1, text: 0 };

beforeEach(() => done.splice(0));

it('a copy that is wanted gets a name', async () => {
  await copyRun(run, new AbortController().signal);
  expect(done).toEqual(['copy a copy', 'save name.copy']);
});

it('a copy that was cancelled while it was written does not stay', async () => {
  const control = new AbortController();
  const copying = copyRun(run, control.signal);
  control.abort();
  await copying;
  expect(done).toEqual(['copy a copy', 'remove copy']);
});
