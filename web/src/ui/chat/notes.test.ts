// SPDX-License-Identifier: Apache-2.0
/** notes.test.ts - passages keep all words, none is too long; the nearest come first. */
import { describe, expect, it } from 'vitest';
import { nearestTo, passages } from './notes';

const words = (text: string) => text.split(/\s+/).filter((word) => word !== '');

describe('passages', () => {
  it('are paragraphs, with headings before them, and lose no word', () => {
    const long = 'A sentence of some words. '.repeat(60);
    const text = `# Title\n\nFirst ${'word '.repeat(30)}\n\n${long}\r\n\r\n${'x'.repeat(2000)}\n\nend`;
    const list = passages('a.md', text);
    expect(list[0]!.text).toMatch(/^# Title\nFirst/);
    expect(list.every((p) => p.text.length <= 700 && p.from === 'a.md')).toBe(true);
    expect(list.flatMap((p) => words(p.text)).join('')).toBe(words(text).join(''));
    expect(passages('b', ' \n\n ')).toEqual([]);
  });

  it('are found by the angle to a question', () => {
    const list = passages('n', `${'cats '.repeat(20)}\n\n${'ships '.repeat(20)}`);
    const vectors = [Float32Array.of(1, 0), Float32Array.of(0, 1)];
    const [first, second] = nearestTo(Float32Array.of(0.6, 0.8), list, vectors, 5);
    expect(first!.passage.text).toMatch(/^ships/);
    expect(first!.near).toBeCloseTo(0.8);
    expect(second!.near).toBeCloseTo(0.6);
  });
});
