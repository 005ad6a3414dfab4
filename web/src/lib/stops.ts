// SPDX-License-Identifier: Apache-2.0
/**
 * stops.ts - texts that an answer ends at. What could be the beginning of one is held back until it
 * is known to be none:
 *
 *     stops "END"     pieces  "the E" -> "the "     "N" -> ""     "d" -> "ENd"
 */
export class Stops {
  #held = '';
  readonly #texts: readonly string[];

  /** Empty texts would end every answer before it begins, and do not count. */
  constructor(texts: readonly string[]) {
    this.#texts = texts.filter((text) => text !== '');
  }

  /** What can go out, and whether a text has come: it is dropped then, with all behind it. */
  take(piece: string): { out: string; ended: boolean } {
    const all = this.#held + piece;
    const found = this.#texts.map((text) => all.indexOf(text)).filter((at) => at >= 0);
    const ended = found.length > 0;
    const end = ended ? Math.min(...found) : this.#safe(all);
    this.#held = ended ? '' : all.slice(end);
    return { out: all.slice(0, end), ended };
  }

  /** What is left when no more pieces come; `piece` is the last one. */
  rest(piece: string): string {
    const all = this.#held + piece;
    this.#held = '';
    return all;
  }

  /** Where the first end of `all` begins that a text begins with. */
  #safe(all: string): number {
    for (let at = 0; at < all.length; at++) {
      const tail = all.slice(at);
      if (this.#texts.some((text) => text.startsWith(tail))) return at;
    }
    return all.length;
  }
}
