// SPDX-License-Identifier: Apache-2.0
/**
 * chat_trouble.e2e.ts - Chat where something is lost or lacking: each time it is told in plain words,
 * and the page goes on.
 *
 *   TG_MODELS   folder of tools/setup.sh's models; ../.cache/models
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import type { Visit } from './browser';
import { findings } from './looking';
import { type Playground, TEXT } from './page';
import { program, type Site } from './servers';
import { onFreshStages } from './stage';

const web = resolve(import.meta.dirname, '..');
const NAME = 'SmolLM2-135M-Instruct.Q4_1.gguf';
const MODEL = join(web, process.env['TG_MODELS'] ?? '../.cache/models', NAME);
const SMALL = join(web, '../test/golden/lm/llama.gguf');

let site: Site;
let v: Visit;
let p: Playground;
let page: Page;

// What the service worker fetches would pass by the routes of a test.
onFreshStages(
  (stage) => {
    ({ site, v, p } = stage);
    page = p.page;
  },
  { serviceWorkers: 'block' },
);

async function pick(file: string): Promise<void> {
  const chooser = page.waitForEvent('filechooser');
  await p.button('Add a file').click();
  await (await chooser).setFiles(file);
}

async function load(): Promise<void> {
  const models = p.button('Models');
  const closed = (await models.count()) > 0 && (await models.getAttribute('aria-expanded')) !== 'true';
  if (closed) await models.click();
  await page.getByLabel('Context', { exact: true }).selectOption('1024');
  await p.button('Load it').click();
  await page.getByRole('textbox', { name: 'Your turn' }).waitFor();
}

async function ask(question: string): Promise<void> {
  const draft = page.getByRole('textbox', { name: 'Your turn' });
  await draft.fill(question);
  await draft.press('Enter');
  await page.locator('.chat-assistant .chat-text').filter({ hasText: /\S/ }).last().waitFor();
}

describe('Chat', () => {
  it('whose engine dies says so, keeps the question, and loads the model again', async () => {
    await p.open(site.url, 'chat');
    await pick(MODEL);
    await load();
    await ask('Tell me a very long story.');
    const engines = page.workers().filter((w) => w.url().includes('engine.worker'));
    expect(engines).toHaveLength(2);
    await engines[1]?.evaluate(() => close()).catch(() => {});
    await page.getByRole('alert').getByText(/Open the model again/).waitFor();
    await load();
    const draft = page.getByRole('textbox', { name: 'Your turn' });
    expect(await draft.inputValue()).toBe('Tell me a very long story.');
    await ask('Say hello.');
    await page.getByText(/^(Done|The context is full.*)\.$/).waitFor();
  });

  it('in a browser that stores nothing takes a file for the visit', async () => {
    await page.addInitScript(() => {
      Object.defineProperty(navigator, 'storage', { value: undefined });
    });
    await p.open(site.url, 'chat');
    await page.getByText(/A file can be used for this visit/).waitFor();
    await pick(MODEL);
    await load();
    await ask('Say hello.');
  });

  it('in a browser that stores nothing keeps a template with its file, not with the name', async () => {
    await page.addInitScript(() => {
      Object.defineProperty(navigator, 'storage', { value: undefined });
    });
    await p.open(site.url, 'chat');
    const [one, other] = [readFileSync(SMALL), readFileSync(SMALL)];
    // Its last weight is another one.
    other.writeUInt8(other.readUInt8(other.length - 1) ^ 1, other.length - 1);
    const template = page.getByLabel('How turns are written');
    const shows = async (buffer: Buffer, wanted: string) => {
      const chooser = page.waitForEvent('filechooser');
      await p.button('Add a file').click();
      await (await chooser).setFiles({ name: 'm.gguf', mimeType: '', buffer });
      await expect.poll(() => template.inputValue()).toBe(wanted);
    };
    await shows(one, '');
    await page.getByText('Template and kind of memory').click();
    await template.selectOption('chatml');
    await shows(other, '');
    await shows(one, 'chatml');
  });

  it('makes room in a small profile, where other pages have filled it', async () => {
    await p.open(site.url, 'start', { size: 'tiny', steps: 20, warmup: 5 });
    await p.paste(TEXT);
    await p.start();
    await p.finished();
    await page.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const folder = await root.getDirectoryHandle('an-old-game', { create: true });
      const file = await folder.getFileHandle('level.bin', { create: true });
      const writer = await file.createWritable();
      await writer.write(new Uint8Array(30e6));
      await writer.close();
      await (await caches.open('an-old-page')).put('./x', new Response('x', {
        headers: { 'content-length': '1' },
      }));
    });
    // Chromium reserves 134 MB for the model of 98, which are there when the others' 30 are gone: much
    // less than the 500 MB that a phone may grant.
    const usage = () => page.evaluate(async () => (await navigator.storage.estimate()).usage ?? 0);
    await expect.poll(usage).toBeGreaterThan(30e6);
    const cdp = await v.context.newCDPSession(page);
    const origin = new URL(site.url).origin;
    const quotaSize = (await usage()) + 120e6;
    await cdp.send('Storage.overrideQuotaForOrigin', { origin, quotaSize });
    expect(quotaSize).toBeLessThan(250e6);
    await p.view('Chat');
    await pick(MODEL);
    await page.getByRole('alert').getByText(/needs 99 MB, and the browser has not that much left/).waitFor();
    const others = page.getByRole('region', { name: 'Kept by other pages' });
    await others.getByText('Files, 30 MB').waitFor();
    await others.getByText('an-old-page').waitFor();
    expect(await findings(page)).toEqual([]);
    await p.button('Delete an-old-game').click();
    await p.button('Delete it for good').click();
    await expect.poll(() => others.getByRole('listitem').count()).toBe(1);
    await expect.poll(usage).toBeLessThan(quotaSize - 140e6);
    await pick(MODEL);
    await load();
    await ask('Say hello.');
  });

  it('without room uses a file from where it is, and asks before what was said is lost', async () => {
    await p.open(site.url, 'chat');
    const cdp = await v.context.newCDPSession(page);
    await cdp.send('Storage.overrideQuotaForOrigin', { origin: new URL(site.url).origin, quotaSize: 1 });
    await pick(MODEL);
    await page.getByRole('alert').getByText(/cannot be kept: the browser has no room left/).waitFor();
    expect(await findings(page)).toEqual([]);
    await p.button('Use it for this visit, without a copy').click();
    await load();
    await ask('Say hello.');
    await page.getByText(/^This conversation is not saved\. Export it to keep it\. .*no room left/).waitFor();
    await p.button('Stop').or(p.button('Send')).first().waitFor();
    await page.reload();
    await p.ready();
    expect(v.asked).toContain('beforeunload');
  });

  it('mends a stored model that the disk has damaged, by the piece, and says so', async () => {
    const body = readFileSync(SMALL);
    const ranges: (string | undefined)[] = [];
    await v.context.route('**/models/*', (route) => {
      const range = route.request().headers()['range'];
      ranges.push(range);
      const [, from = 0, end = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
      const part = body.subarray(Number(from), end === '' ? undefined : Number(end) + 1);
      return route.fulfill({ status: range ? 206 : 200, body: part });
    });
    await p.open(site.url, 'chat');
    await page.getByLabel('Or an address').fill(`${site.url}models/small.gguf`);
    await p.button('Fetch').click();
    await page.getByRole('heading', { name: 'small.gguf', level: 2 }).waitFor();
    await page.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const folder = await root.getDirectoryHandle('tinygpt-models');
      for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) {
        if (!name.endsWith('.model')) continue;
        const file = await folder.getFileHandle(name);
        const writer = await file.createWritable({ keepExistingData: true });
        await writer.write({ type: 'write', position: 5000, data: new Uint8Array(100) });
        await writer.close();
      }
    });
    await p.button('Load it').click();
    await page.getByText(/small.gguf was damaged on the disk/).waitFor();
    expect(ranges).toEqual([undefined, `bytes=0-${body.length - 1}`]);
    await page.getByRole('textbox', { name: /^(Your turn|Text)$/ }).waitFor();
  });

  it('goes on with a text where a model has no template', async () => {
    await p.open(site.url, 'chat');
    const own = join(v.profile, 'own.tinygpt');
    const text = join(v.profile, 'text.txt');
    writeFileSync(text, TEXT);
    execFileSync(program, ['train', '--data', text, '--preset', 'tiny', '--steps', '1', '--out', own]);
    await pick(own);
    await page.getByText('Template and kind of memory').click();
    await page.getByText('As the file says: it has none, and continues a text').waitFor({
      state: 'attached',
    });
    await page.getByLabel('The conversation is kept').selectOption('int8');
    // A template of another family needs tokens that this model does not have.
    await page.getByLabel('How turns are written').selectOption('llama3');
    await p.button('Load it').click();
    await page.getByText(/^The model is whole, but .*want a token <\|start_header_id\|>/).waitFor();
    expect(await findings(page)).toEqual([]);
    await p.button('Let it go on with a text').click();
    const written = page.getByRole('textbox', { name: 'Text' });
    await written.fill('Once');
    await p.button('Go on').click();
    await page.getByText(/tokens a second/).waitFor();
    expect((await written.inputValue()).length).toBeGreaterThan(4);
    await p.button('Take it back').click();
    expect(await written.inputValue()).toBe('Once');
    expect(await findings(page)).toEqual([]);
  });

  it('takes what is dropped anywhere, and what an address holds', async () => {
    const body = readFileSync(SMALL);
    await v.context.route('**/models/*', (route) =>
      route.request().url().endsWith('.gguf')
        ? route.fulfill({ body, contentType: 'application/octet-stream' })
        : route.fulfill({ body: '<!doctype html><p>No such model', contentType: 'text/html' }));
    await p.open(site.url, 'start');
    await page.evaluate((bytes) => {
      const files = new DataTransfer();
      files.items.add(new File([Uint8Array.from(bytes)], 'dropped.gguf'));
      window.dispatchEvent(new DragEvent('drop', { dataTransfer: files, cancelable: true }));
    }, [...body]);
    await page.getByRole('heading', { name: 'dropped.gguf', level: 2 }).waitFor();
    await page.getByLabel('Or an address').fill(`${site.url}models/fetched.gguf`);
    await p.button('Fetch').click();
    await page.getByRole('heading', { name: 'fetched.gguf', level: 2 }).waitFor();
    // By its name: the host tells of its files, and what a file has to be.
    const sha256 = createHash('sha256').update(body).digest('hex');
    const answers: Record<string, string> = { 'a/good': sha256, 'a/bad': '0'.repeat(64) };
    await v.context.route('https://huggingface.co/**', (route) => {
      const [, repo = '', file] = /^\/(?:api\/models\/)?([^/]+\/[^/]+)(?:\/resolve\/main\/(.+))?$/.exec(
        new URL(route.request().url()).pathname) ?? [];
      const headers = { 'Access-Control-Allow-Origin': '*' };
      if (file) return route.fulfill({ body, headers });
      const lfs = { sha256: answers[repo], size: body.length };
      const json = { tags: ['license:mit'], siblings: [{ rfilename: `${repo.slice(2)}.gguf`, lfs }] };
      return route.fulfill({ json, headers });
    });
    for (const [repo, file] of [['a/good', 'good.gguf'], ['a/bad', 'bad.gguf']] as const) {
      await page.getByLabel('Or an address').fill(repo);
      await p.button('Fetch').click();
      await page.getByText('Licence: mit').waitFor();
      await p.button(`Fetch ${file}`).click();
      if (repo === 'a/good') await page.getByRole('heading', { name: file, level: 2 }).waitFor();
      else await page.getByRole('alert').getByText(/want SHA-256 0000/).waitFor();
    }
    const others = v.errors.filter((e) => e.includes('https://huggingface.co/'));
    expect(others.length).toBeGreaterThan(0);
    v.errors.splice(0, v.errors.length, ...v.errors.filter((e) => !others.includes(e)));
    await page.getByLabel('Or an address').fill(`${site.url}models/none`);
    await p.button('Fetch').click();
    await page.getByRole('alert').getByText(/web page, not a model/).waitFor();
    expect(await page.getByRole('button', { name: /^Delete / }).count()).toBe(3);
  });
});
