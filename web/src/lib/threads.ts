// SPDX-License-Identifier: Apache-2.0
/**
 * threads.ts - the helpers of a threaded build: workers of the engine's worker, one a thread.
 *
 * A helper makes an instance of the same module on the same memory and enters C, which it never
 * leaves: it sleeps there until the pool has work. So every one has to say that it is ready before
 * C is called, because a nested worker does not start while its parent sleeps in C.
 */
import type { Exports } from './abi.js';
import { TinygptError } from './errors.js';
import { nodeHelper, pageHelper, type Helper, threads as nodeThreads } from './platform.js';
import type { HelperOrder, HelperWord } from './protocol.js';

export interface Helpers {
  count: number;
  /** What a helper said before it trapped, or ''. */
  failure(): string;
  /** Ends all of them; they are asleep in C and cannot be asked. */
  end(): void;
}

/** A thread that does not come up in this time is given up. */
const PATIENCE_MS = 20_000;

function start(): Helper {
  const here = import.meta.url;
  if (nodeThreads) return nodeHelper(nodeThreads, new URL('./thread.worker.js', here));
  return pageHelper(
    new Worker(new URL('./thread.worker.js', import.meta.url), {
      type: 'module',
      name: 'tinygpt thread',
    }),
  );
}

/** Starts one helper and waits until it is ready. */
function ready(
  helper: Helper, order: HelperOrder, failed: (reason: string) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = (reason: string) => {
      failed(reason);
      reject(new TinygptError('DEVICE', `a thread did not start: ${reason}`));
    };
    const timer = setTimeout(() => giveUp(`no answer in ${PATIENCE_MS / 1000} s`), PATIENCE_MS);
    helper.onDeath(giveUp);
    helper.endpoint.addEventListener('message', (event) => {
      const word = (event as MessageEvent<HelperWord>).data;
      clearTimeout(timer);
      if (word.kind === 'ready') resolve();
      else giveUp(word.reason);
    });
    helper.endpoint.postMessage(order);
  });
}

export async function startHelpers(
  module: WebAssembly.Module, memory: WebAssembly.Memory, wide: boolean, c: Exports, count: number,
): Promise<Helpers> {
  const helpers: Helper[] = [];
  let failure = '';
  let over = false;
  const end = () => {
    over = true;
    helpers.forEach((helper) => helper.terminate());
  };
  /* Whoever waits for a dead thread would do so for ever: C is told, and stops. */
  const failed = (thread: number, reason: string) => {
    if (over) return;
    failure ||= reason;
    c.tg_wasm_thread_died(thread);
  };
  try {
    const all = Array.from({ length: count }, () => {
      const thread = c.tg_wasm_thread_new();
      if (thread === 0) throw new TinygptError('MEMORY', 'there is no memory for another thread');
      const helper = start();
      helpers.push(helper);
      return ready(helper, { module, memory, wide, thread }, (reason) => failed(thread, reason));
    });
    await Promise.all(all);
  } catch (error) {
    end();
    throw error;
  }
  helpers.forEach((helper) => helper.keepAlive(false));
  return { count, failure: () => failure, end };
}
