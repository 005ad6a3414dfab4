// SPDX-License-Identifier: Apache-2.0
/**
 * missing.e2e.ts - files of the page that do not come, as when the network is gone or its server has
 * a newer version: wherever that happens the page says so, and goes on once they are there again.
 * The server is asked, also by workers of workers, so files are moved away there.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { firstTab, forget, visit, type Visit } from './browser';
import { findings } from './looking';
import { Playground } from './page';
import { dist, servePlain, type Site } from './servers';
import { freshTab } from './stage';

const SMALL = resolve(import.meta.dirname, '../../test/golden/lm/llama.gguf');
const folder = mkdtempSync(join(tmpdir(), 'tinygpt-missing-'));
const away = join(folder, 'away');

let site: Site;
let v: Visit;
let p: Playground;

beforeAll(async () => {
  cpSync(dist, folder, { recursive: true });
  mkdirSync(away);
  v = await visit({ serviceWorkers: 'block' });
});
beforeEach(async () => {
  const headers = {
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Embedder-Policy': 'require-corp',
    'Cache-Control': 'no-store',
  };
  site = await servePlain({ folder, headers });
  await firstTab(v).goto('about:blank');
  p = new Playground(await freshTab(v));
});
afterEach(async () => {
  back();
  await site.stop();
  expect(v.errors.splice(0).filter((e) => !/Failed to load resource/.test(e))).toEqual([]);
});
afterAll(async () => {
  await v.close();
  forget(v.profile);
  rmSync(folder, { recursive: true });
});

/** Takes files of the page away. */
function take(what: RegExp): void {
  for (const room of ['assets', 'wasm']) {
    const names = readdirSync(join(folder, room)).filter((name) => what.test(name));
    for (const name of names) renameSync(join(folder, room, name), join(away, `${room} ${name}`));
  }
  expect(readdirSync(away)).not.toEqual([]);
}

function back(): void {
  for (const name of readdirSync(away)) {
    renameSync(join(away, name), join(folder, name.replace(' ', '/')));
  }
}

const alert = (words: RegExp) => p.page.getByRole('alert').filter({ hasText: words });

const VIEWS = [
  'start', 'text', 'model', 'run', 'live', 'shelf', 'write', 'think', 'chat', 'files', 'machine', 'bench',
];

const styled = (view: string) =>
  readdirSync(join(dist, 'assets')).some((name) => name.startsWith(`${view}_view-`) && name.endsWith('.css'));

it.each([
  ...VIEWS.map((view) => [view, 'js']),
  ...VIEWS.filter(styled).map((view) => [view, 'css']),
])('%s without its %s', async (view, kind) => {
  take(new RegExp(`^${view}_view-.*\\.${kind}$`));
  await p.page.goto(`${site.url}#${view}`);
  const told = alert(/could not be loaded/);
  await told.waitFor();
  await told.getByRole('button', { name: 'Load the page again' }).waitFor();
  back();
  await told.getByRole('button', { name: 'Try again' }).click();
  await told.waitFor({ state: 'detached' });
  await p.page.locator('#main').locator('.card, .stack, .chat').first().waitFor();
  const sheets = await p.page.evaluate(() => [...document.styleSheets].map(({ href }) => href ?? ''));
  const own = sheets.filter((href) => href.includes(`/${view}_view-`));
  expect(own).toHaveLength(styled(view) ? 1 : 0);
});

it('the first script: the frame says so, and a reload has the page', async () => {
  take(/^index-.*\.js$/);
  await p.page.goto(`${site.url}#write`);
  await alert(/scripts of this page could not be loaded/).waitFor();
  back();
  await p.button('Load the page again').click();
  await p.ready();
});

it.each([
  ['the worker of the engine', /^engine\.worker-/],
  ['all builds of the module', /\.wasm$/],
])('%s: then the text, the forecast and the first screen come late', async (_, files) => {
  take(files);
  await p.page.goto(site.url);
  const told = alert(/A part of this page could not be fetched/).first();
  await told.waitFor();
  await p.page.getByText('The engine could not be started.').waitFor();
  await told.getByRole('button', { name: 'Load the page again' }).waitFor();
  expect(await findings(p.page)).toEqual([]);
  back();
  await told.getByRole('button', { name: 'Try again' }).click();
  await p.ready();
  await p.page.getByText(/Your own model: .* steps, about/).waitFor();
  await p.page.getByText('A beginning, from which it goes on').waitFor();
  expect(await p.button('Start').isEnabled()).toBe(true);
  expect(await p.page.getByText(/could not be (fetched|loaded|started)/).count()).toBe(0);
});

it('the workers of its threads: it computes with one', async () => {
  take(/^thread\.worker-/);
  await p.page.goto(site.url);
  await p.page.getByText('Ready, one thread').waitFor();
});

it.each([
  ['the model at work', /^hero-.*\.js$/, 'A beginning, from which it goes on'],
  ['the models that came with it', /^gallery_cards-.*\.js$/, 'Old verse'],
])('parts of the first screen: %s', async (_, files, words) => {
  take(files);
  await p.page.goto(site.url);
  const told = alert(/could not be loaded/);
  await told.waitFor();
  expect(await findings(p.page)).toEqual([]);
  back();
  await told.getByRole('button', { name: 'Try again' }).click();
  await p.page.getByText(words).first().waitFor();
  await told.waitFor({ state: 'detached' });
});

it('the list of keys: a message, and the next key has it', async () => {
  await p.open(site.url, 'text');
  take(/^help-.*\.js$/);
  await p.page.reload();
  await p.ready();
  const keys = p.button(/^Keys and words/);
  await keys.click();
  await p.page.getByText('A part of this page could not be fetched').waitFor();
  back();
  await keys.click();
  await p.page.getByRole('dialog').waitFor();
});

it('where things are kept: it says so, and has them after a reload', async () => {
  await p.open(site.url, 'text');
  await p.paste('What was typed. '.repeat(200));
  const size = await p.size().innerText();
  // By now it is kept.
  await p.page.waitForTimeout(2000);
  take(/^store\.worker-/);
  await p.page.reload();
  await p.view('Your models');
  await p.page.getByText('A part of this page could not be fetched').waitFor();
  back();
  await p.button('Try again').click();
  await p.page.getByText('Nothing here yet').waitFor();
  await p.page.reload();
  await p.view('Text');
  await expect.poll(() => p.size().innerText()).toBe(size);
});

it('what Chat computes with: the model is looked at then', async () => {
  await p.open(site.url, 'chat');
  take(/\.wasm$/);
  const pick = async () => {
    const chooser = p.page.waitForEvent('filechooser');
    await p.button('Add a file').click();
    await (await chooser).setFiles(SMALL);
  };
  await pick();
  await alert(/A part of this page could not be fetched/).waitFor();
  expect(await findings(p.page)).toEqual([]);
  back();
  await p.button('Choose llama.gguf').click();
  await p.button('Load it').waitFor();
});

it('where Chat keeps models: it says so', async () => {
  take(/^models\.worker-/);
  await p.open(site.url, 'chat');
  await p.page.getByText(/A part of this page could not be fetched/).first().waitFor();
  back();
  await p.page.reload();
  await p.page.getByText('None yet').waitFor();
});
