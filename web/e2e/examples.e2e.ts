// SPDX-License-Identifier: Apache-2.0
/**
 * examples.e2e.ts - the package's examples for browsers, in one browser: a plain page, a service
 * worker, an extension, and Vite's build; each on a host that knows nothing but files. (The one for
 * Node is run by pack.test.ts.)
 *
 *   TG_MODELS   folder of tools/setup.sh's models; ../.cache/models
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { firstTab, forget, visit, type Visit } from './browser';
import { TEXT } from './page';
import { program, servePlain, type Site } from './servers';

const web = resolve(import.meta.dirname, '..');
const wasm = resolve(web, process.env['TG_WASM_DIR'] ?? '../build/wasm');
const MODEL = join(
  web, process.env['TG_MODELS'] ?? '../.cache/models', 'SmolLM2-135M-Instruct.Q4_1.gguf');
const folder = mkdtempSync(join(tmpdir(), 'tinygpt-examples-'));
let site: Site;
let v: Visit;
let page: Page;

/** The example with the package's folders beside it, as its README says. */
function put(name: string): string {
  const to = join(folder, name);
  cpSync(join(web, 'examples', name), to, { recursive: true });
  mkdirSync(join(to, 'tinygpt'));
  cpSync(join(web, 'bundle'), join(to, 'tinygpt/bundle'), { recursive: true });
  cpSync(wasm, join(to, 'tinygpt/wasm'), {
    recursive: true, filter: (path) => path === wasm || /\.(wasm|txt)$/.test(path),
  });
  return to;
}

beforeAll(async () => {
  for (const name of ['plain', 'service-worker', 'extension']) put(name);
  const extension = join(folder, 'extension');
  site = await servePlain({ folder });
  v = await visit({
    args: [`--disable-extensions-except=${extension}`, `--load-extension=${extension}`],
  });
  page = firstTab(v);
});
afterAll(async () => {
  await v.close();
  forget(v.profile);
  await site.stop();
  rmSync(folder, { recursive: true });
  expect(v.errors).toEqual([]);
});

describe('an example', () => {
  it('of the README answers, in a page that has nothing else', async () => {
    const [, html = ''] = /```html\n([^]*?)```/.exec(readFileSync(join(web, 'README.md'), 'utf8')) ?? [];
    writeFileSync(join(folder, 'plain/readme.html'), html);
    await page.goto(`${site.url}plain/readme.html`);
    await page.locator('input').setInputFiles(MODEL);
    await page.locator('pre').filter({ hasText: /\w+ \w+ \w+/ }).waitFor();
    // The page of the README names no icon, which the browser asks for all the same.
    v.errors.splice(0, v.errors.length, ...v.errors.filter((e) => !e.endsWith('/favicon.ico')));
  });

  it('in a plain page loads a model and goes on with a text', async () => {
    const model = join(folder, 'own.tinygpt');
    writeFileSync(join(folder, 'text.txt'), TEXT);
    const args = ['--preset', 'tiny', '--steps', '1', '--out', model];
    execFileSync(program, ['train', '--data', join(folder, 'text.txt'), ...args]);
    await page.goto(`${site.url}plain/`);
    await page.getByLabel('Model').setInputFiles(model);
    await page.getByText(/own\.tinygpt is ready\. Threads: \d+\./).waitFor();
    await page.getByLabel('Say').fill('The fox');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText(/^\d+ tokens$/).waitFor();
    expect(await page.locator('#answer').innerText()).toMatch(/^The fox./);
  });

  it('with a service worker has threads on a host without headers', async () => {
    await page.goto(`${site.url}service-worker/`);
    await page.getByText(/^Ready: /).waitFor();
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
    expect(await page.locator('#state').innerText()).toMatch(/-mt/);
  });

  it('of Vite is built and runs', async () => {
    const from = join(folder, 'vite-source');
    cpSync(join(web, 'examples/vite'), from, { recursive: true });
    mkdirSync(join(from, 'node_modules'));
    symlinkSync(web, join(from, 'node_modules/tinygpt'));
    await build({
      root: from, configFile: join(from, 'vite.config.js'), logLevel: 'error',
      build: { outDir: join(folder, 'vite'), target: 'es2022' },
    });
    await page.goto(`${site.url}vite/`);
    await page.getByText(/^Ready: \d+ parameters/).waitFor();
  });

  it('of an extension runs under its policy', async () => {
    // An extension that was loaded unpacked is named by the SHA-256 of its path, in letters a to p.
    const path = join(folder, 'extension');
    const hex = createHash('sha256').update(path).digest('hex').slice(0, 32);
    const id = [...hex].map((digit) => String.fromCharCode(97 + parseInt(digit, 16))).join('');
    await page.goto(`chrome-extension://${id}/popup.html`);
    await page.getByText(/^Ready: /).waitFor();
  });
});
