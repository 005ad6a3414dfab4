// SPDX-License-Identifier: Apache-2.0
/** lacking.e2e.ts - browsers with less than they should have, and an engine with a fault. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';

import { withTrap } from '../src/lib/testing/broken_module';
import { firstTab, forget, visit, type Visit } from './browser';
import { Playground, TEXT } from './page';
import { dist, serve, servePlain, type Site } from './servers';

let site: Site;
let v: Visit;
let p: Playground;

async function open(at: Site, args: string[] = []): Promise<void> {
  site = at;
  v = await visit({ args });
  p = new Playground(firstTab(v));
}
afterEach(async () => {
  await v.close();
  forget(v.profile);
  await site.stop();
  expect(v.errors).toEqual([]);
});

async function train(steps: number): Promise<void> {
  await p.open(site.url, 'start', { size: 'tiny', steps, evalEvery: 0, sampleEvery: 1_000_000 });
  await p.paste(TEXT);
  await p.start();
}

/** What a browser runs on a processor as old as that, or where SIMD was switched off. */
const NO_SIMD = '--js-flags=--no-enable-sse4-1 --no-enable-ssse3 --no-enable-avx';
/** 2048 pages of 64 KiB: 128 MiB in all. */
const LITTLE_MEMORY = '--js-flags=--wasm-max-mem-pages=2048';

describe('a browser without SIMD', () => {
  it('trains on the scalar build, and the page says what that costs', async () => {
    await open(await serve(), [NO_SIMD]);
    await train(40);
    await p.page.getByText(/threads?, slowly/).waitFor({ state: 'attached' });
    await p.finished();
    await p.view('Machine');
    await p.page.getByText(/does not know WebAssembly SIMD/).waitFor();
  });
});

describe('a browser that gives little memory', () => {
  it('says so where a model needs more, and trains a smaller one', async () => {
    await open(await serve(), [LITTLE_MEMORY]);
    await p.open(site.url, 'start', { size: 'massive', steps: 5 });
    await p.paste(TEXT);
    const chip = () => p.page.locator('.engine-chip').innerText();
    const threads = await chip();
    await p.button('Start').click();
    await p.page
      .getByText(/not enough memory .*smaller model/)
      .first()
      .waitFor();
    // With one thread there was no more room: all of them are back.
    expect(await chip()).toBe(threads);
    await p.page.getByText(/It is tried with one/).waitFor();
    await train(30);
    await p.finished();
    expect(await p.step()).toBe(30);
  });
});

describe('a browser whose language is none', () => {
  it('draws the curve all the same', async () => {
    await open(await serve());
    // As WebKitGTK has it on a system without a language (LANG=C.UTF-8).
    await v.context.addInitScript(() => {
      Object.defineProperty(navigator, 'language', { value: 'C', configurable: true });
    });
    await train(20);
    expect(await p.page.evaluate(() => navigator.language)).toBe('en');
    await p.page.getByRole('img', { name: /^Loss\. / }).locator('canvas').waitFor();
    await p.finished();
  });
});

describe('a fault in the engine', () => {
  it('is told of; the engine is made anew, and the run goes on from its last save', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tinygpt-site-'));
    cpSync(dist, folder, { recursive: true });
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!/relaxed.*\.wasm$/.test(name)) continue;
      const path = join(folder, name);
      writeFileSync(path, withTrap(readFileSync(path), 'tg_measure_read'));
    }
    try {
      await open(await servePlain({ folder }));
      await train(1_000_000);
      await p.waitForStep(20);
      await p.button('Pause').click();
      await p.page.getByText(/Saved at step/).waitFor();
      const saved = await p.step();
      await p.button('Go on').click();
      await p.waitForStep(saved + 5);
      await p.view('Machine');
      await p.button(/Measure/).click();
      const told = p.page.getByText(/started anew, and the run goes on from step \d+/);
      const from = Number(/step (\d+)/.exec(await told.innerText())?.[1]);
      expect(from).toBeGreaterThanOrEqual(saved);
      await p.view('Live');
      await p.waitForStep(from + 5);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
