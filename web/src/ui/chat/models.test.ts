// SPDX-License-Identifier: Apache-2.0
/** models.test.ts - whose template counts: looking at another model changes nothing of what is open; what is copied
 *  without a check. */
import { beforeEach, expect, it, vi } from 'vitest';
import { TinygptError } from '../../lib/errors';
import type { ModelSource } from '../../lib/types';

/** How conversations were begun: a model's id, and its template; none for texts. */
const begun = vi.hoisted(() => [] as string[]);
const removed = vi.hoisted(() => [] as string[]);
/** What a store is asked for while a model is deleted. */
const meanwhile = vi.hoisted(() => ({ close: () => {} }));

vi.mock('../../lib/index', () => ({
  Engine: {
    open: () => Promise.resolve({
      info: { device: 'cpu', gpu: null, threads: 1, notes: [] },
      modelFacts: () => Promise.resolve({ caches: [512, 1024, 8192].map((tokens) => ({ tokens, bytes: 1 })) }),
      openChatModel: ({ stored: id }: { stored: string }) => Promise.resolve({
        info: { ctx: 8192, writes: true, template: 'own' },
        free: () => {},
        session: ({ ctx }: { ctx: number }) => {
          begun.push(`${id} as a text`);
          return Promise.resolve({ capacity: ctx });
        },
        chat: ({ ctx, template }: { ctx: number; template: string }) => {
          begun.push(`${id} "${template}"`);
          return id === 'a'
            ? Promise.reject(new TinygptError('FORMAT', 'chat template: want a token, have none'))
            : Promise.resolve({ capacity: ctx });
        },
      }),
      close: () => {
        meanwhile.close();
        return Promise.resolve();
      },
    }),
  },
}));
vi.mock('../../lib/models/index', () => ({
  StoreError: class extends Error {},
  folderFile: () => {},
  openModelStore: () => ({
    list: () => Promise.resolve([MODEL.a, MODEL.b]),
    check: () => Promise.resolve(0),
    add: () => Promise.resolve(MODEL.b),
    remove: (id: string) => Promise.resolve(void removed.push(id)),
  }),
}));
vi.stubGlobal('document', { baseURI: 'http://localhost/' });

const stored = (id: string) => ({ id, name: 'model.gguf', bytes: 1, have: 1, whole: true, address: '' });
const MODEL = { a: stored('a'), b: stored('b') };
const m = await import('./models');
const { CHAT_DEFAULTS } = await import('./settings');
const { notices } = await import('../state/notices');

beforeEach(async () => {
  await m.closeModel();
  m.models.patch({ chosen: null, problem: '', untold: null });
  m.chatSettings.set(CHAT_DEFAULTS);
  await m.refresh();
  begun.splice(0);
  removed.splice(0);
  meanwhile.close = () => {};
});

async function openAsText() {
  await m.choose(MODEL.a as never);
  await m.openChosen();
  expect(m.models.get().opened).toBeNull();
  expect(m.models.get().untold?.source).toEqual({ stored: 'a' } satisfies ModelSource);
  await m.openWithoutTemplate();
  expect(m.models.get().opened?.template).toBeNull();
  expect(begun.splice(0)).toEqual(['a ""', 'a as a text']);
}

it('a look at another model leaves what is open, and how it is loaded again', async () => {
  await openAsText();
  const before = m.chatSettings.get();
  await m.choose(MODEL.b as never);
  expect(m.chatSettings.get()).toBe(before);
  await m.openLonger(1024);
  expect(m.models.get().opened?.capacity).toBe(1024);
  await m.changeDevice('webgpu');
  expect(begun).toEqual(['a as a text', 'a as a text']);
});

it('what cannot be loaded again is what goes on with a text, whatever was looked at', async () => {
  await openAsText();
  await m.choose(MODEL.b as never);
  m.chooseTemplate(m.models.get().opened!, 'llama3');
  await m.openAgain();
  // It is there to be given another template.
  expect(m.models.get().chosen?.source).toEqual({ stored: 'a' });
  await m.openWithoutTemplate();
  expect(begun).toEqual(['a "llama3"', 'a as a text']);
});

it('the next model is opened by its own template, also after the one before was deleted', async () => {
  await openAsText();
  await m.remove(MODEL.a as never);
  expect(removed).toEqual(['a']);
  await m.choose(MODEL.b as never);
  await m.openChosen();
  expect(begun).toEqual(['b ""']);
});

it('a model whose deleting is cancelled while it is closed stays', async () => {
  await openAsText();
  meanwhile.close = m.cancel;
  await m.remove(MODEL.a as never);
  expect(removed).toEqual([]);
});

it('a conversation brings its own template, whatever was looked at', async () => {
  await m.choose(MODEL.b as never);
  m.chatSettings.patch({ templates: { a: '-', b: 'llama3' } });
  await m.openStored('a');
  expect(begun).toEqual(['a as a text']);
  expect(m.models.get().opened?.loaded).toEqual({ ctx: 4096, keys: 'f32', template: '-' });
  expect(m.models.get().opened?.capacity).toBe(1024);
});

it('a copy of Hugging Face that could not be checked is told', async () => {
  const lfs = { sha256: 'a'.repeat(64), size: 1 };
  const answer = (more: object) => ({ siblings: [{ rfilename: 'm.gguf', ...more }] });
  const told = async (of: object | null) => {
    notices.set([]);
    const get = () => (of ? Promise.resolve(Response.json(of)) : Promise.reject(new Error('no network')));
    vi.stubGlobal('fetch', get);
    await m.resume({ ...MODEL.b, address: 'https://huggingface.co/owner/repo/resolve/main/m.gguf' } as never);
    return notices.get().map(({ text }) => text);
  };
  const unchecked = 'was not checked: Hugging Face did not tell what SHA-256 it has to have.';
  expect(await told(answer({ lfs }))).toEqual([]);
  expect(await told(answer({}))).toEqual([expect.stringContaining(unchecked)]);
  expect(await told(null)).toEqual([expect.stringContaining(unchecked)]);
  vi.stubGlobal('fetch', undefined);
});
