// SPDX-License-Identifier: Apache-2.0
/** calls_model.test.ts - what is made of a third party's file whose floats cannot be had, on a core
 *  whose jobs end in errors. */
import { expect, it } from 'vitest';
import { modelOpen } from './calls_model.js';
import type { Core } from './core.js';
import { TinygptError } from './errors.js';
import type { Task } from './tasks.js';
import type { ErrorCode } from './types.js';

const PACKED = 1, FLOATS = 2;

/** Opens a file whose floats end in an error; which jobs there were, and which models were kept. */
async function opened(code?: ErrorCode) {
  const jobs: string[] = [];
  const kept: number[] = [];
  let at = 0;
  const core = {
    framed: (_: Task, body: (frame: unknown) => unknown) => body({ alloc: () => 0, string: () => 0 }),
    host: { offer: () => '', withdraw: () => {} },
    job: async (_: Task, __: unknown, ___: unknown, name: string) => {
      jobs.push(name);
      if (code && name === 'tg_model_open_floats') throw new TinygptError(code, code);
      at = name === 'tg_model_open' ? PACKED : FLOATS;
    },
    memory: { pointer: () => at },
    registry: { add: (_: string, model: number) => (kept.push(model), { id: 1 }) },
    c: { tg_model_tokenizer: () => 0, tg_tokenizer_count: () => 0 },
  };
  const task = { check() {}, emit() {} } as unknown as Task;
  const problem = await Promise.resolve(
    modelOpen(core as unknown as Core, task, new Uint8Array(1)),
  ).then(() => '', (e: Error) => e.message);
  return { jobs, kept, problem };
}

it('writes alone where it has no floats, and tells what else stands in their way', async () => {
  const floats = 'tg_model_open_floats';
  expect(await opened()).toEqual({ jobs: [floats], kept: [FLOATS], problem: '' });
  expect(await opened('UNSUPPORTED')).toEqual({
    jobs: [floats, 'tg_model_open'], kept: [PACKED], problem: '',
  });
  expect(await opened('MEMORY')).toEqual({ jobs: [floats], kept: [], problem: 'MEMORY' });
});
