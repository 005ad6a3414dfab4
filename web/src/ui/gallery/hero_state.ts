// SPDX-License-Identifier: Apache-2.0
/**
 * hero_state.ts - the model of the first screen and what it writes. It borrows nothing from
 * state/current.ts: it is there before a person has a model, and stays beside one.
 *
 * The text is a person's beginning and what the model wrote behind it, both as bytes. Each turn looks
 * at the last of them (a probe), shows what was seen, rests, and appends a byte drawn from it.
 */
import type { Model } from '../../lib/index';
import type { Probe } from '../../lib/types';
import { onRebuilt, whenEngine } from '../engine';
import { plainError } from '../plain_error';
import { Store } from '../store';
import { pageVisible, sleep } from '../think/pace';
import { CARDS, type GalleryCard, galleryFile } from './cards';
import { draw, nextOf } from './hero_maths';

export interface HeroState {
  card: GalleryCard | null;
  /** What stands in the field. */
  beginning: string;
  /** The bytes of the beginning, and those written behind it. */
  bytes: readonly number[];
  begun: number;
  probe: Probe | null;
  /** It writes on by itself. */
  playing: boolean;
  problem: string;
}

export const hero = new Store<HeroState>({
  card: CARDS[0] ?? null,
  beginning: CARDS[0]?.prompts[0] ?? '',
  bytes: [],
  begun: 0,
  probe: null,
  playing: false,
  problem: '',
});

/** A byte comes after this long: slow enough to be followed. */
const BYTE_MS = 150;
/** At the end of a text it rests, then begins another one. */
const REST_MS = 2600;
const MOST_WRITTEN = 110;
/** Untouched, it stops by itself: nobody may be looking. */
const TEXTS = 6;
const TEMPERATURE = 0.55;

let opened: { card: GalleryCard; model: Promise<Model> } | null = null;

async function openCard(card: GalleryCard): Promise<Model> {
  const [engine, file] = await Promise.all([whenEngine(), galleryFile(card)]);
  return engine.openModel(file);
}

function modelOf(card: GalleryCard): Promise<Model> {
  if (opened?.card === card) return opened.model;
  opened?.model.then((m) => m.free()).catch(() => {});
  const model = openCard(card);
  opened = { card, model };
  model.catch(() => {
    if (opened?.model === model) opened = null;
  });
  return model;
}

// A new module knows nothing of models that were made before.
onRebuilt(() => (opened = null));

/** Bytes of a text begin with it, and nothing is written behind it yet. */
export function begin(beginning: string): void {
  const bytes = [...new TextEncoder().encode(beginning)];
  hero.patch({ beginning, bytes, begun: bytes.length, problem: '' });
}

export function choose(card: GalleryCard): void {
  hero.patch({ card, probe: null });
  begin(card.prompts[0] ?? '');
}

export function play(playing: boolean): void {
  hero.patch({ playing });
}

/** Waits so long, or until the beginning or the model is another one. */
async function restUnlessChanged(ms: number, signal: AbortSignal): Promise<void> {
  const { bytes, card } = hero.get();
  const control = new AbortController();
  const stop = () => control.abort();
  signal.addEventListener('abort', stop, { once: true });
  const end = hero.subscribe((s) => {
    if (s.bytes !== bytes || s.card !== card) stop();
  });
  await sleep(ms, control.signal).catch(() => {});
  end();
  signal.removeEventListener('abort', stop);
}

/** Nothing happens until something is wanted: another text, another model, to play. */
function changed(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = hero.subscribe(() => {
      end();
      resolve();
    });
    signal.addEventListener('abort', () => {
      end();
      resolve();
    });
  });
}

/** A model of this size reads no more than so many bytes; the engine's own limit is its context. */
function window(bytes: readonly number[], ctx: number): Int32Array {
  return Int32Array.from(bytes.slice(-ctx));
}

/** Looks and writes until it is aborted. */
export async function runHero(signal: AbortSignal): Promise<void> {
  let texts = 0;
  let seen: readonly number[] | null = null;
  let by: GalleryCard | null = null;
  while (!signal.aborted) {
    await pageVisible(signal);
    const { card, bytes, playing, begun } = hero.get();
    if (!card || bytes.length === 0) {
      await changed(signal);
      continue;
    }
    if (bytes !== seen || card !== by) {
      try {
        const model = await modelOf(card);
        const { config } = await model.info();
        const probe = await model.probe(window(bytes, config.ctx), [], undefined, { signal });
        if (signal.aborted) return;
        if (hero.get().bytes !== bytes || hero.get().card !== card) continue;
        seen = bytes;
        by = card;
        hero.patch({ probe, problem: '' });
      } catch (e) {
        if (signal.aborted) return;
        hero.patch({ problem: plainError(e), playing: false });
        await changed(signal);
        continue;
      }
    }
    if (!playing) {
      await changed(signal);
      continue;
    }
    const over = bytes.length - begun >= MOST_WRITTEN;
    await restUnlessChanged(over ? REST_MS : BYTE_MS, signal);
    const now = hero.get();
    if (now.bytes !== bytes || now.card !== card || !now.playing || !now.probe) continue;
    if (!over) {
      hero.patch({ bytes: [...bytes, draw(nextOf(now.probe), TEMPERATURE, Math.random())] });
      continue;
    }
    if (++texts >= TEXTS) {
      texts = 0;
      play(false);
      continue;
    }
    const own = card.prompts.indexOf(now.beginning);
    begin(own < 0 ? now.beginning : (card.prompts[(own + 1) % card.prompts.length] ?? ''));
  }
}
