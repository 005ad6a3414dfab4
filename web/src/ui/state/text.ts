// SPDX-License-Identifier: Apache-2.0
/**
 * text.ts - the text in hand. It is a Blob from wherever it came: a file of 3 GB is never read into
 * memory, only looked at in pieces by the engine. What the page shows of it (a preview, encoding,
 * lint, SHA-256) is found out in the background; whatever is overtaken by a newer text is dropped.
 */
import type { Text } from '../../lib/index';
import type { LintFinding } from '../../lib/types';
import { engineState, onRebuilt, whenEngine } from '../engine';
import { plainError } from '../plain_error';
import { type RunText, TEXT_KEPT_BYTES } from '../run/controller';
import { Store } from '../store';
import { cleanAddress, fetchText } from '../text/fetch_text';
import {
  containerOf,
  type Encoding,
  encodingOf,
  looksLikeHtml,
  previewOf,
  SNIFF_BYTES,
} from '../text/sniff';
import { kept, watchUnsaved, whenStore } from './keeping';
import { notify } from './notices';
import { settings, textRef, wantedText } from './route';

export type Origin =
  | { kind: 'stories'; seed: number; bytes: number }
  | { kind: 'typed' }
  | { kind: 'files'; names: readonly string[] }
  | { kind: 'url'; url: string }
  | { kind: 'public'; name: string; licence: string }
  | { kind: 'saved'; name: string };

export interface TextState {
  status: 'empty' | 'loading' | 'ready' | 'failed';
  blob: Blob | null;
  origin: Origin;
  /** The beginning, for showing. */
  preview: string;
  encoding: Encoding | null;
  findings: readonly LintFinding[] | null;
  sha256: string;
  hashing: boolean;
  /** Why it could not be had, in plain words. */
  problem: string;
  /** 0..1 of a download, or null. */
  progress: number | null;
  /** Its id in the store, 0 while it is not kept there. */
  kept: number;
  /** It is being written to the store. */
  keeping: boolean;
}

export const STORIES_BYTES = 1_000_000;
export const STORIES_SEED = 42;
/** A typed text up to here is edited in place; above, it is shown by its beginning. */
export const EDITABLE_CHARS = 200_000;
export const PREVIEW_CHARS = 6000;
/** Larger texts get their SHA-256 on request: it means reading all of them. */
const HASHED_BYTES = 256e6;

export const textState = new Store<TextState>({
  status: 'loading',
  blob: null,
  origin: { kind: 'stories', seed: STORIES_SEED, bytes: STORIES_BYTES },
  preview: '',
  encoding: null,
  findings: null,
  sha256: '',
  hashing: false,
  problem: '',
  progress: null,
  kept: 0,
  keeping: false,
});

/** Counts texts: an answer for an older one is dropped. */
let turn = 0;
let held: { blob: Blob; generation: number; text: Promise<Text> } | null = null;

/** The engine's object for the text in hand, made once for each text and engine. */
export function engineText(): Promise<Text | null> {
  const { blob } = textState.get();
  if (!blob) return Promise.resolve(null);
  const { generation } = engineState.get();
  if (held && held.blob === blob && held.generation === generation) return held.text;
  held?.text.then((t) => t.free()).catch(() => {});
  const text = whenEngine().then((engine) => engine.text(blob));
  held = { blob, generation, text };
  text.catch(() => {
    if (held?.text === text) held = null;
  });
  return text;
}

/** The text in hand, with its name, stays until the new one is there: that may fail. */
function loading(): number {
  textState.patch({ status: 'loading', problem: '', progress: null });
  return ++turn;
}

function failed(mine: number, problem: string): void {
  if (mine === turn) stay('failed', problem);
}

/** No other text comes. What was being done with the one in hand, if there is one, begins again: it
 *  was dropped when another was on its way. */
function stay(without: 'empty' | 'failed', problem: string): void {
  reading?.abort();
  const { blob, origin, sha256, kept: id } = textState.get();
  const status = blob ? 'ready' : without;
  textState.patch({ status, problem, progress: null, hashing: false, keeping: false });
  if (!blob) return;
  void keep(turn, blob, origin, id);
  void (sha256 === '' ? examine(turn) : lint(turn));
}

