// SPDX-License-Identifier: Apache-2.0
/**
 * talk.test.ts - an import that is stopped says what came, the settings of a conversation, and a store
 * that has no room for one.
 */
import { beforeEach, expect, it, vi } from 'vitest';
import { Store } from '../store';
import { CHAT_DEFAULTS } from './settings';
import { asJson, type TalkDoc } from './talk_doc';

const page = vi.hoisted(() => ({ saved: (_key: string) => {}, unsaved: (): boolean => false }));
let n = 0;
vi.mock('../state/keeping', () => ({
  newId: () => `new${++n}`,
  watchUnsaved: (what: () => boolean) => {
    page.unsaved = what;
  },
  whenStore: () => Promise.resolve(true),
  keeping: new Store({ status: 'ok', reason: '' }),
  kept: {
    saveDoc: async (key: string) => page.saved(key),
    loadDocs: () => Promise.resolve({}),
    removeDoc: () => Promise.resolve(),
  },
}));
vi.mock('./models', () => ({
  chatSettings: new Store(CHAT_DEFAULTS),
  keyOf: ({ name }: { name: string }) => name,
  models: new Store({ opened: null }),
}));
const { importTalks, openTalk, removeTalk, renameTalk, startTalks, talks } = await import('./talk');
const { chatSettings, models } = await import('./models');
const { notices } = await import('../state/notices');

const doc = (id: string): TalkDoc => ({
  id,
  name: id,
  turns: [{ role: 'user', text: 'Hello' }],
  draft: '',
  settings: { ...CHAT_DEFAULTS, system: id, ctx: 1024, templates: { a: '', b: 'llama3' } },
  model: null,
  begun: 1,
  changed: 1,
});
const file = new File([asJson([doc('x'), doc('y'), doc('z')])], 'talks.json');

beforeEach(() => {
  talks.set([]);
  notices.set([]);
  page.saved = () => {};
});

it('an import says how many conversations came', async () => {
  await importTalks([file], new AbortController().signal);
  expect(notices.get().map(({ text }) => text)).toEqual(['3 conversations are here from talks.json.']);
});

it('an import that is stopped says so, too, and keeps what came', async () => {
  const control = new AbortController();
  page.saved = () => talks.get()?.length === 2 && control.abort();
  await importTalks([file], control.signal);
  expect(talks.get()).toHaveLength(2);
  expect(notices.get().map(({ text }) => text)).toEqual([
    'The import was stopped. Of 3 conversations from talks.json, 2 came.',
  ]);
});

it('a conversation that is opened leaves what the model that is open was loaded with', () => {
  openTalk(doc('x'));
  expect(chatSettings.get()).toEqual(doc('x').settings);
  models.patch({ opened: { name: 'a', loaded: { ctx: 512, keys: 'f16', template: '-' } } as never });
  openTalk(doc('y'));
  expect(chatSettings.get()).toMatchObject({
    system: 'y', ctx: 512, keys: 'f16', templates: { a: '-', b: 'llama3' },
  });
});

it('a conversation for which there is no room is told of once, and counts as unsaved until it is kept', async () => {
  await startTalks();
  page.saved = () => {
    throw new Error('no room');
  };
  for (const name of ['one', 'two']) await renameTalk(doc('x'), name);
  await renameTalk(doc('y'), 'another');
  expect(notices.get().map(({ text }) => text)).toEqual([
    'This conversation is not saved. Export it to keep it. no room.',
  ]);
  expect(page.unsaved()).toBe(true);
  page.saved = () => {};
  await renameTalk(doc('x'), 'three');
  expect(page.unsaved()).toBe(true);
  await removeTalk(doc('y'));
  expect(page.unsaved()).toBe(false);
});
