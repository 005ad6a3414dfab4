// SPDX-License-Identifier: Apache-2.0
/**
 * fetch.e2e.ts - the program's page fetches a model from another host, over http as a machine of a
 * local network has it, which breaks off and refuses: each time the page says what happened and what
 * to do, and what came is not asked for again.
 *
 *   TG_MODELS   folder of tools/setup.sh's models; ../.cache/models
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import type { Visit } from './browser';
import { findings } from './looking';
import type { Playground } from './page';
import type { Site } from './servers';
import { onFreshStages } from './stage';

const web = resolve(import.meta.dirname, '..');
const NAME = 'SmolLM2-135M-Instruct.Q4_1.gguf';
const BODY = readFileSync(join(web, process.env['TG_MODELS'] ?? '../.cache/models', NAME));
const STALLS = 30e6;
const BREAKS = 60e6;

let host: Server;
let url: string;
/** Where each answer began. */
let begun: number[];

let site: Site;
let v: Visit;
let p: Playground;
let page: Page;

onFreshStages((stage) => {
  ({ site, v, p } = stage);
  page = p.page;
});

/** The first answer comes to a halt, the second breaks, the third comes to the end. */
beforeEach(async () => {
  begun = [];
  host = createServer((request, response) => {
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Access-Control-Allow-Headers', 'Range');
    const refused = { '/gated.gguf': 401, '/none.gguf': 404 }[request.url ?? ''];
    if (refused || request.method === 'OPTIONS') {
      response.writeHead(refused ?? 204).end();
      return;
    }
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    begun.push(from);
    response.writeHead(from > 0 ? 206 : 200, { 'Content-Length': BODY.length - from, ETag: '"1"' });
    const end = [STALLS, BREAKS][begun.length - 1];
    if (end === undefined) response.end(BODY.subarray(from));
    else response.write(BODY.subarray(from, end), () => end === BREAKS && response.destroy());
  });
  await new Promise<void>((ready) => host.listen(0, '127.0.0.1', ready));
  url = `http://127.0.0.1:${(host.address() as AddressInfo).port}/`;
});
afterEach(async () => {
  host.closeAllConnections();
  host.close();
});

async function fetchIt(address: string): Promise<void> {
  await page.getByLabel('Or an address').fill(address);
  await p.button('Fetch').click();
}

it('a copy goes on after a reload and after a connection that broke, and refusals say what to do', async () => {
  await p.open(site.url, 'chat');
  await p.isolated();
  await p.ready();
  await fetchIt(`${url}gated.gguf`);
  const said = page.getByRole('alert');
  await said.getByText(/does not give this file to everybody\. .*download it there/).waitFor();
  await fetchIt(`${url}none.gguf`);
  await said.getByText(/has nothing at this address \(404\)/).waitFor();
  await fetchIt(`${url}model.gguf`);
  // Of the 30 MB that are sent; a browser keeps the last few to itself until more come.
  await page.getByText(/^(2[4-9]|30)(\.\d)? MB of 98 MB, [23]\d %$/).waitFor();
  await page.reload();
  await p.ready();
  await page.getByText(/^2\d(\.\d)? MB of 98 MB are here$/).waitFor();
  await p.button('Go on with model.gguf').click();
  await said.getByText(/^The connection to .* broke .* What came so far is kept/).waitFor();
  expect(await findings(page)).toEqual([]);
  await p.button('Go on with model.gguf').click();
  await page.getByRole('heading', { name: 'model.gguf', level: 2 }).waitFor();
  expect(begun).toHaveLength(3);
  expect(begun[1]).toBeGreaterThan(16e6);
  expect(begun[2]).toBeGreaterThan(begun[1]!);
  const stored = await page.evaluate(async () => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('tinygpt-models');
    const names = [];
    for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) {
      names.push(name);
    }
    const journal = names.find((name) => name.endsWith('.journal'))!;
    return (await (await folder.getFileHandle(journal)).getFile()).text();
  });
  expect(stored).toContain(createHash('sha256').update(BODY).digest('hex'));
  // The browser's own words for what was refused and what broke.
  v.errors.splice(0, v.errors.length, ...v.errors.filter((e) => !e.includes(url)));
});
