// SPDX-License-Identifier: Apache-2.0
/** tour.ts - five stops through the page, one view each. */
import { Store } from '../store';
import { current } from './current';
import { openView } from './route';

export interface Stop {
  view: string;
  text: string;
}

export const STOPS: readonly Stop[] = [
  {
    view: 'start',
    text: 'This model has read one text only. Type a beginning: it says, byte by byte, what it takes to come next.',
  },
  {
    view: 'text',
    text: 'Here is what your own model will read. Take the stories, paste a text of yours, or try sums.',
  },
  {
    view: 'live',
    text: 'Once you have pressed Start, you see it learn here: the curve is its surprise, beside it what it writes.',
  },
  {
    view: 'write',
    text: 'Here it goes on from your words, also while it still learns.',
  },
  {
    view: 'think',
    text: 'And here you look inside: choose a part of the drawn model, and a byte of the text.',
  },
];

/** The stop that is shown; null: there is no tour. */
export const tourAt = new Store<number | null>(null);

export function goTo(stop: number | null): void {
  tourAt.set(stop);
  const view = stop === null ? undefined : STOPS[stop]?.view;
  if (view) openView(view);
  // Two stops are about a model: who has none gets one that came with the page.
  if ((view === 'write' || view === 'think') && !current.get()) {
    void import('../gallery/open_card').then((m) => m.openFirst());
  }
  window.scrollTo(0, 0);
}

export function startTour(): void {
  goTo(0);
}
