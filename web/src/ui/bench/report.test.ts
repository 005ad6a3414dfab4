// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { judgeAdapter } from './adapter';
import {
  formatDrift,
  formatMs,
  formatRatio,
  osBrowser,
  ratioToScalar,
  reportText,
  webgpuCell,
} from './report';
import type { PresetResult } from './run';

const result: PresetResult = {
  preset: 'small',
  blockSteps: 10,
  steps: 60,
  rows: [
    { build: 'scalar', threads: 1, firstMs: NaN, ms: [100, 110, 120, 100, 100, 100], loss: 2.5, problem: '' },
    { build: 'simd', threads: 1, firstMs: NaN, ms: [25, 27.5, 30, 25, 25, 25], loss: 2.5, problem: '' },
    { build: 'relaxed', threads: 1, firstMs: NaN, ms: [], loss: NaN, problem: 'no relaxed SIMD' },
    { build: 'simd-mt', threads: 4, firstMs: NaN, ms: [10, 11, 12, 10, 10, 10], loss: 2.500025, problem: '' },
  ],
};
const place = {
  device: '8 logical cores',
  osBrowser: 'Linux / Chromium 156',
  version: '0.2.0',
  adapter: judgeAdapter({ vendor: 'google', architecture: 'swiftshader' }),
  notes: ['cross-origin isolated'],
};

describe('formats', () => {
  it('keeps three digits', () => {
    expect([1234.5, 123.4, 12.34, 1.234, NaN].map(formatMs)).toEqual([
      '1235',
      '123',
      '12.3',
      '1.23',
      '-',
    ]);
  });
  it('shows an interval only where there is one', () => {
    expect(formatRatio({ median: 4, low: 3.9, high: 4.1, pairs: 6 })).toBe('4.00 [3.90, 4.10]');
    expect(formatRatio({ median: 4, low: NaN, high: NaN, pairs: 3 })).toBe('4.00 [?]');
    expect(formatRatio({ median: NaN, low: NaN, high: NaN, pairs: 0 })).toBe('-');
  });
  it('shows a drift of nothing as 0', () => {
    expect([0, 1e-5, NaN].map(formatDrift)).toEqual(['0', '1.0e-5', '-']);
  });
});

it('forms the ratio inside the turns', () => {
  expect(ratioToScalar(result, 'simd')).toMatchObject({ median: 4, low: 4, high: 4 });
  expect(ratioToScalar(result, 'relaxed').median).toBeNaN();
});

describe('reportText', () => {
  const text = reportText(place, [result]);
  it('has all fields', () => {
    for (const word of [
      'device',
      'os/browser',
      'adapter',
      'preset',
      'steps',
      'scalar',
      'simd-mt',
      'webgpu',
      'ratio',
      'drift',
      'notes',
    ])
      expect(text).toContain(word);
  });
  it('has the numbers in their columns', () => {
    expect(text).toMatch(/^small +60 +100 +25\.0 +- +10\.0 +refused: software GPU$/m);
    expect(text).toMatch(/^small +4\.00 \[4\.00, 4\.00\] +- +10\.00 \[10\.00, 10\.00\]$/m);
    expect(text).toMatch(/^small +0 +- +1\.0e-5$/m);
    expect(text).toContain('threads     4');
    expect(text).toContain('- small, relaxed: no relaxed SIMD');
  });
  it('refuses software', () => {
    expect(text).toContain('adapter     google swiftshader (software)');
    expect(webgpuCell(judgeAdapter(null))).toBe('no adapter');
    expect(webgpuCell(judgeAdapter({ vendor: 'apple' }))).toBe('not measured');
  });
});

describe('osBrowser', () => {
  it('prefers the brand, then reads the user agent', () => {
    expect(
      osBrowser(
        '',
        [
          { brand: 'Not A;Brand', version: '8' },
          { brand: 'Chromium', version: '156' },
        ],
        'Linux',
      ),
    ).toBe('Linux / Chromium 156');
    expect(
      osBrowser(
        '',
        [
          { brand: 'Chromium', version: '156' },
          { brand: 'Microsoft Edge', version: '156' },
        ],
        'Windows',
      ),
    ).toBe('Windows / Microsoft Edge 156');
    expect(
      osBrowser('Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', [], ''),
    ).toBe('Linux / Firefox 140');
    expect(
      osBrowser(
        'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 ' +
          '(KHTML, like Gecko) Version/26.0 Safari/605.1.15',
        [],
        '',
      ),
    ).toBe('macOS / Safari 26');
    expect(osBrowser('', [], '')).toBe('unknown system / unknown browser');
  });
});
