/*
 * train.mjs BUILD - both WebAssembly modules against the native program: same losses, same text.
 *
 * Each of the three makes a text of stories, trains a model on it, and lets it write. native.c is
 * the same run in C; it prints what this file computes. All are the scalar class, so every bit has
 * to agree. Ends with "N passed, N failed", as every test.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const build = process.argv[2] ?? 'build';
const SEED = 42n, TEXT_BYTES = 60000n, STEPS = 50n, NEW_TOKENS = 100;

/* Instantiates a module; C's callbacks go to listeners[user]. */
async function load(path) {
    const listeners = [];
    const files = new Map(), saves = [];
    const imports = {
        now_ms: () => performance.now(),
        unix_s: () => Date.now() / 1000,
        on_text: (user, bytes, n) => listeners[user](bytes, n) ?? 0,
        on_cancel: () => 0,
        on_check: (user) => listeners[user](),
        save_begin: (path) => saves.push({ path: text(path), parts: [] }) - 1,
        save_write: (i, bytes, n) => (saves[i].parts.push(copy(bytes, n)), 0),
        save_end: (i, commit) => {
            if (commit) files.set(saves[i].path, Buffer.concat(saves[i].parts));
            return 0;
        },
    };
    const module = new WebAssembly.Module(readFileSync(path));
    for (const { name } of WebAssembly.Module.imports(module)) imports[name] ??= () => 0;
    const { exports: c } = await WebAssembly.instantiate(module, { tinygpt: imports });
    /* Views are made anew each time: a call may have grown the memory. */
    const copy = (at, n) => Buffer.from(new Uint8Array(c.memory.buffer, at, n));
    const view = () => new DataView(c.memory.buffer);
    const text = (at) => {
        const bytes = new Uint8Array(c.memory.buffer, at);
        return Buffer.from(bytes.subarray(0, bytes.indexOf(0))).toString();
    };
    const put = (bytes) => {
        const at = c.tg_wasm_alloc(bytes.length);
        new Uint8Array(c.memory.buffer, at, bytes.length).set(bytes);
        return at;
    };
    const string = (s) => put(Buffer.from(s + '\0'));
    return { c, copy, view, text, put, string, listeners, files };
}

/* Offsets into the structs of tinygpt.h for wasm32: 64-bit members are aligned to 8 bytes. */
const OPTIONS_STEPS = 0, OPTIONS_BATCH = 8, OPTIONS_LR = 16;
const REPORT_LOSS_HASH = 72;
const PRESET_CONFIG = 4;

async function run(path) {
    const w = await load(path), { c } = w;
    const out = c.tg_wasm_alloc(1024);
    let ctx = 0;
    const ok = (status, what) => {
        if (status === 0) return;
        const message = ctx ? w.text(c.tg_context_error(ctx)) : '';
        throw new Error(`${what}: status ${status}: ${message}`);
    };
    const made = () => w.view().getUint32(out, true);

    ok(c.tg_context_new(0, out), 'context');
    ctx = made();
    const pieces = [];
    w.listeners[7] = (bytes, n) => { pieces.push(w.copy(bytes, n)); };
    ok(c.tg_stories(SEED, TEXT_BYTES, c.tg_wasm_on_text(), 7), 'stories');
    const story = Buffer.concat(pieces);
    const at = w.put(story);
    ok(c.tg_text_from_memory(ctx, at, story.length, out), 'text');
    c.tg_wasm_free(at, story.length);
    const source = made();
    ok(c.tg_model_new(ctx, c.tg_preset_find(w.string('tiny')) + PRESET_CONFIG, SEED, out), 'model');
    const model = made();

    const options = c.tg_wasm_alloc(256);
    c.tg_train_options_default(options);
    w.view().setBigInt64(options + OPTIONS_STEPS, STEPS, true);
    w.view().setInt32(options + OPTIONS_BATCH, 16, true);
    w.view().setFloat64(options + OPTIONS_LR, 2e-3, true);
    ok(c.tg_trainer_new(ctx, model, source, options, out), 'trainer');
    const trainer = made();
    const start = performance.now();
    for (let i = 0n; i < STEPS; i++) ok(c.tg_trainer_step(trainer, out), 'step');
    const ms = (performance.now() - start) / Number(STEPS);
    const hash = w.view().getBigUint64(out + REPORT_LOSS_HASH, true).toString(16).padStart(16, '0');
    const loss = w.view().getFloat64(out + 8, true);

    const written = [];
    w.listeners[8] = (bytes, n) => { written.push(w.copy(bytes, n)); };
    const onText = c.tg_wasm_on_text();
    ok(c.tg_generate(ctx, model, w.string('Once'), 4, 0, NEW_TOKENS, onText, 8), 'generate');

    /* A saved run, opened again from memory, is the run that was saved. */
    ok(c.tg_trainer_save(trainer, w.string('run.tinygpt')), 'save');
    const saved = w.files.get('run.tinygpt');
    ok(c.tg_wasm_file_put(w.string('run.tinygpt'), w.put(saved), saved.length), 'put');
    ok(c.tg_file_check(ctx, w.string('run.tinygpt')), 'check');
    ok(c.tg_trainer_open(ctx, w.string('run.tinygpt'), source, STEPS + 1n, out), 'open');
    const reopened = made();
    const steps = c.tg_trainer_steps_done(reopened);
    const refused = c.tg_model_open(ctx, w.string('missing.tinygpt'), out);

    let checks = 0;
    w.listeners[9] = () => { checks++; };
    ok(c.tg_check_kernels(ctx, 0, c.tg_wasm_on_check(), 9, out), 'kernels');
    const wrong = w.view().getUint32(out, true);

    c.tg_trainer_free(reopened);
    c.tg_trainer_free(trainer);
    c.tg_model_free(model);
    c.tg_text_free(source);
    c.tg_context_free(ctx);
    const hex = Buffer.concat(written).toString('hex');
    return { hash, loss, ms, text: hex, steps, refused, checks, wrong };
}

let passed = 0, failed = 0;
function same(what, have, want) {
    if (have === want) passed++;
    else failed++;
    if (have !== want) console.log(`${what}: want ${want}, have ${have}`);
}

function show(name, r) {
    const speed = `${r.ms.toFixed(2)} ms a step`;
    console.log(`${name.padEnd(7)} loss ${r.loss.toFixed(6)}  hash ${r.hash}  ${speed}`);
}
const native = JSON.parse(execFileSync(`${build}/test/wasm_native`, { encoding: 'utf8' }));
show('native', native);
for (const variant of ['scalar', 'simd']) {
    const r = await run(`${build}/wasm/tinygpt-${variant}.wasm`);
    show(variant, r);
    same(`${variant}: hash of the losses`, r.hash, native.hash);
    same(`${variant}: sampled text`, r.text, native.text);
    same(`${variant}: steps of the reopened run`, r.steps, STEPS);
    same(`${variant}: opening a file that is not there`, r.refused, -3);
    same(`${variant}: kernels were checked against the references`, r.checks > 1000, true);
    same(`${variant}: kernels that are wrong`, r.wrong, 0);
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
