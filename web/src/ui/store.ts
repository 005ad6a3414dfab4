// SPDX-License-Identifier: Apache-2.0
/**
 * store.ts - the page's state is a handful of these: one value, replaced whole, never mutated.
 *
 * A component reads with useStore(store) or useStore(store, pick) and is drawn again when what it
 * picked is another value by Object.is. Code outside components uses get, set and subscribe.
 */
import { useEffect, useReducer, useRef } from 'preact/hooks';

export class Store<T> {
  #value: T;
  #listeners = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener(value);
  }

  /** Sets some fields of an object value. */
  patch(fields: Partial<T>): void {
    this.set({ ...this.#value, ...fields });
  }

  /** Returns the call that ends the subscription. */
  subscribe(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export function useStore<T>(store: Store<T>): T;
export function useStore<T, S>(store: Store<T>, pick: (value: T) => S): S;
export function useStore<T, S>(store: Store<T>, pick?: (value: T) => S): T | S {
  const [, redraw] = useReducer((n: number, _: void) => n + 1, 0);
  const value = pick ? pick(store.get()) : store.get();
  const shown = useRef(value);
  const picker = useRef(pick);
  shown.current = value;
  picker.current = pick;
  useEffect(() => {
    const check = (next: T) => {
      const picked = picker.current ? picker.current(next) : next;
      if (!Object.is(picked, shown.current)) redraw();
    };
    // The value may have changed between drawing and subscribing.
    check(store.get());
    return store.subscribe(check);
  }, [store]);
  return value;
}
