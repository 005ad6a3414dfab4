// SPDX-License-Identifier: Apache-2.0
/**
 * vault.ts - one record on a disk that may lose power, or its tab, at any moment: some JSON (its
 * meta) and bytes. A saved run is one; a document, which is JSON alone, is another.
 *
 * The invariant: load() gives the last record whose save() came back, or one that was being saved
 * just then, never a mixture and never nothing. Two slots take turns. A save goes to the slot that
 * is not in use, in this order, with a flush between the steps:
 *
 *     meta and bytes  ->  the slot's header  ->  the pointer
 *
 * so the old slot is whole until the new one is, and the pointer flips last. Every part carries a
 * checksum, since a pointer of 24 bytes can be torn, too, and disks lose what they have once held:
 * where the pointer is no help the newest whole slot is taken, and where the newest is damaged, the
 * one before it, and `notice` says so.
 *
 *     a slot              OFFSET SIZE  MEANING (little-endian)
 *                              0    4  "TGSL"
 *                              4    4  version, 1
 *                              8    4  sequence: grows with every save
 *                             12    4  bytes of the meta
 *                             16    8  bytes of the record
 *                             24    4  CRC-32 of meta and bytes
 *                             28    4  the text that belongs to it: its id, 0 for none
 *                             32    4  CRC-32 of bytes 0..31
 *                             64       meta (JSON in UTF-8), then the bytes
 *     the pointer              0    4  "TGPT"
 *                              4    4  version, 1
 *                              8    4  slot, or 255: nothing up to this sequence counts any more
 *                             12    4  sequence
 *                             16    4  0
 *                             20    4  CRC-32 of bytes 0..19
 */
import { crc32 } from './crc32.js';
import type { Disk, DiskFile } from './disk.js';
import { bytesOf, HEADER_BYTES, HEADER_CRC_AT, readHeader, record, sealed, write } from './parts.js';

export interface Kept {
  bytes: Uint8Array;
  meta: object;
  /** Id of its text, 0 for none. */
  text: number;
}

/** What can be told without reading all of the bytes. */
export interface Head {
  meta: object;
  /** Bytes that both slots take on the disk. */
  size: number;
  text: number;
}

/** The names of a record's three files. */
export interface Files {
  slots: readonly [string, string];
  pointer: string;
}

const POINTER_BYTES = 24;
const POINTER_CRC_AT = 20;
const NO_SLOT = 255;

type Index = 0 | 1;
const BOTH: readonly Index[] = [0, 1];

interface SlotHeader {
  sequence: number;
  metaBytes: number;
  bytes: number;
  crc: number;
  text: number;
}

interface Pointer {
  slot: number;
  sequence: number;
}

/** What the disk was found to hold, and what the next save must not touch. */
interface State {
  /** The slot of the record that load() gives. */
  slot: Index | null;
  header: SlotHeader | null;
  /** Highest sequence that was ever seen. */
  sequence: number;
}

/** Calls must follow one another: library.ts sees to that. */
export class Vault {
  /** What a person should know about the last load() or head(); '' if all was well. */
  notice = '';
  /** The text of the record, as far as a call has told; undefined: none has. */
  text: number | undefined;
  readonly #disk: Disk;
  readonly #files: Files;
  #state: State | null = null;

  constructor(disk: Disk, files: Files) {
    this.#disk = disk;
    this.#files = files;
  }

  /** The record that counts, or null. */
  async load(): Promise<Kept | null> {
    this.#state = null;
    return (await this.#find()).kept;
  }

  /**
   * The head of the record, or null. Its bytes are not read, so a damaged record may still have
   * one; load() has the last word.
   */
  async head(): Promise<Head | null> {
    const pointer = await this.#reading(this.#files.pointer, readPointer);
    const headers = await this.#headers();
    let size = 0;
    for (const i of BOTH) size += (await this.#reading(this.#files.slots[i], (f) => f.size())) ?? 0;
    const order = candidates(pointer, headers);
    let found: Head | null = null;
    for (const i of order) {
      const header = headers[i];
      const meta = header
        ? await this.#reading(this.#files.slots[i], (f) => readMeta(f, header))
        : null;
      if (!header || !meta) continue;
      found = { meta, size, text: header.text };
      break;
    }
    this.notice = found ? '' : damage(pointer, null, headers[order[0] ?? -1] ?? null);
    this.text = found?.text ?? 0;
    return found;
  }

  async save(bytes: Uint8Array, meta: object, text = 0): Promise<void> {
    const state = this.#state ?? (await this.#find()).state;
    const slot: Index = state.slot === 0 ? 1 : 0;
    const json = new TextEncoder().encode(JSON.stringify(meta));
    const header: SlotHeader = {
      sequence: ++state.sequence,
      metaBytes: json.length,
      bytes: bytes.length,
      crc: crc32(bytes, crc32(json)),
      text,
    };
    await write(this.#disk, this.#files.slots[slot], () => slotHeader(header), async (file) => {
      file.resize(HEADER_BYTES + json.length + bytes.length);
      file.write(json, HEADER_BYTES);
      file.write(bytes, HEADER_BYTES + json.length);
    });
    await this.#point({ slot, sequence: header.sequence });
    state.slot = slot;
    state.header = header;
    this.text = text;
  }

  /** Forgets the record: from the first write on, a load() finds nothing. */
  async remove(): Promise<void> {
    const state = this.#state ?? (await this.#find()).state;
    await this.#point({ slot: NO_SLOT, sequence: state.sequence });
    this.#state = null;
    this.text = 0;
    for (const name of this.#files.slots) await this.#disk.remove(name);
    await this.#disk.remove(this.#files.pointer);
  }

  // ----------------------------------------------------------------------------------- reading

  /** Looks at everything, checksums and all, and decides what counts. */
  async #find(): Promise<{ state: State; kept: Kept | null }> {
    const pointer = await this.#reading(this.#files.pointer, readPointer);
    const headers = await this.#headers();
    const state: State = {
      slot: null,
      header: null,
      sequence: Math.max(pointer?.sequence ?? 0, ...headers.map((h) => h?.sequence ?? 0)),
    };
    const order = candidates(pointer, headers);
    let kept: Kept | null = null;
    for (const i of order) {
      const header = headers[i];
      kept = header
        ? await this.#reading(this.#files.slots[i], (f) => readSlot(f, header))
        : null;
      if (kept) {
        Object.assign(state, { slot: i, header });
        break;
      }
    }
    this.notice = damage(pointer, state.header, headers[order[0] ?? -1] ?? null);
    this.#state = state;
    this.text = kept?.text ?? 0;
    return { state, kept };
  }

  async #headers(): Promise<(SlotHeader | null)[]> {
    const headers: (SlotHeader | null)[] = [];
    for (const name of this.#files.slots) headers.push(await this.#reading(name, readSlotHeader));
    return headers;
  }

  async #reading<T>(name: string, read: (file: DiskFile) => T | null): Promise<T | null> {
    const file = await this.#disk.open(name);
    try {
      return read(file);
    } finally {
      file.close();
    }
  }