/** Takes a Blob as the text in hand. */
async function take(mine: number, blob: Blob, origin: Origin, keptAs = 0): Promise<void> {
  const head = new Uint8Array(await blob.slice(0, SNIFF_BYTES).arrayBuffer());
  if (mine !== turn) return;
  const encoding = encodingOf(head);
  textState.set({
    status: blob.size === 0 ? 'empty' : 'ready',
    blob: blob.size === 0 ? null : blob,
    origin,
    preview: previewOf(head.subarray(0, PREVIEW_CHARS * 2), encoding).slice(0, PREVIEW_CHARS),
    encoding,
    findings: null,
    sha256: '',
    hashing: false,
    problem: '',
    progress: null,
    kept: keptAs,
    keeping: false,
  });
  if (blob.size === 0) textRef.set(null);
  else await Promise.all([keep(mine, blob, origin, keptAs), examine(mine)]);
}

/** The document that says which text is in hand. */
const HAND = 'hand';

/** Keeps the text in hand, so that it is here again after a reload. Stories are made anew. */
async function keep(mine: number, blob: Blob, origin: Origin, before: number): Promise<void> {
  const fits = blob.size <= TEXT_KEPT_BYTES;
  textState.patch({ keeping: fits });
  try {
    if (!(await whenStore()) || mine !== turn) return;
    if (origin.kind === 'stories') await kept.saveDoc(HAND, { origin });
    else if (fits) {
      const text = before || (await kept.keepText(blob));
      // What was overtaken meanwhile is nobody's, and goes.
      if (mine !== turn) return;
      await kept.saveDoc(HAND, { origin, text });
      // It is kept once something refers to it.
      if (mine === turn) textState.patch({ kept: text });
    }
  } catch (e) {
    const lost = mine === turn && origin.kind !== 'stories';
    if (lost) notify('warning', `This text is not kept in the browser. ${plainError(e)}`);
  } finally {
    if (mine === turn) textState.patch({ keeping: false });
  }
}

/** The text that an earlier visit had in hand; false if there is none. */
async function takeKept(): Promise<boolean> {
  const mine = turn;
  if (!(await whenStore())) return false;
  try {
    const { origin, text = 0 } = ((await kept.loadDocs(HAND))[HAND] ?? {}) as {
      origin?: Origin;
      text?: number;
    };
    const blob = text === 0 ? null : await kept.loadText(text);
    if (mine !== turn) return true;
    if (origin?.kind === 'stories') await takeStories(origin.seed, origin.bytes);
    else if (origin && blob) await take(++turn, blob, origin, text);
    else return false;
    return true;
  } catch {
    return false;
  }
}

async function examine(mine: number): Promise<void> {
  const { blob } = textState.get();
  textRef.set(null);
  await lint(mine);
  if (blob && blob.size <= HASHED_BYTES) await fingerprint();
}

async function lint(mine: number): Promise<void> {
  try {
    const engine = await whenEngine();
    const text = await engineText();
    if (!text || mine !== turn) return;
    const { ctx, valFraction } = settings.get();
    const findings = await asking(engine.lint(text, ctx, valFraction));
    if (mine === turn) textState.patch({ findings });
  } catch (e) {
    if (mine === turn) textState.patch({ problem: plainError(e) });
  }
}

/** The SHA-256 of the text in hand, by which a link knows it again. */
export async function fingerprint(): Promise<void> {
  const mine = turn;
  if (textState.get().sha256 !== '' || textState.get().hashing) return;
  textState.patch({ hashing: true });
  const { signal } = (reading = new AbortController());
  try {
    const text = await engineText();
    const sha256 = text ? await asking(text.sha256({ signal })) : '';
    if (mine !== turn) return;
    textState.patch({ sha256, hashing: false });
    recognise();
  } catch (e) {
    const problem = signal.aborted ? '' : plainError(e);
    if (mine === turn) textState.patch({ hashing: false, problem });
  }
}

let reading: AbortController | null = null;

/** The fingerprint is not wanted any more, for now. */
export function stopReading(): void {
  reading?.abort();
}

