// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  bytes,
  count,
  duration,
  milliseconds,
  parseNumber,
  percent,
  rate,
  readable,
  roughCount,
  WHOLE_STRIDES,
} from './format';

describe('numbers for people', () => {
  it('groups and rounds counts', () => {
    expect(count(366432)).toBe('366,432');
    expect(roughCount(70464)).toBe('70 thousand');
    expect(roughCount(6416896)).toBe('6.4 million');
    expect(roughCount(473244160)).toBe('473 million');
    expect(roughCount(999)).toBe('999');
    expect(roughCount(999_960)).toBe('1 million');
  });

  it('gives sizes in decimal units', () => {
    expect(bytes(0)).toBe('0 bytes');
    expect(bytes(1)).toBe('1 byte');
    expect(bytes(999)).toBe('999 bytes');
    expect(bytes(1000)).toBe('1 KB');
    expect(bytes(1_115_394)).toBe('1.1 MB');
    expect(bytes(999_999)).toBe('1 MB');
    expect(bytes(3e9)).toBe('3 GB');
    expect(bytes(NaN)).toBe('–');
  });

  it('gets coarser as durations grow, and never says 60 s', () => {
    expect(duration(0.2)).toBe('under a second');
    expect(duration(59.4)).toBe('59 s');
    expect(duration(59.6)).toBe('1 min');
    expect(duration(92)).toBe('1 min 30 s');
    expect(duration(599)).toBe('10 min');
    expect(duration(3599)).toBe('1 h');
    expect(duration(7500)).toBe('2 h 5 min');
    expect(duration(86400 * 3)).toBe('3 days');
    expect(duration(Infinity)).toBe('–');
    for (let s = 1; s < 5000; s++) expect(duration(s)).not.toMatch(/\b60 (s|min)/);
  });

  it('has short forms for the rest', () => {
    expect(milliseconds(3.14)).toBe('3.1 ms');
    expect(milliseconds(2000)).toBe('2.0 s');
    expect(percent(0.004)).toBe('under 1 %');
    expect(percent(0.62)).toBe('62 %');
    expect(rate(0.003)).toBe('3e-3');
    expect(rate(0.00025)).toBe('2.5e-4');
    expect(rate(0)).toBe('0');
  });
});

describe('parseNumber', () => {
  const b = { min: 1, max: 20000, whole: true };

  it('takes what people write', () => {
    expect(parseNumber(' 1,500 ', b).value).toBe(1500);
    expect(parseNumber('2 000', b).value).toBe(2000);
    expect(parseNumber('2e3', b).value).toBe(2000);
    expect(parseNumber('3e-3', { min: 0, max: 1 }).value).toBe(0.003);
    expect(parseNumber('.5', { min: 0, max: 1 }).value).toBe(0.5);
  });

  it('says what is wrong with the rest', () => {
    for (const text of [
      '',
      '12abc',
      'NaN',
      'Infinity',
      '0x10',
      '1,5',
      '--3',
      '1.5',
      '0',
      '20001',
      '1e999',
    ]) {
      expect(parseNumber(text, b).problem, text).not.toBe('');
    }
    expect(parseNumber('0', b).problem).toBe('From 1 to 20,000.');
    expect(parseNumber('2', { min: 1e-7, max: 1 }).problem).toBe('From 1e-7 to 1.');
  });
});

it('noise of a model that knows nothing is dots, and steps on an axis are whole', () => {
  expect(readable('\na\ufffd\u0001b\tc\nd')).toBe('a··b\tc\nd');
  expect(WHOLE_STRIDES.slice(0, 5)).toEqual([1, 2, 5, 10, 20]);
  expect(WHOLE_STRIDES.every((stride) => Number.isInteger(stride))).toBe(true);
});
