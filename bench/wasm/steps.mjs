/*
 * steps.mjs [--chromium] [--build FOLDER] [--blocks N] [--json] TASK ...
 *
 *   train:PRESETS    milliseconds of a training step, all builds: the ceiling of the engine, two
 *                    threads against one and against two workers that know nothing of each other
 *   decode:PRESETS   tokens a second, against the native program with --isa avx2
 *   profile:PRESET   where the time of a step goes, on two threads
 *   slices:PRESETS   how long the engine is away at most, in Node
 *
 *     node bench/wasm/steps.mjs train:small,medium decode:small       this Node
 *     node bench/wasm/steps.mjs --chromium train:xl                   Debian's Chromium
 *
 * Engines of one preset live side by side and take turns, a block each, so that all meet the same
 * machine; the interval is that of the median with 95 % confidence, by order statistics. Ratios are
 * those of the blocks of one round. Needs make wasm, make build and, for Chromium, web/node_modules.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';

import { serve } from './server.mjs';

const require = createRequire(import.meta.url);
const { ceiling } = require('./ceiling.js');
const root = resolve(import.meta.dirname, '../..');
const { values: options, positionals: tasks } = parseArgs({
    allowPositionals: true,
    options: {
        chromium: { type: 'boolean' }, json: { type: 'boolean' },
        build: { type: 'string', default: 'build' }, blocks: { type: 'string', default: '5' },
    },
});
const rounds = Number(options.blocks);

/* ---------------------------------------------------------------------------------------- hosts */

/* A host makes engines: ask(message) -> reply. */
function nodeHost() {
    const start = () => {
        const worker = new Worker(new URL('engine.mjs', import.meta.url));
        const ask = (message) => new Promise((done, failed) => {
            worker.once('message', ({ reply, error }) => (error ? failed(Error(error)) : done(reply)));
            worker.once('error', failed);
            worker.postMessage(message);
        });
        return { ask, end: () => worker.terminate() };
    };
    const relaxed = WebAssembly.validate(readFileSync(`${options.build}/wasm/tinygpt-relaxed.wasm`));
    return {
        name: `Node ${process.version}`, relaxed, start, close: () => {},
        bytes: (build) => readFileSync(`${options.build}/wasm/tinygpt-${build}.wasm`),
        ceiling: (bytes, names) => ceiling(() => {
            const worker = new Worker(readFileSync(resolve(root, 'bench/wasm/worker.js'), 'utf8'),
                                      { eval: true });
            worker.unref();
            return (m) => new Promise((done) => { worker.once('message', done); worker.postMessage(m); });
        }, bytes, names),
    };
}

async function chromiumHost() {
    const { chromium } = createRequire(`${root}/web/package.json`)('playwright-core');
    const site = await serve(root);
    const browser = await chromium.launch({
        executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'],
    });
    const page = await browser.newPage();
    await page.goto(site.url);
    await page.addScriptTag({ content: readFileSync(`${root}/bench/wasm/ceiling.js`, 'utf8') });
    let engines = 0;
    const ask = (number, message) => page.evaluate(async ([number, message]) => {
        const all = (window.engines ??= []);
        const worker = (all[number] ??= new Worker('/bench/wasm/engine.mjs', { type: 'module' }));
        if (message.fetch) message.bytes = await (await fetch(message.fetch)).arrayBuffer();
        const { reply, error } = await new Promise((done) => {
            worker.onmessage = ({ data }) => done(data);
            worker.onerror = (e) => done({ error: e.message });
            worker.postMessage(message);
        });
        if (error) throw Error(error);
        return reply;
    }, [number, message]);
    return {
        name: `Chromium ${browser.version()}`, relaxed: true,
        start: () => {
            const number = engines++;
            return { ask: (m) => ask(number, m),
                     end: () => page.evaluate((n) => window.engines[n].terminate(), number) };
        },
        bytes: (build) => `/${options.build}/wasm/tinygpt-${build}.wasm`,
        ceiling: (bytes, names) => page.evaluate(async ([bytes, names, script]) => {
            const url = URL.createObjectURL(new Blob([script]));
            return ceiling(() => {
                const worker = new Worker(url);
                return (m) => new Promise((done) => {
                    worker.onmessage = (e) => done(e.data);
                    worker.postMessage(m);
                });
            }, Uint8Array.from(bytes), names);
        }, [[...bytes], names, readFileSync(`${root}/bench/wasm/worker.js`, 'utf8')]),
        close: async () => { await browser.close(); site.close(); },
    };
}

