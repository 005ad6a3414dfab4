// SPDX-License-Identifier: Apache-2.0
/**
 * store.e2e.ts - the store of runs in a real browser's file system: reloads, a second tab, a tab
 * that is killed at each write of a save, no room.
 *
 * Vite's own server hands out the sources, so the store is used as a module, without the page.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { createServer, type ViteDevServer } from 'vite';
import { resolve } from 'node:path';
import type { Store } from '../src/lib/store/index';
import { firstTab, forget, visit, type Visit } from './browser';
import { freezeStoreAt, killTab } from './kill';

let server: ViteDevServer;
let url: string;
let v: Visit;
let page: Page;

const PAGE = `<!doctype html><title>store</title><link rel="icon" href="data:,">
<script type="module">
  import { openStore } from '/src/lib/store/index.ts';
  globalThis.store = openStore();
</script>`;

declare global {
  var store: Store;
}

beforeAll(async () => {
  server = await createServer({
    root: resolve(import.meta.dirname, '..'),
    configFile: false,
    logLevel: 'error',
    server: { host: '127.0.0.1', port: 0, hmr: false, watch: null },
    optimizeDeps: { include: ['comlink'] },
    plugins: [
      {
        name: 'empty-page',
        configureServer: (s) => {
          s.middlewares.use('/empty', (_, response) => {
            response.setHeader('Content-Type', 'text/html');
            response.end(PAGE);
          });
        },
      },
    ],
  });
  await server.listen();
  const address = server.httpServer?.address();
  if (typeof address !== 'object' || !address) throw new Error('the server has no port');
  url = `http://127.0.0.1:${address.port}/empty`;
});
afterAll(() => server.close());

beforeEach(async () => {
  v = await visit();
  page = firstTab(v);
});
afterEach(async () => {
  await v.close();
  forget(v.profile);
  expect(v.errors).toEqual([]);
});

/** A page with the store open in it; returns what open() said. */
async function openStore(p: Page): Promise<string> {
  await p.goto(url);
  await p.waitForFunction(() => globalThis.store);
  return p.evaluate(async () => {
    const { status, reason } = await globalThis.store.open();
    return reason === undefined ? status : `${status}: ${reason}`;
  });
}

/** A run of so many bytes that all are the step's number. */
function save(p: Page, step: number, bytes = 200_000): Promise<string> {
  return p.evaluate(
    ({ step, bytes }) =>
      globalThis.store.saveRun('a', new Uint8Array(bytes).fill(step), { step }, 0).then(
        () => 'saved',
        (e: Error) => e.name,
      ),
    { step, bytes },
  );
}

/** The step of the run that load() gives, after a look at every byte of it. */
function load(p: Page): Promise<number | null> {
  return p.evaluate(async () => {
    const saved = await globalThis.store.loadRun('a');
    if (!saved) return null;
    const { step } = saved.meta as { step: number };
    if (!saved.run.every((b) => b === step)) throw new Error('the run is a mixture');
    return step;
  });
}

describe('the store of runs', () => {
  it('gives back runs, meta and text after a reload', async () => {
    expect(await openStore(page)).toBe('ok');
    expect(await load(page)).toBeNull();
    await page.evaluate(async () => {
      const text = await globalThis.store.keepText(new Blob(['a text, äöü']));
      await globalThis.store.saveDoc('hand', { text });
      for (const step of [1, 2, 3]) {
        await globalThis.store.saveRun('a', new Uint8Array(2000).fill(step), { step }, text);
      }
      await globalThis.store.copyRun('a', 'b');
    });
    expect(await openStore(page)).toBe('ok');
    expect(await load(page)).toBe(3);
    const text = await page.evaluate(async () => {
      const [run] = await globalThis.store.listRuns();
      return (await globalThis.store.loadText(run!.text))?.text();
    });
    expect(text).toBe('a text, äöü');
    const listed = () =>
      page.evaluate(async () => (await globalThis.store.listRuns()).map((r) => r.id).sort());
    expect(await listed()).toEqual(['a', 'b']);
    await page.evaluate(() => globalThis.store.removeRun('a'));
    expect(await listed()).toEqual(['b']);
    expect(await openStore(page)).toBe('ok');
    expect(await load(page)).toBeNull();
    expect(await listed()).toEqual(['b']);
  });

  it('belongs to one tab, and to the next when that is closed', async () => {
    expect(await openStore(page)).toBe('ok');
    await save(page, 7);
    const second = await v.context.newPage();
    expect(await openStore(second)).toMatch(/^locked: /);
    await page.close();
    expect(await second.evaluate(async () => (await globalThis.store.open()).status)).toBe('ok');
    expect(await load(second)).toBe(7);
  });

  it('survives the end of its tab at each of the operations of a save', async () => {
    expect(await openStore(page)).toBe('ok');
    expect(await save(page, 1)).toBe('saved');
    let before = 1;
    for (let operation = 0; operation < 10; operation++) {
      await freezeStoreAt(page, operation);
      void save(page, operation + 2).catch(() => {});
      await page.waitForTimeout(150);
      page = await killTab(v.context, page);
      expect(await openStore(page)).toBe('ok');
      const found = await load(page);
      expect([before, operation + 2]).toContain(found);
      expect(await page.evaluate(() => globalThis.store.notice)).toBe('');
      before = found ?? 0;
      expect(before).toBeGreaterThan(0);
    }
    expect(await save(page, 99)).toBe('saved');
    expect(await load(page)).toBe(99);
  });

  it('says when there is no room, keeps the save before, and goes on when there is', async () => {
    expect(await openStore(page)).toBe('ok');
    expect(await save(page, 1)).toBe('saved');
    const cdp = await v.context.newCDPSession(page);
    const origin = new URL(url).origin;
    await cdp.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 600_000 });
    expect(await save(page, 2, 5_000_000)).toBe('QuotaError');
    expect(await load(page)).toBe(1);
    await cdp.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 1 });
    expect(await save(page, 3, 300_000)).toBe('QuotaError');
    expect(await load(page)).toBe(1);
    await cdp.send('Storage.overrideQuotaForOrigin', { origin });
    expect(await save(page, 4, 5_000_000)).toBe('saved');
    expect(await openStore(page)).toBe('ok');
    expect(await load(page)).toBe(4);
  });

  it('says plainly where a browser has no such file system', async () => {
    await page.addInitScript(() => {
      Object.defineProperty(navigator, 'storage', { value: undefined });
    });
    expect(await openStore(page)).toMatch(/^unavailable: /);
  });
});
