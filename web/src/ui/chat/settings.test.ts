// SPDX-License-Identifier: Apache-2.0
/** settings.test.ts - lines of texts, and of texts with a number. */
import { describe, expect, it } from 'vitest';
import { biases, lines } from './settings';

describe('what is typed a line each', () => {
  it('keeps spaces, which belong to words, and drops empty lines', () => {
    expect(lines(' a\n\nb \n')).toEqual([' a', 'b ']);
  });

  it('has a number at the end of its line, or says which line has none', () => {
    expect(biases(' blue sky -2.5\nred -Infinity')).toEqual([
      { text: ' blue sky', bias: -2.5 },
      { text: 'red', bias: -Infinity },
    ]);
    for (const wrong of ['blue', 'blue x', ' 5', 'blue Infinity', 'blue NaN']) {
      expect(() => biases(wrong)).toThrow(`have "${wrong}"`);
    }
  });
});
