// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { findingWords } from './finding_words';

const of = (code: string, text = 'x', level: 'error' | 'warning' | 'remark' = 'warning') =>
  findingWords({ code, text, level });

it('has words for everything that the engine finds in bytes', () => {
  const lint = readFileSync('../src/inspect/lint.c', 'utf8');
  const codes = [...lint.matchAll(/find\(s, \d,\s*"([a-z0-9_]+)"/g)].map(([, code]) => code!);
  expect(new Set(codes).size).toBeGreaterThan(10);
  for (const code of codes) {
    if (code.includes('tokens') || code === 'short_end') continue; // a mix is native alone
    expect(of(code, 'plain words'), code).not.toBe('Plain words.');
  }
});

it('tells what is too short, and keeps the numbers that say something', () => {
  const parts = [
    of('short', 'the training part has 12 bytes; a window of 64 ..', 'error'),
    of('short', 'the validation part has 12 bytes, fewer than ..'),
    of('short', '11800 bytes are very little: ..'),
  ];
  expect(parts[0]).toContain('longer text');
  expect(parts[1]).toContain('kept for checking');
  expect(parts[2]).toContain('by heart');
  expect(of('repeated', '43 % of the text repeats ..')).toMatch(/^43 % of it/);
  expect(of('unheard_of', 'something new')).toBe('Something new.');
});
