// SPDX-License-Identifier: Apache-2.0
/** run.test.ts - the settings in hand after a run from other weights, which brings its own. */
import { beforeEach, expect, it, vi } from 'vitest';
import { Store } from '../store';

const page = vi.hoisted(() => ({ settle: () => {}, make: () => {}, started: [] as object[] }));
vi.mock('../engine', () => ({ whenEngine: () => {} }));
vi.mock('../run/controller', () => ({
  RunController: class {
    state = new Store({ phase: 'idle' });
    start(settings: object) {
      page.started.push(settings);
      page.make();
      return Promise.resolve();
    }
  },
}));
vi.mock('./route', () => ({ openView: () => {}, settings: new Store({}), sizeChosen: new Store(false) }));
vi.mock('./keeping', () => ({
  newId: () => '',
  kept: { loadRun: () => Promise.resolve({ run: new Uint8Array(1) }) },
}));
vi.mock('./shelf', () => ({ refreshShelf: () => Promise.resolve([]) }));
vi.mock('./text', () => ({
  runText: () => ({ name: 'T' }),
  settleText: () => {
    page.settle();
    return Promise.resolve();
  },
}));
const { fineTune } = await import('./run');
const { settings, sizeChosen } = await import('./route');
const MINE = { size: 'small', steps: 7 } as never;
const run = { id: 'a', meta: { settings: { size: 'tiny', steps: 99 } } } as never;

beforeEach(() => {
  page.settle = page.make = () => {};
  page.started.splice(0);
  settings.set(MINE);
  sizeChosen.set(false);
});

it('are those of the run, with the steps in hand', async () => {
  await fineTune(run, new AbortController().signal);
  expect(settings.get()).toEqual({ size: 'tiny', steps: 7 });
  expect(sizeChosen.get()).toBe(true);
  expect(page.started).toEqual([settings.get()]);
});

it.each(['settle', 'make'] as const)('stay after a cancel (%s)', async (at) => {
  const control = new AbortController();
  page[at] = () => control.abort();
  await fineTune(run, control.signal);
  expect(settings.get()).toBe(MINE);
  expect(sizeChosen.get()).toBe(false);
  expect(page.started).toHaveLength(at === 'settle' ? 0 : 1);
});
