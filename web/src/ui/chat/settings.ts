// SPDX-License-Identifier: Apache-2.0
/**
 * settings.ts - how an answer is drawn: the fields of Write in words for tokens, and what a
 * conversation has besides.
 */
import type { KeyType, ModelSource, SampleOptions } from '../../lib/types';
import { DEFAULTS, FIELDS, type FieldRange } from '../write/settings';

export interface ChatSettings {
  /** What the model is told before everything else. */
  system: string;
  /** Tokens of context that a session has room for. */
  ctx: number;
  /** By a model's key. '' or none: the file's own; NO_TEMPLATE: texts are continued. */
  templates: Readonly<Record<string, string>>;
  /** What the conversation's memory is kept in. */
  keys: KeyType;
  /** An answer has at most so many tokens. */
  limit: number;
  sampling: SampleOptions;
  /** Texts, a line each: never written, and what an answer ends at. */
  banned: string;
  stops: string;
  /** Lines of a text and a number, which is added to the logits of the text's tokens. */
  bias: string;
}

/** In place of a template's name. */
export const NO_TEMPLATE = '-';

export const KEY_TYPES: Record<KeyType, string> = {
  f32: 'exact',
  f16: 'half the memory (f16)',
  int8: 'about a quarter of it (int8)',
};

export const CHAT_DEFAULTS: ChatSettings = {
  system: '',
  ctx: 4096,
  templates: {},
  keys: 'f32',
  limit: 1024,
  sampling: { ...DEFAULTS, topK: 40, topP: 0.95 },
  banned: '',
  stops: '',
  bias: '',
};

/** Of a model's file so much is looked at, at either end. */
const END_BYTES = 65536;

/**
 * What tells models apart: the id of a stored one. A file's name tells nothing, and its size little:
 * another training of the same model has both. The ends of a file differ, since checksums or the last
 * weights are there.
 */
export async function modelKey(source: ModelSource): Promise<string> {
  if ('stored' in source) return source.stored;
  if (!(source instanceof Blob)) throw new Error('A model is a file, or is stored here.');
  const ends = new Blob([source.slice(0, END_BYTES), source.slice(-END_BYTES)]);
  // FNV-1a. A page that came over http has no better one of the browser's.
  let hash = 0x811c9dc5;
  for (const byte of new Uint8Array(await ends.arrayBuffer())) {
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return `${source.size} ${(hash >>> 0).toString(16)}`;
}

/** The template that was chosen for a model; '': the file's own. */
export function templateFor({ templates }: ChatSettings, key: string): string {
  return Object.hasOwn(templates, key) ? (templates[key] ?? '') : '';
}

/** The settings with another template for one model, and those of all others as they were. */
export function withTemplate(s: ChatSettings, key: string, template: string): ChatSettings {
  return { ...s, templates: { ...s.templates, [key]: template } };
}

/** What a model was loaded with. */
export type Loaded = Pick<ChatSettings, 'ctx' | 'keys'> & { template: string };

/** Settings that tell of a model what it was loaded with. */
export function withLoaded(s: ChatSettings, key: string, loaded: Loaded): ChatSettings {
  const { template, ctx, keys } = loaded;
  return { ...withTemplate(s, key, template), ctx, keys };
}

const HELP: Partial<Record<FieldRange['key'], string>> = {
  temperature: '0 always takes the likeliest token; higher is bolder.',
  topK: 'Only the k likeliest tokens are drawn from.',
  topP: 'Only the likeliest tokens that together have this share.',
  minP: 'Drops tokens less likely than this share of the likeliest.',
  repeatPenalty: 'Makes tokens that came up lately less likely.',
  repeatLast: 'So many tokens count as lately.',
};

export const CHAT_FIELDS: readonly FieldRange[] = FIELDS.map((field) => ({
  ...field,
  help: HELP[field.key] ?? field.help,
}));

export function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

export function biases(text: string): { text: string; bias: number }[] {
  return lines(text).map((line) => {
    const at = line.lastIndexOf(' ');
    const bias = Number(line.slice(at));
    if (at < 1 || !(bias < Infinity)) {
      throw new Error(`Bias: want a text, a space and a number, have "${line}".`);
    }
    return { text: line.slice(0, at), bias };
  });
}
