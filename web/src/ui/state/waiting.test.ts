// SPDX-License-Identifier: Apache-2.0
/** waiting.test.ts - one piece of work at a time, and whose wait ends when. */
import { expect, it, vi } from 'vitest';
import { Store } from '../store';
import { notices } from './notices';
import { type Waiting, waitingIn } from './waiting';

function work() {
  const ends = { resolve: () => {}, reject: (_e: Error) => {} };
  const promise = new Promise<void>((resolve, reject) => Object.assign(ends, { resolve, reject }));
  const run = vi.fn((_signal: AbortSignal) => promise);
  return { run, ends };
}

it('does not begin what comes while something runs, which can still be stopped', async () => {
  const shown = new Store<Waiting | null>(null);
  const begin = waitingIn(shown);
  const [one, two] = [work(), work()];
  begin('One', one.run);
  begin('Two', two.run);
  expect(two.run).not.toHaveBeenCalled();
  expect(shown.get()?.words).toBe('One');
  shown.get()?.cancel();
  expect(one.run.mock.calls[0]?.[0].aborted).toBe(true);
  await vi.waitFor(() => expect(shown.get()).toBeNull());
});

it('leaves the wait of the next alone when work that was cancelled ends', async () => {
  const shown = new Store<Waiting | null>(null);
  const begin = waitingIn(shown);
  const [one, two] = [work(), work()];
  begin('One', one.run);
  shown.get()?.cancel();
  await vi.waitFor(() => expect(shown.get()).toBeNull());
  begin('Two', two.run);
  one.ends.resolve();
  await new Promise((resolve) => setTimeout(resolve));
  expect(shown.get()?.words).toBe('Two');
  two.ends.reject(new Error('no room'));
  await vi.waitFor(() => expect(shown.get()).toBeNull());
  expect(notices.get().at(-1)?.text).toBe('no room.');
});
