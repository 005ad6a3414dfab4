// SPDX-License-Identifier: Apache-2.0
/**
 * bytes.ts - how a byte is shown to a person. Every one of the 256 has a short visible form and a
 * spoken one, so that a space, a line break and half of a character can be told apart in a table:
 *
 *   0x20  '␣'  space             0x0a '⏎'  line break        0x41 'A'   A
 *   0x09  '⇥'  tab               0x0d '␍'  carriage return   0xc3 'c3'  byte c3 (of a character)
 *
 * A token that is no byte (vocabularies beyond 256) is shown through the text of its piece.
 */

export type ByteKind = 'plain' | 'space' | 'hex';

export interface VisibleToken {
  /** What is drawn: one character, or two hexadecimal digits for kind `hex`. */
  mark: string;
  /** What a screen reader says. */
  name: string;
  kind: ByteKind;
}

const HAS_MARK: ReadonlyMap<number, readonly [string, string]> = new Map([
  [0x20, ['␣', 'space']],
  [0x0a, ['⏎', 'line break']],
  [0x09, ['⇥', 'tab']],
  [0x0d, ['␍', 'carriage return']],
]);

/** Signs that screen readers tend to swallow get a name. */
const SPOKEN: Readonly<Record<string, string>> = {
  '.': 'full stop',
  ',': 'comma',
  ':': 'colon',
  ';': 'semicolon',
  '!': 'exclamation mark',
  '?': 'question mark',
  "'": 'apostrophe',
  '"': 'quotation mark',
  '-': 'hyphen',
  '(': 'open paren',
  ')': 'close paren',
  '[': 'open bracket',
  ']': 'close bracket',
  '/': 'slash',
  _: 'underscore',
};

function makeByte(id: number): VisibleToken {
  const marked = HAS_MARK.get(id);
  if (marked) return { mark: marked[0], name: marked[1], kind: 'space' };
  if (id > 0x20 && id < 0x7f) {
    const mark = String.fromCharCode(id);
    const capital = mark >= 'A' && mark <= 'Z';
    return { mark, name: capital ? `capital ${mark}` : (SPOKEN[mark] ?? mark), kind: 'plain' };
  }
  const mark = id.toString(16).padStart(2, '0');
  return { mark, name: `byte ${mark}`, kind: 'hex' };
}

const BYTES: readonly VisibleToken[] = Array.from({ length: 256 }, (_, id) => makeByte(id));

/** The visible form of a token; `piece` is its text where the vocabulary is more than bytes. */
export function visibleToken(id: number, piece?: string): VisibleToken {
  const byte = piece === undefined ? BYTES[id] : undefined;
  if (byte) return byte;
  if (piece === undefined || piece === '')
    return { mark: `#${id}`, name: `token ${id}`, kind: 'hex' };
  const mark = piece.replace(/ /g, '␣').replace(/\n/g, '⏎').replace(/\t/g, '⇥');
  return { mark, name: piece.trim() === '' ? `token ${id}, blank` : piece, kind: 'plain' };
}

/** A few tokens in a row, as one visible string: for titles and for text alternatives. */
export function visibleText(ids: ArrayLike<number>, from = 0, to = ids.length): string {
  let out = '';
  for (let i = from; i < to; i++) {
    const token = visibleToken(ids[i] ?? 0);
    out += token.kind === 'hex' ? `‹${token.mark}›` : token.mark;
  }
  return out;
}
