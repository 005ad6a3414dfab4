// SPDX-License-Identifier: Apache-2.0
/*
 * speed.mjs [HOST ...] - how fast the WebAssembly builds are: in this Node, in Node 24, in Chromium.
 *
 *     make build wasm && node bench/wasm/speed.mjs                      all three, some nine minutes
 *     node bench/wasm/speed.mjs chromium --presets small --rounds 6     one, with less
 *     node bench/wasm/speed.mjs node --profile xl --build relaxed-mt    where a step's time goes
 *
 * All that is compared lives at the same time, and takes turns in short blocks, forwards and
 * backwards; a round is one block of each. Printed are medians over rounds with their 95 %
 * intervals; a ratio is the median of the ratios inside rounds, so that a machine whose speed drifts
 * slows both sides. Into bench/history/wasm-DATE.json goes every block. See README.md.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';

import { hostNames, openHost, root } from './hosts.mjs';
import { median, summary } from './stats.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    presets: { type: 'string', default: 'tiny,small,medium,large,xl' },
    decode: { type: 'string', default: 'small,huge' },
    rounds: { type: 'string', default: '7' },
    folder: { type: 'string', default: 'build' }, /* below the root */
    profile: { type: 'string' },
    build: { type: 'string', default: 'relaxed-mt' },
    out: { type: 'string' },
  },
});
const hosts = positionals.length ? positionals : hostNames;
const rounds = Number(options.rounds);
const list = (text) => text.split(',').filter(Boolean);
const BLOCK_MS = 300, TILE_MS = 60;
/* Engines compile a function well only after it has run for a while, in the background. */
const WARM_MS = 1500;

/* ------------------------------------------------------------------------------------- blocks */

/* name: of a line; build and threads: of the engine; how many of them at once. */
const SIDES = [
  { name: 'relaxed-mt 2', build: 'relaxed-mt', threads: 2 },
  { name: 'simd-mt 2', build: 'simd-mt', threads: 2 },
  { name: 'relaxed 1', build: 'relaxed', threads: 1 },
  { name: 'relaxed 1 twice', build: 'relaxed', threads: 1, copies: 2 },
  { name: 'simd 1', build: 'simd', threads: 1 },
  { name: 'scalar 1', build: 'scalar', threads: 1 },
];

const modulePath = (build) => `${options.folder}/wasm/tinygpt-${build}.wasm`;

async function openSide(host, side, preset) {
  const engines = Array.from({ length: side.copies ?? 1 }, (_, i) => `${preset} ${side.name} ${i}`);
  const message = { op: 'open', ...side, path: modulePath(side.build), preset };
  const [{ flop }] = await host.ask({ engines, message });
  return { ...side, engines, flop };
}

/* One block: ms of a step, or of all engines together. */
async function block(host, side, message) {
  const answers = await host.ask({ engines: side.engines, message });
  return 1 / answers.reduce((sum, ms) => sum + 1 / median(ms), 0);
}

/* A side that takes turns, once it is warm: a block of it has the length that blocks have. `each` is
 * how many of what is timed make one of `op`. */
async function warmed(host, side, op, each = 1) {
  await block(host, side, { op, least: WARM_MS });
  const n = Math.max(1, Math.round(BLOCK_MS / each / (await block(host, side, { op, n: 2 }))));
  return { ...side, run: () => block(host, side, { op, n }) };
}

/* Blocks of all sides in turn, each a function that gives a number; by name, a list. */
async function takeTurns(sides) {
  const samples = Object.fromEntries(sides.map(({ name }) => [name, []]));
  for (let r = 0; r < rounds; r++)
    for (const { name, run } of r % 2 ? [...sides].reverse() : sides)
      samples[name].push(await run());
  return samples;
}

const ratios = (over, under) => over.map((x, i) => x / under[i]);

/* ------------------------------------------------------------------------------------ ceiling */

const RELAXED = { simd: [], relaxed: ['-mrelaxed-simd'] };

