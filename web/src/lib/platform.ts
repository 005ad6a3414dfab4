// SPDX-License-Identifier: Apache-2.0
/**
 * platform.ts - the few differences between a page and Node, on both sides of the worker.
 *
 * Node's modules are asked for at run time through process.getBuiltinModule, which bundlers do not
 * see, so that a page's bundle holds no trace of them.
 */
import type { Endpoint } from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs';

type Threads = typeof import('node:worker_threads');
type FileSystem = typeof import('node:fs');

/** A module of Node, or undefined in a page. */
export function builtin(name: string): object | undefined {
  if (typeof process !== 'object' || !process.versions?.node) return undefined;
  return process.getBuiltinModule?.(name);
}

/** node:worker_threads, or undefined in a page. */
export const threads = builtin('node:worker_threads') as Threads | undefined;
/** node:fs, or undefined in a page. */
export const fileSystem = builtin('node:fs') as FileSystem | undefined;

/** A folder as an absolute address: relative to the page, or a path of this machine in Node. */
export function folderAddress(folder: string | URL): string {
  const text = String(folder).replace(/\/?$/, '/');
  const page = globalThis.document?.baseURI;
  if (page !== undefined || URL.canParse(text)) return new URL(text, page).href;
  const url = builtin('node:url') as typeof import('node:url') | undefined;
  return url ? url.pathToFileURL(text).href : text;
}

/* Node's GPU lives as long as what `create` gave. */
let nodeGpu: GPU | undefined;

/** The browser's WebGPU, or Node's by the package `webgpu`; an error says what is missing. There
 *  TG_DAWN holds switches of Dawn, for tests. */
export async function findGpu(): Promise<{ gpu: GPU; library: string }> {
  const gpu = globalThis.navigator?.gpu;
  if (gpu) return { gpu, library: 'browser' };
  if (!threads) {
    throw new Error(
      globalThis.isSecureContext === false
        ? 'a page has WebGPU by https or on localhost alone'
        : 'this browser has no WebGPU (Chromium 113, Safari 26 and Firefox 141 have)',
    );
  }
  /* A name that bundlers do not follow. */
  const name = 'webgpu';
  try {
    const node = (await import(/* @vite-ignore */ name)) as typeof import('webgpu');
    nodeGpu ??= node.create(process.env['TG_DAWN']?.split(' ') ?? []);
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw new Error(`want the package webgpu, have none (${reason}): npm install webgpu`);
  }
  return { gpu: nodeGpu, library: 'npm webgpu' };
}

/** A worker of either kind. */
export interface Helper {
  endpoint: Endpoint;
  /** Called once, with a sentence, when the worker is gone or has failed beyond repair. */
  onDeath(listener: (reason: string) => void): void;
  /** Whether the process waits for this worker before it ends; a page has no such notion. */
  keepAlive(yes: boolean): void;
  terminate(): void;
}

/** Wraps a worker of a page. */
export function pageHelper(worker: Worker): Helper {
  return {
    endpoint: worker,
    onDeath(listener) {
      worker.addEventListener('error', (event) => {
        event.preventDefault?.();
        listener(event.message || 'the script of the worker could not be loaded');
      });
      worker.addEventListener('messageerror', () => listener('a message could not be read'));
    },
    keepAlive() {},
    terminate: () => worker.terminate(),
  };
}

/** Starts a worker of Node from a script's address. */
export function nodeHelper(node: Threads, script: URL): Helper {
  /* Flags of the process that are for its script (--input-type, --import) are not for this one. */
  const worker = new node.Worker(script, { execArgv: [] });
  return {
    endpoint: nodeEndpoint(worker),
    onDeath(listener) {
      worker.on('error', (error: unknown) => {
        listener(error instanceof Error ? error.message : String(error));
      });
      worker.on('exit', (code) => listener(`the worker has ended with exit code ${code}`));
    },
    keepAlive: (yes) => (yes ? worker.ref() : worker.unref()),
    terminate: () => void worker.terminate(),
  };
}

/** The other end: what a worker answers to. */
export function parentEndpoint(): Endpoint {
  if (threads?.parentPort) return nodeEndpoint(threads.parentPort);
  return globalThis as unknown as Endpoint;
}
