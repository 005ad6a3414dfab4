// SPDX-License-Identifier: Apache-2.0
/*
 * hosts.mjs - the places that engines run in: this Node, another Node, Chromium. Each answers
 * `ask` (host.mjs), and has a name with its version.
 */
import { execFileSync, fork } from 'node:child_process';
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { extname, join, normalize } from 'node:path';

export const root = new URL('../..', import.meta.url).pathname;
const NODE24 = process.env.TG_NODE24 ?? join(root, '.cache/node24/bin/node');

/* As web/e2e/browser.ts has them. */
const FLAGS = ['--no-sandbox'];
const TYPES = { '.mjs': 'text/javascript', '.js': 'text/javascript', '.wasm': 'application/wasm',
                '.html': 'text/html' };

async function node(path) {
  const version = execFileSync(path, ['--version'], { encoding: 'utf8' }).trim();
  const child = fork(new URL('./host.mjs', import.meta.url).pathname, [], {
    execPath: path,
    execArgv: version.startsWith('v20.') ? ['--experimental-wasm-relaxed-simd'] : [],
  });
  const ask = (question) => new Promise((resolve, reject) => {
    child.once('message', ({ reply, error }) => (error ? reject(new Error(error)) : resolve(reply)));
    child.send(question);
  });
  return { ask, version, end: () => child.kill() };
}

/* The tree, with the headers that shared memory asks for. `/` is an empty page. */
export async function serveTree() {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, 'http://host').pathname);
    response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
    response.setHeader('Cross-Origin-Embedder-Policy', 'require-corp');
    response.setHeader('Content-Type', TYPES[extname(path) || '.html'] ?? 'text/plain');
    if (path === '/') return response.end('<!doctype html><link rel="icon" href="data:,">');
    if (!existsSync(join(root, path))) return response.writeHead(404).end();
    createReadStream(join(root, path)).pipe(response);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return server;
}

async function chromium() {
  const { chromium: player } = createRequire(join(root, 'web/package.json'))('playwright-core');
  const browser = await player.launch({
    executablePath: process.env.TG_CHROMIUM ?? '/usr/bin/chromium', args: FLAGS,
  });
  const server = await serveTree();
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const ask = (question) => page.evaluate(async (q) => {
    const host = await import('/bench/wasm/host.mjs');
    return host.ask(q);
  }, question);
  return {
    ask, version: browser.version(),
    async end() {
      await browser.close();
      server.close();
    },
  };
}

const HOSTS = {
  node: () => node(process.execPath),
  node24: () => node(NODE24),
  chromium,
};
export const hostNames = Object.keys(HOSTS);
export const openHost = (name) => HOSTS[name]();
