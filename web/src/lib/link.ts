// SPDX-License-Identifier: Apache-2.0
/**
 * link.ts - the page's end of the line to the engine's worker: calls, cancelling, streams of items.
 *
 * The invariant: a promise handed out here always settles. comlink leaves a call open forever when
 * the other side is gone, so every open call is kept in a set, and whoever learns that the worker
 * is gone settles them all.
 */
import * as Comlink from 'comlink';

import { TinygptError } from './errors.js';
import { type Helper, nodeHelper, pageHelper, threads } from './platform.js';
import type { EngineEvent, Handle, Items, Method, Methods, Reply, WorkerApi } from './protocol.js';

type Result<M extends Method> = ReturnType<Methods[M]>;

interface CallSettings {
  signal?: AbortSignal | undefined;
  /** Buffers that move to the worker. */
  transfer?: Transferable[];
  /** Gets what the call hands out on its way. */
  onItem?: ((item: never) => void) | undefined;
}

/** The worker script lies beside this file, in the sources as in what is built from them. */
function startWorker(): Helper {
  /* The address in a variable: a bundler that finds it beside `new URL` packs the file twice. */
  const here = import.meta.url;
  if (threads) return nodeHelper(threads, new URL('./engine.worker.js', here));
  return pageHelper(
    new Worker(new URL('./engine.worker.js', import.meta.url), {
      type: 'module',
      name: 'tinygpt engine',
    }),
  );
}

export class Link {
  readonly #worker = startWorker();
  readonly #api = Comlink.wrap<WorkerApi>(this.#worker.endpoint);
  readonly #open = new Set<(error: TinygptError) => void>();
  #lastTask = 0;
  #death: TinygptError | undefined;
  /** The worker holds a Web Lock of this name for as long as it lives. */
  readonly lock = `tinygpt-engine-${globalThis.crypto.randomUUID()}`;

  /** Told of everything that happens without being asked for. */
  onEvent: (event: EngineEvent) => void = () => {};

  constructor() {
    this.#worker.onDeath((reason) => this.#die(`the engine's worker is gone: ${reason}`));
    this.#worker.keepAlive(false);
  }

  /** Undefined while the worker lives. */
  get death(): TinygptError | undefined {
    return this.#death;
  }

