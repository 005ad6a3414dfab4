// SPDX-License-Identifier: Apache-2.0
/**
 * made.ts - texts made by rule, for trying what else than stories a model can learn: sums with their
 * working, a table of places, tunes in ABC notation, recipes, small programs, postal addresses.
 *
 * Record number k of a text depends on (what, seed, k) alone, so a longer text begins with the
 * shorter one. All names are put together from syllables: none is copied from anywhere.
 *
 * tools/gallery.py runs this file in Node, which strips the types: no enums, no imports.
 */

export interface MadeText {
  id: string;
  title: string;
  /** What there is to see when a model learns it. */
  about: string;
}

export const MADE: readonly MadeText[] = [
  {
    id: 'sums',
    title: 'Sums',
    about: 'Additions, worked out digit by digit. Watch when it begins to carry.',
  },
  {
    id: 'places',
    title: 'A table of places',
    about: 'CSV with invented towns. Columns line up long before the names sound right.',
  },
  {
    id: 'tunes',
    title: 'Sheet music',
    about: 'Tunes in ABC notation. What it writes can be played.',
  },
  {
    id: 'recipes',
    title: 'Recipes',
    about: 'What is listed must be cooked. Watch it forget the flour, then remember.',
  },
  {
    id: 'code',
    title: 'Small programs',
    about: 'Functions with brackets that must close and names that must come back.',
  },
  {
    id: 'addresses',
    title: 'Addresses',
    about: 'Names, streets, towns: three short lines each.',
  },
];

/** Numbers in [0, 2^32) of one record: Mulberry32, begun at a mix of the text, the seed and k. */
class Dice {
  #state: number;

