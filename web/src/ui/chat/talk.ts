// SPDX-License-Identifier: Apache-2.0
/**
 * talk.ts - the conversation: it lives here and not in a component, so that another view can be
 * opened while an answer is written.
 */
import type { AnswerStats, Turn } from '../../lib/types';
import { TinygptError } from '../../lib/errors';
import { plainError } from '../plain_error';
import { Store } from '../store';
import { chatSession, chatSettings, engineDied, models, tokensOf } from './models';
import { biases, lines } from './settings';

export interface TalkState {
  turns: readonly Turn[];
  /** What is being typed. */
  draft: string;
  /** The answer under way; null if there is none. */
  writing: string | null;
  /** Of the answer under way, or the last one. */
  stats: AnswerStats | null;
  problem: string;
}

const EMPTY: TalkState = { turns: [], draft: '', writing: null, stats: null, problem: '' };

export const talk = new Store<TalkState>(EMPTY);

/** Shows at most this often: what a page draws is taken from the threads that write. */
const SHOW_MS = 100;

let control: AbortController | null = null;
/** Each answer has a seed of its own, so that another one to the same turn is another one. */
let answers = 0;

function withSystem(turns: readonly Turn[]): Turn[] {
  const system = chatSettings.get().system.trim();
  return [...(system === '' ? [] : [{ role: 'system' as const, text: system }]), ...turns];
}

/** The biases of the settings, by token. */
async function biasList(): Promise<{ id: number; bias: number }[]> {
  const list = [];
  for (const { text, bias } of biases(chatSettings.get().bias)) {
    for (const id of await tokensOf(text)) list.push({ id, bias });
  }
  return list;
}

/** Answers the last turn. One that does not fit is taken back into the draft. */
async function answer(): Promise<void> {
  const session = chatSession();
  const { turns } = talk.get();
  const last = turns.at(-1);
  if (!session || last?.role !== 'user' || talk.get().writing !== null) return;
  const mine = (control = new AbortController());
  const { sampling, banned, stops } = chatSettings.get();
  talk.patch({ writing: '', stats: null, problem: '' });
  let text = '';
  try {
    const stream = session.answer(withSystem(turns), {
      ...sampling,
      seed: (sampling.seed + answers++) % 2 ** 32,
      banned: lines(banned),
      stops: lines(stops),
      bias: await biasList(),
      signal: mine.signal,
    });
    // Its rejection is the loop's, which is the one that is shown.
    stream.stats.catch(() => {});
    let shown = -Infinity;
    for await (const piece of stream) {
      text += piece.text;
      const now = performance.now();
      if (now - shown < SHOW_MS || control !== mine) continue;
      shown = now;
      talk.patch({ writing: text });
    }
    const stats = await stream.stats.catch(() => null);
    if (control !== mine) return;
    talk.patch({ turns: [...turns, { role: 'assistant', text }], writing: null, stats });
  } catch (e) {
    if (control !== mine) return;
    talk.patch({ draft: last.text });
    if (engineDied(e)) return;
    const full = e instanceof TinygptError && e.code === 'FULL';
    talk.patch({
      turns: turns.slice(0, -1),
      writing: null,
      problem: full
        ? 'The conversation is longer than the context. Begin a new one, shorten the turn, or ' +
          'load the model with a longer context.'
        : plainError(e),
    });
  }
}

export function send(): Promise<void> {
  const { draft, turns, writing } = talk.get();
  if (draft.trim() === '' || writing !== null || !chatSession()) return Promise.resolve();
  talk.patch({ turns: [...turns, { role: 'user', text: draft.trim() }], draft: '' });
  return answer();
}

/** What is written so far stays. */
export function stop(): void {
  control?.abort();
}

/** Another answer to the last turn. */
export function regenerate(): Promise<void> {
  const { turns, writing } = talk.get();
  if (writing !== null || turns.at(-1)?.role !== 'assistant') return Promise.resolve();
  talk.patch({ turns: turns.slice(0, -1) });
  return answer();
}

/** Forgets the conversation; what is typed stays. */
export function reset(): void {
  control?.abort();
  control = null;
  answers = 0;
  talk.set({ ...EMPTY, draft: talk.get().draft });
}

/* Another model has not said what this one said. */
let before = models.get().opened;
models.subscribe(({ opened }) => {
  if (opened !== before) reset();
  before = opened;
});
