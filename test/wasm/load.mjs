// SPDX-License-Identifier: Apache-2.0
/*
 * load.mjs - a module of build/wasm in Node, with its threads.
 *
 *     const w = await load('build', 'simd-mt', 2);      w.text(w.c.tg_version())  ...  w.close()
 *
 * The engine's instance lives in the caller's thread, which may sleep in Node; each of its threads
 * is a worker that runs this same file.
 */
import { readFileSync } from 'node:fs';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

import { instantiate, runThread } from './module.mjs';

export async function load(folder, build, threads = 1, maximumBytes = 0) {
    const module = new WebAssembly.Module(readFileSync(`${folder}/wasm/tinygpt-${build}.wasm`));
    const workers = [];
    const startThread = (data) => new Promise((ready, failed) => {
        const worker = new Worker(new URL(import.meta.url), { workerData: data });
        worker.once('message', ready).once('error', failed);
        workers.push(worker);
    });
    const w = await instantiate(module, build, { threads, maximumBytes, startThread });
    w.c.tg_wasm_stories_set(w.string(readFileSync(`${folder}/wasm/stories.txt`, 'utf8')));
    w.cases = readFileSync(`${folder}/wasm/tinygpt-${build}.cases`);
    w.setCases = (cases) => w.c.tg_wasm_cases_set(w.put(cases), w.pointer(cases.length));
    w.close = () => Promise.all(workers.map((worker) => worker.terminate()));
    return w;
}

if (!isMainThread && workerData?.thread)
    await runThread(workerData, (message) => parentPort.postMessage(message));