/** Tells the address about the text, and the person whether it is the one that a link asks for. */
function recognise(): void {
  const { blob, sha256, origin } = textState.get();
  if (!blob || sha256 === '') return;
  textRef.set({
    bytes: blob.size,
    sha256,
    ...(origin.kind === 'stories' ? { stories: origin.seed } : {}),
  });
  if (wantedText.get()?.sha256 === sha256) wantedText.set(null);
}

/** What the engine is being asked about texts; who changes the engine for another waits for it. */
let asked: Promise<unknown> = Promise.resolve();

function asking<T>(call: Promise<T>): Promise<T> {
  asked = Promise.allSettled([asked, call]);
  return call;
}

export function textAnswered(): Promise<unknown> {
  return asked;
}

export async function takeStories(seed: number, bytes: number): Promise<void> {
  const origin: Origin = { kind: 'stories', seed, bytes };
  const mine = loading();
  try {
    const engine = await whenEngine();
    const stories = await asking(engine.stories(seed, bytes));
    if (mine === turn) await take(mine, new Blob([stories as Uint8Array<ArrayBuffer>]), origin);
  } catch (e) {
    failed(mine, plainError(e));
  }
}

export async function takeTyped(text: string): Promise<void> {
  clearTimeout(draft?.timer);
  draft = null;
  const mine = ++turn;
  await take(mine, new Blob([text]), { kind: 'typed' });
}

/** What is being typed, until the keys have rested. */
let draft: { text: string; timer: ReturnType<typeof setTimeout> } | null = null;
const REST_MS = 350;

/** A text that is still on its way does not come any more; the one that was in hand stays. */
export function stopTaking(): void {
  if (textState.get().status === 'ready') return textState.patch({ problem: '' });
  ++turn;
  fetching?.abort();
  stay('empty', '');
}

/** Typing is free of work: the text is taken over when the keys have rested. */
export function typing(text: string): void {
  clearTimeout(draft?.timer);
  draft = { text, timer: setTimeout(() => void takeTyped(text), REST_MS) };
}

/** Takes over what is being typed, now: whoever starts a run means the text that is seen. */
export async function settleText(): Promise<void> {
  if (draft) await takeTyped(draft.text);
}

/** Several files become one text, a line feed between them. They stay where they are. */
export async function takeFiles(files: readonly File[]): Promise<void> {
  const names = files.map((f) => f.name);
  const mine = loading();
  try {
    for (const f of files) await refuseWhatIsNoText(f);
    const one = files[0];
    const blob = files.length === 1 && one ? one : new Blob(files.flatMap((f) => [f, '\n']));
    if (blob.size === 0)
      throw new Error(files.length === 1 ? `${one?.name} is empty.` : 'These files are empty.');
    await take(mine, blob, { kind: 'files', names });
  } catch (e) {
    failed(mine, plainError(e));
  }
}

async function refuseWhatIsNoText(f: File): Promise<void> {
  const head = new Uint8Array(await f.slice(0, SNIFF_BYTES).arrayBuffer());
  const container = containerOf(head);
  if (container)
    throw new Error(`${f.name} is ${container}, not a plain text. Save it as plain text first.`);
  if (looksLikeHtml(head)) {
    notify('info', `${f.name} is a web page (HTML): the model will learn its tags, too.`);
  }
}

let fetching: AbortController | null = null;

/** What is fetched, told how far it is, and becomes the text in hand; one fetch at a time. */
async function takeFetched(
  get: (signal: AbortSignal, tell: (share: number) => void) => Promise<[Blob, Origin]>,
): Promise<void> {
  fetching?.abort();
  const stop = new AbortController();
  fetching = stop;
  const mine = loading();
  textState.patch({ progress: 0 });
  try {
    const [blob, origin] = await get(stop.signal, (progress) => {
      if (mine === turn) textState.patch({ progress });
    });
    await take(mine, blob, origin);
  } catch (e) {
    failed(mine, plainError(e));
  } finally {
    if (fetching === stop) fetching = null;
  }
}

export function takeAddress(typed: string): Promise<void> {
  return takeFetched(async (signal, tell) => {
    const url = cleanAddress(typed, location.protocol === 'https:');
    const blob = await fetchText(url, {
      signal,
      onProgress: (got, total) => tell(total > 0 ? got / total : 0),
    });
    return [blob, { kind: 'url', url: url.href }];
  });
}

