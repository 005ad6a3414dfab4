// SPDX-License-Identifier: Apache-2.0
/**
 * host.test.ts - files that stay outside of the module: bytes, blobs in blocks, files of Node.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

import { Memory, utf8 } from './abi.js';
import { Host, openFile } from './host.js';
import type { EngineEvent } from './protocol.js';

const scope = globalThis as { FileReaderSync?: unknown };
afterEach(() => { delete scope.FileReaderSync; });

/** A Blob of any size whose byte i is i * 7 mod 251, without memory behind it. */
class BigBlob extends Blob {
  static reads = 0;
  static broken = false;
  readonly #from: number;
  readonly #to: number;

  constructor(from: number, to: number) {
    super();
    this.#from = from;
    this.#to = to;
  }

  override get size(): number { return this.#to - this.#from; }
  override slice(from = 0, to = this.size): Blob {
    return new BigBlob(this.#from + from, this.#from + to);
  }

  content(): ArrayBuffer {
    BigBlob.reads++;
    if (BigBlob.broken) throw new Error('NotReadableError');
    const bytes = new Uint8Array(this.size);
    for (let i = 0; i < bytes.length; i++) bytes[i] = ((this.#from + i) * 7) % 251;
    return bytes.buffer;
  }
}

function host() {
  const events: EngineEvent[] = [];
  const made = new Host((event) => events.push(event));
  made.memory = new Memory(new WebAssembly.Memory({ initial: 4 }), false);
  return { host: made, c: made.imports(), memory: made.memory, events };
}

function put(memory: Memory, at: number, text: string): number {
  const bytes = utf8(`${text}\0`);
  memory.bytes(at, bytes.length).set(bytes);
  return at;
}

describe('files', () => {
  it('are opened by name, stay readable, and end', async () => {
    const { host: h, c, memory } = host();
    const name = h.offer(await openFile(new Uint8Array([1, 2, 3, 4])), 'text');
    expect(h.offer(await openFile(new Uint8Array(1)), 'text')).toBe('text (2)');
    const file = c.file_open(put(memory, 8, name));
    expect(file).toBeGreaterThan(0);
    h.withdraw(name);
    expect(c.file_open(0)).toBe(-1);
    expect(c.file_size(file)).toBe(4);
    expect(c.file_read(file, 1, 100, 3)).toBe(3);
    expect([...memory.bytes(100, 3)]).toEqual([2, 3, 4]);
    expect(c.file_read(file, 2, 100, 3)).toBe(0);
    c.file_close(file);
    expect(c.file_read(file, 0, 100, 1)).toBe(0);
  });

  it('of more than a block are read in blocks that are kept', async () => {
    scope.FileReaderSync = class { readAsArrayBuffer = (blob: BigBlob) => blob.content(); };
    const blob = new BigBlob(0, 3 * 2 ** 30);
    const file = await openFile(blob);
    expect(file.bytes).toBe(3 * 2 ** 30);
    BigBlob.reads = 0;
    const to = new Uint8Array(100);
    for (let i = 0; i < 50; i++) {
      const at = 2 ** 31 + 65536 - 50 + i;
      expect(file.read(at, to)).toBe(true);
      expect(to[0]).toBe((at * 7) % 251);
      expect(to[99]).toBe(((at + 99) * 7) % 251);
    }
    expect(BigBlob.reads).toBe(2);
    const large = new Uint8Array(200_000);
    expect(file.read(5, large)).toBe(true);
    expect(large[199_999]).toBe((200_004 * 7) % 251);
    expect(BigBlob.reads).toBe(3);
    expect(file.read(3 * 2 ** 30 - 50, to)).toBe(false);
    for (let i = 0; i < 600; i++) file.read(i * 2 ** 20, to);
    BigBlob.broken = true;
    expect(file.read(2 ** 31, to)).toBe(false);
    BigBlob.broken = false;
  });

  it('of Node are read where they lie', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tinygpt-'));
    const path = join(folder, 'a text.txt');
    writeFileSync(path, 'Once upon');
    const file = await openFile({ address: pathToFileURL(path).href });
    const to = new Uint8Array(4);
    expect(file.read(5, to)).toBe(true);
    expect(new TextDecoder().decode(to)).toBe('upon');
    expect(file.read(8, to)).toBe(false);
    file.close();
    const none = openFile({ address: pathToFileURL(join(folder, 'none')).href });
    await expect(none).rejects.toMatchObject({ code: 'IO' });
    rmSync(folder, { recursive: true });
  });

  it('must be something that can be read', async () => {
    await expect(openFile(7 as unknown as Blob)).rejects.toMatchObject({ code: 'ARG' });
  });
});

describe('saves', () => {
  it('are gathered until they are whole, and dropped if they never are', () => {
    const { host: h, c, memory } = host();
    const path = put(memory, 8, 'saved');
    const [one, other] = [c.save_begin(path), c.save_begin(path)];
    memory.bytes(100, 6).set([1, 2, 3, 4, 5, 6]);
    expect(c.save_write(one, 100, 2)).toBe(0);
    expect(c.save_write(other, 104, 2)).toBe(0);
    expect(c.save_write(one, 102, 2)).toBe(0);
    expect(c.save_end(other, 0, 0)).toBe(0);
    expect(() => h.takeSaved('saved')).toThrow();
    expect(c.save_end(one, 1, 1)).toBe(0);
    expect(h.takeSaved('saved').flatMap((part) => [...part])).toEqual([1, 2, 3, 4]);
    expect(() => h.takeSaved('saved')).toThrow();
  });
});

describe('callbacks', () => {
  it('find their listener by number', () => {
    const { host: h, c, memory, events } = host();
    const seen: number[][] = [];
    const user = h.listen((...args) => { seen.push(args); return 1; });
    expect(c.on_text(user, 5, 6)).toBe(1);
    expect(c.on_text(user + 1, 5, 6)).toBe(0);
    h.unlisten(user);
    expect(c.on_cancel(user)).toBe(0);
    expect(seen).toEqual([[5, 6]]);
    c.on_log(0, 1, put(memory, 8, 'careful'));
    expect(events).toEqual([{ kind: 'log', level: 'warning', text: 'careful' }]);
    c.assert_failed(put(memory, 8, 'a.c'), 7, put(memory, 50, 'x > 0'));
    expect(h.assertion).toBe('a.c:7: x > 0 does not hold');
  });
});
