// SPDX-License-Identifier: Apache-2.0
/**
 * parts.ts - what the files of the store have in common: a header of 64 bytes with a name, a version
 * and a checksum of its own, behind which the rest lies; and the order in which both are written.
 */
import { crc32 } from './crc32.js';
import type { Disk, DiskFile } from './disk.js';

const VERSION = 1;
export const HEADER_BYTES = 64;
export const HEADER_CRC_AT = 32;

/** Exactly n bytes, or null if the file ends before. */
export function bytesOf(file: DiskFile, at: number, n: number): Uint8Array | null {
  if (at + n > file.size()) return null;
  const bytes = new Uint8Array(n);
  return file.read(bytes, at) === n ? bytes : null;
}

/** The start of a header: its name of four letters and the version. */
export function record(bytes: number, magic: string): DataView {
  const view = new DataView(new ArrayBuffer(bytes));
  for (let i = 0; i < 4; i++) view.setUint8(i, magic.charCodeAt(i));
  view.setUint32(4, VERSION, true);
  return view;
}

/** The header with its checksum. */
export function sealed(view: DataView, crcAt: number): Uint8Array {
  const bytes = new Uint8Array(view.buffer);
  view.setUint32(crcAt, crc32(bytes.subarray(0, crcAt)), true);
  return bytes;
}

/** The header of a file, if it is whole and of this name and version. */
export function readHeader(
  file: DiskFile, bytes: number, magic: string, crcAt: number,
): DataView | null {
  const raw = bytesOf(file, 0, bytes);
  if (!raw) return null;
  const view = new DataView(raw.buffer);
  const marked = [0, 1, 2, 3].every((i) => raw[i] === magic.charCodeAt(i));
  const whole = view.getUint32(crcAt, true) === crc32(raw.subarray(0, crcAt));
  return marked && whole && view.getUint32(4, true) === VERSION ? view : null;
}

/** Body, flush, header, flush. What could not be finished gives its room back. */
export async function write(
  disk: Disk, name: string, header: () => Uint8Array, body: (file: DiskFile) => Promise<void>,
): Promise<void> {
  const file = await disk.open(name);
  try {
    file.write(new Uint8Array(HEADER_BYTES), 0);
    await body(file);
    file.flush();
    file.write(header(), 0);
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