/** Articles by their titles, or rows of a data set, at most so many bytes of them. */
export function takePublic(from: 'wikipedia' | 'dataset', typed: string, bytes: number): Promise<void> {
  return takeFetched(async (signal, onProgress) => {
    const { wikipedia, dataset } = await import('../text/public_texts');
    const { name, text, licence, cut } =
      from === 'wikipedia'
        ? await wikipedia(typed, { signal, onProgress })
        : await dataset(typed, bytes, { signal, onProgress });
    if (cut) notify('warning', `This is a part of ${name}, the rest did not come. ${cut}`);
    return [text, { kind: 'public', name, licence }];
  });
}


/** A UTF-16 or Latin-1 text as UTF-8, in a stream: the browser may keep the result on the disk. */
export async function convertToUtf8(): Promise<void> {
  const { blob, encoding, origin } = textState.get();
  const label =
    encoding === 'UTF-16 LE' ? 'utf-16le' : encoding === 'UTF-16 BE' ? 'utf-16be' : 'windows-1252';
  if (!blob) return;
  const mine = loading();
  try {
    const stream = blob
      .stream()
      .pipeThrough(
        new TextDecoderStream(label) as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>,
      )
      .pipeThrough(new TextEncoderStream());
    const utf8 = await new Response(stream).blob();
    await take(mine, utf8, origin);
  } catch (e) {
    failed(mine, plainError(e));
  }
}

/** What a person calls the text. */
export function textName(origin: Origin): string {
  switch (origin.kind) {
    case 'stories':
      return 'Stories from the generator';
    case 'typed':
      return 'Your own text';
    case 'files':
      return origin.names.length === 1 ? (origin.names[0] ?? '') : `${origin.names.length} files`;
    case 'url':
      return origin.url.replace(/^https?:\/\//, '');
    case 'public':
    case 'saved':
      return origin.name;
  }
}

/** Whose it is, where that is known; '' elsewhere. */
export function textLicence(origin: Origin): string {
  if (origin.kind === 'public') return origin.licence;
  return origin.kind === 'stories' ? 'Apache-2.0, the tinygpt authors' : '';
}

/** The text in hand as a run takes it; null if there is none. */
export function runText(): RunText | null {
  const { blob, origin, sha256, kept: id } = textState.get();
  if (!blob) return null;
  return {
    blob,
    name: textName(origin),
    sha256,
    ...(id > 0 ? { kept: id } : {}),
    ...(origin.kind === 'stories' ? { stories: origin.seed } : {}),
  };
}

/** A link that somebody followed names its stories; whoever loads the page again goes on. */
async function firstText(): Promise<void> {
  const [entry] = performance.getEntriesByType('navigation');
  const again = entry && 'type' in entry && entry.type !== 'navigate';
  const wanted = wantedText.get();
  const linked = wanted?.stories !== undefined && wanted.bytes <= 1e9 ? wanted : null;
  if ((again || !linked) && (await takeKept())) {
    // The address may not have been written yet when the page was loaded again.
    if (again) wantedText.set(null);
    return;
  }
  await takeStories(linked?.stories ?? STORIES_SEED, linked?.bytes ?? STORIES_BYTES);
}

export function startText(): void {
  void firstText();
  watchUnsaved(() => {
    const { origin, blob, keeping, kept: id } = textState.get();
    // Files and hosts still have theirs, where the store has no room for it.
    const typed = origin.kind === 'typed' && blob !== null && id === 0;
    return draft !== null || keeping || typed;
  });
  // The findings depend on the window and on the part kept for checking.
  let timer = 0;
  let { ctx, valFraction } = settings.get();
  settings.subscribe((s) => {
    if (s.ctx === ctx && s.valFraction === valFraction) return;
    ({ ctx, valFraction } = s);
    clearTimeout(timer);
    timer = window.setTimeout(() => void lint(turn), 200);
  });
  onRebuilt(() => {
    const { blob, status, findings } = textState.get();
    if (!blob && status === 'failed') void firstText();
    else if (findings === null) void examine(turn);
  });
}
