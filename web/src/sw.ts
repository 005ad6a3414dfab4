// SPDX-License-Identifier: Apache-2.0
/**
 * sw.ts - the page's one service worker: it keeps the page for use without a network, and isolates
 * it where the host cannot.
 *
 * Everything that belongs to one version of the page (scripts, styles) is fetched when the worker
 * is installed and is served from that cache alone, so versions never mix. A new version waits until
 * all tabs with the old one are closed, or until a person says so (ui/state/pwa.ts).
 *
 * Of the builds of the core, each larger than all scripts, a browser uses one or two: what this one
 * will take is fetched with the rest, and another when it is first asked for. It has to be of this
 * version, which its SHA-256 tells.
 *
 * Shared memory, and with it threads, takes three headers (COOP, COEP, CORP) on the page and its
 * parts. Many static hosts cannot send them; this worker adds them to whatever it serves, so the
 * page is isolated from the second load on.
 *
 * The list of files comes from the build (vite-plugin-pwa, injectManifest), which puts it in place
 * of self.__WB_MANIFEST.
 */

import { CACHE_PREFIX as PREFIX } from './ui/places';

/* TypeScript's types of a page lack those of service workers; these are the parts in use. */
interface WaitableEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface FetchEvent extends WaitableEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}
interface ServiceWorkerScope {
  readonly __WB_MANIFEST: readonly { url: string; revision: string | null }[];
  readonly registration: ServiceWorkerRegistration;
  readonly clients: { claim(): Promise<void> };
  readonly location: Location;
  skipWaiting(): Promise<void>;
  addEventListener(type: 'install' | 'activate', listener: (e: WaitableEvent) => void): void;
  addEventListener(type: 'fetch', listener: (e: FetchEvent) => void): void;
  addEventListener(type: 'message', listener: (e: MessageEvent) => void): void;
}
declare const self: ServiceWorkerScope;

/** What the page sends to a waiting worker when a person wants the new version. */
const USE_NEW = 'use-new-version';

const FILES = self.__WB_MANIFEST;
const CACHE = PREFIX + fingerprint(FILES.map((f) => `${f.url} ${f.revision ?? ''}`).join('\n'));

const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

/** FNV-1a: two lists of files need two names, nothing more. */
function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}

function address(url: string): string {
  return new URL(url, self.registration.scope).href;
}

// ------------------------------------------------------------------------------------ versions

/** A sign-in page of some network answers everything with HTML: that must not become a module. */
function isSound(url: string, response: Response): boolean {
  const html = response.headers.get('Content-Type')?.startsWith('text/html') ?? false;
  return response.ok && !response.redirected && html === url.endsWith('.html');
}

function isBuild(url: string): boolean {
  return /\.(wasm|cases)$/.test(url);
}

/** Smallest modules that only an engine with the feature takes (WebAssembly's own instructions:
 *  i8x16.popcnt of SIMD, f32x4.relaxed_madd). */
