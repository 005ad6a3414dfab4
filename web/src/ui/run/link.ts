// SPDX-License-Identifier: Apache-2.0
/**
 * link.ts - a run as the fragment of an address, which no server ever sees:
 *
 *     #live?size=small&layers=3&...&seed=42&text=1000000-5f70bf18a086...&stories=42
 *      view  settings, all of them         text: bytes-sha256      if the text can be made anew
 *
 * All settings are written, not only what differs from the defaults, so that an old link means the
 * same run when the defaults have changed. What cannot be read is named and left out; a link never
 * fails as a whole.
 */
import { FIELDS, type Settings, SCHEDULES, TOKENS } from './settings';
import { FAMILIES } from '../model/families';
import { findSize } from '../model/presets';
import { parseNumber, rate } from '../format';

export interface TextRef {
  bytes: number;
  /** 64 hexadecimal digits. */
  sha256: string;
  /** Seed of the story generator, if that made the text. */
  stories?: number;
}

export interface Link {
  view: string;
  settings: Partial<Settings>;
  text: TextRef | null;
  /** What could not be read, a sentence each. */
  problems: string[];
}

export function writeLink(view: string, s: Settings, text: TextRef | null): string {
  const parts: string[] = [
    `size=${encodeURIComponent(s.size)}`,
    `family=${s.family}`,
    `schedule=${s.schedule}`,
    `tokens=${s.tokens}`,
  ];
  for (const f of FIELDS) parts.push(`${f.key}=${number(s[f.key])}`);
  if (text) {
    parts.push(`text=${text.bytes}-${text.sha256}`);
    if (text.stories !== undefined) parts.push(`stories=${text.stories}`);
  }
  return `#${view}?${parts.join('&')}`;
}

/** The shortest form that reads back as the same number. */
function number(x: number): string {
  const plain = String(x);
  const short = rate(x);
  const better = short.length < plain.length && !(Number.isInteger(x) && x < 1e6);
  return Number(short) === x && better ? short : plain;
}

export function readLink(fragment: string): Link {
  const body = fragment.startsWith('#') ? fragment.slice(1) : fragment;
  const at = body.indexOf('?');
  const link: Link = {
    view: at < 0 ? body : body.slice(0, at),
    settings: {},
    text: null,
    problems: [],
  };
  if (at < 0) return link;
  const query = new URLSearchParams(body.slice(at + 1));
  readSettings(query, link);
  readText(query, link);
  return link;
}

function readSettings(query: URLSearchParams, link: Link): void {
  for (const f of FIELDS) {
    const text = query.get(f.key);
    if (text === null) continue;
    const { value, problem } = parseNumber(text, f);
    if (problem === '') link.settings[f.key] = value;
    else link.problems.push(`${f.label} in the link is "${cut(text)}". ${problem}`);
  }
  const schedule = query.get('schedule');
  if (schedule !== null) {
    const known = SCHEDULES.find((o) => o.value === schedule);
    if (known) link.settings.schedule = known.value;
    else link.problems.push(`The schedule "${cut(schedule)}" in the link is not known.`);
  }
  const tokens = query.get('tokens');
  if (tokens !== null) {
    const known = TOKENS.find((o) => o.value === tokens);
    if (known) link.settings.tokens = known.value;
    else link.problems.push(`The tokens "${cut(tokens)}" in the link are not known.`);
  }
  const family = query.get('family');
  if (family !== null) {
    if (FAMILIES.some((f) => f.name === family)) link.settings.family = family;
    else link.problems.push(`The family "${cut(family)}" in the link is not known.`);
  }
  const size = query.get('size');
  if (size !== null) {
    if (size === 'custom' || findSize(size)) link.settings.size = size;
    else link.problems.push(`The size "${cut(size)}" in the link is not known.`);
  }
}

function readText(query: URLSearchParams, link: Link): void {
  const text = query.get('text');
  if (text === null) return;
  const match = /^(\d{1,15})-([0-9a-f]{64})$/.exec(text);
  if (!match) {
    link.problems.push('The fingerprint of the text in the link is damaged.');
    return;
  }
  link.text = { bytes: Number(match[1]), sha256: match[2] ?? '' };
  const stories = query.get('stories');
  if (stories !== null && /^\d{1,15}$/.test(stories)) link.text.stories = Number(stories);
}

function cut(text: string): string {
  return text.length > 24 ? `${text.slice(0, 24)}…` : text;
}