function buildTiles(name) {
  const path = `${options.folder}/bench/ceiling-${name}.wasm`;
  mkdirSync(join(root, options.folder, 'bench'), { recursive: true });
  execFileSync(process.env.WASM_CC ?? 'clang-19', [
    '--target=wasm32', '-std=c11', '-O3', '-ffp-contract=off', '-msimd128', ...RELAXED[name],
    '-nostdlib', '-Wl,--no-entry', '-o', join(root, path), join(root, 'bench/wasm/ceiling.c'),
  ]);
  return path;
}

const inAll = async (host, engines, message) =>
  (await host.ask({ engines, message })).reduce((sum, x) => sum + x, 0);

/* GFLOP/s of every tile on one worker and on two; best: the name of the one that is best on two. */
async function sweepTiles(host, kind) {
  const engines = [`tiles ${kind} 0`, `tiles ${kind} 1`], rows = {};
  const [names] = await host.ask({ engines, message: { op: 'tiles', path: buildTiles(kind) } });
  for (let r = 0; r < 3; r++) {
    for (const name of names) {
      const message = { op: 'tile', name, ms: TILE_MS }, row = (rows[name] ??= { one: 0, two: 0 });
      row.one = Math.max(row.one, await inAll(host, engines.slice(1), message));
      row.two = Math.max(row.two, await inAll(host, engines, message));
    }
  }
  const best = names.reduce((a, b) => (rows[b].two > rows[a].two ? b : a));
  console.log(`  ${kind.padEnd(8)} one/two workers: ` + names.map((name) =>
    `${name.slice(5)} ${rows[name].one.toFixed(0)}/${rows[name].two.toFixed(0)}`).join('  '));
  return { name: `ceiling ${kind}`, best, rows,
           run: () => inAll(host, engines, { op: 'tile', name: best, ms: TILE_MS }) };
}

/* ------------------------------------------------------------------------------------- report */

function show(name, values, digits = 2, unit = '') {
  const s = summary(values), f = (x) => x.toFixed(digits);
  const interval = s.low === undefined ? '' : `  ${f(s.low)} .. ${f(s.high)}`;
  console.log(`    ${name.padEnd(34)} ${f(s.median).padStart(9)}${unit}${interval}`);
  return s;
}

/* ms of sides and what follows from them. A name of null has no target. */
function reportTraining(preset, samples, flop) {
  const two = samples['relaxed-mt 2'], simd = samples['simd-mt 2'];
  const share = (ms, kind) => samples[`ceiling ${kind}`].map((c, i) => flop / ms[i] / c / 1e6);
  console.log(`  ${preset}: ms a step (two copies: of both together)`);
  const report = { flop, samples, ms: {}, ratios: {} };
  for (const { name } of SIDES) report.ms[name] = show(name, samples[name]);
  const ratio = (name, values, digits = 2) => { report.ratios[name] = show(name, values, digits); };
  ratio('of the ceiling, relaxed-mt', share(two, 'relaxed'));
  ratio('of the ceiling, simd-mt', share(simd, 'simd'));
  ratio('two threads / two workers', ratios(samples['relaxed 1 twice'], two));
  ratio('simd / scalar', ratios(samples['scalar 1'], samples['simd 1']));
  return report;
}

async function train(host, preset, ceilings) {
  const sides = [];
  for (const side of SIDES) {
    const opened = await openSide(host, side, preset);
    sides.push(await warmed(host, opened, 'train'));
  }
  const report = reportTraining(preset, await takeTurns([...sides, ...ceilings]), sides[0].flop);
  for (const { engines } of sides) await host.ask({ engines, message: { op: 'end' } });
  return report;
}

/* The native program begins anew for each block. */
function nativeDecode(preset) {
  const text = execFileSync(join(root, options.folder, 'tinygpt'), [
    'bench', 'decode', '--preset', preset, '--threads', '2', '--isa', 'avx2', '--json',
    '--tokens', '1024',
  ], { encoding: 'utf8' });
  return JSON.parse(text).rows[0].median_ms;
}

