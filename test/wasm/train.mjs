// SPDX-License-Identifier: Apache-2.0
/*
 * train.mjs FOLDER [BUILD:THREADS ...] - every module against the native program: same losses, same
 * text, the same op test.
 *
 * Each makes a text of stories, trains a model on it, and lets it write. native.c is the same run
 * in C; it prints what this file computes. Scalar and simd builds are the scalar class, on any
 * number of threads: every bit has to agree. Relaxed ones must come within 1e-5 of the loss, and
 * agree among each other. Ends with "N passed, N failed", as every test. Needs Node 24, which knows
 * relaxed SIMD and 64-bit memories.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';

import { load } from './load.mjs';
import { generate, newTrainer, openContext, preset, step } from './run.mjs';

const folder = process.argv[2] ?? 'build';
const STEPS = 50, NEW_TOKENS = 100;

const RUNS = ['scalar:1', 'simd:1', 'scalar-mt:1', 'scalar-mt:2', 'scalar-mt:3', 'simd-mt:1',
              'simd-mt:2', 'simd-mt:3', 'relaxed:1', 'relaxed-mt:1', 'relaxed-mt:2', 'relaxed-mt:3',
              'simd-mt-64:1', 'simd-mt-64:2', 'simd-mt-64:3'];

let passed = 0, failed = 0;
function same(what, have, want) {
    if (have === want) passed++;
    else failed++;
    if (have !== want) console.log(`${what}: want ${want}, have ${have}`);
}

/*
 * Token after token, all but the first are decoded with a copy of the weights (engine/copies.c); at
 * once, none is. The bits are the same, as long as nobody uses a copy of other weights.
 */
function sameLogits(w, { ctx, call, made }, what, model, between = () => {}) {
    const session = made('tg_session_new', ctx, model, 0), N = 6;
    const tokens = w.put(new Uint8Array(Int32Array.of(72, 101, 108, 108, 111, 33).buffer));
    const at = w.c.tg_wasm_alloc(w.pointer(8));
    const logits = (n) => {
        call('tg_session_rewind', session, w.pointer(0));
        for (let i = 0; i < N; i += n)
            call('tg_session_eval', session, tokens + w.pointer(4 * i), w.pointer(n), at);
        const bits = w.copy(w.readPointer(at), 256 * 4);
        return createHash('sha256').update(bits).digest('hex').slice(0, 16);
    };
    const before = logits(1);
    same(`${what}: logits of token after token`, before, logits(N));
    between();
    const after = logits(1);
    same(`${what}: the same after that`, after, logits(N));
    w.c.tg_session_free(session);
    return before !== after;
}

async function run(build, threads) {
    const w = await load(folder, build, threads), { c } = w;
    const engine = openContext(w, threads), { ctx, call, made, out } = engine;
    const { text, model, trainer } = newTrainer(w, engine, { name: 'tiny', steps: STEPS, batch: 16 });
    const start = performance.now();
    let last;
    for (let i = 0; i < STEPS - 1; i++) last = step(w, engine, trainer);
    const stepped = sameLogits(w, engine, build, model, () => { last = step(w, engine, trainer); });
    same(`${build}: a step changes the logits`, stepped, true);
    const ms = (performance.now() - start) / STEPS;
    const written = Buffer.from(generate(w, engine, model, 'Once', NEW_TOKENS)).toString('hex');

    /* A saved run is the run that was saved, from memory as from the host. */
    const path = w.string('run.tinygpt');
    call('tg_trainer_save', trainer, path);
    const saved = w.files.get('run.tinygpt'), reopened = [];
    call('tg_file_check', ctx, path);
    reopened.push(made('tg_trainer_open', ctx, path, text, BigInt(STEPS + 1)));
    w.files.delete('run.tinygpt');
    same(`${build}: putting a file`, c.tg_wasm_file_put(path, w.put(saved), w.pointer(saved.length)), 0);
    reopened.push(made('tg_trainer_open', ctx, path, text, BigInt(STEPS + 1)));
    const steps = reopened.map((t) => Number(c.tg_trainer_steps_done(t))).join();
    same(`${build}: steps of the reopened runs`, steps, `${STEPS},${STEPS}`);
    same(`${build}: opening a file that is not there`,
         c.tg_model_open(ctx, w.string('missing.tinygpt'), out), -3);

    /* All kernels of an ISA once: threads do not change what a kernel is given, and builds with
     * threads are linked of the same objects as those without. (chat.mjs checks some ops of those,
     * the long tests all.) A memory of 64 bits has other addresses. */
    if (threads === 1 && (build.includes('-mt') || process.env.TG_TEST_LONG)) {
        let checks = 0;
        w.listeners[9] = () => { checks++; };
        same(`${build}: setting the test cases`, w.setCases(w.cases), 0);
        call('tg_check_kernels', ctx, w.pointer(0), c.tg_wasm_on_check(), w.pointer(9), out);
        same(`${build}: kernels were checked against the references`, checks > 1000, true);
        same(`${build}: kernels that are wrong`, w.view().getUint32(w.at(out), true), 0);
    }
    for (const t of [...reopened, trainer]) c.tg_trainer_free(t);
    /* Of a model that is large enough for two workers. */
    if (threads > 1) {
        const large = made('tg_model_new', ctx, preset(w, 'large').config, 42n);
        sameLogits(w, engine, `${build}, large`, large);
        c.tg_model_free(large);
    }
    c.tg_model_free(model);
    c.tg_text_free(text);
    c.tg_context_free(ctx);
    await w.close();
    return { ...last, ms, text: written };
}

const show = (name, r) => console.log(
    `${name.padEnd(13)} loss ${r.loss.toFixed(6)}  hash ${r.hash}  ${r.ms.toFixed(2)} ms a step`);

async function compare(list) {
    const native = JSON.parse(execFileSync(`${folder}/test/wasm_native`, { encoding: 'utf8' }));
    show('native', native);
    const relaxed = [];
    for (const item of list) {
        const [build, threads] = item.split(':');
        const r = await run(build, Number(threads));
        show(item, r);
        if (build.startsWith('relaxed')) {
            same(`${item}: loss within 1e-5 of native`, Math.abs(r.loss - native.loss) <= 1e-5, true);
            relaxed.push(r);
            same(`${item}: bits of the first relaxed run`, r.hash + r.text,
                 relaxed[0].hash + relaxed[0].text);
        } else {
            same(`${item}: hash of the losses`, r.hash, native.hash);
            same(`${item}: sampled text`, r.text, native.text);
        }
    }
}

const given = process.argv.slice(3);
await compare(given.length ? given : RUNS);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