  async #point(pointer: Pointer): Promise<void> {
    const file = await this.#disk.open(this.#files.pointer);
    try {
      file.write(pointerBytes(pointer), 0);
      file.flush();
    } finally {
      file.close();
    }
  }
}

/** The slots that may hold the record, the likeliest first: the one that the pointer names, in the
 *  state that it names; then the newest. */
function candidates(pointer: Pointer | null, headers: readonly (SlotHeader | null)[]): Index[] {
  const cleared = pointer?.slot === NO_SLOT ? pointer.sequence : 0;
  const preference = (slot: Index) => {
    const sequence = headers[slot]?.sequence ?? 0;
    return pointer?.slot === slot && pointer.sequence === sequence ? Infinity : sequence;
  };
  return BOTH.filter((i) => (headers[i]?.sequence ?? 0) > cleared).sort(
    (a, b) => preference(b) - preference(a),
  );
}

/** Compares what is used with the newest save that is known to have come back. */
function damage(
  pointer: Pointer | null,
  used: SlotHeader | null,
  first: SlotHeader | null,
): string {
  const promised = pointer !== null && pointer.slot !== NO_SLOT ? pointer.sequence : 0;
  if (Math.max(promised, first?.sequence ?? 0) <= (used?.sequence ?? 0)) return '';
  return used
    ? 'The newest save in this browser is damaged. The one before it is used.'
    : 'The run that was saved in this browser is damaged and cannot be read.';
}

// ---------------------------------------------------------------------------------------- bytes

function pointerBytes(p: Pointer): Uint8Array {
  const view = record(POINTER_BYTES, 'TGPT');
  view.setUint32(8, p.slot, true);
  view.setUint32(12, p.sequence, true);
  return sealed(view, POINTER_CRC_AT);
}

function readPointer(file: DiskFile): Pointer | null {
  const view = readHeader(file, POINTER_BYTES, 'TGPT', POINTER_CRC_AT);
  return view && { slot: view.getUint32(8, true), sequence: view.getUint32(12, true) };
}

function slotHeader(h: SlotHeader): Uint8Array {
  const view = record(HEADER_BYTES, 'TGSL');
  view.setUint32(8, h.sequence, true);
  view.setUint32(12, h.metaBytes, true);
  view.setBigUint64(16, BigInt(h.bytes), true);
  view.setUint32(24, h.crc, true);
  view.setUint32(28, h.text, true);
  return sealed(view, HEADER_CRC_AT);
}

function readSlotHeader(file: DiskFile): SlotHeader | null {
  const view = readHeader(file, HEADER_BYTES, 'TGSL', HEADER_CRC_AT);
  return (
    view && {
      sequence: view.getUint32(8, true),
      metaBytes: view.getUint32(12, true),
      bytes: Number(view.getBigUint64(16, true)),
      crc: view.getUint32(24, true),
      text: view.getUint32(28, true),
    }
  );
}

function readSlot(file: DiskFile, h: SlotHeader): Kept | null {
  if (HEADER_BYTES + h.metaBytes + h.bytes !== file.size()) return null;
  const json = bytesOf(file, HEADER_BYTES, h.metaBytes);
  const bytes = bytesOf(file, HEADER_BYTES + h.metaBytes, h.bytes);
  if (!json || !bytes || crc32(bytes, crc32(json)) !== h.crc) return null;
  const meta = parsed(json);
  return meta && { bytes, meta, text: h.text };
}

function readMeta(file: DiskFile, h: SlotHeader): object | null {
  if (HEADER_BYTES + h.metaBytes + h.bytes !== file.size()) return null;
  const json = bytesOf(file, HEADER_BYTES, h.metaBytes);
  return json && parsed(json);
}

/** Bytes that no checksum has vouched for may be anything. */
function parsed(json: Uint8Array): object | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(json));
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}
