// SPDX-License-Identifier: Apache-2.0
/** tour.test.ts - when a tour opens a model. */
import { beforeEach, expect, it, vi } from 'vitest';

const page = vi.hoisted(() => ({ phase: 'idle', current: null as object | null }));
const openFirst = vi.hoisted(() => vi.fn<() => Promise<void>>());
vi.mock('./run', () => ({ runState: () => ({ phase: page.phase }) }));
vi.mock('./current', () => ({ current: { get: () => page.current } }));
vi.mock('./route', () => ({ openView: () => {} }));
vi.mock('../gallery/open_card', () => ({ openFirst }));
vi.stubGlobal('window', { scrollTo: () => {} });
const { goTo, opensModel, startTour, STOPS } = await import('./tour');
const WRITE = STOPS.findIndex(({ view }) => view === 'write');

beforeEach(() => {
  Object.assign(page, { phase: 'idle', current: null });
  openFirst.mockReset().mockResolvedValue();
  startTour();
});

it('says so while it opens one, for who has none', async () => {
  let came = () => {};
  openFirst.mockReturnValue(new Promise((resolve) => (came = resolve)));
  goTo(WRITE);
  expect(opensModel.get()).toBe(true);
  await vi.waitFor(() => expect(openFirst).toHaveBeenCalledTimes(1));
  came();
  await vi.waitFor(() => expect(opensModel.get()).toBe(false));
});

it('asks once a tour, also where none came', async () => {
  openFirst.mockRejectedValue(new Error('offline'));
  for (const stop of [WRITE, WRITE + 1, WRITE]) {
    goTo(stop);
    await vi.waitFor(() => expect(opensModel.get()).toBe(false));
  }
  expect(openFirst).toHaveBeenCalledTimes(1);
  startTour();
  goTo(WRITE);
  await vi.waitFor(() => expect(openFirst).toHaveBeenCalledTimes(2));
});

it('opens none beside a model, a run that is made, or the message of one that failed', () => {
  for (const phase of ['preparing', 'running', 'failed']) {
    page.phase = phase;
    goTo(WRITE);
    expect(opensModel.get(), phase).toBe(false);
  }
  Object.assign(page, { phase: 'idle', current: {} });
  goTo(WRITE);
  expect(opensModel.get()).toBe(false);
});
