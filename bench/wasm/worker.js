/*
 * worker.js - runs one tile for a while, when told to. The same in Node and in a browser: the
 * driver gives it `receive` and `post`.
 */
'use strict';

function serve(receive, post) {
  let tiles, steps;
  receive(async ({ bytes, name, ms }) => {
    if (bytes) {
      const { instance } = await WebAssembly.instantiate(bytes);
      tiles = instance.exports;
      steps = tiles.steps();
      return post('ready');
    }
    const [rows, columns] = name.slice(5).split('x').map(Number);
    const flop = 2 * rows * columns * steps;
    /* Short runs: a neighbour on the machine can only take speed away, and cannot hit all of them. */
    const turns = Math.ceil(2e6 / flop);
    let best = 0;
    for (const end = performance.now() + ms; performance.now() < end;) {
      const start = performance.now();
      for (let i = 0; i < 20; i++) tiles[name](turns);
      best = Math.max(best, (20 * flop * turns) / (performance.now() - start));
    }
    post(best / 1e6);
  });
}

if (typeof require === 'function') {
  const { parentPort } = require('node:worker_threads');
  serve((f) => parentPort.on('message', f), (x) => parentPort.postMessage(x));
} else {
  serve((f) => { onmessage = (e) => f(e.data); }, (x) => postMessage(x));
}
