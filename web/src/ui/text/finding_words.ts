// SPDX-License-Identifier: Apache-2.0
/**
 * finding_words.ts - what the engine found in a text, in the words of the page: its own lines are
 * for command lines, and speak of bytes and offsets. A code that is not known here keeps its line.
 */
import type { LintFinding } from '../../lib/types';
import { capital } from '../format';
import { sentence } from '../plain_error';

const WORDS: Readonly<Record<string, string>> = {
  empty: 'The text is empty.',
  few_symbols: 'It has hardly any different characters: there is nothing to learn.',
  nul: 'It has zero bytes, which texts do not have. Is it a text?',
  binary: 'This looks like a program or a picture, not like a text.',
  invalid_utf8:
    'Some of it is not in UTF-8, as texts are today. Accents may come out wrong: convert it first.',
  utf8: 'Plain text in UTF-8: all of it can be read.',
  utf16: 'This looks like UTF-16: convert it to UTF-8, or half of what the model learns is zeros.',
  bom: 'It begins with a mark of three bytes that nobody sees. The model will see it.',
  cr_only: 'Its lines end as on very old Macs. Most programs will show them as one line.',
  crlf: 'Its lines end as on Windows. The model will write them so.',
};

export function findingWords({ code, level, text }: LintFinding): string {
  if (code === 'short') return shortWords(level, text);
  if (code === 'repeated') {
    const share = /^\d+ %/.exec(text)?.[0] ?? 'Much';
    return `${share} of it stands there more than once: the loss on new text will look too good.`;
  }
  return WORDS[code] ?? sentence(capital(text));
}

/** An error: there is not one whole passage. Else it is the part for checking, or all of it. */
function shortWords(level: LintFinding['level'], text: string): string {
  if (level === 'error') {
    return 'The text is shorter than what this model looks back. Take a longer text, or a smaller size.';
  }
  return text.startsWith('the validation part')
    ? 'The part that is kept for checking is too short: no loss on new text will be shown.'
    : 'Very little text: the model will learn it by heart.';
}
