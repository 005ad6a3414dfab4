// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { charactersOf, markAt } from './characters';

const marks = (bytes: ArrayLike<number>) => charactersOf(bytes).map((c) => c.mark).join('|');
const utf8 = (text: string) => new TextEncoder().encode(text);

it('spells characters of one to four bytes', () => {
  expect(marks(utf8('aé中🎈 b'))).toBe('a|é|中|🎈|␣|b');
  expect(charactersOf(utf8('é中')).map((c) => [c.from, c.to])).toEqual([[0, 2], [2, 5]]);
});

it('has each byte once, also where bytes spell nothing', () => {
  const bytes = [0x61, 0xd7, 0xe4, 0xb8, 0x20, 0xff, 0xc0, 0x80, 0xd7, 0xa9, 0xf4, 0x90];
  const found = charactersOf(bytes);
  expect(found.flatMap((c) => Array.from({ length: c.to - c.from }, (_, i) => c.from + i)))
    .toEqual(bytes.map((_, i) => i));
  expect(marks(bytes)).toBe('a|d7|e4|b8|␣|ff|c0|80|ש|f4|90');
});

it('draws a character at its first byte, and dots behind it', () => {
  const ids = Int32Array.from(utf8('a中b'));
  const drawn = Array.from(ids, (_, t) => markAt(ids, t));
  expect(drawn.map((m) => m.mark)).toEqual(['a', '中', '·', '·', 'b']);
  expect(drawn[2]?.name).toBe('中, byte 2 of 3');
});
