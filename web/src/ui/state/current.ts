// SPDX-License-Identifier: Apache-2.0
/**
 * current.ts - the one model that everything outside training works on: the model of the run, also
 * while it learns, or one that came from a file. Whoever replaces it frees the old one; readers
 * only borrow it, and take TinygptError for an answer when it has just gone.
 */
import type { Model } from '../../lib/index';
import type { GptConfig } from '../../lib/types';
import type { Unit } from '../live/words';
import { Store } from '../store';

export interface Current {
  model: Model;
  config: GptConfig;
  origin: 'run' | 'file';
  /** What it reads and writes one by one. */
  unit: Unit;
  /** What a person calls it: "small, in training" or a file's name. */
  label: string;
  /** Training steps done when it was last looked at; grows while it learns. */
  step: number;
  /** Grows at most twice a second while the weights change: redraw by it. */
  tick: number;
}

export const current = new Store<Current | null>(null);
