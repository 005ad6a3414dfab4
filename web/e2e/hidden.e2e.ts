// SPDX-License-Identifier: Apache-2.0
/** hidden.e2e.ts - a tab behind another one trains on, at nine tenths of its rate or more. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { link } from './page';
import { RawChrome, type RawTab } from './raw_chrome';
import { serve, type Site } from './servers';

let site: Site;
let chrome: RawChrome;

beforeAll(async () => {
  site = await serve();
  chrome = new RawChrome();
});
afterAll(async () => {
  await chrome.close();
  await site.stop();
});

const STEP = `Number(
  /Step ([\\d,.\\s]+) of/.exec(document.querySelector('main').innerText)?.[1].replace(/\\D/g, '')
)`;
const START = `[...document.querySelectorAll('button')].find(
  (b) => b.textContent.trim() === 'Start' && !b.disabled
)`;

async function until(tab: RawTab, condition: string): Promise<void> {
  await expect
    .poll(() => tab.evaluate<boolean>(`!!(${condition})`).catch(() => false))
    .toBe(true);
}

/**
 * Steps a second over some time. The page shows steps in jumps, so time is taken from jump to jump.
 */
async function rate(tab: RawTab, ms: number): Promise<number> {
  const jumps: { step: number; at: number }[] = [];
  for (const end = performance.now() + ms; performance.now() < end;) {
    const step = await tab.evaluate<number>(STEP);
    if (step !== jumps.at(-1)?.step) jumps.push({ step, at: performance.now() });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const [first, last] = [jumps[1], jumps.at(-1)];
  if (!first || !last || first === last) return 0;
  return ((last.step - first.step) * 1000) / (last.at - first.at);
}

/** Timers of a tab are held back when it has been hidden for ten seconds. */
const HIDDEN_MS = process.env['TG_TEST_LONG'] ? 20_000 : 15_000;
const SEEN_MS = process.env['TG_TEST_LONG'] ? 8000 : 4000;

it('keeps its rate out of sight', async () => {
  const tab = await chrome.tab(
    link(site.url, 'start', {
      size: 'small',
      steps: 1_000_000,
      evalEvery: 0,
      sampleEvery: 1_000_000,
    }),
  );
  await until(tab, START);
  await tab.evaluate(`${START}.click()`);
  await until(tab, `${STEP} > 20`);
  const other = await chrome.tab('about:blank');
  const ratios: number[] = [];
  // Other work on the machine comes and goes: the best of three comparisons counts.
  for (let i = 0; i < 3 && Math.max(0, ...ratios) < 0.9; i++) {
    await tab.show();
    await until(tab, `document.visibilityState === 'visible'`);
    const before = await rate(tab, SEEN_MS);
    await other.show();
    await until(tab, `document.visibilityState === 'hidden'`);
    const frames = tab.evaluate<number>(
      `new Promise((done) => {
        let n = 0;
        const frame = () => (n++, requestAnimationFrame(frame));
        requestAnimationFrame(frame);
        setTimeout(() => done(n), 5000);
      })`,
    );
    const hidden = await rate(tab, HIDDEN_MS);
    expect(await frames).toBe(0);
    await tab.show();
    await until(tab, `document.visibilityState === 'visible'`);
    const after = await rate(tab, SEEN_MS);
    ratios.push(hidden / ((before + after) / 2));
  }
  console.log(`hidden to visible: ${ratios.map((r) => r.toFixed(3)).join(' ')}`);
  expect(Math.max(...ratios)).toBeGreaterThanOrEqual(0.9);
  expect(chrome.errors).toEqual([]);
}, 1_200_000);
