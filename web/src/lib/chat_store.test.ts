// SPDX-License-Identifier: Apache-2.0
/** chat_store.test.ts - what useChat is made of: it loads, answers, stops, closes and opens again. */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { type ChatState, ChatStore } from 'tinygpt';

const path = resolve(import.meta.dirname, '../../../.cache/models/SmolLM2-135M-Instruct.Q4_1.gguf');

it('holds a conversation, through a close and another open', async () => {
  const store = new ChatStore({
    model: pathToFileURL(path), system: 'Be brief.', ctx: 256,
    answer: { temperature: 0, tokens: 4 }, engine: { build: 'simd-mt', threads: 2 },
  });
  const seen = new Set<ChatState['status']>();
  const leave = store.subscribe(() => seen.add(store.snapshot().status));
  // As React's strict mode does: what was closed while it loaded is opened once more.
  const first = store.open();
  await store.close();
  await Promise.all([first, store.open()]);
  expect(store.snapshot()).toMatchObject({ status: 'ready', progress: 1, turns: [], error: null });
  const before = store.snapshot();
  expect(store.snapshot()).toBe(before);

  await store.send('Say hello.');
  const { turns, status } = store.snapshot();
  expect(status).toBe('ready');
  expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant']);
  expect(turns[1]!.text).not.toBe('');
  expect([...seen]).toEqual(expect.arrayContaining(['loading', 'ready', 'writing', 'closed']));

  await store.send('word '.repeat(400));
  expect(store.snapshot().error).toMatchObject({ code: 'FULL' });
  expect(store.snapshot().turns).toEqual(turns);
  leave();
  await store.close();
  expect(store.snapshot()).toMatchObject({ status: 'closed', turns });
  await store.send('Is anybody there?');
  expect(store.snapshot().turns).toEqual(turns);
});
