// SPDX-License-Identifier: Apache-2.0
/*
 * chat.mjs FOLDER - third-party models in the modules against the native program: the same bits of
 * logits, the same ids of texts.
 *
 * The models are the tiny ones of test/golden/lm, which test_lm holds against transformers; they are
 * read from the host, piece by piece, as a page reads them. Scalar and simd builds have every bit of
 * the native scalar kernels, on any number of threads; relaxed ones come within 1e-5 of the largest
 * logit. Ends with "N passed, N failed". Needs Node 24, as train.mjs does.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

import { load } from './load.mjs';
import { openContext } from './run.mjs';

const folder = process.argv[2] ?? 'build';
const MODELS = 'test/golden/lm', TOKENIZERS = 'test/golden/tok';

const RUNS = ['scalar:1', 'simd:1', 'simd-mt:2', 'relaxed:1', 'relaxed-mt:2', 'simd-mt-64:2'];

/* Letters that normalisers change, words that splitters cut, and bytes that no vocabulary has. */
const TEXT = "I'm 23 — Ångström's  e\u0301tude ﬁne, naïve ＡＢＣ\n\n東京 ሀ 👍🏽\t\u0085x";
const FORMAT = -4, UNSUPPORTED = -9;
const OPS = ['matmul', 'embedding', 'rms_norm', 'rope', 'mamba2', 'mamba2_cached', 'experts'];

let passed = 0, failed = 0;
function same(what, have, want) {
    const good = JSON.stringify(have) === JSON.stringify(want);
    if (good) passed++;
    else failed++;
    if (!good) console.log(`${what}: want ${JSON.stringify(want)}, have ${JSON.stringify(have)}`);
}

const native = (...args) =>
    JSON.parse(execFileSync(`${folder}/test/wasm_native`, args, { encoding: 'utf8' }));
const numbersOf = (bits) => [...new Float32Array(Uint32Array.from(bits).buffer)];

function idsToMemory(w, ids) {
    return w.put(new Uint8Array(Int32Array.from(ids).buffer));
}

function logits(w, { ctx, call, made, out }, name, ids, vocab) {
    const model = made('tg_model_open', ctx, w.string(name));
    const session = made('tg_session_new', ctx, model, 0);
    call('tg_session_eval', session, idsToMemory(w, ids), w.pointer(ids.length), out);
    const bytes = w.copy(w.readPointer(out), 4 * vocab);
    w.c.tg_session_free(session);
    w.c.tg_model_free(model);
    return [...new Uint32Array(bytes.buffer)];
}

function idsOf(w, { ctx, call, made, out }, name) {
    w.files.set(name, readFileSync(`${TOKENIZERS}/${name}`));
    const tokenizer = made('tg_tokenizer_open', ctx, w.string(name));
    const text = new TextEncoder().encode(TEXT), ids = w.c.tg_wasm_alloc(w.pointer(4096));
    call('tg_tokenizer_encode', ctx, tokenizer, w.put(text), w.pointer(text.length), 0, ids,
         w.pointer(1024), out);
    const n = w.view().getUint32(w.at(out), true);
    w.c.tg_tokenizer_free(tokenizer);
    return [...new Int32Array(w.copy(ids, 4 * n).buffer)];
}

/* A module comes without its test cases, and takes those alone that were built with it. */
function checkKernels(w, { ctx, call, out }, build) {
    const check = (op) =>
        w.c.tg_check_kernels(ctx, w.string(op), w.c.tg_wasm_on_check(), w.pointer(9), out);
    const others = Buffer.from(w.cases);
    others.writeUInt32LE(others.readUInt32LE(0) + 4);
    same(`${build}: kernels without test cases`, check('rope'), UNSUPPORTED);
    same(`${build}: test cases of another module`, w.setCases(others), FORMAT);
    same(`${build}: test cases that are cut short`, w.setCases(w.cases.subarray(0, -4)), FORMAT);
    same(`${build}: test cases and a byte`, w.setCases(Buffer.concat([w.cases, Buffer.alloc(1)])), FORMAT);
    same(`${build}: test cases`, w.setCases(w.cases), 0);
    for (const op of OPS) {
        let checks = 0;
        w.listeners[9] = () => { checks++; };
        call('tg_check_kernels', ctx, w.string(op), w.c.tg_wasm_on_check(), w.pointer(9), out);
        same(`${build}: kernels of ${op} were checked`, checks > 0, true);
        same(`${build}: kernels of ${op} that are wrong`, w.view().getUint32(w.at(out), true), 0);
    }
}

/* The Makefile's WASM_LACKS_FAMILIES: refused by name. */
const LACKED = {
    'qwen35.gguf': /architecture: want one of.* have 'qwen35'/,
    'nemotron.gguf': /architecture: want one of.* have 'nemotron_h'/,
    'gemma4.gguf': /architecture: want one of.* have 'gemma4'/,
};

function isRefused(w, { ctx, made }, name) {
    try {
        made('tg_model_open', ctx, w.string(name));
    } catch (e) {
        return LACKED[name].test(e.message);
    }
    return false;
}

async function run(build, threads) {
    const w = await load(folder, build, threads), engine = openContext(w, threads);
    const files = readdirSync(MODELS).filter((name) => name.endsWith('.gguf'));
    for (const file of files) w.files.set(file, readFileSync(`${MODELS}/${file}`));
    for (const file of files.filter((name) => !/-0000[2-9]-of-/.test(name))) {
        if (LACKED[file]) {
            same(`${build}: ${file} is refused by name`, isRefused(w, engine, file), true);
            continue;
        }
        const ids = [3, 8, 23, 0, 35, 32, 39, 8, 35];
        const want = native('logits', `${MODELS}/${file}`, ...ids.map(String));
        const have = logits(w, engine, file, ids, want.length);
        if (build.includes('relaxed')) {
            const numbers = numbersOf(want), largest = Math.max(...numbers.map(Math.abs));
            const worst = Math.max(...numbersOf(have).map((x, i) => Math.abs(x - numbers[i])));
            same(`${build}: ${file}: logits within 1e-5 of native`, worst <= 1e-5 * largest, true);
        } else {
            same(`${build}: ${file}: bits of the logits`, have, want);
        }
    }
    for (const file of ['byte_bpe.json', 'char_bpe.json', 'unigram.json', 'wordpiece.json'])
        same(`${build}: ${file}: ids`, idsOf(w, engine, file),
             native('ids', `${TOKENIZERS}/${file}`, TEXT));
    if (threads === 1 || build.includes('relaxed')) checkKernels(w, engine, build);
    w.c.tg_context_free(engine.ctx);
    await w.close();
}

for (const item of RUNS) {
    const [build, threads] = item.split(':');
    await run(build, Number(threads));
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
