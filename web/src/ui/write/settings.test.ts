// SPDX-License-Identifier: Apache-2.0
import { describe as group, expect, it } from 'vitest';
import { CAREFUL, DEFAULTS, describe, FIELDS, sharedStart } from './settings';

group('describe', () => {
  it('leaves out what is off', () => {
    expect(describe(DEFAULTS)).toBe('temperature 0.8, seed 42');
    expect(describe({ ...DEFAULTS, topK: 40, minP: 0.05 })).toBe(
      'temperature 0.8, top-k 40, min-p 0.05, seed 42',
    );
    expect(describe({ ...DEFAULTS, repeatPenalty: 1.2 })).toBe(
      'temperature 0.8, repeat penalty 1.2, looking back 64, seed 42',
    );
  });
  it('says of a greedy choice only what still acts', () => {
    expect(describe({ ...DEFAULTS, temperature: 0, topK: 40 })).toBe(
      'the likeliest byte each time',
    );
    expect(describe({ ...DEFAULTS, temperature: 0, repeatPenalty: 1.5 })).toBe(
      'the likeliest byte each time, repeat penalty 1.5, looking back 64',
    );
  });
});

it('keeps all defaults in range', () => {
  for (const f of FIELDS) {
    for (const s of [DEFAULTS, CAREFUL]) {
      expect(s[f.key]).toBeGreaterThanOrEqual(f.min);
      expect(s[f.key]).toBeLessThanOrEqual(f.max);
    }
    if (f.off !== undefined) expect(DEFAULTS[f.key]).toBe(f.off);
  }
});

group('sharedStart', () => {
  it('counts equal characters', () => {
    expect(sharedStart('abcd', 'abxd')).toBe(2);
    expect(sharedStart('ab', 'abc')).toBe(2);
    expect(sharedStart('', 'abc')).toBe(0);
  });
});
