// SPDX-License-Identifier: Apache-2.0
/**
 * generation.ts - the texts that are being written. They live here and not in a component, so that
 * another view can be opened meanwhile and the text is there on return.
 *
 * Two settings are run one after the other and not at once: each has the machine to itself, so that
 * their speeds can be compared. While the model trains both see it as it is at that moment, and
 * `fromStep` and `toStep` say which moments these were.
 */
import type { GenerateOptions } from '../../lib/index';
import type { GenerateStats, Piece, SampleOptions } from '../../lib/types';
import { current } from '../state/current';
import { Store } from '../store';
import { CAREFUL, DEFAULTS } from './settings';

export type Side = 'a' | 'b';

export interface WriteState {
  prompt: string;
  tokens: number;
  compare: boolean;
  a: SampleOptions;
  b: SampleOptions;
}

export interface Output {
  status: 'empty' | 'waiting' | 'writing' | 'done' | 'stopped' | 'failed';
  prompt: string;
  text: string;
  pieces: number;
  firstMs: number;
  tokPerS: number;
  fromStep: number;
  toStep: number;
  label: string;
  stats: GenerateStats | null;
  error: unknown;
}

export const EMPTY: Output = {
  status: 'empty',
  prompt: '',
  text: '',
  pieces: 0,
  firstMs: NaN,
  tokPerS: NaN,
  fromStep: 0,
  toStep: 0,
  label: '',
  stats: null,
  error: null,
};

export const writeState = new Store<WriteState>({
  prompt: 'Once upon a time',
  tokens: 300,
  compare: false,
  a: DEFAULTS,
  b: CAREFUL,
});

export const outputs: Readonly<Record<Side, Store<Output>>> = {
  a: new Store(EMPTY),
  b: new Store(EMPTY),
};

/** What write() needs of a model; Model fits. */
export interface Writer {
  session(): Promise<{
    generate(
      prompt: string,
      options: GenerateOptions,
    ): AsyncIterable<Piece> & { stats: Promise<GenerateStats> };
    free(): void;
  }>;
}

/** Shows at most this often: a page that draws every byte of a fast model does nothing else. */
const SHOW_MS = 60;

let control: AbortController | null = null;

async function writeOne(
  writer: Writer,
  prompt: string,
  tokens: number,
  settings: SampleOptions,
  out: Store<Output>,
  signal: AbortSignal,
): Promise<void> {
  const step = () => current.get()?.step ?? 0;
  out.set({
    ...EMPTY,
    status: 'writing',
    prompt,
    fromStep: step(),
    toStep: step(),
    label: current.get()?.label ?? '',
  });
  let session: Awaited<ReturnType<Writer['session']>> | null = null;
  try {
    session = await writer.session();
    const stream = session.generate(prompt, { ...settings, tokens, signal });
    // Its rejection is the loop's, which is the one that is shown.
    stream.stats.catch(() => {});
    let text = '';
    let pieces = 0;
    let firstMs = NaN;
    let lastMs = NaN;
    let shown = -Infinity;
    const show = () =>
      out.patch({
        text,
        pieces,
        firstMs,
        toStep: step(),
        tokPerS: pieces > 1 ? (1000 * (pieces - 1)) / (lastMs - firstMs) : NaN,
      });
    for await (const piece of stream) {
      text += piece.text;
      lastMs = piece.ms;
      if (pieces++ === 0) firstMs = piece.ms;
      const now = performance.now();
      if (now - shown < SHOW_MS) continue;
      shown = now;
      show();
    }
    show();
    if (signal.aborted) {
      // What was measured here stands: the core's numbers are those of whole generations.
      out.patch({ status: 'stopped' });
      return;
    }
    const stats = await stream.stats;
    out.patch({
      status: 'done',
      stats,
      firstMs: stats.firstTokenMs,
      tokPerS: stats.tokPerS,
    });
  } catch (error) {
    if (signal.aborted) out.patch({ status: 'stopped' });
    else out.patch({ status: 'failed', error });
  } finally {
    session?.free();
  }
}

/** Writes by the settings of writeState; what was being written is stopped. */
export async function write(writer: Writer): Promise<void> {
  stop();
  const mine = (control = new AbortController());
  const { prompt, tokens, compare, a, b } = writeState.get();
  outputs.b.set(compare ? { ...EMPTY, status: 'waiting' } : EMPTY);
  await writeOne(writer, prompt, tokens, a, outputs.a, mine.signal);
  if (compare && !mine.signal.aborted && control === mine) {
    await writeOne(writer, prompt, tokens, b, outputs.b, mine.signal);
  }
}

/** What is written so far stays. */
export function stop(): void {
  control?.abort();
  control = null;
  if (outputs.b.get().status === 'waiting') outputs.b.set(EMPTY);
}
