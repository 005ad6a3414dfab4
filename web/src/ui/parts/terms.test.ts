// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { GLOSSARY } from './glossary';
import { termsOf } from './terms';

const { split } = termsOf(GLOSSARY);
const found = (sentence: string) =>
  split(sentence).flatMap(({ text, term }) => (term === undefined ? [] : [[text, term]]));

describe('words of the glossary in a sentence', () => {
  it('are found in their forms, the longer one first, each once', () => {
    expect(found('Steps in which the learning rate rises from nothing.')).toEqual([
      ['Steps', 'step'],
      ['learning rate', 'learning rate'],
    ]);
    expect(found('A step, and a step')).toEqual([['step', 'step']]);
    expect(found('weights 3 KB, moments 6 KB')).toEqual([
      ['weights', 'parameter'],
      ['moments', 'moments'],
    ]);
  });

  it('are none in the middle of other words', () => {
    expect(found('footstep stepping byte-like header .steps')).toEqual([]);
  });

  it('leave nothing of the sentence out', () => {
    const sentence = 'Loss on text of 3 tokens: ln 256, see q·k.';
    expect(split(sentence).map(({ text }) => text).join('')).toBe(sentence);
    expect(split('')).toEqual([]);
  });

  it('explain each other, without a circle of one', () => {
    for (const [name, { means }] of Object.entries(GLOSSARY)) {
      expect(means, name).toMatch(/^[A-Z].*[.]$/s);
    }
  });
});

describe('what the views say', () => {
  /** A level-3 heading, a paragraph and the like, up to its end, with nothing of its kind in it. */
  const PLAIN = /<(p|h3|legend|dt|dd|figcaption)(?:\s[^>]*)?>((?:(?!<\/?\1[\s>])[\s\S])*?)<\/\1>/g;
  const words = (jsx: string) => jsx.replace(/<Words>[\s\S]*?<\/Words>/g, '').replace(/\{[^{}]*\}|<[^>]*>/g, ' ');

  it('has its terms marked: in <P>, or in <Words>', () => {
    const ui = resolve(import.meta.dirname, '..');
    const all = readdirSync(ui, { recursive: true, encoding: 'utf8' });
    const views = all.filter((file) => /(?<!\.test)\.tsx$/.test(file));
    expect(views.length).toBeGreaterThan(60);
    const plain = views.flatMap((file) =>
      [...readFileSync(resolve(ui, file), 'utf8').matchAll(PLAIN)].flatMap(([, , jsx]) =>
        found(words(jsx ?? '')).map(([text]) => `${file}: ${text}`)));
    expect(plain).toEqual([]);
  });
});
