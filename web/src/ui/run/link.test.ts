// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SIZES } from '../model/presets';
import { readLink, writeLink } from './link';
import { defaultSettings, settingsOfSize } from './settings';

const SHA = '5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef';

describe('a link', () => {
  it('brings back every setting of every size, exactly', () => {
    for (const size of SIZES) {
      const s = { ...settingsOfSize(size), lr: 0.1 + 0.2, seed: 2 ** 53 - 1, valFraction: 1 / 7 };
      const link = readLink(writeLink('live', s, { bytes: 5, sha256: SHA }));
      expect(link.view).toBe('live');
      expect(link.settings).toEqual(s);
      expect(link.text).toEqual({ bytes: 5, sha256: SHA });
      expect(link.problems).toEqual([]);
    }
  });

  it('tells a text that can be made anew', () => {
    const text = { bytes: 1_000_000, sha256: SHA, stories: 42 };
    expect(readLink(writeLink('start', defaultSettings(), text)).text).toEqual(text);
    expect(readLink(writeLink('start', defaultSettings(), null)).text).toBeNull();
  });

  it('reads a bare view, nothing, and strangers', () => {
    expect(readLink('')).toEqual({ view: '', settings: {}, text: null, problems: [] });
    expect(readLink('#text')).toEqual({ view: 'text', settings: {}, text: null, problems: [] });
    expect(readLink('#run?unknown=1&constructor=2').settings).toEqual({});
  });

  it('names what is damaged, and reads the rest', () => {
    const link = readLink('#run?steps=-5&batch=8&lr=fast&schedule=zigzag&size=giant&text=12-zz');
    expect(link.settings).toEqual({ batch: 8 });
    expect(link.text).toBeNull();
    expect(link.problems).toHaveLength(5);
    expect(link.problems.join(' ')).toContain('"-5"');
  });

  it('survives anything', () => {
    let x = 1;
    for (let i = 0; i < 300; i++) {
      let text = '#';
      for (let j = 0; j < 24; j++) {
        x = (x * 1103515245 + 12345) & 0x7fffffff;
        text += '?&=%#steps1-e.\u00e9'[x % 16] ?? '';
      }
      expect(() => readLink(text)).not.toThrow();
    }
  });
});
