// SPDX-License-Identifier: Apache-2.0
/// <reference types="vite/client" />
/**
 * pwa.ts - the page's side of its service worker (sw.ts): works without a network, gets threads on
 * hosts that do not isolate it, and changes to a new version when the person says so.
 *
 * The page is loaded again by itself at most once a visit, and only while nobody has touched it;
 * afterwards it asks. It never asks, and never changes, while a run is going.
 */
import { controller, runState } from './run';
import { notify } from './notices';

/** sw.ts knows this word, too. */
const USE_NEW = 'use-new-version';
const RELOADED = 'tinygpt-reloaded-for-threads';

/** The page came through the worker and is not isolated all the same: loading again is vain. */
const anotherLoadIsVain = (() => {
  try {
    return !!navigator.serviceWorker?.controller && sessionStorage.getItem(RELOADED) !== null;
  } catch {
    return false;
  }
})();

/** Whether anybody has begun to do something here, which a reload would take away. */
let touched = false;
for (const type of ['pointerdown', 'keydown', 'drop'] as const) {
  addEventListener(type, () => (touched = true), { capture: true, once: true });
}

function running(): boolean {
  const { phase } = runState();
  return phase === 'running' || phase === 'preparing';
}

/** At once, or when the run that is going has come to its end or a pause. */
function whenStill(work: () => void): void {
  if (!running()) {
    work();
    return;
  }
  const stop = controller.state.subscribe(() => {
    if (running()) return;
    stop();
    work();
  });
}

/** True the first time in this visit; false where a visit cannot be remembered. */
function firstReload(): boolean {
  try {
    if (sessionStorage.getItem(RELOADED)) return false;
    sessionStorage.setItem(RELOADED, '1');
    return true;
  } catch {
    return false;
  }
}

async function reload(): Promise<void> {
  await controller.pause();
  location.reload();
}

/** The worker's headers count from the next load on. */
function loadForThreads(): void {
  if (!touched && !running() && firstReload()) {
    location.reload();
    return;
  }
  if (anotherLoadIsVain) return;
  whenStill(() => {
    notify(
      'info',
      'Once this page is loaded again it can use more than one core of this machine.',
      {
        label: 'Load it again',
        run: () => {
          firstReload();
          void reload();
        },
      },
    );
  });
}

function isolate(): void {
  if (globalThis.crossOriginIsolated || typeof SharedArrayBuffer === 'function') return;
  if (navigator.serviceWorker.controller) loadForThreads();
  else navigator.serviceWorker.addEventListener('controllerchange', loadForThreads, { once: true });
}

function offerVersion(worker: ServiceWorker): void {
  whenStill(() => {
    notify('info', 'A new version of this page is ready. Your run and your text stay.', {
      label: 'Use it now',
      run: () => {
        void controller.pause().then(() => {
          navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), {
            once: true,
          });
          worker.postMessage(USE_NEW);
        });
      },
    });
  });
}

/** Without a controller the worker is the first one, and there is nothing old to replace. */
function watchVersions(registration: ServiceWorkerRegistration): void {
  const look = (worker: ServiceWorker | null) => {
    if (worker?.state === 'installed' && navigator.serviceWorker.controller) offerVersion(worker);
  };
  look(registration.waiting);
  registration.addEventListener('updatefound', () => {
    const worker = registration.installing;
    worker?.addEventListener('statechange', () => look(worker));
  });
}

/** Nothing here is needed for training, so nothing here may fail loudly. */
export async function startPwa(): Promise<void> {
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return;
  isolate();
  try {
    watchVersions(await navigator.serviceWorker.register('./sw.js', { updateViaCache: 'none' }));
  } catch {
    // Private windows of some browsers have no service workers.
  }
}
