/**
 * look.e2e.ts - every view, light and dark, on a desktop and on a phone: axe-core finds nothing,
 * nothing sticks out of the screen, and a picture of each goes to build/screens to be looked at.
 *
 *   TG_SCREENS   where the pictures go; ../build/screens
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstTab, forget, visit, type Visit } from './browser';
import { Playground, TEXT } from './page';
import { serve, type Site } from './servers';

const VIEWS = [
  'Start',
  'Text',
  'Model',
  'Run',
  'Live',
  'Write',
  'Watch it think',
  'Files',
  'Machine',
  'Benchmark',
];
const SIZES = {
  desktop: { width: 1280, height: 900 },
  phone: { width: 390, height: 844 },
} as const;
const SCHEMES = ['light', 'dark'] as const;

const screens = resolve(import.meta.dirname, '..', process.env['TG_SCREENS'] ?? '../build/screens');
const axeSource = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

interface Axe {
  run(): Promise<{
    violations: { id: string; help: string; nodes: { html: string; failureSummary: string }[] }[];
  }>;
}

let site: Site;
let v: Visit;
let p: Playground;

beforeAll(async () => {
  mkdirSync(screens, { recursive: true });
  site = await serve();
});
afterAll(() => site.stop());

/** axe-core's findings, a line each. The page's CSP takes no scripts, so it comes through CDP. */
async function findings(): Promise<string[]> {
  await p.page.evaluate(axeSource);
  const result = await p.page.evaluate(() => (globalThis as unknown as { axe: Axe }).axe.run());
  return result.violations.flatMap((found) =>
    found.nodes.map(
      (n) => `${found.id}: ${n.html.slice(0, 160)} ${n.failureSummary.replace(/\s+/g, ' ')}`,
    ),
  );
}

/** How far the page can be scrolled sideways, in pixels. */
function overhang(): Promise<number> {
  return p.page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
}

async function lookAt(name: string): Promise<void> {
  await p.page.waitForTimeout(400);
  await p.page.screenshot({
    path: join(screens, `${name}.png`),
    fullPage: true,
    animations: 'disabled',
  });
  expect.soft(await findings(), `axe: ${name}`).toEqual([]);
  expect.soft(await overhang(), `sideways: ${name}`).toBe(0);
}

function nameOf(view: string): string {
  return view.toLowerCase().replaceAll(' ', '-');
}

describe.each(SCHEMES)('in %s colours', (colorScheme) => {
  describe.each(Object.entries(SIZES))('on a %s', (device, viewport) => {
    beforeAll(async () => {
      v = await visit({
        colorScheme,
        viewport,
        hasTouch: device === 'phone',
        reducedMotion: 'reduce',
      });
      p = new Playground(firstTab(v));
      await p.open(site.url, 'start', { size: 'tiny', steps: 400 });
      await p.paste(TEXT);
    });
    afterAll(async () => {
      await v.close();
      forget(v.profile);
      expect(v.errors).toEqual([]);
    });

    it.each(VIEWS)('%s, before a run', async (view) => {
      await p.view(view);
      await lookAt(`${nameOf(view)}-empty-${device}-${colorScheme}`);
    });

    it('trains', async () => {
      await p.view('Start');
      await p.start();
      await p.finished();
      expect(await p.step()).toBe(400);
    });

    it.each(VIEWS)('%s, with a model', async (view) => {
      await p.view(view);
      await lookAt(`${nameOf(view)}-${device}-${colorScheme}`);
    });
  });
});
