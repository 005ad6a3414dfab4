// SPDX-License-Identifier: Apache-2.0
/**
 * hosting.e2e.ts - hosts with and without headers, no network, new versions, other pages.
 *
 * Threads need a page that is isolated from others, which a host says by two headers. Where it does
 * not, the page's service worker says it in the host's place, for which the page has to be loaded
 * once more; the same worker keeps the page for when there is no network. What can go wrong is told
 * by how often the tab has loaded a document, and by which build of the core runs.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { forget, visit, type Visit, type VisitOptions } from './browser';
import { Playground, TEXT } from './page';
import { dist, type PlainOptions, serve, servePlain, type Site } from './servers';
import { freshTab } from './stage';

let v: Visit;
let p: Playground;
let site: Site;
/** How often the tab has loaded a document. */
let loads = 0;

/** A browser for each way to open one; each test has an address of its own in it. */
const browsers = new Map<string, Visit>();

async function come(o: VisitOptions = {}): Promise<void> {
  const way = JSON.stringify(o);
  v = browsers.get(way) ?? (await visit(o));
  browsers.set(way, v);
  p = new Playground(await freshTab(v));
  loads = 0;
  p.page.on('domcontentloaded', () => {
    if (p.page.url().startsWith('http')) loads++;
  });
}

async function plain(o?: PlainOptions): Promise<Site & { folder: string }> {
  const host = await servePlain(o);
  site = host;
  return host;
}

/** The page's worker is in charge of it. */
async function controlled(): Promise<void> {
  await p.page.waitForFunction(() => navigator.serviceWorker.controller?.state === 'activated');
}

function isolatedNow(): Promise<boolean> {
  return p.page.evaluate(() => crossOriginIsolated);
}

afterEach(async () => {
  await freshTab(v);
  await v.context.unrouteAll();
  await v.context.setOffline(false);
  await site.stop();
  // A host that is gone shows as such in the console, which no page can prevent.
  expect(v.errors.splice(0).filter((e) => !e.includes('net::ERR_'))).toEqual([]);
});
afterAll(async () => {
  for (const { close, profile } of browsers.values()) {
    await close();
    forget(profile);
  }
});

describe('tinygpt serve', () => {
  it('isolates the page from the first load on', async () => {
    site = await serve();
    await come({ serviceWorkers: 'block' });
    await p.open(site.url);
    expect(await isolatedNow()).toBe(true);
    expect(loads).toBe(1);
    await p.page.getByText(/Ready, \d+ threads/).waitFor();
  });

  it('can go away: the page loads and trains without it', async () => {
    site = await serve();
    await come();
    await p.open(site.url);
    await controlled();
    await site.stop();
    // Both the server and the network: what is asked of either is an error in the console.
    await v.context.setOffline(true);
    await p.open(site.url, 'start', { size: 'tiny', steps: 60, warmup: 5 });
    expect(await isolatedNow()).toBe(true);
    for (const view of ['Machine', 'Benchmark', 'Watch it think', 'Files', 'Start'])
      await p.view(view);
    await p.paste(TEXT);
    await p.start();
    await p.finished();
    expect(await p.step()).toBe(60);
  });
});

