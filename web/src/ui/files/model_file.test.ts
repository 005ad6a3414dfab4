// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { TinygptError } from '../../lib/errors';
import { fileName, isModelName, modelFileProblem } from './model_file';
import { plainError } from '../plain_error';

const utf8 = (text: string) => new TextEncoder().encode(text);

it('tells models from texts by name', () => {
  expect(
    ['a.tinygpt', 'B.SAFETENSORS', 'run.tinygpt.best', 'a.tinygpt.prev'].every(isModelName),
  ).toBe(true);
  expect(['a.txt', 'tinygpt', 'a.tinygpt.txt'].some(isModelName)).toBe(false);
});

it('knows common mistakes before the engine looks', () => {
  expect(modelFileProblem('m', utf8(''), 0)).toContain('empty');
  expect(modelFileProblem('m', utf8('<!doctype html>'), 15)).toContain('web page');
  expect(modelFileProblem('m', utf8('GGUF\u0003'), 5)).toBe('');
  expect(modelFileProblem('m', utf8('GGUF\u0003'), 5e8)).toContain('under Chat');
  expect(modelFileProblem('m.docx', utf8('PK\u0003\u0004'), 9)).toContain('ZIP');
  expect(modelFileProblem('m.zip', utf8('PK\u0003\u0004'), 9)).toBe('');
  expect(modelFileProblem('m', utf8('TGPT\u0002'), 5)).toBe('');
});

it('names downloads, also those of downloads', () => {
  const name = (base: string, kind: string) =>
    fileName({ base, step: 1500, kind, extension: 'tinygpt' });
  expect(name('small', 'run')).toBe('tinygpt-small-1500.tinygpt');
  expect(name('small', 'v2-int4')).toBe('tinygpt-small-1500-int4.tinygpt');
  expect(name('tinygpt-small-700.tinygpt', 'v3')).toBe('tinygpt-small-1500-weights.tinygpt');
  expect(name('../../My Möwe?.tinygpt', 'run')).toBe('tinygpt-My-Möwe-1500.tinygpt');
});

it('has a plain sentence for every error, with the core’s message behind it', () => {
  expect(plainError(new TinygptError('CHECKSUM', 'tensor a: want 1, have 2'))).toBe(
    'This file is damaged: a checksum does not match. Use another copy of it. (tensor a: want ' +
      '1, have 2)',
  );
  expect(plainError(new TinygptError('ARG', 'lr: want a number above 0, have 0'))).toBe(
    'lr: want a number above 0, have 0.',
  );
  for (const [code, message] of [
    ['FORMAT', 'chat template: want a token <|eot_id|>, have none in this model'],
    ['UNSUPPORTED', 'm.gguf: chat template, line 3: not known here: filter x'],
    ['ARG', 'm.gguf: chat template, line 1: Conversation roles must alternate'],
  ] as const) {
    const said = plainError(new TinygptError(code, message));
    expect(said).toMatch(/^The model is whole.* Choose another template, or let .* with a text/);
    expect(said).not.toContain('damaged');
    expect(said).toContain(message);
  }
  expect(plainError(new TinygptError('MEMORY', 'a chat template: 9 bytes'))).toMatch(/^There is not/);
  expect(plainError(new DOMException('x', 'QuotaExceededError'))).toContain('no room');
  expect(plainError(new DOMException('x', 'NotReadableError'))).toContain('choose it again');
  expect(plainError(new RangeError('Array buffer allocation failed'))).toContain('memory');
  expect(plainError('odd')).toBe('odd');
  expect(plainError(new Error(''))).toBe('Error');
});
