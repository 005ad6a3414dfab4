// SPDX-License-Identifier: Apache-2.0
/**
 * engine.worker.ts - the worker that owns the module: answers the calls of protocol.ts.
 */
import * as Comlink from 'comlink';

import { Trap } from './abi.js';
import { CALLS } from './calls.js';
import { Core } from './core.js';
import { TinygptError } from './errors.js';
import { parentEndpoint, threads } from './platform.js';
import type { EngineEvent, Method, Methods, Reply, WorkerApi } from './protocol.js';
import { Cancelled, type Task } from './tasks.js';

const tasks = new Map<number, Task>();

/* Events wait here until somebody asks for them. */
let events: EngineEvent[] = [];
let wake: (() => void) | undefined;

const core = new Core((event) => {
  events.push(event);
  wake?.();
});

/** Buffers of a result, which move instead of being copied. */
function buffers(value: unknown): ArrayBuffer[] {
  const found = new Set<ArrayBuffer>();
  const look = (part: unknown) => {
    if (ArrayBuffer.isView(part) && part.buffer instanceof ArrayBuffer) found.add(part.buffer);
  };
  look(value);
  if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)) {
    Object.values(value).forEach(look);
  }
  return [...found];
}

function failure(error: unknown): Reply<never> {
  if (error instanceof TinygptError) return { ok: false, code: error.code, message: error.message };
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Cancelled) return { ok: false, code: 'CLOSED', message };
  if (!(error instanceof Trap)) return { ok: false, code: 'INTERNAL', message };
  return { ok: false, code: 'TRAP', message: `the core stopped: ${message}` };
}

/** The page's side waits for this lock: it gets it when this worker is no more. */
function holdLock(name: string): Promise<void> {
  const locks = threads ? undefined : globalThis.navigator?.locks;
  if (!locks) return Promise.resolve();
  return new Promise((resolve) => {
    const forever = () => {
      resolve();
      return new Promise<void>(() => {});
    };
    locks.request(name, forever).catch(() => resolve());
  });
}

async function perform(task: Task, method: Method, args: unknown[]): Promise<unknown> {
  if (method === 'open') {
    const [options, lock] = args as Parameters<Methods['open']>;
    await holdLock(lock);
    return core.open(options);
  }
  if (method === 'close') return core.close();
  const call = CALLS[method] as (
    core: Core, task: Task, ...args: unknown[]
  ) => Promise<unknown>;
  return core.perform(task, () => call(core, task, ...args));
}

const api: WorkerApi = {
  async call(id, method, args) {
    const task = core.newTask();
    tasks.set(id, task);
    try {
      const value = await perform(task, method, args);
      const reply = { ok: true, value } as Reply<ReturnType<Methods[typeof method]>>;
      return Comlink.transfer(reply, buffers(value));
    } catch (error) {
      return failure(error);
    } finally {
      task.end();
      if (task.unread === 0 || task.cancelled) tasks.delete(id);
    }
  },

  async pull(id, used) {
    const pulled = (await tasks.get(id)?.pull(used)) ?? { items: [], done: true };
    if (pulled.done) tasks.delete(id);
    return pulled;
  },

  cancel(id) {
    tasks.get(id)?.cancel();
    if (tasks.get(id)?.ended) tasks.delete(id);
  },

  async events() {
    if (events.length === 0) await new Promise<void>((resolve) => { wake = resolve; });
    const happened = events;
    events = [];
    return happened;
  },
};

Comlink.expose(api, parentEndpoint());
