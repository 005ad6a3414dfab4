// SPDX-License-Identifier: Apache-2.0
/**
 * texts.ts - the texts that runs learn from, each kept once however many runs have it. A text is
 * written once and never changed; its id is what runs and documents know it by.
 *
 *     text-N              OFFSET SIZE  MEANING (little-endian)
 *                              0    4  "TGTX"
 *                              4    4  version, 1
 *                              8    4  id: grows with every text
 *                             12    4  CRC-32 of the text
 *                             16    8  bytes of the text
 *                             32    4  CRC-32 of bytes 0..31
 *                             64       the text
 *
 * N is the id, but for two files of an older version of this store, text-0 and text-1.
 */
import { crc32 } from './crc32.js';
import type { Disk, DiskFile } from './disk.js';
import { bytesOf, HEADER_BYTES, HEADER_CRC_AT, readHeader, record, sealed, write } from './parts.js';

const CHUNK_BYTES = 4 << 20;
const NAME = /^text-\d+$/;

interface Text {
  name: string;
  crc: number;
  bytes: number;
}

/** Calls must follow one another: library.ts sees to that. */
export class Texts {
  readonly #disk: Disk;
  /** By id; null: not looked yet. */
  #known: Map<number, Text> | null = null;
  #last = 0;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /** Keeps a text, unless it is there already. `last` is the highest id that anything refers to. */
  async keep(text: Blob, last: number): Promise<number> {
    const known = await this.#look();
    for (const [id, kept] of known) {
      if (kept.bytes === text.size && (await this.#holds(kept.name, text))) return id;
    }
    this.#last = Math.max(this.#last, last);
    const id = ++this.#last;
    const name = `text-${id}`;
    const made: Text = { name, crc: 0, bytes: text.size };
    await write(this.#disk, name, () => header(id, made), async (file) => {
      file.resize(HEADER_BYTES + text.size);
      for (let at = 0; at < text.size; at += CHUNK_BYTES) {
        const chunk = new Uint8Array(await text.slice(at, at + CHUNK_BYTES).arrayBuffer());
        made.crc = crc32(chunk, made.crc);
        file.write(chunk, HEADER_BYTES + at);
      }
    });
    known.set(id, made);
    return id;
  }

  /** The text with that id, all of it checked; null if it is not there or damaged. */
  async load(id: number): Promise<Blob | null> {
    const kept = (await this.#look()).get(id);
    if (!kept) return null;
    const file = await this.#disk.open(kept.name);
    try {
      if (crcOf(file, HEADER_BYTES, kept.bytes) !== kept.crc) return null;
    } finally {
      file.close();
    }
    return this.#disk.blob(kept.name, HEADER_BYTES);
  }

  /** Removes every text whose id is not used. */
  async sweep(used: ReadonlySet<number>): Promise<void> {
    const known = await this.#look();
    for (const [id, { name }] of [...known]) {
      if (used.has(id)) continue;
      known.delete(id);
      await this.#disk.remove(name);
    }
  }

  async #look(): Promise<Map<number, Text>> {
    if (this.#known) return this.#known;
    const known = new Map<number, Text>();
    for (const name of await this.#disk.names()) {
      if (!NAME.test(name)) continue;
      const file = await this.#disk.open(name);
      const found = readText(file, name);
      file.close();
      if (found) known.set(found.id, found.text);
      // What was never finished is nobody's.
      else await this.#disk.remove(name);
      this.#last = Math.max(this.#last, found?.id ?? 0);
    }
    this.#known = known;
    return known;
  }

  /** Is this the text in that file, byte for byte? */
  async #holds(name: string, text: Blob): Promise<boolean> {
    const file = await this.#disk.open(name);
    try {
      for (let at = 0; at < text.size; at += CHUNK_BYTES) {
        const given = new Uint8Array(await text.slice(at, at + CHUNK_BYTES).arrayBuffer());
        const kept = bytesOf(file, HEADER_BYTES + at, given.length);
        if (!kept || kept.some((byte, i) => byte !== given[i])) return false;
      }
      return true;
    } finally {
      file.close();
    }
  }
}

function crcOf(file: DiskFile, at: number, n: number): number | null {
  let crc = 0;
  for (let done = 0; done < n; done += CHUNK_BYTES) {
    const chunk = bytesOf(file, at + done, Math.min(CHUNK_BYTES, n - done));
    if (!chunk) return null;
    crc = crc32(chunk, crc);
  }
  return crc;
}

function header(id: number, text: Text): Uint8Array {
  const view = record(HEADER_BYTES, 'TGTX');
  view.setUint32(8, id, true);
  view.setUint32(12, text.crc, true);
  view.setBigUint64(16, BigInt(text.bytes), true);
  return sealed(view, HEADER_CRC_AT);
}

function readText(file: DiskFile, name: string): { id: number; text: Text } | null {
  const view = readHeader(file, HEADER_BYTES, 'TGTX', HEADER_CRC_AT);
  if (!view) return null;
  const text = { name, crc: view.getUint32(12, true), bytes: Number(view.getBigUint64(16, true)) };
  return HEADER_BYTES + text.bytes === file.size() ? { id: view.getUint32(8, true), text } : null;
}
