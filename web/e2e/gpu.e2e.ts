// SPDX-License-Identifier: Apache-2.0
/**
 * gpu.e2e.ts - the page on a GPU: the switch, a run that moves between the program and the page, the
 * model that writes and thinks, and devices that are lost. The adapter is SwiftShader, which compiles
 * all anew for each device, and that is nearly all that these tests cost: they share one page, and
 * the run that loses its devices is the one that came from the program.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Playground, TEXT } from './page';
import { program, type Site } from './servers';
import { onOneStage } from './stage';

let site: Site;
let p: Playground;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinygpt-gpu-'));
});
afterAll(() => rmSync(folder, { recursive: true }));
onOneStage(
  async (stage) => {
    ({ site, p } = stage);
    // Weights are kept while half of the room is free: with them Live would write at both ends of
    // the slider after every save, which takes a GPU in software minutes.
    await stage.v.context.addInitScript(() => {
      const storage: StorageManager | undefined = navigator.storage; // a blank page has none
      if (storage) storage.estimate = () => Promise.resolve({ usage: 6e8, quota: 1e9 });
    });
    // The engine's worker keeps its devices where the test finds them.
    await stage.v.context.route(/engine\.worker.*\.js/, async (route) => {
      const answer = await route.fetch();
      const keep = `{
        const request = GPUAdapter.prototype.requestDevice;
        GPUAdapter.prototype.requestDevice = async function (...args) {
          const device = await request.apply(this, args);
          (self.devices ??= []).push(device);
          return device;
        };
      }\n`;
      await route.fulfill({ response: answer, body: keep + (await answer.text()) });
    });
  },
  { serviceWorkers: 'block' },
);

/** All shaders of a step, on a machine that is busy, too. */
const COMPILED_MS = 1_500_000;

// What the adapter compiles is the same for any size; what it writes with tiny takes minutes.
const SHAPE = { layers: 1, width: 32, heads: 2, ctx: 32 };
const SETTINGS = {
  size: 'custom',
  ...SHAPE,
  batch: 2,
  warmup: 0,
  evalEvery: 0,
  evalWindows: 2,
  sampleEvery: 1_000_000,
};

async function chooseDevice(name: 'CPU' | 'GPU'): Promise<void> {
  await p.view('Run');
  await p.page.getByRole('group', { name: 'Device' }).getByRole('radio', { name }).click();
  const shown = name === 'GPU' ? /swiftshader/i : /A run goes along/;
  await p.page.getByRole('status').filter({ hasText: shown }).waitFor({ timeout: COMPILED_MS });
}

/** The losses of a run by step, out of the META section of a file of version 3. */
function lossesOf(file: Buffer): Map<number, number> {
  const sections = file.readUInt32LE(40);
  for (let at = 64; at < 64 + 32 * sections; at += 32) {
    if (file.toString('latin1', at, at + 4) !== 'META') continue;
    const begin = Number(file.readBigUInt64LE(at + 8));
    // A checksum is its end.
    const end = begin + Number(file.readBigUInt64LE(at + 16)) - 4;
    const meta = JSON.parse(file.toString('utf8', begin, end)) as {
      lossHistory: { step: number; train: number }[];
    };
    return new Map(meta.lossHistory.map(({ step, train }) => [step, train]));
  }
  throw new Error('the file has no META');
}

async function download(): Promise<Buffer> {
  await p.view('Files');
  const coming = p.page.waitForEvent('download');
  await p.button('Download: The whole run').click();
  return readFileSync(await (await coming).path());
}

/** All steps up to a number, each within rounding of those of the whole run. */
function expectSame(have: Map<number, number>, want: Map<number, number>, steps: number): void {
  expect([...have.keys()]).toEqual(Array.from({ length: steps }, (_, i) => i + 1));
  for (const [step, loss] of have) {
    expect(Math.abs((want.get(step) ?? NaN) - loss) / loss, `step ${step}`).toBeLessThan(1e-5);
  }
}

