// SPDX-License-Identifier: Apache-2.0
/** sniff.ts - what kind of thing the first bytes of a file are, in words. */

export type Encoding =
  'ASCII' | 'UTF-8' | 'UTF-16 LE' | 'UTF-16 BE' | 'Latin-1 or alike' | 'not a text' | 'empty';

/** How many bytes are enough to tell. */
export const SNIFF_BYTES = 65536;

/**
 * @param head the first SNIFF_BYTES of the file, or all of it
 * A character cut off by the end of `head` does not make it invalid.
 */
export function encodingOf(head: Uint8Array): Encoding {
  if (head.length === 0) return 'empty';
  if (head[0] === 0xff && head[1] === 0xfe) return 'UTF-16 LE';
  if (head[0] === 0xfe && head[1] === 0xff) return 'UTF-16 BE';
  const zeros = [0, 0];
  let high = 0;
  let control = 0;
  head.forEach((b, i) => {
    if (b === 0) zeros[i & 1] = (zeros[i & 1] ?? 0) + 1;
    else if (b >= 0x80) high++;
    else if (b < 0x20 && b !== 9 && b !== 10 && b !== 13 && b !== 12) control++;
  });
  const [even = 0, odd = 0] = zeros;
  // Latin letters in UTF-16 have a zero for every other byte.
  if (odd > head.length / 5 && even < head.length / 100) return 'UTF-16 LE';
  if (even > head.length / 5 && odd < head.length / 100) return 'UTF-16 BE';
  if (even + odd + control > head.length / 50) return 'not a text';
  if (high === 0) return even + odd + control === 0 ? 'ASCII' : 'not a text';
  return isUtf8(head) ? 'UTF-8' : 'Latin-1 or alike';
}

function isUtf8(head: Uint8Array): boolean {
  try {
    // stream: true lets the last character be incomplete.
    new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** A web page instead of what was asked for: a login form, or an error page with status 200. */
export function looksLikeHtml(head: Uint8Array): boolean {
  const start = new TextDecoder()
    .decode(head.subarray(0, 512))
    .replace(/^\uFEFF/, '')
    .trimStart();
  return /^(<!doctype\s+html|<html[\s>]|<head[\s>])/i.test(start);
}

/** Formats that people mistake for texts, by their first bytes; '' if it is none of them. */
export function containerOf(head: Uint8Array): string {
  const is = (...bytes: number[]) => bytes.every((b, i) => head[i] === b);
  if (is(0x50, 0x4b, 3, 4)) return 'a ZIP archive (.zip, .docx, .epub and .odt are ones)';
  if (is(0x25, 0x50, 0x44, 0x46)) return 'a PDF';
  if (is(0x1f, 0x8b)) return 'a gzip archive';
  if (is(0x89, 0x50, 0x4e, 0x47)) return 'a PNG picture';
  if (is(0xff, 0xd8, 0xff)) return 'a JPEG picture';
  if (is(0x54, 0x47, 0x50, 0x54)) return 'a tinygpt model (open it under Files)';
  return '';
}

/** The beginning of a text for showing; an incomplete last character is left out. */
export function previewOf(head: Uint8Array, encoding: Encoding): string {
  const label =
    encoding === 'UTF-16 LE'
      ? 'utf-16le'
      : encoding === 'UTF-16 BE'
        ? 'utf-16be'
        : encoding === 'Latin-1 or alike'
          ? 'windows-1252'
          : 'utf-8';
  return new TextDecoder(label).decode(head, { stream: true });
}
