/*
 * engine.mjs - one engine in a worker of its own, in Node and in a browser alike: it opens a module,
 * trains or writes when told to, and answers how long each step took.
 *
 *     { op: 'open', bytes, build, threads, preset }    -> { flop }, of a training step
 *     { op: 'train' | 'decode', n }                    -> [ms of each step or token]
 *     { op: 'profile', n }                             -> [{ op, variant, count, ms, gflop }]
 *     { op: 'slices', budget }                         -> { name: longest slice in ms }
 *
 * Its threads are workers that run this same file.
 */
import { instantiate, runThread } from '../../test/wasm/module.mjs';
import { newTrainer, openContext, preset, step } from '../../test/wasm/run.mjs';
import { slicesOf } from './slices.mjs';

const inNode = typeof process === 'object';
const { Worker: NodeWorker, parentPort } = inNode ? await import('node:worker_threads') : {};
const post = inNode ? (m) => parentPort.postMessage(m) : (m) => postMessage(m);

function startThread(data) {
    const worker = inNode ? new NodeWorker(new URL(import.meta.url))
                          : new Worker(import.meta.url, { type: 'module' });
    const ready = new Promise((resolve) => {
        if (inNode) worker.once('message', resolve);
        else worker.onmessage = resolve;
    });
    worker.postMessage({ op: 'thread', data });
    return ready;
}

const TEMPERATURE = 0; /* offset in tg_sample_options */

/* Greedy, one token after the other, as `tinygpt bench decode`: a full window begins anew. */
function newDecoder(w, engine, shape) {
    const { c } = w, { ctx, call, made, out } = engine;
    const model = made('tg_model_new', ctx, shape.config, 42n);
    const session = made('tg_session_new', ctx, model, 0);
    const options = c.tg_wasm_alloc(w.pointer(256));
    c.tg_sample_options_default(options);
    w.view().setFloat64(w.at(options) + TEMPERATURE, 0, true);
    const token = c.tg_wasm_alloc(w.pointer(16));
    w.view().setInt32(w.at(token), 10, true);
    let drawn = 0n, used = 0;
    return () => {
        if (used === shape.ctx) call('tg_session_rewind', session, w.pointer((used = 0)));
        call('tg_session_eval', session, token, w.pointer(1), w.pointer(0));
        call('tg_session_sample', session, options, drawn++, token);
        used++;
        return out;
    };
}

let w, engine, shape, trainer, decode;

function timed(n, run) {
    const ms = [];
    for (let i = 0; i < n; i++) {
        const start = performance.now();
        run();
        ms.push(performance.now() - start);
    }
    return ms;
}

/* Rows of tg_profile_row: two names, a count, then ms, gflop and gbytes. */
function profile(n) {
    const rows = [], word = w.pointer === BigInt ? 8 : 4;
    w.listeners[5] = (row) => {
        const at = w.at(row), view = w.view(), numbers = Math.ceil((3 * word) / 8) * 8;
        rows.push({
            op: w.text(w.readPointer(row)), variant: w.text(w.readPointer(row + w.pointer(word))),
            count: view.getUint32(at + 2 * word, true),
            ms: view.getFloat64(at + numbers, true), gflop: view.getFloat64(at + numbers + 8, true),
        });
    };
    engine.call('tg_trainer_profile', trainer.trainer, n, w.c.tg_wasm_on_profile(), w.pointer(5));
    return rows;
}

const ops = {
    async thread({ data }) {
        await runThread(data, () => post('ready'));
    },
    async open({ bytes, build, threads, preset: name }) {
        const module = await WebAssembly.compile(bytes);
        w = await instantiate(module, build, { threads, startThread });
        engine = openContext(w, threads);
        shape = preset(w, name);
        const { layers: L, width: C, vocab: V, ctx: T, batch: B } = shape;
        return { flop: 6 * B * T * (12 * L * C * C + V * C) + 6 * L * B * T * T * C };
    },
    train({ n, name }) {
        trainer ??= newTrainer(w, engine, { name, steps: 1000000 });
        return timed(n, () => step(w, engine, trainer.trainer));
    },
    decode({ n }) {
        decode ??= newDecoder(w, engine, shape);
        return timed(n, decode);
    },
    profile({ n, name }) {
        trainer ??= newTrainer(w, engine, { name, steps: 1000000 });
        return profile(n);
    },
    slices: (message) => slicesOf(w, engine, shape, message),
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
