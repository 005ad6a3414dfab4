// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keys, SHORTCUTS, type Shortcut } from './shortcuts';

function press(key: string, more: Partial<KeyboardEvent> = {}): KeyboardEvent & { taken: boolean } {
  const none = { altKey: false, ctrlKey: false, metaKey: false, shiftKey: false, isComposing: false };
  const e = { key, target: null, taken: false, ...none, ...more };
  return Object.assign(e, { preventDefault: () => (e.taken = true) }) as never;
}

let dialog: object | null = null;

beforeEach(() => {
  dialog = null;
  vi.stubGlobal('document', { querySelector: () => dialog });
});
afterEach(() => vi.unstubAllGlobals());

it('every key of the table is bound once in its place, and told', () => {
  for (const [place, table] of Object.entries(SHORTCUTS) as [string, readonly Shortcut[]][]) {
    const all = table.flatMap(([, list]) => list);
    expect(new Set(all).size, place).toBe(all.length);
    for (const [id, , does] of table) expect(does, `${place} ${id}`).not.toBe('');
  }
});

it('the keys of the page do nothing while a dialog is open, or by being held down', () => {
  const done: string[] = [];
  const page = keys('page', { views: (key) => done.push(key), pause: () => done.push('pause') });
  page(press('p', { repeat: true }));
  dialog = {};
  page(press('p'));
  dialog = null;
  page(press('p'));
  expect(done).toEqual(['pause']);
});

it('a key does what the table says, and nothing with other modifiers', () => {
  const done: string[] = [];
  const write = keys('write', { write: () => done.push('write'), stop: () => done.push('stop') });
  const chat = keys('chat', { send: () => done.push('send') });
  const page = keys('page', { views: (key) => done.push(key), help: () => done.push('help') });
  for (const e of [press('Enter', { ctrlKey: true }), press('Enter', { metaKey: true })]) {
    write(e);
    expect(e.taken).toBe(true);
  }
  write(press('Enter'));
  write(press('Escape'));
  chat(press('Enter'));
  chat(press('Enter', { shiftKey: true }));
  chat(press('Enter', { isComposing: true }));
  const left = press('Escape');
  chat(left);
  page(press('3'));
  page(press('?', { shiftKey: true }));
  page(press('2', { ctrlKey: true }));
  expect(left.taken).toBe(false);
  expect(done).toEqual(['write', 'write', 'stop', 'send', '3', 'help']);
});
