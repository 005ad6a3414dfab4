// SPDX-License-Identifier: Apache-2.0
/*
 * module.mjs - a module of build/wasm made usable, as os_wasm.h asks; the same in Node and in a
 * browser. load.mjs is the part of Node, bench/wasm/engine.mjs that of a browser.
 *
 * Everything here takes and gives addresses as the module does: numbers in the 32-bit builds,
 * BigInts in the 64-bit one. `pointer` makes one, `at` gives the place in the memory.
 */
const PAGE = 65536;

export const isWide = (build) => build.endsWith('-64');
export const hasThreads = (build) => build.includes('-mt');

/* maximumBytes 0: as far as the module can reach. */
export function newMemory(build, maximumBytes = 0) {
    const number = isWide(build) ? BigInt : Number;
    const reach = isWide(build) ? 262144 : 65536;
    const maximum = number(maximumBytes ? Math.floor(maximumBytes / PAGE) : reach);
    const limits = { initial: number(256), maximum, shared: hasThreads(build) };
    if (isWide(build)) limits.address = 'i64';
    return new WebAssembly.Memory(limits);
}

/* Every import that a module asks for: those given, and a stub for the rest. */
export function importsOf(module, memory, given) {
    const tinygpt = { ...given };
    for (const { module: from, name } of WebAssembly.Module.imports(module))
        if (from === 'tinygpt') tinygpt[name] ??= () => 0;
    return { env: { memory }, tinygpt };
}

/* The whole life of a thread: called in a worker with what the engine posted to it. */
export async function runThread({ module, memory, thread }, post) {
    const imports = importsOf(module, memory, { now_ms: () => performance.now() });
    const { exports: c } = await WebAssembly.instantiate(module, imports);
    post('ready');
    try {
        c.tg_wasm_thread_main(thread);
    } catch (error) {
        c.tg_wasm_thread_died(thread);
        throw error;
    }
}

/*
 * The engine's instance. startThread({ module, memory, thread }) makes a worker that calls
 * runThread, and resolves when that is ready. C's callbacks go to listeners[user].
 */
export async function instantiate(module, build, { threads = 1, maximumBytes, startThread } = {}) {
    const wide = isWide(build), memory = newMemory(build, maximumBytes);
    const pointer = wide ? BigInt : Number;
    const at = (address) => (wide ? Number(address) : address >>> 0);
    /* Views are made anew each time: a call may have grown the memory. What is read is copied. */
    const copy = (address, n) => new Uint8Array(memory.buffer, at(address), Number(n)).slice();
    const view = () => new DataView(memory.buffer);
    const text = (address) => {
        const bytes = new Uint8Array(memory.buffer, at(address));
        return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
    };
    const listeners = [], files = new Map(), saves = [], opened = [];
    const imports = importsOf(module, memory, {
        now_ms: () => performance.now(),
        unix_s: () => Date.now() / 1000,
        on_text: (user, bytes, n) => listeners[Number(user)](bytes, n) ?? 0,
        on_profile: (user, row) => listeners[Number(user)](row),
        on_check: (user, check) => listeners[Number(user)](check),
        file_open: (name) => (files.has(text(name)) ? opened.push(files.get(text(name))) - 1 : -1),
        file_size: (i) => opened[i].length,
        file_read: (i, offset, to, n) => {
            const part = opened[i].subarray(offset, offset + Number(n));
            new Uint8Array(memory.buffer, at(to), part.length).set(part);
            return pointer(part.length);
        },
        save_begin: (path) => saves.push({ path: text(path), parts: [] }) - 1,
        save_write: (i, bytes, n) => (saves[i].parts.push(copy(bytes, n)), 0),
        save_end: (i, commit) => {
            if (commit) files.set(saves[i].path, join(saves[i].parts));
            return 0;
        },
    });
    const { exports: c } = await WebAssembly.instantiate(module, imports);
    c.tg_wasm_machine_set(maximumBytes || Infinity, threads);
    for (let i = 1; i < threads; i++)
        await startThread({ module, memory, thread: c.tg_wasm_thread_new() });
    const put = (bytes) => {
        const to = c.tg_wasm_alloc(pointer(bytes.length));
        if (at(to) === 0) throw new Error(`no memory for ${bytes.length} bytes`);
        new Uint8Array(memory.buffer, at(to), bytes.length).set(bytes);
        return to;
    };
    const string = (s) => put(new TextEncoder().encode(s + '\0'));
    const readPointer = (from) =>
        wide ? view().getBigUint64(at(from), true) : view().getUint32(at(from), true);
    const pointerBytes = wide ? 8 : 4;
    const writePointer = (to, offset, value) => wide
        ? view().setBigUint64(at(to) + offset, BigInt(value), true)
        : view().setUint32(at(to) + offset, Number(value), true);
    return { c, build, memory, pointer, pointerBytes, writePointer, readPointer, at, copy, view,
             text, put, string, listeners, files };
}

export function join(parts) {
    const all = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
    let n = 0;
    for (const part of parts) {
        all.set(part, n);
        n += part.length;
    }
    return all;
}
