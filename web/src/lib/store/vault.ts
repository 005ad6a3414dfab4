// SPDX-License-Identifier: Apache-2.0
/**
 * vault.ts - one run and its text on a disk that may lose power, or its tab, at any moment.
 *
 * The invariant: load() gives the last run whose save() came back, or one that was being saved just
 * then, never a mixture and never nothing. Two slots take turns. A save goes to the slot that is
 * not in use, in this order, with a flush between the steps:
 *
 *     run and meta  ->  the slot's header  ->  the pointer
 *
 * so the old slot is whole until the new one is, and the pointer flips last. Every part carries a
 * checksum, since a pointer of 24 bytes can be torn, too, and disks lose what they have once held:
 * where the pointer is no help the newest whole slot is taken, and where the newest is damaged, the
 * one before it, and `notice` says so.
 *
 *     slot-0, slot-1      OFFSET SIZE  MEANING (little-endian)
 *                              0    4  "TGSL"
 *                              4    4  version, 1
 *                              8    4  sequence: grows with every save
 *                             12    4  bytes of the meta
 *                             16    8  bytes of the run
 *                             24    4  CRC-32 of meta and run
 *                             28    4  the text that belongs to it: its id, 0 for none
 *                             32    4  CRC-32 of bytes 0..31
 *                             64       meta (JSON in UTF-8), then the run
 *     text-0, text-1           0    4  "TGTX"
 *                              4    4  version, 1
 *                              8    4  id: grows with every text
 *                             12    4  CRC-32 of the text
 *                             16    8  bytes of the text
 *                             32    4  CRC-32 of bytes 0..31
 *                             64       the text
 *     pointer                  0    4  "TGPT"
 *                              4    4  version, 1
 *                              8    4  slot, or 255: nothing up to this sequence counts any more
 *                             12    4  sequence
 *                             16    4  0
 *                             20    4  CRC-32 of bytes 0..19
 *
 * Texts take turns, too: the one that the saved run belongs to is never written over.
 */
import { crc32 } from './crc32.js';
import type { Disk, DiskFile } from './disk.js';

export interface SavedRun {
  run: Uint8Array;
  meta: object;
}

const VERSION = 1;
const HEADER_BYTES = 64;
const HEADER_CRC_AT = 32;
const POINTER_BYTES = 24;
const POINTER_CRC_AT = 20;
const NO_SLOT = 255;
const CHUNK_BYTES = 4 << 20;

type Index = 0 | 1;
const BOTH: readonly Index[] = [0, 1];

interface SlotHeader {
  sequence: number;
  metaBytes: number;
  runBytes: number;
  crc: number;
  text: number;
}

interface TextHeader {
  id: number;
  crc: number;
  bytes: number;
}

interface Pointer {
  slot: number;
  sequence: number;
}

/** What the disk was found to hold, and what the next save must not touch. */
interface State {
  /** The slot of the run that load() gives. */
  slot: Index | null;
  header: SlotHeader | null;
  /** Highest sequence and highest text id that were ever seen. */
  sequence: number;
  lastText: number;
  texts: [TextHeader | null, TextHeader | null];
  /** Id of the text that the next save belongs to. */
  text: number;
}

