// SPDX-License-Identifier: Apache-2.0
/** excerpt.ts - a short passage of a large text, that begins where a word does. */

/** Reads this much around the place that was drawn: enough to find the beginning of a word. */
const READ_BYTES = 512;

/** The first whole words of a piece cut out of a text anywhere; at most `most` bytes. */
export function firstWords(piece: Uint8Array, most: number): string {
  const isBlank = (b: number | undefined) => b === 0x20 || b === 0x0a || b === 0x0d || b === 0x09;
  let start = 0;
  // The piece may begin inside a word, or inside a character: go to the next word.
  while (start < piece.length && !isBlank(piece[start])) start++;
  while (start < piece.length && isBlank(piece[start])) start++;
  if (start >= piece.length - 8) start = 0;
  let end = Math.min(piece.length, start + most);
  // Not through the middle of a character: continuation bytes are 10xxxxxx.
  while (end > start && end < piece.length && ((piece[end] as number) & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(piece.slice(start, end)).replaceAll('\uFFFD', '');
}

/** A passage from somewhere in the text; `draw` is a number of 0..1. */
export async function excerpt(text: Blob, most: number, draw = Math.random()): Promise<string> {
  const room = Math.max(0, text.size - READ_BYTES);
  const at = Math.floor(draw * room);
  return firstWords(new Uint8Array(await text.slice(at, at + READ_BYTES).arrayBuffer()), most);
}
