// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { Forecast } from '../../lib/types';
import { defaultSettings } from '../run/settings';
import { adviceOf } from './advice';

const FITS = {
  params: 366_432,
  trainBytes: 900_000,
  valBytes: 100_000,
  epochs: 2,
  memoryBytes: 1e8,
  memoryAvailableBytes: 2e9,
} as Forecast;
const words = (f: Partial<Forecast>, s = {}) =>
  adviceOf({ ...FITS, ...f }, { ...defaultSettings(), size: 'small', ...s })
    .map((a) => `${a.text}${a.size ? ` [${a.size}]` : ''}`)
    .join(' ');

it('says nothing where nothing is to be said', () => {
  expect(words({})).toBe('');
  expect(words({ trainBytes: 0, valBytes: 0 })).toBe('');
});

it('speaks of short and of long texts', () => {
  expect(words({ trainBytes: 200, epochs: 900 })).toMatch(/^Very short text.*\[tiny\]$/);
  expect(words({ trainBytes: 200, epochs: 900, params: 70_464 }, { size: 'tiny' })).not.toContain('[');
  expect(words({ trainBytes: 50_000 })).toMatch(/^Little text/);
  expect(words({ trainBytes: 2e8, epochs: 0.012 })).toContain('1 % of the text');
  expect(words({ epochs: 31.4 })).toContain('31 times');
});

it('speaks of memory, checks and rates, never of options', () => {
  expect(words({ memoryBytes: 1.02e10, memoryAvailableBytes: 4.3e9 })).toMatch(/10 GB.*4\.3 GB/);
  expect(words({ valBytes: 0 })).toContain('checking');
  const all = words({ valBytes: 0, epochs: 50 }, { lr: 0.01 });
  expect(all).toContain('0.01');
  expect(all).not.toMatch(/--|nats|bytes a parameter/);
});
