// SPDX-License-Identifier: Apache-2.0
/**
 * talk.ts - the conversation that is open, and all others. It lives here and not in a component, so
 * that another view can be opened while an answer is written. Each is a document of the store
 * (`talk.ID`), written after each turn, while an answer grows, and when what is typed or set has
 * rested; it outlives reloads, new versions and other models.
 */
import type { Answer } from '../../lib/index';
import type { AnswerOptions, AnswerPiece, AnswerStats, Turn } from '../../lib/types';
import { TinygptError } from '../../lib/errors';
import { plainError } from '../plain_error';
import { keeping, kept, newId, watchUnsaved, whenStore } from '../state/keeping';
import { notify } from '../state/notices';
import { Store } from '../store';
import { openDrawer } from './drawer';
import { chatSession, chatSettings, engineDied, models, tokensOf } from './models';
import { biases, lines, withLoaded } from './settings';
import { readFile, readTalk, type SaidTurn, type TalkDoc, talkName, turnsToDrop } from './talk_doc';

/** What has come of an answer. */
export type Writing = Pick<SaidTurn, 'text' | 'thinking' | 'calls'>;

export interface TalkState {
  id: string;
  name: string;
  begun: number;
  turns: readonly SaidTurn[];
  /** What is being typed. */
  draft: string;
  /** The answer under way; null if there is none. */
  writing: Writing | null;
  /** Of the answer under way, or the last one. */
  stats: AnswerStats | null;
  /** Oldest turns that the last answer was written without, since they did not fit. */
  dropped: number;
  /** What answered last. */
  model: TalkDoc['model'];
  problem: string;
}

function fresh(): TalkState {
  return {
    id: newId(),
    name: '',
    begun: Date.now(),
    turns: [],
    draft: '',
    writing: null,
    stats: null,
    dropped: 0,
    model: null,
    problem: '',
  };
}

export const talk = new Store<TalkState>(fresh());
/** All that are kept, the newest first; null: not looked yet. */
export const talks = new Store<readonly TalkDoc[] | null>(null);

const KEY = 'talk.';
/** Shows at most this often: what a page draws is taken from the threads that write. */
const SHOW_MS = 100;
/** An answer that grows is written to the store this often, and what is typed after this rest. */
const KEEP_MS = 1000;

let control: AbortController | null = null;
/** Each answer has a seed of its own, so that another one to the same turn is another one. */
let answers = 0;

// ---------------------------------------------------------------------------------- what is kept

function asDoc(): TalkDoc {
  const { id, name, turns, draft, writing, model, begun } = talk.get();
  // Half an answer is better than none, should the page go now.
  const half: SaidTurn[] = writing?.text ? [{ role: 'assistant', ...writing, cut: true }] : [];
  return {
    id,
    name,
    turns: [...turns, ...half],
    draft,
    settings: chatSettings.get(),
    model,
    begun,
    changed: Date.now(),
  };
}

let timer: ReturnType<typeof setTimeout> | null = null;
let writes = 0;
/** Conversations that neither the store nor a file has as they are. */
const unsaved = new Set<string>();
/** Of whose failed saves the person has heard. */
const told = new Set<string>();
/** When all saves of a conversation that have begun have ended. */
const saves = new Map<string, Promise<unknown>>();

async function write(doc: TalkDoc): Promise<void> {
  const mine = Promise.all([saves.get(doc.id), save(doc)]);
  saves.set(doc.id, mine);
  await mine;
}

async function save(doc: TalkDoc): Promise<void> {
  const others = (talks.get() ?? []).filter((other) => other.id !== doc.id);
  talks.set([doc, ...others].sort((a, b) => b.changed - a.changed));
  writes++;
  try {
    if (!(await whenStore())) throw new Error(keeping.get().reason);
    await kept.saveDoc(KEY + doc.id, doc);
    unsaved.delete(doc.id);
    told.delete(doc.id);
  } catch (e) {
    // What is only begun is no loss.
    if (doc.turns.length === 0) return;
    unsaved.add(doc.id);
    // Said once: an answer that grows is written every second.
    if (told.has(doc.id)) return;
    told.add(doc.id);
    notify('warning', `This conversation is not saved. Export it to keep it. ${plainError(e)}`, {
      label: 'Conversations',
      run: () => openDrawer('talks'),
    });
  } finally {
    writes--;
  }
}

