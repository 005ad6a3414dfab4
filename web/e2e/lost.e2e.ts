// SPDX-License-Identifier: Apache-2.0
/** lost.e2e.ts - nothing is lost: killed tabs, full storage, a second tab, workers that die. */
import { describe, expect, it } from 'vitest';
import type { Visit } from './browser';
import { freezeStoreAt, killTab } from './kill';
import { Playground, TEXT } from './page';
import type { Site } from './servers';
import { onFreshStages } from './stage';

let site: Site;
let v: Visit;
let p: Playground;

onFreshStages((stage) => ({ site, v, p } = stage));

const SAVED = /Saved at step/;
/** Operations of a save: store.e2e.ts ends a tab at each, this one at some, the long tests at each. */
const OPERATIONS = process.env['TG_TEST_LONG'] ? [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : [2, 9];
/** All kills come before the run's end, however fast the machine is. */
const STEPS = 150 * OPERATIONS.length;

async function begin(steps: number, pauseAt?: number): Promise<void> {
  await p.open(site.url, 'start', { size: 'tiny', steps, evalEvery: 0, sampleEvery: 1_000_000 });
  await p.paste(TEXT);
  const pressed = pauseAt && p.atStep(pauseAt, 'Pause');
  await p.start();
  await pressed;
}

async function quota(bytes: number | undefined): Promise<void> {
  const cdp = await v.context.newCDPSession(p.page);
  await cdp.send('Storage.overrideQuotaForOrigin', {
    origin: new URL(site.url).origin,
    ...(bytes === undefined ? {} : { quotaSize: bytes }),
  });
}

describe('a killed tab', () => {
  it('again and again in the middle of a save, costs no bit of the run', async () => {
    await begin(STEPS);
    await p.finished();
    const whole = await p.fingerprint();
    expect(await p.loss()).toBeLessThan(0.5);

    await begin(STEPS, 5);
    let saved = await p.paused();
    for (const operation of OPERATIONS) {
      await freezeStoreAt(p.page, operation);
      const pressed = p.atStep(saved + 5, 'Pause');
      await p.button('Go on').click();
      await pressed;
      await p.button('Go on').waitFor();
      const lost = await p.step();
      await p.page.waitForTimeout(300);
      p = new Playground(await killTab(v.context, p.page));
      await p.open(site.url);
      const offer = p.button(/^Continue at step/);
      await offer.waitFor();
      const found = Number((await offer.innerText()).replace(/\D/g, ''));
      expect([saved, lost]).toContain(found);
      const again = p.atStep(found, 'Pause');
      await offer.click();
      await again;
      saved = await p.paused();
    }
    await p.button('Go on').click();
    await p.finished();
    expect(await p.step()).toBe(STEPS);
    expect(await p.fingerprint()).toBe(whole);
  });
});

describe('storage that is full', () => {
  it('stops no training, and a download is offered', async () => {
    await begin(1_000_000);
    await p.waitForStep(5);
    await quota(1000);
    await p.button('Pause').click();
    await p.page
      .getByText(/no room left .*Download/)
      .first()
      .waitFor();
    await p.button('Go on').click();
    await p.waitForStep((await p.step()) + 20);
    await p.view('Files');
    const coming = p.page.waitForEvent('download');
    await p.button('Download: The whole run').click();
    await coming;
    await p.view('Live');
    await quota(undefined);
    await p.button('Pause').click();
    await p.page.getByText(SAVED).waitFor();
  });

  it('from the first byte on, too', async () => {
    await p.page.goto(site.url);
    await quota(1);
    await begin(40_000);
    await p.waitForStep(20);
    await p.button('Pause').click();
    await p.page
      .getByText(/no room left|not saved by itself/)
      .first()
      .waitFor();
    await p.button('Go on').click();
    await p.waitForStep((await p.step()) + 20);
  });

  it('has no place for a typed text: that is said, and asked before the page is left', async () => {
    await p.open(site.url);
    await quota(1);
    await p.paste(TEXT);
    await p.page.getByText('This text is not kept in the browser. The browser has no room left').waitFor();
    await p.page.reload();
    await p.ready();
    expect(v.asked).toEqual(['beforeunload']);
  });

  it('keeps nobody from the models that came with the page', async () => {
    await p.open(site.url, 'write');
    await p.page.waitForFunction(() => navigator.serviceWorker.controller?.state === 'activated');
    await quota(1);
    await p.button('Recipes').click();
    await p.page.getByRole('textbox', { name: /prompt|begin/i }).first().waitFor();
  });
});

describe('a second tab', () => {
  it('says that the first one keeps its run, and trains all the same', async () => {
    await begin(1_000_000);
    await p.waitForStep(5);
    const second = new Playground(await v.context.newPage());
    await second.open(site.url, 'start', { size: 'tiny', steps: 20, warmup: 5 });
    await second.page.getByText(/open in another tab/).waitFor();
    await second.paste(TEXT);
    await second.start();
    await second.finished();
    expect(await second.step()).toBe(20);
    await p.waitForStep((await p.step()) + 5);
    await second.page.close();
  });
});

describe('a browser that lacks something', () => {
  it('storage: trains, and says that the run is not saved', async () => {
    await p.page.addInitScript(() => {
      Object.defineProperty(navigator, 'storage', { value: undefined });
    });
    await begin(60_000);
    await p.waitForStep(20);
    await p.page.getByText(/not saved by itself/).waitFor();
  });
});

describe('a worker that dies', () => {
  it('is told of; the last save is intact, and goes on after a reload', async () => {
    await begin(1_000_000);
    await p.waitForStep(20);
    await p.button('Pause').click();
    await p.page.getByText(SAVED).waitFor();
    const saved = await p.step();
    await p.button('Go on').click();
    await p.waitForStep(saved + 10);
    const engine = p.page.workers().find((w) => w.url().includes('engine.worker'));
    expect(engine).toBeDefined();
    await engine?.evaluate(() => close()).catch(() => {});
    const intact = await p.page.getByText(/The save at step [\d,]+ is intact\./).innerText();
    const step = Number(intact.replace(/\D/g, ''));
    expect(step).toBeGreaterThanOrEqual(saved);
    await p.view('Files');
    await p.page.reload();
    await p.button(`Continue at step ${step.toLocaleString('en-GB')}`).click();
    await p.waitForStep(step + 20);
  });
});