  /** Makes a call and waits for its reply. */
  async call<M extends Method>(
    method: M, args: Parameters<Methods[M]>, settings: CallSettings = {},
  ): Promise<Result<M>> {
    const { signal, onItem } = settings;
    signal?.throwIfAborted();
    const task = ++this.#lastTask;
    const cancel = () => this.#cancel(task);
    signal?.addEventListener('abort', cancel);
    try {
      const reply = this.#reply(task, method, args, settings.transfer ?? []);
      if (onItem) await this.#handOn(task, reply, onItem);
      const value = await reply;
      if (signal?.aborted) this.#discard(value);
      signal?.throwIfAborted();
      return value;
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  /** What was made by a call that was aborted while its reply was on the way belongs to nobody. */
  #discard(value: unknown): void {
    const made = value as { id?: Handle; model?: { id: Handle } } | undefined;
    for (const id of [made?.id, made?.model?.id]) {
      if (id !== undefined) this.call('free', [id]).catch(() => {});
    }
  }

  async #handOn(
    task: number, reply: Promise<unknown>, onItem: (item: never) => void,
  ): Promise<void> {
    const ended = reply.then(() => {});
    ended.catch(() => {}); /* it is the reply's error, and told there if the items end before */
    for await (const item of this.#items(task, ended, 0, () => {})) onItem(item as never);
  }

  /**
   * Makes a call that hands out items. The worker may be `ahead` items further than the reader, no
   * more, if it heeds that. The result settles as soon as the work has ended; an abort is no error.
   */
  stream<M extends keyof Items>(
    method: M, args: Parameters<Methods[M]>, ahead: number, signal?: AbortSignal,
  ): { items: AsyncGenerator<Items[M], void, void>; result: Promise<Result<M>> } {
    const task = ++this.#lastTask;
    const cancel = () => this.#cancel(task);
    const result = this.#reply(task, method, args, []);
    /* Whoever reads the items gets the error there; a result that nobody asks for is no fault. */
    result.catch(() => {});
    if (signal?.aborted) cancel();
    else signal?.addEventListener('abort', cancel);
    const ended = result.then(() => {}, (error: unknown) => {
      if (!signal?.aborted) throw error;
    });
    ended.catch(() => {});
    const items = this.#items(task, ended, ahead, () => {
      signal?.removeEventListener('abort', cancel);
      cancel();
    });
    return { items: items as AsyncGenerator<Items[M], void, void>, result };
  }

  /** Ends the worker. Calls still open are rejected. */
  async close(): Promise<void> {
    if (this.#death) return;
    try {
      await this.call('close', []);
    } catch {
      /* It is gone already, which is what was wanted. */
    }
    this.#die('the engine was closed');
  }

  /** Hands out events until the worker is gone, and learns of its end where only a lock tells. */
  watch(): void {
    void this.#watchEvents();
    const locks = threads ? undefined : globalThis.navigator?.locks;
    void locks
      ?.request(this.lock, () => this.#die('the engine\'s worker has ended or crashed'))
      .catch(() => {});
  }

  async #watchEvents(): Promise<void> {
    while (!this.#death) {
      const events = await this.#settled(this.#api.events(), false).catch(() => []);
      for (const event of events) this.onEvent(event);
    }
  }

  /**
   * One pull is under way whenever fewer items are buffered than the worker may be ahead; `used`
   * then tells it that it may go on, so neither side ever waits for the other.
   */
  async *#items(
    task: number, ended: Promise<void>, ahead: number, finish: () => void,
  ): AsyncGenerator<unknown, void, void> {
    const buffer: unknown[] = [];
    let used = 0;
    let done = false;
    let pulling: Promise<void> | undefined;
    const pull = () => {
      pulling ??= this.#settled(this.#api.pull(task, used), true).then((pulled) => {
        buffer.push(...pulled.items);
        done = pulled.done;
        pulling = undefined;
      });
      return pulling;
    };
    try {
      for (;;) {
        if (!done && buffer.length === 0) await pull();
        else if (!done && buffer.length <= ahead) pull().catch(() => {});
        if (buffer.length > 0) {
          const item = buffer.shift();
          yield item;
          used++;
        } else if (done) {
          await ended;
          return;
        }
      }
    } finally {
      finish();
    }
  }

  #cancel(task: number): void {
    if (!this.#death) this.#settled(this.#api.cancel(task), false).catch(() => {});
  }

  async #reply<M extends Method>(
    task: number, method: M, args: Parameters<Methods[M]>, transfer: Transferable[],
  ): Promise<Result<M>> {
    /* comlink moves the buffers that belong to one argument: the list of the method's own. */
    const call = this.#api.call as unknown as (
      task: number, method: Method, args: unknown[],
    ) => Promise<Reply<Result<M>>>;
    const reply = await this.#settled(call(task, method, Comlink.transfer(args, transfer)), true);
    if (reply.ok) return reply.value;
    throw new TinygptError(reply.code, reply.message);
  }

  /** A promise of the worker's that also settles when the worker goes. */
  #settled<T>(promise: Promise<T>, keepAlive: boolean): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#death) {
        reject(this.#death);
        return;
      }
      const fail = (error: unknown) => {
        this.#forget(reject, keepAlive);
        reject(error);
      };
      this.#open.add(reject);
      if (keepAlive) this.#count(1);
      promise.then((value) => {
        this.#forget(reject, keepAlive);
        resolve(value);
      }, fail);
    });
  }

  /* Calls under way that a Node process waits for. */
  #waiting = 0;

  #count(by: number): void {
    const before = this.#waiting;
    this.#waiting += by;
    if ((before === 0) !== (this.#waiting === 0)) this.#worker.keepAlive(this.#waiting > 0);
  }

  #forget(reject: (error: TinygptError) => void, keepAlive: boolean): void {
    if (this.#open.delete(reject) && keepAlive) this.#count(-1);
  }

  #die(reason: string): void {
    if (this.#death) return;
    this.#death = new TinygptError('CLOSED', reason);
    this.#worker.terminate();
    const open = [...this.#open];
    this.#open.clear();
    for (const reject of open) reject(this.#death);
  }
}
