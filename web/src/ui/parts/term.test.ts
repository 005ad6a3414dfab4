// SPDX-License-Identifier: Apache-2.0
/** term.test.ts - a term is told by the keys of a button. */
import { expect, it, vi } from 'vitest';
import { Term } from './term';
import { explained } from './terms';

it.each(['Enter', ' '])('is told by the key "%s"', async (key) => {
  explained.set('');
  const { props } = Term({ name: 'loss' });
  const press = (pressed: string) => {
    const event = { key: pressed, preventDefault: vi.fn() };
    props.onKeyDown(event);
    return event.preventDefault.mock.calls.length;
  };
  expect(press('a')).toBe(0);
  expect(press(key)).toBe(1);
  await vi.waitFor(() => expect(explained.get()).toBe('loss'));
});
