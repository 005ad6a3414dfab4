// SPDX-License-Identifier: Apache-2.0
/** waiting.ts - a piece of work of a view that takes its time, which <Wait> shows. */
import { useState } from 'preact/hooks';
import { plainError } from '../plain_error';
import { notify } from './notices';

export interface Waiting {
  words: string;
  /** What comes of it after a cancel is for the work to throw away. */
  cancel: () => void;
}

/**
 * One piece of work at a time, with what <Wait> shows of it; null while there is none. A cancel ends
 * the wait at once, and the signal tells the work; what goes wrong is told.
 */
export function useWaiting(): [
  Waiting | null,
  (words: string, work: (signal: AbortSignal) => Promise<unknown>) => void,
] {
  const [waiting, setWaiting] = useState<Waiting | null>(null);
  const begin = (words: string, work: (signal: AbortSignal) => Promise<unknown>) => {
    const control = new AbortController();
    const { signal } = control;
    setWaiting({ words, cancel: () => control.abort() });
    const left = new Promise((resolve) => signal.addEventListener('abort', resolve));
    Promise.race([work(signal), left])
      .catch((e: unknown) => notify('error', plainError(e)))
      .finally(() => setWaiting(null));
  };
  return [waiting, begin];
}
