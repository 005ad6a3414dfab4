// SPDX-License-Identifier: Apache-2.0
/**
 * pace.ts - looking inside must never slow the training down. Probes are served by the engine
 * between slices of training, so what a watcher may take is set here: after each piece of work it
 * rests until the work is at most a share of the time that went by, and it rests altogether while
 * nobody can see the result. A test can put a clock of its own in place of the real one.
 */

/** Shares of the time that may be taken while the model is in training: by a view that merely
 * follows, and by a piece of work that a person has asked for. */
export const FOLLOWING = 0.1;
export const ASKED_FOR = 0.35;

export interface Clock {
  now(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Resolves after `ms`, or rejects with the signal's reason as soon as that is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

const REAL: Clock = { now: () => performance.now(), sleep };

/** How long to rest after `workMs` of work, so that working is `share` of the whole. */
export function restMs(workMs: number, share: number): number {
  return workMs * (1 / share - 1);
}

/** Nobody waits longer than this for the next look, however slow the model is. */
const MOST_REST_MS = 5000;
/** A piece of work is taken to cost what the quickest of so many did: the others had to queue. */
const REMEMBERED = 4;

export class Pace {
  #costs: number[] = [];

  /** `busy` says whether the model is in training; if not, work follows work without a rest. */
  constructor(
    private readonly busy: () => boolean = () => false,
    private readonly share = FOLLOWING,
    private readonly clock: Clock = REAL,
  ) {}

  /** Does one piece of work, then rests as long as manners ask for. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const start = this.clock.now();
    const result = await work();
    signal?.throwIfAborted();
    this.#costs = [...this.#costs.slice(1 - REMEMBERED), this.clock.now() - start];
    if (this.busy()) {
      const rest = restMs(Math.min(...this.#costs), this.share);
      await this.clock.sleep(Math.min(rest, MOST_REST_MS), signal);
    }
    return result;
  }
}

/** Resolves when the page is visible (at once, where there is no page). */
export function pageVisible(signal?: AbortSignal): Promise<void> {
  if (typeof document === 'undefined' || document.visibilityState === 'visible') {
    return Promise.resolve();
  }
  return new Promise((resolve, reject) => {
    const done = () => {
      if (document.visibilityState !== 'visible' && !signal?.aborted) return;
      document.removeEventListener('visibilitychange', done);
      signal?.removeEventListener('abort', done);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    document.addEventListener('visibilitychange', done);
    signal?.addEventListener('abort', done);
  });
}
