// SPDX-License-Identifier: Apache-2.0
/** crc32.test.ts - the published check value, and pieces against the whole. */
import { expect, it } from 'vitest';
import { crc32 } from './crc32.js';

const ascii = (s: string) => new TextEncoder().encode(s);

it('gives the published values', () => {
  expect(crc32(ascii(''))).toBe(0);
  expect(crc32(ascii('123456789'))).toBe(0xcbf43926);
  expect(crc32(ascii('The quick brown fox jumps over the lazy dog'))).toBe(0x414fa339);
});

it('gives the same in pieces', () => {
  const bytes = new Uint8Array(1009).map((_, i) => i * i);
  for (let cut = 0; cut <= bytes.length; cut += 7) {
    expect(crc32(bytes.subarray(cut), crc32(bytes.subarray(0, cut)))).toBe(crc32(bytes));
  }
});

it('sees every single bit', () => {
  const bytes = new Uint8Array(64);
  const seen = new Set([crc32(bytes)]);
  for (let bit = 0; bit < 512; bit++) seen.add(crc32(bytes.with(bit >> 3, 1 << (bit & 7))));
  expect(seen.size).toBe(513);
});
