// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { choices, guessing, meaning, unitOf } from './words';

describe('words', () => {
  it('turn a loss into a number of choices', () => {
    expect(choices(guessing(256))).toBe('256');
    expect(choices(Math.log(11))).toBe('11');
    expect(choices(1)).toBe('2.7');
  });

  it('call bytes characters where they are', () => {
    expect(unitOf('bytes', true)).toBe('character');
    expect(unitOf('bytes', false)).toBe('byte');
    expect(unitOf('chars', false)).toBe('character');
    expect(unitOf('pieces', true)).toBe('token');
  });

  it('have a sentence for every loss', () => {
    const said = [6, 5.5, 4, 3, 2.3, 1.8, 1.4, 1, 0.6, 0.1].map((nats) => meaning(nats));
    expect(new Set(said).size).toBe(said.length);
    expect(meaning(NaN)).toBe('');
    expect(meaning(5.56)).toBe('It hesitates between all 256 characters: it knows nothing yet.');
    expect(meaning(4, 512, 'token')).toContain('tokens each time');
    expect(meaning(6.2, 512, 'token')).toContain('tokens: it knows nothing yet');
  });
});
