// SPDX-License-Identifier: Apache-2.0
// sw.js - adds the headers that shared memory takes to whatever the host sends: without them there
// is one thread.
const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

async function isolated(request) {
  const answer = await fetch(request);
  if (answer.status === 0) return answer; // of another origin, which nobody may look into
  const headers = new Headers(answer.headers);
  for (const [name, value] of Object.entries(ISOLATION)) headers.set(name, value);
  return new Response(answer.body, { status: answer.status, headers });
}

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => event.respondWith(isolated(event.request)));
