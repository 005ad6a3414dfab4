// SPDX-License-Identifier: Apache-2.0
/**
 * terms.ts - finds the words of the glossary in a sentence. The glossary comes behind the first paint;
 * until then no word is marked.
 */
import { Store } from '../store';
import type { Meaning } from './glossary';

/** A piece of a sentence; `term`: the word of the glossary that it is. */
export interface Part {
  text: string;
  term?: string;
}

export interface Terms {
  meanings: Readonly<Record<string, Meaning>>;
  /** All of a sentence, in its order. Each term is found once. */
  split: (sentence: string) => Part[];
}

export const terms = new Store<Terms | null>(null);

/** The term that is explained at the moment. */
export const explained = new Store<string>('');

const escaped = (word: string) => word.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');

/** Longer words first: "learning rate" is not "rate". A capital at the beginning is let pass. */
export function termsOf(meanings: Readonly<Record<string, Meaning>>): Terms {
  const names = new Map<string, string>();
  for (const [name, { forms = [] }] of Object.entries(meanings)) {
    for (const form of [name, ...forms]) {
      names.set(form.toLowerCase(), name);
      names.set(`${form.toLowerCase()}s`, name);
    }
  }
  const words = [...names.keys()].sort((a, b) => b.length - a.length).map(escaped);
  const find = new RegExp(`(?<![\\p{L}\\p{N}.-])(${words.join('|')})(?![\\p{L}\\p{N}-])`, 'giu');
  const split = (sentence: string): Part[] => {
    const parts: Part[] = [];
    const seen = new Set<string>();
    let from = 0;
    for (const { 0: text, index } of sentence.matchAll(find)) {
      const term = names.get(text.toLowerCase());
      if (term === undefined || seen.has(term)) continue;
      seen.add(term);
      if (index > from) parts.push({ text: sentence.slice(from, index) });
      parts.push({ text, term });
      from = index + text.length;
    }
    if (from < sentence.length) parts.push({ text: sentence.slice(from) });
    return parts;
  };
  return { meanings, split };
}

export async function loadTerms(): Promise<Terms> {
  const { GLOSSARY } = await import('./glossary');
  const known = terms.get() ?? termsOf(GLOSSARY);
  terms.set(known);
  return known;
}
