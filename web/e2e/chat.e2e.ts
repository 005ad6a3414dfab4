// SPDX-License-Identifier: Apache-2.0
/**
 * chat.e2e.ts - Chat as a person uses it: a model file is picked, asked, found again after a
 * reload and without a network, and deleted; what is no model is told in plain words. Tests go on
 * from one another in one tab, as a person would, since a model of 98 MB takes some seconds to load;
 * greedy answers are held against those of the native program, which has other kernels.
 *
 *   TG_MODELS   folder of tools/setup.sh's models; ../.cache/models
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { firstTab, forget, visit, type Visit } from './browser';
import { findings, LOOKS, overhang, SIZES } from './looking';
import { Playground } from './page';
import { program, serve, type Site } from './servers';

const NAME = 'SmolLM2-135M-Instruct.Q4_1.gguf';
const models = resolve(import.meta.dirname, '..', process.env['TG_MODELS'] ?? '../.cache/models');
const screens = resolve(import.meta.dirname, '..', process.env['TG_SCREENS'] ?? '../build/screens');
const QUESTION = 'Why is the sky blue?';

let site: Site;
let v: Visit;
let p: Playground;
let page: Page;

beforeAll(async () => {
  mkdirSync(screens, { recursive: true });
  site = await serve();
  v = await visit();
  page = firstTab(v);
  p = new Playground(page);
});
afterAll(async () => {
  await v.close();
  forget(v.profile);
  await site.stop();
  expect(v.errors).toEqual([]);
});

/** Answers are as long as a slow machine has them in a minute: what they end with is no matter. */
const LIMIT = 48;
const ENDED = /^(Done|Stopped|As long as an answer may be|The context is full.*)\.$/;

/** The program's answer to the question, which it is asked once. */
let answered: string | undefined;

function native(): string {
  if (answered !== undefined) return answered;
  const args = ['chat', join(models, NAME), '--temp', '0', '--ctx', '1024', '--json'];
  args.push('--tokens', String(LIMIT));
  const out = execFileSync(program, args, { input: `${QUESTION}\n`, encoding: 'utf8' });
  return (answered = (JSON.parse(out) as { text: string }).text);
}

async function lookAt(name: string): Promise<void> {
  await page.waitForTimeout(300);
  await page.screenshot({
    path: join(screens, `${name}.png`),
    fullPage: true,
    animations: 'disabled',
  });
  expect.soft(await findings(page), `axe: ${name}`).toEqual([]);
  expect.soft(await overhang(page), `sideways: ${name}`).toBe(0);
}

async function pick(file: string): Promise<void> {
  const chooser = page.waitForEvent('filechooser');
  await p.button('Add a file').click();
  await (await chooser).setFiles(file);
}

function answers() {
  return page.locator('.chat-assistant .chat-text');
}

/** Opens what stands beside the conversation. */
async function beside(name: 'Conversations' | 'Models' | 'Settings'): Promise<void> {
  const toggle = p.button(name);
  if ((await toggle.getAttribute('aria-expanded')) !== 'true') await toggle.click();
}

/** Answers have at most so many tokens. */
async function limit(tokens: number): Promise<void> {
  await beside('Settings');
  const field = page.getByLabel('An answer has at most');
  if (!(await field.isVisible())) await page.getByText('Length of answers').click();
  await field.fill(String(tokens));
}

/** Loads the chosen model with room for 1,024 tokens, for greedy answers. */
async function load(): Promise<void> {
  await page.getByLabel('Context', { exact: true }).selectOption('1024');
  await p.button('Load it').click();
  await page.getByRole('textbox', { name: 'Your turn' }).waitFor();
  await beside('Settings');
  await page.getByText('How tokens are drawn').click();
  await page.getByLabel('Temperature').fill('0');
  await limit(LIMIT);
}

async function ask(question: string): Promise<string> {
  const draft = page.getByRole('textbox', { name: 'Your turn' });
  await draft.fill(question);
  await draft.press('Enter');
  await page.getByText(ENDED).waitFor();
  return (await answers().last().innerText()).trim();
}

