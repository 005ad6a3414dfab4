// SPDX-License-Identifier: Apache-2.0
/** train.e2e.ts - the main road: paste a text, train, read what it writes, come back later. */
import { describe, expect, it } from 'vitest';
import type { Visit } from './browser';
import { type Playground, TEXT } from './page';
import type { Site } from './servers';
import { onFreshStages } from './stage';

let site: Site;
let v: Visit;
let p: Playground;

onFreshStages((stage) => ({ site, v, p } = stage));

describe('training', () => {
  it('brings tiny below a loss of 0.5 on a pasted text, and it writes', async () => {
    await p.open(site.url, 'start', { size: 'tiny', steps: 400 });
    expect(await p.page.evaluate(() => crossOriginIsolated)).toBe(true);
    await p.paste(TEXT);
    await p.start();
    await p.finished();
    expect(await p.step()).toBe(400);
    expect(await p.loss()).toBeLessThan(0.5);
    expect(
      await p.page
        .getByRole('list', { name: /Samples/ })
        .getByRole('listitem')
        .count(),
    ).toBeGreaterThan(2);
    await p.view('Write');
    await p.write('The fox ');
    await expect
      .poll(() => p.page.locator('main').innerText())
      .toMatch(/The fox \w+/);
  });

  it('continues after a refresh in the middle, to the same bits', async () => {
    const settings = { size: 'tiny', steps: 300, evalEvery: 50, sampleEvery: 100 };
    await p.open(site.url, 'start', settings);
    await p.paste(TEXT);
    await p.start();
    await p.finished();
    const whole = await p.fingerprint();
    const loss = await p.loss();

    await p.open(site.url, 'start', settings);
    await p.paste(TEXT);
    const pressed = p.atStep(60, 'Pause');
    await p.start();
    await pressed;
    const reloaded = p.atStep((await p.paused()) + 50, 'reload');
    await p.button('Go on').click();
    await reloaded;
    await p.button(/^Continue at step/).click();
    await p.finished();
    expect(await p.step()).toBe(300);
    expect(await p.fingerprint()).toBe(whole);
    expect(await p.loss()).toBe(loss);
  });

  it('learns a text of another script by its characters, and another one by pieces', async () => {
    const line = 'Живёт лиса у реки, и видит луну. 狐狸住在河边。 ';
    await p.open(site.url, 'start', { size: 'tiny', steps: 60 });
    await p.paste(line.repeat(150));
    await p.page.getByRole('radio', { name: 'Characters' }).check();
    await p.start();
    await p.finished();
    await p.page.getByText(/^characters a second$/i).waitFor();
    await p.page.getByText(/Every character that it writes is one of those in the text/).first().waitFor();
    // Nothing in the newest but what stands in the text: halves of characters do not come.
    const samples = p.page.getByRole('list', { name: /Samples/ }).locator('.live-sample-text');
    const signs = new Set(await samples.first().innerText());
    expect([...signs].filter((sign) => !line.includes(sign))).toEqual([]);
    await p.view('Watch it think');
    await p.page.getByRole('button', { name: 'A passage of the text' }).click();
    await p.page.getByText('Next character', { exact: true }).first().waitFor();

    await p.view('Start');
    await p.paste(TEXT);
    await p.page.getByRole('radio', { name: 'Pieces of words' }).check();
    await p.page.getByRole('textbox', { name: 'Pieces in the vocabulary' }).fill('300');
    await p.start();
    await p.finished();
    await p.page.getByText(/^tokens a second$/i).waitFor();
    await p.page.getByText(/guessing is 5\.704/).first().waitFor({ state: 'attached' });
    const loss = await p.loss();
    await p.page.reload();
    await p.view('Live');
    await p.heading(/^Step 60 of 60/).waitFor();
    expect(await p.loss()).toBe(loss);
    await p.view('Write');
    await p.write('The fox ');
    await p.page.getByText('Tokens written').waitFor();
  });

  it('tells the person at the end, once they have asked for it', async () => {
    await v.context.grantPermissions(['notifications'], { origin: new URL(site.url).origin });
    await p.page.addInitScript(() => {
      const told: string[] = [];
      const Real = Notification;
      Object.assign(globalThis, {
        told,
        Notification: class extends Real {
          constructor(title: string, options?: NotificationOptions) {
            super(title, options);
            told.push(`${title}. ${options?.body ?? ''}`);
          }
        },
      });
    });
    await p.open(site.url, 'start', { size: 'tiny', steps: 30, sampleEvery: 1_000_000 });
    await p.paste(TEXT);
    await p.view('Run'); // where it can be asked for before a run, which may be over soon
    await p.button('Tell me when it is done').click();
    await p.page.getByText('You will be told when it has finished.').waitFor();
    await p.start();
    await p.finished();
    const told = () => p.page.evaluate(() => (globalThis as unknown as { told: string[] }).told);
    await expect.poll(async () => (await told()).length).toBe(1); // when it is saved
    expect((await told())[0]).toMatch(/finished learning\. 30 steps in .*Loss/);
  });
});
