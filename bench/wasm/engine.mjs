// SPDX-License-Identifier: Apache-2.0
/*
 * engine.mjs - one engine in a worker of its own, in Node and in a browser alike: it does what it is
 * told and answers how long that took.
 *
 *     { op: 'tiles', path }                  opens a module of ceiling.c     -> names of its tiles
 *     { op: 'tile', name, ms }               the best short run of a while   -> GFLOP/s
 *     { op: 'open', path, build, threads, preset }         -> { flop } of a training step
 *     { op: 'train', n, least }              n steps, and for so many ms     -> [ms of each]
 *     { op: 'decode', n, least }             windows, token after token      -> [ms a token of each]
 *     { op: 'profile', n }                   -> [{ op, variant, count, ms, gflop }], of a step
 *
 * Paths begin at the root of the tree. An engine's threads are workers that run this same file.
 */
import { instantiate, runThread } from '../../test/wasm/module.mjs';
import { newTrainer, openContext, preset, step } from '../../test/wasm/run.mjs';

const inNode = typeof process === 'object';
const { Worker: NodeWorker, parentPort } = inNode ? await import('node:worker_threads') : {};
const post = inNode ? (m) => parentPort.postMessage(m) : (m) => postMessage(m);

async function compile(path) {
  const url = new URL(`../../${path}`, import.meta.url);
  if (!inNode) return WebAssembly.compileStreaming(fetch(url));
  return WebAssembly.compile(await (await import('node:fs/promises')).readFile(url));
}

async function readText(path) {
  const url = new URL(`../../${path}`, import.meta.url);
  if (!inNode) return (await fetch(url)).text();
  return (await import('node:fs/promises')).readFile(url, 'utf8');
}

function startThread(data) {
  const worker = inNode
    ? new NodeWorker(new URL(import.meta.url))
    : new Worker(import.meta.url, { type: 'module' });
  const ready = new Promise((resolve) => {
    if (inNode) worker.once('message', resolve);
    else worker.onmessage = resolve;
  });
  worker.postMessage({ op: 'thread', data });
  return ready;
}

const TEMPERATURE = 8; /* offset in tg_sample_options, of which the beginning is set */

/* Greedy, one token after the other, as `tinygpt bench decode`: a window that is full begins anew. */
function newDecoder(w, engine, shape) {
  const { c } = w, { ctx, call, made } = engine;
  const session = made('tg_session_new', ctx, made('tg_model_new', ctx, shape.config, 42n), 0);
  const options = c.tg_wasm_alloc(w.pointer(256)), token = c.tg_wasm_alloc(w.pointer(16));
  c.tg_sample_options_init(options, w.pointer(16));
  w.view().setFloat64(w.at(options) + TEMPERATURE, 0, true);
  w.view().setInt32(w.at(token), 10, true);
  let drawn = 0n;
  return () => {
    call('tg_session_rewind', session, w.pointer(0));
    const start = performance.now();
    for (let i = 0; i < shape.ctx; i++) {
      call('tg_session_eval', session, token, w.pointer(1), w.pointer(0));
      call('tg_session_sample', session, options, drawn++, token);
    }
    return (performance.now() - start) / shape.ctx;
  };
}

/* Rows of tg_profile_row: two names, a count, then ms, gflop and gbytes. */
function profile(n) {
  const rows = [], word = w.pointer === BigInt ? 8 : 4;
  w.listeners[5] = (row) => {
    const at = w.at(row), view = w.view(), numbers = Math.ceil((3 * word) / 8) * 8;
    rows.push({
      op: w.text(w.readPointer(row)),
      variant: w.text(w.readPointer(row + w.pointer(word))),
      count: view.getUint32(at + 2 * word, true),
      ms: view.getFloat64(at + numbers, true),
      gflop: view.getFloat64(at + numbers + 8, true),
    });
  };
  engine.call('tg_trainer_profile', trainer(), w.pointer(n), w.c.tg_wasm_on_profile(),
    w.pointer(5));
  return rows;
}

/* Of a forward and a backward pass over the lower half of the attention. */
function stepFlop({ layers: L, width: C, vocab: V, ctx: T, batch: B }) {
  return 6 * B * T * (12 * L * C * C + V * C) + 6 * L * B * T * T * C;
}

let tiles, w, engine, shape, made, decode;
const trainer = () => {
  made ??= newTrainer(w, engine, { name: shape.name, steps: 1000000 });
  return made.trainer;
};

function repeat({ n = 1, least = 0 }, once) {
  const results = [], end = performance.now() + least;
  while (results.length < n || performance.now() < end) results.push(once());
  return results;
}

const ops = {
  async thread({ data }) {
    await runThread(data, () => post('ready'));
  },
  async tiles({ path }) {
    tiles = (await WebAssembly.instantiate(await compile(path))).exports;
    return Object.keys(tiles).filter((name) => name.startsWith('tile_'));
  },
  /* Short runs: a neighbour on the machine can only take speed away, and cannot hit all of them. */
  tile({ name, ms }) {
    const [rows, columns] = name.slice(5).split('x').map(Number);
    const flop = 2 * rows * columns * tiles.steps(), turns = Math.ceil(2e6 / flop);
    let best = 0;
    for (const end = performance.now() + ms; performance.now() < end;) {
      const start = performance.now();
      for (let i = 0; i < 20; i++) tiles[name](turns);
      best = Math.max(best, (20 * flop * turns) / (performance.now() - start));
    }
    return best / 1e6;
  },
  async open({ path, build, threads, preset: name }) {
    w = await instantiate(await compile(path), build, { threads, startThread });
    w.c.tg_wasm_stories_set(w.string(await readText(path.replace(/[^/]*$/, 'stories.txt'))));
    engine = openContext(w, threads);
    shape = { ...preset(w, name), name };
    return { flop: stepFlop(shape) };
  },
  train(message) {
    const t = trainer();
    return repeat(message, () => {
      const start = performance.now();
      step(w, engine, t);
      return performance.now() - start;
    });
  },
  decode(message) {
    decode ??= newDecoder(w, engine, shape);
    return repeat(message, decode);
  },
  profile: ({ n }) => profile(n),
};

async function answer(message) {
  try {
    const reply = await ops[message.op](message);
    if (message.op !== 'thread') post({ reply });
  } catch (error) {
    post({ error: String(error.stack ?? error) });
  }
}

if (inNode) parentPort?.on('message', answer);
else onmessage = ({ data }) => void answer(data);
