// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  blockStepsFor,
  drift,
  runPreset,
  type BenchOptions,
  type Contestant,
  type Entrant,
  type PresetResult,
} from './run';

const SPEED: Partial<Record<Entrant, number>> = { scalar: 100, simd: 25, relaxed: 20 };

/** Builds that take what SPEED says, count what is open, and end with losses that differ. */
function arena(fail: Partial<Record<Entrant, string>> = {}) {
  const log: string[] = [];
  let open = 0;
  let mostOpen = 0;
  const opener = async (build: Entrant): Promise<Contestant> => {
    const problem = fail[build];
    if (problem?.startsWith('open')) throw new Error(problem);
    mostOpen = Math.max(mostOpen, ++open);
    let done = 0;
    return {
      threads: 1,
      async *steps(n) {
        if (problem && done > 0) throw new Error(problem);
        log.push(`${build} ${n}`);
        for (let i = 0; i < n; i++) {
          done++;
          yield { ms: SPEED[build] ?? 50, loss: (build === 'relaxed' ? 2.02 : 2) / done };
        }
      },
      async close() {
        open--;
      },
    };
  };
  return { opener, log, state: () => ({ open, mostOpen }) };
}

async function finish(
  builds: Entrant[],
  a: ReturnType<typeof arena>,
  options: BenchOptions,
  signal = new AbortController().signal,
): Promise<[PresetResult, number[]]> {
  const run = runPreset('small', builds, a.opener, options, signal);
  const shares: number[] = [];
  for (;;) {
    const next = await run.next();
    if (next.done) return [next.value, shares];
    shares.push(next.value.done);
  }
}

describe('blockStepsFor', () => {
  it('fits the slowest build and stays within bounds', () => {
    expect(blockStepsFor(100, 1000)).toBe(10);
    expect(blockStepsFor(4000, 1000)).toBe(1);
    expect(blockStepsFor(0.1, 1000)).toBe(50);
    expect(blockStepsFor(0, 1000)).toBe(1);
    expect(blockStepsFor(NaN, 1000)).toBe(1);
  });
});

describe('runPreset', () => {
  it('gives every build the same steps, in turns, and closes all', async () => {
    const a = arena();
    const [result, shares] = await finish(['scalar', 'simd', 'relaxed'], a, {
      turns: 6,
      apart: false,
    });
    expect(result.blockSteps).toBe(10);
    expect(result.steps).toBe(60);
    expect(result.rows.map((r) => r.ms)).toEqual([100, 25, 20].map((ms) => Array(6).fill(ms)));
    expect(a.log.filter((line) => line === 'simd 10').length).toBe(7);
    expect(a.state()).toEqual({ open: 0, mostOpen: 3 });
    expect(shares.every((s, i) => i === 0 || s >= (shares[i - 1] as number))).toBe(true);
    expect(drift(result, 'simd')).toBe(0);
    expect(drift(result, 'relaxed')).toBeCloseTo(0.01, 10);
    expect(drift(result, 'simd-mt')).toBeNaN();
  });

  it('never has two modules open when they are kept apart', async () => {
    const a = arena();
    const [result] = await finish(['scalar', 'simd'], a, { turns: 2, apart: true });
    expect(a.state()).toEqual({ open: 0, mostOpen: 1 });
    expect(result.rows.map((r) => r.ms.length)).toEqual([2, 2]);
    expect(drift(result, 'simd')).toBe(0);
  });

  it('goes on without a build that cannot be opened or that fails midway', async () => {
    const a = arena({ simd: 'open: no SIMD here', relaxed: 'died' });
    const [result] = await finish(['scalar', 'simd', 'relaxed'], a, { turns: 2, apart: false });
    expect(result.rows.map((r) => r.problem)).toEqual(['', 'open: no SIMD here', 'died']);
    expect(result.rows.map((r) => r.ms.length)).toEqual([2, 0, 0]);
    expect(a.state().open).toBe(0);
  });

  it('closes all when it is cancelled, and when the caller leaves', async () => {
    const a = arena();
    const control = new AbortController();
    const run = runPreset(
      'small',
      ['scalar', 'simd'],
      a.opener,
      { turns: 6, apart: false },
      control.signal,
    );
    for (let i = 0; i < 4; i++) await run.next();
    expect(a.state().open).toBe(2);
    control.abort(new Error('cancelled'));
    await expect(run.next()).rejects.toThrow('cancelled');
    expect(a.state().open).toBe(0);

    const b = arena();
    for await (const _ of runPreset(
      'small',
      ['scalar'],
      b.opener,
      { turns: 6, apart: false },
      new AbortController().signal,
    )) {
      if (b.state().open) break;
    }
    expect(b.state().open).toBe(0);
  });
});
