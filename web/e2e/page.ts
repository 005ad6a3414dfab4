// SPDX-License-Identifier: Apache-2.0
/**
 * page.ts - what a person does on the page, in the page's own words: everything is found by its
 * role and label.
 */
import { expect } from 'vitest';
import type { Locator, Page } from 'playwright-core';

/** Enough text for tiny, the same every time: a few sentences with some order in them. */
export const TEXT = Array.from({ length: 400 }, (_, i) => {
  const who = ['The fox', 'The hen', 'The old man', 'A child', 'The moon'][i % 5];
  const what = ['sees', 'follows', 'loves', 'forgets'][(i * 7) % 4];
  const whom = ['the river', 'a red door', 'the quiet road', 'its own shadow'][(i * 3) % 4];
  return `${who} ${what} ${whom}. `;
}).join('');

export interface RunSettings {
  size?: string;
  steps?: number;
  [key: string]: string | number | undefined;
}

/** The address of a view with these settings, as a shared link has them. */
export function link(url: string, view: string, settings: RunSettings = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(settings)) query.set(key, String(value));
  return `${url}#${view}${query.size > 0 ? `?${query}` : ''}`;
}

export class Playground {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async open(url: string, view = 'start', settings: RunSettings = {}): Promise<void> {
    await this.page.goto('about:blank');
    await this.page.goto(link(url, view, settings));
    await this.ready();
  }

  /** The engine has started: the shell says what it runs on, on phones out of sight. */
  async ready(): Promise<void> {
    await this.page
      .getByText(/Ready(?: on the GPU)?, (one thread|\d+ threads)/)
      .waitFor({ state: 'attached' });
  }

  /** The page may share memory between threads; it may have to be loaded again before. */
  async isolated(): Promise<void> {
    const ask = () => this.page.evaluate(() => crossOriginIsolated).catch(() => false);
    await expect.poll(ask).toBe(true);
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name, exact: typeof name === 'string' });
  }

  /** Opens a view by the navigation: its entry first, if that is not open. */
  async view(name: string): Promise<void> {
    const links = this.page.getByRole('navigation', { name: 'Views' });
    const link = links.getByRole('link', { name, exact: true });
    const learn = ['Start', 'Text', 'Model', 'Run', 'Live', 'Your models'].includes(name);
    if ((await link.count()) === 0) {
      await links.getByRole('link', { name: learn ? 'Learn' : 'More', exact: true }).click();
    }
    await link.click();
    await this.page
      .getByRole('heading', { level: 1, name: name === 'Start' ? /Teach/ : name })
      .waitFor();
  }

  /** Types a text in place of the one that is there. */
  async paste(text: string): Promise<void> {
    // The stories that the page begins with have to be there before something else is.
    const before = await this.size().innerText();
    await this.button('Paste or type').click();
    await this.page.getByRole('textbox', { name: 'Your own text' }).fill(text);
    // The page takes a typed text over when the keys have rested. It may be the one that was there.
    for (let waited = 0; (await this.size().innerText()) === before; waited += 50) {
      const same = (await this.button('Stories').count()) > 0;
      if (waited > (same ? 1500 : 10_000)) {
        if (same) break;
        throw new Error(`a typed text was not taken over: ${before}`);
      }
      await this.page.waitForTimeout(50);
    }
  }

  /** The line that tells size and encoding of the text, once it has been read. */
  size(): Locator {
    return this.page.locator('.text-facts').getByText(/^[\d.,]+ (bytes|kB|MB)$/i).first();
  }

  async start(): Promise<void> {
    await this.button('Start').click();
    await this.heading(/^Step \d/).waitFor();
  }

  /** In the Write view: lets the model go on from a prompt. */
  async write(prompt: string): Promise<void> {
    await this.page
      .getByRole('textbox', { name: /prompt|begin/i })
      .first()
      .fill(prompt);
    await this.button(/^Write|^Go|^Continue/)
      .first()
      .click();
  }

  heading(name: RegExp): Locator {
    return this.page.getByRole('heading', { name });
  }

  /** Steps done, from the Live view's headline. */
  async step(): Promise<number> {
    const text =
      (await this.heading(/^Step \d/)
        .first()
        .textContent()) ?? '';
    return Number(/Step ([\d,.\s]+) of/.exec(text)?.[1]?.replace(/\D/g, ''));
  }

  async waitForStep(step: number, timeout = 300_000): Promise<void> {
    await expect.poll(() => this.step(), { timeout }).toBeGreaterThanOrEqual(step);
  }

  /**
   * Presses a button, or loads the page again, as soon as the page shows this step. It is the page
   * that looks, since a fast run would be over before a test had seen the step: to be asked for
   * before the run starts or goes on, and awaited behind that.
   */
  async atStep(step: number, name: 'Pause' | 'reload'): Promise<void> {
    const loaded = name === 'reload' ? this.page.waitForEvent('load') : undefined;
    const done = this.page.evaluate(
      ({ step, name }) =>
        new Promise<void>((resolve) => {
          const look = () => {
            const titles = [...document.querySelectorAll('h1, h2, h3')].map((h) => h.textContent);
            const title = titles.find((text) => /^Step \d.* of/.test(text)) ?? '';
            const at = Number(title.replace(/ of.*/, '').replace(/\D/g, '') || NaN);
            const button = [...document.querySelectorAll('button')].find(
              (b) => b.textContent.trim() === name && !b.disabled,
            );
            if (!(at >= step) || (name !== 'reload' && !button)) return;
            observer.disconnect();
            resolve();
            if (button) button.click();
            else location.reload();
          };
          const observer = new MutationObserver(look);
          observer.observe(document, { subtree: true, childList: true, characterData: true });
          look();
        }),
      { step, name },
    );
    await (loaded ? Promise.all([loaded, done.catch(() => {})]) : done);
  }

  /** Waits until a run that has paused is saved where it stands; the step. */
  async paused(): Promise<number> {
    await this.button('Go on').waitFor();
    await expect.poll(() => this.savedStep()).toBe(await this.step());
    return this.step();
  }

  /** The step that the page says a refresh loses nothing before. */
  async savedStep(): Promise<number> {
    const said = await this.page.getByText(/^Saved at step/).first().innerText();
    return Number(said.replace(/\. .*/s, '').replace(/\D/g, ''));
  }

  /** The run has come to its end by itself, and has been saved. */
  async finished(timeout = 300_000): Promise<void> {
    await this.button('New run').waitFor({ timeout });
    const main = await this.page.getByRole('main').innerText();
    if (/stopped by a fault|has stopped/.test(main))
      throw new Error(`the run has failed: ${main.slice(0, 600)}`);
  }

  /** A number of the Live view by its name. */
  async stat(name: string): Promise<string> {
    const term = this.page.locator('dt', { hasText: name }).first();
    return ((await term.locator('xpath=following-sibling::dd[1]').textContent()) ?? '').trim();
  }

  /** 16 digits over the bits of all losses of the run. */
  async fingerprint(): Promise<string> {
    const details = this.page.locator('details', { hasText: 'Fingerprint of the curve' }).first();
    if (!(await details.evaluate((d) => (d as HTMLDetailsElement).open))) {
      await details.locator('summary').click();
    }
    const digits = /[0-9a-f]{16}/.exec(await this.stat('Fingerprint of the curve'));
    if (!digits) throw new Error('the Live view shows no fingerprint');
    return digits[0];
  }

  async loss(): Promise<number> {
    return Number.parseFloat(await this.stat('Loss, practised'));
  }
}
