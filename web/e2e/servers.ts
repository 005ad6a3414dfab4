// SPDX-License-Identifier: Apache-2.0
/**
 * servers.ts - the two ways in which the page is served: by `tinygpt serve`, with all headers, and
 * by a host that knows nothing but files.
 *
 *   TG_PROGRAM   the program; ../build/tinygpt
 *   TG_DIST      the built page; dist
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { extname, join, normalize, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const web = resolve(import.meta.dirname, '..');
export const program = resolve(web, process.env['TG_PROGRAM'] ?? '../build/tinygpt');
export const dist = resolve(web, process.env['TG_DIST'] ?? 'dist');

export interface Site {
  /** With a slash at its end. */
  url: string;
  stop(): Promise<void>;
}

/** `tinygpt serve` on a free port, or on the one that it had before. */
export async function serve(port = 0): Promise<Site> {
  const child = spawn(program, ['serve', '--json', '--port', String(port), '--dir', dist], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await Promise.race([
    once(createInterface(child.stdout), 'line') as Promise<[string]>,
    once(child, 'exit').then(([code]) => {
      throw new Error(`tinygpt serve has ended with exit code ${code}`);
    }),
  ]);
  const told = JSON.parse(line) as { url: string };
  return { url: told.url, stop: () => ended(child) };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.wasm': 'application/wasm',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webmanifest': 'application/manifest+json',
};

export interface PlainOptions {
  /** Folder of the site; the built page. */
  folder?: string;
  /** Path that the site lies under, as on a host with many pages. */
  under?: string;
  headers?: Record<string, string>;
}

/** A static host that sends types and nothing else. */
export async function servePlain(o: PlainOptions = {}): Promise<Site & { folder: string }> {
  const under = o.under ?? '/';
  const site = { folder: o.folder ?? dist };
  const server: Server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://x').pathname);
    const name = path.endsWith('/') ? `${path}index.html` : path;
    const file = join(site.folder, normalize(name.slice(under.length - 1)));
    if (!path.startsWith(under) || !existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'text/plain', ...o.headers });
    createReadStream(file).pipe(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return Object.assign(site, {
    url: `http://127.0.0.1:${port}${under}`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}
