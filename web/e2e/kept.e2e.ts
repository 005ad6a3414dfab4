// SPDX-License-Identifier: Apache-2.0
/** kept.e2e.ts - what a person made is there again: texts, runs at any moment, a shelf of models. */
import { statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Visit } from './browser';
import { type Playground, TEXT } from './page';
import type { Site } from './servers';
import { onFreshStages } from './stage';

let site: Site;
let v: Visit;
let p: Playground;

onFreshStages((stage) => ({ site, v, p } = stage));

/** Moments at which the page is loaded again. */
const MOMENTS = process.env['TG_TEST_LONG'] ? 40 : 4;

function random(seed: number): () => number {
  let x = seed;
  return () => (x = (x * 1103515245 + 12345) & 0x7fffffff) / 0x80000000;
}

describe('a text', () => {
  it('is there again after a reload, as soon as it was taken', async () => {
    await p.open(site.url);
    await p.paste(TEXT);
    const size = await p.size().innerText();
    await p.page.reload();
    await p.ready();
    await expect.poll(() => p.size().innerText()).toBe(size);
    await p.page.getByText('Your own text').first().waitFor();
    expect(await p.page.locator('textarea.text-area').inputValue()).toBe(TEXT.slice(0, 6000));
    expect(await p.page.getByText(/the text here is another one/).count()).toBe(0);
  });
});

describe('a reload', () => {
  it('at any moment finds what the page has said is saved', async () => {
    await p.open(site.url, 'start', { size: 'small', steps: 1_000_000, evalEvery: 0 });
    await p.paste(TEXT);
    await p.start();
    const next = random(11);
    let found = 0;
    for (let moment = 0; moment < MOMENTS; moment++) {
      // The next save, and then some part of the time to the one behind it.
      await expect.poll(() => p.savedStep()).toBeGreaterThan(found);
      await p.page.waitForTimeout(1200 * next());
      const said = await p.savedStep();
      await p.page.reload();
      await p.ready();
      const offer = p.button(/^Continue at step/);
      await offer.waitFor();
      found = Number((await offer.innerText()).replace(/\D/g, ''));
      expect(found, `behind moment ${moment}`).toBeGreaterThanOrEqual(said);
      await offer.click();
      await p.waitForStep(found);
      await p.page.getByText('Pause').first().waitFor();
    }
  });

  it('asks nothing when all is saved, and asks when something would be lost', async () => {
    await p.open(site.url, 'start', { size: 'tiny', steps: 60, warmup: 5 });
    await p.paste(TEXT);
    await p.start();
    await p.finished();
    await p.page.getByText(/^Saved at step 60/).first().waitFor();
    await p.page.reload();
    await p.ready();
    expect(v.asked).toEqual([]);
    await p.page.addInitScript(() => {
      Object.defineProperty(navigator, 'storage', { value: undefined });
    });
    await p.open(site.url, 'start', { size: 'tiny', steps: 60, warmup: 5 });
    await p.paste(TEXT);
    await p.start();
    await p.finished();
    await p.page.reload();
    await p.ready();
    expect(v.asked).toContain('beforeunload');
  });
});

