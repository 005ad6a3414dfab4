// SPDX-License-Identifier: Apache-2.0
/**
 * looking.ts - what is looked for in every picture: axe-core's findings, and what sticks out.
 *
 * Colours are the same rules at every width, and widths the same in both colours, so each width is
 * looked at in one of them; the long tests look at all pairs.
 *
 *   TG_TEST_LONG   set in the long tests
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

export const SIZES = {
  desktop: { width: 1280, height: 900 },
  phone: { width: 390, height: 844 },
} as const;
/** Those that others than the long tests look at come first. */
const SCHEMES = {
  desktop: ['light', 'dark'],
  phone: ['dark', 'light'],
} as const;
export type Device = keyof typeof SIZES;

export function schemesOf(device: Device): readonly ('light' | 'dark')[] {
  return SCHEMES[device].slice(0, process.env['TG_TEST_LONG'] ? 2 : 1);
}

export const LOOKS = (['desktop', 'phone'] as const).flatMap((device) =>
  schemesOf(device).map((colorScheme) => ({ device, colorScheme })));

const axeSource = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

interface Axe {
  run(options: { resultTypes: string[] }): Promise<{
    violations: { id: string; help: string; nodes: { html: string; failureSummary: string }[] }[];
  }>;
}

/**
 * axe-core's findings, a line each. The page's CSP takes no scripts, so it comes through CDP, once a
 * document. What its rules find to be right it need not describe.
 */
export async function findings(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axeSource);
  const result = await page.evaluate(() =>
    (globalThis as unknown as { axe: Axe }).axe.run({ resultTypes: ['violations'] }),
  );
  return result.violations.flatMap((found) =>
    found.nodes.map(
      (n) => `${found.id}: ${n.html.slice(0, 160)} ${n.failureSummary.replace(/\s+/g, ' ')}`,
    ),
  );
}

/** How far the page can be scrolled sideways, in pixels. */
export function overhang(page: Page): Promise<number> {
  return page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
}
