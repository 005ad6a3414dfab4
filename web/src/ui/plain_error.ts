// SPDX-License-Identifier: Apache-2.0
/**
 * plain_error.ts - any thrown value as a sentence that tells what happened and what to do. The
 * core's own message, which is exact but terse, stands behind it.
 */
import type { ErrorCode } from '../lib/types';

const SENTENCES: Partial<Record<ErrorCode, string>> = {
  MEMORY: 'There is not enough memory for this. A smaller model or a smaller batch needs less.',
  IO: 'A file could not be read. If it was moved or changed since you chose it, choose it again.',
  FORMAT: 'This file is not what it should be, or is damaged.',
  CHECKSUM: 'This file is damaged: a checksum does not match. Use another copy of it.',
  UNSUPPORTED: 'This cannot be done here.',
  NUMBER:
    'The numbers ran away: a loss or gradient is no longer finite. A lower learning rate or a ' +
    'longer warm-up helps.',
  DATA: 'This text cannot be used for training.',
  TRAP: 'The engine stopped unexpectedly and was started anew.',
  INTERNAL: 'tinygpt has found a fault in itself. Please report it.',
};

/** A template that cannot be used is no fault of the file. */
const TEMPLATE = /\bchat template\b/;
const TEMPLATE_SENTENCE =
  'The model is whole, but turns cannot be written as this template has them. Choose another ' +
  'template, or let the model go on with a text.';

/** What browsers, the bundler and the package say where a file of the page itself does not come. */
const PART =
  /dynamically imported module|module script failed|preload CSS|script.* could not be loaded|core could be fetched/;
const PART_SENTENCE =
  'A part of this page could not be fetched. Is the connection to its server still there? If the ' +
  'page has been renewed meanwhile, load it again.';

/** What the core says about these is a size of a block, or where a trap was: no help to a person. */
const ALONE: readonly string[] = ['MEMORY', 'TRAP'];

/** By name, so that errors which crossed a worker's border count, too. */
export function codeOf(e: unknown): string {
  return e instanceof Error && 'code' in e && typeof e.code === 'string' ? e.code : '';
}

/** Is it the template of conversations that is at fault? */
export function isOfTemplate(e: unknown): boolean {
  return e instanceof Error && codeOf(e) !== 'MEMORY' && TEMPLATE.test(e.message);
}

/** Is it a file of the page itself that did not come? */
export function isOfPart(e: unknown): boolean {
  return e instanceof Error && PART.test(e.message);
}

export function plainError(e: unknown): string {
  if (!(e instanceof Error)) return String(e);
  if (isOfPart(e)) return PART_SENTENCE;
  const code = codeOf(e);
  const lead = isOfTemplate(e)
    ? TEMPLATE_SENTENCE
    : Object.entries(SENTENCES).find(([name]) => name === code)?.[1];
  const message = sentence(e.message);
  if (lead) return message && !ALONE.includes(code) ? `${lead} (${message.replace(/\.$/, '')})` : lead;
  switch (e.name) {
    case 'NotReadableError':
    case 'NotFoundError':
      return (
        'The file could not be read. If it was moved or changed since you chose it, ' +
        'choose it again.'
      );
    case 'QuotaExceededError':
    case 'QuotaError':
      return 'The browser has no room left for this.';
    case 'RangeError':
      return 'There is not enough memory for this.';
    default:
      return message || e.name;
  }
}

/** First letter as it comes, one full stop at the end. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '' || /[.!?]$/.test(trimmed)) return trimmed;
  return `${trimmed}.`;
}