export class Vault {
  /** What a person should know about the last load(); '' if all was well. */
  notice = '';
  readonly #disk: Disk;
  #state: State | null = null;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /** The run that counts, or null. */
  load(): Promise<SavedRun | null> {
    return this.#serially(async () => {
      this.#state = null;
      return (await this.#find()).saved;
    });
  }

  save(run: Uint8Array, meta: object): Promise<void> {
    return this.#serially(async () => {
      const state = await this.#known();
      const slot: Index = state.slot === 0 ? 1 : 0;
      const json = new TextEncoder().encode(JSON.stringify(meta));
      const header: SlotHeader = {
        sequence: ++state.sequence,
        metaBytes: json.length,
        runBytes: run.length,
        crc: crc32(run, crc32(json)),
        text: state.text,
      };
      await this.#write(`slot-${slot}`, slotHeader(header), async (file) => {
        file.resize(HEADER_BYTES + json.length + run.length);
        file.write(json, HEADER_BYTES);
        file.write(run, HEADER_BYTES + json.length);
      });
      await this.#point({ slot, sequence: header.sequence });
      state.slot = slot;
      state.header = header;
    });
  }

  /** Keeps a text; the saves that follow belong to it. */
  saveText(text: Blob): Promise<void> {
    return this.#serially(async () => {
      const state = await this.#known();
      for (const i of BOTH) {
        const kept = state.texts[i];
        if (kept && kept.bytes === text.size && (await this.#holds(i, text))) {
          state.text = kept.id;
          return;
        }
      }
      // Saves belong to no text until the new one is whole.
      state.text = 0;
      const used = state.header?.text ?? 0;
      const slot: Index = used !== 0 && state.texts[0]?.id === used ? 1 : 0;
      state.texts[slot] = null;
      const header: TextHeader = { id: ++state.lastText, crc: 0, bytes: text.size };
      await this.#write(
        `text-${slot}`,
        () => textHeader(header),
        async (file) => {
          file.resize(HEADER_BYTES + text.size);
          for (let at = 0; at < text.size; at += CHUNK_BYTES) {
            const chunk = new Uint8Array(await text.slice(at, at + CHUNK_BYTES).arrayBuffer());
            header.crc = crc32(chunk, header.crc);
            file.write(chunk, HEADER_BYTES + at);
          }
        },
      );
      state.texts[slot] = header;
      state.text = header.id;
    });
  }

  /** The text of the run that load() gives, or null. */
  loadText(): Promise<Blob | null> {
    return this.#serially(async () => {
      const state = await this.#known();
      const wanted = state.header?.text ?? 0;
      const i = BOTH.find((k) => wanted !== 0 && state.texts[k]?.id === wanted);
      const header = i === undefined ? null : state.texts[i];
      if (i === undefined || !header) return null;
      const file = await this.#disk.open(`text-${i}`);
      try {
        if (crcOf(file, HEADER_BYTES, header.bytes) !== header.crc) return null;
      } finally {
        file.close();
      }
      return this.#disk.blob(`text-${i}`, HEADER_BYTES);
    });
  }

  /** Forgets everything: from the first write on, a load() finds nothing. */
  clear(): Promise<void> {
    return this.#serially(async () => {
      const state = await this.#known();
      await this.#point({ slot: NO_SLOT, sequence: state.sequence });
      this.#state = null;
      for (const i of BOTH) {
        await this.#disk.remove(`slot-${i}`);
        await this.#disk.remove(`text-${i}`);
      }
      await this.#disk.remove('pointer');
    });
  }

  // ----------------------------------------------------------------------------------- reading

  async #known(): Promise<State> {
    return this.#state ?? (await this.#find()).state;
  }

  /** Looks at everything, checksums and all, and decides what counts. */
  async #find(): Promise<{ state: State; saved: SavedRun | null }> {
    const pointer = await this.#reading('pointer', readPointer);
    const headers: (SlotHeader | null)[] = [];
    const texts: (TextHeader | null)[] = [];
    for (const i of BOTH) {
      headers.push(await this.#reading(`slot-${i}`, readSlotHeader));
      texts.push(await this.#reading(`text-${i}`, readTextHeader));
    }
    const state: State = {
      slot: null,
      header: null,
      sequence: Math.max(pointer?.sequence ?? 0, ...headers.map((h) => h?.sequence ?? 0)),
      lastText: Math.max(...headers.map((h) => h?.text ?? 0), ...texts.map((t) => t?.id ?? 0)),
      texts: [texts[0] ?? null, texts[1] ?? null],
      text: 0,
    };
    const cleared = pointer?.slot === NO_SLOT ? pointer.sequence : 0;
    const candidates = BOTH.filter((i) => (headers[i]?.sequence ?? 0) > cleared).sort(
      (a, b) => preference(pointer, b, headers[b]) - preference(pointer, a, headers[a]),
    );
    let saved: SavedRun | null = null;
    for (const i of candidates) {
      const header = headers[i];
      saved = header ? await this.#reading(`slot-${i}`, (f) => readSlot(f, header)) : null;
      if (saved) {
        Object.assign(state, { slot: i, header, text: header?.text ?? 0 });
        break;
      }
    }
    this.notice = damage(pointer, state.header, headers[candidates[0] ?? -1] ?? null);
    this.#state = state;
    return { state, saved };
  }

  async #reading<T>(name: string, read: (file: DiskFile) => T | null): Promise<T | null> {
    const file = await this.#disk.open(name);
    try {
      return read(file);
    } finally {
      file.close();
    }
  }

  /** Is this the text in that slot, byte for byte? Then nothing has to be written. */
  async #holds(slot: Index, text: Blob): Promise<boolean> {
    const file = await this.#disk.open(`text-${slot}`);
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

  // ----------------------------------------------------------------------------------- writing

  /** Body, flush, header, flush. What could not be finished gives its room back. */
  async #write(
    name: string,
    header: Uint8Array | (() => Uint8Array),
    body: (file: DiskFile) => Promise<void>,
  ): Promise<void> {
    const file = await this.#disk.open(name);
    try {
      file.write(new Uint8Array(HEADER_BYTES), 0);
      await body(file);
      file.flush();
      file.write(typeof header === 'function' ? header() : header, 0);
      file.flush();
    } catch (e) {
      try {
        file.resize(0);
      } catch {
        // The first error is the one to tell.
      }
      throw e;
    } finally {
      file.close();
    }
  }

  async #point(pointer: Pointer): Promise<void> {
    const file = await this.#disk.open('pointer');
    try {
      file.write(pointerBytes(pointer), 0);
      file.flush();
    } finally {
      file.close();
    }
  }

  /** Calls follow one another, whoever makes them; one that fails holds up none. */
  #serially<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => {});
    return result;
  }
}

