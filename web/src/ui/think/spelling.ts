// SPDX-License-Identifier: Apache-2.0
/**
 * spelling.ts - how tokens of the model that is looked at are drawn. Bytes have marks of their own
 * (bytes.ts); of any other vocabulary a token shows its piece: its characters, or the digits of
 * bytes that spell none.
 */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Unit } from '../live/words';
import { visibleToken, type VisibleToken } from './bytes';

/** What a model's tokenizer tells of its tokens. */
export interface Pieces {
  readonly size: number;
  piece(id: number): Uint8Array;
}

export interface Spelling {
  unit: Unit;
  visible(id: number): VisibleToken;
}

export const BYTES: Spelling = { unit: 'byte', visible: (id) => visibleToken(id) };

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A token by the bytes that it adds to a text. */
function spelt(id: number, bytes: Uint8Array): VisibleToken {
  if (bytes.length === 1) return visibleToken(bytes[0] as number);
  try {
    return visibleToken(id, decoder.decode(bytes));
  } catch {
    const mark = Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join(' ');
    return { mark, name: `bytes ${mark}`, kind: 'hex' };
  }
}

/** A vocabulary of 256 single bytes in their order is none of pieces. */
function isBytes(pieces: Pieces): boolean {
  return pieces.size === 256 && pieces.piece(65)[0] === 65 && pieces.piece(255)[0] === 255;
}

const known = new WeakMap<Pieces, Spelling>();

export function spellingOf(pieces: Pieces): Spelling {
  let spelling = known.get(pieces);
  if (!spelling) {
    const seen = new Map<number, VisibleToken>();
    const visible = (id: number): VisibleToken => {
      const token = seen.get(id) ?? spelt(id, pieces.piece(id));
      seen.set(id, token);
      return token;
    };
    spelling = isBytes(pieces) ? BYTES : { unit: 'token', visible };
    known.set(pieces, spelling);
  }
  return spelling;
}

/** That of the model which the cards below are about. */
export const SpellingContext = createContext<Spelling>(BYTES);
export const useSpelling = (): Spelling => useContext(SpellingContext);
