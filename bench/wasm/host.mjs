// SPDX-License-Identifier: Apache-2.0
/*
 * host.mjs - the engines of one Node or one tab. The driver asks, all engines that it names do the
 * same at once, and their answers come back together:
 *
 *     ask({ engines: ['a', 'b'], message })    -> [answer, answer]
 *
 * An engine is made when it is first named; { op: 'end' } ends it.
 */
const inNode = typeof process === 'object';
const { Worker: NodeWorker } = inNode ? await import('node:worker_threads') : {};
const engines = new Map();

function start() {
  const url = new URL('./engine.mjs', import.meta.url);
  const worker = inNode ? new NodeWorker(url) : new Worker(url, { type: 'module' });
  let answered;
  const receive = (data) => answered(data);
  if (inNode) worker.on('message', receive).on('error', (e) => receive({ error: String(e) }));
  else {
    worker.onmessage = (e) => receive(e.data);
    worker.onerror = (e) => receive({ error: String(e.message) });
  }
  return {
    ask(message) {
      const answer = new Promise((resolve) => { answered = resolve; });
      worker.postMessage(message);
      return answer;
    },
    end: () => worker.terminate(),
  };
}

async function askOne(name, message) {
  if (message.op === 'end') {
    engines.get(name)?.end();
    engines.delete(name);
    return null;
  }
  if (!engines.has(name)) engines.set(name, start());
  const { reply, error } = await engines.get(name).ask(message);
  if (error) throw new Error(`${name}: ${message.op}: ${error}`);
  return reply;
}

export function ask({ engines: names, message }) {
  return Promise.all(names.map((name) => askOne(name, message)));
}

if (inNode && process.send) {
  process.on('message', async (question) => {
    try {
      process.send({ reply: await ask(question) });
    } catch (error) {
      process.send({ error: String(error.stack ?? error) });
    }
  });
}
