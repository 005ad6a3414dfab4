// SPDX-License-Identifier: Apache-2.0
/**
 * contestants.ts - a build of the engine with a trainer on it, for run.ts. Every one is an engine
 * of its own; nothing of the page's engine is touched.
 */
import { Engine } from '../../lib/index';
import type { Preset } from '../../lib/types';
import type { Contestant, Entrant } from './run';

/** Long enough for every preset's context, short enough to be made at once. */
const TEXT_BYTES = 200_000;
const SEED = 42;

export async function openContestant(build: Entrant, preset: Preset): Promise<Contestant> {
  const wasmBase = new URL('./wasm/', document.baseURI);
  const onGpu = build === 'webgpu';
  const engine = await Engine.open(onGpu ? { device: 'webgpu', wasmBase } : { build, wasmBase });
  try {
    if (onGpu && engine.info.device !== 'webgpu') throw new Error(engine.info.notes.join(' '));
    if (engine.info.gpu?.software) {
      throw new Error(`${engine.info.gpu.adapter} is software, which is not timed as a GPU`);
    }
    if (!onGpu && engine.info.build !== build) {
      throw new Error(
        `this browser loads ${engine.info.build} instead. ${engine.info.notes.join(' ')}`,
      );
    }
    const text = await engine.text(await engine.stories(SEED, TEXT_BYTES));
    const model = await engine.newModel(preset.config, SEED);
    const trainer = await engine.newTrainer(model, text, {
      steps: 1_000_000,
      batch: preset.batch,
      seed: SEED,
      evalEvery: 0,
      keepBest: false,
    });
    return {
      threads: engine.info.threads,
      steps: (n, signal) => trainer.steps(n, { signal }),
      close: () => engine.close(),
    };
  } catch (e) {
    await engine.close();
    throw e;
  }
}
