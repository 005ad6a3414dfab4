// SPDX-License-Identifier: Apache-2.0
/** talk_doc.test.ts - conversations go out and come back as they were; strangers' files are looked at. */
import { describe, expect, it } from 'vitest';
import { CHAT_DEFAULTS } from './settings';
import { asJson, asMarkdown, matches, readFile, readTalk, talkName, turnsToDrop } from './talk_doc';
import type { TalkDoc } from './talk_doc';

const DOC: TalkDoc = {
  id: 'a',
  name: 'Skies',
  turns: [
    { role: 'user', text: 'Why is the sky blue?' },
    { role: 'assistant', text: 'It scatters.\n\n## You\n\nsee?\n\\## Model', others: ['Who knows.'] },
    { role: 'user', text: 'And at dusk?' },
  ],
  draft: 'Or',
  settings: { ...CHAT_DEFAULTS, system: 'Be brief.', ctx: 1024 },
  model: { name: 'm.gguf', stored: '7' },
  begun: 1,
  changed: 2,
};

let n = 0;
const newId = () => `new${++n}`;

describe('a conversation', () => {
  it('comes back from JSON with all that it had', () => {
    const [back, other] = readFile(asJson([DOC, { ...DOC, id: 'b', name: '' }]), newId);
    expect(back).toEqual({ ...DOC, id: back?.id });
    expect(back?.id).not.toBe(other?.id);
    expect(other?.name).toBe('');
  });

  it('comes back from Markdown with its turns, name and system prompt', () => {
    const text = asMarkdown(DOC);
    expect(text).toMatch(/^# Skies\n\n## System\n\nBe brief\.\n\n## You\n\nWhy is/);
    const [back] = readFile(text.replaceAll('\n', '\r\n'), newId);
    expect(back?.name).toBe('Skies');
    expect(back?.settings.system).toBe('Be brief.');
    expect(back?.turns).toEqual(DOC.turns.map(({ role, text: said }) => ({ role, text: said })));
  });

  it('is not made of anything else', () => {
    for (const text of ['', 'a letter', '[]', '{}', 'null', '7', '{"turns":[{"role":"robot"}]}']) {
      expect(readFile(text, newId), text).toEqual([]);
    }
    const odd = { turns: [], settings: { ctx: 'x', sampling: { topK: -1, topP: 0.5 } } };
    const read = readTalk('x', odd);
    expect(read?.settings.ctx).toBe(CHAT_DEFAULTS.ctx);
    expect(read?.settings.sampling).toEqual({ ...CHAT_DEFAULTS.sampling, topP: 0.5 });
  });

  it('keeps templates by model; the one of an older version is that of what answered', () => {
    const templates = { 7: '-', b: 'llama3' };
    const read = (settings: object, model: unknown = DOC.model) =>
      readTalk('x', { turns: [], settings, model })?.settings.templates;
    expect(read({ templates })).toEqual(templates);
    expect(read({ template: '-' })).toEqual({ 7: '-' });
    expect(read({ template: '-' }, { name: 'm.gguf', stored: '' })).toEqual({});
    for (const odd of [null, 'x', 7, [], { a: 7 }]) expect(read({ templates: odd })).toEqual({});
    expect([read({ template: '-' }, null), read({ template: '' })]).toEqual([{}, {}]);
  });

  it('is called by its owner, or by how it begins', () => {
    expect(talkName(DOC)).toBe('Skies');
    expect(talkName({ ...DOC, name: '' })).toBe('Why is the sky blue?');
    expect(talkName({ name: '', turns: [], draft: '' })).toBe('New conversation');
    expect(talkName({ name: 'x'.repeat(99), turns: [], draft: '' })).toHaveLength(60);
  });

  it('is found by any of its words', () => {
    for (const word of ['SKIES', 'scatters', 'dusk', ' ', '']) expect(matches(DOC, word)).toBe(true);
    expect(matches(DOC, 'moon')).toBe(false);
  });
});

describe('what fits', () => {
  const roles = ['user', 'assistant', 'user', 'assistant', 'user'] as const;

  it('keeps all where there is room', () => {
    expect(turnsToDrop([10, 20, 10, 20, 10], roles, 0, 1000)).toBe(0);
  });

  it('drops the oldest, each with its answer, and leaves room for the next one', () => {
    expect(turnsToDrop([100, 100, 100, 100, 100], roles, 0, 500)).toBe(2);
    expect(turnsToDrop([100, 100, 100, 100, 100], roles, 100, 500)).toBe(4);
  });

  it('never drops the turn that is to be answered', () => {
    expect(turnsToDrop([9, 9, 9, 9, 5000], roles, 0, 100)).toBe(4);
    expect(turnsToDrop([5000], ['user'], 0, 100)).toBe(0);
  });
});
