// SPDX-License-Identifier: Apache-2.0
/**
 * registry.ts - the worker's objects: who needs whom, and when C may free one.
 *
 * A caller may free in any order. C may not: a trainer reads its text until the trainer is freed.
 * So an entry counts its users (objects that need it, calls that work on it), and is disposed of
 * when it is both freed and unused. Numbers are never used again, so an old one is known as such.
 */
import type { Ptr } from './abi.js';
import { TinygptError } from './errors.js';
import type { Handle } from './protocol.js';

export type Kind = 'text' | 'model' | 'session' | 'batch' | 'trainer';

export class Entry {
  #users = 0;
  #freed = false;
  #gone = false;
  /** Freed together with this one: the model that a trainer opened. */
  owned: Entry | undefined;
  /** Of a session, batch or trainer: the model that it works with. */
  model: Entry | undefined;

  constructor(
    readonly id: Handle,
    readonly kind: Kind,
    readonly at: Ptr,
    private readonly needs: Entry[],
    private readonly dispose: () => void,
  ) {
    for (const other of needs) other.#users++;
  }

  get freed(): boolean {
    return this.#freed;
  }

  check(): void {
    if (this.#freed) throw new TinygptError('CLOSED', `this ${this.kind} was freed`);
  }

  use(): void {
    this.#users++;
  }

  unuse(): void {
    this.#users--;
    this.#collect();
  }

  free(): void {
    this.#freed = true;
    this.owned?.free();
    this.#collect();
  }

  #collect(): void {
    if (!this.#freed || this.#users > 0 || this.#gone) return;
    this.#gone = true;
    this.dispose();
    for (const other of this.needs) other.unuse();
  }
}

export class Registry {
  readonly #entries = new Map<Handle, Entry>();
  #last = 0;
  /** Numbers up to this one belong to a module that trapped. */
  #lost = 0;

  add(
    kind: Kind, at: Ptr, needs: Entry[], dispose: () => void, model?: Entry,
  ): Entry {
    const id = ++this.#last;
    const entry = new Entry(id, kind, at, needs, () => {
      this.#entries.delete(id);
      dispose();
    });
    entry.model = model;
    this.#entries.set(id, entry);
    return entry;
  }

  /** The object of a number, if it can be used. */
  get(kind: Kind, id: Handle): Entry {
    const entry = this.#entries.get(id);
    if (entry?.kind === kind) {
      entry.check();
      return entry;
    }
    if (id > 0 && id <= this.#lost) {
      throw new TinygptError(
        'TRAP', `this ${kind} was lost when the module trapped: open it again from its last save`,
      );
    }
    throw new TinygptError('CLOSED', `this ${kind} was freed`);
  }

  free(id: Handle): void {
    const entry = this.#entries.get(id);
    if (entry && !entry.freed) entry.free();
  }

  /** Forgets everything without freeing: the memory that it was in is gone. */
  lose(): void {
    this.#entries.clear();
    this.#lost = this.#last;
  }
}