const HEAD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0];
const SIMD = [...HEAD, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
const RELAXED = [
  ...HEAD, 10, 19, 1, 17, 0, 65, 0, 253, 15, 65, 0, 253, 15, 65, 0, 253, 15, 253, 133, 2, 11,
];

/** The build that the page takes once it is isolated (lib/wasm.ts): its files, without their ends. */
function wantedBuild(): string {
  const has = (bytes: number[]) => WebAssembly.validate(new Uint8Array(bytes));
  const kind = has(RELAXED) ? 'relaxed' : has(SIMD) ? 'simd' : 'scalar';
  return `tinygpt-${kind}${navigator.hardwareConcurrency > 1 ? '-mt' : ''}.`;
}

function hexOf(digest: ArrayBuffer): string {
  return Array.from(new Uint8Array(digest), (b) => b.toString(16).padStart(2, '0')).join('');
}

/** Keeps what was fetched on the way. Where there is no room for it the page has it all the same. */
async function keep(cache: Cache, url: string, response: Response): Promise<void> {
  await cache.put(url, response).catch(() => {});
}

/** A build that is fetched when it is asked for; kept if it is this version's. */
async function fetchBuild(cache: Cache, url: string): Promise<Response> {
  const file = FILES.find((f) => address(f.url) === url);
  const response = await fetch(url, { cache: 'no-cache' });
  if (!file || !response.ok) return response;
  const digest = await crypto.subtle.digest('SHA-256', await response.clone().arrayBuffer());
  if (hexOf(digest) !== file.revision) return new Response(null, { status: 409 });
  await keep(cache, url, response.clone());
  return response;
}

/** All files or none; what the browser has already it only asks the host about. */
async function keepVersion(): Promise<void> {
  const cache = await caches.open(CACHE);
  const wanted = FILES.filter(({ url }) => !isBuild(url) || url.includes(`/${wantedBuild()}`));
  await Promise.all(
    wanted.map(async ({ url }) => {
      const response = await fetch(address(url), { cache: 'no-cache' });
      if (!isSound(url, response)) throw new Error(`${url}: the host sent something else`);
      await cache.put(address(url), response);
    }),
  );
}

async function dropOtherVersions(): Promise<void> {
  for (const name of await caches.keys()) {
    if (name.startsWith(PREFIX) && name !== CACHE) await caches.delete(name);
  }
}

/**
 * Takes this worker away once its host has no such page any more. Without that, a page that was
 * once served on a port of this machine would hide whatever is served there later.
 */
async function leaveIfReplaced(): Promise<void> {
  let answer: Response;
  try {
    answer = await fetch(self.location.href, { cache: 'no-store' });
  } catch {
    return; // no network, which is what the cache is for
  }
  const local = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(self.location.hostname);
  const html = answer.headers.get('Content-Type')?.startsWith('text/html') ?? false;
  if (answer.status === 404 || answer.status === 410 || (local && html)) {
    await self.registration.unregister();
    await Promise.all(
      (await caches.keys()).filter((n) => n.startsWith(PREFIX)).map((n) => caches.delete(n)),
    );
  }
}

// ------------------------------------------------------------------------------------- answers

function isolated(response: Response): Response {
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(ISOLATION)) headers.set(name, value);
  const { status, statusText } = response;
  return new Response(response.body, { status, statusText, headers });
}

/** The cached file of a request; settings in the page's own address name no other file. */
function fileOf(request: Request): string {
  const url = new URL(request.url);
  url.search = '';
  url.hash = '';
  return url.href === self.registration.scope ? address('index.html') : url.href;
}

/** The models that come with the page are not in the list: who never opens one never fetches it.
 *  One that was opened is kept, with the version that knows its size. */
async function fetched(cache: Cache, request: Request): Promise<Response> {
  const response = await fetch(request);
  const url = fileOf(request);
  if (url.startsWith(address('gallery/')) && isSound(url, response)) {
    await keep(cache, url, response.clone());
  }
  return response;
}

async function answer(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  const url = fileOf(request);
  const kept = await cache.match(url);
  if (kept) return isolated(kept);
  return isolated(await (isBuild(url) ? fetchBuild(cache, url) : fetched(cache, request)));
}

self.addEventListener('install', (event) => event.waitUntil(keepVersion()));

/**
 * Nothing waits for clients.claim(), which may not end: Firefox 153 was seen to hold the page already
 * while the claim, and with it the activation, stayed open beside an engine with threads. Whatever a
 * page asks for, a reload included, waits for the activation.
 */
self.addEventListener('activate', (event) => {
  event.waitUntil(dropOtherVersions());
  void self.clients.claim();
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const ours = new URL(request.url).origin === self.location.origin;
  if (!ours || request.method !== 'GET') return;
  event.respondWith(answer(request));
  if (request.mode === 'navigate') event.waitUntil(leaveIfReplaced());
});

self.addEventListener('message', (event) => {
  if (event.data === USE_NEW) void self.skipWaiting();
});

export {};
