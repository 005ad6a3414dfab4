// SPDX-License-Identifier: Apache-2.0
/**
 * tasks.test.ts - turns, held objects, and items between a writer and its reader.
 */
import { describe, expect, it } from 'vitest';

import { TinygptError } from './errors.js';
import { Cancelled, Task, turn } from './tasks.js';

const locks = () => new Map<number, Task>();

describe('turns', () => {
  it('come one after the other, and let other events in', async () => {
    const order: string[] = [];
    const walk = async (name: string) => {
      for (let i = 0; i < 3; i++) {
        order.push(name);
        await turn();
      }
    };
    await Promise.all([walk('a'), walk('b')]);
    expect(order.join('')).toBe('ababab');
    let seen = false;
    setTimeout(() => { seen = true; }, 1);
    for (let turns = 0; !seen && turns < 1e6; turns++) await turn();
    expect(seen).toBe(true);
  });
});

describe('holding', () => {
  it('is for one task at a time, and for all objects or none', async () => {
    const held = locks();
    const [a, b] = [new Task(held), new Task(held)];
    await a.hold(1, 2);
    await a.hold(2);
    let done = false;
    const waiting = b.hold(2, 3).then(() => { done = true; });
    await turn();
    await turn();
    expect(done).toBe(false);
    expect(held.has(3)).toBe(false);
    a.release(1);
    await turn();
    await turn();
    expect(done).toBe(false);
    a.releaseAll();
    await waiting;
    expect(held.get(3)).toBe(b);
    a.releaseAll();
    expect(held.get(3)).toBe(b);
  });

  it('ends when the task is cancelled or lost', async () => {
    const held = locks();
    const [a, b, c] = [new Task(held), new Task(held), new Task(held)];
    await a.hold(1);
    const cancelled = b.hold(1);
    const lost = c.hold(1);
    b.cancel();
    c.lose(new TinygptError('TRAP', 'gone'));
    await expect(cancelled).rejects.toBeInstanceOf(Cancelled);
    await expect(lost).rejects.toMatchObject({ code: 'TRAP' });
    expect(c.alive).toBe(false);
    expect(b.alive).toBe(true);
    expect(held.get(1)).toBe(a);
  });
});

describe('items', () => {
  it('are pulled in order, and the end is told once all are out', async () => {
    const task = new Task(locks());
    const first = task.pull(0);
    task.emit('x');
    expect(await first).toEqual({ items: ['x'], done: false });
    task.emit('y');
    task.emit('z');
    task.end();
    expect(task.unread).toBe(2);
    expect(await task.pull(1)).toEqual({ items: ['y', 'z'], done: true });
    expect(await task.pull(3)).toEqual({ items: [], done: true });
  });

  it('are made at most so far ahead', async () => {
    const task = new Task(locks());
    let made = 0;
    const write = async () => {
      for (; made < 10; made++) {
        await task.room(2);
        task.emit(made);
      }
      task.end();
    };
    const writing = write();
    await turn();
    expect(made).toBe(3);
    expect((await task.pull(0)).items).toEqual([0, 1, 2]);
    await turn();
    expect(made).toBe(3);
    const more = task.pull(2);
    await turn();
    expect(made).toBe(5);
    expect((await more).items.length).toBeGreaterThan(0);
    task.cancel();
    await expect(writing).rejects.toBeInstanceOf(Cancelled);
  });
});