/* ----------------------------------------------------------------------------------- statistics */

const sorted = (x) => [...x].sort((a, b) => a - b);
const median = (x) => {
    const s = sorted(x), n = s.length;
    return n % 2 ? s[(n - 1) / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
};

/* Ranks that hold the median with 95 %: as app/stats.c, by the normal approximation. */
function interval(x) {
    const s = sorted(x), n = s.length, half = 0.98 * Math.sqrt(n);
    const low = Math.max(0, Math.floor(n / 2 - half)), high = Math.min(n - 1, Math.ceil(n / 2 + half));
    return [s[low], s[high]];
}

const round = (x) => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2));
const spread = (x) => `${round(median(x))} [${interval(x).map(round).join(' ')}]`;

/* ---------------------------------------------------------------------------------------- tasks */

async function open(host, build, threads, preset) {
    const engine = host.start(), bytes = host.bytes(build);
    const source = typeof bytes === 'string' ? { fetch: bytes } : { bytes };
    const { flop } = await engine.ask({ op: 'open', ...source, build, threads, preset });
    return { ...engine, flop, build, threads };
}

/* GFLOP/s of the best tile on two workers, with and without relaxed SIMD. */
async function ceilings(host) {
    const best = {};
    for (const [name, flags] of [['simd', []], ['relaxed', ['-mrelaxed-simd']]]) {
        if (name === 'relaxed' && !host.relaxed) continue;
        const path = `${options.build}/ceiling-${name}.wasm`;
        execFileSync(process.env.WASM_CC ?? 'clang-19', [
            '--target=wasm32', '-std=c11', '-O3', '-ffp-contract=off', '-msimd128', ...flags,
            '-nostdlib', '-Wl,--no-entry', '-o', path, resolve(root, 'bench/wasm/ceiling.c'),
        ]);
        const bytes = readFileSync(path);
        const names = [...bytes.toString('latin1').matchAll(/tile_\d+x\d+/g)].map((m) => m[0]);
        const tiles = await host.ceiling(bytes, [...new Set(names)]);
        const [tile, { one, two }] =
            Object.entries(tiles).sort((a, b) => b[1].two - a[1].two)[0];
        best[name] = { tile: tile.slice(5), one, two };
    }
    return best;
}

/* Blocks of about this long; a step at least. */
const BLOCK_MS = 250;

/* Runs a block of each group in turn. A group is engines that run at the same time. */
async function alternate(groups, op, preset) {
    for (const g of groups) {
        const first = await Promise.all(g.engines.map((e) => e.ask({ op, n: 2, name: preset })));
        g.n = Math.max(1, Math.round(BLOCK_MS / first[0][1]));
        g.ms = [];
        g.block = [];
    }
    for (let i = 0; i < rounds; i++)
        for (const g of groups) {
            const all = await Promise.all(g.engines.map((e) => e.ask({ op, n: g.n, name: preset })));
            const ms = all.flat();
            g.ms.push(...ms);
            g.block.push(median(ms));
        }
}

