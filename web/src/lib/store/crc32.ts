// SPDX-License-Identifier: Apache-2.0
/**
 * crc32.ts - the checksum of gzip and PNG (polynomial 0xEDB88320, reflected), four bytes a turn.
 *
 * It finds what a storage does by accident: any change of up to 32 bits in a row for certain,
 * others but for one in 2^32. It is no defence against somebody who means to deceive; neither is
 * the browser's own storage, which only this page's origin can write.
 */

/** table[k][b]: what byte b does to the checksum from k bytes further on. */
const TABLES = makeTables();

function makeTables(): readonly [Uint32Array, Uint32Array, Uint32Array, Uint32Array] {
  const tables = [0, 1, 2, 3].map(() => new Uint32Array(256));
  const [t0, t1, t2, t3] = tables as [Uint32Array, Uint32Array, Uint32Array, Uint32Array];
  for (let byte = 0; byte < 256; byte++) {
    let c = byte;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
    t0[byte] = c;
  }
  for (let byte = 0; byte < 256; byte++) {
    t1[byte] = next(t0, t0[byte]!);
    t2[byte] = next(t0, t1[byte]!);
    t3[byte] = next(t0, t2[byte]!);
  }
  return [t0, t1, t2, t3];
}

function next(t0: Uint32Array, c: number): number {
  return (c >>> 8) ^ t0[c & 0xff]!;
}

/** Checksum of what gave `before` (0 for nothing) followed by these bytes. */
export function crc32(bytes: Uint8Array, before = 0): number {
  const [t0, t1, t2, t3] = TABLES;
  const whole = bytes.length - (bytes.length % 4);
  let c = ~before;
  let i = 0;
  for (; i < whole; i += 4) {
    c ^= bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    c = t3[c & 0xff]! ^ t2[(c >>> 8) & 0xff]! ^ t1[(c >>> 16) & 0xff]! ^ t0[c >>> 24]!;
  }
  for (; i < bytes.length; i++) c = (c >>> 8) ^ t0[(c ^ bytes[i]!) & 0xff]!;
  return ~c >>> 0;
}
