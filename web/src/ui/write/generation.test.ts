// SPDX-License-Identifier: Apache-2.0
import { beforeEach, describe, expect, it } from 'vitest';
import type { GenerateOptions } from '../../lib/index';
import type { GenerateStats, Piece } from '../../lib/types';
import { current, type Current } from '../state/current';
import { EMPTY, outputs, stop, write, writeState, type Writer } from './generation';
import { CAREFUL, DEFAULTS } from './settings';

const STATS: GenerateStats = {
  promptTokens: 4,
  promptDropped: 0,
  newTokens: 3,
  slides: 0,
  promptMs: 2,
  firstTokenMs: 5,
  tokPerS: 200,
};

/** A model that writes one letter for each token, named by its temperature. */
function scribe(failAt = Infinity, each: (piece: number) => void = () => {}) {
  const seen: { prompt: string; options: GenerateOptions }[] = [];
  let open = 0;
  const writer: Writer = {
    async session() {
      open++;
      return {
        generate(prompt, options) {
          seen.push({ prompt, options });
          async function* pieces(): AsyncGenerator<Piece> {
            for (let i = 0; i < options.tokens && !options.signal?.aborted; i++) {
              if (i === failAt) throw new Error('out of ink');
              await null;
              each(i);
              yield { id: 65, text: options.temperature === 0.3 ? 'b' : 'a', ms: 5 + 5 * i };
            }
          }
          return Object.assign(pieces(), { stats: Promise.resolve(STATS) });
        },
        free() {
          open--;
        },
      };
    },
  };
  return { writer, seen, open: () => open };
}

beforeEach(() => {
  outputs.a.set(EMPTY);
  outputs.b.set(EMPTY);
  writeState.set({ prompt: 'Hey', tokens: 3, compare: false, a: DEFAULTS, b: CAREFUL });
  current.set({ step: 7, tick: 1, label: 'small' } as Current);
});

describe('write', () => {
  it('writes one text, tells its speed and the step of the model', async () => {
    const s = scribe();
    await write(s.writer);
    expect(outputs.a.get()).toMatchObject({
      status: 'done',
      text: 'aaa',
      prompt: 'Hey',
      pieces: 3,
      firstMs: 5,
      tokPerS: 200,
      fromStep: 7,
      toStep: 7,
      label: 'small',
    });
    expect(outputs.b.get().status).toBe('empty');
    expect(s.open()).toBe(0);
    expect(s.seen[0]?.options).toMatchObject({ tokens: 3, ...DEFAULTS });
  });

  it('writes two from the same prompt', async () => {
    writeState.patch({ compare: true });
    const s = scribe();
    await write(s.writer);
    expect(s.seen.map((x) => x.prompt)).toEqual(['Hey', 'Hey']);
    expect([outputs.a.get().text, outputs.b.get().text]).toEqual(['aaa', 'bbb']);
  });

  it('stops at once, keeps what is there, and does not begin the second', async () => {
    writeState.patch({ compare: true, tokens: 1000 });
    const s = scribe(Infinity, (piece) => {
      if (piece === 5) stop();
    });
    await write(s.writer);
    expect(outputs.a.get().status).toBe('stopped');
    // Five milliseconds a piece, as the pieces themselves say.
    expect(outputs.a.get().tokPerS).toBeCloseTo(200, 6);
    expect(outputs.a.get().text.length).toBeGreaterThan(0);
    expect(outputs.a.get().text.length).toBeLessThan(1000);
    expect(outputs.b.get().status).toBe('empty');
    expect(s.open()).toBe(0);
  });

  it('shows a failure and frees the session', async () => {
    const s = scribe(1);
    await write(s.writer);
    expect(outputs.a.get().status).toBe('failed');
    expect(String(outputs.a.get().error)).toContain('out of ink');
    expect(s.open()).toBe(0);
  });
});
