// SPDX-License-Identifier: Apache-2.0
/**
 * freeze.ts - a long comparison needs a model that stands still. While it trains, its weights change
 * between two runs, and what is compared then is mostly a step of learning. So sweeps run on
 * a copy of one moment, made by a save into memory; it is freed when the work ends.
 */
import type { Model } from '../../lib/index';

/** Larger models are not copied: their sweep runs on the moving model, and the page says so. */
const MOST_BYTES = 400e6;

type CopyModel = Pick<Model, 'info' | 'save'>;

interface CopyEngine<M> {
  openModel(file: Uint8Array, options?: { transfer?: boolean }): Promise<M & { free(): void }>;
}

/**
 * Does the work on the model if it stands still, else on a copy. `work` gets the step of what it
 * works on, and whether that stands still.
 */
export async function frozen<M extends CopyModel, T>(
  engine: CopyEngine<M>,
  model: M,
  moving: boolean,
  work: (still: M, step: number, isStill: boolean) => Promise<T>,
): Promise<T> {
  const { step, params } = await model.info();
  if (!moving || 4 * params > MOST_BYTES) return work(model, step, !moving);
  const copy = await engine.openModel(await model.save('v3'), { transfer: true });
  try {
    // The step that the copy has, which may be later than the one above.
    return await work(copy, (await copy.info()).step, true);
  } finally {
    copy.free();
  }
}
