// SPDX-License-Identifier: Apache-2.0
/*
 * chat.mjs [MODEL] - Chat in Chromium against the native program, and against wllama's CPU path in
 * the same Chromium: a model file, the same questions, in turns, on two threads. Decoding is a
 * greedy answer to a short question; prefill is what comes before the first token of an answer to a
 * question of some 500 tokens. Rounds are added to bench/history/chat-DATE.json, and medians are
 * those of the day's.
 *
 *     make web build && node bench/wasm/chat.mjs --rounds 4 --wllama
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { root } from './hosts.mjs';
import { summary } from './stats.mjs';
import { openWllama } from './wllama.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '7' }, wllama: { type: 'boolean' } },
});
const SHORT = 'Why is the sky blue?';
const LONG = 'The quick brown fox jumps over the lazy dog and runs away. '.repeat(38).trim();

const SMOLLM2 = join(root, '.cache/models/SmolLM2-135M-Instruct.Q4_1.gguf');
const model = resolve(positionals[0] ?? SMOLLM2);
const program = resolve(process.env.TG_PROGRAM ?? join(root, 'build/tinygpt'));
const dist = resolve(process.env.TG_DIST ?? join(root, 'web/dist'));

/* Tokens a second of reading and of writing. */
function native() {
  const ask = (question, tokens) => {
    const args = ['chat', model, '--temp', '0', '--ctx', '1024', '--threads', '2', '--json'];
    return JSON.parse(execFileSync(program, [...args, '--tokens', String(tokens)], {
      input: `${question}\n`, encoding: 'utf8',
    }));
  };
  const read = ask(LONG, 1);
  return [read.prompt_tokens / read.prompt_ms * 1000, ask(SHORT, 400).tok_per_s];
}

async function openPage() {
  const { chromium } = createRequire(join(root, 'web/package.json'))('playwright-core');
  const server = spawn(program, ['serve', '--json', '--port', '0', '--dir', dist]);
  const [line] = await once(createInterface(server.stdout), 'line');
  const browser = await chromium.launch({
    executablePath: process.env.TG_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'],
  });
  const page = await browser.newPage();
  await page.goto(`${JSON.parse(line).url}#chat`);
  const button = (name) => page.getByRole('button', { name, exact: true });
  const chooser = page.waitForEvent('filechooser');
  await button('Add a file').click();
  await (await chooser).setFiles(model);
  await page.getByRole('heading', { name: basename(model), level: 2 }).waitFor({ timeout: 120e3 });
  await page.getByLabel('Context', { exact: true }).selectOption('1024');
  await button('Load it').click();
  await page.getByText('How tokens are drawn').click();
  await page.getByLabel('Temperature').fill('0');
  const draft = page.getByRole('textbox', { name: 'Your turn' });

  /* The numbers of the view, by their names. */
  const stat = async (name) => {
    const rest = page.locator('dt', { hasText: name }).locator('xpath=following-sibling::dd');
    return (await rest.allInnerTexts()).map((text) => parseFloat(text.replaceAll(',', '')));
  };
  const milliseconds = async () => {
    const text = await page.locator('dt', { hasText: 'First token' })
        .locator('xpath=following-sibling::dd[1]').innerText();
    return parseFloat(text) * (text.endsWith(' ms') ? 1 : 1000);
  };
  return {
    browser,
    version: browser.version(),
    async round() {
      await draft.fill(LONG);
      await draft.press('Enter');
      await page.locator('.chat-assistant .chat-text').filter({ hasText: /\S/ }).waitFor();
      await draft.press('Escape');
      await page.getByText('Stopped.').waitFor();
      const [, tokens] = await stat('First token');
      const prefill = tokens / await milliseconds() * 1000;
      await button('New conversation').click();
      await draft.fill(SHORT);
      await draft.press('Enter');
      await page.getByText(/^(Done|Stopped|The context is full.*)\.$/).waitFor({ timeout: 120e3 });
      const [decode] = await stat('Tokens a second');
      await button('New conversation').click();
      return [prefill, decode];
    },
    async end() {
      await browser.close();
      server.kill();
    },
  };
}

/* After every round: who is interrupted keeps those that are whole. */
function save(rounds) {
  const lines = rounds.map((round) => JSON.stringify(round, (_, x) =>
    (typeof x === 'number' ? Number(x.toPrecision(5)) : x)));
  writeFileSync(path, `[${lines.join(',\n')}]\n`);
}

const page = await openPage();
const wllama = options.wllama && (await openWllama(page.browser, model, { SHORT, LONG }));
const commit = execFileSync('git', ['-C', root, 'rev-parse', '--short=12', 'HEAD'],
                            { encoding: 'utf8' }).trim();
const day = new Date().toISOString().slice(0, 10);
const path = join(root, `bench/history/chat-${day}.json`);
const rounds = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : [];
await page.round();
await wllama?.round();
for (let i = 0; i < Number(options.rounds); i++) {
  const sides = { page: page.round, native, wllama: wllama?.round };
  const round = { commit, model: basename(model), chromium: page.version };
  if (wllama) round.peer = wllama.version;
  const names = Object.keys(sides).filter((name) => sides[name]);
  for (const name of i % 2 ? names.reverse() : names) round[name] = await sides[name]();
  rounds.push(round);
  save(rounds);
}
await page.end();
wllama?.end();
console.log(`${basename(model)}, chromium ${page.version}, ${wllama?.version ?? ''} two threads`);
['prefill', 'decode'].forEach((what, k) => {
  const here = rounds.filter((r) => r.model === basename(model));
  const tell = (name, values, digits) => {
    if (!values.length) return;
    const { median, low, high, n } = summary(values);
    console.log(`  ${what.padEnd(8)}${name.padEnd(22)}${median.toFixed(digits).padStart(8)}` +
                `  ${low?.toFixed(digits)} .. ${high?.toFixed(digits)}  (${n})`);
  };
  const both = here.filter((r) => r.wllama);
  tell('page, tokens a second', here.map((r) => r.page[k]), 1);
  tell('native', here.map((r) => r.native[k]), 1);
  tell('wllama', both.map((r) => r.wllama[k]), 1);
  tell('page / native', here.map((r) => r.page[k] / r.native[k]), 2);
  tell('page / wllama', both.map((r) => r.page[k] / r.wllama[k]), 2);
});
