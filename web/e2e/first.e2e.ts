// SPDX-License-Identifier: Apache-2.0
/** first.e2e.ts - the first screen: it moves before anybody has done anything, and goes on from there. */
import { expect, it } from 'vitest';
import type { Visit } from './browser';
import { findings } from './looking';
import type { Playground } from './page';
import type { Site } from './servers';
import { onOneStage } from './stage';

let site: Site;
let v: Visit;
let p: Playground;

onOneStage(
  (stage) => {
    ({ site, v, p } = stage);
    return p.open(site.url);
  },
  { serviceWorkers: 'block', reducedMotion: 'no-preference' },
);

const written = () => p.page.locator('.hero-written').count();
const beginning = () => p.page.getByRole('textbox', { name: /A beginning/ });

it('a model writes by itself, and goes on from what is typed', async () => {
  await expect.poll(written).toBeGreaterThan(5);
  await p.button('Let it rest').click();
  await beginning().fill('The fox and');
  await expect.poll(written).toBe(0);
  const text = () => p.page.locator('.hero-text > span[aria-hidden]').innerText();
  expect((await text()).replace(/\s+/g, ' ').trim()).toBe('The fox and');
  const bars = () =>
    p.page.getByRole('list', { name: 'What it takes to come next' }).innerText();
  await expect.poll(bars).toMatch(/[1-9]\d/);
  const before = await bars();
  await beginning().fill('The fox an');
  await expect.poll(bars).not.toBe(before);
});

it('rests where motion is not wanted', async () => {
  await p.page.emulateMedia({ reducedMotion: 'reduce' });
  await p.open(site.url);
  await p.button('Let it write').first().waitFor();
  await expect
    .poll(() => p.page.locator('.hero-percent').first().innerText())
    .toMatch(/[1-9]/);
  expect(await written()).toBe(0);
  await p.page.emulateMedia({ reducedMotion: 'no-preference' });
});

it.each([
  [320, 568],
  [390, 844],
  [768, 1024],
  [1024, 768],
  [1280, 800],
])('Start is in the first screen at %i x %i', async (width, height) => {
  await p.page.setViewportSize({ width, height });
  await p.page.evaluate(() => scrollTo(0, 0));
  const box = (await p.button(/^(Start|Getting ready…)$/).boundingBox())!;
  expect(box.y + box.height).toBeLessThanOrEqual(height);
  await p.page.setViewportSize({ width: 1280, height: 900 });
});

it('a tour leads through five views, and ends', async () => {
  await p.view('Start');
  await p.button(/^Show me around/).click();
  const tour = p.page.getByRole('region', { name: 'Tour' });
  for (const view of [/^Text$/, /^Live$/, /^Write$/, /^Watch it think$/]) {
    await tour.getByRole('button', { name: 'Next' }).click();
    await p.page.getByRole('heading', { level: 1, name: view }).waitFor();
  }
  // Who has no model looks into one that came with the page.
  await p.page.getByRole('heading', { level: 2, name: 'The model' }).waitFor();
  await tour.getByRole('button', { name: 'Done' }).click();
  expect(await tour.count()).toBe(0);
  // The digits open the five entries.
  await p.page.keyboard.press('1');
  await p.page.getByRole('heading', { level: 1, name: /Teach/ }).waitFor();
});

it('a model of the gallery is a click away from writing, and from its inside', async () => {
  const card = p.page.locator('section.card', { has: p.heading(/^Sums$/) });
  await card.getByRole('button', { name: 'Let it write' }).click();
  await p.heading(/^Write$/).waitFor();
  await p.button(/^Write/).first().click();
  await expect
    .poll(() => p.page.getByRole('region', { name: /written/ }).innerText())
    .toMatch(/^47\+85: .*=/);
  await p.view('Start');
  await card.getByRole('button', { name: 'Watch it think' }).click();
  await p.heading(/^What comes next$/).waitFor();
});

it('a text comes by the title of its article, with its licence', async () => {
  const asked: string[] = [];
  await v.context.route('https://en.wikipedia.org/**', (route) => {
    asked.push(new URL(route.request().url()).searchParams.get('titles') ?? '');
    return route.fulfill({
      json: { query: { pages: [{ title: 'Fox', extract: 'Foxes are small. '.repeat(300) }] } },
      headers: { 'Access-Control-Allow-Origin': '*' },
    });
  });
  await p.view('Text');
  await p.page.getByRole('radio', { name: 'Wikipedia' }).check();
  await p.page.getByRole('textbox', { name: 'Titles of articles' }).fill('fox');
  await p.button('Fetch').click();
  await p.page.getByText('Fox, Wikipedia').first().waitFor();
  await p.page.getByText(/^Licence: CC BY-SA/).waitFor();
  expect(asked).toEqual(['fox']);
  // The one request to another host, which a click asked for.
  expect(v.errors.splice(0).filter((e) => !e.includes('https://en.wikipedia.org/'))).toEqual([]);
});

it('a word is explained by a tap, and all words and keys stand behind "?"', async () => {
  await p.view('Model');
  await p.page.getByRole('button', { name: 'Parameters', exact: true, includeHidden: true }).first().click();
  const meaning = p.page.locator('.term-meaning');
  await meaning.getByText(/One learnt number of the model/).waitFor();
  await p.page.keyboard.press('Escape');
  await meaning.waitFor({ state: 'hidden' });
  await p.page.keyboard.press('?');
  const list = p.page.getByRole('dialog', { name: 'Keys and words' });
  await list.getByText('Pause the run, or let it go on').waitFor();
  await list.getByRole('searchbox').fill('softmax');
  await list.getByText(/makes scores into probabilities/).waitFor();
  expect(await list.locator('.glossary > div').count()).toBeLessThan(8);
  expect(await findings(p.page)).toEqual([]);
  await list.getByRole('button', { name: 'Close' }).click();
  await list.waitFor({ state: 'detached' });
  await p.page.keyboard.press('2');
  await p.page.getByRole('heading', { level: 1, name: /^Write$/ }).waitFor();
});

it('a view that has no model offers those that came with the page', async () => {
  await p.open(site.url, 'think');
  await p.heading(/^No model yet$/).waitFor();
  const ready = p.page.getByRole('group', { name: 'Models that came with this page' });
  await ready.getByRole('button', { name: 'Sums' }).waitFor();
  expect(await findings(p.page)).toEqual([]);
  await ready.getByRole('button', { name: 'Sums' }).click();
  await p.heading(/^What comes next$/).waitFor();
  await p.view('Write');
  const prompt = p.page.getByRole('textbox', { name: /prompt|begin/i }).first();
  expect(await prompt.inputValue()).toMatch(/^47\+85/);
});
