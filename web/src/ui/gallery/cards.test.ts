// SPDX-License-Identifier: Apache-2.0
/** cards.test.ts - the files in data/gallery are those that the cards tell of. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import list from '../../../../data/gallery/gallery.json';
import { CARDS } from './cards';

const folder = resolve(import.meta.dirname, '../../../../data/gallery');

it.each(CARDS.map((c) => c.name))('%s is the file of its card', (name) => {
  const card = list.find((c) => c.name === name)!;
  const file = readFileSync(resolve(folder, `${name}.tinygpt`));
  expect(file.length).toBe(card.bytes);
  expect(createHash('sha256').update(file).digest('hex')).toBe(card.sha256);
  expect(card.loss).toBeLessThanOrEqual(1.005 * card.floatLoss);
  expect(card.prompts.length).toBeGreaterThan(1);
  for (const words of [card.read, card.licence, card.excerpt, card.written])
    expect(words.trim().length).toBeGreaterThan(5);
});

it('they stay small', () => {
  expect(Math.max(...list.map((c) => c.bytes))).toBeLessThan(1e6);
  expect(list.reduce((sum, c) => sum + c.bytes, 0)).toBeLessThan(6e6);
});
