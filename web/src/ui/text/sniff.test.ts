// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { containerOf, encodingOf, looksLikeHtml, previewOf } from './sniff';

const utf8 = (text: string) => new TextEncoder().encode(text);
const utf16 = (text: string, big: boolean) =>
  Uint8Array.from(
    [...text].flatMap((c) => {
      const [low, high] = [c.charCodeAt(0) & 255, c.charCodeAt(0) >> 8];
      return big ? [high, low] : [low, high];
    }),
  );

describe('encodingOf', () => {
  it('knows the usual ones', () => {
    expect(encodingOf(utf8(''))).toBe('empty');
    expect(encodingOf(utf8('Once upon a time\r\n\tthere'))).toBe('ASCII');
    expect(encodingOf(utf8('Es war einmal ein König'))).toBe('UTF-8');
    expect(encodingOf(utf16('Once upon a time there was', false))).toBe('UTF-16 LE');
    expect(encodingOf(utf16('Once upon a time there was', true))).toBe('UTF-16 BE');
    expect(encodingOf(Uint8Array.of(0xff, 0xfe, 65, 0))).toBe('UTF-16 LE');
    expect(encodingOf(Uint8Array.from('König Österreich', (c) => c.charCodeAt(0)))).toBe(
      'Latin-1 or alike',
    );
    expect(encodingOf(new Uint8Array(1000))).toBe('not a text');
    expect(encodingOf(Uint8Array.from({ length: 4096 }, (_, i) => (i * 7919) % 256))).toBe(
      'not a text',
    );
  });

  it('forgives a character that the end cuts off, only there', () => {
    const whole = utf8('naïve');
    expect(encodingOf(whole.subarray(0, 3))).toBe('UTF-8');
    expect(encodingOf(Uint8Array.of(...whole.subarray(0, 3), 65))).toBe('Latin-1 or alike');
  });
});

it('recognises web pages, also after a byte order mark and blanks', () => {
  expect(looksLikeHtml(utf8('<!DOCTYPE html><html>'))).toBe(true);
  expect(looksLikeHtml(utf8('\uFEFF \n<html lang="en">'))).toBe(true);
  expect(looksLikeHtml(utf8('<p>a text may begin like this'))).toBe(false);
  expect(looksLikeHtml(utf8('The <html> tag'))).toBe(false);
});

it('recognises what is no text by its first bytes', () => {
  expect(containerOf(utf8('%PDF-1.7'))).toContain('PDF');
  expect(containerOf(Uint8Array.of(0x50, 0x4b, 3, 4, 0))).toContain('ZIP');
  expect(containerOf(utf8('TGPT....'))).toContain('model');
  expect(containerOf(utf8('PK is a shop'))).toBe('');
});

it('shows a beginning without a torn last character', () => {
  const bytes = utf8('Ä Ö');
  expect(previewOf(bytes.subarray(0, 4), 'UTF-8')).toBe('Ä ');
  expect(previewOf(utf16('Ja', false), 'UTF-16 LE')).toBe('Ja');
});
