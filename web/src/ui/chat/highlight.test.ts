// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { highlight } from './highlight';

it('colours what it knows and loses no letter', () => {
  const code = 'def f(x):  # <b>\n    return "a" + str(1)\n';
  const parts = highlight(code, 'python') ?? [];
  expect(parts.map((p) => p.text).join('')).toBe(code);
  const kind = (text: string) => parts.find((p) => p.text.includes(text))?.kind;
  expect([kind('def'), kind('"a"'), kind('1'), kind('<b>')]).toEqual([
    'word', 'text', 'number', 'comment',
  ]);
});

it('knows languages by their other names, and leaves strangers alone', () => {
  expect(highlight('let a = 1', 'ts')).not.toBeNull();
  expect(highlight('x', 'klingon')).toBeNull();
});
