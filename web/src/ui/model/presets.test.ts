// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { defaultHeads } from './presets';

it('gives heads that divide the width', () => {
  for (const width of [8, 30, 32, 48, 96, 100, 1280]) expect(width % defaultHeads(width)).toBe(0);
  expect(defaultHeads(96)).toBe(3);
  expect(defaultHeads(48)).toBe(3);
  expect(defaultHeads(100)).toBe(1);
});
