// SPDX-License-Identifier: Apache-2.0
/**
 * wasm.ts - finds the best build that this browser or Node can load, and makes instances of it.
 *
 * Candidates are tried from the best to the poorest. Each step down leaves a sentence in `notes`,
 * so that nobody has to guess why a run is slow. What can be loaded is asked of the engine itself
 * (wasm-feature-detect) and, for threads, of the page: shared memory needs cross-origin isolation.
 */
import { memory64, relaxedSimd, simd, threads as threadsSupported } from 'wasm-feature-detect';

import { bindExports, bindImports, type Exports, Memory, type Trap } from './abi.js';
import { TinygptError } from './errors.js';
import { Host } from './host.js';
import { builtin, fileSystem, threads as nodeThreads } from './platform.js';
import type { EngineEvent } from './protocol.js';
import { type Helpers, startHelpers } from './threads.js';
import { BUILDS, type BuildName, type EngineOptions } from './types.js';

const PAGE = 64 << 10;
const GIB = 2 ** 30;
/** What every build asks for at its start. */
const INITIAL_PAGES = 256;
const MAX_THREADS = 64;

/** What a build is made of. */
interface Traits {
  shared: boolean;
  wide: boolean;
  needs: ('simd' | 'relaxed SIMD' | 'shared memory' | '64-bit memory')[];
}

function traits(build: BuildName): Traits {
  const words = build.split('-');
  const shared = words.includes('mt');
  const wide = words.includes('64');
  const needs: Traits['needs'] = [];
  if (words.includes('simd') || words.includes('relaxed')) needs.push('simd');
  if (words.includes('relaxed')) needs.push('relaxed SIMD');
  if (shared) needs.push('shared memory');
  if (wide) needs.push('64-bit memory');
  return { shared, wide, needs };
}

/** What this browser or Node has; a sentence for what it has not. */
async function findMissing(): Promise<Map<string, string>> {
  const missing = new Map<string, string>();
  const who = nodeThreads ? `Node ${process.versions.node}` : 'this browser';
  if (!(await simd())) missing.set('simd', `${who} has no WebAssembly SIMD`);
  if (!(await relaxedSimd())) {
    missing.set('relaxed SIMD', `${who} has no relaxed SIMD (fused multiply-add)`);
  }
  if (!nodeThreads && !globalThis.crossOriginIsolated) {
    missing.set(
      'shared memory',
      'the page is not cross-origin isolated (headers COOP and COEP), so there are no threads',
    );
  } else if (!isolated() || !(await threadsSupported())) {
    missing.set('shared memory', `${who} has no threads that share memory`);
  }
  if (!(await memory64())) missing.set('64-bit memory', `${who} has no 64-bit WebAssembly memory`);
  return missing;
}

/** Whether memory can be shared between threads here. */
export function isolated(): boolean {
  if (nodeThreads) return true;
  return typeof SharedArrayBuffer === 'function' && globalThis.crossOriginIsolated === true;
}

export function processors(): number {
  const os = builtin('node:os') as typeof import('node:os') | undefined;
  return os?.availableParallelism() ?? globalThis.navigator?.hardwareConcurrency ?? 1;
}

/** How many threads are wanted: the caller's number, or the machine's, at most 8. */
function wantedThreads(options: EngineOptions): number {
  const wanted = options.threads ?? 0;
  if (!Number.isInteger(wanted) || wanted < 0 || wanted > MAX_THREADS) {
    throw new TinygptError('ARG', `threads: want 0..${MAX_THREADS}, have ${options.threads}`);
  }
  return wanted || Math.min(processors(), 8);
}

/** All builds that may be taken, best first. The 64-bit one is slower, for those who ask for it. */
function candidates(options: EngineOptions, threads: number): BuildName[] {
  const asked = options.build ?? 'auto';
  if (asked !== 'auto') {
    if (!BUILDS.includes(asked)) {
      throw new TinygptError('ARG', `build: want one of ${BUILDS.join(', ')}, have ${asked}`);
    }
    return [asked];
  }
  return (['relaxed', 'simd', 'scalar'] as const).flatMap((kind) =>
    threads > 1 ? [`${kind}-mt` as const, kind] : [kind],
  );
}

/** Where a file of the package's `wasm` folder is, or of the one that the caller names. */
function addressOf(name: string, base: string | URL | undefined): URL {
  return base === undefined ? new URL(`../wasm/${name}`, import.meta.url) : new URL(name, base);
}

async function fetchFile(url: URL): Promise<Uint8Array> {
  try {
    if (url.protocol === 'file:' && fileSystem) return fileSystem.readFileSync(url);
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  } catch (error) {
    throw new TinygptError('IO', `${url}: ${error instanceof Error ? error.message : error}`);
  }
}

/** The grammar that stories are expanded from (data/stories.txt): no module carries it. */
export function fetchStories(base: string | URL | undefined): Promise<Uint8Array> {
  return fetchFile(addressOf('stories.txt', base));
}

/** The test cases of a build's ops, which it is downloaded without. */
export function fetchCases(build: BuildName, base: string | URL | undefined): Promise<Uint8Array> {
  return fetchFile(addressOf(`tinygpt-${build}.cases`, base));
}

