// SPDX-License-Identifier: Apache-2.0
/** calls_model.test.ts - what is made of a third party's file whose floats cannot be had, on a core
 *  that answers with statuses. */
import { expect, it } from 'vitest';
import { errorCode } from './abi.js';
import { modelOpen } from './calls_model.js';
import type { Core } from './core.js';
import type { Task } from './tasks.js';

const PACKED = 1, FLOATS = 2;
const UNSUPPORTED = -9, MEMORY = -2;

/** Opens a file whose floats end in a status; which models were kept and freed. */
async function opened(status: number) {
  const freed: number[] = [];
  const kept: number[] = [];
  let at = PACKED;
  const core = {
    framed: (_: Task, body: (frame: unknown) => unknown) => body({ alloc: () => 0, string: () => 0 }),
    host: { offer: () => '', withdraw: () => {} },
    job: async () => 0,
    memory: { pointer: () => at },
    registry: { add: (_: string, model: number) => (kept.push(model), { id: 1 }) },
    ok: (s: number) => {
      if (s < 0) throw new Error(errorCode(s));
    },
    c: {
      tg_model_can: () => 0,
      tg_model_open_floats: () => {
        at = status === 0 ? FLOATS : 0;
        return status;
      },
      tg_model_free: (model: number) => freed.push(model),
      tg_model_tokenizer: () => 0,
      tg_tokenizer_count: () => 0,
    },
  };
  const task = { check() {} } as Task;
  const problem = await Promise.resolve(
    modelOpen(core as unknown as Core, task, new Uint8Array(1)),
  ).then(() => '', (e: Error) => e.message);
  return { kept, freed, problem };
}

it('writes alone where it has no floats, and tells what else stands in their way', async () => {
  expect(await opened(0)).toEqual({ kept: [FLOATS], freed: [PACKED], problem: '' });
  expect(await opened(UNSUPPORTED)).toEqual({ kept: [PACKED], freed: [], problem: '' });
  expect(await opened(MEMORY)).toEqual({ kept: [], freed: [PACKED], problem: 'MEMORY' });
});
