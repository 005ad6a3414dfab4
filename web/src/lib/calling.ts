// SPDX-License-Identifier: Apache-2.0
/**
 * calling.ts - what the calls are made of: objects that stay while a call runs, callbacks, files
 * that C opens, text that C writes.
 */
import { type Ptr, utf8 } from './abi.js';
import type { Core, Frame } from './core.js';
import { openFile } from './host.js';
import type { Method, Methods, Wire } from './protocol.js';
import type { Entry } from './registry.js';
import type { Task } from './tasks.js';
import type { GptConfig } from './types.js';

export type Call<M extends Method> = (
  core: Core, task: Task, ...args: Parameters<Methods[M]>
) => Promise<ReturnType<Methods[M]>>;

/** Works on objects of the registry: they stay while the body runs. */
export async function using<T>(entries: Entry[], body: () => Promise<T>): Promise<T> {
  entries.forEach((entry) => entry.use());
  try {
    return await body();
  } finally {
    entries.forEach((entry) => entry.unuse());
  }
}

/** Listens to a callback of C for as long as the body runs. */
export async function listening<T>(
  core: Core, listener: (...args: number[]) => number | void, body: (user: number) => Promise<T>,
): Promise<T> {
  const { host } = core;
  const user = host.listen(listener);
  try {
    return await body(user);
  } finally {
    host.unlisten(user);
  }
}

/** Gives C a file under a name for as long as the body runs. What C keeps open stays readable.
 *  `onRead` hears of what C reads, in bytes, and how many there are. */
export async function offering<T>(
  core: Core, source: Wire, what: string, body: (name: string) => Promise<T>,
  onRead?: (n: number, all: number) => void,
): Promise<T> {
  const { host } = core;
  const named = typeof File === 'function' && source instanceof File && source.name;
  const content = typeof source === 'string' ? utf8(source) : source;
  const file = await openFile(content);
  if (onRead) {
    const read = file.read.bind(file);
    file.read = (offset, to) => {
      onRead(to.length, file.bytes);
      return read(offset, to);
    };
  }
  const name = host.offer(file, named || what);
  try {
    return await body(name);
  } finally {
    host.withdraw(name);
  }
}

/** Whoever opens a model hears of it at most so often. */
const TELL_MS = 100;

/** Emits what share has been read. The header is read twice, to tell what the file is. */
export function telling(task: Task): (n: number, all: number) => void {
  let done = 0;
  let told = performance.now();
  return (n, all) => {
    done += n;
    if (performance.now() - told < TELL_MS) return;
    told = performance.now();
    task.emit(Math.min(1, done / all));
  };
}

/** Gathers the text that C writes. */
export class Gathered {
  readonly #parts: Uint8Array[] = [];

  constructor(private readonly core: Core) {}

  readonly take = (bytes: number, n: number): number => {
    this.#parts.push(this.core.memory.copy(bytes, n));
    return 0;
  };

  bytes(): Uint8Array<ArrayBuffer> {
    const whole = new Uint8Array(this.#parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  text(): string {
    return new TextDecoder().decode(this.bytes());
  }
}

export function config(core: Core, frame: Frame, value: GptConfig): Ptr {
  const at = frame.alloc(core.memory.size('tg_model_config'));
  const { family, ...sizes } = value;
  core.memory.write('tg_model_config', at, sizes);
  if (family) core.memory.write('tg_model_config', at, { family: frame.string(family) });
  return at;
}
