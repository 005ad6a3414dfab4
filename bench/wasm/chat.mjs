/*
 * chat.mjs [MODEL] - Chat in Chromium against the native program: a model file, the same questions,
 * in turns, on two threads. Decoding is a greedy answer to a short question; prefill is what comes
 * before the first token of an answer to a question of some 500 tokens.
 *
 *     make web build && node bench/wasm/chat.mjs .cache/models/SmolLM2-135M-Instruct.Q4_1.gguf
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

import { root } from './hosts.mjs';
import { summary } from './stats.mjs';

const ROUNDS = 7;
const SHORT = 'Why is the sky blue?';
const LONG = 'The quick brown fox jumps over the lazy dog and runs away. '.repeat(38).trim();

const SMOLLM2 = join(root, '.cache/models/SmolLM2-135M-Instruct.Q4_1.gguf');
const model = resolve(process.argv[2] ?? SMOLLM2);
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

const page = await openPage();
console.log(`${basename(model)}, chromium ${page.version}, two threads`);
const rounds = [];
await page.round();
for (let i = 0; i < ROUNDS; i++) rounds.push({ page: await page.round(), native: native() });
await page.end();
['prefill', 'decode'].forEach((what, k) => {
  const tell = (name, values, digits) => {
    const { median, low, high } = summary(values);
    console.log(`  ${what.padEnd(8)}${name.padEnd(22)}${median.toFixed(digits).padStart(8)}` +
                `  ${low?.toFixed(digits)} .. ${high?.toFixed(digits)}`);
  };
  tell('page, tokens a second', rounds.map((r) => r.page[k]), 1);
  tell('native', rounds.map((r) => r.native[k]), 1);
  tell('page / native', rounds.map((r) => r.page[k] / r.native[k]), 2);
});
