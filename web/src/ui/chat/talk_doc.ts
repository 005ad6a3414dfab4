// SPDX-License-Identifier: Apache-2.0
/**
 * talk_doc.ts - a conversation as it is kept, exported and imported: its turns, the settings that it
 * was held with, and what model answered. Pure: nothing here knows the page's state.
 */
import type { Turn } from '../../lib/types';
import { CHAT_DEFAULTS, type ChatSettings } from './settings';

export interface SaidTurn {
  role: 'user' | 'assistant';
  text: string;
  /** What the model thought before it answered; models are not told of it again. */
  thinking?: string;
  /** The tools that it called, as it wrote them. */
  calls?: string;
  /** The answer did not come to its own end. */
  cut?: boolean;
  /** Other answers to the same turn, the oldest first. */
  others?: readonly string[];
}

export interface TalkDoc {
  id: string;
  /** As its owner calls it; '' until then. */
  name: string;
  turns: readonly SaidTurn[];
  draft: string;
  settings: ChatSettings;
  /** What answered last, and its id among the models of this browser ('' if it is not there). */
  model: { name: string; stored: string } | null;
  begun: number;
  changed: number;
}

const NAME_CHARS = 60;

/** What a conversation is called: by its owner, else by how it begins. */
export function talkName(doc: Pick<TalkDoc, 'name' | 'turns' | 'draft'>): string {
  const begin = doc.turns[0]?.text ?? doc.draft;
  const line = (doc.name || begin).trim().split('\n', 1)[0] ?? '';
  if (line === '') return 'New conversation';
  return line.length > NAME_CHARS ? `${line.slice(0, NAME_CHARS - 1).trimEnd()}…` : line;
}

/** A word or more of a search, in the name or in any turn. */
export function matches(doc: TalkDoc, search: string): boolean {
  const wanted = search.trim().toLocaleLowerCase();
  if (wanted === '') return true;
  const texts = [talkName(doc), ...doc.turns.map((t) => t.text)];
  return texts.some((text) => text.toLocaleLowerCase().includes(wanted));
}

function isTurn(x: unknown): x is SaidTurn {
  if (typeof x !== 'object' || x === null) return false;
  const { role, text, others, thinking = '', calls = '', cut = false } = x as Partial<SaidTurn>;
  const many = others === undefined || (Array.isArray(others) && others.every(isText));
  const besides = isText(thinking) && isText(calls) && typeof cut === 'boolean';
  return (role === 'user' || role === 'assistant') && isText(text) && many && besides;
}

function isText(x: unknown): x is string {
  return typeof x === 'string';
}

/** Templates by model. What older versions kept was one, that of the model which answered last; of one
 *  that is not stored the name was all that told it from others. */
function readTemplates(given: Record<string, unknown>, model: TalkDoc['model']) {
  const { templates, template } = given;
  const named = Object.entries(typeof templates === 'object' && templates !== null ? templates : {});
  if (model?.stored && isText(template) && template !== '' && named.length === 0) {
    named.push([model.stored, template]);
  }
  return Object.fromEntries(named.filter(([, name]) => isText(name))) as Record<string, string>;
}

/** Settings of another version, or of a stranger: what has the right type is taken. */
function readSettings(x: unknown, model: TalkDoc['model']): ChatSettings {
  const given = (typeof x === 'object' && x !== null ? x : {}) as Record<string, unknown>;
  const sampling = (given['sampling'] ?? {}) as Record<string, unknown>;
  const like = <T extends object>(usual: T, from: Record<string, unknown>): T => {
    const taken = Object.entries(usual).map(([key, value]) => {
      const other = from[key];
      const fits = typeof other === typeof value && (typeof other !== 'number' || other >= 0);
      return [key, fits ? other : value];
    });
    return Object.fromEntries(taken) as T;
  };
  return {
    ...like(CHAT_DEFAULTS, given),
    templates: readTemplates(given, model),
    sampling: like(CHAT_DEFAULTS.sampling, sampling),
  };
}

