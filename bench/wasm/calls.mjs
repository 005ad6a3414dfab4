// SPDX-License-Identifier: Apache-2.0
/*
 * calls.mjs [FOLDER] [BUILD] [PRESET[:write] ..] - how long the engine's worker is deaf: the longest
 * slice of every call that the page makes, by preset, in milliseconds. With :write, of those alone
 * that Write makes: behemoth is trained in a 64-bit module only.
 *
 * While a call or a poll runs, the worker sees neither a stop nor another call. Polls get the
 * page's budget of 20 ms. A call that is no job counts as one slice: session_new and probe_new,
 * which take milliseconds. Two threads; files are in memory, so that what a browser takes to read
 * them is not in it.
 *
 *     call          longest   whole   slices
 *     trainer_new      24.1   380.2       17
 */
import { load } from '../../test/wasm/load.mjs';
import { openContext, preset, stories } from '../../test/wasm/run.mjs';

const [folder = 'build', build = 'simd-mt', ...names] = process.argv.slice(2);
const presets = names.length ? names : ['tiny', 'small', 'medium', 'large', 'xl', 'huge'];
const THREADS = 2, BUDGET_MS = 20, PENDING = 1;
const V3 = 0, V2_F32 = 1, V2_F16 = 2, V2_INT4 = 3;

const w = await load(folder, build, THREADS), { c } = w;
const engine = openContext(w, THREADS), { ctx, made } = engine;
const slot = c.tg_wasm_alloc(w.pointer(8)), none = w.pointer(0);
let worst = 0, rows = [];

/* Runs tg_NAME_job to its end where there is one, else tg_NAME; every step of it is timed. */
function timed(name, label, ...args) {
    const slices = [];
    const timing = (call) => {
        const start = performance.now(), status = call();
        slices.push(performance.now() - start);
        if (status < 0) throw new Error(`${name}: ${w.text(c.tg_context_error(ctx))}`);
        return status;
    };
    if (c[`tg_${name}_job`]) {
        timing(() => c[`tg_${name}_job`](...args, slot));
        const job = w.readPointer(slot);
        while (timing(() => c.tg_job_poll(job, BUDGET_MS)) === PENDING);
        timing(() => (c.tg_job_free(job), 0));
    } else {
        timing(() => c[`tg_${name}`](...args));
    }
    const longest = Math.max(...slices), whole = slices.reduce((sum, ms) => sum + ms, 0);
    worst = Math.max(worst, longest);
    rows.push([label, longest, whole, slices.length]);
}

const out = (bytes = 8) => c.tg_wasm_alloc(w.pointer(bytes));
function making(name, label, ...args) {
    const at = out();
    timed(name, label, ...args, at);
    return w.readPointer(at);
}
const path = (name) => w.string(name);
const text8 = (s) => [w.string(s), w.pointer(s.length)];

const story = stories(w, 42, 1 << 20);
const text = made('tg_text_from_memory', ctx, w.put(story), w.pointer(story.length));

function options(shape) {
    const at = out(256);
    c.tg_train_options_init(at, w.pointer(32));
    w.view().setBigInt64(w.at(at) + 8, 3n, true); /* steps */
    w.view().setInt32(w.at(at) + 16, shape.batch, true);
    return at;
}

function measureWriting(model, shape) {
    const session = making('session_new', 'session_new', ctx, model, 0);
    const write = (label, prompt) => {
        const what = out(256), wide = w.pointerBytes === 8, [from, n] = text8(prompt);
        c.tg_generation_init(what, w.pointer(wide ? 168 : 88));
        w.writePointer(what, wide ? 8 : 4, from);
        w.writePointer(what, wide ? 16 : 8, n);
        w.writePointer(what, wide ? 56 : 32, w.pointer(40)); /* n_tokens */
        timed('session_continue', label, session, what, none);
    };
    write('generate', 'Once upon a time, there was ');
    write('generate: prompt, slide', 'Once upon a time. '.repeat(shape.ctx)); /* a full cache */
    c.tg_session_free(session);
}

function measure(name) {
    const [of, what] = name.split(':');
    const shape = preset(w, of), o = options(shape);
    if (what === 'write') {
        const model = making('model_new', 'model_new', ctx, shape.config, 42n);
        measureWriting(model, shape);
        c.tg_model_free(model);
        return;
    }
    timed('forecast_run', 'forecast', ctx, shape.config, text, o, out(4096));
    const model = making('model_new', 'model_new', ctx, shape.config, 42n);
    const trainer = making('trainer_new', 'trainer_new', ctx, model, text, o);
    for (const n of ['first', 'second']) timed('trainer_step', `step, the ${n}`, trainer, out(512));
    timed('trainer_step', 'step, the last: eval', trainer, out(512));
    timed('trainer_eval', 'trainer_eval', trainer, out());
    timed('trainer_save', 'trainer_save', trainer, path('run'));
    timed('trainer_save_best', 'trainer_save_best', trainer, path('best'));
    timed('model_convert', 'convert run to v2', ctx, path('run'), path('v2'), V2_F32, 0, none);
    w.files.delete('v2');
    measureWriting(model, shape);
    const n = Math.min(shape.ctx, 128);
    const probe = making('probe_new', 'probe_new', ctx, model, w.pointer(n));
    const tokens = w.put(new Uint8Array(new Int32Array(n).fill(97).buffer));
    timed('probe_run', 'probe_run', probe, tokens, none, none, none);
    c.tg_probe_free(probe);
    c.tg_trainer_free(trainer);
    const again = making('trainer_open', 'trainer_open', ctx, path('run'), text, 0n);
    c.tg_trainer_free(again);
    for (const [kind, label] of [[V3, 'v3'], [V2_F16, 'f16'], [V2_INT4, 'int4']]) {
        timed('model_save', `model_save ${label}`, model, path('m'), kind);
        const other = making('model_open', `model_open ${label}`, ctx, path('m'));
        c.tg_model_free(other);
    }
    timed('file_check', 'file_check', ctx, path('best'));
    timed('model_eval', 'model_eval', ctx, model, text, 0.1, 64, out());
    c.tg_model_free(model);
    w.files.clear();
}

timed('measure_peak', 'measure_peak', ctx, out());
for (const name of presets) {
    measure(name);
    console.log(`${build}, ${THREADS} threads, ${name}: milliseconds\n` +
                `${'call'.padEnd(24)}${'longest'.padStart(9)}${'whole'.padStart(11)}  slices`);
    for (const [label, longest, whole, n] of rows)
        console.log(`${label.padEnd(24)}${longest.toFixed(1).padStart(9)}` +
                    `${whole.toFixed(1).padStart(11)}${String(n).padStart(8)}`);
    rows = [];
}
console.log(`the longest of all: ${worst.toFixed(1)} ms`);
process.exit(0);
