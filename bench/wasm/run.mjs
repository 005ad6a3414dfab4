/*
 * run.mjs [FOLDER] - the multiply-add ceiling of WebAssembly in this Node and in Chromium.
 *
 * Builds ceiling.c with and without relaxed SIMD into FOLDER (build/bench) and prints GFLOP/s by
 * register tile, on one worker and on two. Chromium comes by playwright-core, of web/.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';

const require = createRequire(import.meta.url);
const { ceiling } = require('./ceiling.js');
const here = (name) => new URL(name, import.meta.url).pathname;
const out = process.argv[2] ?? here('../../build/bench');
const RELAXED = { simd: [], relaxed: ['-mrelaxed-simd'] };

function build(name) {
  mkdirSync(out, { recursive: true });
  const path = `${out}/ceiling-${name}.wasm`;
  execFileSync(process.env.WASM_CC ?? 'clang-19', [
    '--target=wasm32', '-std=c11', '-O3', '-ffp-contract=off', '-msimd128', ...RELAXED[name],
    '-nostdlib', '-Wl,--no-entry', '-o', path, here('ceiling.c'),
  ]);
  return readFileSync(path);
}

/* One question at a time. */
function asker(post, listen) {
  let answer;
  listen((reply) => answer(reply));
  return (message) => new Promise((resolve) => { answer = resolve; post(message); });
}

function startInNode() {
  const worker = new Worker(readFileSync(here('worker.js'), 'utf8'), { eval: true });
  worker.unref();
  return asker((m) => worker.postMessage(m), (f) => worker.on('message', f));
}

async function inChromium(jobs) {
  const { chromium } = createRequire(here('../../web/package.json'))('playwright-core');
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'],
  });
  const page = await browser.newPage();
  await page.addScriptTag({ content: `${asker}\n${readFileSync(here('ceiling.js'), 'utf8')}` });
  const results = {};
  for (const [name, { bytes, names }] of Object.entries(jobs)) {
    results[name] = await page.evaluate(async ([bytes, names, script]) => {
      const url = URL.createObjectURL(new Blob([script]));
      const start = () => {
        const worker = new Worker(url);
        return asker((m) => worker.postMessage(m), (f) => { worker.onmessage = (e) => f(e.data); });
      };
      return ceiling(start, Uint8Array.from(bytes), names);
    }, [[...bytes], names, readFileSync(here('worker.js'), 'utf8')]);
  }
  const version = browser.version();
  await browser.close();
  return [version, results];
}

function show(engine, results) {
  for (const [name, rows] of Object.entries(results)) {
    console.log(`\n${engine}, ${name}: GFLOP/s on one worker, on two`);
    for (const [tile, r] of Object.entries(rows))
      console.log(`  ${tile.slice(5).padEnd(6)} ${r.one.toFixed(1).padStart(7)} ${r.two.toFixed(1).padStart(7)}`);
    const best = (k) => Math.max(...Object.values(rows).map((r) => r[k])).toFixed(1);
    console.log(`  best   ${best('one').padStart(7)} ${best('two').padStart(7)}`);
  }
}

const jobs = {}, inNode = {};
for (const name of Object.keys(RELAXED)) {
  const bytes = build(name);
  if (!WebAssembly.validate(bytes)) console.log(`Node ${process.version} refuses ${name}`);
  const exports = execFileSync(process.execPath, ['--experimental-wasm-relaxed-simd', '-p',
    `WebAssembly.Module.exports(new WebAssembly.Module(require("fs").readFileSync("${out}/ceiling-${name}.wasm"))).map((e)=>e.name).filter((n)=>n.startsWith("tile_")).join()`],
    { encoding: 'utf8' }).trim();
  jobs[name] = { bytes, names: exports.split(',') };
  if (WebAssembly.validate(bytes)) inNode[name] = await ceiling(startInNode, bytes, jobs[name].names);
}
show(`Node ${process.version}`, inNode);
if (!process.argv.includes('--node')) {
  const [version, results] = await inChromium(jobs);
  show(`Chromium ${version}`, results);
}
