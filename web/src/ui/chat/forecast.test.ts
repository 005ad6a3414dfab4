// SPDX-License-Identifier: Apache-2.0
/** forecast.test.ts - rows, the context nearest to a wish, and warnings at their limits. */
import { describe, expect, it } from 'vitest';
import type { ModelFacts } from '../../lib/types';
import { nearest, needs, twiceTooMuch, warning } from './forecast';

const FACTS: ModelFacts = {
  name: 'x',
  family: 'llama',
  params: 1e8,
  layers: 30,
  vocab: 49152,
  ctx: 4096,
  fileBytes: 1e8,
  weightBytes: 1e8,
  caches: [1024, 2048, 4096].map((tokens) => ({ tokens, bytes: tokens * 46_080 })),
  template: true,
  templates: [],
};

describe('the forecast', () => {
  it('has a row for each context, which all parts are in', () => {
    const rows = needs(FACTS);
    expect(rows.map((row) => row.ctx)).toEqual([1024, 2048, 4096]);
    for (const row of rows) expect(row.total).toBeGreaterThan(row.weights + row.cache);
    expect(needs({ ...FACTS, ctx: 512, caches: [] })[0]?.ctx).toBe(512);
  });

  it('takes the longest context within the wish', () => {
    const rows = needs(FACTS);
    expect(nearest(rows, 3000)?.ctx).toBe(2048);
    expect(nearest(rows, 1e6)?.ctx).toBe(4096);
    expect(nearest(rows, 1)?.ctx).toBe(1024);
  });

  it('has two copies of a model where the machine has room for them', () => {
    expect(twiceTooMuch(5e9, undefined)).toBe('');
    expect(twiceTooMuch(1e8, 0.5)).toBe('');
    expect(twiceTooMuch(3e8, 0.5)).toMatch(/Two copies .*696 MB .*about 0\.5 GB/);
  });

  it('warns of what a module cannot have, and of half of the machine', () => {
    const [row] = needs(FACTS);
    expect(warning(row!, undefined)).toBe('');
    expect(warning(row!, 1)).toBe('');
    expect(warning({ ...row!, total: 0.6 * 2 ** 30 }, 1)).toMatch(/about 1 GB/);
    expect(warning({ ...row!, total: 2 ** 32 + 1 }, 64)).toMatch(/4\.3 GB/);
  });
});
