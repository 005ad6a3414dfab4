// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { markAt, spell } from './characters';
import { BYTES, type Pieces, spellingOf } from './spelling';

function vocabulary(pieces: Uint8Array[]): Pieces {
  return { size: pieces.length, piece: (id) => pieces[id] as Uint8Array };
}

const utf8 = (text: string) => new TextEncoder().encode(text);

describe('spellingOf', () => {
  it('has the marks of bytes where tokens are bytes', () => {
    const bytes = vocabulary(Array.from({ length: 256 }, (_, id) => Uint8Array.of(id)));
    expect(spellingOf(bytes)).toBe(BYTES);
    const shifted = vocabulary(Array.from({ length: 256 }, (_, id) => Uint8Array.of(255 - id)));
    expect(spellingOf(shifted).unit).toBe('token');
  });

  it('shows pieces, single bytes, and what is no character', () => {
    const pieces = vocabulary([utf8(' the'), utf8('A'), Uint8Array.of(0xe2, 0x80), utf8('')]);
    const { unit, visible } = spellingOf(pieces);
    expect(unit).toBe('token');
    expect(visible(0)).toEqual({ mark: '␣the', name: ' the', kind: 'plain' });
    expect(visible(1).name).toBe('capital A');
    expect(visible(2)).toEqual({ mark: 'e2 80', name: 'bytes e2 80', kind: 'hex' });
    expect(visible(3).mark).toBe('#3');
    expect(spellingOf(pieces)).toBe(spellingOf(pieces));
  });

  it('draws the tokens of a text each in its place', () => {
    const ids = Int32Array.of(1, 0);
    spell(ids, spellingOf(vocabulary([utf8('Ärger'), utf8('é')])));
    expect([markAt(ids, 0).mark, markAt(ids, 1).mark]).toEqual(['é', 'Ärger']);
  });
});
