// SPDX-License-Identifier: Apache-2.0
/** vitest.config.ts - end-to-end tests, one after the other, since they share the cores. */
import { defineConfig } from 'vitest/config';

import { totals } from '../vitest.totals.ts';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    reporters: ['default', totals],
    include: ['*.e2e.ts'],
    pool: 'forks',
    testTimeout: 1_200_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 300_000, interval: 200 } },
    fileParallelism: false,
  },
});
