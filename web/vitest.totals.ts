/** vitest.totals.ts - the last line of every test of the project: `N passed, N failed`. */
import type { Reporter } from 'vitest/node';

export const totals: Reporter = {
  onTestRunEnd(modules, errors) {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const passed = tests.filter((test) => test.result().state === 'passed').length;
    const broken = modules.filter((module) => module.state() === 'failed').length;
    const failed = tests.filter((test) => test.result().state === 'failed').length;
    for (const test of tests) {
      if (test.diagnostic()?.flaky) console.log(`passed the second time: ${test.fullName}`);
    }
    /* A file that cannot even be loaded has no test that could fail. */
    console.log(`${passed} passed, ${Math.max(failed, broken) + errors.length} failed`);
  },
};
