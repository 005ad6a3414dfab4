// SPDX-License-Identifier: Apache-2.0
/*
 * run.mjs - the run that every build is compared by, and what it needs of tinygpt.h.
 */
import { join } from './module.mjs';

/* Offsets into the structs of tinygpt.h: 64-bit members are aligned to 8 bytes. */
const OPTIONS_STEPS = 8, OPTIONS_BATCH = 16, OPTIONS_LR = 24;
/* What is set here is at the beginning of the structs; the library has defaults for the rest. */
const CONTEXT_OPTIONS_BYTES = 16, TRAIN_OPTIONS_BYTES = 32;
const REPORT_LOSS = 8, REPORT_LOSS_HASH = 72;

/* A context on a loaded module: `call` throws the core's message, `made` calls what makes. */
export function openContext(w, threads = 0) {
    const { c } = w;
    const out = c.tg_wasm_alloc(w.pointer(1024));
    let ctx = w.pointer(0);
    const check = (status, what) => {
        if (status === 0) return;
        const message = w.at(ctx) ? w.text(c.tg_context_error(ctx)) : '';
        throw new Error(`${what}: status ${status}: ${message}`);
    };
    const call = (name, ...args) => check(c[name](...args), name);
    const made = (name, ...args) => {
        call(name, ...args, out);
        return w.readPointer(out);
    };
    let options = w.pointer(0);
    if (threads) {
        options = c.tg_wasm_alloc(w.pointer(256));
        c.tg_context_options_init(options, w.pointer(CONTEXT_OPTIONS_BYTES));
        w.view().setUint32(w.at(options) + w.pointerBytes, threads, true);
    }
    ctx = made('tg_context_new', options);
    return { ctx, out, call, made };
}

export function stories(w, seed, bytes) {
    const parts = [];
    w.listeners[7] = (at, n) => { parts.push(w.copy(at, n)); };
    w.c.tg_stories(BigInt(seed), BigInt(bytes), w.c.tg_wasm_on_text(), w.pointer(7));
    return join(parts);
}

/* The configuration inside a preset, behind the pointer to its name; and its batch behind that. */
export function preset(w, name) {
    const config = w.c.tg_preset_find(w.string(name)) + w.pointer(w.pointer === BigInt ? 8 : 4);
    const [layers, width, heads, ctx, vocab, , batch] =
        Array.from({ length: 7 }, (_, i) => w.view().getInt32(w.at(config) + 4 * i, true));
    return { config, layers, width, heads, ctx, vocab, batch };
}

/* Text, model and trainer of a preset. lr 2e-3 as in native.c. */
export function newTrainer(w, engine, { name, steps, batch, seed = 42, textBytes = 60000, model }) {
    const { ctx, made } = engine;
    const story = stories(w, seed, textBytes), copy = w.put(story);
    const text = made('tg_text_from_memory', ctx, copy, w.pointer(story.length));
    w.c.tg_wasm_free(copy, w.pointer(story.length));
    const shape = preset(w, name);
    model ??= made('tg_model_new', ctx, shape.config, BigInt(seed));
    const options = w.c.tg_wasm_alloc(w.pointer(256)), at = w.at(options);
    w.c.tg_train_options_init(options, w.pointer(TRAIN_OPTIONS_BYTES));
    w.view().setBigInt64(at + OPTIONS_STEPS, BigInt(steps), true);
    w.view().setInt32(at + OPTIONS_BATCH, batch ?? shape.batch, true);
    w.view().setFloat64(at + OPTIONS_LR, 2e-3, true);
    const trainer = made('tg_trainer_new', ctx, model, text, options);
    return { text, model, trainer, shape };
}

export function step(w, { call, out }, trainer) {
    call('tg_trainer_step', trainer, out);
    const view = w.view(), at = w.at(out);
    return {
        loss: view.getFloat64(at + REPORT_LOSS, true),
        hash: view.getBigUint64(at + REPORT_LOSS_HASH, true).toString(16).padStart(16, '0'),
    };
}

/* The text that a model writes, as bytes. */
export function generate(w, { ctx, call }, model, prompt, tokens) {
    const parts = [];
    w.listeners[8] = (at, n) => { parts.push(w.copy(at, n)); };
    call('tg_generate', ctx, model, w.string(prompt), w.pointer(prompt.length), w.pointer(0),
         w.pointer(tokens), w.c.tg_wasm_on_text(), w.pointer(8));
    return join(parts);
}
