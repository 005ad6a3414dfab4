// SPDX-License-Identifier: Apache-2.0
/** notes_state.test.ts - notes outlive a stop, and are read anew for another model alone. */
import { beforeEach, expect, it, vi } from 'vitest';
import { Store } from '../store';

/** What each call is given; `during` happens while it is answered. */
const engine = vi.hoisted(() => ({ read: [] as string[], during: () => {} }));
vi.mock('./models', () => ({
  models: new Store<{ opened: unknown }>({ opened: null }),
  vectorsOf: (texts: string[]) => {
    engine.read.push(...texts);
    const { source } = models.get().opened as unknown as { source: { length: number } };
    const made = texts.map(() => new Float32Array([source.length]));
    engine.during();
    return Promise.resolve(made);
  },
}));
const { models } = await import('./models');
const { add, forgetNotes, notes, read, stopReading } = await import('./notes_state');

/** A model in a file, as a person has opened it; `length` is told by its vectors. */
function open(fill: string, length = 1): void {
  const file = Object.assign(new File([fill.repeat(1000)], 'model.zip'), { length });
  models.patch({ opened: { name: file.name, source: file, key: fill } as never });
}
const paragraphs = Array.from({ length: 40 }, (_, i) => `Note ${i}: ${'word '.repeat(20)}`);
const file = new File([paragraphs.join('\n\n')], 'mine.md');
const amounts = () => [notes.get().vectors.length, notes.get().list.length];

beforeEach(() => {
  forgetNotes();
  engine.during = () => {};
  engine.read = [];
});

it('a stop while notes are read anew loses none of them, and the others are read later', async () => {
  open('a');
  await add([file]);
  expect(amounts()).toEqual([40, 40]);
  open('b');
  engine.during = stopReading;
  await read();
  expect(amounts()).toEqual([16, 40]);
  engine.during = () => {};
  await read();
  expect(amounts()).toEqual([40, 40]);
});

it('another model is told by its key, not by the name of its file', async () => {
  open('a');
  await add([file]);
  engine.read = [];
  open('a');
  await read();
  expect(engine.read).toEqual([]);
  open('b', 2);
  await read();
  expect(engine.read).toHaveLength(40);
  expect(notes.get().vectors.every(([length]) => length === 2)).toBe(true);
});

it('a model that is opened while notes are read reads all of them', async () => {
  open('a');
  engine.during = () => {
    if (engine.read.length === 32) open('b', 2);
  };
  await add([file]);
  expect(amounts()).toEqual([40, 40]);
  expect(notes.get().vectors.every(([length]) => length === 2)).toBe(true);
});
