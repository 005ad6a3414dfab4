// SPDX-License-Identifier: Apache-2.0
/**
 * abi.test.ts - numbers, structs and calls across the border, for both pointer widths, on a memory
 * without a module. That the layouts are clang's is checked when they are made.
 */
import { describe, expect, it } from 'vitest';

import {
  bindExports, bindImports, errorCode, type Imports, Memory, numbers, Trap,
} from './abi.js';
import { STATUS, STRUCTS } from './abi.gen.js';
import { TinygptError } from './errors.js';

const memory = (wide: boolean) => new Memory(new WebAssembly.Memory({ initial: 1 }), wide);

describe.each([false, true])('a struct, wide pointers %s', (wide) => {
  it('reads what was written', () => {
    const m = memory(wide);
    const at = 1024;
    m.write('tg_train_options', at, {
      steps: 2n ** 40n, batch: -5, lr: 0.25, seed: 2n ** 64n - 1n, keepBest: true, schedule: 2,
    });
    const raw = m.read('tg_train_options', at);
    expect(raw).toMatchObject({
      steps: 2n ** 40n, batch: -5, lr: 0.25, seed: 2n ** 64n - 1n, keepBest: true, schedule: 2,
      skipBadSteps: false, accum: 0,
    });
    expect(numbers(raw).steps).toBe(2 ** 40);
  });

  it('follows strings, and reads those that lie within', () => {
    const m = memory(wide);
    const at = 1024;
    m.bytes(4096, 6).set(new TextEncoder().encode('large\0'));
    m.write('tg_preset', at, { name: 4096, config: { layers: 7, mlp: 9 }, batch: 3 });
    const read = m.read('tg_preset', at);
    expect(read.name).toBe('large');
    expect(read.doc).toBe('');
    expect(read.config).toMatchObject({ layers: 7, mlp: 9, vocab: 0 });
    expect(m.read('tg_model_config', m.member('tg_preset', at, 'config')).layers).toBe(7);
    m.bytes(m.member('tg_lint', at, 'text'), 4).set(new TextEncoder().encode('abc\0'));
    expect(m.read('tg_lint', at).text).toBe('abc');
    expect(m.size('tg_preset')).toBe(STRUCTS.tg_preset.size[wide ? 1 : 0]);
  });

  it('refuses what does not fit', () => {
    const m = memory(wide);
    const write = (values: object) => () => m.write('tg_train_options', 0, values);
    for (const batch of [1.5, NaN, 2 ** 31, -(2 ** 31) - 1, '1', null, 2n ** 40n]) {
      expect(write({ batch }), String(batch)).toThrow(/batch: want a whole number/);
    }
    expect(write({ seed: -1 })).toThrow(TinygptError);
    expect(write({ lr: 'fast' })).toThrow(/lr: want a number/);
    expect(write({ learningRate: 1 })).toThrow(/want one of .*steps, batch/);
    expect(write({ lr: undefined, batch: 2n ** 31n - 1n })).not.toThrow();
  });
});

describe('calls', () => {
  it('carry pointers of both widths', () => {
    const seen: unknown[] = [];
    const raw = {
      tg_wasm_alloc: (n: unknown) => (seen.push(n), typeof n === 'bigint' ? 2n ** 33n : -16),
      tg_context_lever: (...args: unknown[]) => (seen.push(...args), 1),
      tg_param_count: () => -1n,
    } as unknown as WebAssembly.Exports;
    const narrow = bindExports(raw, false, () => {});
    const wide = bindExports(raw, true, () => {});
    expect(narrow.tg_wasm_alloc(5)).toBe(2 ** 32 - 16);
    expect(wide.tg_wasm_alloc(5)).toBe(2 ** 33);
    expect(wide.tg_context_lever(7, 8)).toBe(true);
    expect(seen).toEqual([5, 5n, 7n, 8n]);
    expect(narrow.tg_param_count(0)).toBe(2n ** 64n - 1n);
    expect(() => narrow.tg_version()).toThrow(/this build does not have it/);
  });

  it('tell of a trap before it is thrown', () => {
    const fail = () => { throw new WebAssembly.RuntimeError('unreachable'); };
    const traps: Trap[] = [];
    const c = bindExports({ tg_version: fail }, false, (trap) => traps.push(trap));
    expect(() => c.tg_version()).toThrow(Trap);
    expect(traps.map(({ message }) => message)).toEqual(['unreachable']);
  });

  it('come back with unsigned addresses', () => {
    const seen: unknown[] = [];
    const functions = new Proxy({}, {
      get: () => (...args: unknown[]) => (seen.push(...args), 3),
    }) as Imports;
    const narrow = bindImports(functions, false);
    const wide = bindImports(functions, true);
    expect(narrow['on_text']!(-1, -2, 3)).toBe(3);
    expect(wide['file_read']!(1, 2.5, 2n ** 33n, 4n)).toBe(3n);
    expect(seen).toEqual([2 ** 32 - 1, 2 ** 32 - 2, 3, 1, 2.5, 2 ** 33, 4]);
    expect(narrow['on_log']!(0, 1, 2)).toBeUndefined();
  });
});

describe('statuses', () => {
  it('have codes', () => {
    for (const [name, value] of Object.entries(STATUS)) {
      if (value < 0) expect(errorCode(value)).toBe(name.slice(2));
    }
    expect(errorCode(-99)).toBe('INTERNAL');
  });
});
