// SPDX-License-Identifier: Apache-2.0
/**
 * watch.ts - hooks that look into the model: a look that is always of now, and a long piece of work
 * that can be cancelled.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { TinygptError } from '../../lib/errors';
import { current } from '../state/current';
import { Pace, pageVisible, sleep } from './pace';
import { isTraining } from './state';

export interface Seen<T> {
  value: T | null;
  /** The step at which the model was when it was looked at. */
  step: number;
  error: unknown;
}

/** Looks come no closer together than this. */
const LEAST_MS = 350;

/** Resolves after the next frame. Only asked on a visible page; a hidden one has no frames. */
function drawn(): Promise<void> {
  return new Promise((resolve) => {
    // Should the page be hidden meanwhile, the timer ends the waiting.
    const timer = setTimeout(resolve, 500);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve);
    });
  });
}

/** Resolves when the model has changed since `tick`. */
function changedSince(tick: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (!signal.aborted && current.get()?.tick === tick) return;
      stop();
      signal.removeEventListener('abort', look);
      if (signal.aborted) reject(signal.reason);
      else resolve();
    };
    const stop = current.subscribe(look);
    signal.addEventListener('abort', look);
    look();
  });
}

/**
 * Looks at once, again when `deps` change, and, if `follow`, as the model learns: as often as
 * pace.ts allows, and only while the page can be seen. `look` null: there is nothing to look at.
 */
export function useWatched<T>(
  look: ((signal: AbortSignal) => Promise<T>) | null,
  deps: readonly unknown[],
  follow: boolean,
): Seen<T> {
  const [seen, setSeen] = useState<Seen<T>>({ value: null, step: 0, error: null });
  useEffect(() => {
    if (!look) {
      setSeen({ value: null, step: 0, error: null });
      return;
    }
    const control = new AbortController();
    const { signal } = control;
    const pace = new Pace(isTraining);
    const watch = async () => {
      do {
        await pageVisible(signal);
        const { tick = 0, step = 0 } = current.get() ?? {};
        // Drawing takes the training's time, too: it counts as work.
        await pace.run(async () => {
          const value = await look(signal);
          if (signal.aborted) return;
          setSeen({ value, step, error: null });
          await drawn();
        }, signal);
        if (!follow) return;
        await sleep(LEAST_MS, signal);
        await changedSince(tick, signal);
      } while (!signal.aborted);
    };
    watch().catch((error: unknown) => {
      // A model that has just been replaced is no failure: the next one is on its way here.
      const gone = error instanceof TinygptError && error.code === 'CLOSED';
      if (!signal.aborted && !gone) setSeen((old) => ({ ...old, error }));
    });
    return () => control.abort();
  }, [...deps, look === null, follow]);
  return seen;
}

export interface Job {
  running: boolean;
  error: unknown;
  start: (work: (signal: AbortSignal) => Promise<void>) => void;
  cancel: () => void;
}

/** One piece of work at a time; it ends with the component, and when another one starts. */
export function useJob(): Job {
  const [state, setState] = useState<{ running: boolean; error: unknown }>({
    running: false,
    error: null,
  });
  const control = useRef<AbortController | null>(null);
  const cancel = () => control.current?.abort();
  useEffect(() => cancel, []);
  const start = (work: (signal: AbortSignal) => Promise<void>) => {
    cancel();
    const mine = (control.current = new AbortController());
    setState({ running: true, error: null });
    work(mine.signal)
      .then(
        () => null,
        (e: unknown) => (mine.signal.aborted ? null : e),
      )
      .then((error) => {
        if (control.current === mine) setState({ running: false, error });
      });
  };
  return { ...state, start, cancel };
}

/** Whether an element is on the screen, or nearly. */
export function useOnScreen<E extends Element>(): [preactRef: { current: E | null }, on: boolean] {
  const ref = useRef<E>(null);
  const [on, setOn] = useState(false);
  useEffect(() => {
    if (!ref.current) return;
    const observer = new IntersectionObserver(
      (entries) => setOn(entries.some((e) => e.isIntersecting)),
      { rootMargin: '100px' },
    );
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, on];
}