function engine(): Worker {
  const found = p.page.workers().filter((w) => w.url().includes('engine.worker'));
  const last = found.at(-1);
  if (!last) throw new Error('there is no engine');
  return last;
}

function devices(): Promise<number> {
  return engine().evaluate(() => (self as unknown as { devices: GPUDevice[] }).devices.length);
}

async function loseDevice(): Promise<void> {
  await engine().evaluate(() => {
    (self as unknown as { devices: GPUDevice[] }).devices.at(-1)?.destroy();
  });
}

/** Goes on with the run in the page for more steps. */
async function continueFor(steps: number): Promise<void> {
  await p.view('Run');
  await p.page.getByLabel('Continue for more steps').fill(String(steps));
  await p.button('Continue').click();
}

/** Far more steps than are done before the third device is lost: the run must not end before. */
const STEPS = 120;

// A software adapter compiles on the cores that all else runs on.
describe('the GPU in the page', { timeout: 3_400_000 }, () => {
  let file: string;
  let data: string[];
  let want: Map<number, number>;

  it('takes a run from the program and gives it back; its model writes and thinks', async () => {
    const text = join(folder, 'text.txt');
    const whole = join(folder, 'whole.tinygpt');
    file = join(folder, 'run.tinygpt');
    data = ['--data', text];
    writeFileSync(text, TEXT);
    const shape = Object.entries(SHAPE).flatMap(([key, value]) => [`--${key}`, String(value)]);
    const options = [...data, ...shape, '--batch', '2', '--eval-every', '0'];
    execFileSync(program, ['train', ...options, '--steps', String(STEPS), '--out', whole]);
    execFileSync(program, ['train', ...options, '--steps', '4', '--out', file]);
    want = lossesOf(readFileSync(whole));

    await p.open(site.url, 'start', SETTINGS);
    // Before there is a GPU: on it, the model of the first screen would be compiled for, too.
    await p.paste(TEXT);
    await chooseDevice('GPU');
    await p.view('Files');
    await p.page.locator('input[type=file]').first().setInputFiles(file);
    await p.button('Continue the run').click();
    await p.finished(COMPILED_MS);
    await continueFor(4);
    await p.finished(COMPILED_MS);
    expect(await p.step()).toBe(8);
    writeFileSync(file, await download());
    expect(await p.page.getByText(/Ready on the GPU/).count()).toBeGreaterThan(0);

    await p.view('Write');
    await p.write('The fox ');
    await expect
      .poll(() => p.page.locator('main').innerText(), { timeout: COMPILED_MS })
      .toMatch(/The fox .{4,}/);
    await p.view('Watch it think');
    await p.page.getByRole('heading', { name: /attention|looks/i }).first().waitFor();

    await p.view('Machine');
    await p.page.getByText(/In use, through the browser.*Features: .*Limits: /).waitFor();
    await p.page.getByText(/It is software/).waitFor();
    await p.view('Benchmark');
    await p.page.getByText('refused: software GPU').first().waitFor();

    const back = join(folder, 'back.tinygpt');
    writeFileSync(back, readFileSync(file));
    execFileSync(program, ['train', '--resume', back, ...data, '--steps', '12', '--out', back]);
    expectSame(lossesOf(readFileSync(back)), want, 12);
  });

  it('survives two lost devices, and goes on on the CPU after the third', async () => {
    const had = await devices();
    await continueFor(STEPS - 8);
    for (let loss = 0; loss < 3; loss++) {
      await expect.poll(devices).toBe(had + loss);
      const before = await p.step();
      // Without a real GPU, what is compiled anew takes the longest.
      await expect.poll(() => p.step(), { timeout: COMPILED_MS }).not.toBe(before);
      await loseDevice();
      await p.page.getByText(/the run goes back from step/).first().waitFor();
    }
    await p.finished(COMPILED_MS);
    expect(await p.step()).toBe(STEPS);
    expectSame(lossesOf(await download()), want, STEPS);
    expect(await p.page.getByText(/Ready on the GPU/).count()).toBe(0);
  });
});
