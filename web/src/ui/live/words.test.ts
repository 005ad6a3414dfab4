// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { choices, guessing, meaning, type Unit, unitOf } from './words';

const run = (loss: number) => ({ loss, vocab: 256, unit: 'character' as const });

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
    const said = [6, 5.5, 4, 3, 2.3, 1.8, 1.4, 1, 0.6, 0.1].map((nats) => meaning(run(nats)));
    expect(new Set(said).size).toBe(said.length);
    expect(meaning(run(NaN))).toBe('');
    expect(meaning(run(5.56))).toBe('It hesitates between all 256 characters: it knows nothing yet.');
  });

  it('count the choices of a run by its own vocabulary, whatever else is open', () => {
    const begun = (vocab: number, unit: Unit) => meaning({ loss: guessing(vocab), vocab, unit });
    expect(begun(65, 'character')).toContain('all 65 characters: it knows nothing yet');
    expect(begun(8192, 'token')).toContain('all 8,192 tokens: it knows nothing yet');
    expect(meaning({ loss: 4, vocab: 512, unit: 'token' })).toContain('tokens each time');
    expect(meaning({ loss: 5.5, vocab: 65, unit: 'character' })).toContain('Worse than guessing');
  });
});
