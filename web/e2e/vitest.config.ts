/** vitest.config.ts - end-to-end tests, one after the other, since they share the cores. */
import { defineConfig } from 'vitest/config';

import { totals } from '../vitest.totals.ts';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    reporters: ['default', totals],
    include: ['*.e2e.ts'],
    pool: 'forks',
    // Node 20 knows relaxed SIMD, which a test takes a module apart in, behind a flag.
    execArgv: ['--experimental-wasm-relaxed-simd'],
    testTimeout: 600_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000, interval: 50 } },
    fileParallelism: false,
    // Whatever else runs on the machine can take a browser's time away. A test that passes only
    // the second time is named at the end (vitest.totals.ts).
    retry: 1,
  },
});
