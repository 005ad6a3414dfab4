// SPDX-License-Identifier: Apache-2.0
/** files.e2e.ts - broken files, and a run that moves from the command line to the page and back. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Playground, TEXT } from './page';
import { program, type Site } from './servers';
import { onFreshStages } from './stage';

let site: Site;
let p: Playground;
let folder: string;
let textFile: string;

/** The smallest preset, silent, with a save every 40 steps. */
const TRAIN = [
  '--preset',
  'tiny',
  '--quiet',
  '--sample-every',
  '0',
  '--save-every',
  '40',
  '--json',
];

function tinygpt(...args: string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The losses of a run file by step, all of its checksums checked. */
function lossesOf(path: string): Map<number, number> {
  expect(tinygpt('verify', path)).toMatch(/whole/);
  const told = JSON.parse(tinygpt('info', path, '--json')) as {
    loss_history: { step: number; train: number }[];
  };
  return new Map(told.loss_history.map((point) => [point.step, point.train]));
}

/** Two engines of different classes of arithmetic: the same run but for rounding. */
function expectSameCurve(a: Map<number, number>, b: Map<number, number>, steps: number): void {
  expect([...a.keys()]).toEqual(Array.from({ length: steps }, (_, i) => i + 1));
  expect([...b.keys()]).toEqual([...a.keys()]);
  const apart = Math.max(...[...a].map(([step, loss]) => Math.abs(loss - b.get(step)!)));
  expect(apart).toBeLessThan(1e-4);
}

function file(name: string): string {
  return join(folder, name);
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinygpt-files-'));
  textFile = file('fox.txt');
  writeFileSync(textFile, TEXT);
});
afterAll(() => rmSync(folder, { recursive: true }));
// Nothing here is without a network: the page's copy of itself would be made anew for each test.
onFreshStages((stage) => ({ site, p } = stage), { serviceWorkers: 'block' });

async function openFile(path: string): Promise<void> {
  await p.page.locator('input[type=file][aria-label="Open a file"]').setInputFiles(path);
}

async function takeText(): Promise<void> {
  await p.view('Text');
  await p.page.locator('input[type=file][aria-label="Open files"]').setInputFiles(textFile);
  await p.page.getByText('fox.txt', { exact: true }).first().waitFor();
}

async function downloadRun(name: string, layout = 'The whole run'): Promise<string> {
  await p.view('Files');
  const waiting = p.page.waitForEvent('download');
  await p.button(`Download: ${layout}`).click();
  const path = file(name);
  await (await waiting).saveAs(path);
  return path;
}

