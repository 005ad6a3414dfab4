// SPDX-License-Identifier: Apache-2.0
/** quota.test.ts - answers that tell something, and answers that do not. */
import { expect, it } from 'vitest';
import { toldQuota } from './quota';

it.each([
  [{ quota: 500e6, usage: 1e6 }, 500e6],
  [{ quota: 10 * 2 ** 30 + 30000296, usage: 30000296 }, null],
  [{ quota: 2 ** 30, usage: 0 }, null],
  [{ quota: 0, usage: 0 }, null],
  [{}, null],
])('%j', (estimate, wanted) => {
  expect(toldQuota(estimate)).toBe(wanted);
});