async function fetchBuild(build: BuildName, base: string | URL | undefined): Promise<Uint8Array> {
  const url = addressOf(`tinygpt-${build}.wasm`, base);
  const bytes = await fetchFile(url);
  if (String.fromCharCode(...bytes.subarray(0, 4)) !== '\0asm') {
    const start = new TextDecoder().decode(bytes.slice(0, 16));
    throw new TinygptError('FORMAT', `${url}: want a WebAssembly module, have "${start}"`);
  }
  return bytes;
}

/** A compiled build, of which instances are made. */
export interface Loaded {
  build: BuildName;
  module: WebAssembly.Module;
  threads: number;
}

/**
 * Loads builds from the best to the poorest, until `use` is content with one: its exception is one
 * reason more to step down, unless the caller's own options are at fault. The sentences tell why
 * nothing better was taken; if nothing works at all they are the error.
 */
export async function loadBest(
  options: EngineOptions, use: (loaded: Loaded) => Promise<void>,
): Promise<string[]> {
  const threads = wantedThreads(options);
  const missing = await findMissing();
  const notes: string[] = [];
  let fetched = true;
  const note = (text: string) => {
    if (!notes.includes(text)) notes.push(text);
  };
  for (const build of candidates(options, threads)) {
    const { needs, shared } = traits(build);
    const lacks = needs.flatMap((need) => missing.get(need) ?? []);
    if (lacks.length > 0) {
      lacks.forEach((lack) => note(`${lack}.`));
      continue;
    }
    try {
      const bytes = await fetchBuild(build, options.wasmBase);
      const module = await WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>);
      await use({ build, module, threads: shared ? threads : 1 });
      return notes;
    } catch (error) {
      if (error instanceof TinygptError && error.code === 'ARG') throw error;
      if (error instanceof TinygptError && error.code === 'IO') fetched = false;
      const reason = error instanceof Error ? error.message : String(error);
      note(`The build ${build} cannot be loaded: ${reason}.`);
    }
  }
  const [code, what] = fetched
    ? (['UNSUPPORTED', 'no build of the core works here'] as const)
    : (['IO', 'no build of the core could be fetched'] as const);
  throw new TinygptError(code, `${what}. ${notes.join(' ')}`);
}

/** An instance: C's functions, its memory, and the world that it sees. */
export interface Instance {
  c: Exports;
  memory: Memory;
  host: Host;
  helpers: Helpers;
  maxMemoryBytes: number;
}

/**
 * Memory with the largest maximum that is granted: a phone refuses 4 GiB of address space and takes
 * less. The maximum costs nothing until the memory grows.
 */
function newMemory(build: BuildName, limit: number | undefined): [WebAssembly.Memory, number] {
  const { shared, wide } = traits(build);
  const most = Math.min(limit ?? Infinity, (wide ? 16 : 4) * GIB);
  if (!(most >= INITIAL_PAGES * PAGE)) {
    throw new TinygptError(
      'ARG', `maxMemoryBytes: want at least ${INITIAL_PAGES * PAGE}, have ${limit}`,
    );
  }
  const sizes = [most, ...[8, 4, 2, 1, 0.5].map((gib) => gib * GIB).filter((size) => size < most)];
  let refusal: unknown;
  for (const size of sizes) {
    const pages = Math.floor(size / PAGE);
    const description = wide
      ? { initial: BigInt(INITIAL_PAGES), maximum: BigInt(pages), shared, address: 'i64' }
      : { initial: INITIAL_PAGES, maximum: pages, shared };
    try {
      const memory = new WebAssembly.Memory(description as WebAssembly.MemoryDescriptor);
      return [memory, pages * PAGE];
    } catch (error) {
      refusal = error;
    }
  }
  const reason = refusal instanceof Error ? refusal.message : String(refusal);
  throw new TinygptError('MEMORY', `memory: not even 0.5 GiB of addresses are granted: ${reason}`);
}

/** Makes an instance with its threads, each of them ready before C is called for the first time. */
export async function instantiate(
  loaded: Loaded, limit: number | undefined, emit: (event: EngineEvent) => void,
  onTrap: (trap: Trap) => void,
): Promise<Instance> {
  const { wide, shared } = traits(loaded.build);
  const [wasmMemory, maxMemoryBytes] = newMemory(loaded.build, limit);
  const host = new Host(emit);
  const memory = new Memory(wasmMemory, wide);
  host.memory = host.gpus.memory = memory;
  const instance = await WebAssembly.instantiate(loaded.module, {
    env: { memory: wasmMemory },
    tinygpt: bindImports(host.imports(), wide),
  });
  const c = bindExports(instance.exports, wide, onTrap);
  c.tg_wasm_machine_set(maxMemoryBytes, processors());
  const helpers = shared
    ? await startHelpers(loaded.module, wasmMemory, wide, c, loaded.threads - 1)
    : { count: 0, failure: () => '', end: () => {} };
  return { c, memory, host, helpers, maxMemoryBytes };
}
