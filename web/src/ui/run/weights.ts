// SPDX-License-Identifier: Apache-2.0
/**
 * weights.ts - the weights that a run had at some of its steps, so that anybody can ask later what it
 * would have written then. They lie in the store beside the run, or in memory where there is none.
 *
 * A model learns most in its first steps, so these are the densest: where there are too many, the one
 * goes whose neighbours are nearest to each other, as a share of their steps.
 */
import type { RunStore } from './ports';

const MOST = 12;
/** All of a run's together; a model of which fewer than three would fit has none. */
const MOST_BYTES = 100e6;
const EARLY = [0, 10, 30, 100];

/** How many are kept of a model of so many bytes. */
export function mostKept(bytes: number): number {
  const most = Math.min(MOST, Math.floor(MOST_BYTES / Math.max(1, bytes)));
  return most < 3 ? 0 : most;
}

/** The next step behind this one at which weights are kept before all others. */
export function nextEarly(step: number): number {
  return EARLY.find((early) => early > step) ?? Infinity;
}

/** Which of the steps goes when another is wanted; never the first, nor the last. */
export function surplus(steps: readonly number[]): number {
  const room = (i: number) => ((steps[i + 1] ?? 0) + 1) / ((steps[i - 1] ?? 0) + 1);
  let least = 1;
  for (let i = 2; i < steps.length - 1; i++) if (room(i) < room(least)) least = i;
  return steps[least] ?? 0;
}

export class EarlierWeights {
  readonly #id: string;
  /** null: they stay in memory. */
  readonly #store: RunStore | null;
  readonly #memory = new Map<number, Blob>();
  #steps: number[] = [];
  /** Those that are being kept, one after the other. */
  readonly #coming = new Set<number>();
  #last = Promise.resolve();
  /** There was no room to spare: no more are kept in this visit. */
  #full = false;

  constructor(id: string, store: RunStore | null) {
    this.#id = id;
    this.#store = store;
  }

  /** The first one first. */
  get steps(): readonly number[] {
    return this.#steps;
  }

  /** Finds those of an earlier visit; of steps that the run has not reached again there are none. */
  async find(step: number): Promise<void> {
    const found = (await this.#store?.listWeights(this.#id)) ?? [];
    this.#steps = found.filter((s) => s <= step);
  }

  /** Whether the weights of this step, `bytes` long, are to be kept. */
  wants(step: number, sampled: boolean, bytes: number): boolean {
    if (this.#full || this.#steps.includes(step) || this.#coming.has(step)) return false;
    // A store that does not answer must not fill the memory.
    if (this.#coming.size >= mostKept(bytes)) return false;
    return sampled || EARLY.includes(step);
  }

  /** A failure to keep them is none of the run's. */
  keep(step: number, weights: Blob): Promise<void> {
    this.#coming.add(step);
    this.#last = this.#last
      .then(() => this.#keep(step, weights))
      .finally(() => this.#coming.delete(step));
    return this.#last;
  }

  async #keep(step: number, weights: Blob): Promise<void> {
    // The file may be larger than what wants() went by.
    if (mostKept(weights.size) === 0) this.#full = true;
    if (this.#full) return;
    try {
      if (!this.#store) this.#memory.set(step, weights);
      else if (!(await this.#store.keepWeights(this.#id, step, weights))) this.#full = true;
      if (this.#full) return;
      this.#steps = [...this.#steps.filter((s) => s < step), step];
      while (this.#steps.length > mostKept(weights.size)) await this.#drop(surplus(this.#steps));
    } catch {
      this.#full = true;
    }
  }

  async at(step: number): Promise<Blob | null> {
    return this.#memory.get(step) ?? (await this.#store?.loadWeights(this.#id, step)) ?? null;
  }

  async #drop(step: number): Promise<void> {
    this.#steps = this.#steps.filter((s) => s !== step);
    this.#memory.delete(step);
    await this.#store?.dropWeights(this.#id, step);
  }
}
