// SPDX-License-Identifier: Apache-2.0
// main.js - waits for the worker, loads the page once more, and has threads then.
import { Engine } from './tinygpt/bundle/tinygpt.js';

await navigator.serviceWorker.register('./sw.js');
await navigator.serviceWorker.ready;
if (!crossOriginIsolated && !sessionStorage.getItem('loaded')) {
  // Once: a browser that is not isolated then will not be by another time.
  sessionStorage.setItem('loaded', 'yes');
  location.reload();
} else {
  const engine = await Engine.open();
  document.getElementById('state').textContent =
    `Ready: ${engine.info.build}, threads: ${engine.info.threads}`;
}
