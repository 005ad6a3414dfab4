// SPDX-License-Identifier: Apache-2.0
/**
 * firefox.e2e.ts - the main journeys in Firefox, in one tab that goes on from one to the next; then a
 * private window, which is refused a place to save. The long tests run train.e2e.ts in it, too
 * (TG_BROWSER).
 */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { downloadsOf, firstTab, forget, visit, type Visit } from './browser';
import { Playground, TEXT } from './page';
import { program, serve, type Site } from './servers';
import { onOneStage } from './stage';

let site: Site;
let v: Visit;
let p: Playground;

/** Runs that were downloaded, also those that are not whole yet. */
function downloaded(): string[] {
  const folder = downloadsOf(v.profile);
  return readdirSync(folder).filter((name) => name.endsWith('.tinygpt'))
    .map((name) => join(folder, name));
}

onOneStage(
  (stage) => {
    ({ site, v, p } = stage);
    return p.open(site.url, 'start', { size: 'tiny', steps: 120, warmup: 5, evalEvery: 0 });
  },
  { browser: 'firefox' },
);

it('begins with a trained model, which goes on from what is typed', async () => {
  const percents = () => p.page.locator('.hero-percent').allInnerTexts();
  const surest = async () => Math.max(...(await percents()).map((text) => Number.parseInt(text)));
  await expect.poll(surest).toBeGreaterThan(0);
  const before = await percents();
  await p.page.getByRole('textbox', { name: /A beginning/ }).fill('The fox and');
  await expect.poll(percents).not.toEqual(before);
});

it('trains on a text, and goes on with the run after a reload', async () => {
  await p.paste(TEXT);
  const pressed = p.atStep(20, 'Pause');
  await p.start();
  await pressed;
  const at = await p.paused();
  await p.page.waitForFunction(() => navigator.serviceWorker.controller?.state === 'activated');
  await p.page.reload();
  await p.button(`Continue at step ${at}`).click();
  await p.finished();
  expect(await p.step()).toBe(120);
  expect(await p.page.getByRole('list', { name: /Samples/ }).getByRole('listitem').count())
    .toBeGreaterThan(2);
  await p.view('Write');
  await p.write('The fox ');
  await p.page.getByText(/The fox \w+/).first().waitFor();
});

it('keeps the run on the shelf, and gives it as a file', async () => {
  await p.page.reload();
  await p.view('Live');
  await p.heading(/^Step 120 of 120/).waitFor();
  await p.view('Your models');
  const item = p.page.getByRole('listitem', { name: 'tiny on Your own text' });
  await item.getByRole('button', { name: 'Download' }).click();
  const verify = () => execFileSync(program, ['verify', ...downloaded()], { encoding: 'utf8' });
  await expect.poll(verify).toMatch(/whole/);
});

it('stores a model of Chat, which goes on with a text', async () => {
  await p.view('Chat');
  await p.page.locator('input[type=file][aria-label="Add a file"]').setInputFiles(downloaded());
  await p.button('Load it').click();
  await p.page.getByRole('textbox', { name: 'Text' }).fill('Once');
  await p.button('Go on').click();
  await p.page.getByText(/tokens a second/).waitFor();
});

it('says what it computes with, and what this browser lacks', async () => {
  await p.view('Machine');
  await p.page.getByText(/Its name is relaxed-mt\./).waitFor();
  await p.page.getByText(/This browser has no WebGPU on this machine\./).waitFor();
});

it('trains without its server, whose worker has kept the page', async () => {
  await p.page.waitForFunction(() => navigator.serviceWorker.controller?.state === 'activated');
  await site.stop();
  await p.open(site.url, 'start', { size: 'tiny', steps: 30, warmup: 5 });
  expect(await p.page.evaluate(() => crossOriginIsolated)).toBe(true);
  await p.start();
  await p.finished();
  expect(await p.step()).toBe(30);
});

it('in a private window trains all the same, and says that nothing is saved', async () => {
  const private_ = await visit({
    browser: 'firefox',
    prefs: { 'browser.privatebrowsing.autostart': true },
  });
  const host = await serve();
  const q = new Playground(firstTab(private_));
  await q.open(host.url, 'start', { size: 'tiny', steps: 1_000_000, warmup: 5 });
  await q.paste(TEXT);
  await q.start();
  await q.waitForStep(20);
  await q.page.getByText(/not saved by itself/).first().waitFor();
  await q.button('Stop').click();
  await q.view('Chat');
  await q.page.getByText(/A file can be used for this visit/).waitFor();
  await private_.close();
  forget(private_.profile);
  await host.stop();
  expect(private_.errors).toEqual([]);
});
