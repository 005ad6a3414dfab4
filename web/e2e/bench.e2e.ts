// SPDX-License-Identifier: Apache-2.0
/**
 * bench.e2e.ts - the benchmark, started by a person and left to its end: a chart, a table, and the
 * block to copy with numbers in it. A picture of them goes to build/screens.
 */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { firstTab, forget, visit, type Visit } from './browser';
import { findings } from './looking';
import { Playground } from './page';
import { serve, type Site } from './servers';

const screens = resolve(import.meta.dirname, '..', process.env['TG_SCREENS'] ?? '../build/screens');
let site: Site;
let v: Visit;

beforeAll(async () => {
  mkdirSync(screens, { recursive: true });
  site = await serve();
  v = await visit();
});
afterAll(async () => {
  await v.close();
  forget(v.profile);
  await site.stop();
});

it('compares builds in turns, and gives a block to copy', async () => {
  const p = new Playground(firstTab(v));
  await p.open(site.url, 'start', { steps: 1 });
  await p.view('Benchmark');
  for (const name of [/^small/, /^medium/, /^scalar-mt/, /^relaxed/, /^simd-mt/])
    for (const box of await p.page.getByRole('checkbox', { name }).all()) await box.uncheck();
  await p.page.getByRole('radio', { name: 'Quick, 6' }).check();
  await p.button('Start').click();
  const block = p.page.locator('pre.bench-report');
  await block.waitFor();
  const text = await block.innerText();
  for (const field of ['device', 'os/browser', 'adapter', 'threads', 'notes'])
    expect(text).toMatch(new RegExp(`^${field}`, 'm'));
  const [scalar, simd] = /^tiny +\d+ +([\d.]+) +([\d.]+) +refused: software GPU$/m
    .exec(text)!
    .slice(1)
    .map(Number);
  expect(simd).toBeLessThan(scalar!);
  const ratio = /^tiny +([\d.]+) \[[\d.?, ]+\]$/m.exec(text)!;
  expect(Number(ratio[1])).toBeGreaterThan(1);
  expect(text).toMatch(/^tiny +0$/m);
  await p.page.screenshot({ path: join(screens, 'benchmark-done.png'), fullPage: true });
  expect(await findings(p.page)).toEqual([]);
  expect(v.errors).toEqual([]);
});