  constructor(what: string, seed: number, k: number) {
    let h = 0x811c9dc5;
    for (const c of `${what} ${seed} ${k}`) h = Math.imul(h ^ c.charCodeAt(0), 0x01000193);
    this.#state = h >>> 0;
  }

  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** A whole number of 0 .. n - 1. */
  below(n: number): number {
    return Math.floor((this.#next() / 2 ** 32) * n);
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

// ----------------------------------------------------------------------------------------- names

const TOWN_STARTS = 'Ald Bar Bren Cal Dun Elm Fal Gran Har Kel Lin Mar Nor Os Pel Ros Sten Tor Ul Wen'
  .split(' ');
const TOWN_ENDS = 'bridge brook burg dale field ford gate ham hill holm mere mouth port stead ton wick'
  .split(' ');
const LANDS = ['Arvenia', 'Bellmark', 'Costara', 'Dorland', 'Estrund', 'Fennia', 'Galvany', 'Hestia'];
const FIRST_NAMES =
  'Ada Bruno Clara Dora Emil Fred Greta Hugo Ida Jonas Karl Lena Mina Nora Otto Paula Rosa Theo Vera'
    .split(' ');
const SURNAME_STARTS = 'Ash Birch Black Brook Cole Farn Hart Hay Lang Marsh Oak Red Stone Wal White'
  .split(' ');
const SURNAME_ENDS = 'by er ford ley low man more row son well wood worth'.split(' ');

const town = (d: Dice) => d.of(TOWN_STARTS) + d.of(TOWN_ENDS);
const surname = (d: Dice) => d.of(SURNAME_STARTS) + d.of(SURNAME_ENDS);

// --------------------------------------------------------------------------------------- records

/** `47+85: 7+5=12 4+8+1=13 =132`, from the last digit on, as it is done by hand. */
function sum(d: Dice): string {
  const most = d.of([99, 99, 999]);
  const a = d.between(1, most);
  const b = d.between(1, most);
  const steps: string[] = [];
  let carry = 0;
  for (let place = 1; place <= Math.max(a, b); place *= 10) {
    const x = Math.floor(a / place) % 10;
    const y = Math.floor(b / place) % 10;
    const total = x + y + carry;
    steps.push(`${x}+${y}${carry ? '+1' : ''}=${total}`);
    carry = total > 9 ? 1 : 0;
  }
  return `${a}+${b}: ${steps.join(' ')} =${a + b}\n`;
}

/** The land tells the range of the heights, and the number of people how old the town is. */
function place(d: Dice): string {
  const land = d.below(LANDS.length);
  const people = d.between(1, 9) * 10 ** d.between(2, 5) + d.below(100);
  const height = land * 150 + d.below(150);
  const year = 1900 - 150 * (String(people).length - 2) - d.below(100);
  return `${town(d)},${LANDS[land]},${people},${height},${year}\n`;
}

const KEYS = ['C', 'D', 'F', 'G'];
const NOTES = 'CDEFGABcdefgab';
const TUNE_WORDS = ['Reel', 'Jig', 'Waltz', 'March', 'Polka'] as const;
const METRES: Record<(typeof TUNE_WORDS)[number], [string, number[][]]> = {
  Reel: ['4/4', [[2, 2, 2, 2], [1, 1, 2, 2, 2], [2, 1, 1, 2, 2]]],
  Jig: ['6/8', [[2, 1, 2, 1], [1, 1, 1, 1, 1, 1], [3, 2, 1]]],
  Waltz: ['3/4', [[2, 2, 2], [4, 2], [2, 1, 1, 2]]],
  March: ['2/4', [[2, 2], [1, 1, 2], [3, 1]]],
  Polka: ['2/4', [[1, 1, 1, 1], [2, 1, 1], [1, 1, 2]]],
};

/** A tune of two parts of four bars; its last note is that of the key. */
function tune(d: Dice, k: number): string {
  const kind = d.of(TUNE_WORDS);
  const [metre, rhythms] = METRES[kind];
  const key = d.of(KEYS);
  let at = NOTES.indexOf(key);
  const note = (length: number) => `${NOTES[at]}${length > 1 ? length : ''}`;
  const bar = (home: boolean) =>
    d.of(rhythms).map((length, i, all) => {
      at = Math.min(NOTES.length - 1, Math.max(0, at + d.between(-2, 2)));
      if (home && i === all.length - 1) at = NOTES.indexOf(key);
      return note(length);
    }).join('');
  const part = () => {
    const opening = bar(false);
    return `|:${opening}|${bar(false)}|${opening}|${bar(true)}:|`;
  };
  return (
    `X:${k + 1}\nT:The ${town(d)} ${kind}\nM:${metre}\nL:1/8\nK:${key}\n` +
    `${part()}\n${part()}\n\n`
  );
}

/** A kind of dish, what it may be made of, and how each of these goes into it. */
interface Dish {
  name: string;
  base: readonly [string, string];
  parts: readonly (readonly [amount: string, what: string])[];
  add: readonly string[];
  end: (d: Dice) => string;
}

const DISHES: readonly Dish[] = [
  {
    name: 'soup',
    base: ['1 litre of water', 'Bring the water to the boil.'],
    parts: [
      ['2', 'carrots'], ['3', 'potatoes'], ['1', 'leek'], ['200 g of', 'lentils'],
      ['1 cup of', 'beans'], ['4', 'tomatoes'], ['half a', 'cabbage'],
    ],
    add: ['Chop the # and stir well.', 'Now add the #.', 'Stir in the #.'],
    end: (d) => `Simmer for ${d.between(3, 9) * 5} minutes. Serve hot.`,
  },
  {
    name: 'cake',
    base: ['250 g of flour', 'Sift the flour into a bowl.'],
    parts: [
      ['3', 'eggs'], ['150 g of', 'sugar'], ['100 g of', 'butter'], ['2', 'apples'],
      ['1 cup of', 'milk'], ['50 g of', 'almonds'], ['80 g of', 'raisins'],
    ],
    add: ['Beat in the #.', 'Add the # and mix well.', 'Fold in the #.'],
    end: (d) => `Bake for ${d.between(6, 12) * 5} minutes at ${d.between(16, 20) * 10} degrees.`,
  },
  {
    name: 'salad',
    base: ['1 head of lettuce', 'Tear the lettuce into a large bowl.'],
    parts: [
      ['1', 'cucumber'], ['4', 'radishes'], ['100 g of', 'cheese'], ['a handful of', 'walnuts'],
      ['2', 'pears'], ['1 cup of', 'olives'], ['2', 'peppers'],
    ],
    add: ['Slice the # thinly and add.', 'Scatter the # on top.', 'Toss with the #.'],
    end: (d) => `Dress with ${d.of(['oil and lemon', 'vinegar', 'yogurt'])}. Serve at once.`,
  },
];

/** All that is listed is used, in the order of the list, and the title names the first of it. */
function recipe(d: Dice): string {
  const dish = d.of(DISHES);
  const left = [...dish.parts];
  const parts = Array.from({ length: d.between(2, 4) }, () => left.splice(d.below(left.length), 1)[0]!);
  const list = parts.map(([amount, what]) => `- ${amount} ${what}\n`).join('');
  const steps = parts.map(([, what]) => d.of(dish.add).replace('#', what));
  return (
    `${capital(parts[0]![1].replace(/(?<=to|sh)es$|s$/, ''))} ${dish.name}, for ${d.between(2, 6)}\n- ${dish.base[0]}\n${list}` +
    `${[dish.base[1], ...steps, dish.end(d)].map((s, i) => `${i + 1}. ${s}`).join('\n')}\n\n`
  );
}

const THINGS = ['apple', 'bird', 'boat', 'card', 'coin', 'door', 'item', 'lamp', 'leaf', 'word'];
const TESTS = ['is_big', 'is_new', 'is_old', 'is_red', 'is_ripe', 'is_small'];

/** A function that counts, collects or picks; the names of its first line come back in it. */
function program(d: Dice): string {
  const thing = d.of(THINGS);
  const list = `${thing}s`;
  const test = d.of(TESTS);
  const limit = d.between(2, 20);
  const kind = d.below(3);
  if (kind === 0) {
    const name = `count_${test.slice(3)}_${list}`;
    return (
      `def ${name}(${list}):\n    total = 0\n    for ${thing} in ${list}:\n` +
      `        if ${test}(${thing}):\n            total += 1\n    return total\n\n\n`
    );
  }
  if (kind === 1) {
    const name = `first_${test.slice(3)}_${thing}`;
    return (
      `def ${name}(${list}, limit=${limit}):\n    for ${thing} in ${list}[:limit]:\n` +
      `        if ${test}(${thing}):\n            return ${thing}\n    return None\n\n\n`
    );
  }
  const name = `${d.of(['take', 'keep', 'list'])}_${list}`;
  return (
    `def ${name}(${list}):\n    found = []\n    for ${thing} in ${list}:\n` +
    `        if len(found) < ${limit} and (${test}(${thing}) or not found):\n` +
    `            found.append(${thing})\n    return found\n\n\n`
  );
}

function address(d: Dice): string {
  const where = town(d);
  const code = `${where.slice(0, 2).toUpperCase()}${d.between(1, 19)} ${d.between(1, 9)}`;
  const street = `${d.of(['Mill', 'Church', 'High', 'Station', 'River', 'Castle', 'Garden'])} ` +
    d.of(['Street', 'Lane', 'Road', 'Hill']);
  return (
    `${d.of(FIRST_NAMES)} ${surname(d)}\n${d.between(1, 120)} ${street}\n` +
    `${capital(where)} ${code}\n\n`
  );
}

const RECORDS: Record<string, (d: Dice, k: number) => string> = {
  sums: sum,
  places: place,
  tunes: tune,
  recipes: recipe,
  code: program,
  addresses: address,
};

const HEADS: Record<string, string> = { places: 'town,land,people,height,founded\n' };

/** A text of whole records, at most `bytes` long unless one record is longer. ASCII. */
export function madeText(what: string, seed: number, bytes: number): string {
  const record = RECORDS[what];
  if (!record) throw new Error(`There is no made text named ${what}.`);
  const parts = [HEADS[what] ?? ''];
  let length = parts[0]?.length ?? 0;
  for (let k = 0; ; k++) {
    const next = record(new Dice(what, seed, k), k);
    if (k > 0 && length + next.length > bytes) return parts.join('');
    parts.push(next);
    length += next.length;
  }
}
