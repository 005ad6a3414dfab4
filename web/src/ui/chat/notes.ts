// SPDX-License-Identifier: Apache-2.0
/**
 * notes.ts - texts cut into passages that a small encoder reads whole, and the passages that are
 * nearest to a question by their vectors. Pure.
 */

export interface Passage {
  /** Of which file. */
  from: string;
  text: string;
}

/** About 120 words: MiniLM reads 256 tokens. */
const MOST_CHARS = 700;
/** Shorter paragraphs, such as headings, go with the one behind them. */
const LEAST_CHARS = 80;

/** Where a passage that is too long is cut: behind a sentence, else between words. */
function cutAt(text: string): number {
  const part = text.slice(0, MOST_CHARS);
  const sentence = Math.max(...['. ', '! ', '? ', '\n'].map((end) => part.lastIndexOf(end)));
  if (sentence > MOST_CHARS / 3) return sentence + 1;
  const word = part.lastIndexOf(' ');
  return word > 0 ? word : MOST_CHARS;
}

/** The passages of a text, in their order; all of its words are in one of them. */
export function passages(from: string, text: string): Passage[] {
  const out: Passage[] = [];
  let held = '';
  const put = (part: string) => {
    if (part.trim() !== '') out.push({ from, text: part.trim() });
  };
  for (const paragraph of text.split(/\r?\n\s*\r?\n/)) {
    held = held === '' ? paragraph.trim() : `${held}\n${paragraph.trim()}`;
    while (held.length > MOST_CHARS) {
      const at = cutAt(held);
      put(held.slice(0, at));
      held = held.slice(at).trim();
    }
    if (held.length < LEAST_CHARS) continue;
    put(held);
    held = '';
  }
  put(held);
  return out;
}

export interface Hit {
  passage: Passage;
  /** The cosine of the angle to the question. */
  near: number;
}

/** The nearest first; vectors have length 1. */
export function nearestTo(
  question: Float32Array, list: readonly Passage[], vectors: readonly Float32Array[], most: number,
): Hit[] {
  const hits = vectors.map((vector, i): Hit => {
    let near = 0;
    for (let k = 0; k < question.length; k++) near += question[k]! * (vector[k] ?? 0);
    return { passage: list[i]!, near };
  });
  return hits.sort((a, b) => b.near - a.near).slice(0, most);
}
