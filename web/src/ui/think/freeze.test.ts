// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { ModelInfo } from '../../lib/types';
import { frozen } from './freeze';

/** A model whose step grows with every look, and an engine that counts copies. */
function moving(params: number) {
  let step = 10;
  let open = 0;
  const model = {
    async info() {
      return { step: step++, params } as ModelInfo;
    },
    async save(): Promise<Uint8Array> {
      return Uint8Array.of(step);
    },
    free() {},
  };
  const engine = {
    async openModel(file: Uint8Array) {
      open++;
      return {
        async info() {
          return { step: file[0], params } as ModelInfo;
        },
        async save(): Promise<Uint8Array> {
          return file;
        },
        free() {
          open--;
        },
      };
    },
  };
  return { model, engine, open: () => open };
}

describe('frozen', () => {
  it('works on a copy that stands still, and frees it', async () => {
    const m = moving(1000);
    const steps = await frozen(m.engine, m.model, true, async (still, step, isCopy) => {
      expect(isCopy).toBe(true);
      expect(m.open()).toBe(1);
      return [step, (await still.info()).step, (await still.info()).step];
    });
    expect(new Set(steps).size).toBe(1);
    expect(m.open()).toBe(0);
  });

  it('frees the copy when the work fails', async () => {
    const m = moving(1000);
    await expect(
      frozen(m.engine, m.model, true, async () => {
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(m.open()).toBe(0);
  });

  it('makes no copy of what stands still already, nor of what is too large', async () => {
    const m = moving(1000);
    await frozen(m.engine, m.model, false, async (still, _, isStill) => {
      expect(still).toBe(m.model);
      expect(isStill).toBe(true);
    });
    const large = moving(473e6);
    await frozen(large.engine, large.model, true, async (still, _, isStill) => {
      expect(still).toBe(large.model);
      expect(isStill).toBe(false);
    });
  });
});
