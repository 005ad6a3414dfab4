// SPDX-License-Identifier: Apache-2.0
/**
 * vitest.totals.ts - the last line of every test of the project: `N passed, N failed`, in front of
 * it what was left out, and how long each test took if tools/run_tests.py asks (TG_TEST_TIMES).
 */
import type { Reporter } from 'vitest/node';

export const totals: Reporter = {
  onTestRunEnd(modules, errors) {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    const broken = modules.filter((module) => module.state() === 'failed').length;
    /* A skip has no reason that could be told, so the run takes it for a failure. */
    const skipped = count('skipped') + count('pending');
    if (process.env['TG_TEST_TIMES'])
      for (const test of tests) {
        const s = (test.diagnostic()?.duration ?? 0) / 1000;
        console.log(`${s.toFixed(1).padStart(7)} s  ${test.fullName}`);
      }
    /* A file that cannot even be loaded has no test that could fail. */
    const failed = Math.max(count('failed'), broken) + errors.length;
    const left = skipped > 0 ? `, ${skipped} skipped` : '';
    console.log(`${count('passed')} passed, ${failed} failed${left}`);
  },
};