/** Writes the conversation to the store, now; one that holds nothing is not kept. */
function keep(): Promise<void> {
  if (timer) clearTimeout(timer);
  timer = null;
  const doc = asDoc();
  if (doc.turns.length === 0 && doc.draft.trim() === '') return Promise.resolve();
  return write(doc);
}

function keepSoon(): void {
  timer ??= setTimeout(() => void keep(), KEEP_MS);
}

let started = false;

/** Looks for what earlier visits left, and opens the newest; once. */
export async function startTalks(): Promise<void> {
  if (started) return;
  started = true;
  watchUnsaved(() => timer !== null || writes > 0 || unsaved.size > 0);
  chatSettings.subscribe(keepSoon);
  if (!(await whenStore())) {
    talks.set([]);
    return;
  }
  try {
    const docs = Object.entries(await kept.loadDocs(KEY))
      .map(([key, value]) => readTalk(key.slice(KEY.length), value))
      .filter((doc) => doc !== null)
      .sort((a, b) => b.changed - a.changed);
    talks.set([...(talks.get() ?? []), ...docs]);
    const { turns, draft } = talk.get();
    if (docs[0] && turns.length === 0 && draft === '') show(docs[0]);
  } catch (e) {
    talks.set(talks.get() ?? []);
    notify('warning', `The conversations that are kept here could not be read. ${plainError(e)}`);
  }
}

function show(doc: TalkDoc): void {
  const { id, name, begun, turns, draft, model } = doc;
  answers = turns.length;
  talk.set({ ...fresh(), id, name, begun, turns, draft, model });
  const { opened } = models.get();
  // Of the model that is open, if one is, they tell what it was loaded with.
  const { settings } = doc;
  chatSettings.set(opened ? withLoaded(settings, opened.key, opened.loaded) : settings);
  // Looking at it changes nothing of it.
  if (timer) clearTimeout(timer);
  timer = null;
}

/** Ends the answer under way, and keeps what there is; who types on is not waited for. */
function putAway(): void {
  control?.abort();
  control = null;
  void keep();
}

export function openTalk(doc: TalkDoc): void {
  if (doc.id === talk.get().id) return;
  putAway();
  show(doc);
}

/** Another conversation begins; what is typed goes along, and the old one stays in the list. */
export function newTalk(): void {
  const { draft, turns } = talk.get();
  if (turns.length > 0) talk.patch({ draft: '' });
  putAway();
  answers = 0;
  talk.set({ ...fresh(), draft });
}

export async function renameTalk(doc: TalkDoc, name: string): Promise<void> {
  const trimmed = name.trim().slice(0, 200);
  if (doc.id === talk.get().id) talk.patch({ name: trimmed });
  await write({ ...doc, name: trimmed });
}

export async function removeTalk(doc: TalkDoc): Promise<void> {
  if (doc.id === talk.get().id) {
    control?.abort();
    control = null;
    if (timer) clearTimeout(timer);
    timer = null;
    talk.set(fresh());
  }
  const others = () => (talks.get() ?? []).filter((other) => other.id !== doc.id);
  talks.set(others());
  try {
    // A save that has begun would bring it back, or count it as unsaved.
    await saves.get(doc.id);
    if (await whenStore()) await kept.removeDoc(KEY + doc.id);
  } catch (e) {
    talks.set([doc, ...others()].sort((a, b) => b.changed - a.changed));
    notify('error', `“${talkName(doc)}” could not be deleted. ${plainError(e)}`);
    return;
  }
  saves.delete(doc.id);
  unsaved.delete(doc.id);
  told.delete(doc.id);
  notify('info', `“${talkName(doc)}” is deleted.`, { label: 'Undo', run: () => void write(doc) });
}

/** They are in a file now: leaving the page loses nothing of them, until they change. */
export function exported(docs: readonly TalkDoc[]): void {
  for (const { id } of docs) unsaved.delete(id);
}

/** Takes conversations from files, JSON or Markdown; says how many there were. After a cancel those
 *  that came before it stay. */
