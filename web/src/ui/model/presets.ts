// SPDX-License-Identifier: Apache-2.0
/**
 * presets.ts - the presets, for the page's first paint: the engine, which knows them too, comes
 * later. A test holds this table against the engine. What a beginner should know about each is said
 * here in the page's words.
 */
import type { Shape } from './families';

export interface Size extends Shape {
  name: string;
  batch: number;
  steps: number;
  about: string;
}

/** All that the family decides. */
const BARE = { family: 'tinygpt', kvHeads: 0, headSize: 0, mlp: 0, window: 0, ropeBase: 0 };

export const SIZES: readonly Size[] = [
  size(
    'tiny',
    2,
    48,
    3,
    32,
    16,
    2000,
    'To see that everything works. Learns letters and some words.',
  ),
  size('small', 3, 96, 3, 64, 16, 1500, 'Learns words and the shape of a text.'),
  size('medium', 4, 128, 4, 96, 16, 1000, 'Learns some grammar.'),
  size('large', 6, 192, 6, 128, 12, 600, 'The first one whose sentences hold.'),
  size('xl', 8, 256, 8, 128, 8, 400, 'Longer sentences, a richer choice of words.'),
  size('huge', 12, 256, 8, 256, 8, 1500, 'Stories that stay on their subject.'),
  size('massive', 14, 384, 12, 256, 4, 1000, 'For long texts and long waits.'),
  size('mega', 14, 384, 12, 512, 2, 800, 'Like massive, and looks back twice as far.'),
  size('behemoth', 24, 1280, 20, 512, 1, 50, 'Only to see what this machine can hold.'),
  modern('modern-small', 3, 96, 4, 64, 16, 1500, 'Small, built as today’s models are (Qwen 3).'),
  modern('modern-medium', 4, 128, 4, 96, 16, 1000, 'Medium, built as today’s models are.'),
  modern('modern-large', 6, 192, 6, 128, 12, 600, 'Large, built as today’s models are.'),
];

function size(
  name: string,
  layers: number,
  width: number,
  heads: number,
  ctx: number,
  batch: number,
  steps: number,
  about: string,
): Size {
  return { ...BARE, name, layers, width, heads, ctx, batch, steps, about };
}

/** Rotary positions, a gated MLP, and two heads of keys that those of queries share. */
function modern(...given: Parameters<typeof size>): Size {
  return { ...size(...given), family: 'qwen3', kvHeads: 2 };
}

export function findSize(name: string): Size | undefined {
  return SIZES.find((s) => s.name === name);
}

/** tg_default_heads: a head for each 32 of the width where it divides, else 3, else 1. */
export function defaultHeads(width: number): number {
  if (width % 32 === 0) return width / 32;
  return width % 3 === 0 ? 3 : 1;
}