async function train(host, preset) {
    const simd = async (t) => open(host, 'simd-mt', t, preset);
    const groups = [
        { name: 'simd, 2 threads', engines: [await simd(2)] },
        { name: 'simd, 1 thread', engines: [await simd(1)] },
        { name: 'simd, 2 workers', engines: [await simd(1), await simd(1)] },
        { name: 'scalar', engines: [await open(host, 'scalar', 1, preset)] },
    ];
    if (host.relaxed)
        groups.push({ name: 'relaxed, 2 threads', engines: [await open(host, 'relaxed-mt', 2, preset)] });
    const best = await ceilings(host);
    await alternate(groups, 'train', preset);
    console.log(`\n${preset}: ms a step, the median and its interval, n, and GFLOP/s`);
    for (const g of groups) {
        const gflops = (g.engines.length * g.engines[0].flop) / median(g.ms) / 1e6;
        const kind = g.name.startsWith('relaxed') ? 'relaxed' : 'simd', c = best[kind];
        const share = g.name.includes('2') ? `${round((100 * gflops) / c.two)} % of two workers' ` +
            `${round(c.two)} (${c.tile})` : '';
        console.log(`  ${g.name.padEnd(19)} ${spread(g.ms).padEnd(24)} ${String(g.ms.length).padStart(4)}` +
                    ` ${round(gflops).padStart(6)}  ${share}`);
    }
    const [two, one, workers, scalar] = groups;
    const ratio = (a, b, f = 1) => spread(a.block.map((x, i) => (f * x) / b.block[i]));
    console.log(`  simd over scalar, one thread                   ${ratio(scalar, one)}`);
    console.log(`  two threads over one                           ${ratio(one, two)}`);
    console.log(`  two workers over one                           ${ratio(one, workers, 2)}`);
    console.log(`  what threads gain of what workers gain         ${ratio(workers, two, 0.5)}`);
    for (const g of groups) for (const e of g.engines) await e.end();
}

const native = (preset) => {
    const out = execFileSync(`${options.build}/tinygpt`,
        ['bench', 'decode', '--preset', preset, '--isa', 'avx2', '--tokens', '256', '--json'],
        { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return JSON.parse(out).rows[0].median_ms;
};

async function decode(host, preset) {
    const groups = [{ name: 'simd, 2 threads', engines: [await open(host, 'simd-mt', 2, preset)] }];
    if (host.relaxed)
        groups.push({ name: 'relaxed, 2 threads', engines: [await open(host, 'relaxed-mt', 2, preset)] });
    const shares = groups.map(() => []), natives = [];
    const window = 256; /* a whole window, or several */
    for (let i = 0; i < rounds; i++) {
        const base = native(preset);
        natives.push(base);
        for (const [k, g] of groups.entries())
            shares[k].push(base / median(await g.engines[0].ask({ op: 'decode', n: window })));
    }
    console.log(`\n${preset}: decoding, native avx2 ${round(1000 / median(natives))} tok/s`);
    for (const [k, g] of groups.entries())
        console.log(`  ${g.name.padEnd(19)} ${round(100 * median(shares[k]))} % of it, ` +
                    `${shares[k].map((x) => round(100 * x)).join(' ')}`);
    for (const g of groups) await g.engines[0].end();
}

async function profile(host, preset) {
    const build = host.relaxed ? 'relaxed-mt' : 'simd-mt';
    const engine = await open(host, build, 2, preset);
    const rows = await engine.ask({ op: 'profile', n: 4, name: preset });
    console.log(`\n${preset}: ${build}, 2 threads, ms a step`);
    for (const r of rows)
        console.log(`  ${r.op.padEnd(18)} ${r.variant.padEnd(10)} ${String(r.count).padStart(4)} ` +
                    `${round(r.ms).padStart(8)} ${round(r.gflop / r.ms * 1000).padStart(7)} GFLOP/s`);
    await engine.end();
}

async function slices(host, preset) {
    const build = 'simd-mt', engine = await open(host, build, 2, preset);
    const rows = await engine.ask({ op: 'slices', name: preset });
    console.log(`\n${preset}: ${build}, 2 threads: longest slice of 20 ms, all, polls`);
    for (const [name, r] of Object.entries(rows))
        if (r.longest > 1 || !name.includes(','))
            console.log(`  ${name.padEnd(20)} ${round(r.longest).padStart(8)} ${round(r.all).padStart(8)} ${r.polls}`);
    await engine.end();
}

const host = options.chromium ? await chromiumHost() : nodeHost();
console.log(`${host.name}, ${rounds} rounds`);
for (const task of tasks) {
    const [what, presets] = task.split(':');
    for (const preset of presets.split(','))
        await { train, decode, profile, slices }[what](host, preset);
}
await host.close();
process.exit(0);