export async function importTalks(files: readonly File[], signal: AbortSignal): Promise<void> {
  for (const file of files) {
    const docs = readFile(await file.text(), newId);
    for (const [came, doc] of docs.entries()) {
      if (signal.aborted) {
        const all = `${docs.length} ${docs.length === 1 ? 'conversation' : 'conversations'}`;
        notify('info', `The import was stopped. Of ${all} from ${file.name}, ${came} came.`);
        return;
      }
      await write({ ...doc, changed: doc.changed || Date.now() });
    }
    const many = docs.length === 1 ? 'A conversation is' : `${docs.length} conversations are`;
    if (docs.length === 0) notify('error', `${file.name} holds no conversation.`);
    else notify('good', `${many} here from ${file.name}.`);
  }
}

// ------------------------------------------------------------------------------------- answering

function withSystem(turns: readonly Turn[]): Turn[] {
  const system = chatSettings.get().system.trim();
  const plain = turns.map(({ role, text }) => ({ role, text }));
  return [...(system === '' ? [] : [{ role: 'system' as const, text: system }]), ...plain];
}

/** The biases of the settings, by token. */
async function biasList(): Promise<{ id: number; bias: number }[]> {
  const list = [];
  for (const { text, bias } of biases(chatSettings.get().bias)) {
    for (const id of await tokensOf(text)) list.push({ id, bias });
  }
  return list;
}

/** How many of the oldest turns do not fit beside an answer. */
async function tooMany(turns: readonly SaidTurn[], capacity: number): Promise<number> {
  const sizes: number[] = [];
  for (const { text } of turns) sizes.push((await tokensOf(text)).length);
  const system = (await tokensOf(chatSettings.get().system.trim())).length;
  return turnsToDrop(sizes, turns.map((t) => t.role), system, capacity);
}

/** What an answer and a continued text have in common. */
async function drawing(signal: AbortSignal): Promise<AnswerOptions & { signal: AbortSignal }> {
  const { sampling, banned, stops, limit } = chatSettings.get();
  return {
    ...sampling,
    seed: (sampling.seed + answers++) % 2 ** 32,
    tokens: limit,
    banned: lines(banned),
    stops: lines(stops),
    bias: await biasList(),
    signal,
  };
}

/** Reads an answer to its end, and shows what came every now and then, unless another one began. */
async function follow(
  stream: Answer, mine: AbortController, take: (piece: AnswerPiece) => void, draw: () => void,
): Promise<AnswerStats | null> {
  // Its rejection is the loop's, which is the one that is shown.
  stream.stats.catch(() => {});
  let shown = -Infinity;
  for await (const piece of stream) {
    take(piece);
    const now = performance.now();
    if (now - shown < SHOW_MS || control !== mine) continue;
    shown = now;
    draw();
    keepSoon();
  }
  return stream.stats.catch(() => null);
}

function explain(e: unknown): string {
  const full = e instanceof TinygptError && e.code === 'FULL';
  return full
    ? 'This turn is longer than the context. Shorten it, or load the model with a longer context.'
    : plainError(e);
}

const FIELDS = { answer: 'text', thinking: 'thinking', 'tool call': 'calls' } as const;

/**
 * Answers the last turn, or goes on with it, if it is the model's. A turn that does not fit is taken
 * back into the draft. `others` are answers that it had before.
 */
async function answer(others: readonly string[] = []): Promise<void> {
  const session = chatSession();
  const { turns } = talk.get();
  const { opened } = models.get();
  const last = turns.at(-1);
  if (!session || !opened || !last || talk.get().writing !== null) return;
  const goesOn = last.role === 'assistant';
  const before = goesOn ? turns.slice(0, -1) : turns;
  const mine = (control = new AbortController());
  const stored = 'stored' in opened.source ? opened.source.stored : '';
  const begun: Writing = goesOn ? last : { text: '' };
  let came: Writing = { text: begun.text, thinking: begun.thinking, calls: begun.calls };
  talk.patch({
    turns: before, writing: came, stats: null, problem: '', model: { name: opened.name, stored },
  });
  void keep();
  try {
    const dropped = await tooMany(turns, session.capacity);
    talk.patch({ dropped });
    const options = { ...(await drawing(mine.signal)), goOn: goesOn };
    const stream = session.answer(withSystem(turns.slice(dropped)), options);
    const take = ({ part, text }: AnswerPiece) => {
      const field = FIELDS[part];
      if (text !== '') came = { ...came, [field]: (came[field] ?? '') + text };
    };
    const stats = await follow(stream, mine, take, () => talk.patch({ writing: came }));
    if (control !== mine) return;
    const said: SaidTurn = {
      role: 'assistant', ...came, cut: stats?.end !== 'end',
      ...(others.length > 0 ? { others } : {}),
    };
    talk.patch({ turns: [...before, said], writing: null, stats });
    await keep();
  } catch (e) {
    if (control !== mine) return;
    if (goesOn) talk.patch({ turns, writing: null });
    else talk.patch({ draft: last.text, turns: turns.slice(0, -1), writing: null });
    void keep();
    if (!engineDied(e, session)) talk.patch({ problem: explain(e) });
  }
}