describe('Chat', () => {
  it('says plainly what is no model, and keeps nothing of it', async () => {
    await p.open(site.url, 'chat');
    const wrong = join(v.profile, 'wrong.gguf');
    writeFileSync(wrong, '<!doctype html><title>404</title>');
    await pick(wrong);
    await page.getByRole('alert').getByText(/is a web page, not a model/).waitFor();
    writeFileSync(wrong, `GGUF\u0003\0\0\0${'x'.repeat(5000)}`);
    await pick(wrong);
    await page.getByRole('alert').getByText(/not what it should be, or is damaged/).waitFor();
    await p.button('Delete wrong.gguf').click();
    await p.button('Delete it').click();
    await page.getByText('None yet.').waitFor();
  });

  it('takes a file, and answers as the native program does', async () => {
    await pick(join(models, NAME));
    await page.getByRole('heading', { name: NAME, level: 2 }).waitFor();
    await lookAt('chat-forecast');
    await load();
    expect(await ask(QUESTION)).toBe(native().trim());
    await page.getByText(/tokens a second/).waitFor();
  });

  it('ends at a text that it is told to, and says which bias it cannot read', async () => {
    await p.button('New conversation').click();
    await beside('Settings');
    await page.getByText('Words', { exact: true }).click();
    await page.getByLabel('End at').fill('.');
    expect(await ask(QUESTION)).toBe(native().split('.')[0]!.trim());
    await page.getByLabel('End at').fill('');
    await page.getByLabel('More or less likely').fill('blue');
    await p.button('New conversation').click();
    const draft = page.getByRole('textbox', { name: 'Your turn' });
    await draft.fill(QUESTION);
    await draft.press('Enter');
    await page.getByRole('alert').getByText(/have "blue"/).waitFor();
    await page.getByLabel('More or less likely').fill('');
    expect(await ask(QUESTION)).toBe(native().trim());
  });

  it('stops, answers anew, and begins anew', async () => {
    await limit(1024);
    const draft = page.getByRole('textbox', { name: 'Your turn' });
    await draft.fill('Tell me a very long story.');
    await draft.press('Enter');
    await expect.poll(() => answers().count()).toBe(2);
    await draft.press('Escape');
    await page.getByText('Stopped.').waitFor();
    await p.button('New conversation').click();
    await limit(LIMIT);
    expect(await answers().count()).toBe(0);
    const first = await ask('Say hello.');
    await p.button('Answer anew').click();
    await p.button('Other answer (2)').waitFor();
    expect((await answers().last().innerText()).trim()).toBe(first);
  });

  it('cuts an answer at its limit, and goes on with it to what it would have been', async () => {
    await p.button('New conversation').click();
    await limit(8);
    const draft = page.getByRole('textbox', { name: 'Your turn' });
    await draft.fill(QUESTION);
    await draft.press('Enter');
    await page.getByText('As long as an answer may be.').waitFor();
    const cut = (await answers().last().innerText()).trim();
    expect(native().startsWith(cut)).toBe(true);
    await limit(LIMIT - 8);
    await p.button('Go on').click();
    await page.getByText('As long as an answer may be.').waitFor({ state: 'detached' });
    await page.getByText(ENDED).waitFor();
    await limit(LIMIT);
    expect((await answers().last().innerText()).trim()).toBe(native().trim());
  });

  it.each(LOOKS)('looks as it should on a $device in $colorScheme colours', async (look) => {
    const { device, colorScheme } = look;
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(SIZES[device]);
    await lookAt(`chat-talk-${device}-${colorScheme}`);
    for (const name of ['Conversations', 'Models', 'Settings'] as const) {
      await beside(name);
      await lookAt(`chat-${name.toLowerCase()}-${device}-${colorScheme}`);
    }
    await p.button('Close this side').click();
    await page.setViewportSize(SIZES.desktop);
  });

  it('keeps conversations: through a reload, by name, with settings, out and in again', async () => {
    await beside('Settings');
    await page.getByLabel('System prompt').fill('You are brief.');
    const answer = await ask('And what is two and two?');
    await page.reload();
    await p.ready();
    await expect.poll(() => answers().last().innerText()).toBe(answer);
    expect(await page.getByText('And what is two and two?').count()).toBeGreaterThan(0);
    await p.button(`Load ${NAME}`).click();
    await page.getByRole('textbox', { name: 'Your turn' }).waitFor();
    await beside('Settings');
    expect(await page.getByLabel('System prompt').inputValue()).toBe('You are brief.');
    expect(await ask('Say it again.')).not.toBe('');

    // Another one, found by a word of the first; deleted, and back.
    await beside('Conversations');
    const list = page.getByRole('list', { name: 'Conversations', exact: true });
    const before = await list.getByRole('listitem').count();
    await p.button('New conversation').click();
    await ask('Name a colour.');
    await expect.poll(() => list.getByRole('listitem').count()).toBe(before + 1);
    await p.button('Rename Name a colour.').click();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Colours');
    await p.button('Save').click();
    await p.button('Delete Colours').click();
    await expect.poll(() => list.getByRole('listitem').count()).toBe(before);
    await p.button('Undo').click();
    await list.getByText('Colours').waitFor();

    const coming = page.waitForEvent('download');
    await p.button('Export Colours as Markdown').click();
    const path = join(v.profile, 'colours.md');
    await (await coming).saveAs(path);
    expect(readFileSync(path, 'utf8')).toMatch(/^# Colours\n\n## System\n\nYou are brief\.\n\n## You\n\nName a/);
    await page.locator('input[type=file][aria-label="Import"]').setInputFiles(path);
    await page.getByText('A conversation is here from colours.md.').waitFor();
    await expect.poll(() => list.getByText('Colours').count()).toBe(2);
  });

  it('says a turn otherwise, branches, and drops the oldest turns when the context is full', async () => {
    await p.button('New conversation').click();
    await beside('Conversations');
    await ask('Say hello.');
    await p.button('Edit this turn').click();
    await page.getByLabel('Say it otherwise').fill('Say goodbye.');
    await p.button('Send it').click();
    await expect.poll(() => answers().count()).toBe(1);
    await page.getByText(ENDED).waitFor();
    await page.getByRole('list', { name: 'Conversations', exact: true }).getByText('Say hello. (before an edit)').waitFor();
    await p.button('A new conversation from here').click();
    await page.getByRole('heading', { name: 'Say goodbye. (branch)' }).waitFor();

    const turns = Array.from({ length: 30 }, (_, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      text: `Number ${i}. ${'The quick brown fox jumps over the lazy dog. '.repeat(8)}`,
    }));
    const path = join(v.profile, 'long.json');
    writeFileSync(path, JSON.stringify({ turns }));
    await page.locator('input[type=file][aria-label="Import"]').setInputFiles(path);
    await page.locator('.chat-talk').filter({ hasText: 'Number 0.' }).click();
    await limit(LIMIT);
    await ask('And now?');
    await page.getByText(/The \d+ turns above do not fit into the context any more, and are not read\./).waitFor();
    expect(await answers().count()).toBe(16);
    // The longer context takes more of it; the conversation stays.
    await p.button('Load it with 2,048 tokens').click();
    await p.button('Load it with 2,048 tokens').waitFor({ state: 'detached' });
    await page.getByRole('textbox', { name: 'Your turn' }).waitFor();
    await ask('And then?');
    expect(await answers().count()).toBe(17);
    await lookAt('chat-kept');
  });

  it('finds the model again without a network, and deletes it', async () => {
    await page.setViewportSize(SIZES.desktop);
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
    await v.context.setOffline(true);
    await page.reload();
    await p.ready();
    await beside('Models');
    await p.button(`Choose ${NAME}`).click();
    await load();
    await p.button('New conversation').click();
    expect(await ask('Say hello.')).not.toBe('');
    await v.context.setOffline(false);
    await beside('Models');
    await p.button(`Delete ${NAME}`).click();
    await p.button('Delete it').click();
    await page.getByText('None yet.').waitFor();
    const left = await page.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const folder = await root.getDirectoryHandle('tinygpt-models');
      const names: string[] = [];
      for await (const name of folder.keys()) names.push(name);
      return names;
    });
    expect(left).toEqual([]);
  });
});
