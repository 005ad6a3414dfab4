// SPDX-License-Identifier: Apache-2.0
/**
 * state.ts - what the view remembers while another one is open: the text, the place that is looked
 * at, the two prompts for patching.
 */
import { current } from '../state/current';
import { Store } from '../store';

/** Longer texts would make maps too fine to read, and runs that take the training's time. */
export const MOST_TOKENS = 64;

export interface ThinkState {
  text: string;
  position: number;
  /** Redraw as the model learns. */
  follow: boolean;
  donor: string;
  recipient: string;
}

export const thinkState = new Store<ThinkState>({
  text: 'Once upon a time there was a small',
  position: 12,
  follow: true,
  donor: 'The king said that he',
  recipient: 'The girl said that he',
});

/** A model whose step has not moved for this long is not in training. */
const IDLE_MS = 3000;
let lastMoved = -Infinity;
let lastStep = -1;

/** Keeps an eye on the model's step. Returns the call that ends it. */
export function watchTraining(): () => void {
  return current.subscribe((value) => {
    if (value && value.step !== lastStep) {
      lastMoved = performance.now();
      lastStep = value.step;
    }
  });
}

/** Whether the model was seen to learn in the last seconds. */
export function isTraining(): boolean {
  return performance.now() - lastMoved < IDLE_MS;
}
