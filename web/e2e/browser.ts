// SPDX-License-Identifier: Apache-2.0
/**
 * browser.ts - Chromium or Firefox and its tabs, with what must hold in every test: no error in the
 * console, no exception that nobody caught, no request to another host.
 *
 * Firefox is the one that a distribution ships, which playwright-core drives by WebDriver BiDi.
 * Version 1.64 is the last one that asks it for nothing but what a release of Firefox knows.
 *
 *   TG_BROWSER   chromium or firefox, for whoever names none; chromium
 *   TG_CHROMIUM  the program; /usr/bin/chromium
 *   TG_FIREFOX   the program; /usr/bin/firefox-esr
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  firefox,
  type Page,
} from 'playwright-core';

export type BrowserName = 'chromium' | 'firefox';

/** The browser that is tested where a test does not say which. */
export const USUAL: BrowserName = process.env['TG_BROWSER'] === 'firefox' ? 'firefox' : 'chromium';

const FLAGS = [
  '--no-sandbox',
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--enable-features=Vulkan',
  // The software adapter is for what is computed: what is shown costs less without it.
  '--disable-gpu-compositing',
  '--enable-dawn-features=disable_workgroup_init',
];

/** Playwright's switches that keep tabs in the background fast, which people's browsers lack. */
const NOT_PLAYWRIGHTS = [
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
];

export interface Visit {
  context: BrowserContext;
  /** The profile's folder: another visit with it finds what this one has stored. */
  profile: string;
  /** What the console or an uncaught exception said so far. */
  errors: string[];
  /** What the page asked before it was left; it was let go each time. */
  asked: string[];
  close(): Promise<void>;
}

export interface VisitOptions extends BrowserContextOptions {
  browser?: BrowserName;
  /** Settings of Firefox (about:config). */
  prefs?: Record<string, boolean | number | string>;
  profile?: string;
  args?: string[];
  port?: number;
}

/** Where Firefox puts what is downloaded. */
export function downloadsOf(profile: string): string {
  return join(profile, 'downloads');
}

function launch(browser: BrowserName, profile: string, o: VisitOptions) {
  const { prefs, args = [], ...more } = o;
  const options = { headless: true, viewport: { width: 1280, height: 900 }, ...more };
  if (browser === 'firefox') {
    return firefox.launchPersistentContext(profile, {
      ...options,
      executablePath: process.env['TG_FIREFOX'] ?? '/usr/bin/firefox-esr',
      channel: 'moz-firefox',
      args,
      // No event tells of a file that a page makes; it is found there.
      downloadsPath: downloadsOf(profile),
      // Firefox has no command for these, but settings.
      firefoxUserPrefs: {
        'ui.prefersReducedMotion': o.reducedMotion === 'no-preference' ? 0 : 1,
        'layout.css.prefers-color-scheme.content-override': o.colorScheme === 'dark' ? 0 : 1,
        ...prefs,
      },
    });
  }
  return chromium.launchPersistentContext(profile, {
    reducedMotion: 'reduce',
    ...options,
    executablePath: process.env['TG_CHROMIUM'] ?? '/usr/bin/chromium',
    args: [...FLAGS, ...args],
    ignoreDefaultArgs: NOT_PLAYWRIGHTS,
  });
}

/**
 * A browser with a profile on the disk, as a person has. Nothing moves, unless a test is about what
 * does: the first screen would train and write beside all others.
 */
export async function visit(o: VisitOptions = {}): Promise<Visit> {
  const {
    browser = USUAL,
    profile = mkdtempSync(join(tmpdir(), 'tinygpt-e2e-')),
    ...options
  } = o;
  const context = await launch(browser, profile, options);
  // Whoever takes longer hangs, also on a machine that is slow and busy.
  context.setDefaultTimeout(300_000);
  const errors: string[] = [];
  context.on('console', (message) => {
    if (message.type() === 'error')
      errors.push(`console: ${message.text()} ${message.location().url}`);
  });
  context.on('weberror', (e) => errors.push(`uncaught: ${e.error().message}`));
  const asked: string[] = [];
  context.on('dialog', (dialog) => {
    asked.push(dialog.type());
    dialog.accept().catch(() => {});
  });
  context.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (/^https?:$/.test(protocol) && hostname !== '127.0.0.1') {
      errors.push(`a request to another host: ${request.url()}`);
    }
  });
  return {
    context,
    profile,
    errors,
    asked,
    close: () => context.close(),
  };
}

export function forget(profile: string): void {
  rmSync(profile, { recursive: true, force: true });
}

/** The tab that a new browser has open. */
export function firstTab(v: Visit): Page {
  const [page] = v.context.pages();
  if (!page) throw new Error('the browser has no tab');
  return page;
}