/** A conversation from JSON that may be anything; null if it is none. */
export function readTalk(id: string, x: unknown): TalkDoc | null {
  if (typeof x !== 'object' || x === null) return null;
  const d = x as Partial<TalkDoc>;
  if (!Array.isArray(d.turns) || !d.turns.every(isTurn)) return null;
  const model = d.model && isText(d.model.name) && isText(d.model.stored) ? d.model : null;
  return {
    id,
    name: isText(d.name) ? d.name : '',
    turns: d.turns,
    draft: isText(d.draft) ? d.draft : '',
    settings: readSettings(d.settings, model),
    model,
    begun: typeof d.begun === 'number' ? d.begun : 0,
    changed: typeof d.changed === 'number' ? d.changed : 0,
  };
}

// ------------------------------------------------------------------------------- out and in again

const FORMAT = 'tinygpt conversations';

export function asJson(docs: readonly TalkDoc[]): string {
  const conversations = docs.map(({ id: _, ...doc }) => doc);
  return `${JSON.stringify({ format: FORMAT, version: 1, conversations }, null, 2)}\n`;
}

const HEADS = { user: 'You', assistant: 'Model', system: 'System' } as const;
const HEAD = /^## (You|Model|System)$/;
/** A line of a turn that looks like a head, or like one that has been escaped. */
const LIKE_HEAD = /^(\\*)(## (?:You|Model|System))$/gm;

/** Headings tell who speaks, so that it can be read by people and by fromMarkdown(). */
export function asMarkdown(doc: TalkDoc): string {
  const system = doc.settings.system.trim();
  const turns: Turn[] = [
    ...(system === '' ? [] : [{ role: 'system' as const, text: system }]),
    ...doc.turns,
  ];
  const said = turns.map(
    (t) => `## ${HEADS[t.role]}\n\n${t.text.trim().replace(LIKE_HEAD, '\\$1$2')}\n`,
  );
  return [`# ${talkName(doc)}\n`, ...said].join('\n');
}

function fromMarkdown(text: string): Record<string, unknown> | null {
  const lines = text.split(/\r?\n/);
  const name = /^# (.*)$/.exec(lines[0] ?? '')?.[1] ?? '';
  let system = '';
  const turns: SaidTurn[] = [];
  const said: { who: string; lines: string[] }[] = [];
  for (const line of lines) {
    const who = HEAD.exec(line)?.[1];
    if (who) said.push({ who, lines: [] });
    else said.at(-1)?.lines.push(line);
  }
  for (const { who, lines: part } of said) {
    const whole = part.join('\n').trim().replace(LIKE_HEAD, (_, back: string, head: string) =>
      `${back.slice(1)}${head}`);
    if (who === 'System') system = whole;
    else turns.push({ role: who === 'You' ? 'user' : 'assistant', text: whole });
  }
  return said.length > 0 ? { name, turns, settings: { system } } : null;
}

/** The conversations of a file, JSON or Markdown as they are exported; [] if it has none. */
export function readFile(text: string, newId: () => string): TalkDoc[] {
  let found: unknown[];
  try {
    const json: unknown = JSON.parse(text);
    const many = (json as { conversations?: unknown } | null)?.conversations;
    found = Array.isArray(many) ? many : [json];
  } catch {
    found = [fromMarkdown(text)];
  }
  return found.map((one) => readTalk(newId(), one)).filter((doc) => doc !== null);
}

// ------------------------------------------------------------------------------------- what fits

/** A template writes some tokens around each turn. */
const AROUND = 12;

/**
 * How many of the oldest turns have to be left out so that the others and an answer fit. The last
 * turn always stays; answers go with the turn that they answer.
 */
export function turnsToDrop(
  sizes: readonly number[], roles: readonly Turn['role'][], system: number, capacity: number,
): number {
  const room = capacity - Math.min(512, Math.floor(capacity / 4)) - system - AROUND;
  let sum = sizes.reduce((all, n) => all + n + AROUND, 0);
  let drop = 0;
  while (drop < sizes.length - 1 && (sum > room || roles[drop] !== 'user')) {
    sum -= (sizes[drop] ?? 0) + AROUND;
    drop++;
  }
  return drop;
}
