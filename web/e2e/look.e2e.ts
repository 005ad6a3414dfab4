// SPDX-License-Identifier: Apache-2.0
/**
 * look.e2e.ts - every view, on a desktop and on a phone: axe-core finds nothing, nothing sticks out
 * of the screen, and a picture of each goes to build/screens to be looked at. A device loads the
 * page and trains once; views are opened in the colours that they are looked at.
 *
 *   TG_SCREENS   where the pictures go; ../build/screens
 */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstTab, forget, visit, type Visit } from './browser';
import { type Device, findings, overhang, schemesOf, SIZES } from './looking';
import { Playground, TEXT } from './page';
import { serve, type Site } from './servers';

const VIEWS = [
  'Start',
  'Text',
  'Model',
  'Run',
  'Live',
  'Your models',
  'Write',
  'Watch it think',
  'Chat',
  'Files',
  'Machine',
  'Benchmark',
];
const screens = resolve(import.meta.dirname, '..', process.env['TG_SCREENS'] ?? '../build/screens');
let site: Site;
let v: Visit;
let p: Playground;

beforeAll(async () => {
  mkdirSync(screens, { recursive: true });
  site = await serve();
});
afterAll(() => site.stop());

/** Cards of Watch it think are drawn on the screen alone, which becomes as high as the page. */
async function standTall(): Promise<void> {
  const { width } = p.page.viewportSize()!;
  for (let i = 0; i < 2; i++) {
    const height = await p.page.evaluate(() => document.documentElement.scrollHeight);
    await p.page.setViewportSize({ width, height });
    await p.page.waitForTimeout(400);
  }
}

async function lookAt(name: string): Promise<void> {
  const size = p.page.viewportSize()!;
  await p.page.waitForTimeout(400);
  if ((await p.page.locator('.think-card').count()) > 0) await standTall();
  await p.page.screenshot({
    path: join(screens, `${name}.png`),
    fullPage: true,
    animations: 'disabled',
  });
  expect.soft(await findings(p.page), `axe: ${name}`).toEqual([]);
  expect.soft(await overhang(p.page), `sideways: ${name}`).toBe(0);
  await p.page.setViewportSize(size);
}

function nameOf(view: string): string {
  return view.toLowerCase().replaceAll(' ', '-');
}

describe.each(Object.keys(SIZES) as Device[])('on a %s', (device) => {
  const viewport = SIZES[device];
  const schemes = schemesOf(device);

  beforeAll(async () => {
    v = await visit({
      colorScheme: schemes[0]!,
      viewport,
      hasTouch: device === 'phone',
    });
    p = new Playground(firstTab(v));
    await p.open(site.url, 'start', { size: 'tiny', steps: 100, evalEvery: 10, sampleEvery: 25 });
    await p.paste(TEXT);
  });
  afterAll(async () => {
    await v.close();
    forget(v.profile);
    expect(v.errors).toEqual([]);
  });

  describe.each(schemes)('in %s colours', (colorScheme) => {
    beforeAll(() => p.page.emulateMedia({ colorScheme }));

    it.each(VIEWS)('%s, before a run', async (view) => {
      await p.view(view);
      await lookAt(`${nameOf(view)}-empty-${device}-${colorScheme}`);
    });
  });

  it('trains', async () => {
    await p.view('Start');
    await p.start();
    await p.finished();
    expect(await p.step()).toBe(100);
  });

  describe.each(schemes)('in %s colours', (colorScheme) => {
    beforeAll(() => p.page.emulateMedia({ colorScheme }));

    it.each(VIEWS)('%s, with a model', async (view) => {
      await p.view(view);
      await lookAt(`${nameOf(view)}-${device}-${colorScheme}`);
    });
  });
});
