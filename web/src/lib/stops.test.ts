// SPDX-License-Identifier: Apache-2.0
/** stops.test.ts - any cut of a text into pieces gives what comes before the first stop. */
import { describe, expect, it } from 'vitest';
import { Stops } from './stops.js';

function all(stops: string[], pieces: string[]): string {
  const watched = new Stops(stops);
  let text = '';
  for (const piece of pieces) {
    const { out, ended } = watched.take(piece);
    text += out;
    if (ended) return `${text}|${watched.rest('')}`;
  }
  return text + watched.rest('');
}

describe('texts that end an answer', () => {
  it('are found in any cut, and are not handed out', () => {
    const text = 'an EN and an ENDE';
    for (let i = 0; i <= text.length; i++) {
      for (let j = i; j <= text.length; j++) {
        const pieces = [text.slice(0, i), text.slice(i, j), text.slice(j)];
        expect(all(['END', 'DE'], pieces)).toBe('an EN and an |');
      }
    }
  });

  it('hold back no more than they must, and give it back', () => {
    const stops = new Stops(['\n\nUser', 'END']);
    expect(stops.take('the E')).toEqual({ out: 'the ', ended: false });
    expect(stops.take('N')).toEqual({ out: '', ended: false });
    expect(stops.take('d\n')).toEqual({ out: 'ENd', ended: false });
    expect(stops.take('\n\nUse')).toEqual({ out: '\n', ended: false });
    expect(stops.rest('')).toBe('\n\nUse');
  });

  it('end at the first of several, and at none that is empty', () => {
    expect(all(['b', 'a'], ['xxaxb'])).toBe('xx|');
    expect(all([''], ['whole'])).toBe('whole');
  });
});
