// SPDX-License-Identifier: Apache-2.0
/*
 * wllama.mjs - the peer of chat.mjs: llama.cpp in WebAssembly, by the npm package @wllama/wllama, in
 * a page of its own of the same browser, with the same headers. It lies in .cache/wllama, where it
 * is installed when it is missing. Numbers are its own timings; no layer goes to a GPU.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join, relative } from 'node:path';

import { root, serveTree } from './hosts.mjs';

const VERSION = '3.13.0', FOLDER = '.cache/wllama';
const ESM = `${FOLDER}/node_modules/@wllama/wllama/esm`;

export async function openWllama(browser, model, { SHORT, LONG }) {
  if (!existsSync(join(root, ESM))) {
    mkdirSync(join(root, FOLDER), { recursive: true });
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--prefix', join(root, FOLDER),
                         `@wllama/wllama@${VERSION}`]);
  }
  const server = await serveTree(), page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const threads = await page.evaluate(async ({ esm, url }) => {
    const { Wllama, LoggerWithoutDebug } = await import(`${esm}/index.js`);
    const w = new Wllama({ default: `${esm}/wasm/wllama.wasm` },
                         { suppressNativeLog: true, logger: LoggerWithoutDebug });
    const file = await (await fetch(url)).blob();
    await w.loadModel([file], { n_threads: 2, n_ctx: 1024, n_gpu_layers: 0 });
    globalThis.wllama = w;
    return w.isMultithread() ? w.getNumThreads() : 1;
  }, { esm: `/${ESM}`, url: `/${relative(root, model)}` });
  const timings = (content, tokens) => page.evaluate(async ([text, n]) => {
    const answer = await globalThis.wllama.createChatCompletion({
      messages: [{ role: 'user', content: text }],
      max_tokens: n, temperature: 0, cache_prompt: false,
    });
    return answer.timings;
  }, [content, tokens]);
  return {
    version: `wllama ${VERSION} on ${threads}`,
    async round() {
      const read = await timings(LONG, 1), written = await timings(SHORT, 100);
      return [read.prompt_per_second, written.predicted_per_second];
    },
    end: () => server.close(),
  };
}
