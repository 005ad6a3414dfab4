// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { excerpt, firstWords } from './excerpt';

const bytes = (s: string) => new TextEncoder().encode(s);

describe('firstWords', () => {
  it('begins with a word and keeps to the length', () => {
    expect(firstWords(bytes('nce upon a time there was'), 11)).toBe('upon a time');
  });
  it('takes all of a text without blanks', () => {
    expect(firstWords(bytes('abcdefghij'), 64)).toBe('abcdefghij');
  });
  it('does not cut a character in two', () => {
    const cut = bytes('xé größer als alles andere auf der Welt').slice(2);
    expect(firstWords(cut, 4)).toBe('grö');
    expect(firstWords(cut, 3)).toBe('gr');
  });
  it('is empty for an empty text', () => {
    expect(firstWords(new Uint8Array(0), 10)).toBe('');
  });
});

describe('excerpt', () => {
  it('is from the text, wherever it is drawn', async () => {
    const text = Array.from({ length: 500 }, (_, i) => `word${i}`).join(' ');
    for (const draw of [0, 0.3, 0.999]) {
      const found = await excerpt(new Blob([text]), 40, draw);
      expect(found.length).toBeGreaterThan(20);
      expect(text).toContain(found);
    }
  });
});
