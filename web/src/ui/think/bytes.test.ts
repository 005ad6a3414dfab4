// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { visibleText, visibleToken } from './bytes';

describe('visibleToken', () => {
  it('gives every byte a mark and a name that are not blank', () => {
    for (let id = 0; id < 256; id++) {
      const { mark, name } = visibleToken(id);
      expect(mark.trim()).not.toBe('');
      expect(name.trim()).not.toBe('');
    }
  });

  it('tells all bytes apart by mark and kind', () => {
    const seen = new Set<string>();
    for (let id = 0; id < 256; id++) seen.add(`${visibleToken(id).kind} ${visibleToken(id).mark}`);
    expect(seen.size).toBe(256);
  });

  it('shows blanks as signs and bytes of longer characters as hexadecimal digits', () => {
    expect(visibleToken(0x20)).toEqual({ mark: '␣', name: 'space', kind: 'space' });
    expect(visibleToken(0x0a).mark).toBe('⏎');
    expect(visibleToken(0xc3)).toEqual({ mark: 'c3', name: 'byte c3', kind: 'hex' });
    expect(visibleToken(0)).toEqual({ mark: '00', name: 'byte 00', kind: 'hex' });
    expect(visibleToken(0x7f).kind).toBe('hex');
    expect(visibleToken(0x41).name).toBe('capital A');
  });

  it('uses the piece where tokens are more than bytes', () => {
    expect(visibleToken(300, ' the')).toEqual({ mark: '␣the', name: ' the', kind: 'plain' });
    expect(visibleToken(300)).toEqual({ mark: '#300', name: 'token 300', kind: 'hex' });
  });
});

describe('visibleText', () => {
  it('keeps a text in one line', () => {
    expect(visibleText(new TextEncoder().encode('a b\né'))).toBe('a␣b⏎‹c3›‹a9›');
    expect(visibleText([65, 66, 67], 1, 2)).toBe('B');
  });
});
