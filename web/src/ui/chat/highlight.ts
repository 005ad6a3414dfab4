// SPDX-License-Identifier: Apache-2.0
/**
 * highlight.ts - code as coloured parts, by lowlight, for the languages that models write most. It
 * makes a tree and no HTML; only four kinds of part have colours of their own here.
 */
import { createLowlight } from 'lowlight';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import css from 'highlight.js/lib/languages/css';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';

export type Kind = '' | 'word' | 'text' | 'number' | 'comment';

export interface Coloured {
  kind: Kind;
  text: string;
}

const lowlight = createLowlight({ bash, c, css, javascript, json, python, sql, typescript, xml });

const KINDS: Record<string, Kind> = {
  'hljs-keyword': 'word',
  'hljs-built_in': 'word',
  'hljs-tag': 'word',
  'hljs-name': 'word',
  'hljs-selector-tag': 'word',
  'hljs-meta': 'word',
  'hljs-string': 'text',
  'hljs-regexp': 'text',
  'hljs-number': 'number',
  'hljs-literal': 'number',
  'hljs-comment': 'comment',
};

/** The parts of a code in their order; null for a language that is not known. */
export function highlight(code: string, language: string): Coloured[] | null {
  if (!lowlight.registered(language)) return null;
  const parts: Coloured[] = [];
  type Node = ReturnType<typeof lowlight.highlight>['children'][number];
  const walk = (node: Node, kind: Kind) => {
    if (node.type === 'text') parts.push({ kind, text: node.value });
    if (node.type !== 'element') return;
    const names = node.properties['className'];
    const [own] = Array.isArray(names) ? names.map((name) => KINDS[String(name)]) : [];
    for (const child of node.children) walk(child, own ?? kind);
  };
  for (const child of lowlight.highlight(language, code).children) walk(child, '');
  return parts;
}
