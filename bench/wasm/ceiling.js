/*
 * ceiling.js - all tiles of one module on one worker and on two at once; the best of some rounds.
 * The same in Node and in a browser: `start` makes a worker and answers a function that sends it a
 * message and awaits the reply.
 */
'use strict';

async function ceiling(start, bytes, names, rounds = 5, ms = 60) {
  const workers = [start(), start()];
  await Promise.all(workers.map((ask) => ask({ bytes })));
  const best = {};
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      const alone = await workers[0]({ name, ms });
      const both = await Promise.all(workers.map((ask) => ask({ name, ms })));
      const row = (best[name] ??= { one: 0, two: 0 });
      row.one = Math.max(row.one, alone);
      row.two = Math.max(row.two, both[0] + both[1]);
    }
  }
  return best;
}

if (typeof module === 'object') module.exports = { ceiling };
