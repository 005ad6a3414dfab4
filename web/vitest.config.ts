// SPDX-License-Identifier: Apache-2.0
/**
 * vitest.config.ts - the tests beside the sources. What has a worker is tested as it is published:
 * `tinygpt` is lib/ (make web-lib), on the modules in wasm/. They need Node 24.
 */
import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

import { totals } from './vitest.totals.ts';

const root = import.meta.dirname;

export default defineConfig({
  root,
  resolve: { alias: { tinygpt: resolve(root, 'lib/index.js') } },
  test: {
    reporters: ['default', totals],
    include: ['src/**/*.test.{ts,tsx}'],
    environment: 'node',
    pool: 'forks',
    // One file after the other: threads of a test should not be measured against another's.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
