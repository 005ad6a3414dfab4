// SPDX-License-Identifier: Apache-2.0
/** waiting.ts - a piece of work of a view that takes its time, which <Wait> shows. */
import { useState } from 'preact/hooks';
import { plainError } from '../plain_error';
import { Store, useStore } from '../store';
import { notify } from './notices';

export interface Waiting {
  words: string;
  /** What comes of it after a cancel is for the work to throw away. */
  cancel: () => void;
}

type Begin = (words: string, work: (signal: AbortSignal) => Promise<unknown>) => void;

/**
 * One piece of work at a time, shown in a store; what is begun while another runs is not done. A
 * cancel ends the wait at once, and the signal tells the work; what goes wrong is told.
 */
export function waitingIn(shown: Store<Waiting | null>): Begin {
  return (words, work) => {
    if (shown.get()) return;
    const control = new AbortController();
    const { signal } = control;
    const mine = { words, cancel: () => control.abort() };
    shown.set(mine);
    const left = new Promise((resolve) => signal.addEventListener('abort', resolve));
    Promise.race([work(signal), left])
      .catch((e: unknown) => notify('error', plainError(e)))
      .finally(() => {
        if (shown.get() === mine) shown.set(null);
      });
  };
}

/** What <Wait> shows of a view's work, null while there is none, and what begins it. */
export function useWaiting(): [Waiting | null, Begin] {
  const [shown] = useState(() => new Store<Waiting | null>(null));
  const [begin] = useState(() => waitingIn(shown));
  return [useStore(shown), begin];
}
