// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { defaultHeads, paramCount, SIZES } from './presets';

it('is the table of src/model/presets.def', () => {
  const source = readFileSync(
    new URL('../../../../src/model/presets.def', import.meta.url),
    'utf8',
  );
  const rows = [...source.matchAll(/^TG_PRESET\((\w+), ([\d, ]+), "/gm)].map((m) => [
    m[1],
    ...(m[2] ?? '').split(',').map(Number),
  ]);
  expect(rows.length).toBe(9);
  expect(SIZES.map((s) => [s.name, s.layers, s.width, s.heads, s.ctx, s.batch, s.steps])).toEqual(
    rows,
  );
});

it('counts parameters as the core does', () => {
  const known = [70464, 366432, 838400, 2743296, 6416896, 9608704, 25039872, 25138176, 473244160];
  expect(SIZES.map(paramCount)).toEqual(known);
});

it('gives heads that divide the width', () => {
  for (const width of [8, 30, 32, 48, 96, 100, 1280]) expect(width % defaultHeads(width)).toBe(0);
  expect(defaultHeads(96)).toBe(3);
  expect(defaultHeads(48)).toBe(3);
  expect(defaultHeads(100)).toBe(1);
});
