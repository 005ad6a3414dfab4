// SPDX-License-Identifier: Apache-2.0
/**
 * trouble.test.ts - modules that trap, workers that die, builds that cannot be loaded.
 */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import threads from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { type BuildName, BUILDS, Engine, TinygptError } from 'tinygpt';

import { withTrap } from './testing/broken_module.js';
import { finish, readModule, RUN, start, wasmFolder } from './testing/setup.js';

const folders: string[] = [];
afterEach(() => folders.splice(0).forEach((folder) => rmSync(folder, { recursive: true })));

/** A folder of modules in which some are replaced, and those that are missing are left out. */
function modules(replaced: Partial<Record<BuildName, Uint8Array | 'missing'>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'tinygpt-'));
  folders.push(folder);
  symlinkSync(join(wasmFolder, 'stories.txt'), join(folder, 'stories.txt'));
  for (const build of BUILDS) {
    const name = `tinygpt-${build}.wasm`;
    const bytes = replaced[build];
    if (bytes === undefined) symlinkSync(join(wasmFolder, name), join(folder, name));
    else if (bytes !== 'missing') writeFileSync(join(folder, name), bytes);
  }
  return folder;
}

async function failure(call: Promise<unknown>): Promise<TinygptError> {
  const error = await call.then(() => undefined, (reason: unknown) => reason);
  expect(error).toBeInstanceOf(TinygptError);
  return error as TinygptError;
}

describe('a trap', () => {
  it.each([['simd', 1], ['simd-mt', 2]] as const)(
    'in %s rejects what was running, and the engine goes on', async (build, count) => {
      const wasmBase = modules({ [build]: withTrap(readModule(build), 'tg_measure_read') });
      const engine = await Engine.open({ build, threads: count, wasmBase });
      const rebuilt = new Promise<string>((resolve) => { engine.onRebuilt = resolve; });
      const { trainer, text, model } = await start(engine, { ...RUN, steps: 100_000 });
      const file = await trainer.save();
      const session = await model.session();
      const running = failure(finish(trainer));
      const writing = session.generate('Once', { tokens: 100_000 });
      const stats = failure(writing.stats);
      await new Promise((resolve) => setTimeout(resolve, 60));

      expect((await failure(engine.measureRead(1000))).code).toBe('TRAP');
      expect((await running).code).toBe('TRAP');
      expect((await stats).code).toBe('TRAP');
      expect(await rebuilt).toContain('unreachable');
      for (const call of [trainer.done(), model.info(), text.sha256(), trainer.save()]) {
        const { code, message } = await failure(call);
        expect(code).toBe('TRAP');
        expect(message).toContain('lost');
      }
      [trainer, model, text, session].forEach((object) => object.free());

      const again = await engine.text(await engine.stories(42, 60_000));
      const resumed = await engine.openTrainer(file, again, 50);
      const fresh = await start(engine);
      expect((await finish(resumed)).hash).toBe((await finish(fresh.trainer)).hash);
      expect((await failure(engine.measureRead(1000))).code).toBe('TRAP');
      await engine.close();
    },
  );

  it('in a thread is an error of the call that needed it', async () => {
    const wasmBase = modules({ 'simd-mt': withTrap(readModule('simd-mt'), 'tg_wasm_thread_main') });
    const opening = Engine.open({ build: 'simd-mt', threads: 2, wasmBase });
    const engine = await opening.catch((error: unknown) => error);
    if (engine instanceof Engine) {
      const run = start(engine, { ...RUN, batch: 64 }, 'small');
      expect((await failure(run.then(({ trainer }) => finish(trainer)))).code).toBe('TRAP');
      await engine.close();
    } else {
      expect(engine).toBeInstanceOf(TinygptError);
    }
  });

  it('at the very start makes the loader step down', async () => {
    const wasmBase = modules({ relaxed: withTrap(readModule('relaxed'), 'tg_context_new') });
    const engine = await Engine.open({ threads: 1, wasmBase });
    expect(engine.info.build).toBe('simd');
    expect(engine.info.notes[0]).toContain('unreachable');
    expect((await start(engine)).text.bytes).toBe(60_000);
    await engine.close();
  });
});

describe('a worker that dies', () => {
  it('rejects all calls, those open and those to come', async () => {
    const workers: threads.Worker[] = [];
    const Real = threads.Worker;
    threads.Worker = class extends Real {
      constructor(script: string | URL, options?: threads.WorkerOptions) {
        super(script, options);
        workers.push(this);
      }
    };
    const engine = await Engine.open({ build: 'simd' });
    threads.Worker = Real;
    const { trainer } = await start(engine, { ...RUN, steps: 100_000 });
    const running = failure(finish(trainer));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(workers).toHaveLength(1);
    await workers[0]!.terminate();
    expect((await running).code).toBe('CLOSED');
    expect((await failure(trainer.done())).message).toContain('gone');
    await engine.close();
  });

  it('is closed by close(), once', async () => {
    const engine = await Engine.open({ build: 'simd' });
    const { trainer } = await start(engine, { ...RUN, steps: 100_000 });
    const running = failure(finish(trainer));
    await Promise.all([engine.close(), engine.close()]);
    await engine.close();
    expect((await running).code).toBe('CLOSED');
    expect((await failure(engine.memoryBytes())).code).toBe('CLOSED');
    trainer.free();
  });
});

describe('choosing a build', () => {
  it('takes the best and says nothing when it is there', async () => {
    const engine = await Engine.open({ threads: 2 });
    expect(engine.info).toMatchObject({ build: 'relaxed-mt', threads: 2, notes: [] });
    await engine.close();
    const single = await Engine.open({ threads: 1 });
    expect(single.info).toMatchObject({ build: 'relaxed', threads: 1, notes: [] });
    await single.close();
  });

  it('steps down from what is missing or no module, and says so', async () => {
    const html = new TextEncoder().encode('<!doctype html>');
    const short = html.slice(0, 3);
    const wasmBase = modules({ 'relaxed-mt': 'missing', relaxed: html, 'simd-mt': short });
    const engine = await Engine.open({ threads: 2, wasmBase });
    expect(engine.info.build).toBe('simd');
    expect(engine.info.notes).toHaveLength(3);
    expect(engine.info.notes[0]).toContain('relaxed-mt');
    expect(engine.info.notes[1]).toContain('<!doctype html>');
    await engine.close();
  });

  it('says why none works', async () => {
    const missing = Object.fromEntries(BUILDS.map((build) => [build, 'missing' as const]));
    const { code, message } = await failure(Engine.open({ wasmBase: modules(missing) }));
    expect(code).toBe('IO');
    expect(message).toMatch(/no build of the core could be fetched.*scalar/);
    const garbled = readModule('simd').slice(0, 5000);
    const wasmBase = modules({ simd: garbled });
    expect((await failure(Engine.open({ build: 'simd', wasmBase }))).code).toBe('UNSUPPORTED');
  });

  it('refuses options that make no sense', async () => {
    const codes = await Promise.all([
      failure(Engine.open({ threads: 65 })),
      failure(Engine.open({ threads: 1.5 })),
      failure(Engine.open({ build: 'best' as BuildName })),
      failure(Engine.open({ build: 'simd', levers: '+warp_drive' })),
      failure(Engine.open({ build: 'simd', maxMemoryBytes: 1000 })),
    ]);
    expect(codes.map(({ code }) => code)).toEqual(Array(5).fill('ARG'));
  });
});
