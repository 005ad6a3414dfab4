// SPDX-License-Identifier: Apache-2.0
/**
 * gpu.test.ts - the engine on a GPU, in Node: npm `webgpu` (Dawn) on Chromium's SwiftShader. What a
 * browser does is in e2e/gpu.e2e.ts.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Engine, type EngineOptions, type GptConfig } from 'tinygpt';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';

const DRIVER = 'VK_ICD_FILENAMES';
const CONFIG: GptConfig = { layers: 2, width: 40, heads: 5, ctx: 24, vocab: 256, mlp: 160 };
const OPTIONS = { steps: 6, batch: 3, accum: 2, valFraction: 0.1, evalEvery: 3, evalWindows: 4 };

/* Its compiler takes seconds to clear the memory of a workgroup, which no shader counts on, and to
 * check bounds, which native builds never do; the long tests, and the page's, have them checked. */
process.env['TG_DAWN'] = `enable-dawn-features=disable_workgroup_init${
  process.env['TG_TEST_LONG'] ? '' : ',disable_robustness'}`;

let before: string | undefined;
const open: Engine[] = [];
let common: Engine | undefined;

beforeEach(() => {
  before = process.env[DRIVER];
  process.env[DRIVER] = '/usr/lib/chromium/vk_swiftshader_icd.json';
});
afterEach(async () => {
  if (before === undefined) delete process.env[DRIVER];
  else process.env[DRIVER] = before;
  for (const engine of open.splice(0)) await engine.close();
});
afterAll(() => common?.close());

async function engine(options: EngineOptions): Promise<Engine> {
  const opened = await Engine.open({ threads: 1, ...options });
  open.push(opened);
  return opened;
}

/** For all tests that ask for nothing else: what it compiles takes half a minute. Each time that it is
 *  idle it gives its memory back: every test begins on an empty GPU. */
async function gpuEngine(): Promise<Engine> {
  return (common ??= await Engine.open({ threads: 1, device: 'webgpu', gpu: { idleMs: 1000 } }));
}

interface Told {
  losses: number[];
  checks: number[];
  written: string;
}

async function run(on: Engine, steps = OPTIONS.steps): Promise<Told> {
  const told: Told = { losses: [], checks: [], written: '' };
  const text = await on.text(await on.stories(42, 20_000));
  const model = await on.newModel(CONFIG);
  const trainer = await on.newTrainer(model, text, { ...OPTIONS, steps });
  for await (const report of trainer.steps()) {
    told.losses.push(report.loss);
    if (!Number.isNaN(report.valLoss)) told.checks.push(report.valLoss);
    expect(report.ms).toBeGreaterThan(0);
  }
  const session = await model.session();
  for await (const piece of session.generate('Once upon', { tokens: 30, seed: 7 })) {
    told.written += piece.text;
  }
  return told;
}

const MODEL = pathToFileURL(resolve(import.meta.dirname, '../../../test/golden/lm/tune_llama.zip'));
const TOKENS = 10;

/** The likeliest tokens behind a text, by two kinds of keys; drawn ones; and two vectors. */
async function speak(on: Engine): Promise<{ ids: number[]; vectors: Float32Array[] }> {
  const model = await on.openChatModel(MODEL);
  const ids: number[] = [];
  for (const keys of ['f32', 'int8'] as const) {
    const session = await model.session({ ctx: Math.min(64, model.info.ctx), keys });
    for (const temperature of keys === 'f32' ? [0, 0.8] : [0]) {
      const answer = session.complete('the cat sat on', { tokens: TOKENS, temperature, seed: 7 });
      for await (const { id } of answer) if (id >= 0) ids.push(id);
    }
    session.free();
  }
  const vectors = await model.embed(['the cat', 'a dog on a red mat']);
  model.free();
  return { ids, vectors };
}

function expectClose(have: number[], want: number[]): void {
  expect(have.length).toBe(want.length);
  have.forEach((loss, i) => expect(Math.abs(loss / want[i]! - 1)).toBeLessThan(1e-5));
}

