// SPDX-License-Identifier: Apache-2.0
/**
 * talk.test.ts - an import that is stopped says what came, the settings of a conversation, a store
 * that has no room for one, and deletions.
 */
import { beforeEach, expect, it, vi } from 'vitest';
import { Store } from '../store';
import { CHAT_DEFAULTS } from './settings';
import { asJson, type TalkDoc } from './talk_doc';

const page = vi.hoisted(() => ({
  saved: (_key: string): void | Promise<void> => {},
  removed: (_key: string) => {},
  unsaved: (): boolean => false,
}));
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
    removeDoc: async (key: string) => page.removed(key),
  },
}));
vi.mock('./models', () => ({
  chatSettings: new Store(CHAT_DEFAULTS),
  models: new Store({ opened: null }),
}));
const { exported, importTalks, openTalk, removeTalk, renameTalk, startTalks, talks } = await import('./talk');
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
  page.removed = () => {};
});

it('an import says how many conversations came', async () => {
  await importTalks([file], new AbortController().signal);
  expect(notices.get().map(({ text }) => text)).toEqual(['3 conversations are here from talks.json.']);
});

it('an import that is stopped says so, too, and keeps what came', async () => {
  const control = new AbortController();
  page.saved = () => {
    if (talks.get()?.length === 2) control.abort();
  };
  await importTalks([file], control.signal);
  expect(talks.get()).toHaveLength(2);
  expect(notices.get().map(({ text }) => text)).toEqual([
    'The import was stopped. Of 3 conversations from talks.json, 2 came.',
  ]);
});

it('a conversation that is opened leaves what the model that is open was loaded with', () => {
  openTalk(doc('x'));
  expect(chatSettings.get()).toEqual(doc('x').settings);
  models.patch({ opened: { name: 'm.gguf', key: 'a', loaded: { ctx: 512, keys: 'f16', template: '-' } } as never });
  openTalk(doc('y'));
  expect(chatSettings.get()).toMatchObject({
    system: 'y', ctx: 512, keys: 'f16', templates: { a: '-', b: 'llama3' },
  });
});

it('a conversation for which there is no room is told of once, and counts as unsaved until it is kept', async () => {
  await startTalks();
  let tried = 0;
  page.saved = () => {
    throw new Error(`no room, ${++tried}`);
  };
  for (const name of ['one', 'two']) await renameTalk(doc('x'), name);
  await renameTalk(doc('y'), 'another');
  // The reasons differ, so that a second notice would not replace the first.
  const said = 'This conversation is not saved. Export it to keep it. no room, ';
  expect(notices.get().map(({ text }) => text)).toEqual([`${said}1.`, `${said}3.`]);
  expect(page.unsaved()).toBe(true);
  page.saved = () => {};
  await renameTalk(doc('x'), 'three');
  expect(page.unsaved()).toBe(true);
  await removeTalk(doc('y'));
  expect(page.unsaved()).toBe(false);
});

it('a conversation that was exported may be left, and is not told of again when it changes', async () => {
  await startTalks();
  page.saved = () => {
    throw new Error('no room');
  };
  await renameTalk(doc('x'), 'one');
  exported(talks.get()!);
  expect(page.unsaved()).toBe(false);
  notices.set([]);
  await renameTalk(doc('x'), 'two');
  expect(page.unsaved()).toBe(true);
  expect(notices.get()).toEqual([]);
  await removeTalk(doc('x'));
});

it('a conversation is deleted behind a save that is under way, which leaves nothing of it', async () => {
  await startTalks();
  const ended: string[] = [];
  let fail = (_: Error) => {};
  page.saved = () => new Promise<void>((_, reject) => (fail = reject)).finally(() => ended.push('save'));
  page.removed = () => void ended.push('removal');
  const save = renameTalk(doc('x'), 'one');
  const removal = removeTalk(doc('x'));
  expect(talks.get()).toEqual([]);
  await new Promise((resolve) => setTimeout(resolve));
  fail(new Error('no room'));
  await Promise.all([save, removal]);
  expect(ended).toEqual(['save', 'removal']);
  expect(page.unsaved()).toBe(false);
  expect(talks.get()).toEqual([]);
});

it('a conversation that cannot be deleted stays in the list', async () => {
  await renameTalk(doc('x'), 'one');
  page.removed = () => {
    throw new Error('the disk is gone');
  };
  await removeTalk(doc('x'));
  expect(talks.get()!.map(({ id }) => id)).toEqual(['x']);
  expect(notices.get().map(({ text }) => text)).toEqual([
    '“x” could not be deleted. the disk is gone.',
  ]);
});
