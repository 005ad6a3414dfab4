// SPDX-License-Identifier: Apache-2.0
/**
 * tasks.ts - many calls on one thread: each works in slices and lets the others in between.
 *
 * A task is an async function that calls C for some milliseconds, waits for a turn, and goes on. A
 * turn is one round of the event loop, so messages (a stop, another call) are seen after every
 * slice. Two tasks never use one object at the same time: a task names what it needs and waits
 * until nobody holds it.
 *
 * After every wait a task may find that it was cancelled, or that the module was rebuilt and all
 * addresses that it knows are void. Both end it with an exception, before it touches C again.
 */
import { TinygptError } from './errors.js';
import { threads } from './platform.js';
import type { Handle, Pulled } from './protocol.js';

/** Ends a task whose caller has lost interest. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

/* -------------------------------------------------------------------------------------- turns */

const waiting: (() => void)[] = [];
const channel = threads ? undefined : new MessageChannel();
if (channel) channel.port1.onmessage = () => waiting.shift()?.();

/**
 * Waits for one round of the event loop. A page's timers are slowed down when it is hidden, its
 * messages are not. Node hands out up to a thousand messages in one round, ours among them, so
 * that the others would wait: there it is setImmediate, which comes once a round.
 */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    if (channel) {
      waiting.push(resolve);
      channel.port2.postMessage(0);
    } else {
      setImmediate(resolve);
    }
  });
}

/* -------------------------------------------------------------------------------------- tasks */

export class Task {
  #cancelled = false;
  #lost: TinygptError | undefined;
  #items: unknown[] = [];
  #emitted = 0;
  #used = 0;
  #ended = false;
  /* Who waits: a pull for items, or the task for its reader. */
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  constructor(private readonly locks: Map<Handle, Task>) {}

  get cancelled(): boolean {
    return this.#cancelled;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Items that nobody has pulled. */
  get unread(): number {
    return this.#items.length;
  }

  /** Its module still exists. */
  get alive(): boolean {
    return this.#lost === undefined;
  }

  cancel(): void {
    this.#cancelled = true;
    this.#wakeWriter?.();
  }

  /** The module is gone, and what the task worked on with it. */
  lose(error: TinygptError): void {
    this.#lost = error;
    this.#wakeWriter?.();
  }

  /** Throws if the task must not go on. */
  check(): void {
    if (this.#lost) throw this.#lost;
    if (this.#cancelled) throw new Cancelled('the call was cancelled');
  }

  /** Waits for a turn, or for something that takes longer. */
  async turn(longer?: Promise<void>): Promise<void> {
    await (longer ?? turn());
    this.check();
  }

  /** Waits until nobody else holds any of the objects, and holds them. */
  async hold(...objects: Handle[]): Promise<void> {
    this.check();
    while (objects.some((id) => this.locks.has(id) && this.locks.get(id) !== this)) {
      await this.turn();
    }
    for (const id of objects) this.locks.set(id, this);
  }

  release(...objects: Handle[]): void {
    for (const id of objects) if (this.locks.get(id) === this) this.locks.delete(id);
  }

  releaseAll(): void {
    for (const [id, holder] of this.locks) if (holder === this) this.locks.delete(id);
  }

  /** Hands out an item. */
  emit(item: unknown): void {
    this.#items.push(item);
    this.#emitted++;
    this.#wakeReader?.();
  }

  /** Waits until the reader is at most `ahead` items behind. */
  async room(ahead: number): Promise<void> {
    while (this.#emitted - this.#used > ahead) {
      await new Promise<void>((resolve) => { this.#wakeWriter = resolve; });
      this.#wakeWriter = undefined;
      this.check();
    }
  }

  /** Nothing comes any more. */
  end(): void {
    this.#ended = true;
    this.#wakeReader?.();
  }

  /** What the reader asks for: all items that are there, or the next one. */
  async pull(used: number): Promise<Pulled> {
    this.#used = Math.max(this.#used, used);
    this.#wakeWriter?.();
    while (this.#items.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => { this.#wakeReader = resolve; });
      this.#wakeReader = undefined;
    }
    const items = this.#items;
    this.#items = [];
    return { items, done: this.#ended };
  }
}