/** The slot that the pointer names, in the state that it names, comes first; then the newest. */
function preference(
  pointer: Pointer | null,
  slot: Index,
  header: SlotHeader | null = null,
): number {
  const named = pointer?.slot === slot && pointer.sequence === header?.sequence;
  return named ? Infinity : (header?.sequence ?? 0);
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

/** Exactly n bytes, or null if the file ends before. */
function bytesOf(file: DiskFile, at: number, n: number): Uint8Array | null {
  if (at + n > file.size()) return null;
  const bytes = new Uint8Array(n);
  return file.read(bytes, at) === n ? bytes : null;
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

function record(bytes: number, magic: string): DataView {
  const view = new DataView(new ArrayBuffer(bytes));
  for (let i = 0; i < 4; i++) view.setUint8(i, magic.charCodeAt(i));
  view.setUint32(4, VERSION, true);
  return view;
}

function sealed(view: DataView, crcAt: number): Uint8Array {
  const bytes = new Uint8Array(view.buffer);
  view.setUint32(crcAt, crc32(bytes.subarray(0, crcAt)), true);
  return bytes;
}

/** A record of the file's start, if it is whole and of this version. */
function opened(file: DiskFile, bytes: number, magic: string, crcAt: number): DataView | null {
  const raw = bytesOf(file, 0, bytes);
  if (!raw) return null;
  const view = new DataView(raw.buffer);
  const marked = [0, 1, 2, 3].every((i) => raw[i] === magic.charCodeAt(i));
  const whole = view.getUint32(crcAt, true) === crc32(raw.subarray(0, crcAt));
  return marked && whole && view.getUint32(4, true) === VERSION ? view : null;
}

function pointerBytes(p: Pointer): Uint8Array {
  const view = record(POINTER_BYTES, 'TGPT');
  view.setUint32(8, p.slot, true);
  view.setUint32(12, p.sequence, true);
  return sealed(view, POINTER_CRC_AT);
}

function readPointer(file: DiskFile): Pointer | null {
  const view = opened(file, POINTER_BYTES, 'TGPT', POINTER_CRC_AT);
  return view && { slot: view.getUint32(8, true), sequence: view.getUint32(12, true) };
}

function slotHeader(h: SlotHeader): Uint8Array {
  const view = record(HEADER_BYTES, 'TGSL');
  view.setUint32(8, h.sequence, true);
  view.setUint32(12, h.metaBytes, true);
  view.setBigUint64(16, BigInt(h.runBytes), true);
  view.setUint32(24, h.crc, true);
  view.setUint32(28, h.text, true);
  return sealed(view, HEADER_CRC_AT);
}

function readSlotHeader(file: DiskFile): SlotHeader | null {
  const view = opened(file, HEADER_BYTES, 'TGSL', HEADER_CRC_AT);
  return (
    view && {
      sequence: view.getUint32(8, true),
      metaBytes: view.getUint32(12, true),
      runBytes: Number(view.getBigUint64(16, true)),
      crc: view.getUint32(24, true),
      text: view.getUint32(28, true),
    }
  );
}

function textHeader(h: TextHeader): Uint8Array {
  const view = record(HEADER_BYTES, 'TGTX');
  view.setUint32(8, h.id, true);
  view.setUint32(12, h.crc, true);
  view.setBigUint64(16, BigInt(h.bytes), true);
  return sealed(view, HEADER_CRC_AT);
}

function readTextHeader(file: DiskFile): TextHeader | null {
  const view = opened(file, HEADER_BYTES, 'TGTX', HEADER_CRC_AT);
  const header = view && {
    id: view.getUint32(8, true),
    crc: view.getUint32(12, true),
    bytes: Number(view.getBigUint64(16, true)),
  };
  return header && HEADER_BYTES + header.bytes === file.size() ? header : null;
}

function readSlot(file: DiskFile, h: SlotHeader): SavedRun | null {
  if (HEADER_BYTES + h.metaBytes + h.runBytes !== file.size()) return null;
  const json = bytesOf(file, HEADER_BYTES, h.metaBytes);
  const run = bytesOf(file, HEADER_BYTES + h.metaBytes, h.runBytes);
  if (!json || !run || crc32(run, crc32(json)) !== h.crc) return null;
  const meta: unknown = JSON.parse(new TextDecoder().decode(json));
  return typeof meta === 'object' && meta !== null ? { run, meta } : null;
}
