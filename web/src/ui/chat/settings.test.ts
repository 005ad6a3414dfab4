// SPDX-License-Identifier: Apache-2.0
/** settings.test.ts - lines of texts, and of texts with a number. */
import { describe, expect, it } from 'vitest';
import {
  biases,
  CHAT_DEFAULTS,
  lines,
  modelKey,
  templateFor,
  withLoaded,
  withTemplate,
} from './settings';

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

describe('templates', () => {
  it('are each of one model', () => {
    const s = withTemplate(withTemplate(CHAT_DEFAULTS, 'a', '-'), 'b', 'llama3');
    expect(['a', 'b', 'c', 'constructor'].map((key) => templateFor(s, key))).toEqual(['-', 'llama3', '', '']);
    expect(CHAT_DEFAULTS.templates).toEqual({});
  });

  it('of files of one name and one size are each their own', async () => {
    const made = (change: number) => {
      const bytes = new Uint8Array(200_000);
      bytes[change] = 1;
      return modelKey(new File([bytes], 'm.gguf'));
    };
    const keys = await Promise.all([made(0), made(199_999), modelKey({ stored: '7' })]);
    expect(new Set(keys).size).toBe(3);
    expect(keys[2]).toBe('7');
    expect(await made(0)).toBe(keys[0]);
  });

  it('of the model that is open is the one that it was loaded with', () => {
    const s = withTemplate(withTemplate(CHAT_DEFAULTS, 'a', '-'), 'b', 'llama3');
    const shown = withLoaded({ ...s, system: 'Be brief.' }, 'a', { ctx: 512, keys: 'int8', template: '' });
    expect(shown).toMatchObject({ system: 'Be brief.', ctx: 512, keys: 'int8' });
    expect(shown.templates).toEqual({ a: '', b: 'llama3' });
  });
});