describe('a broken file', () => {
  it('of any kind is refused in plain words, and the page goes on', async () => {
    tinygpt('train', '--data', textFile, ...TRAIN, '--steps', '40', '--out', file('good.tinygpt'));
    const good = readFileSync(file('good.tinygpt'));
    const flipped = Buffer.from(good);
    flipped[good.length >> 1]! ^= 4;
    const cases: Record<string, Buffer> = {
      empty: Buffer.alloc(0),
      nuls: Buffer.alloc(50_000),
      page: Buffer.from(`<!doctype html><html><body>${'sign in '.repeat(1000)}</body></html>`),
      head: good.subarray(0, 40),
      half: good.subarray(0, good.length >> 1),
      last: good.subarray(0, good.length - 1),
      long: Buffer.concat([good, Buffer.from('x')]),
      flipped,
      version: Buffer.concat([
        good.subarray(0, 8),
        Buffer.from([255, 255, 255, 127]),
        good.subarray(12),
      ]),
      random: Buffer.from(Array.from({ length: 9000 }, (_, i) => (i * i * 31 + (i >> 3)) & 255)),
    };
    await p.open(site.url, 'files');
    for (const [name, bytes] of Object.entries(cases)) {
      const path = file(`${name}.tinygpt`);
      writeFileSync(path, bytes);
      await openFile(path);
      const words = await p.page.getByRole('main').locator('.notice').first().innerText();
      expect(words.length, name).toBeGreaterThan(20);
      expect(words, name).not.toMatch(/undefined|\[object|NaN|TypeError|\bnull\b/);
      await p.view('Machine');
      await p.view('Files');
    }
    await openFile(file('good.tinygpt'));
    await p.page.getByRole('region', { name: 'good.tinygpt' }).waitFor();
    expect(await p.page.getByRole('main').locator('.notice').count()).toBe(0);
    await p.button('Let it write').click();
    await p.page.getByRole('heading', { level: 1, name: 'Write' }).waitFor();
  });
});

describe('a run', () => {
  it('from the command line goes on in the page with the same next losses', async () => {
    tinygpt('train', '--data', textFile, ...TRAIN, '--steps', '60', '--out', file('run.tinygpt'));
    await p.open(site.url);
    await takeText();
    await p.view('Files');
    // The save before the last one stands at step 40 of 60.
    const half = file('half-way.tinygpt');
    writeFileSync(half, readFileSync(file('run.tinygpt.prev')));
    await openFile(half);
    await p.page
      .getByText(/40 steps/)
      .first()
      .waitFor();
    await p.button('Continue the run').click();
    await p.finished();
    expect(await p.step()).toBe(60);
    const back = await downloadRun('back.tinygpt');
    expectSameCurve(lossesOf(back), lossesOf(file('run.tinygpt')), 60);
  });

  it('from the page goes on at the command line with the same next losses', async () => {
    await p.open(site.url, 'start', { size: 'tiny', steps: 50, warmup: 5 });
    await takeText();
    await p.view('Start');
    await p.start();
    await p.finished();
    const path = await downloadRun('page.tinygpt');
    tinygpt(
      'train',
      '--data',
      textFile,
      '--resume',
      path,
      '--steps',
      '70',
      '--quiet',
      '--sample-every',
      '0',
      '--json',
      '--out',
      file('on.tinygpt'),
    );
    await p.view('Live');
    await p.page.getByRole('textbox', { name: 'Continue for more steps' }).fill('20');
    await p.button('Continue').click();
    await p.waitForStep(70);
    await p.finished();
    const on = await downloadRun('page-on.tinygpt');
    expectSameCurve(lossesOf(on), lossesOf(file('on.tinygpt')), 70);
  });

  it('of another family goes on as that family, and so does the next one', async () => {
    tinygpt(
      'train', '--data', textFile, '--family', 'llama', '--layers', '2', '--width', '48',
      '--heads', '4', '--kv-heads', '2', '--ctx', '32', '--quiet', '--sample-every', '0', '--json',
      '--save-every', '20', '--steps', '40', '--out', file('llama.tinygpt'),
    );
    await p.open(site.url);
    await takeText();
    await p.view('Files');
    const half = file('llama-half.tinygpt');
    writeFileSync(half, readFileSync(file('llama.tinygpt.prev')));
    await openFile(half);
    await p.page.getByText(/^Llama, 2 layers of 48/).waitFor();
    await p.button('Continue the run').click();
    await p.finished();
    expect(await p.step()).toBe(40);
    const back = await downloadRun('llama-back.tinygpt');
    expectSameCurve(lossesOf(back), lossesOf(file('llama.tinygpt')), 40);
    // As GGUF it is what the program makes of it, to the byte, and writes when it is opened again.
    const gguf = await downloadRun('page.gguf', 'GGUF');
    tinygpt('convert', back, file('program.gguf'), '--dtype', 'f32');
    expect(readFileSync(gguf).equals(readFileSync(file('program.gguf')))).toBe(true);
    expect(await p.button(/^Download: .tinygpt v2/).count()).toBe(0);
    await p.view('Watch it think');
    await p.page.getByRole('heading', { name: /Attention/ }).first().waitFor();
    // Trained anew with its settings, it is a Llama again, not the page's usual family.
    await p.view('Model');
    await p.page.getByText(/^Llama, on this machine$/).waitFor();
    expect(p.page.url()).toContain('family=llama');
    await p.view('Files');
    await openFile(gguf);
    await p.page.getByRole('region', { name: 'page.gguf' }).waitFor();
    await p.button('Let it write').click();
    await p.write('The fox ');
    await p.page.getByText(/The fox \S+/).first().waitFor();
  });
});
