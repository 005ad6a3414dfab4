// SPDX-License-Identifier: Apache-2.0
/** tour.ts - five stops through the page, one view each. */
import { Store } from '../store';
import { current } from './current';
import { openView } from './route';
import { runState } from './run';

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

/** A model is being opened for the two stops that are about one. */
export const opensModel = new Store(false);
/** Once a tour: what was cancelled, or did not come, is not asked for again. */
let asked = false;

/** Who has no model, and is not making one, gets one that came with the page. */
async function openOne(): Promise<void> {
  if (asked || current.get() || runState().phase !== 'idle') return;
  asked = true;
  opensModel.set(true);
  // What goes wrong with the model itself is said there; without its script there is none.
  await import('../gallery/open_card').then((m) => m.openFirst()).catch(() => {});
  opensModel.set(false);
}

export function goTo(stop: number | null): void {
  tourAt.set(stop);
  const view = stop === null ? undefined : STOPS[stop]?.view;
  if (view) openView(view);
  if (view === 'write' || view === 'think') void openOne();
  window.scrollTo(0, 0);
}

export function startTour(): void {
  asked = false;
  goTo(0);
}
