// SPDX-License-Identifier: Apache-2.0
/**
 * observed.ts - what can be counted in a text that a model wrote, against the text that it learns:
 * words that occur there, brackets that close, columns that line up, sums that are right. Nothing
 * here is guessed from a loss. What the text has nothing of (no brackets, no columns) is not counted.
 */

/** The beginning of the text that is looked at, in bytes: enough to know its words. */
export const LOOKED_AT_BYTES = 2_000_000;

export interface Reference {
  words: ReadonlySet<string>;
  letters: ReadonlySet<string>;
  /** How many columns its rows have, split by commas; 0: it is no table. */
  columns: number;
  brackets: boolean;
  sums: boolean;
  text: string;
}

export interface Count {
  of: number;
  right: number;
}

const WORD = /\p{L}[\p{L}\p{M}]+/gu;
const SUM = /(?:^|[^\d+])(\d+) ?\+ ?(\d+)\b[^\n]*= ?(\d+)$/gm;
const PAIRS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };

export function referenceOf(text: string): Reference {
  return {
    words: new Set(wordsOf(text)),
    letters: new Set(text),
    columns: columnsOf(text),
    brackets: (text.match(/[([{]/g) ?? []).length * 400 > text.length,
    sums: sumsIn(text.slice(0, 20_000)).of > 20,
    text,
  };
}

function wordsOf(text: string): string[] {
  return (text.match(WORD) ?? []).map((w) => w.toLowerCase());
}

/** A table is a text nine of ten of whose rows have equally many commas, two at least. */
function columnsOf(text: string): number {
  const rows = text.slice(0, 50_000).split('\n').slice(0, -1).filter((r) => r !== '');
  const many = new Map<number, number>();
  for (const row of rows) {
    const commas = row.split(',').length - 1;
    many.set(commas, (many.get(commas) ?? 0) + 1);
  }
  for (const [commas, n] of many) {
    if (commas >= 2 && rows.length >= 20 && n >= 0.9 * rows.length) return commas + 1;
  }
  return 0;
}

/** Words of two letters and more. The first and the last one may be cut, and do not count. */
export function knownWords(sample: string, { words }: Reference): Count {
  const all = wordsOf(sample).slice(1, -1);
  return { of: all.length, right: all.filter((w) => words.has(w)).length };
}

export function knownLetters(sample: string, { letters }: Reference): Count {
  const all = [...sample];
  return { of: all.length, right: all.filter((c) => letters.has(c)).length };
}

/** Brackets that were opened, and closed by their like. Those of the last line may still be open. */
export function closedBrackets(sample: string): Count {
  const whole = sample.slice(0, sample.lastIndexOf('\n') + 1);
  const open: string[] = [];
  let of = 0;
  let right = 0;
  for (const c of whole) {
    if ('([{'.includes(c)) {
      open.push(c);
      of++;
    } else if (c in PAIRS) {
      if (open.at(-1) === PAIRS[c]) {
        right++;
        open.pop();
      }
    }
  }
  return { of, right };
}

/** Whole rows that have as many columns as those of the text. */
export function rowsThatFit(sample: string, { columns }: Reference): Count {
  const rows = sample.split('\n').slice(1, -1).filter((r) => r !== '');
  return { of: rows.length, right: rows.filter((r) => r.split(',').length === columns).length };
}

/** Lines that end a sum: those whose total is right. */
export function sumsIn(sample: string): Count {
  const whole = sample.slice(0, sample.lastIndexOf('\n') + 1);
  const all = [...whole.matchAll(SUM)];
  return { of: all.length, right: all.filter(([, a, b, c]) => +a! + +b! === +c!).length };
}

/** The longest piece of the sample, in steps of 10 characters, that stands in the text as it is. */
export function copied(sample: string, { text }: Reference): number {
  let longest = 0;
  for (let from = 0; from + longest + 10 <= sample.length; from += 10) {
    while (
      from + longest + 10 <= sample.length &&
      text.includes(sample.slice(from, from + longest + 10))
    ) {
      longest += 10;
    }
  }
  return longest;
}
