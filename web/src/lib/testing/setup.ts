// SPDX-License-Identifier: Apache-2.0
/**
 * setup.ts - what the tests of the package share: the run that test/wasm/native.c makes in C.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect } from 'vitest';
import {
  type BuildName, Engine, type Model, type Text, type Trainer, type TrainOptions,
} from 'tinygpt';

const web = resolve(import.meta.dirname, '../../..');
export const wasmFolder = resolve(web, 'wasm');
const build = resolve(web, process.env['TG_BUILD'] ?? '../build');

/** The builds of a 32-bit engine, with the threads they are tested on. */
export const TESTED: readonly (readonly [BuildName, number])[] = [
  ['scalar', 1], ['simd', 1], ['scalar-mt', 2], ['simd-mt', 1], ['simd-mt', 2],
];

export const RUN: Partial<TrainOptions> = { steps: 50, batch: 16, lr: 2e-3 };

/** The same run as native code, with its scalar kernels. */
export function nativeRun(): { hash: string; loss: number; text: string } {
  const program = resolve(build, 'test/wasm_native');
  return JSON.parse(execFileSync(program, { encoding: 'utf8' })) as ReturnType<typeof nativeRun>;
}

export function readModule(name: BuildName): Uint8Array {
  return readFileSync(resolve(wasmFolder, `tinygpt-${name}.wasm`));
}

export interface Run {
  text: Text;
  model: Model;
  trainer: Trainer;
}

/** A preset on the stories of seed 42. */
export async function start(
  engine: Engine, options: Partial<TrainOptions> = RUN, preset = 'tiny',
): Promise<Run> {
  const text = await engine.text(await engine.stories(42, 60_000));
  const { config } = engine.info.presets.find(({ name }) => name === preset)!;
  const model = await engine.newModel(config, 42);
  return { text, model, trainer: await engine.newTrainer(model, text, options) };
}

/** Steps to the end of the run; the hash over all losses, and the last loss. */
export async function finish(trainer: Trainer): Promise<{ hash: string; loss: number }> {
  let last = { hash: '', loss: NaN };
  for await (const { lossHash, loss } of trainer.steps()) last = { hash: lossHash, loss };
  return last;
}

const STOP_MS = 100;
const ROUNDS = 5;
/** Not even the busiest machine takes that long, by the clock, to stop what does. */
const WAIT_MS = 10_000;

/**
 * Milliseconds that all threads of this process have computed since, however busy the machine is;
 * those of the clock where something just waits, without computing.
 */
export function computing(): () => number {
  const begun = process.cpuUsage();
  const since = performance.now();
  return () => {
    const waited = performance.now() - since;
    const { user, system } = process.cpuUsage(begun);
    return waited > WAIT_MS ? waited : (user + system) / 1000;
  };
}

/**
 * What is told to stop does so within 100 ms: the median of some times, each the milliseconds that
 * one stop took of computing, since what does not stop goes on with that. Other threads of this
 * process may compute beside it, and make no stop early, so it gets several rounds; what looks too
 * rarely is late in all of them.
 */
export async function expectPromptStops(late: (i: number) => Promise<number>, times = 5) {
  let best = Infinity;
  for (let round = 0; round < ROUNDS && best >= STOP_MS; round++) {
    const took: number[] = [];
    for (let i = 0; i < times; i++) took.push(await late(i));
    took.sort((a, b) => a - b);
    best = Math.min(best, took[times >> 1]!);
  }
  expect(best).toBeLessThan(STOP_MS);
}

/** Runs a body on an engine that is closed afterwards. */
export async function withEngine<T>(
  buildName: BuildName, threads: number, body: (engine: Engine) => Promise<T>,
): Promise<T> {
  const engine = await Engine.open({ build: buildName, threads });
  try {
    return await body(engine);
  } finally {
    await engine.close();
  }
}