describe('a host without headers', () => {
  it('gets the page isolated by one reload, and leaves it at that', async () => {
    await plain({ under: '/some/where/' });
    await come();
    await p.page.goto(site.url);
    await p.isolated();
    await p.page.getByText(/Ready, \d+ threads/).waitFor();
    // A page that loads itself again and again would do so within that.
    await p.page.waitForTimeout(2000);
    expect(loads).toBe(2);
    await p.page.reload();
    await p.ready();
    expect(await isolatedNow()).toBe(true);
    expect(loads).toBe(3);
    // Of all builds of the core the one in use is kept.
    const builds = await p.page.evaluate(async () => {
      const names = (await caches.keys()).filter((name) => name.startsWith('tinygpt-page-'));
      const lists = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
      return lists.flat().map(({ url }) => url).filter((url) => url.endsWith('.wasm'));
    });
    expect(builds).toEqual([`${site.url}wasm/tinygpt-relaxed-mt.wasm`]);
  });

  it('does not take the page away from a person who has begun', async () => {
    await plain();
    await come();
    // The worker's files come late, as on a slow line: behind the first keys.
    let typed = () => {};
    const hasTyped = new Promise<void>((resolve) => (typed = resolve));
    await v.context.route('**/icon-512.png', async (route) => {
      await hasTyped;
      await route.continue();
    });
    await p.page.goto(site.url);
    await p.button('Paste or type').click();
    await p.page.getByRole('textbox', { name: 'Your own text' }).fill('Mine. '.repeat(100));
    typed();
    await p.button('Load it again').waitFor();
    expect(await isolatedNow()).toBe(false);
    expect(loads).toBe(1);
    await p.button('Load it again').click();
    await p.isolated();
    // A new document is isolated as soon as it is there, and loaded a moment later.
    await expect.poll(() => loads).toBe(2);
  });

  it('trains on one thread where service workers are not allowed, and says why', async () => {
    await plain();
    await come({ serviceWorkers: 'block' });
    await p.open(site.url, 'start', { size: 'tiny', steps: 60, warmup: 5 });
    expect(await isolatedNow()).toBe(false);
    await p.page.getByText(/Ready, one thread/).waitFor();
    await p.view('Machine');
    await p.page
      .getByText(/isolat/i)
      .first()
      .waitFor();
    await p.view('Start');
    await p.paste(TEXT);
    await p.start();
    await p.finished();
    expect(await p.step()).toBe(60);
    expect(loads).toBe(1);
  });
});

describe('another version', () => {
  /** A copy of the page that can be told apart, as its next version would be. */
  function version(title: string): string {
    const folder = mkdtempSync(join(tmpdir(), 'tinygpt-page-'));
    cpSync(dist, folder, { recursive: true });
    const html = readFileSync(join(folder, 'index.html'), 'utf8');
    writeFileSync(
      join(folder, 'index.html'),
      html.replace('</head>', `<meta name="e2e" content="${title}"></head>`),
    );
    const worker = readFileSync(join(folder, 'sw.js'), 'utf8');
    writeFileSync(
      join(folder, 'sw.js'),
      worker.replace(/revision":"[0-9a-f]+","url":"index/, `revision":"${title}","url":"index`),
    );
    return folder;
  }

  function shownVersion(): Promise<string | null> {
    return p.page.locator('meta[name=e2e]').getAttribute('content');
  }

  it('waits until it is wanted', async () => {
    const folders = [version('one'), version('two')] as const;
    const host = await plain({ folder: folders[0] });
    await come();
    await p.page.goto(site.url);
    await p.isolated();
    await p.ready();
    host.folder = folders[1];
    // The new version is there, and is not used: a run that goes on would lose its page.
    await p.page.reload();
    await p.ready();
    expect(await shownVersion()).toBe('one');
    await p.button('Use it now').click();
    await expect.poll(() => shownVersion().catch(() => null)).toBe('two');
    await p.ready();
    await p.page.waitForTimeout(1000);
    expect(await p.button('Use it now').count()).toBe(0);
    for (const folder of folders) rmSync(folder, { recursive: true });
  });

  it('is not mixed with the one in use, and a broken one is not taken', async () => {
    const folders = [version('one'), version('two')] as const;
    const host = await plain({ folder: folders[0] });
    await come();
    await p.page.goto(site.url);
    await p.isolated();
    await p.ready();
    // It was not copied to its host as a whole.
    rmSync(join(folders[1], 'icon-192.png'));
    host.folder = folders[1];
    await p.page.reload();
    await p.ready();
    await p.page.waitForTimeout(1500);
    expect(await shownVersion()).toBe('one');
    expect(await p.button('Use it now').count()).toBe(0);
    await p.view('Benchmark');
    for (const folder of folders) rmSync(folder, { recursive: true });
  });

  it('gives way to another page at the same address', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tinygpt-other-'));
    writeFileSync(
      join(folder, 'index.html'),
      '<!doctype html><title>Another page</title><link rel="icon" href="data:,">',
    );
    const host = await plain();
    await come();
    await p.page.goto(site.url);
    await p.isolated();
    await p.ready();
    host.folder = folder;
    // The worker asks its host for a page of its own now and then: it must not hold the address.
    await expect
      .poll(async () => {
        await p.page.goto(site.url);
        await p.page.waitForTimeout(300);
        return p.page.title();
      })
      .toBe('Another page');
    rmSync(folder, { recursive: true });
    v.errors.splice(0);
  });
});