/** Goes on with the last answer, where it was cut. */
export function goOn(): Promise<void> {
  const last = talk.get().turns.at(-1);
  if (last?.role !== 'assistant' || !chatSession()) return Promise.resolve();
  return answer(last.others ?? []);
}

/** With a model that was not taught to answer: goes on with what is typed, in its place. */
export async function continueText(): Promise<void> {
  const session = chatSession();
  const { draft, writing } = talk.get();
  if (!session || writing !== null) return;
  const mine = (control = new AbortController());
  let came = '';
  talk.patch({ writing: { text: '' }, stats: null, problem: '' });
  try {
    const stream = session.complete(draft, await drawing(mine.signal));
    const show = () => talk.patch({ draft: draft + came });
    const stats = await follow(stream, mine, ({ text }) => { came += text; }, show);
    if (control !== mine) return;
    show();
    talk.patch({ writing: null, stats });
    await keep();
  } catch (e) {
    if (control !== mine) return;
    talk.patch({ writing: null });
    if (!engineDied(e, session)) talk.patch({ problem: explain(e) });
  }
}

export function send(): Promise<void> {
  const { draft, turns, writing } = talk.get();
  if (draft.trim() === '' || writing !== null || !chatSession()) return Promise.resolve();
  talk.patch({ turns: [...turns, { role: 'user', text: draft.trim() }], draft: '' });
  return answer();
}

export function type(draft: string): void {
  talk.patch({ draft });
  keepSoon();
}

/** What is written so far stays. */
export function stop(): void {
  control?.abort();
}

/** Another answer to the last turn; the one that is there stays beside it. */
export function regenerate(): Promise<void> {
  const { turns, writing } = talk.get();
  const last = turns.at(-1);
  if (writing !== null || last?.role !== 'assistant' || !chatSession()) return Promise.resolve();
  talk.patch({ turns: turns.slice(0, -1) });
  return answer([...(last.others ?? []), last.text]);
}

/** The next of a turn's other answers takes the place of the one that counts. */
export function otherAnswer(at: number): void {
  const { turns } = talk.get();
  const [next, ...rest] = turns[at]?.others ?? [];
  if (next === undefined) return;
  const turned = (t: SaidTurn) => ({ ...t, text: next, others: [...rest, t.text] });
  talk.patch({ turns: turns.map((t, i) => (i === at ? turned(t) : t)) });
  void keep();
}

/** A conversation of its own that begins as this one does, up to a turn. */
export function branch(at: number): void {
  const { turns, name } = talk.get();
  putAway();
  const doc = { ...asDoc(), id: newId(), turns: turns.slice(0, at + 1), draft: '', begun: Date.now() };
  doc.name = `${talkName({ name, turns, draft: '' })} (branch)`;
  void write(doc);
  show(doc);
}

/** Says a turn of the person's otherwise, and answers that. What followed stays as a branch. */
export async function editTurn(at: number, text: string): Promise<void> {
  const { turns, name } = talk.get();
  if (text.trim() === '' || turns[at]?.role !== 'user' || !chatSession()) return;
  control?.abort();
  const before = { ...asDoc(), id: newId(), turns };
  before.name = `${talkName({ name, turns, draft: '' })} (before an edit)`;
  void write(before);
  talk.patch({ turns: [...turns.slice(0, at), { role: 'user', text: text.trim() }], writing: null });
  await answer();
}
