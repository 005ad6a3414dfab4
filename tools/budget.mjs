// SPDX-License-Identifier: Apache-2.0
/*
 * budget.mjs FOLDER - is the built page within its budget? Counted by gzip, which every host knows:
 *
 *   the first view   what runs before and just after the first paint: the entry, Start, the engine
 *                    with its workers and the store's, and all that these import
 *   another view     what opening it loads beyond that
 *   everything       what the service worker keeps, without modules
 *   a module         each of the WebAssembly builds
 *
 * Each FILE.br must hold what FILE does, and the first view be as much smaller as brotli makes it.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';

const FIRST_BYTES = 95_000, FIRST_BROTLI_BYTES = 84_500, VIEW_BYTES = 43_000,
      ALL_BYTES = 262_000, MODULE_BYTES = 430_000;
const folder = process.argv[2] ?? 'web/dist';

const compressed = (path) =>
    execFileSync('gzip', ['-9c', path], { maxBuffer: 1 << 26 }).length;
const files = existsSync(folder) ? readdirSync(folder, { recursive: true }) : [];
const scripts = new Map(files.filter((name) => name.endsWith('.js')).map((name) => {
    const text = readFileSync(join(folder, name), 'utf8');
    // Chunks lie in one folder. What is imported by a call comes when it is called for.
    const imports = [...text.matchAll(/(?:from|import)\s*["']\.\/([^"']+\.js)["']/g)];
    return [basename(name), { name, bytes: compressed(join(folder, name)),
                              imports: imports.map((found) => found[1]) }];
}));

/** Names of scripts that begin with one of these, and all that they import. */
function closure(...starts) {
    const found = new Set();
    const visit = (name) => {
        if (found.has(name) || !scripts.has(name)) return;
        found.add(name);
        scripts.get(name).imports.forEach(visit);
    };
    for (const start of starts) {
        const matching = [...scripts.keys()].filter((name) => name.startsWith(`${start}-`));
        if (matching.length === 0) faults.push(`${folder}: there is no script named ${start}`);
        matching.forEach(visit);
    }
    return found;
}

const total = (names) => [...names].reduce((sum, name) => sum + scripts.get(name).bytes, 0);
const largest = (names) => [...names].sort((a, b) => scripts.get(b).bytes - scripts.get(a).bytes)
    .slice(0, 8).map((name) => `  ${scripts.get(name).bytes} ${name}`);

const faults = [];
const first = closure('index', 'start_view', 'engine', 'engine.worker', 'thread.worker', 'store.worker');
const sum = total(first);
if (sum > FIRST_BYTES) {
    faults.push(`first view: ${sum} bytes, want at most ${FIRST_BYTES}; the largest:`);
    faults.push(...largest(first));
}
const views = [...scripts.keys()].filter((name) => /_view-/.test(name) && !first.has(name));
let most = ['', 0];
for (const view of views) {
    const more = [...closure(view.replace(/-[^-]*\.js$/, ''))].filter((name) => !first.has(name));
    const bytes = total(more);
    if (bytes > most[1]) most = [view, bytes];
    if (bytes <= VIEW_BYTES) continue;
    faults.push(`${view}: ${bytes} bytes, want at most ${VIEW_BYTES}; the largest:`);
    faults.push(...largest(more));
}
const all = total(scripts.keys());
if (all > ALL_BYTES) faults.push(`all scripts: ${all} bytes, want at most ${ALL_BYTES}`);
let brotli = 0;
for (const [base, { name }] of scripts) {
    const packed = readFileSync(join(folder, `${name}.br`));
    if (first.has(base)) brotli += packed.length;
    if (!brotliDecompressSync(packed).equals(readFileSync(join(folder, name))))
        faults.push(`${name}.br: want what ${name} holds`);
}
if (brotli > FIRST_BROTLI_BYTES)
    faults.push(`first view: ${brotli} bytes by brotli, want at most ${FIRST_BROTLI_BYTES}`);
const modules = files.filter((name) => name.endsWith('.wasm'))
    .map((name) => [name, compressed(join(folder, name))]).sort((a, b) => b[1] - a[1]);
for (const [name, bytes] of modules) {
    if (bytes > MODULE_BYTES) faults.push(`${name}: ${bytes} bytes, want at most ${MODULE_BYTES}`);
}
if (scripts.size === 0 || modules.length === 0) faults.push(`${folder}: no page is built there`);
console.log(`compressed: first view ${sum} of ${FIRST_BYTES}, by brotli ${brotli} of ` +
            `${FIRST_BROTLI_BYTES}; most for another view ${most[1]} of ${VIEW_BYTES} (${most[0]}); ` +
            `all ${all} of ${ALL_BYTES}; largest module ${modules[0]?.[1]} of ${MODULE_BYTES}`);
for (const fault of faults) console.log(fault);
process.exit(faults.length ? 1 : 0);
