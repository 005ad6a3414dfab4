// SPDX-License-Identifier: Apache-2.0
/**
 * crash_disk.ts - a disk in memory that loses power where a test wants it to.
 *
 * Every operation that changes something is one event; the disk dies at event number `dieAt`, in
 * the middle of it. What was written since a file's last flush may then be there or not, each
 * change for itself and the last one also in part: survive() picks one of these states by number.
 * A killed tab is the state in which everything that was written is there.
 */
import { type Disk, type DiskFile, QuotaError } from './disk.js';

export class PowerCut extends Error {}

type Change = (bytes: Uint8Array) => Uint8Array;

interface Entry {
  /** What would be there after a power cut for certain. */
  durable: Uint8Array;
  pending: Change[];
}

function grown(bytes: Uint8Array, size: number): Uint8Array {
  const out = new Uint8Array(size);
  out.set(bytes.subarray(0, size));
  return out;
}

function written(from: Uint8Array, at: number): Change {
  return (bytes) => {
    const out = grown(bytes, Math.max(bytes.length, at + from.length));
    out.set(from, at);
    return out;
  };
}

export class CrashDisk implements Disk {
  dieAt = Infinity;
  events = 0;
  /** All files together may be this large. */
  quota = Infinity;
  #files = new Map<string, Entry>();
  #dead = false;

  /** Number of states that survive() knows at this moment. */
  get outcomes(): number {
    const pending = [...this.#files.values()].reduce((n, f) => n + f.pending.length, 0);
    return 2 ** Math.min(pending, 6);
  }

  /** A new disk with what is left: bit k of the number says whether unflushed change k made it. */
  survive(outcome: number): CrashDisk {
    const after = new CrashDisk();
    let k = 0;
    for (const [name, entry] of this.#files) {
      let bytes = entry.durable;
      for (const change of entry.pending) {
        if ((outcome >> (k++ % 6)) & 1) bytes = change(bytes);
      }
      after.#files.set(name, { durable: bytes, pending: [] });
    }
    return after;
  }

  /** The file's bytes as a running program sees them. */
  bytes(name: string): Uint8Array {
    const entry = this.#files.get(name);
    return entry ? entry.pending.reduce((b, change) => change(b), entry.durable) : new Uint8Array();
  }

  /** Sets the file's bytes, as a failing disk would. */
  spoil(name: string, change: Change): void {
    this.#files.set(name, { durable: change(this.bytes(name)), pending: [] });
  }

  async open(name: string): Promise<DiskFile> {
    const entry = this.#files.get(name) ?? { durable: new Uint8Array(), pending: [] };
    this.#files.set(name, entry);
    const read = () => entry.pending.reduce((b, change) => change(b), entry.durable);
    return {
      size: () => read().length,
      read: (into, at) => {
        const from = read().subarray(at, at + into.length);
        into.set(from);
        return from.length;
      },
      write: (from, at) => {
        const copy = from.slice();
        this.#room(name, at + from.length);
        this.#event(entry, written(copy, at), written(copy.subarray(0, copy.length >> 1), at));
      },
      resize: (n) => {
        this.#room(name, n);
        this.#event(entry, (bytes) => grown(bytes, n), null);
      },
      flush: () => {
        this.#event(entry, null, null);
        entry.durable = read();
        entry.pending = [];
      },
      close: () => {},
    };
  }

  async remove(name: string): Promise<void> {
    const entry = this.#files.get(name);
    if (!entry) return;
    this.#event(entry, null, null);
    this.#files.delete(name);
  }

  async blob(name: string, start: number): Promise<Blob> {
    return new Blob([this.bytes(name).slice(start) as Uint8Array<ArrayBuffer>]);
  }

  async names(): Promise<string[]> {
    return [...this.#files.keys()];
  }

  #room(name: string, size: number): void {
    let all = Math.max(size, this.bytes(name).length);
    for (const other of this.#files.keys()) if (other !== name) all += this.bytes(other).length;
    if (size > this.bytes(name).length && all > this.quota) throw new QuotaError('no room');
  }

  /** Dying in the middle leaves the half of it among the pending changes. */
  #event(entry: Entry, change: Change | null, half: Change | null): void {
    if (this.#dead || this.events++ === this.dieAt) {
      if (!this.#dead && half) entry.pending.push(half);
      this.#dead = true;
      throw new PowerCut('the power is gone');
    }
    if (change) entry.pending.push(change);
  }
}