async function decode(host, preset) {
  const sides = [];
  for (const side of SIDES.slice(0, 2)) {
    const opened = await openSide(host, side, preset);
    sides.push(await warmed(host, opened, 'decode', 64));
  }
  sides.push({ name: 'native avx2 2', run: () => nativeDecode(preset) });
  const samples = await takeTurns(sides);
  console.log(`  ${preset}: ms a token`);
  const report = { samples, ms: {}, ratios: {} };
  for (const { name } of sides) report.ms[name] = show(name, samples[name], 4);
  for (const { name } of sides.slice(0, 2))
    report.ratios[name] = show(`native / ${name}`, ratios(samples['native avx2 2'], samples[name]));
  for (const { engines } of sides.slice(0, 2))
    await host.ask({ engines, message: { op: 'end' } });
  return report;
}

/* --------------------------------------------------------------------------------------- runs */

async function profile(host) {
  const { build, profile: preset } = options, threads = build.includes('-mt') ? 2 : 1;
  const side = await openSide(host, { name: 'profile', build, threads }, preset);
  await block(host, side, { op: 'train', least: 2 * WARM_MS });
  const ms = await block(host, side, { op: 'train', least: BLOCK_MS });
  const [rows] = await host.ask({ engines: side.engines, message: { op: 'profile', n: 5 } });
  console.log(`  ${preset}, ${build} on ${threads}: ${ms.toFixed(2)} ms, ` +
              `${(side.flop / ms / 1e6).toFixed(1)} GFLOP/s`);
  for (const r of rows)
    console.log(`    ${r.op.padEnd(18)} ${r.variant.padEnd(12)} ${String(r.count).padStart(4)} ` +
                `${r.ms.toFixed(3).padStart(9)} ms ${((100 * r.ms) / ms).toFixed(1).padStart(5)} % ` +
                `${r.gflop ? (r.gflop / r.ms * 1000).toFixed(1).padStart(7) : ''}`);
}

async function measure(host) {
  const ceilings = [];
  if (list(options.presets).length)
    for (const kind of Object.keys(RELAXED)) ceilings.push(await sweepTiles(host, kind));
  const result = { ceilings: {}, train: {}, decode: {} };
  for (const c of ceilings) result.ceilings[c.name] = { best: c.best, tiles: c.rows };
  for (const preset of list(options.presets))
    result.train[preset] = await train(host, preset, ceilings);
  for (const preset of list(options.decode)) result.decode[preset] = await decode(host, preset);
  return result;
}

/* One file a day; what is measured again replaces its part. */
function save(name, result) {
  const day = result.runs[0].when.slice(0, 10);
  const path = options.out ?? join(root, `bench/history/wasm-${day}.json`);
  const all = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { hosts: {} };
  const old = all.hosts[name] ?? { runs: [] };
  all.hosts[name] = {
    ...result,
    runs: [...old.runs, ...result.runs],
    train: { ...old.train, ...result.train },
    decode: { ...old.decode, ...result.decode },
  };
  writeFileSync(path, JSON.stringify(all, (_, x) =>
    (typeof x === 'number' ? Number(x.toPrecision(5)) : x), 1) + '\n');
  console.log(`  in ${relative(process.cwd(), path)}`);
}

const commit = execFileSync('git', ['-C', root, 'rev-parse', '--short=12', 'HEAD'],
                            { encoding: 'utf8' }).trim();
for (const name of hosts) {
  const run = { when: new Date().toISOString(), commit, cpu: cpus()[0].model,
                cores: cpus().length, load_before: loadavg()[0], command: process.argv.slice(2) };
  const host = await openHost(name);
  console.log(`${name} ${host.version}`);
  try {
    if (options.profile) await profile(host);
    else save(name, { version: host.version, runs: [run], ...(await measure(host)) });
  } finally {
    await host.end();
  }
}