describe('the shelf', () => {
  const item = (name: string | RegExp) => p.page.getByRole('listitem', { name });

  it('keeps every run: opened, renamed, copied, deleted and brought back', async () => {
    await p.open(site.url, 'start', { size: 'tiny', steps: 80, warmup: 5, seed: 1 });
    await p.paste(TEXT);
    await p.start();
    await p.finished();
    const first = await p.fingerprint();
    // The demo first, one's own text second: nothing asks to delete anything.
    await p.view('Start');
    await p.button('Stories').click();
    await p.page.getByText('Stories from the generator').first().waitFor();
    await p.start();
    await p.finished();
    const second = await p.fingerprint();
    expect(second).not.toBe(first);

    await p.view('Your models');
    const onText = item('tiny on Your own text');
    const onStories = item('tiny on Stories from the generator');
    await onText.waitFor();
    await onStories.waitFor();
    await p.page.getByText(/^The browser (may throw it away|has promised to keep it)/).waitFor();
    await onText.getByRole('button', { name: 'Rename' }).click();
    await p.page.getByRole('textbox', { name: 'Name' }).fill('Foxes & hens');
    await p.button('Save').click();
    await item('Foxes & hens').waitFor();
    await item('Foxes & hens').getByRole('button', { name: 'Copy' }).click();
    await item('Foxes & hens, copy').waitFor();
    const coming = p.page.waitForEvent('download');
    await onStories.getByRole('button', { name: 'Download' }).click();
    expect(statSync(await (await coming).path()).size).toBeGreaterThan(500_000);

    await p.page.reload();
    await p.ready();
    await expect
      .poll(() => p.page.getByRole('list', { name: 'Your models' }).locator('> li').count())
      .toBe(3);
    await item('Foxes & hens, copy').getByRole('button', { name: 'Delete' }).click();
    await expect.poll(() => item('Foxes & hens, copy').count()).toBe(0);
    await p.button('Undo').click();
    await item('Foxes & hens, copy').waitFor();

    await item('Foxes & hens').first().getByRole('button', { name: 'Open' }).click();
    await p.heading(/^Step 80 of 80/).waitFor();
    // The weights of earlier steps came back with it: they go on from whatever is typed.
    const pieces = p.page.locator('.live-then');
    await p.page.getByRole('textbox', { name: 'Beginning' }).fill('The hen ');
    await expect.poll(() => pieces.innerText()).toMatch(/Step 0\s+The hen[^]*Step 80\s+The hen/);
    await p.page.getByRole('slider', { name: /^Then: step/ }).fill('2');
    await expect.poll(() => pieces.innerText()).toMatch(/Step 20\s+The hen[^]*Step 80\s+The hen/);
    await p.page.getByRole('textbox', { name: 'Continue for more steps' }).fill('20');
    await p.button('Continue').click();
    await p.waitForStep(100);
    await p.finished();
    await p.view('Write');
    await p.write('The fox ');
    await p.page.getByText(/The fox \w+/).first().waitFor();
  });

  it('offers to go on with what is on the shelf, by its name there, and with nothing that was deleted', async () => {
    await p.open(site.url, 'start', { size: 'tiny', steps: 1_000_000 });
    await p.paste(TEXT);
    await p.start();
    await p.waitForStep(1);
    await p.page.reload();
    await p.ready();
    const offer = p.page.getByRole('region', { name: 'A saved run' });
    await offer.getByText('tiny on Your own text').waitFor();
    await p.view('Your models');
    // What no model has learnt yet is no broken font.
    expect(await item('tiny on Your own text').innerText()).not.toMatch(/\ufffd/);
    await p.button('Rename').click();
    await p.page.getByRole('textbox', { name: 'Name' }).fill('Foxes');
    await p.button('Save').click();
    await offer.getByText('Foxes').waitFor();
    await item('Foxes').getByRole('button', { name: 'Delete' }).click();
    await expect.poll(() => offer.count()).toBe(0);
    await p.button('Undo').click();
    await offer.getByText('Foxes').waitFor();
  });

  it('trains a model on another text, and compares the two', async () => {
    await p.open(site.url, 'start', { size: 'tiny', steps: 60, warmup: 5 });
    await p.paste(TEXT);
    await p.start();
    await p.finished();
    const loss = await p.loss();
    await p.view('Your models');
    await item(/^tiny/).getByRole('checkbox', { name: 'Compare' }).check();
    await item(/^tiny/).getByRole('button', { name: 'Train on my text' }).click();
    await p.heading(/^Step \d/).waitFor();
    await p.finished();
    // It began with what the first one knew.
    expect(await p.loss()).toBeLessThan(loss);
    expect(await p.page.getByRole('checkbox', { name: /tiny on Your own text/ }).isChecked()).toBe(true);
    await p.view('Your models');
    await expect
      .poll(() => p.page.getByRole('list', { name: 'Your models' }).locator('> li').count())
      .toBe(2);
  });
});
