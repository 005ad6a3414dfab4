// SPDX-License-Identifier: Apache-2.0
/**
 * bits.test.ts - every build trains and writes as the native program does, however the run is cut.
 */
import { describe, expect, it } from 'vitest';

import { finish, nativeRun, RUN, start, TESTED, withEngine } from './testing/setup.js';

const native = nativeRun();
/** Of steps that are stopped, others than the long tests have fewer. */
const long = process.env['TG_TEST_LONG'] !== undefined;
const nativeText = Buffer.from(native.text, 'hex').toString();

describe.each(TESTED)('%s on %i threads', (build, threads) => {
  /* An uncut run of each build is that of test/wasm/train.mjs. */
  it('has the losses and the text of the native run, going on from a saved run', () =>
    withEngine(build, threads, async (engine) => {
      expect(engine.info.build).toBe(build);
      expect(engine.info.threads).toBe(threads);
      const { text, trainer } = await start(engine);
      for await (const { step } of trainer.steps(20, { ahead: 0 })) expect(step).toBeLessThan(21);
      expect(await trainer.done()).toBe(20);
      const file = await trainer.save();
      trainer.free();
      const resumed = await engine.openTrainer(file, text);
      expect(await resumed.done()).toBe(20);
      expect((await finish(resumed)).hash).toBe(native.hash);
      expect(await resumed.done()).toBe(50);
      const { model } = resumed;
      const story = (await model.session()).generate('Once', { tokens: 100 });
      let written = '';
      const ids: number[] = [];
      for await (const { id, text } of story) {
        written += text;
        ids.push(id);
      }
      expect(written).toBe(nativeText);
      expect(ids).toHaveLength(100);
      expect(await model.tokenizer.decode(ids)).toBe(nativeText);
      expect(await story.stats).toMatchObject({ newTokens: 100, promptTokens: 4 });
    }));

  it('does not mind being stopped in the middle of steps', () =>
    withEngine(build, threads, async (engine) => {
      const options = { ...RUN, steps: long ? 30 : 15, accum: 4, batch: 4 };
      const stopped = await start(engine, options);
      const whole = await start(engine, options);
      let stops = 0;
      for (let abort = new AbortController(); stops === 0 || abort.signal.aborted; stops++) {
        abort = new AbortController();
        let seen = 0;
        // While the loop rests, the engine works on one of the next steps.
        for await (const _ of stopped.trainer.steps(undefined, { signal: abort.signal, ahead: 1 })) {
          if (++seen < (long ? 5 : 2)) continue;
          await new Promise((resolve) => setTimeout(resolve, stops % 5));
          abort.abort();
        }
      }
      expect(stops).toBeGreaterThan(3);
      await finish(whole.trainer);
      expect(await stopped.trainer.history()).toEqual(await whole.trainer.history());
      expect(await stopped.model.save('v3')).toEqual(await whole.model.save('v3'));
    }));
});

describe('relaxed', () => {
  it.each([['relaxed', 1], ['relaxed-mt', 2]] as const)('%s stays within 1e-5', (build, threads) =>
    withEngine(build, threads, async (engine) => {
      const { trainer } = await start(engine);
      const { loss } = await finish(trainer);
      expect(Math.abs(loss - native.loss)).toBeLessThanOrEqual(1e-5);
    }));
});

describe('simd-mt-64', () => {
  it('has the losses of the native run, and 16 GiB to reach', () =>
    withEngine('simd-mt-64', 2, async (engine) => {
      const { text, trainer } = await start(engine);
      expect((await finish(trainer)).hash).toBe(native.hash);
      const again = await engine.openTrainer(await trainer.save(), text);
      expect(await again.done()).toBe(50);
      expect(engine.info.maxMemoryBytes).toBe(16 * 2 ** 30);
    }));
});