// A software adapter compiles on the cores that all else runs on.
describe('the engine on a GPU', { timeout: 400_000 }, () => {
  it('trains, checks and writes as on the CPU', async () => {
    const cpu = await engine({});
    const gpu = await gpuEngine();
    expect(cpu.info.device).toBe('cpu');
    expect(gpu.info.device).toBe('webgpu');
    expect(gpu.info.gpu).toMatchObject({ software: true, library: 'npm webgpu' });
    expect(gpu.info.banner).toMatch(/webgpu .*SwiftShader.*software/);
    const want = await run(cpu);
    const have = await run(gpu);
    expectClose(have.losses, want.losses);
    expectClose(have.checks, want.checks);
    expect(have.written).toBe(want.written);
  });

  it('checks its shaders against their references', async () => {
    const gpu = await gpuEngine();
    const seen = new Set<string>();
    const take = (check: { op: string; what: string }) => seen.add(`${check.op} ${check.what}`);
    const { passed, failed } = await gpu.checkKernels(take, { filter: 'norm' });
    expect(failed).toBe(0);
    expect(passed).toBeGreaterThan(10);
    expect([...seen].every((what) => what.includes('shader'))).toBe(true);
  });

  it('is not timed where it is software', async () => {
    const gpu = await gpuEngine();
    await expect(gpu.measureGpu()).rejects.toThrow(/software.*not timed/);
  });

  it('writes with a model file as on the CPU, with keys in 8 bits, too, and embeds', async () => {
    const cpu = await engine({ levers: '-int8_activations' });
    const gpu = await gpuEngine();
    const said: string[] = [];
    gpu.onLog = (_, text) => said.push(text);
    const want = await speak(cpu);
    const have = await speak(gpu);
    expect(have.ids).toEqual(want.ids);
    expect(have.ids).toHaveLength(3 * TOKENS);
    have.vectors.forEach((vector, i) =>
      vector.forEach((x, k) => expect(Math.abs(x - want.vectors[i]![k]!)).toBeLessThan(1e-3)));
    expect(said.filter((text) => text.includes('on the CPU'))).toEqual([]);
  });

  it('looks inside, moves runs from and to the CPU, and idle, it gives memory back', async () => {
    const gpu = await gpuEngine();
    const cpu = await engine({});
    const bytes = await gpu.stories(42, 20_000);
    const model = await gpu.newModel(CONFIG);
    const trainer = await gpu.newTrainer(model, await gpu.text(bytes), { ...OPTIONS, steps: 4 });
    for await (const report of trainer.steps(2)) expect(report.step).toBeLessThan(3);
    const run2 = await trainer.save();
    const probe = await model.probe('Once');
    const { params } = await model.info();
    let used = 0;
    const use = async () => {
      await trainer.evaluate();
      return (used = await gpu.gpuBytes());
    };
    await expect.poll(use).toBeGreaterThan(4 * 4 * params);
    await expect.poll(() => gpu.gpuBytes(), { interval: 3000, timeout: 100_000 }).toBeLessThan(used / 20);
    for await (const report of trainer.steps(2)) expect(report.step).toBeGreaterThan(2);

    const other = await cpu.openTrainer(run2, await cpu.text(bytes));
    const there = await other.model.probe('Once');
    probe.lens.forEach((logit, i) => expect(Math.abs(logit - there.lens[i]!)).toBeLessThan(1e-4));
    const losses: number[] = [];
    for await (const report of other.steps()) losses.push(report.loss);
    const own = (await trainer.history()).filter(({ step }) => step > 2).map(({ loss }) => loss);
    expectClose(losses, own);

    const back = await gpu.openTrainer(await other.save(), await gpu.text(bytes), 6);
    for await (const report of back.steps()) losses.push(report.loss);
    const { losses: want } = await run(cpu, 6);
    expectClose(losses, want.slice(2));
  });

  /* What all others do on such a one is seen natively: op_test, the least adapter; gpu_test, the
   * least limits; models_test, as phones are. */
  it('has the minimum of limits, and no feature, if asked', async () => {
    const without = ['shader-f16', 'subgroups', 'timestamp-query'];
    const gpu = await engine({ device: 'webgpu', gpu: { minimum: true, without } });
    expect(gpu.info.gpu?.features).toEqual([]);
    expect(gpu.info.gpu?.limits['maxStorageBufferBindingSize']).toBe(134217728);
    const { passed, failed } = await gpu.checkKernels(() => {}, { filter: 'rms_norm' });
    expect(failed).toBe(0);
    expect(passed).toBeGreaterThan(3);
    if (process.env['TG_TEST_LONG']) expect((await run(gpu, 1)).losses.length).toBe(1);
  });

  it('computes on the CPU where there is no driver, and says so', async () => {
    process.env[DRIVER] = '/nonexistent.json';
    const none = await engine({ device: 'webgpu' });
    expect(none.info.device).toBe('cpu');
    expect(none.info.gpu).toBeUndefined();
    expect(none.info.notes.at(-1)).toMatch(/GPU cannot be used.*adapter/);
    expect((await run(none, 1)).losses.length).toBe(1);
  });
});
