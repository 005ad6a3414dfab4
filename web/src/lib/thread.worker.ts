// SPDX-License-Identifier: Apache-2.0
/**
 * thread.worker.ts - one thread of the core's pool: an instance on the engine's memory, in C for
 * good after its first message.
 *
 * It calls two exports and answers two imports, so it does without abi.ts, whose tables are most of
 * the engine's worker.
 */
import { parentEndpoint } from './platform.js';
import type { HelperOrder, HelperWord } from './protocol.js';

type Address = number | bigint;

const parent = parentEndpoint();
const say = (word: HelperWord) => parent.postMessage(word);

/** The text at an address of C's, which is a signed number where it has 32 bits. */
function text(memory: WebAssembly.Memory, at: Address): string {
  const bytes = new Uint8Array(memory.buffer, typeof at === 'bigint' ? Number(at) : at >>> 0);
  return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
}

function enter({ module, memory, wide, thread }: HelperOrder): void {
  let assertion = '';
  const imports = {
    now_ms: () => performance.now(),
    assert_failed: (file: Address, line: number, condition: Address) => {
      assertion = `${text(memory, file)}:${line}: ${text(memory, condition)} does not hold`;
    },
  };
  /* A thread calls no other import: it neither allocates nor reports. */
  const never = () => { throw new Error('a thread called what only the engine may'); };
  const tinygpt = new Proxy(imports, { get: (have, name) => Reflect.get(have, name) ?? never });
  const instance = new WebAssembly.Instance(module, { env: { memory }, tinygpt });
  const { tg_wasm_thread_main: main, tg_wasm_thread_died: died } = instance.exports as Record<
    string, (thread: Address) => void
  >;
  const self = wide ? BigInt(thread) : thread;
  say({ kind: 'ready' });
  try {
    main!(self);
  } catch (error) {
    died!(self);
    say({ kind: 'failed', reason: assertion || (error instanceof Error ? error.message : '') });
  }
}

parent.addEventListener('message', (event) => {
  try {
    enter((event as MessageEvent<HelperOrder>).data);
  } catch (error) {
    say({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) });
  }
});
