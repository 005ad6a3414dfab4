// SPDX-License-Identifier: Apache-2.0
/**
 * characters.ts - bytes as the characters that they spell. A byte model reads Arabic or Chinese two
 * to four bytes at a time; a person reads the character. Bytes that spell none (cut at an end, or
 * written by an untrained model) stand alone, as two hexadecimal digits.
 */
import { visibleToken, type VisibleToken } from './bytes';
import type { Spelling } from './spelling';

export interface Character {
  /** Its bytes are [from, to). */
  from: number;
  to: number;
  /** What is drawn: the character itself, a sign for a blank, or digits. */
  mark: string;
  /** What a screen reader says. */
  name: string;
}

/** Bytes that a character has which begins with this one; 1 where none begins. */
function lengthBy(first: number): number {
  if (first >= 0xf0 && first < 0xf5) return 4;
  if (first >= 0xe0) return first < 0xf0 ? 3 : 1;
  return first >= 0xc2 ? 2 : 1;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decoded(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

/** The characters of some bytes, each byte in exactly one of them. */
export function charactersOf(ids: ArrayLike<number>): Character[] {
  const found: Character[] = [];
  for (let from = 0; from < ids.length; ) {
    const first = ids[from] ?? 0;
    const length = lengthBy(first);
    const spelt =
      length > 1 && from + length <= ids.length
        ? decoded(Uint8Array.from({ length }, (_, i) => ids[from + i] ?? 0))
        : null;
    const to = from + (spelt === null ? 1 : length);
    const { mark, name } = visibleToken(first);
    found.push({ from, to, mark: spelt ?? mark, name: spelt ?? name });
    from = to;
  }
  return found;
}

const known = new WeakMap<object, VisibleToken[]>();

/** The tokens of a text are drawn so from now on; bytes are, unless they are told of. */
export function spell(ids: Int32Array, { unit, visible }: Spelling): void {
  if (unit === 'token' && !known.has(ids)) known.set(ids, Array.from(ids, visible));
}

/**
 * Each byte of a text as it is drawn in its place: the first byte of a character shows the character,
 * those behind it a dot.
 */
export function marksOf(ids: Int32Array): readonly VisibleToken[] {
  let marks = known.get(ids);
  if (!marks) {
    marks = charactersOf(ids).flatMap(({ from, to, mark, name }) => {
      const n = to - from;
      if (n === 1) return [visibleToken(ids[from] ?? 0)];
      return Array.from({ length: n }, (_, i): VisibleToken => ({
        mark: i === 0 ? mark : '·',
        name: `${name}, byte ${i + 1} of ${n}`,
        kind: i === 0 ? 'plain' : 'space',
      }));
    });
    known.set(ids, marks);
  }
  return marks;
}

/** One byte of a text, as it is drawn in its place. */
export function markAt(ids: Int32Array, t: number): VisibleToken {
  return marksOf(ids)[t] ?? visibleToken(0);
}
