/**
 * thread.worker.ts - one thread of the core's pool: an instance on the engine's memory, in C for
 * good after its first message.
 */
import { bindExports, bindImports, type Imports, Memory } from './abi.js';
import { parentEndpoint } from './platform.js';
import type { HelperOrder, HelperWord } from './threads.js';

const parent = parentEndpoint();
const say = (word: HelperWord) => parent.postMessage(word);

function enter({ module, memory, wide, thread }: HelperOrder): void {
  const view = new Memory(memory, wide);
  let assertion = '';
  const never = () => 0;
  const imports = {
    now_ms: () => performance.now(),
    assert_failed: (file: number, line: number, condition: number) => {
      assertion = `${view.text(file)}:${line}: ${view.text(condition)} does not hold`;
    },
  };
  /* A thread calls no other import: it neither allocates nor reports. */
  const all = new Proxy(imports, { get: (have, name) => Reflect.get(have, name) ?? never });
  const instance = new WebAssembly.Instance(module, {
    env: { memory },
    tinygpt: bindImports(all as unknown as Imports, wide),
  });
  const c = bindExports(instance.exports, wide, () => {});
  say({ kind: 'ready' });
  try {
    c.tg_wasm_thread_main(thread);
  } catch (error) {
    c.tg_wasm_thread_died(thread);
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
